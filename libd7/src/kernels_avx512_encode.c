/* Encoders for AVX-512 VBMI2. A register of differences, in lanes of 2, 4 or 8 bytes, is spread to bytes of 7 bits; the bytes
 * that count are compressed to the front and stored. Groups that need more than 8 bytes a value go to the portable
 * encoder. */
#include "kernels_avx512.h"
#if D7__HAVE_AVX512
D7__BEGIN_AVX512

/* The lanes' bits in groups of 7, one a byte: `places` are where a lane's groups begin. 64 bytes are stored, however few
 * count: the differences of the register and those after it must have room for so many. */
static D7__INLINE uint8_t *put_lanes(uint8_t *out, __m512i u, __m512i places, uint64_t first_bytes) {
    __m512i w = _mm512_and_si512(_mm512_multishift_epi64_epi8(places, u), _mm512_set1_epi8(0x7F));
    uint64_t there = _mm512_test_epi8_mask(w, w), inner = ~(first_bytes >> 1 | (uint64_t)1 << 63);
    /* A byte is needed when it or any after it in its lane is not 0. */
    uint64_t in_lane = inner;
    for (int shift = 1; shift < 8; shift *= 2) {
        there |= there >> shift & in_lane;
        in_lane &= in_lane >> shift;
    }
    uint64_t needed = there | first_bytes, continued = needed >> 1 & inner;
    w = _mm512_mask_add_epi8(w, continued, w, _mm512_set1_epi8((char)0x80));
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(needed, w));
    return out + __builtin_popcountll(needed);
}

/* 32 lanes below 2^14, 16 below 2^28, 8 below 2^56. */
static inline uint8_t *put_32x2(uint8_t *out, __m512i u) {
    return put_lanes(out, u, _mm512_set1_epi64(0x3730272017100700), D7__LANES_2);
}

static inline uint8_t *put_16x4(uint8_t *out, __m512i u) {
    return put_lanes(out, u, _mm512_set1_epi64(0x352E2720150E0700), D7__LANES_4);
}

static inline uint8_t *put_8x8(uint8_t *out, __m512i u) {
    return put_lanes(out, u, _mm512_set1_epi64(0x312A231C150E0700), D7__LANES_8);
}

static inline __m512i load512(const void *p) {
    return _mm512_loadu_si512(p);
}

static inline __m512i zigzag_32(__m512i d) {
    return _mm512_xor_si512(_mm512_add_epi32(d, d), _mm512_srai_epi32(d, 31));
}

static inline __m512i zigzag_64(__m512i d) {
    return _mm512_xor_si512(_mm512_add_epi64(d, d), _mm512_srai_epi64(d, 63));
}

/* 16 differences of 16 bits, some of which do not fit 14 bits as zigzag. */
static inline uint8_t *put_wide_16(uint8_t *out, const uint8_t *v, bool is_signed) {
    __m256i before = _mm256_loadu_si256((const __m256i *)(const void *)v);
    __m256i after = _mm256_loadu_si256((const __m256i *)(const void *)(v + 2));
    __m512i d = is_signed ? _mm512_sub_epi32(_mm512_cvtepi16_epi32(after), _mm512_cvtepi16_epi32(before))
                          : _mm512_sub_epi32(_mm512_cvtepu16_epi32(after), _mm512_cvtepu16_epi32(before));
    return put_16x4(out, zigzag_32(d));
}

static D7__INLINE uint8_t *encode_16(const void *values, size_t n, uint8_t *out, bool is_signed) {
    const uint8_t *v = values;
    __m512i bias = _mm512_set1_epi16(is_signed ? 0 : INT16_MIN);
    for (; n > 36; n -= 32, v += 64) { /* more than 32, for the room that put_lanes() asks for */
        __m512i before = _mm512_xor_si512(load512(v), bias), after = _mm512_xor_si512(load512(v + 2), bias);
        __m512i d = _mm512_subs_epi16(after, before); /* saturated ones fail the test below */
        __m512i u = _mm512_xor_si512(_mm512_add_epi16(d, d), _mm512_srai_epi16(d, 15));
        if (_mm512_test_epi16_mask(u, _mm512_set1_epi16((short)0xC000)) == 0) {
            out = put_32x2(out, u);
        } else {
            out = put_wide_16(out, v, is_signed);
            out = put_wide_16(out, v + 32, is_signed);
        }
    }
    return is_signed ? d7__scalar_encode_int16(v, n, out) : d7__scalar_encode_uint16(v, n, out);
}

uint8_t *d7__avx512_encode_int16(const void *values, size_t n, uint8_t *out) {
    return encode_16(values, n, out, true);
}

uint8_t *d7__avx512_encode_uint16(const void *values, size_t n, uint8_t *out) {
    return encode_16(values, n, out, false);
}

uint8_t *d7__avx512_encode_32(const void *values, size_t n, uint8_t *out) {
    const uint8_t *v = values;
    for (; n > 20; n -= 16, v += 64) { /* more than 16, likewise */
        __m512i u = zigzag_32(_mm512_sub_epi32(load512(v + 4), load512(v)));
        if (_mm512_test_epi32_mask(u, _mm512_set1_epi32((int)0xF0000000)) == 0) {
            out = put_16x4(out, u);
        } else {
            out = put_8x8(out, _mm512_cvtepu32_epi64(_mm512_castsi512_si256(u)));
            out = put_8x8(out, _mm512_cvtepu32_epi64(_mm512_extracti64x4_epi64(u, 1)));
        }
    }
    return d7__scalar_encode_32(v, n, out);
}

uint8_t *d7__avx512_encode_64(const void *values, size_t n, uint8_t *out) {
    const uint8_t *v = values;
    for (; n > 16; n -= 16, v += 128) {
        __m512i a = zigzag_64(_mm512_sub_epi64(load512(v + 8), load512(v)));
        __m512i b = zigzag_64(_mm512_sub_epi64(load512(v + 72), load512(v + 64)));
        __m512i all = _mm512_or_si512(a, b);
        if (_mm512_test_epi64_mask(all, _mm512_set1_epi64(~0x0FFFFFFF)) == 0) {
            __m512i low = _mm512_castsi256_si512(_mm512_cvtepi64_epi32(a));
            out = put_16x4(out, _mm512_inserti64x4(low, _mm512_cvtepi64_epi32(b), 1));
        } else if (_mm512_test_epi64_mask(all, _mm512_set1_epi64((int64_t)0xFF00000000000000)) == 0) {
            out = put_8x8(out, a);
            out = put_8x8(out, b);
        } else {
            out = d7__scalar_encode_64(v, 17, out);
        }
    }
    return d7__scalar_encode_64(v, n, out);
}

D7__END_AVX512
#endif

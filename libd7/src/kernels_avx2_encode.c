/* Encoders for AVX2. Eight or sixteen differences at a time are spread to bytes of 7 bits within lanes of equal width;
 * a table of byte shuffles then moves the bytes that count together. Which width is enough is tested for each
 * group; groups that need more than 8 bytes a value go to the portable encoder. */
#include "kernels_avx2.h"
#if D7__HAVE_AVX2
D7__BEGIN_AVX2

/* Moves bits 7-13 of every 16 to bits 8-14. */
static inline __m256i spread_14(__m256i u) {
    return _mm256_add_epi16(u, _mm256_andnot_si256(_mm256_set1_epi16(0x7F), u));
}

/* 16 lanes of 16 bits, each below 2^14. */
static inline uint8_t *put_16x2(uint8_t *out, __m256i u) {
    __m256i longer = _mm256_cmpgt_epi16(u, _mm256_set1_epi16(0x7F));
    __m256i w = _mm256_or_si256(spread_14(u), _mm256_and_si256(longer, _mm256_set1_epi16(0x80)));
    unsigned m = (unsigned)_mm256_movemask_epi8(_mm256_packs_epi16(longer, _mm256_setzero_si256()));
    unsigned m0 = m & 0xFF, m1 = m >> 16;
    store128(out, _mm_shuffle_epi8(low128(w), load128(d7__pack_2[m0])));
    out += 8 + __builtin_popcount(m0);
    store128(out, _mm_shuffle_epi8(high128(w), load128(d7__pack_2[m1])));
    return out + 8 + __builtin_popcount(m1);
}

/* Four groups of 7 bits of every 32 to the bytes. */
static inline __m256i spread_28(__m256i u) {
    u = _mm256_blend_epi16(u, _mm256_slli_epi32(u, 2), 0xAA);
    return spread_14(_mm256_and_si256(u, _mm256_set1_epi16(0x3FFF)));
}

/* Packs four lanes of bytes of 7 bits by their lengths, and marks the bytes that are continued. */
static inline uint8_t *put_4x4(uint8_t *out, __m128i w, unsigned codes) {
    __m128i packed = _mm_shuffle_epi8(w, load128(d7__pack_4[codes]));
    store128(out, _mm_or_si128(packed, load128(d7__marks_4[codes])));
    return out + d7__length_4[codes];
}

/* 8 lanes of 32 bits, each below 2^28. */
static inline uint8_t *put_8x4(uint8_t *out, __m256i u) {
    __m256i second = _mm256_cmpgt_epi32(u, _mm256_set1_epi32(0x7F));
    __m256i third = _mm256_cmpgt_epi32(u, _mm256_set1_epi32(0x3FFF));
    __m256i fourth = _mm256_cmpgt_epi32(u, _mm256_set1_epi32(0x1FFFFF));
    __m256i codes = _mm256_blend_epi16(_mm256_xor_si256(second, fourth), third, 0xAA);
    unsigned m = (unsigned)_mm256_movemask_epi8(_mm256_packs_epi16(codes, codes));
    __m256i w = spread_28(u);
    out = put_4x4(out, low128(w), m & 0xFF);
    return put_4x4(out, high128(w), m >> 24);
}

/* 4 lanes of 64 bits, each below 2^56. */
static inline uint8_t *put_4x8(uint8_t *out, __m256i u) {
    u = _mm256_blend_epi32(u, _mm256_slli_epi64(u, 4), 0xAA);
    __m256i w = spread_28(_mm256_and_si256(u, _mm256_set1_epi32(0x0FFFFFFF)));

    /* A byte is continued when any after it in its lane is not 0. */
    __m256i more = _mm256_srli_epi64(_mm256_adds_epu8(w, _mm256_set1_epi8(0x7F)), 8);
    more = _mm256_or_si256(more, _mm256_srli_epi64(more, 8));
    more = _mm256_or_si256(more, _mm256_srli_epi64(more, 16));
    more = _mm256_or_si256(more, _mm256_srli_epi64(more, 32));
    w = _mm256_or_si256(w, _mm256_and_si256(more, _mm256_set1_epi8((char)0x80)));
    uint32_t m = (uint32_t)_mm256_movemask_epi8(more);

    _mm_storel_epi64((__m128i *)out, low128(w));
    out += 1 + __builtin_popcount(m & 0xFF);
    bytes_store64(out, (uint64_t)_mm_extract_epi64(low128(w), 1));
    out += 1 + __builtin_popcount(m & 0xFF00);
    _mm_storel_epi64((__m128i *)out, high128(w));
    out += 1 + __builtin_popcount(m & 0xFF0000);
    bytes_store64(out, (uint64_t)_mm_extract_epi64(high128(w), 1));
    return out + 1 + __builtin_popcount(m >> 24);
}

static inline __m256i zigzag_32(__m256i d) {
    return _mm256_xor_si256(_mm256_add_epi32(d, d), _mm256_srai_epi32(d, 31));
}

static inline __m256i zigzag_64(__m256i d) {
    return _mm256_xor_si256(_mm256_add_epi64(d, d), _mm256_cmpgt_epi64(_mm256_setzero_si256(), d));
}

/* Differences of 16 bits that do not all fit 14 bits as zigzag: 8 of them, in 32 bits. */
static inline uint8_t *put_wide_16(uint8_t *out, const uint8_t *v, bool is_signed) {
    __m128i before = load128(v), after = load128(v + 2);
    __m256i d = is_signed ? _mm256_sub_epi32(_mm256_cvtepi16_epi32(after), _mm256_cvtepi16_epi32(before))
                          : _mm256_sub_epi32(_mm256_cvtepu16_epi32(after), _mm256_cvtepu16_epi32(before));
    return put_8x4(out, zigzag_32(d));
}

static D7__INLINE uint8_t *encode_16(const void *values, size_t n, uint8_t *out, bool is_signed) {
    const uint8_t *v = values;
    __m256i bias = _mm256_set1_epi16(is_signed ? 0 : INT16_MIN);
    for (; n > 16; n -= 16, v += 32) {
        __m256i before = _mm256_xor_si256(load256(v), bias), after = _mm256_xor_si256(load256(v + 2), bias);
        __m256i d = _mm256_subs_epi16(after, before); /* saturated ones fail the test below */
        __m256i u = _mm256_xor_si256(_mm256_add_epi16(d, d), _mm256_srai_epi16(d, 15));
        if (_mm256_testz_si256(u, _mm256_set1_epi16((short)0xC000))) {
            out = put_16x2(out, u);
        } else {
            out = put_wide_16(out, v, is_signed);
            out = put_wide_16(out, v + 16, is_signed);
        }
    }
    return is_signed ? d7__scalar_encode_int16(v, n, out) : d7__scalar_encode_uint16(v, n, out);
}

uint8_t *d7__avx2_encode_int16(const void *values, size_t n, uint8_t *out) {
    return encode_16(values, n, out, true);
}

uint8_t *d7__avx2_encode_uint16(const void *values, size_t n, uint8_t *out) {
    return encode_16(values, n, out, false);
}

uint8_t *d7__avx2_encode_32(const void *values, size_t n, uint8_t *out) {
    const uint8_t *v = values;
    for (; n > 8; n -= 8, v += 32) {
        __m256i u = zigzag_32(_mm256_sub_epi32(load256(v + 4), load256(v)));
        if (_mm256_testz_si256(u, _mm256_set1_epi32((int)0xF0000000))) {
            out = put_8x4(out, u);
        } else {
            out = put_4x8(out, _mm256_cvtepu32_epi64(low128(u)));
            out = put_4x8(out, _mm256_cvtepu32_epi64(high128(u)));
        }
    }
    return d7__scalar_encode_32(v, n, out);
}

/* The low halves of 8 lanes of 64 bits. */
static inline __m256i narrow_64(__m256i a, __m256i b) {
    __m256 mixed = _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88);
    return _mm256_permute4x64_epi64(_mm256_castps_si256(mixed), 0xD8);
}

uint8_t *d7__avx2_encode_64(const void *values, size_t n, uint8_t *out) {
    const uint8_t *v = values;
    for (; n > 8; n -= 8, v += 64) {
        __m256i a = zigzag_64(_mm256_sub_epi64(load256(v + 8), load256(v)));
        __m256i b = zigzag_64(_mm256_sub_epi64(load256(v + 40), load256(v + 32)));
        __m256i all = _mm256_or_si256(a, b);
        if (_mm256_testz_si256(all, _mm256_set1_epi64x(~0x0FFFFFFF))) {
            out = put_8x4(out, narrow_64(a, b));
        } else if (_mm256_testz_si256(all, _mm256_set1_epi64x((int64_t)0xFF00000000000000))) {
            out = put_4x8(out, a);
            out = put_4x8(out, b);
        } else {
            out = d7__scalar_encode_64(v, 9, out);
        }
    }
    return d7__scalar_encode_64(v, n, out);
}

D7__END_AVX2
#endif

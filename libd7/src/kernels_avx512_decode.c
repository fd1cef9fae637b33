/* Decoders for AVX-512 VBMI2. The continuation bits of 64 bytes are taken as one word; pext and pdep turn it into which bytes
 * of lanes of 2 or 4 bytes the varints fill, and an expansion puts them there. Then bits are gathered, differences restored
 * and added up. Groups with varints of more than 4 bytes go to the portable decoder. */
#include "kernels_avx512.h"
#if D7__HAVE_AVX512
D7__BEGIN_AVX512

/* Decoding in progress. */
typedef struct run {
    const uint8_t *p, *end;
    uint8_t *to;
    uint64_t x; /* the last value; bits above the element's width are arbitrary */
} run;

/* The last element of the 16 bytes that come n times 16 bytes earlier, in all elements of 16 bytes; 0 where there are none. */
static D7__INLINE __m512i last_of_earlier_16(__m512i d, int n) {
    const __m512i last =
        n == 1 ? _mm512_set_epi64(0x0017001700170017, 0x0017001700170017, 0x000F000F000F000F,
                                  0x000F000F000F000F, 0x0007000700070007, 0x0007000700070007, 0, 0)
               : _mm512_set_epi64(0x000F000F000F000F, 0x000F000F000F000F, 0x0007000700070007,
                                  0x0007000700070007, 0, 0, 0, 0);
    return _mm512_maskz_permutexvar_epi16(n == 1 ? 0xFFFFFF00 : 0xFFFF0000, last, d);
}

static D7__INLINE __m512i last_of_earlier_32(__m512i d, int n) {
    const __m512i last =
        n == 1 ? _mm512_set_epi64(0x0000000B0000000B, 0x0000000B0000000B, 0x0000000700000007,
                                  0x0000000700000007, 0x0000000300000003, 0x0000000300000003, 0, 0)
               : _mm512_set_epi64(0x0000000700000007, 0x0000000700000007, 0x0000000300000003,
                                  0x0000000300000003, 0, 0, 0, 0);
    return _mm512_maskz_permutexvar_epi32(n == 1 ? 0xFFF0 : 0xFF00, last, d);
}

/* The sums of the lanes up to each lane, of unsigned zigzags: 32 of 16 bits, 16 of 32. */
static inline __m512i sums_16(__m512i u) {
    __m512i sign = _mm512_sub_epi16(_mm512_setzero_si512(), _mm512_and_si512(u, _mm512_set1_epi16(1)));
    __m512i d = _mm512_xor_si512(_mm512_srli_epi16(u, 1), sign);
    d = _mm512_add_epi16(d, _mm512_bslli_epi128(d, 2));
    d = _mm512_add_epi16(d, _mm512_bslli_epi128(d, 4));
    d = _mm512_add_epi16(d, _mm512_bslli_epi128(d, 8));
    d = _mm512_add_epi16(d, last_of_earlier_16(d, 1));
    return _mm512_add_epi16(d, last_of_earlier_16(d, 2));
}

static inline __m512i sums_32(__m512i u) {
    __m512i sign = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_and_si512(u, _mm512_set1_epi32(1)));
    __m512i d = _mm512_xor_si512(_mm512_srli_epi32(u, 1), sign);
    d = _mm512_add_epi32(d, _mm512_bslli_epi128(d, 4));
    d = _mm512_add_epi32(d, _mm512_bslli_epi128(d, 8));
    d = _mm512_add_epi32(d, last_of_earlier_32(d, 1));
    return _mm512_add_epi32(d, last_of_earlier_32(d, 2));
}

/* Moves the varints at r->p to the lanes, of whose bytes `filled` says which they fill. */
static inline __m512i take_lanes(run *r, uint64_t filled) {
    __m512i w = _mm512_maskz_expand_epi8(filled, _mm512_loadu_si512(r->p));
    r->p += __builtin_popcountll(filled);
    return _mm512_maddubs_epi16(_mm512_set1_epi16((short)0x8001),
                                _mm512_and_si512(w, _mm512_set1_epi8(0x7F)));
}

/* 32 varints of one or two bytes; `continued` are the bits at r->p, no two of them next to each other. */
static inline void take_short(run *r, uint64_t continued) {
    uint64_t longer = _pext_u64(continued << 1, ~continued);
    __m512i d = sums_16(take_lanes(r, D7__LANES_2 | _pdep_u64(longer, D7__LANES_2 << 1)));
    d = _mm512_add_epi16(d, _mm512_set1_epi16((short)r->x));
    _mm512_storeu_si512(r->to, d);
    r->to += 64;
    r->x = (uint16_t)_mm512_cvtsi512_si32(_mm512_permutexvar_epi16(_mm512_set1_epi16(31), d));
}

/* Adds 16 sums of differences to the last value and stores the results. */
static D7__INLINE void put_sums(run *r, __m512i d, size_t width) {
    uint64_t last =
        (uint64_t)(int64_t)_mm512_cvtsi512_si32(_mm512_permutexvar_epi32(_mm512_set1_epi32(15), d));
    if (width == 2) {
        d = _mm512_add_epi32(d, _mm512_set1_epi32((int)(uint32_t)r->x));
        _mm256_storeu_si256((__m256i *)(void *)r->to, _mm512_cvtepi32_epi16(d));
    } else if (width == 4) {
        _mm512_storeu_si512(r->to, _mm512_add_epi32(d, _mm512_set1_epi32((int)(uint32_t)r->x)));
    } else {
        const __m512i x = _mm512_set1_epi64((int64_t)r->x);
        _mm512_storeu_si512(r->to, _mm512_add_epi64(x, _mm512_cvtepi32_epi64(_mm512_castsi512_si256(d))));
        _mm512_storeu_si512(r->to + 64,
                            _mm512_add_epi64(x, _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(d, 1))));
    }
    r->to += 16 * width;
    r->x += last;
}

/* 16 varints of at most four bytes; no four of the bits are next to each other. */
static D7__INLINE void take_middle(run *r, uint64_t continued, size_t width) {
    uint64_t ends = ~continued, second = continued << 1, third = second & continued << 2;
    uint64_t fourth = third & continued << 3, filled = D7__LANES_4;
    filled |= _pdep_u64(_pext_u64(second, ends), D7__LANES_4 << 1);
    filled |= _pdep_u64(_pext_u64(third, ends), D7__LANES_4 << 2);
    filled |= _pdep_u64(_pext_u64(fourth, ends), D7__LANES_4 << 3);
    __m512i u = _mm512_madd_epi16(take_lanes(r, filled), _mm512_set1_epi32(0x40000001));
    put_sums(r, sums_32(u), width);
}

/* The varints that end in the 64 bytes, by the portable decoder. Returns the start of one of more than 10 bytes, or NULL. */
static D7__INLINE const uint8_t *take_long(run *r, uint64_t continued, size_t width,
                                           d7__decode_fn *portable) {
    uint64_t ends = ~continued;
    size_t bytes = ends ? 64 - (size_t)__builtin_clzll(ends) : (size_t)(r->end - r->p);
    const uint8_t *bad = portable(r->p, bytes, &r->x, r->to);
    r->p += bytes;
    r->to += (size_t)__builtin_popcountll(ends) * width;
    return bad;
}

static D7__INLINE const uint8_t *decode(const uint8_t *in, size_t bytes, uint64_t *sum, void *out,
                                        size_t width, d7__decode_fn *portable) {
    run r = {.p = in, .end = in + bytes, .to = out, .x = *sum};
    const uint8_t *bad = NULL;
    while (!bad && r.end - r.p >= D7__AVX512_BYTES) {
        uint64_t c = _mm512_movepi8_mask(_mm512_loadu_si512(r.p)), two = c & c << 1;
        if (width == 2 && !two)
            take_short(&r, c);
        else if (!(two & two << 2))
            take_middle(&r, c, width);
        else
            bad = take_long(&r, c, width, portable);
    }
    if (!bad)
        bad = portable(r.p, (size_t)(r.end - r.p), &r.x, r.to);
    if (!bad)
        *sum = r.x;
    return bad;
}

const uint8_t *d7__avx512_decode_16(const uint8_t *in, size_t bytes, uint64_t *sum, void *out) {
    return decode(in, bytes, sum, out, 2, d7__scalar_decode_16);
}

const uint8_t *d7__avx512_decode_32(const uint8_t *in, size_t bytes, uint64_t *sum, void *out) {
    return decode(in, bytes, sum, out, 4, d7__scalar_decode_32);
}

const uint8_t *d7__avx512_decode_64(const uint8_t *in, size_t bytes, uint64_t *sum, void *out) {
    return decode(in, bytes, sum, out, 8, d7__scalar_decode_64);
}

size_t d7__avx512_count(const uint8_t *in, size_t bytes) {
    size_t continued = 0, i = 0;
    for (; i + D7__AVX512_BYTES <= bytes; i += D7__AVX512_BYTES)
        continued += (size_t)__builtin_popcountll(_mm512_movepi8_mask(_mm512_loadu_si512(in + i)));
    return i - continued + d7__scalar_count(in + i, bytes - i);
}

D7__END_AVX512
#endif

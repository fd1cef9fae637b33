/* The intrinsics of AVX-512 (F, BW, VBMI, VBMI2) and BMI2 that libd7's kernels use, in plain C, so that those kernels are
 * checked where no processor has them. Written from Intel's descriptions of the instructions. */
#ifndef TESTS_UNIT_D7_AVX512_EMULATED_H
#define TESTS_UNIT_D7_AVX512_EMULATED_H

#include <stdint.h>
#include <string.h>

typedef union __m512i {
    uint8_t u8[64];
    int8_t i8[64];
    uint16_t u16[32];
    int16_t i16[32];
    uint32_t u32[16];
    int32_t i32[16];
    uint64_t u64[8];
    int64_t i64[8];
} __m512i;

typedef union __m256i {
    uint16_t u16[16];
    int16_t i16[16];
    uint32_t u32[8];
    int32_t i32[8];
    uint64_t u64[4];
} __m256i;

/* ---- memory, constants, parts ---- */

static inline __m512i _mm512_loadu_si512(const void *p) {
    __m512i r;
    memcpy(&r, p, sizeof r);
    return r;
}

static inline void _mm512_storeu_si512(void *p, __m512i a) {
    memcpy(p, &a, sizeof a);
}

static inline __m256i _mm256_loadu_si256(const __m256i *p) {
    __m256i r;
    memcpy(&r, p, sizeof r);
    return r;
}

static inline void _mm256_storeu_si256(__m256i *p, __m256i a) {
    memcpy(p, &a, sizeof a);
}

/* Defines name(arguments) that gives, for each i of n, r.lane[i] = value. */
#define EMULATED(name, arguments, n, lane, value)                                                            \
    static inline __m512i name arguments {                                                                   \
        __m512i r;                                                                                           \
        for (unsigned i = 0; i < (n); i++)                                                                   \
            r.lane[i] = value;                                                                               \
        return r;                                                                                            \
    }

EMULATED(_mm512_setzero_si512, (void), 8, u64, 0)
EMULATED(_mm512_set1_epi8, (char x), 64, u8, (uint8_t)x)
EMULATED(_mm512_set1_epi16, (short x), 32, i16, x)
EMULATED(_mm512_set1_epi32, (int x), 16, i32, x)
EMULATED(_mm512_set1_epi64, (int64_t x), 8, i64, x)

static inline __m512i _mm512_set_epi64(int64_t e7, int64_t e6, int64_t e5, int64_t e4, int64_t e3, int64_t e2,
                                       int64_t e1, int64_t e0) {
    return (__m512i){.i64 = {e0, e1, e2, e3, e4, e5, e6, e7}};
}

static inline __m256i _mm512_castsi512_si256(__m512i a) {
    __m256i r;
    memcpy(&r, &a, sizeof r);
    return r;
}

/* The upper half is arbitrary. */
static inline __m512i _mm512_castsi256_si512(__m256i a) {
    __m512i r;
    memset(&r, 0xEE, sizeof r);
    memcpy(&r, &a, sizeof a);
    return r;
}

static inline __m256i _mm512_extracti64x4_epi64(__m512i a, int half) {
    __m256i r;
    memcpy(&r, &a.u64[4 * half], sizeof r);
    return r;
}

static inline __m512i _mm512_inserti64x4(__m512i a, __m256i b, int half) {
    memcpy(&a.u64[4 * half], &b, sizeof b);
    return a;
}

static inline int _mm512_cvtsi512_si32(__m512i a) {
    return a.i32[0];
}

/* ---- arithmetic ---- */

EMULATED(_mm512_and_si512, (__m512i a, __m512i b), 8, u64, a.u64[i] & b.u64[i])
EMULATED(_mm512_or_si512, (__m512i a, __m512i b), 8, u64, a.u64[i] | b.u64[i])
EMULATED(_mm512_xor_si512, (__m512i a, __m512i b), 8, u64, a.u64[i] ^ b.u64[i])
EMULATED(_mm512_add_epi16, (__m512i a, __m512i b), 32, u16, (uint16_t)(a.u16[i] + b.u16[i]))
EMULATED(_mm512_add_epi32, (__m512i a, __m512i b), 16, u32, a.u32[i] + b.u32[i])
EMULATED(_mm512_add_epi64, (__m512i a, __m512i b), 8, u64, a.u64[i] + b.u64[i])
EMULATED(_mm512_sub_epi16, (__m512i a, __m512i b), 32, u16, (uint16_t)(a.u16[i] - b.u16[i]))
EMULATED(_mm512_sub_epi32, (__m512i a, __m512i b), 16, u32, a.u32[i] - b.u32[i])
EMULATED(_mm512_sub_epi64, (__m512i a, __m512i b), 8, u64, a.u64[i] - b.u64[i])
EMULATED(_mm512_srli_epi16, (__m512i a, unsigned n), 32, u16, (uint16_t)(a.u16[i] >> n))
EMULATED(_mm512_srli_epi32, (__m512i a, unsigned n), 16, u32, a.u32[i] >> n)
EMULATED(_mm512_srai_epi16, (__m512i a, unsigned n), 32, i16, (int16_t)(a.i16[i] >> n))
EMULATED(_mm512_srai_epi32, (__m512i a, unsigned n), 16, i32, a.i32[i] >> n)
EMULATED(_mm512_srai_epi64, (__m512i a, unsigned n), 8, i64, a.i64[i] >> n)

static inline int16_t emulated_saturate(int32_t x) {
    return (int16_t)(x > INT16_MAX ? INT16_MAX : x < INT16_MIN ? INT16_MIN : x);
}

EMULATED(_mm512_subs_epi16, (__m512i a, __m512i b), 32, i16, emulated_saturate(a.i16[i] - b.i16[i]))
EMULATED(_mm512_mask_add_epi8, (__m512i from, uint64_t k, __m512i a, __m512i b), 64, u8,
         k >> i & 1 ? (uint8_t)(a.u8[i] + b.u8[i]) : from.u8[i])
/* a unsigned, b signed */
EMULATED(_mm512_maddubs_epi16, (__m512i a, __m512i b), 32, i16,
         emulated_saturate(a.u8[2 * i] * b.i8[2 * i] + a.u8[2 * i + 1] * b.i8[2 * i + 1]))
EMULATED(_mm512_madd_epi16, (__m512i a, __m512i b), 16, u32,
         (uint32_t)(a.i16[2 * i] * b.i16[2 * i]) + (uint32_t)(a.i16[2 * i + 1] * b.i16[2 * i + 1]))
/* Within 16 bytes, towards the upper end. */
EMULATED(_mm512_bslli_epi128, (__m512i a, unsigned n), 64, u8, (uint8_t)(i % 16 >= n ? a.u8[i - n] : 0))
/* Eight bits from any place of the 64 on, going round. */
EMULATED(_mm512_multishift_epi64_epi8, (__m512i places, __m512i a), 64, u8,
         (uint8_t)(a.u64[i / 8] >> (places.u8[i] & 63) | a.u64[i / 8] << ((64u - (places.u8[i] & 63u)) & 63)))

/* ---- lanes of other widths ---- */

EMULATED(_mm512_cvtepi16_epi32, (__m256i a), 16, i32, a.i16[i])
EMULATED(_mm512_cvtepu16_epi32, (__m256i a), 16, u32, a.u16[i])
EMULATED(_mm512_cvtepi32_epi64, (__m256i a), 8, i64, a.i32[i])
EMULATED(_mm512_cvtepu32_epi64, (__m256i a), 8, u64, a.u32[i])

static inline __m256i _mm512_cvtepi64_epi32(__m512i a) {
    __m256i r;
    for (unsigned i = 0; i < 8; i++)
        r.u32[i] = (uint32_t)a.u64[i];
    return r;
}

static inline __m256i _mm512_cvtepi32_epi16(__m512i a) {
    __m256i r;
    for (unsigned i = 0; i < 16; i++)
        r.u16[i] = (uint16_t)a.u32[i];
    return r;
}

/* ---- places ---- */

EMULATED(_mm512_permutexvar_epi16, (__m512i from, __m512i a), 32, u16, a.u16[from.u16[i] & 31])
EMULATED(_mm512_permutexvar_epi32, (__m512i from, __m512i a), 16, u32, a.u32[from.u32[i] & 15])
EMULATED(_mm512_maskz_permutexvar_epi16, (uint32_t k, __m512i from, __m512i a), 32, u16,
         (uint16_t)(k >> i & 1 ? a.u16[from.u16[i] & 31] : 0))
EMULATED(_mm512_maskz_permutexvar_epi32, (uint16_t k, __m512i from, __m512i a), 16, u32,
         k >> i & 1 ? a.u32[from.u32[i] & 15] : 0)

/* The chosen bytes, moved to the front; zeroes after them. */
static inline __m512i _mm512_maskz_compress_epi8(uint64_t k, __m512i a) {
    __m512i r = _mm512_setzero_si512();
    for (unsigned i = 0, n = 0; i < 64; i++)
        if (k >> i & 1)
            r.u8[n++] = a.u8[i];
    return r;
}

/* The bytes from the front, moved to the chosen places; zeroes elsewhere. */
static inline __m512i _mm512_maskz_expand_epi8(uint64_t k, __m512i a) {
    __m512i r = _mm512_setzero_si512();
    for (unsigned i = 0, n = 0; i < 64; i++)
        if (k >> i & 1)
            r.u8[i] = a.u8[n++];
    return r;
}

/* ---- masks ---- */

/* Defines a mask of n bits, bit i being value. */
#define EMULATED_MASK(name, arguments, type, n, value)                                                       \
    static inline type name arguments {                                                                      \
        uint64_t k = 0;                                                                                      \
        for (unsigned i = 0; i < (n); i++)                                                                   \
            k |= (uint64_t)(value) << i;                                                                     \
        return (type)k;                                                                                      \
    }

EMULATED_MASK(_mm512_movepi8_mask, (__m512i a), uint64_t, 64, a.u8[i] >> 7)
EMULATED_MASK(_mm512_test_epi8_mask, (__m512i a, __m512i b), uint64_t, 64, (a.u8[i] & b.u8[i]) != 0)
EMULATED_MASK(_mm512_test_epi16_mask, (__m512i a, __m512i b), uint32_t, 32, (a.u16[i] & b.u16[i]) != 0)
EMULATED_MASK(_mm512_test_epi32_mask, (__m512i a, __m512i b), uint16_t, 16, (a.u32[i] & b.u32[i]) != 0)
EMULATED_MASK(_mm512_test_epi64_mask, (__m512i a, __m512i b), uint8_t, 8, (a.u64[i] & b.u64[i]) != 0)

/* The bits of x where the mask has ones, next to each other. */
static inline uint64_t _pext_u64(uint64_t x, uint64_t mask) {
    uint64_t r = 0;
    for (unsigned i = 0, n = 0; i < 64; i++)
        if (mask >> i & 1)
            r |= (x >> i & 1) << n++;
    return r;
}

/* The lowest bits of x, to where the mask has ones. */
static inline uint64_t _pdep_u64(uint64_t x, uint64_t mask) {
    uint64_t r = 0;
    for (unsigned i = 0, n = 0; i < 64; i++)
        if (mask >> i & 1)
            r |= (x >> n++ & 1) << i;
    return r;
}

#endif

#include "blosc_vector.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))
#define INLINE AVX2 __attribute__((always_inline)) static inline

enum { VECTOR_BYTES = 32 };

INLINE __m256i load(const uint8_t *from) {
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

INLINE void store(uint8_t *to, __m256i v) {
    _mm256_storeu_si256((__m256i *)(void *)to, v);
}

/* ---- bytes */

typedef struct pair {
    __m256i a, b;
} pair;

/* 64 bytes to those at even and those at odd places. */
INLINE pair part(__m256i a, __m256i b) {
    const __m256i low = _mm256_set1_epi16(0xFF);
    __m256i even = _mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
    __m256i odd = _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
    /* The packing goes by halves of a vector. */
    return (pair){_mm256_permute4x64_epi64(even, 0xD8), _mm256_permute4x64_epi64(odd, 0xD8)};
}

/* The inverse. */
INLINE pair mix(__m256i even, __m256i odd) {
    __m256i low = _mm256_unpacklo_epi8(even, odd), high = _mm256_unpackhi_epi8(even, odd);
    return (pair){_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31)};
}

INLINE void part_4(__m256i to[4], const __m256i from[4]) {
    pair x = part(from[0], from[1]), y = part(from[2], from[3]);
    pair even = part(x.a, y.a), odd = part(x.b, y.b);
    to[0] = even.a;
    to[1] = odd.a;
    to[2] = even.b;
    to[3] = odd.b;
}

INLINE void mix_4(__m256i to[4], const __m256i from[4]) {
    pair even = mix(from[0], from[2]), odd = mix(from[1], from[3]);
    pair x = mix(even.a, odd.a), y = mix(even.b, odd.b);
    to[0] = x.a;
    to[1] = x.b;
    to[2] = y.a;
    to[3] = y.b;
}

AVX2 static void split_2(uint8_t *planes, const uint8_t *from, size_t n, size_t done) {
    for (size_t i = 0; i < done; i += VECTOR_BYTES) {
        pair p = part(load(from + 2 * i), load(from + 2 * i + VECTOR_BYTES));
        store(planes + i, p.a);
        store(planes + n + i, p.b);
    }
}

AVX2 static void join_2(uint8_t *to, const uint8_t *planes, size_t n, size_t done) {
    for (size_t i = 0; i < done; i += VECTOR_BYTES) {
        pair p = mix(load(planes + i), load(planes + n + i));
        store(to + 2 * i, p.a);
        store(to + 2 * i + VECTOR_BYTES, p.b);
    }
}

AVX2 static void split_4(uint8_t *planes, const uint8_t *from, size_t n, size_t done) {
    for (size_t i = 0; i < done; i += VECTOR_BYTES) {
        __m256i in[4], out[4];
        for (size_t j = 0; j < 4; j++)
            in[j] = load(from + 4 * i + j * VECTOR_BYTES);
        part_4(out, in);
        for (size_t j = 0; j < 4; j++)
            store(planes + j * n + i, out[j]);
    }
}

AVX2 static void join_4(uint8_t *to, const uint8_t *planes, size_t n, size_t done) {
    for (size_t i = 0; i < done; i += VECTOR_BYTES) {
        __m256i in[4], out[4];
        for (size_t j = 0; j < 4; j++)
            in[j] = load(planes + j * n + i);
        mix_4(out, in);
        for (size_t j = 0; j < 4; j++)
            store(to + 4 * i + j * VECTOR_BYTES, out[j]);
    }
}

AVX2 static void split_8(uint8_t *planes, const uint8_t *from, size_t n, size_t done) {
    for (size_t i = 0; i < done; i += VECTOR_BYTES) {
        __m256i even[4], odd[4], out[4];
        for (size_t j = 0; j < 4; j++) {
            const uint8_t *at = from + 8 * i + 2 * j * VECTOR_BYTES;
            pair p = part(load(at), load(at + VECTOR_BYTES));
            even[j] = p.a;
            odd[j] = p.b;
        }
        part_4(out, even);
        for (size_t j = 0; j < 4; j++)
            store(planes + 2 * j * n + i, out[j]);
        part_4(out, odd);
        for (size_t j = 0; j < 4; j++)
            store(planes + (2 * j + 1) * n + i, out[j]);
    }
}

AVX2 static void join_8(uint8_t *to, const uint8_t *planes, size_t n, size_t done) {
    for (size_t i = 0; i < done; i += VECTOR_BYTES) {
        __m256i even[4], odd[4], a[4], b[4];
        for (size_t j = 0; j < 4; j++) {
            even[j] = load(planes + 2 * j * n + i);
            odd[j] = load(planes + (2 * j + 1) * n + i);
        }
        mix_4(a, even);
        mix_4(b, odd);
        for (size_t j = 0; j < 4; j++) {
            uint8_t *at = to + 8 * i + 2 * j * VECTOR_BYTES;
            pair p = mix(a[j], b[j]);
            store(at, p.a);
            store(at + VECTOR_BYTES, p.b);
        }
    }
}

/* ---- bits */

AVX2 static void split_bits(uint8_t *planes, const uint8_t *from, size_t n, size_t done) {
    for (size_t i = 0; i < done; i += VECTOR_BYTES) {
        __m256i v = load(from + i);
        for (size_t q = 8; q-- > 0; v = _mm256_add_epi8(v, v)) {
            uint32_t bits = (uint32_t)_mm256_movemask_epi8(v);
            memcpy(planes + q * (n / 8) + i / 8, &bits, sizeof bits);
        }
    }
}

/* Exchanges the bits of a above `shift` places with those of b below: one step of a transposition of 8 vectors. */
#define EXCHANGE(a, b, shift, mask)                                                                          \
    do {                                                                                                     \
        __m256i t = _mm256_and_si256(_mm256_xor_si256(_mm256_srli_epi64(a, shift), b), mask);                \
        b = _mm256_xor_si256(b, t);                                                                          \
        a = _mm256_xor_si256(a, _mm256_slli_epi64(t, shift));                                                \
    } while (0)

/* Byte g of v[q] holds bit q of the bytes 8 * g ..; afterwards byte g of v[i] is byte 8 * g + i. */
INLINE void transpose_bits(__m256i v[8]) {
    const __m256i m4 = _mm256_set1_epi8(0x0F), m2 = _mm256_set1_epi8(0x33), m1 = _mm256_set1_epi8(0x55);
    EXCHANGE(v[0], v[4], 4, m4);
    EXCHANGE(v[1], v[5], 4, m4);
    EXCHANGE(v[2], v[6], 4, m4);
    EXCHANGE(v[3], v[7], 4, m4);
    EXCHANGE(v[0], v[2], 2, m2);
    EXCHANGE(v[1], v[3], 2, m2);
    EXCHANGE(v[4], v[6], 2, m2);
    EXCHANGE(v[5], v[7], 2, m2);
    EXCHANGE(v[0], v[1], 1, m1);
    EXCHANGE(v[2], v[3], 1, m1);
    EXCHANGE(v[4], v[5], 1, m1);
    EXCHANGE(v[6], v[7], 1, m1);
}

AVX2 static void join_bits(uint8_t *to, const uint8_t *planes, size_t n, size_t done) {
    for (size_t i = 0; i < done; i += 8 * VECTOR_BYTES) {
        __m256i v[8], even[4], odd[4];
        for (size_t q = 0; q < 8; q++)
            v[q] = load(planes + q * (n / 8) + i / 8);
        transpose_bits(v);
        const __m256i evens[4] = {v[0], v[2], v[4], v[6]}, odds[4] = {v[1], v[3], v[5], v[7]};
        mix_4(even, evens);
        mix_4(odd, odds);
        for (size_t j = 0; j < 4; j++) {
            pair p = mix(even[j], odd[j]);
            store(to + i + 2 * j * VECTOR_BYTES, p.a);
            store(to + i + (2 * j + 1) * VECTOR_BYTES, p.b);
        }
    }
}

static bool there(void) {
    return __builtin_cpu_supports("avx2");
}

size_t daf__vector_split_bytes(uint8_t *planes, const uint8_t *from, size_t n, size_t width) {
    size_t done = n / VECTOR_BYTES * VECTOR_BYTES;
    if (!there() || (width != 2 && width != 4 && width != 8))
        return 0;
    (width == 2 ? split_2 : width == 4 ? split_4 : split_8)(planes, from, n, done);
    return done;
}

size_t daf__vector_join_bytes(uint8_t *to, const uint8_t *planes, size_t n, size_t width) {
    size_t done = n / VECTOR_BYTES * VECTOR_BYTES;
    if (!there() || (width != 2 && width != 4 && width != 8))
        return 0;
    (width == 2 ? join_2 : width == 4 ? join_4 : join_8)(to, planes, n, done);
    return done;
}

size_t daf__vector_split_bits(uint8_t *planes, const uint8_t *from, size_t n) {
    size_t done = n / VECTOR_BYTES * VECTOR_BYTES;
    if (!there())
        return 0;
    split_bits(planes, from, n, done);
    return done;
}

size_t daf__vector_join_bits(uint8_t *to, const uint8_t *planes, size_t n) {
    size_t done = n / (8 * VECTOR_BYTES) * (8 * VECTOR_BYTES);
    if (!there())
        return 0;
    join_bits(to, planes, n, done);
    return done;
}

#else

size_t daf__vector_split_bytes(uint8_t *planes, const uint8_t *from, size_t n, size_t width) {
    (void)planes, (void)from, (void)n, (void)width;
    return 0;
}

size_t daf__vector_join_bytes(uint8_t *to, const uint8_t *planes, size_t n, size_t width) {
    (void)to, (void)planes, (void)n, (void)width;
    return 0;
}

size_t daf__vector_split_bits(uint8_t *planes, const uint8_t *from, size_t n) {
    (void)planes, (void)from, (void)n;
    return 0;
}

size_t daf__vector_join_bits(uint8_t *to, const uint8_t *planes, size_t n) {
    (void)to, (void)planes, (void)n;
    return 0;
}

#endif

/* What the AVX2 sources share. Their functions are compiled for AVX2 whatever the rest is compiled for, and are only
 * called where the processor has it (kernels.c). */
#ifndef D7_SRC_KERNELS_AVX2_H
#define D7_SRC_KERNELS_AVX2_H

#include "kernels.h"

#if D7__HAVE_AVX2
#include <immintrin.h>

#include "base/bytes.h"
#include "kernels_tables.h"

#if defined(__clang__)
#define D7__BEGIN_AVX2                                                                                       \
    _Pragma("clang attribute push(__attribute__((target(\"avx2,bmi,bmi2,popcnt\"))), apply_to = function)")
#define D7__END_AVX2 _Pragma("clang attribute pop")
#else
#define D7__BEGIN_AVX2 _Pragma("GCC push_options") _Pragma("GCC target(\"avx2,bmi,bmi2,popcnt\")")
#define D7__END_AVX2 _Pragma("GCC pop_options")
#endif

D7__BEGIN_AVX2

/* Any alignment. */
static inline __m128i load128(const void *p) {
    return _mm_loadu_si128(p);
}

static inline __m256i load256(const void *p) {
    return _mm256_loadu_si256(p);
}

static inline void store128(void *p, __m128i v) {
    _mm_storeu_si128(p, v);
}

static inline void store256(void *p, __m256i v) {
    _mm256_storeu_si256(p, v);
}

static inline __m128i low128(__m256i v) {
    return _mm256_castsi256_si128(v);
}

static inline __m128i high128(__m256i v) {
    return _mm256_extracti128_si256(v, 1);
}

D7__END_AVX2

#endif
#endif

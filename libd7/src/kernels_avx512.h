/* What the AVX-512 sources share. Their functions are compiled for AVX-512 with VBMI2 whatever the rest is compiled for, and
 * are only called where the processor has it (kernels.c). With D7__AVX512_EMULATED the same sources are compiled with the
 * intrinsics in plain C instead, for tests. */
#ifndef D7_SRC_KERNELS_AVX512_H
#define D7_SRC_KERNELS_AVX512_H

#include "kernels.h"

#if D7__HAVE_AVX512
#if defined(D7__AVX512_EMULATED)
#include "avx512_emulated.h"
#define D7__BEGIN_AVX512
#define D7__END_AVX512
#else
#include <immintrin.h>
#define D7__PRAGMA_TEXT(...) _Pragma(#__VA_ARGS__)
#define D7__PRAGMA(...) D7__PRAGMA_TEXT(__VA_ARGS__)
#define D7__AVX512_TARGET "avx512vbmi,avx512vbmi2,bmi2,popcnt" /* avx512f and avx512bw come with them */
#if defined(__clang__)
#define D7__BEGIN_AVX512                                                                                     \
    D7__PRAGMA(clang attribute push(__attribute__((target(D7__AVX512_TARGET))), apply_to = function))
#define D7__END_AVX512 D7__PRAGMA(clang attribute pop)
#else
#define D7__BEGIN_AVX512 D7__PRAGMA(GCC push_options) D7__PRAGMA(GCC target(D7__AVX512_TARGET))
#define D7__END_AVX512 D7__PRAGMA(GCC pop_options)
#endif
#endif

/* 64 bytes, of a register and of a group of varints. */
enum { D7__AVX512_BYTES = 64 };

/* Bit 0 of each lane's bytes, in a mask of bytes; lanes of 2, 4 and 8 bytes. */
#define D7__LANES_2 0x5555555555555555u
#define D7__LANES_4 0x1111111111111111u
#define D7__LANES_8 0x0101010101010101u

#endif
#endif

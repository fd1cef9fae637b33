/* The loops over values: differences to zigzag varints and back. One table per variant of the processor; all variants
 * give the same bytes and find the same errors. Pure; any thread. */
#ifndef D7_SRC_KERNELS_H
#define D7_SRC_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For functions of a constant type or width, so that each has code of its own. */
#define D7__INLINE inline __attribute__((always_inline))

/* Encoders may write this many bytes past the most that their differences can take. */
enum { D7__ENCODE_SLOP = 8 };

/* Encodes the n - 1 differences between n > 0 values (host order, any alignment), wrapping in 32 or 64 bits. Returns
 * the end of what was written; at most 3 bytes a difference for 16 bits, 5 for 32, 10 for 64. */
typedef uint8_t *d7__encode_fn(const void *values, size_t n, uint8_t *out);

/* Decodes all varints of in[bytes] as differences, adds them to *sum one by one and stores each sum, cut to the
 * element's width, in host order; out has room for as many elements as `in` has bytes below 128, and no byte outside of
 * either is touched. The last byte must be below 128. Returns NULL and the last sum, cut; or the first byte of a varint of more
 * than 10 bytes, *sum then being as before and out arbitrary. */
typedef const uint8_t *d7__decode_fn(const uint8_t *in, size_t bytes, uint64_t *sum, void *out);

/* How many of the bytes are below 128: the number of varints that end there. */
typedef size_t d7__count_fn(const uint8_t *in, size_t bytes);

typedef struct d7__kernels {
    const char *name;     /* for D7_KERNEL */
    bool (*usable)(void); /* can this processor run it? */
    bool (*fast)(void);   /* and is it then better than those before it? */
    d7__encode_fn *encode_int16;
    d7__encode_fn *encode_uint16;
    d7__encode_fn *encode_32;
    d7__encode_fn *encode_64;
    d7__decode_fn *decode_16;
    d7__decode_fn *decode_32;
    d7__decode_fn *decode_64;
    d7__count_fn *count;
} d7__kernels;

/* The variants that are compiled in, slowest first, `scalar` always; NULL ends the list. */
extern const d7__kernels *const d7__kernels_all[];

/* The variant to use: the one that the environment variable D7_KERNEL names if it is usable here, else the best. The
 * choice is made at the first call. */
const d7__kernels *d7__kernels_best(void);

/* Portable C, also for what the vector variants leave over. */
d7__encode_fn d7__scalar_encode_int16, d7__scalar_encode_uint16, d7__scalar_encode_32, d7__scalar_encode_64;
d7__decode_fn d7__scalar_decode_16, d7__scalar_decode_32, d7__scalar_decode_64;
d7__count_fn d7__scalar_count;

#if defined(__x86_64__) && defined(__GNUC__)
#define D7__HAVE_AVX2 1
d7__encode_fn d7__avx2_encode_int16, d7__avx2_encode_uint16, d7__avx2_encode_32, d7__avx2_encode_64;
d7__decode_fn d7__avx2_decode_16, d7__avx2_decode_32, d7__avx2_decode_64;
d7__count_fn d7__avx2_count;
#else
#define D7__HAVE_AVX2 0
#endif

#if (defined(__x86_64__) && defined(__GNUC__)) || defined(D7__AVX512_EMULATED)
#define D7__HAVE_AVX512 1
d7__encode_fn d7__avx512_encode_int16, d7__avx512_encode_uint16, d7__avx512_encode_32, d7__avx512_encode_64;
d7__decode_fn d7__avx512_decode_16, d7__avx512_decode_32, d7__avx512_decode_64;
d7__count_fn d7__avx512_count;
#else
#define D7__HAVE_AVX512 0
#endif

#if defined(__aarch64__) && defined(__ARM_NEON) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define D7__HAVE_NEON 1
d7__encode_fn d7__neon_encode_int16, d7__neon_encode_uint16, d7__neon_encode_32, d7__neon_encode_64;
d7__decode_fn d7__neon_decode_16;
d7__count_fn d7__neon_count;
#else
#define D7__HAVE_NEON 0
#endif

#endif

/* The loops over values: differences to zigzag varints and back. One table per variant of the processor; all variants
 * give the same bytes. Pure; any thread. */
#ifndef D7_SRC_KERNELS_H
#define D7_SRC_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Encoders may write this many bytes past the end that they return. */
enum { D7__ENCODE_SLOP = 8 };

/* Encodes the n - 1 differences between n values (host order, any alignment), wrapping in 32 or 64 bits. Returns the
 * end of what was written; at most 3 bytes a difference for 16 bits, 5 for 32, 10 for 64. */
typedef uint8_t *d7__encode_fn(const void *values, size_t n, uint8_t *out);

/* Decodes all varints of in[bytes] as differences, adds them to *sum one by one and stores each sum, cut to the
 * element's width, in host order; out has room for as many elements as `in` has bytes below 128. The last byte must
 * be below 128. Returns NULL, or the first byte of a varint of more than 10 bytes. */
typedef const uint8_t *d7__decode_fn(const uint8_t *in, size_t bytes, uint64_t *sum, void *out);

/* How many of the bytes are below 128: the number of varints that end there. */
typedef size_t d7__count_fn(const uint8_t *in, size_t bytes);

typedef struct d7__kernels {
    d7__encode_fn *encode_int16;
    d7__encode_fn *encode_uint16;
    d7__encode_fn *encode_32;
    d7__encode_fn *encode_64;
    d7__decode_fn *decode_16;
    d7__decode_fn *decode_32;
    d7__decode_fn *decode_64;
    d7__count_fn *count;
} d7__kernels;

/* Portable C. */
extern const d7__kernels d7__kernels_scalar;

/* The variant to use on this processor. */
const d7__kernels *d7__kernels_best(void);

#endif

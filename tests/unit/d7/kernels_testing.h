/* A plain encoder and decoder of differences, byte by byte, that the kernels are compared with, and buffers between
 * pages that cannot be touched. */
#ifndef TESTS_UNIT_D7_KERNELS_TESTING_H
#define TESTS_UNIT_D7_KERNELS_TESTING_H

#include "kernels.h"

/* The element types of the kernels. */
typedef enum kernel_type { KERNEL_INT16, KERNEL_UINT16, KERNEL_32, KERNEL_64, KERNEL_N_TYPES } kernel_type;

size_t kernel_width(kernel_type t);           /* bytes of an element */
size_t kernel_bound(kernel_type t, size_t n); /* room that an encoder of n values needs, slop included */
d7__encode_fn *kernel_encoder(const d7__kernels *k, kernel_type t);
d7__decode_fn *kernel_decoder(const d7__kernels *k, kernel_type t);

/* A value as the format's differences take it (int16 with its sign), and the low bits of x as a value. */
uint64_t plain_load(kernel_type t, const uint8_t *at);
void plain_store(kernel_type t, uint8_t *at, uint64_t x);

/* As the kernels' functions are described. */
uint8_t *plain_encode(kernel_type t, const uint8_t *values, size_t n, uint8_t *out);
const uint8_t *plain_decode(kernel_type t, const uint8_t *in, size_t bytes, uint64_t *sum, uint8_t *out);
size_t plain_count(const uint8_t *in, size_t bytes);

/* Memory with an untouchable page before and after it. */
typedef struct guarded {
    uint8_t *start; /* [bytes] */
    size_t bytes;
} guarded;

guarded guarded_make(size_t bytes); /* rounded up to whole pages; lasts as long as the process */

/* `bytes` bytes that end right before the untouchable page, or begin right after it. */
uint8_t *guarded_at(const guarded *g, size_t bytes, bool at_end);

#endif

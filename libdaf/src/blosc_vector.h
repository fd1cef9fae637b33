/* The transpositions of blosc_shuffle.h by the processor's vector instructions. Each does as many of the first elements
 * as fit in whole vectors and returns their number: 0 where there are no such instructions. */
#ifndef DAF_SRC_BLOSC_VECTOR_H
#define DAF_SRC_BLOSC_VECTOR_H

#include <stddef.h>
#include <stdint.h>

size_t daf__vector_split_bytes(uint8_t *planes, const uint8_t *from, size_t n, size_t width);
size_t daf__vector_join_bytes(uint8_t *to, const uint8_t *planes, size_t n, size_t width);
size_t daf__vector_split_bits(uint8_t *planes, const uint8_t *from, size_t n);
size_t daf__vector_join_bits(uint8_t *to, const uint8_t *planes, size_t n);

#endif

/* The shuffles of blosc 1 blocks (specification appendix C). */
#ifndef DAF_SRC_BLOSC_SHUFFLE_H
#define DAF_SRC_BLOSC_SHUFFLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All of them take a block of `bytes` bytes with elements of `width` bytes (from 1); bytes behind the last whole
 * element are copied. The three regions do not overlap; `scratch` has `bytes` bytes. The processor's vector instructions
 * are used where there are some, with the same result. */

/* Elements to bit planes, 8 for each byte of an element; a plain copy when the number of elements is no multiple of 8. */
void daf__bit_shuffle(uint8_t *to, const uint8_t *from, size_t bytes, size_t width, uint8_t *scratch);
void daf__bit_unshuffle(uint8_t *to, const uint8_t *from, size_t bytes, size_t width, uint8_t *scratch);

/* Elements to byte planes. */
void daf__byte_shuffle(uint8_t *to, const uint8_t *from, size_t bytes, size_t width);
void daf__byte_unshuffle(uint8_t *to, const uint8_t *from, size_t bytes, size_t width);

/* What the above are made of; vector: false keeps to plain C, for tests. n elements. */
void daf__split_bytes(uint8_t *planes, const uint8_t *from, size_t n, size_t width, bool vector);
void daf__join_bytes(uint8_t *to, const uint8_t *planes, size_t n, size_t width, bool vector);
/* n bytes, a multiple of 8, to 8 planes of n / 8 bytes each. */
void daf__split_bits(uint8_t *planes, const uint8_t *from, size_t n, bool vector);
void daf__join_bits(uint8_t *to, const uint8_t *planes, size_t n, bool vector);

#endif

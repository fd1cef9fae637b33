/* Indices of any of the eight integer types, a block at a time as numbers of 64 bits. */
#ifndef DAF_SRC_INDICES_H
#define DAF_SRC_INDICES_H

#include "daf/daf.h"

enum { DAF__INDEX_BLOCK = 1024 };

/* Copies n <= DAF__INDEX_BLOCK indices from element `first` on; negative ones become very large. */
void daf__indices_widen(uint64_t *to, daf_type type, const void *from, uint64_t first, size_t n);

/* Copies n numbers, which the type holds, to element `first` and on. */
void daf__indices_narrow(void *to, daf_type type, uint64_t first, const uint64_t *from, size_t n);

/* One index. */
uint64_t daf__index_at(daf_type type, const void *from, uint64_t i);

/* Puts from[k] at element places[k] of the type. */
void daf__indices_scatter(void *to, daf_type type, const uint64_t *places, const uint64_t *from, size_t n);

/* The largest number that an integer type holds; 0 for other types. */
uint64_t daf__index_max(daf_type type);

#endif

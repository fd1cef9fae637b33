/* Decoded chunks of one shard, as many as fit in a number of bytes; the one that was not used for the longest time makes
 * room. */
#ifndef DAF_SRC_CHUNK_CACHE_H
#define DAF_SRC_CHUNK_CACHE_H

#include "buf.h"

typedef struct daf__cached {
    const uint8_t *raw; /* NULL: the chunk is absent from its file */
    size_t bytes;
} daf__cached;

typedef struct daf__cache daf__cache;

int daf__cache_new(daf__cache **ret, uint64_t capacity_bytes, daf_error *err);
void daf__cache_free(daf__cache *c); /* NULL is fine */

/* Whether it is there. */
bool daf__cache_has(const daf__cache *c, uint64_t k);

/* Finds a chunk, and counts that as a use. What it points to is valid until the next put. */
bool daf__cache_get(daf__cache *c, uint64_t k, daf__cached *ret);

/* Keeps a copy (raw: NULL of an absent chunk). Does nothing when it is larger than the cache, or memory is short. */
void daf__cache_put(daf__cache *c, uint64_t k, const uint8_t *raw, size_t bytes);

/* Bytes held; never more than the capacity. */
uint64_t daf__cache_bytes(const daf__cache *c);

#endif

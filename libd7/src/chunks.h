/* Memory that grows in pieces of one size: what is there stays where it is, so that growing takes no more than what is added.
 * The first piece grows by doubling: thousands of datasets may have a few pages each. */
#ifndef D7_SRC_CHUNKS_H
#define D7_SRC_CHUNKS_H

#include "alloc.h"

enum { D7__CHUNK_BYTES = 1 << 14 };

/* All zero: empty. */
typedef struct d7__chunks {
    void **pieces; /* [n_pieces] */
    size_t n_pieces, cap_pieces;
    size_t first_bytes; /* of the first one, while it is the only one */
} d7__chunks;

/* Makes room for so many bytes. Returns 0; D7_ERR_NOMEM with what is there unchanged. */
int d7__chunks_reserve(const d7_alloc *a, d7__chunks *c, size_t bytes);

/* Gives back what is not needed for so many bytes. */
void d7__chunks_cut(const d7_alloc *a, d7__chunks *c, size_t bytes);

static inline void d7__chunks_free(const d7_alloc *a, d7__chunks *c) {
    d7__chunks_cut(a, c, 0);
}

/* Byte `at`, within room that was made. Elements of a size that divides D7__CHUNK_BYTES lie in one piece each. */
static inline void *d7__chunks_at(const d7__chunks *c, size_t at) {
    return (uint8_t *)c->pieces[at / D7__CHUNK_BYTES] + at % D7__CHUNK_BYTES;
}

static inline uint8_t *d7__chunks_u8(const d7__chunks *c, size_t i) {
    return d7__chunks_at(c, i);
}

static inline uint32_t *d7__chunks_u32(const d7__chunks *c, size_t i) {
    return d7__chunks_at(c, i * sizeof(uint32_t));
}

static inline uint64_t *d7__chunks_u64(const d7__chunks *c, size_t i) {
    return d7__chunks_at(c, i * sizeof(uint64_t));
}

/* Sorts numbers [from, from + n), in their place. Those in order already cost one look. */
void d7__chunks_sort_u64(d7__chunks *c, size_t from, size_t n);

#endif

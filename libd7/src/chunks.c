#include "chunks.h"

enum { FIRST_MIN = 64 };

/* The only piece, larger. */
static int grow_first(const d7_alloc *a, d7__chunks *c, size_t bytes) {
    size_t larger = c->first_bytes > FIRST_MIN ? c->first_bytes : FIRST_MIN;
    while (larger < bytes && larger < D7__CHUNK_BYTES)
        larger *= 2;
    void *piece = a->resize(a->ctx, c->n_pieces ? c->pieces[0] : NULL, larger);
    if (!piece)
        return D7_ERR_NOMEM;
    c->pieces[0] = piece;
    c->n_pieces = 1;
    c->first_bytes = larger;
    return 0;
}

int d7__chunks_reserve(const d7_alloc *a, d7__chunks *c, size_t bytes) {
    size_t n = bytes / D7__CHUNK_BYTES + (bytes % D7__CHUNK_BYTES != 0);
    if (n > c->cap_pieces && d7__grow(a, &c->pieces, &c->cap_pieces, n, sizeof *c->pieces) != 0)
        return D7_ERR_NOMEM;
    if (n && bytes > c->first_bytes && c->first_bytes < D7__CHUNK_BYTES && grow_first(a, c, bytes) != 0)
        return D7_ERR_NOMEM;
    while (c->n_pieces < n) {
        void *piece = a->resize(a->ctx, NULL, D7__CHUNK_BYTES);
        if (!piece)
            return D7_ERR_NOMEM;
        c->pieces[c->n_pieces++] = piece;
    }
    return 0;
}

void d7__chunks_cut(const d7_alloc *a, d7__chunks *c, size_t bytes) {
    size_t n = bytes / D7__CHUNK_BYTES + (bytes % D7__CHUNK_BYTES != 0);
    while (c->n_pieces > n)
        d7__release(a, c->pieces[--c->n_pieces]);
    if (n)
        return;
    d7__release(a, c->pieces);
    *c = (d7__chunks){0};
}

/* ---- sorting ---- */

/* A heap in place: what is `at` of the n numbers, and may be too small there, goes to where it belongs. */
static void sift(d7__chunks *c, size_t from, size_t n, size_t at) {
    uint64_t value = *d7__chunks_u64(c, from + at);
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && *d7__chunks_u64(c, from + child) < *d7__chunks_u64(c, from + child + 1))
            child++;
        if (*d7__chunks_u64(c, from + child) <= value)
            break;
        *d7__chunks_u64(c, from + at) = *d7__chunks_u64(c, from + child);
    }
    *d7__chunks_u64(c, from + at) = value;
}

static void sort_heap(d7__chunks *c, size_t from, size_t n) {
    for (size_t at = n / 2; at-- > 0;)
        sift(c, from, n, at);
    while (--n > 0) {
        uint64_t last = *d7__chunks_u64(c, from + n);
        *d7__chunks_u64(c, from + n) = *d7__chunks_u64(c, from);
        *d7__chunks_u64(c, from) = last;
        sift(c, from, n, 0);
    }
}

void d7__chunks_sort_u64(d7__chunks *c, size_t from, size_t n) {
    for (size_t i = 1; i < n; i++)
        if (*d7__chunks_u64(c, from + i - 1) > *d7__chunks_u64(c, from + i)) {
            sort_heap(c, from, n);
            return;
        }
}

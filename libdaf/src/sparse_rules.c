/* The rules of sparse data (specification section 4). */
#include <inttypes.h>
#include <stdio.h>

#include "content.h"
#include "indices.h"

/* Reads indices one by one. */
typedef struct index_reader {
    daf_type type;
    const void *data;
    uint64_t n, at; /* at: the next one */
    size_t n_block, next;
    uint64_t block[DAF__INDEX_BLOCK];
} index_reader;

static void start_reading(index_reader *r, const daf__content *c, daf__part part, uint64_t n) {
    r->type = c->index_type;
    r->data = c->data[part];
    r->n = n;
    r->at = 0;
    r->n_block = r->next = 0;
}

static uint64_t read_next(index_reader *r) {
    if (r->next == r->n_block) {
        uint64_t left = r->n - r->at;
        r->n_block = left < DAF__INDEX_BLOCK ? (size_t)left : DAF__INDEX_BLOCK;
        daf__indices_widen(r->block, r->type, r->data, r->at, r->n_block);
        r->at += r->n_block;
        r->next = 0;
    }
    return r->block[r->next++];
}

/* An index as it is stored: of the signed types it may be negative. */
static bool breach(daf__rule_breach *b, daf__part part, uint64_t element, uint64_t index, const char *why,
                   uint64_t other) {
    char shown[24];
    if (index > INT64_MAX)
        snprintf(shown, sizeof shown, "%" PRId64, (int64_t)index);
    else
        snprintf(shown, sizeof shown, "%" PRIu64, index);
    b->part = part;
    b->element = element;
    snprintf(b->text, sizeof b->text, "index %s %s %" PRIu64, shown, why, other);
    return false;
}

static bool pointers_obey(const daf__content *c, daf__rule_breach *b) {
    index_reader r;
    uint64_t before = 1, v = 0;
    start_reading(&r, c, DAF__POINTERS, c->columns + 1);
    for (uint64_t j = 0; j <= c->columns; j++) {
        v = read_next(&r);
        if (j == 0 && v != 1)
            return breach(b, DAF__POINTERS, j, v, "begins the columns, and not", 1);
        if (v < before)
            return breach(b, DAF__POINTERS, j, v, "is less than that of the column before,", before);
        if (v > c->nnz + 1)
            return breach(b, DAF__POINTERS, j, v, "is past the stored values + 1,", c->nnz + 1);
        before = v;
    }
    if (v != c->nnz + 1)
        return breach(b, DAF__POINTERS, c->columns, v, "ends the columns, and not the stored values + 1,",
                      c->nnz + 1);
    return true;
}

/* The indices of one column, up to stored value `end`. */
static bool column_obeys(index_reader *r, const daf__content *c, uint64_t k, uint64_t end,
                         daf__rule_breach *b) {
    uint64_t before = 0;
    for (; k < end; k++) {
        uint64_t v = read_next(r);
        if (v == 0 || v > c->rows)
            return breach(b, DAF__INDICES, k, v, "is not from 1 to the length of the axis,", c->rows);
        if (v <= before)
            return breach(b, DAF__INDICES, k, v, "does not come after the one before it,", before);
        before = v;
    }
    return true;
}

bool daf__content_obeys(const daf__content *c, daf__rule_breach *b) {
    index_reader r;
    uint64_t k = 0;
    if (c->kind == DAF__MATRIX && !pointers_obey(c, b))
        return false;
    start_reading(&r, c, DAF__INDICES, c->nnz);
    for (uint64_t j = 0; j < c->columns; j++) {
        uint64_t end = daf__content_start(c, j + 1);
        if (!column_obeys(&r, c, k, end, b))
            return false;
        k = end;
    }
    return true;
}

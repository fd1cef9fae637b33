/* Transposing content: dense values by blocks, sparse ones by counting. */
#include <stdlib.h>

#include "content.h"
#include "error.h"
#include "indices.h"
#include "transpose.h"
#include "type.h"

static int transpose_dense(daf__content *ret, const daf__content *c, const daf_executor *executor,
                           daf_error *err) {
    daf__content t = {.kind = c->kind, .type = c->type, .rows = c->columns, .columns = c->rows};
    size_t width = daf__value_bytes(c->type);
    t.owned[DAF__VALUES] = daf__transpose_alloc(width, c->rows, c->columns);
    t.data[DAF__VALUES] = t.owned[DAF__VALUES];
    if (!t.owned[DAF__VALUES])
        return daf__no_memory(err);
    daf__transpose(t.owned[DAF__VALUES], c->data[DAF__VALUES], width, c->rows, c->columns, c->rows, executor);
    *ret = t;
    return 0;
}

/* How many stored values each row has, as where its first one goes. */
static void count_rows(uint64_t *next, const daf__content *c) {
    uint64_t block[DAF__INDEX_BLOCK];
    for (uint64_t k = 0; k < c->nnz;) {
        size_t n = c->nnz - k < DAF__INDEX_BLOCK ? (size_t)(c->nnz - k) : DAF__INDEX_BLOCK;
        daf__indices_widen(block, c->index_type, c->data[DAF__INDICES], k, n);
        for (size_t i = 0; i < n; i++)
            next[block[i] - 1]++;
        k += n;
    }
    uint64_t sum = 0;
    for (uint64_t r = 0; r < c->rows; r++) {
        uint64_t n = next[r];
        next[r] = sum;
        sum += n;
    }
}

static void put_pointers(daf__content *t, const uint64_t *next) {
    for (uint64_t r = 0; r < t->columns; r++)
        daf__content_set_start(t, r, next[r]);
    daf__content_set_start(t, t->columns, t->nnz);
}

/* Columns come in their order, so that the indices of each row do. */
static void distribute(daf__content *t, uint64_t *next, const daf__content *c) {
    size_t width = daf__value_bytes(c->type);
    uint64_t places[DAF__INDEX_BLOCK], columns[DAF__INDEX_BLOCK];
    const uint8_t *values = c->data[DAF__VALUES];
    uint64_t column = 0, end = daf__content_start(c, 1);
    for (uint64_t k = 0; k < c->nnz;) {
        size_t n = c->nnz - k < DAF__INDEX_BLOCK ? (size_t)(c->nnz - k) : DAF__INDEX_BLOCK;
        daf__indices_widen(places, c->index_type, c->data[DAF__INDICES], k, n);
        for (size_t i = 0; i < n; i++) {
            while (k + i >= end)
                end = daf__content_start(c, ++column + 1);
            places[i] = next[places[i] - 1]++;
            columns[i] = column + 1;
        }
        daf__indices_scatter(t->owned[DAF__INDICES], t->index_type, places, columns, n);
        if (values)
            daf__values_scatter(t->owned[DAF__VALUES], values + (size_t)k * width, width, places, n);
        k += n;
    }
}

static int transpose_sparse(daf__content *ret, const daf__content *c, daf_error *err) {
    daf__content t = {.kind = c->kind,
                      .type = c->type,
                      .rows = c->columns,
                      .columns = c->rows,
                      .sparse = true,
                      .nnz = c->nnz};
    /* A narrow type that held this layout need not hold the other. */
    if (daf__choose_index(&t.index_type, &t, c->index_type, c->nnz, NULL) != 0)
        t.index_type = daf__smallest_index(t.kind, t.rows, t.columns, t.nnz);
    uint64_t *next = c->rows < SIZE_MAX / 16 ? calloc((size_t)c->rows + 1, sizeof *next) : NULL;
    int rc = next ? daf__content_own_sparse(&t, err) : daf__no_memory(err);
    if (rc == 0) {
        count_rows(next, c);
        put_pointers(&t, next);
        if (c->nnz)
            distribute(&t, next, c);
        if (!c->data[DAF__VALUES])
            t.data[DAF__VALUES] = NULL;
        *ret = t;
    } else {
        daf__content_free(&t);
    }
    free(next);
    return rc;
}

int daf__content_transpose(daf__content *ret, const daf__content *c, const daf_executor *executor,
                           daf_error *err) {
    return c->sparse ? transpose_sparse(ret, c, err) : transpose_dense(ret, c, executor, err);
}

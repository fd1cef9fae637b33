/* Content whose rows and columns stand in another order. */
#include <stdlib.h>
#include <string.h>

#include "content.h"
#include "error.h"
#include "indices.h"

static uint64_t old_of(const uint64_t *order, uint64_t i) {
    return order ? order[i] : i;
}

static void permute_column(uint8_t *to, const uint8_t *from, const daf__content *c, const uint64_t *rows) {
    size_t width = daf__value_bytes(c->type), n = (size_t)c->rows;
    if (rows)
        daf__values_gather(to, from, width, rows, n);
    else
        memcpy(to, from, n * width);
}

static int permute_dense(daf__content *ret, const daf__content *c, const uint64_t *rows,
                         const uint64_t *columns, daf_error *err) {
    size_t column_bytes = (size_t)c->rows * daf__value_bytes(c->type);
    int rc = daf__content_own(ret, DAF__VALUES, c->rows * c->columns, daf__value_bytes(c->type), err);
    if (rc)
        return rc;
    uint8_t *to = ret->owned[DAF__VALUES];
    const uint8_t *from = c->data[DAF__VALUES];
    for (uint64_t j = 0; j < c->columns && column_bytes; j++)
        permute_column(to + j * column_bytes, from + old_of(columns, j) * column_bytes, c, rows);
    return 0;
}

/* ---- sparse */

typedef struct stored {
    uint64_t row, place; /* the new row, and the number of the old stored value */
} stored;

static int compare_stored(const void *a, const void *b) {
    uint64_t x = ((const stored *)a)->row, y = ((const stored *)b)->row;
    return (x > y) - (x < y);
}

typedef struct sparse_permutation {
    const daf__content *from;
    daf__content *to;
    const uint64_t *new_rows; /* the new row of each old one; NULL: the same */
    stored *column;           /* of the fullest column */
    uint64_t k;               /* values placed so far */
} sparse_permutation;

static void place_value(sparse_permutation *p, const stored *s) {
    uint64_t index = s->row + 1;
    daf__indices_narrow(p->to->owned[DAF__INDICES], p->to->index_type, p->k, &index, 1);
    const uint8_t *values = p->from->data[DAF__VALUES];
    size_t width = daf__value_bytes(p->from->type);
    if (values)
        memcpy((uint8_t *)p->to->owned[DAF__VALUES] + p->k * width, values + s->place * width, width);
    p->k++;
}

static void place_column(sparse_permutation *p, uint64_t old_column) {
    uint64_t first = daf__content_start(p->from, old_column),
             end = daf__content_start(p->from, old_column + 1);
    for (uint64_t k = first; k < end; k++) {
        uint64_t row = daf__index_at(p->from->index_type, p->from->data[DAF__INDICES], k) - 1;
        p->column[k - first] = (stored){.row = p->new_rows ? p->new_rows[row] : row, .place = k};
    }
    if (p->new_rows && end > first)
        qsort(p->column, (size_t)(end - first), sizeof *p->column, compare_stored);
    for (uint64_t k = first; k < end; k++)
        place_value(p, &p->column[k - first]);
}

static uint64_t fullest_column(const daf__content *c) {
    uint64_t most = 0;
    for (uint64_t j = 0; j < c->columns; j++) {
        uint64_t n = daf__content_start(c, j + 1) - daf__content_start(c, j);
        most = n > most ? n : most;
    }
    return most;
}

/* new_rows[order[i]] = i */
static int invert(uint64_t **ret, const uint64_t *order, uint64_t n, daf_error *err) {
    uint64_t *inverse = calloc((size_t)n + 1, sizeof *inverse);
    if (!inverse)
        return daf__no_memory(err);
    for (uint64_t i = 0; i < n; i++)
        inverse[order[i]] = i;
    *ret = inverse;
    return 0;
}

static int permute_sparse(daf__content *ret, const daf__content *c, const uint64_t *rows,
                          const uint64_t *columns, daf_error *err) {
    sparse_permutation p = {.from = c, .to = ret};
    uint64_t *new_rows = NULL;
    int rc = daf__content_own_sparse(ret, err);
    if (rc == 0 && rows)
        rc = invert(&new_rows, rows, c->rows, err);
    if (rc == 0) {
        p.new_rows = new_rows;
        p.column = calloc((size_t)fullest_column(c) + 1, sizeof *p.column);
        rc = p.column ? 0 : daf__no_memory(err);
    }
    for (uint64_t j = 0; j < c->columns && rc == 0; j++) {
        daf__content_set_start(ret, j, p.k);
        place_column(&p, old_of(columns, j));
    }
    if (rc == 0)
        daf__content_set_start(ret, c->columns, p.k);
    if (!c->data[DAF__VALUES])
        ret->data[DAF__VALUES] = NULL; /* all are true */
    free(p.column);
    free(new_rows);
    return rc;
}

int daf__content_permute(daf__content *ret, const daf__content *c, const uint64_t *rows,
                         const uint64_t *columns, daf_error *err) {
    daf__content made = *c;
    memset(made.owned, 0, sizeof made.owned);
    memset(made.data, 0, sizeof made.data);
    int rc = c->sparse ? permute_sparse(&made, c, rows, columns, err)
                       : permute_dense(&made, c, rows, columns, err);
    if (rc)
        daf__content_free(&made);
    else
        *ret = made;
    return rc;
}

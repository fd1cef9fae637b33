/* Parts of content in memory. */
#include <stdlib.h>
#include <string.h>

#include "content.h"
#include "error.h"
#include "indices.h"
#include "mapped.h"
#include "property.h"
#include "type.h"

static int slice_dense(daf__content *ret, const daf__content *c, const daf_range *r, daf_error *err) {
    daf__content s = {.kind = c->kind, .type = c->type, .rows = r->n_rows, .columns = r->n_columns};
    size_t width = daf__value_bytes(c->type);
    int rc = daf__content_own(&s, DAF__VALUES, r->n_rows * r->n_columns, width, err);
    if (rc)
        return rc;
    for (uint64_t j = 0; j < r->n_columns && r->n_rows; j++) {
        uint64_t from = (r->first_column + j) * c->rows + r->first_row;
        memcpy((uint8_t *)s.owned[DAF__VALUES] + (size_t)(j * r->n_rows) * width,
               (const uint8_t *)c->data[DAF__VALUES] + (size_t)from * width, (size_t)r->n_rows * width);
    }
    *ret = s;
    return 0;
}

/* The first stored value from `start` to `end` (one column's) whose index is more than `index`; else end. */
static uint64_t find_after(const daf__content *c, uint64_t start, uint64_t end, uint64_t index) {
    while (start < end) {
        uint64_t middle = start + (end - start) / 2;
        if (daf__index_at(c->index_type, c->data[DAF__INDICES], middle) > index)
            end = middle;
        else
            start = middle + 1;
    }
    return start;
}

/* The stored values of a column that the range holds. */
static void find_span(const daf__content *c, const daf_range *r, uint64_t column, uint64_t *start,
                      uint64_t *end) {
    uint64_t first = daf__content_start(c, column), last = daf__content_start(c, column + 1);
    *start = find_after(c, first, last, r->first_row);
    *end = find_after(c, *start, last, r->first_row + r->n_rows);
}

static void copy_span(daf__content *s, const daf__content *c, uint64_t to, uint64_t start, uint64_t end,
                      uint64_t first_row) {
    size_t width = daf__value_bytes(c->type);
    uint64_t block[DAF__INDEX_BLOCK];
    if (c->data[DAF__VALUES] && end > start)
        memcpy((uint8_t *)s->owned[DAF__VALUES] + (size_t)to * width,
               (const uint8_t *)c->data[DAF__VALUES] + (size_t)start * width, (size_t)(end - start) * width);
    while (start < end) {
        size_t n = end - start < DAF__INDEX_BLOCK ? (size_t)(end - start) : DAF__INDEX_BLOCK;
        daf__indices_widen(block, c->index_type, c->data[DAF__INDICES], start, n);
        for (size_t k = 0; k < n; k++)
            block[k] -= first_row;
        daf__indices_narrow(s->owned[DAF__INDICES], s->index_type, to, block, n);
        start += n;
        to += n;
    }
}

static int slice_sparse(daf__content *ret, const daf__content *c, const daf_range *r, daf_error *err) {
    daf__content s = {.kind = c->kind,
                      .type = c->type,
                      .rows = r->n_rows,
                      .columns = r->n_columns,
                      .sparse = true,
                      .index_type = c->index_type};
    uint64_t start, end, k = 0;
    for (uint64_t j = 0; j < r->n_columns; j++) {
        find_span(c, r, r->first_column + j, &start, &end);
        s.nnz += end - start;
    }
    int rc = daf__content_own_sparse(&s, err);
    if (rc) {
        daf__content_free(&s);
        return rc;
    }
    for (uint64_t j = 0; j < r->n_columns; j++) {
        find_span(c, r, r->first_column + j, &start, &end);
        daf__content_set_start(&s, j, k);
        copy_span(&s, c, k, start, end, r->first_row);
        k += end - start;
    }
    daf__content_set_start(&s, r->n_columns, k);
    if (!c->data[DAF__VALUES])
        s.data[DAF__VALUES] = NULL;
    *ret = s;
    return 0;
}

int daf__content_slice(daf__content *ret, const daf__content *c, const daf_range *range, daf_error *err) {
    int rc = daf__range_check(range, c->rows, c->columns, err);
    if (rc)
        return rc;
    return c->sparse ? slice_sparse(ret, c, range, err) : slice_dense(ret, c, range, err);
}

int daf__content_part_to_array(daf_array **ret, const daf__content *c, const daf_range *range,
                               daf_error *err) {
    daf__content slice, dense;
    int rc = daf__content_slice(&slice, c, range, err);
    if (rc || !slice.sparse)
        return rc ? rc : daf__content_to_array(ret, &slice, err);
    rc = daf__content_to_dense(&dense, &slice, err);
    if (rc == 0)
        rc = daf__content_to_array(ret, &dense, err);
    daf__content_free(&slice);
    return rc;
}

static int slice_view(daf_array **ret, const daf_array *a, const daf_range *r, daf_error *err) {
    daf__content s = {.kind = DAF__MATRIX, .type = a->type, .rows = r->n_rows, .columns = r->n_columns};
    size_t width = daf__value_bytes(a->type);
    daf__pieces columns = {
        .bytes = (size_t)r->n_rows * width, .stride = (size_t)a->rows * width, .n = r->n_columns};
    int rc = daf__range_check(r, a->rows, a->columns, err);
    if (rc == 0)
        rc = daf__content_own(&s, DAF__VALUES, r->n_rows * r->n_columns, width, err);
    if (rc)
        return rc;
    columns.from = (const uint8_t *)a->values + (size_t)(r->first_column * a->rows + r->first_row) * width;
    rc = daf__mapped_copy(s.owned[DAF__VALUES], &columns, err);
    if (rc == 0)
        return daf__content_to_array(ret, &s, err);
    daf__content_free(&s);
    return rc;
}

int daf_array_slice(daf_array **ret, const daf_array *a, const daf_range *range, daf_error *err) {
    if (daf_array_is_mapped(a))
        return slice_view(ret, a, range, err);
    daf__content c = {.kind = DAF__MATRIX, .type = a->type, .rows = a->rows, .columns = a->columns};
    c.data[DAF__VALUES] = a->type == DAF_STRING ? (const void *)a->texts.next : a->values;
    return daf__content_part_to_array(ret, &c, range, err);
}

/* Dense content made sparse, and sparse content made dense. */
#include <stdlib.h>
#include <string.h>

#include "content.h"
#include "error.h"
#include "indices.h"
#include "type.h"

static size_t block_of(uint64_t left) {
    return left < DAF__INDEX_BLOCK ? (size_t)left : DAF__INDEX_BLOCK;
}

/* ---- dense to sparse */

/* The places, from 0, of the values among the n <= DAF__INDEX_BLOCK from `first` on that are not zero. By bits, so that
 * -0.0 is one. */
static size_t find_values(uint64_t *places, daf_type type, const void *values, uint64_t first, size_t n) {
    size_t found = 0;
#define FIND(bits)                                                                                           \
    case (bits) / 8: {                                                                                       \
        const uint##bits##_t *v = (const uint##bits##_t *)values + first;                                    \
        for (size_t k = 0; k < n; k++) {                                                                     \
            places[found] = k;                                                                               \
            found += v[k] != 0;                                                                              \
        }                                                                                                    \
        break;                                                                                               \
    }
    switch (daf_type_bytes(type)) {
        FIND(8)
        FIND(16)
        FIND(32)
        FIND(64)
    default: {
        const char *const *v = (const char *const *)values + first;
        for (size_t k = 0; k < n; k++) {
            places[found] = k;
            found += v[k][0] != 0;
        }
    }
    }
    return found;
}

static uint64_t count_values(const daf__content *dense) {
    uint64_t places[DAF__INDEX_BLOCK], nnz = 0, n = dense->rows * dense->columns;
    for (uint64_t at = 0; at < n; at += DAF__INDEX_BLOCK)
        nnz += find_values(places, dense->type, dense->data[DAF__VALUES], at, block_of(n - at));
    return nnz;
}

static void fill_sparse(daf__content *c, const daf__content *dense) {
    size_t width = daf__value_bytes(c->type);
    uint64_t places[DAF__INDEX_BLOCK], indices[DAF__INDEX_BLOCK], k = 0;
    for (uint64_t j = 0; j < c->columns; j++) {
        daf__content_set_start(c, j, k);
        for (uint64_t row = 0; row < c->rows; row += DAF__INDEX_BLOCK) {
            uint64_t first = j * c->rows + row;
            size_t n = find_values(places, c->type, dense->data[DAF__VALUES], first, block_of(c->rows - row));
            for (size_t i = 0; i < n; i++)
                indices[i] = row + places[i] + 1;
            daf__indices_narrow(c->owned[DAF__INDICES], c->index_type, k, indices, n);
            daf__values_gather((uint8_t *)c->owned[DAF__VALUES] + (size_t)k * width,
                               (const uint8_t *)dense->data[DAF__VALUES] + (size_t)first * width, width,
                               places, n);
            k += n;
        }
    }
    daf__content_set_start(c, c->columns, k);
}

int daf__content_to_sparse(daf__content *ret, const daf__content *dense, daf_type index_type,
                           daf_error *err) {
    daf__content c = {.kind = dense->kind,
                      .type = dense->type,
                      .rows = dense->rows,
                      .columns = dense->columns,
                      .sparse = true,
                      .nnz = count_values(dense)};
    int rc = daf__choose_index(&c.index_type, dense, index_type, c.nnz, err);
    if (rc == 0)
        rc = daf__content_own_sparse(&c, err);
    if (rc) {
        daf__content_free(&c);
        return rc;
    }
    fill_sparse(&c, dense);
    *ret = c;
    return 0;
}

bool daf__content_is_smaller_sparse(const daf__content *dense) {
    uint64_t n = dense->rows * dense->columns, nnz = count_values(dense), text_bytes = 0;
    uint64_t width = daf_type_bytes(dense->type);
    if (dense->type == DAF_STRING) {
        const char *const *texts = dense->data[DAF__VALUES];
        for (uint64_t i = 0; i < n; i++)
            text_bytes += strlen(texts[i]);
        width = 1; /* the line end */
    }
    uint64_t index = daf_type_bytes(daf__smallest_index(dense->kind, dense->rows, dense->columns, nnz));
    uint64_t pointers = dense->kind == DAF__MATRIX ? (dense->columns + 1) * index : 0;
    uint64_t as_sparse = text_bytes + nnz * (width + index) + pointers;
    uint64_t as_dense = text_bytes + n * width;
    return as_sparse <= as_dense / 4 * 3 + as_dense % 4 * 3 / 4;
}

/* ---- sparse to dense */

static void put_values(daf__content *dense, const daf__content *sparse, uint64_t first,
                       const uint64_t *places, size_t n) {
    size_t width = daf__value_bytes(sparse->type);
    const uint8_t *values = sparse->data[DAF__VALUES];
    if (values)
        daf__values_scatter(dense->owned[DAF__VALUES], values + (size_t)first * width, width, places, n);
    for (size_t k = 0; !values && k < n; k++)
        ((uint8_t *)dense->owned[DAF__VALUES])[places[k]] = 1;
}

static void fill_dense(daf__content *c, const daf__content *sparse) {
    uint64_t places[DAF__INDEX_BLOCK], k = 0;
    for (uint64_t j = 0; j < c->columns; j++) {
        uint64_t end = daf__content_start(sparse, j + 1);
        while (k < end) {
            size_t n = block_of(end - k);
            daf__indices_widen(places, sparse->index_type, sparse->data[DAF__INDICES], k, n);
            for (size_t i = 0; i < n; i++)
                places[i] += j * c->rows - 1;
            put_values(c, sparse, k, places, n);
            k += n;
        }
    }
}

int daf__content_to_dense(daf__content *ret, const daf__content *sparse, daf_error *err) {
    daf__content c = {
        .kind = sparse->kind, .type = sparse->type, .rows = sparse->rows, .columns = sparse->columns};
    uint64_t n;
    if (__builtin_mul_overflow(c.rows, c.columns, &n) || n > (uint64_t)SIZE_MAX / DAF__MAX_TYPE_BYTES / 2)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0,
                         "%llu x %llu elements are too many to be held as dense values",
                         (unsigned long long)c.rows, (unsigned long long)c.columns);
    int rc = daf__content_own(&c, DAF__VALUES, n, daf__value_bytes(c.type), err);
    if (rc)
        return rc;
    const char **texts = c.owned[DAF__VALUES];
    for (uint64_t i = 0; c.type == DAF_STRING && i < n; i++)
        texts[i] = "";
    fill_dense(&c, sparse);
    *ret = c;
    return 0;
}

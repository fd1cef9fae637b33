/* Content: what it owns, its indices, moving its values. */
#include "content.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "indices.h"
#include "type.h"

enum { TEXT_SIZE = sizeof(const char *) };

void daf__content_free(daf__content *c) {
    for (unsigned i = 0; i < DAF__N_PARTS; i++)
        free(c->owned[i]);
    *c = (daf__content){0};
}

size_t daf__value_bytes(daf_type type) {
    return type == DAF_STRING ? TEXT_SIZE : daf_type_bytes(type);
}

int daf__content_own(daf__content *c, daf__part part, uint64_t n, size_t bytes, daf_error *err) {
    c->owned[part] = n < SIZE_MAX / 16 ? calloc(n ? (size_t)n : 1, bytes) : NULL;
    c->data[part] = c->owned[part];
    return c->owned[part] ? 0 : daf__no_memory(err);
}

/* ---- index types */

static uint64_t largest_index(daf__kind kind, uint64_t rows, uint64_t columns, uint64_t nnz) {
    uint64_t largest = rows;
    if (kind == DAF__MATRIX && columns > largest)
        largest = columns;
    if (kind == DAF__MATRIX && nnz + 1 > largest)
        largest = nnz + 1;
    return largest;
}

daf_type daf__smallest_index(daf__kind kind, uint64_t rows, uint64_t columns, uint64_t nnz) {
    uint64_t largest = largest_index(kind, rows, columns, nnz);
    return largest <= UINT16_MAX ? DAF_UINT16 : largest <= UINT32_MAX ? DAF_UINT32 : DAF_UINT64;
}

/* The index type to use: `type`, or the smallest. */
int daf__choose_index(daf_type *ret, const daf__content *c, daf_type type, uint64_t nnz, daf_error *err) {
    if (type == DAF_BOOL)
        type = daf__smallest_index(c->kind, c->rows, c->columns, nnz);
    if (largest_index(c->kind, c->rows, c->columns, nnz) > daf__index_max(type))
        return daf__fail(err, DAF_ERR_VALUE, 0, 0,
                         "indices of type %s do not hold %" PRIu64 " x %" PRIu64 " with %" PRIu64
                         " stored values",
                         daf_type_name(type), c->rows, c->columns, nnz);
    *ret = type;
    return 0;
}

static int convert_indices(daf__content *c, daf__part part, daf_type from, uint64_t n, daf_error *err) {
    const void *old = c->data[part];
    uint64_t block[DAF__INDEX_BLOCK];
    int rc = daf__content_own(c, part, n, daf_type_bytes(c->index_type), err);
    for (uint64_t at = 0; at < n && rc == 0; at += DAF__INDEX_BLOCK) {
        size_t count = n - at < DAF__INDEX_BLOCK ? (size_t)(n - at) : DAF__INDEX_BLOCK;
        daf__indices_widen(block, from, old, at, count);
        daf__indices_narrow(c->owned[part], c->index_type, at, block, count);
    }
    return rc;
}

int daf__content_with_index(daf__content *ret, const daf__content *sparse, daf_type index_type,
                            daf_error *err) {
    daf__content c = *sparse;
    memset(c.owned, 0, sizeof c.owned);
    int rc = daf__choose_index(&c.index_type, sparse, index_type, sparse->nnz, err);
    if (rc == 0 && c.index_type != sparse->index_type) {
        rc = convert_indices(&c, DAF__INDICES, sparse->index_type, c.nnz, err);
        if (rc == 0 && c.kind == DAF__MATRIX)
            rc = convert_indices(&c, DAF__POINTERS, sparse->index_type, c.columns + 1, err);
    }
    if (rc)
        daf__content_free(&c);
    else
        *ret = c;
    return rc;
}

/* ---- moving values */

void daf__values_gather(void *to, const void *from, size_t width, const uint64_t *places, size_t n) {
#define GATHER(bits)                                                                                         \
    case (bits) / 8:                                                                                         \
        for (size_t k = 0; k < n; k++)                                                                       \
            ((uint##bits##_t *)to)[k] = ((const uint##bits##_t *)from)[places[k]];                           \
        break
    switch (width) {
        GATHER(8);
        GATHER(16);
        GATHER(32);
        GATHER(64);
    default:
        break;
    }
}

void daf__values_scatter(void *to, const void *from, size_t width, const uint64_t *places, size_t n) {
#define SCATTER(bits)                                                                                        \
    case (bits) / 8:                                                                                         \
        for (size_t k = 0; k < n; k++)                                                                       \
            ((uint##bits##_t *)to)[places[k]] = ((const uint##bits##_t *)from)[k];                           \
        break
    switch (width) {
        SCATTER(8);
        SCATTER(16);
        SCATTER(32);
        SCATTER(64);
    default:
        break;
    }
}

uint64_t daf__content_start(const daf__content *c, uint64_t column) {
    if (c->kind != DAF__MATRIX)
        return column ? c->nnz : 0;
    return daf__index_at(c->index_type, c->data[DAF__POINTERS], column) - 1;
}

void daf__content_set_start(daf__content *c, uint64_t column, uint64_t k) {
    uint64_t pointer = k + 1;
    if (c->kind == DAF__MATRIX)
        daf__indices_narrow(c->owned[DAF__POINTERS], c->index_type, column, &pointer, 1);
}

int daf__content_own_sparse(daf__content *c, daf_error *err) {
    int rc = daf__content_own(c, DAF__INDICES, c->nnz, daf_type_bytes(c->index_type), err);
    if (rc == 0)
        rc = daf__content_own(c, DAF__VALUES, c->nnz, daf__value_bytes(c->type), err);
    if (rc == 0 && c->kind == DAF__MATRIX)
        rc = daf__content_own(c, DAF__POINTERS, c->columns + 1, daf_type_bytes(c->index_type), err);
    return rc;
}

int daf__content_to_array(daf_array **ret, daf__content *c, daf_error *err) {
    daf_array *a = daf__array_new(c->type, c->rows, c->columns);
    int rc = a ? 0 : daf__no_memory(err);
    if (rc == 0 && c->type == DAF_STRING) {
        rc = daf__texts_copy(&a->texts, c->data[DAF__VALUES], c->rows * c->columns, err);
    } else if (rc == 0) {
        a->owned = c->owned[DAF__VALUES];
        a->values = a->owned;
        c->owned[DAF__VALUES] = NULL;
    }
    daf__content_free(c);
    if (rc)
        daf_array_free(a);
    else
        *ret = a;
    return rc;
}

#include <inttypes.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "component.h"
#include "error.h"
#include "shard.h"

int daf__component_count(const daf__file *f, daf_type type, uint64_t *ret, daf_error *err) {
    size_t width = daf_type_bytes(type);
    if (f->size % width)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, f->size, "%s: %" PRIu64 " bytes are no whole %s values",
                         f->where, f->size, daf_type_name(type));
    *ret = f->size / width;
    return 0;
}

int daf__component_check_size(const daf__file *f, daf_type type, uint64_t n, daf_error *err) {
    uint64_t wanted = n * daf_type_bytes(type);
    if (f->size == wanted)
        return 0;
    return daf__fail(err, f->size < wanted ? DAF_ERR_TRUNCATED : DAF_ERR_CORRUPT, 0,
                     f->size < wanted ? f->size : wanted,
                     "%s: %" PRIu64 " bytes are %s than %" PRIu64 " %s values", f->where, f->size,
                     f->size < wanted ? "fewer" : "more", n, daf_type_name(type));
}

static int check_lines(const daf__file *f, uint64_t n, uint64_t wanted, daf_error *err) {
    if (n == wanted)
        return 0;
    return daf__fail(err, n < wanted ? DAF_ERR_TRUNCATED : DAF_ERR_CORRUPT, 0, f->size,
                     "%s: too %s lines: %" PRIu64 ", but %" PRIu64 " values are needed", f->where,
                     n < wanted ? "few" : "many", n, wanted);
}

static void swap_values(daf_array *a) {
    size_t width = daf_type_bytes(a->type);
    for (uint64_t i = 0; i < daf_array_count(a); i++) {
        uint8_t value[DAF__MAX_TYPE_BYTES], *at = (uint8_t *)a->owned + i * width;
        bytes_copy_le(value, at, 1, width);
        memcpy(at, value, width);
    }
}

static int own_values(daf_array *a, daf_error *err) {
    uint64_t bytes = daf_array_count(a) * daf_type_bytes(a->type);
    a->owned = calloc(1, bytes ? (size_t)bytes : 1); /* absent chunks are not touched */
    a->values = a->owned;
    return a->owned ? 0 : daf__no_memory(err);
}

/* ---- flat */

static int copy_flat(daf__file *f, daf_array *a, daf_error *err) {
    int rc = own_values(a, err);
    if (rc == 0 && f->size)
        rc = f->ops->read(f, a->owned, (size_t)f->size, 0, err);
    if (rc == 0)
        rc = daf__file_check_crc(f, daf__file_add_crc(f, 0, a->owned, (size_t)f->size), err);
    if (rc == 0 && !BYTES_HOST_IS_LITTLE)
        swap_values(a);
    return rc;
}

static int load_flat(daf__file *f, daf_array *a, bool view, daf_error *err) {
    int rc = daf__component_check_size(f, a->type, daf_array_count(a), err);
    if (rc)
        return rc;
    if (f->size == 0 || !view || !BYTES_HOST_IS_LITTLE)
        return copy_flat(f, a, err);
    daf_error details;
    rc = f->ops->map(f, &a->map, &details);
    if (rc == DAF_ERR_UNSUPPORTED)
        return copy_flat(f, a, err);
    a->values = a->map.data;
    return rc ? daf__pass(err, &details) : 0;
}

static int load_lines(daf__file *f, daf_array *a, daf_error *err) {
    daf__buf content = {0};
    int rc = daf__file_read_whole(f, &content, UINT64_MAX, err);
    if (rc)
        return rc;
    /* Counted first: very many empty ones fit into a small file. */
    rc = check_lines(f, daf__texts_count(&content), daf_array_count(a), err);
    if (rc == 0)
        return daf__texts_split(&a->texts, &content, f->where, err);
    daf__buf_free(&content);
    return rc;
}

/* ---- packed */

int daf__component_open_shard(daf__shard *ret, const daf *d, daf__file *f, const daf__extent *extent,
                              const daf__component *c, daf_error *err) {
    daf__grid grid;
    const daf_executor *executor = d->has_executor ? &d->executor : NULL;
    int rc = daf__grid_make(&grid, extent->kind, extent->rows, extent->columns, &c->packing, f->where, err);
    return rc ? rc : daf__shard_open(ret, f, &grid, c->type, &c->packing, executor, err);
}

/* All of it, or what lies in the box, whose shape the array has. */
static int load_shard(const daf *d, daf__file *f, daf_array *a, const daf__extent *extent,
                      const daf__component *c, const daf__span *box, daf_error *err) {
    daf__shard shard;
    int rc = daf__component_open_shard(&shard, d, f, extent, c, err);
    if (rc)
        return rc;
    if (c->type == DAF_STRING) {
        rc = daf__shard_read_texts(&shard, box, &a->texts, err);
    } else {
        rc = own_values(a, err);
        if (rc == 0)
            rc = daf__shard_read_values(&shard, box, a->owned, err);
    }
    daf__shard_close(&shard);
    return rc;
}

int daf__component_load(daf_array **ret, const daf *d, daf__file *f, const daf__extent *extent,
                        const daf__component *c, bool view, daf_error *err) {
    daf_array *a = daf__array_new(c->type, extent->rows, extent->columns);
    int rc = 0;
    if (!a)
        return daf__no_memory(err);
    bool empty = extent->rows == 0 || extent->columns == 0; /* always flat */
    if (c->packed && !empty)
        rc = load_shard(d, f, a, extent, c, NULL, err);
    else if (c->type == DAF_STRING)
        rc = load_lines(f, a, err);
    else
        rc = load_flat(f, a, view && !d->settings.copies, err);
    if (rc)
        daf_array_free(a);
    else
        *ret = a;
    return rc;
}

/* ---- ranges */

static int read_flat_range(daf__file *f, daf_array *a, uint64_t rows, const daf_range *r, daf_error *err) {
    size_t width = daf_type_bytes(a->type);
    /* Whole columns lie in one piece. */
    uint64_t piece = r->n_rows == rows ? r->n_rows * r->n_columns : r->n_rows;
    uint64_t n_pieces = r->n_rows == rows ? 1 : r->n_columns;
    int rc = own_values(a, err);
    for (uint64_t i = 0; i < n_pieces && piece && rc == 0; i++) {
        uint64_t from = (r->first_column + i) * rows + r->first_row;
        rc = f->ops->read(f, (uint8_t *)a->owned + (size_t)(i * piece) * width, (size_t)piece * width,
                          from * width, err);
    }
    if (rc == 0 && !BYTES_HOST_IS_LITTLE)
        swap_values(a);
    return rc;
}

static int slice_all(daf_array **ret, const daf *d, daf__file *f, const daf__extent *extent,
                     const daf__component *c, const daf_range *range, daf_error *err) {
    daf_array *all;
    int rc = daf__component_load(&all, d, f, extent, c, false, err);
    if (rc)
        return rc;
    rc = daf_array_slice(ret, all, range, err);
    daf_array_free(all);
    return rc;
}

int daf__component_load_range(daf_array **ret, const daf *d, daf__file *f, const daf__extent *extent,
                              const daf__component *c, const daf_range *range, daf_error *err) {
    if (c->type == DAF_STRING && !(c->packed && range->n_rows && range->n_columns))
        return slice_all(ret, d, f, extent, c, range, err);
    daf_array *a = daf__array_new(c->type, range->n_rows, range->n_columns);
    if (!a)
        return daf__no_memory(err);
    daf__span box = {range->first_row, range->first_column, range->n_rows, range->n_columns};
    int rc = 0;
    bool empty = range->n_rows == 0 || range->n_columns == 0;
    if (!c->packed)
        rc = daf__component_check_size(f, c->type, extent->rows * extent->columns, err);
    if (rc == 0 && empty)
        rc = own_values(a, err);
    else if (rc == 0 && c->packed)
        rc = load_shard(d, f, a, extent, c, &box, err);
    else if (rc == 0)
        rc = read_flat_range(f, a, extent->rows, range, err);
    if (rc)
        daf_array_free(a);
    else
        *ret = a;
    return rc;
}

/* ---- looking without decoding */

static int examine_shard(const daf *d, daf__file *f, const daf__extent *extent, const daf__component *c,
                         uint64_t *raw_bytes, uint64_t *n_stored, daf_error *err) {
    daf__shard shard;
    uint64_t text_bytes;
    int rc = daf__component_open_shard(&shard, d, f, extent, c, err);
    if (rc)
        return rc;
    rc = daf__shard_survey(&shard, n_stored, &text_bytes, err);
    if (rc == 0 && c->type == DAF_STRING)
        *raw_bytes = text_bytes + extent->rows * extent->columns;
    daf__shard_close(&shard);
    return rc;
}

int daf__component_examine(const daf *d, daf__file *f, const daf__extent *extent, const daf__component *c,
                           uint64_t *raw_bytes, uint64_t *n_stored, daf_error *err) {
    uint64_t n = extent->rows * extent->columns, lines;
    if (c->packed && n)
        return examine_shard(d, f, extent, c, raw_bytes, n_stored, err);
    if (c->type != DAF_STRING)
        return daf__component_check_size(f, c->type, n, err);
    int rc = daf__count_lines(f, &lines, err);
    if (rc == 0)
        rc = check_lines(f, lines, n, err);
    if (rc == 0)
        *raw_bytes = f->size;
    return rc;
}

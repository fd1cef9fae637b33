#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "error.h"
#include "shard_batch.h"
#include "store_dir.h"
#include "zarr_export.h"

/* ---- chunks that are written */

static int append32(daf__out *out, uint32_t n, daf_error *err) {
    uint8_t bytes[4];
    bytes_store32(bytes, n);
    return daf__out_append(out, bytes, sizeof bytes, err);
}

int daf__zarr_append_text_count(daf__out *out, uint64_t n, const char *where, daf_error *err) {
    if (n > UINT32_MAX)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0,
                         "%s: %" PRIu64 " texts are more than a chunk of a Zarr array can hold", where, n);
    return append32(out, (uint32_t)n, err);
}

int daf__zarr_append_text(daf__out *out, const char *text, size_t bytes, const char *where, daf_error *err) {
    if (bytes > UINT32_MAX)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0, "%s: a text of %zu bytes is too long for a Zarr array",
                         where, bytes);
    int rc = append32(out, (uint32_t)bytes, err);
    return rc ? rc : daf__out_append(out, text, bytes, err);
}

static int append_texts(daf__out *out, const char *const *texts, uint64_t n, const char *where,
                        daf_error *err) {
    int rc = daf__zarr_append_text_count(out, n, where, err);
    for (uint64_t i = 0; i < n && rc == 0; i++)
        rc = daf__zarr_append_text(out, texts[i], strlen(texts[i]), where, err);
    return rc;
}

int daf__zarr_put_texts(daf__zarr_exporter *x, const char *path, const daf__zarr_array *a,
                        const char *const *texts, daf_error *err) {
    daf__out *out;
    int rc = x->to->ops->create(x->to, &out, err);
    if (rc)
        return rc;
    rc = append_texts(out, texts, a->rows * a->columns, path, err);
    x->report.written_bytes += out->size;
    return daf__zarr_put_array(x, path, a, out, rc, err);
}

/* Decodes the part and writes it in the form that `a` tells. */
static int write_part(daf__zarr_exporter *x, const char *path, const daf__zarr_array *a, daf__file *f,
                      const daf__component *c, daf_error *err) {
    daf__extent extent = {a->n_dimensions == 2 ? DAF__MATRIX : DAF__VECTOR, a->rows, a->columns};
    daf__component target = *c;
    daf_array *values;
    daf__out *out;
    int rc = daf__component_load(&values, x->from, f, &extent, c, false, err);
    if (rc)
        return rc;
    target.packing.indexed = true;
    rc = x->to->ops->create(x->to, &out, err);
    if (rc == 0) {
        const void *data = a->type == DAF_STRING ? (const void *)values->texts.next : values->values;
        rc = daf__component_write(out, &extent, &target, data, x->from, path, err);
        x->report.written_bytes += out->size;
        rc = daf__zarr_put_array(x, path, a, out, rc, err);
    }
    daf_array_free(values);
    return rc;
}

/* ---- chunks that are the payload as it is */

/* A new out that is the file, or has its bytes. */
static int link_file(daf__zarr_exporter *x, daf__file *f, const char *key, daf__out **ret, daf_error *err) {
    daf_error details;
    int rc = daf__fail(&details, DAF_ERR_UNSUPPORTED, 0, 0, "%s: lies in no directory and cannot be linked",
                       f->where);
    if (x->from->store->ops == &daf__dir_ops)
        rc = daf__dir_link(x->to, ret, x->from->store, key, &f->stamp, &details);
    if (rc == 0) {
        x->report.n_linked++;
        x->report.linked_bytes += f->size;
        return 0;
    }
    if (rc != DAF_ERR_UNSUPPORTED || x->strict)
        return daf__pass(err, &details);
    daf__out *out;
    rc = x->to->ops->create(x->to, &out, err);
    if (rc)
        return rc;
    rc = daf__file_copy(f, out, err);
    x->report.n_copied++;
    x->report.copied_bytes += f->size;
    if (rc)
        daf__out_discard(out);
    else
        *ret = out;
    return rc;
}

static int put_file(daf__zarr_exporter *x, const char *path, const daf__zarr_array *a, daf__file *f,
                    const char *key, daf_error *err) {
    daf__out *out;
    int rc = link_file(x, f, key, &out, err);
    return rc ? rc : daf__zarr_put_array(x, path, a, out, 0, err);
}

/* ---- flat */

static bool are_bools(const uint8_t *bytes, size_t n) {
    uint8_t all = 0;
    for (size_t i = 0; i < n; i++)
        all |= bytes[i];
    return all <= 1;
}

/* Other readers take a byte of a bool array as it is. */
static int look_for_odd_bools(daf__file *f, bool *odd, daf_error *err) {
    uint8_t bytes[4096];
    int rc = 0;
    for (uint64_t at = 0; at < f->size && rc == 0 && !*odd;) {
        size_t n = f->size - at < sizeof bytes ? (size_t)(f->size - at) : sizeof bytes;
        rc = f->ops->read(f, bytes, n, at, err);
        *odd = rc == 0 && !are_bools(bytes, n);
        at += n;
    }
    return rc;
}

static int put_flat(daf__zarr_exporter *x, const char *path, const daf__zarr_array *a, daf__file *f,
                    const char *key, const daf__component *c, daf_error *err) {
    bool odd = false;
    uint64_t wanted = a->rows * a->columns * daf_type_bytes(a->type);
    if (f->size != wanted)
        return daf__fail(err, f->size < wanted ? DAF_ERR_TRUNCATED : DAF_ERR_CORRUPT, 0, 0,
                         "%s: is of %" PRIu64 " bytes, but must be of %" PRIu64, f->where, f->size, wanted);
    int rc = a->type == DAF_BOOL ? look_for_odd_bools(f, &odd, err) : 0;
    if (rc)
        return rc;
    return odd ? write_part(x, path, a, f, c, err) : put_file(x, path, a, f, key, err);
}

/* ---- packed */

static int note_odd_bools(void *context, uint64_t k, const uint8_t *raw, size_t bytes, daf_error *err) {
    (void)k;
    (void)err;
    bool *odd = context;
    *odd = *odd || (raw && !are_bools(raw, bytes));
    return 0;
}

static int look_for_odd_packed_bools(daf__shard *s, bool *odd, daf_error *err) {
    daf__span all = {0, 0, s->grid.rows, s->grid.columns};
    daf__sink sink = {.context = odd, .take = note_odd_bools};
    daf__chunk_list list;
    int rc = daf__chunks_of(&s->grid, &all, &list, err);
    if (rc)
        return rc;
    rc = daf__decode_chunks(s, &list, NULL, &sink, err);
    free(list.chunks);
    return rc;
}

/* Whether the shard serves as a Zarr chunk as it is: with a leading index that is right, and just the end records. */
static int is_zarr_shard(daf__zarr_exporter *x, const daf__zarr_array *a, daf__file *f,
                         const daf__component *c, bool *ret, daf_error *err) {
    daf__grid grid;
    daf__shard s;
    const daf_executor *executor = x->from->has_executor ? &x->from->executor : NULL;
    daf__kind kind = a->n_dimensions == 2 ? DAF__MATRIX : DAF__VECTOR;
    int rc = daf__grid_make(&grid, kind, a->rows, a->columns, &c->packing, f->where, err);
    if (rc == 0)
        rc = daf__shard_open(&s, f, &grid, c->type, &c->packing, executor, err);
    if (rc)
        return rc;
    bool odd = false;
    *ret = c->packing.indexed && f->size - s.directory.records_offset == DAF__ZIP_END_BYTES;
    if (*ret)
        rc = daf__shard_check_index(&s, err);
    if (rc == 0 && *ret && c->type == DAF_BOOL)
        rc = look_for_odd_packed_bools(&s, &odd, err);
    *ret = *ret && !odd;
    daf__shard_close(&s);
    return rc;
}

static int put_packed(daf__zarr_exporter *x, const char *path, const daf__zarr_array *a, daf__file *f,
                      const char *key, const daf__component *c, daf_error *err) {
    bool fits = false;
    int rc = is_zarr_shard(x, a, f, c, &fits, err);
    if (rc)
        return rc;
    return fits ? put_file(x, path, a, f, key, err) : write_part(x, path, a, f, c, err);
}

/* ---- any */

static int put_lines(daf__zarr_exporter *x, const char *path, const daf__zarr_array *a, daf__file *f,
                     const daf__component *c, daf_error *err) {
    daf__extent extent = {DAF__VECTOR, a->rows * a->columns, 1};
    daf_array *texts;
    int rc = daf__component_load(&texts, x->from, f, &extent, c, false, err);
    if (rc)
        return rc;
    rc = daf__zarr_put_texts(x, path, a, texts->texts.next, err);
    daf_array_free(texts);
    return rc;
}

int daf__zarr_put_part(daf__zarr_exporter *x, const char *path, daf__zarr_array *a, daf__file *file,
                       const char *key, const daf__component *c, daf_error *err) {
    if (c->packed && a->rows && a->columns) {
        a->packing = &c->packing;
        return put_packed(x, path, a, file, key, c, err);
    }
    return c->type == DAF_STRING ? put_lines(x, path, a, file, c, err)
                                 : put_flat(x, path, a, file, key, c, err);
}

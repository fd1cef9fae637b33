/* Storing a property anew in another encoding: a dense one flows from a reader to a stream, a sparse one is loaded. */
#include "error.h"
#include "reader.h"
#include "stream.h"

#define PIECE_BYTES ((uint64_t)1 << 23) /* of values that are held at once, or one column */

/* The next piece from the element (row, column) on: some whole columns, or of a vector some rows. */
static daf_range piece_at(const daf_reader *r, uint64_t done, uint64_t per_piece) {
    uint64_t rows = daf_reader_rows(r), columns = daf_reader_columns(r);
    if (columns == 1) {
        uint64_t n = rows - done < per_piece ? rows - done : per_piece;
        return (daf_range){.first_row = done, .n_rows = n, .n_columns = 1};
    }
    uint64_t column = done / rows, n = per_piece / rows + 1;
    return (daf_range){
        .n_rows = rows, .first_column = column, .n_columns = columns - column < n ? columns - column : n};
}

static bool is_stopped(const daf_set_options *o, uint64_t done, uint64_t n) {
    return o->progress && o->progress(o->context, done, n);
}

static int copy_values(daf_reader *r, daf_stream *s, const daf_set_options *o, daf_error *err) {
    uint64_t n = daf_reader_rows(r) * daf_reader_columns(r), done = 0;
    size_t width =
        daf_reader_type(r) == DAF_STRING ? DAF__STRING_SIZE_ESTIMATE : daf_type_bytes(daf_reader_type(r));
    int rc = 0;
    while (done < n && rc == 0) {
        daf_array *a;
        daf_range range = piece_at(r, done, PIECE_BYTES / width);
        rc = daf_reader_read(r, &a, &range, err);
        if (rc)
            return rc;
        const void *values =
            daf_array_type(a) == DAF_STRING ? (const void *)daf_array_strings(a) : daf_array_values(a);
        rc = daf_stream_put(s, values, daf_array_count(a), err);
        done += daf_array_count(a);
        daf_array_free(a);
        if (rc == 0 && is_stopped(o, done, n))
            rc = daf__fail(err, DAF_ERR_CANCELLED, 0, 0, "stopped");
    }
    return rc;
}

static int repack_dense(daf *d, uint64_t *bytes, const daf__property *p, const daf_set_options *o,
                        daf_error *err) {
    daf_reader *r;
    daf_stream *s = NULL;
    int rc = daf__reader_open(d, &r, p, err);
    if (rc)
        return rc;
    rc = daf__stream_new(d, &s, p, daf_reader_type(r), o, true, err);
    if (rc == 0)
        rc = copy_values(r, s, o, err);
    daf_reader_free(r);
    if (rc == 0)
        return daf__stream_end(s, bytes, err);
    daf_stream_discard(s);
    return rc;
}

static int repack_sparse(daf *d, uint64_t *bytes, const daf__property *p, const daf_set_options *o,
                         daf_error *err) {
    daf__loaded l;
    daf__descriptor plan;
    daf__edit e;
    int rc = daf__property_load(d, &l, p, DAF__COPY, NULL, err);
    if (rc)
        return rc;
    rc = daf__property_plan(&plan, d, &l.content, o, err);
    if (rc == 0)
        rc = daf__edit_begin(&e, d, err);
    if (rc == 0) {
        rc = daf__property_stage(&e, p, &l.content, &plan, true, err);
        *bytes = daf__edit_listed_bytes(&e);
        rc = daf__edit_end(&e, rc, err);
    }
    daf__loaded_free(&l);
    return rc;
}

static int info_of(daf *d, daf_info *ret, const daf__property *p, daf_error *err) {
    return p->kind == DAF__VECTOR ? daf_vector_info(d, ret, p->axis, p->name, err)
                                  : daf_matrix_info(d, ret, p->axis, p->columns, p->name, err);
}

static int repack(daf *d, daf_repacked *ret, const daf__property *p, const daf_set_options *options,
                  daf_error *err) {
    daf_info before;
    uint64_t bytes = 0;
    daf_set_options o;
    daf_set_options_init(&o);
    if (options) {
        o = *options;
        o.overwrite = o.both_layouts = false;
        o.form = DAF_FORM_AS_GIVEN;
        o.index_type = DAF_BOOL;
    }
    int rc = daf__check_writing(d, p, options ? &o : NULL, err);
    if (rc == 0)
        rc = daf__edit_check_removal(d, p, err);
    if (rc == 0)
        rc = info_of(d, &before, p, err);
    if (rc == 0)
        rc = before.sparse ? repack_sparse(d, &bytes, p, &o, err) : repack_dense(d, &bytes, p, &o, err);
    if (rc == 0 && ret)
        *ret = (daf_repacked){
            .raw_bytes = before.raw_bytes, .before_bytes = before.disk_bytes, .after_bytes = bytes};
    return rc;
}

int daf_repack_vector(daf *d, daf_repacked *ret, const char *axis, const char *name,
                      const daf_set_options *options, daf_error *err) {
    daf__property p = daf__vector_property(axis, name);
    return repack(d, ret, &p, options, err);
}

int daf_repack_matrix(daf *d, daf_repacked *ret, const char *rows, const char *columns, const char *name,
                      const daf_set_options *options, daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, name);
    return repack(d, ret, &p, options, err);
}

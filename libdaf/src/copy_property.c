/* A vector or matrix, file by file. */
#include <inttypes.h>
#include <string.h>

#include "copy.h"
#include "error.h"

/* ---- the descriptor in the target */

/* The number of elements of each part, where the descriptor does not tell it. */
static int count_parts(daf__descriptor *d, const daf__opened *o, uint64_t *nnz, daf_error *err) {
    daf__component *indices = &d->parts[DAF__INDICES];
    *nnz = indices->n_elements;
    if (!indices->counted) {
        int rc = daf__component_count(o->files[DAF__INDICES], indices->type, nnz, err);
        if (rc)
            return rc;
    }
    for (unsigned i = 0; i < DAF__N_PARTS; i++) {
        d->parts[i].counted = d->parts[i].present;
        d->parts[i].n_elements = i == DAF__POINTERS ? o->extent.columns + 1 : *nnz;
    }
    return 0;
}

/* An archive cannot have its marker raised. */
static int adapt_to_1_0(const daf__copying *c, daf__descriptor *d, const daf__property *p) {
    char text[DAF__PROPERTY_TEXT];
    if (daf__descriptor_is_packed(d) || (d->sparse && d->type == DAF_BOOL))
        return daf__fail(c->err, DAF_ERR_UNSUPPORTED, 0, 0,
                         "%s: is an archive of format 1.0, which cannot hold %s as it is stored",
                         c->to->store->path, daf__property_text(text, p));
    d->old_form = d->sparse;
    return 0;
}

static int adapt(const daf__copying *c, daf__descriptor *d, const daf__opened *o, const daf__property *p) {
    uint64_t nnz;
    int rc = d->sparse ? count_parts(d, o, &nnz, c->err) : 0;
    if (rc)
        return rc;
    if (c->to->store->append_only && c->to->major == 1 && c->to->minor < 1)
        return adapt_to_1_0(c, d, p);
    d->old_form = false;
    return 0;
}

/* ---- files */

static int copy_bytes(daf__copying *c, daf__out *out, daf__file *f) {
    uint32_t crc = 0;
    int rc = 0;
    for (uint64_t at = 0; at < f->size && rc == 0; at += DAF__COPY_PIECE) {
        size_t n = f->size - at < DAF__COPY_PIECE ? (size_t)(f->size - at) : DAF__COPY_PIECE;
        rc = f->ops->read(f, c->piece, n, at, c->err);
        crc = rc ? crc : daf__file_add_crc(f, crc, c->piece, n);
        if (rc == 0)
            rc = daf__out_append(out, c->piece, n, c->err);
        if (rc == 0)
            rc = daf__copied(c, n);
    }
    return rc ? rc : daf__file_check_crc(f, crc, c->err);
}

static int copy_files(daf__copying *c, daf__edit *e, const daf__opened *o, daf__out *outs[DAF__N_PARTS]) {
    int rc = 0;
    for (unsigned i = 0; i < DAF__N_PARTS && rc == 0; i++) {
        if (!o->files[i])
            continue;
        rc = daf__edit_create(e, &outs[i], c->err);
        if (rc == 0)
            rc = copy_bytes(c, outs[i], o->files[i]);
    }
    return rc;
}

/* ---- what is there */

static int same_bytes(daf__copying *c, daf__file *a, daf__file *b, bool *same) {
    int rc = 0;
    *same = a->size == b->size;
    for (uint64_t at = 0; at < a->size && *same && rc == 0; at += DAF__COPY_PIECE) {
        size_t n = a->size - at < DAF__COPY_PIECE ? (size_t)(a->size - at) : DAF__COPY_PIECE;
        rc = a->ops->read(a, c->piece, n, at, c->err);
        if (rc == 0)
            rc = b->ops->read(b, c->piece + DAF__COPY_PIECE, n, at, c->err);
        *same = rc == 0 && memcmp(c->piece, c->piece + DAF__COPY_PIECE, n) == 0;
    }
    return rc;
}

static bool same_descriptors(const daf__descriptor *a, const daf__descriptor *b, daf__kind kind) {
    daf__buf x = {0}, y = {0};
    daf__descriptor_write(&x, kind, a);
    daf__descriptor_write(&y, kind, b);
    bool same = !x.failed && !y.failed && x.size == y.size && memcmp(x.data, y.data, x.size) == 0;
    daf__buf_free(&x);
    daf__buf_free(&y);
    return same;
}

/* Whether the target's property is what would be copied. One that cannot be read is not. */
static int is_same(daf__copying *c, const daf__property *p, const daf__descriptor *d, const daf__opened *o,
                   bool *same) {
    daf__opened there;
    *same = false;
    if (daf__property_open(c->to, &there, p, NULL) != 0)
        return 0;
    int rc = adapt(c, &there.descriptor, &there, p);
    *same = rc == 0 && same_descriptors(&there.descriptor, d, p->kind);
    for (unsigned i = 0; i < DAF__N_PARTS && rc == 0 && *same; i++)
        if (o->files[i])
            rc = same_bytes(c, o->files[i], there.files[i], same);
    daf__opened_close(&there);
    return rc;
}

/* ---- one property */

static int put(daf__copying *c, const daf__property *p, const daf__descriptor *d, const daf__opened *o,
               bool there) {
    daf__edit e;
    daf__out *outs[DAF__N_PARTS] = {NULL};
    int rc = daf__edit_begin(&e, c->to, c->err);
    if (rc)
        return rc;
    rc = copy_files(c, &e, o, outs);
    if (rc == 0) {
        rc = daf__property_stage_filled(&e, p, d, outs, there, c->err);
    } else {
        for (unsigned i = 0; i < DAF__N_PARTS; i++)
            daf__out_discard(outs[i]);
    }
    return daf__edit_end(&e, rc, c->err);
}

static int check_lengths(const daf__copying *c, const daf__property *p, const daf__opened *o) {
    char text[DAF__PROPERTY_TEXT];
    uint64_t rows, columns;
    int rc = daf__lengths(c->to, p, &rows, &columns, c->err);
    if (rc || (rows == o->extent.rows && columns == o->extent.columns))
        return rc;
    return daf__fail(c->err, DAF_ERR_VALUE, 0, 0, "%s: the axes of %s are of other lengths than in %s",
                     c->to->store->path, daf__property_text(text, p), c->from->store->path);
}

int daf__copy_property(daf__copying *c, const daf__property *p) {
    daf__opened o;
    bool there = false, same = false;
    int rc = daf__check_writing(c->to, p, NULL, c->err);
    if (rc == 0)
        rc = daf__property_open(c->from, &o, p, c->err);
    if (rc)
        return rc;
    daf__descriptor d = o.descriptor;
    rc = check_lengths(c, p, &o);
    if (rc == 0)
        rc = adapt(c, &d, &o, p);
    if (rc == 0)
        rc = daf__property_has(c->to, &there, p, c->err);
    if (rc == 0 && there)
        rc = is_same(c, p, &d, &o, &same);
    if (rc == 0 && !same)
        rc = daf__property_is_free(c->to, &there, p, c->options.overwrite, c->err);
    if (rc == 0 && !same)
        rc = put(c, p, &d, &o, there);
    daf__opened_close(&o);
    return rc;
}

/* daf_copy: axes first, then what lies on them. */
#include "copy.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

void daf_copy_options_init(daf_copy_options *options) {
    *options = (daf_copy_options){.overwrite = false};
}

int daf__copied(daf__copying *c, uint64_t bytes) {
    c->done_bytes += bytes;
    if (c->options.progress && c->options.progress(c->options.context, c->done_bytes))
        return daf__fail(c->err, DAF_ERR_CANCELLED, 0, 0, "%s: stopped", c->to->store->path);
    return 0;
}

static bool is_wanted(const daf__copying *c, const daf__property *p) {
    static const daf_kind kinds[] = {[DAF__SCALAR] = DAF_KIND_SCALAR,
                                     [DAF__AXIS] = DAF_KIND_AXIS,
                                     [DAF__VECTOR] = DAF_KIND_VECTOR,
                                     [DAF__MATRIX] = DAF_KIND_MATRIX};
    const daf_item item = {.kind = kinds[p->kind], .axis = p->axis, .columns = p->columns, .name = p->name};
    return !c->options.wanted || c->options.wanted(c->options.context, &item);
}

/* ---- axes */

static bool same_entries(const daf_array *a, const daf_array *b) {
    if (daf_array_count(a) != daf_array_count(b))
        return false;
    for (uint64_t i = 0; i < daf_array_count(a); i++)
        if (strcmp(daf_array_strings(a)[i], daf_array_strings(b)[i]) != 0)
            return false;
    return true;
}

static int compare_axis(daf__copying *c, const char *axis, const daf_array *entries) {
    daf_array *there;
    int rc = daf_get_axis(c->to, &there, axis, c->err);
    if (rc)
        return rc;
    bool same = same_entries(entries, there);
    daf_array_free(there);
    if (same)
        return 0;
    return daf__fail(c->err, DAF_ERR_VALUE, 0, 0,
                     "axis \"%.100s\" has other entries in %.300s than in %.300s", axis, c->from->store->path,
                     c->to->store->path);
}

static int copy_axis(daf__copying *c, const daf__property *p) {
    daf_array *entries;
    bool there;
    int rc = daf_get_axis(c->from, &entries, p->name, c->err);
    if (rc)
        return rc;
    rc = daf_has_axis(c->to, &there, p->name, c->err);
    if (rc == 0 && there)
        rc = compare_axis(c, p->name, entries);
    else if (rc == 0)
        rc = daf_add_axis(c->to, p->name, daf_array_strings(entries), daf_array_count(entries), c->err);
    daf_array_free(entries);
    return rc;
}

/* ---- scalars */

static bool same_scalar(const daf_scalar *a, const daf_scalar *b) {
    if (a->type != b->type)
        return false;
    if (a->type == DAF_STRING)
        return a->value.s.bytes == b->value.s.bytes &&
               memcmp(a->value.s.text, b->value.s.text, a->value.s.bytes) == 0;
    if (a->type == DAF_BOOL)
        return a->value.b == b->value.b;
    return a->value.u == b->value.u; /* of floats: bit by bit */
}

static int copy_scalar(daf__copying *c, const daf__property *p) {
    daf_scalar scalar, old = {.type = DAF_BOOL};
    const daf_set_options how = {.overwrite = c->options.overwrite};
    bool there, same = false, kept = c->to->settings.non_finite_scalars;
    int rc = daf_get_scalar(c->from, &scalar, p->name, c->err);
    if (rc)
        return rc;
    rc = daf_has_scalar(c->to, &there, p->name, c->err);
    if (rc == 0 && there && daf_get_scalar(c->to, &old, p->name, NULL) == 0) {
        same = same_scalar(&scalar, &old);
        daf_scalar_clear(&old);
    }
    c->to->settings.non_finite_scalars = true; /* somebody has stored it already */
    if (rc == 0 && !same)
        rc = daf_set_scalar(c->to, p->name, &scalar, &how, c->err);
    c->to->settings.non_finite_scalars = kept;
    daf_scalar_clear(&scalar);
    return rc;
}

/* ---- all */

static int copy_one(daf__copying *c, const daf__property *p) {
    if (!is_wanted(c, p))
        return 0;
    if (p->kind == DAF__AXIS)
        return copy_axis(c, p);
    return p->kind == DAF__SCALAR ? copy_scalar(c, p) : daf__copy_property(c, p);
}

/* `all` was just listed: rc. It is cleared. */
static int copy_listed(daf__copying *c, int rc, daf_names *all, daf__property p) {
    for (size_t i = 0; rc == 0 && i < all->n; i++) {
        p.name = all->names[i];
        rc = copy_one(c, &p);
        if (rc == 0)
            rc = daf__copied(c, 0);
    }
    daf_names_clear(all);
    return rc;
}

static int copy_matrices(daf__copying *c, const char *rows, const char *columns) {
    daf_names names = {0};
    int rc = daf_list_matrices(c->from, &names, rows, columns, c->err);
    return copy_listed(c, rc, &names, daf__matrix_property(rows, columns, NULL));
}

static int copy_on_axes(daf__copying *c, const daf_names *axes) {
    int rc = 0;
    for (size_t i = 0; i < axes->n && rc == 0; i++) {
        daf_names names = {0};
        rc = daf_list_vectors(c->from, &names, axes->names[i], c->err);
        rc = copy_listed(c, rc, &names, daf__vector_property(axes->names[i], NULL));
    }
    for (size_t i = 0; i < axes->n; i++)
        for (size_t k = 0; k < axes->n && rc == 0; k++)
            rc = copy_matrices(c, axes->names[i], axes->names[k]);
    return rc;
}

static int copy_all(daf__copying *c) {
    daf_names axes = {0}, names = {0};
    int rc = daf_list_axes(c->from, &axes, c->err);
    for (size_t i = 0; i < axes.n && rc == 0; i++) {
        daf__property p = daf__axis_property(axes.names[i]);
        rc = copy_one(c, &p);
    }
    if (rc == 0)
        rc = daf_list_scalars(c->from, &names, c->err);
    rc = copy_listed(c, rc, &names, daf__scalar_property(NULL));
    if (rc == 0)
        rc = copy_on_axes(c, &axes);
    daf_names_clear(&axes);
    return rc;
}

int daf_copy(daf *to, daf *from, const daf_copy_options *options, daf_error *err) {
    daf__copying c = {.to = to, .from = from, .err = err};
    bool own_batch = !to->in_batch;
    if (to == from)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%s: is copied into itself", to->store->path);
    if (options)
        c.options = *options;
    int rc = own_batch ? daf_batch_begin(to, err) : 0;
    if (rc)
        return rc;
    c.piece = malloc(2 * (size_t)DAF__COPY_PIECE);
    rc = c.piece ? copy_all(&c) : daf__no_memory(err);
    free(c.piece);
    return rc || !own_batch ? rc : daf_batch_commit(to, err);
}

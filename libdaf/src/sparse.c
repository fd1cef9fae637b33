/* Sparse vectors and matrices: the handle, getting and setting. */
#include <inttypes.h>
#include <stdlib.h>

#include "error.h"
#include "indices.h"
#include "mapped.h"
#include "property.h"
#include "type.h"

struct daf_sparse {
    daf__content content; /* borrows from the arrays */
    daf_array *parts[DAF__N_PARTS];
    daf_csc csc;
};

/* ---- the handle */

void daf_sparse_free(daf_sparse *s) {
    if (!s)
        return;
    daf__content_free(&s->content);
    for (unsigned i = 0; i < DAF__N_PARTS; i++)
        daf_array_free(s->parts[i]);
    free(s);
}

const daf_csc *daf_sparse_csc(const daf_sparse *s) {
    return &s->csc;
}

uint64_t daf_sparse_index(const daf_sparse *s, uint64_t k) {
    return daf__index_at(s->csc.index_type, s->csc.indices, k) - 1;
}

uint64_t daf_sparse_start(const daf_sparse *s, uint64_t column) {
    return daf__content_start(&s->content, column);
}

bool daf_sparse_is_mapped(const daf_sparse *s) {
    return s->parts[DAF__INDICES] && daf_array_is_mapped(s->parts[DAF__INDICES]);
}

static daf_csc csc_of(const daf__content *c) {
    return (daf_csc){.type = c->type,
                     .index_type = c->index_type,
                     .rows = c->rows,
                     .columns = c->columns,
                     .nnz = c->nnz,
                     .colptr = c->data[DAF__POINTERS],
                     .indices = c->data[DAF__INDICES],
                     .values = c->data[DAF__VALUES]};
}

/* The texts of a content that borrows them become an array of the handle's own. */
static int own_texts(daf_sparse *s, daf_error *err) {
    daf__content *c = &s->content;
    if (c->type != DAF_STRING || s->parts[DAF__VALUES])
        return 0;
    daf_array *a = daf__array_new(DAF_STRING, c->nnz, 1);
    int rc = a ? daf__texts_copy(&a->texts, c->data[DAF__VALUES], c->nnz, err) : daf__no_memory(err);
    if (rc) {
        daf_array_free(a);
        return rc;
    }
    s->parts[DAF__VALUES] = a;
    c->data[DAF__VALUES] = a->texts.next;
    return 0;
}

/* A handle of a sparse content (consumed) and, when it borrows from them, the arrays of `l` (may be NULL). */
static int make_sparse(daf_sparse **ret, daf__content *c, daf__loaded *l, daf_error *err) {
    daf_sparse *s = calloc(1, sizeof *s);
    int rc = s ? 0 : daf__no_memory(err);
    if (rc == 0) {
        s->content = *c;
        *c = (daf__content){0};
        for (unsigned i = 0; l && i < DAF__N_PARTS; i++) {
            s->parts[i] = l->parts[i];
            l->parts[i] = NULL;
        }
        rc = own_texts(s, err);
    }
    daf__content_free(c);
    if (rc) {
        daf_sparse_free(s);
        return rc;
    }
    s->csc = csc_of(&s->content);
    *ret = s;
    return 0;
}

static bool is_view(const daf_sparse *s) {
    for (unsigned i = 0; i < DAF__N_PARTS; i++)
        if (s->parts[i] && daf_array_is_mapped(s->parts[i]))
            return true;
    return false;
}

/* The columns that are in the range, out of any view of a file; *rest: what is left of the range. */
static int own_columns(daf__content *ret, const daf_sparse *s, const daf_range *range, daf_range *rest,
                       daf_error *err) {
    int rc = daf__range_check(range, s->content.rows, s->content.columns, err);
    if (rc == 0)
        rc = daf__mapped_columns(ret, &s->content, range, err);
    *rest = *range;
    if (s->content.kind == DAF__MATRIX)
        rest->first_column = 0;
    return rc;
}

int daf_sparse_slice(daf_sparse **ret, const daf_sparse *s, const daf_range *range, daf_error *err) {
    daf__content slice, owned = {.sparse = false};
    daf_range rest = *range;
    int rc = is_view(s) ? own_columns(&owned, s, range, &rest, err) : 0;
    if (rc == 0)
        rc = daf__content_slice(&slice, owned.sparse ? &owned : &s->content, &rest, err);
    if (rc == 0)
        rc = make_sparse(ret, &slice, NULL, err);
    daf__content_free(&owned);
    return rc;
}

int daf_sparse_to_dense(daf_array **ret, const daf_sparse *s, daf_error *err) {
    const daf_range all = {.n_rows = s->content.rows, .n_columns = s->content.columns};
    daf__content dense, owned = {.sparse = false};
    daf_range rest;
    int rc = is_view(s) ? own_columns(&owned, s, &all, &rest, err) : 0;
    if (rc == 0)
        rc = daf__content_to_dense(&dense, owned.sparse ? &owned : &s->content, err);
    if (rc == 0)
        rc = daf__content_to_array(ret, &dense, err);
    daf__content_free(&owned);
    return rc;
}

/* ---- getting */

static int get_sparse(daf *d, daf_sparse **ret, const daf__property *p, daf_error *err) {
    daf__loaded l;
    int rc = daf__property_load(d, &l, p, DAF__VIEW_SPARSE, NULL, err);
    if (rc)
        return rc;
    if (l.content.sparse) {
        daf__content c = l.content;
        rc = make_sparse(ret, &c, &l, err);
    } else {
        daf__content sparse;
        rc = daf__content_to_sparse(&sparse, &l.content, DAF_BOOL, err);
        if (rc == 0)
            rc = make_sparse(ret, &sparse, NULL, err);
    }
    daf__loaded_free(&l);
    return rc;
}

int daf_get_sparse_vector(daf *d, daf_sparse **ret, const char *axis, const char *name, daf_error *err) {
    daf__property p = daf__vector_property(axis, name);
    return get_sparse(d, ret, &p, err);
}

int daf_get_sparse_matrix(daf *d, daf_sparse **ret, const char *rows, const char *columns, const char *name,
                          daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, name);
    return get_sparse(d, ret, &p, err);
}

/* ---- setting */

static int check_arrays(const daf__property *p, const daf_csc *csc, daf_error *err) {
    char text[DAF__PROPERTY_TEXT];
    if ((unsigned)csc->type >= DAF_N_TYPES)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%d is no element type", (int)csc->type);
    if (daf__index_max(csc->index_type) == 0)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%d is no type of indices", (int)csc->index_type);
    const char *missing = NULL;
    if (p->kind == DAF__MATRIX && !csc->colptr)
        missing = "colptr";
    else if (csc->nnz && !csc->indices)
        missing = "indices";
    else if (csc->nnz && !csc->values && csc->type != DAF_BOOL)
        missing = "values";
    return missing ? daf__fail(err, DAF_ERR_ARG, 0, 0, "%s: the %s are NULL", daf__property_text(text, p),
                               missing)
                   : 0;
}

static int check_lengths(daf *d, const daf__property *p, const daf_csc *csc, daf_error *err) {
    char text[DAF__PROPERTY_TEXT];
    uint64_t rows, columns;
    int rc = daf__lengths(d, p, &rows, &columns, err);
    if (rc)
        return rc;
    if (csc->rows != rows || csc->columns != columns || csc->nnz > SIZE_MAX / 64)
        return daf__fail(err, DAF_ERR_ARG, 0, 0,
                         "%s: %" PRIu64 " x %" PRIu64 " with %" PRIu64 " stored values, but %" PRIu64
                         " x %" PRIu64 " is needed",
                         daf__property_text(text, p), csc->rows, csc->columns, csc->nnz, rows, columns);
    return 0;
}

static int check_content(const daf__property *p, const daf__content *c, daf_error *err) {
    char text[DAF__PROPERTY_TEXT];
    daf__rule_breach b;
    if (!daf__content_obeys(c, &b))
        return daf__fail(err, DAF_ERR_VALUE, 0, b.element, "%s: %s, element %" PRIu64 ": %s",
                         daf__property_text(text, p), daf__part_name(p->kind, true, b.part), b.element,
                         b.text);
    return c->type == DAF_STRING ? daf__texts_check(c->data[DAF__VALUES], c->nnz, false, err) : 0;
}

/* Without stored values a caller may have no arrays; the content needs some that are not NULL. */
static daf__content content_of(daf__kind kind, const daf_csc *csc) {
    static const uint64_t none = 0;
    daf__content c = {.kind = kind,
                      .type = csc->type,
                      .rows = csc->rows,
                      .columns = csc->columns,
                      .sparse = true,
                      .index_type = csc->index_type,
                      .nnz = csc->nnz};
    c.data[DAF__VALUES] = csc->values || csc->type == DAF_BOOL ? csc->values : &none;
    c.data[DAF__INDICES] = csc->indices ? csc->indices : &none;
    c.data[DAF__POINTERS] = kind == DAF__MATRIX ? csc->colptr : NULL;
    return c;
}

static int set_sparse(daf *d, const daf__property *p, const daf_csc *csc, const daf_set_options *options,
                      daf_error *err) {
    int rc = daf__check_writing(d, p, options, err);
    if (rc == 0)
        rc = check_arrays(p, csc, err);
    if (rc == 0)
        rc = check_lengths(d, p, csc, err);
    if (rc)
        return rc;
    daf__content c = content_of(p->kind, csc);
    rc = check_content(p, &c, err);
    return rc ? rc : daf__property_set(d, p, &c, options, err);
}

int daf_set_sparse_vector(daf *d, const char *axis, const char *name, const daf_csc *csc,
                          const daf_set_options *options, daf_error *err) {
    daf__property p = daf__vector_property(axis, name);
    return set_sparse(d, &p, csc, options, err);
}

int daf_set_sparse_matrix(daf *d, const char *rows, const char *columns, const char *name, const daf_csc *csc,
                          const daf_set_options *options, daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, name);
    return set_sparse(d, &p, csc, options, err);
}

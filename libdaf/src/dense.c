/* Dense vectors and matrices; a vector is a matrix of one column. */
#include <inttypes.h>

#include "error.h"
#include "property.h"

static int check_values(daf *d, const daf__property *p, daf__content *c, uint64_t n, daf_error *err) {
    char text[DAF__PROPERTY_TEXT];
    if ((unsigned)c->type >= DAF_N_TYPES)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%d is no element type", (int)c->type);
    int rc = daf__shape(d, p, &c->rows, &c->columns, err);
    if (rc)
        return rc;
    if (n != c->rows * c->columns)
        return daf__fail(err, DAF_ERR_ARG, 0, 0,
                         "%s: %" PRIu64 " values, but %" PRIu64 " x %" PRIu64 " are needed",
                         daf__property_text(text, p), n, c->rows, c->columns);
    if (n > 0 && !c->data[DAF__VALUES])
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%s: the values are NULL", daf__property_text(text, p));
    return c->type == DAF_STRING ? daf__texts_check(c->data[DAF__VALUES], n, false, err) : 0;
}

static int set_dense(daf *d, const daf__property *p, daf_type type, const void *values, uint64_t n,
                     const daf_set_options *options, daf_error *err) {
    daf__content c = {.kind = p->kind, .type = type};
    c.data[DAF__VALUES] = values;
    int rc = daf__check_writing(d, p, options, err);
    if (rc == 0)
        rc = check_values(d, p, &c, n, err);
    return rc ? rc : daf__property_set(d, p, &c, options, err);
}

int daf_set_vector(daf *d, const char *axis, const char *name, daf_type type, const void *values, uint64_t n,
                   const daf_set_options *options, daf_error *err) {
    daf__property p = daf__vector_property(axis, name);
    return set_dense(d, &p, type, values, n, options, err);
}

int daf_set_matrix(daf *d, const char *rows, const char *columns, const char *name, daf_type type,
                   const void *values, uint64_t n, const daf_set_options *options, daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, name);
    return set_dense(d, &p, type, values, n, options, err);
}

/* ---- getting */

/* The loaded values (consumed) as an array. */
static int take_array(daf_array **ret, daf__loaded *l, daf_error *err) {
    daf__content dense;
    int rc = 0;
    if (!l->content.sparse) {
        *ret = l->parts[DAF__VALUES];
        l->parts[DAF__VALUES] = NULL;
    } else {
        rc = daf__content_to_dense(&dense, &l->content, err);
        if (rc == 0)
            rc = daf__content_to_array(ret, &dense, err);
    }
    daf__loaded_free(l);
    return rc;
}

static int get_dense(daf *d, daf_array **ret, const daf__property *p, daf_error *err) {
    daf__loaded l;
    int rc = daf__property_load(d, &l, p, DAF__VIEW_DENSE, NULL, err);
    return rc ? rc : take_array(ret, &l, err);
}

int daf_get_vector(daf *d, daf_array **ret, const char *axis, const char *name, daf_error *err) {
    daf__property p = daf__vector_property(axis, name);
    return get_dense(d, ret, &p, err);
}

int daf_get_matrix(daf *d, daf_array **ret, const char *rows, const char *columns, const char *name,
                   daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, name);
    return get_dense(d, ret, &p, err);
}

/* ---- ranges */

static int get_range(daf *d, daf_array **ret, const daf__property *p, const daf_range *range,
                     daf_error *err) {
    daf__loaded l;
    int rc = daf__property_load(d, &l, p, DAF__COPY, range, err);
    if (rc)
        return rc;
    if (!l.content.sparse)
        return take_array(ret, &l, err);
    rc = daf__content_part_to_array(ret, &l.content, range, err);
    daf__loaded_free(&l);
    return rc;
}

int daf_get_vector_range(daf *d, daf_array **ret, const char *axis, const char *name, uint64_t first,
                         uint64_t n, daf_error *err) {
    daf__property p = daf__vector_property(axis, name);
    daf_range range = {.first_row = first, .n_rows = n, .n_columns = 1};
    return get_range(d, ret, &p, &range, err);
}

int daf_get_matrix_range(daf *d, daf_array **ret, const char *rows, const char *columns, const char *name,
                         const daf_range *range, daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, name);
    return get_range(d, ret, &p, range, err);
}

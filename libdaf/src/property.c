/* What all kinds of properties have in common: messages, existence, listing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edit.h"
#include "error.h"

const char *daf__property_text(char text[DAF__PROPERTY_TEXT], const daf__property *p) {
    switch (p->kind) {
    case DAF__SCALAR:
        snprintf(text, DAF__PROPERTY_TEXT, "scalar \"%s\"", p->name);
        break;
    case DAF__AXIS:
        snprintf(text, DAF__PROPERTY_TEXT, "axis \"%s\"", p->name);
        break;
    case DAF__VECTOR:
        snprintf(text, DAF__PROPERTY_TEXT, "vector \"%s\" on axis \"%s\"", p->name, p->axis);
        break;
    case DAF__MATRIX:
        snprintf(text, DAF__PROPERTY_TEXT, "matrix \"%s\" on axes \"%s\" and \"%s\"", p->name, p->axis,
                 p->columns);
        break;
    }
    return text;
}

int daf__no_property(const daf *d, const daf__property *p, daf_error *err) {
    char text[DAF__PROPERTY_TEXT];
    return daf__fail(err, DAF_ERR_MISSING, 0, 0, "%s: no %s", d->store->path, daf__property_text(text, p));
}

int daf__property_has(daf *d, bool *ret, const daf__property *p, daf_error *err) {
    int rc = daf__check_readable(p, err);
    if (rc)
        return rc;
    daf__key base = daf__property_key(p), key = daf__key_with(&base, daf__main_suffix(p->kind));
    return daf__store_has(d->store, ret, key.text, err);
}

int daf__property_is_free(daf *d, bool *there, const daf__property *p, bool overwrite, daf_error *err) {
    char text[DAF__PROPERTY_TEXT];
    int rc = daf__property_has(d, there, p, err);
    if (rc == 0 && *there && overwrite)
        return daf__edit_check_removal(d, p, err);
    if (rc == 0 && *there)
        rc = daf__fail(err, DAF_ERR_EXISTS, 0, 0, "%s: %s exists already", d->store->path,
                       daf__property_text(text, p));
    return rc;
}

int daf_has_scalar(daf *d, bool *ret, const char *name, daf_error *err) {
    daf__property p = daf__scalar_property(name);
    return daf__property_has(d, ret, &p, err);
}

int daf_has_axis(daf *d, bool *ret, const char *axis, daf_error *err) {
    daf__property p = daf__axis_property(axis);
    return daf__property_has(d, ret, &p, err);
}

int daf_has_vector(daf *d, bool *ret, const char *axis, const char *name, daf_error *err) {
    daf__property p = daf__vector_property(axis, name);
    return daf__property_has(d, ret, &p, err);
}

int daf_has_matrix(daf *d, bool *ret, const char *rows, const char *columns, const char *name,
                   daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, name);
    return daf__property_has(d, ret, &p, err);
}

/* Lists the names of the properties that lie where `p` (whose own name does not matter) would. */
static int list(daf *d, daf_names *ret, const daf__property *p, daf_error *err) {
    int rc = daf__check_readable(p, err);
    if (rc)
        return rc;
    daf__key folder = daf__property_key(p);
    *strrchr(folder.text, '/') = 0;
    daf_names names;
    rc = d->store->ops->list(d->store, &names, folder.text, DAF__LIST_FILES_ANYHOW, err);
    if (rc)
        return rc;
    const char *suffix = daf__main_suffix(p->kind);
    size_t kept = 0, suffix_bytes = strlen(suffix);
    for (size_t i = 0; i < names.n; i++) {
        char *name = names.names[i];
        size_t n = strlen(name);
        if (n > suffix_bytes && strcmp(name + n - suffix_bytes, suffix) == 0 &&
            daf__is_path_part(name, n - suffix_bytes)) {
            name[n - suffix_bytes] = 0;
            names.names[kept++] = name;
        } else {
            free(name);
        }
    }
    names.n = kept;
    daf__names_sort(&names);
    *ret = names;
    return 0;
}

int daf_list_scalars(daf *d, daf_names *ret, daf_error *err) {
    daf__property p = daf__scalar_property("x");
    return list(d, ret, &p, err);
}

int daf_list_axes(daf *d, daf_names *ret, daf_error *err) {
    daf__property p = daf__axis_property("x");
    return list(d, ret, &p, err);
}

int daf_list_vectors(daf *d, daf_names *ret, const char *axis, daf_error *err) {
    daf__property p = daf__vector_property(axis, "x");
    return list(d, ret, &p, err);
}

int daf_list_matrices(daf *d, daf_names *ret, const char *rows, const char *columns, daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, "x");
    return list(d, ret, &p, err);
}

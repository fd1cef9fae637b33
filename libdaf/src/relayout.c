/* The other layout of a matrix that is there. */
#include <string.h>

#include "error.h"
#include "property.h"

static int stage_transpose(daf__edit *e, const daf__property *p, const daf__property *other,
                           const daf_set_options *o, bool there, daf_error *err) {
    daf__loaded l;
    daf__content t;
    int rc = daf__property_load(e->d, &l, p, DAF__COPY, NULL, err);
    if (rc)
        return rc;
    rc = daf__content_transpose(&t, &l.content, e->d->has_executor ? &e->d->executor : NULL, err);
    if (rc == 0) {
        rc = daf__property_put(e, other, &t, o, there, err);
        daf__content_free(&t);
    }
    daf__loaded_free(&l);
    return rc;
}

int daf_relayout_matrix(daf *d, const char *rows, const char *columns, const char *name,
                        const daf_set_options *options, daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, name), other = daf__other_layout(&p);
    char text[DAF__PROPERTY_TEXT];
    daf__edit e;
    bool there;
    int rc = daf__check_writing(d, &other, err);
    if (rc == 0 && strcmp(rows, columns) == 0)
        rc = daf__fail(err, DAF_ERR_ARG, 0, 0, "%s has one layout only", daf__property_text(text, &p));
    if (rc == 0)
        rc = daf__property_is_free(d, &there, &other, options && options->overwrite, err);
    if (rc == 0)
        rc = daf__edit_begin(&e, d, err);
    if (rc)
        return rc;
    rc = stage_transpose(&e, &p, &other, options, there, err);
    return daf__edit_end(&e, rc, err);
}

/* The other layout of a matrix that is there. */
#include <string.h>

#include "bands.h"
#include "error.h"
#include "reader.h"
#include "turning.h"

/* What is in memory whole: texts, few sparse values, and what takes another form. */
static int stage_loaded(daf__edit *e, const daf__property *p, const daf__property *other,
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

static int stage_transpose(daf__edit *e, const daf__property *p, const daf__property *other,
                           const daf_set_options *o, bool there, daf_error *err) {
    daf__descriptor now;
    daf_reader *r;
    int rc = daf__read_descriptor(e->d, &now, NULL, p, err);
    if (rc)
        return rc;
    bool staged = false;
    if (now.sparse)
        rc = daf__turning_stage(e, p, other, o, there, DAF__TURNING_BYTES, &staged, err);
    if (rc || staged)
        return rc;
    if (now.sparse || !daf__bands_suit(o, now.type))
        return stage_loaded(e, p, other, o, there, err);
    rc = daf__reader_open(e->d, &r, p, err);
    if (rc)
        return rc;
    daf__bands bands = {.type = daf_reader_type(r),
                        .rows = daf_reader_rows(r),
                        .columns = daf_reader_columns(r),
                        .reader = r};
    /* It may have been replaced just now. */
    rc = daf__reader_is_held(r) || !daf__bands_suit(o, bands.type)
             ? stage_loaded(e, p, other, o, there, err)
             : daf__bands_stage(e, other, &bands, o, there, err);
    daf_reader_free(r);
    return rc;
}

int daf_relayout_matrix(daf *d, const char *rows, const char *columns, const char *name,
                        const daf_set_options *options, daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, name), other = daf__other_layout(&p);
    char text[DAF__PROPERTY_TEXT];
    daf__edit e;
    bool there;
    int rc = daf__check_writing(d, &other, options, err);
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

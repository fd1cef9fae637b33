/* Setting, getting and deleting scalars. */
#include "edit.h"
#include "error.h"
#include "json.h"
#include "scalar.h"

static int stage_scalar(daf__edit *e, const daf__property *p, const daf_scalar *scalar, bool there,
                        daf_error *err) {
    static const char *const kept[] = {".json", NULL};
    daf__key base = daf__property_key(p), key = daf__key_with(&base, ".json");
    daf__buf json = {0};
    daf__scalar_write(&json, scalar);
    int rc = daf__buf_check(&json, err);
    if (rc == 0 && json.size > DAF__MAX_JSON_BYTES)
        rc = daf__fail(err, DAF_ERR_LIMIT, 0, 0,
                       "scalar \"%s\": a text of %zu bytes as JSON is longer than can be read again (%llu)",
                       p->name, json.size, (unsigned long long)DAF__MAX_JSON_BYTES);
    if (rc == 0)
        rc = daf__edit_put_bytes(e, key.text, json.data, json.size, err);
    if (rc == 0 && there)
        rc = daf__edit_remove(e, p, kept, err);
    if (rc == 0)
        rc = daf__edit_list(e, &base, json.data, json.size, err);
    daf__buf_free(&json);
    return rc;
}

int daf_set_scalar(daf *d, const char *name, const daf_scalar *scalar, const daf_set_options *options,
                   daf_error *err) {
    daf__property p = daf__scalar_property(name);
    daf__edit e;
    bool there = false;
    int rc = daf__edit_begin(&e, d, err);
    if (rc == 0)
        rc = daf__check_writable(&p, err);
    if (rc == 0)
        rc = daf__scalar_check(scalar, d->settings.non_finite_scalars, err);
    if (rc == 0)
        rc = daf__property_is_free(d, &there, &p, options && options->overwrite, err);
    if (rc == 0)
        rc = stage_scalar(&e, &p, scalar, there, err);
    return daf__edit_end(&e, rc, err);
}

int daf_get_scalar(daf *d, daf_scalar *ret, const char *name, daf_error *err) {
    daf__property p = daf__scalar_property(name);
    daf_error details;
    int rc = daf__check_readable(&p, err);
    if (rc)
        return rc;
    daf__key base = daf__property_key(&p), key = daf__key_with(&base, ".json");
    daf__buf json = {0};
    rc = daf__store_read(d->store, &json, NULL, key.text, DAF__MAX_JSON_BYTES, &details);
    if (rc == DAF_ERR_MISSING)
        return daf__no_property(d, &p, err);
    if (rc)
        return daf__pass(err, &details);
    char where[DAF__WHERE_TEXT];
    rc = daf__scalar_parse(ret, json.data, json.size, daf__store_where(where, d->store, key.text), err);
    daf__buf_free(&json);
    return rc;
}

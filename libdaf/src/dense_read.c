/* Reading a dense property. Descriptor and payload are two files, which a writer replaces one after the other; the
 * descriptor is looked at again once the payload is open, and when it is another by then, all is read anew. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "dense.h"
#include "error.h"
#include "json.h"
#include "shard.h"

enum { MAX_ATTEMPTS = 100 };

int daf__read_descriptor(daf *d, daf__descriptor *ret, daf__stamp *stamp, const daf__property *p,
                         daf_error *err) {
    daf__key base = daf__property_key(p), key = daf__key_with(&base, ".json");
    char where[DAF__WHERE_TEXT];
    daf__buf json = {0};
    daf_error details;
    int rc = daf__store_read(d->store, &json, stamp, key.text, DAF__MAX_JSON_BYTES, &details);
    if (rc == DAF_ERR_MISSING)
        return daf__no_property(d, p, err);
    if (rc)
        return daf__pass(err, &details);
    rc = daf__descriptor_parse(ret, p->kind, json.data, json.size,
                               daf__store_where(where, d->store, key.text), err);
    daf__buf_free(&json);
    return rc;
}

/* ---- flat */

static int check_flat_size(const daf__file *f, daf_array *a, daf_error *err) {
    uint64_t n = daf_array_count(a), wanted = n * daf_type_bytes(a->type);
    if (f->size == wanted)
        return 0;
    return daf__fail(err, f->size < wanted ? DAF_ERR_TRUNCATED : DAF_ERR_CORRUPT, 0,
                     f->size < wanted ? f->size : wanted,
                     "%s: %" PRIu64 " bytes are %s than %" PRIu64 " %s values", f->where, f->size,
                     f->size < wanted ? "fewer" : "more", n, daf_type_name(a->type));
}

static void swap_values(daf_array *a) {
    size_t width = daf_type_bytes(a->type);
    for (uint64_t i = 0; i < daf_array_count(a); i++) {
        uint8_t value[DAF__MAX_TYPE_BYTES], *at = (uint8_t *)a->owned + i * width;
        bytes_copy_le(value, at, 1, width);
        memcpy(at, value, width);
    }
}

static int copy_flat(daf__file *f, daf_array *a, daf_error *err) {
    int rc = 0;
    a->owned = malloc(f->size ? (size_t)f->size : 1);
    if (!a->owned)
        return daf__no_memory(err);
    if (f->size)
        rc = f->ops->read(f, a->owned, (size_t)f->size, 0, err);
    if (rc == 0 && !BYTES_HOST_IS_LITTLE)
        swap_values(a);
    a->values = a->owned;
    return rc;
}

static int load_flat(daf__file *f, daf_array *a, daf_error *err) {
    int rc = check_flat_size(f, a, err);
    if (rc)
        return rc;
    if (f->size == 0 || !BYTES_HOST_IS_LITTLE)
        return copy_flat(f, a, err);
    daf_error details;
    rc = f->ops->map(f, &a->map, &details);
    if (rc == DAF_ERR_UNSUPPORTED)
        return copy_flat(f, a, err);
    a->values = a->map.data;
    return rc ? daf__pass(err, &details) : 0;
}

static int load_lines(daf__file *f, daf_array *a, daf_error *err) {
    daf__buf content = {0};
    int rc = daf__file_read_whole(f, &content, UINT64_MAX, err);
    if (rc == 0)
        rc = daf__texts_split(&a->texts, &content, f->where, err);
    if (rc)
        return rc;
    uint64_t wanted = daf_array_count(a);
    if (a->texts.n == wanted)
        return 0;
    return daf__fail(err, a->texts.n < wanted ? DAF_ERR_TRUNCATED : DAF_ERR_CORRUPT, 0, f->size,
                     "%s: too %s lines: %" PRIu64 ", but %" PRIu64 " values are needed", f->where,
                     a->texts.n < wanted ? "few" : "many", a->texts.n, wanted);
}

/* ---- packed */

static int load_shard(daf__file *f, daf_array *a, const daf__property *p, const daf__packing *packing,
                      daf_error *err) {
    daf__grid grid;
    daf__shard shard;
    int rc = daf__grid_make(&grid, p->kind, a->rows, a->columns, packing, f->where, err);
    if (rc == 0)
        rc = daf__shard_open(&shard, f, &grid, a->type, packing->compression, err);
    if (rc)
        return rc;
    if (a->type == DAF_STRING) {
        rc = daf__shard_read_texts(&shard, &a->texts, err);
    } else {
        a->owned = malloc((size_t)daf_array_count(a) * daf_type_bytes(a->type));
        rc = a->owned ? daf__shard_read_values(&shard, a->owned, err) : daf__no_memory(err);
        a->values = a->owned;
    }
    daf__shard_close(&shard);
    return rc;
}

static int load(daf__file *f, daf_array *a, const daf__property *p, const daf__descriptor *d,
                daf_error *err) {
    if (d->packed)
        return load_shard(f, a, p, &d->packing, err);
    return d->type == DAF_STRING ? load_lines(f, a, err) : load_flat(f, a, err);
}

/* ---- one attempt */

typedef struct attempt {
    daf *d;
    const daf__property *property;
    daf__descriptor descriptor;
    daf__stamp stamp; /* of the descriptor */
    daf_array *array;
    bool changed; /* the descriptor was replaced or removed meanwhile */
} attempt;

static int check_readable_form(const attempt *t, daf_error *err) {
    char text[DAF__PROPERTY_TEXT];
    if (t->descriptor.sparse)
        return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0, "%s: %s is sparse, which this version cannot read",
                         t->d->store->path, daf__property_text(text, t->property));
    return 0;
}

static int open_payload(attempt *t, daf__file **ret, daf_error *err) {
    daf__store *s = t->d->store;
    daf__key base = daf__property_key(t->property), json_key = daf__key_with(&base, ".json");
    daf__key key = daf__key_with(&base, daf__payload_suffix(&t->descriptor));
    daf__stamp now;
    daf_error details;
    char where[DAF__WHERE_TEXT];
    daf__file *f = NULL;
    int rc = s->ops->open(s, &f, key.text, &details);
    if (rc == DAF_ERR_MISSING)
        daf__fail(&details, rc, 0, 0, "%s: the payload is missing", daf__store_where(where, s, key.text));
    int looked = s->ops->stamp(s, &now, json_key.text, NULL);
    t->changed = looked == DAF_ERR_MISSING || (looked == 0 && !daf__stamps_equal(&now, &t->stamp));
    if (rc)
        return daf__pass(err, &details);
    *ret = f;
    return 0;
}

static int try_get(attempt *t, daf_error *err) {
    uint64_t rows, columns;
    daf__file *f = NULL;
    t->changed = false;
    int rc = daf__read_descriptor(t->d, &t->descriptor, &t->stamp, t->property, err);
    if (rc == 0)
        rc = check_readable_form(t, err);
    if (rc == 0)
        rc = daf__shape(t->d, t->property, &rows, &columns, err);
    if (rc)
        return rc;
    t->array = daf__array_new(t->descriptor.type, rows, columns);
    if (!t->array)
        return daf__no_memory(err);
    if (rows * columns == 0)
        t->descriptor.packed = false; /* nothing is always flat */
    rc = open_payload(t, &f, err);
    if (rc)
        return rc;
    if (!t->changed)
        rc = load(f, t->array, t->property, &t->descriptor, err);
    daf__file_close(f);
    return rc;
}

int daf__dense_get(daf *d, daf_array **ret, const daf__property *p, daf_error *err) {
    daf_error details;
    int rc = daf__check_readable(p, err);
    if (rc)
        return rc;
    for (unsigned i = 0; i < MAX_ATTEMPTS; i++) {
        attempt t = {.d = d, .property = p};
        rc = try_get(&t, &details);
        if (rc == 0 && !t.changed) {
            *ret = t.array;
            return 0;
        }
        daf_array_free(t.array);
        if (!t.changed)
            return daf__pass(err, &details);
    }
    char text[DAF__PROPERTY_TEXT];
    return daf__fail(err, DAF_ERR_IO, 0, 0, "%s: %s is replaced faster than it can be read", d->store->path,
                     daf__property_text(text, p));
}

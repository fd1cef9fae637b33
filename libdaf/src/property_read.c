/* Descriptor and payloads are several files, which a writer replaces one after the other; the descriptor is looked at
 * again once the payloads are open, and when it is another by then, all is read anew. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "json.h"
#include "property.h"

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

int daf__range_check(const daf_range *r, uint64_t rows, uint64_t columns, daf_error *err) {
    if (r->n_rows <= rows && r->first_row <= rows - r->n_rows && r->n_columns <= columns &&
        r->first_column <= columns - r->n_columns)
        return 0;
    return daf__fail(err, DAF_ERR_ARG, 0, 0,
                     "rows %" PRIu64 " + %" PRIu64 ", columns %" PRIu64 " + %" PRIu64
                     " are not all inside of %" PRIu64 " x %" PRIu64,
                     r->first_row, r->n_rows, r->first_column, r->n_columns, rows, columns);
}

void daf__loaded_free(daf__loaded *l) {
    for (unsigned i = 0; i < DAF__N_PARTS; i++)
        daf_array_free(l->parts[i]);
    *l = (daf__loaded){0};
}

/* ---- one attempt */

typedef struct attempt {
    daf *d;
    const daf__property *property;
    daf__access access;
    const daf_range *range;
    daf__stamp stamp; /* of the descriptor */
    bool changed;     /* the descriptor was replaced or removed meanwhile */
    daf__file *files[DAF__N_PARTS];
    uint64_t rows, columns;
    daf__loaded loaded;
} attempt;

static int open_part(attempt *t, daf__part part, daf_error *err) {
    daf__store *s = t->d->store;
    char where[DAF__WHERE_TEXT];
    daf__key key = daf__part_key(t->property, &t->loaded.descriptor, part);
    daf_error details;
    int rc = s->ops->open(s, &t->files[part], key.text, &details);
    if (rc == 0)
        return 0;
    t->files[part] = NULL;
    if (rc == DAF_ERR_MISSING)
        return daf__fail(err, rc, 0, 0, "%s: the payload is missing", daf__store_where(where, s, key.text));
    return daf__pass(err, &details);
}

static int open_parts(attempt *t, daf_error *err) {
    daf__descriptor *d = &t->loaded.descriptor;
    int rc = 0;
    for (unsigned i = 0; i < DAF__N_PARTS && rc == 0; i++)
        if (d->parts[i].present)
            rc = open_part(t, (daf__part)i, err);
    /* Some writers of the 1.0 form store the values of a Bool property all the same. */
    if (rc == 0 && d->old_form && d->type == DAF_BOOL) {
        rc = open_part(t, DAF__VALUES, err);
        d->parts[DAF__VALUES].present = rc == 0;
        rc = rc == DAF_ERR_MISSING ? 0 : rc;
    }
    return rc;
}

/* Opens the payloads; notes whether they are still those of the descriptor. */
static int open_payloads(attempt *t, daf_error *err) {
    daf__store *s = t->d->store;
    daf__key base = daf__property_key(t->property), json_key = daf__key_with(&base, ".json");
    daf__stamp now;
    int rc = open_parts(t, err);
    int looked = s->ops->stamp(s, &now, json_key.text, NULL);
    t->changed = looked == DAF_ERR_MISSING || (looked == 0 && !daf__stamps_equal(&now, &t->stamp));
    return rc;
}

/* ---- loading */

static int load_dense(attempt *t, daf_error *err) {
    const daf__component *c = &t->loaded.descriptor.parts[DAF__VALUES];
    daf__extent extent = {t->property->kind, t->rows, t->columns};
    daf_array **ret = &t->loaded.parts[DAF__VALUES];
    int rc = t->range ? daf__component_load_range(ret, t->d, t->files[DAF__VALUES], &extent, c, t->range, err)
                      : daf__component_load(ret, t->d, t->files[DAF__VALUES], &extent, c,
                                            t->access == DAF__VIEW_DENSE, err);
    if (rc)
        return rc;
    const daf_array *a = *ret;
    t->loaded.content =
        (daf__content){.kind = t->property->kind, .type = a->type, .rows = a->rows, .columns = a->columns};
    t->loaded.content.data[DAF__VALUES] = a->type == DAF_STRING ? (const void *)a->texts.next : a->values;
    return 0;
}

static int check_count(const attempt *t, daf__part part, uint64_t wanted, daf_error *err) {
    const daf__component *c = &t->loaded.descriptor.parts[part];
    if (!c->counted || c->n_elements == wanted)
        return 0;
    return daf__fail(err, DAF_ERR_CORRUPT, 0, 0,
                     "%s: the descriptor says %" PRIu64 " elements, but there must be %" PRIu64,
                     t->files[part]->where, c->n_elements, wanted);
}

static int load_part(attempt *t, daf__part part, uint64_t n, daf_error *err) {
    daf__extent extent = {DAF__VECTOR, n, 1};
    int rc = check_count(t, part, n, err);
    if (rc)
        return rc;
    return daf__component_load(&t->loaded.parts[part], t->d, t->files[part], &extent,
                               &t->loaded.descriptor.parts[part], t->access == DAF__VIEW_SPARSE, err);
}

bool daf__stored_fit(uint64_t nnz, uint64_t rows, uint64_t columns) {
    uint64_t most;
    return __builtin_mul_overflow(rows, columns, &most) || nnz <= most;
}

int daf__count_stored(uint64_t *ret, const daf__component *c, const daf__file *indices, uint64_t rows,
                      uint64_t columns, daf_error *err) {
    uint64_t nnz = c->n_elements;
    int rc = c->counted ? 0 : daf__component_count(indices, c->type, &nnz, err);
    if (rc == 0 && !daf__stored_fit(nnz, rows, columns))
        rc = daf__fail(err, DAF_ERR_CORRUPT, 0, 0,
                       "%s: %" PRIu64 " stored values are more than %" PRIu64 " x %" PRIu64, indices->where,
                       nnz, rows, columns);
    if (rc == 0)
        *ret = nnz;
    return rc;
}

static int check_rules(const attempt *t, daf_error *err) {
    daf__rule_breach breach;
    daf__file *files[DAF__N_PARTS] = {NULL};
    bool good;
    for (unsigned i = DAF__INDICES; i < DAF__N_PARTS; i++)
        if (t->loaded.parts[i] && daf_array_is_mapped(t->loaded.parts[i]))
            files[i] = t->files[i];
    int rc = daf__content_check(&t->loaded.content, files, &good, &breach, err);
    if (rc || good)
        return rc;
    const daf__component *c = &t->loaded.descriptor.parts[breach.part];
    uint64_t offset = c->packed ? 0 : breach.element * daf_type_bytes(c->type);
    return daf__fail(err, DAF_ERR_CORRUPT, 0, offset, "%s: element %" PRIu64 ": %s",
                     t->files[breach.part]->where, breach.element + 1, breach.text);
}

static int load_sparse(attempt *t, daf_error *err) {
    daf__loaded *l = &t->loaded;
    bool matrix = t->property->kind == DAF__MATRIX;
    uint64_t nnz = 0;
    int rc = daf__count_stored(&nnz, &l->descriptor.parts[DAF__INDICES], t->files[DAF__INDICES], t->rows,
                               t->columns, err);
    if (rc == 0 && matrix)
        rc = load_part(t, DAF__POINTERS, t->columns + 1, err);
    if (rc == 0)
        rc = load_part(t, DAF__INDICES, nnz, err);
    if (rc == 0 && l->descriptor.parts[DAF__VALUES].present)
        rc = load_part(t, DAF__VALUES, nnz, err);
    if (rc)
        return rc;
    l->content = (daf__content){.kind = t->property->kind,
                                .type = l->descriptor.type,
                                .rows = t->rows,
                                .columns = t->columns,
                                .sparse = true,
                                .index_type = l->descriptor.index_type,
                                .nnz = nnz};
    for (unsigned i = 0; i < DAF__N_PARTS; i++) {
        const daf_array *a = l->parts[i];
        if (a)
            l->content.data[i] = a->type == DAF_STRING ? (const void *)a->texts.next : a->values;
    }
    return check_rules(t, err);
}

static int load(attempt *t, daf_error *err) {
    return t->loaded.descriptor.sparse ? load_sparse(t, err) : load_dense(t, err);
}

/* Nothing is always flat. */
static void flatten_empty(attempt *t) {
    daf__descriptor *d = &t->loaded.descriptor;
    for (unsigned i = 0; i < DAF__N_PARTS; i++)
        if (d->sparse ? d->parts[i].n_elements == 0 : t->rows * t->columns == 0)
            d->parts[i].packed = false;
}

static int try_open(attempt *t, daf_error *err) {
    daf__descriptor *d = &t->loaded.descriptor;
    t->changed = false;
    int rc = daf__read_descriptor(t->d, d, &t->stamp, t->property, err);
    if (rc == 0)
        rc = daf__lengths(t->d, t->property, &t->rows, &t->columns, err);
    if (rc == 0 && t->range)
        rc = daf__range_check(t->range, t->rows, t->columns, err);
    if (rc == 0 && !d->sparse)
        rc = daf__check_size(t->d, t->rows, t->columns, err);
    if (rc)
        return rc;
    flatten_empty(t);
    return open_payloads(t, err);
}

static void close_files(attempt *t) {
    for (unsigned i = 0; i < DAF__N_PARTS; i++) {
        daf__file_close(t->files[i]);
        t->files[i] = NULL;
    }
}

/* Opens what is asked for as often as it changes meanwhile. The files are left open. */
static int open_stable(attempt *t, daf_error *err) {
    const attempt wanted = *t;
    daf_error details;
    int rc = daf__check_readable(t->property, err);
    if (rc)
        return rc;
    for (unsigned i = 0; i < MAX_ATTEMPTS; i++) {
        *t = wanted;
        rc = try_open(t, &details);
        if (rc == 0 && !t->changed)
            return 0;
        close_files(t);
        if (!t->changed)
            return daf__pass(err, &details);
    }
    char text[DAF__PROPERTY_TEXT];
    return daf__fail(err, DAF_ERR_IO, 0, 0, "%s: %s is replaced faster than it can be read",
                     t->d->store->path, daf__property_text(text, t->property));
}

int daf__property_load(daf *d, daf__loaded *ret, const daf__property *p, daf__access access,
                       const daf_range *range, daf_error *err) {
    attempt t = {.d = d, .property = p, .access = access, .range = range};
    int rc = open_stable(&t, err);
    if (rc)
        return rc;
    rc = load(&t, err);
    close_files(&t);
    if (rc)
        daf__loaded_free(&t.loaded);
    else
        *ret = t.loaded;
    return rc;
}

int daf__property_open(daf *d, daf__opened *ret, const daf__property *p, daf_error *err) {
    attempt t = {.d = d, .property = p};
    int rc = open_stable(&t, err);
    if (rc)
        return rc;
    daf__opened o = {.descriptor = t.loaded.descriptor, .extent = {p->kind, t.rows, t.columns}};
    memcpy(o.files, t.files, sizeof o.files);
    *ret = o;
    return 0;
}

void daf__opened_close(daf__opened *o) {
    for (unsigned i = 0; i < DAF__N_PARTS; i++)
        daf__file_close(o->files[i]);
    *o = (daf__opened){.descriptor = {.sparse = false}};
}

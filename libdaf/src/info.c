/* What a vector or matrix is, without reading its values; with a look into the payloads, or without. */
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "property.h"
#include "shard.h"

typedef struct survey {
    daf *d;
    const daf__property *property;
    daf__descriptor descriptor;
    daf_info info;
    daf_error *err;
} survey;

/* The bytes of the file; none there: 0. */
static int add_file(survey *s, const char *suffix, uint64_t *bytes) {
    daf__store *store = s->d->store;
    daf__key base = daf__property_key(s->property), key = daf__key_with(&base, suffix);
    daf__stamp stamp;
    daf_error details;
    int rc = store->ops->stamp(store, &stamp, key.text, &details);
    if (rc == 0)
        *bytes += stamp.bytes;
    return rc == 0 || rc == DAF_ERR_MISSING ? 0 : daf__pass(s->err, &details);
}

static int add_packing(survey *s, daf_part_info *part, const daf__extent *x, const daf__packing *packing) {
    daf__grid grid = {.n_chunks = 0};
    daf__key base = daf__property_key(s->property);
    char where[DAF__WHERE_TEXT];
    int rc = 0;
    if (x->rows && x->columns)
        rc = daf__grid_make(&grid, x->kind, x->rows, x->columns, packing,
                            daf__store_where(where, s->d->store, base.text), s->err);
    part->packed = true;
    part->indexed = packing->indexed;
    part->level = packing->level;
    part->chunk_rows = packing->chunk_rows;
    part->chunk_columns = packing->chunk_columns;
    part->n_chunks = grid.n_chunks;
    snprintf(part->compression, sizeof part->compression, "%s", packing->compression);
    return rc;
}

/* The part's elements: by the axes, by the descriptor, by nnz, or by the file's size. */
static daf__extent extent_of(const survey *s, daf__part part, uint64_t disk_bytes) {
    const daf__component *c = &s->descriptor.parts[part];
    uint64_t n = s->info.nnz;
    if (!s->descriptor.sparse)
        return (daf__extent){s->property->kind, s->info.rows, s->info.columns};
    if (part == DAF__POINTERS)
        n = s->info.columns + 1;
    else if (c->counted)
        n = c->n_elements;
    else if (part == DAF__INDICES)
        n = disk_bytes / daf_type_bytes(c->type);
    return (daf__extent){DAF__VECTOR, n, 1};
}

static int add_part(survey *s, daf__part which) {
    const daf__component *c = &s->descriptor.parts[which];
    daf_part_info part = {.type = c->type};
    char suffix[DAF__SUFFIX_TEXT];
    daf__kind kind = s->property->kind;
    int rc = add_file(s, daf__part_suffix(suffix, kind, &s->descriptor, which), &part.disk_bytes);
    if (rc)
        return rc;
    daf__extent x = extent_of(s, which, part.disk_bytes);
    snprintf(part.name, sizeof part.name, "%s", daf__part_name(kind, s->descriptor.sparse, which));
    part.n = x.rows * x.columns;
    part.raw_bytes = part.n * daf_type_bytes(c->type);
    if (c->packed)
        rc = add_packing(s, &part, &x, &c->packing);
    if (which == DAF__INDICES)
        s->info.nnz = part.n;
    s->info.raw_bytes += part.raw_bytes;
    s->info.parts[s->info.n_parts++] = part;
    return rc;
}

static int add_parts(survey *s) {
    static const daf__part order[] = {DAF__POINTERS, DAF__INDICES, DAF__VALUES};
    int rc = 0;
    for (unsigned i = 0; i < DAF__N_PARTS && rc == 0; i++)
        if (s->descriptor.parts[order[i]].present)
            rc = add_part(s, order[i]);
    return rc;
}

static int add_disk_bytes(survey *s) {
    int rc = 0;
    for (const char *const *suffix = daf__suffixes(s->property->kind); *suffix && rc == 0; suffix++)
        rc = add_file(s, *suffix, &s->info.disk_bytes);
    return rc;
}

/* The one part of a dense property is told as the property's own. */
static void copy_packing(daf_info *info) {
    const daf_part_info *part = &info->parts[0];
    info->packed = part->packed;
    info->indexed = part->indexed;
    info->level = part->level;
    info->chunk_rows = part->chunk_rows;
    info->chunk_columns = part->chunk_columns;
    info->n_chunks = part->n_chunks;
    snprintf(info->compression, sizeof info->compression, "%s", part->compression);
}

static int get_info(daf *d, daf_info *ret, const daf__property *p, daf_error *err) {
    survey s = {.d = d, .property = p, .info = {.columns = 1}, .err = err};
    int rc = daf__check_readable(p, err);
    if (rc == 0)
        rc = daf__read_descriptor(d, &s.descriptor, NULL, p, err);
    if (rc == 0)
        rc = daf__lengths(d, p, &s.info.rows, &s.info.columns, err);
    if (rc == 0 && !s.descriptor.sparse)
        rc = daf__check_size(d, s.info.rows, s.info.columns, err);
    if (rc)
        return rc;
    s.info.type = s.descriptor.type;
    s.info.sparse = s.descriptor.sparse;
    s.info.index_type = s.descriptor.index_type;
    rc = add_parts(&s);
    if (s.descriptor.sparse)
        s.info.packed = daf__descriptor_is_packed(&s.descriptor);
    else
        copy_packing(&s.info);
    if (rc == 0)
        rc = add_disk_bytes(&s);
    if (rc == 0)
        *ret = s.info;
    return rc;
}

/* ---- the payloads */

static int examine_part(daf *d, daf_part_info *part, const daf__opened *o, daf__part which, daf_error *err) {
    const daf__component *c = &o->descriptor.parts[which];
    daf__extent x = o->extent;
    uint64_t raw_bytes = part->raw_bytes;
    if (o->descriptor.sparse)
        x = (daf__extent){DAF__VECTOR, part->n, 1};
    int rc = daf__component_examine(d, o->files[which], &x, c, &raw_bytes, &part->n_stored, err);
    part->raw_bytes = raw_bytes;
    return rc;
}

static daf__part part_named(const daf__property *p, const daf__descriptor *d, const char *name) {
    unsigned i = DAF__VALUES;
    while (i + 1 < DAF__N_PARTS && strcmp(name, daf__part_name(p->kind, d->sparse, (daf__part)i)) != 0)
        i++;
    return (daf__part)i;
}

static int examine(daf *d, daf_info *ret, const daf__property *p, daf_error *err) {
    daf_info info;
    daf__opened o;
    int rc = get_info(d, &info, p, err);
    if (rc == 0)
        rc = daf__property_open(d, &o, p, err);
    if (rc)
        return rc;
    info.raw_bytes = 0;
    if (o.descriptor.sparse)
        rc = daf__count_stored(&info.nnz, &o.descriptor.parts[DAF__INDICES], o.files[DAF__INDICES],
                               o.extent.rows, o.extent.columns, err);
    for (unsigned i = 0; i < info.n_parts && rc == 0; i++) {
        daf__part which = part_named(p, &o.descriptor, info.parts[i].name);
        if (o.files[which]) /* else it was replaced just now by one without */
            rc = examine_part(d, &info.parts[i], &o, which, err);
        info.raw_bytes += info.parts[i].raw_bytes;
    }
    daf__opened_close(&o);
    if (rc == 0)
        *ret = info;
    return rc;
}

int daf_examine_vector(daf *d, daf_info *ret, const char *axis, const char *name, daf_error *err) {
    daf__property p = daf__vector_property(axis, name);
    return examine(d, ret, &p, err);
}

int daf_examine_matrix(daf *d, daf_info *ret, const char *rows, const char *columns, const char *name,
                       daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, name);
    return examine(d, ret, &p, err);
}

int daf_vector_info(daf *d, daf_info *ret, const char *axis, const char *name, daf_error *err) {
    daf__property p = daf__vector_property(axis, name);
    return get_info(d, ret, &p, err);
}

int daf_matrix_info(daf *d, daf_info *ret, const char *rows, const char *columns, const char *name,
                    daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, name);
    return get_info(d, ret, &p, err);
}

/* Reordering an axis with all that lies on it (specification section 7). The store first backs up every file that will
 * change; then the axis and each property are rewritten, one change each, in the form that they have; then the index.
 * When anything fails the backup is rolled back; after a kill the next writable open does that. */
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "codec.h"
#include "error.h"
#include "property.h"

typedef struct reorder {
    daf *d;
    const char *axis;
    const uint64_t *order;
    uint64_t n;
    daf_names keys;  /* of the vectors and matrices on the axis */
    daf_names files; /* theirs and the axis' */
} reorder;

/* ---- what is asked for */

static int check_order(const reorder *r, daf_error *err) {
    uint64_t length;
    int rc = daf_axis_length(r->d, &length, r->axis, err);
    if (rc)
        return rc;
    if (r->n != length)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "axis \"%.60s\" has %llu entries, not %llu", r->axis,
                         (unsigned long long)length, (unsigned long long)r->n);
    bool *seen = calloc((size_t)r->n + 1, sizeof *seen);
    if (!seen)
        return daf__no_memory(err);
    for (uint64_t i = 0; i < r->n && rc == 0; i++) {
        if (r->order[i] >= r->n || seen[r->order[i]])
            rc = daf__fail(
                err, DAF_ERR_ARG, 0, 0,
                "axis \"%.60s\": %llu at place %llu of the new order is out of range or stands twice",
                r->axis, (unsigned long long)r->order[i], (unsigned long long)i);
        else
            seen[r->order[i]] = true;
    }
    free(seen);
    return rc;
}

static int check(const reorder *r, daf_error *err) {
    const daf *d = r->d;
    daf__property axis = daf__axis_property(r->axis);
    int rc = daf__handle_is_writable(d, err);
    if (rc)
        return rc;
    if (d->store->append_only)
        return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0, "ZipDaf is append-only; can't reorder in: %s",
                         daf__store_full_path(d->store));
    if (r->n > 0 && !r->order)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "the new order is NULL");
    rc = daf__check_readable(&axis, err);
    return rc ? rc : check_order(r, err);
}

/* ---- what lies on the axis */

/* The parts of a property's key; they point into `key`, whose slashes become ends. */
static daf__property split_key(daf__kind kind, daf__key *key) {
    char *parts[4] = {key->text};
    for (unsigned i = 1; i < 4 && parts[i - 1]; i++) {
        parts[i] = strchr(parts[i - 1], '/');
        if (parts[i])
            *parts[i]++ = 0;
    }
    return kind == DAF__MATRIX ? daf__matrix_property(parts[1], parts[2], parts[3])
                               : daf__vector_property(parts[1], parts[2]);
}

static int add_files(reorder *r, daf__kind kind, const daf__key *base, daf_error *err) {
    /* The descriptor last: a backup that holds it is whole. */
    const char *const *suffixes = daf__suffixes(kind);
    size_t n = 0;
    int rc = 0;
    while (suffixes[n])
        n++;
    while (n-- > 0 && rc == 0) {
        daf__key key = daf__key_with(base, suffixes[n]);
        bool there;
        rc = daf__store_has(r->d->store, &there, key.text, err);
        if (rc == 0 && there)
            rc = daf__names_add(&r->files, key.text, strlen(key.text), err);
    }
    return rc;
}

static int collect(void *context, daf__kind kind, const daf__key *key, daf_error *err) {
    reorder *r = context;
    daf__key copy = *key;
    bool on_axis = kind == DAF__AXIS && strcmp(key->text + strlen("axes/"), r->axis) == 0;
    bool is_property = kind == DAF__VECTOR || kind == DAF__MATRIX;
    if (is_property) {
        daf__property p = split_key(kind, &copy);
        on_axis = strcmp(p.axis, r->axis) == 0 || (p.columns && strcmp(p.columns, r->axis) == 0);
    }
    if (!on_axis)
        return 0;
    int rc = is_property ? daf__names_add(&r->keys, key->text, strlen(key->text), err) : 0;
    return rc ? rc : add_files(r, kind, key, err);
}

/* ---- rewriting */

/* What cannot be written as it was read is written as it should be. */
static void normalize(daf__descriptor *d) {
    for (unsigned i = 0; i < DAF__N_PARTS; i++) {
        daf__packing *p = &d->parts[i].packing;
        daf_codec codec;
        if (!d->parts[i].packed)
            continue;
        p->indexed = true;
        if (daf_codec_parse(&codec, p->compression) != 0)
            continue;
        const daf__codec_row *row = daf__codec_row_of(codec);
        p->level = p->level < row->level_min ? row->level_min : p->level;
        p->level = p->level > row->level_max ? row->level_max : p->level;
    }
}

/* Nobody else writes; but a file may be damaged while it is read. */
static int check_length(const reorder *r, uint64_t n, daf_error *err) {
    if (n == r->n)
        return 0;
    return daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "%s: the length of axis \"%.60s\" changed meanwhile",
                     r->d->store->path, r->axis);
}

static int rewrite_property(const reorder *r, const daf__property *p, daf_error *err) {
    daf__loaded loaded;
    daf__content content = {0};
    daf__edit e;
    const uint64_t *rows = strcmp(p->axis, r->axis) == 0 ? r->order : NULL;
    const uint64_t *columns = p->columns && strcmp(p->columns, r->axis) == 0 ? r->order : NULL;
    int rc = daf__property_load(r->d, &loaded, p, DAF__COPY, NULL, err);
    if (rc)
        return rc;
    if (rows)
        rc = check_length(r, loaded.content.rows, err);
    if (rc == 0 && columns)
        rc = check_length(r, loaded.content.columns, err);
    if (rc == 0)
        rc = daf__content_permute(&content, &loaded.content, rows, columns, err);
    if (rc == 0) {
        normalize(&loaded.descriptor);
        rc = daf__edit_begin(&e, r->d, err);
        if (rc == 0)
            rc = daf__property_stage(&e, p, &content, &loaded.descriptor, true, err);
        rc = daf__edit_end(&e, rc, err);
    }
    daf__content_free(&content);
    daf__loaded_free(&loaded);
    return rc;
}

static int stage_entries(const reorder *r, daf__edit *e, const daf_array *entries, const char **texts,
                         daf_error *err) {
    daf__property axis = daf__axis_property(r->axis);
    daf__key base = daf__property_key(&axis), key = daf__key_with(&base, ".txt");
    daf__out *out;
    for (uint64_t i = 0; i < r->n; i++)
        texts[i] = entries->texts.next[r->order[i]];
    int rc = daf__edit_create(e, &out, err);
    if (rc)
        return rc;
    rc = daf__texts_write(out, texts, r->n, err);
    return daf__edit_put(e, key.text, out, rc, err);
}

static int rewrite_axis(const reorder *r, daf_error *err) {
    daf_array *entries;
    daf__edit e;
    int rc = daf_get_axis(r->d, &entries, r->axis, err);
    if (rc)
        return rc;
    const char **texts = malloc(((size_t)r->n + 1) * sizeof *texts);
    rc = daf__edit_begin(&e, r->d, err);
    if (rc == 0)
        rc = check_length(r, entries->rows, err);
    if (rc == 0)
        rc = texts ? stage_entries(r, &e, entries, texts, err) : daf__no_memory(err);
    rc = daf__edit_end(&e, rc, err);
    free(texts);
    daf_array_free(entries);
    return rc;
}

/* The vectors come before the matrices, as the walk found them. */
static int rewrite_all(const reorder *r, daf_error *err) {
    int rc = rewrite_axis(r, err);
    for (size_t i = 0; i < r->keys.n && rc == 0; i++) {
        daf__key key;
        memcpy(key.text, r->keys.names[i], strlen(r->keys.names[i]) + 1);
        daf__property p = split_key(key.text[0] == 'v' ? DAF__VECTOR : DAF__MATRIX, &key);
        rc = rewrite_property(r, &p, err);
    }
    return rc;
}

/* ---- the whole */

/* The index as a rebuild would write it, on the disk before the backup goes. */
static int finish(const reorder *r, bool in_batch, bool *written, daf_error *err) {
    daf *d = r->d;
    daf_names none = {0};
    int rc = d->store->keeps_metadata ? daf__metadata_note_removed(&d->metadata, &none, err) : 0;
    if (rc == 0 && !in_batch && d->store->keeps_metadata)
        rc = daf__edit_write_metadata(d, err);
    *written = rc == 0;
    if (rc == 0)
        rc = d->store->ops->settle(d->store, err);
    return rc ? rc : d->store->ops->drop_backup(d->store, err);
}

/* The index that was there before tells what is there again. */
static bool keep_index(daf *d) {
    daf__change c = {0};
    int rc = daf__change_remove(&c, DAF__METADATA_STALE_KEY, NULL);
    if (rc == 0)
        rc = d->store->ops->apply(d->store, &c, NULL);
    daf__change_free(&c);
    return rc == 0;
}

/* Leaves the first failure to be told. `written`: the index was written since; was_stale: it told no truth before. */
static void roll_back(const reorder *r, bool in_batch, bool was_stale, bool written) {
    daf *d = r->d;
    if (d->store->ops->restore(d->store, NULL) != 0 || !d->store->keeps_metadata)
        return;
    daf__metadata_distrust(&d->metadata);
    d->metadata.is_stale = written || was_stale || !keep_index(d);
    if (!in_batch && d->metadata.is_stale && daf__edit_write_metadata(d, NULL) == 0)
        (void)d->store->ops->settle(d->store, NULL);
}

/* Each property is a change of a batch, so that the index is written once. */
static int perform(const reorder *r, daf_error *err) {
    daf *d = r->d;
    bool in_batch = d->in_batch, was_stale = d->metadata.is_stale, written = false;
    int rc = d->store->ops->backup(d->store, &r->files, err);
    if (rc)
        return rc;
    d->in_batch = d->store->batching = true;
    rc = rewrite_all(r, err);
    d->in_batch = d->store->batching = in_batch;
    if (rc == 0)
        rc = finish(r, in_batch, &written, err);
    if (rc)
        roll_back(r, in_batch, was_stale, written);
    return rc;
}

int daf_reorder_axis(daf *d, const char *axis, const uint64_t *order, uint64_t n, daf_error *err) {
    reorder r = {.d = d, .axis = axis, .order = order, .n = n};
    int rc = check(&r, err);
    if (rc == 0)
        rc = daf__walk(d->store, DAF__LIST_FILES, collect, &r, err);
    if (rc == 0)
        rc = perform(&r, err);
    daf_names_clear(&r.keys);
    daf_names_clear(&r.files);
    return rc;
}

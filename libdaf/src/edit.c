#include "edit.h"

#include <errno.h>
#include <string.h>

#include "error.h"

int daf__edit_begin(daf__edit *e, daf *d, daf_error *err) {
    *e = (daf__edit){.d = d};
    return daf__handle_is_writable(d, err);
}

int daf__edit_create(daf__edit *e, daf__out **ret, daf_error *err) {
    return e->d->store->ops->create(e->d->store, ret, err);
}

int daf__edit_put(daf__edit *e, const char *key, daf__out *out, int rc, daf_error *err) {
    if (rc == 0)
        return daf__change_put(&e->change, key, out, err);
    daf__out_discard(out);
    return rc;
}

int daf__edit_put_bytes(daf__edit *e, const char *key, const void *data, size_t bytes, daf_error *err) {
    daf__out *out;
    int rc = daf__edit_create(e, &out, err);
    if (rc)
        return rc;
    rc = daf__out_append(out, data, bytes, err);
    return daf__edit_put(e, key, out, rc, err);
}

static bool is_spared(const char *suffix, const char *const *spare) {
    for (; spare && *spare; spare++)
        if (strcmp(suffix, *spare) == 0)
            return true;
    return false;
}

int daf__edit_check_removal(const daf *d, const daf__property *p, daf_error *err) {
    static const char *const kinds[] = {
        [DAF__SCALAR] = "scalar", [DAF__AXIS] = "axis", [DAF__VECTOR] = "vector", [DAF__MATRIX] = "matrix"};
    bool on_axis = p->kind == DAF__VECTOR || p->kind == DAF__MATRIX;
    bool on_two = p->kind == DAF__MATRIX;
    if (!d->store->append_only)
        return 0;
    return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0,
                     "ZipDaf is append-only; can't delete %s: %s%s%s%s%s in: %s", kinds[p->kind],
                     on_axis ? p->axis : "", on_axis ? " / " : "", on_two ? p->columns : "",
                     on_two ? " / " : "", p->name, daf__store_full_path(d->store));
}

int daf__edit_remove(daf__edit *e, const daf__property *p, const char *const *spare, daf_error *err) {
    daf__key base = daf__property_key(p);
    const char *const *suffix = daf__suffixes(p->kind);
    int rc = daf__edit_check_removal(e->d, p, err);
    if (rc)
        return rc;
    rc = daf__names_add(&e->leaving, base.text, strlen(base.text), err);
    for (; *suffix && rc == 0; suffix++) {
        daf__key key = daf__key_with(&base, *suffix);
        if (!is_spared(*suffix, spare))
            rc = daf__change_remove(&e->change, key.text, err);
    }
    e->removes = true;
    return rc;
}

int daf__edit_list(daf__edit *e, const daf__key *key, const void *descriptor, size_t bytes, daf_error *err) {
    daf__listed *listed = &e->listed[e->n_listed++];
    listed->key = *key;
    daf__buf_append(&listed->descriptor, descriptor, bytes);
    return daf__buf_check(&listed->descriptor, err);
}

uint64_t daf__edit_listed_bytes(const daf__edit *e) {
    const daf__listed *l = &e->listed[0];
    daf__key json = daf__key_with(&l->key, ".json"); /* which is not put again when it stays the same */
    uint64_t bytes = l->descriptor.size;
    for (size_t i = 0; e->n_listed && i < e->change.n_steps; i++) {
        const daf__step *step = &e->change.steps[i];
        bool payload =
            strncmp(step->key, json.text, strlen(l->key.text) + 1) == 0 && strcmp(step->key, json.text) != 0;
        bytes += step->out && payload ? step->out->size : 0;
    }
    return bytes;
}

static int note(daf__edit *e, daf_error *err) {
    daf__metadata *m = &e->d->metadata;
    int rc = e->removes ? daf__metadata_note_removed(m, &e->leaving, err) : 0;
    for (unsigned i = 0; i < e->n_listed && rc == 0; i++) {
        const daf__listed *l = &e->listed[i];
        rc = daf__metadata_note_set(m, l->key.text, l->descriptor.data, l->descriptor.size, err);
    }
    return rc;
}

int daf__edit_put_metadata(daf__edit *e, daf_error *err) {
    daf__metadata *m = &e->d->metadata;
    daf__out *out;
    int rc = daf__metadata_render(m, e->d->store, &e->leaving, &out, err);
    if (rc)
        return rc;
    rc = daf__edit_put(e, DAF__METADATA_KEY, out, 0, err);
    return rc || !m->is_stale ? rc : daf__change_remove(&e->change, DAF__METADATA_STALE_KEY, err);
}

/* ---- removing on a full disk */

static bool is_full(const daf_error *e) {
    return e->os_errno == ENOSPC || e->os_errno == EDQUOT;
}

static bool only_removes(const daf__edit *e) {
    return e->removes && e->n_listed == 0 && e->change.n_steps > 0;
}

static int remove_key(daf *d, const char *key, daf_error *err) {
    daf__change c = {0};
    int rc = daf__change_remove(&c, key, err);
    if (rc == 0)
        rc = d->store->ops->apply(d->store, &c, err);
    daf__change_free(&c);
    return rc;
}

/* There is no room for a journal or a new index. Each file goes by itself, the descriptor first; the index, which the
 * next writable open would make, goes before them, and is made anew when they have left room for it. */
static int remove_one_by_one(daf__edit *e, daf_error *err) {
    daf *d = e->d;
    int rc = remove_key(d, DAF__METADATA_KEY, err);
    for (size_t i = 0; i < e->change.n_steps && rc == 0; i++)
        if (e->change.steps[i].kind == DAF__STEP_REMOVE)
            rc = remove_key(d, e->change.steps[i].key, err);
    daf__metadata_distrust(&d->metadata);
    if (rc == 0 && !d->in_batch)
        (void)daf__edit_write_metadata(d, NULL);
    return rc;
}

/* ---- applying */

/* The index is part of the change. */
static int apply_with_metadata(daf__edit *e, daf_error *err) {
    daf *d = e->d;
    daf_error details;
    int rc = note(e, &details);
    if (rc == 0)
        rc = daf__edit_put_metadata(e, &details);
    if (rc == 0)
        rc = d->store->ops->apply(d->store, &e->change, &details);
    if (rc && is_full(&details) && only_removes(e))
        return remove_one_by_one(e, err);
    if (rc) {
        daf__metadata_distrust(&d->metadata);
        return daf__pass(err, &details);
    }
    daf__metadata_taken(&d->metadata);
    d->metadata.is_stale = false;
    return 0;
}

/* A batch that is killed leaves an index which lists the names of before: additions show, other descriptors under the
 * same name do not, so that a file has to tell of them. */
static int apply_in_batch(daf__edit *e, daf_error *err) {
    daf *d = e->d;
    bool mark = d->store->keeps_metadata && e->removes && !d->metadata.is_stale;
    daf_error details;
    int rc = mark ? daf__edit_put_bytes(e, DAF__METADATA_STALE_KEY, "", 0, &details) : 0;
    if (rc == 0)
        rc = d->store->ops->apply(d->store, &e->change, &details);
    if (rc && d->store->keeps_metadata && is_full(&details) && only_removes(e))
        return remove_one_by_one(e, err);
    if (rc == 0 && mark)
        d->metadata.is_stale = true;
    if (d->store->keeps_metadata && (rc || note(e, NULL) != 0))
        daf__metadata_distrust(&d->metadata);
    return rc ? daf__pass(err, &details) : 0;
}

static int apply(daf__edit *e, daf_error *err) {
    daf *d = e->d;
    if (d->in_batch)
        return apply_in_batch(e, err);
    int rc = d->store->keeps_metadata ? apply_with_metadata(e, err)
                                      : d->store->ops->apply(d->store, &e->change, err);
    return rc ? rc : d->store->ops->settle(d->store, err);
}

int daf__edit_write_metadata(daf *d, daf_error *err) {
    daf__edit e = {.d = d};
    int rc = daf__edit_put_metadata(&e, err);
    if (rc == 0)
        rc = d->store->ops->apply(d->store, &e.change, err);
    if (rc == 0) {
        daf__metadata_taken(&d->metadata);
        d->metadata.is_stale = false;
    }
    daf__change_free(&e.change);
    return rc;
}

int daf__edit_end(daf__edit *e, int rc, daf_error *err) {
    if (rc == 0)
        rc = apply(e, err);
    if (rc == 0 && e->raises_minor)
        e->d->minor = 1;
    daf__change_free(&e->change);
    daf_names_clear(&e->leaving);
    for (unsigned i = 0; i < e->n_listed; i++)
        daf__buf_free(&e->listed[i].descriptor);
    return rc;
}

#include "metadata.h"

#include <string.h>

#include "error.h"

void daf__metadata_distrust(daf__metadata *m) {
    daf__metadata_list_clear(&m->listed);
    daf__metadata_list_clear(&m->written);
    daf__metadata_list_clear(&m->appended);
    m->knows = false;
    m->rebuild = true;
    m->shared = 0;
}

void daf__metadata_free(daf__metadata *m) {
    daf__metadata_distrust(m);
    daf__buf_free(&m->bytes);
    daf__buf_free(&m->rebuilt);
    daf__buf_free(&m->tail);
}

int daf__metadata_note_set(daf__metadata *m, const char *key, const void *descriptor, size_t bytes,
                           daf_error *err) {
    if (bytes > 0 && ((const char *)descriptor)[bytes - 1] == '\n')
        bytes--;
    return daf__metadata_list_add(&m->appended, key, descriptor, bytes, err);
}

/* What was set before is part of the rebuild. */
static int settle_appended(daf__metadata *m, daf_error *err) {
    if (m->knows)
        return daf__metadata_list_move(&m->written, &m->appended, err);
    daf__metadata_list_clear(&m->appended); /* it is in the tree */
    return 0;
}

int daf__metadata_note_removed(daf__metadata *m, const daf_names *leaving, daf_error *err) {
    int rc = settle_appended(m, err);
    if (rc == 0)
        rc = daf__metadata_list_merge(&m->listed, &m->written, err);
    if (rc)
        return rc;
    daf__metadata_list_remove(&m->listed, leaving);
    m->rebuild = true;
    return 0;
}

bool daf__metadata_is_due(const daf__metadata *m) {
    return m->rebuild || m->appended.n || m->is_stale;
}

/* ---- rendering */

static void add_entry(daf__buf *out, bool first, const daf__metadata_entry *e) {
    if (!first)
        daf__buf_append(out, ",", 1);
    daf__buf_append(out, e->text, e->text_bytes);
}

static int rebuild(daf__metadata *m, daf__store *s, const daf_names *leaving, daf_error *err) {
    if (!m->knows) {
        daf__metadata_list_clear(&m->listed);
        int rc = daf__metadata_read_tree(&m->listed, s, leaving, &m->appended, err);
        if (rc)
            return rc;
        m->knows = true;
    }
    int rc = daf__metadata_list_merge(&m->listed, &m->written, err);
    if (rc)
        return rc;
    m->rebuilt.size = 0;
    daf__buf_append(&m->rebuilt, "{", 1);
    for (size_t i = 0; i < m->listed.n; i++)
        add_entry(&m->rebuilt, i == 0, &m->listed.entries[i]);
    daf__buf_append(&m->rebuilt, "}", 1);
    return daf__buf_check(&m->rebuilt, err);
}

/* A new out, which may hold the beginning of the content already. */
static int begin(const daf__metadata *m, daf__store *s, daf__out **ret, daf_error *err) {
    bool extends = !m->rebuild && m->shared && s->ops->extend_metadata;
    *ret = NULL;
    int rc = extends ? s->ops->extend_metadata(s, ret, m->shared, err) : 0;
    return rc || *ret ? rc : s->ops->create(s, ret, err);
}

static int fill(daf__metadata *m, daf__out *out, daf_error *err) {
    const daf__buf *base = m->rebuild ? &m->rebuilt : &m->bytes;
    m->tail.size = 0;
    for (size_t i = 0; i < m->appended.n; i++)
        add_entry(&m->tail, i == 0 && base->size == 2, &m->appended.entries[i]);
    daf__buf_append(&m->tail, "}", 1);
    int rc = daf__buf_check(&m->tail, err);
    size_t there = (size_t)out->size;
    if (rc == 0)
        rc = daf__out_append(out, base->data + there, base->size - 1 - there, err);
    return rc ? rc : daf__out_append(out, m->tail.data, m->tail.size, err);
}

int daf__metadata_render(daf__metadata *m, daf__store *s, const daf_names *leaving, daf__out **ret,
                         daf_error *err) {
    daf__out *out;
    int rc = 0;
    m->rebuild = m->rebuild || m->bytes.size < 2;
    if (m->rebuild)
        rc = rebuild(m, s, leaving, err);
    if (rc == 0)
        rc = begin(m, s, &out, err);
    if (rc)
        return rc;
    rc = fill(m, out, err);
    if (rc)
        daf__out_discard(out);
    else
        *ret = out;
    return rc;
}

void daf__metadata_taken(daf__metadata *m) {
    bool rebuilt = m->rebuild;
    if (rebuilt) {
        daf__buf_free(&m->bytes);
        m->bytes = m->rebuilt;
        m->rebuilt = (daf__buf){0};
    }
    m->bytes.size--;
    m->shared = rebuilt ? 0 : m->bytes.size;
    daf__buf_append(&m->bytes, m->tail.data, m->tail.size);
    m->rebuild = false;
    if (m->bytes.failed || settle_appended(m, NULL) != 0) {
        daf__buf_free(&m->bytes); /* the file is right; the next one is read from the tree */
        daf__metadata_distrust(m);
    }
}

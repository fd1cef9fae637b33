#include "metadata.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "json.h"
#include "scalar.h"
#include "text.h"
#include "utf8.h"

#define MAX_METADATA_BYTES ((uint64_t)64 << 20) /* a larger one is rebuilt rather than parsed */

void daf__metadata_forget(daf__metadata *m) {
    for (size_t i = 0; i < m->n_appended; i++) {
        free(m->appended[i].key);
        free(m->appended[i].descriptor);
    }
    m->n_appended = 0;
}

void daf__metadata_free(daf__metadata *m) {
    daf__metadata_forget(m);
    free(m->appended);
    daf__buf_free(&m->bytes);
    *m = (daf__metadata){0};
}

int daf__metadata_note_set(daf__metadata *m, const char *key, const void *descriptor, size_t bytes,
                           daf_error *err) {
    if (m->n_appended == m->capacity) {
        size_t capacity = m->capacity ? 2 * m->capacity : 8;
        daf__metadata_entry *grown = realloc(m->appended, capacity * sizeof *grown);
        if (!grown)
            return daf__no_memory(err);
        m->appended = grown;
        m->capacity = capacity;
    }
    if (bytes > 0 && ((const char *)descriptor)[bytes - 1] == '\n')
        bytes--;
    daf__metadata_entry e = {.key = strdup(key), .descriptor = daf__copy_text(descriptor, bytes)};
    if (!e.key || !e.descriptor) {
        free(e.key);
        free(e.descriptor);
        return daf__no_memory(err);
    }
    m->appended[m->n_appended++] = e;
    return 0;
}

void daf__metadata_note_removed(daf__metadata *m) {
    daf__metadata_forget(m);
    m->rebuild = true;
}

void daf__metadata_taken(daf__metadata *m, daf__buf *rendered) {
    daf__metadata_forget(m);
    m->rebuild = false;
    daf__buf_free(&m->bytes);
    m->bytes = *rendered;
    *rendered = (daf__buf){0};
}

/* ---- rendering */

/* Puts `"KEY":DESCRIPTOR}` in the place of the last byte. */
static void append_entry(daf__buf *out, const char *key, const char *descriptor, size_t bytes) {
    bool first = out->size == 2;
    if (out->size > 0)
        out->size--;
    if (!first)
        daf__buf_append(out, ",", 1);
    daf__json_string(out, key, strlen(key));
    daf__buf_append(out, ":", 1);
    daf__buf_append(out, descriptor, bytes);
    daf__buf_append(out, "}", 1);
}

typedef struct rebuild_context {
    daf__store *store;
    daf__buf *out;
    const char **appended; /* their keys, sorted */
    size_t n_appended;
    const daf_names *leaving;
} rebuild_context;

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_leaving(const daf_names *leaving, const char *key) {
    for (size_t i = 0; leaving && i < leaving->n; i++) {
        const char *name = leaving->names[i];
        size_t n = strlen(name);
        if (n > 0 && name[n - 1] == '/' ? strncmp(key, name, n) == 0 : strcmp(key, name) == 0)
            return true;
    }
    return false;
}

static int add_axis(rebuild_context *c, const daf__key *key, daf_error *err) {
    daf__key path = daf__key_with(key, ".txt");
    daf__file *f;
    int rc = c->store->ops->open(c->store, &f, path.text, err);
    if (rc)
        return rc;
    uint64_t n;
    rc = daf__count_lines(f, &n, err);
    daf__file_close(f);
    if (rc)
        return rc;
    daf__buf text = {0};
    daf__buf_printf(&text, "{\"format\":\"axis\",\"n_entries\":%" PRIu64 "}", n);
    if (!text.failed)
        append_entry(c->out, key->text, (const char *)text.data, text.size);
    c->out->failed |= text.failed;
    daf__buf_free(&text);
    return 0;
}

/* Appends the descriptor as it stands, or without its blanks when it spans lines. */
static void append_descriptor(daf__buf *out, const char *key, const char *text, size_t bytes) {
    while (bytes > 0 && strchr(" \t\r\n", text[bytes - 1]))
        bytes--;
    daf__buf compact = {0};
    if (memchr(text, '\n', bytes) || memchr(text, '\r', bytes)) {
        daf__json_compact(&compact, text, bytes);
        text = (const char *)compact.data;
        bytes = compact.size;
    }
    out->failed |= compact.failed;
    if (!out->failed)
        append_entry(out, key, text, bytes);
    daf__buf_free(&compact);
}

/* A scalar whose value is a bare NaN or Infinity reads, but is no JSON: it is listed as we would write it. */
static bool respell_scalar(daf__buf *text, const char *where) {
    daf_scalar scalar;
    if (daf__scalar_parse(&scalar, text->data, text->size, where, NULL) != 0)
        return false;
    text->size = 0;
    daf__scalar_write(text, &scalar);
    daf_scalar_clear(&scalar);
    return !text->failed;
}

static int add_described(rebuild_context *c, daf__kind kind, const daf__key *key, daf_error *err) {
    daf__key path = daf__key_with(key, ".json");
    daf__buf text = {0};
    json_t *object;
    int rc = daf__store_read(c->store, &text, NULL, path.text, DAF__MAX_JSON_BYTES, err);
    if (rc)
        return rc;
    int parsed = daf__json_object(&object, text.data, text.size, path.text, NULL);
    if (parsed == 0)
        json_decref(object);
    else if (parsed == DAF_ERR_NOMEM)
        rc = daf__no_memory(err);
    /* A broken descriptor would break the whole index. */
    if (parsed == 0 || (kind == DAF__SCALAR && respell_scalar(&text, path.text)))
        append_descriptor(c->out, key->text, (const char *)text.data, text.size);
    daf__buf_free(&text);
    return rc;
}

/* Other keys cannot stand in JSON. */
static bool is_utf8(const daf__key *key) {
    return daf__utf8_prefix(key->text, strlen(key->text)) == strlen(key->text);
}

static int add_walked(void *context, daf__kind kind, const daf__key *key, daf_error *err) {
    rebuild_context *c = context;
    const char *text = key->text;
    if (!is_utf8(key) || is_leaving(c->leaving, text))
        return 0;
    if (c->n_appended && bsearch(&text, c->appended, c->n_appended, sizeof *c->appended, compare_texts))
        return 0;
    daf_error details;
    int rc = kind == DAF__AXIS ? add_axis(c, key, &details) : add_described(c, kind, key, &details);
    if (rc == DAF_ERR_MISSING || rc == DAF_ERR_LIMIT || rc == DAF_ERR_CORRUPT)
        return 0; /* gone meanwhile, or nothing that could be listed */
    return rc ? daf__pass(err, &details) : 0;
}

static int rebuild(const daf__metadata *m, daf__store *s, const daf_names *leaving, daf__buf *out,
                   daf_error *err) {
    rebuild_context c = {.store = s, .out = out, .leaving = leaving, .n_appended = m->n_appended};
    c.appended = malloc((m->n_appended + 1) * sizeof *c.appended);
    if (!c.appended)
        return daf__no_memory(err);
    for (size_t i = 0; i < m->n_appended; i++)
        c.appended[i] = m->appended[i].key;
    qsort(c.appended, c.n_appended, sizeof *c.appended, compare_texts);
    daf__buf_text(out, "{}");
    int rc = daf__walk(s, add_walked, &c, err);
    free(c.appended);
    return rc;
}

int daf__metadata_render(const daf__metadata *m, daf__store *s, const daf_names *leaving, daf__buf *ret,
                         daf_error *err) {
    daf__buf out = {0};
    int rc = 0;
    if (m->rebuild || m->bytes.size < 2)
        rc = rebuild(m, s, leaving, &out, err);
    else
        daf__buf_append(&out, m->bytes.data, m->bytes.size);
    for (size_t i = 0; i < m->n_appended && rc == 0; i++)
        append_entry(&out, m->appended[i].key, m->appended[i].descriptor, strlen(m->appended[i].descriptor));
    if (rc == 0)
        rc = daf__buf_check(&out, err);
    if (rc) {
        daf__buf_free(&out);
        return rc;
    }
    *ret = out;
    return 0;
}

/* ---- loading */

typedef struct compare_context {
    json_t *listed;
    size_t n_walked;
    bool differs;
} compare_context;

static int compare_walked(void *context, daf__kind kind, const daf__key *key, daf_error *err) {
    (void)kind;
    (void)err;
    compare_context *c = context;
    if (!is_utf8(key))
        return 0;
    c->n_walked++;
    if (!json_object_get(c->listed, key->text))
        c->differs = true;
    return 0;
}

/* The file can be appended to as it stands: an object, and its last byte closes it. */
static bool is_appendable(const daf__buf *b) {
    return b->size >= 2 && b->data[b->size - 1] == '}' && (b->size == 2 || b->data[b->size - 2] == '}');
}

int daf__metadata_load(daf__metadata *m, daf__store *s, bool against_tree, bool *usable, daf_error *err) {
    daf_error details;
    daf__buf bytes = {0};
    json_t *object = NULL;
    *usable = false;
    int rc = daf__store_read(s, &bytes, NULL, DAF__METADATA_KEY, MAX_METADATA_BYTES, &details);
    if (rc == 0 && (is_appendable(&bytes) || !against_tree))
        rc = daf__json_object(&object, bytes.data, bytes.size, DAF__METADATA_KEY, &details);
    if (rc == DAF_ERR_NOMEM || rc == DAF_ERR_IO) {
        daf__buf_free(&bytes);
        return daf__pass(err, &details);
    }
    rc = 0;
    compare_context c = {.listed = object};
    if (object && against_tree)
        rc = daf__walk(s, compare_walked, &c, err);
    *usable = rc == 0 && object && !(against_tree && (c.differs || c.n_walked != json_object_size(object)));
    json_decref(object);
    if (*usable) {
        daf__buf_free(&m->bytes);
        m->bytes = bytes;
    } else {
        daf__buf_free(&bytes);
        m->rebuild = true;
    }
    return rc;
}

/* The descriptors that a repository's tree holds. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "json.h"
#include "metadata.h"
#include "scalar.h"
#include "text.h"
#include "utf8.h"

typedef struct reading {
    daf__store *store;
    daf__metadata_list *out;
    const char **known; /* sorted */
    size_t n_known;
    const daf_names *leaving;
} reading;

static int compare_texts(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int add_axis(reading *r, const daf__key *key, daf_error *err) {
    daf__key path = daf__key_with(key, ".txt");
    daf__file *f;
    uint64_t n;
    int rc = r->store->ops->open(r->store, &f, path.text, err);
    if (rc)
        return rc;
    rc = daf__count_lines(f, &n, err);
    daf__file_close(f);
    if (rc)
        return rc;
    daf__buf text = {0};
    daf__buf_printf(&text, "{\"format\":\"axis\",\"n_entries\":%" PRIu64 "}", n);
    rc = daf__buf_check(&text, err);
    if (rc == 0)
        rc = daf__metadata_list_add(r->out, key->text, text.data, text.size, err);
    daf__buf_free(&text);
    return rc;
}

/* Adds the descriptor as it stands, or without its blanks when it spans lines. */
static int add_text(reading *r, const char *key, const char *text, size_t bytes, daf_error *err) {
    while (bytes > 0 && strchr(" \t\r\n", text[bytes - 1]))
        bytes--;
    daf__buf compact = {0};
    if (memchr(text, '\n', bytes) || memchr(text, '\r', bytes)) {
        daf__json_compact(&compact, text, bytes);
        text = (const char *)compact.data;
        bytes = compact.size;
    }
    int rc = daf__buf_check(&compact, err);
    if (rc == 0)
        rc = daf__metadata_list_add(r->out, key, text, bytes, err);
    daf__buf_free(&compact);
    return rc;
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

static int add_described(reading *r, daf__kind kind, const daf__key *key, daf_error *err) {
    daf__key path = daf__key_with(key, ".json");
    daf__buf text = {0};
    json_t *object;
    int rc = daf__store_read(r->store, &text, NULL, path.text, DAF__MAX_JSON_BYTES, err);
    if (rc)
        return rc;
    int parsed = daf__json_object(&object, text.data, text.size, path.text, NULL);
    if (parsed == 0)
        json_decref(object);
    else if (parsed == DAF_ERR_NOMEM)
        rc = daf__no_memory(err);
    /* A broken descriptor would break the whole index. */
    if (parsed == 0 || (kind == DAF__SCALAR && respell_scalar(&text, path.text)))
        rc = add_text(r, key->text, (const char *)text.data, text.size, err);
    daf__buf_free(&text);
    return rc;
}

static int add_walked(void *context, daf__kind kind, const daf__key *key, daf_error *err) {
    reading *r = context;
    const char *text = key->text;
    /* Keys that are no UTF-8 cannot stand in JSON. */
    if (daf__utf8_prefix(text, strlen(text)) != strlen(text) || daf__is_leaving(r->leaving, text))
        return 0;
    if (r->n_known && bsearch(&text, r->known, r->n_known, sizeof *r->known, compare_texts))
        return 0;
    daf_error details;
    int rc = kind == DAF__AXIS ? add_axis(r, key, &details) : add_described(r, kind, key, &details);
    if (rc == DAF_ERR_MISSING || rc == DAF_ERR_LIMIT || rc == DAF_ERR_CORRUPT)
        return 0; /* gone meanwhile, or nothing that could be listed */
    return rc ? daf__pass(err, &details) : 0;
}

int daf__metadata_read_tree(daf__metadata_list *ret, daf__store *s, const daf_names *leaving,
                            const daf__metadata_list *known, daf_error *err) {
    reading r = {.store = s, .out = ret, .leaving = leaving, .n_known = known->n};
    r.known = malloc((known->n + 1) * sizeof *r.known);
    if (!r.known)
        return daf__no_memory(err);
    for (size_t i = 0; i < known->n; i++)
        r.known[i] = known->entries[i].key;
    if (known->n)
        qsort(r.known, known->n, sizeof *r.known, compare_texts);
    int rc = daf__walk(s, DAF__LIST_FILES, add_walked, &r, err);
    free(r.known);
    return rc;
}

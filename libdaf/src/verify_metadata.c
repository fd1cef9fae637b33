/* metadata.json against the files: those who read over HTTP see nothing else. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "json.h"
#include "json_scan.h"
#include "metadata.h"
#include "utf8.h"
#include "verify.h"

#define MAX_BYTES ((uint64_t)1 << 31)

/* A member of the file: its key, and the text of its value, which ends where the next one's key begins. */
typedef struct member {
    char *key;
    const char *value;
    size_t bytes;
    bool found; /* in the tree */
} member;

typedef struct comparison {
    daf__verifier *v;
    const daf__buf *text;
    member *members;
    size_t n, capacity;
    daf__tally stale;
} comparison;

/* ---- what the file lists */

static int add_member(void *context, const char *key, size_t bytes, daf_error *err) {
    comparison *c = context;
    if (c->n == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 256;
        member *grown = realloc(c->members, capacity * sizeof *grown);
        if (!grown)
            return daf__no_memory(err);
        c->members = grown;
        c->capacity = capacity;
    }
    daf__buf plain = {0};
    daf__json_unescape(&plain, key, bytes);
    char *copy = plain.failed ? NULL : daf__copy_text(plain.data, plain.size);
    daf__buf_free(&plain);
    if (!copy)
        return daf__no_memory(err);
    if (c->n > 0) /* up to this key's quote */
        c->members[c->n - 1].bytes = (size_t)(key - 1 - c->members[c->n - 1].value);
    c->members[c->n++] = (member){.key = copy, .value = key + bytes + 1};
    return 0;
}

/* Without the colon before it, and what ends it: a comma, or the brace of the whole; blanks. */
static void trim(member *m) {
    const char *blanks = " \t\r\n";
    while (m->bytes && (strchr(blanks, *m->value) || *m->value == ':')) {
        m->value++;
        m->bytes--;
    }
    for (bool ended = false; m->bytes; m->bytes--) {
        char last = m->value[m->bytes - 1];
        if (!strchr(blanks, last) && (ended || (last != ',' && last != '}')))
            return;
        ended = ended || last == ',' || last == '}';
    }
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(((const member *)a)->key, ((const member *)b)->key);
}

static void sort_members(comparison *c) {
    if (c->n == 0)
        return;
    member *last = &c->members[c->n - 1];
    last->bytes = (size_t)((const char *)c->text->data + c->text->size - last->value);
    for (size_t i = 0; i < c->n; i++)
        trim(&c->members[i]);
    qsort(c->members, c->n, sizeof *c->members, compare_keys);
    for (size_t i = 1; i < c->n; i++)
        if (strcmp(c->members[i - 1].key, c->members[i].key) == 0)
            daf__count(&c->stale, DAF_NO_OFFSET, "\"%s\" is listed twice", c->members[i].key);
}

/* ---- against the tree */

/* A failure that says nothing about the repository. */
static int pass_failure(daf__verifier *v, int rc, const daf_error *details) {
    return rc == DAF_ERR_NOMEM || rc == DAF_ERR_IO ? daf__pass(v->err, details) : 0;
}

/* What the file must say of a property; empty: it cannot be listed. */
static int describe(daf__verifier *v, daf__kind kind, const daf__key *key, daf__buf *ret) {
    daf__key path = daf__key_with(key, daf__main_suffix(kind));
    daf__buf text = {0};
    daf_error details = {.code = 0};
    uint64_t n;
    bool valid = false;
    if (kind == DAF__AXIS) {
        int rc = daf_axis_length(v->d, &n, key->text + strlen("axes/"), &details);
        if (rc)
            return pass_failure(v, rc, &details);
        daf__buf_printf(ret, "{\"format\":\"axis\",\"n_entries\":%" PRIu64 "}", n);
        return daf__buf_check(ret, v->err);
    }
    int rc = daf__store_read(v->d->store, &text, NULL, path.text, DAF__MAX_JSON_BYTES, &details);
    if (rc)
        return pass_failure(v, rc, &details);
    if (daf__json_scan(text.data, text.size, &valid, NULL, NULL, NULL) == 0 && valid)
        daf__json_compact(ret, text.data, text.size);
    daf__buf_free(&text);
    return daf__buf_check(ret, v->err);
}

/* Whether both mean the same, though spelled differently. */
static bool mean_the_same(const daf__buf *a, const daf__buf *b) {
    size_t flags = JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL;
    json_t *x = json_loadb((const char *)a->data, a->size, flags, NULL);
    json_t *y = json_loadb((const char *)b->data, b->size, flags, NULL);
    bool same = x && y && json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return same;
}

static int agree(daf__verifier *v, const member *m, const daf__buf *there, bool *ret) {
    daf__buf listed = {0};
    daf__json_compact(&listed, m->value, m->bytes);
    int rc = daf__buf_check(&listed, v->err);
    if (rc == 0) {
        bool equal = listed.size == there->size && memcmp(listed.data, there->data, there->size) == 0;
        *ret = equal || mean_the_same(&listed, there);
    }
    daf__buf_free(&listed);
    return rc;
}

static int compare(void *context, daf__kind kind, const daf__key *key, daf_error *err) {
    comparison *c = context;
    daf__buf there = {0};
    (void)err;
    if (daf__utf8_prefix(key->text, strlen(key->text)) != strlen(key->text))
        return 0; /* cannot be listed */
    const member wanted = {.key = (char *)(uintptr_t)key->text};
    member *m = c->n ? bsearch(&wanted, c->members, c->n, sizeof *c->members, compare_keys) : NULL;
    int rc = describe(c->v, kind, key, &there);
    bool same = true;
    if (rc == 0 && m && there.size)
        rc = agree(c->v, m, &there, &same);
    if (rc == 0 && !m && there.size)
        daf__count(&c->stale, DAF_NO_OFFSET, "\"%s\" is not listed", key->text);
    else if (!same)
        daf__count(&c->stale, DAF_NO_OFFSET, "\"%s\" is not described as by its own file", key->text);
    if (m)
        m->found = true;
    daf__buf_free(&there);
    return rc;
}

static int compare_all(comparison *c) {
    sort_members(c);
    int rc = daf__walk(c->v->d->store, DAF__LIST_FILES, compare, c, c->v->err);
    for (size_t i = 0; i < c->n; i++)
        if (!c->members[i].found && (i + 1 == c->n || compare_keys(&c->members[i], &c->members[i + 1]) != 0))
            daf__count(&c->stale, DAF_NO_OFFSET, "\"%s\" is listed, but is not there", c->members[i].key);
    if (rc == 0)
        daf__tell_tally(c->v, &c->stale, DAF__METADATA_KEY);
    return rc;
}

static int verify_form(daf__verifier *v, const daf__buf *text) {
    daf__buf compact = {0};
    daf__json_compact(&compact, text->data, text->size);
    int rc = daf__buf_check(&compact, v->err);
    if (rc == 0 && (compact.size != text->size || text->data[text->size - 1] != '}'))
        daf__tell(v, DAF_PROBLEM_METADATA_FORM, DAF__METADATA_KEY, DAF_NO_OFFSET, "blanks or a line end");
    daf__buf_free(&compact);
    return rc;
}

static int verify_text(daf__verifier *v, const daf__buf *text) {
    comparison c = {.v = v, .text = text, .stale = {.code = DAF_PROBLEM_METADATA_STALE}};
    bool valid = false;
    int rc = daf__json_scan(text->data, text->size, &valid, add_member, &c, v->err);
    if (rc == 0 && !valid)
        daf__tell(v, DAF_PROBLEM_METADATA, DAF__METADATA_KEY, DAF_NO_OFFSET, "not one JSON object");
    if (rc == 0 && valid)
        rc = verify_form(v, text);
    if (rc == 0 && valid)
        rc = compare_all(&c);
    for (size_t i = 0; i < c.n; i++)
        free(c.members[i].key);
    free(c.members);
    return rc;
}

int daf__verify_metadata(daf__verifier *v) {
    daf__buf text = {0};
    daf_error details = {.code = 0};
    int rc = daf__store_read(v->d->store, &text, NULL, DAF__METADATA_KEY, MAX_BYTES, &details);
    if (rc == DAF_ERR_MISSING) {
        daf__tell(v, DAF_PROBLEM_METADATA_MISSING, DAF__METADATA_KEY, DAF_NO_OFFSET, "there is no such file");
        return 0;
    }
    if (rc)
        return daf__tell_error(v, DAF_PROBLEM_METADATA, DAF__METADATA_KEY, &details);
    rc = verify_text(v, &text);
    daf__buf_free(&text);
    return rc;
}

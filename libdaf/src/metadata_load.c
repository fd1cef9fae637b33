/* Reading metadata.json, and comparing its names with the tree's. */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "json_scan.h"
#include "metadata.h"
#include "utf8.h"

#define MAX_METADATA_BYTES ((uint64_t)64 << 20) /* a larger one is rebuilt rather than looked over */

/* The keys of the file, one after the other with a NUL behind each, and a hash table of them. */
typedef struct key_set {
    daf__buf keys;
    size_t n;
    uint32_t *slots; /* offset of a key + 1; 0: free */
    size_t n_slots;  /* a power of two */
} key_set;

static uint64_t hash(const char *text) {
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h ^ h >> 32;
}

static int collect_key(void *context, const char *key, size_t bytes, daf_error *err) {
    key_set *set = context;
    if (memchr(key, '\\', bytes))
        daf__json_unescape(&set->keys, key, bytes);
    else
        daf__buf_append(&set->keys, key, bytes);
    daf__buf_append(&set->keys, "", 1);
    set->n++;
    return daf__buf_check(&set->keys, err);
}

/* The slot of the key, or a free one. */
static uint32_t *find_slot(const key_set *set, const char *key) {
    size_t i = (size_t)hash(key) & (set->n_slots - 1);
    while (set->slots[i] && strcmp((const char *)set->keys.data + set->slots[i] - 1, key) != 0)
        i = (i + 1) & (set->n_slots - 1);
    return &set->slots[i];
}

/* Fills the table. *twice: whether a key stands twice. */
static int index_keys(key_set *set, bool *twice, daf_error *err) {
    set->n_slots = 16;
    while (set->n_slots < 2 * set->n)
        set->n_slots *= 2;
    set->slots = calloc(set->n_slots, sizeof *set->slots);
    if (!set->slots)
        return daf__no_memory(err);
    for (size_t at = 0; at < set->keys.size;) {
        const char *key = (const char *)set->keys.data + at;
        uint32_t *slot = find_slot(set, key);
        *twice = *twice || *slot;
        *slot = (uint32_t)at + 1;
        at += strlen(key) + 1;
    }
    return 0;
}

typedef struct comparison {
    const key_set *listed;
    size_t n_walked;
    bool differs;
} comparison;

static int compare_walked(void *context, daf__kind kind, const daf__key *key, daf_error *err) {
    (void)kind;
    (void)err;
    comparison *c = context;
    size_t bytes = strlen(key->text);
    if (daf__utf8_prefix(key->text, bytes) != bytes)
        return 0; /* cannot stand in JSON */
    c->n_walked++;
    c->differs = c->differs || *find_slot(c->listed, key->text) == 0;
    return 0;
}

static int compare_with_tree(key_set *set, daf__store *s, bool *same, daf_error *err) {
    bool twice = false;
    comparison c = {.listed = set};
    int rc = index_keys(set, &twice, err);
    if (rc == 0)
        rc = daf__walk(s, DAF__LIST_FILES_ANYHOW, compare_walked, &c, err);
    *same = !twice && !c.differs && c.n_walked == set->n;
    return rc;
}

/* The file can be appended to as it stands: it ends in the brace that closes it, behind the last descriptor's. */
static bool is_appendable(const daf__buf *b) {
    return b->size == 2 || (b->size > 2 && b->data[b->size - 1] == '}' && b->data[b->size - 2] == '}');
}

static int look_over(const daf__buf *bytes, daf__store *s, bool *usable, daf_error *err) {
    key_set set = {0};
    bool valid = false, same = true;
    int rc = daf__json_scan(bytes->data, bytes->size, &valid, collect_key, &set, err);
    if (rc == 0 && valid && is_appendable(bytes))
        rc = compare_with_tree(&set, s, &same, err);
    *usable = rc == 0 && valid && same && is_appendable(bytes);
    free(set.slots);
    daf__buf_free(&set.keys);
    return rc;
}

int daf__metadata_load(daf__metadata *m, daf__store *s, bool *usable, daf_error *err) {
    daf_error details;
    daf__buf bytes = {0};
    *usable = false;
    int rc = daf__store_has(s, &m->is_stale, DAF__METADATA_STALE_KEY, err);
    if (rc)
        return rc;
    rc = daf__store_read(s, &bytes, NULL, DAF__METADATA_KEY, MAX_METADATA_BYTES, &details);
    if (rc == 0 && !m->is_stale)
        rc = look_over(&bytes, s, usable, &details);
    if (*usable) {
        daf__buf_free(&m->bytes);
        m->bytes = bytes;
        return 0;
    }
    daf__buf_free(&bytes);
    daf__metadata_distrust(m);
    bool is_absent =
        rc == DAF_ERR_MISSING || rc == DAF_ERR_LIMIT || rc == DAF_ERR_CORRUPT || rc == DAF_ERR_TRUNCATED;
    return rc == 0 || is_absent ? 0 : daf__pass(err, &details);
}

int daf__metadata_lacks(bool *ret, daf__store *s, daf_error *err) {
    daf_error details;
    daf__buf bytes = {0};
    bool valid = true;
    int rc = daf__store_read(s, &bytes, NULL, DAF__METADATA_KEY, MAX_METADATA_BYTES, &details);
    bool is_missing = rc == DAF_ERR_MISSING;
    if (rc == 0)
        rc = daf__json_scan(bytes.data, bytes.size, &valid, NULL, NULL, &details);
    daf__buf_free(&bytes);
    if (rc && rc != DAF_ERR_MISSING && rc != DAF_ERR_LIMIT)
        return daf__pass(err, &details);
    *ret = is_missing || !valid;
    return 0;
}

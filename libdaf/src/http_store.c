#include "http_store.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "json.h"
#include "json_scan.h"
#include "memory_file.h"

#define MARKER "daf.json"
#define METADATA "metadata.json"
#define MAX_METADATA_BYTES ((uint64_t)256 << 20)

/* A property: its key, and its descriptor in the store's `metadata`. */
typedef struct listed {
    char *key;
    const char *descriptor;
    size_t bytes;
} listed;

typedef struct http_store {
    daf__store base;
    daf__http_client *client;
    uint32_t gap_bytes;
    daf__buf marker, metadata;
    listed *properties; /* sorted by key */
    size_t n;
} http_store;

/* ---- metadata.json taken apart; it is known to be valid JSON */

/* Behind the string that begins at p. */
static const char *skip_string(const char *p) {
    for (p++; *p != '"'; p++)
        if (*p == '\\')
            p++;
    return p + 1;
}

static const char *skip_blanks(const char *p) {
    while (isspace((unsigned char)*p))
        p++;
    return p;
}

/* Behind the value that begins at p. */
static const char *skip_value(const char *p) {
    unsigned depth = 0;
    for (;; p++) {
        if (*p == '"')
            p = skip_string(p) - 1;
        else if (*p == '{' || *p == '[')
            depth++;
        else if (depth == 0 && (*p == ',' || *p == '}'))
            return p;
        else if (*p == '}' || *p == ']')
            depth--;
    }
}

/* The keys of properties: axes/A, scalars/N, vectors/A/N, matrices/R/C/N. */
static bool is_property_key(const char *key) {
    static const struct {
        const char *folder;
        unsigned n;
    } kinds[] = {{"axes/", 1}, {"scalars/", 1}, {"vectors/", 2}, {"matrices/", 3}};
    unsigned wanted = 0, n = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && !wanted; i++) {
        if (strncmp(key, kinds[i].folder, strlen(kinds[i].folder)) == 0) {
            wanted = kinds[i].n;
            key += strlen(kinds[i].folder);
        }
    }
    for (bool more = wanted != 0; more; n++) {
        size_t bytes = strcspn(key, "/");
        if (bytes == 0 || bytes > DAF__MAX_FILE_NAME || (bytes == 1 && *key == '.') ||
            (bytes == 2 && memcmp(key, "..", 2) == 0))
            return false;
        more = key[bytes] == '/';
        key += bytes + more;
    }
    return wanted && n == wanted;
}

static int add_property(http_store *s, size_t *capacity, const char *key, size_t key_bytes,
                        const char *descriptor, size_t bytes, daf_error *err) {
    daf__buf name = {0};
    daf__json_unescape(&name, key, key_bytes);
    bool has_nul = name.size && memchr(name.data, 0, name.size);
    daf__buf_append(&name, "", 1);
    if (!name.failed && (has_nul || !is_property_key((const char *)name.data))) {
        daf__buf_free(&name);
        return 0;
    }
    if (!name.failed && s->n == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 64;
        listed *grown = realloc(s->properties, *capacity * sizeof *grown);
        name.failed = !grown;
        s->properties = grown ? grown : s->properties;
    }
    if (name.failed) {
        daf__buf_free(&name);
        return daf__no_memory(err);
    }
    s->properties[s->n++] = (listed){.key = (char *)name.data, .descriptor = descriptor, .bytes = bytes};
    return 0;
}

static int compare_listed(const void *a, const void *b) {
    const listed *p = a, *q = b;
    int order = strcmp(p->key, q->key);
    return order ? order : (p->descriptor > q->descriptor) - (p->descriptor < q->descriptor);
}

/* Of a key that stands twice the last one counts. */
static void drop_repeated(http_store *s) {
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (i + 1 < s->n && strcmp(s->properties[i].key, s->properties[i + 1].key) == 0)
            free(s->properties[i].key);
        else
            s->properties[kept++] = s->properties[i];
    }
    s->n = kept;
}

static int take_apart(http_store *s, daf_error *err) {
    size_t capacity = 0;
    const char *p = skip_blanks((const char *)s->metadata.data);
    int rc = 0;
    for (p = skip_blanks(p + 1); *p != '}' && rc == 0; p = skip_blanks(p)) {
        const char *key = p, *key_end = skip_string(p);
        const char *value = skip_blanks(skip_blanks(key_end) + 1), *end = skip_value(value);
        rc = add_property(s, &capacity, key + 1, (size_t)(key_end - key) - 2, value, (size_t)(end - value),
                          err);
        p = *end == ',' ? skip_blanks(end + 1) : end;
    }
    if (s->n)
        qsort(s->properties, s->n, sizeof *s->properties, compare_listed);
    drop_repeated(s);
    return rc;
}

static const listed *find(const http_store *s, const char *key, size_t bytes) {
    size_t from = 0, to = s->n;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        const char *other = s->properties[middle].key;
        int order = strncmp(other, key, bytes);
        order = order ? order : other[bytes] != 0;
        if (order == 0)
            return &s->properties[middle];
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

/* ---- the store */

static int missing(const http_store *s, const char *key, daf_error *err) {
    return daf__fail(err, DAF_ERR_MISSING, 0, 0, "%s/%s: no such file", s->base.path, key);
}

/* The descriptor whose file the key names; NULL: it names another file. *absent: a descriptor that is not listed. */
static const listed *descriptor_of(const http_store *s, const char *key, bool *absent) {
    size_t n = strlen(key);
    *absent = false;
    if (n <= 5 || strcmp(key + n - 5, ".json") != 0)
        return NULL;
    const listed *l = find(s, key, n - 5);
    *absent = !l || strncmp(key, "axes/", 5) == 0;
    return l;
}

static daf__stamp stamp_of(const http_store *s, const listed *l) {
    return (daf__stamp){.inode = (uint64_t)(l - s->properties) + 1, .bytes = l->bytes + 1};
}

/* A descriptor's file ends in a LF, which metadata.json leaves out. */
static int open_descriptor(const http_store *s, daf__file **ret, const listed *l, const char *key,
                           daf_error *err) {
    char where[DAF__WHERE_TEXT];
    daf__buf copy = {0};
    daf__stamp stamp = stamp_of(s, l);
    daf__buf_append(&copy, l->descriptor, l->bytes);
    daf__buf_append(&copy, "\n", 1);
    int rc = daf__buf_check(&copy, err);
    return rc ? rc : daf__memory_file(ret, &copy, &stamp, daf__store_where(where, &s->base, key), err);
}

static int open_marker(const http_store *s, daf__file **ret, daf_error *err) {
    char where[DAF__WHERE_TEXT];
    daf__buf copy = {0};
    daf__stamp stamp = {.bytes = s->marker.size};
    daf__buf_append(&copy, s->marker.data, s->marker.size);
    int rc = daf__buf_check(&copy, err);
    return rc ? rc : daf__memory_file(ret, &copy, &stamp, daf__store_where(where, &s->base, MARKER), err);
}

static int http_open(daf__store *base, daf__file **ret, const char *key, daf_error *err) {
    http_store *s = (http_store *)base;
    bool absent;
    const listed *l = descriptor_of(s, key, &absent);
    if (strcmp(key, MARKER) == 0)
        return open_marker(s, ret, err);
    if (absent)
        return missing(s, key, err);
    if (l)
        return open_descriptor(s, ret, l, key, err);
    return daf__http_file_open(s->client, ret, key, s->gap_bytes, err);
}

/* The size of a file that is no descriptor. */
static int get_size(http_store *s, uint64_t *ret, const char *key, daf_error *err) {
    daf__file *f;
    int rc = daf__http_size(s->client, ret, key, err);
    if (rc != DAF_ERR_UNSUPPORTED)
        return rc;
    rc = daf__http_file_open(s->client, &f, key, s->gap_bytes, err);
    if (rc)
        return rc;
    *ret = f->size;
    daf__file_close(f);
    return 0;
}

static int http_stamp(daf__store *base, daf__stamp *ret, const char *key, daf_error *err) {
    http_store *s = (http_store *)base;
    size_t n = strlen(key);
    bool absent;
    const listed *l = descriptor_of(s, key, &absent);
    bool axis = n > 4 && strncmp(key, "axes/", 5) == 0 && strcmp(key + n - 4, ".txt") == 0;
    if (absent || (axis && !find(s, key, n - 4)))
        return missing(s, key, err);
    if (l) {
        *ret = stamp_of(s, l);
        return 0;
    }
    uint64_t bytes = 0;
    int rc = get_size(s, &bytes, key, err);
    if (rc == 0)
        *ret = (daf__stamp){.bytes = bytes};
    return rc;
}

/* Whether the key lies in the folder: what follows, or NULL. */
static const char *below(const char *key, const char *folder) {
    size_t n = strlen(folder);
    return strncmp(key, folder, n) == 0 && key[n] == '/' ? key + n + 1 : NULL;
}

static int http_list(daf__store *base, daf_names *ret, const char *folder, daf__list_what what,
                     daf_error *err) {
    http_store *s = (http_store *)base;
    daf_names names = {0};
    const char *suffix = strcmp(folder, "axes") == 0 ? ".txt" : ".json";
    int rc = 0;
    for (size_t i = 0; i < s->n && rc == 0; i++) {
        const char *name = below(s->properties[i].key, folder);
        size_t bytes = name ? strcspn(name, "/") : 0;
        char file[DAF__MAX_FILE_NAME + 8];
        if (!name || (name[bytes] == '/') != (what == DAF__LIST_FOLDERS))
            continue;
        bool repeated = what == DAF__LIST_FOLDERS && names.n &&
                        strncmp(names.names[names.n - 1], name, bytes) == 0 &&
                        names.names[names.n - 1][bytes] == 0;
        int n =
            snprintf(file, sizeof file, "%.*s%s", (int)bytes, name, what == DAF__LIST_FOLDERS ? "" : suffix);
        if (!repeated)
            rc = daf__names_add(&names, file, (size_t)n, err);
    }
    if (rc) {
        daf_names_clear(&names);
        return rc;
    }
    daf__names_sort(&names);
    *ret = names;
    return 0;
}

static int http_axis_length(daf__store *base, uint64_t *ret, const char *axis, daf_error *err) {
    http_store *s = (http_store *)base;
    daf__property p = daf__axis_property(axis);
    daf__key key = daf__property_key(&p);
    char where[DAF__WHERE_TEXT];
    json_t *object;
    const listed *l = find(s, key.text, strlen(key.text));
    if (!l)
        return missing(s, key.text, err);
    daf__store_where(where, base, METADATA);
    int rc = daf__json_object(&object, l->descriptor, l->bytes, where, err);
    if (rc)
        return rc;
    const json_t *n = json_object_get(object, "n_entries");
    if (!json_is_integer(n) || json_integer_value(n) < 0)
        rc = daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "%s: axis \"%.100s\" has no n_entries", where, axis);
    else
        *ret = (uint64_t)json_integer_value(n);
    json_decref(object);
    return rc;
}

static void http_free(daf__store *base) {
    http_store *s = (http_store *)base;
    for (size_t i = 0; i < s->n; i++)
        free(s->properties[i].key);
    free(s->properties);
    daf__buf_free(&s->marker);
    daf__buf_free(&s->metadata);
    daf__http_client_free(s->client);
    free(base->path);
    free(s);
}

static const daf__store_ops http_ops = {
    .open = http_open,
    .stamp = http_stamp,
    .list = http_list,
    .axis_length = http_axis_length,
    .create = daf__unwritable_create,
    .apply = daf__unwritable_apply,
    .settle = daf__unwritable_settle,
    .free = http_free,
};

/* ---- opening */

static int get_whole(http_store *s, daf__buf *ret, const char *key, uint64_t limit, daf_error *err) {
    daf__http_range range = {.part = DAF__HTTP_WHOLE, .bytes = limit};
    daf__http_answer a;
    int rc = daf__http_get(s->client, &a, key, &range, err);
    if (rc)
        return rc;
    uint8_t *end = daf__buf_reserve(&a.body, 1); /* a NUL behind it, for those who parse it as text */
    if (!end) {
        daf__buf_free(&a.body);
        return daf__no_memory(err);
    }
    *end = 0;
    *ret = a.body;
    return 0;
}

static int get_marker(http_store *s, daf_error *err) {
    daf_error details;
    int rc = get_whole(s, &s->marker, MARKER, DAF__MAX_JSON_BYTES, &details);
    if (rc == DAF_ERR_MISSING)
        return daf__fail(err, DAF_ERR_NOT_DAF, 0, 0, "not a daf directory: %s", s->base.path);
    return rc ? daf__pass(err, &details) : 0;
}

static int get_metadata(http_store *s, daf_error *err) {
    daf_error details;
    bool valid;
    int rc = get_whole(s, &s->metadata, METADATA, MAX_METADATA_BYTES, &details);
    if (rc == DAF_ERR_MISSING)
        return daf__fail(err, DAF_ERR_MISSING, 0, 0,
                         "%s/" METADATA
                         ": the server has none, and without it nothing can be found by HTTP; open the "
                         "directory for writing once where it lies",
                         s->base.path);
    if (rc)
        return daf__pass(err, &details);
    rc = daf__json_scan(s->metadata.data, s->metadata.size, &valid, NULL, NULL, err);
    if (rc == 0 && !valid)
        rc = daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "%s/" METADATA ": not a JSON object", s->base.path);
    return rc ? rc : take_apart(s, err);
}

int daf__http_store_open(daf__store **ret, const char *url, const daf__http_settings *settings,
                         daf_error *err) {
    http_store *s = calloc(1, sizeof *s);
    if (!s)
        return daf__no_memory(err);
    s->base = (daf__store){
        .ops = &http_ops, .kind = "daf directory", .unwritable = "nothing can be written to a URL"};
    s->gap_bytes = settings->gap_bytes;
    int rc = daf__http_client_new(&s->client, url, &settings->limits, err);
    if (rc == 0 && !(s->base.path = strdup(daf__http_shown_url(s->client))))
        rc = daf__no_memory(err);
    if (rc == 0)
        rc = get_marker(s, err);
    if (rc == 0)
        rc = get_metadata(s, err);
    if (rc)
        http_free(&s->base);
    else
        *ret = &s->base;
    return rc;
}

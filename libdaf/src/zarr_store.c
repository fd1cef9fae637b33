#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "error.h"
#include "handle.h"
#include "memory_file.h"
#include "store_dir.h"
#include "zarr_store_private.h"

#define MARKER "daf.json"
#define MAX_ROOT_BYTES ((uint64_t)1 << 28) /* it may list very many nodes */

/* ---- nodes */

int daf__zarr_read_node(daf__store *tree, daf__zarr_node *ret, daf__stamp *stamp, const char *path,
                        daf_error *err) {
    daf__zarr_path key = daf__zarr_path_with(path, DAF__ZARR_NODE);
    char where[DAF__WHERE_TEXT];
    daf__buf text = {0};
    int rc = daf__store_read(tree, &text, stamp, key.text, DAF__MAX_JSON_BYTES, err);
    if (rc)
        return rc;
    rc = daf__zarr_node_parse(ret, text.data, text.size, daf__store_where(where, tree, key.text), err);
    daf__buf_free(&text);
    return rc;
}

static int stamp_node(daf__zarr_store *s, daf__stamp *ret, const char *path, daf_error *err) {
    daf__zarr_path key = daf__zarr_path_with(path, DAF__ZARR_NODE);
    return s->tree->ops->stamp(s->tree, ret, key.text, err);
}

/* ---- keys */

typedef enum key_kind { KEY_OTHER, KEY_MARKER, KEY_SCALAR, KEY_AXIS, KEY_PROPERTY } key_kind;

/* A key taken apart. */
typedef struct parsed_key {
    key_kind kind;
    daf__kind of;         /* KEY_PROPERTY: a vector or matrix, */
    const char *names[3]; /* between the slashes, */
    size_t name_bytes[3];
    const char *last; /* and its file's name */
} parsed_key;

static size_t stem_bytes(const char *name, const char *suffix) {
    size_t n = strlen(name), k = strlen(suffix);
    return n > k && strcmp(name + n - k, suffix) == 0 ? n - k : 0;
}

static parsed_key parse_key(const char *key) {
    parsed_key k = {.kind = KEY_OTHER};
    unsigned n = 0;
    const char *at = key;
    for (const char *slash; n < 3 && (slash = strchr(at, '/')); at = slash + 1) {
        k.names[n] = at;
        k.name_bytes[n++] = (size_t)(slash - at);
    }
    k.last = at;
    bool plain = !strchr(at, '/');
    if (strcmp(key, MARKER) == 0)
        k.kind = KEY_MARKER;
    else if (n == 1 && plain && strncmp(key, "scalars/", 8) == 0 && stem_bytes(at, ".json"))
        k.kind = KEY_SCALAR;
    else if (n == 1 && plain && strncmp(key, "axes/", 5) == 0 && stem_bytes(at, ".txt"))
        k.kind = KEY_AXIS;
    else if (plain &&
             ((n == 2 && strncmp(key, "vectors/", 8) == 0) || (n == 3 && strncmp(key, "matrices/", 9) == 0)))
        k.kind = KEY_PROPERTY;
    k.of = n == 3 ? DAF__MATRIX : DAF__VECTOR;
    return k;
}

/* The path of the node that a key without its suffix names. */
static daf__zarr_path node_path(const char *key, size_t suffix_bytes) {
    daf__zarr_path path;
    snprintf(path.text, sizeof path.text, "%.*s", (int)(strlen(key) - suffix_bytes), key);
    return path;
}

static int missing(const daf__zarr_store *s, const char *key, daf_error *err) {
    return daf__fail(err, DAF_ERR_MISSING, 0, 0, "%s/%s: no such file", s->base.path, key);
}

static int axis_length(daf__store *base, uint64_t *ret, const char *axis, daf_error *err) {
    daf__zarr_store *s = (daf__zarr_store *)base;
    daf__zarr_path path = daf__zarr_path_with("axes", axis);
    daf__zarr_node node;
    int rc = daf__zarr_read_node(s->tree, &node, NULL, path.text, err);
    if (rc)
        return rc;
    if (node.is_group || node.n_dimensions != 1)
        rc = daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "%s/%s: an axis is an array of one dimension", base->path,
                       path.text);
    else
        *ret = node.shape[1];
    daf__zarr_node_free(&node);
    return rc;
}

static int length_of(daf__zarr_store *s, uint64_t *ret, const char *name, size_t bytes, daf_error *err) {
    char axis[DAF__MAX_FILE_NAME + 1];
    if (bytes > DAF__MAX_FILE_NAME)
        return missing(s, name, err);
    memcpy(axis, name, bytes);
    axis[bytes] = 0;
    return axis_length(&s->base, ret, axis, err);
}

/* The property that a key with this suffix belongs to. */
static int property_of(daf__zarr_store *s, daf__zarr_property *ret, const parsed_key *k, const char *key,
                       const char *suffix, daf_error *err) {
    *ret = (daf__zarr_property){.kind = k->of, .path = node_path(key, strlen(suffix)), .columns = 1};
    int rc = length_of(s, &ret->rows, k->names[1], k->name_bytes[1], err);
    if (rc == 0 && k->of == DAF__MATRIX)
        rc = length_of(s, &ret->columns, k->names[2], k->name_bytes[2], err);
    return rc;
}

/* Finds the payload that a key means: the property and the part. A name may end like a suffix, so that a key can mean
 * the one or the other; a property of which it is no payload is not meant. */
typedef struct payload {
    daf__zarr_property property;
    daf__descriptor descriptor;
    daf__part part;
} payload;

static bool is_part(payload *p, const char *suffix) {
    char text[DAF__SUFFIX_TEXT];
    for (unsigned i = 0; i < DAF__N_PARTS; i++) {
        p->part = (daf__part)i;
        if (p->descriptor.parts[i].present &&
            strcmp(daf__part_suffix(text, p->property.kind, &p->descriptor, p->part), suffix) == 0)
            return true;
    }
    return false;
}

static int find_payload(daf__zarr_store *s, payload *ret, const parsed_key *k, const char *key,
                        daf_error *err) {
    daf_error details;
    for (const char *const *suffix = daf__suffixes(k->of) + 1; *suffix; suffix++) {
        if (stem_bytes(k->last, *suffix) == 0)
            continue;
        int rc = property_of(s, &ret->property, k, key, *suffix, &details);
        if (rc == 0)
            rc = daf__zarr_describe(s, &ret->descriptor, &ret->property, &details);
        if (rc == 0 && is_part(ret, *suffix))
            return 0;
        if (rc && rc != DAF_ERR_MISSING)
            return daf__pass(err, &details);
    }
    return missing(s, key, err);
}

/* ---- opening */

static int part_of_payload(daf__zarr_store *s, daf__zarr_part *ret, const payload *p, daf_error *err) {
    const daf__zarr_property *property = &p->property;
    if (!p->descriptor.sparse)
        return daf__zarr_part_open(s->tree, ret, property->path.text, property->kind == DAF__MATRIX ? 2 : 1,
                                   err);
    daf__zarr_path path =
        daf__zarr_path_with(property->path.text, daf__part_name(property->kind, true, p->part));
    return daf__zarr_part_open(s->tree, ret, path.text, 1, err);
}

/* What follows makes a file of bytes that are made of the node at `path`. */
static int memory_of(daf__zarr_store *s, daf__file **ret, daf__buf *bytes, const char *path, const char *key,
                     daf_error *err) {
    char where[DAF__WHERE_TEXT];
    daf__stamp stamp;
    int rc = stamp_node(s, &stamp, path, err);
    if (rc) {
        daf__buf_free(bytes);
        return rc;
    }
    return daf__memory_file(ret, bytes, &stamp, daf__store_where(where, &s->base, key), err);
}

static int open_made_texts(daf__zarr_store *s, daf__file **ret, const payload *p, const char *key,
                           daf_error *err) {
    const daf__buf *made = &s->made.parts[p->part];
    daf__buf copy = {0};
    daf__buf_append(&copy, made->data, made->size);
    int rc = daf__buf_check(&copy, err);
    return rc ? rc : memory_of(s, ret, &copy, p->property.path.text, key, err);
}

static int open_payload(daf__zarr_store *s, daf__file **ret, const parsed_key *k, const char *key,
                        daf_error *err) {
    payload p;
    daf__zarr_part part;
    daf__buf bytes = {0};
    int rc = find_payload(s, &p, k, key, err);
    if (rc == 0 && p.descriptor.sparse && p.descriptor.type == DAF_STRING)
        return open_made_texts(s, ret, &p, key, err);
    if (rc == 0)
        rc = part_of_payload(s, &part, &p, err);
    if (rc)
        return rc;
    if (part.as_it_is) {
        rc = s->tree->ops->open(s->tree, ret, part.chunk.text, err);
    } else {
        rc = daf__zarr_make_payload(s->tree, &bytes, &part, err);
        if (rc == 0)
            rc = memory_of(s, ret, &bytes, part.path.text, key, err);
    }
    daf__zarr_part_close(&part);
    return rc;
}

static int open_descriptor(daf__zarr_store *s, daf__file **ret, const parsed_key *k, const char *key,
                           daf_error *err) {
    daf__zarr_property p;
    daf__descriptor d;
    daf__buf json = {0};
    int rc = property_of(s, &p, k, key, ".json", err);
    if (rc == 0)
        rc = daf__zarr_describe(s, &d, &p, err);
    if (rc)
        return rc;
    daf__descriptor_write(&json, p.kind, &d);
    rc = daf__buf_check(&json, err);
    return rc ? rc : memory_of(s, ret, &json, p.path.text, key, err);
}

static int open_small(daf__zarr_store *s, daf__file **ret, bool scalar, const char *key, daf_error *err) {
    daf__zarr_path path = node_path(key, strlen(scalar ? ".json" : ".txt"));
    daf__zarr_part part;
    daf__buf bytes = {0};
    int rc = daf__zarr_part_open(s->tree, &part, path.text, 1, err);
    if (rc)
        return rc;
    if (!scalar && part.node.type != DAF_STRING)
        rc = daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "%s/%s: an axis is an array of texts", s->base.path,
                       path.text);
    else
        rc = scalar ? daf__zarr_make_scalar(s->tree, &bytes, &part, err)
                    : daf__zarr_make_payload(s->tree, &bytes, &part, err);
    daf__zarr_part_close(&part);
    return rc ? rc : memory_of(s, ret, &bytes, path.text, key, err);
}

static int open_marker(daf__zarr_store *s, daf__file **ret, daf_error *err) {
    daf__buf text = {0};
    daf__buf_text(&text, DAF__MARKER_TEXT);
    int rc = daf__buf_check(&text, err);
    return rc ? rc : memory_of(s, ret, &text, "", MARKER, err);
}

static int zarr_open(daf__store *base, daf__file **ret, const char *key, daf_error *err) {
    daf__zarr_store *s = (daf__zarr_store *)base;
    parsed_key k = parse_key(key);
    switch (k.kind) {
    case KEY_MARKER:
        return open_marker(s, ret, err);
    case KEY_SCALAR:
    case KEY_AXIS:
        return open_small(s, ret, k.kind == KEY_SCALAR, key, err);
    case KEY_PROPERTY:
        return stem_bytes(k.last, ".json") ? open_descriptor(s, ret, &k, key, err)
                                           : open_payload(s, ret, &k, key, err);
    default:
        return missing(s, key, err);
    }
}

static int zarr_stamp(daf__store *base, daf__stamp *ret, const char *key, daf_error *err) {
    daf__zarr_store *s = (daf__zarr_store *)base;
    parsed_key k = parse_key(key);
    bool json = k.kind == KEY_SCALAR || (k.kind == KEY_PROPERTY && stem_bytes(k.last, ".json"));
    if (k.kind == KEY_MARKER)
        return stamp_node(s, ret, "", err);
    if (json || k.kind == KEY_AXIS) {
        daf__zarr_path path = node_path(key, json ? 5 : 4);
        return stamp_node(s, ret, path.text, err);
    }
    daf__file *f;
    int rc = zarr_open(base, &f, key, err);
    if (rc)
        return rc;
    *ret = f->stamp;
    ret->bytes = f->size;
    daf__file_close(f);
    return 0;
}

/* ---- listing */

static bool holds_properties(const char *folder) {
    return strcmp(folder, "scalars") == 0 || strcmp(folder, "axes") == 0 ||
           strncmp(folder, "vectors/", 8) == 0 ||
           (strncmp(folder, "matrices/", 9) == 0 && strchr(folder + 9, '/'));
}

static int zarr_list(daf__store *base, daf_names *ret, const char *folder, daf__list_what what,
                     daf_error *err) {
    daf__zarr_store *s = (daf__zarr_store *)base;
    daf_names nodes, names = {0};
    *ret = (daf_names){0};
    if (holds_properties(folder) == (what == DAF__LIST_FOLDERS))
        return 0;
    int rc = s->tree->ops->list(s->tree, &nodes, folder, DAF__LIST_FOLDERS, err);
    if (rc || what == DAF__LIST_FOLDERS) {
        if (rc == 0)
            *ret = nodes;
        return rc;
    }
    const char *suffix = strcmp(folder, "axes") == 0 ? ".txt" : ".json";
    for (size_t i = 0; i < nodes.n && rc == 0; i++) {
        daf__zarr_path path = daf__zarr_path_with(folder, nodes.names[i]);
        daf__zarr_path key = daf__zarr_path_with(path.text, DAF__ZARR_NODE);
        char name[DAF__MAX_FILE_NAME + 8];
        bool there = false;
        int n = snprintf(name, sizeof name, "%s%s", nodes.names[i], suffix);
        rc = daf__store_has(s->tree, &there, key.text, err);
        if (rc == 0 && there && n < (int)sizeof name)
            rc = daf__names_add(&names, name, (size_t)n, err);
    }
    daf_names_clear(&nodes);
    if (rc) {
        daf_names_clear(&names);
        return rc;
    }
    daf__names_sort(&names);
    *ret = names;
    return 0;
}

static void zarr_free(daf__store *base) {
    daf__zarr_store *s = (daf__zarr_store *)base;
    daf__zarr_made_free(&s->made);
    if (s->tree)
        s->tree->ops->free(s->tree);
    free(base->path);
    free(base->full_path);
    free(s);
}

static const daf__store_ops zarr_ops = {
    .open = zarr_open,
    .stamp = zarr_stamp,
    .list = zarr_list,
    .axis_length = axis_length,
    .create = daf__unwritable_create,
    .apply = daf__unwritable_apply,
    .settle = daf__unwritable_settle,
    .free = zarr_free,
};

daf__store *daf__zarr_base(daf__store *s) {
    return s->ops == &zarr_ops ? ((daf__zarr_store *)s)->tree : NULL;
}

int daf__zarr_source(daf__store *base, daf__zarr_path *ret, bool *sharded, const char *key, daf_error *err) {
    daf__zarr_store *s = (daf__zarr_store *)base;
    parsed_key k = parse_key(key);
    payload p;
    daf__zarr_part part;
    *ret = (daf__zarr_path){.text = ""};
    *sharded = false;
    int rc = find_payload(s, &p, &k, key, err);
    if (rc || (p.descriptor.sparse && p.descriptor.type == DAF_STRING))
        return rc;
    rc = part_of_payload(s, &part, &p, err);
    if (rc)
        return rc;
    if (part.as_it_is)
        *ret = part.chunk;
    *sharded = daf__zarr_was_sharded(&part.node);
    daf__zarr_part_close(&part);
    return 0;
}

/* ---- opening the tree */

static int read_root(daf__zarr_store *s, daf_error *err) {
    const char *path = s->base.full_path ? s->base.full_path : s->base.path;
    char where[DAF__WHERE_TEXT];
    daf__buf text = {0};
    daf_error details;
    bool old = false;
    int rc = daf__store_read(s->tree, &text, NULL, DAF__ZARR_NODE, MAX_ROOT_BYTES, &details);
    if (rc == DAF_ERR_MISSING) {
        rc = daf__store_has(s->tree, &old, ".zgroup", err);
        if (rc)
            return rc;
        return old ? daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0,
                               "Zarr v2 store at: %s; convert it to version 3 first", path)
                   : daf__fail(err, DAF_ERR_NOT_DAF, 0, 0, "not a zarr group: %s", path);
    }
    if (rc)
        return daf__pass(err, &details);
    rc = daf__zarr_check_root(text.data, text.size, daf__store_where(where, s->tree, DAF__ZARR_NODE), path,
                              err);
    daf__buf_free(&text);
    return rc;
}

int daf__zarr_store_open(daf__store **ret, daf__store *tree, daf_error *err) {
    daf__zarr_store *s = calloc(1, sizeof *s);
    if (!s) {
        tree->ops->free(tree);
        return daf__no_memory(err);
    }
    s->tree = tree;
    s->base = (daf__store){
        .ops = &zarr_ops, .kind = "daf zarr group", .unwritable = "a Zarr tree is not written to"};
    s->base.path = strdup(tree->path);
    s->base.full_path = tree->full_path ? strdup(tree->full_path) : NULL;
    int rc = s->base.path && (!tree->full_path || s->base.full_path) ? 0 : daf__no_memory(err);
    if (rc == 0 && tree->ops == &daf__dir_ops)
        rc = daf__dir_refuse_interrupted(tree, err);
    if (rc == 0)
        rc = read_root(s, err);
    if (rc)
        zarr_free(&s->base);
    else
        *ret = &s->base;
    return rc;
}

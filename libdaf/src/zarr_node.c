#include "zarr_node.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "error.h"
#include "number.h"
#include "type.h"

enum { MAX_LEVEL_ZSTD = 22, MAX_LEVEL = 9 };

typedef struct parsing {
    const char *where;
    daf_error *err;
    daf__zarr_node *node;
    unsigned nesting;
} parsing;

static int bad(const parsing *p, const char *what) {
    return daf__fail(p->err, DAF_ERR_CORRUPT, 0, 0, "%s: %s", p->where, what);
}

static int unsupported(const parsing *p, const char *what, const char *name) {
    return daf__fail(p->err, DAF_ERR_UNSUPPORTED, 0, 0, "%s: %s \"%.60s\" cannot be read", p->where, what,
                     name ? name : "");
}

/* ---- what is common: things with a name and a configuration, which may be a bare name */

static const char *name_of(const json_t *thing) {
    return json_is_string(thing) ? json_string_value(thing) : daf__json_text(thing, "name");
}

static const json_t *configuration_of(const json_t *thing) {
    return json_object_get(thing, "configuration");
}

/* Two sizes, or one, which is the second. */
static int parse_sizes(const parsing *p, uint64_t ret[2], const json_t *array, uint64_t least,
                       const char *what) {
    unsigned n = p->node->n_dimensions;
    if (!json_is_array(array) || json_array_size(array) != n)
        return daf__fail(p->err, DAF_ERR_CORRUPT, 0, 0, "%s: %s is no array of %u sizes", p->where, what, n);
    ret[0] = 1;
    for (unsigned i = 0; i < n; i++) {
        const json_t *size = json_array_get(array, i);
        if (!json_is_integer(size) || json_integer_value(size) < (json_int_t)least)
            return daf__fail(p->err, DAF_ERR_CORRUPT, 0, 0, "%s: %s holds something else than sizes",
                             p->where, what);
        ret[2 - n + i] = (uint64_t)json_integer_value(size);
    }
    return 0;
}

/* ---- codecs */

static int parse_chain(parsing *p, daf__zarr_chain *ret, const json_t *codecs);

static int parse_endian(const parsing *p, daf__zarr_codec *c, const json_t *configuration) {
    const char *endian = daf__json_text(configuration, "endian");
    c->big_endian = endian && strcmp(endian, "big") == 0;
    return !endian || c->big_endian || strcmp(endian, "little") == 0 ? 0
                                                                     : unsupported(p, "byte order", endian);
}

static void place_in_table(daf__zarr_codec *c, daf_codec codec, const json_t *level, int most) {
    json_int_t n = json_integer_value(level);
    c->plain = json_is_integer(level) && n >= 1 && n <= most;
    c->codec = codec;
    c->level = c->plain ? (int)n : 0;
}

static void parse_blosc(daf__zarr_codec *c, const json_t *configuration) {
    const char *name = daf__json_text(configuration, "cname"),
               *shuffle = daf__json_text(configuration, "shuffle");
    bool zstd = name && strcmp(name, "zstd") == 0, lz4 = name && strcmp(name, "lz4") == 0;
    place_in_table(c, lz4 ? DAF_CODEC_BLOSC_LZ4_BITSHUFFLE : DAF_CODEC_BLOSC_ZSTD_BITSHUFFLE,
                   json_object_get(configuration, "clevel"), MAX_LEVEL);
    c->plain = c->plain && (zstd || lz4) && shuffle && strcmp(shuffle, "bitshuffle") == 0;
}

static int parse_shards(parsing *p, daf__zarr_codec *c, const json_t *configuration) {
    const char *location = daf__json_text(configuration, "index_location");
    if (p->nesting == DAF__ZARR_MAX_NESTING)
        return bad(p, "shards within shards within shards");
    c->shards = calloc(1, sizeof *c->shards);
    if (!c->shards)
        return daf__no_memory(p->err);
    if (location && strcmp(location, "start") != 0 && strcmp(location, "end") != 0)
        return unsupported(p, "index_location", location);
    c->shards->at_end = !location || strcmp(location, "end") == 0;
    int rc = parse_sizes(p, c->shards->chunk, json_object_get(configuration, "chunk_shape"), 1,
                         "chunk_shape of the shards");
    p->nesting++;
    if (rc == 0)
        rc = parse_chain(p, &c->shards->inner, json_object_get(configuration, "codecs"));
    if (rc == 0)
        rc = parse_chain(p, &c->shards->index, json_object_get(configuration, "index_codecs"));
    p->nesting--;
    if (rc == 0 && c->shards->index.codecs[0].kind != DAF__ZARR_BYTES)
        rc = bad(p, "the index of the shards is not of bytes");
    return rc;
}

static int parse_codec(parsing *p, daf__zarr_codec *c, const json_t *codec) {
    static const char *const names[] = {[DAF__ZARR_BYTES] = "bytes",
                                        [DAF__ZARR_TEXTS] = "vlen-utf8",
                                        [DAF__ZARR_SHARDS] = "sharding_indexed",
                                        [DAF__ZARR_GZIP] = "gzip",
                                        [DAF__ZARR_ZSTD] = "zstd",
                                        [DAF__ZARR_BLOSC] = "blosc",
                                        [DAF__ZARR_CRC32C] = "crc32c"};
    const char *name = name_of(codec);
    const json_t *configuration = configuration_of(codec);
    unsigned kind = 0;
    while (kind <= DAF__ZARR_CRC32C && (!name || strcmp(name, names[kind]) != 0))
        kind++;
    if (kind > DAF__ZARR_CRC32C)
        return unsupported(p, "codec", name);
    *c = (daf__zarr_codec){.kind = (daf__zarr_codec_kind)kind};
    switch (c->kind) {
    case DAF__ZARR_BYTES:
        return parse_endian(p, c, configuration);
    case DAF__ZARR_SHARDS:
        return parse_shards(p, c, configuration);
    case DAF__ZARR_GZIP:
        place_in_table(c, DAF_CODEC_GZIP, json_object_get(configuration, "level"), MAX_LEVEL);
        return 0;
    case DAF__ZARR_ZSTD:
        place_in_table(c, DAF_CODEC_ZSTD, json_object_get(configuration, "level"), MAX_LEVEL_ZSTD);
        c->plain = c->plain && !json_is_true(json_object_get(configuration, "checksum"));
        return 0;
    case DAF__ZARR_BLOSC:
        parse_blosc(c, configuration);
        return 0;
    default:
        return 0;
    }
}

static int parse_chain(parsing *p, daf__zarr_chain *ret, const json_t *codecs) {
    size_t n = json_array_size(codecs);
    if (!json_is_array(codecs) || n == 0 || n > DAF__ZARR_MAX_CODECS)
        return bad(p, "the codecs are no list of some");
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = parse_codec(p, &ret->codecs[i], json_array_get(codecs, i));
        ret->n++; /* also of one that is half parsed, which is freed */
        if (rc == 0 && (ret->codecs[i].kind <= DAF__ZARR_SHARDS) != (i == 0))
            rc = bad(p, "the codecs do not begin, and only begin, with one that makes bytes of elements");
    }
    return rc;
}

static void free_chain(daf__zarr_chain *chain) {
    for (unsigned i = 0; i < chain->n; i++) {
        daf__zarr_shards *shards = chain->codecs[i].shards;
        if (!shards)
            continue;
        free_chain(&shards->inner);
        free_chain(&shards->index);
        free(shards);
    }
    chain->n = 0;
}

/* Texts are of texts, all the way down. */
static bool chain_fits(const daf__zarr_chain *chain, daf_type type) {
    const daf__zarr_codec *first = &chain->codecs[0];
    if (first->kind == DAF__ZARR_SHARDS)
        return chain_fits(&first->shards->inner, type);
    return (first->kind == DAF__ZARR_TEXTS) == (type == DAF_STRING);
}

/* ---- the fill value */

static void store_element(uint8_t to[8], const daf_scalar *s) {
    uint64_t bits = s->value.u;
    float single = (float)s->value.f;
    uint32_t single_bits;
    if (s->type == DAF_FLOAT64)
        memcpy(&bits, &s->value.f, sizeof bits);
    if (s->type == DAF_FLOAT32) {
        memcpy(&single_bits, &single, sizeof single_bits);
        bits = single_bits;
    }
    bytes_store64(to, bits);
}

/* A number, the name of one that is not finite, or (of floats) its bits: "0x7fc00000". */
static int parse_fill_number(parsing *p, const json_t *value) {
    daf__zarr_node *n = p->node;
    const char *text = json_string_value(value);
    if (text && strncmp(text, "0x", 2) == 0 && daf__type_is_float(n->type)) {
        bytes_store64(n->fill, strtoull(text + 2, NULL, 16));
        return 0;
    }
    char *number = text ? strdup(text) : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    daf_scalar s;
    if (!number)
        return daf__no_memory(p->err);
    int rc = daf__parse_number(&s, n->type, number);
    free(number);
    if (rc)
        return bad(p, "the fill_value is no value of the data type");
    store_element(n->fill, &s);
    return 0;
}

static int parse_fill(parsing *p, const json_t *value) {
    daf__zarr_node *n = p->node;
    if (!value || json_is_null(value))
        return 0;
    if (n->type == DAF_STRING) {
        const char *text = json_string_value(value);
        if (!text || strlen(text) != json_string_length(value))
            return bad(p, "the fill_value is no text");
        n->fill_text = strdup(text);
        return n->fill_text ? 0 : daf__no_memory(p->err);
    }
    if (n->type == DAF_BOOL) {
        n->fill[0] = json_is_true(value) || json_integer_value(value) == 1;
        return 0;
    }
    return parse_fill_number(p, value);
}

/* ---- arrays */

static int parse_type(parsing *p, const json_t *object) {
    const json_t *type = json_object_get(object, "data_type");
    const char *name = name_of(type);
    for (unsigned i = 0; i < DAF_N_TYPES && name; i++) {
        if (strcmp(name, daf__zarr_type_name((daf_type)i)) == 0) {
            p->node->type = (daf_type)i;
            return 0;
        }
    }
    return unsupported(p, "data_type", name);
}

static int parse_grid(parsing *p, const json_t *object) {
    const json_t *grid = json_object_get(object, "chunk_grid");
    const char *name = name_of(grid);
    if (!name || strcmp(name, "regular") != 0)
        return unsupported(p, "chunk_grid", name);
    int rc = parse_sizes(p, p->node->chunk, json_object_get(configuration_of(grid), "chunk_shape"), 0,
                         "chunk_shape");
    for (unsigned i = 0; i < 2 && rc == 0; i++) {
        if (p->node->chunk[i] == 0 && p->node->shape[i] != 0)
            rc = bad(p, "chunks of size 0");
        else if (p->node->chunk[i] == 0)
            p->node->chunk[i] = 1; /* some write that for arrays of nothing */
    }
    return rc;
}

static int parse_keys(parsing *p, const json_t *object) {
    const json_t *encoding = json_object_get(object, "chunk_key_encoding");
    const char *name = name_of(encoding);
    const char *separator = daf__json_text(configuration_of(encoding), "separator");
    bool v2 = name && strcmp(name, "v2") == 0;
    if (!name || (!v2 && strcmp(name, "default") != 0))
        return unsupported(p, "chunk_key_encoding", name);
    if (separator && strcmp(separator, "/") != 0 && strcmp(separator, ".") != 0)
        return unsupported(p, "separator of chunk keys", separator);
    p->node->v2_keys = v2;
    p->node->separator = separator ? *separator : v2 ? '.' : '/';
    return 0;
}

static int parse_attributes(parsing *p, const json_t *object) {
    const json_t *attributes = json_object_get(object, "attributes");
    const json_t *packed = json_object_get(attributes, "daf_packed_format");
    const json_t *sparse = json_object_get(attributes, "daf_sparse_index");
    const char *format = json_string_value(packed), *index = json_string_value(sparse);
    daf__zarr_node *n = p->node;
    if (packed && (!format || strcmp(format, "indexed+zipped") != 0))
        return unsupported(p, "daf_packed_format", format);
    n->is_dual = packed != NULL;
    if (!sparse)
        return 0;
    n->was_sparse = true;
    if (!index || daf_type_parse(&n->sparse_index, index) != 0 ||
        !(daf__type_is_signed(n->sparse_index) || daf__type_is_unsigned(n->sparse_index)))
        return bad(p, "daf_sparse_index names no integer type");
    return n->type == DAF_STRING ? 0 : bad(p, "daf_sparse_index of an array that is not of texts");
}

static int parse_array(parsing *p, const json_t *object) {
    daf__zarr_node *n = p->node;
    const json_t *shape = json_object_get(object, "shape");
    const json_t *transformers = json_object_get(object, "storage_transformers");
    if (json_array_size(shape) < 1 || json_array_size(shape) > 2)
        return bad(p, "the shape is not one of one or two dimensions");
    if (transformers && json_array_size(transformers))
        return unsupported(p, "storage transformer", name_of(json_array_get(transformers, 0)));
    n->n_dimensions = (unsigned)json_array_size(shape);
    int rc = parse_type(p, object);
    if (rc == 0)
        rc = parse_sizes(p, n->shape, shape, 0, "shape");
    if (rc == 0)
        rc = parse_grid(p, object);
    if (rc == 0)
        rc = parse_keys(p, object);
    if (rc == 0)
        rc = parse_chain(p, &n->chain, json_object_get(object, "codecs"));
    if (rc == 0 && !chain_fits(&n->chain, n->type))
        rc = bad(p, "the codecs do not fit the data type");
    if (rc == 0)
        rc = parse_fill(p, json_object_get(object, "fill_value"));
    return rc ? rc : parse_attributes(p, object);
}

/* ---- nodes */

static int parse_head(const parsing *p, const json_t *object, bool *is_group) {
    const json_t *format = json_object_get(object, "zarr_format");
    const char *type = daf__json_text(object, "node_type");
    if (json_integer_value(format) != 3)
        return daf__fail(p->err, DAF_ERR_UNSUPPORTED, 0, 0, "%s: not of Zarr format 3", p->where);
    *is_group = type && strcmp(type, "group") == 0;
    return *is_group || (type && strcmp(type, "array") == 0) ? 0 : bad(p, "neither a group nor an array");
}

int daf__zarr_node_parse(daf__zarr_node *ret, const void *text, size_t bytes, const char *where,
                         daf_error *err) {
    daf__zarr_node node = {.is_group = false};
    parsing p = {.where = where, .err = err, .node = &node};
    json_t *object;
    int rc = daf__json_object(&object, text, bytes, where, err);
    if (rc)
        return rc;
    rc = parse_head(&p, object, &node.is_group);
    if (rc == 0 && !node.is_group)
        rc = parse_array(&p, object);
    json_decref(object);
    if (rc)
        daf__zarr_node_free(&node);
    else
        *ret = node;
    return rc;
}

void daf__zarr_node_free(daf__zarr_node *node) {
    free_chain(&node->chain);
    free(node->fill_text);
    *node = (daf__zarr_node){.is_group = false};
}

static int check_version(const json_t *version, const char *path, daf_error *err) {
    const json_t *major = json_array_get(version, 0), *minor = json_array_get(version, 1);
    if (!version)
        return daf__fail(err, DAF_ERR_NOT_DAF, 0, 0, "not a daf data set: %s", path);
    if (json_array_size(version) != 2 || !json_is_integer(major) || !json_is_integer(minor))
        return daf__fail(err, DAF_ERR_VERSION, 0, 0, "%s: attribute daf is no version of two integers", path);
    if (json_integer_value(major) == 1 && json_integer_value(minor) == 0)
        return 0;
    return daf__fail(
        err, DAF_ERR_VERSION, 0, 0,
        "incompatible format version: %lld.%lld\nthe code supports version: 1.0\nin daf zarr group: %s",
        (long long)json_integer_value(major), (long long)json_integer_value(minor), path);
}

int daf__zarr_check_root(const void *text, size_t bytes, const char *where, const char *path,
                         daf_error *err) {
    parsing p = {.where = where, .err = err};
    bool is_group = false;
    json_t *object;
    int rc = daf__json_object(&object, text, bytes, where, err);
    if (rc)
        return rc;
    rc = parse_head(&p, object, &is_group);
    if (rc == 0 && !is_group)
        rc = daf__fail(err, DAF_ERR_NOT_DAF, 0, 0, "not a zarr group: %s", path);
    if (rc == 0)
        rc = check_version(json_object_get(json_object_get(object, "attributes"), "daf"), path, err);
    json_decref(object);
    return rc;
}

/* ---- chunks */

daf__zarr_path daf__zarr_chunk_path(const daf__zarr_node *node, const char *path, uint64_t i, uint64_t j) {
    daf__zarr_path at;
    int n = snprintf(at.text, sizeof at.text, "%s/", path);
    size_t size = sizeof at.text - (size_t)n;
    char *to = at.text + n, before[2] = {node->v2_keys ? 0 : 'c', 0};
    char between[2] = {node->v2_keys ? 0 : node->separator, 0};
    if (node->n_dimensions == 1)
        snprintf(to, size, "%s%s%" PRIu64, before, between, j);
    else
        snprintf(to, size, "%s%s%" PRIu64 "%c%" PRIu64, before, between, i, node->separator, j);
    return at;
}

static bool is_little(const daf__zarr_codec *c, daf_type type) {
    return c->kind == DAF__ZARR_BYTES && (!c->big_endian || daf_type_bytes(type) == 1);
}

bool daf__zarr_is_flat(const daf__zarr_node *n) {
    bool nothing = n->shape[0] == 0 || n->shape[1] == 0;
    bool one_chunk = n->chunk[0] == n->shape[0] && n->chunk[1] == n->shape[1];
    return n->chain.n == 1 && is_little(&n->chain.codecs[0], n->type) && (one_chunk || nothing);
}

static uint64_t n_chunks(uint64_t size, uint64_t chunk) {
    return size / chunk + (size % chunk != 0);
}

bool daf__zarr_is_shard(const daf__zarr_node *n, daf__packing *ret) {
    const daf__zarr_codec *first = &n->chain.codecs[0];
    if (n->chain.n != 1 || first->kind != DAF__ZARR_SHARDS || !n->is_dual || first->shards->at_end)
        return false;
    const daf__zarr_shards *s = first->shards;
    const daf__zarr_codec *inner = s->inner.codecs, *index = s->index.codecs;
    bool fits = s->inner.n == 2 && inner[1].plain && s->index.n == 2 && !index[0].big_endian &&
                index[1].kind == DAF__ZARR_CRC32C && n->shape[0] && n->shape[1] &&
                (inner[0].kind == DAF__ZARR_TEXTS || is_little(&inner[0], n->type));
    /* One shard, whose index is that of the grid over the shape itself. */
    for (unsigned i = 0; i < 2 && fits; i++)
        fits = n->chunk[i] >= n->shape[i] &&
               n_chunks(n->chunk[i], s->chunk[i]) == n_chunks(n->shape[i], s->chunk[i]);
    if (!fits)
        return false;
    *ret = (daf__packing){
        .indexed = true, .chunk_rows = s->chunk[1], .chunk_columns = s->chunk[0], .level = inner[1].level};
    snprintf(ret->compression, sizeof ret->compression, "%s", daf_codec_name(inner[1].codec));
    return true;
}

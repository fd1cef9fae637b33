#include "zarr_spell.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "error.h"
#include "json.h"

enum { DEFAULT_LEVEL = 5 };
#define BYTES_CODEC "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define TEXTS_CODEC "{\"name\":\"vlen-utf8\",\"configuration\":{}}"

daf__zarr_path daf__zarr_path_with(const char *base, const char *name) {
    daf__zarr_path path;
    snprintf(path.text, sizeof path.text, "%s%s%s", base, *base ? "/" : "", name);
    return path;
}

const char *daf__zarr_type_name(daf_type type) {
    static const char *const names[DAF_N_TYPES] = {
        [DAF_BOOL] = "bool",       [DAF_INT8] = "int8",       [DAF_INT16] = "int16",
        [DAF_INT32] = "int32",     [DAF_INT64] = "int64",     [DAF_UINT8] = "uint8",
        [DAF_UINT16] = "uint16",   [DAF_UINT32] = "uint32",   [DAF_UINT64] = "uint64",
        [DAF_FLOAT32] = "float32", [DAF_FLOAT64] = "float64", [DAF_STRING] = "string"};
    return (unsigned)type < DAF_N_TYPES ? names[type] : NULL;
}

static const char *fill_value(daf_type type) {
    switch (type) {
    case DAF_BOOL:
        return "false";
    case DAF_FLOAT32:
    case DAF_FLOAT64:
        return "0.0";
    case DAF_STRING:
        return "\"\"";
    default:
        return "0";
    }
}

void daf__zarr_spell_group(daf__buf *out) {
    daf__buf_text(out, "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{}}");
}

/* ---- arrays */

/* Sizes are in the order of C: columns, rows. */
static void spell_sizes(daf__buf *out, const daf__zarr_array *a, uint64_t rows, uint64_t columns) {
    if (a->n_dimensions == 1)
        daf__buf_printf(out, "[%" PRIu64 "]", rows);
    else
        daf__buf_printf(out, "[%" PRIu64 ",%" PRIu64 "]", columns, rows);
}

static uint64_t round_up(uint64_t n, uint64_t step) {
    uint64_t rest = n % step;
    return rest ? n + (step - rest) : n;
}

static void spell_chunk_shape(daf__buf *out, const daf__zarr_array *a) {
    uint64_t row_step = a->packing ? a->packing->chunk_rows : 1;
    uint64_t column_step = a->packing ? a->packing->chunk_columns : 1;
    uint64_t rows = round_up(a->rows, row_step), columns = round_up(a->columns, column_step);
    spell_sizes(out, a, rows ? rows : 1, columns ? columns : 1);
}

static int spell_compressor(daf__buf *out, const daf__zarr_array *a, daf_error *err) {
    const daf__packing *p = a->packing;
    size_t width = a->type == DAF_STRING ? 1 : daf_type_bytes(a->type);
    int level = p->level ? p->level : DEFAULT_LEVEL;
    daf_codec codec;
    int rc = daf_codec_parse(&codec, p->compression);
    if (rc)
        return daf__fail(err, rc, 0, 0, "compression \"%s\" cannot be told in a Zarr array", p->compression);
    if (codec == DAF_CODEC_ZSTD)
        daf__buf_printf(out, "{\"name\":\"zstd\",\"configuration\":{\"level\":%d,\"checksum\":false}}",
                        level);
    else if (codec == DAF_CODEC_GZIP)
        daf__buf_printf(out, "{\"name\":\"gzip\",\"configuration\":{\"level\":%d}}", level);
    else
        daf__buf_printf(out,
                        "{\"name\":\"blosc\",\"configuration\":{\"cname\":\"%s\",\"clevel\":%d,"
                        "\"shuffle\":\"bitshuffle\",\"typesize\":%zu,\"blocksize\":0}}",
                        codec == DAF_CODEC_BLOSC_LZ4_BITSHUFFLE ? "lz4" : "zstd", level, width);
    return 0;
}

static int spell_codecs(daf__buf *out, const daf__zarr_array *a, daf_error *err) {
    const char *first = a->type == DAF_STRING ? TEXTS_CODEC : BYTES_CODEC;
    if (!a->packing) {
        daf__buf_text(out, first);
        return 0;
    }
    daf__buf_text(out, "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":");
    spell_sizes(out, a, a->packing->chunk_rows, a->packing->chunk_columns);
    daf__buf_printf(out, ",\"codecs\":[%s,", first);
    int rc = spell_compressor(out, a, err);
    daf__buf_text(out, "],\"index_codecs\":[" BYTES_CODEC
                       ",{\"name\":\"crc32c\"}],\"index_location\":\"start\"}}");
    return rc;
}

static void spell_attributes(daf__buf *out, const daf__zarr_array *a) {
    if (a->packing)
        daf__buf_text(out, "{\"daf_packed_format\":\"indexed+zipped\"}");
    else if (a->was_sparse)
        daf__buf_printf(out, "{\"daf_sparse_index\":\"%s\"}", daf_type_name(a->sparse_index));
    else
        daf__buf_text(out, "{}");
}

static void spell_dimension_names(daf__buf *out, const daf__zarr_array *a) {
    if (a->n_dimensions == 2) {
        daf__json_string(out, a->column_name, strlen(a->column_name));
        daf__buf_text(out, ",");
    }
    daf__json_string(out, a->row_name, strlen(a->row_name));
}

int daf__zarr_spell_array(daf__buf *out, const daf__zarr_array *a, daf_error *err) {
    daf__buf_text(out, "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":");
    spell_sizes(out, a, a->rows, a->columns);
    daf__buf_printf(out,
                    ",\"data_type\":\"%s\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":"
                    "{\"chunk_shape\":",
                    daf__zarr_type_name(a->type));
    spell_chunk_shape(out, a);
    daf__buf_printf(
        out,
        "}},\"chunk_key_encoding\":{\"name\":\"default\",\"configuration\":{\"separator\":\"/\"}},"
        "\"fill_value\":%s,\"codecs\":[",
        fill_value(a->type));
    int rc = spell_codecs(out, a, err);
    daf__buf_text(out, "],\"attributes\":");
    spell_attributes(out, a);
    daf__buf_text(out, ",\"dimension_names\":[");
    spell_dimension_names(out, a);
    daf__buf_text(out, "]}");
    return rc ? rc : daf__buf_check(out, err);
}

/* ---- the root */

int daf__zarr_index_add(daf__zarr_index *index, const char *path, const daf__buf *node, daf_error *err) {
    if (index->n == index->capacity) {
        size_t capacity = index->capacity ? 2 * index->capacity : 64;
        daf__zarr_entry *entries = realloc(index->entries, capacity * sizeof *entries);
        if (!entries)
            return daf__no_memory(err);
        index->entries = entries;
        index->capacity = capacity;
    }
    daf__zarr_entry e = {.path = strdup(path), .node = daf__copy_text(node->data, node->size)};
    if (!e.path || !e.node) {
        free(e.path);
        free(e.node);
        return daf__no_memory(err);
    }
    index->entries[index->n++] = e;
    return 0;
}

void daf__zarr_index_free(daf__zarr_index *index) {
    for (size_t i = 0; i < index->n; i++) {
        free(index->entries[i].path);
        free(index->entries[i].node);
    }
    free(index->entries);
    *index = (daf__zarr_index){0};
}

static unsigned depth_of(const char *path) {
    unsigned n = 0;
    for (; *path; path++)
        n += *path == '/';
    return n;
}

static int compare_entries(const void *a, const void *b) {
    const char *p = ((const daf__zarr_entry *)a)->path, *q = ((const daf__zarr_entry *)b)->path;
    unsigned m = depth_of(p), n = depth_of(q);
    return m != n ? (m > n) - (m < n) : strcmp(p, q);
}

int daf__zarr_spell_root(daf__buf *out, daf__zarr_index *index, daf_error *err) {
    if (index->n)
        qsort(index->entries, index->n, sizeof *index->entries, compare_entries);
    daf__buf_text(out,
                  "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{\"daf\":[1,0]},"
                  "\"consolidated_metadata\":{\"kind\":\"inline\",\"must_understand\":false,\"metadata\":{");
    for (size_t i = 0; i < index->n; i++) {
        const daf__zarr_entry *e = &index->entries[i];
        if (i)
            daf__buf_text(out, ",");
        daf__json_string(out, e->path, strlen(e->path));
        daf__buf_text(out, ":");
        daf__buf_text(out, e->node);
    }
    daf__buf_text(out, "}}}");
    return daf__buf_check(out, err);
}

/* ---- names */

int daf__zarr_check_name(const char *name, daf_error *err) {
    if (strcmp(name, DAF__ZARR_NODE) == 0 || strcmp(name, DAF__ZARR_NODE ".new") == 0)
        return daf__fail(err, DAF_ERR_NAME, 0, 0,
                         "name \"%s\" cannot be in a Zarr tree: it is that of a group's own file", name);
    if (strncmp(name, "__", 2) == 0 || strspn(name, ".") == strlen(name))
        return daf__fail(err, DAF_ERR_NAME, 0, 0, "name \"%.100s\" cannot be in a Zarr tree: it is reserved",
                         name);
    if (strchr(name, '\\'))
        return daf__fail(err, DAF_ERR_NAME, 0, 0, "name \"%.100s\" cannot be in a Zarr tree: it holds a \\",
                         name);
    return 0;
}

#include "descriptor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "json.h"
#include "type.h"

#define MAX_ELEMENTS ((uint64_t)SIZE_MAX / 64)

typedef struct parse_context {
    daf__kind kind;
    const char *where;
    daf_error *err;
} parse_context;

static int bad(const parse_context *c, const char *what, const char *why) {
    return daf__fail(c->err, DAF_ERR_CORRUPT, 0, 0, "%s: %s %s", c->where, what, why);
}

static int parse_type(const parse_context *c, daf_type *ret, const json_t *object, const char *key,
                      const char *what) {
    const char *name = daf__json_text(object, key);
    if (!name)
        return daf__fail(c->err, DAF_ERR_CORRUPT, 0, 0, "%s: %s has no %s", c->where, what, key);
    if (daf_type_parse(ret, name) != 0)
        return daf__fail(c->err, DAF_ERR_CORRUPT, 0, 0, "%s: unknown element type \"%.100s\"", c->where,
                         name);
    return 0;
}

static int parse_chunk_shape(const parse_context *c, daf__packing *p, size_t n, const json_t *object) {
    const json_t *shape = json_object_get(object, "chunk_shape");
    if (!json_is_array(shape) || json_array_size(shape) != n)
        return daf__fail(c->err, DAF_ERR_CORRUPT, 0, 0, "%s: chunk_shape is no array of %zu numbers",
                         c->where, n);
    uint64_t sizes[2] = {1, 1};
    for (size_t i = 0; i < n; i++) {
        const json_t *size = json_array_get(shape, i);
        if (!json_is_integer(size) || json_integer_value(size) < 1)
            return bad(c, "chunk_shape", "holds something else than sizes from 1");
        sizes[i] = (uint64_t)json_integer_value(size);
    }
    p->chunk_rows = sizes[0];
    p->chunk_columns = sizes[1];
    return 0;
}

static int parse_packing(const parse_context *c, daf__packing *ret, size_t n_dimensions,
                         const json_t *object) {
    daf__packing p = {0};
    const char *format = daf__json_text(object, "packed_format");
    const char *compression = daf__json_text(object, "compression");
    if (!format || !(strcmp(format, "indexed+zipped") == 0 || strcmp(format, "zipped") == 0))
        return daf__fail(c->err, DAF_ERR_UNSUPPORTED, 0, 0, "%s: unknown packed_format \"%.100s\"", c->where,
                         format ? format : "");
    if (!compression || strlen(compression) >= sizeof p.compression)
        return daf__fail(c->err, DAF_ERR_CORRUPT, 0, 0, "%s: packed without the name of a compression",
                         c->where);
    p.indexed = strcmp(format, "zipped") != 0;
    snprintf(p.compression, sizeof p.compression, "%s", compression);
    p.level = (int)json_integer_value(json_object_get(object, "compression_level"));
    int rc = parse_chunk_shape(c, &p, n_dimensions, object);
    if (rc == 0)
        *ret = p;
    return rc;
}

/* ---- components of a sparse property */

static int parse_count(const parse_context *c, daf__component *part, const json_t *object, const char *name) {
    const json_t *count = json_object_get(object, "n_elements");
    if (!count && part->packed)
        return bad(c, name, "is packed, but has no n_elements");
    if (!count)
        return 0;
    if (!json_is_integer(count) || json_integer_value(count) < 0 ||
        (uint64_t)json_integer_value(count) > MAX_ELEMENTS)
        return bad(c, name, "has an n_elements that is no possible number of elements");
    part->counted = true;
    part->n_elements = (uint64_t)json_integer_value(count);
    return 0;
}

static int parse_component(const parse_context *c, daf__component *ret, const json_t *sparse,
                           const char *name) {
    const json_t *object = json_object_get(sparse, name);
    daf__component part = {.present = true};
    if (!object)
        return bad(c, name, "is missing from the sparse descriptor");
    if (!json_is_object(object))
        return bad(c, name, "is no object");
    const char *format = daf__json_text(object, "format");
    if (!format || strcmp(format, "dense") != 0)
        return daf__fail(c->err, DAF_ERR_CORRUPT, 0, 0, "%s: unknown format \"%.100s\" of %s", c->where,
                         format ? format : "", name);
    int rc = parse_type(c, &part.type, object, "eltype", name);
    part.packed = json_object_get(object, "packed_format") != NULL;
    if (rc == 0)
        rc = parse_count(c, &part, object, name);
    if (rc == 0 && part.packed)
        rc = parse_packing(c, &part.packing, 1, object);
    if (rc == 0)
        *ret = part;
    return rc;
}

static int parse_components(const parse_context *c, daf__descriptor *d, const json_t *object) {
    daf__component *indices = &d->parts[DAF__INDICES], *pointers = &d->parts[DAF__POINTERS],
                   *values = &d->parts[DAF__VALUES];
    int rc = 0;
    if (c->kind == DAF__MATRIX)
        rc = parse_component(c, pointers, object, "colptr");
    if (rc == 0)
        rc = parse_component(c, indices, object, daf__part_name(c->kind, true, DAF__INDICES));
    if (rc == 0 && json_object_get(object, "nzval"))
        rc = parse_component(c, values, object, "nzval");
    if (rc)
        return rc;
    if (pointers->present && pointers->type != indices->type)
        return bad(c, "colptr and rowval", "are of different types");
    if (values->counted && indices->counted && values->n_elements != indices->n_elements)
        return bad(c, "nzval", "has another n_elements than the indices");
    d->type = values->present ? values->type : DAF_BOOL;
    d->index_type = indices->type;
    return 0;
}

static int parse_old_form(const parse_context *c, daf__descriptor *d, const json_t *object) {
    int rc = parse_type(c, &d->type, object, "eltype", "the sparse descriptor");
    if (rc == 0)
        rc = parse_type(c, &d->index_type, object, "indtype", "the sparse descriptor");
    d->old_form = true;
    d->parts[DAF__VALUES] = (daf__component){.present = d->type != DAF_BOOL, .type = d->type};
    d->parts[DAF__INDICES] = (daf__component){.present = true, .type = d->index_type};
    d->parts[DAF__POINTERS] = (daf__component){.present = c->kind == DAF__MATRIX, .type = d->index_type};
    return rc;
}

static int parse_sparse(const parse_context *c, daf__descriptor *d, const json_t *object) {
    const char *indices = daf__part_name(c->kind, true, DAF__INDICES);
    bool old = json_object_get(object, "eltype") && !json_object_get(object, indices);
    int rc = old ? parse_old_form(c, d, object) : parse_components(c, d, object);
    if (rc == 0 && !daf__type_is_signed(d->index_type) && !daf__type_is_unsigned(d->index_type))
        rc = bad(c, "the index type", "is no integer type");
    d->sparse = true;
    return rc;
}

static int parse_object(const parse_context *c, daf__descriptor *d, const json_t *object) {
    const char *format = daf__json_text(object, "format");
    daf__component *values = &d->parts[DAF__VALUES];
    if (format && strcmp(format, "sparse") == 0)
        return parse_sparse(c, d, object);
    if (!format || strcmp(format, "dense") != 0)
        return daf__fail(c->err, DAF_ERR_CORRUPT, 0, 0, "%s: unknown format \"%.100s\"", c->where,
                         format ? format : "");
    int rc = parse_type(c, &d->type, object, "eltype", "the descriptor");
    *values = (daf__component){
        .present = true, .type = d->type, .packed = json_object_get(object, "packed_format") != NULL};
    if (rc == 0 && values->packed)
        rc = parse_packing(c, &values->packing, c->kind == DAF__MATRIX ? 2 : 1, object);
    return rc;
}

int daf__descriptor_parse(daf__descriptor *ret, daf__kind kind, const void *text, size_t bytes,
                          const char *where, daf_error *err) {
    parse_context c = {.kind = kind, .where = where, .err = err};
    daf__descriptor d = {0};
    json_t *object;
    int rc = daf__json_object(&object, text, bytes, where, err);
    if (rc)
        return rc;
    rc = parse_object(&c, &d, object);
    json_decref(object);
    if (rc == 0)
        *ret = d;
    return rc;
}

/* ---- writing */

static void write_packing(daf__buf *out, const daf__packing *p, bool two_dimensions) {
    daf__buf_printf(out, ",\"packed_format\":\"%s\",\"chunk_shape\":[%" PRIu64,
                    p->indexed ? "indexed+zipped" : "zipped", p->chunk_rows);
    if (two_dimensions)
        daf__buf_printf(out, ",%" PRIu64, p->chunk_columns);
    daf__buf_printf(out, "],\"compression\":\"%s\",\"compression_level\":%d,\"index_location\":\"start\"",
                    p->compression, p->level);
}

static void write_component(daf__buf *out, daf__kind kind, const daf__descriptor *d, daf__part part) {
    const daf__component *c = &d->parts[part];
    if (!c->present)
        return;
    daf__buf_printf(out, ",\"%s\":{\"format\":\"dense\",\"eltype\":\"%s\",\"n_elements\":%" PRIu64,
                    daf__part_name(kind, true, part), daf_type_name(c->type), c->n_elements);
    if (c->packed)
        write_packing(out, &c->packing, false);
    daf__buf_text(out, "}");
}

void daf__descriptor_write(daf__buf *out, daf__kind kind, const daf__descriptor *d) {
    daf__buf_printf(out, "{\"format\":\"%s\"", d->sparse ? "sparse" : "dense");
    if (!d->sparse || d->old_form)
        daf__buf_printf(out, ",\"eltype\":\"%s\"", daf_type_name(d->type));
    if (d->old_form)
        daf__buf_printf(out, ",\"indtype\":\"%s\"", daf_type_name(d->index_type));
    if (!d->sparse && d->parts[DAF__VALUES].packed)
        write_packing(out, &d->parts[DAF__VALUES].packing, kind == DAF__MATRIX);
    if (d->sparse && !d->old_form) {
        write_component(out, kind, d, DAF__POINTERS);
        write_component(out, kind, d, DAF__INDICES);
        write_component(out, kind, d, DAF__VALUES);
    }
    daf__buf_text(out, "}\n");
}

/* ---- parts */

bool daf__descriptor_is_packed(const daf__descriptor *d) {
    bool packed = false;
    for (unsigned i = 0; i < DAF__N_PARTS; i++)
        packed |= d->parts[i].packed;
    return packed;
}

bool daf__descriptor_needs_1_1(const daf__descriptor *d) {
    return daf__descriptor_is_packed(d) || (d->sparse && !d->old_form);
}

const char *daf__part_name(daf__kind kind, bool sparse, daf__part part) {
    if (part == DAF__VALUES)
        return sparse ? "nzval" : "data";
    if (part == DAF__POINTERS)
        return "colptr";
    return kind == DAF__MATRIX ? "rowval" : "nzind";
}

const char *daf__part_suffix(char text[DAF__SUFFIX_TEXT], daf__kind kind, const daf__descriptor *d,
                             daf__part part) {
    const daf__component *c = &d->parts[part];
    const char *name = daf__part_name(kind, d->sparse, part);
    if (c->type == DAF_STRING && !c->packed)
        name = d->sparse ? "nztxt" : "txt";
    if (c->packed && !d->sparse)
        snprintf(text, DAF__SUFFIX_TEXT, ".zip");
    else
        snprintf(text, DAF__SUFFIX_TEXT, ".%s%s", name, c->packed ? ".zip" : "");
    return text;
}

daf__key daf__part_key(const daf__property *p, const daf__descriptor *d, daf__part part) {
    char suffix[DAF__SUFFIX_TEXT];
    daf__key base = daf__property_key(p);
    return daf__key_with(&base, daf__part_suffix(suffix, p->kind, d, part));
}

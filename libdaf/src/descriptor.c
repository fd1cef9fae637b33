#include "descriptor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "json.h"

typedef struct parse_context {
    const char *where;
    daf_error *err;
} parse_context;

static int parse_eltype(parse_context *c, daf_type *ret, const json_t *object, const char *what) {
    const char *name = daf__json_text(object, "eltype");
    if (!name)
        return daf__fail(c->err, DAF_ERR_CORRUPT, 0, 0, "%s: %s has no eltype", c->where, what);
    if (daf_type_parse(ret, name) != 0)
        return daf__fail(c->err, DAF_ERR_CORRUPT, 0, 0, "%s: unknown element type \"%.100s\"", c->where,
                         name);
    return 0;
}

static int parse_chunk_shape(parse_context *c, daf__packing *p, daf__kind kind, const json_t *object) {
    const json_t *shape = json_object_get(object, "chunk_shape");
    size_t n = kind == DAF__MATRIX ? 2 : 1;
    if (!json_is_array(shape) || json_array_size(shape) != n)
        return daf__fail(c->err, DAF_ERR_CORRUPT, 0, 0, "%s: chunk_shape is no array of %zu numbers",
                         c->where, n);
    uint64_t sizes[2] = {1, 1};
    for (size_t i = 0; i < n; i++) {
        const json_t *size = json_array_get(shape, i);
        if (!json_is_integer(size) || json_integer_value(size) < 1)
            return daf__fail(c->err, DAF_ERR_CORRUPT, 0, 0,
                             "%s: chunk_shape holds something else than sizes from 1", c->where);
        sizes[i] = (uint64_t)json_integer_value(size);
    }
    p->chunk_rows = sizes[0];
    p->chunk_columns = sizes[1];
    return 0;
}

static int parse_packing(parse_context *c, daf__packing *ret, daf__kind kind, const json_t *object) {
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
    int rc = parse_chunk_shape(c, &p, kind, object);
    if (rc == 0)
        *ret = p;
    return rc;
}

static int parse_sparse(parse_context *c, daf__descriptor *d, const json_t *object) {
    const json_t *nzval = json_object_get(object, "nzval");
    if (json_object_get(object, "eltype"))
        return parse_eltype(c, &d->type, object, "the sparse descriptor"); /* the 1.0 form */
    if (nzval)
        return parse_eltype(c, &d->type, nzval, "nzval");
    d->type = DAF_BOOL;
    return 0;
}

static int parse_object(parse_context *c, daf__descriptor *d, daf__kind kind, const json_t *object) {
    const char *format = daf__json_text(object, "format");
    if (format && strcmp(format, "sparse") == 0) {
        d->sparse = true;
        return parse_sparse(c, d, object);
    }
    if (!format || strcmp(format, "dense") != 0)
        return daf__fail(c->err, DAF_ERR_CORRUPT, 0, 0, "%s: unknown format \"%.100s\"", c->where,
                         format ? format : "");
    int rc = parse_eltype(c, &d->type, object, "the descriptor");
    d->packed = json_object_get(object, "packed_format") != NULL;
    if (rc == 0 && d->packed)
        rc = parse_packing(c, &d->packing, kind, object);
    return rc;
}

int daf__descriptor_parse(daf__descriptor *ret, daf__kind kind, const void *text, size_t bytes,
                          const char *where, daf_error *err) {
    parse_context c = {.where = where, .err = err};
    daf__descriptor d = {0};
    json_t *object;
    int rc = daf__json_object(&object, text, bytes, where, err);
    if (rc)
        return rc;
    rc = parse_object(&c, &d, kind, object);
    json_decref(object);
    if (rc == 0)
        *ret = d;
    return rc;
}

void daf__descriptor_write(daf__buf *out, daf__kind kind, const daf__descriptor *d) {
    daf__buf_printf(out, "{\"format\":\"dense\",\"eltype\":\"%s\"", daf_type_name(d->type));
    if (d->packed) {
        const daf__packing *p = &d->packing;
        daf__buf_printf(out, ",\"packed_format\":\"%s\",\"chunk_shape\":[%" PRIu64,
                        p->indexed ? "indexed+zipped" : "zipped", p->chunk_rows);
        if (kind == DAF__MATRIX)
            daf__buf_printf(out, ",%" PRIu64, p->chunk_columns);
        daf__buf_printf(out, "],\"compression\":\"%s\",\"compression_level\":%d,\"index_location\":\"start\"",
                        p->compression, p->level);
    }
    daf__buf_text(out, "}\n");
}

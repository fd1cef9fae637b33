#include <inttypes.h>
#include <stdio.h>

#include "base/bytes.h"
#include "component.h"
#include "error.h"
#include "shard.h"

enum { PIECE_ELEMENTS = 8192 };

static uint64_t element_size(daf_type type) {
    return type == DAF_STRING ? DAF__STRING_SIZE_ESTIMATE : daf_type_bytes(type);
}

static bool is_large(const daf__extent *x, daf_type type, daf_pack_rule rule, uint64_t target) {
    uint64_t columns = x->kind == DAF__MATRIX && rule == DAF_PACK_BY_COLUMN ? 1 : x->columns;
    uint64_t n = x->columns == 0 ? 0 : x->rows * columns;
    return n >= target / element_size(type) + (target % element_size(type) != 0);
}

int daf__check_codec(daf_codec codec, int level, daf_error *err) {
    const daf__codec_row *row = daf__codec_row_of(codec);
    if (!row)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%d is no compression", (int)codec);
    if (level < row->level_min || level > row->level_max)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "compression level %d of \"%s\" is not from %d to %d", level,
                         row->name, row->level_min, row->level_max);
    return 0;
}

int daf__component_choose(daf__component *c, const daf__extent *extent, const daf__settings *s,
                          const daf_set_options *o, daf_error *err) {
    bool packed = o && o->packing != DAF_PACK_AS_OPENED ? o->packing == DAF_PACK_LARGE : s->packed;
    uint64_t target = o && o->target_chunk_kb ? (uint64_t)o->target_chunk_kb * 1024 : s->target_chunk_bytes;
    if (!packed || !is_large(extent, c->type, s->pack_rule, target))
        return 0;
    daf_codec codec = o && o->codec != DAF_CODEC_DEFAULT ? o->codec : s->codec;
    int level = o && o->level ? o->level : s->level;
    int rc = daf__check_codec(codec, level, err);
    if (rc)
        return rc;
    if (target > DAF__MAX_CHUNK_BYTES)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "target chunks of %" PRIu64 " bytes are too large", target);
    uint64_t rows = target / element_size(c->type);
    daf__packing packing = {.indexed = true,
                            .chunk_rows = rows < extent->rows ? rows : extent->rows,
                            .chunk_columns = 1,
                            .level = level};
    snprintf(packing.compression, sizeof packing.compression, "%s", daf__codec_row_of(codec)->name);
    c->packed = true;
    c->packing = packing;
    return 0;
}

int daf__flat_append(daf__out *out, daf_type type, const void *values, uint64_t n, daf_error *err) {
    size_t width = daf_type_bytes(type);
    if (BYTES_HOST_IS_LITTLE && type != DAF_BOOL)
        return daf__out_append(out, values, (size_t)n * width, err);
    uint8_t piece[PIECE_ELEMENTS * DAF__MAX_TYPE_BYTES];
    int rc = 0;
    for (uint64_t at = 0; at < n && rc == 0; at += PIECE_ELEMENTS) {
        size_t count = n - at < PIECE_ELEMENTS ? (size_t)(n - at) : PIECE_ELEMENTS;
        daf__values_copy(piece, type, (const uint8_t *)values + (size_t)at * width, count);
        rc = daf__out_append(out, piece, count * width, err);
    }
    return rc;
}

int daf__shard_spec_of(daf__shard_spec *ret, const daf *d, const daf__extent *x, const daf__component *c,
                       const char *where, daf_error *err) {
    daf__shard_spec spec = {
        .type = c->type, .level = c->packing.level, .executor = d->has_executor ? &d->executor : NULL};
    int rc = daf_codec_parse(&spec.codec, c->packing.compression);
    if (rc == 0)
        rc = daf__grid_make(&spec.grid, x->kind, x->rows, x->columns, &c->packing, where, err);
    if (rc == 0)
        *ret = spec;
    return rc;
}

static int write_shard(daf__out *out, const daf__extent *extent, const daf__component *c, const void *values,
                       const daf *d, const char *where, daf_error *err) {
    daf__shard_spec spec;
    int rc = daf__shard_spec_of(&spec, d, extent, c, where, err);
    return rc ? rc : daf__shard_write(out, &spec, values, err);
}

int daf__component_write(daf__out *out, const daf__extent *extent, const daf__component *c,
                         const void *values, const daf *d, const char *where, daf_error *err) {
    uint64_t n = extent->rows * extent->columns;
    if (c->packed)
        return write_shard(out, extent, c, values, d, where, err);
    if (c->type == DAF_STRING)
        return daf__texts_write(out, values, n, err);
    return daf__flat_append(out, c->type, values, n, err);
}

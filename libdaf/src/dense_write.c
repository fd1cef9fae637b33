/* Writing a dense property. The order of the steps: payload, descriptor, what is left of an older form, index. A
 * property that is overwritten in the same form changes by the rename of its payload alone. Only where the new payload
 * takes the name of the old one under another descriptor, the old descriptor goes first, so that no reader takes the
 * one for the other. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "dense.h"
#include "edit.h"
#include "error.h"
#include "json.h"
#include "shard.h"

enum { PIECE_ELEMENTS = 8192 };

typedef struct dense_write {
    daf__edit edit;
    const daf__property *property;
    daf__key base;
    uint64_t rows, columns;
    daf__descriptor descriptor;
    daf_codec codec;
    const void *values;
} dense_write;

const char *daf__payload_suffix(const daf__descriptor *d) {
    return d->packed ? ".zip" : d->type == DAF_STRING ? ".txt" : ".data";
}

/* ---- how it will be stored */

static uint64_t element_size(daf_type type) {
    return type == DAF_STRING ? DAF__STRING_SIZE_ESTIMATE : daf_type_bytes(type);
}

static bool is_large(const dense_write *w, const daf__settings *s, uint64_t target) {
    uint64_t columns =
        w->property->kind == DAF__MATRIX && s->pack_rule == DAF_PACK_BY_COLUMN ? 1 : w->columns;
    uint64_t n = w->columns == 0 ? 0 : w->rows * columns;
    return n >= target / element_size(w->descriptor.type) + (target % element_size(w->descriptor.type) != 0);
}

static int choose_packing(dense_write *w, const daf_set_options *o, daf_error *err) {
    const daf__settings *s = &w->edit.d->settings;
    bool packed = o && o->packing != DAF_PACK_AS_OPENED ? o->packing == DAF_PACK_LARGE : s->packed;
    uint64_t target = o && o->target_chunk_kb ? (uint64_t)o->target_chunk_kb * 1024 : s->target_chunk_bytes;
    if (!packed || !is_large(w, s, target))
        return 0;
    daf_codec codec = o && o->codec != DAF_CODEC_DEFAULT ? o->codec : s->codec;
    int level = o && o->level ? o->level : s->level;
    const daf__codec_row *row = daf__codec_row_of(codec);
    if (!row)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%d is no compression", (int)codec);
    if (!row->implemented)
        return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0,
                         "compression \"%s\" cannot be written by this version", row->name);
    if (level < row->level_min || level > row->level_max)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "compression level %d of \"%s\" is not from %d to %d", level,
                         row->name, row->level_min, row->level_max);
    if (target > DAF__MAX_CHUNK_BYTES)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "target chunks of %" PRIu64 " bytes are too large", target);
    uint64_t rows = target / element_size(w->descriptor.type);
    daf__packing packing = {
        .indexed = true, .chunk_rows = rows < w->rows ? rows : w->rows, .chunk_columns = 1, .level = level};
    snprintf(packing.compression, sizeof packing.compression, "%s", row->name);
    w->descriptor.packed = true;
    w->descriptor.packing = packing;
    w->codec = codec;
    return 0;
}

/* ---- the payload */

static int write_flat_values(daf__out *out, daf_type type, const void *values, uint64_t n, daf_error *err) {
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

static int write_shard(dense_write *w, daf__out *out, daf_error *err) {
    const daf *d = w->edit.d;
    daf__shard_spec spec = {.type = w->descriptor.type,
                            .codec = w->codec,
                            .level = w->descriptor.packing.level,
                            .executor = d->has_executor ? &d->executor : NULL};
    int rc = daf__grid_make(&spec.grid, w->property->kind, w->rows, w->columns, &w->descriptor.packing,
                            w->base.text, err);
    return rc ? rc : daf__shard_write(out, &spec, w->values, err);
}

static int write_payload(dense_write *w, daf__out *out, daf_error *err) {
    uint64_t n = w->rows * w->columns;
    if (w->descriptor.packed)
        return write_shard(w, out, err);
    if (w->descriptor.type == DAF_STRING)
        return daf__texts_write(out, w->values, n, err);
    return write_flat_values(out, w->descriptor.type, w->values, n, err);
}

static int stage_payload(dense_write *w, daf_error *err) {
    daf__key key = daf__key_with(&w->base, daf__payload_suffix(&w->descriptor));
    daf__out *out;
    int rc = daf__edit_create(&w->edit, &out, err);
    if (rc)
        return rc;
    rc = write_payload(w, out, err);
    return daf__edit_put(&w->edit, key.text, out, rc, err);
}

/* ---- the steps */

/* Whether the descriptor that is there has the same bytes, and whether the new payload would take the place of an old
 * file. */
static int compare_old(dense_write *w, const daf__buf *json, bool *same, bool *in_place, daf_error *err) {
    daf__store *s = w->edit.d->store;
    daf__key json_key = daf__key_with(&w->base, ".json");
    daf__key payload_key = daf__key_with(&w->base, daf__payload_suffix(&w->descriptor));
    daf__buf old = {0};
    daf_error details;
    int rc = daf__store_read(s, &old, NULL, json_key.text, DAF__MAX_JSON_BYTES, &details);
    if (rc == DAF_ERR_NOMEM || rc == DAF_ERR_IO)
        return daf__pass(err, &details);
    *same = rc == 0 && old.size == json->size && memcmp(old.data, json->data, json->size) == 0;
    daf__buf_free(&old);
    return daf__store_has(s, in_place, payload_key.text, err);
}

/* A packed property is not known to version 1.0, so the marker says 1.1 before it comes. */
static int stage_marker(dense_write *w, daf_error *err) {
    static const char marker[] = "{\"version\":[1,1]}\n";
    const daf *d = w->edit.d;
    if (!w->descriptor.packed || d->major != 1 || d->minor >= 1)
        return 0;
    return daf__edit_put_bytes(&w->edit, "daf.json", marker, sizeof marker - 1, err);
}

static int stage_steps(dense_write *w, bool there, const daf__buf *json, daf_error *err) {
    daf__key json_key = daf__key_with(&w->base, ".json");
    bool same = false, in_place = false;
    int rc = stage_marker(w, err);
    if (rc == 0 && there)
        rc = compare_old(w, json, &same, &in_place, err);
    if (rc == 0 && in_place && !same)
        rc = daf__change_remove(&w->edit.change, json_key.text, err);
    if (rc == 0)
        rc = stage_payload(w, err);
    if (rc == 0 && !same)
        rc = daf__edit_put_bytes(&w->edit, json_key.text, json->data, json->size, err);
    if (rc == 0 && there)
        rc = daf__edit_remove(&w->edit, w->property, ".json", daf__payload_suffix(&w->descriptor), err);
    if (rc == 0)
        rc = daf__edit_list(&w->edit, &w->base, json->data, json->size, err);
    return rc;
}

/* An overwritten matrix leaves no other layout behind that says something else. */
static int stage_other_layout(dense_write *w, bool overwrite, daf_error *err) {
    const daf__property *p = w->property;
    if (!overwrite || p->kind != DAF__MATRIX || strcmp(p->axis, p->columns) == 0)
        return 0;
    daf__property other = daf__other_layout(p);
    bool there;
    int rc = daf__property_has(w->edit.d, &there, &other, err);
    return rc || !there ? rc : daf__edit_remove(&w->edit, &other, NULL, NULL, err);
}

static int check_values(dense_write *w, uint64_t n, daf_error *err) {
    char text[DAF__PROPERTY_TEXT];
    daf_type type = w->descriptor.type;
    if ((unsigned)type >= DAF_N_TYPES)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%d is no element type", (int)type);
    int rc = daf__shape(w->edit.d, w->property, &w->rows, &w->columns, err);
    if (rc)
        return rc;
    if (n != w->rows * w->columns)
        return daf__fail(err, DAF_ERR_ARG, 0, 0,
                         "%s: %" PRIu64 " values, but %" PRIu64 " x %" PRIu64 " are needed",
                         daf__property_text(text, w->property), n, w->rows, w->columns);
    if (n > 0 && !w->values)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%s: the values are NULL",
                         daf__property_text(text, w->property));
    return type == DAF_STRING ? daf__texts_check(w->values, n, false, err) : 0;
}

int daf__dense_set(daf *d, const daf__property *p, daf_type type, const void *values, uint64_t n,
                   const daf_set_options *options, daf_error *err) {
    dense_write w = {.property = p, .descriptor.type = type, .values = values};
    daf__buf json = {0};
    bool there = false, overwrite = options && options->overwrite;
    int rc = daf__edit_begin(&w.edit, d, err);
    if (rc == 0)
        rc = daf__check_writable(p, err);
    if (rc == 0)
        rc = check_values(&w, n, err);
    if (rc == 0)
        rc = daf__property_is_free(d, &there, p, overwrite, err);
    if (rc == 0)
        rc = choose_packing(&w, options, err);
    if (rc == 0) {
        w.base = daf__property_key(p);
        daf__descriptor_write(&json, p->kind, &w.descriptor);
        rc = daf__buf_check(&json, err);
    }
    if (rc == 0)
        rc = stage_steps(&w, there, &json, err);
    if (rc == 0)
        rc = stage_other_layout(&w, overwrite, err);
    rc = daf__edit_end(&w.edit, rc, err);
    if (rc == 0 && w.descriptor.packed && d->major == 1 && d->minor < 1)
        d->minor = 1;
    daf__buf_free(&json);
    return rc;
}

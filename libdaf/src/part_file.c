/* A numeric part of a sparse property, flat or packed, as a file of its values: of packed ones some chunks are decoded at a
 * time, so that reading on costs each chunk once. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "component.h"
#include "error.h"

#define HELD_BYTES ((uint64_t)1 << 20)

typedef struct part_file {
    daf__file base;
    daf__file *file; /* borrowed */
    daf_type type;
    bool packed;
    daf__shard shard;
    uint64_t at_once, first, n; /* elements: held at most; the first one held, and how many */
    uint8_t *held;
} part_file;

/* Decodes the chunks from the one of `element` on. */
static int hold(part_file *p, uint64_t element, daf_error *err) {
    const daf__grid *g = &p->shard.grid;
    size_t width = daf_type_bytes(p->type);
    uint64_t first = element / g->chunk_rows * g->chunk_rows;
    daf__span box = {
        .row = first, .n_rows = g->rows - first < p->at_once ? g->rows - first : p->at_once, .n_columns = 1};
    memset(p->held, 0, (size_t)box.n_rows * width);
    p->n = 0;
    int rc = daf__shard_read_values(&p->shard, &box, p->held, err);
    if (rc)
        return rc;
    p->first = first;
    p->n = box.n_rows;
    return 0;
}

static int read_packed(part_file *p, uint8_t *to, uint64_t element, uint64_t n, daf_error *err) {
    size_t width = daf_type_bytes(p->type);
    while (n > 0) {
        if (element < p->first || element - p->first >= p->n) {
            int rc = hold(p, element, err);
            if (rc)
                return rc;
        }
        uint64_t from = element - p->first, there = p->n - from < n ? p->n - from : n;
        memcpy(to, p->held + from * width, (size_t)there * width);
        to += there * width;
        element += there;
        n -= there;
    }
    return 0;
}

static int part_read(daf__file *base, void *data, size_t bytes, uint64_t offset, daf_error *err) {
    part_file *p = (part_file *)base;
    size_t width = daf_type_bytes(p->type);
    if (p->packed)
        return read_packed(p, data, offset / width, bytes / width, err);
    int rc = p->file->ops->read(p->file, data, bytes, offset, err);
    for (size_t i = 0; i < bytes / width && rc == 0 && !BYTES_HOST_IS_LITTLE; i++) {
        uint8_t value[DAF__MAX_TYPE_BYTES], *at = (uint8_t *)data + i * width;
        bytes_copy_le(value, at, 1, width);
        memcpy(at, value, width);
    }
    return rc;
}

static void part_close(daf__file *base) {
    part_file *p = (part_file *)base;
    if (p->packed)
        daf__shard_close(&p->shard);
    free(p->held);
    free(p->base.where);
    free(p);
}

static const daf__file_ops part_ops = {.read = part_read, .close = part_close};

static int open_packed(part_file *p, const daf *d, const daf__extent *extent, const daf__component *c,
                       daf_error *err) {
    size_t width = daf_type_bytes(c->type);
    int rc = daf__component_open_shard(&p->shard, d, p->file, extent, c, err);
    if (rc)
        return rc;
    p->packed = true;
    uint64_t chunk = p->shard.grid.chunk_rows, chunks = HELD_BYTES / width / chunk;
    p->at_once = chunk * (chunks ? chunks : 1);
    if (p->at_once > extent->rows)
        p->at_once = extent->rows;
    p->held = malloc((size_t)p->at_once * width);
    return p->held ? 0 : daf__no_memory(err);
}

int daf__component_as_file(daf__file **ret, const daf *d, daf__file *f, const daf__extent *extent,
                           const daf__component *c, daf_error *err) {
    uint64_t bytes;
    if (__builtin_mul_overflow(extent->rows, (uint64_t)daf_type_bytes(c->type), &bytes) ||
        bytes > SIZE_MAX / 2)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0, "%s: more values than can be read", f->where);
    part_file *p = calloc(1, sizeof *p);
    if (!p)
        return daf__no_memory(err);
    *p =
        (part_file){.base = {.ops = &part_ops, .stamp = f->stamp, .size = bytes}, .file = f, .type = c->type};
    p->base.where = strdup(f->where);
    int rc = p->base.where ? 0 : daf__no_memory(err);
    if (rc == 0 && c->packed && extent->rows)
        rc = open_packed(p, d, extent, c, err);
    else if (rc == 0)
        rc = daf__component_check_size(f, c->type, extent->rows, err);
    if (rc)
        part_close(&p->base);
    else
        *ret = &p->base;
    return rc;
}

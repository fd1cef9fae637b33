/* One array of the tree: whether its chunk is a payload as it stands, and making the payload when it is not. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "error.h"
#include "scalar.h"
#include "type.h"
#include "zarr_decode.h"
#include "zarr_store_private.h"
#include "zip.h"

/* ---- looking */

static int count_elements(daf__store *tree, const daf__zarr_part *p, uint64_t *ret, daf_error *err) {
    const uint64_t *shape = p->node.shape;
    if (__builtin_mul_overflow(shape[0], shape[1], ret) ||
        *ret > (uint64_t)SIZE_MAX / DAF__MAX_TYPE_BYTES / 2)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0, "%s/%s: %" PRIu64 " x %" PRIu64 " elements are too many",
                         tree->path, p->path.text, shape[0], shape[1]);
    return 0;
}

/* A shard has our end records. */
static int is_whole_shard(daf__file *f, bool *ret, daf_error *err) {
    daf__zip_directory directory;
    daf_error details;
    int rc = daf__zip_find_directory(f, &directory, &details);
    *ret = rc == 0 && f->size - directory.records_offset == DAF__ZIP_END_BYTES;
    return rc == DAF_ERR_NOMEM || rc == DAF_ERR_IO ? daf__pass(err, &details) : 0;
}

static int look_at_chunk(daf__store *tree, daf__zarr_part *p, daf_error *err) {
    daf__file *f;
    daf_error details;
    uint64_t n = 0;
    int rc = count_elements(tree, p, &n, err);
    p->packed = daf__zarr_is_shard(&p->node, &p->packing);
    if (rc || !(p->packed || (p->node.type != DAF_STRING && daf__zarr_is_flat(&p->node))))
        return rc;
    p->chunk = daf__zarr_chunk_path(&p->node, p->path.text, 0, 0);
    rc = tree->ops->open(tree, &f, p->chunk.text, &details);
    if (rc)
        return rc == DAF_ERR_MISSING ? 0 : daf__pass(err, &details);
    if (p->packed)
        rc = is_whole_shard(f, &p->as_it_is, err);
    else
        p->as_it_is = f->size == n * daf_type_bytes(p->node.type);
    daf__file_close(f);
    return rc;
}

int daf__zarr_part_open(daf__store *tree, daf__zarr_part *ret, const char *path, unsigned n_dimensions,
                        daf_error *err) {
    daf__zarr_part p = {.as_it_is = false};
    p.path = daf__zarr_path_with("", path);
    int rc = daf__zarr_read_node(tree, &p.node, NULL, path, err);
    if (rc)
        return rc;
    if (p.node.is_group || p.node.n_dimensions != n_dimensions)
        rc = daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "%s/%s: is no array of %u dimension%s", tree->path, path,
                       n_dimensions, n_dimensions == 1 ? "" : "s");
    if (rc == 0)
        rc = look_at_chunk(tree, &p, err);
    p.packed = p.packed && p.as_it_is;
    if (rc)
        daf__zarr_part_close(&p);
    else
        *ret = p;
    return rc;
}

void daf__zarr_part_close(daf__zarr_part *p) {
    daf__zarr_node_free(&p->node);
}

/* ---- making */

static int make_values(daf__store *tree, daf__buf *ret, const daf__zarr_part *p, uint64_t n, daf_error *err) {
    size_t bytes = (size_t)n * daf_type_bytes(p->node.type);
    daf__buf b = {.data = calloc(1, bytes ? bytes : 1), .size = bytes, .capacity = bytes ? bytes : 1};
    int rc =
        b.data ? daf__zarr_decode_values(tree, p->path.text, &p->node, b.data, err) : daf__no_memory(err);
    if (rc)
        daf__buf_free(&b);
    else
        *ret = b;
    return rc;
}

static int make_lines(daf__store *tree, daf__buf *ret, const daf__zarr_part *p, daf_error *err) {
    daf__texts texts;
    daf_error details;
    daf__buf b = {0};
    int rc = daf__zarr_decode_texts(tree, p->path.text, &p->node, &texts, err);
    if (rc)
        return rc;
    rc = daf__texts_check(texts.next, texts.n, false, &details);
    if (rc)
        rc = daf__fail(err, details.code, 0, 0, "%s/%s: %.900s", tree->path, p->path.text, details.text);
    for (uint64_t i = 0; i < texts.n && rc == 0; i++) {
        daf__buf_append(&b, texts.next[i], daf__texts_bytes(&texts, i));
        daf__buf_append(&b, "\n", 1);
    }
    daf__texts_free(&texts);
    if (rc == 0)
        rc = daf__buf_check(&b, err);
    if (rc)
        daf__buf_free(&b);
    else
        *ret = b;
    return rc;
}

int daf__zarr_make_payload(daf__store *tree, daf__buf *ret, const daf__zarr_part *p, daf_error *err) {
    uint64_t n;
    int rc = count_elements(tree, p, &n, err);
    if (rc)
        return rc;
    return p->node.type == DAF_STRING ? make_lines(tree, ret, p, err) : make_values(tree, ret, p, n, err);
}

/* ---- scalars */

static daf_scalar number_scalar(daf_type type, const uint8_t *bytes) {
    uint8_t all[8] = {0};
    size_t width = daf_type_bytes(type);
    memcpy(all, bytes, width);
    uint64_t bits = bytes_load64(all);
    uint32_t single_bits = (uint32_t)bits;
    float single;
    daf_scalar s = {.type = type, .value.u = bits};
    if (type == DAF_BOOL)
        s = daf_scalar_bool(bits != 0);
    else if (daf__type_is_signed(type) && width < 8 && bits >> (8 * width - 1))
        s.value.i = (int64_t)(bits | ~(uint64_t)0 << 8 * width);
    else if (type == DAF_FLOAT64)
        memcpy(&s.value.f, &bits, sizeof bits);
    if (type == DAF_FLOAT32) {
        memcpy(&single, &single_bits, sizeof single);
        s.value.f = (double)single;
    }
    return s;
}

int daf__zarr_make_scalar(daf__store *tree, daf__buf *ret, const daf__zarr_part *p, daf_error *err) {
    daf__texts texts = {0};
    daf__buf value = {0}, json = {0};
    daf_scalar s;
    int rc;
    if (p->node.shape[1] != 1)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "%s/%s: a scalar is not of shape [1]", tree->path,
                         p->path.text);
    if (p->node.type == DAF_STRING) {
        rc = daf__zarr_decode_texts(tree, p->path.text, &p->node, &texts, err);
        s = daf_scalar_string(rc ? "" : texts.next[0]);
    } else {
        rc = make_values(tree, &value, p, 1, err);
        s = rc ? daf_scalar_bool(false) : number_scalar(p->node.type, value.data);
    }
    if (rc == 0) {
        daf__scalar_write(&json, &s);
        rc = daf__buf_check(&json, err);
    }
    daf__texts_free(&texts);
    daf__buf_free(&value);
    if (rc)
        daf__buf_free(&json);
    else
        *ret = json;
    return rc;
}

#include "zarr_decode.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "error.h"
#include "utf8.h"

#define MAX_CHUNKS ((uint64_t)1 << 24)    /* of an array: each is looked for */
#define MAX_EXPANSION ((uint64_t)1 << 15) /* of compressed bytes: none of the codecs does much better */
enum { INDEX_ENTRY_BYTES = 16, CRC_BYTES = 4 };

/* A box of elements, in the order of C. */
typedef struct box {
    uint64_t first[2], size[2];
} box;

typedef struct decoding {
    const daf__zarr_node *node;
    const char *where; /* the chunk's file */
    uint8_t *values;
    daf__buf pool;     /* of texts, each with a NUL; the first is the fill value */
    uint64_t *offsets; /* of each text in it */
    daf_error *err;
} decoding;

static int bad(const decoding *d, const char *what) {
    if (what == daf__codec_no_memory)
        return daf__no_memory(d->err);
    return daf__fail(d->err, DAF_ERR_CORRUPT, 0, 0, "%s: %s", d->where, what);
}

/* The part of a chunk that lies inside of the array. */
static box inside(const decoding *d, const box *chunk) {
    box in = *chunk;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t size = d->node->shape[i];
        uint64_t left = chunk->first[i] < size ? size - chunk->first[i] : 0;
        in.size[i] = chunk->size[i] < left ? chunk->size[i] : left;
    }
    return in;
}

/* ---- elements */

static int take_values(decoding *d, const daf__zarr_codec *codec, const box *chunk, const uint8_t *data,
                       size_t bytes) {
    size_t width = daf_type_bytes(d->node->type);
    uint64_t n, wanted;
    if (__builtin_mul_overflow(chunk->size[0], chunk->size[1], &n) ||
        __builtin_mul_overflow(n, width, &wanted) || wanted != bytes)
        return bad(d, "it is of another size than its chunk's shape");
    box in = inside(d, chunk);
    for (uint64_t i = 0; i < in.size[0]; i++) {
        uint8_t *to = d->values + ((in.first[0] + i) * d->node->shape[1] + in.first[1]) * width;
        const uint8_t *from = data + i * chunk->size[1] * width;
        if (!codec->big_endian) {
            memcpy(to, from, (size_t)in.size[1] * width);
            continue;
        }
        for (uint64_t j = 0; j < in.size[1]; j++)
            for (size_t b = 0; b < width; b++)
                to[j * width + b] = from[j * width + width - 1 - b];
    }
    return 0;
}

static int take_text(decoding *d, uint64_t at, const uint8_t *text, size_t bytes) {
    if (memchr(text, 0, bytes))
        return daf__fail(d->err, DAF_ERR_VALUE, 0, 0, "%s: a text holds a NUL, which cannot be stored here",
                         d->where);
    if (daf__utf8_prefix((const char *)text, bytes) != bytes)
        return bad(d, "a text is not valid UTF-8");
    d->offsets[at] = d->pool.size;
    daf__buf_append(&d->pool, text, bytes);
    daf__buf_append(&d->pool, "", 1);
    return daf__buf_check(&d->pool, d->err);
}

static int take_texts(decoding *d, const box *chunk, const uint8_t *data, size_t bytes) {
    static const char cut[] = "its texts reach past its end";
    uint64_t n;
    if (bytes < 4 || __builtin_mul_overflow(chunk->size[0], chunk->size[1], &n) || bytes_load32(data) != n)
        return bad(d, "it holds another number of texts than its chunk's shape");
    box in = inside(d, chunk);
    size_t at = 4;
    int rc = 0;
    for (uint64_t e = 0; e < n && rc == 0; e++) {
        uint64_t i = e / chunk->size[1], j = e % chunk->size[1];
        if (bytes - at < 4 || bytes_load32(data + at) > bytes - at - 4)
            return bad(d, cut);
        size_t length = bytes_load32(data + at);
        at += 4;
        if (i < in.size[0] && j < in.size[1])
            rc = take_text(d, (in.first[0] + i) * d->node->shape[1] + in.first[1] + j, data + at, length);
        at += length;
    }
    return rc || at == bytes ? rc : bad(d, "something follows its texts");
}

/* ---- shards */

static int take_chunk(decoding *d, const daf__zarr_chain *chain, const box *chunk, const uint8_t *data,
                      size_t bytes);

/* Finds the index and checks it: offset and length of each inner chunk. */
static int find_index(decoding *d, const daf__zarr_shards *s, uint64_t n, const uint8_t *data, size_t bytes,
                      const uint8_t **ret) {
    size_t checksums = 0;
    for (unsigned i = 1; i < s->index.n; i++) {
        if (s->index.codecs[i].kind != DAF__ZARR_CRC32C)
            return daf__fail(d->err, DAF_ERR_UNSUPPORTED, 0, 0,
                             "%s: a compressed index of a shard cannot be read", d->where);
        checksums += CRC_BYTES;
    }
    if (n > bytes / INDEX_ENTRY_BYTES || n * INDEX_ENTRY_BYTES + checksums > bytes)
        return bad(d, "it is too short for the index of its chunks");
    size_t index_bytes = (size_t)n * INDEX_ENTRY_BYTES;
    const uint8_t *index = s->at_end ? data + bytes - index_bytes - checksums : data;
    daf__buf checked = {0};
    const char *problem = NULL;
    for (size_t k = checksums; k > 0 && !problem; k -= CRC_BYTES)
        problem = daf__zarr_unpack(&checked, DAF__ZARR_CRC32C, index, index_bytes + k, 0);
    daf__buf_free(&checked);
    *ret = index;
    return problem ? bad(d, problem) : 0;
}

static uint64_t load_index(const daf__zarr_shards *s, const uint8_t *at) {
    return s->index.codecs[0].big_endian ? __builtin_bswap64(bytes_load64(at)) : bytes_load64(at);
}

static int take_shard(decoding *d, const daf__zarr_shards *s, const box *chunk, const uint8_t *data,
                      size_t bytes) {
    uint64_t grid[2], n;
    const uint8_t *index = NULL;
    for (unsigned i = 0; i < 2; i++)
        grid[i] = chunk->size[i] / s->chunk[i] + (chunk->size[i] % s->chunk[i] != 0);
    if (__builtin_mul_overflow(grid[0], grid[1], &n))
        return bad(d, "it has too many inner chunks");
    int rc = find_index(d, s, n, data, bytes, &index);
    for (uint64_t k = 0; k < n && rc == 0; k++) {
        uint64_t offset = load_index(s, index + k * INDEX_ENTRY_BYTES);
        uint64_t length = load_index(s, index + k * INDEX_ENTRY_BYTES + 8);
        box inner = {
            {chunk->first[0] + k / grid[1] * s->chunk[0], chunk->first[1] + k % grid[1] * s->chunk[1]},
            {s->chunk[0], s->chunk[1]}};
        if (offset == UINT64_MAX && length == UINT64_MAX)
            continue;
        if (offset > bytes || length > bytes - offset)
            return bad(d, "an inner chunk does not lie inside of it");
        rc = take_chunk(d, &s->inner, &inner, data + offset, (size_t)length);
    }
    return rc;
}

/* ---- chunks */

/* What a codec may give at most: the elements, when they come next, else a multiple of what there is. */
static uint64_t limit_of(const decoding *d, const daf__zarr_chain *chain, unsigned i, const box *chunk,
                         size_t bytes) {
    uint64_t n, wanted;
    if (i == 1 && chain->codecs[0].kind == DAF__ZARR_BYTES &&
        !__builtin_mul_overflow(chunk->size[0], chunk->size[1], &n) &&
        !__builtin_mul_overflow(n, daf_type_bytes(d->node->type), &wanted) && wanted < DAF__MAX_CHUNK_BYTES)
        return wanted;
    return bytes < DAF__MAX_CHUNK_BYTES / MAX_EXPANSION ? bytes * MAX_EXPANSION : DAF__MAX_CHUNK_BYTES;
}

static int take_plain(decoding *d, const daf__zarr_codec *codec, const box *chunk, const uint8_t *data,
                      size_t bytes) {
    switch (codec->kind) {
    case DAF__ZARR_BYTES:
        return take_values(d, codec, chunk, data, bytes);
    case DAF__ZARR_TEXTS:
        return take_texts(d, chunk, data, bytes);
    default:
        return take_shard(d, codec->shards, chunk, data, bytes);
    }
}

static int take_chunk(decoding *d, const daf__zarr_chain *chain, const box *chunk, const uint8_t *data,
                      size_t bytes) {
    daf__buf bufs[2] = {{0}, {0}};
    const char *problem = NULL;
    for (unsigned i = chain->n - 1; i > 0 && !problem; i--) {
        daf__buf *to = &bufs[i % 2];
        problem =
            daf__zarr_unpack(to, chain->codecs[i].kind, data, bytes, limit_of(d, chain, i, chunk, bytes));
        data = to->data;
        bytes = to->size;
    }
    int rc = problem ? bad(d, problem) : take_plain(d, &chain->codecs[0], chunk, data, bytes);
    daf__buf_free(&bufs[0]);
    daf__buf_free(&bufs[1]);
    return rc;
}

static int take_file(decoding *d, daf__store *s, const char *path, uint64_t i, uint64_t j) {
    daf__zarr_path key = daf__zarr_chunk_path(d->node, path, i, j);
    box chunk = {{i * d->node->chunk[0], j * d->node->chunk[1]}, {d->node->chunk[0], d->node->chunk[1]}};
    daf__buf data = {0};
    daf__file *f;
    daf_error details;
    int rc = s->ops->open(s, &f, key.text, &details);
    if (rc)
        return rc == DAF_ERR_MISSING ? 0 : daf__pass(d->err, &details);
    rc = daf__file_read_whole(f, &data, UINT64_MAX, d->err);
    d->where = f->where;
    if (rc == 0)
        rc = take_chunk(d, &d->node->chain, &chunk, data.data, data.size);
    d->where = path;
    daf__file_close(f);
    daf__buf_free(&data);
    return rc;
}

static int take_files(decoding *d, daf__store *s, const char *path) {
    const daf__zarr_node *n = d->node;
    uint64_t grid[2], all;
    if (n->shape[0] == 0 || n->shape[1] == 0)
        return 0;
    for (unsigned i = 0; i < 2; i++)
        grid[i] = (n->shape[i] - 1) / n->chunk[i] + 1;
    if (__builtin_mul_overflow(grid[0], grid[1], &all) || all > MAX_CHUNKS)
        return daf__fail(d->err, DAF_ERR_LIMIT, 0, 0, "%s/%s: has more chunks than %" PRIu64, s->path, path,
                         MAX_CHUNKS);
    int rc = 0;
    for (uint64_t i = 0; i < grid[0] && rc == 0; i++)
        for (uint64_t j = 0; j < grid[1] && rc == 0; j++)
            rc = take_file(d, s, path, i, j);
    return rc;
}

/* ---- the calls */

int daf__zarr_decode_values(daf__store *s, const char *path, const daf__zarr_node *node, void *values,
                            daf_error *err) {
    static const uint8_t zeros[sizeof node->fill];
    decoding d = {.node = node, .where = path, .values = values, .err = err};
    size_t width = daf_type_bytes(node->type);
    uint64_t n = node->shape[0] * node->shape[1];
    for (uint64_t i = 0; i < n && memcmp(node->fill, zeros, width) != 0; i++)
        memcpy(d.values + i * width, node->fill, width);
    return take_files(&d, s, path);
}

static int lay_out(decoding *d, uint64_t n, daf__texts *ret) {
    size_t bytes = 1;
    for (uint64_t i = 0; i < n; i++)
        bytes += strlen((const char *)d->pool.data + d->offsets[i]) + 1;
    char *pool = malloc(bytes), *to = pool;
    const char **next = malloc(((size_t)n + 1) * sizeof *next);
    if (!pool || !next) {
        free(pool);
        free(next);
        return daf__no_memory(d->err);
    }
    for (uint64_t i = 0; i < n; i++) {
        next[i] = to;
        to = stpcpy(to, (const char *)d->pool.data + d->offsets[i]) + 1;
    }
    next[n] = to;
    *ret = (daf__texts){.pool = pool, .next = next, .n = n};
    return 0;
}

int daf__zarr_decode_texts(daf__store *s, const char *path, const daf__zarr_node *node, daf__texts *ret,
                           daf_error *err) {
    uint64_t n = node->shape[0] * node->shape[1];
    const char *fill = node->fill_text ? node->fill_text : "";
    decoding d = {
        .node = node, .where = path, .err = err, .offsets = calloc((size_t)n + 1, sizeof *d.offsets)};
    daf__buf_append(&d.pool, fill, strlen(fill) + 1);
    int rc = d.offsets ? daf__buf_check(&d.pool, err) : daf__no_memory(err);
    if (rc == 0)
        rc = take_files(&d, s, path);
    if (rc == 0)
        rc = lay_out(&d, n, ret);
    daf__buf_free(&d.pool);
    free(d.offsets);
    return rc;
}

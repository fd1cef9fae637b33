/* Reading a shard by its ZIP directory, as an ordinary archive: the leading index is not needed, and archives that
 * other tools made read as well. Everything is copied from the file, so a file that is cut meanwhile is an error. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "blosc.h"
#include "error.h"
#include "shard.h"
#include "utf8.h"

enum { WINDOW_BYTES = 1 << 18, WHERE_BYTES = 512 };

static void entry_of(const daf__shard *s, uint64_t k, daf__zip_entry *ret) {
    const uint8_t *at = s->entries.data + (size_t)k * s->entry_bytes;
    if (daf__zip_parse_central(at, s->entry_bytes, ret) == 0)
        *ret = (daf__zip_entry){0};
}

static int bad_chunk(const daf__shard *s, uint64_t k, uint64_t offset, const char *what, daf_error *err) {
    return daf__fail(err, DAF_ERR_CORRUPT, 0, offset, "%s: chunk %" PRIu64 ": %s", s->file->where, k, what);
}

static int check_entry(const daf__shard *s, uint64_t k, uint16_t method, bool known, daf_error *err) {
    daf__zip_entry e;
    uint64_t at = s->directory.offset + k * s->entry_bytes;
    size_t left = s->entries.size - (size_t)k * s->entry_bytes;
    if (daf__zip_parse_central(s->entries.data + (size_t)k * s->entry_bytes, left, &e) != s->entry_bytes)
        return bad_chunk(s, k, at, "its directory entry is damaged or of another width", err);
    if (known && e.method != method)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, at,
                         "%s: chunk %" PRIu64 ": ZIP method %u, but the descriptor's codec implies %u",
                         s->file->where, k, e.method, method);
    if (e.flags & DAF__ZIP_ENCRYPTED_FLAG)
        return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, at, "%s: chunk %" PRIu64 " is encrypted",
                         s->file->where, k);
    if (e.offset > s->directory.offset || e.packed_bytes > s->directory.offset - e.offset)
        return bad_chunk(s, k, at, "it does not lie inside the file", err);
    return 0;
}

/* A chunk's raw size must be what its shape needs, and what its data can hold. */
static int check_raw_bytes(const daf__shard *s, uint64_t k, uint64_t raw_bytes, uint64_t packed_bytes,
                           daf_error *err) {
    uint64_t at = s->directory.offset + k * s->entry_bytes;
    bool texts = s->type == DAF_STRING;
    /* Of texts at least their number and lengths, four bytes each. */
    uint64_t expected =
        texts ? 4 * (s->grid.chunk_elements + 1) : s->grid.chunk_elements * daf_type_bytes(s->type);
    if (texts ? raw_bytes < expected : raw_bytes != expected)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, at,
                         "%s: chunk %" PRIu64 ": %" PRIu64 " raw bytes, but its shape needs %" PRIu64,
                         s->file->where, k, raw_bytes, expected);
    if (raw_bytes > DAF__MAX_CHUNK_BYTES)
        return daf__fail(err, DAF_ERR_LIMIT, 0, at, "%s: chunk %" PRIu64 " of %" PRIu64 " bytes is too large",
                         s->file->where, k, raw_bytes);
    if (raw_bytes / daf__codec_max_ratio(s->codec) > packed_bytes)
        return bad_chunk(s, k, at, "it claims more raw bytes than its data can hold", err);
    return 0;
}

static int read_directory(daf__shard *s, daf_error *err) {
    int rc = daf__zip_find_directory(s->file, &s->directory, err);
    if (rc)
        return rc;
    const daf__zip_directory *d = &s->directory;
    if (d->n_entries < s->grid.n_chunks)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, d->offset,
                         "%s: %" PRIu64 " entries, but the shape needs %" PRIu64 " chunks", s->file->where,
                         d->n_entries, s->grid.n_chunks);
    uint8_t *to = d->bytes < SIZE_MAX / 4 ? daf__buf_reserve(&s->entries, (size_t)d->bytes) : NULL;
    if (!to)
        return daf__no_memory(err);
    rc = s->file->ops->read(s->file, to, (size_t)d->bytes, d->offset, err);
    if (rc)
        return rc;
    s->entries.size = (size_t)d->bytes;
    daf__zip_entry first;
    s->entry_bytes = daf__zip_parse_central(to, s->entries.size, &first);
    if (s->entry_bytes == 0 || s->grid.n_chunks > d->bytes / s->entry_bytes)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, d->offset, "%s: the ZIP directory is damaged",
                         s->file->where);
    return 0;
}

int daf__shard_open(daf__shard *ret, daf__file *file, const daf__grid *grid, daf_type type,
                    const char *compression, daf_error *err) {
    daf__shard s = {.file = file, .grid = *grid, .type = type};
    bool known = daf_codec_parse(&s.codec, compression) == 0;
    const daf__codec_row *codec = known ? daf__codec_row_of(s.codec) : NULL;
    int rc = read_directory(&s, err);
    for (uint64_t k = 0; k < grid->n_chunks && rc == 0; k++)
        rc = check_entry(&s, k, known ? codec->zip_method : 0, known, err);
    if (rc == 0 && !(known && codec->implemented))
        rc = daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0,
                       "%s: compression \"%s\" cannot be decoded by this version", file->where, compression);
    for (uint64_t k = 0; k < grid->n_chunks && rc == 0 && codec->zip_method != DAF__ZIP_STORED; k++) {
        daf__zip_entry e;
        entry_of(&s, k, &e);
        rc = check_raw_bytes(&s, k, e.raw_bytes, e.packed_bytes, err);
    }
    if (rc == 0)
        rc = daf__decoder_new(&s.decoder, s.codec, err);
    if (rc) {
        daf__shard_close(&s);
        return rc;
    }
    *ret = s;
    return 0;
}

void daf__shard_close(daf__shard *s) {
    daf__decoder_free(s->decoder);
    daf__buf_free(&s->entries);
    daf__buf_free(&s->window);
    daf__buf_free(&s->raw);
}

/* Makes `bytes` bytes of the file from `offset` on available; reads ahead. */
static int fetch(daf__shard *s, const uint8_t **ret, uint64_t offset, uint64_t bytes, daf_error *err) {
    if (offset > s->file->size || bytes > s->file->size - offset)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, offset, "%s: a chunk reaches past the end of the file",
                         s->file->where);
    uint64_t end = s->window_offset + s->window.size;
    if (s->window.size == 0 || offset < s->window_offset || offset + bytes > end) {
        uint64_t wanted = bytes > WINDOW_BYTES ? bytes : WINDOW_BYTES;
        if (wanted > s->file->size - offset)
            wanted = s->file->size - offset;
        s->window.size = 0;
        uint8_t *to = daf__buf_reserve(&s->window, (size_t)wanted);
        if (!to)
            return daf__no_memory(err);
        int rc = s->file->ops->read(s->file, to, (size_t)wanted, offset, err);
        if (rc)
            return rc;
        s->window.size = (size_t)wanted;
        s->window_offset = offset;
    }
    *ret = s->window.data + (offset - s->window_offset);
    return 0;
}

/* Of a stored entry the frame itself says how much it holds. */
static int raw_bytes_of(const daf__shard *s, uint64_t k, const daf__zip_entry *e, const uint8_t *data,
                        uint64_t *ret, daf_error *err) {
    daf__blosc_header h;
    if (e->method != DAF__ZIP_STORED) {
        *ret = e->raw_bytes;
        return 0;
    }
    const char *problem = daf__blosc_parse(&h, data, (size_t)e->packed_bytes);
    if (problem)
        return bad_chunk(s, k, e->offset, problem, err);
    *ret = h.raw_bytes;
    return check_raw_bytes(s, k, h.raw_bytes, e->packed_bytes, err);
}

int daf__shard_decode(daf__shard *s, uint64_t k, daf__buf *raw, daf_error *err) {
    daf__zip_entry e;
    entry_of(s, k, &e);
    const uint8_t *data;
    uint64_t raw_bytes = 0;
    int rc = fetch(s, &data, e.offset, DAF__ZIP_LOCAL_BYTES, err);
    if (rc)
        return rc;
    size_t header = daf__zip_local_bytes(data);
    if (header == 0)
        return bad_chunk(s, k, e.offset, "no local header where the directory says", err);
    rc = fetch(s, &data, e.offset + header, e.packed_bytes, err);
    if (rc == 0)
        rc = raw_bytes_of(s, k, &e, data, &raw_bytes, err);
    if (rc)
        return rc;
    raw->size = 0;
    uint8_t *to = daf__buf_reserve(raw, (size_t)raw_bytes);
    if (!to)
        return daf__no_memory(err);
    char where[WHERE_BYTES];
    snprintf(where, sizeof where, "%s: chunk %" PRIu64 " at byte %" PRIu64, s->file->where, k,
             e.offset + header);
    bool stored = e.method == DAF__ZIP_STORED;
    if (stored && (uint32_t)crc32_z(0, data, (size_t)e.packed_bytes) != e.crc)
        return bad_chunk(s, k, e.offset + header, "its checksum does not match", err);
    rc = daf__decode(s->decoder, to, (size_t)raw_bytes, data, (size_t)e.packed_bytes, where, err);
    if (rc == 0 && !stored && (uint32_t)crc32_z(0, to, (size_t)raw_bytes) != e.crc)
        rc = bad_chunk(s, k, e.offset + header, "its checksum does not match", err);
    if (rc == 0)
        raw->size = (size_t)raw_bytes;
    return rc;
}

/* Copies the part of a raw chunk that is not padding to its place. */
static void scatter(const daf__shard *s, uint64_t k, uint8_t *values) {
    const daf__grid *g = &s->grid;
    size_t width = daf_type_bytes(s->type);
    daf__span span = daf__grid_span(g, k);
    for (uint64_t c = 0; c < span.n_columns; c++) {
        uint64_t to = (span.column + c) * g->rows + span.row;
        daf__values_copy(values + (size_t)to * width, s->type,
                         s->raw.data + (size_t)(c * g->chunk_rows) * width, (size_t)span.n_rows);
    }
}

int daf__shard_read_values(daf__shard *s, void *values, daf_error *err) {
    int rc = 0;
    for (uint64_t k = 0; k < s->grid.n_chunks && rc == 0; k++) {
        rc = daf__shard_decode(s, k, &s->raw, err);
        if (rc == 0)
            scatter(s, k, values);
    }
    return rc;
}

/* ---- texts */

/* Where each text of the property begins in the pool; filled chunk by chunk, in any order. */
typedef struct text_places {
    daf__buf pool;
    uint64_t *offsets;
} text_places;

static int take_text(const daf__shard *s, uint64_t k, size_t *at, daf__buf *pool, daf_error *err) {
    const daf__buf *raw = &s->raw;
    if (raw->size - *at < 4)
        return bad_chunk(s, k, 0, "its texts are cut short", err);
    size_t bytes = bytes_load32(raw->data + *at);
    *at += 4;
    if (bytes > raw->size - *at)
        return bad_chunk(s, k, 0, "a text is longer than the chunk", err);
    const char *text = (const char *)raw->data + *at;
    if (daf__utf8_prefix(text, bytes) < bytes || memchr(text, 0, bytes))
        return bad_chunk(s, k, 0, "a text with a NUL or that is not valid UTF-8", err);
    *at += bytes;
    if (pool) {
        daf__buf_append(pool, text, bytes);
        daf__buf_append(pool, "", 1);
    }
    return 0;
}

static int take_texts(const daf__shard *s, uint64_t k, text_places *p, daf_error *err) {
    const daf__grid *g = &s->grid;
    daf__span span = daf__grid_span(g, k);
    if (s->raw.size < 4 || bytes_load32(s->raw.data) != g->chunk_elements)
        return bad_chunk(s, k, 0, "another number of texts than its shape needs", err);
    size_t at = 4;
    int rc = 0;
    for (uint64_t i = 0; i < g->chunk_elements && rc == 0; i++) {
        uint64_t r = i % g->chunk_rows, c = i / g->chunk_rows;
        bool padding = r >= span.n_rows || c >= span.n_columns;
        if (!padding)
            p->offsets[(span.column + c) * g->rows + span.row + r] = p->pool.size;
        rc = take_text(s, k, &at, padding ? NULL : &p->pool, err);
    }
    if (rc == 0 && at != s->raw.size)
        rc = bad_chunk(s, k, 0, "bytes behind its last text", err);
    return rc ? rc : daf__buf_check(&p->pool, err);
}

/* Lays the texts out in their order. */
static int arrange_texts(text_places *p, uint64_t n, daf__texts *ret, daf_error *err) {
    char *pool = malloc(p->pool.size + 1);
    const char **next = malloc(((size_t)n + 1) * sizeof *next);
    if (!pool || !next) {
        free(pool);
        free(next);
        return daf__no_memory(err);
    }
    char *to = pool;
    for (uint64_t i = 0; i < n; i++) {
        next[i] = to;
        to = stpcpy(to, (const char *)p->pool.data + p->offsets[i]) + 1;
    }
    next[n] = to;
    *ret = (daf__texts){.pool = pool, .next = next, .n = n};
    return 0;
}

int daf__shard_read_texts(daf__shard *s, daf__texts *ret, daf_error *err) {
    uint64_t n = s->grid.rows * s->grid.columns;
    text_places p = {.offsets = n < SIZE_MAX / 16 ? malloc((size_t)n * sizeof *p.offsets) : NULL};
    if (!p.offsets)
        return daf__no_memory(err);
    int rc = 0;
    for (uint64_t k = 0; k < s->grid.n_chunks && rc == 0; k++) {
        rc = daf__shard_decode(s, k, &s->raw, err);
        if (rc == 0)
            rc = take_texts(s, k, &p, err);
    }
    if (rc == 0)
        rc = arrange_texts(&p, n, ret, err);
    free(p.offsets);
    daf__buf_free(&p.pool);
    return rc;
}

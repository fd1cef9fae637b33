/* Where the chunks of a shard are. The ZIP directory is enough, so that archives which other tools made read as well; its
 * entries are of one width, so the one of any chunk is found without reading the others. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "error.h"
#include "shard.h"

enum { MAX_WINDOW_BYTES = 1 << 18 };

int daf__bad_chunk(const daf__shard *s, uint64_t k, uint64_t offset, const char *what, daf_error *err) {
    return daf__fail(err, DAF_ERR_CORRUPT, 0, offset, "%s: chunk %" PRIu64 ": %s", s->file->where, k, what);
}

uint64_t daf__shard_chunk_bytes(const daf__shard *s) {
    return s->grid.chunk_elements * daf_type_bytes(s->type);
}

int daf__shard_check_raw(const daf__shard *s, uint64_t k, uint64_t raw_bytes, uint64_t packed_bytes,
                         daf_error *err) {
    bool texts = s->type == DAF_STRING;
    /* Of texts at least their number and lengths, four bytes each. */
    uint64_t expected = texts ? 4 * (s->grid.chunk_elements + 1) : daf__shard_chunk_bytes(s);
    if (texts ? raw_bytes < expected : raw_bytes != expected)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, 0,
                         "%s: chunk %" PRIu64 ": %" PRIu64 " raw bytes, but its shape needs %" PRIu64,
                         s->file->where, k, raw_bytes, expected);
    if (raw_bytes > DAF__MAX_CHUNK_BYTES)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0, "%s: chunk %" PRIu64 " of %" PRIu64 " bytes is too large",
                         s->file->where, k, raw_bytes);
    if (raw_bytes / daf__codec_max_ratio(s->codec) > packed_bytes)
        return daf__bad_chunk(s, k, 0, "it claims more raw bytes than its data can hold", err);
    return 0;
}

/* ---- the leading index */

static int read_index(daf__shard *s, daf__buf *index, daf_error *err) {
    uint64_t n = s->grid.n_chunks;
    if (n > s->file->size / DAF__INDEX_ENTRY_BYTES ||
        n * DAF__INDEX_ENTRY_BYTES + DAF__INDEX_CRC_BYTES > s->file->size)
        return daf__fail(err, DAF_ERR_TRUNCATED, 0, s->file->size,
                         "%s: too short for the index of %" PRIu64 " chunks", s->file->where, n);
    size_t bytes = (size_t)n * DAF__INDEX_ENTRY_BYTES;
    index->size = 0;
    uint8_t *to = daf__buf_reserve(index, bytes + DAF__INDEX_CRC_BYTES);
    int rc = to ? s->file->ops->read(s->file, to, bytes + DAF__INDEX_CRC_BYTES, 0, err) : daf__no_memory(err);
    if (rc)
        return rc;
    if (common_crc32c(0, to, bytes) != bytes_load32(to + bytes))
        return daf__fail(err, DAF_ERR_CORRUPT, 0, bytes, "%s: the checksum of the index does not match",
                         s->file->where);
    index->size = bytes;
    return 0;
}

static int place_by_index(const daf__shard *s, daf__place *ret, uint64_t k, daf_error *err) {
    const uint8_t *at = s->index.data + (size_t)k * DAF__INDEX_ENTRY_BYTES;
    daf__place p = {.by_index = true, .offset = bytes_load64(at), .packed_bytes = bytes_load64(at + 8)};
    p.absent = p.offset == UINT64_MAX && p.packed_bytes == UINT64_MAX;
    if (!p.absent && (p.offset > s->file->size || p.packed_bytes > s->file->size - p.offset))
        return daf__bad_chunk(s, k, k * DAF__INDEX_ENTRY_BYTES, "it does not lie inside the file", err);
    *ret = p;
    return 0;
}

/* ---- the directory */

/* Makes the entries of chunk k, and of some behind it, available. */
static int fetch_entries(daf__shard *s, uint64_t k, uint64_t hint, daf_error *err) {
    uint64_t most = MAX_WINDOW_BYTES / s->entry_bytes + 1, there = s->entries.size / s->entry_bytes;
    if (k >= s->first_entry && k - s->first_entry < there)
        return 0;
    uint64_t n = hint < most ? hint : most;
    if (n > s->grid.n_chunks - k)
        n = s->grid.n_chunks - k;
    s->entries.size = 0;
    size_t bytes = (size_t)n * s->entry_bytes;
    uint8_t *to = daf__buf_reserve(&s->entries, bytes);
    int rc = to ? s->file->ops->read(s->file, to, bytes, s->directory.offset + k * s->entry_bytes, err)
                : daf__no_memory(err);
    if (rc)
        return rc;
    s->entries.size = bytes;
    s->first_entry = k;
    return 0;
}

static int check_entry(const daf__shard *s, uint64_t k, const daf__zip_entry *e, daf_error *err) {
    uint64_t at = s->directory.offset + k * s->entry_bytes;
    if (e->method != s->method)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, at,
                         "%s: chunk %" PRIu64 ": ZIP method %u, but the descriptor's codec implies %u",
                         s->file->where, k, e->method, s->method);
    if (e->flags & DAF__ZIP_ENCRYPTED_FLAG)
        return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, at, "%s: chunk %" PRIu64 " is encrypted",
                         s->file->where, k);
    if (e->offset > s->directory.offset || e->packed_bytes > s->directory.offset - e->offset)
        return daf__bad_chunk(s, k, at, "it does not lie inside the file", err);
    return 0;
}

static int place_by_directory(daf__shard *s, daf__place *ret, uint64_t k, uint64_t hint, daf_error *err) {
    daf__zip_entry e;
    int rc = fetch_entries(s, k, hint, err);
    if (rc)
        return rc;
    const uint8_t *at = s->entries.data + (size_t)(k - s->first_entry) * s->entry_bytes;
    if (daf__zip_parse_central(at, s->entry_bytes, &e) != s->entry_bytes)
        return daf__bad_chunk(s, k, s->directory.offset + k * s->entry_bytes,
                              "its directory entry is damaged or of another width", err);
    rc = check_entry(s, k, &e, err);
    if (rc)
        return rc;
    bool stored =
        s->method == DAF__ZIP_STORED; /* then the entry tells the size of the frame, not of what it holds */
    if (!stored)
        rc = daf__shard_check_raw(s, k, e.raw_bytes, e.packed_bytes, err);
    *ret = (daf__place){.offset = e.offset,
                        .header_bytes = (uint64_t)DAF__ZIP_LOCAL_BYTES + e.name_bytes +
                                        (s->method == DAF__ZIP_DEFLATE ? 0 : DAF__ZIP_LOCAL_EXTRA_BYTES),
                        .packed_bytes = e.packed_bytes,
                        .raw_bytes = stored ? 0 : e.raw_bytes,
                        .crc = e.crc};
    return rc;
}

int daf__shard_place(daf__shard *s, daf__place *ret, uint64_t k, uint64_t hint, daf_error *err) {
    return s->index.size ? place_by_index(s, ret, k, err) : place_by_directory(s, ret, k, hint, err);
}

/* ---- opening */

/* The width of all entries is that of the first. */
static int measure_entry(daf__shard *s, daf_error *err) {
    const daf__zip_directory *d = &s->directory;
    uint8_t head[DAF__ZIP_CENTRAL_BYTES];
    int rc = 0;
    if (d->bytes >= sizeof head)
        rc = s->file->ops->read(s->file, head, sizeof head, d->offset, err);
    if (rc)
        return rc;
    if (d->bytes >= sizeof head) /* name, extra field, comment */
        s->entry_bytes =
            sizeof head + (size_t)bytes_load16(head + 28) + bytes_load16(head + 30) + bytes_load16(head + 32);
    if (s->entry_bytes == 0 || s->grid.n_chunks > d->bytes / s->entry_bytes)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, d->offset, "%s: the ZIP directory is damaged",
                         s->file->where);
    return 0;
}

/* Whether the last entry is codec.json. */
static int ends_in_codec(daf__shard *s, bool *ret, daf_error *err) {
    static const char name[] = DAF__CODEC_JSON;
    const daf__zip_directory *d = &s->directory;
    uint8_t entry[DAF__ZIP_CENTRAL_BYTES + sizeof name - 1 + DAF__ZIP_CENTRAL_EXTRA_BYTES];
    *ret = false;
    if (d->bytes < sizeof entry)
        return 0;
    int rc = s->file->ops->read(s->file, entry, sizeof entry, d->offset + d->bytes - sizeof entry, err);
    daf__zip_entry e;
    if (rc == 0 && daf__zip_parse_central(entry, sizeof entry, &e) == sizeof entry)
        *ret = e.name_bytes == sizeof name - 1 && memcmp(e.name, name, e.name_bytes) == 0;
    return rc;
}

/* Whether chunks are absent, so that the directory cannot tell where a chunk's entry is. */
static int lacks_chunks(daf__shard *s, bool *ret, daf_error *err) {
    uint64_t n = s->directory.n_entries;
    *ret = n < s->grid.n_chunks;
    return n == s->grid.n_chunks && s->method == DAF__ZIP_STORED ? ends_in_codec(s, ret, err) : 0;
}

static int open_directory(daf__shard *s, bool indexed, daf_error *err) {
    const daf__zip_directory *d = &s->directory;
    int rc = daf__zip_find_directory(s->file, &s->directory, err);
    if (rc)
        return rc;
    bool lacking = false;
    if (indexed)
        rc = lacks_chunks(s, &lacking, err);
    if (rc)
        return rc;
    if (lacking)
        return read_index(s, &s->index, err);
    if (d->n_entries < s->grid.n_chunks)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, d->offset,
                         "%s: %" PRIu64 " entries, but the shape needs %" PRIu64 " chunks", s->file->where,
                         d->n_entries, s->grid.n_chunks);
    return measure_entry(s, err);
}

/* Entries could share their data, so that not even chunks that are each possible are so together. */
static int check_total(const daf__shard *s, daf_error *err) {
    uint64_t n, bytes;
    bool too_large = __builtin_mul_overflow(s->grid.rows, s->grid.columns, &n) ||
                     __builtin_mul_overflow(n, (uint64_t)daf_type_bytes(s->type), &bytes);
    if (too_large || bytes / daf__codec_max_ratio(s->codec) > s->file->size)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "%s: it claims more raw bytes than its data can hold",
                         s->file->where);
    return 0;
}

int daf__shard_open(daf__shard *ret, daf__file *file, const daf__grid *grid, daf_type type,
                    const daf__packing *packing, const daf_executor *executor, daf_error *err) {
    daf__shard s = {.file = file, .grid = *grid, .type = type, .executor = executor};
    if (daf_codec_parse(&s.codec, packing->compression) != 0)
        return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0,
                         "%s: compression \"%s\" cannot be decoded by this version", file->where,
                         packing->compression);
    s.method = daf__codec_row_of(s.codec)->zip_method;
    int rc = 0;
    if (daf__shard_chunk_bytes(&s) > DAF__MAX_CHUNK_BYTES)
        rc = daf__fail(err, DAF_ERR_LIMIT, 0, 0, "%s: chunks of %" PRIu64 " bytes are too large", file->where,
                       daf__shard_chunk_bytes(&s));
    if (rc == 0)
        rc = open_directory(&s, packing->indexed, err);
    if (rc == 0 && s.index.size == 0)
        rc = check_total(&s, err);
    if (rc) {
        daf__shard_close(&s);
        return rc;
    }
    *ret = s;
    return 0;
}

void daf__shard_close(daf__shard *s) {
    daf__shard_drop_batches(s);
    daf__buf_free(&s->entries);
    daf__buf_free(&s->index);
}

/* ---- checking */

static int compare_with_index(daf__shard *s, const daf__buf *index, uint64_t k, daf_error *err) {
    daf__place p = {.by_index = false};
    uint8_t local[DAF__ZIP_LOCAL_BYTES];
    int rc = daf__shard_place(s, &p, k, s->grid.n_chunks - k, err);
    if (rc == 0 && !p.by_index)
        rc = s->file->ops->read(s->file, local, sizeof local, p.offset, err);
    if (rc || p.by_index)
        return rc;
    bool gzip = s->method == DAF__ZIP_DEFLATE;
    uint64_t header = daf__zip_local_bytes(local);
    /* Of gzip the name is a part of what the index covers, and so is the trailer. */
    uint64_t start = gzip ? DAF__ZIP_LOCAL_BYTES : header;
    uint64_t bytes = p.packed_bytes + (gzip ? header - start + DAF__GZIP_TRAILER_BYTES : 0);
    const uint8_t *at = index->data + (size_t)k * DAF__INDEX_ENTRY_BYTES;
    if (header == 0 || bytes_load64(at) != p.offset + start || bytes_load64(at + 8) != bytes)
        return daf__bad_chunk(s, k, k * DAF__INDEX_ENTRY_BYTES, "the index contradicts the directory", err);
    return 0;
}

int daf__shard_check_index(daf__shard *s, daf_error *err) {
    daf__buf index = {0};
    int rc = read_index(s, &index, err);
    for (uint64_t k = 0; k < s->grid.n_chunks && rc == 0; k++)
        rc = compare_with_index(s, &index, k, err);
    daf__buf_free(&index);
    return rc;
}

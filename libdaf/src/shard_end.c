/* What frames the chunks of a shard: the index before them, codec.json and the ZIP directory behind them. */
#include <stdlib.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "error.h"
#include "shard_writer.h"

enum { PIECE_BYTES = 1 << 12 };

void daf__shard_entry(const daf__shard_writer *w, daf__zip_entry *e, uint8_t name[DAF__CHUNK_NAME_BYTES],
                      uint64_t k) {
    const daf__chunk_record *r = &w->records[k];
    /* The name of a gzip chunk is no UTF-8. */
    unsigned flags = w->method == DAF__ZIP_DEFLATE ? 0 : DAF__ZIP_UTF8_FLAG;
    *e = (daf__zip_entry){.name = name,
                          .name_bytes = (uint16_t)daf__chunk_name(name, &w->spec.grid, w->spec.codec, k),
                          .flags = (uint16_t)flags,
                          .method = w->method,
                          .crc = r->crc,
                          .packed_bytes = r->packed_bytes,
                          .raw_bytes = r->raw_bytes,
                          .offset = r->offset};
}

size_t daf__shard_local_bytes(const daf__shard_writer *w) {
    return DAF__ZIP_LOCAL_BYTES + w->name_bytes +
           (w->method == DAF__ZIP_DEFLATE ? 0 : DAF__ZIP_LOCAL_EXTRA_BYTES);
}

size_t daf__shard_element_bytes(const daf__shard_spec *spec) {
    return spec->type == DAF_STRING ? 1 : daf_type_bytes(spec->type);
}

static int append_zeros(daf__out *out, uint64_t bytes, daf_error *err) {
    static const uint8_t zeros[PIECE_BYTES];
    int rc = 0;
    while (bytes > 0 && rc == 0) {
        size_t n = bytes < PIECE_BYTES ? (size_t)bytes : PIECE_BYTES;
        rc = daf__out_append(out, zeros, n, err);
        bytes -= n;
    }
    return rc;
}

int daf__shard_begin(daf__shard_writer *w, daf_error *err) {
    return append_zeros(w->out, w->spec.grid.n_chunks * DAF__INDEX_ENTRY_BYTES + DAF__INDEX_CRC_BYTES, err);
}

/* ---- codec.json, which says in a stored shard how the chunks are encoded; our own readers do without */

static void render_codec(daf__buf *json, const daf__shard_spec *spec) {
    bool texts = spec->type == DAF_STRING;
    bool lz4 = spec->codec == DAF_CODEC_BLOSC_LZ4_BITSHUFFLE;
    daf__buf_printf(
        json,
        "[{\"configuration\":{%s},\"name\":\"%s\"},"
        "{\"configuration\":{\"blocksize\":0,\"clevel\":%d,\"cname\":\"%s\",\"shuffle\":\"bitshuffle\","
        "\"typesize\":%zu},\"name\":\"blosc\"}]",
        texts ? "" : "\"endian\":\"little\"", texts ? "vlen-utf8" : "bytes", spec->level,
        lz4 ? "lz4" : "zstd", daf__shard_element_bytes(spec));
}

static int write_codec(const daf__shard_writer *w, daf__zip_entry *ret, daf_error *err) {
    daf__buf json = {0};
    render_codec(&json, &w->spec);
    int rc = daf__buf_check(&json, err);
    if (rc)
        return rc;
    *ret = (daf__zip_entry){.name = (const uint8_t *)DAF__CODEC_JSON,
                            .name_bytes = sizeof DAF__CODEC_JSON - 1,
                            .flags = DAF__ZIP_UTF8_FLAG,
                            .method = DAF__ZIP_STORED,
                            .crc = (uint32_t)crc32_z(0, json.data, json.size),
                            .packed_bytes = json.size,
                            .raw_bytes = json.size,
                            .offset = w->out->size};
    uint8_t header[DAF__ZIP_LOCAL_BYTES + sizeof DAF__CODEC_JSON + DAF__ZIP_LOCAL_EXTRA_BYTES];
    rc = daf__out_append(w->out, header, daf__zip_put_local(header, ret, true), err);
    if (rc == 0)
        rc = daf__out_append(w->out, json.data, json.size, err);
    daf__buf_free(&json);
    return rc;
}

static int write_directory(const daf__shard_writer *w, daf_error *err) {
    uint8_t bytes[DAF__ZIP_CENTRAL_BYTES + DAF__CHUNK_NAME_BYTES + DAF__ZIP_CENTRAL_EXTRA_BYTES];
    uint8_t name[DAF__CHUNK_NAME_BYTES], end[DAF__ZIP_END_BYTES];
    daf__zip_entry codec, e;
    uint64_t n = w->spec.grid.n_chunks;
    bool stored = w->method == DAF__ZIP_STORED;
    int rc = stored ? write_codec(w, &codec, err) : 0;
    uint64_t start = w->out->size;
    for (uint64_t k = 0; k < n && rc == 0; k++) {
        daf__shard_entry(w, &e, name, k);
        rc = daf__out_append(w->out, bytes, daf__zip_put_central(bytes, &e), err);
    }
    if (rc == 0 && stored)
        rc = daf__out_append(w->out, bytes, daf__zip_put_central(bytes, &codec), err);
    if (rc)
        return rc;
    daf__zip_put_end(end, n + stored, w->out->size - start, start);
    return daf__out_append(w->out, end, sizeof end, err);
}

/* The index covers what a Zarr codec eats: a zstd frame, or a whole gzip member, whose header is the entry's name. */
static int write_index(const daf__shard_writer *w, daf_error *err) {
    uint64_t n = w->spec.grid.n_chunks;
    bool gzip = w->method == DAF__ZIP_DEFLATE;
    size_t bytes = (size_t)n * DAF__INDEX_ENTRY_BYTES;
    uint8_t *index = malloc(bytes + DAF__INDEX_CRC_BYTES);
    if (!index)
        return daf__no_memory(err);
    for (uint64_t k = 0; k < n; k++) {
        const daf__chunk_record *r = &w->records[k];
        uint64_t start = gzip ? DAF__ZIP_LOCAL_BYTES : daf__shard_local_bytes(w);
        uint64_t extra = gzip ? w->name_bytes + DAF__GZIP_TRAILER_BYTES : 0;
        bytes_store64(index + k * DAF__INDEX_ENTRY_BYTES, r->offset + start);
        bytes_store64(index + k * DAF__INDEX_ENTRY_BYTES + 8, r->packed_bytes + extra);
    }
    bytes_store32(index + bytes, common_crc32c(0, index, bytes));
    int rc = daf__out_patch(w->out, 0, index, bytes + DAF__INDEX_CRC_BYTES, err);
    free(index);
    return rc;
}

int daf__shard_end(daf__shard_writer *w, daf_error *err) {
    int rc = write_directory(w, err);
    return rc ? rc : write_index(w, err);
}

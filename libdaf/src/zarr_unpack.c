/* Codecs of Zarr that make bytes of bytes. What comes out of hostile data is bounded by the caller. */
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "blosc_frame.h"
#include "zarr_decode.h"

enum { PIECE_BYTES = 1 << 16, GZIP_WINDOW = 15 + 16 };

static const char too_much[] = "it holds more than it should";

/* Room for one piece more, or less when the limit is near; one byte past the limit shows an excess. */
static uint8_t *next_piece(daf__buf *ret, uint64_t limit, size_t *bytes) {
    uint64_t left = limit - ret->size + 1;
    *bytes = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
    return daf__buf_reserve(ret, *bytes);
}

static const char *inflate_members(z_stream *z, daf__buf *ret, uint64_t limit) {
    int rc = Z_OK;
    while (rc != Z_STREAM_END || z->avail_in > 0) {
        size_t room;
        uint8_t *to = next_piece(ret, limit, &room);
        if (!to)
            return daf__codec_no_memory;
        if (rc == Z_STREAM_END && inflateReset(z) != Z_OK)
            return "it is no gzip data";
        z->next_out = to;
        z->avail_out = (uInt)room;
        rc = inflate(z, Z_NO_FLUSH);
        ret->size += room - z->avail_out;
        if (ret->size > limit)
            return too_much;
        if (rc == Z_MEM_ERROR)
            return daf__codec_no_memory;
        if (rc != Z_OK && rc != Z_STREAM_END)
            return rc == Z_BUF_ERROR ? "its gzip data are cut short" : "it is no gzip data";
        if (rc == Z_OK && z->avail_in == 0 && z->avail_out > 0)
            return "its gzip data are cut short";
    }
    return NULL;
}

static const char *unpack_gzip(daf__buf *ret, const uint8_t *data, size_t bytes, uint64_t limit) {
    z_stream z = {.next_in = (z_const Bytef *)(uintptr_t)data, .avail_in = (uInt)bytes};
    if (bytes > UINT32_MAX)
        return "it is too large for a gzip chunk";
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return daf__codec_no_memory;
    const char *problem = inflate_members(&z, ret, limit);
    inflateEnd(&z);
    return problem;
}

static const char *unpack_zstd(daf__buf *ret, const uint8_t *data, size_t bytes, uint64_t limit) {
    ZSTD_DCtx *z = ZSTD_createDCtx();
    ZSTD_inBuffer in = {data, bytes, 0};
    size_t left = 1;
    const char *problem = z ? NULL : daf__codec_no_memory;
    while (!problem && (in.pos < in.size || left)) {
        size_t room, at = in.pos;
        uint8_t *to = next_piece(ret, limit, &room);
        ZSTD_outBuffer out = {to, room, 0};
        if (!to) {
            problem = daf__codec_no_memory;
            break;
        }
        left = ZSTD_decompressStream(z, &out, &in);
        ret->size += out.pos;
        if (ZSTD_isError(left))
            problem = "it is no zstd frame";
        else if (ret->size > limit)
            problem = too_much;
        else if (in.pos == at && out.pos == 0)
            problem = "its zstd frame is cut short";
    }
    ZSTD_freeDCtx(z);
    return problem;
}

static const char *unpack_blosc(daf__buf *ret, const uint8_t *data, size_t bytes, uint64_t limit) {
    daf__blosc_header h;
    daf__blosc_decoder decoder = {0};
    const char *problem = daf__blosc_parse(&h, data, bytes);
    if (problem)
        return problem;
    if (h.raw_bytes > limit)
        return too_much;
    uint8_t *to = daf__buf_reserve(ret, h.raw_bytes ? h.raw_bytes : 1);
    if (!to)
        return daf__codec_no_memory;
    problem = daf__blosc_decode(&decoder, to, h.raw_bytes, data, bytes);
    daf__blosc_decoder_free(&decoder);
    ret->size = h.raw_bytes;
    return problem;
}

static const char *unpack_crc32c(daf__buf *ret, const uint8_t *data, size_t bytes) {
    if (bytes < 4)
        return "it is too short for its checksum";
    if (common_crc32c(0, data, bytes - 4) != bytes_load32(data + bytes - 4))
        return "its checksum does not match";
    daf__buf_append(ret, data, bytes - 4);
    return ret->failed ? daf__codec_no_memory : NULL;
}

const char *daf__zarr_unpack(daf__buf *ret, daf__zarr_codec_kind kind, const uint8_t *data, size_t bytes,
                             uint64_t limit) {
    ret->size = 0;
    switch (kind) {
    case DAF__ZARR_GZIP:
        return unpack_gzip(ret, data, bytes, limit);
    case DAF__ZARR_ZSTD:
        return unpack_zstd(ret, data, bytes, limit);
    case DAF__ZARR_BLOSC:
        return unpack_blosc(ret, data, bytes, limit);
    default:
        return unpack_crc32c(ret, data, bytes);
    }
}

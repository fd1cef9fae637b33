/* The codecs behind one face: zstd and deflate by their libraries, blosc by blosc_frame.h. */
#include "codec.h"

#include <stdlib.h>

#include "blosc_frame.h"
#if DAF_WITH_BLOSC
#include "blosc_library.h"
#endif
#include "error.h"

#if DAF_WITH_BLOSC
#define encode_blosc daf__blosc_library_encode
#define decode_blosc daf__blosc_library_decode
#else
#define encode_blosc daf__blosc_encode
#define decode_blosc daf__blosc_decode
#endif

const char daf__codec_no_memory[] = "out of memory";

enum { RAW_DEFLATE_BITS = -15, DEFLATE_MEMORY_LEVEL = 8 };

struct daf__encoder {
    daf_codec codec;
    int level;
    ZSTD_CCtx *zstd;
    z_stream deflate;
    daf__blosc_encoder blosc;
};

struct daf__decoder {
    daf_codec codec;
    ZSTD_DCtx *zstd;
    z_stream inflate;
    daf__blosc_decoder blosc;
};

uint64_t daf__codec_max_ratio(daf_codec codec) {
    /* zstd: a run of one block, 128 KB in 4 bytes; deflate: 258 bytes in two bits. Blosc frames may hold the former. */
    return codec == DAF_CODEC_GZIP ? 1032 : 32768;
}

int daf__encoder_new(daf__encoder **ret, daf_codec codec, int level, size_t width, daf_error *err) {
    daf__encoder *e = calloc(1, sizeof *e);
    if (!e)
        return daf__no_memory(err);
    e->codec = codec;
    e->level = level;
    e->blosc = (daf__blosc_encoder){.level = level, .width = (uint8_t)width};
    bool ready = true;
    switch (codec) {
    case DAF_CODEC_GZIP:
        ready = deflateInit2(&e->deflate, level, Z_DEFLATED, RAW_DEFLATE_BITS, DEFLATE_MEMORY_LEVEL,
                             Z_DEFAULT_STRATEGY) == Z_OK;
        break;
    case DAF_CODEC_BLOSC_ZSTD_BITSHUFFLE:
        e->blosc.codec = DAF__BLOSC_ZSTD;
        break;
    case DAF_CODEC_BLOSC_LZ4_BITSHUFFLE:
        e->blosc.codec = DAF__BLOSC_LZ4;
        break;
    default:
        ready = (e->zstd = ZSTD_createCCtx()) != NULL;
    }
    if (!ready) {
        free(e);
        return daf__no_memory(err);
    }
    *ret = e;
    return 0;
}

void daf__encoder_free(daf__encoder *e) {
    if (!e)
        return;
    if (e->codec == DAF_CODEC_GZIP)
        deflateEnd(&e->deflate);
    ZSTD_freeCCtx(e->zstd);
    daf__blosc_encoder_free(&e->blosc);
    free(e);
}

static int encode_zstd(daf__encoder *e, daf__buf *out, const void *raw, size_t raw_bytes, daf_error *err) {
    size_t bound = ZSTD_compressBound(raw_bytes);
    uint8_t *to = daf__buf_reserve(out, bound);
    if (!to)
        return daf__no_memory(err);
    size_t n = ZSTD_compressCCtx(e->zstd, to, bound, raw, raw_bytes, e->level);
    if (ZSTD_isError(n)) /* the room suffices, so what can be missing is memory */
        return daf__fail(err, DAF_ERR_NOMEM, 0, 0, "zstd cannot compress %zu bytes: %s", raw_bytes,
                         ZSTD_getErrorName(n));
    out->size += n;
    return 0;
}

static int encode_deflate(daf__encoder *e, daf__buf *out, const void *raw, size_t raw_bytes, daf_error *err) {
    z_stream *z = &e->deflate;
    deflateReset(z);
    uLong bound = deflateBound(z, (uLong)raw_bytes);
    uint8_t *to = daf__buf_reserve(out, bound);
    if (!to)
        return daf__no_memory(err);
    z->next_in = (Bytef *)(uintptr_t)raw;
    z->avail_in = (uInt)raw_bytes;
    z->next_out = to;
    z->avail_out = (uInt)bound;
    if (deflate(z, Z_FINISH) != Z_STREAM_END)
        return daf__fail(err, DAF_ERR_NOMEM, 0, 0, "zlib cannot compress %zu bytes", raw_bytes);
    out->size += (size_t)z->total_out;
    return 0;
}

int daf__encode(daf__encoder *e, daf__buf *out, const void *raw, size_t raw_bytes, daf_error *err) {
    switch (e->codec) {
    case DAF_CODEC_GZIP:
        return encode_deflate(e, out, raw, raw_bytes, err);
    case DAF_CODEC_ZSTD:
        return encode_zstd(e, out, raw, raw_bytes, err);
    default:
        return encode_blosc(&e->blosc, out, raw, raw_bytes, err);
    }
}

int daf__decoder_new(daf__decoder **ret, daf_codec codec, daf_error *err) {
    daf__decoder *d = calloc(1, sizeof *d);
    if (!d)
        return daf__no_memory(err);
    d->codec = codec;
    bool ready = true;
    if (codec == DAF_CODEC_GZIP)
        ready = inflateInit2(&d->inflate, RAW_DEFLATE_BITS) == Z_OK;
    else if (codec == DAF_CODEC_ZSTD)
        ready = (d->zstd = ZSTD_createDCtx()) != NULL;
    if (!ready) {
        free(d);
        return daf__no_memory(err);
    }
    *ret = d;
    return 0;
}

void daf__decoder_free(daf__decoder *d) {
    if (!d)
        return;
    if (d->codec == DAF_CODEC_GZIP)
        inflateEnd(&d->inflate);
    ZSTD_freeDCtx(d->zstd);
    daf__blosc_decoder_free(&d->blosc);
    free(d);
}

static const char *decode_zstd(daf__decoder *d, void *raw, size_t raw_bytes, const void *packed,
                               size_t packed_bytes) {
    size_t n = ZSTD_decompressDCtx(d->zstd, raw, raw_bytes, packed, packed_bytes);
    if (ZSTD_isError(n))
        return ZSTD_getErrorName(n);
    return n == raw_bytes ? NULL : "the frame holds another number of bytes";
}

static const char *decode_deflate(daf__decoder *d, void *raw, size_t raw_bytes, const void *packed,
                                  size_t packed_bytes) {
    z_stream *z = &d->inflate;
    if (packed_bytes > UINT32_MAX)
        return "more compressed than raw data";
    inflateReset(z);
    z->next_in = (Bytef *)(uintptr_t)packed;
    z->avail_in = (uInt)packed_bytes;
    z->next_out = raw;
    z->avail_out = (uInt)raw_bytes;
    int rc = inflate(z, Z_FINISH);
    if (rc != Z_STREAM_END && z->msg)
        return z->msg;
    return rc == Z_STREAM_END && z->avail_out == 0 && z->avail_in == 0
               ? NULL
               : "the data hold another number of bytes";
}

const char *daf__decode(daf__decoder *d, void *raw, size_t raw_bytes, const void *packed,
                        size_t packed_bytes) {
    switch (d->codec) {
    case DAF_CODEC_GZIP:
        return decode_deflate(d, raw, raw_bytes, packed, packed_bytes);
    case DAF_CODEC_ZSTD:
        return decode_zstd(d, raw, raw_bytes, packed, packed_bytes);
    default:
        return decode_blosc(&d->blosc, raw, raw_bytes, packed, packed_bytes);
    }
}

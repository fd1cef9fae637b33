/* Blocks are streams, streams are what a general codec made of a shuffled piece; appendix C of the specification. */
#include "blosc_frame.h"

#include <lz4.h>
#include <string.h>

#include "base/bytes.h"
#include "blosc_shuffle.h"
#include "error.h"

enum {
    FRAME_VERSION = 2,
    CODEC_VERSION = 1,
    BYTE_SHUFFLE = 1,
    PLAIN_COPY = 2,
    BIT_SHUFFLE = 4,
    NOT_SPLIT = 0x10,
    CODEC_SHIFT = 5,
    CODEC_BLOSCLZ = 0,
    CODEC_ZLIB = 3,
    MAX_SPLIT_WIDTH = 16,
    MIN_STREAM_BYTES = 128,
    WORD = 4, /* of block offsets and stream lengths */
    BEST_LEVEL = 9
};

const char *daf__blosc_parse(daf__blosc_header *ret, const void *frame, size_t bytes) {
    const uint8_t *p = frame;
    if (bytes < DAF__BLOSC_HEADER_BYTES)
        return "the blosc frame is cut short";
    daf__blosc_header h = {.flags = p[2],
                           .width = p[3],
                           .raw_bytes = bytes_load32(p + 4),
                           .block_bytes = bytes_load32(p + 8),
                           .frame_bytes = bytes_load32(p + 12)};
    if (p[0] != FRAME_VERSION || p[1] != CODEC_VERSION)
        return "not a frame of blosc 1";
    if (h.frame_bytes != bytes)
        return "the blosc frame has another length";
    if (h.width == 0 || h.raw_bytes > INT32_MAX || h.frame_bytes > INT32_MAX ||
        (h.raw_bytes > 0 && h.block_bytes == 0))
        return "the header of the blosc frame is damaged";
    *ret = h;
    return NULL;
}

/* ---- decoding */

void daf__blosc_decoder_free(daf__blosc_decoder *d) {
    ZSTD_freeDCtx(d->zstd);
    daf__buf_free(&d->scratch);
}

typedef struct frame {
    daf__blosc_header h;
    const uint8_t *data;
    uint8_t *raw;
} frame;

static const char *decode_zstd(daf__blosc_decoder *d, uint8_t *to, size_t to_bytes, const uint8_t *from,
                               size_t from_bytes) {
    if (!d->zstd && !(d->zstd = ZSTD_createDCtx()))
        return daf__codec_no_memory;
    size_t n = ZSTD_decompressDCtx(d->zstd, to, to_bytes, from, from_bytes);
    return n == to_bytes ? NULL : "a zstd stream of the blosc frame is damaged";
}

static const char *decode_stream(daf__blosc_decoder *d, unsigned codec, uint8_t *to, size_t to_bytes,
                                 const uint8_t *from, size_t from_bytes) {
    uLongf n = (uLongf)to_bytes;
    switch (codec) {
    case CODEC_BLOSCLZ:
        return daf__blosclz_decode(to, to_bytes, from, from_bytes)
                   ? NULL
                   : "a blosclz stream of the blosc frame is damaged";
    case DAF__BLOSC_LZ4:
        return LZ4_decompress_safe((const char *)from, (char *)to, (int)from_bytes, (int)to_bytes) ==
                       (int)to_bytes
                   ? NULL
                   : "an LZ4 stream of the blosc frame is damaged";
    case CODEC_ZLIB:
        return uncompress(to, &n, from, (uLong)from_bytes) == Z_OK && n == to_bytes
                   ? NULL
                   : "a zlib stream of the blosc frame is damaged";
    case DAF__BLOSC_ZSTD:
        return decode_zstd(d, to, to_bytes, from, from_bytes);
    default:
        return "the codec of the blosc frame is unknown";
    }
}

/* The streams of one block, one behind the other, to `to`. */
static const char *decode_streams(daf__blosc_decoder *d, const frame *f, uint8_t *to, size_t bytes,
                                  size_t offset) {
    size_t width = f->h.width, n_streams = 1;
    bool full = bytes == f->h.block_bytes;
    if (!(f->h.flags & NOT_SPLIT) && width <= MAX_SPLIT_WIDTH && bytes / width >= MIN_STREAM_BYTES && full)
        n_streams = width;
    if (bytes % n_streams)
        return "a block of the blosc frame cannot be split";
    size_t part = bytes / n_streams;
    for (size_t i = 0; i < n_streams; i++, to += part) {
        if (f->h.frame_bytes - offset < WORD)
            return "a stream of the blosc frame lies outside of it";
        uint32_t length = bytes_load32(f->data + offset);
        offset += WORD;
        if (length > f->h.frame_bytes - offset)
            return "a stream of the blosc frame lies outside of it";
        const char *problem = NULL;
        if (length == part)
            memcpy(to, f->data + offset, part);
        else
            problem = decode_stream(d, f->h.flags >> CODEC_SHIFT, to, part, f->data + offset, length);
        if (problem)
            return problem;
        offset += length;
    }
    return NULL;
}

static const char *decode_block(daf__blosc_decoder *d, const frame *f, uint8_t *scratch, uint32_t k) {
    size_t start = (size_t)k * f->h.block_bytes, left = f->h.raw_bytes - start;
    size_t bytes = left < f->h.block_bytes ? left : f->h.block_bytes;
    size_t offset = bytes_load32(f->data + DAF__BLOSC_HEADER_BYTES + (size_t)k * WORD);
    uint8_t *to = f->raw + start;
    bool by_bytes = f->h.flags & BYTE_SHUFFLE && f->h.width > 1;
    bool by_bits = !by_bytes && f->h.flags & BIT_SHUFFLE && bytes >= f->h.width;
    if (offset > f->h.frame_bytes)
        return "a block of the blosc frame lies outside of it";
    const char *problem = decode_streams(d, f, by_bytes || by_bits ? scratch : to, bytes, offset);
    if (problem)
        return problem;
    if (by_bytes)
        daf__byte_unshuffle(to, scratch, bytes, f->h.width);
    else if (by_bits)
        daf__bit_unshuffle(to, scratch, bytes, f->h.width, scratch + bytes);
    return NULL;
}

const char *daf__blosc_decode(daf__blosc_decoder *d, void *raw, size_t raw_bytes, const void *data,
                              size_t frame_bytes) {
    frame f = {.data = data, .raw = raw};
    const char *problem = daf__blosc_parse(&f.h, data, frame_bytes);
    if (problem)
        return problem;
    if (f.h.raw_bytes != raw_bytes)
        return "the blosc frame holds another number of bytes";
    if (raw_bytes == 0)
        return NULL;
    if (f.h.flags & PLAIN_COPY) {
        if (frame_bytes != raw_bytes + DAF__BLOSC_HEADER_BYTES)
            return "the blosc frame has another length";
        memcpy(raw, f.data + DAF__BLOSC_HEADER_BYTES, raw_bytes);
        return NULL;
    }
    uint32_t n_blocks = (f.h.raw_bytes - 1) / f.h.block_bytes + 1;
    if (n_blocks > (frame_bytes - DAF__BLOSC_HEADER_BYTES) / WORD)
        return "the blosc frame is too short for its blocks";
    d->scratch.size = 0;
    size_t block = f.h.block_bytes < f.h.raw_bytes ? f.h.block_bytes : f.h.raw_bytes;
    uint8_t *scratch = daf__buf_reserve(&d->scratch, 2 * block);
    if (!scratch)
        return daf__codec_no_memory;
    for (uint32_t k = 0; k < n_blocks && !problem; k++)
        problem = decode_block(d, &f, scratch, k);
    return problem;
}

/* ---- encoding */

void daf__blosc_encoder_free(daf__blosc_encoder *e) {
    ZSTD_freeCCtx(e->zstd);
    daf__buf_free(&e->scratch);
}

/* The levels of zstd and LZ4 that c-blosc takes for its own. */
static int zstd_level(int level) {
    return level >= BEST_LEVEL       ? ZSTD_maxCLevel()
           : level == BEST_LEVEL - 1 ? ZSTD_maxCLevel() - 2
                                     : 2 * level - 1;
}

static int lz4_acceleration(int level) {
    return 10 - level;
}

/* At most `room` bytes; 0: they do not fit. */
static size_t encode_stream(daf__blosc_encoder *e, uint8_t *to, size_t room, const uint8_t *from,
                            size_t bytes) {
    if (e->codec == DAF__BLOSC_LZ4) {
        int n = LZ4_compress_fast((const char *)from, (char *)to, (int)bytes, (int)room,
                                  lz4_acceleration(e->level));
        return n > 0 ? (size_t)n : 0;
    }
    size_t n = ZSTD_compressCCtx(e->zstd, to, room, from, bytes, zstd_level(e->level));
    return ZSTD_isError(n) ? 0 : n;
}

static void put_header(uint8_t *to, const daf__blosc_encoder *e, unsigned more_flags, size_t raw_bytes,
                       size_t frame_bytes) {
    to[0] = FRAME_VERSION;
    to[1] = CODEC_VERSION;
    to[2] = (uint8_t)((unsigned)e->codec << CODEC_SHIFT | NOT_SPLIT | BIT_SHUFFLE | more_flags);
    to[3] = e->width;
    bytes_store32(to + 4, (uint32_t)raw_bytes);
    bytes_store32(to + 8, (uint32_t)raw_bytes); /* one block */
    bytes_store32(to + 12, (uint32_t)frame_bytes);
}

int daf__blosc_encode(daf__blosc_encoder *e, daf__buf *out, const void *raw, size_t raw_bytes,
                      daf_error *err) {
    static const size_t start =
        DAF__BLOSC_HEADER_BYTES + 2 * WORD; /* offset of the block, length of the stream */
    if (raw_bytes > DAF__BLOSC_MAX_BYTES)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0, "chunks of %zu bytes are too large for blosc", raw_bytes);
    if (e->codec == DAF__BLOSC_ZSTD && !e->zstd && !(e->zstd = ZSTD_createCCtx()))
        return daf__no_memory(err);
    e->scratch.size = 0;
    uint8_t *scratch = daf__buf_reserve(&e->scratch, 2 * raw_bytes + 1);
    uint8_t *to = daf__buf_reserve(out, start + raw_bytes);
    if (!scratch || !to)
        return daf__no_memory(err);
    const uint8_t *from = raw;
    if (raw_bytes >= e->width) {
        daf__bit_shuffle(scratch, raw, raw_bytes, e->width, scratch + raw_bytes);
        from = scratch;
    }
    /* A stream as long as the block would be taken for a stored one. */
    size_t room = raw_bytes > 2 * WORD ? raw_bytes - 2 * WORD - 1 : 0;
    size_t n = room ? encode_stream(e, to + start, room, from, raw_bytes) : 0;
    if (n) {
        put_header(to, e, 0, raw_bytes, start + n);
        bytes_store32(to + DAF__BLOSC_HEADER_BYTES, DAF__BLOSC_HEADER_BYTES + WORD);
        bytes_store32(to + DAF__BLOSC_HEADER_BYTES + WORD, (uint32_t)n);
        out->size += start + n;
        return 0;
    }
    put_header(to, e, PLAIN_COPY, raw_bytes, DAF__BLOSC_HEADER_BYTES + raw_bytes);
    memcpy(to + DAF__BLOSC_HEADER_BYTES, raw, raw_bytes);
    out->size += DAF__BLOSC_HEADER_BYTES + raw_bytes;
    return 0;
}

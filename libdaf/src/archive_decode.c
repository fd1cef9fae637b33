#include "archive_decode.h"

#include <stdlib.h>
#include <string.h>

#include <bzlib.h>
#include <zlib.h>
#include <zstd.h>

#include "error.h"

enum {
    FIRST_ROOM = 1 << 16,
    CRC_PIECE = 1 << 18,
    WINDOW = 1 << 16 /* of deflate64, the largest that needs one */
};

int daf__source_next(daf__source *s, const uint8_t **ret, size_t *bytes, daf_error *err) {
    size_t n = s->left < DAF__SOURCE_PIECE ? (size_t)s->left : DAF__SOURCE_PIECE;
    int rc = n ? s->f->ops->read(s->f, s->piece, n, s->at, err) : 0;
    if (rc)
        return rc;
    s->at += n;
    s->left -= n;
    *ret = s->piece;
    *bytes = n;
    return 0;
}

static uint32_t crc_of(uint32_t crc, const uint8_t *data, size_t bytes) {
    return (uint32_t)crc32_z(crc, data, bytes);
}

static void drop(daf__sink *s) {
    size_t bytes = s->out.size - WINDOW;
    s->crc = crc_of(s->crc, s->out.data, bytes);
    memmove(s->out.data, s->out.data + bytes, WINDOW);
    s->out.size = WINDOW;
    s->dropped += bytes;
}

int daf__sink_room(daf__sink *s, uint8_t **ret, size_t *bytes, daf_error *err) {
    if (s->keeps_none && s->out.size >= 4 * WINDOW)
        drop(s);
    uint64_t more = s->out.size < FIRST_ROOM || s->keeps_none ? FIRST_ROOM : s->out.size;
    uint64_t left = s->limit - daf__sink_bytes(s);
    if (left == 0)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "it holds more than the directory says");
    if (more > left)
        more = left;
    *ret = more > SIZE_MAX / 4 ? NULL : daf__buf_reserve(&s->out, (size_t)more);
    *bytes = (size_t)more;
    return *ret ? 0 : daf__no_memory(err);
}

static int damaged(daf_error *err) {
    return daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "its compressed data are damaged");
}

/* ---- what the decoding libraries have in common: input and output by pieces until the stream ends */

typedef struct stream {
    const uint8_t *in;
    size_t n_in;
    uint8_t *out;
    size_t n_out;
} stream;

/* Moves the stream on. Returns 0 more to do, 1 the end, or a negative code. */
typedef int (*stream_step)(void *decoder, stream *s);

static int run(void *decoder, stream_step step, daf__source *in, daf__sink *out, daf_error *err) {
    stream s = {0};
    uint8_t spare;
    for (;;) {
        bool at_end = false, full = daf__sink_bytes(out) == out->limit;
        int rc = 0;
        if (s.n_in == 0) {
            rc = daf__source_next(in, &s.in, &s.n_in, err);
            at_end = s.n_in == 0;
        }
        s.out = &spare;
        s.n_out = 1; /* the end of a full output is found with a byte to spare */
        if (rc == 0 && !full)
            rc = daf__sink_room(out, &s.out, &s.n_out, err);
        if (rc)
            return rc;
        size_t room = s.n_out;
        int done = step(decoder, &s);
        size_t produced = room - s.n_out;
        if (done < 0)
            return done == DAF_ERR_NOMEM ? daf__no_memory(err) : damaged(err);
        if (full && produced)
            return daf__sink_room(out, &s.out, &s.n_out, err);
        out->out.size += produced;
        if (done)
            return 0;
        if (at_end && produced == 0)
            return damaged(err);
    }
}

static int step_deflate(void *decoder, stream *s) {
    z_stream *z = decoder;
    uInt in = (uInt)s->n_in, out = s->n_out > UINT32_MAX ? UINT32_MAX : (uInt)s->n_out;
    z->next_in = (Bytef *)(uintptr_t)s->in;
    z->avail_in = in;
    z->next_out = s->out;
    z->avail_out = out;
    int rc = inflate(z, Z_NO_FLUSH);
    s->in += in - z->avail_in;
    s->n_in -= in - z->avail_in;
    s->n_out -= out - z->avail_out;
    if (rc == Z_STREAM_END)
        return 1;
    return rc == Z_OK || rc == Z_BUF_ERROR ? 0 : rc == Z_MEM_ERROR ? DAF_ERR_NOMEM : DAF_ERR_CORRUPT;
}

static int decode_deflate(daf__source *in, daf__sink *out, daf_error *err) {
    z_stream z = {0};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return daf__no_memory(err);
    int rc = run(&z, step_deflate, in, out, err);
    inflateEnd(&z);
    return rc;
}

static int step_bzip2(void *decoder, stream *s) {
    bz_stream *z = decoder;
    unsigned in = (unsigned)s->n_in, out = s->n_out > UINT32_MAX ? UINT32_MAX : (unsigned)s->n_out;
    z->next_in = (char *)(uintptr_t)s->in;
    z->avail_in = in;
    z->next_out = (char *)s->out;
    z->avail_out = out;
    int rc = BZ2_bzDecompress(z);
    s->in += in - z->avail_in;
    s->n_in -= in - z->avail_in;
    s->n_out -= out - z->avail_out;
    if (rc == BZ_STREAM_END)
        return 1;
    return rc == BZ_OK ? 0 : rc == BZ_MEM_ERROR ? DAF_ERR_NOMEM : DAF_ERR_CORRUPT;
}

static int decode_bzip2(daf__source *in, daf__sink *out, daf_error *err) {
    bz_stream z = {0};
    if (BZ2_bzDecompressInit(&z, 0, 0) != BZ_OK)
        return daf__no_memory(err);
    int rc = run(&z, step_bzip2, in, out, err);
    BZ2_bzDecompressEnd(&z);
    return rc;
}

typedef struct zstd_decoder {
    ZSTD_DStream *z;
    bool between; /* frames */
} zstd_decoder;

static int step_zstd(void *decoder, stream *s) {
    zstd_decoder *d = decoder;
    if (d->between && s->n_in == 0)
        return 1;
    ZSTD_inBuffer in = {.src = s->in, .size = s->n_in};
    ZSTD_outBuffer out = {.dst = s->out, .size = s->n_out};
    size_t rc = ZSTD_decompressStream(d->z, &out, &in);
    if (ZSTD_isError(rc))
        return DAF_ERR_CORRUPT;
    s->in += in.pos;
    s->n_in -= in.pos;
    s->n_out -= out.pos;
    d->between = rc == 0;
    return 0;
}

static int decode_zstd(daf__source *in, daf__sink *out, daf_error *err) {
    zstd_decoder d = {.z = ZSTD_createDStream()};
    if (!d.z)
        return daf__no_memory(err);
    int rc = run(&d, step_zstd, in, out, err);
    ZSTD_freeDStream(d.z);
    return rc;
}

static int put_piece(daf__sink *out, const uint8_t *from, size_t n, daf_error *err) {
    while (n > 0) {
        uint8_t *to = NULL;
        size_t room = 0;
        int rc = daf__sink_room(out, &to, &room, err);
        if (rc)
            return rc;
        if (room > n)
            room = n;
        memcpy(to, from, room);
        out->out.size += room;
        from += room;
        n -= room;
    }
    return 0;
}

static int decode_stored(daf__source *in, daf__sink *out, daf_error *err) {
    const uint8_t *from;
    size_t n = 0;
    int rc;
    do {
        rc = daf__source_next(in, &from, &n, err);
        if (rc == 0)
            rc = put_piece(out, from, n, err);
    } while (rc == 0 && n > 0);
    return rc;
}

/* ---- entries */

typedef int (*method_decoder)(daf__source *in, daf__sink *out, daf_error *err);

static method_decoder decoder_of(unsigned method) {
    switch (method) {
    case DAF__ZIP_STORED:
        return decode_stored;
    case DAF__ZIP_DEFLATE:
        return decode_deflate;
    case DAF__ZIP_DEFLATE64:
        return daf__inflate64;
    case DAF__ZIP_BZIP2:
        return decode_bzip2;
    case DAF__ZIP_ZSTD:
        return decode_zstd;
    default:
        return NULL;
    }
}

int daf__archive_check_method(const daf__archive_entry *e, const char *name, daf_error *err) {
    if (decoder_of(e->method))
        return 0;
    return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, e->offset,
                     "unsupported ZIP compression method: %u\nin ZIP entry name: %.300s\n"
                     "supported methods are: 0 (STORED), 8 (DEFLATE), 9 (DEFLATE64), 12 (BZIP2), 93 (ZSTD)",
                     e->method, name);
}

/* What a byte can hold at most: deflate 258 bytes in 2 bits; deflate64 65,538 in 18 bits; zstd blocks of 128 KiB in 4 bytes;
 * bzip2 blocks of 900,000 bytes in no less than 32, after runs of 259 have become 5 each. */
static uint64_t most_of(unsigned method) {
    switch (method) {
    case DAF__ZIP_DEFLATE:
        return 258 * 8 / 2;
    case DAF__ZIP_DEFLATE64:
        return 65538 * 8 / 18;
    case DAF__ZIP_ZSTD:
        return (1 << 17) / 4;
    case DAF__ZIP_BZIP2:
        return 900000 / 5 * 259 / 32;
    default:
        return 1;
    }
}

bool daf__archive_can_hold(const daf__archive_entry *e) {
    if (e->method == DAF__ZIP_STORED)
        return e->raw_bytes == e->packed_bytes;
    return e->raw_bytes / most_of(e->method) <= e->packed_bytes;
}

static int check_content(const daf__sink *s, const daf__archive_entry *e, daf_error *err) {
    if (daf__sink_bytes(s) != e->raw_bytes)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "it holds %llu bytes, but the directory says %llu",
                         (unsigned long long)daf__sink_bytes(s), (unsigned long long)e->raw_bytes);
    if (crc_of(s->crc, s->out.data, s->out.size) != e->crc)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "its checksum (CRC-32) does not match");
    return 0;
}

static int decode_to(daf__sink *out, daf__file *f, uint64_t at, const daf__archive_entry *e, const char *name,
                     daf_error *err) {
    daf__source in = {.f = f, .at = at, .left = e->packed_bytes, .piece = malloc(DAF__SOURCE_PIECE)};
    daf_error details;
    int rc = daf__archive_check_method(e, name, err);
    if (rc || !in.piece || !daf__buf_reserve(&out->out, 0)) {
        free(in.piece);
        return rc ? rc : daf__no_memory(err);
    }
    if (daf__archive_can_hold(e))
        rc = decoder_of(e->method)(&in, out, &details);
    else
        rc = daf__fail(&details, DAF_ERR_CORRUPT, 0, 0, "%llu bytes cannot hold the %llu that it tells of",
                       (unsigned long long)e->packed_bytes, (unsigned long long)e->raw_bytes);
    if (rc == 0)
        rc = check_content(out, e, &details);
    free(in.piece);
    if (rc == 0 || rc != DAF_ERR_CORRUPT)
        return rc ? daf__pass(err, &details) : 0;
    return daf__fail(err, rc, 0, at, "%s: the entry \"%.300s\" cannot be decoded: %s", f->where, name,
                     details.text);
}

int daf__archive_decode(daf__buf *ret, daf__file *f, uint64_t at, const daf__archive_entry *e,
                        const char *name, daf_error *err) {
    daf__sink out = {.limit = e->raw_bytes};
    int rc = decode_to(&out, f, at, e, name, err);
    if (rc)
        daf__buf_free(&out.out);
    else
        *ret = out.out;
    return rc;
}

int daf__archive_check(daf__file *f, uint64_t at, const daf__archive_entry *e, const char *name,
                       daf_error *err) {
    daf__sink out = {.limit = e->raw_bytes, .keeps_none = true};
    int rc = decode_to(&out, f, at, e, name, err);
    daf__buf_free(&out.out);
    return rc;
}

int daf__archive_crc(uint32_t *ret, daf__file *f, uint64_t at, uint64_t bytes, daf_error *err) {
    uint8_t *piece = malloc(CRC_PIECE);
    uint32_t crc = 0;
    int rc = piece ? 0 : daf__no_memory(err);
    while (bytes > 0 && rc == 0) {
        size_t n = bytes < CRC_PIECE ? (size_t)bytes : CRC_PIECE;
        rc = f->ops->read(f, piece, n, at, err);
        if (rc == 0)
            crc = crc_of(crc, piece, n);
        at += n;
        bytes -= n;
    }
    free(piece);
    if (rc == 0)
        *ret = crc;
    return rc;
}

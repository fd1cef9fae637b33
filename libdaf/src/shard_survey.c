/* What directory and frames say of the chunks of a shard, none of which is decoded. */
#include <zstd.h>

#include "base/bytes.h"
#include "blosc_frame.h"
#include "shard.h"

int daf__shard_ask_frame(const daf__shard *s, uint64_t k, daf__place *place, const uint8_t *frame,
                         size_t there, daf_error *err) {
    daf__blosc_header h;
    if (s->codec == DAF_CODEC_ZSTD) {
        place->raw_bytes = ZSTD_getFrameContentSize(frame, there);
        return 0;
    }
    const char *problem = daf__blosc_parse(&h, frame, (size_t)place->packed_bytes);
    if (problem)
        return daf__bad_chunk(s, k, place->offset, problem, err);
    place->raw_bytes = h.raw_bytes;
    return 0;
}

/* Reads the beginning of the chunk's data, or of gzip the length in its trailer, to 18 bytes. */
static int read_head(const daf__shard *s, uint64_t k, const daf__place *p, uint8_t *head, daf_error *err) {
    daf__file *f = s->file;
    uint8_t local[DAF__ZIP_LOCAL_BYTES];
    uint64_t at = p->offset, header = 0, n = p->packed_bytes;
    int rc = p->by_index ? 0 : f->ops->read(f, local, sizeof local, p->offset, err);
    if (rc)
        return rc;
    if (!p->by_index && (header = daf__zip_local_bytes(local)) == 0)
        return daf__bad_chunk(s, k, p->offset, "no local header where the directory says", err);
    if (s->codec == DAF_CODEC_GZIP && n >= DAF__GZIP_TRAILER_BYTES) {
        at += n - sizeof(uint32_t);
        n = sizeof(uint32_t);
    }
    return f->ops->read(f, head, n < DAF__FRAME_HEAD_BYTES ? (size_t)n : DAF__FRAME_HEAD_BYTES, at + header,
                        err);
}

static int ask_chunk(const daf__shard *s, uint64_t k, daf__place *p, daf_error *err) {
    uint8_t head[DAF__FRAME_HEAD_BYTES] = {0};
    int rc = read_head(s, k, p, head, err);
    if (rc)
        return rc;
    if (s->codec == DAF_CODEC_GZIP) {
        p->raw_bytes = bytes_load32(head);
        return 0;
    }
    size_t there = p->packed_bytes < sizeof head ? (size_t)p->packed_bytes : sizeof head;
    return daf__shard_ask_frame(s, k, p, head, there, err);
}

int daf__shard_survey(daf__shard *s, uint64_t *n_stored, uint64_t *text_bytes, daf_error *err) {
    uint64_t n = s->grid.n_chunks, stored = 0, texts = 0, lengths = 4 * (s->grid.chunk_elements + 1);
    int rc = 0;
    for (uint64_t k = 0; k < n && rc == 0; k++) {
        daf__place p = {.absent = false};
        rc = daf__shard_place(s, &p, k, n - k, err);
        if (rc || p.absent)
            continue;
        stored++;
        if (s->type != DAF_STRING)
            continue;
        if (p.raw_bytes == 0)
            rc = ask_chunk(s, k, &p, err);
        if (rc == 0)
            rc = daf__shard_check_raw(s, k, p.raw_bytes, p.packed_bytes, err);
        texts += rc ? 0 : p.raw_bytes - lengths;
    }
    if (rc == 0) {
        *n_stored = stored;
        *text_bytes = texts;
    }
    return rc;
}

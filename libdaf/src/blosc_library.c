#include "blosc_library.h"

#include <blosc.h>

#include "error.h"

int daf__blosc_library_encode(daf__blosc_encoder *e, daf__buf *out, const void *raw, size_t raw_bytes,
                              daf_error *err) {
    if (raw_bytes > DAF__BLOSC_MAX_BYTES)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0, "chunks of %zu bytes are too large for blosc", raw_bytes);
    size_t room = raw_bytes + BLOSC_MAX_OVERHEAD;
    uint8_t *to = daf__buf_reserve(out, room);
    if (!to)
        return daf__no_memory(err);
    const char *name = e->codec == DAF__BLOSC_LZ4 ? BLOSC_LZ4_COMPNAME : BLOSC_ZSTD_COMPNAME;
    int n = blosc_compress_ctx(e->level, BLOSC_BITSHUFFLE, e->width, raw_bytes, raw, to, room, name, 0, 1);
    if (n <=
        0) /* the room suffices, and the codec is one that c-blosc is built with, or we do it ourselves */
        return daf__blosc_encode(e, out, raw, raw_bytes, err);
    out->size += (size_t)n;
    return 0;
}

/* What c-blosc does not take is looked at by our own decoder, which also says why. */
const char *daf__blosc_library_decode(daf__blosc_decoder *d, void *raw, size_t raw_bytes, const void *frame,
                                      size_t frame_bytes) {
    daf__blosc_header h;
    size_t told = 0;
    bool good = daf__blosc_parse(&h, frame, frame_bytes) == NULL && h.raw_bytes == raw_bytes &&
                blosc_cbuffer_validate(frame, frame_bytes, &told) == 0 && told == raw_bytes &&
                blosc_decompress_ctx(frame, raw, raw_bytes, 1) == (int)raw_bytes;
    return good ? NULL : daf__blosc_decode(d, raw, raw_bytes, frame, frame_bytes);
}

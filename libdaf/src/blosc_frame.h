/* Frames of blosc 1 (specification appendix C): any is read, and those with one block are written. */
#ifndef DAF_SRC_BLOSC_FRAME_H
#define DAF_SRC_BLOSC_FRAME_H

#include <zlib.h>
#include <zstd.h>

#include "codec.h"

enum { DAF__BLOSC_HEADER_BYTES = 16 };
#define DAF__BLOSC_MAX_BYTES                                                                                 \
    ((uint64_t)1 << 29) /* of what is encoded to one block; c-blosc decodes up to 682 MB */

typedef struct daf__blosc_header {
    uint8_t flags, width; /* width: bytes of an element */
    uint32_t raw_bytes, block_bytes, frame_bytes;
} daf__blosc_header;

/* Parses and checks the header of a frame of `bytes` bytes in all. Returns NULL, or what is wrong. */
const char *daf__blosc_parse(daf__blosc_header *ret, const void *frame, size_t bytes);

/* ---- decoding */

/* Working memory; zeroed to begin with. */
typedef struct daf__blosc_decoder {
    ZSTD_DCtx *zstd;
    daf__buf scratch;
} daf__blosc_decoder;

void daf__blosc_decoder_free(daf__blosc_decoder *d);

/* Decodes a frame to exactly raw_bytes. Returns NULL, or what is wrong. Nothing is written outside of `raw`. */
const char *daf__blosc_decode(daf__blosc_decoder *d, void *raw, size_t raw_bytes, const void *frame,
                              size_t frame_bytes);

/* ---- encoding */

typedef enum daf__blosc_codec { DAF__BLOSC_LZ4 = 1, DAF__BLOSC_ZSTD = 4 } daf__blosc_codec;

typedef struct daf__blosc_encoder {
    daf__blosc_codec codec;
    int level;     /* 1 to 9, with c-blosc's meaning */
    uint8_t width; /* bytes of an element */
    ZSTD_CCtx *zstd;
    daf__buf scratch;
} daf__blosc_encoder;

void daf__blosc_encoder_free(daf__blosc_encoder *e);

/* Appends the frame of `raw`, bit-shuffled; plain when it does not become smaller. */
int daf__blosc_encode(daf__blosc_encoder *e, daf__buf *out, const void *raw, size_t raw_bytes,
                      daf_error *err);

/* ---- streams of codec 0 */

/* Decodes a blosclz stream to exactly `to_bytes`. Returns whether it is one. */
bool daf__blosclz_decode(uint8_t *to, size_t to_bytes, const uint8_t *from, size_t from_bytes);

#endif

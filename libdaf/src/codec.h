/* Compressing and decompressing one chunk. Encoders and decoders hold the libraries' working memory, so that many
 * chunks share it; each is used by one thread at a time. */
#ifndef DAF_SRC_CODEC_H
#define DAF_SRC_CODEC_H

#include "buf.h"
#include "type.h"

#define DAF__MAX_CHUNK_BYTES ((uint64_t)1 << 30) /* of a chunk's raw bytes */

/* More raw bytes than this for each compressed one cannot come out of the codec: a claim of more is damage, and is
 * refused before memory is asked for. */
uint64_t daf__codec_max_ratio(daf_codec codec);

typedef struct daf__encoder daf__encoder;

/* The codec is one that is implemented, the level one of its levels; chunks are of elements of `width` bytes (texts: 1).
 */
int daf__encoder_new(daf__encoder **ret, daf_codec codec, int level, size_t width, daf_error *err);
void daf__encoder_free(daf__encoder *e);

/* Appends the compressed form of `raw`: a zstd frame, raw deflate data, or a blosc frame. */
int daf__encode(daf__encoder *e, daf__buf *out, const void *raw, size_t raw_bytes, daf_error *err);

typedef struct daf__decoder daf__decoder;

int daf__decoder_new(daf__decoder **ret, daf_codec codec, daf_error *err);
void daf__decoder_free(daf__decoder *d);

/* Decompresses to exactly `raw_bytes`. Returns NULL, or what is wrong: with the data, or that memory is short. */
extern const char daf__codec_no_memory[];
const char *daf__decode(daf__decoder *d, void *raw, size_t raw_bytes, const void *packed,
                        size_t packed_bytes);

#endif

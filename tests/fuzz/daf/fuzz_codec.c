/* Chunks: the bytes are decoded by each codec to several sizes, among them the one that a blosc frame claims; the
 * shuffles, and each encoder, bring them back. */
#include <stdlib.h>
#include <string.h>

#include "blosc_frame.h"
#include "blosc_shuffle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_RAW = 1 << 20 };

static const daf_codec codecs[] = {DAF_CODEC_ZSTD, DAF_CODEC_GZIP, DAF_CODEC_BLOSC_ZSTD_BITSHUFFLE,
                                   DAF_CODEC_BLOSC_LZ4_BITSHUFFLE};

/* Exactly as large as it may become, so that a sanitizer sees any byte too many. */
static void decode(daf_codec codec, size_t raw_bytes, const uint8_t *data, size_t size) {
    daf__decoder *d;
    uint8_t *raw = malloc(raw_bytes ? raw_bytes : 1);
    if (daf__decoder_new(&d, codec, NULL) != 0)
        abort();
    (void)daf__decode(d, raw, raw_bytes, data, size);
    daf__decoder_free(d);
    free(raw);
}

static void round_trip(daf_codec codec, size_t width, const uint8_t *data, size_t size) {
    daf__encoder *encoder;
    daf__decoder *decoder;
    daf__buf out = {0};
    uint8_t *raw = malloc(size + 1);
    if (daf__encoder_new(&encoder, codec, 1, width, NULL) != 0 ||
        daf__decoder_new(&decoder, codec, NULL) != 0 || daf__encode(encoder, &out, data, size, NULL) != 0 ||
        daf__decode(decoder, raw, size, out.data, out.size) != NULL || memcmp(raw, data, size) != 0)
        abort();
    daf__encoder_free(encoder);
    daf__decoder_free(decoder);
    daf__buf_free(&out);
    free(raw);
}

static void shuffle(size_t width, const uint8_t *data, size_t size) {
    uint8_t *to = malloc(size + 1), *back = malloc(size + 1), *scratch = malloc(size + 1);
    daf__bit_shuffle(to, data, size, width, scratch);
    daf__bit_unshuffle(back, to, size, width, scratch);
    if (memcmp(back, data, size) != 0)
        abort();
    free(to);
    free(back);
    free(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    daf__blosc_header h;
    if (size == 0)
        return 0;
    if (!daf__blosc_parse(&h, data, size) && h.raw_bytes <= MAX_RAW)
        decode(DAF_CODEC_BLOSC_ZSTD_BITSHUFFLE, h.raw_bytes, data, size);
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
        decode(codecs[i], 1000, data, size);
        round_trip(codecs[i], (size_t)1 << data[0] % 4, data, size);
    }
    shuffle(data[0] % 20u + 1, data, size);
    /* Streams of blosclz, which no frame of ours holds. */
    uint8_t *raw = malloc(400);
    (void)daf__blosclz_decode(raw, 400, data, size);
    free(raw);
    return 0;
}

/* Frames of c-blosc are decoded by us, ours by c-blosc, and each side's damaged ones by neither. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "blosc_library.h"

static const size_t sizes[] = {0, 1, 7, 16, 100, 127, 128, 129, 1000, 8192, 8193, 100000, 1 << 20};
static const uint8_t widths[] = {1, 2, 4, 8};
enum { N_SIZES = sizeof sizes / sizeof sizes[0], N_WIDTHS = sizeof widths / sizeof widths[0] };

/* Counts that differ little, or (kind 1) noise, or (kind 2) zeros. */
static uint8_t *make_raw(test_random *r, size_t n, unsigned kind, size_t width) {
    uint8_t *raw = calloc(1, n + 1);
    assert_non_null(raw);
    for (size_t i = 0; i < n && kind < 2; i++)
        raw[i] = (uint8_t)(kind ? test_next(r) : i % width ? 0 : test_below(r, 9));
    return raw;
}

typedef int encode(daf__blosc_encoder *e, daf__buf *out, const void *raw, size_t raw_bytes, daf_error *err);
typedef const char *decode(daf__blosc_decoder *d, void *raw, size_t raw_bytes, const void *frame,
                           size_t bytes);

static void check(encode *to_frame, decode *to_raw, daf__blosc_encoder *e, const uint8_t *raw, size_t n) {
    daf__blosc_decoder d = {0};
    daf__buf frame = {0};
    uint8_t *back = malloc(n + 1);
    assert_non_null(back);
    back[n] = 0x5A;
    if (to_frame(e, &frame, raw, n, NULL) != 0)
        fail_msg("%zu bytes cannot be encoded", n);
    const char *problem = to_raw(&d, back, n, frame.data, frame.size);
    if (problem || memcmp(back, raw, n) != 0 || back[n] != 0x5A)
        fail_msg("%zu bytes of width %u, codec %d: %s", n, e->width, (int)e->codec,
                 problem ? problem : "others");
    daf__buf_free(&frame);
    daf__blosc_decoder_free(&d);
    free(back);
}

static void each_reads_the_other(void **state) {
    static const daf__blosc_codec codecs[] = {DAF__BLOSC_LZ4, DAF__BLOSC_ZSTD};
    test_random r = {5};
    (void)state;
    for (unsigned i = 0; i < 2 * 3 * N_SIZES * N_WIDTHS; i++) {
        size_t n = sizes[i / 6 % N_SIZES];
        daf__blosc_encoder e = {.codec = codecs[i % 2],
                                .level = n > 10000 ? 5 : 1 + (int)(i % 9),
                                .width = widths[i / 6 / N_SIZES]};
        uint8_t *raw = make_raw(&r, n, i / 2 % 3, e.width);
        check(daf__blosc_library_encode, daf__blosc_decode, &e, raw, n);
        check(daf__blosc_encode, daf__blosc_library_decode, &e, raw, n);
        check(daf__blosc_library_encode, daf__blosc_library_decode, &e, raw, n);
        daf__blosc_encoder_free(&e);
        free(raw);
    }
}

/* Whatever is in a frame, nothing is written outside, and what one of them takes the other does not call damaged. */
static void damaged_frames(void **state) {
    enum { N = 5000, N_FLIPS = 3000 };
    test_random r = {6};
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        daf__blosc_encoder e = {.codec = k ? DAF__BLOSC_ZSTD : DAF__BLOSC_LZ4, .level = 5, .width = 4};
        daf__blosc_decoder d = {0};
        daf__buf frame = {0};
        uint8_t *raw = make_raw(&r, N, 0, 4), *back = malloc(N);
        assert_non_null(back);
        assert_int_equal(daf__blosc_library_encode(&e, &frame, raw, N, NULL), 0);
        for (unsigned i = 0; i < N_FLIPS; i++) {
            size_t at = i < 64 ? i / 2 : test_below(&r, frame.size);
            uint8_t *copy = malloc(frame.size); /* exactly, so that a read behind it is seen */
            assert_non_null(copy);
            memcpy(copy, frame.data, frame.size);
            copy[at] = (uint8_t)test_next(&r);
            size_t bytes = i % 5 ? frame.size : test_below(&r, frame.size);
            const char *problem = daf__blosc_library_decode(&d, back, N, copy, bytes);
            assert_true(!problem || *problem);
            free(copy);
        }
        assert_null(daf__blosc_library_decode(&d, back, N, frame.data, frame.size));
        assert_memory_equal(back, raw, N);
        daf__buf_free(&frame);
        daf__blosc_decoder_free(&d);
        daf__blosc_encoder_free(&e);
        free(raw);
        free(back);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_reads_the_other),
                                       cmocka_unit_test(damaged_frames)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

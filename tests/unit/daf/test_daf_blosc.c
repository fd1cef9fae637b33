/* Blosc frames: the shuffles in plain C and by vectors, round trips, and what damage does. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "blosc_frame.h"
#include "blosc_shuffle.h"
#include "codec.h"

static uint8_t *random_bytes(test_random *r, size_t n) {
    uint8_t *p = malloc(n + 1);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)test_next(r);
    return p;
}

/* ---- shuffles */

/* Appendix C word by word. */
static void bit_shuffle_by_definition(uint8_t *to, const uint8_t *from, size_t bytes, size_t width) {
    size_t n = bytes / width;
    memcpy(to, from, bytes);
    if (n % 8)
        return;
    memset(to, 0, n * width);
    for (size_t j = 0; j < width; j++)
        for (size_t q = 0; q < 8; q++)
            for (size_t i = 0; i < n; i++)
                if (from[i * width + j] >> q & 1)
                    to[(8 * j + q) * (n / 8) + i / 8] |= (uint8_t)(1u << i % 8);
}

static void byte_shuffle_by_definition(uint8_t *to, const uint8_t *from, size_t bytes, size_t width) {
    size_t n = bytes / width;
    memcpy(to, from, bytes);
    for (size_t j = 0; j < width; j++)
        for (size_t i = 0; i < n; i++)
            to[j * n + i] = from[i * width + j];
}

static void check_shuffles(test_random *r, size_t bytes, size_t width) {
    uint8_t *from = random_bytes(r, bytes), *expected = malloc(bytes + 1), *to = malloc(bytes + 1);
    uint8_t *back = malloc(bytes + 1), *scratch = malloc(bytes + 1);
    bit_shuffle_by_definition(expected, from, bytes, width);
    daf__bit_shuffle(to, from, bytes, width, scratch);
    daf__bit_unshuffle(back, expected, bytes, width, scratch);
    if (memcmp(to, expected, bytes) || memcmp(back, from, bytes))
        fail_msg("bit shuffle of %zu bytes, width %zu", bytes, width);
    byte_shuffle_by_definition(expected, from, bytes, width);
    daf__byte_shuffle(to, from, bytes, width);
    daf__byte_unshuffle(back, expected, bytes, width);
    if (memcmp(to, expected, bytes) || memcmp(back, from, bytes))
        fail_msg("byte shuffle of %zu bytes, width %zu", bytes, width);
    free(from);
    free(expected);
    free(to);
    free(back);
    free(scratch);
}

static void shuffles_are_as_defined(void **state) {
    test_random r = {1};
    (void)state;
    for (size_t width = 1; width <= 20; width++) {
        for (size_t bytes = 0; bytes < 200; bytes++)
            check_shuffles(&r, bytes, width);
        for (unsigned i = 0; i < 40; i++)
            check_shuffles(&r, width * 8 * test_below(&r, 200) + (i % 4 ? 0 : test_below(&r, width)), width);
    }
    for (size_t n = 0; n < 3000; n += 8)
        for (size_t width = 1; width <= 8; width *= 2)
            check_shuffles(&r, n * width, width);
}

/* Whatever the processor can do, plain C gives the same bytes. */
static void vectors_change_nothing(void **state) {
    test_random r = {2};
    (void)state;
    for (size_t n = 0; n <= 1200; n++) {
        for (size_t width = 1; width <= 9; width++) {
            uint8_t *from = random_bytes(&r, n * width), *a = malloc(n * width + 1),
                    *b = malloc(n * width + 1);
            daf__split_bytes(a, from, n, width, true);
            daf__split_bytes(b, from, n, width, false);
            assert_memory_equal(a, b, n * width);
            daf__join_bytes(a, from, n, width, true);
            daf__join_bytes(b, from, n, width, false);
            assert_memory_equal(a, b, n * width);
            if (n % 8 == 0 && width == 1) {
                daf__split_bits(a, from, n, true);
                daf__split_bits(b, from, n, false);
                assert_memory_equal(a, b, n);
                daf__join_bits(a, from, n, true);
                daf__join_bits(b, from, n, false);
                assert_memory_equal(a, b, n);
            }
            free(from);
            free(a);
            free(b);
        }
    }
}

/* ---- frames */

typedef struct frame_case {
    daf__buf frame;
    uint8_t *raw;
    size_t raw_bytes;
} frame_case;

static void fill(test_random *r, uint8_t *raw, size_t bytes, unsigned kind) {
    for (size_t i = 0; i < bytes; i++)
        raw[i] = kind == 0 ? 0 : kind == 1 ? (uint8_t)test_next(r) : i % 8 ? 0 : (uint8_t)test_below(r, 40);
}

static frame_case encoded(test_random *r, daf_codec codec, int level, size_t width, size_t bytes,
                          unsigned kind) {
    frame_case c = {.raw = malloc(bytes + 1), .raw_bytes = bytes};
    daf__encoder *encoder;
    fill(r, c.raw, bytes, kind);
    OK(daf__encoder_new(&encoder, codec, level, width, e));
    OK(daf__encode(encoder, &c.frame, c.raw, bytes, e));
    daf__encoder_free(encoder);
    return c;
}

static void release(frame_case *c) {
    daf__buf_free(&c->frame);
    free(c->raw);
}

static void frames_come_back(void **state) {
    static const daf_codec codecs[] = {DAF_CODEC_BLOSC_ZSTD_BITSHUFFLE, DAF_CODEC_BLOSC_LZ4_BITSHUFFLE};
    static const size_t widths[] = {1, 2, 4, 8};
    static const size_t sizes[] = {0,   1,   7,   8,    9,    16,   17,   31,   64,
                                   100, 127, 128, 1000, 1024, 4096, 8191, 8192, 100000};
    test_random r = {3};
    (void)state;
    for (unsigned i = 0; i < 2 * 4 * 18 * 3 * 9; i++) {
        size_t width = widths[i / 2 % 4], bytes = sizes[i / 8 % 18];
        int level = 1 + (int)(i / 432);
        frame_case c =
            encoded(&r, codecs[i % 2], bytes > 10000 && level > 6 ? 6 : level, width, bytes, i / 144 % 3);
        const uint8_t *head = c.frame.data;
        assert_int_equal(head[2] & ~2, i % 2 ? 0x34 : 0x94);
        assert_int_equal(head[3], width);
        assert_int_equal(bytes_load32(head + 4), bytes);
        assert_int_equal(bytes_load32(head + 12), c.frame.size);
        assert_true(c.frame.size <= bytes + DAF__BLOSC_HEADER_BYTES);
        assert_true(!(head[2] & 2) || c.frame.size == bytes + DAF__BLOSC_HEADER_BYTES);
        daf__blosc_decoder d = {0};
        uint8_t *back = malloc(bytes + 1);
        assert_null(daf__blosc_decode(&d, back, bytes, c.frame.data, c.frame.size));
        assert_memory_equal(back, c.raw, bytes);
        if (bytes)
            assert_non_null(daf__blosc_decode(&d, back, bytes - 1, c.frame.data, c.frame.size));
        free(back);
        daf__blosc_decoder_free(&d);
        release(&c);
    }
}

/* No cut and no change is a crash; the frame itself has no checksum (the shard has). */
static void damaged_frames_are_met(void **state) {
    test_random r = {4};
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        frame_case c = encoded(&r, i % 2 ? DAF_CODEC_BLOSC_LZ4_BITSHUFFLE : DAF_CODEC_BLOSC_ZSTD_BITSHUFFLE,
                               5, 4, 800, i / 2 ? 1 : 2);
        daf__blosc_decoder d = {0};
        uint8_t back[800];
        for (size_t cut = 0; cut < c.frame.size; cut++)
            assert_non_null(daf__blosc_decode(&d, back, sizeof back, c.frame.data, cut));
        for (size_t at = 0; at < 8 * c.frame.size; at++) {
            c.frame.data[at / 8] ^= (uint8_t)(1u << at % 8);
            (void)daf__blosc_decode(&d, back, sizeof back, c.frame.data, c.frame.size);
            c.frame.data[at / 8] ^= (uint8_t)(1u << at % 8);
        }
        daf__blosc_decoder_free(&d);
        release(&c);
    }
}

typedef struct bad_header {
    size_t at;
    uint32_t value;
    const char *part;
} bad_header;

static void each_header_field_is_checked(void **state) {
    static const bad_header cases[] = {
        {0, 0x04940103, "not a frame of blosc 1"},
        {0, 0x04940202, "not a frame of blosc 1"},
        {0, 0x00940102, "header"},
        {4, 0x80000000u, "header"},
        {4, 799, "another number of bytes"},
        {8, 0, "header"},
        {12, 60, "another length"},
        {8, 1, "too short for its blocks"},
        {0, 0x04F40102, "codec of the blosc frame is unknown"},
        {0, 0x04540102, "codec of the blosc frame is unknown"},
        {16, 0xFFFFFFFFu, "lies outside"},
        {20, 0xFFFFFFFFu, "lies outside"},
        {20, 5, "zstd stream"},
        {0, 0x04340102, "LZ4 stream"},
        {0, 0x04740102, "zlib stream"},
        {0, 0x04140102, "blosclz stream"},
        {0, 0x04960102, "another length"},
    };
    test_random r = {5};
    (void)state;
    frame_case c = encoded(&r, DAF_CODEC_BLOSC_ZSTD_BITSHUFFLE, 5, 4, 800, 2);
    daf__blosc_decoder d = {0};
    uint8_t back[800];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t before[4];
        memcpy(before, c.frame.data + cases[i].at, 4);
        bytes_store32(c.frame.data + cases[i].at, cases[i].value);
        const char *problem = daf__blosc_decode(&d, back, sizeof back, c.frame.data, c.frame.size);
        if (!problem || !strstr(problem, cases[i].part))
            fail_msg("case %zu: %s", i, problem ? problem : "taken");
        memcpy(c.frame.data + cases[i].at, before, 4);
    }
    assert_null(daf__blosc_decode(&d, back, sizeof back, c.frame.data, c.frame.size));
    daf__blosc_decoder_free(&d);
    release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffles_are_as_defined),
        cmocka_unit_test(vectors_change_nothing),
        cmocka_unit_test(frames_come_back),
        cmocka_unit_test(damaged_frames_are_met),
        cmocka_unit_test(each_header_field_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Damaged files: cut at every byte, each byte changed. Reading gives the right values or an error, never anything else.
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/bytes.h"
#include "zip.h"

enum { N = 300 };

typedef struct damaged {
    daf *d;
    const char *path;
    char file[600];
    char *content;
    size_t bytes;
} damaged;

static const char *texts_of(unsigned i) {
    static const char *const words[] = {"", "photon", "ünï", "count"};
    return words[i % 4];
}

static void make(damaged *t, void **state, const char *key, daf_codec codec) {
    static uint16_t numbers[N];
    static const char *texts[N];
    daf_set_options o;
    daf_set_options_init(&o);
    o.packing = codec == DAF_CODEC_DEFAULT ? DAF_PACK_NEVER : DAF_PACK_LARGE;
    o.codec = codec;
    o.target_chunk_kb = 1;
    for (unsigned i = 0; i < N; i++) {
        numbers[i] = (uint16_t)(i * i % 97);
        texts[i] = texts_of(i);
    }
    t->path = test_path(state, "a.daf");
    OK(daf_open(&t->d, t->path, "w", NULL, e));
    daf_scalar s = daf_scalar_string("a text");
    OK(daf_set_scalar(t->d, "s", &s, NULL, e));
    OK(daf_add_axis_integers(t->d, "axis", 0, 1, N, e));
    OK(daf_add_axis_integers(t->d, "four", 0, 1, 4, e));
    uint16_t *wide = calloc(4 * N, sizeof *wide);
    for (unsigned i = 0; i < 4 * N; i++)
        wide[i] = numbers[i % N];
    OK(daf_set_matrix(t->d, "axis", "four", "numbers", DAF_UINT16, wide, 4 * N, &o, e));
    free(wide);
    OK(daf_set_vector(t->d, "axis", "texts", DAF_STRING, texts, N, &o, e));
    snprintf(t->file, sizeof t->file, "%s/%s", t->path, key);
    t->content = test_read_file(t->file, &t->bytes);
    assert_non_null(t->content);
}

static void end(damaged *t) {
    free(t->content);
    OK(daf_close(t->d, e));
}

/* 0, or the code; values that are read must be right. */
static int read_numbers(damaged *t) {
    daf_array *a;
    int rc = daf_get_matrix(t->d, &a, "axis", "four", "numbers", NULL);
    if (rc)
        return rc;
    assert_int_equal(daf_array_type(a), DAF_UINT16);
    const uint16_t *v = daf_array_values(a);
    for (unsigned i = 0; i < 4 * N; i++)
        assert_int_equal(v[i], i % N * (i % N) % 97);
    daf_array_free(a);
    return 0;
}

static int read_texts(damaged *t) {
    daf_array *a;
    int rc = daf_get_vector(t->d, &a, "axis", "texts", NULL);
    if (rc)
        return rc;
    for (unsigned i = 0; i < N; i++)
        assert_string_equal(daf_array_strings(a)[i], texts_of(i));
    daf_array_free(a);
    return 0;
}

static void expect_damage(int rc) {
    if (rc != DAF_ERR_CORRUPT && rc != DAF_ERR_TRUNCATED && rc != DAF_ERR_UNSUPPORTED && rc != DAF_ERR_LIMIT)
        fail_msg("code %d", rc);
}

static void cut_everywhere(damaged *t, int (*read)(damaged *)) {
    assert_int_equal(read(t), 0);
    for (size_t cut = 0; cut < t->bytes; cut++) {
        test_write_file(t->file, t->content, cut);
        expect_damage(read(t));
    }
    test_write_file(t->file, t->content, t->bytes);
}

static void change_everywhere(damaged *t, int (*read)(damaged *)) {
    static const uint8_t masks[] = {0x01, 0x80, 0xFF};
    unsigned noticed = 0;
    for (size_t at = 0; at < t->bytes; at++) {
        for (size_t m = 0; m < sizeof masks; m++) {
            t->content[at] = (char)(t->content[at] ^ masks[m]);
            test_write_file(t->file, t->content, t->bytes);
            t->content[at] = (char)(t->content[at] ^ masks[m]);
            int rc = read(t);
            if (rc)
                expect_damage(rc);
            noticed += rc != 0;
        }
    }
    assert_true(noticed > t->bytes); /* of the three changes to each byte at least one in three */
    test_write_file(t->file, t->content, t->bytes);
    assert_int_equal(read(t), 0);
}

static void shard(void **state, const char *key, daf_codec codec, int (*read)(damaged *)) {
    damaged t;
    make(&t, state, key, codec);
    cut_everywhere(&t, read);
    change_everywhere(&t, read);
    end(&t);
}

static void zstd_numbers(void **state) {
    shard(state, "matrices/axis/four/numbers.zip", DAF_CODEC_ZSTD, read_numbers);
}

static void gzip_numbers(void **state) {
    shard(state, "matrices/axis/four/numbers.zip", DAF_CODEC_GZIP, read_numbers);
}

static void zstd_texts(void **state) {
    shard(state, "vectors/axis/texts.zip", DAF_CODEC_ZSTD, read_texts);
}

static void gzip_texts(void **state) {
    shard(state, "vectors/axis/texts.zip", DAF_CODEC_GZIP, read_texts);
}

static void blosc_zstd_numbers(void **state) {
    shard(state, "matrices/axis/four/numbers.zip", DAF_CODEC_BLOSC_ZSTD_BITSHUFFLE, read_numbers);
}

static void blosc_lz4_numbers(void **state) {
    shard(state, "matrices/axis/four/numbers.zip", DAF_CODEC_BLOSC_LZ4_BITSHUFFLE, read_numbers);
}

static void blosc_zstd_texts(void **state) {
    shard(state, "vectors/axis/texts.zip", DAF_CODEC_BLOSC_ZSTD_BITSHUFFLE, read_texts);
}

static void blosc_lz4_texts(void **state) {
    shard(state, "vectors/axis/texts.zip", DAF_CODEC_BLOSC_LZ4_BITSHUFFLE, read_texts);
}

static void flat_numbers_cut(void **state) {
    damaged t;
    make(&t, state, "matrices/axis/four/numbers.data", DAF_CODEC_DEFAULT);
    cut_everywhere(&t, read_numbers);
    end(&t);
}

/* The final LF may be missing; anything less is noticed. */
static void flat_texts_cut(void **state) {
    damaged t;
    make(&t, state, "vectors/axis/texts.txt", DAF_CODEC_DEFAULT);
    test_write_file(t.file, t.content, t.bytes - 1);
    assert_int_equal(read_texts(&t), 0);
    t.bytes--;
    for (size_t cut = 0; cut < t.bytes; cut++) {
        bool in_last = !memchr(t.content + cut, '\n', t.bytes - cut);
        test_write_file(t.file, t.content, cut);
        if (!in_last)
            expect_damage(daf_get_vector(t.d, &(daf_array *){NULL}, "axis", "texts", NULL));
    }
    end(&t);
}

/* Descriptors and scalars: no crash, and never the values of another type. */
static void descriptors_changed(void **state) {
    damaged t;
    make(&t, state, "matrices/axis/four/numbers.json", DAF_CODEC_ZSTD);
    t.bytes--; /* the final LF may be missing */
    cut_everywhere(&t, read_numbers);
    for (size_t at = 0; at < t.bytes; at++) {
        char before = t.content[at];
        for (int c = 0; c < 256; c += 5) {
            daf_array *a;
            t.content[at] = (char)c;
            test_write_file(t.file, t.content, t.bytes);
            int rc = daf_get_matrix(t.d, &a, "axis", "four", "numbers", NULL);
            if (rc == 0)
                daf_array_free(a);
            else if (rc != DAF_ERR_MISSING) /* another key than packed_format: the flat file is looked for */
                expect_damage(rc);
        }
        t.content[at] = before;
    }
    end(&t);
}

static void scalars_changed(void **state) {
    damaged t;
    make(&t, state, "scalars/s.json", DAF_CODEC_DEFAULT);
    for (size_t at = 0; at < t.bytes; at++) {
        char before = t.content[at];
        for (int c = 0; c < 256; c++) {
            daf_scalar s;
            t.content[at] = (char)c;
            test_write_file(t.file, t.content, t.bytes);
            int rc = daf_get_scalar(t.d, &s, "s", NULL);
            if (rc)
                expect_damage(rc);
            else
                daf_scalar_clear(&s);
        }
        t.content[at] = before;
    }
    end(&t);
}

/* Lets the first chunk claim so many raw bytes: by its directory entry, or by its frame. */
static void claim(damaged *t, daf_codec codec, uint32_t raw_bytes) {
    uint8_t *p = (uint8_t *)t->content;
    uint8_t *entry = p + bytes_load64(p + t->bytes - DAF__ZIP_END_BYTES + 48);
    uint8_t *sizes = entry + DAF__ZIP_CENTRAL_BYTES + bytes_load16(entry + 28) + 4;
    if (codec == DAF_CODEC_ZSTD || codec == DAF_CODEC_GZIP) {
        bytes_store64(sizes, raw_bytes);
        return;
    }
    uint8_t *local = p + bytes_load64(sizes + 16);
    uint8_t *frame = local + daf__zip_local_bytes(local);
    bytes_store32(frame + 4, raw_bytes);
    bytes_store32(frame + 8, raw_bytes);
    bytes_store32(entry + 16, (uint32_t)crc32_z(0, frame, (size_t)bytes_load64(sizes + 8)));
}

/* A chunk that claims far more raw bytes than its data can hold is refused before memory is asked for. */
static void bombs_are_refused(void **state) {
    static const daf_codec codecs[] = {DAF_CODEC_ZSTD, DAF_CODEC_GZIP, DAF_CODEC_BLOSC_ZSTD_BITSHUFFLE,
                                       DAF_CODEC_BLOSC_LZ4_BITSHUFFLE};
    static const uint32_t claimed = 1u << 30;
    for (size_t k = 0; k < sizeof codecs / sizeof codecs[0]; k++) {
        damaged t;
        char json[700];
        daf_array *a;
        static const uint8_t values[2000];
        daf_set_options o;
        daf_set_options_init(&o);
        o.packing = DAF_PACK_LARGE;
        o.codec = codecs[k];
        o.target_chunk_kb = 1;
        t.path = test_path(state, daf_codec_name(codecs[k]));
        OK(daf_open(&t.d, t.path, "w", NULL, e));
        OK(daf_add_axis_integers(t.d, "axis", 0, 1, sizeof values, e));
        OK(daf_set_vector(t.d, "axis", "v", DAF_UINT8, values, sizeof values, &o, e));
        snprintf(json, sizeof json, "%s/vectors/axis/v.json", t.path);
        snprintf(t.file, sizeof t.file, "%s/vectors/axis/v.zip", t.path);
        t.content = test_read_file(t.file, &t.bytes);
        claim(&t, codecs[k], claimed);
        test_write_file(t.file, t.content, t.bytes);
        char text[300];
        int n = snprintf(
            text, sizeof text,
            "{\"format\":\"dense\",\"eltype\":\"UInt8\",\"packed_format\":\"zipped\",\"chunk_shape\":[%u],"
            "\"compression\":\"%s\"}",
            claimed, daf_codec_name(codecs[k]));
        test_write_file(json, text, (size_t)n);
        FAILS(DAF_ERR_CORRUPT, "more raw bytes than its data can hold",
              daf_get_vector(t.d, &a, "axis", "v", e));
        end(&t);
    }
}

/* An index cut anywhere comes back, in the order of a rebuild, at the next open, for reading or for writing. */
static void index_cut(void **state) {
    damaged t;
    make(&t, state, "metadata.json", DAF_CODEC_ZSTD);
    OK(daf_close(t.d, e));
    test_write_file(t.file, "", 0);
    OK(daf_open(&t.d, t.path, "r+", NULL, e));
    OK(daf_close(t.d, e));
    size_t bytes;
    char *rebuilt = test_read_file(t.file, &bytes);
    for (size_t cut = 0; cut < bytes; cut++) {
        size_t now = 0;
        test_write_file(t.file, rebuilt, cut);
        OK(daf_open(&t.d, t.path, cut % 2 ? "r" : "r+", NULL, e));
        OK(daf_close(t.d, e));
        char *again = test_read_file(t.file, &now);
        assert_string_equal(again, rebuilt);
        free(again);
    }
    free(rebuilt);
    free(t.content);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(zstd_numbers),      TEST(gzip_numbers),    TEST(zstd_texts),          TEST(gzip_texts),
        TEST(flat_numbers_cut),  TEST(flat_texts_cut),  TEST(descriptors_changed), TEST(scalars_changed),
        TEST(bombs_are_refused), TEST(index_cut),       TEST(blosc_zstd_numbers),  TEST(blosc_lz4_numbers),
        TEST(blosc_zstd_texts),  TEST(blosc_lz4_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

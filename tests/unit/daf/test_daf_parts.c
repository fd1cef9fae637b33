/* The pure parts: numbers, scalars, names, text, descriptors, ZIP structures, chunk names. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "descriptor.h"
#include "json.h"
#include "names.h"
#include "number.h"
#include "scalar.h"
#include "shard.h"
#include "text.h"
#include "utf8.h"
#include "zip.h"

static void errors_have_texts(void **state) {
    (void)state;
#define CHECK(name, code, text)                                                                              \
    assert_string_equal(daf_strerror(DAF_ERR_##name), text);                                                 \
    assert_int_equal(DAF_ERR_##name, code);
    DAF_ERROR_MAP(CHECK)
#undef CHECK
    assert_string_equal(daf_strerror(0), "success");
    assert_string_equal(daf_strerror(-999), "unknown error");
    assert_true(strlen(daf_version()) >= 5);
}

static void types_have_names(void **state) {
    (void)state;
    daf_type type;
    for (int t = 0; t < DAF_N_TYPES; t++) {
        assert_int_equal(daf_type_parse(&type, daf_type_name((daf_type)t)), 0);
        assert_int_equal(type, t);
    }
    assert_int_equal(daf_type_parse(&type, "uint32"), 0);
    assert_int_equal(type, DAF_UINT32);
    assert_int_equal(daf_type_parse(&type, "Int"), 0);
    assert_int_equal(type, DAF_INT64);
    assert_int_equal(daf_type_parse(&type, "string"), 0);
    assert_int_equal(type, DAF_STRING);
    assert_int_equal(daf_type_parse(&type, "Int128"), DAF_ERR_TYPE);
    assert_null(daf_type_name(DAF_N_TYPES));
    assert_int_equal(daf_type_bytes(DAF_FLOAT32), 4);
    assert_int_equal(daf_type_bytes(DAF_STRING), 0);
    daf_codec codec;
    assert_int_equal(daf_codec_parse(&codec, "gzip"), 0);
    assert_int_equal(codec, DAF_CODEC_GZIP);
    assert_int_equal(daf_codec_parse(&codec, "zstd_bitshuffle"), DAF_ERR_UNSUPPORTED);
    assert_null(daf_codec_name(DAF_CODEC_DEFAULT));
}

static void floats_are_spelled_short(void **state) {
    (void)state;
    static const struct {
        double value;
        bool single;
        const char *text;
    } cases[] = {
        {0, false, "0.0"},
        {-0.0, false, "-0.0"},
        {3, false, "3.0"},
        {-17.25, false, "-17.25"},
        {100000, false, "100000.0"},
        {123456, false, "123456.0"},
        {1e6, false, "1.0e6"},
        {1234567, false, "1.234567e6"},
        {1e300, false, "1.0e300"},
        {0.0001, false, "0.0001"},
        {0.00001, false, "1.0e-5"},
        {-2.5e-7, false, "-2.5e-7"},
        {0.1, false, "0.1"},
        {0.1 + 0.2, false, "0.30000000000000004"},
        {5e-324, false, "5.0e-324"},
        {1.7976931348623157e308, false, "1.7976931348623157e308"},
        {(double)0.1f, true, "0.1"},
        {(double)16777216.0f, true, "1.6777216e7"},
        {(double)3.4028235e38f, true, "3.4028235e38"},
        {(double)1e-45f, true, "1.0e-45"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[DAF__NUMBER_TEXT];
        size_t n = daf__format_float(text, cases[i].value, cases[i].single);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(n, strlen(text));
    }
}

static void floats_read_back(void **state) {
    (void)state;
    test_random r = {7};
    for (int i = 0; i < 20000; i++) {
        char text[DAF__NUMBER_TEXT];
        uint64_t bits = test_next(&r);
        uint32_t half = (uint32_t)bits;
        double d;
        float f;
        daf_scalar s;
        memcpy(&d, &bits, sizeof d);
        memcpy(&f, &half, sizeof f);
        if (isfinite(d)) {
            daf__format_float(text, d, false);
            assert_int_equal(daf__parse_number(&s, DAF_FLOAT64, text), 0);
            assert_true(s.value.f == d);
        }
        if (isfinite(f)) {
            daf__format_float(text, (double)f, true);
            assert_int_equal(daf__parse_number(&s, DAF_FLOAT32, text), 0);
            assert_true((float)s.value.f == f);
        }
    }
}

/* Parses and writes again. NULL for `written`: must be refused. */
static void scalar_case(const char *json, const char *written) {
    daf_scalar s;
    daf__buf out = {0};
    int rc = daf__scalar_parse(&s, json, strlen(json), "case", NULL);
    if (!written) {
        if (rc != DAF_ERR_CORRUPT)
            fail_msg("%s: %d", json, rc);
        return;
    }
    if (rc)
        fail_msg("%s: %d", json, rc);
    daf__scalar_write(&out, &s);
    assert_int_equal(out.size, strlen(written) + 1);
    assert_memory_equal(out.data, written, strlen(written));
    assert_int_equal(out.data[out.size - 1], '\n');
    daf_scalar_clear(&s);
    daf__buf_free(&out);
}

static void scalars_parse_and_write(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"{\"type\":\"Bool\",\"value\":true}", "{\"type\":\"Bool\",\"value\":true}"},
        {"{\"value\": 0 , \"type\":\"bool\"}\r\n", "{\"type\":\"Bool\",\"value\":false}"},
        {"{\"type\":\"Bool\",\"value\":2}", NULL},
        {"{\"type\":\"Bool\",\"value\":\"true\"}", NULL},
        {"{\"type\":\"Int8\",\"value\":-128}", "{\"type\":\"Int8\",\"value\":-128}"},
        {"{\"type\":\"Int8\",\"value\":128}", NULL},
        {"{\"type\":\"Int8\",\"value\":3.0}", "{\"type\":\"Int8\",\"value\":3}"},
        {"{\"type\":\"Int8\",\"value\":3.5}", NULL},
        {"{\"type\":\"int\",\"value\":1e3}", "{\"type\":\"Int64\",\"value\":1000}"},
        {"{\"type\":\"Int64\",\"value\":-9223372036854775808}",
         "{\"type\":\"Int64\",\"value\":-9223372036854775808}"},
        {"{\"type\":\"Int64\",\"value\":9223372036854775808}", NULL},
        {"{\"type\":\"UInt64\",\"value\":18446744073709551615}",
         "{\"type\":\"UInt64\",\"value\":18446744073709551615}"},
        {"{\"type\":\"UInt64\",\"value\":18446744073709551616}", NULL},
        {"{\"type\":\"UInt8\",\"value\":-1}", NULL},
        {"{\"type\":\"UInt8\",\"value\":\"1\"}", NULL},
        {"{\"type\":\"UInt8\",\"value\":NaN}", NULL},
        {"{\"type\":\"Float64\",\"value\":3}", "{\"type\":\"Float64\",\"value\":3.0}"},
        {"{\"type\":\"Float64\",\"value\":3.7500000000e-01}", "{\"type\":\"Float64\",\"value\":0.375}"},
        {"{\"type\":\"Float64\",\"value\":NaN}", "{\"type\":\"Float64\",\"value\":\"NaN\"}"},
        {"{\"type\":\"Float64\",\"value\":-Infinity}", "{\"type\":\"Float64\",\"value\":\"-Inf\"}"},
        {"{\"type\":\"Float32\",\"value\":\"Infinity\"}", "{\"type\":\"Float32\",\"value\":\"Inf\"}"},
        {"{\"type\":\"Float32\",\"value\":\"Inf\"}", "{\"type\":\"Float32\",\"value\":\"Inf\"}"},
        {"{\"type\":\"Float32\",\"value\":0.1}", "{\"type\":\"Float32\",\"value\":0.1}"},
        {"{\"type\":\"Float32\",\"value\":1e39}", NULL},
        {"{\"type\":\"Float64\",\"value\":1e400}", NULL},
        {"{\"type\":\"Float64\",\"value\":0x10}", NULL},
        {"{\"type\":\"Float64\",\"value\":01}", NULL},
        {"{\"type\":\"Float64\",\"value\":1.}", NULL},
        {"{\"type\":\"Float64\",\"value\":inf}", NULL},
        {"{\"type\":\"String\",\"value\":\"a\\u00e9\\n\\\"\\\\\\/\\u0007\"}",
         "{\"type\":\"String\",\"value\":\"aé\\n\\\"\\\\/\\u0007\"}"},
        {"{\"type\":\"String\",\"value\":\"\\\"value\\\":12\"}",
         "{\"type\":\"String\",\"value\":\"\\\"value\\\":12\"}"},
        {"{\"type\":\"String\",\"value\":\"nul \\u0000 nul\"}",
         "{\"type\":\"String\",\"value\":\"nul \\u0000 nul\"}"},
        {"{\"type\":\"String\",\"value\":7}", NULL},
        {"{\"type\":\"Int8\",\"extra\":{\"value\":99},\"value\":5,\"more\":[1,2]}",
         "{\"type\":\"Int8\",\"value\":5}"},
        {"{\"type\":\"Int8\"}", NULL},
        {"{\"value\":1}", NULL},
        {"{\"type\":\"Int8\",\"value\":1", NULL},
        {"[1]", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        scalar_case(cases[i][0], cases[i][1]);
}

static void names_are_checked(void **state) {
    (void)state;
    char longest[300];
    memset(longest, 'a', sizeof longest);
    longest[DAF__MAX_NAME] = 0;
    daf__property good[] = {daf__scalar_property("a.b"),        daf__scalar_property("percent%20 \"q\" \\ :"),
                            daf__scalar_property("name"),       daf__axis_property("x.nzind"),
                            daf__vector_property("a", ".x"),    daf__matrix_property("a", "a", "index"),
                            daf__vector_property("a", longest), daf__scalar_property("名前")};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        OK(daf__check_writable(&good[i], e));
    longest[DAF__MAX_NAME] = 'a';
    longest[DAF__MAX_NAME + 1] = 0;
    daf__property bad[] = {daf__scalar_property(""),
                           daf__scalar_property("."),
                           daf__scalar_property(".."),
                           daf__scalar_property("a/b"),
                           daf__scalar_property("/etc"),
                           daf__vector_property("..", "x"),
                           daf__vector_property("a", "name"),
                           daf__vector_property("a", "index"),
                           daf__vector_property("a", "x.nzind"),
                           daf__matrix_property("a", "b", "x.colptr"),
                           daf__scalar_property("x.rowval"),
                           daf__scalar_property("x.nzval"),
                           daf__scalar_property("x.nztxt"),
                           daf__scalar_property("\xff"),
                           daf__axis_property("a/../b"),
                           daf__matrix_property("a", ".", "x"),
                           daf__vector_property("a", longest)};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        FAILS(DAF_ERR_NAME, "", daf__check_writable(&bad[i], e));
    daf__property null = daf__scalar_property(NULL);
    FAILS(DAF_ERR_ARG, "NULL", daf__check_writable(&null, e));
}

static void text_is_split_at_line_feeds(void **state) {
    (void)state;
    static const struct {
        const char *content;
        unsigned n;
        const char *last;
    } cases[] = {{"", 0, NULL},        {"a\n", 1, "a"},          {"a", 1, "a"},    {"\n", 1, ""},
                 {"a\n\nb\n", 3, "b"}, {"a\r\nb\r\n", 2, "b\r"}, {"a\n\n", 2, ""}, {"ü\n名前", 2, "名前"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        daf__buf content = {0};
        daf__texts t;
        daf__buf_text(&content, cases[i].content);
        daf__buf_reserve(&content, 1);
        assert_int_equal(daf__texts_count(&content), cases[i].n);
        OK(daf__texts_split(&t, &content, "case", e));
        assert_int_equal(t.n, cases[i].n);
        if (t.n) {
            assert_string_equal(t.next[t.n - 1], cases[i].last);
            assert_int_equal(daf__texts_bytes(&t, t.n - 1), strlen(cases[i].last));
        }
        daf__texts_free(&t);
    }
    daf__buf bad = {0};
    daf__texts t;
    daf__buf_text(&bad, "ok\n\xc3(\n");
    daf__buf_reserve(&bad, 1);
    FAILS(DAF_ERR_CORRUPT, "not valid UTF-8 at byte 3", daf__texts_split(&t, &bad, "case", e));
    daf__buf_append(&bad, "a\0b\n", 4);
    daf__buf_reserve(&bad, 1);
    FAILS(DAF_ERR_CORRUPT, "a NUL at byte 1", daf__texts_split(&t, &bad, "case", e));
}

static void the_second_empty_line_is_found(void **state) {
    (void)state;
    static const struct {
        const char *content;
        int at; /* -1: nowhere */
    } cases[] = {{"", -1},          {"\n", -1},       {"\n\n", 1},       {"a\n\n", -1}, {"a\n\n\nb", 3},
                 {"\na\n\nb\n", 3}, {"\na\nb\n", -1}, {"a\nb\n\n\n", 5}, {"\na\nb", -1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        daf__buf content = {0};
        daf__buf_text(&content, cases[i].content);
        const uint8_t *found = daf__texts_second_empty(&content);
        assert_int_equal(found ? (int)(found - content.data) : -1, cases[i].at);
        daf__buf_free(&content);
    }
}

static void utf8_prefix_is_exact(void **state) {
    (void)state;
    assert_int_equal(daf__utf8_prefix("plain ASCII, longer than a word", 31), 31);
    assert_int_equal(daf__utf8_prefix("eight by\xc3\xa9", 10), 10);
    assert_int_equal(daf__utf8_prefix("eight by\xc3", 9), 8);
    assert_int_equal(daf__utf8_prefix("\xed\xa0\x80", 3), 0);
    assert_int_equal(daf__utf8_prefix("ab\xc0\x80", 4), 2);
}

static void descriptor_case(daf__kind kind, const char *json, int code, const char *part) {
    daf__descriptor d;
    FAILS(code, part, daf__descriptor_parse(&d, kind, json, strlen(json), "case", e));
}

#define PACKED(shape, more)                                                                                  \
    "{\"format\":\"dense\",\"eltype\":\"Int8\",\"packed_format\":\"zipped\",\"chunk_shape\":" shape more "}"

static void descriptors_are_parsed_by_shape(void **state) {
    (void)state;
    daf__descriptor d;
    const char *old = "{\"format\":\"sparse\",\"eltype\":\"Float32\",\"indtype\":\"Int64\"}";
    OK(daf__descriptor_parse(&d, DAF__VECTOR, old, strlen(old), "case", e));
    assert_true(d.sparse && d.type == DAF_FLOAT32);
    const char *all_true =
        "{\"format\":\"sparse\",\"nzind\":{\"format\":\"dense\",\"eltype\":\"UInt16\",\"n_elements\":1}}";
    OK(daf__descriptor_parse(&d, DAF__VECTOR, all_true, strlen(all_true), "case", e));
    assert_true(d.sparse && d.type == DAF_BOOL);
    const char *wide = PACKED("[8,3]", ",\"compression\":\"gzip\",\"compression_level\":7");
    OK(daf__descriptor_parse(&d, DAF__MATRIX, wide, strlen(wide), "case", e));
    const daf__component *values = &d.parts[DAF__VALUES];
    assert_true(values->packed && !values->packing.indexed);
    assert_true(values->packing.chunk_rows == 8 && values->packing.chunk_columns == 3);
    assert_string_equal(values->packing.compression, "gzip");
    descriptor_case(DAF__VECTOR, wide, DAF_ERR_CORRUPT, "chunk_shape");
    descriptor_case(DAF__MATRIX, PACKED("[8,0]", ",\"compression\":\"gzip\""), DAF_ERR_CORRUPT,
                    "chunk_shape");
    descriptor_case(DAF__VECTOR, PACKED("[8]", ""), DAF_ERR_CORRUPT, "compression");
    descriptor_case(DAF__VECTOR, "{\"format\":\"dense\",\"eltype\":\"Int8\",\"packed_format\":\"tarred\"}",
                    DAF_ERR_UNSUPPORTED, "tarred");
    descriptor_case(DAF__VECTOR, "{\"format\":\"dense\"}", DAF_ERR_CORRUPT, "no eltype");
    descriptor_case(DAF__VECTOR, "{\"eltype\":\"Int8\"}", DAF_ERR_CORRUPT, "unknown format");
    descriptor_case(DAF__VECTOR, "3", DAF_ERR_CORRUPT, "JSON");
}

static void empty_archive_has_its_98_bytes(void **state) {
    (void)state;
    static const char expected[] =
        "504b06062c000000000000001e032d00000000000000000000000000000000000000000000000000"
        "00000000000000000000000000000000504b060700000000000000000000000001000000"
        "504b050600000000ffffffffffffffffffff"
        "ffff0000";
    uint8_t end[DAF__ZIP_END_BYTES];
    char hex[2 * DAF__ZIP_END_BYTES + 1];
    daf__zip_put_end(end, 0, 0, 0);
    for (size_t i = 0; i < sizeof end; i++)
        snprintf(hex + 2 * i, 3, "%02x", end[i]);
    assert_string_equal(hex, expected);
}

static void zip_entries_read_back(void **state) {
    (void)state;
    uint8_t bytes[200];
    daf__zip_entry e = {.name = (const uint8_t *)"c/0",
                        .name_bytes = 3,
                        .flags = DAF__ZIP_UTF8_FLAG,
                        .method = 93,
                        .crc = 0x12345678,
                        .packed_bytes = 7,
                        .raw_bytes = 1ull << 33,
                        .offset = 1ull << 40},
                   got;
    size_t n = daf__zip_put_central(bytes, &e);
    assert_int_equal(n, DAF__ZIP_CENTRAL_BYTES + 3 + DAF__ZIP_CENTRAL_EXTRA_BYTES);
    assert_int_equal(daf__zip_parse_central(bytes, n, &got), n);
    assert_true(got.raw_bytes == e.raw_bytes && got.packed_bytes == 7 && got.offset == e.offset &&
                got.crc == e.crc);
    for (size_t cut = 0; cut < n; cut++)
        assert_int_equal(daf__zip_parse_central(bytes, cut, &got), 0);
    assert_int_equal(daf__zip_put_local(bytes, &e, true), 30 + 3 + 20);
    assert_int_equal(daf__zip_local_bytes(bytes), 30 + 3 + 20);
    assert_int_equal(daf__zip_put_local(bytes, &e, false), 30 + 3);
    bytes[0] = 0;
    assert_int_equal(daf__zip_local_bytes(bytes), 0);
}

static void check_name(const daf__grid *g, daf_codec codec, uint64_t k, const char *expected, size_t bytes) {
    uint8_t name[DAF__CHUNK_NAME_BYTES];
    assert_int_equal(daf__chunk_name(name, g, codec, k), bytes);
    assert_memory_equal(name, expected, bytes);
}

static void chunks_have_the_specified_names(void **state) {
    (void)state;
    daf__packing packing = {.chunk_rows = 128, .chunk_columns = 1}; /* Float64, target 1 KB */
    daf__grid g;
    OK(daf__grid_make(&g, DAF__MATRIX, 1400, 12, &packing, "case", e));
    assert_int_equal(g.row_chunks, 11);
    assert_int_equal(g.column_chunks, 12);
    check_name(&g, DAF_CODEC_ZSTD, 0, "c/00/00", 7);
    check_name(&g, DAF_CODEC_ZSTD, 10, "c/00/10", 7);
    check_name(&g, DAF_CODEC_ZSTD, 11, "c/01/00", 7);
    check_name(&g, DAF_CODEC_GZIP, 0,
               "\x1f\x8b\x08\x01"
               "AAAA\x02\xff",
               10);
    check_name(&g, DAF_CODEC_GZIP, 1,
               "\x1f\x8b\x08\x01"
               "AAAB\x02\xff",
               10);
    OK(daf__grid_make(&g, DAF__VECTOR, 100, 1, &packing, "case", e));
    check_name(&g, DAF_CODEC_ZSTD, 0, "c/0", 3);
    packing.chunk_rows = UINT64_MAX;
    packing.chunk_columns = 2;
    FAILS(DAF_ERR_LIMIT, "too large", daf__grid_make(&g, DAF__MATRIX, 1400, 12, &packing, "case", e));
}

static void json_is_written_compactly(void **state) {
    (void)state;
    daf__buf out = {0};
    daf__json_compact(&out, "{ \"a b\\\" c\" :\n [ 1 , 2 ] }\r\n", 28);
    daf__buf_append(&out, "", 1);
    assert_string_equal((char *)out.data, "{\"a b\\\" c\":[1,2]}");
    daf__buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_have_texts),
        cmocka_unit_test(types_have_names),
        cmocka_unit_test(floats_are_spelled_short),
        cmocka_unit_test(floats_read_back),
        cmocka_unit_test(scalars_parse_and_write),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(text_is_split_at_line_feeds),
        cmocka_unit_test(the_second_empty_line_is_found),
        cmocka_unit_test(utf8_prefix_is_exact),
        cmocka_unit_test(descriptors_are_parsed_by_shape),
        cmocka_unit_test(empty_archive_has_its_98_bytes),
        cmocka_unit_test(zip_entries_read_back),
        cmocka_unit_test(chunks_have_the_specified_names),
        cmocka_unit_test(json_is_written_compactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Pages: round trips, protobuf-c's own bytes, lenient reading, damage. */
#include <inttypes.h>

#include "codec.h"
#include "d7/d7.h"
#include "kernels.h"
#include "seven.pb-c.h"
#include "testing.h"

enum { MAX_ITEMS = 9000 };

/* Kinds of values, so that differences take every length there is. */
typedef enum spread { NOISE, ENDS, SMALL, RISING, N_SPREADS } spread;

static uint64_t make_value(uint64_t *rng, spread s, unsigned bits, uint64_t before) {
    uint64_t r = testing_random(rng), top = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    uint64_t ends[] = {0, 1, top, top - 1, top / 2, top / 2 + 1};
    switch (s) {
    case ENDS:
        return ends[r % 6];
    case SMALL:
        return r & 0xFFF & top;
    case RISING:
        return before + (r >> (r % 64)) % 0x3FFFFFFFFF;
    default:
        return r & top;
    }
}

static void make_values(uint64_t *rng, spread s, d7_type type, size_t n, uint8_t *out) {
    size_t size = d7_type_size(type);
    uint64_t before = 0;
    for (size_t i = 0; i < n; i++) {
        before = make_value(rng, s, (unsigned)size * 8, before);
        memcpy(out + i * size, &before, size); /* a little-endian host, as the rest of these tests */
    }
}

static void round_trip(d7_type type, const void *values, size_t n) {
    size_t cap = d7_page_bound(type, n), bytes = 0, got_n = 0, counted = 0, size = d7_type_size(type);
    uint8_t *entry = malloc(cap), *got = malloc(n * size);
    uint32_t id = 0, counted_id = 0;
    d7_error err;
    assert_int_equal(d7_page_encode(300, type, values, n, entry, cap, &bytes), 0);
    assert_true(bytes <= cap);
    assert_true(d7__page_head_fits(300, entry, bytes));
    assert_false(d7__page_head_fits(301, entry, bytes));
    assert_int_equal(d7_page_decode(type, entry, bytes, got, n, &id, &got_n, &err), 0);
    assert_int_equal(id, 300);
    assert_int_equal(got_n, n);
    assert_memory_equal(got, values, n * size);
    assert_int_equal(d7_page_count(type, entry, bytes, &counted_id, &counted, &err), 0);
    assert_int_equal(counted_id, 300);
    assert_int_equal(counted, n);
    if (n > 1)
        assert_int_equal(d7_page_decode(type, entry, bytes, got, n - 1, &id, &got_n, &err), D7_ERR_LIMIT);
    free(entry);
    free(got);
}

static void values_come_back(void **state) {
    (void)state;
    static const size_t lengths[] = {1, 2, 3, 7, 8, 9, 63, 64, 65, 500, 2048, 8191, 8192};
    static uint8_t values[MAX_ITEMS * 8];
    uint64_t rng = 1;
    for (int t = 0; t < D7_N_TYPES; t++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            for (int s = 0; s < N_SPREADS; s++) {
                make_values(&rng, (spread)s, (d7_type)t, lengths[i], values);
                round_trip((d7_type)t, values, lengths[i]);
            }
}

/* Values at an odd address: callers may point into a buffer of their own. */
static void values_may_be_unaligned(void **state) {
    (void)state;
    static uint8_t values[65 * 8 + 1];
    uint64_t rng = 7;
    for (int t = 0; t < D7_N_TYPES; t++) {
        make_values(&rng, NOISE, (d7_type)t, 65, values + 1);
        round_trip((d7_type)t, values + 1, 65);
    }
}

/* Differences that need exactly 7 k bits and one more, both signs. */
static void boundaries_of_varints(void **state) {
    (void)state;
    for (unsigned k = 0; k < 64; k++) {
        uint64_t step = (uint64_t)1 << k;
        uint64_t v[] = {0, step, 0, step - 1, 0, 0 - step, 0, step + 1, UINT64_MAX, step};
        uint32_t v32[10];
        for (size_t i = 0; i < 10; i++)
            v32[i] = (uint32_t)v[i];
        round_trip(D7_UINT64, v, 10);
        round_trip(D7_INT64, v, 10);
        round_trip(D7_UINT32, v32, 10);
        round_trip(D7_INT32, v32, 10);
    }
}

/* What protobuf-c writes for the same message; it leaves out an empty delta field, which the format wants. */
static void check_against_protobuf(d7_type type, const uint8_t *values, size_t n) {
    static int64_t wide[MAX_ITEMS];
    static int32_t narrow[MAX_ITEMS];
    static uint8_t expected[MAX_ITEMS * 12], entry[MAX_ITEMS * 12];
    Seven__Data data = SEVEN__DATA__INIT;
    size_t size = d7_type_size(type);
    data.has_dataset_id = data.has_seed = true;
    data.dataset_id = 5;
    for (size_t i = 0; i < n; i++) {
        uint64_t u = 0;
        memcpy(&u, values + i * size, size);
        unsigned shift = 64 - 8 * (unsigned)size;
        wide[i] = type < D7_UINT8 ? (int64_t)(u << shift) >> shift : (int64_t)u;
    }
    data.seed = wide[0];
    for (size_t i = 0; i + 1 < n; i++) {
        wide[i] = (int64_t)((uint64_t)wide[i + 1] - (uint64_t)wide[i]);
        narrow[i] = (int32_t)wide[i];
    }
    data.n_integers = size < 8 ? n - 1 : 0;
    data.n_longs = size < 8 ? 0 : n - 1;
    data.integers = narrow;
    data.longs = wide;
    Seven__FileEntry message = SEVEN__FILE_ENTRY__INIT;
    message.entry_case = SEVEN__FILE_ENTRY__ENTRY_DATA;
    message.data = &data;
    size_t want = seven__file_entry__pack(&message, expected), bytes = 0;
    assert_int_equal(d7_page_encode(5, type, values, n, entry, sizeof entry, &bytes), 0);
    assert_int_equal(bytes, want);
    assert_memory_equal(entry, expected, want);
}

static void deltas_are_protobufs(void **state) {
    (void)state;
    static const d7_type types[] = {D7_INT16, D7_UINT16, D7_INT32, D7_UINT32, D7_INT64, D7_UINT64};
    static uint8_t values[MAX_ITEMS * 8];
    uint64_t rng = 3;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int s = 0; s < N_SPREADS; s++)
            for (size_t n = 2; n < 9000; n = n * 3 + 1) {
                make_values(&rng, (spread)s, types[t], n, values);
                check_against_protobuf(types[t], values, n);
            }
}

static void raw_pages_are_protobufs(void **state) {
    (void)state;
    static const d7_type types[] = {D7_INT8, D7_UINT8, D7_FLOAT, D7_DOUBLE};
    uint8_t values[80], expected[128], entry[256];
    for (size_t i = 0; i < sizeof values; i++)
        values[i] = (uint8_t)(i * 77);
    for (size_t t = 0; t < 4; t++) {
        Seven__Data data = SEVEN__DATA__INIT;
        ProtobufCBinaryData raw = {.len = sizeof values, .data = values};
        data.has_dataset_id = true;
        if (types[t] == D7_FLOAT)
            data.has_floats = true, data.floats = raw;
        else if (types[t] == D7_DOUBLE)
            data.has_doubles = true, data.doubles = raw;
        else
            data.has_raw_bytes = true, data.raw_bytes = raw;
        Seven__FileEntry message = SEVEN__FILE_ENTRY__INIT;
        message.entry_case = SEVEN__FILE_ENTRY__ENTRY_DATA;
        message.data = &data;
        size_t want = seven__file_entry__pack(&message, expected), bytes = 0;
        size_t n = sizeof values / d7_type_size(types[t]);
        assert_int_equal(d7_page_encode(0, types[t], values, n, entry, sizeof entry, &bytes), 0);
        assert_int_equal(bytes, want);
        assert_memory_equal(entry, expected, want);
    }
}

/* The delta field is there even when it is empty, dataset and seed even when they are 0. */
static void one_item_and_zeros_are_written(void **state) {
    (void)state;
    static const uint8_t expected[] = {0x12, 6, 0x08, 0, 0x18, 0, 0x22, 0};
    uint8_t entry[64];
    size_t bytes;
    assert_int_equal(d7_page_encode(0, D7_UINT16, &(uint16_t){0}, 1, entry, sizeof entry, &bytes), 0);
    assert_int_equal(bytes, sizeof expected);
    assert_memory_equal(entry, expected, sizeof expected);
}

#define DECODE(type, out, cap, ...)                                                                          \
    d7_page_decode(type, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), out, cap,   \
                   &id, &n, &err)

static void lenient_forms_are_read(void **state) {
    (void)state;
    uint16_t u16[8];
    float f[2];
    uint32_t id;
    size_t n;
    d7_error err;
    /* nothing but a body: dataset 0, one item of value 0 */
    assert_int_equal(DECODE(D7_UINT16, u16, 8, 0x12, 0), 0);
    assert_int_equal(id, 0);
    assert_int_equal(n, 1);
    assert_int_equal(u16[0], 0);
    /* deltas first and not packed, an unknown varint and unknown bytes, seed last, an unknown field beside */
    assert_int_equal(DECODE(D7_UINT16, u16, 8, 0x78, 5, 0x12, 14, 0x20, 2, 0x20, 0x80, 1, 0x58, 9, 0x62, 1,
                            'x', 0x18, 20, 0x08, 3),
                     0);
    assert_int_equal(id, 3);
    assert_int_equal(n, 3);
    assert_int_equal(u16[0], 10);
    assert_int_equal(u16[1], 11);
    assert_int_equal(u16[2], 75);
    /* packed in two pieces */
    assert_int_equal(DECODE(D7_UINT16, u16, 8, 0x12, 8, 0x18, 2, 0x22, 1, 2, 0x22, 1, 2), 0);
    assert_int_equal(n, 3);
    assert_int_equal(u16[2], 3);
    /* floats as raw bytes, as doubles, and one by one */
    assert_int_equal(DECODE(D7_FLOAT, f, 2, 0x12, 6, 0x42, 4, 0, 0, 0x80, 0x3F), 0);
    assert_int_equal(n, 1);
    assert_true(f[0] == 1.0f);
    assert_int_equal(DECODE(D7_FLOAT, f, 2, 0x12, 6, 0x3A, 4, 0, 0, 0, 0x40), 0);
    assert_true(f[0] == 2.0f);
    assert_int_equal(DECODE(D7_FLOAT, f, 2, 0x12, 10, 0x35, 0, 0, 0x80, 0x3F, 0x35, 0, 0, 0, 0x40), 0);
    assert_int_equal(n, 2);
    assert_true(f[0] == 1.0f && f[1] == 2.0f);
}

static void damage_is_an_error(void **state) {
    (void)state;
    uint64_t out[8] = {0};
    uint32_t id = 77;
    size_t n = 77;
    d7_error err;
    assert_int_equal(DECODE(D7_UINT16, out, 8, 0x12, 3, 0x22, 1), D7_ERR_CORRUPT); /* length past the end */
    assert_int_equal(DECODE(D7_UINT16, out, 8, 0x0A, 0), D7_ERR_CORRUPT);          /* a header */
    assert_int_equal(DECODE(D7_UINT16, out, 8, 0x00, 0), D7_ERR_CORRUPT);          /* field 0 */
    assert_int_equal(DECODE(D7_UINT16, out, 8, 0x12, 3, 0x22, 1, 0x80), D7_ERR_CORRUPT); /* open varint */
    assert_int_equal(DECODE(D7_UINT16, out, 8, 0x12, 3, 0x42, 1, 0x05),
                     D7_ERR_CORRUPT); /* raw bytes of integers */
    assert_int_equal(DECODE(D7_UINT8, out, 8, 0x12, 3, 0x22, 1, 0x05), D7_ERR_CORRUPT); /* deltas of bytes */
    assert_int_equal(DECODE(D7_DOUBLE, out, 8, 0x12, 5, 0x3A, 3, 1, 2, 3),
                     D7_ERR_CORRUPT); /* 3 bytes of doubles */
    assert_int_equal(DECODE(D7_UINT16, out, 8, 0x12, 6, 0x22, 1, 2, 0x2A, 1, 2),
                     D7_ERR_CORRUPT); /* two fields */
    assert_int_equal(DECODE(D7_UINT64, out, 8, 0x12, 13, 0x2A, 11, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                            0xFF, 0xFF, 0xFF, 1),
                     D7_ERR_CORRUPT); /* a varint of 11 bytes */
    assert_int_equal(DECODE(D7_UINT16, out, 8, 0x12, 7, 0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1),
                     D7_ERR_CORRUPT); /* dataset 2^35 - 1 */
    assert_int_equal(id, 77);
    assert_int_equal(n, 77);
    assert_string_not_equal(err.text, "");
    assert_int_equal(d7_page_decode((d7_type)10, "", 0, out, 8, &id, &n, &err), D7_ERR_ARG);
}

static void arguments_are_checked(void **state) {
    (void)state;
    uint16_t v[4] = {0};
    uint8_t entry[64];
    size_t bytes;
    assert_int_equal(d7_page_encode(0, D7_UINT16, v, 0, entry, sizeof entry, &bytes), D7_ERR_ARG);
    assert_int_equal(d7_page_encode(0, (d7_type)10, v, 1, entry, sizeof entry, &bytes), D7_ERR_ARG);
    assert_int_equal(d7_page_encode(0, D7_UINT16, NULL, 1, entry, sizeof entry, &bytes), D7_ERR_ARG);
    assert_int_equal(d7_page_encode(0, D7_UINT16, v, 4, entry, d7_page_bound(D7_UINT16, 4) - 1, &bytes),
                     D7_ERR_LIMIT);
    assert_true(d7_page_bound(D7_UINT64, SIZE_MAX / 2) == SIZE_MAX);
    assert_true(d7_page_bound((d7_type)10, 1) == SIZE_MAX);
    /* more than an entry may hold */
    size_t n = D7_ENTRY_BYTES_MAX, cap = d7_page_bound(D7_UINT8, n);
    uint8_t *large = calloc(n, 1), *out = malloc(cap);
    assert_int_equal(d7_page_encode(0, D7_UINT8, large, n, out, cap, &bytes), D7_ERR_LIMIT);
    free(large);
    free(out);
}

static void types_and_errors_have_names(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8};
    d7_type type;
    for (int t = 0; t < D7_N_TYPES; t++) {
        assert_int_equal(d7_type_size((d7_type)t), sizes[t]);
        assert_int_equal(d7_type_parse(d7_type_name((d7_type)t), &type), 0);
        assert_int_equal(type, t);
    }
    assert_null(d7_type_name((d7_type)10));
    assert_int_equal(d7_type_parse("uint17", &type), D7_ERR_NOTFOUND);
    assert_int_equal(d7_items_per_page(D7_UINT16, 16384), 8192);
    assert_int_equal(d7_items_per_page((d7_type)-1, 16384), 0);
    for (int code = 0; code >= -13; code--)
        assert_string_not_equal(d7_error_name(code), "UNKNOWN");
    assert_string_equal(d7_error_name(-99), "UNKNOWN");
    assert_string_equal(d7_error_name(D7_ERR_NOSPACE), "NOSPACE");
    assert_string_equal(d7_error_text(D7_ERR_LOCKED), "another writer holds the file");
    for (int p = 0; p < D7_N_PROBLEMS; p++) {
        assert_non_null(d7_problem_name((d7_problem_code)p));
        assert_non_null(d7_problem_text((d7_problem_code)p));
    }
    assert_null(d7_problem_name(D7_N_PROBLEMS));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_back),        cmocka_unit_test(values_may_be_unaligned),
        cmocka_unit_test(boundaries_of_varints),   cmocka_unit_test(deltas_are_protobufs),
        cmocka_unit_test(raw_pages_are_protobufs), cmocka_unit_test(one_item_and_zeros_are_written),
        cmocka_unit_test(lenient_forms_are_read),  cmocka_unit_test(damage_is_an_error),
        cmocka_unit_test(arguments_are_checked),   cmocka_unit_test(types_and_errors_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

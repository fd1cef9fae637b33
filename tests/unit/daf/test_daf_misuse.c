/* Calls with what they cannot take are errors, and those at the limits of their types are none. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

static void pointers_that_are_null(void **state) {
    daf *d;
    (void)state;
    OK(daf_open_memory(&d, NULL, e));
    FAILS(DAF_ERR_ARG, "NULL", daf_add_axis(d, "a", NULL, 1, e));
    FAILS(DAF_ERR_ARG, "NULL", daf_add_axis(d, "a", (const char *const[]){"x", NULL}, 2, e));
    OK(daf_add_axis(d, "a", (const char *const[]){"x", "y"}, 2, e));
    FAILS(DAF_ERR_ARG, "NULL", daf_set_vector(d, "a", "v", DAF_STRING, NULL, 2, NULL, e));
    FAILS(DAF_ERR_ARG, "NULL", daf_set_vector(d, "a", "v", DAF_INT8, NULL, 2, NULL, e));
    OK(daf_add_axis(d, "empty", NULL, 0, e));
    OK(daf_close(d, e));
}

static void options_out_of_range(void **state) {
    static const int levels[] = {-1, 23, 99};
    const char *path = test_path(state, "a.daf");
    daf *d;
    for (unsigned i = 0; i < 3; i++) {
        daf_options o;
        daf_options_init(&o);
        o.level = levels[i];
        FAILS(DAF_ERR_ARG, "level", daf_open(&d, path, "w+", &o, e));
        assert_false(test_exists(path));
    }
}

/* Refused also when nothing is packed. */
static void set_options_that_there_are_not(void **state) {
    (void)state;
    static const uint8_t values[2] = {1, 2};
    daf *d;
    OK(daf_open_memory(&d, NULL, e));
    OK(daf_add_axis_integers(d, "a", 0, 1, 2, e));
    for (int i = 0; i < 5; i++) {
        daf_set_options o;
        daf_stream *s;
        bool there;
        daf_set_options_init(&o);
        o.codec = i == 0 ? (daf_codec)77 : DAF_CODEC_DEFAULT;
        o.form = i == 1 ? (daf_form)9 : DAF_FORM_AS_GIVEN;
        o.packing = i == 2 ? (daf_packing)9 : DAF_PACK_NEVER;
        o.level = i == 3 ? 23 : i == 4 ? -1 : 0;
        FAILS(DAF_ERR_ARG, "", daf_set_vector(d, "a", "v", DAF_UINT8, values, 2, &o, e));
        FAILS(DAF_ERR_ARG, "", daf_stream_vector(d, &s, "a", "v", DAF_UINT8, &o, e));
        OK(daf_has_vector(d, &there, "a", "v", e));
        assert_false(there);
    }
    OK(daf_close(d, e));
}

/* What would be too long to be read again. */
static void texts_that_are_too_long(void **state) {
    enum { LONG = 17 << 20 };
    daf *d;
    daf_scalar back;
    bool there;
    char *text = malloc(LONG + 1);
    (void)state;
    assert_non_null(text);
    memset(text, 'b', LONG);
    text[LONG] = 0;
    daf_scalar s = daf_scalar_string(text);
    OK(daf_open_memory(&d, NULL, e));
    FAILS(DAF_ERR_LIMIT, "longer than can be read", daf_set_scalar(d, "s", &s, NULL, e));
    OK(daf_has_scalar(d, &there, "s", e));
    assert_false(there);
    s.value.s.bytes = 15 << 20;
    OK(daf_set_scalar(d, "s", &s, NULL, e));
    OK(daf_get_scalar(d, &back, "s", e));
    assert_int_equal(back.value.s.bytes, 15 << 20);
    daf_scalar_clear(&back);
    OK(daf_close(d, e));
    free(text);
}

static void integers_to_the_limits(void **state) {
    static const struct {
        int64_t first, step;
        uint64_t n;
        const char *last; /* NULL: exceeds 64 bits */
    } cases[] = {
        {INT64_MIN, INT64_MAX, 3, "9223372036854775806"},
        {INT64_MAX, -INT64_MAX, 3, "-9223372036854775807"},
        {INT64_MAX, INT64_MIN, 2, "-1"},
        {INT64_MIN, 1, 2, "-9223372036854775807"},
        {0, INT64_MIN, 2, "-9223372036854775808"},
        {INT64_MAX, 1, 1, "9223372036854775807"},
        {INT64_MAX, 1, 2, NULL},
        {INT64_MIN, -1, 2, NULL},
        {-1, INT64_MIN, 2, NULL},
        {0, INT64_MAX, 3, NULL},
        {INT64_MIN, INT64_MAX, 4, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        daf *d;
        daf_array *a;
        OK(daf_open_memory(&d, NULL, e));
        if (!cases[i].last) {
            FAILS(DAF_ERR_VALUE, "64 bits",
                  daf_add_axis_integers(d, "a", cases[i].first, cases[i].step, cases[i].n, e));
        } else {
            OK(daf_add_axis_integers(d, "a", cases[i].first, cases[i].step, cases[i].n, e));
            OK(daf_get_axis(d, &a, "a", e));
            assert_string_equal(daf_array_strings(a)[cases[i].n - 1], cases[i].last);
            daf_array_free(a);
        }
        OK(daf_close(d, e));
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(pointers_that_are_null),  TEST(options_out_of_range),   TEST(set_options_that_there_are_not),
        TEST(texts_that_are_too_long), TEST(integers_to_the_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

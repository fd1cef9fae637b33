/* Records that speak of an item, as this project and others write them, and texts that are none. */
#include "base/record.h"
#include "testing.h"

static bool read(const char *text, common_record *ret) {
    return common_record_read(text, strlen(text), ret);
}

static void keys_are_numbered(void **state) {
    (void)state;
    static const struct {
        const char *key;
        bool is;
    } keys[] = {{"photond.gap.0", true},
                {"photond.gap.00000012", true},
                {"photond.marker.123456789012345678", true},
                {"photond.marker.1234567890123456789", false}, /* the next would not fit */
                {"photond.gap.", false},
                {"photond.gap.1a", false},
                {"photond.gap.10k", false},
                {"photond.gap.-1", false},
                {"photond.clock.0", false},
                {"photond.gap", false},
                {"", false}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_int_equal(common_record_key(keys[i].key, strlen(keys[i].key)), keys[i].is);
    uint64_t number = 5;
    assert_true(common_record_numbered("photond.clock.00000070", 22, "photond.clock.", &number));
    assert_int_equal(number, 70);
}

static void items_are_found(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t item;
        size_t at, bytes;
    } texts[] = {
        {"{\"item\":7}", 7, 8, 1},
        {" {\t\"count\" : 3 ,\n\"item\" : 18446744073709551615 }", UINT64_MAX, 26, 20},
        {"{\"text\": \"\\\"item\\\": 5\", \"item\": 12}", 12, 32, 2},
        {"{\"inner\": {\"item\": 1, \"list\": [\"}\", 2]}, \"item\": 34}", 34, 49, 2},
        {"{\"item\": 1, \"item\": 2}", 1, 9, 1},
        {"{\"item\": 9, \"rest\": ", 9, 9, 1}, /* what follows is left alone */
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        common_record r;
        assert_true(read(texts[i].text, &r));
        assert_true(r.item == texts[i].item);
        assert_int_equal(r.item_at, texts[i].at);
        assert_int_equal(r.item_bytes, texts[i].bytes);
        assert_int_equal(r.of, COMMON_RECORD_UNSAID);
    }
}

static void other_texts_are_left_alone(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "{",
                                        "item",
                                        "[{\"item\": 1}]",
                                        "{\"item\"",
                                        "{\"item\":",
                                        "{\"item\": }",
                                        "{\"item\": \"1\"}",
                                        "{\"item\": -1}",
                                        "{\"item\": 1.5}",
                                        "{\"item\": 12e3}",
                                        "{\"item\": 18446744073709551616}",
                                        "{\"item\": null}",
                                        "{\"items\": 1}",
                                        "{\"a\": [1, \"item\": 1}",
                                        "{\"a\": \"item: 1}",
                                        "{\"a\" \"item\": 1}",
                                        "{\"a\": {\"item\": 1}}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        common_record r = {.item = 99};
        assert_false(read(texts[i], &r));
        assert_int_equal(r.item, 99);
    }
    common_record r;
    static const char with_nul[] = "{\"a\": \"\0\", \"item\": 4}";
    assert_true(common_record_read(with_nul, sizeof with_nul - 1, &r));
    assert_int_equal(r.item, 4);
}

static void what_an_item_is_counted_in(void **state) {
    (void)state;
    static const struct {
        const char *text;
        common_record_of of;
    } texts[] = {{"{\"group\": \"photons\", \"item\": 1}", COMMON_RECORD_PHOTONS},
                 {"{\"item\": 1, \"group\": \"tags\"}", COMMON_RECORD_TAGS},
                 {"{\"item\": 1, \"group\": \"frames\"}", COMMON_RECORD_UNKNOWN},
                 {"{\"item\": 1, \"group\": 2}", COMMON_RECORD_UNKNOWN},
                 {"{\"item\": 1, \"dataset\": \"/temperature\", \"group\": \"tags\"}", COMMON_RECORD_DATASET},
                 {"{\"item\": 1, \"dataset\": 300}", COMMON_RECORD_DATASET},
                 {"{\"item\": 1, \"dataset\": null}", COMMON_RECORD_UNKNOWN}};
    common_record r;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_true(read(texts[i].text, &r));
        assert_int_equal(r.of, texts[i].of);
    }
    assert_true(read(texts[4].text, &r));
    assert_int_equal(r.dataset_bytes, 12);
    assert_memory_equal(r.dataset, "/temperature", 12);
    assert_true(read(texts[5].text, &r));
    assert_null(r.dataset);
    assert_int_equal(r.dataset_number, 300);
    assert_int_equal(r.number_bytes, 3);
    assert_memory_equal(texts[5].text + r.number_at, "300", 3);
}

/* No cut of a text is read past its end. */
static void cut_texts(void **state) {
    (void)state;
    static const char text[] = "{\"a\": [{\"b\": \"\\\"\"}], \"item\": 1234, \"dataset\": \"/x\\\"y\"}";
    for (size_t n = 0; n < sizeof text; n++) {
        char *copy = malloc(n ? n : 1);
        common_record r;
        memcpy(copy, text, n);
        if (common_record_read(copy, n, &r))
            assert_true(text + r.item_at == strstr(text, "1234") && r.item_at + r.item_bytes <= n);
        free(copy);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_numbered),
        cmocka_unit_test(items_are_found),
        cmocka_unit_test(other_texts_are_left_alone),
        cmocka_unit_test(what_an_item_is_counted_in),
        cmocka_unit_test(cut_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

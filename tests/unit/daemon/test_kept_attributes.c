#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "kept_attributes.h"

static void set(pd_kept_attributes *kept, const char *key, const char *value) {
    assert_int_equal(pd_kept_attributes_set(kept, 0, &(pd_attribute){key, value}, 1), 0);
}

static void the_last_value_stands_at_the_first_place(void **state) {
    (void)state;
    pd_kept_attributes kept = {0};
    set(&kept, "a", "1");
    set(&kept, "b", "2");
    set(&kept, "a", "another, longer one");
    set(&kept, "b", "");
    assert_int_equal(kept.n, 2);
    assert_string_equal(kept.list[0].key, "a");
    assert_string_equal(kept.list[0].value, "another, longer one");
    assert_string_equal(kept.list[1].key, "b");
    assert_string_equal(kept.list[1].value, "");
    pd_kept_attributes_free(&kept);
    assert_int_equal(kept.n, 0);
}

static void those_of_the_daemon_are_left_out(void **state) {
    (void)state;
    pd_kept_attributes kept = {0};
    const pd_attribute list[] = {{"photond.gap.00000000", "{}"}, {"photonds", "kept"}, {"photond.part", "0"}};
    assert_int_equal(pd_kept_attributes_set(&kept, 0, list, 3), 0);
    assert_int_equal(kept.n, 1);
    assert_string_equal(kept.list[0].key, "photonds");
    pd_kept_attributes_free(&kept);
}

static void many_keep_their_order(void **state) {
    (void)state;
    enum { MANY = 5000 };
    pd_kept_attributes kept = {0};
    char key[16], value[16];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < MANY; i++) {
            snprintf(key, sizeof key, "key.%d", i);
            snprintf(value, sizeof value, "%d", round * MANY + i);
            set(&kept, key, value);
        }
    assert_int_equal(kept.n, MANY);
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "key.%d", i);
        snprintf(value, sizeof value, "%d", MANY + i);
        assert_string_equal(kept.list[i].key, key);
        assert_string_equal(kept.list[i].value, value);
    }
    pd_kept_attributes_free(&kept);
}

static void set_by(pd_kept_attributes *kept, uint64_t sequence, const char *key, const char *value) {
    assert_int_equal(pd_kept_attributes_set(kept, sequence, &(pd_attribute){key, value}, 1), 0);
}

static void is(const pd_kept_attributes *kept, size_t i, const char *key, const char *value) {
    assert_string_equal(kept->list[i].key, key);
    assert_string_equal(kept->list[i].value, value);
}

static void what_later_messages_set_is_taken_back(void **state) {
    (void)state;
    pd_kept_attributes kept = {0};
    set(&kept, "a", "1");
    set_by(&kept, 5, "a", "2");
    set_by(&kept, 6, "b", "3");
    set_by(&kept, 7, "a", "4");
    set_by(&kept, 7, "c", "5");
    set_by(&kept, 8, "b", "6");
    pd_kept_attributes_settle(&kept, 6);
    pd_kept_attributes_take_back(&kept);
    assert_int_equal(kept.n, 2);
    is(&kept, 0, "a", "2");
    is(&kept, 1, "b", "3");
    assert_int_equal(kept.change_bytes, 0);
    set_by(&kept, 7, "a", "4");
    set_by(&kept, 7, "c", "5");
    assert_int_equal(kept.n, 3);
    is(&kept, 2, "c", "5");
    pd_kept_attributes_free(&kept);
}

/* New keys enough for the tables to grow several times, some of them durable. */
static void many_are_taken_back(void **state) {
    (void)state;
    enum { MANY = 3000, KEPT = 1000 };
    pd_kept_attributes kept = {0};
    char key[16], value[16];
    for (int round = 0; round < 2; round++) {
        for (int i = round ? KEPT : 0; i < MANY; i++) {
            snprintf(key, sizeof key, "key.%d", i);
            set_by(&kept, (uint64_t)i + 1, key, key);
        }
        pd_kept_attributes_settle(&kept, KEPT);
        pd_kept_attributes_take_back(&kept);
        assert_int_equal(kept.n, KEPT);
    }
    for (int i = 0; i < KEPT; i++) {
        snprintf(key, sizeof key, "key.%d", i);
        snprintf(value, sizeof value, "again.%d", i);
        set_by(&kept, MANY, key, value);
    }
    assert_int_equal(kept.n, KEPT);
    is(&kept, KEPT - 1, "key.999", "again.999");
    pd_kept_attributes_free(&kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_value_stands_at_the_first_place),
        cmocka_unit_test(those_of_the_daemon_are_left_out),
        cmocka_unit_test(many_keep_their_order),
        cmocka_unit_test(what_later_messages_set_is_taken_back),
        cmocka_unit_test(many_are_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

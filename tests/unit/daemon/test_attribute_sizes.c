#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "attribute_sizes.h"

static void a_key_counts_once(void **state) {
    (void)state;
    pd_attribute_sizes sizes = {0};
    const pd_attribute first[] = {{"a", "1"}, {"b", ""}};
    const pd_attribute again[] = {{"a", "12345"}, {"a", "123"}};
    assert_int_equal(pd_attribute_sizes_set(&sizes, first, 2, 1000), 0);
    assert_int_equal(sizes.bytes, 2 * PD_ATTRIBUTE_OVERHEAD + 3);
    assert_int_equal(pd_attributes_bytes(first, 2), sizes.bytes);
    assert_int_equal(pd_attribute_sizes_set(&sizes, again, 2, 1000), 0);
    assert_int_equal(sizes.bytes, 2 * PD_ATTRIBUTE_OVERHEAD + 5);
    assert_int_equal(sizes.n, 2);
    pd_attribute_sizes_free(&sizes);
}

static void the_most_is_kept_to(void **state) {
    (void)state;
    enum { KEYS = 1000 };
    pd_attribute_sizes sizes = {0};
    const uint64_t most = KEYS * (PD_ATTRIBUTE_OVERHEAD + 8 + 1);
    char key[16];
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < KEYS; i++) {
            snprintf(key, sizeof key, "%08d", i);
            assert_int_equal(pd_attribute_sizes_set(&sizes, &(pd_attribute){key, "v"}, 1, most), 0);
        }
    assert_int_equal(sizes.bytes, most);
    assert_int_equal(pd_attribute_sizes_set(&sizes, &(pd_attribute){"", ""}, 1, most), -1);
    assert_int_equal(pd_attribute_sizes_set(&sizes, &(pd_attribute){"00000000", "vv"}, 1, most), -1);
    assert_int_equal(pd_attribute_sizes_set(&sizes, &(pd_attribute){"00000000", ""}, 1, most), 0);
    assert_int_equal(sizes.bytes, most - 1);
    pd_attribute_sizes_free(&sizes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_counts_once),
        cmocka_unit_test(the_most_is_kept_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

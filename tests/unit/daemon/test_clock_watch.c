/* What counts as a step of the wall clock, and what as the slewing that time daemons do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "clock_watch.h"

#define SECOND INT64_C(1000000000)

static int64_t moved(int64_t elapsed_ns, int64_t ahead_ns) {
    const pd_clock_watch before = {true, UINT64_C(5000) * 1000000000, 1700000000 * SECOND};
    const pd_clock_watch now = {true, before.monotonic_ns + (uint64_t)elapsed_ns, before.ahead_ns + ahead_ns};
    return pd_clock_step_ns(&before, &now);
}

static void slewing_is_no_step(void **state) {
    (void)state;
    assert_int_equal(moved(SECOND, 0), 0);
    assert_int_equal(moved(SECOND, SECOND / 2000), 0);
    assert_int_equal(moved(1000 * SECOND, SECOND / 2), 0); /* half a second in a quarter of an hour */
    assert_int_equal(moved(1000 * SECOND, -SECOND / 2), 0);
    assert_int_equal(moved(SECOND, SECOND / 11), 0);
}

static void steps_of_any_size_are(void **state) {
    (void)state;
    static const int64_t steps[] = {SECOND / 9, SECOND, 3600 * SECOND, 365 * 86400 * SECOND};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        assert_int_equal(moved(SECOND, steps[i]), steps[i] - SECOND / 2000);
        assert_int_equal(moved(SECOND, -steps[i]), -steps[i] + SECOND / 2000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slewing_is_no_step),
        cmocka_unit_test(steps_of_any_size_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "clock_fit.h"
#include "random.h"

/* Ticks of 1.25 ns that are 3 ppm long, from a large count on, as a week of minutes. */
enum { N = 10080 };
#define FIRST_TICK INT64_C(4000000000000000000)
#define FIRST_NS INT64_C(1796059580331072694)
#define TICKS_A_MINUTE INT64_C(48000000000)

static void make(pd_clock_pair pairs[N], uint32_t jitter_ns) {
    uint64_t seed = 1;
    for (int i = 0; i < N; i++) {
        int64_t ticks = i * TICKS_A_MINUTE;
        int64_t late = jitter_ns ? (int64_t)(testing_random(&seed) % jitter_ns) : 0;
        pairs[i] = (pd_clock_pair){FIRST_TICK + ticks, FIRST_NS + ticks / 4 * 5 + (int64_t)i * 180000 + late};
    }
}

static void a_line_is_found_to_the_nanosecond(void **state) {
    (void)state;
    static pd_clock_pair pairs[N];
    pd_clock_fit fit;
    make(pairs, 0);
    assert_true(pd_clock_fit_make(&fit, pairs, N));
    assert_int_equal(fit.first_tick, FIRST_TICK);
    assert_in_range((uint64_t)(fit.ns_at_first - FIRST_NS + 2), 0, 4);
    assert_true(fabs(fit.ns_per_tick - 1.25 * (1 + 3e-6)) < 1e-13);
    assert_true(fit.residual_max_ns < 2 && fit.residual_rms_ns <= fit.residual_max_ns);
}

static void what_lies_off_the_line_is_told(void **state) {
    (void)state;
    static pd_clock_pair pairs[N];
    pd_clock_fit fit;
    make(pairs, 1000000);
    assert_true(pd_clock_fit_make(&fit, pairs, N));
    assert_true(fabs(fit.ns_per_tick - 1.25 * (1 + 3e-6)) < 1e-9);
    assert_true(fit.residual_rms_ns > 250000 && fit.residual_rms_ns < 330000);
    assert_true(fit.residual_max_ns > 450000 && fit.residual_max_ns < 600000);
}

static void two_moments_are_needed(void **state) {
    (void)state;
    pd_clock_pair pairs[2] = {{5, 7}, {5, 9}};
    pd_clock_fit fit;
    assert_false(pd_clock_fit_make(&fit, pairs, 0));
    assert_false(pd_clock_fit_make(&fit, pairs, 1));
    assert_false(pd_clock_fit_make(&fit, pairs, 2));
    pairs[1].ticks = INT64_MAX;
    pairs[0].ticks = INT64_MIN;
    assert_true(pd_clock_fit_make(&fit, pairs, 2));
    assert_true(fabs(fit.ns_per_tick - 2 / 18446744073709551615.0) < 1e-30);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_found_to_the_nanosecond),
        cmocka_unit_test(what_lies_off_the_line_is_told),
        cmocka_unit_test(two_moments_are_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

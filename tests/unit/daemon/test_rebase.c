/* Indices of photons in files that lack some of those that were sent, against a list of photons one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "random.h"
#include "rebase.h"

enum { PHOTONS = 6000 };

/* A model: which photons are there, and the index of the first one from each on. */
typedef struct model {
    bool missing[PHOTONS + 1];
    uint64_t index[PHOTONS + 1];
} model;

static void model_count(model *m) {
    uint64_t there = 0;
    for (size_t i = 0; i <= PHOTONS; i++) {
        m->index[i] = there;
        there += !m->missing[i];
    }
}

static void model_take(model *m, uint64_t first, uint64_t n) {
    for (uint64_t i = first; i < first + n; i++)
        m->missing[i] = true;
}

static void nothing_missing_changes_nothing(void **state) {
    (void)state;
    pd_rebase r = {0};
    uint64_t values[] = {0, 1, UINT64_MAX, 7};
    assert_false(pd_rebase_any(&r));
    pd_rebase_gap_add(&r, 5, 0);
    pd_rebase_begin(&r, 0);
    assert_false(pd_rebase_any(&r));
    pd_rebase_values(&r, D7_UINT64, values, 4);
    assert_int_equal(values[0], 0);
    assert_int_equal(values[2], UINT64_MAX);
}

static void a_later_beginning_is_subtracted_down_to_zero(void **state) {
    (void)state;
    pd_rebase r = {0};
    uint64_t values[] = {0, 1, 99, 100, 101, UINT64_MAX};
    pd_rebase_begin(&r, 60);
    pd_rebase_begin(&r, 40);
    assert_true(pd_rebase_any(&r));
    pd_rebase_values(&r, D7_UINT64, values, 6);
    const uint64_t expected[] = {0, 0, 0, 0, 1, UINT64_MAX - 100};
    for (int i = 0; i < 6; i++)
        assert_int_equal(values[i], expected[i]);
}

static void gaps_are_as_one_by_one(void **state) {
    (void)state;
    uint64_t seed = 3;
    model *m = malloc(sizeof *m);
    assert_non_null(m);
    for (int round = 0; round < 50; round++) {
        pd_rebase r = {0};
        uint64_t at = testing_random(&seed) % 300, values[PHOTONS + 1];
        memset(m, 0, sizeof *m);
        model_take(m, 0, at);
        pd_rebase_begin(&r, at);
        for (unsigned g = 0; g < PD_REBASE_GAPS; g++) {
            uint64_t n = testing_random(&seed) % 200;
            at += testing_random(&seed) % 3 ? testing_random(&seed) % 100
                                            : 0; /* some gaps follow upon another */
            model_take(m, at, n);
            pd_rebase_gap_add(&r, at, n);
            at += n;
        }
        model_count(m);
        for (uint64_t i = 0; i <= PHOTONS; i++) {
            values[i] = i;
            assert_int_equal(pd_rebase_index(&r, i), m->index[i]);
        }
        pd_rebase_values(&r, D7_UINT64, values, PHOTONS + 1);
        for (uint64_t i = 0; i <= PHOTONS; i++)
            assert_int_equal(values[i], m->index[i]);
    }
    free(m);
}

static void more_gaps_than_it_keeps_are_exact_for_what_is_new(void **state) {
    (void)state;
    pd_rebase r = {0};
    for (uint64_t g = 0; g < 100; g++)
        pd_rebase_gap_add(&r, 100 * g + 50, 10);
    assert_int_equal(r.n_gaps, PD_REBASE_GAPS);
    assert_int_equal(pd_rebase_index(&r, 10000), 9000);
    assert_int_equal(pd_rebase_index(&r, 9955), 9950 - 990);
    assert_int_equal(pd_rebase_index(&r, 100 * (100 - PD_REBASE_GAPS)), 90 * (100 - PD_REBASE_GAPS));
}

#define NARROW(T, type)                                                                                      \
    do {                                                                                                     \
        T values[] = {0, 3, 10, 15, 20, 100};                                                                \
        pd_rebase_values(&r, type, values, 6);                                                               \
        assert_int_equal(values[0], 0);                                                                      \
        assert_int_equal(values[1], 0);                                                                      \
        assert_int_equal(values[2], 5);                                                                      \
        assert_int_equal(values[3], 5);                                                                      \
        assert_int_equal(values[4], 5);                                                                      \
        assert_int_equal(values[5], 85);                                                                     \
    } while (0)

static void every_type_of_integers(void **state) {
    (void)state;
    pd_rebase r = {0};
    pd_rebase_begin(&r, 5);
    pd_rebase_gap_add(&r, 10, 10);
    NARROW(uint8_t, D7_UINT8);
    NARROW(uint16_t, D7_UINT16);
    NARROW(uint32_t, D7_UINT32);
    NARROW(uint64_t, D7_UINT64);
    NARROW(int8_t, D7_INT8);
    NARROW(int16_t, D7_INT16);
    NARROW(int32_t, D7_INT32);
    NARROW(int64_t, D7_INT64);
    double no_index = 100;
    pd_rebase_values(&r, D7_DOUBLE, &no_index, 1);
    assert_true(no_index == 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_missing_changes_nothing),
        cmocka_unit_test(a_later_beginning_is_subtracted_down_to_zero),
        cmocka_unit_test(gaps_are_as_one_by_one),
        cmocka_unit_test(more_gaps_than_it_keeps_are_exact_for_what_is_new),
        cmocka_unit_test(every_type_of_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

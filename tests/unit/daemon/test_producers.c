#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "producers.h"

/* Sessions are only told apart here, never looked into. */
static struct pd_session *session(int i) {
    static char places[8];
    return (struct pd_session *)(void *)&places[i];
}

static int set_up(void **state) {
    static pd_producers producers;
    *state = &producers;
    return pd_producers_init(&producers, 3);
}

static int tear_down(void **state) {
    pd_producers_free(*state);
    return 0;
}

static pd_arrival arrive(pd_producers *p, const char *instance, uint64_t epoch, int who,
                         struct pd_session **before, uint64_t *current) {
    *before = NULL;
    *current = 0;
    return pd_producers_arrive(p, instance, epoch, session(who), before, current);
}

static void the_newest_connection_of_an_epoch_wins(void **state) {
    struct pd_session *before;
    uint64_t current;
    assert_int_equal(arrive(*state, "a", 5, 0, &before, &current), PD_ARRIVED);
    assert_null(before);
    assert_int_equal(arrive(*state, "a", 5, 1, &before, &current), PD_ARRIVED);
    assert_ptr_equal(before, session(0));
    pd_producers_leave(*state, "a", session(0)); /* the old one ends: no matter */
    assert_int_equal(arrive(*state, "a", 5, 2, &before, &current), PD_ARRIVED);
    assert_ptr_equal(before, session(1));
}

static void a_later_epoch_takes_over_and_an_earlier_is_refused(void **state) {
    struct pd_session *before;
    uint64_t current;
    assert_int_equal(arrive(*state, "a", 5, 0, &before, &current), PD_ARRIVED);
    assert_int_equal(arrive(*state, "a", 6, 1, &before, &current), PD_ARRIVED);
    assert_ptr_equal(before, session(0));
    assert_int_equal(arrive(*state, "a", 5, 2, &before, &current), PD_ARRIVAL_STALE);
    assert_int_equal(current, 6);
    pd_producers_leave(*state, "a", session(1));
    assert_int_equal(arrive(*state, "a", 5, 2, &before, &current), PD_ARRIVAL_STALE);
    assert_int_equal(arrive(*state, "b", 1, 3, &before, &current), PD_ARRIVED);
    assert_null(before);
}

static void the_one_longest_gone_is_forgotten(void **state) {
    struct pd_session *before;
    uint64_t current;
    assert_int_equal(arrive(*state, "a", 9, 0, &before, &current), PD_ARRIVED);
    assert_int_equal(arrive(*state, "b", 9, 1, &before, &current), PD_ARRIVED);
    assert_int_equal(arrive(*state, "c", 9, 2, &before, &current), PD_ARRIVED);
    assert_int_equal(arrive(*state, "d", 9, 3, &before, &current), PD_ARRIVAL_NO_ROOM);
    pd_producers_leave(*state, "b", session(1));
    pd_producers_leave(*state, "a", session(0));
    assert_int_equal(arrive(*state, "d", 9, 3, &before, &current), PD_ARRIVED);
    assert_int_equal(arrive(*state, "a", 8, 0, &before, &current), PD_ARRIVAL_STALE);
    assert_int_equal(arrive(*state, "b", 1, 1, &before, &current), PD_ARRIVED); /* in the place of a */
    assert_int_equal(arrive(*state, "a", 1, 0, &before, &current), PD_ARRIVAL_NO_ROOM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_newest_connection_of_an_epoch_wins),
        TEST(a_later_epoch_takes_over_and_an_earlier_is_refused),
        TEST(the_one_longest_gone_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Histories of a recording on a disk that loses its power, through the tail's own functions: batches, slots,
 * syncs that take their time while both go on, syncs that fail (the recording goes on in a next part), a
 * program killed in the middle of a write, the power gone between the returns of two syncs, recoveries that
 * are cut short at any step and begun again, closing. After each recovery every batch that was called durable
 * must be there once, and every value right; a second recovery must change nothing.
 *
 *     test_tail_model                  as in CTest
 *     test_tail_model HISTORIES [SEED] the long form, which prints what came of them
 *
 * Two designs that must fail show that the test can: two slots without proof, and parts recovered past where
 * the next one begins. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "history.h"

typedef struct tally {
    unsigned n_right, n_wrong;
    struct {
        const char *what;
        unsigned n;
        uint64_t seed; /* the first with it */
    } wrong[16];
} tally;

static void tally_add(tally *t, const char *what, uint64_t seed) {
    if (!what) {
        t->n_right++;
        return;
    }
    t->n_wrong++;
    size_t i = 0;
    while (i < 15 && t->wrong[i].what && strcmp(t->wrong[i].what, what) != 0)
        i++;
    if (t->wrong[i].n++ == 0)
        t->wrong[i].seed = seed;
    t->wrong[i].what = what;
}

static tally tally_of(model_design design, unsigned n, uint64_t seed, history_counts *counts) {
    static history h;
    tally t = {0};
    for (unsigned i = 0; i < n; i++)
        tally_add(&t, history_run(&h, design, seed + i, counts), seed + i);
    return t;
}

static void tally_print(const char *name, const tally *t) {
    printf("%s: %u right", name, t->n_right);
    for (size_t i = 0; i < 16 && t->wrong[i].what; i++)
        printf(", %u %s (first: seed %" PRIu64 ")", t->wrong[i].n, t->wrong[i].what, t->wrong[i].seed);
    printf("\n");
    fflush(stdout);
}

static void counts_print(const history_counts *c) {
    printf("%lu lives: %lu batches, %lu slots, %lu syncs (%lu failed, %lu parts), %lu readers\n", c->lives,
           c->batches, c->slots, c->syncs, c->failed_syncs, c->parts, c->peeks);
    printf("%lu power cuts, %lu kills; %lu recoveries: %lu came to no end, %lu resumed (%lu passed over a "
           "newer slot, "
           "%lu cut), %lu found it closed, %lu done twice\n",
           c->power_cuts, c->kills, c->recoveries, c->cut_short, c->resumed, c->passed_over, c->cut,
           c->closed, c->again);
}

enum { HISTORIES = TAIL_MODEL_HISTORIES, CONTROLS = 100 };

static void no_batch_called_durable_is_lost(void **state) {
    (void)state;
    history_counts counts = {0};
    tally t = tally_of(DESIGN_FULL, HISTORIES, 1, &counts);
    tally_print("three slots", &t);
    counts_print(&counts);
    assert_true(counts.passed_over && counts.cut && counts.closed && counts.cut_short && counts.parts);
    assert_int_equal(t.n_wrong, 0);
}

static void two_slots_without_proof_fail(void **state) {
    (void)state;
    tally t = tally_of(DESIGN_TWO_SLOTS, CONTROLS, 1, NULL);
    tally_print("two slots", &t);
    assert_true(t.n_wrong > CONTROLS / 2);
}

static void parts_without_a_limit_overlap(void **state) {
    (void)state;
    tally t = tally_of(DESIGN_NO_LIMIT, CONTROLS, 1, NULL);
    tally_print("no limit", &t);
    assert_true(t.n_wrong > 0);
}

static int long_form(unsigned n, uint64_t seed) {
    history_counts counts = {0};
    tally t = tally_of(DESIGN_FULL, n, seed, &counts);
    tally_print("three slots", &t);
    counts_print(&counts);
    return t.n_wrong ? 1 : 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_batch_called_durable_is_lost),
        cmocka_unit_test(two_slots_without_proof_fail),
        cmocka_unit_test(parts_without_a_limit_overlap),
    };
    if (argc > 1)
        return long_form((unsigned)strtoul(argv[1], NULL, 10), argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

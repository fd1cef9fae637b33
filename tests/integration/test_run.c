/* A run's life, by tests/integration/run_fixture.h. */
#include <signal.h>
#include <sys/resource.h>

#include "run_fixture.h"

/* ---- tests ---- */

static void every_item_is_in_the_file_in_order(void **state) {
    fixture *f = *state;
    pd_run *run = opened(f, "order");
    uint64_t n = 0, n_ms = 0;
    uint32_t seed = 1;
    for (uint64_t s = 1; s <= 400; s++) {
        seed = seed * 1664525u + 1013904223u;
        size_t k = (seed >> 16) % (size_t)(run->batch_bytes / 5), k_ms = (seed >> 8) % 64;
        give_all(f, run, s, k, k_ms);
        n += k;
        n_ms += k_ms;
    }
    assert_int_equal(run->groups[0].items, n);
    pd_run_close(run, NULL);
    turn_until(f, &f->told.ended, 1);
    assert_int_equal(f->told.last_durable, 400);
    assert_int_equal(pd_counted(&f->engine.counters.photons_durable), n);
    assert_int_equal(pd_counted(&f->engine.counters.pages_encoded),
                     pd_counted(&f->engine.counters.pages_written));
    check_file(f, "order", D7_STATE_CLOSED, n, n_ms);
}

/* The file as a reader sees it while it is written, what is in its tail included. */
static void what_fills_no_page_is_durable(void **state) {
    fixture *f = *state;
    pd_run *run = opened(f, "durable");
    give_all(f, run, 1, 100, 1);
    turn_until_durable(f, run, 1);
    assert_int_equal(run->columns[0].durable_items, 100);
    check_file(f, "durable", D7_STATE_OPEN, 100, 1);
    give_all(f, run, 2, PAGE16 - 100, 0); /* the page is whole */
    give_all(f, run, 3, PAGE16 + 7, 0);
    turn_until_durable(f, run, 3);
    assert_int_equal(run->columns[0].durable_items, 2 * PAGE16 + 7);
    check_file(f, "durable", D7_STATE_OPEN, 2 * PAGE16 + 7, 1);
    assert_true(exists(f, "durable.photons.tail"));
    pd_run_close(run, NULL);
    turn_until(f, &f->told.ended, 1);
    assert_false(exists(f, "durable.photons.tail"));
    check_file(f, "durable", D7_STATE_CLOSED, 2 * PAGE16 + 7, 1);
}

/* Of a file that is being written, or closed. */
static void check_attribute(const fixture *f, const char *name, const char *key, const char *value) {
    char path[128];
    d7_reader *r = NULL;
    snprintf(path, sizeof path, "%s/%s.photons", f->folder, name);
    assert_int_equal(d7_reader_open(&r, path, NULL, NULL), 0);
    assert_string_equal(d7_reader_find_attribute(r, key), value);
    d7_reader_free(r);
}

static void attributes_are_as_durable_as_data(void **state) {
    fixture *f = *state;
    pd_run *run = opened(f, "attributes");
    pd_refusal why = {0};
    char long_text[40000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    give_all(f, run, 1, PAGE16, 0);
    assert_int_equal(pd_run_attributes(run, 2, &(pd_attribute){"k", "v"}, 1, &why), PD_TAKEN);
    assert_int_equal(pd_run_attributes(run, 2, &(pd_attribute){"k", "w"}, 1, &why), PD_DUPLICATE);
    assert_int_equal(pd_run_attributes(run, 4, &(pd_attribute){"k", "w"}, 1, &why), PD_REFUSED);
    assert_int_equal(why.code, PHOTON__ERROR_CODE__ERROR_HOLE);
    assert_int_equal(why.sequence, 3);
    turn_until_durable(f, run, 2);
    check_attribute(f, "attributes", "k", "v");
    for (uint64_t s = 3; s < 6; s++) { /* more than a slot of the tail takes */
        char key[8];
        snprintf(key, sizeof key, "long.%d", (int)s);
        assert_int_equal(pd_run_attributes(run, s, &(pd_attribute){key, long_text}, 1, &why), PD_TAKEN);
    }
    turn_until_durable(f, run, 5);
    check_attribute(f, "attributes", "long.3", long_text);
    check_attribute(f, "attributes", "long.5", long_text);
    pd_run_close(run, NULL);
    turn_until(f, &f->told.ended, 1);
    check_attribute(f, "attributes", "k", "v");
}

static void a_batch_enters_whole_or_not_at_all(void **state) {
    fixture *f = *state;
    pd_run *run = opened(f, "whole");
    size_t n = (size_t)run->batch_bytes / 4;
    pd_refusal why = {0};
    uint64_t s = 1;
    while (give(f, run, s, n, 0, &why) == PD_TAKEN)
        s++;
    assert_true(s > 2); /* two batches always fit */
    assert_int_equal(run->received, s - 1);
    assert_int_equal(run->groups[0].items, (s - 1) * n);
    assert_true(pd_run_credit(run) < run->batch_bytes);
    f->engine.room_came = false;
    give_all(f, run, s, n, 0);
    assert_true(f->engine.room_came);
    pd_run_close(run, NULL);
    turn_until(f, &f->told.ended, 1);
    check_file(f, "whole", D7_STATE_CLOSED, s * n, 0);
}

static void wrong_batches_change_nothing(void **state) {
    fixture *f = *state;
    pd_run *run = opened(f, "wrong");
    pd_refusal why = {0};
    batch b;
    batch_make(f, &b, 1, 10, 1);
    b.wire.crc32c ^= 1;
    assert_int_equal(pd_run_batch(run, &b.wire, &why), PD_REFUSED);
    assert_int_equal(why.code, PHOTON__ERROR_CODE__ERROR_CHECKSUM);
    b.wire.columns[1].bytes -= 1;
    assert_int_equal(pd_run_batch(run, &b.wire, &why), PD_REFUSED);
    assert_int_equal(why.code, PHOTON__ERROR_CODE__ERROR_BAD_BATCH);
    assert_string_equal(why.field, "batch.columns[1]");
    assert_int_equal(why.sequence, 1);
    b.wire.counts[0] = UINT64_MAX / 2;
    assert_int_equal(pd_run_batch(run, &b.wire, &why), PD_REFUSED);
    assert_int_equal(why.code, PHOTON__ERROR_CODE__ERROR_LIMIT);
    b.wire.n_counts = 1;
    assert_int_equal(pd_run_batch(run, &b.wire, &why), PD_REFUSED);
    assert_int_equal(why.code, PHOTON__ERROR_CODE__ERROR_BAD_BATCH);
    batch_free(&b);
    assert_int_equal(run->received, 0);
    assert_int_equal(run->quota.used, 0);
    pd_run_close(run, NULL);
    turn_until(f, &f->told.ended, 1);
    check_file(f, "wrong", D7_STATE_CLOSED, 0, 0);
}

/* Only those, and in every page. */
static void ms_indices_are_rebased_on_the_way_in(void **state) {
    fixture *f = *state;
    pd_run *run = opened(f, "rebased");
    assert_int_equal(run->photon_group, 0);
    pd_rebase_begin(&run->rebase, 5000);
    f->next_ms = 4990;
    for (uint64_t s = 1; s <= 10; s++)
        give_all(f, run, s, 100, 700);
    pd_run_close(run, NULL);
    turn_until(f, &f->told.ended, 1);
    check_attribute(f, "rebased", "photond.part", "0");
    d7_reader *r = NULL;
    char path[128];
    uint64_t ms[7000];
    uint16_t x[1000];
    snprintf(path, sizeof path, "%s/rebased.photons", f->folder);
    assert_int_equal(d7_reader_open(&r, path, NULL, NULL), 0);
    assert_int_equal(d7_reader_read(r, 2, 0, 7000, ms, NULL), 0);
    assert_int_equal(d7_reader_read(r, 0, 0, 1000, x, NULL), 0);
    for (uint64_t i = 0; i < 7000; i++)
        assert_int_equal(ms[i], i > 10 ? i - 10 : 0);
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(x[i], i);
    d7_reader_free(r);
}

static void taken_names_are_refused_or_counted(void **state) {
    fixture *f = *state;
    pd_run_close(opened(f, "name"), NULL);
    turn_until(f, &f->told.ended, 1);
    ask_for(f, "name", false);
    turn_until(f, &f->told.failed, 1);
    assert_int_equal(f->told.outcome, PD_OPEN_TAKEN);
    assert_non_null(strstr(f->told.failure, "name.photons"));
    turn_until_no_run_is_left(f);
    for (int i = 2; i < 5; i++) {
        char expected[16];
        pd_run *run = ask_for(f, "name", true);
        turn_until(f, &f->told.opened, 1);
        snprintf(expected, sizeof expected, "name-%d", i);
        assert_string_equal(run->name, expected);
        pd_run_close(run, NULL);
        turn_until(f, &f->told.ended, 1);
    }
    assert_int_equal(pd_counted(&f->engine.counters.runs_failed), 0);
}

static void a_close_before_the_file_is_there_waits_for_it(void **state) {
    fixture *f = *state;
    pd_run *run = ask_for(f, "early", false);
    pd_run_close(run, "because");
    assert_int_equal(run->state, PD_RUN_OPENING);
    turn_until(f, &f->told.ended, 1);
    assert_int_equal(f->told.opened, 1);
    check_file(f, "early", D7_STATE_CLOSED, 0, 0);
}

static void nobody_attached_closes_after_the_resume_time(void **state) {
    fixture *f = *state;
    pd_run *run = opened(f, "detached");
    give_all(f, run, 1, 7, 2);
    pd_run_detach(run);
    assert_string_equal(pd_run_state_name(run), "detached");
    pd_run_attach(run, &events, f);
    turn_for(f, 150);
    assert_string_equal(pd_run_state_name(run), "running");
    pd_run_detach(run);
    turn_until_no_run_is_left(f);
    check_file(f, "detached", D7_STATE_CLOSED, 7, 2);
    assert_non_null(f->runs.newest);
    assert_null(f->runs.newest->failure);
}

static void a_failure_ends_the_run_and_frees_its_slots(void **state) {
    fixture *f = *state;
    struct rlimit before, small;
    pd_run *run = opened(f, "failing");
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1; /* neither this file nor another one */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    pd_refusal why = {0};
    for (uint64_t s = 1; f->told.failed == 0;) {
        pd_taken taken = give(f, run, s, (size_t)run->batch_bytes / 4, 0, &why);
        s += taken == PD_TAKEN;
        turn_for(f, 1);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_non_null(strstr(f->told.failure, "failing.photons"));
    turn_until_no_run_is_left(f);
    assert_int_equal(f->told.ended, 0);
    assert_int_equal(pd_counted(&f->engine.counters.runs_failed), 1);
    assert_int_equal(pd_counted(&f->engine.counters.photons_received),
                     pd_counted(&f->engine.counters.photons_durable) +
                         pd_counted(&f->engine.counters.photons_rolled_back) +
                         pd_counted(&f->engine.counters.photons_discarded));
    assert_non_null(f->runs.newest->failure);
}

static void runs_share_the_ring(void **state) {
    fixture *f = *state;
    pd_run *runs[4];
    char name[8];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "r%d", i);
        runs[i] = opened(f, name);
    }
    assert_true(f->engine.ring.n_reserved <= f->engine.ring.n_slots);
    for (uint64_t s = 1; s <= 50; s++)
        for (int i = 0; i < 4; i++) {
            f->next_x = (uint16_t)((s - 1) * 3001);
            give_all(f, runs[i], s, 3001, 0);
        }
    memset(&f->told, 0, sizeof f->told);
    for (int i = 0; i < 4; i++)
        pd_run_close(runs[i], NULL);
    turn_until(f, &f->told.ended, 4);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "r%d", i);
        check_file(f, name, D7_STATE_CLOSED, 50 * 3001, 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_item_is_in_the_file_in_order),
        TEST(what_fills_no_page_is_durable),
        TEST(attributes_are_as_durable_as_data),
        TEST(a_batch_enters_whole_or_not_at_all),
        TEST(wrong_batches_change_nothing),
        TEST(ms_indices_are_rebased_on_the_way_in),
        TEST(taken_names_are_refused_or_counted),
        TEST(a_close_before_the_file_is_there_waits_for_it),
        TEST(nobody_attached_closes_after_the_resume_time),
        TEST(a_failure_ends_the_run_and_frees_its_slots),
        TEST(runs_share_the_ring),
    };
    pd_log_set_level(PD_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

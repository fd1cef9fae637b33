/* A run without sockets: real loop, pool, writer, syncer, exporter and files. The loop is turned by the test, so that what
 * happens when is the test's to say. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "ingest.pb-c.h"
#include "log.h"
#include "runs.h"

enum { SECONDS = 60, PAGE16 = PD_PAGE_BYTES / 2 };

static const pd_dataset two[] = {
    {.name = "/photons/x", .type = D7_UINT16, .group = "photons", .role = PD_ROLE_POSITION_X},
    {.name = "/photons/dt", .type = D7_UINT16, .group = "photons", .role = PD_ROLE_MICRO_TIME},
    {.name = "/photons/ms", .type = D7_UINT64, .group = "ms", .role = PD_ROLE_MS_INDEX},
};

typedef struct told {
    unsigned opened, durable, failed, ended;
    pd_open_outcome outcome;
    char failure[sizeof(pd_error)];
    uint64_t last_durable;
} told;

typedef struct fixture {
    char folder[64];
    char config_text[512];
    pd_config config;
    uv_loop_t loop;
    pd_engine engine;
    pd_runs runs;
    uv_timer_t alarm;
    bool alarmed;
    told told;
    uint16_t next_x; /* values that the next batch begins with */
    uint64_t next_ms;
} fixture;

static void alarm_rings(uv_timer_t *timer) {
    ((fixture *)timer->data)->alarmed = true;
}

static int set_up_with(void **state, const char *keys) {
    fixture *f = calloc(1, sizeof *f);
    pd_error err = {""};
    snprintf(f->folder, sizeof f->folder, "/tmp/photond-run.XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    snprintf(f->config_text, sizeof f->config_text, "{\"data_dir\": \"%s\", %s}", f->folder, keys);
    if (pd_config_init(&f->config, &err) != 0 ||
        pd_config_parse(&f->config, "test", f->config_text, strlen(f->config_text), &err) != 0 ||
        uv_loop_init(&f->loop) != 0 || pd_engine_start(&f->engine, &f->loop, &f->config, &err) != 0 ||
        pd_runs_init(&f->runs, &f->engine) != 0) {
        print_error("%s\n", err.text);
        return -1;
    }
    uv_timer_init(&f->loop, &f->alarm);
    f->alarm.data = f;
    *state = f;
    return 0;
}

static int set_up(void **state) {
    return set_up_with(
        state, "\"ring_mb\": 4, \"max_runs\": 4, \"sync_interval_ms\": 10, \"resume_timeout_s\": 0.05");
}

static int tear_down(void **state) {
    fixture *f = *state;
    char command[128];
    bool was_open = f->runs.n != 0;
    pd_runs_close_all(&f->runs, "the test is over");
    while (f->runs.n > 0)
        uv_run(&f->loop, UV_RUN_ONCE);
    uint32_t used = f->engine.ring.n_slots - f->engine.ring.n_free;
    int left = was_open || used > 0 || f->engine.ring.n_reserved > 0;
    if (left)
        print_error("%s, %u slots are in use\n", was_open ? "a run was open" : "no run was open", used);
    uv_close((uv_handle_t *)&f->alarm, NULL);
    pd_engine_stop(&f->engine);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&f->loop) != 0) {
        print_error("handles are left open\n");
        left = 1;
    }
    pd_runs_free(&f->runs);
    pd_engine_free(&f->engine);
    pd_config_free(&f->config);
    snprintf(command, sizeof command, "rm -r %s", f->folder);
    if (system(command) != 0)
        left = 1;
    free(f);
    return left;
}

/* ---- what the run tells ---- */

static void on_opened(void *user, pd_run *run) {
    fixture *f = user;
    f->told.opened++;
    f->told.outcome = run->open_outcome;
}

static void on_durable(void *user, pd_run *run) {
    fixture *f = user;
    f->told.durable++;
    if (f->runs.n == 1)
        assert_true(run->durable >= f->told.last_durable);
    f->told.last_durable = run->durable;
}

static void on_failed(void *user, pd_run *run) {
    fixture *f = user;
    f->told.failed++;
    f->told.outcome = run->open_outcome;
    snprintf(f->told.failure, sizeof f->told.failure, "%s", run->failure.text);
}

static void on_ended(void *user, pd_run *run) {
    fixture *f = user;
    (void)run;
    f->told.ended++;
}

static const pd_run_events events = {on_opened, on_durable, on_failed, on_ended};

/* Turns the loop until *count reaches n. */
static void turn_until(fixture *f, const unsigned *count, unsigned n) {
    f->alarmed = false;
    uv_timer_start(&f->alarm, alarm_rings, SECONDS * 1000, 0);
    while (*count < n && !f->alarmed)
        uv_run(&f->loop, UV_RUN_ONCE);
    uv_timer_stop(&f->alarm);
    assert_true(*count >= n);
}

/* Turns the loop for a while. */
static void turn_for(fixture *f, unsigned ms) {
    f->alarmed = false;
    uv_timer_start(&f->alarm, alarm_rings, ms, 0);
    while (!f->alarmed)
        uv_run(&f->loop, UV_RUN_ONCE);
}

static void turn_until_no_run_is_left(fixture *f) {
    f->alarmed = false;
    uv_timer_start(&f->alarm, alarm_rings, SECONDS * 1000, 0);
    while (f->runs.n > 0 && !f->alarmed)
        uv_run(&f->loop, UV_RUN_ONCE);
    uv_timer_stop(&f->alarm);
    assert_int_equal(f->runs.n, 0);
}

static pd_run *ask_for(fixture *f, const char *name, bool counter) {
    pd_run_spec spec = {.name = name,
                        .counter = counter,
                        .profile = "",
                        .instance = "test",
                        .client_name = "test",
                        .datasets = two,
                        .n_datasets = sizeof two / sizeof *two,
                        .summary = f->config.summaries,
                        .export_interval_ms = 20};
    pd_refusal why = {0};
    pd_run *run = NULL;
    static uint8_t ids;
    spec.id[0] = ++ids;
    memset(&f->told, 0, sizeof f->told);
    if (pd_runs_open(&f->runs, &spec, &run, &why) != 0)
        fail_msg("%s", why.text);
    pd_run_attach(run, &events, f);
    return run;
}

static pd_run *opened(fixture *f, const char *name) {
    pd_run *run = ask_for(f, name, false);
    turn_until(f, &f->told.opened, 1);
    assert_int_equal(run->state, PD_RUN_RUNNING);
    return run;
}

/* ---- batches of numbers that count on ---- */

typedef struct batch {
    wire_batch wire;
    uint16_t *x, *dt;
    uint64_t *ms;
} batch;

static void batch_make(fixture *f, batch *b, uint64_t sequence, size_t n, size_t n_ms) {
    memset(&b->wire, 0, sizeof b->wire);
    b->x = malloc(2 * n + 1);
    b->dt = malloc(2 * n + 1);
    b->ms = malloc(8 * n_ms + 1);
    for (size_t i = 0; i < n; i++) {
        b->x[i] = (uint16_t)(f->next_x + i);
        b->dt[i] = (uint16_t)(3 * (f->next_x + i));
    }
    for (size_t i = 0; i < n_ms; i++)
        b->ms[i] = f->next_ms + i;
    b->wire.sequence = sequence;
    b->wire.n_counts = 2;
    b->wire.counts[0] = n;
    b->wire.counts[1] = n_ms;
    b->wire.n_columns = 3;
    b->wire.columns[0] = (wire_column){(uint8_t *)b->x, 2 * n};
    b->wire.columns[1] = (wire_column){(uint8_t *)b->dt, 2 * n};
    b->wire.columns[2] = (wire_column){(uint8_t *)b->ms, 8 * n_ms};
    b->wire.crc32c = wire_batch_crc32c(&b->wire);
}

static void batch_free(batch *b) {
    free(b->x);
    free(b->dt);
    free(b->ms);
}

static pd_taken give(fixture *f, pd_run *run, uint64_t sequence, size_t n, size_t n_ms, pd_refusal *why) {
    batch b;
    batch_make(f, &b, sequence, n, n_ms);
    pd_taken taken = pd_run_batch(run, &b.wire, why);
    batch_free(&b);
    if (taken == PD_TAKEN) {
        f->next_x = (uint16_t)(f->next_x + n);
        f->next_ms += n_ms;
    }
    return taken;
}

/* Gives a batch, waiting for room as a connection would. */
static void give_all(fixture *f, pd_run *run, uint64_t sequence, size_t n, size_t n_ms) {
    pd_refusal why = {0};
    pd_taken taken;
    while ((taken = give(f, run, sequence, n, n_ms, &why)) == PD_NO_ROOM)
        uv_run(&f->loop, UV_RUN_ONCE);
    if (taken != PD_TAKEN)
        fail_msg("%s", why.text);
}

static void check_file(const fixture *f, const char *name, d7_state state, uint64_t n, uint64_t n_ms) {
    char path[128];
    d7_error err = {.text = ""};
    d7_reader *r = NULL;
    snprintf(path, sizeof path, "%s/%s.photons", f->folder, name);
    if (d7_reader_open(&r, path, NULL, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(d7_reader_state(r), state);
    assert_int_equal(d7_reader_n_damages(r), 0);
    const uint64_t items[] = {n, n, n_ms};
    for (uint32_t d = 0; d < 3; d++) {
        d7_dataset_info info;
        assert_int_equal(d7_reader_dataset(r, d, &info), 0);
        assert_int_equal(info.items, items[d]);
        uint64_t *values = calloc(items[d] + 1, sizeof *values);
        assert_int_equal(d7_reader_read(r, d, 0, (size_t)items[d], values, &err), 0);
        for (uint64_t i = 0; i < items[d]; i++)
            if (d == 2)
                assert_int_equal(values[i], i);
            else
                assert_int_equal(((uint16_t *)values)[i], (uint16_t)((d ? 3 : 1) * (uint16_t)i));
        free(values);
    }
    d7_reader_free(r);
}

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

static void durable_are_whole_pages_only(void **state) {
    fixture *f = *state;
    pd_run *run = opened(f, "durable");
    give_all(f, run, 1, 100, 0);
    turn_for(f, 100);
    assert_int_equal(run->durable, 0);
    give_all(f, run, 2, PAGE16 - 100, 0); /* the page is whole */
    turn_until(f, &f->told.durable, 1);
    assert_int_equal(run->durable, 2);
    give_all(f, run, 3, 10, 0);
    give_all(f, run, 4, PAGE16 - 5, 0); /* its end lies in the next page */
    turn_until(f, &f->told.durable, 2);
    turn_for(f, 50);
    assert_int_equal(run->durable, 3);
    assert_int_equal(run->columns[0].durable_items, 2 * PAGE16);
    check_file(f, "durable", D7_STATE_OPEN, 2 * PAGE16, 0);
    give_all(f, run, 5, PAGE16 - 5, 0);
    turn_until(f, &f->told.durable, 3);
    assert_int_equal(run->durable, 5);
    pd_run_close(run, NULL);
    turn_until(f, &f->told.ended, 1);
}

static void attributes_are_durable_once_the_file_has_them(void **state) {
    fixture *f = *state;
    pd_run *run = opened(f, "attributes");
    pd_refusal why = {0};
    give_all(f, run, 1, PAGE16, 0);
    assert_int_equal(pd_run_attributes(run, 2, &(pd_attribute){"k", "v"}, 1, &why), PD_TAKEN);
    assert_int_equal(pd_run_attributes(run, 2, &(pd_attribute){"k", "w"}, 1, &why), PD_DUPLICATE);
    assert_int_equal(pd_run_attributes(run, 4, &(pd_attribute){"k", "w"}, 1, &why), PD_REFUSED);
    assert_int_equal(why.code, PHOTON__ERROR_CODE__ERROR_HOLE);
    assert_int_equal(why.sequence, 3);
    give_all(f, run, 3, PAGE16, 0);
    turn_until(f, &f->told.durable, 1);
    turn_for(f, 50);
    assert_int_equal(run->durable, 1);
    pd_run_close(run, NULL);
    turn_until(f, &f->told.ended, 1);
    assert_int_equal(f->told.last_durable, 3);
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
    small.rlim_cur = 100000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    pd_refusal why = {0};
    for (uint64_t s = 1; f->told.failed == 0;) {
        pd_taken taken = give(f, run, s, (size_t)run->batch_bytes / 4, 0, &why);
        s += taken == PD_TAKEN;
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_non_null(strstr(f->told.failure, "failing.photons"));
    turn_until_no_run_is_left(f);
    assert_int_equal(f->told.ended, 0);
    assert_int_equal(pd_counted(&f->engine.counters.runs_failed), 1);
    assert_int_equal(pd_counted(&f->engine.counters.photons_received),
                     pd_counted(&f->engine.counters.photons_durable) +
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
        TEST(durable_are_whole_pages_only),
        TEST(attributes_are_durable_once_the_file_has_them),
        TEST(a_batch_enters_whole_or_not_at_all),
        TEST(wrong_batches_change_nothing),
        TEST(taken_names_are_refused_or_counted),
        TEST(a_close_before_the_file_is_there_waits_for_it),
        TEST(nobody_attached_closes_after_the_resume_time),
        TEST(a_failure_ends_the_run_and_frees_its_slots),
        TEST(runs_share_the_ring),
    };
    pd_log_set_level(PD_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

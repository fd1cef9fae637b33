/* Runs without sockets: real loop, pool, writer, syncer, exporter and files. The loop is turned by the test, so that what
 * happens when is the test's to say. */
#ifndef TESTS_INTEGRATION_RUN_FIXTURE_H
#define TESTS_INTEGRATION_RUN_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ingest.pb-c.h"
#include "log.h"
#include "runs.h"

enum { SECONDS = 240, PAGE16 = PD_PAGE_BYTES / 2 };

static const pd_dataset two[] = {
    {.name = "/photons/x", .type = D7_UINT16, .group = "photons", .role = PD_ROLE_POSITION_X},
    {.name = "/photons/dt", .type = D7_UINT16, .group = "photons", .role = PD_ROLE_MICRO_TIME},
    {.name = "/photons/ms", .type = D7_UINT64, .group = "ms", .role = PD_ROLE_MS_INDEX},
};

typedef struct told {
    unsigned opened, durable, turned, failed, ended;
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
    bool drop;       /* runs are opened with overflow: drop */
    uint16_t next_x; /* values that the next batch begins with */
    uint64_t next_ms;
} fixture;

static inline void alarm_rings(uv_timer_t *timer) {
    ((fixture *)timer->data)->alarmed = true;
}

/* A daemon on the folder; run files are reached by `io` (NULL: the system's). Returns 0, or -1. */
static inline int fixture_start(fixture *f, const char *keys, const d7_io *io) {
    pd_error err = {""};
    snprintf(f->config_text, sizeof f->config_text, "{\"data_dir\": \"%s\", %s}", f->folder, keys);
    if (pd_config_init(&f->config, &err) != 0 ||
        pd_config_parse(&f->config, "test", f->config_text, strlen(f->config_text), &err) != 0 ||
        uv_loop_init(&f->loop) != 0 || pd_engine_start(&f->engine, &f->loop, &f->config, io, &err) != 0 ||
        pd_runs_init(&f->runs, &f->engine) != 0) {
        print_error("%s\n", err.text);
        return -1;
    }
    uv_timer_init(&f->loop, &f->alarm);
    f->alarm.data = f;
    return 0;
}

/* The daemon ends; its open runs are closed, as far as they can be. Returns whether slots are left in use. */
static inline bool fixture_stop(fixture *f) {
    pd_runs_close_all(&f->runs, "the test is over");
    uv_timer_start(&f->alarm, alarm_rings, SECONDS * 1000, 0); /* something must keep the loop alive */
    while (f->runs.n > 0)
        uv_run(&f->loop, UV_RUN_ONCE);
    uint32_t used = f->engine.ring.n_slots - f->engine.ring.n_free;
    bool left = used > 0 || f->engine.ring.n_reserved > 0;
    if (left)
        print_error("%u slots are in use\n", used);
    uv_close((uv_handle_t *)&f->alarm, NULL);
    pd_engine_stop(&f->engine);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&f->loop) != 0) {
        print_error("handles are left open\n");
        left = true;
    }
    pd_runs_free(&f->runs);
    pd_engine_free(&f->engine);
    pd_config_free(&f->config);
    return left;
}

static inline fixture *fixture_new(void) {
    fixture *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    snprintf(f->folder, sizeof f->folder, "/tmp/photond-run.XXXXXX");
    if (mkdtemp(f->folder))
        return f;
    free(f);
    return NULL;
}

/* Returns 0, or what removing the folder gave. */
static inline int fixture_free(fixture *f) {
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", f->folder);
    int failed = system(command);
    free(f);
    return failed;
}

static inline int set_up_with(void **state, const char *keys) {
    fixture *f = fixture_new();
    *state = f;
    return f ? fixture_start(f, keys, NULL) : -1;
}

static inline int set_up(void **state) {
    return set_up_with(
        state, "\"ring_mb\": 4, \"max_runs\": 4, \"sync_interval_ms\": 10, \"resume_timeout_s\": 0.05");
}

static inline int tear_down(void **state) {
    fixture *f = *state;
    bool was_open = f->runs.n != 0;
    if (was_open)
        print_error("a run was open\n");
    bool left = fixture_stop(f);
    return fixture_free(f) != 0 || left || was_open;
}

/* ---- what the run tells ---- */

static inline void on_opened(void *user, pd_run *run) {
    fixture *f = user;
    f->told.opened++;
    f->told.outcome = run->open_outcome;
}

static inline void on_durable(void *user, pd_run *run) {
    fixture *f = user;
    f->told.durable++;
    if (f->runs.n == 1)
        assert_true(run->durable >= f->told.last_durable);
    f->told.last_durable = run->durable;
}

static inline void on_failed(void *user, pd_run *run) {
    fixture *f = user;
    f->told.failed++;
    f->told.outcome = run->open_outcome;
    snprintf(f->told.failure, sizeof f->told.failure, "%s", run->failure.text);
}

static inline void on_ended(void *user, pd_run *run) {
    fixture *f = user;
    (void)run;
    f->told.ended++;
}

/* What is given next is what comes after that again. */
static inline void on_turned(void *user, pd_run *run) {
    fixture *f = user;
    f->told.turned++;
    f->next_x = (uint16_t)run->groups[0].items;
    f->next_ms = run->groups[1].items;
}

static const pd_run_events events = {
    .opened = on_opened, .durable = on_durable, .turned = on_turned, .failed = on_failed, .ended = on_ended};

static inline bool exists(const fixture *f, const char *name) {
    char path[160];
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    return access(path, F_OK) == 0;
}

/* Turns the loop until *count reaches n. */
static inline void turn_until(fixture *f, const unsigned *count, unsigned n) {
    f->alarmed = false;
    uv_timer_start(&f->alarm, alarm_rings, SECONDS * 1000, 0);
    while (*count < n && !f->alarmed)
        uv_run(&f->loop, UV_RUN_ONCE);
    uv_timer_stop(&f->alarm);
    assert_true(*count >= n);
}

static inline void turn_until_durable(fixture *f, const pd_run *run, uint64_t sequence) {
    f->alarmed = false;
    uv_timer_start(&f->alarm, alarm_rings, SECONDS * 1000, 0);
    while (run->durable < sequence && !f->alarmed)
        uv_run(&f->loop, UV_RUN_ONCE);
    uv_timer_stop(&f->alarm);
    assert_int_equal(run->durable, sequence);
}

/* Turns the loop for a while. */
static inline void turn_for(fixture *f, unsigned ms) {
    f->alarmed = false;
    uv_timer_start(&f->alarm, alarm_rings, ms, 0);
    while (!f->alarmed)
        uv_run(&f->loop, UV_RUN_ONCE);
}

static inline void turn_until_no_run_is_left(fixture *f) {
    f->alarmed = false;
    uv_timer_start(&f->alarm, alarm_rings, SECONDS * 1000, 0);
    while (f->runs.n > 0 && !f->alarmed)
        uv_run(&f->loop, UV_RUN_ONCE);
    uv_timer_stop(&f->alarm);
    assert_int_equal(f->runs.n, 0);
}

static inline pd_run *ask_for(fixture *f, const char *name, bool counter) {
    pd_run_spec spec = {.name = name,
                        .counter = counter,
                        .profile = "",
                        .instance = "test",
                        .client_name = "test",
                        .datasets = two,
                        .n_datasets = sizeof two / sizeof *two,
                        .drop = f->drop,
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

static inline pd_run *opened(fixture *f, const char *name) {
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

static inline void batch_make(fixture *f, batch *b, uint64_t sequence, size_t n, size_t n_ms) {
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

static inline void batch_free(batch *b) {
    free(b->x);
    free(b->dt);
    free(b->ms);
}

static inline pd_taken give(fixture *f, pd_run *run, uint64_t sequence, size_t n, size_t n_ms,
                            pd_refusal *why) {
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
static inline void give_all(fixture *f, pd_run *run, uint64_t sequence, size_t n, size_t n_ms) {
    pd_refusal why = {0};
    pd_taken taken;
    while ((taken = give(f, run, sequence, n, n_ms, &why)) == PD_NO_ROOM)
        uv_run(&f->loop, UV_RUN_ONCE);
    if (taken != PD_TAKEN)
        fail_msg("%s", why.text);
}

static inline void check_file(const fixture *f, const char *name, d7_state state, uint64_t n, uint64_t n_ms) {
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

#endif

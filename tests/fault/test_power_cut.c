/* Power cuts under the daemon's own writer, syncer and recovery: what was told durable is in the recovered run, once, in
 * order, with columns that belong together; what is sent from there on gives the file that there would have been. */
#include "power.h"
#include "producers.h"
#include "random.h"
#include "recovery.h"
#include "run_fixture.h"

static const char keys[] =
    "\"ring_mb\": 4, \"max_runs\": 4, \"sync_interval_ms\": 10, \"resume_timeout_s\": 60, "
    "\"summaries\": {\"enabled\": false}, \"log_level\": \"error\"";

enum { BATCHES_MAX = 400, ATTRIBUTES_EVERY = 7 };

typedef struct history {
    fixture *f;
    power *power;
    pd_producers producers;
    uint64_t random;
    pd_run *run;
    uint64_t items[BATCHES_MAX + 1], items_ms[BATCHES_MAX + 1]; /* after each batch */
    bool rotates;
    uint64_t sent;
    uint64_t durable; /* the most that was ever told */
} history;

static uint32_t draw(history *h, uint32_t n) {
    return (uint32_t)(testing_random(&h->random) >> 32) % n;
}

static void begin(history *h, uint32_t seed) {
    memset(h, 0, sizeof *h);
    h->random = seed * UINT64_C(2654435761) + 1;
    h->f = fixture_new();
    h->power = power_new(seed);
    assert_non_null(h->f);
    assert_int_equal(fixture_start(h->f, keys, power_io(h->power)), 0);
    assert_int_equal(pd_producers_init(&h->producers, 16), 0);
    h->run = opened(h->f, "run");
}

static void end(history *h) {
    assert_false(fixture_stop(h->f));
    pd_producers_free(&h->producers);
    power_free(h->power);
    assert_int_equal(fixture_free(h->f), 0);
}

/* Now and then the run goes on in a new file. */
static void rotate(history *h) {
    pd_error why = {""};
    uint64_t until;
    if (h->rotates && draw(h, 8) == 0 && h->run->state == PD_RUN_RUNNING)
        (void)!pd_run_rotate(h->run, &until, &why);
}

static pd_taken give_one(history *h, uint64_t s, pd_refusal *why) {
    char key[32];
    snprintf(key, sizeof key, "note.%d", (int)s);
    h->f->next_x = (uint16_t)h->items[s - 1];
    h->f->next_ms = h->items_ms[s - 1];
    if (s % ATTRIBUTES_EVERY == 0)
        return pd_run_attributes(h->run, s, &(pd_attribute){key, key}, 1, why);
    return give(h->f, h->run, s, (size_t)(h->items[s] - h->items[s - 1]),
                (size_t)(h->items_ms[s] - h->items_ms[s - 1]), why);
}

/* What batch s brings is always the same: values count on. It is not taken when the run has gone back meanwhile. */
static void send_one(history *h, uint64_t s) {
    fixture *f = h->f;
    pd_refusal why = {0};
    if (s > h->sent) {
        uint32_t n = draw(h, 4) == 0 ? draw(h, 6000) : draw(h, 40);
        h->items[s] = h->items[s - 1] + (s % ATTRIBUTES_EVERY ? n : 0);
        h->items_ms[s] = h->items_ms[s - 1] + (s % ATTRIBUTES_EVERY ? draw(h, 300) : 0);
        h->sent = s;
    }
    pd_taken taken = give_one(h, s, &why);
    while (taken == PD_NO_ROOM) {
        turn_for(f, 1);
        taken = f->told.failed ? PD_TAKEN : give_one(h, s, &why);
    }
    bool turned = taken == PD_REFUSED && why.code == PHOTON__ERROR_CODE__ERROR_HOLE;
    if (taken != PD_TAKEN && !turned)
        fail_msg("%s", why.text);
}

static void turn(history *h) {
    uv_run(&h->f->loop, UV_RUN_NOWAIT);
    if (h->f->told.last_durable > h->durable)
        h->durable = h->f->told.last_durable;
}

/* Sends on for a while; stops when the run has failed. */
static void send_on(history *h) {
    uint64_t last = h->run->received + 1 + draw(h, 60);
    while (h->f->told.failed == 0 && h->run->received < last && h->run->received < BATCHES_MAX) {
        send_one(h, h->run->received + 1);
        rotate(h);
        for (uint32_t n = draw(h, 5); n > 0; n--) {
            if (draw(h, 3) == 0)
                usleep(draw(h, 5000));
            turn(h);
        }
    }
}

/* The daemon is gone; the disk holds what it may hold, and another one starts. */
static void cut_and_start(history *h) {
    fixture *f = h->f;
    power_off(h->power);
    turn(h);
    if (f->runs.n > 0)
        pd_run_close(f->runs.items[0], "the power is off");
    turn_until_no_run_is_left(f);
    turn(h);
    assert_false(fixture_stop(f));
    power_cut(h->power);
    memset(&f->told, 0, sizeof f->told);
    assert_int_equal(fixture_start(f, keys, power_io(h->power)), 0);
}

/* The recovery may be cut as well, again and again. */
static void recover(history *h) {
    for (int cuts = 0; cuts < 3 && draw(h, 2) == 0; cuts++) {
        power_off_after(h->power, draw(h, 12));
        pd_recovery_run(&h->f->engine, &h->f->runs, &h->producers);
        cut_and_start(h);
    }
    pd_recovery_run(&h->f->engine, &h->f->runs, &h->producers);
    if (h->f->runs.n != 1)
        fail_msg("not recovered: %s",
                 h->f->engine.recovery.n_failures ? h->f->engine.recovery.failures[0].text : "");
    h->run = h->f->runs.items[0];
    pd_run_attach(h->run, &events, h->f);
    assert_true(h->run->received >= h->durable);
    assert_true(h->run->received <= h->sent);
    assert_int_equal(h->run->durable, h->run->received);
    h->durable = h->run->received;
}

/* One file of the run against what was sent; counts on what the run holds up to its end. */
static void check_part(d7_reader *r, unsigned part, uint64_t *n, uint64_t *n_ms) {
    d7_dataset_info info[3];
    for (uint32_t d = 0; d < 3; d++)
        assert_int_equal(d7_reader_dataset(r, d, &info[d]), 0);
    assert_int_equal(d7_reader_n_damages(r), 0);
    assert_int_equal(info[0].items, info[1].items);
    uint16_t *x = malloc(2 * (size_t)info[0].items + 2);
    uint64_t *ms = malloc(8 * (size_t)info[2].items + 8);
    for (uint32_t d = 0; d < 2; d++) {
        assert_int_equal(d7_reader_read(r, d, 0, (size_t)info[d].items, x, NULL), 0);
        for (uint64_t i = 0; i < info[d].items; i++)
            if (x[i] != (uint16_t)(d == 0 ? *n + i : 3 * ((*n + i) & 0xffff)))
                fail_msg("part %u, dataset %u: item %d of %d differs", part, d, (int)i, (int)info[d].items);
    }
    assert_int_equal(d7_reader_read(r, 2, 0, (size_t)info[2].items, ms, NULL), 0);
    uint64_t first_ms = part > 0 && *n_ms > 0 && info[2].items > 0 ? *n_ms - 1 : *n_ms;
    for (uint64_t i = 0; i < info[2].items; i++) {
        bool before = first_ms + i < *n_ms ||
                      first_ms + i < *n; /* the part, which begins with the millisecond it begins in */
        assert_int_equal(ms[i], part > 0 ? (before ? 0 : first_ms + i - *n) : i);
    }
    *n += info[0].items;
    *n_ms = first_ms + info[2].items;
    free(x);
    free(ms);
}

static d7_reader *open_part(const history *h, unsigned part) {
    char path[128], number[16] = "";
    d7_reader *r = NULL;
    if (part > 0)
        snprintf(number, sizeof number, ".%04u", part);
    snprintf(path, sizeof path, "%s/run%s.photons", h->f->folder, number);
    return d7_reader_open(&r, path, NULL, NULL) == 0 ? r : NULL;
}

/* The run's files, the tail of the last included, hold batches up to s and nothing else; the last has all attributes. */
static void check_holds(const history *h, uint64_t s, d7_state state) {
    uint64_t n = 0, n_ms = 0;
    d7_reader *r = open_part(h, 0);
    assert_non_null(r);
    for (unsigned part = 0; r; part++) {
        d7_reader *next = open_part(h, part + 1);
        assert_int_equal(d7_reader_state(r), next ? D7_STATE_CLOSED : state);
        check_part(r, part, &n, &n_ms);
        for (uint64_t k = ATTRIBUTES_EVERY; k <= h->sent && !next; k += ATTRIBUTES_EVERY) {
            char key[32];
            snprintf(key, sizeof key, "note.%d", (int)k);
            const char *value = d7_reader_find_attribute(r, key);
            if (k <= s)
                assert_string_equal(value, key);
            else
                assert_null(value);
        }
        d7_reader_free(r);
        r = next;
    }
    assert_int_equal(n, h->items[s]);
    assert_int_equal(n_ms, h->items_ms[s]);
}

static void finish(history *h) {
    while (h->run->received < h->sent)
        send_one(h, h->run->received + 1);
    pd_run_close(h->run, NULL);
    turn_until(h->f, &h->f->told.ended, 1);
    check_holds(h, h->sent, D7_STATE_CLOSED);
    assert_false(exists(h->f, "run.photons.tail"));
}

static unsigned n_histories(void) {
    const char *text = getenv("PHOTOND_POWER_HISTORIES");
    return text ? (unsigned)strtoul(text, NULL, 10) : POWER_HISTORIES;
}

/* Of the first history: the long form has others each time. */
static uint32_t first_seed(void) {
    const char *text = getenv("PHOTOND_TORTURE_SEED");
    return text ? (uint32_t)strtoul(text, NULL, 10) : 1;
}

/* For the sum of scripts/torture, when there is one. */
static void report_histories(unsigned histories) {
    const char *path = getenv("PHOTOND_TORTURE_REPORT");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f)
        return;
    assert_true(fprintf(f, "{\"histories\": %u}\n", histories) > 0);
    assert_int_equal(fclose(f), 0);
}

static void what_was_durable_survives_every_cut(void **state) {
    (void)state;
    for (uint32_t k = 0; k < n_histories(); k++) {
        history h;
        begin(&h, first_seed() + k);
        h.rotates = k % 4 == 0;
        for (uint32_t cuts = 1 + draw(&h, 3); cuts > 0; cuts--) {
            power_slow_syncs(h.power, draw(&h, 3) == 0 ? draw(&h, 15) : 0);
            send_on(&h);
            cut_and_start(&h);
            recover(&h);
            check_holds(&h, h.run->received, D7_STATE_OPEN);
        }
        finish(&h);
        end(&h);
    }
    report_histories(n_histories());
}

/* A close that is cut: either the file is closed and whole, or the run is there again. */
static void a_close_that_is_cut_is_done_or_not(void **state) {
    (void)state;
    for (uint32_t k = 0; k < n_histories(); k++) {
        history h;
        begin(&h, first_seed() + k);
        h.rotates = k % 4 == 0;
        send_on(&h);
        power_off_after(h.power, draw(&h, 14));
        pd_run_close(h.run, NULL);
        turn_until_no_run_is_left(h.f);
        bool was_told = h.f->told.ended > 0;
        turn(&h);
        cut_and_start(&h);
        pd_recovery_run(&h.f->engine, &h.f->runs, &h.producers);
        assert_int_equal(h.f->engine.recovery.failed, 0);
        if (h.f->runs.n > 0) {
            assert_false(was_told);
            h.run = h.f->runs.items[0];
            pd_run_attach(h.run, &events, h.f);
            assert_true(h.run->received >= h.durable);
            finish(&h);
        } else {
            check_holds(&h, h.sent, D7_STATE_CLOSED);
        }
        end(&h);
    }
    report_histories(n_histories());
}

/* Nothing after a sync that failed is told durable of that file, whatever the disk does later; the run goes on in another one. What
 * was durable is there, from all files. */
static void a_failed_sync_is_final_for_its_part(void **state) {
    (void)state;
    unsigned turned = 0;
    for (uint32_t k = 0; k < n_histories(); k++) {
        history h;
        begin(&h, first_seed() + k);
        h.rotates = k % 4 == 0;
        for (uint32_t n = 1 + draw(&h, 3); n > 0; n--) {
            power_slow_syncs(h.power, draw(&h, 3) == 0 ? draw(&h, 15) : 0);
            power_fail_sync(h.power, 1 + draw(&h, 6));
            for (int i = 0; i < 4 && h.f->told.failed == 0; i++)
                send_on(&h);
        }
        if (h.f->told.failed > 0)
            assert_non_null(strstr(h.f->told.failure, "/run."));
        turned += h.f->told.turned;
        cut_and_start(&h);
        recover(&h);
        check_holds(&h, h.run->received, D7_STATE_OPEN);
        finish(&h);
        end(&h);
    }
    assert_true(turned > n_histories() / 4);
    report_histories(n_histories());
}

/* Wherever a write meets a full disk, it is a pause. */
static void a_full_disk_is_a_pause(void **state) {
    (void)state;
    for (uint32_t k = 0; k < 1 + n_histories() / 10; k++) {
        history h;
        begin(&h, first_seed() + k);
        send_on(&h);
        power_fill_disk(h.power, 1 + draw(&h, 8), 1);
        send_on(&h);
        finish(&h);
        end(&h);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_durable_survives_every_cut),
        cmocka_unit_test(a_close_that_is_cut_is_done_or_not),
        cmocka_unit_test(a_failed_sync_is_final_for_its_part),
        cmocka_unit_test(a_full_disk_is_a_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Runs that drop what there is no room for, on a slow disk, through power cuts: each event is stored or counted in a gap, the
 * milliseconds are those of all that was sent, and after a restart all of it is as it was at the number that is durable. */
#include <jansson.h>

#include "power.h"
#include "producers.h"
#include "random.h"
#include "recovery.h"
#include "run_fixture.h"

static const char keys[] =
    "\"ring_mb\": 1, \"max_runs\": 1, \"sync_interval_ms\": 10, \"resume_timeout_s\": 60, "
    "\"summaries\": {\"enabled\": false}, \"log_level\": \"error\"";

enum { BATCHES_MAX = 300, ATTRIBUTES_EVERY = 7, MS_MAX = 900, PHOTONS_MAX = 14000 };

/* What is sent is a function of the number and the seed: photon i of the run has the x i, and a millisecond points back to one of
 * the last photons or to the next one. */
typedef struct model {
    uint64_t seed, random;
    uint64_t photons[BATCHES_MAX + 1], ms[BATCHES_MAX + 1]; /* sent up to each number */
    bool stored[BATCHES_MAX + 1];                           /* as it was taken last */
    uint64_t sent;
} model;

typedef struct expected {
    uint64_t n_photons, n_ms, n_dropped, n_gaps;
    uint64_t *index; /* [photons sent + 1] stored ones before each */
    uint64_t *ms;
    uint64_t gap_items[BATCHES_MAX + 1], gap_counts[BATCHES_MAX + 1];
} expected;

static uint32_t draw(model *m, uint32_t n) {
    return (uint32_t)(testing_random(&m->random) >> 32) % n;
}

static void model_size(model *m, uint64_t s) {
    bool data = s % ATTRIBUTES_EVERY != 0;
    m->photons[s] = m->photons[s - 1] + (data ? draw(m, 3) ? draw(m, PHOTONS_MAX) : draw(m, 30) : 0);
    m->ms[s] = m->ms[s - 1] + (data ? draw(m, 2) ? draw(m, 20) : draw(m, MS_MAX) : 0);
    m->sent = s;
}

/* Millisecond k of batch s: they never fall, and begin up to a few hundred photons before the batch. */
static uint64_t model_ms(const model *m, uint64_t s, uint64_t k) {
    uint64_t n_ms = m->ms[s] - m->ms[s - 1], last = m->photons[s];
    uint64_t late = (s * 2654435761u >> 7) % 700, first = m->photons[s - 1];
    first = first > late ? first - late : 0;
    return first + (last - first) * (k + 1) / n_ms;
}

static pd_taken model_send(model *m, pd_run *run, uint64_t s) {
    static uint16_t x[PHOTONS_MAX], dt[PHOTONS_MAX];
    static uint64_t ms[MS_MAX];
    pd_refusal why = {0};
    if (s % ATTRIBUTES_EVERY == 0) {
        m->stored[s] = true;
        return pd_run_attributes(run, s, &(pd_attribute){"note", "a note"}, 1, &why);
    }
    size_t n = (size_t)(m->photons[s] - m->photons[s - 1]), n_ms = (size_t)(m->ms[s] - m->ms[s - 1]);
    for (size_t i = 0; i < n; i++) {
        x[i] = (uint16_t)(m->photons[s - 1] + i);
        dt[i] = (uint16_t)(3u * x[i]);
    }
    for (size_t k = 0; k < n_ms; k++)
        ms[k] = model_ms(m, s, k);
    wire_batch wire = {.sequence = s, .n_counts = 2, .counts = {n, n_ms}, .n_columns = 3};
    wire.columns[0] = (wire_column){(uint8_t *)x, 2 * n};
    wire.columns[1] = (wire_column){(uint8_t *)dt, 2 * n};
    wire.columns[2] = (wire_column){(uint8_t *)ms, 8 * n_ms};
    wire.crc32c = wire_batch_crc32c(&wire);
    pd_taken taken = pd_run_batch(run, &wire, &why);
    m->stored[s] = taken == PD_TAKEN;
    return taken;
}

/* What the file must hold after number s: by going through all that was sent, photon by photon. */
static void model_expect(const model *m, uint64_t s, expected *e) {
    memset(e, 0, sizeof *e);
    e->index = malloc((size_t)(m->photons[s] + 1) * sizeof *e->index);
    e->ms = malloc((size_t)(m->ms[s] + 1) * sizeof *e->ms);
    for (uint64_t b = 1; b <= s; b++) {
        uint64_t n = m->photons[b] - m->photons[b - 1];
        for (uint64_t i = m->photons[b - 1]; i < m->photons[b]; i++) {
            e->index[i] = e->n_photons;
            e->n_photons += m->stored[b];
        }
        e->index[m->photons[b]] = e->n_photons;
        for (uint64_t k = 0; k < m->ms[b] - m->ms[b - 1]; k++)
            e->ms[e->n_ms++] = m->stored[b] ? e->index[model_ms(m, b, k)] : e->n_photons;
        if (m->stored[b])
            continue;
        e->n_dropped += n;
        if (e->n_gaps == 0 || e->gap_items[e->n_gaps - 1] != e->n_photons)
            e->gap_items[e->n_gaps++] = e->n_photons;
        e->gap_counts[e->n_gaps - 1] += n;
    }
}

static void check_columns(const model *m, uint64_t s, const expected *e, d7_reader *r, uint64_t owed) {
    d7_dataset_info info[3];
    for (uint32_t d = 0; d < 3; d++)
        assert_int_equal(d7_reader_dataset(r, d, &info[d]), 0);
    assert_int_equal(info[0].items, e->n_photons);
    assert_int_equal(info[1].items, e->n_photons);
    assert_int_equal(info[2].items, e->n_ms - owed);
    uint16_t *x = malloc(2 * (size_t)e->n_photons + 2);
    uint64_t *ms = malloc(8 * (size_t)e->n_ms + 8);
    assert_int_equal(d7_reader_read(r, 0, 0, (size_t)e->n_photons, x, NULL), 0);
    assert_int_equal(d7_reader_read(r, 2, 0, (size_t)(e->n_ms - owed), ms, NULL), 0);
    for (uint64_t b = 1; b <= s; b++)
        for (uint64_t i = m->photons[b - 1]; i < m->photons[b] && m->stored[b]; i++)
            if (x[e->index[i]] != (uint16_t)i)
                fail_msg("photon %d of batch %d differs", (int)i, (int)b);
    for (uint64_t k = 0; k < e->n_ms - owed; k++)
        if (ms[k] != e->ms[k])
            fail_msg("millisecond %d of %d is %d, %d was expected", (int)k, (int)e->n_ms, (int)ms[k],
                     (int)e->ms[k]);
    free(x);
    free(ms);
}

/* A gap that a restart lies in has two records. */
static void check_gaps(const expected *e, d7_reader *r) {
    static const char prefix[] = "photond.gap.";
    uint64_t counts[BATCHES_MAX + 1] = {0}, g = 0, dropped = 0;
    for (size_t i = 0; i < d7_reader_n_attributes(r); i++) {
        d7_attribute a;
        assert_int_equal(d7_reader_attribute(r, i, &a), 0);
        if (strncmp(a.key, prefix, sizeof prefix - 1) != 0)
            continue;
        json_t *json = json_loads(a.value, 0, NULL);
        if (strcmp(json_string_value(json_object_get(json, "cause")), "overflow") == 0) {
            uint64_t item = (uint64_t)json_integer_value(json_object_get(json, "item"));
            for (g = 0; g < e->n_gaps && e->gap_items[g] != item;)
                g++;
            assert_true(g < e->n_gaps);
            counts[g] += (uint64_t)json_integer_value(json_object_get(json, "count"));
            assert_string_equal(json_string_value(json_object_get(json, "group")), "photons");
        }
        json_decref(json);
    }
    for (g = 0; g < e->n_gaps; g++) {
        assert_int_equal(counts[g], e->gap_counts[g]);
        dropped += counts[g];
    }
    assert_int_equal(dropped, e->n_dropped);
}

static void check_file_at(const fixture *f, const model *m, uint64_t s, d7_state state, uint64_t owed) {
    char path[128];
    d7_reader *r = NULL;
    expected e;
    model_expect(m, s, &e);
    snprintf(path, sizeof path, "%s/run.photons", f->folder);
    assert_int_equal(d7_reader_open(&r, path, NULL, NULL), 0);
    assert_int_equal(d7_reader_state(r), state);
    assert_int_equal(d7_reader_n_damages(r), 0);
    check_columns(m, s, &e, r, owed);
    check_gaps(&e, r);
    d7_reader_free(r);
    free(e.index);
    free(e.ms);
}

/* Sends on from `s`: in bursts, in which nothing comes free, and between them with time for the disk or not. Returns how many were
 * dropped. */
static unsigned send_from(model *m, fixture *f, power *p, pd_run *run, uint64_t s) {
    uint64_t last = s + 10 + draw(m, 70);
    unsigned dropped = 0, burst = 0;
    power_slow_syncs(p, draw(m, 10));
    for (; s <= last && s <= BATCHES_MAX; s++) {
        if (s > m->sent)
            model_size(m, s);
        pd_taken taken = model_send(m, run, s);
        assert_true(taken == PD_TAKEN || taken == PD_DROPPED);
        assert_int_equal(run->received, s);
        dropped += taken == PD_DROPPED;
        if (burst == 0)
            burst = draw(m, 3) ? 1 : 20;
        if (--burst == 0)
            turn_for(f, draw(m, 3) ? draw(m, 4) : draw(m, 40));
    }
    return dropped;
}

static void restart(fixture *f, power *p, pd_producers *producers) {
    power_off(p);
    uv_run(&f->loop, UV_RUN_NOWAIT);
    pd_runs_close_all(&f->runs, "the power is off");
    turn_until_no_run_is_left(f);
    assert_false(fixture_stop(f));
    power_cut(p);
    memset(&f->told, 0, sizeof f->told);
    assert_int_equal(fixture_start(f, keys, power_io(p)), 0);
    pd_recovery_run(&f->engine, &f->runs, producers);
    assert_int_equal(f->runs.n, 1);
    pd_run_attach(f->runs.items[0], &events, f);
}

static unsigned history(uint32_t seed) {
    model *m = calloc(1, sizeof *m);
    m->random = seed * UINT64_C(2654435761) + 1;
    pd_producers producers;
    power *p = power_new(seed);
    fixture *f = fixture_new();
    unsigned dropped = 0;
    assert_non_null(f);
    f->drop = true;
    assert_int_equal(fixture_start(f, keys, power_io(p)), 0);
    assert_int_equal(pd_producers_init(&producers, 16), 0);
    pd_run *run = opened(f, "run");
    assert_true(run->batch_bytes >= 4 * PHOTONS_MAX + 8 * MS_MAX);
    for (uint32_t cuts = draw(m, 4); cuts > 0; cuts--) {
        dropped += send_from(m, f, p, run, run->received + 1);
        uint64_t durable = f->told.last_durable;
        restart(f, p, &producers);
        run = f->runs.items[0];
        assert_true(run->received >= durable);
        assert_true(run->dropped.allowed);
        check_file_at(f, m, run->received, D7_STATE_OPEN, run->dropped.owed);
    }
    dropped += send_from(m, f, p, run, run->received + 1);
    pd_run_close(run, NULL);
    uint64_t last = run->received;
    turn_until(f, &f->told.ended, 1);
    check_file_at(f, m, last, D7_STATE_CLOSED, 0);
    assert_false(fixture_stop(f));
    pd_producers_free(&producers);
    power_free(p);
    assert_int_equal(fixture_free(f), 0);
    free(m);
    return dropped;
}

static unsigned n_histories(void) {
    const char *text = getenv("PHOTOND_POWER_HISTORIES");
    return text ? (unsigned)strtoul(text, NULL, 10) : POWER_HISTORIES;
}

static void every_event_is_stored_or_counted(void **state) {
    (void)state;
    unsigned dropped = 0;
    for (uint32_t seed = 1; seed <= 1 + n_histories() / 2; seed++)
        dropped += history(seed);
    assert_true(dropped > 0);
}

/* All slots are taken, and milliseconds of dropped batches are in no page yet: the close waits for the room. */
static void a_close_writes_what_is_owed(void **state) {
    (void)state;
    model *m = calloc(1, sizeof *m);
    fixture *f = fixture_new();
    m->random = 5;
    f->drop = true;
    assert_int_equal(fixture_start(f, keys, NULL), 0);
    pd_run *run = opened(f, "run");
    uint64_t s = 0;
    while (run->dropped.owed == 0) {
        model_size(m, ++s);
        model_send(m, run, s);
        assert_true(s < BATCHES_MAX);
    }
    pd_run_close(run, NULL);
    assert_int_equal(run->state, PD_RUN_DRAINING);
    assert_true(run->dropped.owed > 0);
    turn_until(f, &f->told.ended, 1);
    check_file_at(f, m, s, D7_STATE_CLOSED, 0);
    assert_false(fixture_stop(f));
    assert_int_equal(fixture_free(f), 0);
    free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_event_is_stored_or_counted),
                                       cmocka_unit_test(a_close_writes_what_is_owed)};
    pd_log_set_level(PD_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

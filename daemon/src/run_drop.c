#include "run_drop.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "run.h"

enum { DROP_RECORDS_MAX = 10000 /* gaps of a run: later ones are added to the last */ };

#define DROP_NO_COLUMN UINT32_MAX
#define DROP_LOG_NS UINT64_C(10000000000)

static const char drop_owed_key[] = "photond.owed_ms";

int pd_run__drop_init(pd_run *run) {
    run->dropped.gaps = calloc(run->n_groups, sizeof *run->dropped.gaps);
    run->dropped.ms_column = DROP_NO_COLUMN;
    for (uint32_t c = run->n_columns; c-- > 0;)
        if (run->columns[c].dataset.role == PD_ROLE_MS_INDEX)
            run->dropped.ms_column = c;
    return run->dropped.gaps ? 0 : -1;
}

void pd_run__drop_free(pd_run *run) {
    free(run->dropped.gaps);
}

/* ---- milliseconds that are owed ---- */

/* Items that the column takes now: the rest of its page, and pages for which there are slots and room on the disk. */
static uint64_t drop_room(pd_run *run, const pd_column *column, uint64_t want) {
    uint64_t there = column->filling ? column->page_items - column->filling->n_items : 0;
    if (want <= there)
        return want;
    want += column->part_repeats;
    uint64_t pages = (want - there + column->page_items - 1) / column->page_items;
    uint32_t available = pd_ring_available(&run->engine->ring, &run->quota);
    pages = pages < available ? pages : available;
    uint64_t room = there + (pd_run__has_room(run, (uint32_t)pages, 0) ? pages * column->page_items : 0);
    return (want < room ? want : room) - (room > 0 && column->part_repeats);
}

bool pd_run__drop_pay(pd_run *run) {
    pd_run_drop *d = &run->dropped;
    if (d->owed == 0)
        return true;
    uint64_t n = drop_room(run, &run->columns[d->ms_column], d->owed);
    pd_run__append_index(run, d->ms_column, run->groups[run->photon_group].items - run->part->first_photon,
                         n);
    d->owed -= n;
    return d->owed == 0;
}

bool pd_run__drop_may_end(pd_run *run) {
    return pd_run__drop_pay(run) &&
           (!run->dropped.now || pd_ring_available(&run->engine->ring, &run->quota) >= run->quota.slots / 2);
}

void pd_run__drop_over(pd_run *run) {
    run->dropped.now = false;
}

/* ---- records ---- */

static json_t *drop_json(const pd_run *run, uint32_t g) {
    const pd_run_drop *d = &run->dropped;
    const pd_drop_gap *gap = &d->gaps[g];
    json_t *json = pd_run__gap_json(run, &run->groups[g], gap->item, gap->count, "overflow", d->gap_utc_ns);
    if (!json)
        return NULL;
    json_object_set_new(json, "monotonic", json_integer((json_int_t)d->gap_monotonic_ns));
    if (g == run->photon_group) {
        json_object_set_new(json, "batches", json_integer((json_int_t)d->gap_batches));
        json_object_set_new(json, "milliseconds", json_integer((json_int_t)d->gap_ms));
    }
    return json;
}

static int drop_write(pd_run *run, uint32_t g) {
    pd_drop_gap *gap = &run->dropped.gaps[g];
    uint64_t number = gap->written ? gap->number : run->n_records[PD_RECORD_GAP];
    if (pd_run__record(run, PD_RECORD_GAP, number, drop_json(run, g)) != 0)
        return -1;
    if (!gap->written) {
        run->n_records[PD_RECORD_GAP]++;
        run->dropped.n_records++;
        pd_count(&run->engine->counters.gaps, 1);
        pd_count(&run->engine->counters.gaps_overflow, 1);
    }
    gap->number = number;
    gap->written = true;
    gap->news = false;
    return 0;
}

static int drop_write_owed(pd_run *run) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, run->dropped.owed);
    if (pd_run__own_attribute(run, drop_owed_key, text) != 0)
        return -1;
    run->dropped.owed_written = run->dropped.owed;
    return 0;
}

int pd_run__drop_records(pd_run *run) {
    pd_run_drop *d = &run->dropped;
    for (uint32_t g = 0; g < run->n_groups; g++)
        if (d->gaps[g].news && drop_write(run, g) != 0)
            return -1;
    return d->owed == d->owed_written ? 0 : drop_write_owed(run);
}

/* ---- dropping ---- */

/* A new gap; or the last one goes on, where there are very many or no memory for its record. */
static void drop_begin(pd_run *run) {
    pd_run_drop *d = &run->dropped;
    if (pd_run__drop_records(run) != 0 || d->n_records >= DROP_RECORDS_MAX)
        return;
    for (uint32_t g = 0; g < run->n_groups; g++)
        d->gaps[g] = (pd_drop_gap){.item = run->groups[g].items};
    d->gap_batches = d->gap_ms = 0;
    d->gap_monotonic_ns = uv_hrtime();
    d->gap_utc_ns = pd_utc_ns();
}

static void drop_note_range(pd_run_drop *d, uint64_t sequence) {
    pd_drop_range *last = d->n_ranges ? &d->ranges[(d->n_ranges - 1) % PD_DROP_RANGES] : NULL;
    if (last && last->last + 1 == sequence)
        last->last = sequence;
    else
        d->ranges[d->n_ranges++ % PD_DROP_RANGES] = (pd_drop_range){sequence, sequence};
}

static void drop_log(pd_run *run) {
    pd_run_drop *d = &run->dropped;
    uint64_t now = uv_hrtime();
    if (d->logged_ns && now - d->logged_ns < DROP_LOG_NS)
        return;
    d->logged_ns = now;
    pd_log(PD_LOG_WARNING,
           "run %s: there is no room: batches are dropped; %" PRIu64 " photons in %" PRIu64 " batches so far",
           run->name, d->photons, d->batches);
}

static void drop_grow(pd_run *run, const wire_batch *batch) {
    pd_run_drop *d = &run->dropped;
    for (uint32_t g = 0; g < run->n_groups; g++) {
        pd_drop_gap *gap = &d->gaps[g];
        bool is_ms = d->ms_column != DROP_NO_COLUMN && run->columns[d->ms_column].group == g;
        if (is_ms || (batch->counts[g] == 0 && g != run->photon_group))
            continue;
        gap->count += batch->counts[g];
        gap->news = true;
    }
    d->gap_batches++;
    if (d->ms_column == DROP_NO_COLUMN)
        return;
    uint64_t n_ms = batch->counts[run->columns[d->ms_column].group];
    d->gap_ms += n_ms;
    d->owed += n_ms;
}

void pd_run__drop(pd_run *run, const wire_batch *batch) {
    pd_run_drop *d = &run->dropped;
    uint64_t n = batch->counts[run->photon_group];
    if (!d->now)
        drop_begin(run);
    d->now = true;
    drop_grow(run, batch);
    pd_rebase_gap_add(&run->rebase, pd_run_photons(run), n);
    d->photons += n;
    d->batches++;
    drop_note_range(d, batch->sequence);
    pd_count(&run->engine->counters.photons_dropped, n);
    pd_stage_drop(&run->engine->stages, PD_STAGE_RING, PD_CAUSE_OVERFLOW, n);
    pd_count(&run->engine->counters.batches_dropped, 1);
    pd_run__drop_pay(run);
    drop_log(run);
}

/* ---- after a restart ---- */

static void drop_learn(pd_run *run, const char *value) {
    pd_run_drop *d = &run->dropped;
    const pd_group *photons = &run->groups[run->photon_group];
    uint64_t before = photons->items - pd_run__record_item(run, photons, photons->items); /* the file */
    json_t *json = json_loads(value, 0, NULL);
    const char *cause = json_string_value(json_object_get(json, "cause"));
    const char *group = json_string_value(json_object_get(json, "group"));
    group = group ? group : json_string_value(json_object_get(json, "dataset"));
    json_int_t item = json_integer_value(json_object_get(json, "item")),
               count = json_integer_value(json_object_get(json, "count")),
               batches = json_integer_value(json_object_get(json, "batches"));
    if (cause && strcmp(cause, "overflow") == 0 && group && item >= 0 && count >= 0 && batches >= 0) {
        d->n_records++;
        if (strcmp(group, photons->name) == 0) {
            pd_rebase_gap_add(&run->rebase, before + (uint64_t)item + d->photons, (uint64_t)count);
            d->photons += (uint64_t)count;
            d->batches += (uint64_t)batches;
        }
    }
    json_decref(json);
}

void pd_run__drop_resume(pd_run *run, const pd_attribute *attributes, size_t n) {
    static const char prefix[] = "photond.gap.";
    pd_run_drop *d = &run->dropped;
    d->photons = pd_attribute_number(attributes, n, "photond.dropped_before");
    pd_rebase_begin(&run->rebase, d->photons);
    for (size_t i = 0; i < n; i++)
        if (strncmp(attributes[i].key, prefix, sizeof prefix - 1) == 0)
            drop_learn(run, attributes[i].value);
    d->owed = d->owed_written =
        d->ms_column == DROP_NO_COLUMN ? 0 : pd_attribute_number(attributes, n, drop_owed_key);
}

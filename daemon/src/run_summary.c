#include "run_summary.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "run.h"

/* ---- pages that the summary needs ---- */

void pd_run_summary_hold(pd_run *run, pd_page *page) {
    const pd_run_replay *replay = &run->summary.replay;
    if (!run->summary.summary || replay->failed || (replay->on && !replay->joining))
        return;
    pd_column *column = &run->columns[page->column];
    page->slot.holders++;
    if (column->held_last)
        column->held_last->next_held = page;
    else
        column->held_first = page;
    column->held_last = page;
}

/* Lets go of the pages of a column that are whole and binned. */
static void summary_release_column(pd_run *run, pd_column *column) {
    uint64_t binned = run->summary.binned[column->group];
    while (column->held_first) {
        pd_page *page = column->held_first;
        if (!page->sealed || page->first_item + page->n_items > binned)
            return;
        column->held_first = page->next_held;
        if (!column->held_first)
            column->held_last = NULL;
        pd_run__release(run, page);
    }
}

void pd_run_summary_sealed(pd_run *run, pd_page *page) {
    if (run->summary.summary && !run->summary.busy)
        summary_release_column(run, &run->columns[page->column]);
}

void pd_run_summary_release(pd_run *run) {
    assert(!run->summary.busy);
    for (uint32_t c = 0; c < run->n_columns; c++) {
        pd_column *column = &run->columns[c];
        while (column->held_first) {
            pd_page *page = column->held_first;
            column->held_first = page->next_held;
            pd_run__release(run, page);
        }
        column->held_last = NULL;
    }
}

/* ---- tiles ---- */

/* The held page that an item is in. */
static const pd_page *column_page(const pd_column *column, uint64_t item) {
    const pd_page *page = column->held_first;
    while (page->first_item + (page->sealed ? page->n_items : column->page_items) <= item)
        page = page->next_held;
    return page;
}

/* Where the tile that begins with an item ends: with the first page that does. */
static uint64_t tile_end(const pd_run *run, uint32_t g, uint64_t first) {
    const pd_group *group = &run->groups[g];
    uint64_t end = UINT64_MAX;
    for (uint32_t i = 0; i < group->n_columns; i++) {
        const pd_column *column = &run->columns[group->columns[i]];
        const pd_page *page = column_page(column, first);
        uint64_t page_end = page->first_item + (page->sealed ? page->n_items : column->page_items);
        end = page_end < end ? page_end : end;
    }
    return end;
}

static void tile_add(pd_run *run, uint32_t g, uint64_t first, uint64_t end) {
    pd_run_summary *s = &run->summary;
    const pd_group *group = &run->groups[g];
    pd_tile *tile = &s->tiles[s->n_tiles];
    *tile = (pd_tile){.group = g,
                      .n_items = (uint32_t)(end - first),
                      .first_item = first,
                      .columns = s->pointers + (size_t)s->n_tiles * s->widest_group};
    for (uint32_t i = 0; i < group->n_columns; i++) {
        const pd_column *column = &run->columns[group->columns[i]];
        const pd_page *page = column_page(column, first);
        tile->columns[i] = page->slot.raw + (size_t)(first - page->first_item) * column->item_bytes;
        tile->first_photon = page->first_photon;
    }
    s->n_tiles++;
}

/* Whole tiles; before a freeze also what is there of the next. */
static void tiles_collect(pd_run *run) {
    pd_run_summary *s = &run->summary;
    s->n_tiles = 0;
    for (uint32_t g = 0; g < run->n_groups; g++) {
        uint64_t limit = s->freeze_wanted ? s->upto[g] : run->groups[g].items;
        for (uint64_t at = s->binned[g], end; at < limit && s->n_tiles < PD_TILES_PER_JOB; at = end) {
            end = tile_end(run, g, at);
            if (end > limit && !s->freeze_wanted)
                break;
            end = end < limit ? end : limit;
            tile_add(run, g, at, end);
        }
    }
}

/* ---- the chain ---- */

/* The pool: what is new but for events. */
static void summary_tell(pd_run *run) {
    pd_run_summary *s = &run->summary;
    pd_summary_tick(s->summary, s->elapsed_ns);
    for (pd_link *link = s->job_attributes; link; link = link->next) {
        pd_run_attributes_item *item = pd_container_of(link, pd_run_attributes_item, summary_link);
        for (size_t i = 0; i < item->task.n && s->job_result == 0; i++)
            s->job_result = pd_summary_attribute(s->summary, item->task.attributes[i].key,
                                                 item->task.attributes[i].value, &s->job_error);
    }
}

/* The pool: tells the summary what is new, and bins. */
static void summary_bin(uv_work_t *work) {
    pd_run *run = work->data;
    pd_run_summary *s = &run->summary;
    summary_tell(run);
    if (s->job_instrument_time_known)
        pd_summary_instrument_time(s->summary, s->job_instrument_time);
    for (uint32_t t = 0; t < s->n_tiles; t++) {
        const pd_tile *tile = &s->tiles[t];
        pd_summary_first_photon(s->summary, tile->first_photon);
        pd_summary_bin(s->summary, tile->group, tile->columns, tile->first_item, tile->n_items);
    }
}
/* The pool: the accumulators into the snapshot. */
static void summary_freeze(uv_work_t *work) {
    pd_run *run = work->data;
    pd_run_summary *s = &run->summary;
    pd_summary_tick(s->summary, s->elapsed_ns);
    if (run->dropped.allowed)
        pd_summary_set_dropped(s->summary, s->job_dropped);
    s->job_result =
        pd_summary_freeze(s->summary, s->exports + s->exports_failed + 1, &s->snapshot, &s->job_error);
}

/* The pool. */
static void summary_replay(uv_work_t *work) {
    pd_run *run = work->data;
    summary_tell(run);
    pd_run_replay_work(run);
}

static void summary_failed(pd_run *run) {
    pd_run_summary *s = &run->summary;
    s->exports_failed++;
    s->changed = true;
    s->last_failed = true;
    pd_count(&run->engine->counters.exports_failed, 1);
    pd_log(PD_LOG_ERROR, "run %s: the summary failed: %s", run->name, s->job_error.text);
}

static void export_back(pd_event *event) {
    pd_run_summary *s = pd_container_of(event, pd_run_summary, exported);
    pd_run *run = s->job.user;
    s->exporting = false;
    if (s->job.result == 0) {
        s->exports++;
        pd_stage_out(&run->engine->stages, PD_STAGE_EXPORTER, 1);
        s->last_failed = false;
        s->last_export_ns = uv_hrtime();
        s->last_export_photons = s->job_photons;
        pd_count(&run->engine->counters.exports, 1);
    } else {
        pd_stage_drop(&run->engine->stages, PD_STAGE_EXPORTER, PD_CAUSE_FAILED, 1);
        s->exports_failed++;
        s->changed = true;
        s->last_failed = true;
        pd_count(&run->engine->counters.exports_failed, 1);
    }
    pd_run_summary_kick(run);
    pd_run__progress(run);
}

/* The exporter's thread. */
static void export_done(pd_export_job *job) {
    pd_run *run = job->user;
    pd_inbox_post(&run->engine->inbox, &run->summary.exported);
}

static void summary_export(pd_run *run) {
    pd_run_summary *s = &run->summary;
    if (s->job_result != 0) {
        summary_failed(run);
        return;
    }
    s->job = (pd_export_job){.target = &s->target,
                             .snapshot = &s->snapshot,
                             .final = s->job_final,
                             .done = export_done,
                             .user = run};
    s->exported.happened = export_back;
    s->exporting = pd_exporter_submit(run->exporter, &s->job) == 0;
    pd_stage_in(&run->engine->stages, PD_STAGE_EXPORTER, s->exporting);
}

void pd_run_summary_binned(pd_run *run, uint32_t group, uint64_t n) {
    run->summary.binned[group] += n;
    if (group == run->photon_group)
        pd_stage_out(&run->engine->stages, PD_STAGE_SUMMARY, n);
}

static void job_attributes_release(pd_run_summary *s) {
    for (pd_link *link = s->job_attributes; link;) {
        pd_run_attributes_item *item = pd_container_of(link, pd_run_attributes_item, summary_link);
        link = link->next;
        pd_run__attributes_release(item);
    }
    s->job_attributes = NULL;
}

static void summary_done(uv_work_t *work, int status) {
    (void)status; /* jobs are never cancelled */
    pd_run *run = work->data;
    pd_run_summary *s = &run->summary;
    s->busy = false;
    job_attributes_release(s);
    if (s->freezes) {
        summary_export(run);
    } else if (s->replays) {
        pd_run_replay_done(run);
        if (s->job_result != 0)
            summary_failed(run);
        if (s->replay.failed)
            pd_run_summary_release(run);
    } else {
        if (s->job_result != 0)
            summary_failed(run);
        for (uint32_t t = 0; t < s->n_tiles; t++)
            pd_run_summary_binned(run, s->tiles[t].group, s->tiles[t].n_items);
    }
    for (uint32_t c = 0; c < run->n_columns; c++)
        summary_release_column(run, &run->columns[c]);
    pd_run_summary_kick(run);
    pd_run__progress(run);
}

typedef enum summary_job { SUMMARY_BIN, SUMMARY_FREEZE, SUMMARY_REPLAY } summary_job;

static void summary_submit(pd_run *run, summary_job kind) {
    static const uv_work_cb works[] = {summary_bin, summary_freeze, summary_replay};
    pd_run_summary *s = &run->summary;
    s->busy = true;
    s->freezes = kind == SUMMARY_FREEZE;
    s->replays = kind == SUMMARY_REPLAY;
    s->job_result = 0;
    s->job_attributes = NULL;
    s->elapsed_ns = uv_hrtime() - run->opened_ns;
    if (kind == SUMMARY_FREEZE) {
        s->freeze_wanted = s->changed = false;
        s->job_final = s->final_wanted;
        s->job_photons = pd_summary_items(s->summary, run->photon_group);
        s->job_dropped = s->upto_dropped;
    } else {
        s->job_attributes = pd_list_take(&s->attributes);
    }
    if (kind == SUMMARY_BIN) {
        s->job_instrument_time_known = s->instrument_time_known;
        s->job_instrument_time = s->instrument_time;
        s->instrument_time_known = false;
    }
    s->work.data = run;
    int failed = uv_queue_work(run->engine->loop, &s->work, works[kind], summary_done);
    assert(failed == 0); /* it only fails without a function to call */
    (void)failed;
}

/* While the file is read again, or could not be: exports between the pieces, of what is binned so far; the last one waits for the whole. */
static void summary_kick_replay(pd_run *run) {
    pd_run_summary *s = &run->summary;
    if (s->freeze_wanted && (!s->final_wanted || s->replay.failed) && !s->exporting)
        summary_submit(run, SUMMARY_FREEZE);
    else if (s->replay.on && pd_run_replay_next(run))
        summary_submit(run, SUMMARY_REPLAY);
}

void pd_run_summary_kick(pd_run *run) {
    pd_run_summary *s = &run->summary;
    if (!s->summary || s->busy || run->turning || run->state == PD_RUN_FAILED)
        return;
    if (s->replay.on || s->replay.failed)
        summary_kick_replay(run);
    if (s->busy || s->replay.on || s->replay.failed)
        return;
    tiles_collect(run);
    bool news = s->freeze_wanted && (s->attributes.first || s->instrument_time_known);
    if (s->n_tiles > 0 || news)
        summary_submit(run, SUMMARY_BIN);
    else if (s->freeze_wanted && !s->exporting)
        summary_submit(run, SUMMARY_FREEZE);
}

static void summary_want_freeze(pd_run *run) {
    pd_run_summary *s = &run->summary;
    s->freeze_wanted = true;
    s->upto_dropped = run->dropped.photons;
    for (uint32_t g = 0; g < run->n_groups; g++)
        s->upto[g] = run->groups[g].items;
}

static void summary_tick(uv_timer_t *timer) {
    pd_run *run = timer->data;
    pd_run_summary *s = &run->summary;
    if (s->freeze_wanted || s->exporting || (s->busy && s->freezes)) {
        s->exports_skipped++;
        pd_count(&run->engine->counters.exports_skipped, 1);
    } else if (s->changed) {
        summary_want_freeze(run);
        pd_run_summary_kick(run);
    }
}

void pd_run_summary_export(pd_run *run) {
    if (run->summary.freeze_wanted)
        return;
    summary_want_freeze(run);
    pd_run_summary_kick(run);
}

/* ---- life ---- */

void pd_run_summary_prepare(pd_run *run, const pd_run_spec *spec) {
    run->summary.time_base = spec->time_base;
    run->summary.options = spec->summary;
    pd_list_init(&run->summary.attributes);
    pd_snapshot_init(&run->summary.snapshot);
    pd_export_target_init(&run->summary.target, "");
}

int pd_run_summary_init(pd_run *run, const pd_run_spec *spec, pd_error *err) {
    pd_run_summary *s = &run->summary;
    if (!spec->summary.enabled)
        return 0;
    s->binned = calloc(run->n_groups, sizeof *s->binned);
    s->upto = calloc(run->n_groups, sizeof *s->upto);
    if (!s->binned || !s->upto)
        return pd_error_set(err, "out of memory");
    for (uint32_t g = 0; g < run->n_groups; g++)
        if (run->groups[g].n_columns > s->widest_group)
            s->widest_group = run->groups[g].n_columns;
    s->pointers = calloc((size_t)PD_TILES_PER_JOB * s->widest_group, sizeof *s->pointers);
    if (!s->pointers)
        return pd_error_set(err, "out of memory");
    pd_summary_setup setup = {.name = spec->name,
                              .datasets = spec->datasets,
                              .n_datasets = spec->n_datasets,
                              .attributes = spec->attributes,
                              .n_attributes = spec->n_attributes,
                              .time_base = spec->time_base,
                              .options = spec->summary};
    return pd_summary_create(&s->summary, &setup, err);
}

static int summary_renew(pd_run *run, const pd_dataset *datasets) {
    pd_run_summary *s = &run->summary;
    pd_error err = {""};
    pd_summary_setup setup = {.name = run->name,
                              .datasets = datasets,
                              .n_datasets = run->n_columns,
                              .attributes = run->kept.list,
                              .n_attributes = run->kept.n,
                              .time_base = s->time_base,
                              .options = s->options};
    pd_summary_free(s->summary);
    s->summary = NULL;
    return pd_summary_create(&s->summary, &setup, &err);
}

int pd_run_summary_anew(pd_run *run) {
    pd_run_summary *s = &run->summary;
    if (!s->summary)
        return 0;
    pd_dataset *datasets = calloc(run->n_columns, sizeof *datasets);
    for (uint32_t c = 0; datasets && c < run->n_columns; c++)
        datasets[c] = run->columns[c].dataset;
    pd_run_summary_release(run);
    s->job_attributes = pd_list_take(&s->attributes);
    job_attributes_release(s);
    s->freeze_wanted = s->final_wanted = s->instrument_time_known = false;
    memset(s->binned, 0, run->n_groups * sizeof *s->binned);
    int failed = datasets ? summary_renew(run, datasets) : -1;
    free(datasets);
    if (failed)
        return -1;
    pd_run_replay_free(run);
    s->replay = (pd_run_replay){0};
    s->changed = true;
    pd_stage_in(&run->engine->stages, PD_STAGE_SUMMARY, pd_run_summary_backlog(run));
    uv_timer_start(&s->timer, summary_tick, run->export_interval_ms, run->export_interval_ms);
    return pd_run_replay_begin(run);
}

void pd_run_summary_start(pd_run *run) {
    pd_run_summary *s = &run->summary;
    if (!s->summary)
        return;
    for (size_t i = 0; i < pd_summary_n_warnings(s->summary) && !run->warned; i++)
        pd_log(PD_LOG_WARNING, "run %s: %s", run->name, pd_summary_warning(s->summary, i));
    pd_export_target_init(&s->target, run->name);
    if (pd_summary_rename(s->summary, run->name) != 0)
        pd_log(PD_LOG_WARNING, "run %s: out of memory: its exports carry the name that was asked for",
               run->name);
    s->changed = true;
    uv_timer_start(&s->timer, summary_tick, run->export_interval_ms, run->export_interval_ms);
}

void pd_run_summary_finish(pd_run *run) {
    pd_run_summary *s = &run->summary;
    uv_timer_stop(&s->timer);
    if (!s->summary)
        return;
    s->final_wanted = true;
    summary_want_freeze(run);
    pd_run_summary_kick(run);
}

uint64_t pd_run_summary_backlog(const pd_run *run) {
    return run->summary.summary
               ? run->groups[run->photon_group].items - run->summary.binned[run->photon_group]
               : 0;
}

bool pd_run_summary_idle(const pd_run *run) {
    const pd_run_summary *s = &run->summary;
    if (s->busy || s->exporting)
        return false;
    return !s->freeze_wanted || run->state == PD_RUN_FAILED;
}

void pd_run_summary_free(pd_run *run) {
    pd_run_summary *s = &run->summary;
    s->job_attributes = pd_list_take(&s->attributes);
    job_attributes_release(s);
    pd_run_replay_free(run);
    pd_snapshot_clear(&s->snapshot);
    pd_export_target_clear(&s->target);
    pd_summary_free(s->summary);
    free(s->binned);
    free(s->upto);
    free(s->pointers);
}

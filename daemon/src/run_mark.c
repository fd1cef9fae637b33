/* What is durable. Marks go to the writer in the run's order, so a mark S stands behind exactly the pages that S needs;
 * what lies in pages that are still filling goes along as a copy. While something new comes there is a mark every
 * PD_MARK_INTERVAL_MS: what it says survives the end of this program. One in sync_interval_ms is synced, or earlier,
 * when much came meanwhile: what it says survives a power cut, and is acknowledged as durable. */
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "run.h"

enum {
    MARK_INTERVAL_MS = 100,
    MARK_COLUMN_MS = 4 /* and so much for each dataset: tails of many cost some MB a second at most */
};

#define NS_PER_MS 1000000u

int pd_run__mark_init(pd_run *run) {
    for (int i = 0; i < PD_RUN_MARKS; i++) {
        pd_run_mark *m = &run->marks[i];
        m->run = run;
        m->datasets = calloc(run->n_columns, sizeof *m->datasets);
        m->items = calloc(run->n_columns, sizeof *m->items);
        m->values = malloc((size_t)run->n_columns * PD_PAGE_BYTES);
        if (!m->datasets || !m->items || !m->values)
            return -1;
    }
    return 0;
}

void pd_run__mark_free(pd_run *run) {
    for (int i = 0; i < PD_RUN_MARKS; i++) {
        free(run->marks[i].datasets);
        free(run->marks[i].items);
        free(run->marks[i].values);
    }
}

static uint64_t mark_wait_ms(const pd_run *run) {
    uint64_t columns_ms = (uint64_t)run->n_columns * MARK_COLUMN_MS;
    uint64_t wait_ms = columns_ms > MARK_INTERVAL_MS ? columns_ms : MARK_INTERVAL_MS;
    return wait_ms < run->engine->config->sync_interval_ms ? wait_ms : run->engine->config->sync_interval_ms;
}

static void mark_moved(pd_run *run) {
    run->last_durable_ns = uv_hrtime();
    if (run->events)
        run->events->durable(run->events_user, run);
}

static void column_durable(pd_run *run, uint32_t c, uint64_t items) {
    if (c == pd_run_photon_column(run)) {
        pd_count(&run->engine->counters.photons_durable, items - run->columns[c].durable_items);
        pd_stage_out(&run->engine->stages, PD_STAGE_DISK, items - run->columns[c].durable_items);
    }
    run->columns[c].durable_items = items;
}

/* What is synced is durable when all parts before are closed. */
static void mark_safe(pd_run *run, const pd_run_point *point, const uint64_t *items) {
    if (point->sequence >= run->safe) {
        run->safe = point->sequence;
        run->safe_point = *point;
        for (uint32_t c = 0; c < run->n_columns; c++)
            run->columns[c].safe_items = items[c];
    }
    if (run->before)
        return;
    if (run->safe > run->durable)
        run->n_turns = 0;
    run->durable = run->safe;
    run->durable_point = run->safe_point;
    pd_kept_attributes_settle(&run->kept, run->durable);
    run->engine->room_came = true;
    for (uint32_t c = 0; c < run->n_columns; c++)
        column_durable(run, c, run->columns[c].safe_items);
    mark_moved(run);
}

void pd_run__part_durable(pd_run *run, const pd_run_part *part) {
    mark_safe(run, &part->end, part->ends);
}

static void mark_back(pd_event *event) {
    pd_run_mark *m = pd_container_of(event, pd_run_mark, task.task.event);
    pd_run *run = m->run;
    m->out = false;
    if (m->task.sync)
        run->sync_out = false;
    pd_run__back(run, &m->task.task);
    if (run->state != PD_RUN_FAILED && m->task.task.result == 0) {
        for (uint32_t c = 0; c < run->n_columns; c++)
            if (m->items[c] > run->columns[c].written_items)
                run->columns[c].written_items = m->items[c];
        if (m->task.sync) {
            run->n_syncs++;
            run->sync_wanted = run->sync_wanted || run->sync_again;
            run->sync_again = false;
            mark_safe(run, &m->point, m->items);
        }
        if (run->summary.replay.on)
            pd_run_summary_kick(run);
    }
    pd_run__mark_due(run);
    pd_run__progress(run);
}

static void mark_copy_column(pd_run_mark *m, uint32_t c) {
    const pd_column *column = &m->run->columns[c];
    uint8_t *values = m->values + (size_t)c * PD_PAGE_BYTES;
    uint32_t n = column->filling ? column->filling->n_items : 0;
    if (n > 0)
        memcpy(values, column->filling->slot.raw, (size_t)n * column->item_bytes);
    m->datasets[c] = (d7_tail_dataset){.type = column->dataset.type,
                                       .items = column->part_repeats ? 0 : column->items - column->part_row,
                                       .n_partial = n,
                                       .partial = values};
    m->items[c] = column->items;
}

static void mark_make(pd_run *run, pd_run_mark *m, bool sync) {
    for (uint32_t c = 0; c < run->n_columns; c++)
        mark_copy_column(m, c);
    m->out = true;
    pd_run__point_take(run, &m->point);
    m->task = (pd_mark_task){
        .task = {.event.happened = mark_back, .kind = PD_TASK_MARK},
        .sync = sync,
        .mark = {.sequence = run->received,
                 .producer = run->instance,
                 .epoch = run->epoch,
                 .clock = {.instrument_valid = run->instrument_time_known,
                           .instrument = run->instrument_time_known ? run->instrument_time : 0,
                           .monotonic_ns = uv_hrtime(),
                           .utc_ns = (int64_t)pd_utc_ns()},
                 .datasets = m->datasets,
                 .n_datasets = run->n_columns},
    };
    run->marked = run->received;
    if (sync) {
        run->sync_out = true;
        run->sync_wanted = false;
        run->synced = run->received;
        run->synced_bytes = run->received_bytes;
        run->last_sync_ns = uv_hrtime();
    }
    pd_run__order(run, &m->order, &m->task.task, true);
    pd_run__flush(run);
}

static pd_run_mark *mark_free_one(pd_run *run) {
    for (int i = 0; i < PD_RUN_MARKS; i++)
        if (!run->marks[i].out)
            return &run->marks[i];
    return NULL;
}

static bool sync_is_early(const pd_run *run) {
    return run->received_bytes - run->synced_bytes >= PD_WINDOW_BYTES / 2;
}

static bool sync_is_due(const pd_run *run) {
    uint64_t interval_ns = run->engine->config->sync_interval_ms * NS_PER_MS;
    if (run->sync_out || run->sync_wanted)
        return !run->sync_out;
    return run->synced < run->received &&
           (run->last_sync_ns == 0 || sync_is_early(run) || uv_hrtime() - run->last_sync_ns >= interval_ns);
}

static void mark_now(pd_run *run) {
    pd_run_mark *m = mark_free_one(run);
    bool sync = m && sync_is_due(run);
    if (!sync && !(m && run->marked < run->received))
        return;
    if (pd_run__records(run, false) == 0)
        mark_make(run, m, sync);
}

static void mark_tick(uv_timer_t *timer) {
    pd_run *run = timer->data;
    mark_now(run);
    pd_run__mark_due(run);
}

void pd_run__mark_due(pd_run *run) {
    if (run->state != PD_RUN_RUNNING || run->turning || (run->synced == run->received && !run->sync_wanted))
        return;
    if (!run->sync_out && (run->sync_wanted || sync_is_early(run)))
        mark_now(run);
    if (!uv_is_active((uv_handle_t *)&run->mark_timer))
        uv_timer_start(&run->mark_timer, mark_tick, mark_wait_ms(run), 0);
}

void pd_run_make_durable(pd_run *run) {
    run->sync_wanted = run->sync_wanted || run->synced < run->received;
    pd_run__mark_due(run);
}

uint64_t pd_run_flush(pd_run *run) {
    run->sync_wanted = true;
    uint64_t until = run->n_syncs + (run->sync_out ? 2 : 1);
    pd_run__mark_due(run);
    return until;
}

void pd_run__all_durable(pd_run *run) {
    for (uint32_t c = 0; c < run->n_columns; c++) {
        column_durable(run, c, run->columns[c].items);
        run->columns[c].written_items = run->columns[c].items;
    }
    if (run->summary.replay.on)
        pd_run_summary_kick(run);
    run->durable = run->safe = run->received;
    mark_moved(run);
}

/* What is durable: at each sync interval, when something new lies in whole pages, a mark goes to the writer behind
 * them, and comes back when they are synced. One mark at a time. */
#include <inttypes.h>

#include "run.h"

/* The last sequence number of which no item lies in a page that is still filling. */
static uint64_t mark_sequence(const pd_run *run) {
    uint64_t sequence = run->received;
    for (uint32_t c = 0; c < run->n_columns; c++) {
        const pd_page *page = run->columns[c].filling;
        if (page && page->first_sequence - 1 < sequence)
            sequence = page->first_sequence - 1;
    }
    return sequence;
}

static void mark_moved(pd_run *run) {
    pd_column *first = &run->columns[0];
    uint64_t before = first->durable_items;
    for (uint32_t c = 0; c < run->n_columns; c++)
        run->columns[c].durable_items = run->columns[c].marked_items;
    pd_count(&run->engine->counters.photons_durable, first->durable_items - before);
    run->last_durable_ns = uv_hrtime();
    if (run->events)
        run->events->durable(run->events_user, run);
}

static void mark_back(pd_event *event) {
    pd_run *run = pd_container_of(event, pd_run, mark.task.event);
    run->mark_out = false;
    pd_run__back(run, &run->mark.task);
    if (run->state != PD_RUN_FAILED && run->mark.sequence > run->durable) {
        run->durable = run->mark.sequence;
        mark_moved(run);
    }
    if (run->state == PD_RUN_RUNNING && run->dirty)
        pd_run__mark_dirty(run);
    pd_run__progress(run);
}

static void mark_make(uv_timer_t *timer) {
    pd_run *run = timer->data;
    uint64_t sequence = mark_sequence(run);
    run->dirty = false;
    if (sequence <= run->marked)
        return;
    run->marked = sequence;
    for (uint32_t c = 0; c < run->n_columns; c++) {
        const pd_page *page = run->columns[c].filling;
        run->columns[c].marked_items = run->columns[c].items - (page ? page->n_items : 0);
    }
    run->mark.task = (pd_task){.event.happened = mark_back, .kind = PD_TASK_MARK};
    run->mark.sequence = sequence;
    run->mark_out = true;
    pd_run__order(run, &run->mark_order, &run->mark.task, true);
    pd_run__flush(run);
}

void pd_run__mark_dirty(pd_run *run) {
    run->dirty = true;
    if (!run->mark_out && !uv_is_active((uv_handle_t *)&run->sync_timer))
        uv_timer_start(&run->sync_timer, mark_make, run->engine->config->sync_interval_ms, 0);
}

void pd_run__all_durable(pd_run *run) {
    for (uint32_t c = 0; c < run->n_columns; c++)
        run->columns[c].marked_items = run->columns[c].items;
    run->durable = run->received;
    mark_moved(run);
}

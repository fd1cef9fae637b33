#include "run.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

enum { RUN_DRAIN_MS = 50 };

static const char *const run_state_names[PD_RUN_STATES] = {"opening", "running", "draining",
                                                           "closing", "failed",  "ended"};

/* Bit n of row s: state s may move to state n. */
static const uint8_t run_moves[PD_RUN_STATES] = {
    [PD_RUN_OPENING] = 1u << PD_RUN_RUNNING | 1u << PD_RUN_FAILED | 1u << PD_RUN_ENDED,
    [PD_RUN_RUNNING] = 1u << PD_RUN_DRAINING | 1u << PD_RUN_FAILED,
    [PD_RUN_DRAINING] = 1u << PD_RUN_CLOSING | 1u << PD_RUN_RUNNING | 1u << PD_RUN_FAILED,
    [PD_RUN_CLOSING] = 1u << PD_RUN_ENDED | 1u << PD_RUN_RUNNING | 1u << PD_RUN_FAILED,
    [PD_RUN_FAILED] = 1u << PD_RUN_ENDED,
    [PD_RUN_ENDED] = 0,
};

void pd_run__move(pd_run *run, pd_run_state to) {
    bool allowed = to < PD_RUN_STATES && (run_moves[run->state] & 1u << to);
    assert(allowed);
    (void)allowed;
    run->state = to;
}

const char *pd_run_state_name(const pd_run *run) {
    return run->state == PD_RUN_RUNNING && !run->events ? "detached" : run_state_names[run->state];
}

/* ---- the order to the volume ---- */

void pd_run__order(pd_run *run, pd_order *order, pd_task *task, bool ready) {
    order->task = task;
    order->part = run->part;
    order->ready = ready;
    pd_list_push(&run->order, &order->link);
}

void pd_run__submit(pd_run *run, pd_run_part *part, pd_task *task) {
    task->file = part->file;
    task->result = 0;
    run->n_at_volume++;
    pd_volume_submit(run->volume, task);
}

/* A part is closed when the next one has its file, and the one before is closed. */
static bool order_may_go(const pd_run *run, const pd_order *order) {
    bool may_close = order->part == run->part ? !run->before : run->part->file != NULL;
    return order->ready && order->part->file && (may_close || order->task->kind != PD_TASK_CLOSE);
}

void pd_run__flush(pd_run *run) {
    while (run->order.first && !run->turning) {
        pd_order *next = pd_container_of(run->order.first, pd_order, link);
        if (!order_may_go(run, next))
            return;
        pd_list_pop(&run->order);
        if (next->task->kind == PD_TASK_PAGE)
            pd_run__page_to_writer(pd_container_of(next, pd_page, order));
        else if (next->task->kind == PD_TASK_CLOSE && next->part == run->part)
            pd_run__move(run, PD_RUN_CLOSING);
        pd_run__submit(run, next->part, next->task);
    }
}

void pd_run__back(pd_run *run, const pd_task *task) {
    assert(run->n_at_volume > 0);
    run->n_at_volume--;
    if (task->result == 0)
        return;
    if (pd_run__may_turn(run, task->file))
        pd_run__turn(run, pd_file_failure(task->file));
    else
        pd_run__fail(run, pd_file_failure(task->file));
}

uv_timer_t *pd_run__timer(pd_run *run, int i) {
    uv_timer_t *const timers[PD_RUN_TIMERS] = {&run->mark_timer, &run->resume_timer, &run->summary.timer,
                                               &run->stop_timer, &run->part_timer};
    return timers[i];
}

/* ---- the end ---- */

static void run_handle_closed(uv_handle_t *handle) {
    pd_run *run = handle->data;
    if (--run->n_handles == 0)
        pd_run__free(run);
}

/* Whoever listens is told, the promise on the ring is taken back; the memory goes with the last handle. */
static void run_end(pd_run *run) {
    pd_run__move(run, PD_RUN_ENDED);
    pd_stage_drop(&run->engine->stages, PD_STAGE_SUMMARY, PD_CAUSE_FAILED, pd_run_summary_backlog(run));
    pd_run_summary_release(run);
    pd_run__unreserve(run);
    run->engine->room_came = true;
    if (run->events)
        run->events->ended(run->events_user, run);
    run->ended(run->ended_user, run);
    pd_run__hold(run, run->part->number, false);
    for (size_t i = 0; i < run->n_left; i++)
        pd_run__hold(run, run->left[i].number, false);
    for (int i = 0; i < PD_RUN_TIMERS; i++)
        uv_close((uv_handle_t *)pd_run__timer(run, i), run_handle_closed);
}

static void run_closed(pd_run *run) {
    pd_count(&run->engine->counters.runs_closed, 1);
    const pd_group *photons = &run->groups[run->photon_group];
    pd_log(PD_LOG_INFO, "run %s: closed: %" PRIu64 " batches, %" PRIu64 " items of %s%s%s", run->name,
           run->batches, photons->items, photons->name, run->end_reason ? "; " : "",
           run->end_reason ? run->end_reason : "");
    if (run->dropped.batches)
        pd_log(PD_LOG_WARNING, "run %s: %" PRIu64 " photons in %" PRIu64 " batches were dropped", run->name,
               run->dropped.photons, run->dropped.batches);
    run_end(run);
}

static void run_dropped(pd_event *event) {
    pd_run_part *part = pd_container_of(event, pd_run_part, drop.event);
    pd_run *run = part->run;
    run->n_at_volume--;
    part->in_use = false;
    if (run->part_wanted && pd_run__part_may_begin(run))
        pd_run__part_begin(run);
    pd_run__progress(run);
}

/* The writer frees it. */
static void run_drop(pd_run_part *part) {
    part->drop = (pd_task){.event.happened = run_dropped, .kind = PD_TASK_DROP};
    part->was_there = true;
    pd_run__submit(part->run, part, &part->drop);
    part->file = NULL;
}

static void run_drain(pd_run *run);

void pd_run__progress(pd_run *run) {
    if (run->state == PD_RUN_DRAINING && !run->turning)
        run_drain(run);
    bool over = run->state == PD_RUN_FAILED || (run->state == PD_RUN_CLOSING && run->close_done);
    bool idle = run->turning ? !run->reopening && !run->summary.busy : over && pd_run_summary_idle(run);
    if (!idle || run->n_encoding > 0 || run->n_at_volume > 0)
        return;
    for (int i = 0; i < PD_RUN_PARTS; i++)
        if (run->parts[i].file)
            run_drop(&run->parts[i]);
    if (run->n_at_volume > 0)
        return;
    if (run->turning) {
        pd_run__turned(run);
    } else if (run->state == PD_RUN_FAILED) {
        run_end(run);
    } else {
        run_closed(run);
    }
}

static void run_count_failed(pd_run *run) {
    uint64_t lost = pd_run_photons_in_flight(run),
             in_ring = run->groups[run->photon_group].items - run->photons_paged;
    pd_count(&run->engine->counters.photons_discarded, lost);
    pd_stage_drop(&run->engine->stages, PD_STAGE_DISK, PD_CAUSE_FAILED, lost);
    pd_stage_drop(&run->engine->stages, PD_STAGE_RING, PD_CAUSE_FAILED, in_ring);
    run->turn_photons = 0;
}

void pd_run__fail(pd_run *run, const char *text) {
    if (run->state == PD_RUN_FAILED || run->state == PD_RUN_ENDED)
        return;
    bool was_open = run->state != PD_RUN_OPENING;
    run->turning = run->reopening = false;
    pd_error_set(&run->failure, "%s", text);
    pd_run__move(run, PD_RUN_FAILED);
    for (int i = 0; i < PD_RUN_TIMERS; i++)
        uv_timer_stop(pd_run__timer(run, i));
    if (was_open) {
        pd_log(PD_LOG_ERROR, "run %s: failed: %s", run->name, run->failure.text);
        pd_count(&run->engine->counters.runs_failed, 1);
        run_count_failed(run);
        pd_run__give_up(run);
    }
    if (run->events)
        run->events->failed(run->events_user, run);
    run->events = NULL;
}

/* ---- life ---- */

static void run_named(pd_run *run, const char *name) {
    snprintf(run->name, sizeof run->name, "%.*s", PD_RUN_NAME_BYTES, name);
    snprintf(run->path, run->path_bytes, "%s/%s.photons", pd_volume_datadir(run->volume)->path, run->name);
}

/* Its Closed was lost: it is told again what the file holds. */
static void run_closed_before(pd_run *run, const pd_open_task *open) {
    run_named(run, open->given_name);
    run->received = run->durable = open->closed_sequence;
    run->part->number = open->closed_parts - 1;
    for (uint32_t c = 0; c < run->n_columns; c++) {
        run->columns[c].items = run->columns[c].durable_items = open->closed_items[c];
        run->groups[run->columns[c].group].items = open->closed_items[c];
    }
    pd_log(PD_LOG_INFO, "run %s: it was closed before; that is told again", run->name);
    run_end(run);
}

void pd_run__hold(const pd_run *run, uint32_t part, bool held) {
    char name[PD_PART_NAME_BYTES + 1];
    pd_datadir_part_name(name, run->name, part);
    (held ? pd_volume_hold : pd_volume_release)(run->volume, name);
}

void pd_run__running(pd_run *run, pd_file *file, const char *name) {
    run->part->file = file;
    run_named(run, name);
    pd_run__hold(run, run->part->number, true);
    pd_run__move(run, PD_RUN_RUNNING);
    pd_run__stop_start(run);
}

void pd_run__opened(pd_run *run, const pd_open_task *open) {
    run->open_outcome = open->outcome;
    if (open->outcome == PD_OPEN_CLOSED) {
        run_closed_before(run, open);
        return;
    }
    if (open->outcome != PD_OPEN_DONE) {
        pd_run__fail(run, open->why.text);
        pd_run__progress(run);
        return;
    }
    pd_run__running(run, open->task.file, open->given_name);
    pd_count(&run->engine->counters.runs_opened, 1);
    pd_log(PD_LOG_INFO, "run %s: opened by %s, %u datasets, batches of up to %" PRIu64 " bytes", run->name,
           run->client_name, run->n_columns, run->batch_bytes);
    pd_run_summary_start(run);
    if (run->events)
        run->events->opened(run->events_user, run);
    if (run->close_when_open)
        pd_run_close(run, run->end_reason);
}

static void run_close_back(pd_event *event) {
    pd_run_part *part = pd_container_of(event, pd_run_part, close.task.event);
    pd_run *run = part->run;
    pd_run__back(run, &part->close.task);
    if (part->close.task.result != 0 || run->state == PD_RUN_FAILED) {
        pd_run__progress(run);
        return;
    }
    if (part == run->before) {
        pd_run__part_closed(run, part);
        run_drop(part);
        pd_run__flush(run);
    } else {
        run->close_done = true;
        pd_run__all_durable(run);
    }
    pd_run__progress(run);
}

void pd_run__order_close(pd_run_part *part) {
    pd_run *run = part->run;
    part->close.task = (pd_task){.event.happened = run_close_back, .kind = PD_TASK_CLOSE};
    part->close.sequence = run->received;
    for (uint32_t c = 0; c < run->n_columns; c++)
        part->ends[c] = run->columns[c].items;
    pd_run__point_take(run, &part->end);
    pd_run__order(run, &part->close_order, &part->close.task, true);
}

static void run_drain_tick(uv_timer_t *timer) {
    run_drain(timer->data);
}

/* All that the run has taken goes into the order, the close behind it. Milliseconds that are owed go first, when there is room for
 * them; on a full disk they stay owed: a run can always be closed. */
static void run_drain(pd_run *run) {
    if (run->drained)
        return;
    if (!pd_run__drop_pay(run) && !pd_volume_look(run->volume).full) {
        uv_timer_start(&run->mark_timer, run_drain_tick, RUN_DRAIN_MS, 0);
        return;
    }
    run->drained = true;
    uv_timer_stop(&run->mark_timer);
    pd_run__seal_all(run);
    pd_run__last_attributes(run);
    pd_run__order_close(run->part);
    if (run->engine->stopping)
        pd_run_replay_end(run);
    pd_run_summary_finish(run);
    pd_run__flush(run);
}

void pd_run_close(pd_run *run, const char *reason) {
    if (run->turning) {
        pd_run__turn_close(run, reason);
        return;
    }
    if (run->state != PD_RUN_OPENING && run->state != PD_RUN_RUNNING)
        return;
    run->end_reason = reason;
    if (run->state == PD_RUN_OPENING) {
        run->close_when_open = true;
        return;
    }
    run->close_at = 0;
    pd_run__goes_on(run);
    pd_run__move(run, PD_RUN_DRAINING);
    uv_timer_stop(&run->mark_timer);
    uv_timer_stop(&run->resume_timer);
    uv_timer_stop(&run->stop_timer);
    pd_run__drop_over(run);
    run_drain(run);
}

static double run_resume_seconds(const pd_run *run) {
    return (double)run->engine->config->resume_timeout_ms / 1e3;
}

static void run_resume_over(uv_timer_t *timer) {
    pd_run *run = timer->data;
    pd_log(PD_LOG_WARNING, "run %s: it is closed: its producer did not come back within %g s", run->name,
           run_resume_seconds(run));
    pd_run_close(run, "its producer did not come back");
}

void pd_run__wait_for_producer(pd_run *run) {
    uv_timer_start(&run->resume_timer, run_resume_over, run->engine->config->resume_timeout_ms, 0);
}

void pd_run_attach(pd_run *run, const pd_run_events *events, void *user) {
    run->events = events;
    run->events_user = user;
    uv_timer_stop(&run->resume_timer);
}

void pd_run_detach(pd_run *run) {
    run->events = NULL;
    run->events_user = NULL;
    if (run->state != PD_RUN_OPENING && run->state != PD_RUN_RUNNING)
        return;
    pd_log(PD_LOG_WARNING, "run %s: its producer is gone; waiting %g s for it", run->name,
           run_resume_seconds(run));
    pd_run__wait_for_producer(run);
}

void pd_run_alive(pd_run *run, bool known, int64_t ticks) {
    if (run->state != PD_RUN_RUNNING || run->turning || !known)
        return;
    run->summary.instrument_time_known = run->instrument_time_known = true;
    run->summary.instrument_time = run->instrument_time = ticks;
}

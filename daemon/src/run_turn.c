/* Turning: a file that cannot be written or synced any more. What of it is durable stays so, and nothing else of it counts: it is not
 * synced again and called good. The run lets go of all that it has taken since, in the ring, in the pool and with the writer;
 * when everything is back and the files are dropped it is what it was at the message `durable`, and asks for a new part. When that is
 * on the disk the producer is told to send the rest again, and the run goes on. A part that was begun behind the failed one follows what is lost: the new one takes its name.
 *
 * The file stays as it is, for a recovery, which ends it where the new part begins.
 *
 * Where no new file can be made, or the daemon is stopping, or turn follows upon turn, the run fails. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "run.h"

enum { TURNS_MAX = 8 /* in which nothing becomes durable */ };

/* ---- where a run is ---- */

void pd_run__point_take(const pd_run *run, pd_run_point *point) {
    *point = (pd_run_point){.sequence = run->received,
                            .first_photon = run->part->first_photon,
                            .rebase = run->rebase,
                            .dropped = run->dropped,
                            .loss_item = run->loss_item,
                            .loss_count = run->loss_count,
                            .batches = run->batches,
                            .lost_before = run->lost_before,
                            .received_bytes = run->received_bytes,
                            .instrument_time_known = run->instrument_time_known,
                            .instrument_time = run->instrument_time};
    memcpy(point->n_records, run->n_records, sizeof point->n_records);
}

static void turn_gaps_end(pd_run *run) {
    for (uint32_t g = 0; g < run->n_groups; g++)
        run->dropped.gaps[g] = (pd_drop_gap){0};
}

/* The rows are those that are durable; the rest as it was then. */
static void turn_back_to(pd_run *run, const pd_run_point *point) {
    pd_drop_gap *gaps = run->dropped.gaps;
    for (uint32_t c = 0; c < run->n_columns; c++) {
        pd_column *column = &run->columns[c];
        column->items = column->safe_items = column->written_items = column->durable_items;
        run->groups[column->group].items = column->items;
    }
    uint64_t photons = run->groups[run->photon_group].items;
    run->photons_paged = photons;
    run->received = run->safe = run->durable;
    run->rebase = point->rebase;
    pd_rebase_begin(&run->rebase, photons - point->first_photon);
    run->dropped = point->dropped;
    run->dropped.gaps = gaps;
    run->dropped.now = false;
    run->dropped.owed_written = run->dropped.owed; /* the new part begins with it */
    turn_gaps_end(run);
    memcpy(run->n_records, point->n_records, sizeof run->n_records);
    run->loss_item = point->loss_item;
    run->loss_count = point->loss_count;
    run->batches = point->batches;
    run->lost_before = point->lost_before;
    run->received_bytes = point->received_bytes;
    run->instrument_time_known = point->instrument_time_known;
    run->instrument_time = point->instrument_time;
    run->held_ns = 0;
    pd_kept_attributes_take_back(&run->kept);
    pd_rate_init(&run->photon_rate);
    pd_rate_init(&run->byte_rate);
}

/* ---- turning ---- */

bool pd_run__may_turn(const pd_run *run, const pd_file *file) {
    bool open = run->state == PD_RUN_RUNNING || run->state == PD_RUN_DRAINING || run->state == PD_RUN_CLOSING;
    return open && pd_file_disk_failed(file) && !run->engine->stopping && run->n_turns < TURNS_MAX;
}

/* What it has in the ring is given up; what is not durable is known when all is back. */
void pd_run__turn(pd_run *run, const char *why) {
    const pd_group *photons = &run->groups[run->photon_group];
    pd_error_set(&run->turn_why, "%s", why);
    if (run->turning)
        return;
    run->turning = true;
    pd_log(PD_LOG_ERROR, "run %s: %s; nothing later counts as durable: the run is to go on in a new file",
           run->name, why);
    uv_timer_stop(&run->mark_timer);
    uv_timer_stop(&run->part_timer);
    uv_timer_stop(&run->summary.timer);
    pd_stage_drop(&run->engine->stages, PD_STAGE_RING, PD_CAUSE_FAILED, photons->items - run->photons_paged);
    run->photons_paged = photons->items;
    pd_run__give_up(run);
}

void pd_run__turn_close(pd_run *run, const char *reason) {
    if (run->engine->stopping) {
        pd_run__fail(run, run->turn_why.text);
        pd_run__progress(run);
    } else if (run->state == PD_RUN_RUNNING && reason) { /* a client asks again when it has sent again */
        run->close_at = run->reopening ? run->turn_received : run->received;
        run->close_reason = reason;
    }
}

/* ---- and on ---- */

static int turn_leave(pd_run *run, const pd_run_part *part) {
    pd_run_left *list = realloc(run->left, (run->n_left + 1) * sizeof *list);
    if (!list)
        return -1;
    run->left = list;
    pd_run_left *left = &list[run->n_left];
    *left = (pd_run_left){.number = part->number, .ends = calloc(run->n_columns, sizeof *left->ends)};
    if (!left->ends)
        return -1;
    run->n_left++;
    for (uint32_t c = 0; c < run->n_columns; c++)
        left->ends[c] = run->columns[c].durable_items;
    return 0;
}

static void turn_count(pd_run *run) {
    pd_engine *engine = run->engine;
    pd_stage_drop(&engine->stages, PD_STAGE_DISK, PD_CAUSE_FAILED, run->turn_photons);
    pd_count(&engine->counters.photons_rolled_back, run->turn_photons);
    run->turn_photons = 0;
}

static void turn_tell(pd_run *run) {
    char name[PD_PART_NAME_BYTES + 1], file[PD_FILE_NAME_BYTES];
    pd_error text;
    pd_datadir_part_name(name, run->name, run->left[run->n_left - 1].number);
    snprintf(file, sizeof file, "%s.photons", name);
    pd_error_set(&text, "%s; it is to be ended after batch %" PRIu64 ", the run goes on in another file",
                 run->turn_why.text, run->durable);
    pd_recovery_state_add(&run->engine->recovery, file, text.text);
}

/* A run that was being closed is closed when it has come so far again. */
static void turn_reopen(pd_run *run) {
    if (run->state != PD_RUN_RUNNING) {
        run->close_at = run->received;
        run->close_reason = run->end_reason;
        pd_run__move(run, PD_RUN_RUNNING);
    }
    run->end_reason = NULL;
    run->drained = run->close_done = false;
    run->sync_again = run->sync_out;
    run->sync_out = false;
    run->n_parts_closed += run->before ? 2 : 1;
}

void pd_run__turn_over(pd_run *run) {
    run->turning = run->reopening = false;
    turn_tell(run);
    turn_count(run);
    pd_run__gap(run, &run->engine->counters.gaps_failed_sync, "sync_failed", NULL, 0);
    if (run->events)
        run->events->turned(run->events_user, run);
    else if (!uv_is_active((uv_handle_t *)&run->resume_timer))
        pd_run__wait_for_producer(run);
    run->engine->room_came = true;
    pd_run_summary_kick(run);
    pd_run__stop_check(run);
}

void pd_run__turned(pd_run *run) {
    pd_run_part *failed = run->before ? run->before : run->part;
    bool displaces = run->before && run->part->was_there;
    uint32_t number = displaces ? run->part->number : failed->number + 1;
    if (run->engine->stopping || turn_leave(run, failed) != 0) {
        pd_run__fail(run, run->turn_why.text);
        pd_run__progress(run);
        return;
    }
    run->reopening = true;
    run->n_turns++;
    turn_reopen(run);
    run->turn_received = run->received;
    run->turn_photons = pd_run_photons_in_flight(run);
    pd_stage_drop(&run->engine->stages, PD_STAGE_SUMMARY, PD_CAUSE_FAILED, pd_run_summary_backlog(run));
    turn_back_to(run, &run->durable_point);
    if (pd_run_summary_anew(run) != 0)
        pd_run__fail(run, "out of memory for its summary");
    else
        pd_run__part_instead(run, number, displaces);
    pd_run__progress(run);
}

/* ---- the parts that are left ---- */

uint64_t pd_run__part_counts(const pd_run *run, uint32_t part, uint32_t column) {
    for (size_t i = 0; i < run->n_left; i++)
        if (run->left[i].number == part)
            return run->left[i].ends[column];
    return UINT64_MAX;
}

void pd_run__turn_free(pd_run *run) {
    for (size_t i = 0; i < run->n_left; i++)
        free(run->left[i].ends);
    free(run->left);
}

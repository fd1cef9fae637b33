#include "run_replay.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "run.h"
#include "told.h"

enum { REPLAY_ROWS = 65536 }; /* of one job */

static pd_run_replay *replay_of(pd_run *run) {
    return &run->summary.replay;
}

/* Items of a group that are in the file, or in its tail. */
static uint64_t replay_written(const pd_run *run, uint32_t g) {
    return run->columns[run->groups[g].columns[0]].written_items;
}

int pd_run_replay_begin(pd_run *run) {
    pd_run_replay *r = replay_of(run);
    bool any = false;
    if (!run->summary.summary)
        return 0;
    r->upto = calloc(run->n_groups, sizeof *r->upto);
    r->rows = calloc(run->n_columns, sizeof *r->rows);
    r->done = calloc(run->n_groups, sizeof *r->done);
    if (!r->upto || !r->rows || !r->done)
        return -1;
    for (uint32_t g = 0; g < run->n_groups; g++)
        any |= run->groups[g].items > 0;
    r->on = any;
    pd_summary_set_incomplete(run->summary.summary, any);
    return 0;
}

/* Pages are held from here on: those that are filling begin with what is read still. */
static void replay_join(pd_run *run) {
    pd_run_replay *r = replay_of(run);
    r->joining = true;
    for (uint32_t g = 0; g < run->n_groups; g++)
        r->upto[g] = run->groups[g].items;
    for (uint32_t c = 0; c < run->n_columns; c++)
        if (run->columns[c].filling)
            pd_run_summary_hold(run, run->columns[c].filling);
}

static uint64_t replay_limit(const pd_run *run, uint32_t g) {
    uint64_t written = replay_written(run, g);
    const pd_run_replay *r = &run->summary.replay;
    return r->joining && r->upto[g] < written ? r->upto[g] : written;
}

static bool replay_is_whole(const pd_run *run) {
    for (uint32_t g = 0; g < run->n_groups; g++)
        if (run->summary.binned[g] < run->summary.replay.upto[g])
            return false;
    return true;
}

/* A group of which the part that is read may hold more. Returns false when there is none. */
static bool replay_group(pd_run *run) {
    pd_run_replay *r = replay_of(run);
    for (uint32_t g = 0; g < run->n_groups; g++) {
        r->group = g;
        r->first = run->summary.binned[g];
        r->limit = replay_limit(run, g);
        if (r->first < r->limit && !r->done[g])
            return true;
    }
    return false;
}

/* The part that is read is read to its end, and the run has another. */
static bool replay_next_part(pd_run *run) {
    pd_run_replay *r = replay_of(run);
    bool more = false;
    for (uint32_t g = 0; g < run->n_groups; g++)
        more |= run->summary.binned[g] < replay_limit(run, g);
    if (!more || r->part >= run->part->number)
        return false;
    d7_columns_free(r->columns);
    d7_reader_free(r->reader);
    r->columns = NULL;
    r->reader = NULL;
    r->part++;
    memset(r->done, 0, run->n_groups * sizeof *r->done);
    return true;
}

bool pd_run_replay_next(pd_run *run) {
    pd_run_replay *r = replay_of(run);
    for (;;) {
        if (replay_group(run))
            return true;
        if (replay_next_part(run))
            continue;
        if (r->joining)
            break;
        replay_join(run);
    }
    if (replay_is_whole(run)) {
        r->on = false;
        pd_summary_set_incomplete(run->summary.summary, false);
        run->summary.changed = true;
        pd_log(PD_LOG_INFO, "run %s: its summary has caught up", run->name);
    }
    return false;
}

/* ---- the pool ---- */

/* Opens the part's file, and learns where in the run it begins. */
static int replay_open(pd_run *run, d7_error *err) {
    pd_run_replay *r = replay_of(run);
    char name[PD_PART_NAME_BYTES + 1], path[PATH_MAX];
    const pd_datadir *dir = pd_volume_datadir(run->volume);
    d7_reader_options options;
    d7_reader_options_init(&options);
    options.io = pd_datadir_io(dir);
    pd_datadir_file_path(dir, pd_datadir_part_name(name, run->name, r->part), path);
    int code = d7_reader_open(&r->reader, path, &options, err);
    if (code)
        return code;
    json_t *items = pd_told_json(r->reader, "photond.first_items", 0);
    for (uint32_t c = 0; c < run->n_columns; c++) {
        uint64_t first = (uint64_t)json_integer_value(json_array_get(items, c));
        r->rows[c] = pd_dataset_part_row(&run->columns[c].dataset, first);
        if (run->columns[c].group == run->photon_group)
            r->first_photon = first;
    }
    json_decref(items);
    return 0;
}

/* Items of the run's group up to the end that the reader knows: a slot that is being written at this moment is passed over
 * for an older. */
static uint64_t replay_known(const pd_run *run) {
    const pd_run_replay *r = &run->summary.replay;
    const pd_group *group = &run->groups[r->group];
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < group->n_columns; i++) {
        d7_dataset_info info = {0};
        if (d7_reader_dataset(r->reader, group->columns[i], &info) != 0 || info.items < least)
            least = info.items;
    }
    return r->rows[group->columns[0]] + least;
}

/* Leaves `columns` NULL when there is nothing to read yet, or any more. */
static int replay_open_columns(pd_run *run, d7_error *err) {
    pd_run_replay *r = replay_of(run);
    const pd_group *group = &run->groups[r->group];
    d7_columns_options options;
    int code = r->reader ? d7_reader_refresh(r->reader, NULL, err) : replay_open(run, err);
    if (code)
        return code;
    uint64_t row = r->rows[group->columns[0]];
    uint64_t known = replay_known(run), end = known < r->limit ? known : r->limit;
    if (r->first < row)
        return D7_ERR_STATE;
    uint64_t counts = pd_run__part_counts(run, r->part, group->columns[0]);
    r->ended = r->first >= counts || (r->first >= known && d7_reader_state(r->reader) == D7_STATE_CLOSED);
    end = end < counts ? end : counts;
    if (end <= r->first)
        return 0;
    d7_columns_options_init(&options);
    options.from = r->first - row;
    options.to = end - row;
    options.chunk_items = REPLAY_ROWS;
    r->columns_group = r->group;
    r->columns_end = end;
    return d7_columns_open(&r->columns, r->reader, group->columns, group->n_columns, &options, err);
}

static int replay_piece(pd_run *run, d7_error *err) {
    pd_run_replay *r = replay_of(run);
    d7_chunk chunk = {0};
    int code = 0;
    if (r->columns && (r->columns_group != r->group || r->first == r->columns_end)) {
        d7_columns_free(r->columns);
        r->columns = NULL;
    }
    if (!r->columns)
        code = replay_open_columns(run, err);
    if (code || !r->columns)
        return code;
    code = d7_columns_next(r->columns, &chunk, err);
    if (code)
        return code;
    if (chunk.n == 0 || r->rows[run->groups[r->group].columns[0]] + chunk.first_item != r->first)
        return D7_ERR_STATE;
    pd_summary_first_photon(run->summary.summary, r->first_photon);
    pd_summary_bin(run->summary.summary, r->group, chunk.values, r->first, chunk.n);
    r->n_binned = chunk.n;
    return 0;
}

void pd_run_replay_work(pd_run *run) {
    pd_run_replay *r = replay_of(run);
    d7_error err = {.text = "the file does not hold what was written"};
    r->n_binned = 0;
    r->ended = false;
    r->result = replay_piece(run, &err);
    if (r->result)
        pd_error_set(&r->error, "%s", err.text);
}

/* ---- the end ---- */

void pd_run_replay_done(pd_run *run) {
    pd_run_replay *r = replay_of(run);
    pd_run_summary_binned(run, r->group, r->n_binned);
    r->done[r->group] = r->ended;
    run->summary.changed = true;
    if (r->result == 0)
        return;
    r->failed = true;
    r->on = false;
    pd_log(PD_LOG_ERROR, "run %s: its summary cannot be made again from its files: %s", run->name,
           r->error.text);
}

void pd_run_replay_end(pd_run *run) {
    pd_run_replay *r = replay_of(run);
    r->failed |= r->on;
    r->on = false;
}

void pd_run_replay_free(pd_run *run) {
    pd_run_replay *r = replay_of(run);
    d7_columns_free(r->columns);
    d7_reader_free(r->reader);
    free(r->upto);
    free(r->rows);
    free(r->done);
}

#include "run_replay.h"

#include <stdlib.h>

#include "log.h"
#include "run.h"

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
    if (!r->upto)
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

bool pd_run_replay_next(pd_run *run) {
    pd_run_replay *r = replay_of(run);
    for (;;) {
        for (uint32_t g = 0; g < run->n_groups; g++) {
            r->group = g;
            r->first = run->summary.binned[g];
            r->limit = replay_limit(run, g);
            if (r->first < r->limit)
                return true;
        }
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

/* Rows of the group that the reader knows: a slot that is being written at this moment is passed over for an older. */
static uint64_t replay_known(const pd_run *run) {
    const pd_group *group = &run->groups[run->summary.replay.group];
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < group->n_columns; i++) {
        d7_dataset_info info = {0};
        if (d7_reader_dataset(run->summary.replay.reader, group->columns[i], &info) != 0 ||
            info.items < least)
            least = info.items;
    }
    return least;
}

/* Leaves `columns` NULL when there is nothing to read yet. */
static int replay_open_columns(pd_run *run, d7_error *err) {
    pd_run_replay *r = replay_of(run);
    const pd_group *group = &run->groups[r->group];
    d7_columns_options options;
    int code = r->reader ? d7_reader_refresh(r->reader, NULL, err)
                         : d7_reader_open(&r->reader, run->path, NULL, err);
    if (code)
        return code;
    uint64_t known = replay_known(run);
    d7_columns_options_init(&options);
    options.from = r->first;
    options.to = known < r->limit ? known : r->limit;
    options.chunk_items = REPLAY_ROWS;
    if (options.to <= r->first)
        return 0;
    r->columns_group = r->group;
    r->columns_end = options.to;
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
    if (chunk.n == 0 || chunk.first_item != r->first)
        return D7_ERR_STATE;
    pd_summary_bin(run->summary.summary, r->group, chunk.values, chunk.first_item, chunk.n);
    r->n_binned = chunk.n;
    return 0;
}

void pd_run_replay_work(pd_run *run) {
    pd_run_replay *r = replay_of(run);
    d7_error err = {.text = "the file does not hold what was written"};
    r->n_binned = 0;
    r->result = replay_piece(run, &err);
    if (r->result)
        pd_error_set(&r->error, "%s", err.text);
}

/* ---- the end ---- */

void pd_run_replay_done(pd_run *run) {
    pd_run_replay *r = replay_of(run);
    pd_run_summary_binned(run, r->group, r->n_binned);
    run->summary.changed = true;
    if (r->result == 0)
        return;
    r->failed = true;
    r->on = false;
    pd_log(PD_LOG_ERROR, "run %s: its summary cannot be made again after the restart: %s", run->name,
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
}

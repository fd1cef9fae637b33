/* The summary of a run: a chain of pool jobs, at most one at a time, each owning the accumulators while it runs, so
 * that no histogram is ever shared. A job bins tiles: runs of items of one group, one pointer per column into the
 * pages of the ring. A tile ends where a page of any column ends.
 *
 *   bin, bin, ... -> (at an export time, or when the run is closed: bin the rest) -> freeze -> exporter -> bin ...
 *
 * One snapshot at a time: an export time that finds the one before still under way is skipped and counted.
 * Thread: the loop's, but for the work of the jobs.
 */
#ifndef PD_RUN_SUMMARY_H
#define PD_RUN_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "exporter.h"
#include "inbox.h"
#include "queue.h"
#include "run_replay.h"
#include "summary.h"

struct pd_run;
struct pd_page;
struct pd_run_spec;

enum { PD_TILES_PER_JOB = 16 };

typedef struct pd_tile {
    uint32_t group;
    uint32_t n_items;
    uint64_t first_item;
    uint64_t first_photon; /* as of its page */
    const void **columns;  /* one per column of the group */
} pd_tile;

typedef struct pd_run_summary {
    pd_summary *summary;    /* NULL: none for this run */
    pd_time_base time_base; /* with which it is made */
    pd_summary_options options;
    uint64_t *binned;      /* [groups] items handed to finished jobs */
    uint64_t *upto;        /* [groups] what the freeze that is wanted covers */
    uint64_t upto_dropped; /* photons that were dropped then */

    uv_work_t work;
    bool busy;    /* a job is in the pool and owns all but these flags */
    bool freezes; /* that job is a freeze */
    bool replays; /* it reads the file */
    pd_tile tiles[PD_TILES_PER_JOB];
    uint32_t n_tiles;
    const void **pointers; /* [PD_TILES_PER_JOB * widest group] */
    uint32_t widest_group;
    pd_list attributes; /* set since the last job, not yet told to the summary; taken along by the next */
    pd_link *job_attributes;
    bool instrument_time_known; /* likewise */
    int64_t instrument_time;
    uint64_t elapsed_ns; /* the job's: since the run was opened */
    bool job_instrument_time_known;
    int64_t job_instrument_time;
    uint64_t job_dropped; /* a freeze: photons dropped until then */
    bool job_final;       /* a freeze: it is the last */
    uint64_t job_photons; /* a freeze: that it covers */
    int job_result;
    pd_error job_error;

    pd_run_replay replay; /* of what was recorded before a restart */
    bool freeze_wanted;
    bool final_wanted; /* the run is closed: once more, then done */
    bool last_failed;  /* the export tried last is not in place */
    bool exporting;    /* the snapshot is with the exporter */
    bool changed;      /* since the last freeze */
    uv_timer_t timer;
    pd_snapshot snapshot;
    pd_export_target target;
    pd_export_job job;
    pd_event exported;

    uint64_t exports, exports_failed, exports_skipped;
    uint64_t last_export_ns; /* 0: none yet */
    uint64_t last_export_photons;
} pd_run_summary;

/* An export now, unless one is under way, which then shows less. Of a running run with a summary. */
void pd_run_summary_export(struct pd_run *run);

/* Makes it safe to free. */
void pd_run_summary_prepare(struct pd_run *run, const struct pd_run_spec *spec);

/* Returns 0, or -1 with err. With summaries off there is none, and all of the following do nothing. */
PD_MUST_USE int pd_run_summary_init(struct pd_run *run, const struct pd_run_spec *spec, pd_error *err);

/* The run has gone back to what its files hold, which is read again; no job is in the pool. Returns 0, or -1 when out of memory. */
PD_MUST_USE int pd_run_summary_anew(struct pd_run *run);

/* The run has its name: exports may begin. */
void pd_run_summary_start(struct pd_run *run);

/* A page was begun, sealed; new items are there. */
void pd_run_summary_hold(struct pd_run *run, struct pd_page *page);
void pd_run_summary_sealed(struct pd_run *run, struct pd_page *page);
void pd_run_summary_kick(struct pd_run *run);

/* The last export is wanted now. */
void pd_run_summary_finish(struct pd_run *run);

/* So many more items of a group are binned. */
void pd_run_summary_binned(struct pd_run *run, uint32_t group, uint64_t n);

/* Photons that are not binned yet. */
uint64_t pd_run_summary_backlog(const struct pd_run *run);

/* Nothing of it is under way; after pd_run_summary_finish(): and the last export was done. */
bool pd_run_summary_idle(const struct pd_run *run);

/* Lets go of all pages, for a run that failed; it must not be busy. */
void pd_run_summary_release(struct pd_run *run);

void pd_run_summary_free(struct pd_run *run);

#endif

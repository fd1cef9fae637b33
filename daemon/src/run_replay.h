/* After a restart, and when a run has gone back to what is durable, a summary begins with what the files hold already: they are read
 * again, in order, while the run goes on.
 *
 *   reading    jobs of the pool, one at a time, read the file and bin; pages of what comes meanwhile are not held for
 *              the summary, they will be read as well
 *   joining    all that the file and its tail held is binned: from now on pages are held, and what came before that
 *              is read once a mark has brought it into the file
 *   over       the summary goes on with the pages it holds
 *
 * Exports meanwhile say so: `incomplete`. Thread: the loop's, but for the work of the jobs.
 */
#ifndef PD_RUN_REPLAY_H
#define PD_RUN_REPLAY_H

#include <d7/d7.h>
#include <stdbool.h>
#include <stdint.h>

#include "error.h"

struct pd_run;

typedef struct pd_run_replay {
    bool on; /* reading or joining */
    bool joining;
    bool failed;    /* it could not be read: the summary has ended */
    uint64_t *upto; /* [groups] where the pages that are held take over, once joining */

    /* The job's. */
    uint32_t part; /* that is read */
    d7_reader *reader;
    uint64_t *rows;        /* [n_columns] of the run: the first row of the part's file */
    uint64_t first_photon; /* of the run: the part's */
    bool *done;            /* [groups] the part holds no more of it */
    d7_columns *columns;   /* of `group`; NULL: to be opened */
    uint32_t columns_group;
    uint64_t columns_end;
    uint32_t group;
    uint64_t first, limit; /* rows that are wanted */
    uint64_t n_binned;
    bool ended; /* the part holds no more of the group */
    int result;
    pd_error error;
} pd_run_replay;

/* The run has got items that its summary has not. Returns 0, or -1 when out of memory. */
PD_MUST_USE int pd_run_replay_begin(struct pd_run *run);

/* What is to be read next. Returns whether there is something: then pd_run_replay_work() is the pool's. */
bool pd_run_replay_next(struct pd_run *run);

/* The pool: reads a piece and bins it. */
void pd_run_replay_work(struct pd_run *run);

/* It is back. */
void pd_run_replay_done(struct pd_run *run);

/* Gives it up: the exports stay incomplete. */
void pd_run_replay_end(struct pd_run *run);
void pd_run_replay_free(struct pd_run *run);

#endif

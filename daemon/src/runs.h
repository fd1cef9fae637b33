/* The runs that are open, and those that ended not long ago: so that an Open or a Close whose answer was lost can be
 * answered again. Thread: the loop's.
 */
#ifndef PD_RUNS_H
#define PD_RUNS_H

#include "run.h"

/* A run that has ended. */
typedef struct pd_past_run {
    struct pd_past_run *next; /* the one that ended after it */
    uint8_t id[PD_RUN_ID_BYTES];
    char instance[PD_INSTANCE_BYTES + 1];
    char name[PD_RUN_NAME_BYTES + 1];
    bool failed;
    bool unexported; /* its last export failed */
    char *failure;   /* NULL: it was closed */
    uint64_t dropped_photons;
    uint8_t *closed; /* [closed_bytes] a ServerMessage with Closed, handle 0 */
    size_t closed_bytes;
} pd_past_run;

typedef struct pd_runs {
    pd_engine *engine;
    pd_run **items; /* [n], in the order of opening */
    size_t n, cap;
    size_t
        most; /* open at a time: cap, or what there are descriptors for; those that are recovered may be more */
    pd_past_run *oldest, *newest;
    size_t n_past, past_bytes;
    void (*emptied)(void *user); /* called when the last open run has ended; NULL: not */
    void *emptied_user;
} pd_runs;

/* Returns 0, or -1 when out of memory. */
int pd_runs_init(pd_runs *runs, pd_engine *engine);
void pd_runs_free(pd_runs *runs);

/* Opens a run, if there may be another. Returns 0; -1 with why. */
PD_MUST_USE int pd_runs_open(pd_runs *runs, const pd_run_spec *spec, pd_run **ret, pd_refusal *why);

/* Goes on with a recovered one: see pd_run_resume(). */
PD_MUST_USE int pd_runs_resume(pd_runs *runs, const pd_run_spec *spec, pd_file *file,
                               const d7_tail_slot *slot, pd_refusal *why);

/* The open run of that name; NULL: there is none. */
pd_run *pd_runs_find_name(const pd_runs *runs, const char *name);

pd_run *pd_runs_find(const pd_runs *runs, const uint8_t id[PD_RUN_ID_BYTES]);
const pd_past_run *pd_runs_find_past(const pd_runs *runs, const uint8_t id[PD_RUN_ID_BYTES]);

/* Closes them all; they end one by one. */
void pd_runs_close_all(pd_runs *runs, const char *reason);

#endif

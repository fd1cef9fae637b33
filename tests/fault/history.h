/* One recording's life on the disk model: crashes, recoveries, and what is checked after each. */
#ifndef TESTS_FAULT_HISTORY_H
#define TESTS_FAULT_HISTORY_H

#include "recorder.h"

typedef enum model_design {
    DESIGN_FULL,
    DESIGN_TWO_SLOTS, /* must fail: in turns, without proof */
    DESIGN_NO_LIMIT   /* must fail: parts are recovered past where the next one begins */
} model_design;

enum { HISTORY_CUTS_MAX = 256 };

typedef struct copy {
    uint8_t *data; /* [bytes] owned; NULL: no such file */
    size_t bytes;
} copy;

/* What happened, to see that the histories reach what they are for. */
typedef struct history_counts {
    unsigned long lives, batches, slots, syncs, failed_syncs, parts, power_cuts, kills;
    unsigned long recoveries, cut_short, again, resumed, passed_over, cut, closed, peeks;
} history_counts;

typedef struct history {
    run run;
    recorder recorder;
    model_design design;
    bool closing, closed;
    copy whole; /* the file as it was when it had been closed; no data: not yet */
    struct {
        char path[64];
        copy content;
    } cuts[HISTORY_CUTS_MAX]; /* what recoveries kept */
    size_t n_cuts;
    /* the sync under way */
    bool in_flight;
    uint64_t flight_batch;
    enum { SYNC_WAITS, SYNC_RUNS, SYNC_ENDED } sync[2]; /* of the file, of its tail */
    bool synced;
    history_counts counts;
} history;

/* Runs the history of that seed. Returns what was found wrong, NULL: nothing. counts may be NULL; added to.
 * */
const char *history_run(history *h, model_design design, uint64_t seed, history_counts *counts);

#endif

/* The eye on the wall clock: when it is set, or the machine slept, it and the monotonic clock part; that is written into each open
 * run. Thread: the loop's. */
#ifndef PD_CLOCK_WATCH_H
#define PD_CLOCK_WATCH_H

#include "runs.h"

typedef struct pd_clock_watch {
    bool begun;
    uint64_t monotonic_ns;
    int64_t ahead_ns; /* wall clock less monotonic clock, then */
} pd_clock_watch;

/* To be called about once a second. */
void pd_clock_watch_look(pd_clock_watch *watch, const pd_runs *runs);

/* By how much the wall clock was stepped between two looks: what is left when it may have been slewed by 500 millionths; 0: less
 * than 0.1 s. Pure. */
int64_t pd_clock_step_ns(const pd_clock_watch *before, const pd_clock_watch *now);

#endif

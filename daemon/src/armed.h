/* Runs that were announced by `photonctl start` and that no producer has opened yet: the name, ready for the next Open
 * that brings none. Thread: the loop's.
 */
#ifndef PD_ARMED_H
#define PD_ARMED_H

#include <stddef.h>
#include <stdint.h>

#include "datadir.h"
#include "error.h"
#include "run_stop.h"

enum { PD_ARMED_MAX = 64, PD_PROFILE_NAME_BYTES = 128 };

typedef struct pd_armed_run {
    char name[PD_RUN_NAME_BYTES + 1];
    char profile[PD_PROFILE_NAME_BYTES + 1]; /* "": whichever the producer brings */
    pd_run_stop stop;                        /* goes before what the producer asks for */
    uint64_t since_ns;
} pd_armed_run;

/* In the order in which they were announced. */
typedef struct pd_armed {
    pd_armed_run runs[PD_ARMED_MAX];
    size_t n;
} pd_armed;

/* Returns 0; -1 with err: too many, this name twice, or a text that is too long. */
PD_MUST_USE int pd_armed_add(pd_armed *armed, const char *name, const char *profile, pd_run_stop stop,
                             uint64_t now_ns, pd_error *err);

/* The one that was announced first of those that a producer with this profile ("": it brings datasets) may join; NULL:
 * none. Valid until the next call. */
const pd_armed_run *pd_armed_for(const pd_armed *armed, const char *profile);

/* Takes one out. Returns 0, or -1: there is none of that name. */
int pd_armed_remove(pd_armed *armed, const char *name);

#endif

/* Names of runs are unique over all data folders. Each folder says itself what is in it; this is what the others know of it:
 * the names found at the start, and those that were given since. With one folder there is none of this.
 * Thread: any, once the folders have been added.
 */
#ifndef PD_RUN_NAMES_H
#define PD_RUN_NAMES_H

#include <pthread.h>
#include <stdbool.h>

#include "datadir.h"
#include "disk.h"

typedef struct pd_run_names pd_run_names;

PD_MUST_USE int pd_run_names_create(pd_run_names **ret, pd_error *err);
void pd_run_names_free(pd_run_names *names);

/* Learns what is in a folder. Both are borrowed. Returns 0; -1 with err. */
PD_MUST_USE int pd_run_names_add(pd_run_names *names, const pd_datadir *dir, const pd_disk *disk,
                                 pd_error *err);

/* Takes the name for a folder. False: another one has it. A folder that has it by what is known is asked, unless its disk
 * hangs. NULL: true. */
bool pd_run_names_claim(pd_run_names *names, const char *name, const pd_datadir *dir);

/* What became of a claim: the files are there, or they are not. */
void pd_run_names_settle(pd_run_names *names, const char *name, bool there);

#endif

/* What the start finds of the daemon before: runs that were open when it ended. They are those of the data folder that
 * have a tail (NAME.photons.tail); no other file is touched.
 *
 *   recovered   the file is cut to what its newest true slot says, and the run is there again, detached: its producer
 *               may go on within the resume time, else it is closed
 *   closed      the end was in the file already: only the tail is dropped
 *   removed     a tail without a file and without a batch: an opening that was cut short
 *   failed      nothing is touched; said in the log and the status at every start
 *
 * Before the threads have work and before anything listens. It reads what was written since the last sync, and the
 * islands: how long it takes does not depend on how much was recorded but on how much was under way.
 */
#ifndef PD_RECOVERY_H
#define PD_RECOVERY_H

#include "producers.h"
#include "runs.h"

/* Goes through the data folder; what cannot be recovered never keeps the daemon from starting. */
void pd_recovery_run(pd_engine *engine, pd_runs *runs, pd_producers *producers);

#endif

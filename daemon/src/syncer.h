/* The syncer: one thread of a volume that does the waiting for the disk, so that the writer goes on. It
 * carries out the last step of opens, marks and closes (volume.h) and hands them back to the loop.
 */
#ifndef PD_SYNCER_H
#define PD_SYNCER_H

#include "disk.h"
#include "volume.h"

typedef struct pd_syncer pd_syncer;

/* `disk`, `dir` and `inbox` must outlive it. Returns 0, or -1 with err. */
PD_MUST_USE int pd_syncer_start(pd_syncer **ret, pd_disk *disk, const pd_datadir *dir, pd_inbox *inbox,
                                pd_error *err);

/* The writer: hands over an open, mark or close whose own part is done. */
void pd_syncer_submit(pd_syncer *syncer, pd_task *task);

/* Ends the thread when all is done. NULL is fine. */
void pd_syncer_stop(pd_syncer *syncer);

#endif

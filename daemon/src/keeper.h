/* The keeper: a thread that sees to files that are final. It runs the configured hook for each (hook.h), and removes old runs
 * (retention.h). Nobody waits for it.
 *
 * What is to be done is written down in the data folder, and so survives any end of the daemon:
 *
 *   .photond/NAME.final    NAME.photons is final and its hook has not ended with 0 yet. It is what was its tail, or the note
 *                          that it was to be certified. A hook that fails is tried again, after longer and longer waits
 *
 * So a hook is run at least once for each file; twice when the daemon ends between the hook's end and the note's. */
#ifndef PD_KEEPER_H
#define PD_KEEPER_H

#include "counters.h"
#include "datadir.h"
#include "error.h"

typedef struct pd_keeper pd_keeper;

typedef struct pd_keeper_options {
    const char *hook; /* absolute path of a program; "": none */
    uint64_t hook_timeout_ms;
    uint64_t keep_last; /* as in retention.h */
    uint64_t max_total_bytes;
    pd_counters *counters;
} pd_keeper_options;

/* Whether the options leave anything to do. */
bool pd_keeper_has_work(const pd_keeper_options *options);

/* Starts the thread over a folder, which must outlive it. Returns 0, or -1 with err. */
PD_MUST_USE int pd_keeper_start(pd_keeper **ret, const pd_datadir *dir, const pd_keeper_options *options,
                                pd_error *err);

/* The file of this name is still to be exported, or not any more: until then it is not seen to. NULL is fine. Any thread. */
void pd_keeper_hold(pd_keeper *keeper, const char *name);
void pd_keeper_release(pd_keeper *keeper, const char *name);

/* NAME.photons is final: the file `from` of the folder, its tail or another note, becomes the note of that, and the thread is
 * woken. Returns 0 or a negative errno: `from` is there still. Any thread. */
PD_MUST_USE int pd_keeper_take(pd_keeper *keeper, const char *from, const char *name);

/* The same of a file whose tail is gone. NULL is fine. Any thread. */
void pd_keeper_note(pd_keeper *keeper, const char *name);

/* Files whose hook has not ended well yet. NULL: 0. Any thread. */
uint64_t pd_keeper_pending(const pd_keeper *keeper);

/* Ends the thread, and a hook that runs; the next start runs it again. NULL is fine. */
void pd_keeper_stop(pd_keeper *keeper);

#endif

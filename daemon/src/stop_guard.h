/* Ends the process when a disk that does not answer keeps a stop waiting: such a call cannot be taken back, and its thread not be
 * joined. What is open stays as after any other end of the process: the tail says what of it is true, the next start goes on with it.
 *
 * The time runs from the last thing that any disk did, so a stop that is slow but gets on is left alone; and a full disk is waited for,
 * by threads that are alive.
 */
#ifndef PD_STOP_GUARD_H
#define PD_STOP_GUARD_H

#include "engine.h"

/* Exit status of a process that was ended by it. */
enum { PD_STOP_GUARD_EXIT = 3 };

typedef struct pd_stop_guard pd_stop_guard;

/* The stop begins. NULL: it cannot be watched over, which was said. The loop's thread, as all here. */
pd_stop_guard *pd_stop_guard_start(const pd_engine *engine);

/* From now on the engine's threads are being ended: its volumes are not looked at any more. NULL is fine. */
void pd_stop_guard_joining(pd_stop_guard *guard);

/* The stop has come to its end. NULL is fine. */
void pd_stop_guard_end(pd_stop_guard *guard);

#endif

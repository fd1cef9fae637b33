/* photond --rehearse PROFILE --rate R --for T: the whole path (socket, ring, encoders, writer, syncs, summaries, exports) with made
 * events on the real disk, in a hidden folder of the data folder that is removed again, and what came of it. A photond that runs
 * there is not disturbed but by the load.
 */
#ifndef PD_REHEARSE_H
#define PD_REHEARSE_H

#include <stdbool.h>

/* Whether the command line asks for a rehearsal. */
bool pd_rehearse_asked(int argc, char **argv);

/* Does it. Returns the exit status: 0 the rate was sustained, 1 it was not, 2 wrong usage, or it could not be done. */
int pd_rehearse(int argc, char **argv);

#endif

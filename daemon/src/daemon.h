/* photond as a whole: starts its parts, runs the loop, stops.
 *
 *   starting --> running --> stopping (runs are closed) --> ending (clients are told, handles close) --> over
 *
 * SIGTERM and SIGINT begin the stop; a second one ends the waiting for a full disk. SIGHUP reads the configuration again
 * (reload.h). A service manager is told of all of this (service.h).
 */
#ifndef PD_DAEMON_H
#define PD_DAEMON_H

#include "config.h"

/* `argc` and `argv` are the command line that the configuration came from, for reading it again.
 * Exit status: 0 stopped as asked; 1 stopped, but a run could not be closed; 2 could not start. */
int pd_daemon_run(pd_config *config, int argc, char **argv);

#endif

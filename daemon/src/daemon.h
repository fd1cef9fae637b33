/* photond as a whole: starts its parts, runs the loop, stops.
 *
 *   starting --> running --> stopping (runs are closed) --> ending (clients are told, handles close) --> over
 *
 * SIGTERM and SIGINT begin the stop; a second one ends the waiting for a full disk. SIGHUP is ignored with a log line:
 * re-reading the configuration comes with the service work.
 */
#ifndef PD_DAEMON_H
#define PD_DAEMON_H

#include "config.h"

/* Exit status: 0 stopped as asked; 1 stopped, but a run could not be closed; 2 could not start. */
int pd_daemon_run(const pd_config *config);

#endif

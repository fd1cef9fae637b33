/* Ending a command by a signal. */
#ifndef COMMON_CLI_STOP_H
#define COMMON_CLI_STOP_H

#include <signal.h>

/* Set by SIGINT, SIGTERM and SIGHUP after cli_catch_stop(): end the work, leave nothing under a final name. A second
 * signal ends the process at once. Calling it again does no harm. */
extern volatile sig_atomic_t cli_stopped;
void cli_catch_stop(void);

/* Until then: such a signal ends the process at once, with exit status 2 and "PROGRAM COMMAND: stopped ..." on standard
 * error. Both texts are static. */
void cli_end_when_stopped(const char *program, const char *command);

#define CLI_STOPPED_TEXT "stopped; nothing was left under a final name"

#endif

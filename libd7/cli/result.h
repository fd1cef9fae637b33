/* A file that a command makes: written under a hidden name beside, and given its own at the end, so that an interrupted
 * or failed command leaves nothing that looks whole. */
#ifndef D7_CLI_RESULT_H
#define D7_CLI_RESULT_H

#include "cli/stop.h"
#include "commands.h"

typedef struct result_file {
    const command *self;
    char *path;      /* the final name */
    char *temporary; /* where to write; NULL: nothing to commit or drop */
    bool overwrite;
} result_file;

/* Notes a file that is read: no result of this process may replace it, by whatever path. One that is not there is nobody's. */
void result_source(const char *path);

/* Prepares a result and makes SIGINT, SIGTERM and SIGHUP set cli_stopped. `temporary` does not exist yet.
 * Returns 0, or an exit code after saying why: the file is there and `overwrite` is false, a writer holds it, or it
 * is a source. */
int result_begin(const command *self, const char *path, bool overwrite, result_file *ret);

/* Syncs the file and gives it its name, without replacing unless `overwrite`. Returns 0, or an exit code after saying
 * why; then the temporary file is gone. */
int result_commit(result_file *result);

/* Removes what was written. Allowed after a commit or a failed begin, where it does nothing but release. */
void result_drop(result_file *result);

/* A message as it is shown: printable, and the hidden name of the file that is being made in it replaced by the final one.
 * NULL: out of memory. To be freed. command_fail() does so by itself. */
char *result_message(const char *text);

/* Says that the command was stopped; returns the exit code. Where cli_stopped is set after the first result_begin() (or
 * cli_catch_stop()), answer with D7_ERR_CANCELLED, drop the results and return this. */
int command_stopped_code(const command *self);

#endif

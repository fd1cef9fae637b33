/* A closed file copied byte for byte. */
#ifndef D7_CLI_COPY_WHOLE_H
#define D7_CLI_COPY_WHOLE_H

#include "cli/progress.h"
#include "commands.h"

/* Copies `bytes` bytes of the file `from` to a new file `to`, whose final name is `name`. Returns 0, or an exit code after
 * saying why. */
int copy_whole(const command *self, const char *from, uint64_t bytes, const char *to, const char *name,
               cli_progress *bar);

#endif

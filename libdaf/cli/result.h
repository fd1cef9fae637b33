/* A repository that a command makes: written under a hidden name beside, and given its own at the end, so that an
 * interrupted or failed command leaves nothing that looks whole. A group of an archive that is there is appended to that
 * archive instead; it gets its daf.json last, without which it is no repository. */
#ifndef DAF_CLI_RESULT_H
#define DAF_CLI_RESULT_H

#include "command.h"

typedef enum result_kind { RESULT_DIRECTORY, RESULT_ARCHIVE, RESULT_GROUP, RESULT_ZARR } result_kind;

/* The kind that a path says. */
result_kind result_kind_of(const char *path);

typedef struct result {
    const cli_command *self;
    result_kind kind;
    bool overwrite;
    char *file;      /* the file or folder that gets its name in the end */
    char *temporary; /* its hidden name; NULL: a group is appended to `file` */
    char *path;      /* what to open: `temporary`, with the group */
    int lock;        /* on what is replaced; -1: none */
    daf *d;          /* open, in a batch; not of RESULT_ZARR */
} result;

/* Prepares a result at `path`, and opens it. SIGINT, SIGTERM and SIGHUP set cli_stopped from here on. Returns 0, or an
 * exit code after saying why: something is there and `overwrite` is false, is no repository, or is being written. */
int result_begin(result *ret, const cli_command *self, const char *path, bool overwrite, cli_pool *pool);

/* The same together with `open`, which opens what the result is made of (and returns 0, or an exit code after saying why).
 * That comes first, so that nothing is made in vain; but a group of an archive that is there is begun before, since inputs
 * may lie in the same archive: it has to be opened for writing first. */
int result_begin_from(result *ret, const cli_command *self, const char *path, bool overwrite, cli_pool *pool,
                      int (*open)(void *context, cli_pool *pool), void *context);

/* Closes the repository and gives it its name. `code`: how writing it went. Drops it instead when that is not 0, or the
 * command was stopped. Returns `code`, or another exit code after saying why. */
int result_end(result *r, int code);

/* Puts the result's own name in the place of the hidden one in a message. */
void result_show_name(const result *r, daf_error *err);

/* ---- hidden names, and what is left of them */

/* "DIR/.NAME.PID.new" with the ending of the kind: hidden, and in the same folder so that it can be renamed. NULL without
 * memory. */
char *result_hidden_name(const char *file, result_kind kind);

/* Removes what processes that are gone have left under hidden names of `file`. */
void result_remove_left(const char *file);

/* Removes a file, or a folder with all that is in it; none there: nothing. */
void result_remove_tree(const char *path);

#endif

/* Merging: the inputs, and the axes that are joined. */
#ifndef DAF_CLI_MERGE_H
#define DAF_CLI_MERGE_H

#include "command.h"

#define NO_PLACE UINT64_MAX

/* An axis whose entries are those of all inputs, in the order in which they first appear. */
typedef struct joined_axis {
    const char *name;
    char **entries;
    uint64_t n;
    uint64_t *
        *places; /* [input][entry of the input]: the entry of the whole; NULL: the input has no such axis */
    uint64_t *lengths; /* [input] */
} joined_axis;

typedef struct merging {
    const cli_command *self;
    const char **paths;
    daf **inputs;
    size_t n_inputs;
    joined_axis *axes;
    size_t n_axes;
    bool overwrite;
    daf *to;
} merging;

/* The joined axis of the name; NULL: it is none. */
const joined_axis *find_joined(const merging *m, const char *name);

/* Finds the entries of the joined axes; adds those to the result. Returns 0, or an exit code after saying why. */
int join_axes(merging *m);
void free_joined(merging *m);

/* Puts together a vector (columns NULL) or matrix that lies on some joined axis, of all inputs that have it. */
int join_property(const merging *m, const char *rows, const char *columns, const char *name);

#endif

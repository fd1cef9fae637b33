/* A directory that is built beside its place under a hidden name, and renamed when it is whole. What a killed process has
 * left under that name goes the next time. */
#ifndef DAF_SRC_ASIDE_H
#define DAF_SRC_ASIDE_H

#include "io.h"

typedef struct daf__aside {
    const daf_io *io;
    const char *path; /* as the caller gave it; borrowed */
    int dirfd;        /* of the folder that both names are in */
    char *name;       /* to be */
    char *temporary;
    bool finished;
} daf__aside;

/* Looks that nothing is at `path`, and clears the hidden name, but makes nothing.
 * Returns 0; DAF_ERR_EXISTS; DAF_ERR_BUSY another process is building there; DAF_ERR_IO; DAF_ERR_NOMEM. */
int daf__aside_begin(daf__aside *ret, const char *path, const daf_io *io, daf_error *err);

/* Renames it; sync: and makes that last. */
int daf__aside_finish(daf__aside *a, bool sync, daf_error *err);

/* Frees it, and removes what was not finished. */
void daf__aside_end(daf__aside *a);

#endif

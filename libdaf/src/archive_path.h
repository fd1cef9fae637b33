/* Paths of archives (specification section 11.2). */
#ifndef DAF_SRC_ARCHIVE_PATH_H
#define DAF_SRC_ARCHIVE_PATH_H

#include "daf/daf.h"

typedef struct daf__archive_path {
    char *archive; /* NULL: the path names no archive */
    char *group;   /* NULL: none */
    char *full;    /* absolute, group included */
} daf__archive_path;

void daf__archive_path_free(daf__archive_path *p);

/* Takes the path apart. A path of another kind, also one of a directory that is there, gives archive NULL.
 * Returns 0; DAF_ERR_ARG the path means an archive, but not rightly; DAF_ERR_NAME the group; DAF_ERR_NOMEM. */
int daf__archive_path_parse(daf__archive_path *ret, int dirfd, const char *path, daf_error *err);

/* The archive is the first `bytes` bytes of the path; group: NULL: none, else checked. Returns 0; DAF_ERR_NAME;
 * DAF_ERR_NOMEM. */
int daf__archive_path_take(daf__archive_path *ret, int dirfd, const char *path, size_t bytes,
                           const char *group, daf_error *err);

#endif

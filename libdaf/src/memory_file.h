/* A file that a store has made up, or got from elsewhere, and holds in memory. */
#ifndef DAF_SRC_MEMORY_FILE_H
#define DAF_SRC_MEMORY_FILE_H

#include "store.h"

/* A file with these bytes (consumed, also on failure). It cannot be mapped. */
int daf__memory_file(daf__file **ret, daf__buf *bytes, const daf__stamp *stamp, const char *where,
                     daf_error *err);

#endif

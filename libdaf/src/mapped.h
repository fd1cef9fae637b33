/* Copying out of the view of a file that another program may cut meanwhile: an error, and no SIGBUS. */
#ifndef DAF_SRC_MAPPED_H
#define DAF_SRC_MAPPED_H

#include "content.h"

/* Pieces of memory: n of `bytes` bytes each, whose first bytes lie `stride` bytes apart. */
typedef struct daf__pieces {
    const void *from;
    size_t bytes, stride;
    uint64_t n;
} daf__pieces;

/* Copies them, one behind the other. Returns 0; DAF_ERR_TRUNCATED the file has become shorter; DAF_ERR_IO. */
int daf__mapped_copy(void *to, const daf__pieces *p, daf_error *err);

/* The same, without the system call that some kernels lack or forbid. */
int daf__mapped_copy_by_pipe(void *to, const daf__pieces *p, daf_error *err);

/* A copy of the columns of a range of sparse content, all their rows (texts are borrowed), whose rules are checked again:
 * DAF_ERR_CORRUPT when the file was changed. */
int daf__mapped_columns(daf__content *ret, const daf__content *c, const daf_range *range, daf_error *err);

#endif

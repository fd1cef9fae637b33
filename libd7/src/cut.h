/* The end of a file that is about to be cut off is copied beside it first: NAME.photons.cut.0, .cut.1, ... */
#ifndef D7_SRC_CUT_H
#define D7_SRC_CUT_H

#include "tail_file.h"

enum { D7__CUT_CHUNK_BYTES = 2 * D7__TAIL_CHUNK_BYTES }; /* the second half is for comparing */

typedef struct d7__cut {
    const d7__tail_file *from;
    const d7_alloc *alloc;
    uint8_t *chunk;      /* [D7__CUT_CHUNK_BYTES] */
    uint64_t begin, end; /* what is to be kept; the file ends there */
    unsigned mode;       /* of the copy, before the umask */
} d7__cut;

/* Makes a synced copy; *ret_number says which. One that is there already, by a run that was cut short, of the very same
 * bytes is taken. Returns 0; D7_ERR_LIMIT: there are too many; D7_ERR_NOSPACE; D7_ERR_IO; D7_ERR_NOMEM. On failure a
 * copy that was made is removed again. */
int d7__cut_keep(const d7__cut *cut, uint32_t *ret_number, d7_error *err);

/* Waits until the names in the folder of `path` are on the disk. Returns 0; D7_ERR_IO. */
int d7__cut_sync_folder(const d7_io *io, const char *path, d7_error *err);

#endif

/* The tail of a file being written, shared by tail.c (its life) and tail_recover.c (where it may begin). */
#ifndef D7_SRC_TAIL_H
#define D7_SRC_TAIL_H

#include <stdatomic.h>

#include "tail_book.h"
#include "tail_file.h"

struct d7_tail {
    d7_io io;           /* the caller's */
    d7_io watched;      /* the same, for the file's writer; ctx is this tail */
    void *watched_file; /* the writer's: what it writes beside (checksums) does not count */
    d7_alloc alloc;
    char *path;
    d7__tail_file file;

    d7_tail_layout layout;
    d7_type *types; /* [layout.n_datasets] */
    size_t slot_bytes;
    uint8_t *buffer;        /* [slot_bytes] the slot being encoded, or the recovered one */
    d7_tail_slot recovered; /* points into buffer */
    bool has_recovered;

    d7__tail_book book;
    bool misplaced; /* something wrote to the file elsewhere than at its end */
    bool failed;    /* then `failure` is the first error */
    d7_error failure;
    atomic_int sync_errno; /* set by d7_tail_sync_data(), maybe on another thread; 0: none failed */
};

/* Half of a tail: everything but its file and its book. A layout whose slots have slot_bytes.
 * Returns 0; D7_ERR_NOMEM. */
int d7__tail_new(d7_tail **ret_tail, const char *path, const d7_tail_layout *layout, size_t slot_bytes,
                 const d7_io *io, const d7_alloc *alloc, d7_error *err);

#endif

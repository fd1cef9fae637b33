/* The end of the file being written: framed bytes on their way to the operating system.
 *
 * Everything that enters the file passes through here, in order. Bytes are kept until the system has taken
 * them; a full disk therefore loses nothing and the same flush can be tried again. */
#ifndef D7_SRC_OUT_H
#define D7_SRC_OUT_H

#include "checksums.h"

typedef struct d7__out {
    const d7_io *io;
    const d7_alloc *alloc;
    void *file;
    const char *path;      /* for errors */
    d7__sums_writer *sums; /* NULL: none are kept */
    d7__buffer pending;    /* framed, not yet taken */
    size_t taken;          /* bytes at the front of `pending` that were taken already */
    uint64_t written;      /* length of the file as the system has it */
} d7__out;

/* Length of the file when all is written: the position of the next byte. */
uint64_t d7__out_framed(const d7__out *o);
size_t d7__out_pending(const d7__out *o);

/* Makes room for entries of `bytes` in all, n of them. Returns 0; D7_ERR_NOMEM. */
int d7__out_reserve(d7__out *o, size_t n_entries, size_t bytes);

/* Frames an entry into reserved room. Returns its offset in the file. */
uint64_t d7__out_entry(d7__out *o, const uint8_t *entry, size_t bytes);

/* Zeros up to the next block start, into reserved room (a block, at most). */
void d7__out_pad(d7__out *o);

/* Writes all that is pending. Returns 0; D7_ERR_NOSPACE (nothing is lost, try again); D7_ERR_IO. */
int d7__out_flush(d7__out *o, d7_error *err);

#endif

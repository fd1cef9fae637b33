/* A file being read through a window: pieces of it in memory, read by pread, so that a file that shrinks
 * under the reader is an error and never a signal. */
#ifndef D7_SRC_SOURCE_H
#define D7_SRC_SOURCE_H

#include "alloc.h"

typedef struct d7__source {
    const d7_io *io;
    const d7_alloc *alloc;
    void *file;
    char *path;          /* for errors */
    bool borrowed;       /* file and path are another's */
    uint64_t size;       /* of the file when it was measured; nothing past it is read */
    size_t window_bytes; /* read at a time, at least */
    uint64_t start;      /* of the window */
    d7__buffer window;
    uint64_t bytes_read; /* in all, for tests of how much an operation reads */
} d7__source;

/* Opens for reading; the size is 0 until d7__source_measure(). `s` must be zeroed; io and alloc must outlive
 * it. Returns 0; D7_ERR_NOTFOUND; D7_ERR_IO; D7_ERR_NOMEM. */
int d7__source_open(d7__source *s, const char *path, const d7_io *io, const d7_alloc *alloc, d7_error *err);
void d7__source_close(d7__source *s);

/* The same file and path, which stay the other's, through a window of its own. */
void d7__source_borrow(d7__source *s, const d7__source *from);

/* Forgets what was read: the file may be another by now. */
void d7__source_forget(d7__source *s);

/* Takes the file's present size. Returns 0; D7_ERR_IO. */
int d7__source_measure(d7__source *s, d7_error *err);

/* n bytes at offset; the pointer is good until the next call. offset + n must lie within s->size.
 * Returns 0; D7_ERR_TRUNCATED: the file has shrunk; D7_ERR_IO; D7_ERR_NOMEM. */
int d7__source_get(d7__source *s, uint64_t offset, size_t n, const uint8_t **ret_bytes, d7_error *err);

#endif

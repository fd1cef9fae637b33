#include "source.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"

int d7__source_open(d7__source *s, const char *path, const d7_io *io, const d7_alloc *alloc, d7_error *err) {
    s->io = io;
    s->alloc = alloc;
    s->window_bytes = 2 * D7_BLOCK_BYTES;
    size_t length = strlen(path) + 1;
    s->path = d7__new(alloc, length);
    if (!s->path)
        return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", path);
    memcpy(s->path, path, length);

    void *file;
    int rc = io->open(io->ctx, path, D7_IO_READ, 0, &file);
    if (rc < 0)
        return d7__fail(err, rc == -ENOENT ? D7_ERR_NOTFOUND : D7_ERR_IO, -rc, D7_NO_OFFSET,
                        "%s: cannot be opened", path);
    s->file = file;
    return 0;
}

int d7__source_measure(d7__source *s, d7_error *err) {
    int rc = s->io->size(s->io->ctx, s->file, &s->size);
    return rc < 0 ? d7__fail(err, D7_ERR_IO, -rc, D7_NO_OFFSET, "%s: cannot be read", s->path) : 0;
}

void d7__source_close(d7__source *s) {
    if (s->file && !s->borrowed)
        s->io->close(s->io->ctx, s->file);
    s->file = NULL;
    if (s->alloc) {
        if (!s->borrowed)
            d7__release(s->alloc, s->path);
        d7__release(s->alloc, s->window.data);
    }
    s->path = NULL;
    s->window = (d7__buffer){0};
}

void d7__source_borrow(d7__source *s, const d7__source *from) {
    *s = (d7__source){.io = from->io,
                      .alloc = from->alloc,
                      .file = from->file,
                      .path = from->path,
                      .borrowed = true,
                      .window_bytes = from->window_bytes};
}

void d7__source_forget(d7__source *s) {
    s->window.n = 0;
}

/* Appends to the window until it holds `need` bytes; up to `want` if the system gives them at once. */
static int source_fill(d7__source *s, size_t need, size_t want, d7_error *err) {
    while (s->window.n < need) {
        uint64_t at = s->start + s->window.n;
        int64_t got = s->io->pread(s->io->ctx, s->file, s->window.data + s->window.n, want - s->window.n, at);
        if (got == -EINTR)
            continue;
        if (got < 0)
            return d7__fail(err, D7_ERR_IO, (int)-got, at, "%s: reading at byte %" PRIu64 " failed", s->path,
                            at);
        if (got == 0)
            return d7__fail(err, D7_ERR_TRUNCATED, 0, at,
                            "%s: the file has shrunk: it ends at or before byte %" PRIu64 ", it had %" PRIu64
                            " bytes when it was opened",
                            s->path, at, s->size);
        s->window.n += (size_t)got;
        s->bytes_read += (uint64_t)got;
    }
    return 0;
}

int d7__source_get(d7__source *s, uint64_t offset, size_t n, const uint8_t **ret_bytes, d7_error *err) {
    if (offset < s->start || offset + n > s->start + s->window.n) {
        size_t want = n > s->window_bytes ? n : s->window_bytes;
        if (want > s->size - offset)
            want = (size_t)(s->size - offset);
        s->window.n = 0;
        if (d7__buffer_reserve(s->alloc, &s->window, want) != 0)
            return d7__fail(err, D7_ERR_NOMEM, 0, offset, "%s: out of memory", s->path);
        s->start = offset;
        int rc = source_fill(s, n, want, err);
        if (rc != 0) {
            s->window.n = 0;
            return rc;
        }
    }
    *ret_bytes = s->window.data + (offset - s->start);
    return 0;
}

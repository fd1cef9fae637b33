/* Checksums on their way beside a file. They follow what was handed to the operating system, so after a crash
 * of the program they say no more than the file holds; after a power cut they may, which whoever compares
 * them has to bear. A disk that is full keeps them in memory (16 bytes an entry) until there is room or the
 * file is closed; any other failure ends them, never the file. */
#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "checksums.h"
#include "error.h"

static const uint64_t catch_up_bytes = 256u
                                       << 20; /* of the file, read at most to make up for what was lost */

int d7__sums_writer_init(d7__sums_writer *w, const d7_io *io, const d7_alloc *alloc, const char *crc_path) {
    *w = (d7__sums_writer){.alloc = alloc, .path = d7__tail_path(alloc, crc_path, "")};
    w->file.io = io;
    return w->path ? 0 : D7_ERR_NOMEM;
}

void d7__sums_writer_free(d7__sums_writer *w) {
    if (!w->alloc)
        return;
    d7__tail_file_close(&w->file);
    d7__release(w->alloc, w->pending);
    d7__release(w->alloc, w->block.data);
    d7__release(w->alloc, w->path);
    *w = (d7__sums_writer){0};
}

/* Whatever has that name now is of another file, or of this one before it was replaced. */
int d7__sums_create(d7__sums_writer *w, unsigned mode, d7_error *err) {
    const d7_io *io = w->file.io;
    int flags = D7_IO_WRITE | D7_IO_CREATE | D7_IO_EXCLUSIVE;
    int rc = d7__tail_file_open(&w->file, io, w->path, flags, mode, err);
    if (rc == D7_ERR_EXISTS && io->remove && io->remove(io->ctx, w->path) == 0)
        rc = d7__tail_file_open(&w->file, io, w->path, flags, mode, err);
    else if (rc == D7_ERR_EXISTS)
        rc = d7__tail_file_open(&w->file, io, w->path, D7_IO_WRITE, mode, err);
    return rc != 0 ? rc : d7__tail_file_truncate(&w->file, 0, err);
}

int d7__sums_reserve(d7__sums_writer *w, size_t n) {
    return d7__grow(w->alloc, &w->pending, &w->cap, w->n + n, sizeof *w->pending);
}

void d7__sums_add(d7__sums_writer *w, uint64_t offset, const uint8_t *entry, size_t bytes) {
    if (w->failure.code == 0)
        w->pending[w->n++] =
            (d7__sum){.offset = offset, .bytes = (uint32_t)bytes, .crc = common_crc32c(0, entry, bytes)};
}

static int write_block(d7__sums_writer *w, const d7__sum *sums, size_t n, d7_error *err) {
    uint8_t head[D7__SUMS_HEAD_BYTES];
    w->block.n = 0;
    if (d7__buffer_reserve(w->alloc, &w->block, D7__SUMS_HEAD_BYTES + n * D7__SUM_BYTES) != 0)
        return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", w->path);
    int rc = 0;
    if (w->written == 0) {
        d7__sums_head_pack(head);
        rc = d7__tail_file_write(&w->file, head, sizeof head, 0, err);
        w->written = rc == 0 ? sizeof head : 0;
    }
    size_t bytes = d7__sums_block_pack(sums, n, w->block.data);
    if (rc == 0)
        rc = d7__tail_file_write(&w->file, w->block.data, bytes, w->written, err);
    w->written += rc == 0 ? bytes : 0;
    return rc;
}

void d7__sums_flush(d7__sums_writer *w, bool last) {
    size_t done = 0;
    d7_error err;
    int rc = w->failure.code;
    while (rc == 0 && done < w->n) {
        size_t n = w->n - done < D7__SUMS_BLOCK_MAX ? w->n - done : D7__SUMS_BLOCK_MAX;
        rc = write_block(w, w->pending + done, n, &err);
        done += rc == 0 ? n : 0;
    }
    if (done) {
        w->n -= done;
        memmove(w->pending, w->pending + done, w->n * sizeof *w->pending);
    }
    if (rc == 0 || w->failure.code != 0 || (!last && (rc == D7_ERR_NOSPACE || rc == D7_ERR_NOMEM)))
        return;
    w->failure = err;
    w->n = 0;
}

void d7__sums_finish(d7__sums_writer *w) {
    d7_error err;
    d7__sums_flush(w, true);
    if (w->allocates && w->failure.code == 0) /* what cannot be given back is the file system's to find */
        (void)w->file.io->truncate(w->file.io->ctx, w->file.file, w->written);
    if (w->failure.code == 0 && d7__tail_file_sync(&w->file, &err) != 0)
        w->failure = err;
    d7__tail_file_close(&w->file);
}

/* ---- after a cut ---- */

/* Reads records of entries before `length`: *ret_bytes is the length of the whole blocks of them, the rest
 * goes to `rest` (NULL: nowhere). *ret_last is the last one's offset, UINT64_MAX: there is none. */
static int keep_before(d7__sums_reader *s, uint64_t length, d7__sums_writer *rest, uint64_t *ret_bytes,
                       uint64_t *ret_last, d7_error *err) {
    uint64_t kept = s->fault ? 0 : D7__SUMS_HEAD_BYTES;
    *ret_last = UINT64_MAX;
    for (;;) {
        bool there;
        d7__sum sum;
        int rc = d7__sums_next(s, &there, &sum, err);
        if (rc != 0)
            return rc;
        if (!there || sum.offset >= length)
            break;
        if (s->n_spoilt) /* what follows a gap is not gone on with */
            break;
        *ret_last = sum.offset;
        if (s->next == s->n) {
            kept = s->at;
            if (rest)
                rest->n = 0;
        } else if (rest) {
            if (d7__sums_reserve(rest, 1) != 0)
                return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", s->path);
            rest->pending[rest->n++] = sum;
        }
    }
    *ret_bytes = kept;
    return 0;
}

/* Sums of the entries after the one at `last` (UINT64_MAX: of all), up to `length`. */
static int catch_up(d7__sums_writer *w, d7__framing *photons, uint64_t last, uint64_t length, d7_error *err) {
    uint64_t at = 0;
    d7__found found;
    d7__entry entry;
    int rc = last == UINT64_MAX ? 0 : d7__entry_at(photons, last, &found, &entry, err);
    if (rc == 0 && last != UINT64_MAX)
        at = entry.next;
    while (rc == 0 && length - at <= catch_up_bytes) {
        rc = d7__entry_next(photons, at, &found, &entry, err);
        if (rc != 0 || found != D7__FOUND_ENTRY || entry.offset >= length)
            break;
        if (d7__sums_reserve(w, 1) != 0)
            return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", w->path);
        d7__sums_add(w, entry.offset, entry.data, entry.bytes);
        at = entry.next;
    }
    return rc;
}

int d7__sums_resume(d7__sums_writer *w, const char *path, d7__framing *photons, uint64_t length,
                    unsigned mode, d7_error *err) {
    d7__sums_reader s;
    uint64_t kept = 0, last = UINT64_MAX;
    int rc = d7__sums_open(&s, w->file.io, w->alloc, path, D7_IO_WRITE, err);
    if (rc == D7_ERR_NOTFOUND)
        rc = d7__sums_create(w, mode, err);
    else if (rc == 0) {
        rc = keep_before(&s, length, w, &kept, &last, err);
        w->file = s.file;
        w->file.path = w->path;
        s.file.file = NULL;
        d7__sums_close(&s);
        if (rc == 0)
            rc = d7__tail_file_truncate(&w->file, kept, err);
        w->written = kept;
    }
    return rc != 0 ? rc : catch_up(w, photons, last, length, err);
}

int d7__sums_cut(const d7_io *io, const d7_alloc *alloc, const char *path, uint64_t length, d7_error *err) {
    d7__sums_reader s;
    uint64_t kept, last;
    int rc = d7__sums_open(&s, io, alloc, path, D7_IO_WRITE, err);
    if (rc != 0)
        return rc == D7_ERR_NOTFOUND ? 0 : rc;
    rc = keep_before(&s, length, NULL, &kept, &last, err);
    if (rc == 0 && kept < s.size)
        rc = d7__tail_file_truncate(&s.file, kept, err);
    d7__sums_close(&s);
    return rc;
}

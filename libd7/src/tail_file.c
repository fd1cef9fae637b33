#include "tail_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/crc32c.h"
#include "error.h"
#include "tail_slot.h"

enum { PATH_BYTES = 4096 };

/* ---- one file ---- */

static int file_failed(const d7__tail_file *f, int rc, uint64_t offset, const char *what, d7_error *err) {
    int e = -rc;
    int code = e == ENOSPC || e == EDQUOT ? D7_ERR_NOSPACE : D7_ERR_IO;
    if (offset == D7_NO_OFFSET)
        return d7__fail(err, code, e, offset, "%s: %s failed", f->path, what);
    return d7__fail(err, code, e, offset, "%s: %s at byte %" PRIu64 " failed", f->path, what, offset);
}

int d7__tail_file_open(d7__tail_file *f, const d7_io *io, const char *path, int flags, unsigned mode,
                       d7_error *err) {
    d7__tail_file opened = {.io = io, .path = path};
    int rc = io->open(io->ctx, path, flags, mode, &opened.file);
    if (rc == -ENOENT || (rc == -ENAMETOOLONG && !(flags & D7_IO_CREATE)))
        return d7__fail(err, D7_ERR_NOTFOUND, -rc, D7_NO_OFFSET, "%s: cannot be opened", path);
    if (rc == -EEXIST)
        return d7__fail(err, D7_ERR_EXISTS, EEXIST, D7_NO_OFFSET, "%s: cannot be created", path);
    if (rc < 0)
        return file_failed(&opened, rc, D7_NO_OFFSET, "opening", err);
    *f = opened;
    return 0;
}

int d7__tail_file_read(const d7__tail_file *f, void *buffer, size_t bytes, uint64_t offset, d7_error *err) {
    for (size_t done = 0; done < bytes;) {
        int64_t n = f->io->pread(f->io->ctx, f->file, (uint8_t *)buffer + done, bytes - done, offset + done);
        if (n == -EINTR)
            continue;
        if (n < 0)
            return file_failed(f, (int)n, offset + done, "reading", err);
        if (n == 0)
            return d7__fail(err, D7_ERR_TRUNCATED, 0, offset + done, "%s: it ends at or before byte %" PRIu64,
                            f->path, offset + done);
        done += (size_t)n;
    }
    return 0;
}

int d7__tail_file_write(const d7__tail_file *f, const void *data, size_t bytes, uint64_t offset,
                        d7_error *err) {
    for (size_t done = 0; done < bytes;) {
        int64_t n =
            f->io->pwrite(f->io->ctx, f->file, (const uint8_t *)data + done, bytes - done, offset + done);
        if (n == -EINTR)
            continue;
        if (n <= 0)
            return file_failed(f, n < 0 ? (int)n : -EIO, offset + done, "writing", err);
        done += (size_t)n;
    }
    return 0;
}

int d7__tail_file_size(const d7__tail_file *f, uint64_t *ret_bytes, d7_error *err) {
    int rc = f->io->size(f->io->ctx, f->file, ret_bytes);
    return rc < 0 ? file_failed(f, rc, D7_NO_OFFSET, "asking for its size", err) : 0;
}

int d7__tail_file_truncate(const d7__tail_file *f, uint64_t bytes, d7_error *err) {
    int rc;
    do
        rc = f->io->truncate(f->io->ctx, f->file, bytes);
    while (rc == -EINTR);
    return rc < 0 ? file_failed(f, rc, bytes, "cutting", err) : 0;
}

int d7__tail_file_sync(const d7__tail_file *f, d7_error *err) {
    int rc;
    do
        rc = f->io->sync_data(f->io->ctx, f->file);
    while (rc == -EINTR);
    return rc < 0 ? file_failed(f, rc, D7_NO_OFFSET, "syncing", err) : 0;
}

void d7__tail_file_close(d7__tail_file *f) {
    if (f->file)
        f->io->close(f->io->ctx, f->file);
    *f = (d7__tail_file){0};
}

int d7__tail_file_each(const d7__tail_file *f, uint64_t from, uint64_t to, uint8_t *chunk,
                       d7__tail_piece_fn *fn, void *ctx, d7_error *err) {
    for (uint64_t at = from; at < to;) {
        size_t n = to - at < D7__TAIL_CHUNK_BYTES ? (size_t)(to - at) : D7__TAIL_CHUNK_BYTES;
        int rc = d7__tail_file_read(f, chunk, n, at, err);
        if (rc == 0)
            rc = fn(ctx, chunk, n, at, err);
        if (rc != 0)
            return rc;
        at += n;
    }
    return 0;
}

char *d7__tail_path(const d7_alloc *alloc, const char *path, const char *suffix) {
    size_t n = strlen(path), more = strlen(suffix) + 1;
    char *joined = d7__new(alloc, n + more);
    if (joined) {
        memcpy(joined, path, n);
        memcpy(joined + n, suffix, more);
    }
    return joined;
}

char *d7__beside(const d7_io *io, const d7_alloc *alloc, const char *path, const char *suffix) {
    char real[PATH_BYTES];
    bool link = io->resolve && io->resolve(io->ctx, path, real, sizeof real) == 0;
    return d7__tail_path(alloc, link ? real : path, suffix);
}

/* ---- slots ---- */

void d7__tail_slots_free(d7__tail_slots *s, const d7_alloc *alloc) {
    d7__release(alloc, s->buffer);
    *s = (d7__tail_slots){0};
}

static int slots_measure(d7__tail_slots *s, const d7__tail_file *f, const d7_alloc *alloc, d7_error *err) {
    uint64_t size;
    int rc = d7__tail_file_size(f, &size, err);
    if (rc != 0)
        return rc;
    uint64_t unit = D7_TAIL_SLOTS * D7_TAIL_ALIGN_BYTES;
    if (size == 0 || size % unit != 0 || size / D7_TAIL_SLOTS > D7_TAIL_SLOT_BYTES_MAX)
        return d7__fail(err, D7_ERR_CORRUPT, 0, D7_NO_OFFSET, "%s: no tail has %" PRIu64 " bytes", f->path,
                        size);
    size_t slot_bytes = (size_t)(size / D7_TAIL_SLOTS);
    if (s->slot_bytes == slot_bytes)
        return 0;
    uint8_t *buffer = alloc->resize(alloc->ctx, s->buffer, D7_TAIL_SLOTS * slot_bytes);
    if (!buffer)
        return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", f->path);
    s->buffer = buffer;
    s->slot_bytes = slot_bytes;
    return 0;
}

/* Reads what slot i uses of its place; what cannot be a slot is left out. */
static int slot_read(d7__tail_slots *s, const d7__tail_file *f, unsigned i, d7_error *err) {
    uint8_t *place = s->buffer + i * s->slot_bytes;
    int rc = d7__tail_file_read(f, place, D7_TAIL_ALIGN_BYTES, i * s->slot_bytes, err);
    size_t used = rc == 0 ? d7__slot_used_bytes(place, s->slot_bytes) : 0;
    if (rc == 0 && used > D7_TAIL_ALIGN_BYTES)
        rc = d7__tail_file_read(f, place + D7_TAIL_ALIGN_BYTES, used - D7_TAIL_ALIGN_BYTES,
                                i * s->slot_bytes + D7_TAIL_ALIGN_BYTES, err);
    if (rc != 0 || used == 0)
        return rc;
    int decoded = d7_tail_slot_decode(place, s->slot_bytes, &s->slot[i], NULL);
    s->n_unsupported += decoded == D7_ERR_UNSUPPORTED;
    if (decoded == 0 && s->slot[i].slot_bytes == s->slot_bytes)
        s->newest[s->n_whole++] = i;
    return 0;
}

static void slots_sort(d7__tail_slots *s) {
    for (unsigned i = 1; i < s->n_whole; i++)
        for (unsigned k = i; k > 0; k--) {
            unsigned *a = &s->newest[k - 1], *b = &s->newest[k];
            if (s->slot[*a].claim.generation >= s->slot[*b].claim.generation)
                break;
            unsigned older = *a;
            *a = *b;
            *b = older;
        }
}

int d7__tail_slots_read(d7__tail_slots *s, const d7__tail_file *f, const d7_alloc *alloc, d7_error *err) {
    s->n_whole = s->n_unsupported = 0;
    int rc = slots_measure(s, f, alloc, err);
    for (unsigned i = 0; i < D7_TAIL_SLOTS && rc == 0; i++)
        rc = slot_read(s, f, i, err);
    if (rc == 0)
        slots_sort(s);
    return rc;
}

/* ---- is it true? ---- */

static int sum_piece(void *ctx, const uint8_t *data, size_t bytes, uint64_t offset, d7_error *err) {
    (void)offset;
    (void)err;
    uint32_t *crc = ctx;
    *crc = common_crc32c(*crc, data, bytes);
    return 0;
}

static int matches(const d7__tail_file *f, uint64_t from, uint64_t to, uint32_t begun, uint32_t expected,
                   uint8_t *chunk, bool *ret_matches, d7_error *err) {
    uint32_t crc = begun;
    int rc = d7__tail_file_each(f, from, to, chunk, sum_piece, &crc, err);
    *ret_matches = rc == 0 && crc == expected;
    return rc == D7_ERR_TRUNCATED ? 0 : rc;
}

/* [base, length), of which the front may be known. When that does not fit the file was cut since, and all is
 * read. */
static int claim_matches(const d7__tail_file *f, const d7_tail_claim *c, uint8_t *chunk,
                         d7__tail_known *known, bool *ret_matches, d7_error *err) {
    bool usable = known && known->base == c->base && known->length <= c->length;
    int rc = 0;
    *ret_matches = false;
    if (usable)
        rc = matches(f, known->length, c->length, known->crc, c->crc32c, chunk, ret_matches, err);
    if (rc == 0 && !*ret_matches)
        rc = matches(f, c->base, c->length, 0, c->crc32c, chunk, ret_matches, err);
    if (rc == 0 && *ret_matches && known)
        *known = (d7__tail_known){.base = c->base, .length = c->length, .crc = c->crc32c};
    return rc;
}

int d7__tail_judge(const d7__tail_file *photons, uint64_t size, const d7_tail_slot *slot, uint8_t *chunk,
                   d7__tail_known *known, d7__tail_verdict *ret_verdict, d7_error *err) {
    const d7_tail_identity *id = &slot->identity;
    bool same = false, right = false;
    int rc = 0;
    if (id->head_bytes <= size)
        rc = matches(photons, 0, id->head_bytes, 0, id->head_crc32c, chunk, &same, err);
    if (rc == 0 && same && slot->claim.length <= size)
        rc = claim_matches(photons, &slot->claim, chunk, known, &right, err);
    if (rc == 0)
        *ret_verdict = !same ? D7__TAIL_FOREIGN : right ? D7__TAIL_TRUE : D7__TAIL_UNTRUE;
    return rc;
}

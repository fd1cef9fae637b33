/* A reader's view of a tail that someone else writes.
 *
 * The writer hands the file's bytes to the system before it writes a slot that counts on them, so a whole
 * slot is true of a file whose size is taken afterwards, as long as the writer lives. After a crash and
 * before the recovery that need not be so, and nothing tells the two apart: therefore the checksum is always
 * computed, from where the last one ended. */
#include <string.h>

#include "error.h"
#include "tail_file.h"
#include "tail_reader.h"

enum {
    PEEK_TRIES = 4
}; /* a writer that is at a slot lets at least one other be whole; twice unlucky is rare */

struct d7_tail_reader {
    d7_io io;
    d7_alloc alloc;
    char *path, *tail_path;
    d7__tail_file photons, tail;
    bool borrowed;         /* `photons` is another's */
    size_t slot_bytes_max; /* that are read */
    d7__tail_slots slots;
    d7__tail_known known;
    uint8_t *chunk;          /* [D7__TAIL_CHUNK_BYTES] */
    d7__tail_verdict newest; /* on the newest slot that is whole, if any is */
};

static d7_tail_reader *new_tail_reader(const char *path, const d7_io *io, const d7_alloc *alloc) {
    d7_tail_reader *r = d7__new(alloc, sizeof *r);
    if (!r)
        return NULL;
    r->alloc = *alloc;
    r->io = *io;
    r->slot_bytes_max = SIZE_MAX;
    r->path = d7__tail_path(alloc, path, "");
    r->tail_path = d7__beside(io, alloc, path, D7_TAIL_SUFFIX);
    if (r->path && r->tail_path)
        return r;
    d7_tail_reader_free(r);
    return NULL;
}

/* `borrowed`: the photons file, open already; NULL: it is opened. */
static int open_beside(d7_tail_reader **ret_reader, const char *path, const d7_io *io, const d7_alloc *alloc,
                       void *borrowed, d7_error *err) {
    d7_tail_reader *r = new_tail_reader(path, io, alloc);
    if (!r)
        return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", path);
    int rc = 0;
    if (borrowed)
        r->photons = (d7__tail_file){.io = &r->io, .path = r->path, .file = borrowed};
    else
        rc = d7__tail_file_open(&r->photons, &r->io, r->path, D7_IO_READ, 0, err);
    r->borrowed = borrowed != NULL;
    if (rc == 0)
        rc = d7__tail_file_open(&r->tail, &r->io, r->tail_path, D7_IO_READ, 0, err);
    if (rc == 0)
        r->chunk = alloc->resize(alloc->ctx, NULL, D7__TAIL_CHUNK_BYTES);
    if (rc == 0 && !r->chunk)
        rc = d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", path);
    if (rc != 0) {
        d7_tail_reader_free(r);
        return rc;
    }
    *ret_reader = r;
    return 0;
}

int d7_tail_reader_open(d7_tail_reader **ret_reader, const char *path, const d7_reader_options *options,
                        d7_error *err) {
    if (!path || !*path)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "a path is needed");
    d7_alloc alloc = d7__alloc_or_default(options ? options->alloc : NULL);
    return open_beside(ret_reader, path, options && options->io ? options->io : d7_io_system(), &alloc, NULL,
                       err);
}

int d7__tail_reader_beside(d7_tail_reader **ret_reader, const d7__source *photons, size_t slot_bytes_max,
                           d7_error *err) {
    int rc = open_beside(ret_reader, photons->path, photons->io, photons->alloc, photons->file, err);
    if (rc == 0)
        (*ret_reader)->slot_bytes_max = slot_bytes_max;
    return rc;
}

void d7_tail_reader_free(d7_tail_reader *r) {
    if (!r)
        return;
    d7_alloc alloc = r->alloc;
    if (!r->borrowed)
        d7__tail_file_close(&r->photons);
    d7__tail_file_close(&r->tail);
    d7__tail_slots_free(&r->slots, &alloc);
    d7__release(&alloc, r->path);
    d7__release(&alloc, r->tail_path);
    d7__release(&alloc, r->chunk);
    d7__release(&alloc, r);
}

/* Slots first, then the file's size: what a slot counts on is in the file when the slot is seen. */
static int peek_once(d7_tail_reader *r, const d7_tail_slot **ret_slot, d7_error *err) {
    uint64_t size;
    int rc = d7__tail_file_size(&r->tail, &size, err);
    if (rc == 0 && size / D7_TAIL_SLOTS > r->slot_bytes_max)
        return d7__fail(err, D7_ERR_LIMIT, 0, D7_NO_OFFSET, "%s: too large to be read along", r->tail_path);
    if (rc == 0)
        rc = d7__tail_slots_read(&r->slots, &r->tail, &r->alloc, err);
    if (rc == 0)
        rc = d7__tail_file_size(&r->photons, &size, err);
    for (unsigned i = 0; i < r->slots.n_whole && rc == 0; i++) {
        const d7_tail_slot *s = &r->slots.slot[r->slots.newest[i]];
        d7__tail_verdict verdict;
        rc = d7__tail_judge(&r->photons, size, s, r->chunk, &r->known, &verdict, err);
        if (rc == 0 && i == 0)
            r->newest = verdict;
        if (rc == 0 && verdict == D7__TAIL_TRUE) {
            *ret_slot = s;
            return 0;
        }
    }
    return rc;
}

const d7_tail_slot *d7__tail_reader_untrue(const d7_tail_reader *r, d7__tail_verdict *ret_verdict) {
    if (r->slots.n_whole == 0 || r->newest == D7__TAIL_TRUE)
        return NULL;
    *ret_verdict = r->newest;
    return &r->slots.slot[r->slots.newest[0]];
}

int d7_tail_reader_peek(d7_tail_reader *r, const d7_tail_slot **ret_slot, d7_error *err) {
    const d7_tail_slot *slot = NULL;
    for (int i = 0; i < PEEK_TRIES && !slot; i++) {
        int rc = peek_once(r, &slot, err);
        if (rc != 0)
            return rc;
    }
    if (!slot && r->slots.n_unsupported)
        return d7__fail(err, D7_ERR_UNSUPPORTED, 0, D7_NO_OFFSET, "%s: it is written by a later version",
                        r->tail_path);
    if (!slot)
        return d7__fail(err, D7_ERR_NOTFOUND, 0, D7_NO_OFFSET, "%s: none of its slots is true of %s now",
                        r->tail_path, r->path);
    *ret_slot = slot;
    return 0;
}

/* The life of a tail: creation, slots, syncs. Which slot is written and what it may claim is the book's to
 * say (tail_book.h); here are its files and failures.
 *
 * Failures: a full disk changes nothing, the slot can be written again; any other error of a write and any
 * error of a sync is final, and what was pinned before stays true. */
#include "tail.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "tail_slot.h"

void d7_tail_options_init(d7_tail_options *options) {
    *options = (d7_tail_options){.mode = 0666};
}

/* ---- the table for the file's writer ---- */

static int watched_open(void *ctx, const char *path, int flags, unsigned mode, void **ret_file) {
    d7_tail *t = ctx;
    int rc = t->io.open(t->io.ctx, path, flags, mode, ret_file);
    if (rc == 0 && (flags & D7_IO_WRITE) && !t->watched_file)
        t->watched_file = *ret_file;
    return rc;
}

static int watched_close(void *ctx, void *file) {
    d7_tail *t = ctx;
    if (file == t->watched_file)
        t->watched_file = NULL;
    return t->io.close(t->io.ctx, file);
}

static int64_t watched_pread(void *ctx, void *file, void *buffer, size_t bytes, uint64_t offset) {
    d7_tail *t = ctx;
    return t->io.pread(t->io.ctx, file, buffer, bytes, offset);
}

static int64_t watched_pwrite(void *ctx, void *file, const void *data, size_t bytes, uint64_t offset) {
    d7_tail *t = ctx;
    int64_t n = t->io.pwrite(t->io.ctx, file, data, bytes, offset);
    if (file != t->watched_file)
        return n;
    if (n > 0 && offset == t->book.position)
        d7__tail_book_wrote(&t->book, data, (size_t)n);
    else if (n > 0)
        t->misplaced = true;
    return n;
}

static int watched_sync_data(void *ctx, void *file) {
    d7_tail *t = ctx;
    return t->io.sync_data(t->io.ctx, file);
}

static int watched_size(void *ctx, void *file, uint64_t *ret_bytes) {
    d7_tail *t = ctx;
    return t->io.size(t->io.ctx, file, ret_bytes);
}

static int watched_truncate(void *ctx, void *file, uint64_t bytes) {
    d7_tail *t = ctx;
    t->misplaced |= file == t->watched_file && bytes != t->book.position;
    return t->io.truncate(t->io.ctx, file, bytes);
}

static int watched_lock(void *ctx, void *file) {
    d7_tail *t = ctx;
    return t->io.lock(t->io.ctx, file);
}

static int watched_held(void *ctx, void *file, bool *ret_held) {
    d7_tail *t = ctx;
    return t->io.held(t->io.ctx, file, ret_held);
}

static int watched_remove(void *ctx, const char *path) {
    d7_tail *t = ctx;
    return t->io.remove(t->io.ctx, path);
}

static int watched_sync_directory(void *ctx, const char *path) {
    d7_tail *t = ctx;
    return t->io.sync_directory(t->io.ctx, path);
}

static int watched_set_group(void *ctx, void *file, uint32_t group) {
    d7_tail *t = ctx;
    return t->io.set_group(t->io.ctx, file, group);
}

static int watched_allocate(void *ctx, void *file, uint64_t offset, uint64_t bytes) {
    d7_tail *t = ctx;
    return t->io.allocate(t->io.ctx, file, offset, bytes);
}

static d7_io watched_table(d7_tail *t) {
    return (d7_io){.ctx = t,
                   .open = watched_open,
                   .close = watched_close,
                   .pread = watched_pread,
                   .pwrite = watched_pwrite,
                   .sync_data = watched_sync_data,
                   .size = watched_size,
                   .truncate = watched_truncate,
                   .lock = watched_lock,
                   .held = watched_held,
                   .remove = t->io.remove ? watched_remove : NULL,
                   .sync_directory = t->io.sync_directory ? watched_sync_directory : NULL,
                   .set_group = t->io.set_group ? watched_set_group : NULL,
                   .allocate = t->io.allocate ? watched_allocate : NULL};
}

const d7_io *d7_tail_io(d7_tail *t) {
    return &t->watched;
}

/* ---- creation and end ---- */

int d7__tail_new(d7_tail **ret_tail, const char *path, const d7_tail_layout *layout, size_t slot_bytes,
                 const d7_io *io, const d7_alloc *alloc, d7_error *err) {
    d7_tail *t = d7__new(alloc, sizeof *t);
    if (!t)
        return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", path);
    t->alloc = *alloc;
    t->io = io ? *io : *d7_io_system();
    t->watched = watched_table(t);
    t->path = d7__tail_path(alloc, path, "");
    t->types = d7__new(alloc, layout->n_datasets * sizeof *t->types);
    t->buffer = d7__new(alloc, slot_bytes);
    if (!t->path || !t->types || !t->buffer) {
        d7_tail_free(t);
        return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", path);
    }
    memcpy(t->types, layout->types, layout->n_datasets * sizeof *t->types);
    t->layout = *layout;
    t->layout.types = t->types;
    t->layout.attribute_bytes = d7__slot_attribute_room(layout, slot_bytes);
    t->slot_bytes = slot_bytes;
    *ret_tail = t;
    return 0;
}

/* Empty slots: what is written over needs no room later. */
static int create_write(d7_tail *t, d7_error *err) {
    int rc = 0;
    for (unsigned i = 0; i < D7_TAIL_SLOTS && rc == 0; i++)
        rc = d7__tail_file_write(&t->file, t->buffer, t->slot_bytes, i * t->slot_bytes, err);
    return rc;
}

static int create_file(d7_tail *t, const d7_tail_options *o, d7_error *err) {
    int flags = D7_IO_WRITE | D7_IO_CREATE | D7_IO_EXCLUSIVE;
    int rc = d7__tail_file_open(&t->file, &t->io, t->path, flags, o->mode, err);
    if (rc != 0)
        return rc;
    rc = create_write(t, err);
    if (rc != 0 && t->io.remove)
        t->io.remove(t->io.ctx, t->path);
    return rc;
}

int d7_tail_create(d7_tail **ret_tail, const char *path, const d7_tail_layout *layout,
                   const uint8_t file_id[D7_TAIL_FILE_ID_BYTES], uint32_t part, uint64_t first_sequence,
                   const d7_tail_options *options, d7_error *err) {
    d7_tail_options defaults;
    d7_tail_options_init(&defaults);
    const d7_tail_options *o = options ? options : &defaults;
    if (!path || !*path || !file_id)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "a path and an id are needed");
    size_t slot_bytes;
    int rc = d7_tail_slot_bytes(layout, &slot_bytes);
    if (rc != 0)
        return d7__fail(err, rc, 0, D7_NO_OFFSET, "%s: a tail of this layout %s", path,
                        rc == D7_ERR_LIMIT ? "would need slots of over 256 MiB" : "cannot be");
    d7_alloc alloc = d7__alloc_or_default(o->alloc);
    d7_tail *t;
    rc = d7__tail_new(&t, path, layout, slot_bytes, o->io, &alloc, err);
    if (rc != 0)
        return rc;
    d7__tail_book_init(&t->book, file_id, part, first_sequence);
    rc = create_file(t, o, err);
    if (rc != 0) {
        d7_tail_free(t);
        return rc;
    }
    *ret_tail = t;
    return 0;
}

int d7_tail_renamed(d7_tail *t, const char *path, d7_error *err) {
    if (!path || !*path)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: a path is needed", t->path);
    char *copy = d7__tail_path(&t->alloc, path, "");
    if (!copy)
        return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", t->path);
    d7__release(&t->alloc, t->path);
    t->path = copy;
    t->file.path = copy;
    return 0;
}

void d7_tail_free(d7_tail *t) {
    if (!t)
        return;
    d7_alloc alloc = t->alloc;
    d7__tail_file_close(&t->file);
    d7__release(&alloc, t->path);
    d7__release(&alloc, t->types);
    d7__release(&alloc, t->buffer);
    d7__release(&alloc, t);
}

/* ---- slots ---- */

static int tail_fail(d7_tail *t, const d7_error *failure, d7_error *err) {
    t->failed = true;
    t->failure = *failure;
    if (err)
        *err = *failure;
    return failure->code;
}

static int sync_failed(const d7_tail *t, int os_errno, d7_error *err) {
    return d7__fail(err, D7_ERR_IO, os_errno, D7_NO_OFFSET,
                    "%s: syncing it or its file failed; nothing after batch %" PRIu64 " counts as stored",
                    t->path, d7_tail_durable_sequence(t));
}

static int check_failed(d7_tail *t, d7_error *err) {
    int sync_errno = atomic_load_explicit(&t->sync_errno, memory_order_relaxed);
    d7_error failure;
    if (!t->failed && sync_errno) {
        sync_failed(t, sync_errno, &failure);
        return tail_fail(t, &failure, err);
    }
    if (!t->failed && t->misplaced) {
        d7__fail(&failure, D7_ERR_STATE, 0, D7_NO_OFFSET,
                 "%s: its file was changed elsewhere than at its end", t->path);
        return tail_fail(t, &failure, err);
    }
    if (t->failed && err)
        *err = t->failure;
    return t->failed ? t->failure.code : 0;
}

static int check_mark(d7_tail *t, uint64_t length, const d7_tail_mark *mark, d7_error *err) {
    int rc = check_failed(t, err);
    if (rc != 0)
        return rc;
    if (!mark)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: a mark is needed", t->path);
    if (length != t->book.position)
        return d7__fail(err, D7_ERR_STATE, 0, length,
                        "%s: %" PRIu64 " bytes of its file were written, not %" PRIu64
                        ": flush the writer before a mark",
                        t->path, t->book.position, length);
    if (mark->sequence < t->book.sequence)
        return d7__fail(err, D7_ERR_STATE, 0, D7_NO_OFFSET,
                        "%s: batch %" PRIu64 " was marked already, %" PRIu64 " comes before it", t->path,
                        t->book.sequence, mark->sequence);
    return 0;
}

int d7_tail_mark_slot(d7_tail *t, uint64_t length, const d7_tail_mark *mark, d7_error *err) {
    int rc = check_mark(t, length, mark, err);
    if (rc != 0)
        return rc;
    d7_tail_claim claim;
    size_t bytes;
    unsigned slot = d7__tail_book_next(&t->book, &claim);
    t->has_recovered = false;
    rc = d7_tail_slot_encode(&t->layout, &t->book.identity, &claim, mark, t->buffer, t->slot_bytes, &bytes,
                             err);
    if (rc != 0)
        return rc;
    d7_error failure;
    rc = d7__tail_file_write(&t->file, t->buffer, bytes, slot * t->slot_bytes, &failure);
    if (rc == D7_ERR_NOSPACE && err)
        *err = failure;
    if (rc != 0)
        return rc == D7_ERR_NOSPACE ? rc : tail_fail(t, &failure, err);
    d7__tail_book_marked(&t->book, slot, mark->sequence);
    return 0;
}

int d7_tail_begin_sync(d7_tail *t, uint64_t length, const d7_tail_mark *mark, d7_error *err) {
    int rc = check_failed(t, err);
    if (rc == 0 && t->book.in_flight.slot != D7__NO_SLOT)
        return d7__fail(err, D7_ERR_STATE, 0, D7_NO_OFFSET, "%s: a sync is under way", t->path);
    if (rc == 0)
        rc = d7_tail_mark_slot(t, length, mark, err);
    if (rc == 0)
        d7__tail_book_begin_sync(&t->book);
    return rc;
}

int d7_tail_sync_data(d7_tail *t, d7_error *err) {
    d7_error failure;
    int rc = d7__tail_file_sync(&t->file, &failure);
    if (rc == 0)
        return 0;
    atomic_store_explicit(&t->sync_errno, failure.os_errno, memory_order_relaxed);
    if (err)
        *err = failure;
    return D7_ERR_IO;
}

int d7_tail_finish_sync(d7_tail *t, bool synced, d7_error *err) {
    int rc = check_failed(t, err);
    if (rc != 0)
        return rc;
    if (t->book.in_flight.slot == D7__NO_SLOT)
        return d7__fail(err, D7_ERR_STATE, 0, D7_NO_OFFSET, "%s: no sync is under way", t->path);
    d7__tail_book_finish_sync(&t->book, synced);
    if (synced)
        return 0;
    d7_error failure;
    sync_failed(t, 0, &failure);
    return tail_fail(t, &failure, err);
}

/* ---- getters ---- */

bool d7_tail_has_durable(const d7_tail *t) {
    return t->book.pinned.slot != D7__NO_SLOT;
}

uint64_t d7_tail_durable_sequence(const d7_tail *t) {
    return d7_tail_has_durable(t) ? t->book.pinned.sequence : t->book.identity.first_sequence;
}

uint64_t d7_tail_durable_bytes(const d7_tail *t) {
    return t->book.pinned.length;
}

size_t d7_tail_attribute_room(const d7_tail *t) {
    return t->layout.attribute_bytes;
}

const d7_tail_slot *d7_tail_recovered(const d7_tail *t) {
    return t->has_recovered ? &t->recovered : NULL;
}

/* Recovery: a file that a crash left open becomes what the newest true slot says.
 *
 *   lock -> read the slots -> closed?  yes: make the epilogue safe, remove the tail
 *                             no: choose -> make what was chosen safe -> copy aside -> cut -> a slot above
 *                             all others
 *
 * What the system shows after a crash of the program alone is not what the disk holds: nothing since the last
 * sync may have reached it, and after a sync that failed the system may take for written what is not. So
 * before anything is overwritten that an older slot counts on, the chosen slot's bytes and those of the file
 * from its B on are written again, the same, and both files are synced. From then on the chosen slot is true
 * on the disk too, and each further step leaves it so:
 *   - cutting the file takes away nothing it counts on;
 *   - the new slot goes into another place. It has a generation above any seen, so that a slot that was
 *     passed over now can never win later, when the same batches were sent again and the file reached its L
 *     with its bytes.
 * A crash at any step leaves a state in which the next recovery comes to the same, or in which an older true
 * slot wins because the chosen one had not reached the disk: nothing of it had been called durable then. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "cut.h"
#include "error.h"
#include "reader.h"
#include "tail.h"
#include "tail_slot.h"

typedef struct recovery {
    d7_tail_recover_options options;
    d7_io io;
    d7_alloc alloc;
    const char *path;
    char *tail_path;
    d7__tail_file photons, tail;
    uint64_t size; /* of the file as found */
    d7__tail_slots slots;
    uint8_t *chunk; /* [D7__CUT_CHUNK_BYTES] */
    int chosen;     /* a slot, or D7__NO_SLOT */
    unsigned n_foreign;
    d7_tail_recovery result;
} recovery;

void d7_tail_recover_options_init(d7_tail_recover_options *options) {
    *options = (d7_tail_recover_options){.sequence_limit = UINT64_MAX, .keep_cut = true, .mode = 0666};
}

static const d7_tail_slot *chosen_slot(const recovery *r) {
    return &r->slots.slot[r->chosen];
}

/* ---- opening ---- */

static int recovery_lock(recovery *r, d7_error *err) {
    int rc = r->io.lock(r->io.ctx, r->photons.file);
    if (rc == -EAGAIN)
        return d7__fail(err, D7_ERR_LOCKED, 0, D7_NO_OFFSET, "%s: a writer holds this file", r->path);
    return 0; /* a file system without locks: the caller's lock on the folder has to do */
}

/* A tail without its file is an orphan. */
static int recovery_open(recovery *r, d7_error *err) {
    int rc = d7__tail_file_open(&r->tail, &r->io, r->tail_path, D7_IO_WRITE, 0, err);
    if (rc != 0)
        return rc;
    rc = d7__tail_file_open(&r->photons, &r->io, r->path, D7_IO_WRITE, 0, err);
    if (rc == D7_ERR_NOTFOUND) {
        r->result.outcome = D7_TAIL_ORPHAN;
        return 0;
    }
    if (rc == 0)
        rc = recovery_lock(r, err);
    if (rc == 0)
        rc = d7__tail_file_size(&r->photons, &r->size, err);
    return rc;
}

/* ---- choosing ---- */

static bool foreign_id(const recovery *r, const d7_tail_slot *s) {
    return r->options.file_id && memcmp(r->options.file_id, s->identity.file_id, D7_TAIL_FILE_ID_BYTES) != 0;
}

static int recovery_judge(recovery *r, unsigned slot, bool *ret_chosen, d7_error *err) {
    const d7_tail_slot *s = &r->slots.slot[slot];
    d7__tail_verdict verdict = D7__TAIL_FOREIGN;
    int rc = 0;
    if (!foreign_id(r, s))
        rc = d7__tail_judge(&r->photons, r->size, s, r->chunk, NULL, &verdict, err);
    r->n_foreign += rc == 0 && verdict == D7__TAIL_FOREIGN;
    *ret_chosen = rc == 0 && verdict == D7__TAIL_TRUE && s->sequence <= r->options.sequence_limit;
    return rc;
}

/* The newest that is true. Those passed over are counted. */
static int recovery_choose(recovery *r, d7_error *err) {
    int rc = d7__tail_slots_read(&r->slots, &r->tail, &r->alloc, err);
    r->chosen = D7__NO_SLOT;
    for (unsigned i = 0; i < r->slots.n_whole && rc == 0 && r->chosen == D7__NO_SLOT; i++) {
        unsigned slot = r->slots.newest[i];
        uint64_t sequence = r->slots.slot[slot].sequence;
        bool good;
        rc = recovery_judge(r, slot, &good, err);
        if (rc == 0 && good) {
            r->chosen = (int)slot;
        } else if (rc == 0) {
            r->result.n_rejected++;
            if (sequence > r->result.rejected_sequence)
                r->result.rejected_sequence = sequence;
        }
    }
    return rc;
}

static int nothing_chosen(const recovery *r, d7_error *err) {
    if (r->slots.n_unsupported)
        return d7__fail(err, D7_ERR_UNSUPPORTED, 0, D7_NO_OFFSET, "%s: it was written by a later version",
                        r->tail_path);
    if (r->n_foreign)
        return d7__fail(err, D7_ERR_CORRUPT, 0, D7_NO_OFFSET, "%s: it is the tail of another file than %s",
                        r->tail_path, r->path);
    return d7__fail(err, D7_ERR_CORRUPT, 0, D7_NO_OFFSET, "%s: %s of its %u slots is true of %s",
                    r->tail_path, r->slots.n_whole ? "none that is whole" : "none", D7_TAIL_SLOTS, r->path);
}

/* ---- a file that was closed ---- */

/* An epilogue is written last, after a sync of all before it: one that is whole, and leads to an index, is
 * true. */
static int find_end(recovery *r, d7__source *source, bool *ret_closed, uint64_t *ret_at, d7_error *err) {
    d7__framing framing = {.source = source};
    d7__found found;
    d7__entry entry;
    d7__kind kind;
    d7__cursor body;
    uint64_t index;
    bool there = false;
    *ret_closed = false;
    int rc = d7__source_open(source, r->path, &r->io, &r->alloc, err);
    if (rc == 0)
        rc = d7__source_measure(source, err);
    if (rc == 0 && source->size > 0)
        rc = d7__find_epilogue(&framing, &there, ret_at, &index, err);
    if (rc == 0 && there && index < *ret_at) {
        rc = d7__entry_at(&framing, index, &found, &entry, err);
        *ret_closed = rc == 0 && found == D7__FOUND_ENTRY &&
                      d7__entry_kind(entry.data, entry.bytes, &kind, &body) && kind == D7__KIND_INDEX;
    }
    d7__framing_free(&framing);
    return rc;
}

/* Was the file closed? *ret_at: where its epilogue is, after what the chosen slot counts on. */
static int recovery_is_closed(recovery *r, bool *ret_closed, uint64_t *ret_at, d7_error *err) {
    d7__source source = {0};
    int rc = find_end(r, &source, ret_closed, ret_at, err);
    d7__source_close(&source);
    if (r->chosen != D7__NO_SLOT && *ret_closed && *ret_at < chosen_slot(r)->claim.length)
        *ret_closed = false;
    return rc;
}

static int write_piece_again(void *ctx, const uint8_t *data, size_t bytes, uint64_t offset, d7_error *err) {
    const d7__tail_file *f = ctx;
    return d7__tail_file_write(f, data, bytes, offset, err);
}

/* Writes what is there once more, so that the next sync answers for it. */
static int write_again(recovery *r, uint64_t from, uint64_t to, d7_error *err) {
    return d7__tail_file_each(&r->photons, from, to, r->chunk, write_piece_again, &r->photons, err);
}

static int recovery_drop_tail(recovery *r, uint64_t epilogue, d7_error *err) {
    int rc = write_again(r, epilogue, r->size, err);
    if (rc == 0)
        rc = d7__tail_file_sync(&r->photons, err);
    if (rc != 0)
        return rc;
    r->result.outcome = D7_TAIL_CLOSED;
    r->result.length = r->size;
    if (!r->io.remove)
        return 0;
    rc = r->io.remove(r->io.ctx, r->tail_path);
    if (rc < 0)
        return d7__fail(err, D7_ERR_IO, -rc, D7_NO_OFFSET, "%s: removing it failed", r->tail_path);
    return d7__cut_sync_folder(&r->io, r->path, err);
}

/* ---- a file that was open ---- */

static int recovery_make_safe(recovery *r, d7_error *err) {
    const d7_tail_slot *s = chosen_slot(r);
    uint64_t place = (uint64_t)r->chosen * r->slots.slot_bytes;
    int rc = write_again(r, s->claim.base, s->claim.length, err);
    if (rc == 0)
        rc = d7__tail_file_write(&r->tail, s->bytes, s->used_bytes, place, err);
    if (rc == 0)
        rc = d7__tail_file_sync(&r->photons, err);
    return rc == 0 ? d7__tail_file_sync(&r->tail, err) : rc;
}

static int recovery_cut(recovery *r, d7_error *err) {
    uint64_t length = chosen_slot(r)->claim.length;
    const d7__cut cut = {.from = &r->photons,
                         .alloc = &r->alloc,
                         .chunk = r->chunk,
                         .begin = length,
                         .end = r->size,
                         .mode = r->options.mode};
    int rc = 0;
    if (r->size == length)
        return 0;
    if (r->options.keep_cut)
        rc = d7__cut_keep(&cut, &r->result.cut_number, err);
    if (rc == 0)
        rc = d7__tail_file_truncate(&r->photons, length, err);
    if (rc == 0)
        rc = d7__tail_file_sync(&r->photons, err);
    if (rc == 0)
        r->result.cut_bytes = r->size - length;
    return rc;
}

/* The tail to go on with; it takes over the open file. */
static int recovery_tail(recovery *r, d7_tail **ret_tail, d7_error *err) {
    const d7_tail_slot *s = chosen_slot(r);
    d7_type *types = d7__new(&r->alloc, s->n_datasets * sizeof *types);
    if (!types)
        return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", r->tail_path);
    for (size_t i = 0; i < s->n_datasets; i++) {
        d7_tail_dataset d = {0};
        if (d7_tail_slot_dataset(s, i, &d) == 0)
            types[i] = d.type;
    }
    d7_tail_layout layout = {
        .bytes_per_page = s->bytes_per_page, .types = types, .n_datasets = s->n_datasets};
    d7_tail *t = NULL;
    int rc = d7__tail_new(&t, r->tail_path, &layout, r->slots.slot_bytes, r->options.io, &r->alloc, err);
    d7__release(&r->alloc, types);
    if (rc != 0)
        return rc;
    memcpy(t->buffer, s->bytes, s->used_bytes);
    t->file = (d7__tail_file){.io = &t->io, .path = t->path, .file = r->tail.file};
    r->tail = (d7__tail_file){0};
    *ret_tail = t;
    return 0;
}

/* Is the chosen slot one that a recovery left: nothing to prove, nothing above it? */
static bool settled(const recovery *r) {
    const d7_tail_claim *c = &chosen_slot(r)->claim;
    return r->slots.newest[0] == (unsigned)r->chosen && c->base == c->length && r->size == c->length;
}

/* Writes the slot that stands above all that were seen, and makes the book begin with it. */
static int recovery_settle(recovery *r, d7_tail *t, d7_error *err) {
    const d7_tail_slot *s = chosen_slot(r);
    d7_tail_claim claim = {.generation = r->slots.slot[r->slots.newest[0]].claim.generation + 1,
                           .length = s->claim.length,
                           .base = s->claim.length};
    d7__tail_point point = {.slot = r->chosen, .length = s->claim.length, .sequence = s->sequence};
    int rc = 0;
    if (!settled(r)) {
        point.slot = (int)d7_tail_choose(r->chosen, D7__NO_SLOT, r->chosen);
        d7__slot_restamp(t->buffer, s->used_bytes, &claim);
        rc = d7__tail_file_write(&t->file, t->buffer, d7__slot_written_bytes(s->used_bytes),
                                 (uint64_t)point.slot * t->slot_bytes, err);
        if (rc == 0)
            rc = d7__tail_file_sync(&t->file, err);
    }
    if (rc == 0)
        rc = d7_tail_slot_decode(t->buffer, t->slot_bytes, &t->recovered, err);
    if (rc != 0)
        return rc;
    t->has_recovered = true;
    d7__tail_book_resume(&t->book, &t->recovered, &point);
    return 0;
}

static int recovery_resume(recovery *r, d7_tail **ret_tail, d7_error *err) {
    d7_tail *t = NULL;
    int rc = recovery_make_safe(r, err);
    if (rc == 0)
        rc = recovery_cut(r, err);
    if (rc == 0)
        rc = recovery_tail(r, &t, err);
    if (rc == 0)
        rc = recovery_settle(r, t, err);
    if (rc != 0) {
        d7_tail_free(t);
        return rc;
    }
    r->result.outcome = D7_TAIL_RESUMED;
    r->result.length = chosen_slot(r)->claim.length;
    *ret_tail = t;
    return 0;
}

/* ---- all of it ---- */

static int recovery_run(recovery *r, d7_tail **ret_tail, d7_error *err) {
    bool closed = false;
    uint64_t epilogue = 0;
    int rc = recovery_open(r, err);
    if (rc != 0 || r->result.outcome == D7_TAIL_ORPHAN)
        return rc;
    rc = recovery_choose(r, err);
    if (rc == 0)
        rc = recovery_is_closed(r, &closed, &epilogue, err);
    if (rc != 0)
        return rc;
    if (closed && !r->options.end_is_beyond &&
        (r->chosen != D7__NO_SLOT || r->slots.n_whole + r->slots.n_unsupported == 0))
        return recovery_drop_tail(r, epilogue, err);
    return r->chosen != D7__NO_SLOT ? recovery_resume(r, ret_tail, err) : nothing_chosen(r, err);
}

int d7_tail_recover(d7_tail **ret_tail, const char *path, const d7_tail_recover_options *options,
                    d7_tail_recovery *ret_recovery, d7_error *err) {
    recovery r = {.path = path, .chosen = D7__NO_SLOT};
    d7_tail_recover_options_init(&r.options);
    if (options)
        r.options = *options;
    if (!path || !*path)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "a path is needed");
    r.io = r.options.io ? *r.options.io : *d7_io_system();
    r.alloc = d7__alloc_or_default(r.options.alloc);
    r.tail_path = d7__beside(&r.io, &r.alloc, path, D7_TAIL_SUFFIX);
    r.chunk = r.alloc.resize(r.alloc.ctx, NULL, D7__CUT_CHUNK_BYTES);
    d7_tail *tail = NULL;
    int rc = r.tail_path && r.chunk ? recovery_run(&r, &tail, err)
                                    : d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", path);
    if (rc == 0) {
        *ret_tail = tail;
        *ret_recovery = r.result;
    }
    d7__tail_file_close(&r.photons);
    d7__tail_file_close(&r.tail);
    d7__tail_slots_free(&r.slots, &r.alloc);
    d7__release(&r.alloc, r.tail_path);
    d7__release(&r.alloc, r.chunk);
    return rc;
}

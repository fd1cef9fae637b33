/* What the tail beside an unclosed file holds, as the newest items of its datasets.
 *
 * A slot is true of the file's first L bytes. It is looked at before the file's size is taken, so the pages that
 * are known afterwards are those or more. For a dataset that has more, the slot's values are in a page by now: it is
 * passed over there. A slot that was seen stays until a newer one is, or the file is closed or cut: so the number of
 * items does not fall for a moment when the writer is at a slot.
 *
 * Where nobody writes the file any more and its newest slot is not true of it, bytes of the file are not what was
 * written: a problem, since what that slot counts on or holds is not given out, or given out although it has changed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "reader_pages.h"
#include "tail_reader.h"

enum { SLOT_BYTES_MAX = 16 << 20 }; /* what is larger is not read along */

static void drop_attributes(d7_reader *r) {
    d7__attributes_free(&r->tail.attributes);
    r->tail.n_extra = 0;
}

void d7__tail_drop(d7_reader *r) {
    d7__reader_tail *t = &r->tail;
    d7_tail_reader_free(t->reader);
    drop_attributes(r);
    d7__release(&r->alloc, t->bytes.data);
    d7__release(&r->alloc, t->next.data);
    d7__release(&r->alloc, t->extra);
    d7__release(&r->alloc, t->fault.items);
    *t = (d7__reader_tail){.attributes.alloc = &r->alloc};
}

/* ---- what cannot be used ---- */

static int note_untrue(d7_reader *r, const d7_tail_slot *slot, d7__tail_verdict verdict, d7_error *err) {
    d7__tail_fault *f = &r->tail.fault;
    d7_tail_dataset d;
    f->there = f->known = true;
    f->foreign = verdict == D7__TAIL_FOREIGN;
    f->claim = slot->claim;
    f->head_bytes = slot->identity.head_bytes;
    if (d7__grow(&r->alloc, &f->items, &f->cap_items, slot->n_datasets, sizeof *f->items) != 0)
        return d7__reader_no_memory(r, err);
    f->n_items = slot->n_datasets;
    for (size_t i = 0; i < f->n_items; i++)
        f->items[i] = d7_tail_slot_dataset(slot, i, &d) == 0 ? d.items : 0;
    return 0;
}

static void note_unusable(d7_reader *r, int rc, const d7_error *failure) {
    d7__tail_fault *f = &r->tail.fault;
    f->there = true;
    snprintf(f->text, sizeof f->text, "the tail beside the file cannot be used: %.150s",
             rc == D7_ERR_NOTFOUND ? "none of its slots is whole" : failure->text);
}

/* What the look came to. `rc`: of the peek. */
static int note_fault(d7_reader *r, int rc, const d7_error *failure, d7_error *err) {
    d7__tail_verdict verdict;
    const d7_tail_slot *newest = d7__tail_reader_untrue(r->tail.reader, &verdict);
    if ((rc == 0 || rc == D7_ERR_NOTFOUND) && newest)
        return note_untrue(r, newest, verdict, err);
    if (rc != 0)
        note_unusable(r, rc, failure);
    return 0;
}

static uint64_t items_read(const d7_reader *r, uint32_t ds) {
    return d7__dataset_items(&r->datasets[ds]) + d7__tail_items(r, ds);
}

bool d7__tail_tells_more(const d7_reader *r, uint32_t ds, uint64_t n) {
    const d7__tail_fault *f = &r->tail.fault;
    bool counted = f->known && !f->foreign && ds < f->n_items;
    return f->there && (!counted || f->items[ds] > n);
}

/* How many items the dataset that lacks most has less than the slot says. */
static uint64_t most_missing(const d7_reader *r, uint32_t *ret_ds) {
    const d7__tail_fault *f = &r->tail.fault;
    uint64_t most = 0;
    for (uint32_t ds = 0; ds < f->n_items && ds < r->header.n_datasets; ds++) {
        uint64_t read = items_read(r, ds);
        if (f->items[ds] > read && f->items[ds] - read > most) {
            most = f->items[ds] - read;
            *ret_ds = ds;
        }
    }
    return most;
}

static d7_problem untrue_problem(const d7_reader *r) {
    const d7__tail_fault *f = &r->tail.fault;
    uint32_t ds = D7_NO_DATASET;
    uint64_t missing = most_missing(r, &ds);
    char rest[128] = "";
    if (missing)
        snprintf(rest, sizeof rest, "; it tells of %" PRIu64 " items of %.60s that are not read", missing,
                 r->header.datasets[ds].name);
    if (f->claim.length > r->source.size)
        return d7__problem(D7_PROBLEM_TAIL, r->source.size,
                           "the file ends here, but was %" PRIu64 " bytes long by the tail beside it%s",
                           f->claim.length, rest);
    return d7__problem(D7_PROBLEM_TAIL, f->claim.base,
                       "by the tail beside the file some bytes from here to %" PRIu64
                       " are not what was written%s",
                       f->claim.length - 1, rest);
}

/* A slot is always true of a file while its writer lives, and of no other file that took the path. */
static bool is_expected_true(d7_reader *r) {
    bool same = true;
    if (r->held || r->state != D7_STATE_OPEN)
        return false;
    return !r->io.same || (r->io.same(r->io.ctx, r->source.file, r->source.path, &same) == 0 && same);
}

static void tell_fault(d7_reader *r) {
    const d7__tail_fault *f = &r->tail.fault;
    d7__problems_drop(&r->problems, D7_PROBLEM_TAIL);
    if (!f->there || !is_expected_true(r))
        return;
    d7_problem p = !f->known    ? d7__problem(D7_PROBLEM_TAIL, D7_NO_OFFSET, "%s", f->text)
                   : f->foreign ? d7__problem(D7_PROBLEM_TAIL, 0,
                                              "the tail beside is another file's, or the first %" PRIu64
                                              " bytes of this one have changed: what it holds is not read",
                                              f->head_bytes)
                                : untrue_problem(r);
    d7__problems_add(&r->problems, &p);
}

/* ---- looking ---- */

/* Copies what the tail reader shows: it is gone with the next look. */
static int keep(d7_reader *r, const d7_tail_slot *slot, d7_error *err) {
    d7__reader_tail *t = &r->tail;
    t->next.n = 0;
    if (d7__buffer_reserve(&r->alloc, &t->next, slot->used_bytes) != 0)
        return d7__reader_no_memory(r, err);
    memcpy(t->next.data, slot->bytes, slot->used_bytes);
    t->next.n = slot->used_bytes;
    t->next_slot = *slot;
    t->next_slot.bytes = t->next.data;
    t->next_slot.producer = (const char *)t->next.data + (slot->producer - (const char *)slot->bytes);
    return 0;
}

/* A tail that is no tail, or one of a later version, is as none. */
static int none_or_error(int rc) {
    return rc == D7_ERR_NOMEM || rc == D7_ERR_IO ? rc : 0;
}

/* *ret_slot: the newest that is true; NULL: none, or it is not newer than the one that is known. */
static int look(d7_reader *r, const d7_tail_slot **ret_slot, d7_error *err) {
    d7__reader_tail *t = &r->tail;
    const d7_tail_slot *slot;
    d7_error failure;
    *ret_slot = NULL;
    t->fault.there = t->fault.known = false;
    int rc = t->reader ? 0 : d7__tail_reader_beside(&t->reader, &r->source, SLOT_BYTES_MAX, &failure);
    if (rc != 0)
        return d7__passed_on(none_or_error(rc), &failure, err);
    rc = d7_tail_reader_peek(t->reader, &slot, &failure);
    if (none_or_error(rc) != 0)
        return d7__passed_on(rc, &failure, err);
    if (rc == 0 && (slot->claim.generation > t->slot.claim.generation || t->slot.slot_bytes == 0))
        *ret_slot = slot;
    return note_fault(r, rc, &failure, err);
}

int d7__tail_look(d7_reader *r, d7_error *err) {
    const d7_tail_slot *slot;
    r->tail.next_slot.slot_bytes = 0;
    if (r->options.pages_only)
        return 0;
    int rc = look(r, &slot, err);
    return rc == 0 && slot ? keep(r, slot, err) : rc;
}

int d7__tail_examine(d7_reader *r, d7_error *err) {
    const d7_tail_slot *slot;
    if (!r->options.pages_only || r->state != D7_STATE_OPEN || r->held)
        return 0;
    int rc = look(r, &slot, err);
    if (rc == 0)
        tell_fault(r);
    d7__tail_drop(r);
    return rc;
}

/* ---- what was seen counts ---- */

static bool fits(const d7_reader *r, const d7_tail_slot *s) {
    d7_tail_dataset d;
    if (s->n_datasets != r->header.n_datasets || s->bytes_per_page != r->header.bytes_per_page)
        return false;
    for (size_t i = 0; i < s->n_datasets; i++)
        if (d7_tail_slot_dataset(s, i, &d) != 0 || d.type != r->header.datasets[i].type)
            return false;
    return true;
}

/* Those that no Index entry of the file has, unless an entry was written after the slot: that has them. */
static int take_attributes(d7_reader *r) {
    d7__reader_tail *t = &r->tail;
    d7_attribute a;
    drop_attributes(r);
    if (t->slot.slot_bytes == 0 || r->progress.last_attributes >= t->slot.claim.length)
        return 0;
    for (size_t cursor = 0; d7_tail_slot_attribute(&t->slot, &cursor, &a);)
        if (d7__attributes_set(&t->attributes, &a, NULL) != 0)
            return D7_ERR_NOMEM;
    for (size_t i = 0; i < t->attributes.n; i++) {
        if (d7__attributes_find(&r->attributes, t->attributes.items[i].key,
                                t->attributes.items[i].key_bytes) != SIZE_MAX)
            continue;
        if (d7__grow(&r->alloc, &t->extra, &t->cap_extra, t->n_extra + 1, sizeof *t->extra) != 0)
            return D7_ERR_NOMEM;
        t->extra[t->n_extra++] = i;
    }
    return 0;
}

/* Does the slot say something of an attribute that is not known? */
static bool has_news(const d7_reader *r, const d7_tail_slot *slot) {
    d7_attribute a;
    for (size_t cursor = 0; d7_tail_slot_attribute(slot, &cursor, &a);) {
        const char *known = d7_reader_find_attribute(r, a.key);
        if (!known || strcmp(known, a.value) != 0)
            return true;
    }
    return false;
}

int d7__tail_accept(d7_reader *r, d7_error *err) {
    d7__reader_tail *t = &r->tail;
    if (r->state == D7_STATE_CLOSED) {
        d7__problems_drop(&r->problems, D7_PROBLEM_TAIL);
        d7__tail_drop(r);
        return 0;
    }
    if (t->next_slot.slot_bytes && fits(r, &t->next_slot)) {
        d7__buffer last = t->bytes;
        r->n_attribute_changes += has_news(r, &t->next_slot);
        t->bytes = t->next;
        t->next = last;
        t->slot = t->next_slot;
    }
    t->next_slot.slot_bytes = 0;
    tell_fault(r);
    if (take_attributes(r) == 0)
        return 0;
    drop_attributes(r);
    return d7__reader_no_memory(r, err);
}

/* ---- items ---- */

uint64_t d7__tail_items(const d7_reader *r, uint32_t ds) {
    const d7_tail_slot *s = &r->tail.slot;
    d7_tail_dataset d;
    if (s->slot_bytes == 0 || r->unplaced_from || d7_tail_slot_dataset(s, ds, &d) != 0)
        return 0;
    return d.items - d.n_partial == d7__dataset_items(&r->datasets[ds]) ? d.n_partial : 0;
}

void d7__tail_values(const d7_reader *r, uint32_t ds, uint64_t from, size_t n, void *out) {
    /* The caller asks for items that d7__tail_items() told of. */
    if (d7_tail_slot_values(&r->tail.slot, ds, (size_t)from, n, out) != 0)
        memset(out, 0, n * d7_type_size(r->header.datasets[ds].type));
}

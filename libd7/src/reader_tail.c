/* What the tail beside an unclosed file holds, as the newest items of its datasets.
 *
 * A slot is true of the file's first L bytes. It is looked at before the file's size is taken, so the pages that
 * are known afterwards are those or more. For a dataset that has more, the slot's values are in a page by now: it is
 * passed over there. A slot that was seen stays until a newer one is, or the file is closed or cut: so the number of
 * items does not fall for a moment when the writer is at a slot. */
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
    *t = (d7__reader_tail){.attributes.alloc = &r->alloc};
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

int d7__tail_look(d7_reader *r, d7_error *err) {
    d7__reader_tail *t = &r->tail;
    const d7_tail_slot *slot;
    d7_error failure;
    t->next_slot.slot_bytes = 0;
    if (r->options.pages_only)
        return 0;
    int rc = t->reader ? 0 : d7__tail_reader_beside(&t->reader, &r->source, SLOT_BYTES_MAX, &failure);
    if (rc == 0)
        rc = d7_tail_reader_peek(t->reader, &slot, &failure);
    if (rc != 0)
        return d7__passed_on(none_or_error(rc), &failure, err);
    return slot->claim.generation > t->slot.claim.generation || t->slot.slot_bytes == 0 ? keep(r, slot, err)
                                                                                        : 0;
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

#include "tail_book.h"

#include <assert.h>
#include <string.h>

#include "base/crc32c.h"

static const d7__tail_point no_point = {.slot = D7__NO_SLOT};

unsigned d7_tail_choose(int pinned, int in_flight, int last) {
    unsigned first = last >= 0 ? (unsigned)last + 1 : 0;
    for (unsigned i = 0; i < D7_TAIL_SLOTS; i++) {
        unsigned slot = (first + i) % D7_TAIL_SLOTS;
        if ((int)slot != pinned && (int)slot != in_flight)
            return slot;
    }
    return D7_TAIL_SLOTS - 1; /* not reached: two slots at most are taken */
}

/* Holds after every step. */
static void check(const d7__tail_book *b) {
    assert(b->base <= b->position);
    assert(b->base == b->pinned.length);
    assert(b->pinned.slot == D7__NO_SLOT || b->pinned.slot != b->in_flight.slot);
    assert(b->in_flight.slot == D7__NO_SLOT ||
           (b->in_flight.length >= b->base && b->in_flight.length <= b->position));
    assert(b->base < b->position || b->crc == 0);
    (void)b;
}

void d7__tail_book_init(d7__tail_book *b, const uint8_t file_id[D7_TAIL_FILE_ID_BYTES], uint32_t part,
                        uint64_t first_sequence) {
    *b = (d7__tail_book){.identity = {.part = part, .first_sequence = first_sequence},
                         .sequence = first_sequence,
                         .last = D7__NO_SLOT,
                         .pinned = no_point,
                         .in_flight = no_point};
    memcpy(b->identity.file_id, file_id, sizeof b->identity.file_id);
    check(b);
}

void d7__tail_book_resume(d7__tail_book *b, const d7_tail_slot *slot, const d7__tail_point *point) {
    *b = (d7__tail_book){.identity = slot->identity,
                         .head_fixed = true,
                         .generation = slot->claim.generation,
                         .sequence = point->sequence,
                         .last = point->slot,
                         .position = point->length,
                         .base = point->length,
                         .pinned = *point,
                         .in_flight = no_point};
    check(b);
}

static void grow_head(d7__tail_book *b, const void *data, size_t bytes) {
    d7_tail_identity *id = &b->identity;
    size_t room = (size_t)(D7_TAIL_HEAD_BYTES_MAX - id->head_bytes);
    size_t n = bytes < room ? bytes : room;
    id->head_crc32c = common_crc32c(id->head_crc32c, data, n);
    id->head_bytes += n;
}

void d7__tail_book_wrote(d7__tail_book *b, const void *data, size_t bytes) {
    if (!b->head_fixed)
        grow_head(b, data, bytes);
    b->crc = common_crc32c(b->crc, data, bytes);
    if (b->in_flight.slot != D7__NO_SLOT)
        b->crc_since = common_crc32c(b->crc_since, data, bytes);
    b->position += bytes;
    check(b);
}

unsigned d7__tail_book_next(d7__tail_book *b, d7_tail_claim *ret_claim) {
    assert(!b->failed);
    b->head_fixed = true;
    b->generation++;
    *ret_claim = (d7_tail_claim){
        .generation = b->generation, .length = b->position, .base = b->base, .crc32c = b->crc};
    unsigned slot = d7_tail_choose(b->pinned.slot, b->in_flight.slot, b->last);
    assert((int)slot != b->pinned.slot && (int)slot != b->in_flight.slot);
    return slot;
}

void d7__tail_book_marked(d7__tail_book *b, unsigned slot, uint64_t sequence) {
    assert(sequence >= b->sequence);
    b->last = (int)slot;
    b->sequence = sequence;
    check(b);
}

void d7__tail_book_begin_sync(d7__tail_book *b) {
    assert(!b->failed && b->in_flight.slot == D7__NO_SLOT && b->last != D7__NO_SLOT);
    assert(b->last != b->pinned.slot);
    b->in_flight = (d7__tail_point){.slot = b->last, .length = b->position, .sequence = b->sequence};
    b->crc_since = 0;
    check(b);
}

void d7__tail_book_finish_sync(d7__tail_book *b, bool synced) {
    assert(!b->failed && b->in_flight.slot != D7__NO_SLOT);
    if (synced) {
        b->pinned = b->in_flight;
        b->base = b->pinned.length;
        b->crc = b->crc_since;
    } else {
        b->failed = true;
    }
    b->in_flight = no_point;
    check(b);
}

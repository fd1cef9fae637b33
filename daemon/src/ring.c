#include "ring.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <d7/d7.h>

enum { RING_SLOTS_MIN = 16, RING_ALIGN = 64 };

static const char *const slot_state_names[PD_SLOT_STATES] = {"free", "filling", "encoding", "encoded",
                                                             "writing"};

/* Bit n of row s: state s may move to state n. */
static const uint8_t slot_moves[PD_SLOT_STATES] = {
    [PD_SLOT_FREE] = 1u << PD_SLOT_FILLING,
    [PD_SLOT_FILLING] = 1u << PD_SLOT_ENCODING | 1u << PD_SLOT_FREE,
    [PD_SLOT_ENCODING] = 1u << PD_SLOT_ENCODED | 1u << PD_SLOT_FREE,
    [PD_SLOT_ENCODED] = 1u << PD_SLOT_WRITING | 1u << PD_SLOT_FREE,
    [PD_SLOT_WRITING] = 1u << PD_SLOT_FREE,
};

const char *pd_slot_state_name(pd_slot_state state) {
    return state < PD_SLOT_STATES ? slot_state_names[state] : "?";
}

void pd_slot_move(pd_slot *slot, pd_slot_state to) {
    bool allowed = to < PD_SLOT_STATES && (slot_moves[slot->state] & 1u << to);
    assert(allowed);
    (void)allowed;
    slot->state = to;
}

static size_t ring_largest_page(void) {
    size_t largest = 0;
    for (int type = 0; type < D7_N_TYPES; type++) {
        size_t n = d7_items_per_page((d7_type)type, PD_PAGE_BYTES);
        size_t bound = d7_page_bound((d7_type)type, n);
        if (bound > largest)
            largest = bound;
    }
    return largest;
}

static size_t ring_round_up(size_t bytes) {
    return (bytes + RING_ALIGN - 1) / RING_ALIGN * RING_ALIGN;
}

int pd_ring_init(pd_ring *ring, uint64_t bytes, size_t header_bytes, pd_error *err) {
    memset(ring, 0, sizeof *ring);
    ring->encoded_bytes = ring_round_up(ring_largest_page());
    header_bytes = ring_round_up(header_bytes);
    size_t buffers = PD_PAGE_BYTES + ring->encoded_bytes;
    ring->slot_bytes = buffers + header_bytes;
    uint64_t n = bytes / ring->slot_bytes;
    if (n < RING_SLOTS_MIN || n > UINT32_MAX / 2)
        return pd_error_set(err, "a ring of %llu bytes holds %llu page slots, at least %d are needed",
                            (unsigned long long)bytes, (unsigned long long)n, RING_SLOTS_MIN);
    ring->n_slots = (uint32_t)n;
    ring->slots = calloc(ring->n_slots, sizeof *ring->slots);
    ring->memory = aligned_alloc(RING_ALIGN, ring->n_slots * buffers);
    ring->headers = aligned_alloc(RING_ALIGN, ring->n_slots * header_bytes);
    if (!ring->slots || !ring->memory || !ring->headers) {
        pd_ring_free(ring);
        return pd_error_set(err, "no memory for a ring of %llu bytes", (unsigned long long)bytes);
    }
    memset(ring->memory, 0, ring->n_slots * buffers);
    memset(ring->headers, 0, ring->n_slots * header_bytes);
    for (uint32_t i = ring->n_slots; i-- > 0;) {
        pd_slot *slot = (pd_slot *)(void *)(ring->headers + i * header_bytes);
        slot->raw = ring->memory + i * buffers;
        slot->encoded = slot->raw + PD_PAGE_BYTES;
        slot->next_free = ring->free;
        ring->free = slot;
        ring->slots[i] = slot;
    }
    ring->n_free = ring->n_slots;
    return 0;
}

void pd_ring_free(pd_ring *ring) {
    free(ring->slots);
    free(ring->memory);
    free(ring->headers);
    memset(ring, 0, sizeof *ring);
}

int pd_ring_reserve(pd_ring *ring, pd_quota *quota, uint32_t slots) {
    if (slots > pd_ring_unreserved(ring))
        return -1;
    *quota = (pd_quota){.slots = slots};
    ring->n_reserved += slots;
    ring->n_reserved_free += slots;
    return 0;
}

void pd_ring_unreserve(pd_ring *ring, pd_quota *quota) {
    assert(quota->used == 0);
    ring->n_reserved -= quota->slots;
    ring->n_reserved_free -= quota->slots;
    quota->slots = 0;
}

uint32_t pd_ring_unreserved(const pd_ring *ring) {
    return ring->n_slots - ring->n_reserved;
}

uint32_t pd_ring_available(const pd_ring *ring, const pd_quota *quota) {
    uint32_t own = quota->used < quota->slots ? quota->slots - quota->used : 0;
    if (ring->n_free > ring->n_reserved_free)
        return own + (ring->n_free - ring->n_reserved_free);
    return own < ring->n_free ? own : ring->n_free;
}

pd_slot *pd_ring_take(pd_ring *ring, pd_quota *quota) {
    assert(pd_ring_available(ring, quota) > 0);
    pd_slot *slot = ring->free;
    ring->free = slot->next_free;
    slot->next_free = NULL;
    slot->quota = quota;
    slot->holders = 1;
    pd_slot_move(slot, PD_SLOT_FILLING);
    if (quota->used < quota->slots)
        ring->n_reserved_free--;
    quota->used++;
    ring->n_free--;
    uint32_t in_use = ring->n_slots - ring->n_free;
    if (in_use > ring->high_water)
        ring->high_water = in_use;
    return slot;
}

bool pd_ring_release(pd_ring *ring, pd_slot *slot) {
    assert(slot->holders > 0);
    if (--slot->holders > 0)
        return false;
    pd_slot_move(slot, PD_SLOT_FREE);
    pd_quota *quota = slot->quota;
    slot->quota = NULL;
    quota->used--;
    if (quota->used < quota->slots)
        ring->n_reserved_free++;
    slot->next_free = ring->free;
    ring->free = slot;
    ring->n_free++;
    return true;
}

/* The ring: a fixed number of page slots, all memory taken at the start. Every event that the daemon has
 * received and not yet written is in one of them.
 *
 *   free -> filling -> encoding -> encoded -> writing -> free
 *                \         \           \________________/^
 *                 \_________\_____________ given up _____/      (their run failed)
 *
 * A slot is filled by the loop, encoded by a pool job, waits its turn in the order of its run, is
 * written by the writer thread, and is free when it is written and no summary needs its values any more
 * (two holders; the last to let go frees it).
 *
 * Room. Each open run has a quota: slots that nobody else can have. Together the quotas never exceed the
 * ring, so no run can stop another. A run may use more while there are slots that no quota needs. What
 * it uses beyond its quota is on its way to the file and comes back by itself (a run's filling slots fit
 * its quota), so a quota may be promised to a new run while others still use its slots: they are there a
 * moment later.
 *
 * Thread: the loop's, but for what the owner of a slot does with its buffers (slot->raw, slot->encoded).
 */
#ifndef PD_RING_H
#define PD_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "queue.h"

enum { PD_PAGE_BYTES = 16384 }; /* of unencoded items; the format's usual bytes_per_page */

typedef enum pd_slot_state {
    PD_SLOT_FREE = 0,
    PD_SLOT_FILLING,
    PD_SLOT_ENCODING,
    PD_SLOT_ENCODED,
    PD_SLOT_WRITING,
    PD_SLOT_STATES
} pd_slot_state;

/* A run's claim on the ring. */
typedef struct pd_quota {
    uint32_t slots; /* promised */
    uint32_t used;  /* held now; may be more than promised */
} pd_quota;

typedef struct pd_slot {
    pd_slot_state state;
    uint8_t holders; /* who still needs it: the way to the file, the summary */
    pd_quota *quota; /* whose it is; NULL when free */
    uint8_t *raw;    /* [PD_PAGE_BYTES], aligned to 64 */
    uint8_t *encoded;
    struct pd_slot *next_free;
} pd_slot;

typedef struct pd_ring {
    pd_slot **slots; /* [n_slots] */
    uint32_t n_slots;
    uint32_t n_free;
    uint32_t n_reserved;      /* sum of the quotas */
    uint32_t n_reserved_free; /* of these, not in use */
    uint32_t high_water;      /* most slots ever in use */
    size_t encoded_bytes;     /* capacity of slot->encoded */
    size_t slot_bytes;        /* memory of one slot */
    pd_slot *free;
    uint8_t *memory;
    uint8_t *headers;
} pd_ring;

/* Takes the memory and touches it, so that it is there when it is needed.
 *  bytes         of all slots together; at least 16 slots must fit
 *  header_bytes  size of the struct whose first member is a pd_slot: every slot is one of these, zeroed
 *  Returns       0, or -1 with err */
PD_MUST_USE int pd_ring_init(pd_ring *ring, uint64_t bytes, size_t header_bytes, pd_error *err);
void pd_ring_free(pd_ring *ring);

/* Promises `slots` to a new run. Returns 0, or -1 when the ring has not so many unpromised ones. */
PD_MUST_USE int pd_ring_reserve(pd_ring *ring, pd_quota *quota, uint32_t slots);

/* Takes the promise back; the quota must be unused. */
void pd_ring_unreserve(pd_ring *ring, pd_quota *quota);

/* Slots that nobody is promised, in use or not. */
uint32_t pd_ring_unreserved(const pd_ring *ring);

/* Slots that this run could take now. */
uint32_t pd_ring_available(const pd_ring *ring, const pd_quota *quota);

/* Takes a slot, in state filling with one holder; there must be one available. Its header beyond pd_slot is
 * as the last user left it. */
pd_slot *pd_ring_take(pd_ring *ring, pd_quota *quota);

/* Moves a slot on; a wrong move is a mistake of ours and asserts. */
void pd_slot_move(pd_slot *slot, pd_slot_state to);

/* One holder lets go. Returns true when that made the slot free. The way to the file lets go in state
 * writing, or in any state when the run is given up. */
bool pd_ring_release(pd_ring *ring, pd_slot *slot);

const char *pd_slot_state_name(pd_slot_state state);

#endif

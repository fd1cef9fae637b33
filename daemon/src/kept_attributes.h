/* The attributes of a run as they stand: the last value of each key, in the order of their first setting. What a later
 * part of the run begins with. Those that came with a message can be taken back until the message is durable.
 * Thread: the loop's.
 */
#ifndef PD_KEPT_ATTRIBUTES_H
#define PD_KEPT_ATTRIBUTES_H

#include <stddef.h>
#include <stdint.h>

#include "dataset.h"
#include "error.h"

/* What a key had before a message that may still be taken back. */
typedef struct pd_kept_change {
    uint64_t sequence;
    uint32_t place;      /* in the list */
    pd_attribute before; /* key NULL: it was not there */
} pd_kept_change;

typedef struct pd_kept_attributes {
    pd_attribute *list; /* [n] each key and value in one block of memory */
    size_t n, cap;
    uint32_t *places; /* [n_places] open addressing: a place in the list and one; 0: none */
    size_t n_places;
    pd_kept_change *changes; /* [n_changes] from first_change on: the oldest first */
    size_t first_change, n_changes, cap_changes;
    uint64_t change_bytes; /* of the texts that they keep */
} pd_kept_attributes;

/* Takes copies of those that are not the daemon's own (photond.), as of the message of that number, or for good (0). Returns 0;
 * -1 when out of memory: some of them may have been taken. */
PD_MUST_USE int pd_kept_attributes_set(pd_kept_attributes *kept, uint64_t sequence,
                                       const pd_attribute *attributes, size_t n);

/* What came with messages up to this one stays. */
void pd_kept_attributes_settle(pd_kept_attributes *kept, uint64_t sequence);

/* What came with later ones is taken back. */
void pd_kept_attributes_take_back(pd_kept_attributes *kept);

void pd_kept_attributes_free(pd_kept_attributes *kept);

#endif

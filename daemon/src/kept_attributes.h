/* The attributes of a run as they stand: the last value of each key, in the order of their first setting. What a later
 * part of the run begins with. Thread: the loop's.
 */
#ifndef PD_KEPT_ATTRIBUTES_H
#define PD_KEPT_ATTRIBUTES_H

#include <stddef.h>
#include <stdint.h>

#include "dataset.h"
#include "error.h"

typedef struct pd_kept_attributes {
    pd_attribute *list; /* [n] each key and value in one block of memory */
    size_t n, cap;
    uint32_t *places; /* [n_places] open addressing: a place in the list and one; 0: none */
    size_t n_places;
} pd_kept_attributes;

/* Takes copies of those that are not the daemon's own (photond.). Returns 0; -1 when out of memory: some of them may have
 * been taken. */
PD_MUST_USE int pd_kept_attributes_set(pd_kept_attributes *kept, const pd_attribute *attributes, size_t n);

void pd_kept_attributes_free(pd_kept_attributes *kept);

#endif

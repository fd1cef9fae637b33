/* How much the attributes of a run take: one size per key, so that a value that is set again and again counts once.
 * Keys are known by a hash; two keys that share it (one in 10^19) would be counted as one. Thread: the loop's.
 */
#ifndef PD_ATTRIBUTE_SIZES_H
#define PD_ATTRIBUTE_SIZES_H

#include <stddef.h>
#include <stdint.h>

#include "dataset.h"

/* What an attribute takes beside its texts, about: on its way and in the writer's tables. */
enum { PD_ATTRIBUTE_OVERHEAD = 128 };

typedef struct pd_attribute_size {
    uint64_t hash; /* 0: none */
    uint64_t bytes;
} pd_attribute_size;

typedef struct pd_attribute_sizes {
    pd_attribute_size *items; /* [cap] open addressing */
    size_t n, cap;
    uint64_t bytes; /* of all */
} pd_attribute_sizes;

/* Of a key; never 0. */
uint64_t pd_attribute_key_hash(const char *key);

/* Bytes of texts and overhead. */
uint64_t pd_attributes_bytes(const pd_attribute *attributes, size_t n);

/* Takes note of attributes that are set. Returns 0; -1 when out of memory, or when all would take more than `most`:
 * some of them may have been noted then. */
int pd_attribute_sizes_set(pd_attribute_sizes *sizes, const pd_attribute *attributes, size_t n,
                           uint64_t most);

void pd_attribute_sizes_free(pd_attribute_sizes *sizes);

#endif

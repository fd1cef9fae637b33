/* How much of the caller's columns goes into the next batch. Pure; any thread.
 *
 * Groups go out evenly, so that a batch holds the same part of each. A group that holds the index of milliseconds
 * (role MS_INDEX) goes with the photons it points at instead: a batch has the items whose photon lies within the
 * photons sent so far, and the last batch of a call what is left. */
#ifndef CLIENT_SPLIT_H
#define CLIENT_SPLIT_H

#include <stddef.h>
#include <stdint.h>

#define CLIENT_SPLIT_NO_GROUP SIZE_MAX

typedef struct client_split {
    size_t n_groups;
    uint64_t *row_bytes;  /* [n_groups] of one item in all columns of the group */
    uint64_t batch_bytes; /* limits of a batch; UINT64_MAX: none */
    uint64_t batch_items;
    size_t index_group;  /* the group of the ms index, or CLIENT_SPLIT_NO_GROUP */
    size_t index_column; /* its column */
    size_t photon_group; /* the group it points into */
} client_split;

/* How many of n items of a rising uint64 column are below `bound`; stops at the first that is not. */
uint64_t client__items_below(const uint64_t *values, uint64_t n, uint64_t bound);

/* The next batch.
 * columns, counts  as the caller of photon_client_send() gave them
 * done             [n_groups] items taken already
 * photons_before   items of the photon group that the run had before this call
 * take             [n_groups] written: items that go now, not all 0 while something is left
 * Needs row_bytes of every group to be at most batch_bytes. */
void client__split_next(const client_split *split, const void *const *columns, const uint64_t *counts,
                        const uint64_t *done, uint64_t photons_before, uint64_t *take);

#endif

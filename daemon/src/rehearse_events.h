/* Events for a rehearsal: for any profile, by the roles of its datasets, at a rate that is told. They are as compressible as those
 * of an instrument: an image with a spot, a decay, stamps that rise. One thread.
 */
#ifndef PD_REHEARSE_EVENTS_H
#define PD_REHEARSE_EVENTS_H

#include <stdint.h>

#include "error.h"
#include "profile.h"

typedef struct pd_rehearse_events pd_rehearse_events;

/* `per_batch` events in each. Returns 0; -1 with err. */
PD_MUST_USE int pd_rehearse_events_make(pd_rehearse_events **ret, const pd_profile *profile, double rate_hz,
                                        uint64_t per_batch, pd_error *err);
void pd_rehearse_events_free(pd_rehearse_events *events);

/* The next `n` events, at most per_batch: columns [n_datasets] last until the next call, counts [n_datasets] are the items of
 * each. */
void pd_rehearse_events_next(pd_rehearse_events *events, uint64_t n, const void *const **ret_columns,
                             const uint64_t **ret_counts);

/* Bytes of all columns that a second brings. */
double pd_rehearse_bytes_per_s(const pd_profile *profile, double rate_hz);

#endif

/* The summary of a run made again from its files: to hold an export against, long after the run. Pure but for the reading.
 */
#ifndef PD_RECOUNT_H
#define PD_RECOUNT_H

#include "summary.h"

/* How many items of a dataset to cover; UINT64_MAX: all there are. */
typedef uint64_t pd_recount_limit(void *user, const char *dataset);

/* Reads the parts of a run in their order, and bins them as the daemon did. The roles, groups and clock of the datasets are
 * those that the first part tells (attributes photond.datasets and photond.time_base).
 * Seconds of the daemon's own clock are not in the file: without an instrument's clock there is no rate.
 *  name     the run's
 *  paths    [n] of the parts, n > 0
 *  Returns  0; -1 with err: a file cannot be read whole, is not photond's, or the parts do not belong together
 *  Free     pd_summary_free */
PD_MUST_USE int pd_recount(pd_summary **ret, const char *name, const char *const *paths, size_t n,
                           const pd_summary_options *options, pd_recount_limit *limit, void *user,
                           pd_error *err);

#endif

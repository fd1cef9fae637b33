/* Summaries of one run: histograms over its events, made as they come.
 *
 * Driven by the roles of the run's datasets. A table of kinds (summary_kind.h) says which summaries
 * there are; each takes the groups whose roles it needs. Today:
 *   image   position_x and position_y in one group   axes y_pixel, x_pixel; matrix intensity; scalar
 *           outside_image
 *   decay   micro_time                               axis dt_bin; vectors counts, time_ps; scalar
 *           outside_decay
 *   rate    any                                      axis second; vector counts; scalars second_width_s,
 *           outside_second
 * and for every run the scalars name, export, photons, duration_s, items.DATASET, and its attributes.
 *
 * Exact: for each axis, what lies inside plus what lies outside equals the items covered.
 *
 * Threads   Nothing here is shared, locked, logged or global. Whoever owns the summary (a chain of pool
 *           jobs, one at a time) calls these functions; the functions are pure but for the summary given.
 * Memory    All accumulators are allocated by pd_summary_create; binning allocates nothing.
 */
#ifndef PD_SUMMARY_H
#define PD_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"
#include "dataset.h"
#include "error.h"
#include "snapshot.h"

/* The clock of the run's time stamps. One tick is numerator / denominator ps; both 0: not told. */
typedef struct pd_time_base {
    uint64_t tick_ps_numerator;
    uint64_t tick_ps_denominator;
    uint32_t counter_bits; /* stamps wrap at 2^counter_bits; 0 (or 64): never */
} pd_time_base;

/* Everything is borrowed for the call. */
typedef struct pd_summary_setup {
    const char *name; /* the run's */

    /* Checked by pd_datasets_check. Groups are numbered in the order of their first dataset, the columns of a
     * group in the order of the datasets. */
    const pd_dataset *datasets; /* [n_datasets] */
    size_t n_datasets;

    /* Known at open: bits, TAC channel and clock are taken from these. */
    const pd_attribute *attributes; /* [n_attributes] */
    size_t n_attributes;

    pd_time_base time_base;
    pd_summary_options options;
} pd_summary_setup;

typedef struct pd_summary pd_summary;

/* An empty summary.
 *  Returns  0; -1 with err: out of memory, or options out of range
 *  Free     pd_summary_free */
PD_MUST_USE int pd_summary_create(pd_summary **ret, const pd_summary_setup *setup, pd_error *err);
void pd_summary_free(pd_summary *s);

/* The run got another name than it asked for: that of the exports from now on. Returns 0, or -1 when out of memory
 * (the name stays). */
PD_MUST_USE int pd_summary_rename(pd_summary *s, const char *name);

/* Bytes that it takes, together with one snapshot of it. */
size_t pd_summary_bytes(const pd_summary *s);

/* Attributes past the first PD_SUMMARY_ATTRIBUTES_MAX, with a longer value than PD_SUMMARY_VALUE_MAX
 * bytes, with a name that cannot be a scalar's or is one of ours, are left out of the exports (never of
 * the file) and counted in the scalar attributes_skipped. */
#define PD_SUMMARY_ATTRIBUTES_MAX 1000u
#define PD_SUMMARY_VALUE_MAX 65536u

/* What was assumed for want of attributes ("PositionBits is not given: 12 assumed, ..."), for the log.
 * Valid until the next call of pd_summary_attribute. */
size_t pd_summary_n_warnings(const pd_summary *s);
const char *pd_summary_warning(const pd_summary *s, size_t i);

/* Bins n more items of a group, which follow those binned before.
 *  columns     one pointer per dataset of the group, in order: [n] values, host byte order, any
 *              alignment that suits the type
 *  first_item  index of the first in the run; must be the items binned so far of this group */
void pd_summary_bin(pd_summary *s, size_t group, const void *const *columns, uint64_t first_item, size_t n);

/* Values of an ms index that are binned from now on count from this photon of the run: the first of their file. 0 at
 * first. */
void pd_summary_first_photon(pd_summary *s, uint64_t photon);

/* It is now `elapsed_ns` on the server's clock since the run was opened: the time of what is binned
 * next, when the run's instrument has no clock of its own, and the run's duration. Also for "no photons,
 * but alive". Never goes back. */
void pd_summary_tick(pd_summary *s, uint64_t elapsed_ns);

/* The instrument's clock stood at `ticks` of the time base: moves the axis `second` on although no event
 * came. */
void pd_summary_instrument_time(pd_summary *s, int64_t ticks);

/* An attribute of the run, new or changed; becomes a String scalar. As long as nothing was binned, the
 * axes follow it too. Returns 0, or -1 when out of memory. */
PD_MUST_USE int pd_summary_attribute(pd_summary *s, const char *key, const char *value, pd_error *err);

/* Whether items are missing that were recorded before: exports say so by the scalar `incomplete`, until they are binned. */
void pd_summary_set_incomplete(pd_summary *s, bool incomplete);

/* The run drops photons for which there is no room, and has dropped so many: exports say so by the scalar `dropped`. */
void pd_summary_set_dropped(pd_summary *s, uint64_t photons);

/* Items of the group covered so far. */
uint64_t pd_summary_items(const pd_summary *s, size_t group);

/* Copies everything into `snapshot` (initialised; what it held is replaced) as export number
 * `export_number`. Returns 0, or -1 when out of memory (the snapshot is then empty). */
PD_MUST_USE int pd_summary_freeze(const pd_summary *s, uint64_t export_number, pd_snapshot *snapshot,
                                  pd_error *err);

#endif

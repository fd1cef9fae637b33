/* Counts of photons or tags over time. */
#ifndef D7_CLI_RATE_BINS_H
#define D7_CLI_RATE_BINS_H

#include "view.h"

enum { RATE_CURVES_MAX = 8, RATE_BINS_MAX = 4000000 };

typedef struct rate {
    view v;
    uint64_t bin_ps;                    /* 0: to be chosen */
    uint64_t channels[RATE_CURVES_MAX]; /* [n_channels] of tags; none: all together */
    size_t n_channels;
    /* what was counted */
    uint64_t start_ps,
        end_ps; /* time since the start of the recording: of the first bin; up to which was looked */
    size_t n;   /* bins */
    size_t n_curves;
    uint64_t *counts[RATE_CURVES_MAX]; /* [n] */
    uint64_t counted, unplaced;        /* unplaced: that have no time, or one before the start */
    bool odd;                          /* milliseconds fall, or count photons that are not there */
} rate;

/* Counts by whatever the file tells times by: the milliseconds, else stamps. Returns 0, or an exit code after saying why. */
int rate_count(rate *r);

/* Forgets all counts. */
void rate_clear(void *r);

/* Adds events at a time since the start of the recording. */
void rate_add(rate *r, size_t curve, uint64_t time_ps, uint64_t n);

/* Makes bins for [start_ps, end_ps), of a length chosen by `shortest_ps` where none was asked for. Returns 0, or an exit code
 * after saying why. */
int rate_make_bins(rate *r, uint64_t start_ps, uint64_t end_ps, uint64_t shortest_ps);
void rate_free_bins(rate *r);

/* By /photons/ms (rate_ms.c). */
int rate_by_ms(rate *r);

/* By stamps of `unit_ps` each (rate_stamps.c). */
int rate_by_stamps(rate *r, uint32_t dataset_id, double unit_ps);

#endif

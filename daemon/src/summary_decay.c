/* The decay: how many photons arrived in each TAC channel after the laser pulse. */
#include <stdlib.h>
#include <string.h>

#include "summary_axis.h"
#include "summary_private.h"

enum {
    DECAY_BITS_MISSING = 12,
    DECAY_BITS_MAX = 20,
    DECAY_BANKS = 4 /* the photons of a decay hit few bins: four counters a bin, taken in turn, need not wait
                       for each other */
};

typedef struct decay {
    size_t group, column;
    pd_axis axis;
    double dataset_ps;             /* of a channel, by the dataset's unit and scale; 0: not told */
    uint64_t *counts[DECAY_BANKS]; /* [n_bins + 1], last the photons outside; one allocation */
} decay;

static bool decay_wanted(const pd_summary *s) {
    pd_summary_column dt;
    const pd_summary_options *o = pd_summary_get_options(s);
    return o->enabled && o->decay && pd_summary_find(s, PD_ROLE_MICRO_TIME, &dt);
}

static void decay_free(void *state) {
    decay *d = state;
    free(d->counts[0]);
    free(d);
}

static double decay_channel_ps(const decay *d, const pd_summary *s) {
    double told = pd_summary_get_number(s, "/photons/TacChannel");
    return told > 0 ? told : d->dataset_ps;
}

static int decay_create(void **ret, pd_summary *s) {
    decay *d = calloc(1, sizeof *d);
    if (!d)
        return -1;
    pd_summary_column dt;
    pd_summary_find(s, PD_ROLE_MICRO_TIME, &dt);
    unsigned bits = pd_summary_get_bits(s, "/photons/TacBits", 1, DECAY_BITS_MAX, DECAY_BITS_MISSING);
    d->dataset_ps = pd_summary_step_ps(dt.dataset);
    if (decay_channel_ps(d, s) <= 0)
        pd_summary_warn(s, "/photons/TacChannel is not given as a positive number: no axis in picoseconds");
    d->group = dt.group;
    d->column = dt.column;
    pd_axis_init(&d->axis, dt.type, bits, UINT32_C(1) << bits);
    size_t n = (size_t)d->axis.n_bins + 1;
    d->counts[0] = calloc(DECAY_BANKS * n, sizeof *d->counts[0]);
    if (!d->counts[0]) {
        decay_free(d);
        return -1;
    }
    for (size_t b = 1; b < DECAY_BANKS; b++)
        d->counts[b] = d->counts[0] + b * n;
    *ret = d;
    return 0;
}

static size_t decay_bytes(const void *state) {
    const decay *d = state;
    return sizeof *d + ((size_t)d->axis.n_bins + 1) * sizeof(uint64_t) * (DECAY_BANKS + 2);
}

static void decay_bin(void *state, size_t group, const void *const *columns, size_t n) {
    decay *d = state;
    if (group != d->group)
        return;
    uint32_t bins[PD_AXIS_BLOCK];
    for (size_t i = 0; i < n; i += PD_AXIS_BLOCK) {
        size_t block = n - i < PD_AXIS_BLOCK ? n - i : PD_AXIS_BLOCK;
        pd_axis_bins(&d->axis, bins, pd_axis_at(&d->axis, columns[d->column], i), block);
        size_t j = 0;
        for (; j + DECAY_BANKS <= block; j += DECAY_BANKS) {
            d->counts[0][bins[j]]++;
            d->counts[1][bins[j + 1]]++;
            d->counts[2][bins[j + 2]]++;
            d->counts[3][bins[j + 3]]++;
        }
        for (; j < block; j++)
            d->counts[0][bins[j]]++;
    }
}

static uint64_t decay_value(const decay *d, size_t bin) {
    uint64_t sum = 0;
    for (size_t b = 0; b < DECAY_BANKS; b++)
        sum += d->counts[b][bin];
    return sum;
}

static int decay_freeze_time(const decay *d, double channel_ps, pd_snapshot *snapshot) {
    double *time_ps = pd_snapshot_vector(snapshot, "dt_bin", "time_ps", DAF_FLOAT64, d->axis.n_bins);
    if (!time_ps)
        return -1;
    for (uint32_t i = 0; i < d->axis.n_bins; i++)
        time_ps[i] = (double)i * channel_ps;
    return 0;
}

static int decay_freeze(const void *state, const pd_summary *s, pd_snapshot *snapshot) {
    const decay *d = state;
    if (pd_snapshot_axis(snapshot, "dt_bin", 0, 1, d->axis.n_bins) != 0)
        return -1;
    uint64_t *counts = pd_snapshot_vector(snapshot, "dt_bin", "counts", DAF_UINT64, d->axis.n_bins);
    if (!counts)
        return -1;
    for (uint32_t i = 0; i < d->axis.n_bins; i++)
        counts[i] = decay_value(d, i);
    double channel_ps = decay_channel_ps(d, s);
    if (channel_ps > 0 && decay_freeze_time(d, channel_ps, snapshot) != 0)
        return -1;
    return pd_snapshot_uint64(snapshot, "outside_decay", decay_value(d, d->axis.n_bins));
}

const pd_summary_kind pd_summary_decay = {.name = "decay",
                                          .attributes = {"/photons/TacBits", "/photons/TacChannel"},
                                          .wanted = decay_wanted,
                                          .create = decay_create,
                                          .free = decay_free,
                                          .bytes = decay_bytes,
                                          .bin = decay_bin,
                                          .freeze = decay_freeze};

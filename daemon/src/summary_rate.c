/* The rate: how many photons came in each second of the run.
 *
 * A second is one of the instrument's clock where it has one, else of the server's:
 *   ms index   item k is the index of the first photon of millisecond k
 *   stamps     a time stamp per photon, and the length of a tick: told as the time base, by the
 *              dataset's unit, or by /photons/TimerFrequency
 *   server     what pd_summary_tick said last
 * Where a stamp lies before the first one, or further ahead than the whole axis is long, the photon is
 * outside. When a second would be past the axis's limit, all bins are merged in pairs.
 */
#include <stdlib.h>
#include <string.h>

#include "summary_clock.h"
#include "summary_private.h"

enum { RATE_MS_PER_SECOND = 1000 };

typedef enum rate_source { RATE_SERVER, RATE_MS_INDEX, RATE_STAMPS } rate_source;

typedef struct rate {
    rate_source source;
    size_t photon_group;
    uint64_t photons; /* covered */

    uint64_t *counts; /* [limit] */
    uint32_t limit;
    uint32_t n;       /* bins in use, at least 1 */
    uint64_t width_s; /* a power of two */
    uint64_t outside;

    pd_summary_column column; /* ms index or stamps */

    uint64_t ms_items;   /* binned */
    uint64_t ms_base;    /* that the values count from */
    uint64_t ms_counted; /* photons before the second that is under way */

    pd_clock clock;
    int64_t newest;   /* tick of the newest stamp */
    int64_t from, to; /* ticks of the bin that the last stamp fell into; empty at first */
    uint32_t bin;     /* that bin; of the server's clock: the present one */
    double elapsed_s;
} rate;

/* ---- the axis ---- */

static void rate_merge_pairs(rate *r) {
    for (uint32_t i = 0; i < r->n; i += 2)
        r->counts[i / 2] = r->counts[i] + (i + 1 < r->n ? r->counts[i + 1] : 0);
    uint32_t merged = (r->n + 1) / 2;
    memset(r->counts + merged, 0, (r->n - merged) * sizeof *r->counts);
    r->n = merged;
    r->width_s *= 2;
    r->from = r->to = 0;
}

/* The bin of a second, after making the axis reach it. */
static uint32_t rate_reach(rate *r, uint64_t second) {
    while (second / r->width_s >= r->limit)
        rate_merge_pairs(r);
    uint32_t bin = (uint32_t)(second / r->width_s);
    if (bin >= r->n)
        r->n = bin + 1;
    return bin;
}

/* ---- the ms index ---- */

static uint64_t rate_load(const pd_summary_column *c, const void *values, size_t i) {
    switch (c->type) {
    case D7_INT8:
        return (uint64_t)((const int8_t *)values)[i];
    case D7_INT16:
        return (uint64_t)((const int16_t *)values)[i];
    case D7_INT32:
        return (uint64_t)((const int32_t *)values)[i];
    case D7_UINT8:
        return ((const uint8_t *)values)[i];
    case D7_UINT16:
        return ((const uint16_t *)values)[i];
    case D7_UINT32:
        return ((const uint32_t *)values)[i];
    default:
        return ((const uint64_t *)values)[i];
    }
}

static bool rate_type_ok(d7_type type) {
    return type != D7_FLOAT && type != D7_DOUBLE;
}

/* Only the items that begin a second matter. They are taken as never falling, as the index of a
 * recording is. */
static void rate_bin_ms(rate *r, const void *values, size_t n) {
    size_t skip = (size_t)((RATE_MS_PER_SECOND - r->ms_items % RATE_MS_PER_SECOND) % RATE_MS_PER_SECOND);
    for (size_t i = skip; i < n; i += RATE_MS_PER_SECOND) {
        uint64_t second = (r->ms_items + i) / RATE_MS_PER_SECOND;
        uint64_t first_photon = r->ms_base + rate_load(&r->column, values, i);
        if (second > 0 && first_photon > r->ms_counted) {
            r->counts[rate_reach(r, second - 1)] += first_photon - r->ms_counted;
            r->ms_counted = first_photon;
        }
        rate_reach(r, second);
    }
    r->ms_items += n;
}

/* ---- time stamps ---- */

static void rate_bin_far_stamp(rate *r, int64_t tick) {
    if (tick < 0) {
        r->outside++;
        return;
    }
    uint64_t second = pd_clock_second(&r->clock, tick);
    uint64_t end = r->n * r->width_s;
    if (second > end && second - end >= r->limit * r->width_s) {
        r->outside++;
        return;
    }
    r->bin = rate_reach(r, second);
    r->from = pd_clock_first_tick(&r->clock, r->bin * r->width_s);
    r->to = pd_clock_first_tick(&r->clock, (r->bin + UINT64_C(1)) * r->width_s);
    r->counts[r->bin]++;
    if (tick > r->newest)
        r->newest = tick;
}

static void rate_bin_stamps(rate *r, const void *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        int64_t tick = pd_clock_advance(&r->clock, rate_load(&r->column, values, i));
        if (tick < r->from || tick >= r->to) {
            rate_bin_far_stamp(r, tick);
            continue;
        }
        r->counts[r->bin]++;
        if (tick > r->newest)
            r->newest = tick;
    }
}

/* ---- the kind ---- */

static bool rate_wanted(const pd_summary *s) {
    const pd_summary_options *o = pd_summary_get_options(s);
    return o->enabled && o->rate;
}

static bool rate_choose_clock(rate *r, const pd_summary *s) {
    const pd_time_base *told = pd_summary_get_time_base(s);
    if (told->tick_ps_numerator && told->tick_ps_denominator)
        return pd_clock_init(&r->clock, told->tick_ps_numerator, told->tick_ps_denominator,
                             told->counter_bits);
    double step_ps = pd_summary_step_ps(r->column.dataset);
    if (step_ps > 0)
        return pd_clock_init_ps(&r->clock, step_ps);
    return pd_clock_init_hz(&r->clock, pd_summary_get_number(s, "/photons/TimerFrequency"));
}

static void rate_choose_source(rate *r, pd_summary *s) {
    r->source = RATE_SERVER;
    if (pd_summary_find(s, PD_ROLE_MS_INDEX, &r->column) && rate_type_ok(r->column.type)) {
        r->source = RATE_MS_INDEX;
    } else if (pd_summary_find(s, PD_ROLE_TIME_STAMP, &r->column) && rate_type_ok(r->column.type) &&
               r->column.group == r->photon_group) {
        if (rate_choose_clock(r, s))
            r->source = RATE_STAMPS;
        else
            pd_summary_warn(s,
                            "the length of a tick of %s is not told: seconds are those of the server's clock",
                            r->column.dataset->name);
    }
}

static void rate_free(void *state) {
    rate *r = state;
    free(r->counts);
    free(r);
}

static int rate_create(void **ret, pd_summary *s) {
    rate *r = calloc(1, sizeof *r);
    if (!r)
        return -1;
    r->limit = pd_summary_get_options(s)->max_seconds;
    r->counts = calloc(r->limit, sizeof *r->counts);
    if (!r->counts) {
        rate_free(r);
        return -1;
    }
    r->photon_group = pd_summary_photon_group(s);
    r->n = 1;
    r->width_s = 1;
    rate_choose_source(r, s);
    *ret = r;
    return 0;
}

static size_t rate_bytes(const void *state) {
    const rate *r = state;
    return sizeof *r + 2 * r->limit * sizeof *r->counts;
}

static void rate_bin(void *state, size_t group, const void *const *columns, size_t n) {
    rate *r = state;
    if (r->source == RATE_MS_INDEX && group == r->column.group)
        rate_bin_ms(r, columns[r->column.column], n);
    if (group != r->photon_group)
        return;
    r->photons += n;
    if (r->source == RATE_STAMPS)
        rate_bin_stamps(r, columns[r->column.column], n);
    else if (r->source == RATE_SERVER)
        r->counts[r->bin] += n;
}

static void rate_first_photon(void *state, uint64_t photon) {
    ((rate *)state)->ms_base = photon;
}

static void rate_tick(void *state, uint64_t elapsed_ns) {
    rate *r = state;
    r->elapsed_s = (double)elapsed_ns / 1e9;
    if (r->source == RATE_SERVER)
        r->bin = rate_reach(r, elapsed_ns / UINT64_C(1000000000));
}

/* Moves on a copy of the clock: only events decide how later stamps are unwrapped. */
static void rate_instrument_time(void *state, int64_t ticks) {
    rate *r = state;
    if (r->source != RATE_STAMPS || !r->clock.started)
        return;
    pd_clock clock = r->clock;
    int64_t tick = pd_clock_advance(&clock, (uint64_t)ticks);
    if (tick <= r->newest)
        return;
    uint64_t second = pd_clock_second(&r->clock, tick);
    if (second / r->width_s >= r->n + (uint64_t)r->limit)
        return;
    rate_reach(r, second);
    r->newest = tick;
}

static double rate_duration_s(const void *state) {
    const rate *r = state;
    if (r->source == RATE_MS_INDEX)
        return (double)r->ms_items / RATE_MS_PER_SECOND;
    return r->source == RATE_STAMPS ? pd_clock_seconds(&r->clock, r->newest) : r->elapsed_s;
}

/* Of the ms index, the photons since the last whole second are in no count yet; and where the index has
 * come ahead of the photons, the counts hold photons that are not covered yet: those are taken off the
 * end. */
static void rate_fit_to_photons(const rate *r, uint64_t *counts) {
    if (r->photons >= r->ms_counted) {
        counts[r->n - 1] += r->photons - r->ms_counted;
        return;
    }
    uint64_t over = r->ms_counted - r->photons;
    for (uint32_t i = r->n; i-- > 0 && over;) {
        uint64_t off = over < counts[i] ? over : counts[i];
        counts[i] -= off;
        over -= off;
    }
}

static int rate_freeze(const void *state, const pd_summary *s, pd_snapshot *snapshot) {
    const rate *r = state;
    (void)s;
    if (pd_snapshot_axis(snapshot, "second", 0, (int64_t)r->width_s, r->n) != 0)
        return -1;
    uint64_t *counts = pd_snapshot_vector(snapshot, "second", "counts", DAF_UINT64, r->n);
    if (!counts)
        return -1;
    memcpy(counts, r->counts, r->n * sizeof *counts);
    if (r->source == RATE_MS_INDEX)
        rate_fit_to_photons(r, counts);
    if (pd_snapshot_float64(snapshot, "second_width_s", (double)r->width_s) != 0)
        return -1;
    return pd_snapshot_uint64(snapshot, "outside_second", r->outside);
}

const pd_summary_kind pd_summary_rate = {.name = "rate",
                                         .attributes = {"/photons/TimerFrequency"},
                                         .wanted = rate_wanted,
                                         .create = rate_create,
                                         .free = rate_free,
                                         .bytes = rate_bytes,
                                         .bin = rate_bin,
                                         .first_photon = rate_first_photon,
                                         .tick = rate_tick,
                                         .instrument_time = rate_instrument_time,
                                         .duration_s = rate_duration_s,
                                         .freeze = rate_freeze};

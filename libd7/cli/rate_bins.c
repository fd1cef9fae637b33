#include "rate_bins.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BINS_CHOSEN = 600 };

/* The shortest of 1, 2, 5, 10, ... times `shortest` of which so many or fewer make up the duration. */
static uint64_t choose_bin(uint64_t duration_ps, uint64_t shortest_ps) {
    uint64_t bin = shortest_ps;
    for (unsigned i = 0; duration_ps / bin >= BINS_CHOSEN && bin < UINT64_MAX / 10; i++)
        bin = i % 3 == 1 ? bin / 2 * 5 : bin * 2;
    return bin;
}

int rate_make_bins(rate *r, uint64_t start_ps, uint64_t end_ps, uint64_t shortest_ps) {
    uint64_t duration = end_ps > start_ps ? end_ps - start_ps : 1;
    if (r->bin_ps == 0)
        r->bin_ps = choose_bin(duration, shortest_ps);
    uint64_t n = (duration - 1) / r->bin_ps + 1;
    r->n_curves = r->n_channels ? r->n_channels : 1;
    if (n > RATE_BINS_MAX / r->n_curves)
        return command_fail(r->v.self, "%s: that would be %" PRIu64 " bins; give a longer --bin", r->v.path,
                            n);
    r->start_ps = start_ps;
    r->end_ps = end_ps;
    r->n = (size_t)n;
    for (size_t i = 0; i < r->n_curves; i++) {
        r->counts[i] = calloc(r->n, sizeof(uint64_t));
        if (!r->counts[i])
            return command_fail(r->v.self, "out of memory");
    }
    return 0;
}

void rate_free_bins(rate *r) {
    for (size_t i = 0; i < RATE_CURVES_MAX; i++)
        free(r->counts[i]);
}

void rate_clear(void *ctx) {
    rate *r = ctx;
    for (size_t i = 0; i < r->n_curves; i++)
        memset(r->counts[i], 0, r->n * sizeof(uint64_t));
    r->counted = r->unplaced = 0;
    r->odd = false;
}

void rate_add(rate *r, size_t curve, uint64_t time_ps, uint64_t n) {
    uint64_t bin = time_ps < r->start_ps ? UINT64_MAX : (time_ps - r->start_ps) / r->bin_ps;
    if (bin < r->n) {
        r->counts[curve][bin] += n;
        r->counted += n;
    } else {
        r->unplaced += n;
    }
}

/* What a file can tell times by, the best first. */
static const struct {
    d7_role role;
    const char *frequency; /* attribute of a stamp's unit; NULL: ps */
} clocks[] = {{D7_ROLE_ABSOLUTE_TIME, "/photons/TimerFrequency"},
              {D7_ROLE_STOP, NULL},
              {D7_ROLE_START, NULL},
              {D7_ROLE_TIME, NULL}};

int rate_count(rate *r) {
    uint32_t id;
    view *v = &r->v;
    bool tags = v->tags;
    if (r->n_channels && !tags)
        return command_fail(v->self, "%s: --channel is for tags, and this file has photons", v->path);
    if (!tags && d7_reader_find_role(v->reader, D7_ROLE_MS, &id) == 0)
        return rate_by_ms(r);
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        double hz = clocks[i].frequency ? view_number(v, clocks[i].frequency) : 1e12;
        if (tags == (clocks[i].role == D7_ROLE_TIME) && !isnan(hz) &&
            d7_reader_find_role(v->reader, clocks[i].role, &id) == 0)
            return rate_by_stamps(r, id, 1e12 / hz);
    }
    return command_fail(
        v->self,
        "%s: times cannot be told: there is none of /photons/ms, /photons/aat with TimerFrequency, "
        "/start/time, /stop/time, /tags/time; d7 info shows what there is",
        v->path);
}

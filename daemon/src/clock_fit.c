#include "clock_fit.h"

#include <math.h>

/* Distances from the first pair: as doubles they are exact enough, which absolute times are not. */
typedef struct fit_point {
    double ticks, ns;
} fit_point;

static double fit_distance(int64_t to, int64_t from) {
    return to >= from ? (double)((uint64_t)to - (uint64_t)from) : -(double)((uint64_t)from - (uint64_t)to);
}

static fit_point fit_point_of(const pd_clock_pair *pairs, size_t i) {
    return (fit_point){fit_distance(pairs[i].ticks, pairs[0].ticks), fit_distance(pairs[i].ns, pairs[0].ns)};
}

static fit_point fit_mean(const pd_clock_pair *pairs, size_t n) {
    fit_point mean = {0, 0};
    for (size_t i = 0; i < n; i++) {
        fit_point p = fit_point_of(pairs, i);
        mean.ticks += p.ticks / (double)n;
        mean.ns += p.ns / (double)n;
    }
    return mean;
}

bool pd_clock_fit_make(pd_clock_fit *fit, const pd_clock_pair *pairs, size_t n) {
    double square = 0, product = 0, sum = 0, most = 0;
    fit_point mean = n ? fit_mean(pairs, n) : (fit_point){0, 0};
    for (size_t i = 0; i < n; i++) {
        fit_point p = fit_point_of(pairs, i);
        square += (p.ticks - mean.ticks) * (p.ticks - mean.ticks);
        product += (p.ticks - mean.ticks) * (p.ns - mean.ns);
    }
    if (n < 2 || !(square > 0))
        return false;
    double slope = product / square, start = mean.ns - slope * mean.ticks;
    for (size_t i = 0; i < n; i++) {
        fit_point p = fit_point_of(pairs, i);
        double off = p.ns - start - slope * p.ticks;
        sum += off * off;
        most = fmax(most, fabs(off));
    }
    *fit = (pd_clock_fit){.first_tick = pairs[0].ticks,
                          .ns_at_first = pairs[0].ns + llround(start),
                          .ns_per_tick = slope,
                          .residual_rms_ns = sqrt(sum / (double)n),
                          .residual_max_ns = most};
    return true;
}

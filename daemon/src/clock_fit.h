/* A straight line through pairs of two clocks: how an instrument's clock went beside ours. Any thread. */
#ifndef PD_CLOCK_FIT_H
#define PD_CLOCK_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The same moment on both. */
typedef struct pd_clock_pair {
    int64_t ticks; /* of the instrument */
    int64_t ns;    /* of the other clock */
} pd_clock_pair;

/* ns = ns_at_first + ns_per_tick * (ticks - first_tick), by least squares. */
typedef struct pd_clock_fit {
    int64_t first_tick; /* that of the first pair */
    int64_t ns_at_first;
    double ns_per_tick;
    double residual_rms_ns, residual_max_ns; /* of the pairs from the line */
} pd_clock_fit;

/* Returns false, with nothing set, for fewer than two pairs, or when all are of one tick. */
bool pd_clock_fit_make(pd_clock_fit *fit, const pd_clock_pair *pairs, size_t n);

#endif

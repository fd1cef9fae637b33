/* Rates of counters over a sliding window on the monotonic clock. */
#ifndef PD_RATE_H
#define PD_RATE_H

#include <stddef.h>
#include <stdint.h>

#define PD_RATE_SLOTS 16u
#define PD_RATE_STEP_NS 250000000ull /* a sample at most this often: the window is 4 s */

typedef struct pd_rate {
    struct {
        uint64_t now_ns;
        uint64_t total;
    } samples[PD_RATE_SLOTS];
    uint32_t newest;
    uint32_t n;
} pd_rate;

void pd_rate_init(pd_rate *rate);

/* The counter stood at `total`. Call it on a timer, more often than the window is long. */
void pd_rate_sample(pd_rate *rate, uint64_t now_ns, uint64_t total);

/* Per second, from the oldest sample of the window to (now, total); 0 before time has passed. */
double pd_rate_per_second(const pd_rate *rate, uint64_t now_ns, uint64_t total);

#endif

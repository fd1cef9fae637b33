/* Times. Intervals go by uv_hrtime() (monotonic ns); this is the wall clock, for people and other machines. */
#ifndef PD_CLOCK_H
#define PD_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t pd_utc_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif

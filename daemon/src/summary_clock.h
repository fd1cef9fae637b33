/* The clock of a run's time stamps: turns stamps, which may wrap, into whole seconds since the first
 * one. Exact: seconds are computed with 128-bit integers, so that anyone who recounts from the events
 * gets the same numbers. */
#ifndef PD_SUMMARY_CLOCK_H
#define PD_SUMMARY_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pd_clock {
    uint64_t numerator; /* a tick is numerator / denominator seconds, reduced, at most 1; both below 2^62 */
    uint64_t denominator;
    unsigned counter_bits; /* 1 to 64; 64: the stamps never wrap */
    bool started;
    uint64_t first; /* stamp */
    uint64_t last;  /* stamp */
    uint64_t at;    /* ticks since the first, of `last`; as int64 negative before it */
} pd_clock;

/* Sets the tick, numerator / denominator picoseconds. Returns whether it can be used: not 0, at most a
 * second, and exact in 62 bits. */
bool pd_clock_init(pd_clock *clock, uint64_t tick_ps_numerator, uint64_t tick_ps_denominator,
                   uint32_t counter_bits);

/* As pd_clock_init with a tick of so many picoseconds (taken to a millionth of one). */
bool pd_clock_init_ps(pd_clock *clock, double tick_ps);

/* As pd_clock_init with so many ticks a second (taken to a thousandth of one). */
bool pd_clock_init_hz(pd_clock *clock, double ticks_per_second);

/* Ticks since the first stamp. A wrap is taken where a step would be half the counter's range or more. */
static inline int64_t pd_clock_advance(pd_clock *clock, uint64_t stamp) {
    if (!clock->started) {
        clock->started = true;
        clock->first = clock->last = stamp;
    }
    unsigned unused = 64 - clock->counter_bits;
    int64_t step = (int64_t)((stamp - clock->last) << unused) >> unused;
    clock->last = stamp;
    clock->at += (uint64_t)step;
    return (int64_t)clock->at;
}

/* The whole second that a tick >= 0 lies in. */
uint64_t pd_clock_second(const pd_clock *clock, int64_t ticks);

/* The first tick of a second; INT64_MAX when that is past the counter. */
int64_t pd_clock_first_tick(const pd_clock *clock, uint64_t second);

/* Seconds as a number for people. */
double pd_clock_seconds(const pd_clock *clock, int64_t ticks);

#endif

#include "summary_clock.h"

#include <math.h>
#include <string.h>

__extension__ typedef unsigned __int128 clock_u128;

#define CLOCK_PS_PER_SECOND UINT64_C(1000000000000)
#define CLOCK_TERM_MAX (UINT64_C(1) << 62)

static uint64_t clock_gcd(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

bool pd_clock_init(pd_clock *clock, uint64_t tick_ps_numerator, uint64_t tick_ps_denominator,
                   uint32_t counter_bits) {
    memset(clock, 0, sizeof *clock);
    clock->counter_bits = counter_bits >= 1 && counter_bits < 64 ? counter_bits : 64;
    if (tick_ps_numerator == 0 || tick_ps_denominator == 0)
        return false;
    uint64_t common = clock_gcd(tick_ps_numerator, tick_ps_denominator);
    uint64_t numerator = tick_ps_numerator / common, denominator = tick_ps_denominator / common;
    uint64_t thousand = clock_gcd(numerator, CLOCK_PS_PER_SECOND); /* seconds from picoseconds */
    numerator /= thousand;
    clock_u128 whole = (clock_u128)denominator * (CLOCK_PS_PER_SECOND / thousand);
    if (whole >= CLOCK_TERM_MAX || numerator > whole)
        return false;
    clock->numerator = numerator;
    clock->denominator = (uint64_t)whole;
    return true;
}

bool pd_clock_init_ps(pd_clock *clock, double tick_ps) {
    double scaled = tick_ps * 1e6;
    return pd_clock_init(clock, scaled >= 1 && scaled < 1e18 ? (uint64_t)llround(scaled) : 0, 1000000, 0);
}

bool pd_clock_init_hz(pd_clock *clock, double ticks_per_second) {
    double scaled = ticks_per_second * 1e3;
    return pd_clock_init(clock, CLOCK_PS_PER_SECOND * 1000,
                         scaled >= 1 && scaled < 1e18 ? (uint64_t)llround(scaled) : 0, 0);
}

uint64_t pd_clock_second(const pd_clock *clock, int64_t ticks) {
    return (uint64_t)((clock_u128)(uint64_t)ticks * clock->numerator / clock->denominator);
}

int64_t pd_clock_first_tick(const pd_clock *clock, uint64_t second) {
    clock_u128 tick = ((clock_u128)second * clock->denominator + clock->numerator - 1) / clock->numerator;
    return tick > INT64_MAX ? INT64_MAX : (int64_t)tick;
}

double pd_clock_seconds(const pd_clock *clock, int64_t ticks) {
    return (double)ticks * ((double)clock->numerator / (double)clock->denominator);
}

#include "rate.h"

#include <string.h>

void pd_rate_init(pd_rate *rate) {
    memset(rate, 0, sizeof *rate);
}

void pd_rate_sample(pd_rate *rate, uint64_t now_ns, uint64_t total) {
    if (rate->n && now_ns - rate->samples[rate->newest].now_ns < PD_RATE_STEP_NS)
        return;
    rate->newest = rate->n ? (rate->newest + 1) % PD_RATE_SLOTS : 0;
    rate->samples[rate->newest].now_ns = now_ns;
    rate->samples[rate->newest].total = total;
    if (rate->n < PD_RATE_SLOTS)
        rate->n++;
}

double pd_rate_per_second(const pd_rate *rate, uint64_t now_ns, uint64_t total) {
    if (rate->n == 0)
        return 0;
    uint32_t oldest = (rate->newest + PD_RATE_SLOTS - rate->n + 1) % PD_RATE_SLOTS;
    uint64_t since_ns = rate->samples[oldest].now_ns;
    uint64_t since_total = rate->samples[oldest].total;
    if (now_ns <= since_ns || total <= since_total)
        return 0;
    return (double)(total - since_total) * 1e9 / (double)(now_ns - since_ns);
}

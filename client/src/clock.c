#include <time.h>

#include "internal.h"

static uint64_t clock_read_ns(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t client__now_ns(void) {
    return clock_read_ns(CLOCK_MONOTONIC);
}

uint64_t client__utc_ns(void) {
    return clock_read_ns(CLOCK_REALTIME);
}

uint64_t client__deadline(uint32_t timeout_ms) {
    if (timeout_ms == PHOTON_CLIENT_FOREVER)
        return CLIENT_NO_DEADLINE;
    return client__now_ns() + (uint64_t)timeout_ms * 1000000u;
}

int client__poll_ms(uint64_t deadline_ns) {
    uint64_t now = client__now_ns();
    if (deadline_ns <= now)
        return 0;
    uint64_t ms = (deadline_ns - now - 1) / 1000000u + 1;
    return ms < 1000 ? (int)ms : 1000;
}

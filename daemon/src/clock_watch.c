#include "clock_watch.h"

#include <uv.h>

#include "clock.h"
#include "log.h"

enum { CLOCK_TRIES = 5 };

#define CLOCK_STEP_NS INT64_C(100000000)
#define CLOCK_SPREAD_NS UINT64_C(10000000)
#define CLOCK_SLEW 2000 /* the kernel slews by 1/2000 at most */

/* Both at one moment. False: this thread was interrupted between the two each time. */
static bool clock_both(pd_clock_watch *now) {
    for (int i = 0; i < CLOCK_TRIES; i++) {
        uint64_t before = uv_hrtime();
        int64_t utc = (int64_t)pd_utc_ns();
        uint64_t after = uv_hrtime();
        *now = (pd_clock_watch){true, after, utc - (int64_t)(before + (after - before) / 2)};
        if (after - before < CLOCK_SPREAD_NS)
            return true;
    }
    return false;
}

int64_t pd_clock_step_ns(const pd_clock_watch *before, const pd_clock_watch *now) {
    int64_t moved = now->ahead_ns - before->ahead_ns;
    int64_t slewed = (int64_t)((now->monotonic_ns - before->monotonic_ns) / CLOCK_SLEW);
    int64_t rest = moved > slewed ? moved - slewed : moved < -slewed ? moved + slewed : 0;
    return rest > -CLOCK_STEP_NS && rest < CLOCK_STEP_NS ? 0 : rest;
}

void pd_clock_watch_look(pd_clock_watch *watch, const pd_runs *runs) {
    pd_clock_watch now;
    if (!clock_both(&now))
        return;
    int64_t step = watch->begun ? pd_clock_step_ns(watch, &now) : 0;
    *watch = now;
    if (!step)
        return;
    pd_log(PD_LOG_WARNING, "the wall clock went %+.3f s against the monotonic clock", (double)step / 1e9);
    for (size_t i = 0; i < runs->n; i++)
        pd_run_clock_stepped(runs->items[i], (double)step / 1e9);
}

#include "watch.h"

#include <string.h>

#include "log.h"
#include "service.h"

enum { WATCH_PERIOD_MS = 1000, WATCH_LEAST_MS = 10, WATCH_TELL_MS = 2000, WATCH_LATE_MS = 1000 };

#define NS_PER_MS UINT64_C(1000000)

static void watch_tell(pd_watch *watch, uint64_t now, const char *line) {
    if (watch->told_ns && now - watch->told_ns < WATCH_TELL_MS * NS_PER_MS)
        return;
    watch->told_ns = now;
    if (strcmp(line, watch->line) == 0)
        return;
    strcpy(watch->line, line);
    pd_service_status(line);
}

static void watch_feed(pd_watch *watch, const char *stuck) {
    if (watch->watchdog_ms && !*stuck)
        pd_service_alive();
    if (*stuck && !watch->withheld)
        pd_log(PD_LOG_ERROR, "%s%s", stuck, watch->watchdog_ms ? "; the watchdog is not fed any more" : "");
    else if (!*stuck && watch->withheld)
        pd_log(PD_LOG_INFO, "the threads of the disk answer again");
    watch->withheld = *stuck != '\0';
}

static void watch_tick(uv_timer_t *timer) {
    pd_watch *watch = timer->data;
    char line[PD_LOOK_LINE_BYTES], stuck[PD_LOOK_LINE_BYTES];
    uint64_t now = uv_hrtime(), late_ms = (now - watch->ticked_ns) / NS_PER_MS;
    if (late_ms > watch->period_ms + WATCH_LATE_MS)
        pd_log(PD_LOG_WARNING, "the loop was held up for %.1f s", (double)(late_ms - watch->period_ms) / 1e3);
    watch->ticked_ns = now;
    pd_clock_watch_look(&watch->clock, &watch->look->server->runs);
    pd_look_line(watch->look, line, stuck);
    watch_feed(watch, stuck);
    watch_tell(watch, now, line);
}

/* Three signs of life within the manager's time. */
void pd_watch_start(pd_watch *watch, const pd_look *look) {
    *watch = (pd_watch){.look = look, .watchdog_ms = pd_service_watchdog_ms(), .ticked_ns = uv_hrtime()};
    uint64_t third = watch->watchdog_ms / 3;
    watch->period_ms = !watch->watchdog_ms || third > WATCH_PERIOD_MS ? WATCH_PERIOD_MS
                       : third < WATCH_LEAST_MS                       ? WATCH_LEAST_MS
                                                                      : third;
    uv_timer_init(look->server->engine->loop, &watch->timer);
    watch->timer.data = watch;
    uv_timer_start(&watch->timer, watch_tick, 0, watch->period_ms);
}

void pd_watch_close(pd_watch *watch) {
    uv_close((uv_handle_t *)&watch->timer, NULL);
}

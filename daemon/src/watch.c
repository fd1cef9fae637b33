#include "watch.h"

#include <string.h>
#include <time.h>

#include "lock.h"
#include "log.h"
#include "service.h"

enum { WATCH_PERIOD_MS = 1000, WATCH_LEAST_MS = 10, WATCH_TELL_MS = 2000, WATCH_LATE_MS = 1000 };
enum { WATCH_BEAT_MS = 100, WATCH_STILL_MS = 800 };

#define NS_PER_MS UINT64_C(1000000)

static void watch_tell(pd_watch *watch, uint64_t now, const char *line) {
    if (watch->told_ns && now - watch->told_ns < WATCH_TELL_MS * NS_PER_MS)
        return;
    watch->told_ns = now;
    if (atomic_exchange(&watch->stood_still, false))
        *watch->line = 0;
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

/* ---- a loop that stands still ---- */

static void watch_beat(uv_timer_t *timer) {
    pd_watch *watch = timer->data;
    atomic_store(&watch->beaten_ns, uv_hrtime());
}

static void watch_still(pd_watch *watch, uint64_t ms) {
    char line[PD_LOOK_LINE_BYTES];
    snprintf(line, sizeof line,
             "the loop has stood still for %.1f s: nothing is received, and nobody is answered",
             (double)ms / 1e3);
    pd_log(PD_LOG_WARNING, "%s%s", line, watch->watchdog_ms ? "; the watchdog is not fed" : "");
    atomic_store(&watch->stood_still, true);
    pd_service_status(line);
}

/* Waits for the next look. Called with the lock held. */
static void watch_sleep(pd_watch *watch) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(WATCH_BEAT_MS * NS_PER_MS);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!watch->ending && pthread_cond_timedwait(&watch->wake, &watch->lock, &until) == 0)
        ;
}

static void *watch_run(void *arg) {
    pd_watch *watch = arg;
    bool told = false;
    pthread_mutex_lock(&watch->lock);
    while (!watch->ending) {
        watch_sleep(watch);
        uint64_t beaten = atomic_load(&watch->beaten_ns), now = uv_hrtime();
        uint64_t ms = beaten && now > beaten ? (now - beaten) / NS_PER_MS : 0;
        if (ms >= WATCH_STILL_MS && !told && !watch->ending)
            watch_still(watch, ms);
        told = ms >= WATCH_STILL_MS;
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

static void watch_open_eye(pd_watch *watch) {
    int code = pd_lock_init(&watch->lock, &watch->wake);
    if (code == 0) {
        code = pthread_create(&watch->eye, NULL, watch_run, watch);
        watch->has_eye = code == 0;
        if (code != 0)
            pd_lock_destroy(&watch->lock, &watch->wake);
    }
    if (code != 0)
        pd_log(PD_LOG_WARNING, "a loop that stands still will not be seen: %s", strerror(code));
}

static void watch_close_eye(pd_watch *watch) {
    if (!watch->has_eye)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->ending = true;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->eye, NULL);
    pd_lock_destroy(&watch->lock, &watch->wake);
    watch->has_eye = false;
}

/* ---- its life ---- */

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
    uv_timer_init(look->server->engine->loop, &watch->beat);
    watch->beat.data = watch;
    uv_timer_start(&watch->beat, watch_beat, 0, WATCH_BEAT_MS);
    watch_open_eye(watch);
}

void pd_watch_close(pd_watch *watch) {
    watch_close_eye(watch);
    uv_close((uv_handle_t *)&watch->beat, NULL);
    uv_close((uv_handle_t *)&watch->timer, NULL);
}

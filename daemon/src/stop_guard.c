#include "stop_guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lock.h"
#include "log.h"

#define GUARD_LOOK_NS 100000000L
#define NS_PER_MS UINT64_C(1000000)

struct pd_stop_guard {
    const pd_engine *engine;
    uint64_t limit_ns;
    uint64_t moved_ns,
        moved; /* when a disk did anything for the last time, and the sum of what they did; the thread's */
    pthread_t thread;

    pthread_mutex_t lock; /* guards all below, and the volumes while they are looked at */
    pthread_cond_t wake;
    bool joining, over;
};

/* It grows with whatever a disk does. */
static uint64_t guard_sum(const pd_counters *c) {
    return pd_counted(&c->pages_written) + pd_counted(&c->bytes_written) + pd_counted(&c->syncs) +
           pd_counted(&c->exports) + pd_counted(&c->runs_closed) + pd_counted(&c->runs_failed) +
           pd_counted(&c->certificates);
}

static bool guard_is_past(uint64_t since_ns, uint64_t now, uint64_t limit_ns) {
    return since_ns && since_ns < now && now - since_ns > limit_ns;
}

/* Whether a thread is at one thing for longer than the limit; an export is many. */
static bool guard_finds_stuck(const pd_stop_guard *g, uint64_t now) {
    bool stuck = false;
    for (uint32_t i = 0; i < g->engine->n_volumes; i++) {
        pd_volume_state disk = pd_volume_look(g->engine->volumes[i]);
        stuck |= !disk.full && guard_is_past(disk.busy_ns, now, g->limit_ns);
        stuck |= guard_is_past(pd_exporter_busy_since(g->engine->exporters[i]), now, 2 * g->limit_ns);
    }
    return stuck;
}

/* Called with the lock held. */
static bool guard_is_in_vain(pd_stop_guard *g) {
    uint64_t now = uv_hrtime(), sum = guard_sum(&g->engine->counters);
    if (sum != g->moved) {
        g->moved = sum;
        g->moved_ns = now;
    }
    return guard_is_past(g->moved_ns, now, g->limit_ns) && (g->joining || guard_finds_stuck(g, now));
}

static void guard_wait(pd_stop_guard *g) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += GUARD_LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!g->over && pthread_cond_timedwait(&g->wake, &g->lock, &until) != ETIMEDOUT)
        ;
}

static void *guard_run(void *arg) {
    pd_stop_guard *g = arg;
    pthread_mutex_lock(&g->lock);
    while (!g->over && !guard_is_in_vain(g))
        guard_wait(g);
    if (!g->over) {
        pd_log(PD_LOG_ERROR,
               "the disk has not answered for %.0f s (stop_timeout_s): stopped without it; runs that were "
               "open are left as they are, with "
               "their tails, and the next start goes on with them",
               (double)g->limit_ns / 1e9);
        _exit(PD_STOP_GUARD_EXIT);
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static int guard_start(pd_stop_guard *g) {
    int failed = pd_lock_init(&g->lock, &g->wake);
    if (failed)
        return failed;
    failed = pthread_create(&g->thread, NULL, guard_run, g);
    if (failed)
        pd_lock_destroy(&g->lock, &g->wake);
    return failed;
}

pd_stop_guard *pd_stop_guard_start(const pd_engine *engine) {
    pd_stop_guard *g = calloc(1, sizeof *g);
    int failed = g ? 0 : ENOMEM;
    if (g) {
        g->engine = engine;
        g->limit_ns = engine->config->stop_timeout_ms * NS_PER_MS;
        g->moved_ns = uv_hrtime();
        g->moved = guard_sum(&engine->counters);
        failed = guard_start(g);
    }
    if (!failed)
        return g;
    pd_log(PD_LOG_WARNING, "a disk that does not answer will be waited for: %s", strerror(failed));
    free(g);
    return NULL;
}

void pd_stop_guard_joining(pd_stop_guard *g) {
    if (!g)
        return;
    pthread_mutex_lock(&g->lock);
    g->joining = true;
    pthread_mutex_unlock(&g->lock);
}

void pd_stop_guard_end(pd_stop_guard *g) {
    if (!g)
        return;
    pthread_mutex_lock(&g->lock);
    g->over = true;
    pthread_cond_signal(&g->wake);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->thread, NULL);
    pd_lock_destroy(&g->lock, &g->wake);
    free(g);
}

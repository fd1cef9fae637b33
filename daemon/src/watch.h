/* The eye on the daemon itself, a few times a second: the service manager's watchdog is fed while the loop turns and the
 * threads of the disk are alive, and its status line kept up to date. A loop that stands still is seen within a second by a thread
 * of its own, which says so in the log and to the manager.
 * Thread: the loop's.
 */
#ifndef PD_WATCH_H
#define PD_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "clock_watch.h"
#include "look.h"

typedef struct pd_watch {
    const pd_look *look;
    uv_timer_t timer;
    uint64_t watchdog_ms; /* 0: there is none */
    uint64_t period_ms;
    uint64_t ticked_ns;
    pd_clock_watch clock;
    uint64_t told_ns; /* when the status line was told last; 0: never */
    bool withheld;    /* the watchdog is not fed */
    char line[PD_LOOK_LINE_BYTES];

    uv_timer_t beat;
    atomic_uint_fast64_t beaten_ns; /* when the loop turned last; 0: it has not begun */
    atomic_bool stood_still;        /* the manager was told that it does */
    pthread_t eye;
    bool has_eye;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ending; /* guarded by `lock` */
} pd_watch;

/* `look` must outlive it. */
void pd_watch_start(pd_watch *watch, const pd_look *look);

/* Closes the timers and ends the thread. */
void pd_watch_close(pd_watch *watch);

#endif

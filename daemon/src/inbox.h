/* What other threads hand to the loop: one queue and one uv_async for all of them. A wake-up may stand
 * for many, so the queue is drained whole. */
#ifndef PD_INBOX_H
#define PD_INBOX_H

#include <uv.h>

#include "queue.h"

typedef struct pd_event pd_event;

/* Something that has happened elsewhere. Lives in whatever it is about. */
struct pd_event {
    pd_link link;
    void (*happened)(
        pd_event *event); /* called on the loop's thread; the event is out of the queue by then */
};

typedef struct pd_inbox {
    pd_queue queue;
    uv_async_t async;
} pd_inbox;

/* Returns 0 or a negative errno. */
int pd_inbox_init(pd_inbox *inbox, uv_loop_t *loop);

/* Any thread. */
void pd_inbox_post(pd_inbox *inbox, pd_event *event);

/* Loop's thread: no more events come. The memory must stay until the loop has run dry. */
void pd_inbox_close(pd_inbox *inbox);

#endif

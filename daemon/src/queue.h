/* Queues between threads: intrusive lists under a mutex, taken whole. What travels carries its own link,
 * so a queue never allocates and is never full: it is bounded by the number of things there are (ring
 * slots, tasks of runs). Pushing never blocks longer than another push. */
#ifndef PD_QUEUE_H
#define PD_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The member by which something is queued; in at most one queue at a time. */
typedef struct pd_link {
    struct pd_link *next;
} pd_link;

/* The struct that holds `member` at `pointer`. */
#define pd_container_of(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* A first-in, first-out list for one thread. */
typedef struct pd_list {
    pd_link *first;
    pd_link **last; /* where the next link goes; pd_list_init() makes it point into the list itself */
} pd_list;

void pd_list_init(pd_list *list);
void pd_list_push(pd_list *list, pd_link *link);
pd_link *pd_list_pop(pd_list *list);
/* Takes everything out: a chain by `next`, NULL when empty. */
pd_link *pd_list_take(pd_list *list);

/* The same between threads; any number push, one takes. */
typedef struct pd_queue {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t ready;
    pd_list list;
    bool closed;
} pd_queue;

/* Returns 0 or a negative errno. */
int pd_queue_init(pd_queue *queue);
void pd_queue_destroy(pd_queue *queue);

/* Appends. Returns true when the queue was empty before, that is, when its reader may need waking. */
bool pd_queue_push(pd_queue *queue, pd_link *link);

enum { PD_QUEUE_FOREVER = -1 };

/* Takes everything, in order, as a chain by `next`; waits for something up to wait_ms (0: not at all).
 * Returns NULL when the time is over, or when the queue is empty and closed. */
pd_link *pd_queue_take(pd_queue *queue, int wait_ms);

/* Wakes the reader for good: what is queued can still be taken. */
void pd_queue_close(pd_queue *queue);
bool pd_queue_closed(pd_queue *queue);

#endif

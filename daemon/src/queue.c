#include "queue.h"

#include <errno.h>
#include <time.h>

#include "lock.h"

void pd_list_init(pd_list *list) {
    list->first = NULL;
    list->last = &list->first;
}

void pd_list_push(pd_list *list, pd_link *link) {
    link->next = NULL;
    *list->last = link;
    list->last = &link->next;
}

pd_link *pd_list_pop(pd_list *list) {
    pd_link *link = list->first;
    if (!link)
        return NULL;
    list->first = link->next;
    if (!list->first)
        list->last = &list->first;
    link->next = NULL;
    return link;
}

pd_link *pd_list_take(pd_list *list) {
    pd_link *chain = list->first;
    pd_list_init(list);
    return chain;
}

int pd_queue_init(pd_queue *queue) {
    int failed = pd_lock_init(&queue->lock, &queue->ready);
    if (failed)
        return -failed;
    pd_list_init(&queue->list);
    queue->closed = false;
    return 0;
}

void pd_queue_destroy(pd_queue *queue) {
    pd_lock_destroy(&queue->lock, &queue->ready);
}

bool pd_queue_push(pd_queue *queue, pd_link *link) {
    pthread_mutex_lock(&queue->lock);
    bool was_empty = queue->list.first == NULL;
    pd_list_push(&queue->list, link);
    if (was_empty)
        pthread_cond_signal(&queue->ready);
    pthread_mutex_unlock(&queue->lock);
    return was_empty;
}

static struct timespec queue_deadline(int wait_ms) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += wait_ms / 1000;
    at.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

/* Called with the lock held. */
static void queue_wait(pd_queue *queue, int wait_ms) {
    struct timespec until = {0, 0};
    if (wait_ms > 0)
        until = queue_deadline(wait_ms);
    while (!queue->list.first && !queue->closed) {
        if (wait_ms < 0)
            pthread_cond_wait(&queue->ready, &queue->lock);
        else if (pthread_cond_timedwait(&queue->ready, &queue->lock, &until) == ETIMEDOUT)
            return;
    }
}

pd_link *pd_queue_take(pd_queue *queue, int wait_ms) {
    pthread_mutex_lock(&queue->lock);
    if (wait_ms != 0)
        queue_wait(queue, wait_ms);
    pd_link *chain = pd_list_take(&queue->list);
    pthread_mutex_unlock(&queue->lock);
    return chain;
}

void pd_queue_close(pd_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    pthread_cond_broadcast(&queue->ready);
    pthread_mutex_unlock(&queue->lock);
}

bool pd_queue_closed(pd_queue *queue) {
    pthread_mutex_lock(&queue->lock);
    bool closed = queue->closed;
    pthread_mutex_unlock(&queue->lock);
    return closed;
}

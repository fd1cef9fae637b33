#include "producers.h"

#include <stdlib.h>
#include <string.h>

int pd_producers_init(pd_producers *p, size_t cap) {
    *p = (pd_producers){.cap = cap};
    p->items = calloc(cap, sizeof *p->items);
    return p->items ? 0 : -1;
}

void pd_producers_free(pd_producers *p) {
    for (size_t i = 0; i < p->n; i++)
        free(p->items[i].instance);
    free(p->items);
    *p = (pd_producers){0};
}

static pd_producer *producers_find(pd_producers *p, const char *instance) {
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->items[i].instance, instance) == 0)
            return &p->items[i];
    return NULL;
}

/* A place for a new one: at the end, or that of the one longest gone. */
static pd_producer *producers_place(pd_producers *p) {
    if (p->n < p->cap)
        return &p->items[p->n++];
    pd_producer *oldest = NULL;
    for (size_t i = 0; i < p->n; i++) {
        pd_producer *it = &p->items[i];
        if (!it->session && (!oldest || it->left < oldest->left))
            oldest = it;
    }
    if (oldest)
        free(oldest->instance);
    return oldest;
}

/* The one of that instance, new when there is none. NULL: out of memory, or all are connected. */
static pd_producer *producers_get(pd_producers *p, const char *instance) {
    pd_producer *it = producers_find(p, instance);
    if (it)
        return it;
    char *copy = strdup(instance);
    it = copy ? producers_place(p) : NULL;
    if (!it) {
        free(copy);
        return NULL;
    }
    *it = (pd_producer){.instance = copy};
    return it;
}

pd_arrival pd_producers_arrive(pd_producers *p, const char *instance, uint64_t epoch,
                               struct pd_session *session, struct pd_session **ret_before,
                               uint64_t *ret_epoch) {
    pd_producer *it = producers_find(p, instance);
    if (it && epoch < it->epoch) {
        *ret_epoch = it->epoch;
        return PD_ARRIVAL_STALE;
    }
    it = producers_get(p, instance);
    if (!it)
        return PD_ARRIVAL_NO_ROOM;
    *ret_before = it->session;
    it->epoch = epoch;
    it->session = session;
    return PD_ARRIVED;
}

int pd_producers_know(pd_producers *p, const char *instance, uint64_t epoch) {
    pd_producer *it = producers_get(p, instance);
    if (!it)
        return -1;
    if (epoch > it->epoch)
        it->epoch = epoch;
    return 0;
}

void pd_producers_leave(pd_producers *p, const char *instance, const struct pd_session *session) {
    pd_producer *it = producers_find(p, instance);
    if (!it || it->session != session)
        return;
    it->session = NULL;
    it->left = ++p->clock;
}

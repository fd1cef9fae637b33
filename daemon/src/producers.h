/* Who has said Hello: producers by instance, with the epoch of their latest start and the connection that speaks for
 * them now. Bounded: the one longest without a connection is forgotten for a new one. Thread: the loop's.
 */
#ifndef PD_PRODUCERS_H
#define PD_PRODUCERS_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

struct pd_session;

typedef struct pd_producer {
    char *instance;
    uint64_t epoch;
    struct pd_session *session; /* NULL: not connected */
    uint64_t left;              /* a count that grows: when it lost its connection */
} pd_producer;

typedef struct pd_producers {
    pd_producer *items; /* [n] */
    size_t n, cap;
    uint64_t clock;
} pd_producers;

/* Room for `cap` producers, more than there are connections. Returns 0, or -1 when out of memory. */
int pd_producers_init(pd_producers *producers, size_t cap);
void pd_producers_free(pd_producers *producers);

typedef enum pd_arrival {
    PD_ARRIVED,        /* *ret_before: the connection that it takes over from, NULL for none */
    PD_ARRIVAL_STALE,  /* *ret_epoch: the later start that is known */
    PD_ARRIVAL_NO_ROOM /* out of memory, or all are connected */
} pd_arrival;

/* A producer says Hello. */
pd_arrival pd_producers_arrive(pd_producers *producers, const char *instance, uint64_t epoch,
                               struct pd_session *session, struct pd_session **ret_before,
                               uint64_t *ret_epoch);

/* A producer that was there before a restart: earlier starts of it are refused. Returns 0, or -1 when out of memory. */
PD_MUST_USE int pd_producers_know(pd_producers *producers, const char *instance, uint64_t epoch);

/* Its connection is gone; without effect when another has taken over. */
void pd_producers_leave(pd_producers *producers, const char *instance, const struct pd_session *session);

#endif

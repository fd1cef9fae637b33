/* All connections: who is accepted, who waits for room, who has something to send.
 *
 * Before the loop sleeps (a prepare handle) everything at hand is settled: connections that waited go on if room has
 * come, due acknowledgements are written, answers are sent. So a burst of batches costs one write.
 * Thread: the loop's.
 */
#ifndef PD_SERVER_H
#define PD_SERVER_H

#include <stdbool.h>
#include <uv.h>

#include "access.h"
#include "armed.h"
#include "connection.h"
#include "connects.h"
#include "engine.h"
#include "producers.h"
#include "runs.h"
#include "wire/batch.h"

enum {
    PD_PAUSE_TOLD_AFTER_MS = 50,
    PD_HOLD_MS = 2000,
    PD_LINGER_MS = 2000,
    PD_CONNECTIONS_BEING_REFUSED = 32
};

typedef struct pd_server {
    pd_engine *engine;
    pd_runs runs;
    pd_armed armed; /* runs that wait for their producers */
    pd_producers producers;
    pd_access access;
    pd_connects connects;
    uint64_t told_too_often_ns; /* when an address that connects too often was told in the log last */
    pd_connection *connections; /* all of them */
    size_t n_connections;
    uint32_t max_connections;              /* as configured, or as the descriptors allow */
    uint32_t max_refused;                  /* beyond these, at most: the next is closed without an answer */
    pd_connection *waiting, *waiting_last; /* for room, the one that waits longest first */
    pd_connection *waiting_cursor;         /* the next one to go on, while they are gone through */
    size_t n_waiting, n_wait_for_memory;
    pd_connection *due; /* with something to send */
    uv_prepare_t settle;
    uv_timer_t ack_timer;   /* for acknowledgements that are not to be sent yet */
    uv_timer_t pause_timer; /* for waits that are not told yet */
    uv_timer_t hold_timer;  /* looks at who holds memory while others wait for it */
    wire_batch batch;       /* being parsed */
    char discard[65536];    /* what ending connections still send, and what is on its way to TLS */
    char plain[16384];      /* what ending connections still send, out of TLS */
} pd_server;

/* Returns 0, or -1 with err. */
PD_MUST_USE int pd_server_init(pd_server *server, pd_engine *engine, pd_error *err);

/* The end, in this order. Nothing more is taken: what was received whole has been handled, or waited for room and was
 * not acknowledged. */
void pd_server_stop_reading(pd_server *server);

/* Files of tokens and certificates have been read again (pd_access_reload()): connections whose token is gone, or has other
 * rights, end. */
void pd_server_access_changed(pd_server *server);

/* All runs have ended: the clients are told that the daemon stops, and the connections end. */
void pd_server_end(pd_server *server);

/* All connections are closed. */
void pd_server_close(pd_server *server);

/* The loop has run dry. */
void pd_server_free(pd_server *server);

/* ---- for connections ---- */

void pd_server__add(pd_server *server, pd_connection *c);
void pd_server__remove(pd_server *server, pd_connection *c); /* from every list */
void pd_server__wait(pd_server *server, pd_connection *c);   /* puts it last in line, unless it is in line */
void pd_server__unwait(pd_server *server, pd_connection *c); /* without effect when it does not wait */

#endif

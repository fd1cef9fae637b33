/* One client's socket: bytes in, bytes out, time-outs. What the messages mean is the session's affair.
 *
 *   preamble --> talking --> ending --> closed
 *       \___________\__________^
 *
 *   preamble  the first 8 bytes are awaited
 *   talking   messages
 *   ending    nothing is taken any more; what was answered is sent, then the sending side is closed and what still
 *             comes is thrown away until the client closes too, or the time is over (closing at once would make the
 *             kernel throw away the last answer)
 *   closed    the handle is closing
 *
 * With TLS (connection_tls.c) what comes goes through it before it is looked at, and what is sent before it goes out; the
 * states are the same, the handshake being part of the preamble's.
 *
 * Ways to end: the client closes or the network fails; an error of the client's (ending, after its Error); it said
 * nothing for too long (ending, after ERROR_TIMEOUT); its answers were not read (closed at once); the daemon stops.
 *
 * Waiting. A message that finds no room in the ring, or a long one that finds no memory, stops the reading of this
 * socket: the client feels it as TCP's back-pressure. The server asks again when room has come.
 * Thread: the loop's.
 */
#ifndef PD_CONNECTION_H
#define PD_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "inbuf.h"
#include "session.h"
#include "tls.h"

struct pd_server;

typedef enum pd_connection_state {
    PD_CONNECTION_PREAMBLE,
    PD_CONNECTION_TALKING,
    PD_CONNECTION_ENDING,
    PD_CONNECTION_CLOSED
} pd_connection_state;

/* Answers on their way: one buffer is being written, the other is filled. */
typedef struct pd_output {
    uint8_t *data[2]; /* [cap[i]] */
    size_t n[2], cap[2];
    unsigned filling;    /* index of the one being filled */
    bool writing;        /* the other one is with libuv */
    bool overflowed;     /* the client does not read: it is cut off when the loop settles */
    bool shut_down;      /* all was sent, the sending side is closed */
    uint64_t writing_ns; /* since when */
    uv_write_t request;
    uv_shutdown_t shutdown;
} pd_output;

typedef struct pd_connection {
    struct pd_server *server;
    pd_connection_state state;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    uv_timer_t timer;
    unsigned n_handles; /* not closed yet */
    char peer[208];     /* where it comes from, and by what it has its rights */
    pd_tls *tls;        /* NULL: without */
    bool tls_more;      /* it may hold bytes that were not read for want of room */
    bool tls_finished;  /* our end was said */
    pd_inbuf in;
    pd_output out;
    pd_session session;
    uint64_t opened_ns;
    uint64_t last_message_ns; /* when the last whole message came, or a good part of a long one */
    bool hello_late;          /* its time was up once, while bytes of it lay unread */
    size_t heard_bytes;       /* since then */
    uint64_t pings;           /* sent */
    bool pinged;              /* since the last message */
    uint64_t received_bytes;

    /* Waiting for room; see server.h. */
    uint64_t waits_since_ns; /* 0: does not wait */
    bool waits_for_memory;   /* not for the ring */
    bool waits_on;           /* found no room again */
    uint64_t told_paused_ns; /* when that was told last; 0: not yet */
    uint64_t held_at_bytes;  /* received_bytes when it was last looked at as a holder of memory */
    unsigned slow_windows;   /* looks in a row at which next to nothing had come */
    struct pd_connection *next_waiting, *previous_waiting;

    bool due; /* in the server's list of those with something to send */
    struct pd_connection *next_due;
    struct pd_connection *next, *previous; /* all connections */
} pd_connection;

/* A client has knocked. The connection frees itself when it is closed. `secure`: it is to speak TLS.
 * Returns 0 or a libuv error. */
int pd_connection_accept(struct pd_server *server, uv_stream_t *listener, bool secure);

/* Room for `bytes` of an answer, to be filled and then committed. NULL when the client has not read what it was sent:
 * it will be cut off, or when the connection takes no answers any more. */
uint8_t *pd_connection_reserve(pd_connection *c, size_t bytes);
void pd_connection_commit(pd_connection *c, size_t bytes);

/* Marks it as having something to send when the loop has done what is at hand. */
void pd_connection_due(pd_connection *c);

/* Sends what there is. Called by the server. */
void pd_connection_flush(pd_connection *c);

/* Goes on with what has been received, now that room has come. `first`: of those that wait for memory.
 * Returns false when it has to wait on. */
bool pd_connection_go_on(pd_connection *c, bool first);

/* Takes nothing more, see above: what was received and not handled is thrown away. */
void pd_connection_end(pd_connection *c);

/* Closes at once. */
void pd_connection_close(pd_connection *c);

/* Others wait for memory, to be called each PD_HOLD_MS while they do: ends this connection if it holds some for the rest of a
 * message and sent next to nothing in several such windows in a row. */
void pd_connection_check_holding(pd_connection *c);

/* Adds to what is shown as its peer: "token lab". */
void pd_connection_add_name(pd_connection *c, const char *kind, const char *name);

/* Silent for longer than a client should be. */
bool pd_connection_silent(const pd_connection *c, uint64_t now_ns);

/* ---- between the files of the connection ---- */

void pd_connection__lost(pd_connection *c, const char *why);
void pd_connection__wait(pd_connection *c, bool for_memory); /* reads no more until there may be room */
void pd_connection__take(pd_connection *c, size_t bytes);    /* so many plain bytes are in the buffer */
bool pd_connection__room(pd_connection *c, uv_buf_t *ret);   /* false: there is none */
void pd_connection__read_tls(pd_connection *c, const uint8_t *data, size_t bytes);
void pd_connection__go_on_tls(pd_connection *c);
bool pd_connection__encrypt(
    pd_connection *c); /* what is to be sent now, in its place; false: the connection is gone */

#endif

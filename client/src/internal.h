/* The inside of the client library: what its files share.
 *
 * A connection's life: link -> hello (at first in photon_client_connect(), on the caller's thread) -> standing, with the
 * reader thread running -> down, until the reader thread has made it anew -> standing ... -> failed (once, with the
 * error that every later call returns) or freed.
 * A run's life: opening -> open -> closed | failed. A run whose Open is answered by Closed goes straight to closed.
 * On each connection it is attached anew: its Open is sent again, Opened says where to go on.
 *
 * One mutex (`lock`) protects everything that the reader thread and the callers share; one condition (`changed`) is
 * signalled whenever any of it changes. A caller puts its message into the run's window (`keep`) and numbers it. Whoever
 * has something to write, caller or reader thread, calls client__pump() under the lock: it writes what goes without
 * waiting, in this order: the message that was begun, what is `pending` (whole small messages), then what the windows
 * hold from each run's `cursor` on, within its credit. When the socket is full the reader thread goes on. Nobody ever
 * waits for the socket with the lock.
 *
 * file         what
 * error.c      error codes and texts
 * clock.c      time and deadlines
 * link.c       the bytes of a connection
 * dial.c       address to connected socket
 * receive.c    bytes to messages
 * hello.c      preamble, Hello, Welcome
 * reader.c     the thread: reading, heartbeats, silence
 * answer.c     what the server's messages change
 * reconnect.c  losing the connection and making it anew
 * news.c       what the caller's callback is told
 * output.c     the bytes that go out
 * keep.c       messages that may have to be sent again
 * client.c     connect, free and the getters of a connection
 * open.c       options to Open, answer to run
 * run.c        what is known of a run; status and waits
 * numbered.c   attributes, markers, gaps
 * finish.c     signs of life, close
 * split.c      how much of the caller's columns goes into the next batch (pure)
 * send.c       room, batches
 * again.c      batches that are read again rather than kept
 */
#ifndef CLIENT_INTERNAL_H
#define CLIENT_INTERNAL_H

#include <pthread.h>
#include <stdarg.h>

#include "ingest.pb-c.h"
#include "keep.h"
#include "link.h"
#include "photon_client.h"
#include "split.h"
#include "wire/address.h"
#include "wire/batch.h"

/* An answer of the server is never longer; Opened and Closed of very many datasets are the longest. */
enum { CLIENT_ANSWER_BYTES_MAX = 4 * 1024 * 1024 };

/* Length, kind, length and handle before a message that is kept. */
enum { CLIENT_HEAD_BYTES = 2 * WIRE_PREFIX_BYTES_MAX + 8 };

#define CLIENT_NO_DEADLINE UINT64_MAX

/* ---- errors: fill *err when it is not NULL, return the code */

__attribute__((format(printf, 3, 4))) int client__error(photon_client_error *err, int code,
                                                        const char *format, ...);
__attribute__((format(printf, 4, 5))) int client__os_error(photon_client_error *err, int code, int os_errno,
                                                           const char *format, ...);
int client__refused(photon_client_error *err, const Photon__Error *error);
int client__copy_error(photon_client_error *err, const photon_client_error *from);

/* ---- time: CLOCK_MONOTONIC */

uint64_t client__now_ns(void);
uint64_t client__utc_ns(void);
/* timeout_ms from now; PHOTON_CLIENT_FOREVER: CLIENT_NO_DEADLINE. */
uint64_t client__deadline(uint32_t timeout_ms);
/* Milliseconds from now to then, rounded up, for poll(): at most 1000, 0 when past. */
int client__poll_ms(uint64_t deadline_ns);

/* ---- received bytes */

typedef struct client_receiver {
    uint8_t *data;
    size_t cap;
    size_t begin; /* [begin, end) has been read but not taken */
    size_t end;
} client_receiver;

/* Reads what is there, without waiting. Returns 1: something; 0: nothing yet; -1: the stream has ended, errno 0
 * at its end; -2: no memory. */
int client__receive(client_receiver *r, client_link *link);

/* Takes the next message. Returns WIRE_OK and the message, which lasts until the next client__receive(); WIRE_MORE;
 * WIRE_MALFORMED; WIRE_LIMIT. */
wire_status client__take(client_receiver *r, const uint8_t **message, size_t *bytes);

/* ---- the connection */

typedef struct client_bytes {
    uint8_t *data;
    size_t cap;
    size_t begin;
    size_t end;
} client_bytes;

/* What is told to the server about us, the same on each connection. Strings are owned. */
typedef struct client_identity {
    char *client_name;
    char *instance;
    char *software;
    uint8_t *token;
    size_t token_bytes;
    uint64_t epoch;
} client_identity;

/* The kept message that is being written. */
typedef struct client_current {
    photon_client_run *run; /* NULL: none */
    uint64_t sequence;
    bool begun; /* some of it has gone */
    uint8_t head[CLIENT_HEAD_BYTES];
    struct iovec own[2];  /* head and body */
    struct iovec *pieces; /* [n_pieces] what is left of it */
    size_t n_pieces;
} client_current;

/* News that wait for the callback; older ones of the same kind and run give way. */
enum { CLIENT_NEWS_MAX = 32 };

struct photon_client {
    /* Set before the reader thread starts, constant then. */
    int wake_fd; /* eventfd: the reader thread shall look again */
    wire_address address;
    char address_text[WIRE_ADDRESS_TEXT_BYTES];
    client_identity identity;
    client_tls_trust *trust;        /* NULL: without TLS */
    Photon__ServerMessage *welcome; /* the first; owns the strings of `server` */
    uint32_t silence_timeout_ms;
    uint32_t connect_timeout_ms;
    bool reconnect;
    uint32_t reconnect_timeout_ms;
    uint32_t reconnect_min_ms;
    uint32_t reconnect_max_ms;
    uint64_t keep_bytes;
    void (*on_event)(void *context, const photon_client_event *event);
    void *event_context;
    pthread_t thread;

    /* Of the reader thread alone, once it runs. */
    client_receiver in;
    uint64_t heard_ns; /* when the server was heard last */
    uint64_t asked_ns; /* when a ping was sent because it had been silent */
    uint64_t ping_id;
    unsigned attempts; /* to connect, since the last progress */

    pthread_mutex_t lock;
    pthread_cond_t changed;

    /* Under lock; while the connection is down, of the reader thread alone. */
    client_link link;
    client_bytes pending; /* whole messages, but for the first, which may have lost its beginning */

    /* Under lock. */
    photon_client_server server;
    bool stopping;
    bool failed;
    bool down;                   /* the reader thread is making the connection anew */
    photon_client_error failure; /* why it is failed or down */
    client_current current;
    bool blocked;       /* the socket takes no more: the reader thread goes on when it does */
    uint64_t broken_ns; /* when a write failed, 0: none has; the reading side finds out why */
    int broken_errno;   /* of that write */
    uint64_t said_ns;   /* when something was written last */
    uint64_t up_ns;     /* when the connection stood */
    uint64_t good_ns; /* when the server has received something last, or an idle connection stood for long */
    unsigned n_checksum; /* connections that ended by ERROR_CHECKSUM since the last progress */
    uint64_t n_connections;
    bool paused; /* all runs */
    photon_client_event news[CLIENT_NEWS_MAX];
    size_t n_news;
    photon_client_run *runs; /* linked */
};

/* The connection has ended: it is made anew, when that may help, or has failed for good (the first reason stays).
 * Wakes everybody. Under lock. */
void client__fail(photon_client *c, const photon_client_error *err);

/* Waits for a change until the deadline. Under lock. Returns 0; -1 when the deadline has passed. */
int client__wait(photon_client *c, uint64_t deadline_ns);

/* Connects a socket. Ends early, with errno ECANCELED in the error, when wake_fd becomes readable. */
int client__dial(const wire_address *address, int wake_fd, uint64_t deadline_ns, int *ret_fd,
                 photon_client_error *err);

/* Waits until a connected socket has something to read, or (full) takes more. Returns 0; ERR_CONNECT when wake_fd becomes
 * readable, ERR_TIMEOUT at the deadline, with err. */
int client__dial_wait(int fd, int wake_fd, bool full, const char *address_text, uint64_t deadline_ns,
                      photon_client_error *err);

/* On a fresh link: preamble, Hello, and the Welcome that it answers. */
int client__hello(photon_client *c, uint64_t deadline_ns, Photon__ServerMessage **ret_welcome,
                  photon_client_error *err);

/* Dials and says Hello. Touches what belongs to the reader thread and, of the rest, link and pending only. */
int client__connect_once(photon_client *c, uint64_t deadline_ns, Photon__ServerMessage **ret_welcome,
                         photon_client_error *err);

/* Whether another attempt may end otherwise, and how long to wait before it. */
bool client__worth_retrying(const photon_client_error *err);
uint64_t client__backoff_ns(const photon_client *c, unsigned attempt, uint32_t least_ms);

/* Takes over the limits of a Welcome. Under lock. */
void client__learn_limits(photon_client *c, const Photon__Welcome *welcome);

void *client__reader_main(void *client);

/* On the reader thread, without the lock: makes the connection anew. Returns when it stands, has failed, or the client
 * is stopping. */
void client__reconnect(photon_client *c);

/* The server has received something: the connection is good. Under lock. */
void client__note_progress(photon_client *c);

/* What a message of the server changes. Takes over the message. Under lock. */
void client__answer(photon_client *c, Photon__ServerMessage *m);

/* Adds to what the callback will be told; `run` may be NULL. Under lock. */
void client__news(photon_client *c, uint32_t kind, photon_client_run *run, uint32_t reason, const char *text);

/* Tells what has come up. Without the lock, on the reader thread. */
void client__tell_news(photon_client *c);

/* ---- output */

/* Writes what goes without waiting. Under lock. Whatever goes wrong, the reader thread finds out and tells. */
void client__pump(photon_client *c);

/* Wakes the reader thread. */
void client__wake(const photon_client *c);

/* Adds a packed message behind what is pending, and pumps. Under lock. Returns 0; -1: no memory, or the server takes so
 * little that more would be too much. */
int client__output_pending(photon_client *c, const Photon__ClientMessage *message);

/* As that, whatever is pending already. */
int client__output_add(photon_client *c, const void *data, size_t bytes);

/* A message with its length before it, in memory of its own; NULL: no memory. */
uint8_t *client__output_pack(const Photon__ClientMessage *message, size_t *bytes);

/* Whether something is pending. Under lock. */
bool client__output_waits(const photon_client *c);

/* Sends what goes of `pending` without waiting. Returns 0: it is empty; 1: the socket is full; -1: it is broken. */
int client__output_flush(photon_client *c);

/* A run goes away: what it has begun to write is kept. Under lock. */
void client__output_leave(photon_client *c, photon_client_run *run);

/* ---- runs */

enum client_run_phase { CLIENT_RUN_OPENING, CLIENT_RUN_OPEN, CLIENT_RUN_CLOSED, CLIENT_RUN_FAILED };

struct photon_client_run {
    photon_client *client;
    photon_client_run *next; /* under the client's lock */

    /* Set by photon_client_open(), constant then. */
    uint8_t run_id[16];
    uint32_t send_timeout_ms;
    photon_client_dataset_state *datasets; /* [n_datasets] */
    size_t n_datasets;
    const char **groups; /* [n_groups], names borrowed from `opened` or `closed` */
    size_t n_groups;
    client_split split;

    int (*read_again)(void *context, const uint64_t *first, const uint64_t *counts, const void **columns);
    void *read_context;
    struct client_batch_room
        *again;          /* when there is read_again: where its batches are laid out, under lock */
    uint8_t *open_bytes; /* [n_open_bytes] the Open, with its length: sent on each connection */
    size_t n_open_bytes;

    /* Under the client's lock. */
    enum client_run_phase phase;
    photon_client_error failure;
    uint32_t handle;               /* 0: not attached on this connection */
    Photon__ServerMessage *opened; /* as the server answered first */
    Photon__ServerMessage *closed;
    client_keep keep;
    uint64_t window_bytes; /* of messages that are not durable; 0: kept until received */
    uint64_t sent;         /* the last number given */
    uint64_t cursor;       /* the next number to be written */
    uint64_t received;
    uint64_t durable;
    uint64_t resent;    /* messages written more than once */
    uint64_t written;   /* the highest number ever written */
    uint64_t reached;   /* the highest number written on this connection, or that it began behind */
    uint64_t reopen_ns; /* when to ask the server again to open it, 0: not */
    uint64_t n_dropped; /* messages that the server has dropped */
    uint64_t last_dropped;
    uint64_t credit_bytes;
    bool paused;
    uint32_t pause_reason;
    char pause_text[128];
    bool close_sent;
    uint64_t flush_id;   /* of the newest Flush */
    uint64_t flushed_on; /* the connection on which it went, by n_connections; 0: on none */
    uint64_t hole;       /* the number that the server missed last */
    unsigned n_hole;
    uint64_t asked;                      /* the message whose answer is waited for, 0: none */
    photon_client_error refusal;         /* of that message, code 0: none yet */
    uint64_t bytes_sent;                 /* column bytes of all batches */
    photon_client_dataset_state *result; /* [closed's datasets] made by photon_client_close_run() */

    /* Of the thread that sends. */
    uint64_t *items_sent; /* [n_groups] of the whole run */
    uint64_t *done;       /* [n_groups] of the present call */
    uint64_t *take;       /* [n_groups] of the next batch */
    uint8_t *swapped;     /* [batch_bytes] on big-endian hosts */
    struct client_batch_room *room;
};

/* Where a batch is laid out. */
typedef struct client_batch_room {
    wire_batch batch;
    uint8_t head[WIRE_BATCH_HEAD_BYTES];
    struct iovec pieces[WIRE_BATCH_PIECES];
} client_batch_room;

/* The run's failure, or the connection's, or ERR_ENDED when it is closed; 0 while it is open. Under lock. */
int client__run_check(const photon_client_run *run, photon_client_error *err);

/* Column bytes that were written and not received yet. Under lock. */
uint64_t client__run_in_flight(const photon_client_run *run);

/* Column bytes that were sent and that the window must still hold. Under lock. */
uint64_t client__run_held(const photon_client_run *run);

/* The connection is down: the run has no handle. Under lock. */
void client__run_detach(photon_client_run *run);

/* Writes from that number on again. Under lock. */
void client__run_rewind(photon_client_run *run, uint64_t from);

/* What the reader thread has learnt. Under lock. The two that take a message own it from then on. */
void client__run_opened(photon_client_run *run, Photon__ServerMessage *message);
void client__run_attached(photon_client_run *run, const Photon__Opened *opened);
void client__run_closed(photon_client_run *run, Photon__ServerMessage *message);
void client__run_acknowledged(photon_client_run *run, const Photon__Ack *ack);
void client__run_fail(photon_client_run *run, const photon_client_error *err);
void client__run_refused(photon_client_run *run, const photon_client_error *err);

/* A batch of a source that can be read again is kept by its place (again.c). Takes what has been laid out. */
size_t client__again_bytes(const photon_client_run *run);
void client__again_put(const photon_client_run *run, uint8_t *to);

/* Reads it again and lays it out in run->again. Under lock. Returns the pieces; 0: the run has failed. */
size_t client__again_get(photon_client_run *run, uint64_t sequence, const uint8_t *from);

/* Waits until the window takes a message with so many bytes, `column_bytes` of them in columns; `in_ring`: and the ring
 * of bytes, too. Under lock. */
int client__send_wait(photon_client_run *run, size_t bytes, uint64_t column_bytes, bool in_ring,
                      uint64_t deadline_ns, photon_client_error *err);

/* Attributes as protobuf-c takes them; the texts stay the caller's. */
typedef struct client_attributes {
    Photon__Attribute *items;
    Photon__Attribute **list;
} client_attributes;

/* `limit`: bytes of key and value; 0: none. */
int client__attribute_check(const photon_client *c, uint64_t limit, const photon_client_attribute *a,
                            photon_client_error *err);
int client__attributes_make(client_attributes *to, const photon_client_attribute *from, size_t n);
void client__attributes_free(client_attributes *a);

/* A list of DatasetState as the public header has it; *ret is NULL when n is 0. `groups` gives the index of each
 * group; a dataset whose group is not among them, or whose type is none, is an error. */
int client__dataset_states(const photon_client *c, Photon__DatasetState *const *states, size_t n,
                           const char *const *groups, size_t n_groups, photon_client_dataset_state **ret,
                           photon_client_error *err);

#endif

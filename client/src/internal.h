/* The inside of the client library: what its files share.
 *
 * A connection's life: dial -> hello (both in photon_client_connect(), on the caller's thread) -> standing, with the
 * reader thread running -> failed (once, with the error that every later call returns) or freed.
 * A run's life: opening -> open -> closed | failed. A run whose Open is answered by Closed goes straight to closed.
 *
 * One mutex (`lock`) protects everything that the reader thread and the callers share; one condition (`changed`) is
 * signalled whenever any of it changes. Bytes are written by the calling threads: whoever holds the writing token
 * (`writing`) writes one whole message without holding the lock. What the reader thread has to say (pings, pongs)
 * goes through `pending`, which whoever writes next sends first; so does the rest of a message whose caller ran out
 * of time.
 *
 * file         what
 * error.c      error codes and texts
 * clock.c      time and deadlines
 * dial.c       address to connected socket
 * receive.c    bytes to messages
 * hello.c      preamble, Hello, Welcome
 * reader.c     the thread: answers, heartbeats, silence
 * output.c     the writing token and the bytes that go out
 * client.c     connect, free and the getters of a connection
 * open.c       options to Open, answer to run
 * run.c        what is known of a run; status and waits
 * finish.c     attributes, signs of life, close
 * split.c      how much of the caller's columns goes into the next batch (pure)
 * send.c       credit, batches
 */
#ifndef CLIENT_INTERNAL_H
#define CLIENT_INTERNAL_H

#include <pthread.h>
#include <stdarg.h>

#include "ingest.pb-c.h"
#include "photon_client.h"
#include "split.h"
#include "wire/address.h"
#include "wire/batch.h"

/* An answer of the server is never longer; Opened and Closed of very many datasets are the longest. */
enum { CLIENT_ANSWER_BYTES_MAX = 4 * 1024 * 1024 };

/* Batches of one run that may be on their way; a power of two. */
enum { CLIENT_IN_FLIGHT_MAX = 16384 };

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

/* Reads what is there, without waiting. Returns 1: something; 0: nothing for now; -1: the stream has ended, errno 0
 * at its end; -2: no memory. */
int client__receive(client_receiver *r, int fd);

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

struct photon_client {
    /* Set before the reader thread starts, constant then. */
    int fd;
    int wake_fd; /* eventfd: the reader thread shall look again */
    wire_address address;
    char address_text[WIRE_ADDRESS_TEXT_BYTES];
    Photon__ServerMessage *welcome; /* owns the strings of `server` */
    photon_client_server server;
    uint32_t silence_timeout_ms;
    pthread_t thread;

    /* Of the reader thread alone, once it runs. */
    client_receiver in;
    uint64_t heard_ns; /* when the server was heard last */
    uint64_t asked_ns; /* when a ping was sent because it had been silent */
    uint64_t ping_id;

    pthread_mutex_t lock;
    pthread_cond_t changed;

    /* Under lock. */
    bool stopping;
    bool failed;
    photon_client_error failure;
    bool writing;         /* the writing token is taken */
    client_bytes pending; /* whole messages, but for the first, which may have lost its beginning */
    uint64_t said_ns;     /* when something was written last */
    bool paused;          /* all runs */
    uint64_t in_flight_bytes;
    photon_client_run *runs; /* linked */
};

/* Marks the connection as failed (the first reason stays) and wakes everybody. Under lock. */
void client__fail(photon_client *c, const photon_client_error *err);

/* Waits for a change until the deadline. Under lock. Returns 0; -1 when the deadline has passed. */
int client__wait(photon_client *c, uint64_t deadline_ns);

int client__dial(const wire_address *address, uint64_t deadline_ns, int *ret_fd, photon_client_error *err);
int client__hello(photon_client *c, const photon_client_options *options, uint64_t epoch,
                  uint64_t deadline_ns, photon_client_error *err);
void *client__reader_main(void *client);

/* ---- output */

/* Takes the writing token and sends what is pending. Under lock, which it may release and take again. Returns 0;
 * ERR_TIMEOUT; the connection's failure. */
int client__output_begin(photon_client *c, uint64_t deadline_ns, photon_client_error *err);

/* Writes one message, holding the token but not the lock. When the deadline passes after its first byte has gone,
 * the rest is kept in `pending` and the message counts as written. `pieces` is used up.
 * Returns 0; ERR_TIMEOUT: none of it has gone; the connection's failure. */
int client__output_write(photon_client *c, struct iovec *pieces, size_t n, uint64_t deadline_ns,
                         photon_client_error *err);

/* Gives the token back. Under lock. */
void client__output_end(photon_client *c);

/* Packs a message and writes it, begin to end. Under lock, which it releases and takes again. */
int client__output_message(photon_client *c, const Photon__ClientMessage *message, uint64_t deadline_ns,
                           photon_client_error *err);

/* Adds bytes, or a message, behind what is pending. Under lock. Returns 0; -1: no memory, or the server takes so
 * little that more would be too much. */
int client__output_add(photon_client *c, const void *data, size_t bytes);
int client__output_pending(photon_client *c, const Photon__ClientMessage *message);

/* Whether something is pending. Under lock. */
bool client__output_waits(const photon_client *c);

/* Sends what goes of `pending` without waiting. Under lock. Returns 0: it is empty; 1: the socket is full; -1: the
 * connection is broken. */
int client__output_flush(photon_client *c);

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

    /* Under the client's lock. */
    enum client_run_phase phase;
    photon_client_error failure;
    uint32_t handle;
    Photon__ServerMessage *opened; /* as the server answered */
    Photon__ServerMessage *closed;
    uint64_t sent;
    uint64_t received;
    uint64_t durable;
    uint64_t credit_bytes;
    bool paused;
    uint32_t pause_reason;
    char pause_text[128];
    bool close_sent;
    uint64_t asked;              /* the message whose answer is waited for, 0: none */
    photon_client_error refusal; /* of that message, code 0: none yet */
    uint64_t bytes_sent;         /* column bytes of all batches */
    uint64_t bytes_received;     /* of those that the server has */
    uint64_t *bytes_up_to; /* [CLIENT_IN_FLIGHT_MAX] by sequence: bytes_sent after it, for those in flight */
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

/* Takes the next sequence number for a message with so many column bytes, or gives it back when the message has not
 * gone. Under lock. */
uint64_t client__run_number(photon_client_run *run, uint64_t column_bytes);
void client__run_number_back(photon_client_run *run, uint64_t column_bytes);

/* What the reader thread has learnt. Under lock. The two that take a message own it from then on. */
void client__run_opened(photon_client_run *run, Photon__ServerMessage *message);
void client__run_closed(photon_client_run *run, Photon__ServerMessage *message);
void client__run_acknowledged(photon_client_run *run, const Photon__Ack *ack);
void client__run_fail(photon_client_run *run, const photon_client_error *err);
void client__run_refused(photon_client_run *run, const photon_client_error *err);

/* Waits until a message with so many column bytes may go. Under lock. */
int client__send_wait(photon_client_run *run, uint64_t column_bytes, uint64_t deadline_ns,
                      photon_client_error *err);

/* Attributes as protobuf-c takes them; the texts stay the caller's. */
typedef struct client_attributes {
    Photon__Attribute *items;
    Photon__Attribute **list;
} client_attributes;

int client__attribute_check(const photon_client *c, const photon_client_attribute *a,
                            photon_client_error *err);
int client__attributes_make(client_attributes *to, const photon_client_attribute *from, size_t n);
void client__attributes_free(client_attributes *a);

/* A list of DatasetState as the public header has it; *ret is NULL when n is 0. `groups` gives the index of each
 * group; a dataset whose group is not among them, or whose type is none, is an error. */
int client__dataset_states(const photon_client *c, Photon__DatasetState *const *states, size_t n,
                           const char *const *groups, size_t n_groups, photon_client_dataset_state **ret,
                           photon_client_error *err);

#endif

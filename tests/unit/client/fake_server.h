/* A server for one connection at a time, in a thread of the test. Out of the box it behaves: it answers Hello, Open,
 * Batch, Attributes, Ping and Close as docs/protocol.md says and keeps what it receives. A test changes what it wants
 * otherwise, by the knobs or by a hook. What the server finds wrong with the client is kept as the first `complaint`,
 * since only the test's own thread may assert. */
#ifndef TESTS_FAKE_SERVER_H
#define TESTS_FAKE_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ingest.pb-c.h"

enum { FAKE_RUNS = 4, FAKE_DATASETS = 8 };

typedef struct fake_column {
    char name[64];
    char group[64];
    uint32_t type;
    uint32_t role;
    uint8_t *data;
    size_t bytes;
    size_t cap;
} fake_column;

typedef struct fake_run {
    uint8_t id[16];
    char name[64];
    uint32_t n_datasets;
    uint32_t n_groups;
    char groups[FAKE_DATASETS][64];
    fake_column columns[FAKE_DATASETS];
    uint64_t sequence; /* received */
    uint64_t n_batches;
    uint64_t lost_before;
    uint64_t largest_batch; /* column bytes */
    uint64_t largest_items; /* of a group in a batch */
    uint64_t n_attributes;
    uint64_t attribute_messages;
    char last_key[64];
    char last_value[64];
    int64_t last_time;
    uint64_t pings;
    bool closed;
} fake_run;

typedef struct fake_server fake_server;

struct fake_server {
    /* Knobs: set before fake_start(). */
    Photon__Limits limits;
    uint32_t heartbeat_ms;
    uint64_t batch_bytes;
    uint64_t credit_bytes;      /* in each Ack */
    uint64_t acknowledge_up_to; /* later batches are kept but not acknowledged */
    uint64_t durable_behind;    /* durable = received - this */
    uint64_t window_bytes;
    unsigned answer_piece; /* bytes written at a time; 0: all */
    bool small_buffers;    /* of the sockets */
    uint32_t cut_every;    /* hangs up after so many bytes of both directions on the average; 0: never */
    unsigned cuts;         /* so often, then no more */
    bool tcp;
    /* Called with each message before the server deals with it. Returns true when it has dealt with it itself. */
    bool (*hook)(fake_server *s, const Photon__ClientMessage *m);
    /* Called once on the server's thread, with no message. */
    bool (*prepare)(fake_server *s, const Photon__ClientMessage *m);
    /* Instead of all that: speaks on the raw connection. */
    void (*raw)(fake_server *s);
    void *test; /* of the hook */

    /* Read by the test after fake_stop(), or what is atomic at any time. */
    char address[128];
    char complaint[200];
    fake_run runs[FAKE_RUNS];
    uint32_t n_runs;
    unsigned connections;
    unsigned n_duplicates;    /* numbered messages that were there already */
    uint64_t epochs[4];       /* of the Hellos */
    atomic_uint hold_reading; /* while not 0 the server reads nothing */
    atomic_uint n_pings;      /* received */
    atomic_uint n_pongs;
    atomic_uint n_batches;
    atomic_ulong received_bytes;

    /* Its own. */
    int listener;
    int fd;
    uint32_t random;
    uint64_t cut_in; /* bytes until the connection is cut; 0: it is not */
    bool mute;       /* nothing is answered */
    bool ended;      /* the hook or the stream has ended this connection */
    atomic_bool stopping;
    pthread_t thread;
    char folder[64];
    uint8_t *in;
    size_t in_begin;
    size_t in_end;
    size_t in_cap;
};

void fake_init(fake_server *s);
void fake_start(fake_server *s);

/* Ends the server. Returns NULL, or what it had to complain about. */
const char *fake_stop(fake_server *s);
void fake_release(fake_server *s);

/* For hooks, on the server's thread. */
void fake_complain(fake_server *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fake_write(fake_server *s, const void *bytes, size_t n);
void fake_answer(fake_server *s, const Photon__ServerMessage *m);
void fake_error(fake_server *s, Photon__ErrorCode code, Photon__ErrorScope scope, uint32_t run,
                uint64_t sequence, const char *text);
void fake_ack(fake_server *s, uint32_t run, uint64_t received, uint64_t durable, uint64_t credit);
void fake_closed(fake_server *s, uint32_t run, const char *text);
void fake_hang_up(fake_server *s);
void fake_sleep_ms(unsigned ms);

/* Takes a message as the server does by itself. */
void fake_take(fake_server *s, const Photon__ClientMessage *m);

/* As a server that was started anew has the run: only up to message `sequence`, whose counts of items are given. */
void fake_forget(fake_run *run, uint64_t sequence, const uint64_t *items);

/* A column of the run's by name, NULL where there is none. */
const fake_column *fake_find(const fake_run *run, const char *name);

#endif

/* What a run keeps of its messages so that it can send them again: numbered, oldest first, in a bounded ring of bytes.
 * A message is kept as the body of its Batch, Attributes, Marker or Gap without the field `run` (the handle is another
 * one on each connection). Not thread-safe, but for the bytes that client__keep_reserve() gave, which are the caller's
 * until it adds them. */
#ifndef CLIENT_KEEP_H
#define CLIENT_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Messages of one run that may be kept; a power of two. */
enum { CLIENT_KEEP_MESSAGES = 16384 };

typedef struct client_kept {
    uint8_t *data;
    size_t bytes;
    uint64_t bytes_up_to; /* column bytes of the run up to and with this message */
    uint32_t kind;        /* field number of its body in ClientMessage */
    bool own;             /* not in the ring, but allocated */
} client_kept;

typedef struct client_keep {
    client_kept *messages; /* [CLIENT_KEEP_MESSAGES] by number */
    uint64_t first;        /* number of the oldest that is kept */
    uint64_t next;         /* number of the next to be added; first == next: none is kept */
    uint64_t bytes_before; /* column bytes up to `first` */
    uint8_t *ring;
    size_t ring_bytes;
    size_t head; /* where the next goes */
    size_t tail; /* where the oldest in the ring begins */
    size_t n_ring;
} client_keep;

/* Returns 0; -1: no memory. */
int client__keep_init(client_keep *k, size_t ring_bytes);
void client__keep_free(client_keep *k);

/* Begins with that number. Only while nothing is kept. */
void client__keep_start(client_keep *k, uint64_t next);

/* Where so many bytes could lie; NULL while there is no room for them or for one more message. */
uint8_t *client__keep_reserve(client_keep *k, size_t bytes);

/* Adds the next message. `own`: `data` was allocated and is freed with the message; else it is of the ring. */
void client__keep_add(client_keep *k, uint32_t kind, uint8_t *data, size_t bytes, bool own,
                      uint64_t bytes_up_to);

bool client__keep_is_full(const client_keep *k);

/* Takes the newest message away again, which must be an allocated one. */
void client__keep_take_back(client_keep *k);

/* The message of that number; NULL when it is not kept. */
const client_kept *client__keep_find(const client_keep *k, uint64_t number);

/* Column bytes up to and with message `number`: kept, or the one before the oldest that is. */
uint64_t client__keep_bytes_up_to(const client_keep *k, uint64_t number);

/* Forgets everything up to and with that number. */
void client__keep_release(client_keep *k, uint64_t number);

#endif

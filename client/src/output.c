#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "internal.h"

/* A server that sends pings without reading our answers gets no more than this. */
enum { OUTPUT_PENDING_MAX = 64 * 1024 };

static size_t output_left(const client_bytes *b) {
    return b->end - b->begin;
}

static void output_sent(client_bytes *b, size_t bytes) {
    b->begin += bytes;
    if (b->begin == b->end)
        b->begin = b->end = 0;
}

/* Room for `bytes` more behind what is pending. */
static int output_reserve(client_bytes *b, size_t bytes) {
    if (b->cap - b->end >= bytes)
        return 0;
    size_t left = output_left(b);
    if (b->cap - left < bytes) {
        size_t cap = 2 * left + bytes + 1024;
        uint8_t *data = realloc(b->data, cap);
        if (!data)
            return -1;
        b->data = data;
        b->cap = cap;
    }
    if (b->begin)
        memmove(b->data, b->data + b->begin, left);
    b->begin = 0;
    b->end = left;
    return 0;
}

int client__output_flush(photon_client *c) {
    client_bytes *b = &c->pending;
    while (output_left(b)) {
        struct iovec piece = {b->data + b->begin, output_left(b)};
        ssize_t n = client__link_send(&c->link, &piece, 1);
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 1 : -1;
        output_sent(b, (size_t)n);
        c->said_ns = client__now_ns();
    }
    return 0;
}

bool client__output_waits(const photon_client *c) {
    return output_left(&c->pending) > 0;
}

void client__wake(const photon_client *c) {
    eventfd_write(c->wake_fd, 1);
}

/* ---- messages that are kept */

/* Whether a message of so many column bytes may go now. One always may, or a small credit would stop all. */
static bool output_has_credit(const photon_client_run *run, uint64_t column_bytes) {
    const photon_client *c = run->client;
    uint64_t in_flight = client__run_in_flight(run), limit = c->server.in_flight_bytes;
    if (in_flight == 0 || column_bytes == 0)
        return true;
    if (in_flight + column_bytes > run->credit_bytes)
        return false;
    for (const photon_client_run *other = c->runs; other; other = other->next)
        in_flight += other == run ? 0 : client__run_in_flight(other);
    return limit == 0 || in_flight + column_bytes <= limit;
}

static const client_kept *output_ready(const photon_client_run *run) {
    if (run->phase != CLIENT_RUN_OPEN || run->handle == 0)
        return NULL;
    const client_kept *m = client__keep_find(&run->keep, run->cursor);
    uint64_t column_bytes = m ? m->bytes_up_to - client__keep_bytes_up_to(&run->keep, run->cursor - 1) : 0;
    return m && output_has_credit(run, column_bytes) ? m : NULL;
}

/* A message that is kept, and what comes before it. */
static void output_start_kept(photon_client_run *run, const client_kept *m, client_current *now) {
    uint8_t handle[WIRE_PREFIX_BYTES_MAX], body[WIRE_PREFIX_BYTES_MAX];
    size_t n_handle = wire_prefix_put(handle, run->handle);
    uint64_t body_bytes = 1 + n_handle + m->bytes;
    size_t n_body = wire_prefix_put(body, body_bytes);
    size_t n = wire_prefix_put(now->head, 1 + n_body + body_bytes);
    now->head[n++] = (uint8_t)(m->kind << 3 | 2);
    memcpy(now->head + n, body, n_body);
    n += n_body;
    now->head[n++] = 1 << 3; /* field `run` of all four kinds */
    memcpy(now->head + n, handle, n_handle);
    now->own[0] = (struct iovec){now->head, n + n_handle};
    now->own[1] = (struct iovec){m->data, m->bytes};
    now->pieces = now->own;
    now->n_pieces = 2;
}

/* Begins the next message of that run. Returns whether it could. */
static bool output_start(photon_client *c, photon_client_run *run, const client_kept *m) {
    client_current *now = &c->current;
    if (run->again && m->kind == PHOTON__CLIENT_MESSAGE__BODY_BATCH) {
        now->pieces = run->again->pieces;
        now->n_pieces = client__again_get(run, run->cursor, m->data);
        if (now->n_pieces == 0)
            return false;
    } else {
        output_start_kept(run, m, now);
    }
    now->run = run;
    now->sequence = run->cursor;
    now->begun = false;
    run->resent += run->cursor <= run->written;
    return true;
}

/* In turn, so that no run waits for another. */
static bool output_choose(photon_client *c, photon_client_run *after) {
    photon_client_run *run = after && after->next ? after->next : c->runs, *first = run;
    while (run) {
        const client_kept *m = output_ready(run);
        if (m && output_start(c, run, m))
            return true;
        run = run->next ? run->next : c->runs;
        if (run == first)
            break;
    }
    return false;
}

/* Passes over what has gone. */
static void output_advance(client_current *now, size_t sent) {
    now->begun = now->begun || sent;
    while (now->n_pieces && sent >= now->pieces->iov_len) {
        sent -= now->pieces->iov_len;
        now->pieces++;
        now->n_pieces--;
    }
    if (sent) {
        now->pieces->iov_base = (uint8_t *)now->pieces->iov_base + sent;
        now->pieces->iov_len -= sent;
    }
}

static void output_finish(photon_client *c) {
    photon_client_run *run = c->current.run;
    uint64_t sequence = c->current.sequence;
    c->current.run = NULL;
    run->written = sequence > run->written ? sequence : run->written;
    run->reached = sequence > run->reached ? sequence : run->reached;
    if (run->cursor == sequence) /* else it has been rewound meanwhile */
        run->cursor = sequence + 1;
}

/* Returns 0: the message has gone; 1: the socket is full; -1: it is broken. */
static int output_current(photon_client *c) {
    client_current *now = &c->current;
    while (now->n_pieces) {
        ssize_t n = client__link_send(&c->link, now->pieces, now->n_pieces);
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 1 : -1;
        output_advance(now, (size_t)n);
        c->said_ns = client__now_ns();
    }
    output_finish(c);
    return 0;
}

/* Returns 0: nothing is left that may go; 1; -1. */
static int output_all(photon_client *c) {
    photon_client_run *last = NULL;
    for (;;) {
        if (c->current.run) {
            last = c->current.run;
            int rc = output_current(c);
            if (rc != 0)
                return rc;
        }
        int rc = client__output_flush(c);
        if (rc != 0)
            return rc;
        if (!output_choose(c, last))
            return 0;
    }
}

void client__pump(photon_client *c) {
    if (c->down || c->failed || c->broken_ns)
        return;
    int rc = output_all(c), os_errno = errno;
    bool blocked = rc > 0;
    if (rc < 0) {
        c->broken_ns = client__now_ns();
        c->broken_errno = os_errno;
    }
    if (rc < 0 || (blocked && !c->blocked))
        client__wake(c);
    c->blocked = blocked;
}

void client__output_leave(photon_client *c, photon_client_run *run) {
    client_current *now = &c->current;
    if (now->run != run)
        return;
    size_t rest = 0, at = 0;
    client_bytes *b = &c->pending;
    now->run = NULL;
    if (!now->begun)
        return;
    for (size_t i = 0; i < now->n_pieces; i++)
        rest += now->pieces[i].iov_len;
    if (output_reserve(b, rest) != 0) {
        photon_client_error reason;
        client__error(&reason, PHOTON_CLIENT_ERR_NOMEM,
                      "no memory to keep the rest of a message that was begun");
        client__fail(c, &reason);
        return;
    }
    memmove(b->data + b->begin + rest, b->data + b->begin, output_left(b));
    for (size_t i = 0; i < now->n_pieces; i++) {
        memcpy(b->data + b->begin + at, now->pieces[i].iov_base, now->pieces[i].iov_len);
        at += now->pieces[i].iov_len;
    }
    b->end += rest;
}

/* ---- small messages */

uint8_t *client__output_pack(const Photon__ClientMessage *message, size_t *bytes) {
    size_t n = photon__client_message__get_packed_size(message);
    uint8_t *data = malloc(WIRE_PREFIX_BYTES_MAX + n);
    if (!data)
        return NULL;
    size_t prefix = wire_prefix_put(data, n);
    photon__client_message__pack(message, data + prefix);
    *bytes = prefix + n;
    return data;
}

int client__output_add(photon_client *c, const void *data, size_t bytes) {
    client_bytes *b = &c->pending;
    if (output_reserve(b, bytes) != 0)
        return -1;
    memcpy(b->data + b->end, data, bytes);
    b->end += bytes;
    return 0;
}

int client__output_pending(photon_client *c, const Photon__ClientMessage *message) {
    size_t bytes = 0;
    if (output_left(&c->pending) > OUTPUT_PENDING_MAX)
        return -1;
    uint8_t *data = client__output_pack(message, &bytes);
    if (!data)
        return -1;
    int rc = client__output_add(c, data, bytes);
    free(data);
    client__pump(c);
    return rc;
}

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "internal.h"

/* A server that sends pings without reading our answers gets no more than this. */
enum { OUTPUT_PENDING_MAX = 64 * 1024 };

/* After a write has failed, how long the reader thread has to find out why. */
enum { OUTPUT_AFTERMATH_MS = 2000 };

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

static ssize_t output_send(int fd, struct iovec *pieces, size_t n) {
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = n};
    ssize_t sent;
    do
        sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent;
}

int client__output_flush(photon_client *c) {
    client_bytes *b = &c->pending;
    while (output_left(b)) {
        struct iovec piece = {b->data + b->begin, output_left(b)};
        ssize_t n = output_send(c->fd, &piece, 1);
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 1 : -1;
        output_sent(b, (size_t)n);
        c->said_ns = client__now_ns();
    }
    return 0;
}

/* The socket is broken. The reader thread finds the end of the stream, and often the server's reason before it: the
 * last word is its. Under lock. */
static int output_broken(photon_client *c, int os_errno, photon_client_error *err) {
    uint64_t deadline = client__deadline(OUTPUT_AFTERMATH_MS);
    while (!c->failed && client__wait(c, deadline) == 0) {
    }
    photon_client_error reason;
    client__os_error(&reason, PHOTON_CLIENT_ERR_LOST, os_errno, "the connection to %s is broken",
                     c->address_text);
    client__fail(c, &reason);
    return client__copy_error(err, &c->failure);
}

/* Waits until the socket takes bytes. Not under lock. Returns 0; -1 when the deadline has passed. */
static int output_wait(const photon_client *c, uint64_t deadline_ns) {
    struct pollfd p = {.fd = c->fd, .events = POLLOUT};
    for (;;) {
        int ms = client__poll_ms(deadline_ns);
        int n = poll(&p, 1, ms);
        if (n > 0 || (n < 0 && errno != EINTR))
            return 0;
        if (n == 0 && ms == 0)
            return -1;
    }
}

static void output_wake_reader(const photon_client *c) {
    eventfd_write(c->wake_fd, 1);
}

int client__output_begin(photon_client *c, uint64_t deadline_ns, photon_client_error *err) {
    while (c->writing && !c->failed)
        if (client__wait(c, deadline_ns) != 0)
            return client__error(err, PHOTON_CLIENT_ERR_TIMEOUT, "%s did not take the bytes in time",
                                 c->address_text);
    if (c->failed)
        return client__copy_error(err, &c->failure);
    c->writing = true;
    for (;;) {
        int rc = client__output_flush(c);
        if (rc == 0 && !c->failed)
            return 0;
        if (rc < 0 || c->failed) {
            rc = output_broken(c, errno, err);
            client__output_end(c);
            return rc;
        }
        pthread_mutex_unlock(&c->lock);
        int late = output_wait(c, deadline_ns);
        pthread_mutex_lock(&c->lock);
        if (late) {
            client__output_end(c);
            return client__error(err, PHOTON_CLIENT_ERR_TIMEOUT, "%s did not take the bytes in time",
                                 c->address_text);
        }
    }
}

/* Keeps the rest of a begun message, to go before anything else. Under lock. */
static int output_keep(photon_client *c, const struct iovec *pieces, size_t n) {
    size_t rest = 0;
    for (size_t i = 0; i < n; i++)
        rest += pieces[i].iov_len;
    client_bytes *b = &c->pending;
    if (output_reserve(b, rest) != 0)
        return -1;
    memmove(b->data + b->begin + rest, b->data + b->begin, output_left(b));
    uint8_t *to = b->data + b->begin;
    for (size_t i = 0; i < n; i++) {
        memcpy(to, pieces[i].iov_base, pieces[i].iov_len);
        to += pieces[i].iov_len;
    }
    b->end += rest;
    return 0;
}

/* Passes over the pieces that have gone. Returns how many have gone whole. */
static size_t output_advance(struct iovec *pieces, size_t n, size_t sent) {
    size_t i = 0;
    while (i < n && sent >= pieces[i].iov_len)
        sent -= pieces[i++].iov_len;
    if (i < n) {
        pieces[i].iov_base = (uint8_t *)pieces[i].iov_base + sent;
        pieces[i].iov_len -= sent;
    }
    return i;
}

/* The deadline has passed in the middle of a message. */
static int output_interrupted(photon_client *c, const struct iovec *pieces, size_t n,
                              photon_client_error *err) {
    int rc = 0;
    pthread_mutex_lock(&c->lock);
    if (output_keep(c, pieces, n) != 0) {
        photon_client_error reason;
        client__error(&reason, PHOTON_CLIENT_ERR_NOMEM,
                      "no memory to keep the rest of a message that was begun");
        client__fail(c, &reason);
        rc = client__copy_error(err, &c->failure);
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}

int client__output_write(photon_client *c, struct iovec *pieces, size_t n, uint64_t deadline_ns,
                         photon_client_error *err) {
    bool begun = false;
    while (n) {
        ssize_t sent = output_send(c->fd, pieces, n);
        if (sent >= 0) {
            size_t gone = output_advance(pieces, n, (size_t)sent);
            pieces += gone;
            n -= gone;
            begun = true;
        } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
            int os_errno = errno;
            pthread_mutex_lock(&c->lock);
            int rc = output_broken(c, os_errno, err);
            pthread_mutex_unlock(&c->lock);
            return rc;
        } else if (output_wait(c, deadline_ns) != 0) {
            if (begun)
                return output_interrupted(c, pieces, n, err);
            return client__error(err, PHOTON_CLIENT_ERR_TIMEOUT, "%s did not take the bytes in time",
                                 c->address_text);
        }
    }
    return 0;
}

void client__output_end(photon_client *c) {
    c->writing = false;
    c->said_ns = client__now_ns();
    if (output_left(&c->pending) && client__output_flush(c) != 0)
        output_wake_reader(c);
    pthread_cond_broadcast(&c->changed);
}

/* A message with its length before it, in memory of its own; NULL: no memory. */
static uint8_t *output_pack(const Photon__ClientMessage *message, size_t *bytes) {
    size_t n = photon__client_message__get_packed_size(message);
    uint8_t *data = malloc(WIRE_PREFIX_BYTES_MAX + n);
    if (!data)
        return NULL;
    size_t prefix = wire_prefix_put(data, n);
    photon__client_message__pack(message, data + prefix);
    *bytes = prefix + n;
    return data;
}

int client__output_message(photon_client *c, const Photon__ClientMessage *message, uint64_t deadline_ns,
                           photon_client_error *err) {
    size_t bytes = 0;
    uint8_t *data = output_pack(message, &bytes);
    if (!data)
        return client__error(err, PHOTON_CLIENT_ERR_NOMEM, "no memory for a message");
    int rc = client__output_begin(c, deadline_ns, err);
    if (rc == 0) {
        pthread_mutex_unlock(&c->lock);
        struct iovec piece = {data, bytes};
        rc = client__output_write(c, &piece, 1, deadline_ns, err);
        pthread_mutex_lock(&c->lock);
        client__output_end(c);
    }
    free(data);
    return rc;
}

int client__output_add(photon_client *c, const void *data, size_t bytes) {
    client_bytes *b = &c->pending;
    if (output_left(b) > OUTPUT_PENDING_MAX || output_reserve(b, bytes) != 0)
        return -1;
    memcpy(b->data + b->end, data, bytes);
    b->end += bytes;
    return 0;
}

int client__output_pending(photon_client *c, const Photon__ClientMessage *message) {
    size_t bytes = 0;
    uint8_t *data = output_pack(message, &bytes);
    if (!data)
        return -1;
    int rc = client__output_add(c, data, bytes);
    free(data);
    if (rc == 0 && !c->writing)
        client__output_flush(c);
    return rc;
}

bool client__output_waits(const photon_client *c) {
    return output_left(&c->pending) > 0;
}

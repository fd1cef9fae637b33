#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>

#include "internal.h"
#include "wire/message.h"

#define NS_PER_MS UINT64_C(1000000)
#define READER_IDLE_NS (60000 * NS_PER_MS)     /* nothing to do */
#define READER_AFTERMATH_NS (2000 * NS_PER_MS) /* after a write has failed, to find out why */

static void reader_broken(photon_client *c, int code, const char *what) {
    photon_client_error err;
    client__error(&err, code, "%s: %s", c->address_text, what);
    client__fail(c, &err);
}

/* Under lock: every whole message that has been read. */
static void reader_messages(photon_client *c) {
    const uint8_t *bytes;
    size_t n;
    wire_status status;
    while (!c->failed && !c->down && (status = client__take(&c->in, &bytes, &n)) != WIRE_MORE) {
        wire_fault fault = {.text = ""};
        ProtobufCMessage *message = NULL;
        if (status == WIRE_OK)
            message = wire_message_unpack(&photon__server_message__descriptor, bytes, n, WIRE_MAX_FIELDS,
                                          &status, &fault);
        if (!message) {
            reader_broken(c, PHOTON_CLIENT_ERR_PROTOCOL, "it sent bytes that are no message of the protocol");
            return;
        }
        client__answer(c, (Photon__ServerMessage *)message);
    }
}

/* The end of the stream, or why nothing could be written any more. Under lock. */
static void reader_ended(photon_client *c, int os_errno) {
    const char *what = "the server has closed the connection";
    if (os_errno == 0 && c->broken_ns)
        os_errno = c->broken_errno;
    reader_broken(c, PHOTON_CLIENT_ERR_LOST, os_errno ? strerror(os_errno) : what);
}

/* Under lock. */
static void reader_receive(photon_client *c) {
    int got = client__receive(&c->in, &c->link), os_errno = errno;
    if (got == 0)
        return;
    if (got > 0) {
        c->heard_ns = client__now_ns();
        reader_messages(c);
    } else if (got == -2) {
        reader_broken(c, PHOTON_CLIENT_ERR_NOMEM, "no memory for its answers");
    } else {
        reader_ended(c, os_errno);
    }
    client__pump(c);
    pthread_cond_broadcast(&c->changed);
}

static void reader_ping(photon_client *c) {
    Photon__Ping ping = PHOTON__PING__INIT;
    Photon__ClientMessage message = PHOTON__CLIENT_MESSAGE__INIT;
    ping.id = ++c->ping_id;
    ping.monotonic_ns = client__now_ns();
    ping.utc_ns = client__utc_ns();
    message.body_case = PHOTON__CLIENT_MESSAGE__BODY_PING;
    message.ping = &ping;
    client__output_pending(c, &message);
}

static bool reader_paused(const photon_client *c) {
    for (const photon_client_run *run = c->runs; run; run = run->next)
        if (run->paused)
            return true;
    return c->paused;
}

/* Under lock: the heartbeat while nothing else is said. Returns when the next is due. */
static uint64_t reader_beat(photon_client *c, uint64_t now) {
    uint64_t beat_ns = c->server.heartbeat_ms * NS_PER_MS;
    if (beat_ns == 0)
        return now + READER_IDLE_NS;
    bool busy = c->blocked || client__output_waits(c);
    if (!busy && now - c->said_ns >= beat_ns) {
        reader_ping(c);
        c->said_ns = now;
    }
    return (busy ? now : c->said_ns) + beat_ns;
}

/* Under lock: asks a server that is silent, and gives up one that does not answer. Returns when to look again. */
static uint64_t reader_listen(photon_client *c, uint64_t now) {
    uint64_t half_ns = c->silence_timeout_ms * NS_PER_MS / 2;
    if (half_ns == 0)
        return now + READER_IDLE_NS;
    bool asked = c->asked_ns > c->heard_ns;
    if (!asked && now - c->heard_ns >= half_ns) {
        if (!c->blocked && !client__output_waits(c))
            reader_ping(c);
        c->asked_ns = now;
        asked = true;
    }
    if (asked && now - c->asked_ns >= half_ns && !reader_paused(c))
        reader_broken(c, PHOTON_CLIENT_ERR_LOST, "the server has not answered for too long");
    uint64_t due = (asked ? c->asked_ns : c->heard_ns) + half_ns;
    return due > now ? due : now + half_ns;
}

/* Under lock: a broken socket has an end that can be read, after the server's last words. When it does not come, that
 * was all. */
static uint64_t reader_mourn(photon_client *c, uint64_t now) {
    if (c->broken_ns == 0)
        return now + READER_IDLE_NS;
    if (now - c->broken_ns >= READER_AFTERMATH_NS)
        reader_ended(c, 0);
    return c->broken_ns + READER_AFTERMATH_NS;
}

/* Under lock: runs that the server had no room for when the connection was made anew. Returns when to look again. */
static uint64_t reader_reopen(photon_client *c, uint64_t now) {
    uint64_t next = now + READER_IDLE_NS;
    for (photon_client_run *run = c->runs; run; run = run->next) {
        if (run->reopen_ns && run->reopen_ns <= now) {
            run->reopen_ns = 0;
            if (client__output_add(c, run->open_bytes, run->n_open_bytes) != 0)
                reader_broken(c, PHOTON_CLIENT_ERR_NOMEM, "no memory to open a run again");
        }
        next = run->reopen_ns && run->reopen_ns < next ? run->reopen_ns : next;
    }
    client__pump(c);
    return next;
}

/* Under lock. Returns how long to poll, -1 when there is no connection to poll. */
static int reader_prepare(photon_client *c, struct pollfd p[2]) {
    uint64_t now = client__now_ns();
    if (c->stopping || c->failed || c->down)
        return -1;
    uint64_t beat = reader_beat(c, now), listen = reader_listen(c, now), mourn = reader_mourn(c, now);
    uint64_t next = beat < listen ? beat : listen;
    next = mourn < next ? mourn : next;
    uint64_t reopen = reader_reopen(c, now);
    next = reopen < next ? reopen : next;
    if (c->failed || c->down)
        return -1;
    p[0] = (struct pollfd){.fd = c->link.fd, .events = (short)(POLLIN | (c->blocked ? POLLOUT : 0))};
    p[1] = (struct pollfd){.fd = c->wake_fd, .events = POLLIN};
    return next > now ? (int)((next - now) / NS_PER_MS) + 1 : 0;
}

/* Waits for the socket and deals with what it has. */
static void reader_turn(photon_client *c, struct pollfd p[2], int ms) {
    if (poll(p, 2, ms) <= 0)
        return;
    eventfd_t ignored;
    if (p[1].revents)
        eventfd_read(c->wake_fd, &ignored);
    pthread_mutex_lock(&c->lock);
    if (!c->failed && !c->down) {
        if (p[0].revents & POLLOUT) {
            client__pump(c);
            pthread_cond_broadcast(&c->changed);
        }
        if (p[0].revents & (POLLIN | POLLHUP | POLLERR))
            reader_receive(c);
    }
    pthread_mutex_unlock(&c->lock);
}

void *client__reader_main(void *client) {
    photon_client *c = client;
    for (;;) {
        struct pollfd p[2];
        pthread_mutex_lock(&c->lock);
        int ms = reader_prepare(c, p);
        bool down = c->down && !c->stopping, ended = c->stopping || c->failed;
        pthread_mutex_unlock(&c->lock);
        client__tell_news(c);
        if (ended)
            return NULL;
        if (down)
            client__reconnect(c);
        else
            reader_turn(c, p, ms);
    }
}

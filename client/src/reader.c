#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "internal.h"
#include "wire/message.h"

#define NS_PER_MS UINT64_C(1000000)
#define READER_IDLE_NS (60000 * NS_PER_MS) /* nothing to do */

static photon_client_run *reader_run(const photon_client *c, uint32_t handle) {
    for (photon_client_run *run = c->runs; handle && run; run = run->next)
        if (run->handle == handle)
            return run;
    return NULL;
}

/* The newest run of that id: an earlier one may have been given up. */
static photon_client_run *reader_run_by_id(const photon_client *c, const ProtobufCBinaryData *id) {
    for (photon_client_run *run = c->runs; run; run = run->next)
        if (id->len == sizeof run->run_id && memcmp(id->data, run->run_id, id->len) == 0)
            return run;
    return NULL;
}

static void reader_pause(photon_client *c, uint32_t handle, bool paused, uint32_t reason, const char *text) {
    if (handle == 0)
        c->paused = paused;
    for (photon_client_run *run = c->runs; run; run = run->next) {
        if (handle != 0 && run->handle != handle)
            continue;
        run->paused = paused;
        run->pause_reason = reason;
        snprintf(run->pause_text, sizeof run->pause_text, "%s", text);
    }
}

static void reader_pong(photon_client *c, uint64_t id) {
    Photon__Pong pong = PHOTON__PONG__INIT;
    Photon__ClientMessage message = PHOTON__CLIENT_MESSAGE__INIT;
    pong.id = id;
    pong.monotonic_ns = client__now_ns();
    pong.utc_ns = client__utc_ns();
    message.body_case = PHOTON__CLIENT_MESSAGE__BODY_PONG;
    message.pong = &pong;
    client__output_pending(c, &message);
}

static void reader_error(photon_client *c, const Photon__Error *error) {
    photon_client_error err;
    client__refused(&err, error);
    if (error->scope == PHOTON__ERROR_SCOPE__SCOPE_CONNECTION) {
        client__fail(c, &err);
        return;
    }
    photon_client_run *run = reader_run(c, error->run);
    if (!run)
        run = reader_run_by_id(c, &error->run_id);
    if (run && error->scope == PHOTON__ERROR_SCOPE__SCOPE_BATCH)
        client__run_refused(run, &err);
    else if (run)
        client__run_fail(run, &err);
}

static void reader_resend(photon_client *c, const Photon__Resend *resend) {
    photon_client_run *run = reader_run(c, resend->run);
    photon_client_error err;
    client__error(&err, PHOTON_CLIENT_ERR_PROTOCOL,
                  "%s asks for messages from %llu on again, which are not kept", c->address_text,
                  (unsigned long long)resend->from_sequence);
    if (run)
        client__run_fail(run, &err);
}

/* Gives the message to whom it is for. Returns whether that one keeps it. */
static bool reader_keep(photon_client *c, Photon__ServerMessage *m) {
    photon_client_run *run = NULL;
    if (m->body_case == PHOTON__SERVER_MESSAGE__BODY_OPENED) {
        run = reader_run_by_id(c, &m->opened->run_id);
        if (run && run->phase == CLIENT_RUN_OPENING) {
            client__run_opened(run, m);
            return true;
        }
    } else if (m->body_case == PHOTON__SERVER_MESSAGE__BODY_CLOSED) {
        run = reader_run(c, m->closed->run);
        if (!run)
            run = reader_run_by_id(c, &m->closed->run_id);
        if (run && !run->closed) {
            client__run_closed(run, m);
            return true;
        }
    }
    return false;
}

/* A message that this library does not know is left unread: later servers may have more to tell. */
static void reader_handle(photon_client *c, const Photon__ServerMessage *m) {
    photon_client_run *run;
    switch (m->body_case) {
    case PHOTON__SERVER_MESSAGE__BODY_ACK:
        run = reader_run(c, m->ack->run);
        if (run)
            client__run_acknowledged(run, m->ack);
        break;
    case PHOTON__SERVER_MESSAGE__BODY_PAUSED:
        reader_pause(c, m->paused->run, true, (uint32_t)m->paused->reason, m->paused->text);
        break;
    case PHOTON__SERVER_MESSAGE__BODY_RESUMED:
        reader_pause(c, m->resumed->run, false, 0, "");
        break;
    case PHOTON__SERVER_MESSAGE__BODY_RESEND:
        reader_resend(c, m->resend);
        break;
    case PHOTON__SERVER_MESSAGE__BODY_PING:
        reader_pong(c, m->ping->id);
        break;
    case PHOTON__SERVER_MESSAGE__BODY_ERROR:
        reader_error(c, m->error);
        break;
    default:
        break;
    }
}

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
    while (!c->failed && (status = client__take(&c->in, &bytes, &n)) != WIRE_MORE) {
        wire_fault fault = {.text = ""};
        ProtobufCMessage *message = NULL;
        if (status == WIRE_OK)
            message = wire_message_unpack(&photon__server_message__descriptor, bytes, n, WIRE_MAX_FIELDS,
                                          &status, &fault);
        if (!message) {
            reader_broken(c, PHOTON_CLIENT_ERR_PROTOCOL, "it sent bytes that are no message of the protocol");
            return;
        }
        Photon__ServerMessage *m = (Photon__ServerMessage *)message;
        if (reader_keep(c, m))
            continue;
        reader_handle(c, m);
        photon__server_message__free_unpacked(m, NULL);
    }
}

static void reader_receive(photon_client *c) {
    int got = client__receive(&c->in, c->fd);
    int os_errno = errno;
    if (got == 0)
        return;
    pthread_mutex_lock(&c->lock);
    if (got > 0) {
        c->heard_ns = client__now_ns();
        reader_messages(c);
    } else if (got == -2) {
        reader_broken(c, PHOTON_CLIENT_ERR_NOMEM, "no memory for its answers");
    } else {
        reader_broken(c, PHOTON_CLIENT_ERR_LOST,
                      os_errno ? strerror(os_errno) : "the server has closed the connection");
    }
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
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
    bool busy = c->writing || client__output_waits(c);
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
        if (!c->writing && !client__output_waits(c))
            reader_ping(c);
        c->asked_ns = now;
        asked = true;
    }
    if (asked && now - c->asked_ns >= half_ns && !reader_paused(c))
        reader_broken(c, PHOTON_CLIENT_ERR_LOST, "the server has not answered for too long");
    uint64_t due = (asked ? c->asked_ns : c->heard_ns) + half_ns;
    return due > now ? due : now + half_ns;
}

/* Under lock. Returns how long to poll, -1 when the thread shall end. */
static int reader_prepare(photon_client *c, short *events) {
    uint64_t now = client__now_ns();
    uint64_t beat = reader_beat(c, now), listen = reader_listen(c, now);
    uint64_t next = beat < listen ? beat : listen;
    if (c->stopping || c->failed)
        return -1;
    *events = (short)(POLLIN | (client__output_waits(c) && !c->writing ? POLLOUT : 0));
    return next > now ? (int)((next - now) / NS_PER_MS) + 1 : 0;
}

void *client__reader_main(void *client) {
    photon_client *c = client;
    for (;;) {
        struct pollfd p[2] = {{.fd = c->fd}, {.fd = c->wake_fd, .events = POLLIN}};
        pthread_mutex_lock(&c->lock);
        int ms = reader_prepare(c, &p[0].events);
        pthread_mutex_unlock(&c->lock);
        if (ms < 0)
            return NULL;
        if (poll(p, 2, ms) <= 0)
            continue;
        eventfd_t ignored;
        if (p[1].revents)
            eventfd_read(c->wake_fd, &ignored);
        if (p[0].revents & (POLLIN | POLLHUP | POLLERR))
            reader_receive(c);
        if (p[0].revents & POLLOUT) {
            pthread_mutex_lock(&c->lock);
            if (!c->writing)
                client__output_flush(c);
            pthread_mutex_unlock(&c->lock);
        }
    }
}

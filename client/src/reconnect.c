#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include "internal.h"

#define NS_PER_MS UINT64_C(1000000)

/* A connection that has stood for so long without anything to send was good, too. */
#define RECONNECT_GOOD_NS (10000 * NS_PER_MS)

/* An attempt may not keep us from the next for longer. */
enum { RECONNECT_ATTEMPT_MS = 10000 };

/* Connections in a row that end by ERROR_CHECKSUM: so often it is no accident. */
enum { RECONNECT_CHECKSUM_MAX = 5 };

bool client__worth_retrying(const photon_client_error *err) {
    switch (err->code) {
    case PHOTON_CLIENT_ERR_CONNECT:
    case PHOTON_CLIENT_ERR_LOST:
    case PHOTON_CLIENT_ERR_TIMEOUT:
    case PHOTON_CLIENT_ERR_NOMEM:
        return true;
    case PHOTON_CLIENT_ERR_REFUSED:
        return err->server_code == PHOTON__ERROR_CODE__ERROR_TIMEOUT ||
               err->server_code == PHOTON__ERROR_CODE__ERROR_NO_ROOM ||
               err->server_code == PHOTON__ERROR_CODE__ERROR_SHUTTING_DOWN ||
               err->server_code == PHOTON__ERROR_CODE__ERROR_CHECKSUM ||
               err->server_code == PHOTON__ERROR_CODE__ERROR_INTERNAL;
    default:
        return false;
    }
}

uint64_t client__backoff_ns(const photon_client *c, unsigned attempt, uint32_t least_ms) {
    uint64_t ms = c->reconnect_min_ms;
    uint32_t chance = 0;
    while (attempt-- && ms < c->reconnect_max_ms)
        ms *= 2;
    ms = ms < c->reconnect_max_ms ? ms : c->reconnect_max_ms;
    ms = ms > least_ms ? ms : least_ms;
    if (getrandom(&chance, sizeof chance, 0) != sizeof chance)
        chance = (uint32_t)client__now_ns();
    return ms * NS_PER_MS / 2 + ms * NS_PER_MS / 2 * (chance % 1024) / 1024;
}

/* Under lock. */
static bool reconnect_may_help(photon_client *c, const photon_client_error *err) {
    if (!c->reconnect || c->stopping || !client__worth_retrying(err))
        return false;
    if (err->code != PHOTON_CLIENT_ERR_REFUSED || err->server_code != PHOTON__ERROR_CODE__ERROR_CHECKSUM)
        return true;
    return ++c->n_checksum < RECONNECT_CHECKSUM_MAX;
}

static void reconnect_give_up(photon_client *c, const photon_client_error *err) {
    c->failed = true;
    c->down = false;
    c->failure = *err;
    client__news(c, PHOTON_CLIENT_EVENT_FAILED, NULL, 0, err->text);
}

void client__fail(photon_client *c, const photon_client_error *err) {
    if (!c->failed && !c->down) {
        uint64_t now = client__now_ns();
        c->down = reconnect_may_help(c, err);
        c->failure = *err;
        if (now - c->up_ns > RECONNECT_GOOD_NS)
            c->good_ns = now;
        c->current.run = NULL;
        c->pending.begin = c->pending.end = 0;
        c->paused = false;
        for (photon_client_run *run = c->runs; run; run = run->next)
            client__run_detach(run);
        if (c->down)
            client__news(c, PHOTON_CLIENT_EVENT_LOST, NULL, 0, err->text);
        else
            reconnect_give_up(c, err);
        client__link_shutdown(&c->link);
        client__wake(c);
    }
    pthread_cond_broadcast(&c->changed);
}

void client__note_progress(photon_client *c) {
    c->good_ns = client__now_ns();
    c->n_checksum = 0;
}

/* ---- on the reader thread */

/* Waits, until the time is over or the client stops. Returns whether it stops. */
static bool reconnect_wait(photon_client *c, uint64_t ns) {
    uint64_t until = client__now_ns() + ns;
    for (;;) {
        pthread_mutex_lock(&c->lock);
        bool stopping = c->stopping;
        pthread_mutex_unlock(&c->lock);
        int ms = client__poll_ms(until);
        if (stopping || ms == 0)
            return stopping;
        struct pollfd p = {.fd = c->wake_fd, .events = POLLIN};
        eventfd_t ignored;
        if (poll(&p, 1, ms) > 0)
            eventfd_read(c->wake_fd, &ignored);
    }
}

/* The connection stands again: every run goes on. Under lock. */
static void reconnect_attach(photon_client *c, const Photon__Welcome *welcome) {
    client__learn_limits(c, welcome);
    c->down = false;
    c->failure = (photon_client_error){.code = 0};
    c->blocked = false;
    c->broken_ns = 0;
    c->heard_ns = c->said_ns = c->up_ns = client__now_ns();
    c->asked_ns = 0;
    c->n_connections++;
    client__news(c, PHOTON_CLIENT_EVENT_RECONNECTED, NULL, 0, "the connection stands again");
    for (photon_client_run *run = c->runs; run && !c->down && !c->failed; run = run->next) {
        bool open = run->phase == CLIENT_RUN_OPENING || run->phase == CLIENT_RUN_OPEN;
        if (open && client__output_add(c, run->open_bytes, run->n_open_bytes) != 0) {
            photon_client_error err;
            client__error(&err, PHOTON_CLIENT_ERR_NOMEM, "no memory to open a run again");
            client__fail(c, &err);
        }
    }
    client__pump(c);
}

/* Under lock. Whether to go on trying. */
static bool reconnect_failed(photon_client *c, photon_client_error *why) {
    uint64_t limit_ns = c->reconnect_timeout_ms * NS_PER_MS, since = client__now_ns() - c->good_ns;
    bool late = limit_ns && since >= limit_ns;
    if (client__worth_retrying(why) && !late && !c->stopping)
        return true;
    if (late && client__worth_retrying(why)) {
        photon_client_error last = *why;
        client__os_error(why, PHOTON_CLIENT_ERR_LOST, last.os_errno,
                         "%s could not be reached again in %llu s; at last: %.200s", c->address_text,
                         (unsigned long long)(since / (1000 * NS_PER_MS)), last.text);
    }
    reconnect_give_up(c, why);
    return false;
}

/* One attempt. Returns whether another one is needed. */
static bool reconnect_try(photon_client *c, photon_client_error *why) {
    Photon__ServerMessage *welcome = NULL;
    uint32_t ms = c->connect_timeout_ms;
    if (ms == PHOTON_CLIENT_FOREVER || ms > RECONNECT_ATTEMPT_MS)
        ms = RECONNECT_ATTEMPT_MS;
    int rc = client__connect_once(c, client__deadline(ms), &welcome, why);
    pthread_mutex_lock(&c->lock);
    bool again = false;
    if (rc == 0)
        reconnect_attach(c, welcome->welcome);
    else
        again = reconnect_failed(c, why);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (welcome)
        photon__server_message__free_unpacked(welcome, NULL);
    return again;
}

void client__reconnect(photon_client *c) {
    photon_client_error why;
    pthread_mutex_lock(&c->lock);
    why = c->failure;
    if (c->good_ns > c->up_ns)
        c->attempts = 0;
    pthread_mutex_unlock(&c->lock);
    do {
        client__tell_news(c);
        uint64_t pause =
            c->attempts || why.retry_after_ms ? client__backoff_ns(c, c->attempts, why.retry_after_ms) : 0;
        c->attempts++;
        if (reconnect_wait(c, pause))
            return;
    } while (reconnect_try(c, &why));
    client__tell_news(c);
}

/* A connection's bytes through TLS. Both directions keep the bounds that there are without it: no more is read from the socket
 * before all of it was taken, and what is to be sent is encrypted in the buffer that it lies in. */
#include <stdlib.h>
#include <string.h>

#include "connection.h"
#include "log.h"
#include "server.h"

/* An alert that says what was wrong goes out if it can at once. */
static void tls_failed(pd_connection *c) {
    uint8_t alert[512];
    size_t n = pd_tls_take(c->tls, alert, sizeof alert);
    uv_buf_t buf = uv_buf_init((char *)alert, (unsigned)n);
    pd_count(&c->server->engine->counters.connection_errors, 1);
    if (n > 0 && !c->out.writing)
        (void)uv_try_write(&c->uv.stream, &buf, 1);
    pd_connection__lost(c, pd_tls_failure(c->tls));
}

/* The handshake is over: a certificate that was shown was checked in it. */
static void tls_stands(pd_connection *c) {
    char name[100];
    if (!pd_tls_peer_name(c->tls, name, sizeof name))
        return;
    pd_connection_add_name(c, "certificate", name);
    c->session.rights |= c->server->access.certificate_rights;
}

/* Where the next plain bytes go; of an ending connection nobody looks at them. */
static bool tls_room(pd_connection *c, uv_buf_t *room) {
    if (c->state != PD_CONNECTION_ENDING)
        return pd_connection__room(c, room);
    *room = uv_buf_init(c->server->plain, sizeof c->server->plain);
    return true;
}

static void tls_read_on(pd_connection *c) {
    while (c->state != PD_CONNECTION_CLOSED && !c->waits_since_ns) {
        uv_buf_t room;
        size_t got = 0;
        bool stood = pd_tls_stands(c->tls);
        if (!tls_room(c, &room)) {
            pd_connection__wait(c, true);
            return;
        }
        pd_tls_status status = pd_tls_read(c->tls, (uint8_t *)room.base, room.len, &got);
        if (!stood && pd_tls_stands(c->tls))
            tls_stands(c);
        if (pd_tls_to_send(c->tls) > 0)
            pd_connection_due(c);
        if (status == PD_TLS_MORE)
            return;
        if (status == PD_TLS_OK)
            pd_connection__take(c, got);
        else if (status == PD_TLS_END)
            pd_connection__lost(c, "closed by the client");
        else
            tls_failed(c);
    }
}

void pd_connection__read_tls(pd_connection *c, const uint8_t *data, size_t bytes) {
    if (pd_tls_put(c->tls, data, bytes) != 0)
        pd_connection__lost(c, "out of memory");
    else
        tls_read_on(c);
}

void pd_connection__go_on_tls(pd_connection *c) {
    if (c->waits_since_ns)
        return;
    c->tls_more = false;
    tls_read_on(c);
}

/* The plain bytes are in TLS's hands: their buffer takes what is to go out. */
static bool tls_take(pd_connection *c) {
    pd_output *out = &c->out;
    unsigned f = out->filling;
    size_t bytes = pd_tls_to_send(c->tls);
    if (out->cap[f] < bytes) {
        uint8_t *data = realloc(out->data[f], bytes);
        if (!data)
            return false;
        out->data[f] = data;
        out->cap[f] = bytes;
    }
    out->n[f] = bytes ? pd_tls_take(c->tls, out->data[f], bytes) : 0;
    return true;
}

bool pd_connection__encrypt(pd_connection *c) {
    pd_output *out = &c->out;
    unsigned f = out->filling;
    /* Before the handshake is over nothing can be said: the answer to a client that is ended before that is left out. */
    if (out->n[f] > 0 && pd_tls_stands(c->tls) &&
        pd_tls_write(c->tls, out->data[f], out->n[f]) != PD_TLS_OK) {
        pd_connection__lost(c, pd_tls_failure(c->tls));
        return false;
    }
    if (tls_take(c))
        return true;
    pd_connection__lost(c, "out of memory");
    return false;
}

/* A connection's answers: two buffers, one being filled while libuv writes the other. */
#include <stdlib.h>
#include <string.h>

#include "connection.h"
#include "log.h"
#include "server.h"

enum { OUTPUT_FIRST_BYTES = 4096 };

void pd_connection__cut_off(pd_connection *c, const char *why) {
    pd_count(&c->server->engine->counters.cut_off, 1);
    pd_log(PD_LOG_WARNING, "%s (%s): %s: cut off", c->peer, c->session.client_name, why);
    pd_connection_close(c);
}

uint8_t *pd_connection_reserve(pd_connection *c, size_t bytes) {
    pd_output *out = &c->out;
    unsigned f = out->filling;
    if (c->out.shut_down || c->state == PD_CONNECTION_CLOSED || out->overflowed)
        return NULL;
    size_t need = out->n[f] + bytes;
    if (need > pd_connection__config(c)->output_bytes + (out->n[f] ? 0 : bytes)) {
        out->overflowed = true;
        pd_connection_due(c);
        return NULL;
    }
    if (need > out->cap[f]) {
        size_t cap = out->cap[f] ? out->cap[f] : OUTPUT_FIRST_BYTES;
        while (cap < need)
            cap *= 2;
        uint8_t *data = realloc(out->data[f], cap);
        if (!data) {
            out->overflowed = true;
            pd_connection_due(c);
            return NULL;
        }
        out->data[f] = data;
        out->cap[f] = cap;
    }
    return out->data[f] + out->n[f];
}

void pd_connection_commit(pd_connection *c, size_t bytes) {
    c->out.n[c->out.filling] += bytes;
    pd_connection_due(c);
}

void pd_connection_due(pd_connection *c) {
    if (c->due || c->state == PD_CONNECTION_CLOSED)
        return;
    c->due = true;
    c->next_due = c->server->due;
    c->server->due = c;
}

static void connection_shut_down(uv_shutdown_t *request, int status) {
    (void)status;
    (void)request; /* the client's end, or the timer, closes the handle */
}

/* All that was to be sent is sent: the sending side is closed. */
static void connection_finish_output(pd_connection *c) {
    c->out.shut_down = true;
    if (uv_shutdown(&c->out.shutdown, &c->uv.stream, connection_shut_down) != 0)
        pd_connection_close(c);
}

static void connection_written(uv_write_t *request, int status) {
    pd_connection *c = request->data;
    c->out.writing = false;
    c->out.n[!c->out.filling] = 0;
    if (c->state == PD_CONNECTION_CLOSED)
        return;
    if (status != 0)
        pd_connection__lost(c, uv_strerror(status));
    else
        pd_connection_due(c);
}

/* Writes what can be written at once. Returns false when the connection is gone. */
static bool connection_try_write(pd_connection *c) {
    pd_output *out = &c->out;
    unsigned f = out->filling;
    uv_buf_t buf = uv_buf_init((char *)out->data[f], (unsigned)out->n[f]);
    int n = uv_try_write(&c->uv.stream, &buf, 1);
    if (n < 0 && n != UV_EAGAIN) {
        pd_connection__lost(c, uv_strerror(n));
        return false;
    }
    if (n > 0) {
        out->n[f] -= (size_t)n;
        memmove(out->data[f], out->data[f] + n, out->n[f]);
    }
    return true;
}

void pd_connection_flush(pd_connection *c) {
    pd_output *out = &c->out;
    if (c->state == PD_CONNECTION_CLOSED)
        return;
    if (out->overflowed) {
        pd_connection__cut_off(c, "its answers are not read");
        return;
    }
    if (out->writing)
        return;
    if (out->n[out->filling] > 0 && !connection_try_write(c))
        return;
    if (out->n[out->filling] == 0) {
        if (c->state == PD_CONNECTION_ENDING && !c->out.shut_down)
            connection_finish_output(c);
        return;
    }
    uv_buf_t buf = uv_buf_init((char *)out->data[out->filling], (unsigned)out->n[out->filling]);
    out->filling = !out->filling;
    out->writing = true;
    out->writing_ns = uv_hrtime();
    out->request.data = c;
    int failed = uv_write(&out->request, &c->uv.stream, &buf, 1, connection_written);
    if (failed) {
        out->writing = false;
        pd_connection__lost(c, uv_strerror(failed));
    }
}

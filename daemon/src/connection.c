#include "connection.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "clock.h"
#include "log.h"
#include "server.h"

#define CODE(name) PHOTON__ERROR_CODE__ERROR_##name
#define CONNECTION_TOO_OFTEN_TOLD_NS UINT64_C(5000000000)

enum {
    OUTPUT_FIRST_BYTES = 4096,
    CONNECTION_HOLDING_BYTES = 16384, /* fewer in PD_HOLD_MS are next to nothing */
    CONNECTION_SLOW_WINDOWS = 5,      /* so often in a row, and it is ended */
    CONNECTION_ALIVE_BYTES = 65536    /* so much of a long message is as good as a whole short one */
};

static const pd_config *connection_config(const pd_connection *c) {
    return c->server->engine->config;
}

/* ---- the handles' end ---- */

static void connection_handle_closed(uv_handle_t *handle) {
    pd_connection *c = handle->data;
    if (--c->n_handles > 0)
        return;
    pd_inbuf_free(&c->in);
    free(c->out.data[0]);
    free(c->out.data[1]);
    pd_tls_free(c->tls);
    free(c);
}

void pd_connection_close(pd_connection *c) {
    if (c->state == PD_CONNECTION_CLOSED)
        return;
    if (c->state != PD_CONNECTION_ENDING)
        pd_session_leave(&c->session);
    c->state = PD_CONNECTION_CLOSED;
    pd_server__remove(c->server, c);
    pd_inbuf_free(&c->in);
    c->server->engine->room_came = true;
    uv_close(&c->uv.handle, connection_handle_closed);
    uv_close((uv_handle_t *)&c->timer, connection_handle_closed);
}

void pd_connection__lost(pd_connection *c, const char *why) {
    size_t left = c->in.end - c->in.start;
    if (c->state != PD_CONNECTION_ENDING)
        pd_log(PD_LOG_INFO, "%s (%s): %s%s", c->peer, c->session.client_name, why,
               left || c->in.message ? ", in the middle of a message" : "");
    pd_connection_close(c);
}

/* ---- output ---- */

static void connection_cut_off(pd_connection *c, const char *why) {
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
    if (need > connection_config(c)->output_bytes + (out->n[f] ? 0 : bytes)) {
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
    if (c->tls && !c->tls_finished) {
        c->tls_finished = true;
        pd_tls_finish(c->tls);
        pd_connection_due(c);
        return;
    }
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
        connection_cut_off(c, "its answers are not read");
        return;
    }
    if (c->tls_more)
        pd_connection__go_on_tls(c);
    if (out->writing || c->state == PD_CONNECTION_CLOSED)
        return;
    if (c->tls && !pd_connection__encrypt(c))
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

/* ---- time ---- */

static void connection_timer(uv_timer_t *timer);

static void connection_set_timer(pd_connection *c, uint64_t ms) {
    uv_timer_start(&c->timer, connection_timer, ms ? ms : 1, 0);
}

static void connection_timed_out(pd_connection *c, const char *text) {
    pd_count(&c->server->engine->counters.timeouts, 1);
    pd_session_complain(&c->session, &(pd_complaint){.code = CODE(TIMEOUT),
                                                     .scope = PHOTON__ERROR_SCOPE__SCOPE_CONNECTION,
                                                     .offset = c->in.offset,
                                                     .text = text});
}

static void connection_ping(pd_connection *c) {
    Photon__ServerMessage message = PHOTON__SERVER_MESSAGE__INIT;
    Photon__Ping ping = PHOTON__PING__INIT;
    ping.id = ++c->pings;
    ping.monotonic_ns = uv_hrtime();
    ping.utc_ns = pd_utc_ns();
    message.body_case = PHOTON__SERVER_MESSAGE__BODY_PING;
    message.ping = &ping;
    pd_session__send(&c->session, &message);
    c->pinged = true;
}

/* Timers come before sockets: after a pause of ours (a busy or suspended machine) what the client said meanwhile is still
 * unread when its time seems to be up. */
static bool connection_has_unread(const pd_connection *c) {
    uv_os_fd_t fd;
    int bytes = 0;
    return uv_fileno(&c->uv.handle, &fd) == 0 && ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

/* Half the idle time without a message: the client is asked whether it is there. The whole of it: it is not. A client
 * that we do not read is not silent. */
static void connection_check_idle(pd_connection *c) {
    uint64_t idle_ms = connection_config(c)->idle_timeout_ms, now = uv_hrtime();
    if (c->out.writing && (now - c->out.writing_ns) / 1000000 >= idle_ms) {
        connection_cut_off(c, "its answers have not been read for the idle time");
        return;
    }
    if (c->waits_since_ns)
        c->last_message_ns = now;
    uint64_t silent_ms = (now - c->last_message_ns) / 1000000;
    if (silent_ms >= idle_ms && !connection_has_unread(c)) {
        connection_timed_out(c, "no message came for the idle time");
        return;
    }
    if (silent_ms >= idle_ms) {
        c->last_message_ns = now - idle_ms / 2 * 1000000;
        silent_ms = idle_ms / 2;
    }
    if (silent_ms >= idle_ms / 2 && !c->pinged)
        connection_ping(c);
    connection_set_timer(c, (silent_ms < idle_ms / 2 ? idle_ms / 2 : idle_ms) - silent_ms);
    if (silent_ms >= idle_ms / 2 && pd_inbuf_relax(&c->in))
        c->server->engine->room_came = true;
}

/* A window with next to nothing in it: the client's doing only when nothing of it lies unread here. One in which something
 * does tells nothing: it was this loop that was late. */
static void connection_count_slow_window(pd_connection *c) {
    uint64_t came = c->received_bytes - c->held_at_bytes;
    if (came >= CONNECTION_HOLDING_BYTES)
        c->slow_windows = 0;
    else if (!connection_has_unread(c))
        c->slow_windows++;
}

void pd_connection_check_holding(pd_connection *c) {
    bool holds = c->state == PD_CONNECTION_TALKING && !c->waits_since_ns && c->in.cap > PD_INBUF_SMALL_BYTES;
    if (holds && pd_inbuf_relax(&c->in)) {
        c->server->engine->room_came = true;
        holds = false;
    }
    if (holds)
        connection_count_slow_window(c);
    else
        c->slow_windows = 0;
    c->held_at_bytes = c->received_bytes;
    if (c->slow_windows >= CONNECTION_SLOW_WINDOWS)
        connection_timed_out(c,
                             "others wait for the memory that this message holds, and it does not come on");
}

static void connection_timer(uv_timer_t *timer) {
    pd_connection *c = timer->data;
    if (c->state == PD_CONNECTION_ENDING)
        pd_connection_close(c);
    else if (!c->session.welcomed && !c->hello_late && connection_has_unread(c)) {
        c->hello_late = true;
        connection_set_timer(c, connection_config(c)->hello_timeout_ms);
    } else if (!c->session.welcomed)
        connection_timed_out(c, "no Hello came in time");
    else
        connection_check_idle(c);
}

bool pd_connection_silent(const pd_connection *c, uint64_t now_ns) {
    return c->state == PD_CONNECTION_TALKING && !c->waits_since_ns &&
           now_ns - c->last_message_ns > 2 * 1000000 * connection_config(c)->heartbeat_ms;
}

/* ---- input ---- */

static void connection_start_reading(pd_connection *c);

void pd_connection_end(pd_connection *c) {
    if (c->state == PD_CONNECTION_ENDING || c->state == PD_CONNECTION_CLOSED)
        return;
    pd_session_leave(&c->session);
    c->state = PD_CONNECTION_ENDING;
    pd_server__unwait(c->server, c);
    pd_inbuf_free(&c->in);
    c->server->engine->room_came = true;
    connection_set_timer(c, PD_LINGER_MS);
    connection_start_reading(c);
    pd_connection_due(c);
}

/* No preamble: something else speaks to this port, and is told in its own way what it is. */
static void connection_stray(pd_connection *c) {
    size_t bytes = strlen(wire_stray_answer);
    uint8_t *out = pd_connection_reserve(c, bytes);
    pd_count(&c->server->engine->counters.connection_errors, 1);
    if (out) {
        memcpy(out, wire_stray_answer, bytes);
        pd_connection_commit(c, bytes);
    }
    pd_log(PD_LOG_WARNING, "%s: does not speak this protocol; the connection ends", c->peer);
    pd_connection_end(c);
}

static void connection_send_preamble(pd_connection *c, uint8_t min, uint8_t max) {
    uint8_t *out = pd_connection_reserve(c, WIRE_PREAMBLE_BYTES);
    if (!out)
        return;
    wire_preamble_put(out, min, max);
    pd_connection_commit(c, WIRE_PREAMBLE_BYTES);
}

static void connection_preamble(pd_connection *c) {
    uint8_t min = 0, max = 0;
    size_t n = 0;
    const uint8_t *bytes = pd_inbuf_bytes(&c->in, &n);
    wire_status status = wire_preamble_get(bytes, n, &min, &max);
    if (status == WIRE_MORE)
        return;
    if (status != WIRE_OK) {
        connection_stray(c);
        return;
    }
    pd_inbuf_consume(&c->in, WIRE_PREAMBLE_BYTES);
    uint8_t version = wire_version_choose(min, max, WIRE_VERSION_MIN, WIRE_VERSION_MAX);
    c->state = PD_CONNECTION_TALKING;
    if (version) {
        connection_send_preamble(c, version, version);
        return;
    }
    connection_send_preamble(c, WIRE_VERSION_MIN, WIRE_VERSION_MAX);
    pd_count(&c->server->engine->counters.connection_errors, 1);
    pd_session_complain(&c->session, &(pd_complaint){.code = CODE(VERSION),
                                                     .scope = PHOTON__ERROR_SCOPE__SCOPE_CONNECTION,
                                                     .text = "no version of the protocol in common"});
}

static void connection_bad_length(pd_connection *c, wire_status status, uint64_t bytes, size_t limit) {
    char text[128];
    if (status == WIRE_LIMIT)
        snprintf(text, sizeof text, "a message of %llu bytes is announced, %zu are the most",
                 (unsigned long long)bytes, limit);
    else
        snprintf(text, sizeof text, "this is no length of a message");
    pd_count(&c->server->engine->counters.connection_errors, 1);
    pd_session_complain(&c->session,
                        &(pd_complaint){.code = status == WIRE_LIMIT ? CODE(LIMIT) : CODE(MALFORMED),
                                        .scope = PHOTON__ERROR_SCOPE__SCOPE_CONNECTION,
                                        .offset = c->in.offset,
                                        .text = text});
}

/* No room: reads no more until the server says that there may be some. */
void pd_connection__wait(pd_connection *c, bool for_memory) {
    uv_read_stop(&c->uv.stream);
    c->waits_on = true;
    c->waits_for_memory = for_memory;
    pd_server__wait(c->server, c);
}

/* Done with a message: where others wait for memory, what this connection does not need goes back. */
static void connection_next(pd_connection *c) {
    bool gave = c->in.from_longest;
    pd_inbuf_next(&c->in);
    if (c->server->n_wait_for_memory > 0 && pd_inbuf_relax(&c->in))
        gave = true;
    if (gave)
        c->server->engine->room_came = true;
}

/* One message, if there is a whole one. Returns false when there is nothing more to do now. */
static bool connection_message(pd_connection *c) {
    const uint8_t *message = NULL;
    uint64_t bytes = 0;
    size_t limit = c->session.welcomed ? connection_config(c)->message_bytes : WIRE_HELLO_BYTES_MAX;
    wire_status status = pd_inbuf_peek(&c->in, limit, &message, &bytes);
    if (status == WIRE_MORE)
        return false;
    if (status != WIRE_OK) {
        connection_bad_length(c, status, bytes, limit);
        return false;
    }
    bool was_welcomed = c->session.welcomed;
    switch (pd_session_message(&c->session, message, bytes, c->in.offset, c->in.prefix)) {
    case PD_HEARD_WAIT:
        pd_connection__wait(c, false);
        return false;
    case PD_HEARD_END:
        return false;
    case PD_HEARD:
        break;
    }
    connection_next(c);
    c->pinged = false;
    if (!was_welcomed && c->session.welcomed)
        connection_set_timer(c, connection_config(c)->idle_timeout_ms / 2);
    return true;
}

static void connection_handle_input(pd_connection *c) {
    uint64_t before = c->in.offset;
    if (c->state == PD_CONNECTION_PREAMBLE)
        connection_preamble(c);
    while (c->state == PD_CONNECTION_TALKING && connection_message(c))
        ;
    if (c->state != PD_CONNECTION_TALKING ||
        (c->in.offset == before && c->heard_bytes < CONNECTION_ALIVE_BYTES))
        return;
    c->last_message_ns = uv_hrtime();
    c->heard_bytes = 0;
}

bool pd_connection__room(pd_connection *c, uv_buf_t *ret) {
    uint8_t *at = NULL;
    size_t bytes = 0;
    if (!pd_inbuf_room(&c->in, c->server->n_wait_for_memory == 0, &at, &bytes))
        return false;
    *ret = uv_buf_init((char *)at, (unsigned)bytes);
    return true;
}

static void connection_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
    (void)suggested;
    pd_connection *c = handle->data;
    if (c->tls || c->state == PD_CONNECTION_ENDING)
        *buf = uv_buf_init(c->server->discard, sizeof c->server->discard);
    else if (!pd_connection__room(c, buf))
        *buf = uv_buf_init(NULL, 0);
}

void pd_connection__take(pd_connection *c, size_t bytes) {
    c->received_bytes += bytes;
    c->heard_bytes += bytes;
    pd_count(&c->server->engine->counters.bytes_received, bytes);
    if (c->state == PD_CONNECTION_ENDING)
        return;
    pd_inbuf_filled(&c->in, bytes);
    connection_handle_input(c);
}

static void connection_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
    pd_connection *c = stream->data;
    if (n == UV_ENOBUFS) {
        pd_connection__wait(c, true);
    } else if (n == UV_EOF) {
        pd_connection__lost(c, "closed by the client");
    } else if (n < 0) {
        pd_connection__lost(c, uv_strerror((int)n));
    } else if (n > 0 && c->tls) {
        pd_connection__read_tls(c, (const uint8_t *)buf->base, (size_t)n);
    } else if (n > 0) {
        pd_connection__take(c, (size_t)n);
    }
}

static void connection_start_reading(pd_connection *c) {
    int failed = uv_read_start(&c->uv.stream, connection_room, connection_read);
    if (failed && failed != UV_EALREADY)
        pd_connection__lost(c, uv_strerror(failed));
}

bool pd_connection_go_on(pd_connection *c, bool first) {
    uint8_t *at = NULL;
    size_t bytes = 0;
    c->waits_on = false;
    if (c->waits_for_memory)
        c->waits_on = !pd_inbuf_room(&c->in, first, &at, &bytes);
    else
        connection_handle_input(c);
    if (c->waits_on)
        return false;
    if (c->state != PD_CONNECTION_TALKING)
        return true;
    connection_start_reading(c);
    if (c->tls && c->state == PD_CONNECTION_TALKING) {
        c->tls_more = true;
        pd_connection_due(c);
    }
    return true;
}

/* ---- the beginning ---- */

static void connection_name_tcp(pd_connection *c) {
    struct sockaddr_storage address;
    int bytes = sizeof address;
    char host[INET6_ADDRSTRLEN] = "?";
    unsigned port = 0;
    if (uv_tcp_getpeername(&c->uv.tcp, (struct sockaddr *)&address, &bytes) == 0) {
        uv_ip_name((struct sockaddr *)&address, host, sizeof host);
        port = address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                             : ((struct sockaddr_in *)&address)->sin_port;
    }
    bool six = address.ss_family == AF_INET6;
    snprintf(c->peer, sizeof c->peer, "%s://%s%s%s:%u", c->tls ? "tls" : "tcp", six ? "[" : "", host,
             six ? "]" : "", ntohs((uint16_t)port));
}

static void connection_name_unix(pd_connection *c) {
    struct ucred who;
    socklen_t bytes = sizeof who;
    uv_os_fd_t fd;
    if (uv_fileno(&c->uv.handle, &fd) == 0 && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0)
        snprintf(c->peer, sizeof c->peer, "unix: pid %ld uid %lu", (long)who.pid, (unsigned long)who.uid);
    else
        snprintf(c->peer, sizeof c->peer, "unix: unknown");
}

static unsigned connection_rights_unix(const pd_connection *c) {
    uv_os_fd_t fd;
    return uv_fileno(&c->uv.handle, &fd) == 0 ? pd_access_sender(&c->server->access, fd) : 0;
}

void pd_connection_add_name(pd_connection *c, const char *kind, const char *name) {
    size_t n = strlen(c->peer);
    snprintf(c->peer + n, sizeof c->peer - n, ", %s %s", kind, name);
}

static int connection_open(pd_connection *c, uv_stream_t *listener) {
    uv_loop_t *loop = c->server->engine->loop;
    int failed =
        listener->type == UV_TCP ? uv_tcp_init(loop, &c->uv.tcp) : uv_pipe_init(loop, &c->uv.pipe, 0);
    if (failed)
        return failed;
    uv_timer_init(loop, &c->timer);
    c->uv.handle.data = c->timer.data = c;
    c->n_handles = 2;
    failed = uv_accept(listener, &c->uv.stream);
    if (failed == 0 && listener->type == UV_TCP) {
        uv_tcp_nodelay(&c->uv.tcp, 1);
        connection_name_tcp(c);
        c->session.rights = c->tls ? 0 : c->server->access.plain_rights;
    } else if (failed == 0) {
        connection_name_unix(c);
        c->session.rights = connection_rights_unix(c);
    }
    return failed;
}

static void connection_refuse(pd_connection *c) {
    char text[96];
    snprintf(text, sizeof text, "%u connections are open, more are not allowed", c->server->max_connections);
    pd_count(&c->server->engine->counters.connections_refused, 1);
    c->state = PD_CONNECTION_TALKING;
    connection_send_preamble(c, WIRE_VERSION_MAX, WIRE_VERSION_MAX);
    pd_session_complain(&c->session, &(pd_complaint){.code = CODE(NO_ROOM),
                                                     .scope = PHOTON__ERROR_SCOPE__SCOPE_CONNECTION,
                                                     .retry_after_ms = 1000,
                                                     .text = text});
}

/* With all that it takes to talk to it. */
static pd_connection *connection_create(pd_server *server, bool secure) {
    pd_connection *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    if (secure)
        c->tls = pd_tls_create(server->access.tls);
    if ((secure && !c->tls) || pd_inbuf_init(&c->in, &server->engine->receive) != 0) {
        pd_tls_free(c->tls);
        free(c);
        return NULL;
    }
    return c;
}

static bool connection_comes_too_often(pd_connection *c, uint64_t now_ns) {
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    int bytes = sizeof address;
    if (c->uv.handle.type != UV_TCP ||
        uv_tcp_getpeername(&c->uv.tcp, (struct sockaddr *)&address, &bytes) != 0)
        return false;
    if (pd_connects_allow(&c->server->connects, (struct sockaddr *)&address, now_ns,
                          connection_config(c)->connects_per_s))
        return false;
    pd_count(&c->server->engine->counters.connections_refused, 1);
    if (now_ns - c->server->told_too_often_ns > CONNECTION_TOO_OFTEN_TOLD_NS) {
        pd_log(PD_LOG_WARNING,
               "%s: this address connects more than %u times a second (connects_per_s): refused", c->peer,
               connection_config(c)->connects_per_s);
        c->server->told_too_often_ns = now_ns;
    }
    return true;
}

int pd_connection_accept(pd_server *server, uv_stream_t *listener, bool secure) {
    pd_connection *c = connection_create(server, secure);
    if (!c)
        return UV_ENOMEM;
    c->server = server;
    c->opened_ns = c->last_message_ns = uv_hrtime();
    pd_session_init(&c->session, c, &server->runs);
    int failed = connection_open(c, listener);
    if (c->n_handles == 0) {
        pd_inbuf_free(&c->in);
        pd_tls_free(c->tls);
        free(c);
        return failed;
    }
    pd_server__add(server, c);
    if (failed || connection_comes_too_often(c, c->opened_ns) ||
        server->n_connections > c->server->max_connections + c->server->max_refused) {
        pd_connection_close(c);
        return failed;
    }
    pd_count(&server->engine->counters.connections, 1);
    connection_set_timer(c, connection_config(c)->hello_timeout_ms);
    connection_start_reading(c);
    if (server->n_connections > c->server->max_connections)
        connection_refuse(c);
    return 0;
}

/* A connection's clock: who says nothing, who does not read, who holds memory that others wait for. */
#include <sys/ioctl.h>

#include "clock.h"
#include "connection.h"
#include "server.h"

enum { HOLDING_BYTES = 16384 };

static void connection_timer(uv_timer_t *timer);

void pd_connection__set_timer(pd_connection *c, uint64_t ms) {
    uv_timer_start(&c->timer, connection_timer, ms ? ms : 1, 0);
}

static void connection_timed_out(pd_connection *c, const char *text) {
    pd_count(&c->server->engine->counters.timeouts, 1);
    pd_session_complain(&c->session, &(pd_complaint){.code = PHOTON__ERROR_CODE__ERROR_TIMEOUT,
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
    uint64_t idle_ms = pd_connection__config(c)->idle_timeout_ms, now = uv_hrtime();
    if (c->out.writing && (now - c->out.writing_ns) / 1000000 >= idle_ms) {
        pd_connection__cut_off(c, "its answers have not been read for the idle time");
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
    pd_connection__set_timer(c, (silent_ms < idle_ms / 2 ? idle_ms / 2 : idle_ms) - silent_ms);
    if (silent_ms >= idle_ms / 2 && pd_inbuf_relax(&c->in))
        c->server->engine->room_came = true;
}

void pd_connection_check_holding(pd_connection *c) {
    bool holds = c->state == PD_CONNECTION_TALKING && !c->waits_since_ns && c->in.cap > PD_INBUF_SMALL_BYTES;
    bool slow = c->received_bytes - c->held_at_bytes < HOLDING_BYTES;
    c->held_at_bytes = c->received_bytes;
    if (holds && pd_inbuf_relax(&c->in))
        c->server->engine->room_came = true;
    else if (holds && slow)
        connection_timed_out(c,
                             "others wait for the memory that this message holds, and it does not come on");
}

static void connection_timer(uv_timer_t *timer) {
    pd_connection *c = timer->data;
    if (c->state == PD_CONNECTION_ENDING)
        pd_connection_close(c);
    else if (!c->session.welcomed && !c->hello_late && connection_has_unread(c)) {
        c->hello_late = true;
        pd_connection__set_timer(c, pd_connection__config(c)->hello_timeout_ms);
    } else if (!c->session.welcomed)
        connection_timed_out(c, "no Hello came in time");
    else
        connection_check_idle(c);
}

bool pd_connection_silent(const pd_connection *c, uint64_t now_ns) {
    return c->state == PD_CONNECTION_TALKING && !c->waits_since_ns &&
           now_ns - c->last_message_ns > 2 * 1000000 * pd_connection__config(c)->heartbeat_ms;
}

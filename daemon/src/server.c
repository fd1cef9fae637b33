#include "server.h"

#include <string.h>

#include "log.h"

/* ---- lists ---- */

void pd_server__add(pd_server *server, pd_connection *c) {
    c->next = server->connections;
    if (c->next)
        c->next->previous = c;
    server->connections = c;
    server->n_connections++;
}

static void server_remove_due(pd_server *server, pd_connection *c) {
    pd_connection **at = &server->due;
    while (c->due && *at) {
        if (*at == c) {
            *at = c->next_due;
            c->due = false;
            return;
        }
        at = &(*at)->next_due;
    }
}

void pd_server__remove(pd_server *server, pd_connection *c) {
    pd_server__unwait(server, c);
    server_remove_due(server, c);
    if (c->next)
        c->next->previous = c->previous;
    if (c->previous)
        c->previous->next = c->next;
    else
        server->connections = c->next;
    server->n_connections--;
}

/* ---- those that wait for room ---- */

/* The volume that holds a connection up most is that of one of its runs. */
static pd_volume_state server_disk_of(const pd_connection *c) {
    pd_volume_state worst = {.free_bytes = UINT64_MAX};
    for (size_t i = 0; i < c->session.n_attached; i++) {
        pd_volume_state disk = pd_volume_look(c->session.attached[i].run->volume);
        worst.full |= disk.full;
        if (disk.busy_ns && (!worst.busy_ns || disk.busy_ns < worst.busy_ns))
            worst.busy_ns = disk.busy_ns;
    }
    return worst;
}

static Photon__PauseReason server_pause_reason(const pd_connection *c, const char **ret_text) {
    pd_volume_state disk = server_disk_of(c);
    if (disk.full) {
        *ret_text = "the disk is full";
        return PHOTON__PAUSE_REASON__PAUSE_DISK_FULL;
    }
    if (disk.busy_ns && uv_hrtime() - disk.busy_ns > PD_DISK_SLOW_NS) {
        *ret_text = "the disk is slow";
        return PHOTON__PAUSE_REASON__PAUSE_DISK_SLOW;
    }
    *ret_text = "the ring is full";
    return PHOTON__PAUSE_REASON__PAUSE_RING_FULL;
}

static void server_tell_paused(pd_connection *c, uint64_t now) {
    Photon__ServerMessage message = PHOTON__SERVER_MESSAGE__INIT;
    Photon__Paused paused = PHOTON__PAUSED__INIT;
    const char *text = NULL;
    paused.reason = server_pause_reason(c, &text);
    paused.text = (char *)(uintptr_t)text;
    message.body_case = PHOTON__SERVER_MESSAGE__BODY_PAUSED;
    message.paused = &paused;
    pd_session__send(&c->session, &message);
    c->told_paused_ns = now;
}

static void server_tell_resumed(pd_connection *c) {
    Photon__ServerMessage message = PHOTON__SERVER_MESSAGE__INIT;
    Photon__Resumed resumed = PHOTON__RESUMED__INIT;
    message.body_case = PHOTON__SERVER_MESSAGE__BODY_RESUMED;
    message.resumed = &resumed;
    pd_session__send(&c->session, &message);
}

/* When a waiting client is to be told next: soon at first, then now and then, as a sign of life. */
static uint64_t server_tell_at(const pd_server *server, const pd_connection *c) {
    if (c->told_paused_ns)
        return c->told_paused_ns + 1000000 * server->engine->config->heartbeat_ms;
    return c->waits_since_ns + 1000000 * PD_PAUSE_TOLD_AFTER_MS;
}

static void server_pause_timer(uv_timer_t *timer) {
    pd_server *server = timer->data;
    uint64_t now = uv_hrtime(), next = UINT64_MAX;
    for (pd_connection *c = server->waiting; c; c = c->next_waiting) {
        if (!c->session.welcomed)
            continue;
        if (server_tell_at(server, c) <= now)
            server_tell_paused(c, now);
        uint64_t at = server_tell_at(server, c);
        next = at < next ? at : next;
    }
    if (next != UINT64_MAX)
        uv_timer_start(timer, server_pause_timer, (next - now) / 1000000 + 1, 0);
}

/* Each tick compares what has come since the one before. */
static void server_hold_timer(uv_timer_t *timer) {
    pd_server *server = timer->data;
    if (server->n_wait_for_memory == 0) {
        uv_timer_stop(timer);
        return;
    }
    for (pd_connection *c = server->connections, *next; c; c = next) {
        next = c->next;
        pd_connection_check_holding(c);
    }
}

static void server_watch_holders(pd_server *server) {
    if (uv_is_active((uv_handle_t *)&server->hold_timer))
        return;
    for (pd_connection *c = server->connections; c; c = c->next)
        c->held_at_bytes = c->received_bytes;
    uv_timer_start(&server->hold_timer, server_hold_timer, PD_HOLD_MS, PD_HOLD_MS);
}

void pd_server__wait(pd_server *server, pd_connection *c) {
    if (c->waits_since_ns)
        return;
    c->waits_since_ns = uv_hrtime();
    c->told_paused_ns = 0;
    c->next_waiting = NULL;
    c->previous_waiting = server->waiting_last;
    if (c->previous_waiting)
        c->previous_waiting->next_waiting = c;
    else
        server->waiting = c;
    server->waiting_last = c;
    server->n_waiting++;
    server->n_wait_for_memory += c->waits_for_memory;
    pd_count(&server->engine->counters.stalls, 1);
    if (c->waits_for_memory)
        server_watch_holders(server);
    if (!uv_is_active((uv_handle_t *)&server->pause_timer) ||
        uv_timer_get_due_in(&server->pause_timer) > PD_PAUSE_TOLD_AFTER_MS)
        uv_timer_start(&server->pause_timer, server_pause_timer, PD_PAUSE_TOLD_AFTER_MS, 0);
}

void pd_server__unwait(pd_server *server, pd_connection *c) {
    if (!c->waits_since_ns)
        return;
    if (server->waiting_cursor == c)
        server->waiting_cursor = c->next_waiting;
    if (c->next_waiting)
        c->next_waiting->previous_waiting = c->previous_waiting;
    else
        server->waiting_last = c->previous_waiting;
    if (c->previous_waiting)
        c->previous_waiting->next_waiting = c->next_waiting;
    else
        server->waiting = c->next_waiting;
    server->n_waiting--;
    server->n_wait_for_memory -= c->waits_for_memory;
    uint64_t now = uv_hrtime();
    pd_count(&server->engine->counters.stall_ns, now - c->waits_since_ns);
    c->last_message_ns = now; /* it could not say anything */
    c->waits_since_ns = 0;
}

/* Each in turn, the longest waiting first. One may end others on its way (a newer connection takes over), hence the
 * cursor. */
static void server_go_on(pd_server *server) {
    bool first = true;
    server->engine->room_came = false;
    server->waiting_cursor = server->waiting;
    while (server->waiting_cursor) {
        pd_connection *c = server->waiting_cursor;
        server->waiting_cursor = c->next_waiting;
        bool waited_for_memory = c->waits_for_memory;
        if (!pd_connection_go_on(c, first)) {
            first = first && !waited_for_memory;
            continue;
        }
        bool told = c->told_paused_ns && c->state == PD_CONNECTION_TALKING;
        pd_server__unwait(server, c);
        if (told)
            server_tell_resumed(c);
    }
}

/* ---- what is to be sent ---- */

static void server_ack_timer(uv_timer_t *timer) {
    (void)timer; /* it only ends the loop's sleep */
}

/* Acknowledgements wait while the client does not read what it was sent. */
static void server_send(pd_server *server) {
    uint64_t now = uv_hrtime();
    pd_connection *later = NULL;
    while (server->due) {
        pd_connection *c = server->due;
        server->due = c->next_due;
        c->due = false;
        bool acks_wait = !c->out.writing && pd_session_acknowledge(&c->session, now);
        pd_connection_flush(c);
        if (acks_wait && c->state == PD_CONNECTION_TALKING && !c->due) {
            c->next_due = later;
            later = c;
        }
    }
    for (pd_connection *c = later; c; c = later) {
        later = c->next_due;
        pd_connection_due(c);
    }
    if (server->due && !uv_is_closing((uv_handle_t *)&server->ack_timer) &&
        !uv_is_active((uv_handle_t *)&server->ack_timer))
        uv_timer_start(&server->ack_timer, server_ack_timer, 1, 0);
}

static void server_settle(uv_prepare_t *prepare) {
    pd_server *server = prepare->data;
    do {
        if (server->engine->room_came)
            server_go_on(server);
        server_send(server);
    } while (server->engine->room_came);
}

/* ---- life ---- */

int pd_server_init(pd_server *server, pd_engine *engine, pd_error *err) {
    memset(server, 0, sizeof *server);
    server->engine = engine;
    server->max_connections = engine->config->max_connections;
    server->max_refused = PD_CONNECTIONS_BEING_REFUSED;
    if (pd_access_init(&server->access, engine->config, err) != 0)
        return -1;
    if (pd_runs_init(&server->runs, engine) != 0 ||
        pd_producers_init(&server->producers, 4 * (size_t)engine->config->max_connections) != 0) {
        pd_server_free(server);
        return pd_error_set(err, "out of memory");
    }
    uv_prepare_init(engine->loop, &server->settle);
    uv_timer_init(engine->loop, &server->ack_timer);
    uv_timer_init(engine->loop, &server->pause_timer);
    uv_timer_init(engine->loop, &server->hold_timer);
    server->hold_timer.data = server;
    server->settle.data = server->ack_timer.data = server->pause_timer.data = server;
    uv_prepare_start(&server->settle, server_settle);
    uv_unref((uv_handle_t *)&server->settle);
    return 0;
}

void pd_server_stop_reading(pd_server *server) {
    while (server->waiting)
        pd_server__unwait(server, server->waiting);
    for (pd_connection *c = server->connections; c; c = c->next)
        if (c->state != PD_CONNECTION_ENDING)
            uv_read_stop(&c->uv.stream);
}

void pd_server_access_changed(pd_server *server) {
    for (pd_connection *c = server->connections, *next; c; c = next) {
        next = c->next;
        if (c->state == PD_CONNECTION_TALKING && c->session.by_token &&
            !pd_tokens_still_has(server->access.tokens, &c->session.token))
            pd_session_complain(&c->session, &(pd_complaint){.code = PHOTON__ERROR_CODE__ERROR_NOT_AUTHORIZED,
                                                             .scope = PHOTON__ERROR_SCOPE__SCOPE_CONNECTION,
                                                             .field = "hello.token",
                                                             .text = "this token is no longer good"});
    }
}

void pd_server_end(pd_server *server) {
    for (pd_connection *c = server->connections, *next; c; c = next) {
        next = c->next;
        if (c->session.welcomed && c->state == PD_CONNECTION_TALKING)
            pd_session_complain(&c->session, &(pd_complaint){.code = PHOTON__ERROR_CODE__ERROR_SHUTTING_DOWN,
                                                             .scope = PHOTON__ERROR_SCOPE__SCOPE_CONNECTION,
                                                             .text = "the daemon is stopping"});
        else
            pd_connection_close(c);
    }
    uv_close((uv_handle_t *)&server->ack_timer, NULL);
    uv_close((uv_handle_t *)&server->pause_timer, NULL);
    uv_close((uv_handle_t *)&server->hold_timer, NULL);
}

void pd_server_close(pd_server *server) {
    uv_close((uv_handle_t *)&server->settle, NULL);
}

void pd_server_free(pd_server *server) {
    pd_runs_free(&server->runs);
    pd_producers_free(&server->producers);
    pd_access_free(&server->access);
}

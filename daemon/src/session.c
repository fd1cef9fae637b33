#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "connection.h"
#include "log.h"
#include "server.h"
#include "wire/message.h"
#include "wire/names.h"

#define CODE(name) PHOTON__ERROR_CODE__ERROR_##name

enum { COMPLAINTS_LOGGED = 16 };

void pd_session_init(pd_session *s, struct pd_connection *connection, pd_runs *runs) {
    memset(s, 0, sizeof *s);
    s->connection = connection;
    s->runs = runs;
}

/* ---- sending ---- */

void pd_session__send(pd_session *s, const Photon__ServerMessage *message) {
    uint8_t prefix[WIRE_PREFIX_BYTES_MAX];
    size_t bytes = photon__server_message__get_packed_size(message);
    size_t used = wire_prefix_put(prefix, bytes);
    uint8_t *out = pd_connection_reserve(s->connection, used + bytes);
    if (!out)
        return;
    memcpy(out, prefix, used);
    photon__server_message__pack(message, out + used);
    pd_connection_commit(s->connection, used + bytes);
}

/* Each of the first ones, then the 16th, the 32nd and so on: a client that goes on and on must not fill the log. */
static bool complaint_is_worth_a_line(pd_session *s, const pd_complaint *c) {
    s->complaints++;
    return c->scope == PHOTON__ERROR_SCOPE__SCOPE_CONNECTION || s->complaints < COMPLAINTS_LOGGED ||
           (s->complaints & (s->complaints - 1)) == 0;
}

static void complaint_log(pd_session *s, const pd_complaint *c) {
    bool ends = c->scope == PHOTON__ERROR_SCOPE__SCOPE_CONNECTION;
    char code[WIRE_ENUM_TEXT_BYTES], count[48] = "";
    if (!complaint_is_worth_a_line(s, c))
        return;
    if (s->complaints >= COMPLAINTS_LOGGED)
        snprintf(count, sizeof count, "; %llu errors so far", (unsigned long long)s->complaints);
    wire_enum_text(&photon__error_code__descriptor, c->code, code);
    pd_log(ends ? PD_LOG_WARNING : PD_LOG_INFO, "%s (%s): told %s%s%s: %s, at byte %llu%s%s",
           s->connection->peer, s->client_name, code, c->field && *c->field ? " in " : "",
           c->field ? c->field : "", c->text, (unsigned long long)c->offset, count,
           ends ? "; the connection ends" : "");
}

pd_heard pd_session_complain(pd_session *s, const pd_complaint *c) {
    Photon__ServerMessage message = PHOTON__SERVER_MESSAGE__INIT;
    Photon__Error error = PHOTON__ERROR__INIT;
    error.code = (Photon__ErrorCode)c->code;
    error.scope = c->scope;
    error.run = c->run;
    if (c->run_id)
        error.run_id = (ProtobufCBinaryData){PD_RUN_ID_BYTES, (uint8_t *)(uintptr_t)c->run_id};
    error.sequence = c->sequence;
    error.field = (char *)(uintptr_t)(c->field ? c->field : "");
    error.offset = c->offset;
    error.retry_after_ms = c->retry_after_ms;
    error.text = (char *)(uintptr_t)c->text;
    message.body_case = PHOTON__SERVER_MESSAGE__BODY_ERROR;
    message.error = &error;
    pd_session__send(s, &message);
    complaint_log(s, c);
    if (c->scope != PHOTON__ERROR_SCOPE__SCOPE_CONNECTION)
        return PD_HEARD;
    pd_connection_end(s->connection);
    return PD_HEARD_END;
}

/* An error that ends the connection. */
static pd_heard session_refuse(pd_session *s, int code, const char *field, uint64_t offset,
                               const char *text) {
    pd_count(&s->runs->engine->counters.connection_errors, 1);
    return pd_session_complain(s, &(pd_complaint){.code = code,
                                                  .scope = PHOTON__ERROR_SCOPE__SCOPE_CONNECTION,
                                                  .field = field,
                                                  .offset = offset,
                                                  .text = text});
}

static pd_heard session_refuse_fault(pd_session *s, wire_status status, const wire_fault *fault) {
    return session_refuse(s, status == WIRE_LIMIT ? CODE(LIMIT) : CODE(MALFORMED), fault->field,
                          s->body_offset + fault->offset, fault->text);
}

/* ---- runs of this connection ---- */

pd_attachment *pd_session__attachment(pd_session *s, const pd_run *run) {
    for (size_t i = 0; i < s->n_attached; i++)
        if (s->attached[i].run == run)
            return &s->attached[i];
    return NULL;
}

pd_attachment *pd_session__by_handle(pd_session *s, uint32_t handle) {
    for (size_t i = 0; i < s->n_attached; i++)
        if (s->attached[i].handle == handle && handle != 0)
            return &s->attached[i];
    return NULL;
}

/* A message for a run that is not attached: one that was is passed over (its end was told), another is an error. */
pd_heard pd_session__unknown_run(pd_session *s, uint32_t handle, const char *field, uint64_t offset) {
    if (handle != 0 && handle <= s->last_handle) {
        pd_count(&s->runs->engine->counters.batches_refused, 1);
        return PD_HEARD;
    }
    return session_refuse(s, CODE(UNKNOWN_RUN), field, offset, "no Opened gave this handle");
}

void pd_session_leave(pd_session *s) {
    if (s->batch_waits)
        pd_stage_drop(&s->runs->engine->stages, PD_STAGE_SOCKET, PD_CAUSE_CONNECTION, s->batch_photons);
    s->batch_waits = false;
    for (size_t i = 0; i < s->n_attached; i++)
        pd_run_detach(s->attached[i].run);
    free(s->attached);
    s->attached = NULL;
    s->n_attached = s->cap_attached = 0;
    if (s->welcomed)
        pd_producers_leave(&s->connection->server->producers, s->instance, s);
}

/* ---- Hello ---- */

static size_t session_rights(const pd_session *s, Photon__Right rights[3]) {
    size_t n = 0;
    if (s->rights & PD_RIGHT_SEND)
        rights[n++] = PHOTON__RIGHT__RIGHT_SEND;
    if (s->rights & PD_RIGHT_CONTROL)
        rights[n++] = PHOTON__RIGHT__RIGHT_CONTROL;
    if (s->rights & PD_RIGHT_VIEW)
        rights[n++] = PHOTON__RIGHT__RIGHT_VIEW;
    return n;
}

static void session_welcome(pd_session *s) {
    const pd_config *config = s->runs->engine->config;
    Photon__ServerMessage message = PHOTON__SERVER_MESSAGE__INIT;
    Photon__Welcome welcome = PHOTON__WELCOME__INIT;
    Photon__Limits limits = PHOTON__LIMITS__INIT;
    Photon__Right rights[3];
    limits.message_bytes = config->message_bytes;
    limits.batch_items = config->batch_bytes;
    limits.datasets = config->max_datasets;
    limits.attribute_bytes = config->max_attribute_bytes;
    limits.in_flight_bytes = pd_session__in_flight_bytes(config);
    limits.idle_ms = (uint32_t)config->idle_timeout_ms;
    limits.runs = config->max_runs_per_connection;
    limits.attributes = config->max_attributes;
    welcome.software = (char *)(uintptr_t) "photond " PHOTOND_VERSION;
    welcome.limits = &limits;
    welcome.heartbeat_ms = (uint32_t)config->heartbeat_ms;
    welcome.n_rights = session_rights(s, rights);
    welcome.rights = rights;
    welcome.monotonic_ns = uv_hrtime();
    welcome.utc_ns = pd_utc_ns();
    message.body_case = PHOTON__SERVER_MESSAGE__BODY_WELCOME;
    message.welcome = &welcome;
    pd_session__send(s, &message);
}

/* Why a Hello is refused; NULL: it is not. */
static const char *hello_fault(const Photon__Hello *hello, const char **field) {
    size_t name = strlen(hello->client_name), instance = strlen(hello->instance);
    *field = "hello.client_name";
    if (name < 1 || name > PD_CLIENT_NAME_BYTES)
        return "1 to 128 bytes are needed";
    *field = "hello.instance";
    if (instance < 1 || instance > PD_INSTANCE_BYTES)
        return "1 to 128 bytes are needed";
    *field = "hello.software";
    if (strlen(hello->software) > PD_SOFTWARE_BYTES)
        return "128 bytes are the most";
    return NULL;
}

/* Adds the rights of a token that is shown. Returns why the client may not come in; NULL: it may. */
static const char *hello_authorize(pd_session *s, const Photon__Hello *hello, const char **field) {
    *field = "hello.token";
    if (hello->token.len) {
        const pd_token *token =
            pd_tokens_find(s->connection->server->access.tokens, hello->token.data, hello->token.len);
        if (!token)
            return "this token is not known here";
        s->rights |= token->rights;
        s->token = *token;
        s->by_token = true;
        pd_connection_add_name(s->connection, "token", token->name);
        if (!pd_token_speaks_for(token, s->instance)) {
            *field = "hello.instance";
            return "this token may not speak for this instance";
        }
    }
    if (s->rights)
        return NULL;
    return hello->token.len ? "this token gives no rights" : "a token or a certificate is needed here";
}

static void session_superseded(pd_session *before) {
    pd_session_complain(before, &(pd_complaint){.code = CODE(SUPERSEDED),
                                                .scope = PHOTON__ERROR_SCOPE__SCOPE_CONNECTION,
                                                .text = "a newer connection of this producer took over"});
}

static pd_heard session_come_in(pd_session *s) {
    s->welcomed = true;
    pd_log(PD_LOG_INFO, "%s: %s, instance %s, epoch %llu, %s", s->connection->peer, s->client_name,
           s->instance, (unsigned long long)s->epoch, *s->software ? s->software : "software not told");
    session_welcome(s);
    return PD_HEARD;
}

static pd_heard session_arrive(pd_session *s, uint64_t offset) {
    pd_session *before = NULL;
    uint64_t current = 0;
    switch (
        pd_producers_arrive(&s->connection->server->producers, s->instance, s->epoch, s, &before, &current)) {
    case PD_ARRIVED:
        break;
    case PD_ARRIVAL_STALE: {
        char text[96];
        snprintf(text, sizeof text, "a later start of this producer is known: epoch %llu",
                 (unsigned long long)current);
        pd_count(&s->runs->engine->counters.connection_errors, 1);
        return pd_session_complain(s, &(pd_complaint){.code = CODE(STALE_EPOCH),
                                                      .scope = PHOTON__ERROR_SCOPE__SCOPE_CONNECTION,
                                                      .field = "hello.epoch",
                                                      .sequence = current,
                                                      .offset = offset,
                                                      .text = text});
    }
    case PD_ARRIVAL_NO_ROOM:
        return session_refuse(s, CODE(NO_ROOM), "hello.instance", offset, "no room for another producer");
    }
    if (before)
        session_superseded(before);
    return session_come_in(s);
}

static pd_heard session_hello(pd_session *s, const Photon__Hello *hello, uint64_t offset) {
    const char *field = NULL;
    if (s->welcomed)
        return session_refuse(s, CODE(PROTOCOL), "hello", offset, "Hello was said before");
    const char *fault = hello_fault(hello, &field);
    if (fault)
        return session_refuse(s, CODE(MALFORMED), field, offset, fault);
    snprintf(s->client_name, sizeof s->client_name, "%s", hello->client_name);
    snprintf(s->instance, sizeof s->instance, "%s", hello->instance);
    snprintf(s->software, sizeof s->software, "%s", hello->software);
    s->epoch = hello->epoch;
    fault = hello_authorize(s, hello, &field);
    if (fault) {
        pd_count(&s->runs->engine->counters.not_authorized, 1);
        return session_refuse(s, CODE(NOT_AUTHORIZED), field, offset, fault);
    }
    return s->rights & PD_RIGHT_SEND ? session_arrive(s, offset) : session_come_in(s);
}

/* ---- Ping, Close ---- */

static pd_heard session_ping(pd_session *s, const Photon__Ping *ping, uint64_t offset) {
    Photon__ServerMessage message = PHOTON__SERVER_MESSAGE__INIT;
    Photon__Pong pong = PHOTON__PONG__INIT;
    if (ping->run != 0) {
        pd_attachment *a = pd_session__by_handle(s, ping->run);
        if (a)
            pd_run_alive(a->run, ping->instrument_time_valid, ping->instrument_time);
        else if (pd_session__unknown_run(s, ping->run, "ping.run", offset) == PD_HEARD_END)
            return PD_HEARD_END;
    }
    pong.id = ping->id;
    pong.monotonic_ns = uv_hrtime();
    pong.utc_ns = pd_utc_ns();
    message.body_case = PHOTON__SERVER_MESSAGE__BODY_PONG;
    message.pong = &pong;
    pd_session__send(s, &message);
    return PD_HEARD;
}

static pd_heard close_refuse(pd_session *s, uint32_t run, int code, uint64_t sequence, uint64_t offset,
                             const char *text) {
    return pd_session_complain(s, &(pd_complaint){.code = code,
                                                  .scope = PHOTON__ERROR_SCOPE__SCOPE_BATCH,
                                                  .run = run,
                                                  .sequence = sequence,
                                                  .field = "close.last_sequence",
                                                  .offset = offset,
                                                  .text = text});
}

static pd_heard session_close(pd_session *s, const Photon__Close *close, uint64_t offset) {
    char text[128];
    pd_attachment *a = pd_session__by_handle(s, close->run);
    if (!a && close->run != 0 && close->run <= s->last_handle)
        return close_refuse(s, close->run, CODE(RUN_CLOSED), 0, offset, "the run has ended before");
    if (!a)
        return pd_session__unknown_run(s, close->run, "close.run", offset);
    uint64_t received = a->run->received;
    if (close->last_sequence > received) {
        snprintf(text, sizeof text, "%llu is told to be the last, %llu was the last received",
                 (unsigned long long)close->last_sequence, (unsigned long long)received);
        return close_refuse(s, close->run, CODE(HOLE), received + 1, offset, text);
    }
    if (close->last_sequence < received) {
        snprintf(text, sizeof text, "%llu is told to be the last, but %llu was received",
                 (unsigned long long)close->last_sequence, (unsigned long long)received);
        return close_refuse(s, close->run, CODE(PROTOCOL), close->last_sequence, offset, text);
    }
    pd_run_close(a->run, NULL);
    return PD_HEARD;
}

/* ---- dispatch ---- */

static pd_heard session_dispatch(pd_session *s, const Photon__ClientMessage *m, uint64_t offset) {
    switch (m->body_case) {
    case PHOTON__CLIENT_MESSAGE__BODY_HELLO:
        return session_hello(s, m->hello, offset);
    case PHOTON__CLIENT_MESSAGE__BODY_OPEN:
        return pd_session__open(s, m->open, offset);
    case PHOTON__CLIENT_MESSAGE__BODY_ATTRIBUTES:
        return pd_session__attributes(s, m->attributes, offset);
    case PHOTON__CLIENT_MESSAGE__BODY_MARKER:
        return pd_session__marker(s, m->marker, offset);
    case PHOTON__CLIENT_MESSAGE__BODY_GAP:
        return pd_session__gap(s, m->gap, offset);
    case PHOTON__CLIENT_MESSAGE__BODY_FLUSH:
        return pd_session__flush(s, m->flush, offset);
    case PHOTON__CLIENT_MESSAGE__BODY_CLOSE:
        return session_close(s, m->close, offset);
    case PHOTON__CLIENT_MESSAGE__BODY_PING:
        return session_ping(s, m->ping, offset);
    case PHOTON__CLIENT_MESSAGE__BODY_PONG:
        return PD_HEARD;
    default:
        return session_refuse(s, CODE(MALFORMED), "", offset, "the message cannot be read");
    }
}

/* All but Batch: checked, unpacked by protobuf-c, carried out. */
static pd_heard session_unpack(pd_session *s, const uint8_t *message, size_t bytes, uint64_t offset) {
    wire_fault fault = {0};
    wire_status status =
        wire_message_check(&photon__client_message__descriptor, message, bytes, WIRE_MAX_FIELDS, &fault);
    if (status != WIRE_OK)
        return session_refuse_fault(s, status, &fault);
    Photon__ClientMessage *m = photon__client_message__unpack(NULL, bytes, message);
    if (!m)
        return session_refuse(s, CODE(MALFORMED), "", offset, "the message cannot be unpacked");
    pd_heard heard = session_dispatch(s, m, offset);
    photon__client_message__free_unpacked(m, NULL);
    return heard;
}

static bool kind_is_known(uint32_t kind) {
    return kind >= PHOTON__CLIENT_MESSAGE__BODY_HELLO && kind <= PHOTON__CLIENT_MESSAGE__BODY_PONG;
}

pd_heard pd_session_message(pd_session *s, const uint8_t *message, size_t bytes, uint64_t offset,
                            size_t prefix) {
    s->body_offset = offset + prefix;
    if (s->welcomed) {
        wire_fault fault = {0};
        wire_batch *batch = &s->connection->server->batch;
        wire_status status = wire_batch_parse(message, bytes, batch, &fault);
        if (status == WIRE_OK)
            return pd_session__batch(s, batch, offset);
        if (status != WIRE_OTHER)
            return session_refuse_fault(s, status, &fault);
    }
    uint32_t kind = wire_message_kind(message, bytes);
    if (!kind_is_known(kind)) {
        char name[16], text[96];
        snprintf(text, sizeof text, "unknown message %s",
                 wire_message_kind_text(&photon__client_message__descriptor, kind, name));
        return session_refuse(s, kind ? CODE(UNKNOWN_MESSAGE) : CODE(MALFORMED), "", offset,
                              bytes ? text : "an empty message");
    }
    if (!s->welcomed && kind != PHOTON__CLIENT_MESSAGE__BODY_HELLO)
        return session_refuse(s, CODE(PROTOCOL), "", offset, "the first message must be Hello");
    return session_unpack(s, message, bytes, offset);
}

#include <stdio.h>
#include <string.h>

#include "internal.h"

static photon_client_run *answer_run(const photon_client *c, uint32_t handle) {
    for (photon_client_run *run = c->runs; handle && run; run = run->next)
        if (run->handle == handle)
            return run;
    return NULL;
}

/* The newest run of that id: an earlier one may have been given up. */
static photon_client_run *answer_run_by_id(const photon_client *c, const ProtobufCBinaryData *id) {
    for (photon_client_run *run = c->runs; run; run = run->next)
        if (id->len == sizeof run->run_id && memcmp(id->data, run->run_id, id->len) == 0)
            return run;
    return NULL;
}

static void answer_pause(photon_client *c, uint32_t handle, bool paused, uint32_t reason, const char *text) {
    if (handle == 0)
        c->paused = paused;
    for (photon_client_run *run = c->runs; run; run = run->next) {
        if (handle != 0 && run->handle != handle)
            continue;
        if (run->paused != paused || run->pause_reason != reason)
            client__news(c, paused ? PHOTON_CLIENT_EVENT_PAUSED : PHOTON_CLIENT_EVENT_RESUMED, run, reason,
                         text);
        run->paused = paused;
        run->pause_reason = reason;
        snprintf(run->pause_text, sizeof run->pause_text, "%s", text);
    }
}

static void answer_pong(photon_client *c, uint64_t id) {
    Photon__Pong pong = PHOTON__PONG__INIT;
    Photon__ClientMessage message = PHOTON__CLIENT_MESSAGE__INIT;
    pong.id = id;
    pong.monotonic_ns = client__now_ns();
    pong.utc_ns = client__utc_ns();
    message.body_case = PHOTON__CLIENT_MESSAGE__BODY_PONG;
    message.pong = &pong;
    client__output_pending(c, &message);
}

/* How long a run waits that the server has no room for at the moment, as an attempt of connecting. */
enum { ANSWER_REOPEN_ATTEMPT = 3 };

/* The server cannot take a run again yet that it was sent before. */
static bool answer_is_for_later(const photon_client_run *run, const Photon__Error *error) {
    return run->phase == CLIENT_RUN_OPEN && run->handle == 0 &&
           error->code == PHOTON__ERROR_CODE__ERROR_NO_ROOM;
}

static void answer_error(photon_client *c, const Photon__Error *error) {
    photon_client_error err;
    client__refused(&err, error);
    if (error->scope == PHOTON__ERROR_SCOPE__SCOPE_CONNECTION) {
        client__fail(c, &err);
        return;
    }
    photon_client_run *run = answer_run(c, error->run);
    if (!run)
        run = answer_run_by_id(c, &error->run_id);
    if (run && answer_is_for_later(run, error))
        run->reopen_ns =
            client__now_ns() + client__backoff_ns(c, ANSWER_REOPEN_ATTEMPT, error->retry_after_ms);
    else if (run && error->scope == PHOTON__ERROR_SCOPE__SCOPE_BATCH)
        client__run_refused(run, &err);
    else if (run)
        client__run_fail(run, &err);
}

static void answer_resend(photon_client *c, const Photon__Resend *resend) {
    photon_client_run *run = answer_run(c, resend->run);
    if (!run)
        return;
    client__news(c, PHOTON_CLIENT_EVENT_RESENDING, run, 0, resend->text);
    client__run_rewind(run, resend->from_sequence);
}

/* Gives the message to whom it is for. Returns whether that one keeps it. */
static bool answer_keep(photon_client *c, Photon__ServerMessage *m) {
    photon_client_run *run = NULL;
    if (m->body_case == PHOTON__SERVER_MESSAGE__BODY_OPENED) {
        run = answer_run_by_id(c, &m->opened->run_id);
        if (run && run->phase == CLIENT_RUN_OPENING) {
            client__run_opened(run, m);
            return true;
        }
        if (run && run->phase == CLIENT_RUN_OPEN && run->handle == 0)
            client__run_attached(run, m->opened);
    } else if (m->body_case == PHOTON__SERVER_MESSAGE__BODY_CLOSED) {
        run = answer_run(c, m->closed->run);
        if (!run)
            run = answer_run_by_id(c, &m->closed->run_id);
        if (run && !run->closed) {
            client__run_closed(run, m);
            return true;
        }
    }
    return false;
}

/* A message that this library does not know is left unread: later servers may have more to tell. */
static void answer_handle(photon_client *c, const Photon__ServerMessage *m) {
    photon_client_run *run;
    switch (m->body_case) {
    case PHOTON__SERVER_MESSAGE__BODY_ACK:
        run = answer_run(c, m->ack->run);
        if (run)
            client__run_acknowledged(run, m->ack);
        break;
    case PHOTON__SERVER_MESSAGE__BODY_PAUSED:
        answer_pause(c, m->paused->run, true, (uint32_t)m->paused->reason, m->paused->text);
        break;
    case PHOTON__SERVER_MESSAGE__BODY_RESUMED:
        answer_pause(c, m->resumed->run, false, 0, "");
        break;
    case PHOTON__SERVER_MESSAGE__BODY_RESEND:
        answer_resend(c, m->resend);
        break;
    case PHOTON__SERVER_MESSAGE__BODY_PING:
        answer_pong(c, m->ping->id);
        break;
    case PHOTON__SERVER_MESSAGE__BODY_ERROR:
        answer_error(c, m->error);
        break;
    default:
        break;
    }
}

void client__answer(photon_client *c, Photon__ServerMessage *m) {
    if (answer_keep(c, m))
        return;
    answer_handle(c, m);
    photon__server_message__free_unpacked(m, NULL);
}

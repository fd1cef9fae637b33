/* What the runs of a connection tell it, and how they are attached. */
#include <stdlib.h>
#include <string.h>

#include "connection.h"
#include "reply.h"
#include "session.h"

#define CODE(name) PHOTON__ERROR_CODE__ERROR_##name

enum { OPEN_DISK_RETRY_MS = 5000 };

/* ---- answers ---- */

void pd_session__send_packed(pd_session *s, const uint8_t *packed, size_t bytes) {
    uint8_t prefix[WIRE_PREFIX_BYTES_MAX];
    size_t used = wire_prefix_put(prefix, bytes);
    uint8_t *out = packed ? pd_connection_reserve(s->connection, used + bytes) : NULL;
    if (out) {
        memcpy(out, prefix, used);
        memcpy(out + used, packed, bytes);
        pd_connection_commit(s->connection, used + bytes);
    }
}

void pd_session__send_opened(pd_session *s, pd_attachment *a) {
    size_t bytes = 0;
    if (a->handle == 0)
        a->handle = ++s->last_handle;
    uint8_t *packed = pd_reply_opened(a->run, a->handle, &bytes);
    pd_session__send_packed(s, packed, bytes);
    free(packed);
}

/* ---- what a run tells ---- */

static void session_detached(pd_session *s, pd_attachment *a) {
    *a = s->attached[--s->n_attached];
}

static void event_opened(void *user, pd_run *run) {
    pd_session *s = user;
    pd_session__send_opened(s, pd_session__attachment(s, run));
}

static void event_durable(void *user, pd_run *run) {
    pd_session *s = user;
    pd_attachment *a = pd_session__attachment(s, run);
    pd_session__ack_due(s, a);
    pd_session__flushed(s, a);
}

/* What was sent since is not there any more; what is on its way is behind a hole that was told. */
static void event_turned(void *user, pd_run *run) {
    pd_session *s = user;
    pd_attachment *a = pd_session__attachment(s, run);
    Photon__ServerMessage message = PHOTON__SERVER_MESSAGE__INIT;
    Photon__Resend resend = PHOTON__RESEND__INIT;
    if (a->handle == 0) {
        pd_session__send_opened(s, a);
        return;
    }
    resend.run = a->handle;
    resend.from_sequence = run->received + 1;
    resend.text = run->turn_why.text;
    message.body_case = PHOTON__SERVER_MESSAGE__BODY_RESEND;
    message.resend = &resend;
    pd_session__send(s, &message);
    a->hole_told = run->received + 1;
    a->close_refused = false;
    a->told_dropped = a->told_dropped < run->received ? a->told_dropped : run->received;
}

static void event_failed_to_open(pd_session *s, const pd_run *run) {
    static const int codes[] = {
        [PD_OPEN_DONE] = CODE(RUN_FAILED),   [PD_OPEN_TAKEN] = CODE(NAME_TAKEN),
        [PD_OPEN_CLOSED] = CODE(RUN_CLOSED), [PD_OPEN_NOROOM] = CODE(NO_ROOM),
        [PD_OPEN_FAILED] = CODE(RUN_FAILED),
    };
    pd_count(&s->runs->engine->counters.opens_refused, 1);
    pd_session_complain(
        s, &(pd_complaint){.code = codes[run->open_outcome],
                           .scope = PHOTON__ERROR_SCOPE__SCOPE_RUN,
                           .run_id = run->id,
                           .field = run->open_outcome == PD_OPEN_TAKEN ? "open.name" : "",
                           .retry_after_ms = run->open_outcome == PD_OPEN_NOROOM ? OPEN_DISK_RETRY_MS : 0,
                           .text = run->failure.text});
}

static void event_failed(void *user, pd_run *run) {
    pd_session *s = user;
    pd_attachment *a = pd_session__attachment(s, run);
    if (run->open_outcome != PD_OPEN_DONE && run->open_outcome != PD_OPEN_CLOSED)
        event_failed_to_open(s, run);
    else
        pd_session_complain(s, &(pd_complaint){.code = CODE(RUN_FAILED),
                                               .scope = PHOTON__ERROR_SCOPE__SCOPE_RUN,
                                               .run = a->handle,
                                               .run_id = a->handle ? NULL : run->id,
                                               .sequence = run->durable,
                                               .text = run->failure.text});
    session_detached(s, a);
}

static void event_ended(void *user, pd_run *run) {
    pd_session *s = user;
    pd_attachment *a = pd_session__attachment(s, run);
    size_t bytes = 0;
    if (a->handle)
        pd_session__ack_now(s, a, uv_hrtime());
    uint8_t *packed = pd_reply_closed(run, a->handle, &bytes);
    pd_session__send_packed(s, packed, bytes);
    free(packed);
    session_detached(s, a);
}

static const pd_run_events session_run_events = {
    .opened = event_opened,
    .durable = event_durable,
    .turned = event_turned,
    .failed = event_failed,
    .ended = event_ended,
};

/* Room for one more attachment. Returns 0, or -1 when there are too many or out of memory. */
int pd_session__reserve_attachment(pd_session *s) {
    if (s->n_attached >= s->runs->engine->config->max_runs_per_connection)
        return -1;
    if (s->n_attached < s->cap_attached)
        return 0;
    size_t cap = s->cap_attached ? 2 * s->cap_attached : 2;
    pd_attachment *attached = realloc(s->attached, cap * sizeof *attached);
    if (!attached)
        return -1;
    s->attached = attached;
    s->cap_attached = cap;
    return 0;
}

pd_attachment *pd_session__attach(pd_session *s, pd_run *run) {
    pd_attachment *a = &s->attached[s->n_attached++];
    *a = (pd_attachment){.run = run};
    pd_run__epoch(run, s->epoch);
    pd_run_attach(run, &session_run_events, s);
    return a;
}

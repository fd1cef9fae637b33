/* Open: a new run, one that is met again, one that has ended, or a refusal. */
#include <string.h>

#include "connection.h"
#include "open_plan.h"
#include "server.h"
#include "session.h"

#define CODE(name) PHOTON__ERROR_CODE__ERROR_##name

enum { OPEN_RETRY_MS = 1000 };

static pd_heard open_refuse(pd_session *s, const Photon__Open *open, const pd_refusal *why, uint64_t offset) {
    bool has_id = open->run_id.len == PD_RUN_ID_BYTES;
    pd_count(&s->runs->engine->counters.opens_refused, 1);
    return pd_session_complain(
        s, &(pd_complaint){.code = why->code,
                           .scope = PHOTON__ERROR_SCOPE__SCOPE_RUN,
                           .run_id = has_id ? open->run_id.data : NULL,
                           .field = why->field,
                           .offset = offset,
                           .retry_after_ms = why->code == CODE(NO_ROOM) ? OPEN_RETRY_MS : 0,
                           .text = why->text});
}

/* Whether a run of that id may be answered to this producer. */
static int open_may_have(const pd_session *s, const char *instance, const char *failure, pd_refusal *why) {
    if (strcmp(instance, s->instance) != 0)
        return pd_refuse(why, CODE(NOT_AUTHORIZED), "open.run_id",
                         "the run of this id belongs to another producer");
    return failure ? pd_refuse(why, CODE(RUN_FAILED), "open.run_id", failure) : 0;
}

/* The same id again. */
static pd_heard open_again(pd_session *s, const Photon__Open *open, pd_run *run, uint64_t offset) {
    pd_refusal why = {0};
    pd_attachment *a = pd_session__attachment(s, run);
    int failed =
        open_may_have(s, run->instance, run->state == PD_RUN_FAILED ? run->failure.text : NULL, &why);
    if (!failed && !a && pd_session__reserve_attachment(s) != 0)
        failed = pd_refuse(&why, CODE(LIMIT), "open", "more runs than Limits.runs allows");
    if (failed)
        return open_refuse(s, open, &why, offset);
    if (!a)
        a = pd_session__attach(s, run);
    if (run->state == PD_RUN_RUNNING)
        pd_session__send_opened(s, a);
    return PD_HEARD; /* one that is opening or ending answers when it has come so far */
}

static pd_heard open_past(pd_session *s, const Photon__Open *open, const pd_past_run *past, uint64_t offset) {
    pd_refusal why = {0};
    if (open_may_have(s, past->instance, past->failure, &why) != 0)
        return open_refuse(s, open, &why, offset);
    pd_session__send_packed(s, past->closed, past->closed_bytes);
    return PD_HEARD;
}

/* An Open without a name joins the run that was announced for it (armed.h), or gets the configured name. The name is
 * that one's as long as the announcement stands. */
static pd_run_stop open_join(const pd_armed *armed, const pd_config *config, Photon__Open *open) {
    const pd_armed_run *run = *open->name ? NULL : pd_armed_for(armed, open->profile);
    if (run)
        open->name = (char *)(uintptr_t)run->name;
    else if (!*open->name)
        open->name = config->name_pattern;
    return run ? run->stop : (pd_run_stop){0};
}

static pd_heard open_new(pd_session *s, const Photon__Open *asked, uint64_t offset) {
    pd_armed *armed = &s->connection->server->armed;
    Photon__Open joined = *asked, *open = &joined;
    pd_run_stop announced = open_join(armed, s->runs->engine->config, open);
    pd_open_plan plan = {0};
    pd_refusal why = {0};
    pd_run *run = NULL;
    int failed = *open->name ? pd_open_plan_make(&plan, s->runs->engine->config, open, &why)
                             : pd_refuse(&why, CODE(BAD_NAME), "open.name",
                                         "no run is announced that this could join");
    plan.spec.volume = pd_engine_volume(s->runs->engine, open->volume);
    if (!failed && !plan.spec.volume)
        failed = pd_refuse(&why, CODE(NOT_SUPPORTED), "open.volume", "no volume of this name is configured");
    plan.spec.stop = pd_run_stop_over(plan.spec.stop, announced);
    plan.spec.instance = s->instance;
    plan.spec.client_name = s->client_name;
    plan.spec.epoch = s->epoch;
    if (!failed && pd_session__reserve_attachment(s) != 0)
        failed = pd_refuse(&why, CODE(LIMIT), "open", "more runs than Limits.runs allows");
    if (!failed)
        failed = pd_runs_open(s->runs, &plan.spec, &run, &why);
    if (!failed) {
        pd_open_plan_warn(&plan);
        (void)pd_armed_remove(armed, open->name);
    }
    pd_open_plan_free(&plan);
    if (failed)
        return open_refuse(s, open, &why, offset);
    pd_session__attach(s, run);
    return PD_HEARD;
}

/* The producer does not know the run's id any more: the open one of that name is meant. */
static pd_heard open_resume(pd_session *s, const Photon__Open *open, uint64_t offset) {
    pd_refusal why = {0};
    pd_run *run = pd_runs_find_name(s->runs, open->name);
    if (run)
        return open_again(s, open, run, offset);
    pd_refuse(&why, CODE(UNKNOWN_RUN), "open.name", "no run of this id or name is open to be gone on with");
    return open_refuse(s, open, &why, offset);
}

pd_heard pd_session__open(pd_session *s, const Photon__Open *open, uint64_t offset) {
    pd_refusal why = {0};
    if (open->run_id.len != PD_RUN_ID_BYTES) {
        pd_refuse(&why, CODE(MALFORMED), "open.run_id", "16 bytes are needed");
        return open_refuse(s, open, &why, offset);
    }
    if (!(s->rights & PD_RIGHT_SEND)) {
        pd_refuse(&why, CODE(NOT_AUTHORIZED), "", "this client may look, but not send");
        return open_refuse(s, open, &why, offset);
    }
    pd_run *run = pd_runs_find(s->runs, open->run_id.data);
    if (run)
        return open_again(s, open, run, offset);
    const pd_past_run *past = pd_runs_find_past(s->runs, open->run_id.data);
    if (past)
        return open_past(s, open, past, offset);
    if (s->runs->engine->stopping) {
        pd_refuse(&why, CODE(SHUTTING_DOWN), "", "the daemon is stopping");
        return open_refuse(s, open, &why, offset);
    }
    if (open->mode == PHOTON__OPEN_MODE__MODE_RESUME)
        return open_resume(s, open, offset);
    if (s->runs->engine->draining) {
        pd_refuse(&why, CODE(SHUTTING_DOWN), "", "the daemon is being drained: it takes no new runs");
        return open_refuse(s, open, &why, offset);
    }
    return open_new(s, open, offset);
}

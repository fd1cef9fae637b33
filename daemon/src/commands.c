#include "commands.h"

#include <string.h>
#include <uv.h>

#include "log.h"
#include "text.h"
#include "wire/pattern.h"

/* ---- what a request says ---- */

/* A text of the request; `otherwise` when it is not there. NULL with err: it is of another type. */
static const char *request_text(const json_t *request, const char *key, const char *otherwise,
                                pd_error *err) {
    const json_t *value = json_object_get(request, key);
    if (!value && otherwise)
        return otherwise;
    if (!json_is_string(value))
        pd_error_set(err, "\"%s\" must be given, as a string", key);
    return json_string_value(value);
}

static pd_run *request_run(const pd_commands *c, const json_t *request, pd_error *err) {
    const char *name = request_text(request, "run", NULL, err);
    pd_run *run = name ? pd_runs_find_name(&c->server->runs, name) : NULL;
    if (name && !run)
        pd_error_set(err, "there is no open run %.128s", name);
    return run;
}

static json_t *run_reply(const pd_run *run) {
    return json_pack("{s:s, s:s, s:s, s:s?, s:I, s:I, s:I, s:I, s:I}", "run", run->name, "id", run->id_hex,
                     "state", pd_run_state_name(run), "failure",
                     run->state == PD_RUN_FAILED ? run->failure.text : NULL, "received",
                     (json_int_t)run->received, "durable", (json_int_t)run->durable, "exports",
                     (json_int_t)run->summary.exports, "syncs", (json_int_t)run->n_syncs, "parts_closed",
                     (json_int_t)run->n_parts_closed);
}

/* ---- looking ---- */

static json_t *command_status(void *user, const json_t *request, pd_error *err) {
    pd_commands *c = user;
    return pd_look_status(c->look, request, err);
}

/* One run by its id, also when it has ended: for a program that waits for something to become of it. */
static json_t *command_run(void *user, const json_t *request, pd_error *err) {
    pd_commands *c = user;
    char hex[2 * PD_RUN_ID_BYTES + 1];
    const char *id = request_text(request, "id", NULL, err);
    for (size_t i = 0; id && i < c->server->runs.n; i++)
        if (strcmp(c->server->runs.items[i]->id_hex, id) == 0)
            return run_reply(c->server->runs.items[i]);
    for (const pd_past_run *past = c->server->runs.oldest; id && past; past = past->next) {
        if (strcmp(pd_text_hex(hex, past->id, PD_RUN_ID_BYTES), id) == 0)
            return json_pack("{s:s, s:s, s:s, s:s?}", "run", past->name, "id", id, "state",
                             past->failure ? "failed" : "closed", "failure", past->failure);
    }
    if (id)
        pd_error_set(err, "no run of this id is known");
    return NULL;
}

/* ---- runs ---- */

static json_t *command_stop(void *user, const json_t *request, pd_error *err) {
    pd_commands *c = user;
    const char *name = request_text(request, "run", NULL, err);
    if (!name)
        return NULL;
    if (pd_armed_remove(&c->server->armed, name) == 0) {
        pd_log(PD_LOG_INFO, "run %s: no producer is waited for any more, by photonctl", name);
        return json_pack("{s:s, s:s}", "run", name, "state", "disarmed");
    }
    pd_run *run = request_run(c, request, err);
    if (!run)
        return NULL;
    pd_log(PD_LOG_INFO, "run %s: to be closed, by photonctl", run->name);
    pd_run_close(run, "it was stopped by photonctl");
    return run_reply(run);
}

static json_t *command_export(void *user, const json_t *request, pd_error *err) {
    pd_run *run = request_run(user, request, err);
    if (run && run->state == PD_RUN_RUNNING && run->summary.summary) {
        pd_run_summary_export(run);
        return run_reply(run);
    }
    if (run)
        pd_error_set(err, "run %s %s", run->name,
                     run->summary.summary ? "is not running" : "has no summaries");
    return NULL;
}

static json_t *flush_reply(pd_run *run) {
    json_t *reply = run_reply(run);
    uint64_t until = pd_run_flush(run);
    if (reply)
        json_object_set_new(reply, "until", json_integer((json_int_t)until));
    return reply;
}

static pd_run *request_running(const pd_commands *c, const json_t *request, pd_error *err) {
    pd_run *run = request_run(c, request, err);
    if (!run || run->state == PD_RUN_RUNNING)
        return run;
    pd_error_set(err, "run %s is not running", run->name);
    return NULL;
}

static json_t *command_flush(void *user, const json_t *request, pd_error *err) {
    pd_run *run = request_running(user, request, err);
    return run ? flush_reply(run) : NULL;
}

static json_t *command_rotate(void *user, const json_t *request, pd_error *err) {
    pd_run *run = request_running(user, request, err);
    uint64_t until = 0;
    if (!run || pd_run_rotate(run, &until, err) != 0)
        return NULL;
    pd_log(PD_LOG_INFO, "run %s: to go on in a new file, by photonctl", run->name);
    json_t *reply = run_reply(run);
    if (reply)
        json_object_set_new(reply, "until", json_integer((json_int_t)until));
    return reply;
}

static json_t *command_note(void *user, const json_t *request, pd_error *err) {
    pd_run *run = request_running(user, request, err);
    const char *text = run ? request_text(request, "text", NULL, err) : NULL;
    if (!text || pd_run_note(run, text, err) != 0)
        return NULL;
    pd_log(PD_LOG_INFO, "run %s: note by photonctl: %s", run->name, text);
    return flush_reply(run);
}

static int start_check(pd_commands *c, const char *name, const char *profile, bool force, pd_error *err) {
    char line[PD_LOOK_LINE_BYTES], stuck[PD_LOOK_LINE_BYTES];
    const char *fault = wire_pattern_fault(name);
    if (fault)
        return pd_error_set(err, "the name: %s", fault);
    if (*profile && !pd_profiles_find(c->server->engine->config->profiles, profile))
        return pd_error_set(err, "no profile \"%.128s\" is configured", profile);
    if (pd_runs_find_name(&c->server->runs, name))
        return pd_error_set(err, "run %s is open already", name);
    if (c->server->engine->draining)
        return pd_error_set(err, "the daemon is being drained: it takes no new runs");
    if (!force && pd_look_line(c->look, line, stuck) == PD_HEALTH_NOT_OK)
        return pd_error_set(err, "the daemon is not OK (%.300s)", line);
    return 0;
}

static int start_stop(const json_t *request, pd_run_stop *stop, pd_error *err) {
    const json_t *photons = json_object_get(request, "stop_photons"),
                 *bytes = json_object_get(request, "stop_bytes"),
                 *seconds = json_object_get(request, "stop_seconds");
    if ((photons && json_integer_value(photons) <= 0) || (bytes && json_integer_value(bytes) <= 0) ||
        (seconds && !(json_number_value(seconds) > 0)))
        return pd_error_set(err, "a stop condition is a number above 0");
    *stop = (pd_run_stop){.photons = (uint64_t)json_integer_value(photons),
                          .bytes = (uint64_t)json_integer_value(bytes),
                          .ms = pd_run_stop_ms(json_number_value(seconds))};
    return 0;
}

static json_t *command_start(void *user, const json_t *request, pd_error *err) {
    pd_commands *c = user;
    pd_run_stop stop;
    const char *name = request_text(request, "run", NULL, err);
    const char *profile = name ? request_text(request, "profile", "", err) : NULL;
    if (!profile ||
        start_check(c, name, profile, json_is_true(json_object_get(request, "force")), err) != 0 ||
        start_stop(request, &stop, err) != 0 ||
        pd_armed_add(&c->server->armed, name, profile, stop, uv_hrtime(), err) != 0)
        return NULL;
    pd_log(PD_LOG_INFO, "run %s: waits for its producer, by photonctl", name);
    return json_pack("{s:s, s:s}", "run", name, "state", "armed");
}

/* ---- the daemon ---- */

/* No new runs from now on; or again, with "off". */
static json_t *command_drain(void *user, const json_t *request, pd_error *err) {
    pd_commands *c = user;
    (void)err;
    bool on = !json_is_true(json_object_get(request, "off"));
    if (on != c->server->engine->draining)
        pd_log(PD_LOG_INFO,
               on ? "new runs are refused from now on, by photonctl; %zu are open"
                  : "new runs are taken again, by photonctl; %zu are open",
               c->server->runs.n);
    c->server->engine->draining = on;
    return json_pack("{s:b, s:I}", "draining", on, "open", (json_int_t)c->server->runs.n);
}

static json_t *command_reload(void *user, const json_t *request, pd_error *err) {
    pd_commands *c = user;
    (void)request;
    return c->reload(c->user, err);
}

const pd_control_command pd_command_list[] = {
    {"status", command_status, PD_RIGHT_VIEW},    {"run", command_run, PD_RIGHT_VIEW},
    {"start", command_start, PD_RIGHT_CONTROL},   {"stop", command_stop, PD_RIGHT_CONTROL},
    {"flush", command_flush, PD_RIGHT_CONTROL},   {"note", command_note, PD_RIGHT_CONTROL},
    {"rotate", command_rotate, PD_RIGHT_CONTROL}, {"export", command_export, PD_RIGHT_CONTROL},
    {"drain", command_drain, PD_RIGHT_CONTROL},   {"reload", command_reload, PD_RIGHT_CONTROL},
};
const size_t pd_n_commands = sizeof pd_command_list / sizeof *pd_command_list;

#include "status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

const char *pd_health_name(pd_health health) {
    static const char *const names[] = {"ok", "degraded", "not_ok"};
    return (unsigned)health < sizeof names / sizeof names[0] ? names[health] : "unknown";
}

/* The functions below add one member. What cannot be added for want of memory is left out, which the
 * reader of a status can live with; only an object that cannot be made at all is a failure. */

static void status_text(json_t *to, const char *key, const char *text) {
    json_t *value = text ? json_string(text) : json_null();
    if (text && !value) { /* not UTF-8 */
        char safe[512];
        pd_text_escape(safe, sizeof safe, text);
        value = json_string(safe);
    }
    json_object_set_new(to, key, value);
}

static void status_count(json_t *to, const char *key, uint64_t count) {
    json_object_set_new(to, key, json_integer(count > INT64_MAX ? INT64_MAX : (json_int_t)count));
}

static void status_number(json_t *to, const char *key, double value) {
    json_object_set_new(to, key, isfinite(value) ? json_real(value) : json_null());
}

/* A time since something that may never have happened. */
static void status_age(json_t *to, const char *key, double age_s) {
    json_object_set_new(to, key, age_s >= 0 && isfinite(age_s) ? json_real(age_s) : json_null());
}

static void status_flag(json_t *to, const char *key, bool flag) {
    json_object_set_new(to, key, json_boolean(flag));
}

static json_t *status_datasets(const pd_status_run *run) {
    json_t *list = json_array();
    for (size_t i = 0; i < run->n_datasets; i++) {
        json_t *d = json_object();
        status_text(d, "name", run->datasets[i].name);
        status_text(d, "type", run->datasets[i].type);
        status_count(d, "items", run->datasets[i].items);
        status_count(d, "durable", run->datasets[i].durable);
        json_array_append_new(list, d);
    }
    return list;
}

static json_t *status_run_counters(const pd_status_run *run) {
    json_t *c = json_object();
    status_count(c, "photons", run->photons);
    status_count(c, "photons_durable", run->photons_durable);
    status_count(c, "batches", run->batches);
    status_count(c, "duplicates", run->duplicates);
    status_count(c, "received_bytes", run->received_bytes);
    status_count(c, "file_bytes", run->file_bytes);
    status_count(c, "dropped_photons", run->dropped_photons);
    status_count(c, "dropped_batches", run->dropped_batches);
    status_count(c, "lost_before", run->lost_before);
    status_count(c, "exports", run->exports);
    status_count(c, "exports_failed", run->exports_failed);
    status_count(c, "exports_skipped", run->exports_skipped);
    return c;
}

static json_t *status_run(const pd_status_run *run) {
    json_t *r = json_object();
    status_text(r, "name", run->name);
    status_text(r, "id", run->id);
    status_text(r, "state", run->state);
    status_text(r, "profile", run->profile);
    status_text(r, "client", run->client);
    status_text(r, "path", run->path);
    status_text(r, "volume", run->volume);
    json_object_set_new(r, "part", json_integer((json_int_t)run->part));
    status_text(r, "waits", run->waits);
    status_text(r, "failure", run->failure);
    status_number(r, "age_s", run->age_s);
    status_number(r, "photons_per_s", run->photons_per_s);
    status_number(r, "bytes_per_s", run->bytes_per_s);
    status_count(r, "sequence_received", run->received);
    status_count(r, "sequence_durable", run->durable);
    status_age(r, "durable_age_s", run->durable_age_s);
    status_text(r, "overflow", run->drops ? "drop" : "block");
    status_count(r, "photons_in_flight", run->photons_in_flight);
    status_count(r, "ring_slots", run->ring_slots);
    status_count(r, "summary_backlog", run->summary_backlog);
    status_age(r, "last_export_age_s", run->last_export_age_s);
    status_count(r, "last_export_photons", run->last_export_photons);
    json_object_set_new(r, "counters", status_run_counters(run));
    json_object_set_new(r, "datasets", status_datasets(run));
    return r;
}

static json_t *status_connection(const pd_status_connection *connection) {
    json_t *c = json_object();
    status_text(c, "peer", connection->peer);
    status_text(c, "client", connection->client);
    status_text(c, "software", connection->software);
    status_text(c, "instance", connection->instance);
    status_number(c, "age_s", connection->age_s);
    status_number(c, "silent_s", connection->silent_s);
    status_flag(c, "silent", connection->silent);
    status_flag(c, "paused", connection->paused);
    status_count(c, "runs", connection->n_runs);
    status_count(c, "received_bytes", connection->received_bytes);
    return c;
}

static json_t *status_armed(const pd_status_armed *armed) {
    json_t *a = json_object();
    status_text(a, "name", armed->name);
    status_text(a, "profile", armed->profile);
    status_number(a, "age_s", armed->age_s);
    return a;
}

static json_t *status_counters(const pd_status_counters *counters) {
    json_t *c = json_object();
#define STATUS_COUNTER(name, text) status_count(c, #name, counters->name);
    PD_STATUS_COUNTER_MAP(STATUS_COUNTER)
#undef STATUS_COUNTER
    return c;
}

static json_t *status_stage(const pd_status_stage *stage) {
    static const char *const causes[] = {
#define STATUS_CAUSE(name, text) text,
        PD_CAUSE_MAP(STATUS_CAUSE)
#undef STATUS_CAUSE
    };
    json_t *j = json_object(), *dropped = json_object();
    status_count(j, "in", stage->count.in);
    status_count(j, "out", stage->count.out);
    status_count(j, "in_flight", stage->in_flight);
    for (size_t i = 0; i < PD_CAUSES; i++)
        if (stage->count.dropped[i] > 0)
            status_count(dropped, causes[i], stage->count.dropped[i]);
    json_object_set_new(j, "dropped", dropped);
    return j;
}

static json_t *status_stages(const pd_status_stage *stages) {
    json_t *j = json_object();
#define STATUS_STAGE(name, text) json_object_set_new(j, text, status_stage(&stages[PD_STAGE_##name]));
    PD_STAGE_MAP(STATUS_STAGE)
#undef STATUS_STAGE
    return j;
}

static json_t *status_ring(const pd_status *s) {
    json_t *r = json_object();
    status_count(r, "slots", s->ring_slots);
    status_count(r, "slot_bytes", s->ring_slot_bytes);
    status_count(r, "used", s->ring_used);
    status_count(r, "high_water", s->ring_high_water);
    status_count(r, "reserved", s->ring_reserved);
    status_count(r, "stalled", s->stalled);
    return r;
}

static json_t *status_disk(const pd_status_volume *volume) {
    json_t *d = json_object();
    if (volume->free_bytes != UINT64_MAX)
        status_count(d, "free_bytes", volume->free_bytes);
    else
        status_text(d, "free_bytes", NULL);
    status_flag(d, "full", volume->full);
    return d;
}

static json_t *status_syncs(const pd_disk_syncs *syncs) {
    json_t *s = json_object();
    status_count(s, "n", syncs->n);
    status_number(s, "median_ms", (double)syncs->median_ns / 1e6);
    status_number(s, "p99_ms", (double)syncs->p99_ns / 1e6);
    status_number(s, "longest_ms", (double)syncs->longest_ns / 1e6);
    return s;
}

static json_t *status_volumes(const pd_status *s) {
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_volumes; i++) {
        const pd_status_volume *volume = &s->volumes[i];
        json_t *v = status_disk(volume);
        status_text(v, "name", volume->name);
        status_text(v, "data_dir", volume->data_dir);
        status_count(v, "runs", volume->n_runs);
        status_number(v, "busy_s", volume->busy_s);
        status_number(v, "export_s", volume->export_s);
        json_object_set_new(v, "syncs", status_syncs(&volume->syncs));
        json_array_append_new(list, v);
    }
    return list;
}

static json_t *status_recovery(const pd_recovery_state *recovery) {
    json_t *r = json_object(), *failures = json_array();
    status_count(r, "recovered", recovery->recovered);
    status_count(r, "closed", recovery->closed);
    status_count(r, "removed", recovery->removed);
    status_count(r, "cut_bytes", recovery->cut_bytes);
    status_count(r, "failed", recovery->failed);
    for (size_t i = 0; i < recovery->n_failures; i++) {
        json_t *f = json_object();
        status_text(f, "file", recovery->failures[i].file);
        status_text(f, "text", recovery->failures[i].text);
        json_array_append_new(failures, f);
    }
    json_object_set_new(r, "failures", failures);
    return r;
}

static json_t *status_rates(const pd_status *s) {
    json_t *r = json_object();
    status_number(r, "photons_per_s", s->photons_per_s);
    status_number(r, "bytes_per_s", s->bytes_per_s);
    status_number(r, "written_per_s", s->written_per_s);
    return r;
}

static json_t *status_texts(const char *const *texts, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        char safe[512];
        pd_text_escape(safe, sizeof safe, texts[i]);
        json_array_append_new(list, json_string(safe));
    }
    return list;
}

json_t *pd_status_json(const pd_status *s) {
    json_t *j = json_object();
    if (!j)
        return NULL;
    status_text(j, "version", s->version);
    status_text(j, "health", pd_health_name(s->health));
    json_object_set_new(j, "reasons", status_texts(s->reasons, s->n_reasons));
    status_flag(j, "stopping", s->stopping);
    status_flag(j, "draining", s->draining);
    json_object_set_new(j, "pid", json_integer(s->pid));
    status_number(j, "uptime_s", s->uptime_s);
    status_text(j, "data_dir", s->volumes[0].data_dir);
    json_object_set_new(j, "listen", status_texts(s->listen, s->n_listen));
    json_object_set_new(j, "rates", status_rates(s));
    json_object_set_new(j, "ring", status_ring(s));
    json_object_set_new(j, "disk", status_disk(&s->volumes[0]));
    json_object_set_new(j, "volumes", status_volumes(s));
    status_count(j, "certificates_pending", s->certificates_pending);
    status_count(j, "hooks_pending", s->hooks_pending);
    if (s->recovery)
        json_object_set_new(j, "recovery", status_recovery(s->recovery));
    json_object_set_new(j, "counters", status_counters(&s->counters));
    json_object_set_new(j, "stages", status_stages(s->stages));
    json_t *runs = json_array(), *connections = json_array(), *armed = json_array();
    for (size_t i = 0; i < s->n_runs; i++)
        json_array_append_new(runs, status_run(&s->runs[i]));
    for (size_t i = 0; i < s->n_connections; i++)
        json_array_append_new(connections, status_connection(&s->connections[i]));
    for (size_t i = 0; i < s->n_armed; i++)
        json_array_append_new(armed, status_armed(&s->armed[i]));
    json_object_set_new(j, "armed", armed);
    json_object_set_new(j, "runs", runs);
    json_object_set_new(j, "connections", connections);
    return j;
}

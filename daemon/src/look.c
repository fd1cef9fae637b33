#include "look.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "status.h"

enum {
    LOOK_SAMPLE_MS = 1000,
    LOOK_REASONS_MAX = 8,
    LOOK_REASON_BYTES = 256,
    LOOK_DISK_SLOW_S = 1,
    LOOK_DISK_STUCK_S = 10,
    LOOK_EXPORT_SLOW_S = 30,
    LOOK_EXPORT_STUCK_S = 120
};

#define NS_PER_S 1e9

/* The arrays behind one status. */
typedef struct look_views {
    pd_status status;
    pd_status_run *runs;
    pd_status_dataset *datasets;
    pd_status_connection *connections;
    pd_status_volume volumes[1 + PD_VOLUMES_MAX];
    pd_status_armed armed[PD_ARMED_MAX];
    char texts[LOOK_REASONS_MAX][LOOK_REASON_BYTES];
    const char *reasons[LOOK_REASONS_MAX];
} look_views;

static double look_age(uint64_t since_ns, uint64_t now_ns) {
    return since_ns ? (double)(now_ns - since_ns) / NS_PER_S : -1;
}

/* ---- rates ---- */

static void look_sample(uv_timer_t *timer) {
    pd_look *look = timer->data;
    const pd_runs *runs = &look->server->runs;
    const pd_counters *counters = &look->server->engine->counters;
    uint64_t now = uv_hrtime();
    pd_rate_sample(&look->photons, now, pd_counted(&counters->photons_received));
    pd_rate_sample(&look->received, now, pd_counted(&counters->bytes_received));
    pd_rate_sample(&look->written, now, pd_counted(&counters->bytes_written));
    for (size_t i = 0; i < runs->n; i++) {
        pd_rate_sample(&runs->items[i]->photon_rate, now, pd_run_photons(runs->items[i]));
        pd_rate_sample(&runs->items[i]->byte_rate, now, runs->items[i]->received_bytes);
    }
}

/* ---- runs ---- */

static const char *look_waits(const pd_server *server, const pd_run *run, uint64_t now) {
    pd_volume_state disk = pd_volume_look(run->volume);
    bool waits = false;
    for (const pd_connection *c = server->waiting; c && !waits; c = c->next_waiting)
        waits = run->events_user == &c->session;
    if (!waits)
        return NULL;
    if (disk.full)
        return "disk_full";
    return disk.busy_ns && now > disk.busy_ns + PD_DISK_SLOW_NS ? "disk_slow" : "ring_full";
}

static void look_datasets(const pd_run *run, pd_status_dataset *out) {
    for (uint32_t c = 0; c < run->n_columns; c++) {
        const pd_column *column = &run->columns[c];
        out[c] = (pd_status_dataset){.name = column->dataset.name,
                                     .type = d7_type_name(column->dataset.type),
                                     .items = column->items,
                                     .durable = column->durable_items};
    }
}

static void look_run(const pd_server *server, const pd_run *run, uint64_t now, pd_status_dataset *datasets,
                     pd_status_run *out) {
    const pd_run_summary *s = &run->summary;
    uint64_t backlog = 0;
    for (uint32_t g = 0; s->summary && g < run->n_groups; g++)
        backlog += run->groups[g].items - s->binned[g];
    look_datasets(run, datasets);
    *out = (pd_status_run){
        .name = run->name,
        .id = run->id_hex,
        .state = pd_run_state_name(run),
        .profile = run->profile,
        .client = run->client_name,
        .path = run->path,
        .volume = pd_volume_name(run->volume),
        .waits = look_waits(server, run, now),
        .part = run->part->number,
        .failure = run->state == PD_RUN_FAILED ? run->failure.text : NULL,
        .age_s = look_age(run->opened_ns, now),
        .photons = pd_run_photons(run) + run->turn_photons,
        .photons_durable = pd_run_photons_durable(run),
        .photons_in_flight = run->state == PD_RUN_FAILED ? 0 : pd_run_photons_in_flight(run),
        .photons_per_s = pd_rate_per_second(&run->photon_rate, now, pd_run_photons(run)),
        .bytes_per_s = pd_rate_per_second(&run->byte_rate, now, run->received_bytes),
        .batches = run->batches,
        .duplicates = run->duplicates,
        .received = run->received,
        .durable = run->durable,
        .durable_age_s = look_age(run->last_durable_ns, now),
        .received_bytes = run->received_bytes,
        .file_bytes = run->part->file ? pd_file_written(run->part->file) : 0,
        .drops = run->dropped.allowed,
        .dropped_photons = run->dropped.photons,
        .dropped_batches = run->dropped.batches,
        .lost_before = run->lost_before,
        .ring_slots = run->quota.used,
        .exports = s->exports,
        .exports_failed = s->exports_failed,
        .exports_skipped = s->exports_skipped,
        .summary_backlog = backlog,
        .last_export_age_s = look_age(s->last_export_ns, now),
        .last_export_photons = s->last_export_photons,
        .datasets = datasets,
        .n_datasets = run->n_columns,
    };
}

static int look_runs(const pd_server *server, uint64_t now, look_views *v) {
    const pd_runs *runs = &server->runs;
    size_t n_datasets = 0;
    for (size_t i = 0; i < runs->n; i++)
        n_datasets += runs->items[i]->n_columns;
    v->runs = calloc(runs->n + 1, sizeof *v->runs);
    v->datasets = calloc(n_datasets + 1, sizeof *v->datasets);
    if (!v->runs || !v->datasets)
        return -1;
    pd_status_dataset *at = v->datasets;
    for (size_t i = 0; i < runs->n; i++) {
        look_run(server, runs->items[i], now, at, &v->runs[i]);
        at += runs->items[i]->n_columns;
    }
    v->status.runs = v->runs;
    v->status.n_runs = runs->n;
    return 0;
}

/* ---- connections ---- */

static int look_connections(const pd_server *server, uint64_t now, look_views *v) {
    size_t n = 0;
    v->connections = calloc(server->n_connections + 1, sizeof *v->connections);
    if (!v->connections)
        return -1;
    for (const pd_connection *c = server->connections; c; c = c->next)
        v->connections[n++] = (pd_status_connection){
            .peer = c->peer,
            .client = c->session.client_name,
            .software = c->session.software,
            .instance = c->session.instance,
            .age_s = look_age(c->opened_ns, now),
            .silent_s = look_age(c->last_message_ns, now),
            .silent = pd_connection_silent(c, now),
            .paused = c->waits_since_ns != 0,
            .n_runs = (uint32_t)c->session.n_attached,
            .received_bytes = c->received_bytes,
        };
    v->status.connections = v->connections;
    v->status.n_connections = n;
    return 0;
}

static void look_armed(const pd_server *server, uint64_t now, look_views *v) {
    for (size_t i = 0; i < server->armed.n; i++) {
        const pd_armed_run *run = &server->armed.runs[i];
        v->armed[i] = (pd_status_armed){run->name, run->profile, look_age(run->since_ns, now)};
    }
    v->status.armed = v->armed;
    v->status.n_armed = server->armed.n;
}

/* ---- health ---- */

__attribute__((format(printf, 3, 4))) static void look_reason(look_views *v, pd_health health,
                                                              const char *format, ...) {
    va_list arguments;
    size_t n = v->status.n_reasons;
    if (health > v->status.health)
        v->status.health = health;
    if (n == LOOK_REASONS_MAX)
        return;
    va_start(arguments, format);
    vsnprintf(v->texts[n], LOOK_REASON_BYTES, format, arguments);
    va_end(arguments);
    v->reasons[n] = v->texts[n];
    v->status.n_reasons++;
}

/* While it happens data is being lost; after, what is missing stays missing. */
static void look_drops(const pd_server *server, look_views *v) {
    for (size_t i = 0; i < server->runs.n; i++) {
        const pd_run *run = server->runs.items[i];
        if (run->dropped.batches > 0)
            look_reason(v, run->dropped.now ? PD_HEALTH_NOT_OK : PD_HEALTH_DEGRADED,
                        "run %s%s: %llu photons in %llu batches were dropped", run->name,
                        run->dropped.now ? ": there is no room" : "",
                        (unsigned long long)run->dropped.photons, (unsigned long long)run->dropped.batches);
        if (run->lost_before > 0)
            look_reason(v, PD_HEALTH_DEGRADED, "run %s: its instrument has lost %llu events", run->name,
                        (unsigned long long)run->lost_before);
    }
    for (const pd_past_run *past = server->runs.oldest; past; past = past->next)
        if (past->dropped_photons > 0)
            look_reason(v, PD_HEALTH_DEGRADED, "run %s: %llu photons were dropped", past->name,
                        (unsigned long long)past->dropped_photons);
}

static void look_failures(const pd_server *server, look_views *v) {
    for (const pd_past_run *past = server->runs.oldest; past; past = past->next)
        if (past->failure)
            look_reason(v, PD_HEALTH_NOT_OK, "run %s failed: %s", past->name, past->failure);
        else if (past->unexported)
            look_reason(
                v, PD_HEALTH_DEGRADED,
                "run %s was closed, and its last export failed: what is shown of it is older, or nothing",
                past->name);
    for (size_t i = 0; i < server->runs.n; i++) {
        const pd_run *run = server->runs.items[i];
        if (run->state == PD_RUN_FAILED)
            look_reason(v, PD_HEALTH_NOT_OK, "run %s failed: %s", run->name, run->failure.text);
        else if (run->summary.replay.failed)
            look_reason(v, PD_HEALTH_DEGRADED, "run %s: its exports lack what was recorded before",
                        run->name);
        else if (run->summary.last_failed)
            look_reason(v, PD_HEALTH_DEGRADED, "run %s: the last export failed", run->name);
    }
}

/* For how long it goes on; 0: it does not. */
static double look_since(uint64_t since_ns, uint64_t now) {
    return since_ns && since_ns < now ? look_age(since_ns, now) : 0;
}

/* Whether a thread is as good as dead. A full disk is waited for, by one that is alive. */
static bool look_is_stuck(const pd_status_volume *volume) {
    return (!volume->full && volume->busy_s > LOOK_DISK_STUCK_S) || volume->export_s > LOOK_EXPORT_STUCK_S;
}

/* Nothing can be stored on a full disk. A thread that waits for the disk is slow, then as good as dead. */
static void look_volume(const pd_status_volume *volume, look_views *v) {
    char where[PD_VOLUME_NAME_BYTES + 16] = "";
    if (*volume->name)
        snprintf(where, sizeof where, " of volume %s", volume->name);
    if (volume->full)
        look_reason(v, PD_HEALTH_NOT_OK, "the disk%s is full: waiting for room", where);
    else if (volume->busy_s > LOOK_DISK_STUCK_S)
        look_reason(v, PD_HEALTH_NOT_OK, "the disk%s has not answered for %.0f s", where, volume->busy_s);
    else if (volume->busy_s > LOOK_DISK_SLOW_S)
        look_reason(v, PD_HEALTH_DEGRADED, "the disk%s has not answered for %.1f s", where, volume->busy_s);
    if (volume->export_s > LOOK_EXPORT_STUCK_S)
        look_reason(v, PD_HEALTH_NOT_OK, "an export%s has been under way for %.0f s", where,
                    volume->export_s);
    else if (volume->export_s > LOOK_EXPORT_SLOW_S)
        look_reason(v, PD_HEALTH_DEGRADED, "an export%s has been under way for %.0f s", where,
                    volume->export_s);
}

/* Why threads count as dead, in `stuck`; "": none does, or others go on with runs of another volume, which a restart would
 * only disturb. */
static void look_stuck(const look_views *v, char stuck[PD_LOOK_LINE_BYTES]) {
    bool goes_on = false;
    *stuck = 0;
    for (size_t i = 0; i < v->status.n_volumes; i++) {
        look_views one;
        memset(&one, 0, sizeof one);
        look_volume(&v->volumes[i], &one);
        if (look_is_stuck(&v->volumes[i]))
            snprintf(stuck, PD_LOOK_LINE_BYTES, "%s", one.texts[one.status.n_reasons - 1]);
        else
            goes_on |= v->volumes[i].n_runs > 0;
    }
    if (goes_on)
        *stuck = 0;
}

static void look_recovery(const pd_recovery_state *recovery, look_views *v) {
    for (size_t i = 0; i < recovery->n_failures; i++)
        look_reason(v, PD_HEALTH_DEGRADED,
                    recovery->failures[i].left ? "%s: %s" : "%s could not be recovered: %s",
                    recovery->failures[i].file, recovery->failures[i].text);
}

static void look_health(const pd_server *server, uint64_t now, look_views *v) {
    for (size_t i = 0; i < v->status.n_volumes; i++)
        look_volume(&v->volumes[i], v);
    look_failures(server, v);
    look_recovery(&server->engine->recovery, v);
    for (const pd_connection *c = server->connections; c; c = c->next) {
        if (pd_connection_silent(c, now))
            look_reason(v, PD_HEALTH_DEGRADED, "%s (%s) has been silent for %.0f s", c->session.client_name,
                        c->peer, look_age(c->last_message_ns, now));
        else if (c->told_paused_ns && c->waits_since_ns)
            look_reason(v, PD_HEALTH_DEGRADED, "%s (%s) has been held back for %.1f s",
                        c->session.client_name, c->peer, look_age(c->waits_since_ns, now));
    }
    look_drops(server, v);
    v->status.reasons = v->reasons;
}

/* ---- all of it ---- */

static void look_counters(const pd_counters *from, pd_status_counters *to) {
#define LOOK_COUNTER(name, text) to->name = pd_counted(&from->name);
    PD_COUNTER_MAP(LOOK_COUNTER)
#undef LOOK_COUNTER
    to->log_lines_lost = pd_log_lost();
}

static void look_volumes(const pd_server *server, uint64_t now, look_views *v) {
    const pd_engine *engine = server->engine;
    for (uint32_t i = 0; i < engine->n_volumes; i++) {
        pd_volume_state disk = pd_volume_look(engine->volumes[i]);
        size_t n_runs = 0;
        for (size_t r = 0; r < server->runs.n; r++)
            n_runs += server->runs.items[r]->volume == engine->volumes[i];
        v->volumes[i] =
            (pd_status_volume){.name = pd_volume_name(engine->volumes[i]),
                               .data_dir = pd_volume_datadir(engine->volumes[i])->path,
                               .n_runs = n_runs,
                               .free_bytes = disk.free_bytes,
                               .full = disk.full,
                               .busy_s = look_since(disk.busy_ns, now),
                               .syncs = pd_volume_syncs(engine->volumes[i]),
                               .export_s = look_since(pd_exporter_busy_since(engine->exporters[i]), now)};
    }
    v->status.volumes = v->volumes;
    v->status.n_volumes = engine->n_volumes;
}

static void look_fill(const pd_look *look, uint64_t now, look_views *v) {
    const pd_server *server = look->server;
    const pd_engine *engine = server->engine;
    const pd_ring *ring = &engine->ring;
    pd_status *status = &v->status;
    look_volumes(server, now, v);
    status->version = PHOTOND_VERSION;
    status->listen = look->listen;
    status->n_listen = look->n_listen;
    status->pid = getpid();
    status->uptime_s = look_age(look->started_ns, now);
    status->stopping = engine->stopping;
    status->draining = engine->draining;
    status->ring_slots = ring->n_slots;
    status->ring_used = ring->n_slots - ring->n_free;
    status->ring_high_water = ring->high_water;
    status->ring_slot_bytes = (uint32_t)ring->slot_bytes;
    status->ring_reserved = ring->n_reserved;
    status->stalled = (uint32_t)server->n_waiting;
    status->recovery = &engine->recovery;
    for (uint32_t i = 0; i < engine->n_volumes; i++) {
        status->certificates_pending += pd_volume_uncertified(engine->volumes[i]);
        status->hooks_pending += pd_volume_unhooked(engine->volumes[i]);
    }
    look_counters(&engine->counters, &status->counters);
    const pd_status_counters *c = &status->counters;
    status->photons_per_s = pd_rate_per_second(&look->photons, now, c->photons_received);
    status->bytes_per_s = pd_rate_per_second(&look->received, now, c->bytes_received);
    status->written_per_s = pd_rate_per_second(&look->written, now, c->bytes_written);
}

json_t *pd_look_status(void *user, const json_t *request, pd_error *err) {
    (void)request;
    const pd_look *look = user;
    uint64_t now = uv_hrtime();
    look_views v;
    memset(&v, 0, sizeof v);
    look_fill(look, now, &v);
    json_t *json = NULL;
    if (look_runs(look->server, now, &v) == 0 && look_connections(look->server, now, &v) == 0) {
        look_armed(look->server, now, &v);
        pd_look_stages(look->server, v.status.stages);
        look_health(look->server, now, &v);
        json = pd_status_json(&v.status);
    }
    free(v.runs);
    free(v.datasets);
    free(v.connections);
    if (!json)
        pd_error_set(err, "out of memory");
    return json;
}

pd_health pd_look_line(const pd_look *look, char line[PD_LOOK_LINE_BYTES], char stuck[PD_LOOK_LINE_BYTES]) {
    uint64_t now = uv_hrtime();
    look_views v;
    memset(&v, 0, sizeof v);
    look_fill(look, now, &v);
    look_stuck(&v, stuck);
    look_health(look->server, now, &v);
    uint64_t free_bytes = UINT64_MAX;
    for (size_t i = 0; i < v.status.n_volumes; i++)
        if (v.volumes[i].free_bytes < free_bytes)
            free_bytes = v.volumes[i].free_bytes;
    int n = snprintf(line, PD_LOOK_LINE_BYTES, "%zu runs open, %.3g photons/s, %.3g MB/s to the disk",
                     look->server->runs.n, v.status.photons_per_s, v.status.written_per_s / 1e6);
    if (free_bytes != UINT64_MAX)
        n += snprintf(line + n, PD_LOOK_LINE_BYTES - (size_t)n, ", %.3g GB free", (double)free_bytes / 1e9);
    snprintf(line + n, PD_LOOK_LINE_BYTES - (size_t)n, "; %s%s%s", pd_health_name(v.status.health),
             v.status.n_reasons ? ": " : "", v.status.n_reasons ? v.reasons[0] : "");
    return v.status.health;
}

const char **pd_look_listen(pd_look *look, const pd_listener *listeners, size_t n) {
    look->listen_texts = calloc(n + 1, sizeof *look->listen_texts);
    look->listen = calloc(n + 1, sizeof *look->listen);
    if (!look->listen_texts || !look->listen)
        return NULL;
    for (size_t i = 0; i < n; i++)
        look->listen[i] = wire_address_text(&listeners[i].address, look->listen_texts[i]);
    look->n_listen = n;
    return look->listen;
}

void pd_look_init(pd_look *look, pd_server *server) {
    memset(look, 0, sizeof *look);
    look->server = server;
    look->started_ns = uv_hrtime();
    pd_rate_init(&look->photons);
    pd_rate_init(&look->received);
    pd_rate_init(&look->written);
    uv_timer_init(server->engine->loop, &look->timer);
    look->timer.data = look;
    uv_timer_start(&look->timer, look_sample, LOOK_SAMPLE_MS, LOOK_SAMPLE_MS);
}

void pd_look_close(pd_look *look) {
    uv_close((uv_handle_t *)&look->timer, NULL);
}

void pd_look_free(pd_look *look) {
    free(look->listen_texts);
    free(look->listen);
}

/* How a run is made: its datasets and groups, its share of the ring, its summary, and the order for its file. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "ingest.pb-c.h"
#include "run.h"
#include "text.h"

enum {
    ROOM_BATCHES = 2,   /* that a quota holds beside the pages being filled */
    ROOM_PAGES_MIN = 4, /* of column bytes in the batches of the run that is promised least */
    ROOM_SHARE = 6,     /* a run is promised this part of what the runs to come can spare */
    ROOM_MOST = 16,     /* and never more than this part of the ring */
    OWN_ATTRIBUTES = 8  /* that the daemon adds at most */
};

/* The order for the file, with copies of what the volume reads. */
typedef struct open_request {
    pd_open_task open;
    pd_run *run;
    char *name;
    d7_dataset *datasets;
    d7_attribute *attributes;
    char *texts;
    uint64_t *closed_items;
} open_request;

int pd_refuse(pd_refusal *why, int code, const char *field, const char *text) {
    why->code = code;
    why->sequence = 0;
    snprintf(why->field, sizeof why->field, "%s", field);
    snprintf(why->text, sizeof why->text, "%s", text);
    return -1;
}

/* ---- room ---- */

/* Slots for `pages` pages of column bytes a batch: every dataset may have one page filling and begin one more with
 * each batch. */
static uint32_t room_slots(uint32_t pages, uint32_t n_columns) {
    return ROOM_BATCHES * pages + 2 * n_columns;
}

/* What a run is promised: the first ones more, but so that all the runs that are allowed can still be opened. */
static uint32_t room_share(const pd_engine *engine, uint32_t least) {
    uint32_t unreserved = pd_ring_unreserved(&engine->ring);
    uint64_t kept = (uint64_t)least * (engine->config->max_runs - engine->n_runs);
    uint32_t share = least + (unreserved > kept ? (uint32_t)(unreserved - kept) / ROOM_SHARE : 0);
    uint32_t most = engine->ring.n_slots / ROOM_MOST;
    return share < most ? share : most < least ? least : most;
}

static uint32_t room_pages(uint64_t batch_bytes) {
    return (uint32_t)((batch_bytes + PD_PAGE_BYTES - 1) / PD_PAGE_BYTES);
}

/* Slots for a new run; or for one that goes on, whose batches must not become smaller than they were. */
static uint32_t run_slots(const pd_run *run, const pd_run_spec *spec) {
    uint32_t least = room_slots(ROOM_PAGES_MIN, run->n_columns);
    if (spec->batch_bytes)
        return room_slots(room_pages(spec->batch_bytes), run->n_columns);
    uint32_t want = room_slots(room_pages(run->engine->config->batch_bytes), run->n_columns);
    uint32_t share = room_share(run->engine, least);
    return want < share ? want : share;
}

static int run_reserve(pd_run *run, const pd_run_spec *spec, pd_refusal *why) {
    pd_ring *ring = &run->engine->ring;
    uint64_t batch_bytes = spec->batch_bytes ? spec->batch_bytes : run->engine->config->batch_bytes;
    uint32_t slots = run_slots(run, spec);
    if (pd_ring_reserve(ring, &run->quota, slots) != 0) {
        pd_refuse(why, PHOTON__ERROR_CODE__ERROR_NO_ROOM, "", "");
        snprintf(why->text, sizeof why->text,
                 "the ring has no room for another run: %u page slots are needed, %u of %u are not promised",
                 slots, pd_ring_unreserved(ring), ring->n_slots);
        return -1;
    }
    run->engine->n_runs++;
    uint64_t fits = (uint64_t)((slots - 2 * run->n_columns) / ROOM_BATCHES) * PD_PAGE_BYTES;
    run->batch_bytes = fits < batch_bytes ? fits : batch_bytes;
    return 0;
}

void pd_run__unreserve(pd_run *run) {
    pd_ring_unreserve(&run->engine->ring, &run->quota);
    run->engine->n_runs--;
}

/* ---- datasets and groups ---- */

static char *text_copy(char **at, const char *text) {
    char *copy = *at;
    *at = stpcpy(copy, text ? text : "") + 1;
    return copy;
}

static const char *dataset_group(const pd_dataset *dataset) {
    return dataset->group && *dataset->group ? dataset->group : dataset->name;
}

static int run_copy_datasets(pd_run *run, const pd_run_spec *spec) {
    size_t bytes = 0;
    for (size_t i = 0; i < spec->n_datasets; i++) {
        const pd_dataset *d = &spec->datasets[i];
        bytes += strlen(d->name) + strlen(dataset_group(d)) + (d->unit ? strlen(d->unit) : 0) + 3;
    }
    run->n_columns = (uint32_t)spec->n_datasets;
    run->columns = calloc(run->n_columns, sizeof *run->columns);
    run->texts = malloc(bytes);
    if (!run->columns || !run->texts)
        return -1;
    char *at = run->texts;
    for (uint32_t c = 0; c < run->n_columns; c++) {
        const pd_dataset *d = &spec->datasets[c];
        run->columns[c].dataset = *d;
        run->columns[c].dataset.name = text_copy(&at, d->name);
        run->columns[c].dataset.group = text_copy(&at, dataset_group(d));
        run->columns[c].dataset.unit = text_copy(&at, d->unit);
        run->columns[c].item_bytes = (uint32_t)d7_type_size(d->type);
        run->columns[c].page_items = (uint32_t)d7_items_per_page(d->type, PD_PAGE_BYTES);
        size_t bound = d7_page_bound(d->type, run->columns[c].page_items);
        run->page_bound = bound > run->page_bound ? bound : run->page_bound;
    }
    return 0;
}

static uint32_t run_find_group(const pd_run *run, const char *name) {
    uint32_t g = 0;
    while (g < run->n_groups && strcmp(run->groups[g].name, name) != 0)
        g++;
    return g;
}

/* Groups in the order of their first dataset. */
static int run_make_groups(pd_run *run) {
    run->groups = calloc(run->n_columns, sizeof *run->groups);
    if (!run->groups)
        return -1;
    for (uint32_t c = 0; c < run->n_columns; c++) {
        pd_column *column = &run->columns[c];
        column->group = run_find_group(run, column->dataset.group);
        pd_group *group = &run->groups[column->group];
        if (column->group == run->n_groups) {
            run->n_groups++;
            group->name = column->dataset.group;
        }
        uint32_t *columns = realloc(group->columns, (group->n_columns + 1) * sizeof *columns);
        if (!columns)
            return -1;
        group->columns = columns;
        group->columns[group->n_columns++] = c;
        group->item_bytes += column->item_bytes;
    }
    return 0;
}

/* ---- what the daemon writes down about the run ---- */

char *pd_run__json_text(json_t *json) {
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
}

/* What the file format has no place for: groups, roles, units. */
static char *datasets_json(const pd_run *run) {
    json_t *list = json_array();
    for (uint32_t c = 0; list && c < run->n_columns; c++) {
        const pd_dataset *d = &run->columns[c].dataset;
        json_t *one =
            json_pack("{s:s, s:s, s:s}", "name", d->name, "group", d->group, "role", pd_role_name(d->role));
        if (one && *d->unit)
            json_object_set_new(one, "unit", json_string(d->unit));
        if (one && d->scale != 0)
            json_object_set_new(one, "scale", json_real(d->scale));
        json_array_append_new(list, one);
    }
    return pd_run__json_text(list);
}

static char *time_base_json(const pd_run_spec *spec) {
    const pd_time_base *t = &spec->time_base;
    return pd_run__json_text(json_pack(
        "{s:I, s:I, s:i, s:I, s:I, s:f}", "tick_ps_numerator", (json_int_t)t->tick_ps_numerator,
        "tick_ps_denominator", (json_int_t)t->tick_ps_denominator, "counter_bits", (int)t->counter_bits,
        "start_utc_ns", (json_int_t)spec->start_utc_ns, "start_uncertainty_ns",
        (json_int_t)spec->start_uncertainty_ns, "laser_period_ps", spec->laser_period_ps));
}

/* What a restarted daemon needs to go on with the run as it was opened. */
static char *open_json(const pd_run *run, const pd_run_spec *spec) {
    return pd_run__json_text(
        json_pack("{s:s, s:s, s:I, s:b, s:i, s:I, s:I, s:I, s:I, s:I, s:s}", "profile", spec->profile,
                  "client", spec->client_name, "batch_bytes", (json_int_t)run->batch_bytes, "summary",
                  (int)spec->summary.enabled, "pixels", (int)spec->summary.pixels, "export_interval_ms",
                  (json_int_t)spec->export_interval_ms, "stop_photons", (json_int_t)spec->stop.photons,
                  "stop_bytes", (json_int_t)spec->stop.bytes, "stop_ms", (json_int_t)spec->stop.ms,
                  "opened_utc_ns", (json_int_t)pd_utc_ns(), "overflow", spec->drop ? "drop" : "block"));
}

/* ---- the order for the file ---- */

static void open_request_free(open_request *request) {
    if (!request)
        return;
    free(request->name);
    free(request->datasets);
    free(request->attributes);
    free(request->texts);
    free(request->closed_items);
    free(request);
}

static void open_back(pd_event *event) {
    open_request *request = pd_container_of(event, open_request, open.task.event);
    request->run->n_at_volume--;
    (request->open.part ? pd_run__part_opened : pd_run__opened)(request->run, &request->open);
    open_request_free(request);
}

/* The client's attributes, then ours, as one array with its texts. */
static int open_copy_attributes(open_request *request, const pd_attribute *const lists[2],
                                const size_t n[2]) {
    size_t bytes = 0;
    for (int l = 0; l < 2; l++)
        for (size_t i = 0; i < n[l]; i++)
            bytes += strlen(lists[l][i].key) + strlen(lists[l][i].value) + 2;
    request->attributes = calloc(n[0] + n[1], sizeof *request->attributes);
    request->texts = malloc(bytes);
    if (!request->attributes || !request->texts)
        return -1;
    char *at = request->texts;
    d7_attribute *to = request->attributes;
    for (int l = 0; l < 2; l++)
        for (size_t i = 0; i < n[l]; i++, to++) {
            to->key = text_copy(&at, lists[l][i].key);
            to->value = text_copy(&at, lists[l][i].value);
        }
    request->open.attributes = request->attributes;
    request->open.n_attributes = n[0] + n[1];
    return 0;
}

static int open_add_attributes(open_request *request, const pd_run *run, const pd_attribute *attributes,
                               size_t n) {
    char part[16];
    snprintf(part, sizeof part, "%" PRIu32, run->part->number);
    const pd_attribute own[OWN_ATTRIBUTES] = {
        {"photond.run", run->id_hex},
        {"photond.producer", run->instance},
        {"photond.part", part},
        {"photond.datasets", run->own_datasets},
        {"photond.open", run->own_open},
        {"photond.software", PD_SOFTWARE},
        {"photond.configuration", run->engine->configuration},
        {"photond.time_base", run->own_time_base},
    };
    size_t n_own = OWN_ATTRIBUTES - (run->own_time_base ? 0 : 1);
    return open_copy_attributes(request, (const pd_attribute *const[2]){attributes, own},
                                (const size_t[2]){n, n_own});
}

static void open_fill(open_request *request, const pd_run *run, bool counter) {
    for (uint32_t c = 0; c < run->n_columns; c++)
        request->datasets[c] = (d7_dataset){run->columns[c].dataset.name, run->columns[c].dataset.type};
    request->open.task.kind = PD_TASK_OPEN;
    request->open.task.event.happened = open_back;
    request->open.id = run->id;
    request->open.part = run->part->number;
    request->open.first_sequence = run->part->first_sequence;
    request->open.closed_items = request->closed_items;
    request->open.producer = run->instance;
    request->open.epoch = run->epoch;
    request->open.clock = (d7_tail_clock){.monotonic_ns = uv_hrtime(), .utc_ns = (int64_t)pd_utc_ns()};
    request->open.name = request->name;
    request->open.counter = counter;
    request->open.displaces = run->part->displaces;
    request->open.datasets = request->datasets;
    request->open.n_datasets = run->n_columns;
}

int pd_run__ask_for_file(pd_run *run, const char *name, bool counter, const pd_attribute *attributes,
                         size_t n) {
    open_request *request = calloc(1, sizeof *request);
    if (!request)
        return -1;
    request->run = run;
    request->name = strdup(name);
    request->datasets = calloc(run->n_columns, sizeof *request->datasets);
    request->closed_items = calloc(run->n_columns, sizeof *request->closed_items);
    if (!request->name || !request->datasets || !request->closed_items ||
        open_add_attributes(request, run, attributes, n) != 0) {
        open_request_free(request);
        return -1;
    }
    open_fill(request, run, counter);
    run->n_at_volume++;
    pd_volume_submit(run->volume, &request->open.task);
    return 0;
}

/* ---- all of it ---- */

static int run_identify(pd_run *run, const pd_run_spec *spec) {
    memcpy(run->id, spec->id, sizeof run->id);
    pd_text_hex(run->id_hex, run->id, sizeof run->id);
    snprintf(run->name, sizeof run->name, "%s", spec->name);
    snprintf(run->instance, sizeof run->instance, "%s", spec->instance);
    snprintf(run->client_name, sizeof run->client_name, "%s", spec->client_name);
    run->epoch = spec->epoch;
    run->profile = strdup(spec->profile);
    size_t path_bytes = strlen(pd_volume_datadir(run->volume)->path) + PD_FILE_NAME_BYTES + 2;
    run->path = calloc(1, path_bytes);
    run->path_bytes = path_bytes;
    return run->profile && run->path ? 0 : -1;
}

void pd_run__init_handles(pd_run *run) {
    for (int i = 0; i < PD_RUN_TIMERS; i++) {
        uv_timer_init(run->engine->loop, pd_run__timer(run, i));
        pd_run__timer(run, i)->data = run;
    }
    run->n_handles = PD_RUN_TIMERS;
}

/* What is known at the opening counts too. */
static int run_count_attributes(pd_run *run, const pd_run_spec *spec, pd_refusal *why) {
    uint64_t most = run->engine->config->max_run_attribute_bytes;
    if (pd_attribute_sizes_set(&run->attribute_sizes, spec->attributes, spec->n_attributes, most) == 0)
        return 0;
    return pd_refuse(why, PHOTON__ERROR_CODE__ERROR_LIMIT, "open.attributes",
                     "the run's attributes are larger than is allowed");
}

static int run_build(pd_run *run, const pd_run_spec *spec, pd_refusal *why) {
    pd_error err = {""};
    if (run_identify(run, spec) != 0 || run_copy_datasets(run, spec) != 0 || run_make_groups(run) != 0 ||
        pd_run__mark_init(run) != 0)
        return pd_refuse(why, PHOTON__ERROR_CODE__ERROR_NO_ROOM, "", "out of memory");
    run->photon_group = run->columns[pd_datasets_photons(spec->datasets, spec->n_datasets)].group;
    if (pd_run__drop_init(run) != 0)
        return pd_refuse(why, PHOTON__ERROR_CODE__ERROR_NO_ROOM, "", "out of memory");
    run->dropped.allowed = spec->drop;
    if (pd_run__part_init(run, spec) != 0 ||
        pd_kept_attributes_set(&run->kept, 0, spec->attributes, spec->n_attributes) != 0)
        return pd_refuse(why, PHOTON__ERROR_CODE__ERROR_NO_ROOM, "", "out of memory");
    if (run_count_attributes(run, spec, why) != 0)
        return -1;
    if (pd_run_summary_init(run, spec, &err) != 0)
        return pd_refuse(why, PHOTON__ERROR_CODE__ERROR_NO_ROOM, "", err.text);
    return run_reserve(run, spec, why);
}

/* What all its files say about it. */
static int run_describe(pd_run *run, const pd_run_spec *spec, pd_refusal *why) {
    bool has_time_base =
        spec->time_base.tick_ps_denominator || spec->start_utc_ns || spec->laser_period_ps != 0;
    run->own_datasets = datasets_json(run);
    run->own_time_base = has_time_base ? time_base_json(spec) : NULL;
    run->own_open = open_json(run, spec);
    if (run->own_datasets && run->own_open && (run->own_time_base || !has_time_base))
        return 0;
    pd_run__unreserve(run);
    return pd_refuse(why, PHOTON__ERROR_CODE__ERROR_NO_ROOM, "", "out of memory");
}

int pd_run__make(pd_run **ret, pd_engine *engine, const pd_run_spec *spec, pd_run_ended *ended,
                 void *ended_user, pd_refusal *why) {
    pd_run *run = calloc(1, sizeof *run);
    if (!run)
        return pd_refuse(why, PHOTON__ERROR_CODE__ERROR_NO_ROOM, "", "out of memory");
    run->engine = engine;
    run->volume = spec->volume ? spec->volume : engine->volumes[0];
    run->exporter = pd_engine_exporter(engine, run->volume);
    run->ended = ended;
    run->ended_user = ended_user;
    run->opened_ns = uv_hrtime();
    run->export_interval_ms = spec->export_interval_ms;
    run->stop = spec->stop;
    run->stop_elapsed_ms = spec->stop_elapsed_ms;
    run->warned = spec->warned;
    pd_list_init(&run->order);
    pd_run_summary_prepare(run, spec);
    pd_rate_init(&run->photon_rate);
    pd_rate_init(&run->byte_rate);
    if (run_build(run, spec, why) != 0 || run_describe(run, spec, why) != 0) {
        pd_run__free(run);
        return -1;
    }
    pd_run__point_take(run, &run->durable_point);
    *ret = run;
    return 0;
}

int pd_run_create(pd_run **ret, pd_engine *engine, const pd_run_spec *spec, pd_run_ended *ended,
                  void *ended_user, pd_refusal *why) {
    pd_run *run;
    if (pd_run__make(&run, engine, spec, ended, ended_user, why) != 0)
        return -1;
    if (pd_run__ask_for_file(run, spec->name, spec->counter, spec->attributes, spec->n_attributes) != 0) {
        pd_run__unreserve(run);
        pd_run__free(run);
        return pd_refuse(why, PHOTON__ERROR_CODE__ERROR_NO_ROOM, "", "out of memory");
    }
    pd_run__init_handles(run);
    *ret = run;
    return 0;
}

void pd_run__free(pd_run *run) {
    pd_run_summary_free(run);
    pd_run__mark_free(run);
    pd_run__drop_free(run);
    for (uint32_t g = 0; g < run->n_groups; g++)
        free(run->groups[g].columns);
    free(run->groups);
    free(run->columns);
    free(run->texts);
    pd_attribute_sizes_free(&run->attribute_sizes);
    pd_kept_attributes_free(&run->kept);
    free(run->own_datasets);
    free(run->own_time_base);
    free(run->own_open);
    pd_run__part_free(run);
    pd_run__turn_free(run);
    free(run->profile);
    free(run->path);
    free(run);
}

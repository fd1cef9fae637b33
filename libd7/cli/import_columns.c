#include "import.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "result.h"

/* ---- attributes ---- */

int import_take_tag(void *ctx, const char *key, const char *value) {
    char *name;
    if (asprintf(&name, "ptu.%s", key) < 0)
        return 1;
    bool added = attribute_put(ctx, NULL, name, value);
    free(name);
    return !added;
}

static bool add_number(attribute_list *list, const char *key, double value) {
    char text[40];
    cli_format_number(text, sizeof text, 'f', sizeof value, &value);
    return attribute_put(list, NULL, key, text);
}

/* A length in seconds as ps: 12 digits are more than any instrument has, and hide that the product is not exact. */
static bool add_ps(attribute_list *list, const char *key, double seconds) {
    char text[40];
    snprintf(text, sizeof text, "%.12g", seconds * 1e12);
    return attribute_put(list, NULL, key, text);
}

/* The format's usual attributes, from the tags that mean the same. */
static bool add_usual(import_job *job) {
    static const char *const same[][2] = {
        {"ptu.File_CreatingTime", "Created"}, {"ptu.File_Comment", "Comment"}, {"ptu.File_GUID", "FileGuid"}};
    attribute_list *list = &job->attributes;
    const ptu_header *h = &job->header;
    char creator[64];
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const char *value = attribute_value(list, same[i][0]);
        bool is_date = i > 0 || (value && strchr(value, 'T')); /* times out of range are kept as numbers */
        if (value && *value && is_date && !attribute_put(list, NULL, same[i][1], value))
            return false;
    }
    snprintf(creator, sizeof creator, "d7 import %s", d7_version());
    if (!attribute_put(list, NULL, "FileCreator", creator))
        return false;
    if (!h->format->t3)
        return true;
    return attribute_put(list, NULL, "/photons/TacBits", h->format->pico ? "12" : "15") &&
           (!(h->resolution_s > 0) || add_ps(list, "/photons/TacChannel", h->resolution_s)) &&
           add_number(list, "/photons/TimerFrequency", 1 / h->global_resolution_s);
}

/* ---- the file ---- */

enum { T3_DT, T3_AAT, T3_CHANNEL, T3_MS, T3_MARKERS };
enum { T2_TIME, T2_CHANNEL, T2_MARKERS };
enum { MARKER_TIME, MARKER_ITEM, MARKER_BITS };

static const d7_dataset t3_datasets[] = {{"/photons/dt", D7_UINT16},     {"/photons/aat", D7_UINT64},
                                         {"/photons/channel", D7_UINT8}, {"/photons/ms", D7_UINT64},
                                         {"/markers/aat", D7_UINT64},    {"/markers/item", D7_UINT64},
                                         {"/markers/bits", D7_UINT16}};
static const d7_dataset t2_datasets[] = {{"/tags/time", D7_UINT64},
                                         {"/tags/channel", D7_UINT8},
                                         {"/markers/time", D7_UINT64},
                                         {"/markers/item", D7_UINT64},
                                         {"/markers/bits", D7_UINT16}};

/* A rate like 40 MHz has no exact double as its period; without rounding, a photon at the very begin of a millisecond would
 * fall before it. */
static long double units_per_ms(double unit_s) {
    long double units = 1e-3L / (long double)unit_s, whole = roundl(units);
    return fabsl(units - whole) < 1e-9L * whole ? whole : units;
}

int import_create(import_job *job, const char *path, cli_pool *pool) {
    d7_error err;
    d7_writer_options options;
    d7_executor executor = {.ctx = pool, .submit = cli_pool_submit, .wait = cli_pool_wait};
    bool t3 = job->header.format->t3;
    d7_attribute *attributes = add_usual(job) ? attribute_array(&job->attributes) : NULL;
    if (!attributes)
        return command_fail(job->self, "out of memory");
    d7_writer_options_init(&options);
    options.attributes = attributes;
    options.n_attributes = job->attributes.n;
    options.executor = pool ? &executor : NULL;
    size_t n = t3 ? sizeof t3_datasets / sizeof *t3_datasets : sizeof t2_datasets / sizeof *t2_datasets;
    int rc = d7_writer_create(&job->writer, path, t3 ? t3_datasets : t2_datasets, n, &options, &err);
    free(attributes);
    if (rc != 0)
        return command_fail(job->self, "%s", err.text);
    double ps = job->header.global_resolution_s * 1e12, whole = round(ps);
    job->ps_per_unit = whole >= 1 && fabs(ps - whole) < 1e-6 * whole ? (uint64_t)whole : 0;
    job->ms.units_per_ms = units_per_ms(job->header.global_resolution_s);
    return 0;
}

int import_reserve(import_job *job) {
    ptu_events *e = &job->events;
    e->time = malloc(PTU_BATCH_RECORDS * sizeof *e->time);
    e->dt = malloc(PTU_BATCH_RECORDS * sizeof *e->dt);
    e->channel = malloc(PTU_BATCH_RECORDS * sizeof *e->channel);
    e->marker_time = malloc(PTU_BATCH_RECORDS * sizeof *e->marker_time);
    e->marker_photon = malloc(PTU_BATCH_RECORDS * sizeof *e->marker_photon);
    e->marker_bits = malloc(PTU_BATCH_RECORDS * sizeof *e->marker_bits);
    job->ms.values = malloc(IMPORT_MS_ROOM * sizeof *job->ms.values);
    return e->time && e->dt && e->channel && e->marker_time && e->marker_photon && e->marker_bits &&
                   job->ms.values
               ? 0
               : -1;
}

void import_release(import_job *job) {
    ptu_events *e = &job->events;
    free(e->time);
    free(e->dt);
    free(e->channel);
    free(e->marker_time);
    free(e->marker_photon);
    free(e->marker_bits);
    free(job->ms.values);
    attribute_free(&job->attributes);
}

/* ---- columns ---- */

static int append(import_job *job, uint32_t dataset_id, const void *values, size_t n) {
    d7_error err;
    if (d7_writer_append(job->writer, dataset_id, values, n, &err) == 0)
        return 0;
    return command_fail(job->self, "%s", err.text);
}

static int flush_ms(import_job *job) {
    int code = append(job, T3_MS, job->ms.values, job->ms.n);
    job->ms.n = 0;
    return code;
}

/* Every millisecond that has begun by the time of a photon begins with it. */
static int begin_ms(import_job *job, uint64_t photon, uint64_t time) {
    import_ms *ms = &job->ms;
    while (time >= ms->next_time) {
        ms->values[ms->n++] = photon;
        ms->next++;
        ms->next_time = (uint64_t)ceill((long double)ms->next * ms->units_per_ms);
        if (ms->n == IMPORT_MS_ROOM && flush_ms(job) != 0)
            return CLI_USAGE;
        if (cli_stopped)
            return command_stopped_code(job->self);
    }
    return 0;
}

static int write_ms(import_job *job) {
    const ptu_events *e = &job->events;
    for (size_t i = 0; i < e->n; i++)
        if (e->time[i] >= job->ms.next_time) {
            int code = begin_ms(job, job->photons + i, e->time[i]);
            if (code != 0)
                return code;
        }
    return 0;
}

static void to_ps(const import_job *job, uint64_t *times, size_t n) {
    long double ps = (long double)job->header.global_resolution_s * 1e12L;
    for (size_t i = 0; i < n; i++)
        times[i] =
            job->ps_per_unit ? times[i] * job->ps_per_unit : (uint64_t)roundl((long double)times[i] * ps);
}

static int write_markers(import_job *job, uint32_t first_dataset) {
    const ptu_events *e = &job->events;
    int code = append(job, first_dataset + MARKER_TIME, e->marker_time, e->n_markers);
    if (code == 0)
        code = append(job, first_dataset + MARKER_ITEM, e->marker_photon, e->n_markers);
    return code == 0 ? append(job, first_dataset + MARKER_BITS, e->marker_bits, e->n_markers) : code;
}

static int write_t3(import_job *job) {
    const ptu_events *e = &job->events;
    int code = append(job, T3_DT, e->dt, e->n);
    if (code == 0)
        code = append(job, T3_AAT, e->time, e->n);
    if (code == 0)
        code = append(job, T3_CHANNEL, e->channel, e->n);
    if (code == 0)
        code = write_ms(job);
    return code == 0 ? write_markers(job, T3_MARKERS) : code;
}

static int write_t2(import_job *job) {
    const ptu_events *e = &job->events;
    to_ps(job, e->time, e->n);
    to_ps(job, e->marker_time, e->n_markers);
    int code = append(job, T2_TIME, e->time, e->n);
    if (code == 0)
        code = append(job, T2_CHANNEL, e->channel, e->n);
    return code == 0 ? write_markers(job, T2_MARKERS) : code;
}

static void note_last_time(import_job *job) {
    const ptu_events *e = &job->events;
    if (e->n && e->time[e->n - 1] > job->last_time)
        job->last_time = e->time[e->n - 1];
    if (e->n_markers && e->marker_time[e->n_markers - 1] > job->last_time)
        job->last_time = e->marker_time[e->n_markers - 1];
}

int import_write(import_job *job) {
    note_last_time(job);
    int code = job->header.format->t3 ? write_t3(job) : write_t2(job);
    job->photons += job->events.n;
    return code;
}

int import_close(import_job *job) {
    d7_error err;
    int code = job->header.format->t3 ? flush_ms(job) : 0;
    if (code == 0 && d7_writer_close(job->writer, &err) != 0)
        code = command_fail(job->self, "%s", err.text);
    return code;
}

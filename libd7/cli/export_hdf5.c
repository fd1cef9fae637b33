/* Photon-HDF5 0.5: times, micro times and channels of photons (or tags) under /photon_data, what is known of the set-up and of
 * the file in its groups, and everything else that the file holds under /user/d7. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "export_hdf5.h"

int photon_failed(const photon_job *p) {
    return command_fail(p->job->self, "%s: cannot be written: %s", p->job->final, hdf5_why(p->file));
}

/* ---- what is what ---- */

static const export_column *find_role(const photon_job *p, d7_role role) {
    for (size_t i = 0; i < p->main->n; i++)
        if (p->main->columns[i].role == role)
            return &p->main->columns[i];
    return NULL;
}

static bool is_wide(const export_column *c) {
    return c && (c->type == D7_UINT64 || c->type == D7_INT64);
}

/* The finest times there are. */
static int choose_times(photon_job *p) {
    const export_column *absolute = find_role(p, D7_ROLE_ABSOLUTE_TIME), *stamp = find_role(p, D7_ROLE_START);
    double timer_hz = photon_number(p, "/photons/TimerFrequency");
    if (p->main->group == D7_GROUP_TAGS)
        stamp = find_role(p, D7_ROLE_TIME);
    if (is_wide(absolute) && timer_hz > 0) {
        p->time = absolute;
        p->unit_s = 1 / timer_hz;
        return 0;
    }
    if (is_wide(stamp)) {
        p->time = stamp;
        p->unit_s = 1e-12;
        return 0;
    }
    p->unit_s = 1e-3;
    p->ms = p->main->group == D7_GROUP_PHOTONS ? ms_times_new(p->job->reader) : NULL;
    return p->ms ? 0
                 : command_fail(p->job->self,
                                "%s: Photon-HDF5 needs times, and there are neither /photons/aat with "
                                "/photons/TimerFrequency nor /start/time, /tags/time or /photons/ms",
                                p->job->path);
}

static int choose_columns(photon_job *p) {
    p->main = export_find_set(p->job, D7_GROUP_PHOTONS);
    if (!p->main)
        p->main = export_find_set(p->job, D7_GROUP_TAGS);
    if (!p->main)
        return command_fail(p->job->self, "%s: has neither photons nor tags", p->job->path);
    p->micro = find_role(p, D7_ROLE_MICRO_TIME);
    p->micro_s = photon_number(p, "/photons/TacChannel") * 1e-12;
    if (p->micro && (p->micro->type >= D7_FLOAT || !(p->micro_s > 0))) {
        command_fail(
            p->job->self,
            "%s: what a channel of /photons/dt is worth (/photons/TacChannel) is not known: it goes to "
            "/user/d7",
            p->job->path);
        p->micro = NULL;
    }
    for (size_t i = 0; i < p->main->n; i++) {
        const export_column *c = &p->main->columns[i];
        bool channel = c->role == D7_ROLE_CHANNEL || strcmp(c->name, "/photons/channel") == 0;
        if (channel && (c->type == D7_UINT8 || c->type == D7_UINT16))
            p->channel = c;
    }
    return choose_times(p);
}

/* ---- columns ---- */

static hdf5_column *user_column(const photon_job *p, const export_set *set, size_t i) {
    const export_column *c = &set->columns[i];
    hdf5_shape shape = {c->type, c->type, set->rows, p->job->level};
    char *path;
    if (asprintf(&path, "/user/d7/%s", p->names.keys[set->first_key + i]) < 0)
        return NULL;
    hdf5_column *column = hdf5_column_new(p->file, path, c->name, &shape);
    free(path);
    return column;
}

static hdf5_column *times_column(const photon_job *p, d7_type type) {
    hdf5_shape shape = {type, D7_INT64, p->main->rows, p->job->level};
    return hdf5_column_new(p->file, "/photon_data/timestamps",
                           "Array of photon timestamps. Units specified in timestamps_units (defined in "
                           "timestamps_specs/).",
                           &shape);
}

static hdf5_column *main_column(const photon_job *p, size_t i) {
    const export_column *c = &p->main->columns[i];
    hdf5_shape shape = {c->type, c->type, p->main->rows, p->job->level};
    if (c == p->time)
        return times_column(p, c->type);
    if (c == p->micro)
        return hdf5_column_new(p->file, "/photon_data/nanotimes",
                               "TCSPC photon arrival time (nanotimes). Units and other specifications are in "
                               "nanotimes_specs group.",
                               &shape);
    if (c == p->channel)
        return hdf5_column_new(p->file, "/photon_data/detectors", "Array of pixel IDs for each timestamp.",
                               &shape);
    return user_column(p, p->main, i);
}

static int open_columns(photon_job *p, size_t first) {
    for (size_t i = first; i < p->main->n && p->n < OPEN_COLUMNS; i++) {
        hdf5_column *column = main_column(p, i);
        if (!column)
            return photon_failed(p);
        p->columns[p->n++] = (out_column){column, i};
    }
    if (!p->ms || first > 0)
        return 0;
    p->ms_column = times_column(p, D7_INT64);
    return p->ms_column ? 0 : photon_failed(p);
}

static void note_times(photon_job *p, const int64_t *times, size_t n) {
    if (!p->any)
        p->first = (double)times[0];
    p->any = true;
    p->last = (double)times[n - 1];
}

static void count_channels(photon_job *p, const void *values, size_t n) {
    if (p->channel->type == D7_UINT8)
        for (size_t i = 0; i < n; i++)
            p->counts[((const uint8_t *)values)[i]]++;
    else
        for (size_t i = 0; i < n; i++)
            p->counts[((const uint16_t *)values)[i]]++;
}

static int write_ms_times(photon_job *p, const d7_chunk *chunk) {
    const int64_t *times = ms_times_of(p->ms, chunk->first_item, chunk->n);
    if (!times)
        return command_fail(p->job->self, "%s: /photons/ms cannot be read", p->job->path);
    note_times(p, times, chunk->n);
    return hdf5_column_append(p->ms_column, times, chunk->n) == 0 ? 0 : photon_failed(p);
}

static int take_rows(void *ctx, const d7_chunk *chunk) {
    photon_job *p = ctx;
    for (size_t i = 0; i < p->n; i++) {
        const export_column *c = &p->main->columns[p->columns[i].source];
        const void *values = chunk->values[i];
        if (c == p->time)
            note_times(p, values, chunk->n);
        if (c == p->channel)
            count_channels(p, values, chunk->n);
        if (hdf5_column_append(p->columns[i].column, values, chunk->n) != 0)
            return photon_failed(p);
    }
    return p->ms_column ? write_ms_times(p, chunk) : 0;
}

typedef struct other_column {
    const photon_job *p;
    hdf5_column *column;
} other_column;

static int take_other(void *ctx, const d7_chunk *chunk) {
    other_column *o = ctx;
    return hdf5_column_append(o->column, chunk->values[0], chunk->n) == 0 ? 0 : photon_failed(o->p);
}

static int write_other(photon_job *p, export_set *set, size_t i) {
    other_column o = {p, user_column(p, set, i)};
    if (!o.column)
        return photon_failed(p);
    int code = export_read(p->job, set, i, 1, take_other, &o);
    if (hdf5_column_end(o.column) != 0 && code == 0)
        code = photon_failed(p);
    return code;
}

static int write_others(photon_job *p) {
    int code = 0;
    for (size_t s = 0; s < p->job->n_sets && code == 0; s++)
        for (size_t i = 0; i < p->job->sets[s].n && code == 0; i++)
            if (&p->job->sets[s] != p->main)
                code = write_other(p, &p->job->sets[s], i);
    return code;
}

static int end_columns(photon_job *p) {
    int rc = hdf5_column_end(p->ms_column);
    for (size_t i = 0; i < p->n; i++)
        rc |= hdf5_column_end(p->columns[i].column);
    p->ms_column = NULL;
    p->n = 0;
    return rc;
}

/* ---- the file ---- */

/* The columns from `first` on, as many as are open at a time: libhdf5 has memory for each. Returns 0 or an exit code. */
static int write_columns(photon_job *p, size_t first) {
    int code = open_columns(p, first);
    if (code == 0)
        code = export_read(p->job, p->main, first, p->n, take_rows, p);
    if (end_columns(p) != 0 && code == 0)
        code = photon_failed(p);
    return code;
}

static int write_file(photon_job *p) {
    int code = 0;
    for (size_t first = 0; first < p->main->n && code == 0; first += OPEN_COLUMNS)
        code = write_columns(p, first);
    if (code == 0)
        code = write_others(p);
    return code == 0 ? photon_write_known(p) : code;
}

int export_photon_hdf5(export_job *job) {
    photon_job p = {.job = job, .counts = calloc(DETECTORS, sizeof *p.counts)};
    char why[HDF5_WHY_BYTES];
    int code = 0;
    if (!p.counts || export_names_make(job, "metadata", &p.names) != 0)
        code = command_fail(job->self, "out of memory");
    if (code == 0)
        code = choose_columns(&p);
    if (code == 0) {
        p.file = hdf5_create(job->temporary, why);
        code = p.file ? write_file(&p) : command_fail(job->self, "%s: cannot be made: %s", job->final, why);
    }
    if (p.file && hdf5_close(p.file) != 0 && code == 0)
        code = photon_failed(&p);
    hdf5_free(p.file);
    ms_times_free(p.ms);
    export_names_free(&p.names);
    free(p.counts);
    return code;
}

bool export_has_hdf5(void) {
    return true;
}

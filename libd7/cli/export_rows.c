#include "export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "result.h"

/* ---- sets ---- */

static int out_of_memory(const export_job *job) {
    return command_fail(job->self, "out of memory");
}

/* An array of n that has room for one more: it doubles. NULL: out of memory, and the array is as it was. */
static void *one_more(void *array, size_t n, size_t element_bytes) {
    return n & (n - 1) ? array : realloc(array, (n ? 2 * n : 1) * element_bytes);
}

export_set *export_find_set(const export_job *job, d7_group group) {
    return job->set_of[group] ? &job->sets[job->set_of[group] - 1] : NULL;
}

static int add_column(export_job *job, uint32_t dataset_id, const d7_dataset_info *info) {
    d7_group group = d7_group_of(info->name);
    if (info->items == 0 && job->group_items[group] > 0)
        group = D7_GROUP_NONE; /* a column that was not in use has no rows to share */
    export_set *set = group == D7_GROUP_NONE ? NULL : export_find_set(job, group);
    if (!set) {
        export_set *sets = one_more(job->sets, job->n_sets, sizeof *sets);
        if (!sets)
            return out_of_memory(job);
        job->sets = sets;
        set = &sets[job->n_sets++];
        *set = (export_set){.group = group};
        if (group != D7_GROUP_NONE)
            job->set_of[group] = job->n_sets;
    }
    export_column *columns = one_more(set->columns, set->n, sizeof *columns);
    if (!columns)
        return out_of_memory(job);
    set->columns = columns;
    job->goes_out[dataset_id] = true;
    columns[set->n++] = (export_column){
        .dataset_id = dataset_id, .role = d7_role_of(info->name), .type = info->type, .name = info->name};
    return 0;
}

static int add_named(export_job *job, const char *name) {
    d7_dataset_info info;
    uint32_t id;
    if (d7_reader_find_dataset(job->reader, name, &id) != 0 || d7_reader_dataset(job->reader, id, &info) != 0)
        return command_fail(job->self, "%s: there is no dataset %s; d7 info shows which there are", job->path,
                            name);
    if (job->goes_out[id])
        return command_fail(job->self, "dataset %s is named twice", name);
    return add_column(job, id, &info);
}

static int add_all(export_job *job) {
    d7_dataset_info info;
    int code = 0;
    for (uint32_t i = 0; code == 0 && d7_reader_dataset(job->reader, i, &info) == 0; i++)
        code = add_column(job, i, &info);
    return code;
}

/* ---- which rows ---- */

static bool is_ms(const export_set *set) {
    return set->columns[0].role == D7_ROLE_MS;
}

static uint64_t longest(const export_job *job, const export_set *set) {
    uint64_t items = 0;
    d7_dataset_info info;
    for (size_t i = 0; i < set->n; i++)
        if (d7_reader_dataset(job->reader, set->columns[i].dataset_id, &info) == 0 && info.items > items)
            items = info.items;
    return items;
}

static uint64_t shortest(const export_job *job, const export_set *set) {
    uint64_t items = UINT64_MAX;
    d7_dataset_info info;
    for (size_t i = 0; i < set->n; i++)
        if (d7_reader_dataset(job->reader, set->columns[i].dataset_id, &info) == 0 && info.items < items)
            items = info.items;
    return items;
}

/* A file that is not closed may tell of milliseconds whose photons are not there yet in all columns. */
static uint64_t ms_there(const export_job *job, const export_set *set, uint64_t items) {
    uint64_t rows = job->group_items[D7_GROUP_PHOTONS];
    bool open = d7_reader_state(job->reader) != D7_STATE_CLOSED;
    return open && rows ? milliseconds_within(job->reader, set->columns[0].dataset_id, rows) : items;
}

/* The milliseconds that a range of photons is in: from the one that its first photon is in to its last one's. */
static export_range ms_range(const export_job *job, const export_set *set, uint64_t items) {
    export_range range = {0, items, 0};
    d7_error err;
    uint64_t ms;
    if (job->all_rows)
        range.to = ms_there(job, set, items);
    if (job->all_rows || job->ranged != D7_GROUP_PHOTONS)
        return range;
    if (job->range.to <= job->range.from)
        return (export_range){0, 0, 0};
    if (d7_reader_ms_of_photon(job->reader, job->range.from, &ms, &err) == 0)
        range.from = ms;
    if (d7_reader_ms_of_photon(job->reader, job->range.to - 1, &ms, &err) == 0 && ms + 1 < items)
        range.to = ms + 1;
    return range;
}

static export_range wanted_rows(const export_job *job, const export_set *set) {
    uint64_t items = shortest(job, set);
    export_range range = {0, items, 0};
    if (is_ms(set))
        range = ms_range(job, set, items);
    else if (set->group == job->ranged)
        range = job->range;
    range.to = range.to < items ? range.to : items;
    range.from = range.from < range.to ? range.from : range.to;
    return range;
}

static int add_range(export_job *job, export_set *set, uint64_t from, uint64_t to) {
    if (set->n_ranges && set->ranges[set->n_ranges - 1].to == from) {
        set->ranges[set->n_ranges - 1].to = to;
    } else {
        export_range *ranges = one_more(set->ranges, set->n_ranges, sizeof *ranges);
        if (!ranges)
            return out_of_memory(job);
        set->ranges = ranges;
        ranges[set->n_ranges++] = (export_range){from, to, set->rows};
    }
    set->rows += to - from;
    return 0;
}

int export_plan(export_job *job, const char *const *names, size_t n) {
    job->goes_out = calloc(d7_reader_n_datasets(job->reader) + 1, sizeof *job->goes_out);
    if (!job->goes_out)
        return out_of_memory(job);
    for (d7_group group = D7_GROUP_PHOTONS; group <= D7_GROUP_TAGS; group++)
        job->group_items[group] = d7_reader_group_items(job->reader, group);
    int code = n ? 0 : add_all(job);
    for (size_t i = 0; i < n && code == 0; i++)
        code = add_named(job, names[i]);
    for (size_t i = 0; i < job->n_sets && code == 0; i++) {
        export_range range = wanted_rows(job, &job->sets[i]);
        if (range.to > range.from)
            code = add_range(job, &job->sets[i], range.from, range.to);
    }
    return code;
}

void export_release(export_job *job) {
    for (size_t i = 0; i < job->n_sets; i++) {
        free(job->sets[i].columns);
        free(job->sets[i].ranges);
    }
    free(job->sets);
    free(job->goes_out);
}

uint64_t export_values(const export_job *job) {
    uint64_t values = 0;
    for (size_t i = 0; i < job->n_sets; i++)
        values += job->sets[i].rows * job->sets[i].n;
    return values;
}

uint64_t export_row_number(const export_job *job, uint64_t row) {
    const export_set *set = export_find_set(job, D7_GROUP_PHOTONS);
    export_range all = job->ranged == D7_GROUP_PHOTONS ? job->range : (export_range){0, UINT64_MAX, 0};
    const export_range *ranges = set ? set->ranges : &all;
    size_t low = 0, high = set ? set->n_ranges : 1;
    while (low < high) { /* ends with the ranges before `low` beginning before the row */
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].from < row)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0;
    const export_range *in = &ranges[low - 1];
    return in->before + (row < in->to ? row : in->to) - in->from;
}

/* ---- reading ---- */

static int read_failed(const export_job *job, int rc, const d7_error *err) {
    return rc == D7_ERR_CANCELLED ? command_stopped_code(job->self)
                                  : command_fail(job->self, "%s", err->text);
}

typedef struct read_options {
    const export_set *set;
    size_t first, n;
    export_range range;
    bool skip_damaged;
    export_take *take;
    void *ctx;
} read_options;

/* Reads a range. Returns 0, the library's code, or, when it was `take` that failed, its exit code in *ret_code. */
static int read_range(export_job *job, const read_options *o, int *ret_code, d7_error *err) {
    d7_columns_options options;
    d7_columns *columns;
    d7_chunk chunk;
    uint32_t *ids = malloc(o->n * sizeof *ids);
    if (!ids)
        return D7_ERR_NOMEM;
    for (size_t i = 0; i < o->n; i++)
        ids[i] = o->set->columns[o->first + i].dataset_id;
    d7_columns_options_init(&options);
    options.from = o->range.from;
    options.to = o->range.to;
    options.skip_damaged = o->skip_damaged;
    int rc = d7_columns_open(&columns, job->reader, ids, o->n, &options, err);
    free(ids);
    if (rc != 0)
        return rc;
    while (*ret_code == 0 &&
           (rc = cli_stopped ? D7_ERR_CANCELLED : d7_columns_next(columns, &chunk, err)) == 0 &&
           chunk.n > 0) {
        *ret_code = o->take(o->ctx, &chunk);
        job->done += chunk.n * o->n;
        cli_progress_update(&job->bar, job->done);
    }
    d7_columns_free(columns);
    return rc;
}

typedef struct look {
    export_job *job;
    export_set *set;
} look;

static int take_look(void *ctx, const d7_chunk *chunk) {
    look *l = ctx;
    return add_range(l->job, l->set, chunk->first_item, chunk->first_item + chunk->n);
}

/* Reads the wanted rows once to learn which can be read. */
static int look_at_rows(export_job *job, export_set *set) {
    look l = {job, set};
    d7_error err = {0};
    int rc, code, tries = 0;
    uint64_t done = job->done;
    do {
        export_range range = wanted_rows(job, set);
        read_options o = {
            .set = set, .n = set->n, .range = range, .skip_damaged = true, .take = take_look, .ctx = &l};
        set->n_ranges = 0;
        set->rows = 0;
        code = 0;
        free(set->ranges);
        set->ranges = NULL;
        rc = range.to > range.from ? read_range(job, &o, &code, &err) : 0;
        set->left_out = range.to - range.from - set->rows;
    } while (rc == D7_ERR_STATE && ++tries < 3);
    job->done = done;
    set->looked = true;
    return code != 0 ? code : rc != 0 ? read_failed(job, rc, &err) : 0;
}

typedef struct ms_take {
    const export_job *job;
    export_take *take;
    void *ctx;
    uint64_t *values;
    size_t cap;
} ms_take;

/* The first photon of a millisecond, counted as they go out. */
static int take_ms(void *ctx, const d7_chunk *chunk) {
    ms_take *m = ctx;
    const uint64_t *from = chunk->values[0];
    if (chunk->n > m->cap) {
        uint64_t *values = realloc(m->values, chunk->n * sizeof *values);
        if (!values)
            return out_of_memory(m->job);
        m->values = values;
        m->cap = chunk->n;
    }
    for (size_t i = 0; i < chunk->n; i++)
        m->values[i] = export_row_number(m->job, from[i]);
    const void *columns[1] = {m->values};
    d7_chunk changed = {.first_item = chunk->first_item, .n = chunk->n, .values = columns};
    return m->take(m->ctx, &changed);
}

static bool photons_are_left_out(const export_job *job) {
    const export_set *set = export_find_set(job, D7_GROUP_PHOTONS);
    return !job->all_rows || (set && (set->left_out > 0 || shortest(job, set) < longest(job, set)));
}

typedef struct set_reading {
    export_job *job;
    export_set *set;
    read_options options;
} set_reading;

/* Reads all ranges. Returns 0 or the library's code; D7_ERR_STATE also when there were fewer rows than thought. */
static int read_ranges(const set_reading *reading, int *ret_code, d7_error *err) {
    export_job *job = reading->job;
    read_options o = reading->options;
    int rc = 0;
    for (size_t i = 0; i < reading->set->n_ranges && rc == 0 && *ret_code == 0; i++) {
        o.range = reading->set->ranges[i];
        uint64_t expected = job->done + (o.range.to - o.range.from) * o.n;
        rc = read_range(job, &o, ret_code, err);
        if (rc == 0 && *ret_code == 0 && !o.skip_damaged && job->done != expected)
            rc = D7_ERR_STATE;
    }
    return rc;
}

static int read_set(const set_reading *reading) {
    export_set *set = reading->set;
    d7_error err = {.text = "the file changes while it is read"};
    int code = 0, rc = read_ranges(reading, &code, &err);
    if (code != 0)
        return code;
    bool differs = rc == D7_ERR_CORRUPT || rc == D7_ERR_STATE || rc == D7_ERR_ARG;
    if (differs && !set->looked) {
        code = look_at_rows(reading->job, set);
        return code != 0 ? code : EXPORT_AGAIN;
    }
    return rc == 0 ? 0 : read_failed(reading->job, rc, &err);
}

static int read_renumbered(set_reading *reading) {
    const export_set *set = reading->set;
    ms_take ms = {.job = reading->job, .take = reading->options.take, .ctx = reading->options.ctx};
    if (is_ms(set) && d7_type_size(set->columns[0].type) == sizeof(uint64_t) &&
        photons_are_left_out(reading->job)) {
        reading->options.take = take_ms;
        reading->options.ctx = &ms;
    }
    int code = read_set(reading);
    free(ms.values);
    return code;
}

int export_read(export_job *job, export_set *set, size_t first, size_t n, export_take *take, void *ctx) {
    set_reading reading = {job, set, {.set = set, .first = first, .n = n, .take = take, .ctx = ctx}};
    return read_renumbered(&reading);
}

int export_stream(export_job *job, export_set *set, export_take *take, void *ctx) {
    set_reading reading = {
        job, set, {.set = set, .n = set->n, .skip_damaged = true, .take = take, .ctx = ctx}};
    uint64_t before = job->done;
    int code = read_renumbered(&reading);
    if (code == 0)
        set->left_out += set->rows - (job->done - before) / set->n;
    return code;
}

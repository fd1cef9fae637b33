#include "summary.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "summary_private.h"

/* Every kind of summary there is. To add one: a file with its pd_summary_kind, an entry here, its switch in
 * pd_summary_options. */
static const pd_summary_kind *const summary_kinds[] = {&pd_summary_image, &pd_summary_decay,
                                                       &pd_summary_rate};

enum { SUMMARY_N_KINDS = sizeof summary_kinds / sizeof summary_kinds[0], SUMMARY_WARNINGS_MAX = 16 };

typedef struct summary_dataset {
    pd_dataset dataset; /* its texts are owned */
    size_t group;
    size_t column; /* in the group */
} summary_dataset;

struct pd_summary {
    char *name;
    summary_dataset *datasets; /* [n_datasets] */
    size_t n_datasets;
    uint64_t *items; /* [n_groups] binned */
    size_t n_groups;
    size_t photon_group;
    pd_summary_attributes attributes;
    pd_time_base time_base;
    pd_summary_options options;
    uint64_t elapsed_ns;
    bool incomplete;
    bool drops;
    uint64_t dropped;
    void *states[SUMMARY_N_KINDS]; /* NULL: the run has none of this kind */
    char *warnings[SUMMARY_WARNINGS_MAX];
    size_t n_warnings;
};

/* ---- what the kinds ask ---- */

const pd_summary_options *pd_summary_get_options(const pd_summary *s) {
    return &s->options;
}

const pd_time_base *pd_summary_get_time_base(const pd_summary *s) {
    return &s->time_base;
}

size_t pd_summary_photon_group(const pd_summary *s) {
    return s->photon_group;
}

const char *pd_summary_get_attribute(const pd_summary *s, const char *key) {
    return pd_summary_attributes_get(&s->attributes, key);
}

bool pd_summary_find(const pd_summary *s, pd_role role, pd_summary_column *ret) {
    const summary_dataset *found = NULL;
    for (size_t i = 0; i < s->n_datasets; i++) {
        const summary_dataset *d = &s->datasets[i];
        if (d->dataset.role == role && (!found || (d->group == s->photon_group && found->group != d->group)))
            found = d;
    }
    if (!found)
        return false;
    *ret = (pd_summary_column){found->group, found->column, found->dataset.type, &found->dataset};
    return true;
}

double pd_summary_get_number(const pd_summary *s, const char *key) {
    const char *text = pd_summary_get_attribute(s, key);
    if (!text)
        return 0;
    char *end;
    double value = strtod(text, &end);
    while (*end == ' ')
        end++;
    return end != text && *end == '\0' && isfinite(value) && value > 0 ? value : 0;
}

unsigned pd_summary_get_bits(pd_summary *s, const char *key, unsigned low, unsigned high, unsigned missing) {
    const char *text = pd_summary_get_attribute(s, key);
    if (!text) {
        pd_summary_warn(s, "%s is not given: %u bits assumed", key, missing);
        return missing;
    }
    double value = pd_summary_get_number(s, key);
    if (value == floor(value) && value >= (double)low && value <= (double)high)
        return (unsigned)value;
    pd_summary_warn(s, "%s is \"%.40s\", not a whole number from %u to %u: %u bits assumed", key, text, low,
                    high, missing);
    return missing;
}

double pd_summary_step_ps(const pd_dataset *dataset) {
    static const struct {
        const char *unit;
        double ps;
    } units[] = {{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}};
    double scale = dataset->scale == 0 ? 1 : dataset->scale;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (dataset->unit && strcmp(dataset->unit, units[i].unit) == 0 && isfinite(scale) && scale > 0)
            return scale * units[i].ps;
    return 0;
}

void pd_summary_warn(pd_summary *s, const char *format, ...) {
    if (s->n_warnings == SUMMARY_WARNINGS_MAX)
        return;
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    s->warnings[s->n_warnings] = strdup(text);
    if (s->warnings[s->n_warnings])
        s->n_warnings++;
}

/* ---- making one ---- */

static void summary_free_states(void *states[SUMMARY_N_KINDS]) {
    for (size_t k = 0; k < SUMMARY_N_KINDS; k++)
        if (states[k])
            summary_kinds[k]->free(states[k]);
}

static void summary_free_warnings(pd_summary *s) {
    for (size_t i = 0; i < s->n_warnings; i++)
        free(s->warnings[i]);
    s->n_warnings = 0;
}

/* Makes the accumulators anew, by the attributes known now. */
static int summary_make_states(pd_summary *s, pd_error *err) {
    void *states[SUMMARY_N_KINDS] = {NULL};
    summary_free_warnings(s);
    for (size_t k = 0; k < SUMMARY_N_KINDS; k++) {
        if (!summary_kinds[k]->wanted(s))
            continue;
        if (summary_kinds[k]->create(&states[k], s) != 0) {
            summary_free_states(states);
            return pd_error_set(err, "run %s: out of memory for the summary \"%s\"", s->name,
                                summary_kinds[k]->name);
        }
        if (summary_kinds[k]->tick)
            summary_kinds[k]->tick(states[k], s->elapsed_ns);
    }
    summary_free_states(s->states);
    memcpy(s->states, states, sizeof states);
    return 0;
}

static char *summary_copy(const char *text) {
    return strdup(text ? text : "");
}

/* Copies the datasets and numbers groups and columns. Returns -1 when out of memory. */
static int summary_take_datasets(pd_summary *s, const pd_dataset *datasets, size_t n) {
    s->datasets = calloc(n ? n : 1, sizeof *s->datasets);
    s->items = calloc(n ? n : 1, sizeof *s->items);
    if (!s->datasets || !s->items)
        return -1;
    for (size_t i = 0; i < n; i++) {
        summary_dataset *d = &s->datasets[i];
        s->n_datasets = i + 1;
        d->dataset = datasets[i];
        d->dataset.name = summary_copy(datasets[i].name);
        d->dataset.group = summary_copy(pd_dataset_group(&datasets[i]));
        d->dataset.unit = summary_copy(datasets[i].unit);
        if (!d->dataset.name || !d->dataset.group || !d->dataset.unit)
            return -1;
        d->group = s->n_groups;
        for (size_t j = 0; j < i; j++) {
            if (strcmp(s->datasets[j].dataset.group, d->dataset.group) == 0) {
                d->group = s->datasets[j].group;
                d->column++;
            }
        }
        if (d->group == s->n_groups)
            s->n_groups++;
    }
    return 0;
}

static int summary_check_options(const pd_summary_options *o, pd_error *err) {
    if (o->pixels < 16 || o->pixels > 4096 || (o->pixels & (o->pixels - 1)))
        return pd_error_set(err, "pixels: %u is not a power of two from 16 to 4096", o->pixels);
    if (o->max_seconds < 2)
        return pd_error_set(err, "max_seconds: %u is less than 2", o->max_seconds);
    return 0;
}

static int summary_fill(pd_summary *s, const pd_summary_setup *setup, pd_error *err) {
    s->name = summary_copy(setup->name);
    if (!s->name || summary_take_datasets(s, setup->datasets, setup->n_datasets) != 0)
        return pd_error_set(err, "out of memory");
    s->photon_group =
        s->n_datasets ? s->datasets[pd_datasets_photons(setup->datasets, setup->n_datasets)].group : 0;
    s->time_base = setup->time_base;
    s->options = setup->options;
    for (size_t i = 0; i < setup->n_attributes; i++)
        if (pd_summary_attributes_set(&s->attributes, setup->attributes[i].key, setup->attributes[i].value) !=
            0)
            return pd_error_set(err, "out of memory");
    return summary_make_states(s, err);
}

int pd_summary_create(pd_summary **ret, const pd_summary_setup *setup, pd_error *err) {
    if (summary_check_options(&setup->options, err) != 0)
        return -1;
    pd_summary *s = calloc(1, sizeof *s);
    if (!s)
        return pd_error_set(err, "out of memory");
    if (summary_fill(s, setup, err) != 0) {
        pd_summary_free(s);
        return -1;
    }
    *ret = s;
    return 0;
}

int pd_summary_rename(pd_summary *s, const char *name) {
    char *copy = summary_copy(name);
    if (!copy)
        return -1;
    free(s->name);
    s->name = copy;
    return 0;
}

void pd_summary_free(pd_summary *s) {
    if (!s)
        return;
    summary_free_states(s->states);
    summary_free_warnings(s);
    pd_summary_attributes_clear(&s->attributes);
    for (size_t i = 0; i < s->n_datasets; i++) {
        free((char *)s->datasets[i].dataset.name);
        free((char *)s->datasets[i].dataset.group);
        free((char *)s->datasets[i].dataset.unit);
    }
    free(s->datasets);
    free(s->items);
    free(s->name);
    free(s);
}

size_t pd_summary_bytes(const pd_summary *s) {
    size_t bytes = sizeof *s + s->n_datasets * (sizeof *s->datasets + sizeof *s->items) +
                   2 * pd_summary_attributes_bytes(&s->attributes) + 256 * 1024;
    for (size_t k = 0; k < SUMMARY_N_KINDS; k++)
        if (s->states[k])
            bytes += summary_kinds[k]->bytes(s->states[k]);
    return bytes;
}

size_t pd_summary_n_warnings(const pd_summary *s) {
    return s->n_warnings;
}

const char *pd_summary_warning(const pd_summary *s, size_t i) {
    return i < s->n_warnings ? s->warnings[i] : NULL;
}

/* ---- while the run is on ---- */

void pd_summary_bin(pd_summary *s, size_t group, const void *const *columns, uint64_t first_item, size_t n) {
    if (group >= s->n_groups || first_item != s->items[group])
        abort(); /* the caller's mistake: what follows would be wrong numbers */
    for (size_t k = 0; k < SUMMARY_N_KINDS; k++)
        if (s->states[k])
            summary_kinds[k]->bin(s->states[k], group, columns, n);
    s->items[group] += n;
}

void pd_summary_first_photon(pd_summary *s, uint64_t photon) {
    for (size_t k = 0; k < SUMMARY_N_KINDS; k++)
        if (s->states[k] && summary_kinds[k]->first_photon)
            summary_kinds[k]->first_photon(s->states[k], photon);
}

void pd_summary_tick(pd_summary *s, uint64_t elapsed_ns) {
    if (elapsed_ns <= s->elapsed_ns)
        return;
    s->elapsed_ns = elapsed_ns;
    for (size_t k = 0; k < SUMMARY_N_KINDS; k++)
        if (s->states[k] && summary_kinds[k]->tick)
            summary_kinds[k]->tick(s->states[k], elapsed_ns);
}

void pd_summary_instrument_time(pd_summary *s, int64_t ticks) {
    for (size_t k = 0; k < SUMMARY_N_KINDS; k++)
        if (s->states[k] && summary_kinds[k]->instrument_time)
            summary_kinds[k]->instrument_time(s->states[k], ticks);
}

static bool summary_is_empty(const pd_summary *s) {
    for (size_t g = 0; g < s->n_groups; g++)
        if (s->items[g])
            return false;
    return true;
}

static bool summary_is_shaped_by(const char *key) {
    for (size_t k = 0; k < SUMMARY_N_KINDS; k++)
        for (size_t i = 0; i < sizeof summary_kinds[k]->attributes / sizeof summary_kinds[k]->attributes[0];
             i++)
            if (summary_kinds[k]->attributes[i] && strcmp(summary_kinds[k]->attributes[i], key) == 0)
                return true;
    return false;
}

int pd_summary_attribute(pd_summary *s, const char *key, const char *value, pd_error *err) {
    const char *old = pd_summary_get_attribute(s, key);
    bool same = old && strcmp(old, value) == 0;
    if (pd_summary_attributes_set(&s->attributes, key, value) != 0)
        return pd_error_set(err, "run %s: out of memory for the attribute \"%.60s\"", s->name, key);
    return !same && summary_is_shaped_by(key) && summary_is_empty(s) ? summary_make_states(s, err) : 0;
}

void pd_summary_set_incomplete(pd_summary *s, bool incomplete) {
    s->incomplete = incomplete;
}

void pd_summary_set_dropped(pd_summary *s, uint64_t photons) {
    s->drops = true;
    s->dropped = photons;
}

uint64_t pd_summary_items(const pd_summary *s, size_t group) {
    return group < s->n_groups ? s->items[group] : 0;
}

/* ---- freezing ---- */

static double summary_duration_s(const pd_summary *s) {
    for (size_t k = 0; k < SUMMARY_N_KINDS; k++) {
        double duration_s =
            s->states[k] && summary_kinds[k]->duration_s ? summary_kinds[k]->duration_s(s->states[k]) : -1;
        if (duration_s >= 0)
            return duration_s;
    }
    return (double)s->elapsed_ns / 1e9;
}

static int summary_freeze_items(const pd_summary *s, pd_snapshot *snapshot) {
    char name[300];
    for (size_t i = 0; i < s->n_datasets; i++)
        if (pd_summary_scalar_name(name, sizeof name, "items.", s->datasets[i].dataset.name) &&
            pd_snapshot_uint64(snapshot, name, s->items[s->datasets[i].group]) != 0)
            return -1;
    return 0;
}

static int summary_freeze_all(const pd_summary *s, uint64_t export_number, pd_snapshot *snapshot) {
    snapshot->export_number = export_number;
    if (pd_snapshot_string(snapshot, "name", s->name) != 0 ||
        pd_snapshot_uint64(snapshot, "export", export_number) != 0 ||
        pd_snapshot_uint64(snapshot, "photons", pd_summary_items(s, s->photon_group)) != 0 ||
        pd_snapshot_float64(snapshot, "duration_s", summary_duration_s(s)) != 0 ||
        summary_freeze_items(s, snapshot) != 0 ||
        (s->drops && pd_snapshot_uint64(snapshot, "dropped", s->dropped) != 0) ||
        (s->incomplete && pd_snapshot_uint64(snapshot, "incomplete", 1) != 0))
        return -1;
    for (size_t k = 0; k < SUMMARY_N_KINDS; k++)
        if (s->states[k] && summary_kinds[k]->freeze(s->states[k], s, snapshot) != 0)
            return -1;
    return pd_summary_attributes_freeze(&s->attributes, snapshot);
}

int pd_summary_freeze(const pd_summary *s, uint64_t export_number, pd_snapshot *snapshot, pd_error *err) {
    pd_snapshot_reset(snapshot);
    if (summary_freeze_all(s, export_number, snapshot) == 0)
        return 0;
    pd_snapshot_reset(snapshot);
    return pd_error_set(err, "run %s: out of memory for an export", s->name);
}

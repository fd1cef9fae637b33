#include "run_stored.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "text.h"
#include "told.h"

static int stored_fault(const char *path, const char *what, pd_error *why) {
    return pd_error_set(why, "%s: %s", path, what);
}

/* As we write it: in lower case. */
static int stored_id(const char *hex, uint8_t id[PD_RUN_ID_BYTES]) {
    return hex && !strpbrk(hex, "ABCDEF") ? pd_text_unhex(id, PD_RUN_ID_BYTES, hex) : -1;
}

/* One dataset of the file, with what its entry of photond.datasets adds. */
static int stored_dataset(const d7_reader *r, uint32_t id, const json_t *entry, pd_dataset *ret) {
    d7_dataset_info info;
    const char *role = pd_told_text(entry, "role");
    *ret = pd_told_dataset(entry);
    if (d7_reader_dataset(r, id, &info) != 0 || !ret->name || strcmp(ret->name, info.name) != 0)
        return -1;
    ret->type = info.type;
    return role ? pd_role_parse(role, &ret->role) : 0;
}

static int stored_datasets(pd_run_stored *s) {
    size_t n = d7_reader_n_datasets(s->reader);
    s->json = pd_told_json(s->reader, "photond.datasets", 0);
    s->datasets = calloc(n, sizeof *s->datasets);
    if (!s->datasets || json_array_size(s->json) != n)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (stored_dataset(s->reader, (uint32_t)i, json_array_get(s->json, i), &s->datasets[i]) != 0)
            return -1;
    s->spec.datasets = s->datasets;
    s->spec.n_datasets = n;
    return 0;
}

static int stored_attributes(pd_run_stored *s) {
    size_t n = d7_reader_n_attributes(s->reader);
    s->attributes = calloc(n + 1, sizeof *s->attributes);
    if (!s->attributes)
        return -1;
    for (size_t i = 0; i < n; i++) {
        d7_attribute a;
        if (d7_reader_attribute(s->reader, i, &a) == 0)
            s->attributes[s->spec.n_attributes++] = (pd_attribute){a.key, a.value};
    }
    s->spec.attributes = s->attributes;
    return 0;
}

/* Where a later part of a run begins. */
static int stored_place(pd_run_stored *s) {
    const char *first = d7_reader_find_attribute(s->reader, "photond.first_sequence");
    const char *part = d7_reader_find_attribute(s->reader, "photond.part");
    unsigned long number = part ? strtoul(part, NULL, 10) : 0;
    s->first_items = calloc(s->spec.n_datasets + 1, sizeof *s->first_items);
    if (!s->first_items || number > UINT32_MAX)
        return -1;
    s->spec.part = (uint32_t)number;
    s->spec.first_items = s->first_items;
    s->spec.first_sequence = first ? strtoull(first, NULL, 10) : 0;
    if (number == 0)
        return 0;
    json_t *items = pd_told_json(s->reader, "photond.first_items", 0);
    bool whole = first && json_array_size(items) == s->spec.n_datasets;
    for (size_t i = 0; whole && i < s->spec.n_datasets; i++)
        s->first_items[i] = (uint64_t)json_integer_value(json_array_get(items, i));
    json_decref(items);
    return whole ? 0 : -1;
}

static void stored_time_base(pd_run_stored *s) {
    json_t *t = pd_told_json(s->reader, "photond.time_base", 0);
    s->spec.time_base = pd_told_time_base(t);
    s->spec.start_utc_ns = pd_told_number(t, "start_utc_ns");
    s->spec.start_uncertainty_ns = pd_told_number(t, "start_uncertainty_ns");
    s->spec.laser_period_ps = json_number_value(json_object_get(t, "laser_period_ps"));
    json_decref(t);
}

static int stored_learn(pd_run_stored *s, const char *path, pd_error *why) {
    const char *sequence = d7_reader_find_attribute(s->reader, "photond.sequence");
    s->spec.instance = d7_reader_find_attribute(s->reader, "photond.producer");
    if (!s->spec.instance || strlen(s->spec.instance) > PD_INSTANCE_BYTES ||
        stored_id(d7_reader_find_attribute(s->reader, "photond.run"), s->spec.id) != 0)
        return stored_fault(path, "its attributes do not say which run it is of", why);
    if (stored_datasets(s) != 0)
        return stored_fault(path, "its attribute photond.datasets does not describe its datasets", why);
    if (stored_place(s) != 0)
        return stored_fault(path, "its attributes do not say where in the run it begins", why);
    if (stored_attributes(s) != 0)
        return stored_fault(path, "out of memory", why);
    stored_time_base(s);
    s->open = pd_told_json(s->reader, "photond.open", 0);
    s->instead = d7_reader_find_attribute(s->reader, "photond.instead") != NULL;
    s->closed = d7_reader_state(s->reader) == D7_STATE_CLOSED;
    s->last_sequence = sequence ? strtoull(sequence, NULL, 10) : 0;
    return 0;
}

int pd_run_stored_read(pd_run_stored *stored, const pd_datadir *dir, const char *path, pd_error *why) {
    d7_error err = {.text = ""};
    struct stat there;
    d7_reader_options options;
    d7_reader_options_init(&options);
    options.io = pd_datadir_io(dir);
    memset(stored, 0, sizeof *stored);
    const char *file = pd_datadir_within(dir, path);
    if (!file || pd_datadir_look(dir, file, &there) != 0 || !S_ISREG(there.st_mode))
        return stored_fault(path, "it is not a file", why);
    if (d7_reader_open(&stored->reader, path, &options, &err) != 0)
        return pd_error_set(why, "%s", err.text);
    if (stored_learn(stored, path, why) == 0)
        return 0;
    pd_run_stored_free(stored);
    return -1;
}

/* Takes the file when it is a later part of the run of `stored`. */
static void stored_later(pd_run_stored *stored, const pd_datadir *dir, const char *path, uint32_t *n_parts) {
    pd_run_stored next;
    pd_error ignored;
    if (pd_run_stored_read(&next, dir, path, &ignored) != 0)
        return;
    bool same = next.spec.part > 0 && memcmp(next.spec.id, stored->spec.id, PD_RUN_ID_BYTES) == 0;
    *n_parts += same;
    bool later = same && next.spec.part > stored->spec.part;
    if (later) {
        pd_run_stored_free(stored);
        *stored = next;
    } else {
        pd_run_stored_free(&next);
    }
}

int pd_run_stored_last(pd_run_stored *stored, const pd_datadir *dir, const char *name, uint32_t *ret_parts) {
    char path[PATH_MAX], run[PD_PART_NAME_BYTES + 1];
    pd_error ignored;
    pd_datadir_file_path(dir, name, path);
    if (pd_run_stored_read(stored, dir, path, &ignored) != 0)
        return -1;
    uint32_t n_parts = 1;
    DIR *entries = pd_datadir_list(dir, ".");
    for (struct dirent *e = entries ? readdir(entries) : NULL; e; e = readdir(entries)) {
        char part[PD_PART_NAME_BYTES + 1];
        if (!pd_datadir_name_of(e->d_name, ".photons", part) || pd_datadir_name_part(part, run) == 0 ||
            strcmp(run, name) != 0)
            continue;
        pd_datadir_file_path(dir, part, path);
        stored_later(stored, dir, path, &n_parts);
    }
    if (entries)
        closedir(entries);
    *ret_parts = n_parts;
    return 0;
}

void pd_run_stored_items(const pd_run_stored *stored, uint64_t *ret_items) {
    for (size_t i = 0; i < stored->spec.n_datasets; i++) {
        d7_dataset_info info;
        uint64_t items = d7_reader_dataset(stored->reader, (uint32_t)i, &info) == 0 ? info.items : 0;
        uint64_t before = pd_dataset_part_row(&stored->datasets[i], stored->first_items[i]);
        ret_items[i] = before + items > stored->first_items[i] ? before + items : stored->first_items[i];
    }
}

/* As it was asked for; what cannot be is left as the configuration says. */
static void stored_configure_open(pd_run_stored *s, const d7_tail_slot *slot) {
    uint64_t pixels = pd_told_number(s->open, "pixels"),
             interval_ms = pd_told_number(s->open, "export_interval_ms");
    const char *profile = pd_told_text(s->open, "profile"), *client = pd_told_text(s->open, "client");
    if (profile)
        s->spec.profile = profile;
    if (client)
        s->spec.client_name = client;
    if (json_is_boolean(json_object_get(s->open, "summary")))
        s->spec.summary.enabled = json_is_true(json_object_get(s->open, "summary"));
    if (pixels >= 16 && pixels <= 4096 && (pixels & (pixels - 1)) == 0)
        s->spec.summary.pixels = (uint32_t)pixels;
    if (interval_ms)
        s->spec.export_interval_ms = interval_ms;
    s->spec.stop = (pd_run_stop){.photons = pd_told_number(s->open, "stop_photons"),
                                 .bytes = pd_told_number(s->open, "stop_bytes"),
                                 .ms = pd_told_number(s->open, "stop_ms")};
    uint64_t opened = pd_told_number(s->open, "opened_utc_ns"), last = (uint64_t)slot->clock.utc_ns;
    if (opened && slot->clock.utc_ns > 0 && last > opened)
        s->spec.stop_elapsed_ms = (last - opened) / 1000000;
    const char *overflow = pd_told_text(s->open, "overflow");
    s->spec.drop = overflow && strcmp(overflow, "drop") == 0;
    uint64_t batch_bytes = pd_told_number(s->open, "batch_bytes");
    s->spec.batch_bytes = batch_bytes <= PD_WINDOW_BYTES ? batch_bytes : 0;
}

void pd_run_stored_configure(pd_run_stored *stored, const pd_config *config, const char *name,
                             const d7_tail_slot *slot) {
    stored->spec.name = name;
    stored->spec.profile = "";
    stored->spec.client_name = stored->spec.instance;
    stored->spec.epoch = slot->epoch;
    stored->spec.summary = config->summaries;
    stored->spec.export_interval_ms = config->export_interval_ms;
    stored->spec.warned = true;
    stored_configure_open(stored, slot);
}

void pd_run_stored_free(pd_run_stored *stored) {
    d7_reader_free(stored->reader);
    free(stored->datasets);
    free(stored->attributes);
    free(stored->first_items);
    json_decref(stored->json);
    json_decref(stored->open);
    memset(stored, 0, sizeof *stored);
}

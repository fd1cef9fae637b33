#include "recount.h"

#include <stdlib.h>
#include <string.h>

#include "profile.h"
#include "told.h"

enum { RECOUNT_DATASETS_MAX = PD_PROFILE_DATASETS_MAX };

typedef struct recount_group {
    const char *name;
    uint32_t ids[RECOUNT_DATASETS_MAX]; /* [n] in the file, all parts alike */
    size_t n;
    bool is_ms;
    uint64_t items; /* binned */
    uint64_t limit;
} recount_group;

typedef struct recount {
    const char *name;
    json_t *told; /* photond.datasets of the first part, which the datasets point into */
    pd_dataset datasets[RECOUNT_DATASETS_MAX];
    size_t n_datasets;
    recount_group groups[RECOUNT_DATASETS_MAX];
    size_t n_groups;
    pd_attribute *attributes; /* [n_attributes] */
    size_t n_attributes;
    pd_time_base time_base;
    pd_summary *summary;
} recount;

/* ---- what the file tells ---- */

static int recount_dataset(recount *r, const d7_reader *file, const json_t *told, pd_error *err) {
    pd_dataset *d = &r->datasets[r->n_datasets];
    d7_dataset_info info;
    uint32_t id;
    const char *role = pd_told_text(told, "role");
    *d = pd_told_dataset(told);
    d->name = d->name ? d->name : "";
    if (d7_reader_find_dataset(file, d->name, &id) != 0 || d7_reader_dataset(file, id, &info) != 0 || !role ||
        pd_role_parse(role, &d->role) != 0)
        return pd_error_set(
            err,
            "photond.datasets tells of a dataset \"%.100s\" that is not there, or of a role that is none",
            d->name);
    d->type = info.type;
    size_t g = 0;
    while (g < r->n_groups && strcmp(r->groups[g].name, pd_dataset_group(d)) != 0)
        g++;
    recount_group *group = &r->groups[g];
    if (g == r->n_groups)
        r->groups[r->n_groups++] = (recount_group){.name = pd_dataset_group(d), .limit = UINT64_MAX};
    group->is_ms = d->role == PD_ROLE_MS_INDEX;
    group->ids[group->n++] = id;
    r->n_datasets++;
    return 0;
}

static int recount_datasets(recount *r, const d7_reader *file, pd_error *err) {
    const json_t *told;
    size_t i;
    r->told = pd_told_json(file, "photond.datasets", JSON_REJECT_DUPLICATES);
    if (!json_is_array(r->told) || json_array_size(r->told) > RECOUNT_DATASETS_MAX)
        return pd_error_set(
            err, "it does not tell what its datasets mean (photond.datasets): not recorded by photond?");
    json_array_foreach(r->told, i, told) {
        if (recount_dataset(r, file, told, err) != 0)
            return -1;
    }
    return pd_datasets_check(r->datasets, r->n_datasets, NULL, NULL, err);
}

static void recount_time_base(recount *r, const d7_reader *file) {
    json_t *told = pd_told_json(file, "photond.time_base", 0);
    r->time_base = pd_told_time_base(told);
    json_decref(told);
}

/* Those of the instrument: the daemon's own are no part of an export. */
static int recount_attributes(recount *r, const d7_reader *file, pd_error *err) {
    size_t n = d7_reader_n_attributes(file);
    d7_attribute a;
    r->attributes = calloc(n + 1, sizeof *r->attributes);
    if (!r->attributes)
        return pd_error_set(err, "out of memory");
    for (size_t i = 0; i < n; i++)
        if (d7_reader_attribute(file, i, &a) == 0 && strncmp(a.key, "photond.", 8) != 0 &&
            strncmp(a.key, "d7.", 3) != 0)
            r->attributes[r->n_attributes++] = (pd_attribute){a.key, a.value};
    return 0;
}

/* Without one, seconds were those of the daemon, which the file does not hold. */
static bool recount_has_clock(const recount *r) {
    for (size_t i = 0; i < r->n_datasets; i++)
        if (r->datasets[i].role == PD_ROLE_MS_INDEX || r->datasets[i].role == PD_ROLE_TIME_STAMP)
            return true;
    return false;
}

static int recount_begin(recount *r, const d7_reader *file, const pd_summary_options *options,
                         pd_recount_limit *limit, void *user, pd_error *err) {
    if (recount_datasets(r, file, err) != 0 || recount_attributes(r, file, err) != 0)
        return -1;
    recount_time_base(r, file);
    pd_summary_options asked = *options;
    asked.rate = asked.rate && recount_has_clock(r);
    for (size_t d = 0; d < r->n_datasets; d++)
        for (size_t g = 0; g < r->n_groups; g++)
            if (strcmp(r->groups[g].name, pd_dataset_group(&r->datasets[d])) == 0)
                r->groups[g].limit = limit(user, r->datasets[d].name);
    return pd_summary_create(&r->summary,
                             &(pd_summary_setup){.name = r->name,
                                                 .datasets = r->datasets,
                                                 .n_datasets = r->n_datasets,
                                                 .attributes = r->attributes,
                                                 .n_attributes = r->n_attributes,
                                                 .time_base = r->time_base,
                                                 .options = asked},
                             err);
}

/* ---- what it holds ---- */

static void recount_bin(recount *r, size_t g, const d7_chunk *chunk) {
    recount_group *group = &r->groups[g];
    uint64_t left = group->limit - group->items;
    size_t n = chunk->n < left ? chunk->n : (size_t)left;
    pd_summary_bin(r->summary, g, chunk->values, group->items, n);
    group->items += n;
}

static uint64_t part_place(const d7_reader *file, const char *key) {
    const char *text = d7_reader_find_attribute(file, key);
    return text ? strtoull(text, NULL, 10) : 0;
}

/* Rows of a part that the parts before it held: a millisecond in which the run was cut is in both. Returns 0; -1: some are
 * missing between the parts. */
static int part_overlap(const recount_group *group, const d7_reader *file, uint64_t *ret) {
    uint64_t first = part_place(file, "photond.first_ms");
    *ret = 0;
    if (!group->is_ms)
        return 0;
    *ret = group->items - first;
    return first > group->items ? -1 : 0;
}

static int recount_columns(recount *r, d7_columns *columns, size_t g, pd_error *err) {
    d7_error why = {0};
    d7_chunk chunk = {.n = 1};
    const recount_group *group = &r->groups[g];
    while (group->items < group->limit) {
        if (d7_columns_next(columns, &chunk, &why) != 0)
            return pd_error_set(err, "%s", why.text);
        if (chunk.n == 0)
            return 0;
        recount_bin(r, g, &chunk);
    }
    return 0;
}

static int recount_group_of_part(recount *r, d7_reader *file, size_t g, pd_error *err) {
    const recount_group *group = &r->groups[g];
    d7_columns *columns = NULL;
    d7_columns_options options;
    d7_dataset_info info;
    d7_error why = {0};
    d7_columns_options_init(&options);
    if (d7_reader_dataset(file, group->ids[0], &info) != 0 || part_overlap(group, file, &options.from) != 0)
        return pd_error_set(err, "milliseconds are missing between it and the part before");
    if (options.from >= info.items)
        return 0;
    if (d7_columns_open(&columns, file, group->ids, group->n, &options, &why) != 0)
        return pd_error_set(err, "%s", why.text);
    pd_summary_first_photon(r->summary, part_place(file, "photond.first_photon"));
    int failed = recount_columns(r, columns, g, err);
    d7_columns_free(columns);
    return failed;
}

static int recount_part(recount *r, d7_reader *file, pd_error *err) {
    for (size_t g = 0; g < r->n_groups; g++)
        if (recount_group_of_part(r, file, g, err) != 0)
            return -1;
    return 0;
}

/* A later part must be of the same run, with the same datasets. */
static int recount_check_part(const recount *r, const d7_reader *first, const d7_reader *part,
                              pd_error *err) {
    const char *a = d7_reader_find_attribute(first, "photond.run"),
               *b = d7_reader_find_attribute(part, "photond.run");
    if (!a || !b || strcmp(a, b) != 0 || d7_reader_n_datasets(first) != d7_reader_n_datasets(part))
        return pd_error_set(err, "it is of another run than the first part");
    for (size_t i = 0; i < r->n_datasets; i++) {
        uint32_t at, there;
        if (d7_reader_find_dataset(first, r->datasets[i].name, &at) != 0 ||
            d7_reader_find_dataset(part, r->datasets[i].name, &there) != 0 || at != there)
            return pd_error_set(err, "it has other datasets than the first part");
    }
    return 0;
}

static int recount_open(d7_reader **file, const char *path, pd_error *err) {
    d7_error why = {0};
    return d7_reader_open(file, path, NULL, &why) == 0 ? 0 : pd_error_set(err, "%s", why.text);
}

int pd_recount(pd_summary **ret, const char *name, const char *const *paths, size_t n,
               const pd_summary_options *options, pd_recount_limit *limit, void *user, pd_error *err) {
    recount *r = calloc(1, sizeof *r);
    d7_reader *first = NULL;
    if (!r)
        return pd_error_set(err, "out of memory");
    r->name = name;
    int failed = recount_open(&first, paths[0], err) != 0 ||
                 recount_begin(r, first, options, limit, user, err) != 0 || recount_part(r, first, err) != 0;
    const char *at = paths[0];
    for (size_t i = 1; !failed && i < n; i++) {
        d7_reader *part = NULL;
        at = paths[i];
        failed = recount_open(&part, at, err) != 0 || recount_check_part(r, first, part, err) != 0 ||
                 recount_part(r, part, err) != 0;
        d7_reader_free(part);
    }
    if (failed) {
        pd_error_prefix(err, "%s", at);
        pd_summary_free(r->summary);
    } else {
        *ret = r->summary;
    }
    d7_reader_free(first);
    json_decref(r->told);
    free(r->attributes);
    free(r);
    return failed ? -1 : 0;
}

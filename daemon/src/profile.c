#include "profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/names.h"

/* ---- built in ---- */

#define X                                                                                                    \
    { "/photons/x", D7_UINT16, "photons", PD_ROLE_POSITION_X, "", 1 }
#define Y                                                                                                    \
    { "/photons/y", D7_UINT16, "photons", PD_ROLE_POSITION_Y, "", 1 }
#define DT                                                                                                   \
    { "/photons/dt", D7_UINT16, "photons", PD_ROLE_MICRO_TIME, "", 1 }
#define MS                                                                                                   \
    { "/photons/ms", D7_UINT64, "ms", PD_ROLE_MS_INDEX, "", 1 }

static const pd_dataset profile_lincam[] = {X, Y, DT, MS};
static const pd_dataset profile_lincam_dual[] = {
    X,
    Y,
    DT,
    MS,
    {"/start/time", D7_UINT64, "photons", PD_ROLE_START, "ps", 1},
    {"/stop/time", D7_UINT64, "photons", PD_ROLE_STOP, "ps", 1}};
static const pd_dataset profile_lintag[] = {
    {"/tags/channel", D7_UINT8, "tags", PD_ROLE_CHANNEL, "", 1},
    {"/tags/time", D7_UINT64, "tags", PD_ROLE_TIME_STAMP, "ps", 1},
};

#undef X
#undef Y
#undef DT
#undef MS

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const pd_profile profile_built_in[] = {
    {"lincam", profile_lincam, COUNT(profile_lincam), true},
    {"lincam-dual", profile_lincam_dual, COUNT(profile_lincam_dual), true},
    {"lintag", profile_lintag, COUNT(profile_lintag), false},
};

/* ---- custom ---- */

struct pd_profiles {
    pd_profile *profiles; /* [n], the built-in ones first */
    size_t n;
    json_t *custom; /* names and texts of the custom ones point into it */
};

/* Where the reading of the custom profiles is, and where a fault goes to. */
typedef struct profile_reader {
    const char *name; /* of the profile */
    size_t index;     /* of the dataset */
    char *path;       /* out: of the value at fault */
    pd_error *err;
} profile_reader;

enum { PROFILE_PATH_BYTES = 256 };

static void profile_set_path(char *path, const char *name, size_t index, const char *key) {
    if (path)
        snprintf(path, PROFILE_PATH_BYTES, "%.180s[%zu]%s%s", name, index, key ? "." : "", key ? key : "");
}

/* Remembers where the fault is; pd_error_set says what. */
static pd_error *profile_at(const profile_reader *r, const char *key) {
    profile_set_path(r->path, r->name, r->index, key);
    return r->err;
}

static int profile_read_text(const profile_reader *r, const char *key, const json_t *value,
                             const char **ret) {
    if (!json_is_string(value))
        return pd_error_set(profile_at(r, key), "must be a string");
    *ret = json_string_value(value);
    return 0;
}

static int profile_read_type(const profile_reader *r, const char *key, const json_t *value, d7_type *ret) {
    const char *text;
    if (profile_read_text(r, key, value, &text) != 0)
        return -1;
    if (d7_type_parse(text, ret) != 0)
        return pd_error_set(profile_at(r, key),
                            "\"%.40s\" is no element type (int8, ..., uint64, float, double)", text);
    return 0;
}

static int profile_read_role(const profile_reader *r, const char *key, const json_t *value, pd_role *ret) {
    const char *text;
    if (profile_read_text(r, key, value, &text) != 0)
        return -1;
    if (pd_role_parse(text, ret) != 0)
        return pd_error_set(
            profile_at(r, key),
            "\"%.40s\" is no role (none, position_x, position_y, micro_time, channel, time_stamp, "
            "ms_index, start, stop)",
            text);
    return 0;
}

static int profile_read_scale(const profile_reader *r, const char *key, const json_t *value, double *ret) {
    if (!json_is_number(value))
        return pd_error_set(profile_at(r, key), "must be a number");
    *ret = json_number_value(value);
    return 0;
}

static int profile_read_member(const profile_reader *r, const char *key, const json_t *value, pd_dataset *d) {
    if (strcmp(key, "name") == 0)
        return profile_read_text(r, key, value, &d->name);
    if (strcmp(key, "type") == 0)
        return profile_read_type(r, key, value, &d->type);
    if (strcmp(key, "group") == 0)
        return profile_read_text(r, key, value, &d->group);
    if (strcmp(key, "role") == 0)
        return profile_read_role(r, key, value, &d->role);
    if (strcmp(key, "unit") == 0)
        return profile_read_text(r, key, value, &d->unit);
    if (strcmp(key, "scale") == 0)
        return profile_read_scale(r, key, value, &d->scale);
    return pd_error_set(profile_at(r, key), "unknown key (name, type, group, role, unit, scale are known)");
}

static int profile_read_dataset(const profile_reader *r, json_t *value, pd_dataset *d) {
    if (!json_is_object(value))
        return pd_error_set(profile_at(r, NULL), "must be an object with name and type");
    *d = (pd_dataset){.group = "", .unit = "", .scale = 1};
    const char *key;
    json_t *member;
    json_object_foreach(value, key, member) {
        if (profile_read_member(r, key, member, d) != 0)
            return -1;
    }
    if (!json_object_get(value, "name") || !json_object_get(value, "type"))
        return pd_error_set(profile_at(r, NULL), "needs a name and a type");
    return 0;
}

static int profile_read(pd_profile *profile, const char *name, json_t *value, char *path, pd_error *err) {
    size_t n = json_array_size(value);
    if (path)
        snprintf(path, PROFILE_PATH_BYTES, "%.180s", name);
    if (!json_is_array(value) || n == 0 || n > PD_PROFILE_DATASETS_MAX)
        return pd_error_set(err, "must be a list of 1 to %u datasets", PD_PROFILE_DATASETS_MAX);
    pd_dataset *datasets = calloc(n, sizeof *datasets);
    if (!datasets)
        return pd_error_set(err, "out of memory");
    *profile = (pd_profile){name, datasets, n, false};
    profile_reader r = {name, 0, path, err};
    for (; r.index < n; r.index++)
        if (profile_read_dataset(&r, json_array_get(value, r.index), &datasets[r.index]) != 0)
            return -1;
    size_t index;
    const char *field;
    if (pd_datasets_check(datasets, n, &index, &field, err) != 0) {
        profile_set_path(path, name, index, field);
        return -1;
    }
    return 0;
}

static int profile_read_all(pd_profiles *p, char *path, pd_error *err) {
    const char *name;
    json_t *value;
    json_object_foreach(p->custom, name, value) {
        if (path)
            snprintf(path, PROFILE_PATH_BYTES, "%.180s", name);
        if (wire_dataset_name_fault(name))
            return pd_error_set(err, "the profile's name %s", wire_dataset_name_fault(name));
        if (pd_profiles_find(p, name))
            return pd_error_set(err, "is the name of a built-in profile");
        if (profile_read(&p->profiles[p->n++], name, value, path, err) != 0)
            return -1;
    }
    return 0;
}

int pd_profiles_create(pd_profiles **ret, const json_t *custom, char *path, pd_error *err) {
    size_t n_custom = json_object_size(custom);
    if (path)
        path[0] = '\0';
    if (custom && !json_is_object(custom))
        return pd_error_set(err, "must be an object of profiles by name");
    if (n_custom > PD_PROFILES_MAX)
        return pd_error_set(err, "%zu profiles are more than %u", n_custom, PD_PROFILES_MAX);
    pd_profiles *p = calloc(1, sizeof *p);
    if (p) {
        p->profiles = calloc(COUNT(profile_built_in) + n_custom, sizeof *p->profiles);
        p->custom = custom ? json_deep_copy(custom) : json_object();
    }
    if (!p || !p->profiles || !p->custom) {
        pd_profiles_free(p);
        return pd_error_set(err, "out of memory");
    }
    for (; p->n < COUNT(profile_built_in); p->n++)
        p->profiles[p->n] = profile_built_in[p->n];
    if (profile_read_all(p, path, err) != 0) {
        pd_profiles_free(p);
        return -1;
    }
    *ret = p;
    return 0;
}

void pd_profiles_free(pd_profiles *p) {
    if (!p)
        return;
    for (size_t i = COUNT(profile_built_in); i < p->n; i++)
        free((pd_dataset *)p->profiles[i].datasets);
    free(p->profiles);
    json_decref(p->custom);
    free(p);
}

const pd_profile *pd_profiles_find(const pd_profiles *p, const char *name) {
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->profiles[i].name, name) == 0)
            return &p->profiles[i];
    return NULL;
}

size_t pd_profiles_count(const pd_profiles *p) {
    return p->n;
}

const pd_profile *pd_profiles_at(const pd_profiles *p, size_t i) {
    return i < p->n ? &p->profiles[i] : NULL;
}

static json_t *profile_json(const pd_profile *profile) {
    json_t *list = json_array();
    for (size_t i = 0; i < profile->n_datasets; i++) {
        const pd_dataset *d = &profile->datasets[i];
        json_t *dataset = json_pack("{s:s, s:s, s:s, s:s, s:s, s:f}", "name", d->name, "type",
                                    d7_type_name(d->type), "group", pd_dataset_group(d), "role",
                                    pd_role_name(d->role), "unit", d->unit ? d->unit : "", "scale", d->scale);
        if (json_array_append_new(list, dataset) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

json_t *pd_profiles_json(const pd_profiles *p) {
    json_t *all = json_object();
    for (size_t i = COUNT(profile_built_in); i < p->n; i++) {
        if (json_object_set_new(all, p->profiles[i].name, profile_json(&p->profiles[i])) != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

/* ---- the rules ---- */

static int profile_fault(size_t i, const char *at, size_t *index, const char **field) {
    if (index)
        *index = i;
    if (field)
        *field = at;
    return -1;
}

static const char *profile_check_one(const pd_dataset *d, pd_error *err) {
    const char *why = wire_dataset_name_fault(d->name ? d->name : "");
    if (why) {
        pd_error_set(err, "the dataset's name %s", why);
        return "name";
    }
    if (d7_type_size(d->type) == 0) {
        pd_error_set(err, "%s: %d is no element type", d->name, (int)d->type);
        return "type";
    }
    if (!pd_role_name(d->role)) {
        pd_error_set(err, "%s: %d is no role", d->name, (int)d->role);
        return "role";
    }
    if (wire_dataset_name_fault(pd_dataset_group(d))) {
        pd_error_set(err, "%s: the group's name %s", d->name, wire_dataset_name_fault(pd_dataset_group(d)));
        return "group";
    }
    if (!isfinite(d->scale) || d->scale < 0) {
        pd_error_set(err, "%s: the scale must be a positive number", d->name);
        return "scale";
    }
    return NULL;
}

/* What a dataset may not share with one before it. */
static const char *profile_check_pair(const pd_dataset *before, const pd_dataset *d, pd_error *err) {
    if (strcmp(before->name, d->name) == 0) {
        pd_error_set(err, "%s is there twice", d->name);
        return "name";
    }
    if (strcmp(pd_dataset_group(before), pd_dataset_group(d)) != 0)
        return NULL;
    if (d->role != PD_ROLE_NONE && before->role == d->role) {
        pd_error_set(err, "%s and %s have the same role (%s) in the group \"%s\"", before->name, d->name,
                     pd_role_name(d->role), pd_dataset_group(d));
        return "role";
    }
    if (d->role == PD_ROLE_MS_INDEX || before->role == PD_ROLE_MS_INDEX) {
        pd_error_set(err, "%s and %s are in one group (\"%s\"), but an ms_index is of no other's length",
                     before->name, d->name, pd_dataset_group(d));
        return "group";
    }
    return NULL;
}

int pd_datasets_check(const pd_dataset *datasets, size_t n, size_t *index, const char **field,
                      pd_error *err) {
    for (size_t i = 0; i < n; i++) {
        const char *at = profile_check_one(&datasets[i], err);
        for (size_t j = 0; j < i && !at; j++)
            at = profile_check_pair(&datasets[j], &datasets[i], err);
        if (at)
            return profile_fault(i, at, index, field);
    }
    return 0;
}

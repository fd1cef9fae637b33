#include "source.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int send_refuse(send_fault *fault, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(fault->text, sizeof fault->text, format, list);
    va_end(list);
    return -1;
}

send_source *send_source_make(size_t own_bytes, send_fault *fault) {
    send_source *s = calloc(1, sizeof *s);
    void *own = calloc(1, own_bytes);
    if (!s || !own) {
        free(s);
        free(own);
        send_refuse(fault, "no memory");
        return NULL;
    }
    s->own = own;
    s->unit = "items";
    s->n_events = SEND_UNKNOWN;
    return s;
}

void send_source_free(send_source *s) {
    if (!s)
        return;
    if (s->free)
        s->free(s);
    for (size_t i = 0; i < s->n_datasets; i++) {
        free((char *)(uintptr_t)s->datasets[i].name);
        free((char *)(uintptr_t)s->datasets[i].group);
    }
    for (size_t i = 0; i < s->n_attributes; i++) {
        free((char *)(uintptr_t)s->attributes[i].key);
        free((char *)(uintptr_t)s->attributes[i].value);
    }
    free(s->attributes);
    free(s->own);
    free(s);
}

/* The conventions of LINCam and LINTag files. */
static const send_known source_known[] = {
    {"x", "/photons/x", "photons", PHOTON_CLIENT_ROLE_POSITION_X, NULL},
    {"y", "/photons/y", "photons", PHOTON_CLIENT_ROLE_POSITION_Y, NULL},
    {"dt", "/photons/dt", "photons", PHOTON_CLIENT_ROLE_MICRO_TIME, NULL},
    {"start", "/start/time", "photons", PHOTON_CLIENT_ROLE_START, "ps"},
    {"stop", "/stop/time", "photons", PHOTON_CLIENT_ROLE_STOP, "ps"},
    {NULL, "/photons/aat", "photons", PHOTON_CLIENT_ROLE_TIME_STAMP, NULL},
    {"ms", "/photons/ms", "ms", PHOTON_CLIENT_ROLE_MS_INDEX, NULL},
    {"channel", "/tags/channel", "tags", PHOTON_CLIENT_ROLE_CHANNEL, NULL},
    {"time", "/tags/time", "tags", PHOTON_CLIENT_ROLE_TIME_STAMP, "ps"},
};

const send_known *send_find_known(const char *stem, const char *dataset) {
    for (size_t i = 0; i < sizeof source_known / sizeof *source_known; i++) {
        const send_known *k = &source_known[i];
        if ((stem && k->stem && strcmp(stem, k->stem) == 0) || (dataset && strcmp(dataset, k->dataset) == 0))
            return k;
    }
    return NULL;
}

size_t send_find_group(const send_source *s, const char *name) {
    for (size_t i = 0; i < s->n_datasets; i++)
        if (strcmp(s->datasets[i].group, name) == 0)
            return s->group_of[i];
    return SEND_NO_GROUP;
}

size_t send_find_role(const send_source *s, uint32_t role) {
    for (size_t i = 0; i < s->n_datasets; i++)
        if (s->datasets[i].role == role)
            return i;
    return SEND_DATASETS_MAX;
}

int send_add_dataset(send_source *s, const char *name, uint32_t type, send_fault *fault) {
    size_t at = s->n_datasets;
    const send_known *known = send_find_known(NULL, name);
    for (size_t i = 0; i < at; i++)
        if (strcmp(s->datasets[i].name, name) == 0)
            return send_refuse(fault, "two columns are to be '%s'", name);
    if (at == SEND_DATASETS_MAX)
        return send_refuse(fault, "more than %d datasets", SEND_DATASETS_MAX);
    char *own_name = strdup(name), *group = strdup(known ? known->group : name);
    if (!own_name || !group) {
        free(own_name);
        free(group);
        return send_refuse(fault, "no memory");
    }
    size_t known_group = send_find_group(s, group);
    s->datasets[at] = (photon_client_dataset){.name = own_name,
                                              .type = type,
                                              .group = group,
                                              .role = known ? known->role : PHOTON_CLIENT_ROLE_NONE,
                                              .unit = known ? known->unit : NULL};
    s->group_of[at] = known_group != SEND_NO_GROUP ? known_group : s->n_groups++;
    s->n_datasets++;
    return (int)at;
}

void send_settle_events(send_source *s, const uint64_t *lengths) {
    size_t group = SEND_NO_GROUP;
    for (size_t i = 0; i < s->n_datasets && group == SEND_NO_GROUP; i++)
        if (s->datasets[i].role != PHOTON_CLIENT_ROLE_NONE &&
            s->datasets[i].role != PHOTON_CLIENT_ROLE_MS_INDEX)
            group = s->group_of[i];
    if (group != SEND_NO_GROUP) {
        s->event_group = group;
        s->unit = group == send_find_group(s, "tags") ? "tags" : "photons";
        return;
    }
    s->event_group = 0;
    for (size_t g = 1; lengths && g < s->n_groups; g++)
        if (lengths[g] > lengths[s->event_group])
            s->event_group = g;
}

int send_add_attribute(send_source *s, const char *key, const char *value, send_fault *fault) {
    for (size_t i = 0; i < s->n_attributes; i++) {
        if (strcmp(s->attributes[i].key, key) == 0) {
            char *copy = strdup(value);
            if (!copy)
                return send_refuse(fault, "no memory");
            free((char *)(uintptr_t)s->attributes[i].value);
            s->attributes[i].value = copy;
            return 0;
        }
    }
    photon_client_attribute *more = realloc(s->attributes, (s->n_attributes + 1) * sizeof *more);
    if (!more)
        return send_refuse(fault, "no memory");
    s->attributes = more;
    more[s->n_attributes] = (photon_client_attribute){strdup(key), strdup(value)};
    s->n_attributes++;
    if (!more[s->n_attributes - 1].key || !more[s->n_attributes - 1].value)
        return send_refuse(fault, "no memory");
    return 0;
}

static double source_number(const send_source *s, const char *key) {
    for (size_t i = 0; i < s->n_attributes; i++)
        if (strcmp(s->attributes[i].key, key) == 0)
            return strtod(s->attributes[i].value, NULL);
    return 0;
}

static void source_settle_tick(send_source *s, double frequency) {
    photon_client_time_base *base = &s->time_base;
    size_t stamp = send_find_role(s, PHOTON_CLIENT_ROLE_TIME_STAMP);
    if (s->recorded.tick_ps_denominator) {
        base->tick_ps_numerator = s->recorded.tick_ps_numerator;
        base->tick_ps_denominator = s->recorded.tick_ps_denominator;
        base->counter_bits = s->recorded.counter_bits;
    } else if (stamp == SEND_DATASETS_MAX) {
        return;
    } else if (s->datasets[stamp].unit && strcmp(s->datasets[stamp].unit, "ps") == 0) {
        base->tick_ps_numerator = base->tick_ps_denominator = 1;
    } else if (frequency >= 1 && frequency < 1e12) {
        base->tick_ps_numerator = UINT64_C(1000000000000);
        base->tick_ps_denominator = (uint64_t)(frequency + 0.5);
    }
}

/* TimerFrequency counts laser pulses: its period is the laser's, and the tick of /photons/aat. Stamps of tags are in
 * picoseconds. What a recorder has told counts more. */
void send_settle_time(send_source *s) {
    double frequency = source_number(s, "/photons/TimerFrequency");
    if (s->recorded.laser_period_ps > 0)
        s->time_base.laser_period_ps = s->recorded.laser_period_ps;
    else if (frequency > 0 && isfinite(frequency))
        s->time_base.laser_period_ps = 1e12 / frequency;
    source_settle_tick(s, frequency);
}

int send_type_of_ending(const char *ending) {
    static const char *const endings[] = {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64"};
    for (int i = 0; i < 10; i++)
        if (strcmp(ending, endings[i]) == 0)
            return i;
    return -1;
}

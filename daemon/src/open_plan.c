#include "open_plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "log.h"
#include "wire/names.h"
#include "wire/pattern.h"

#define CODE(name) PHOTON__ERROR_CODE__ERROR_##name

enum { OPEN_EXPORT_INTERVAL_MIN_MS = 10 }; /* as in the configuration */

/* Parts of the protocol that are specified and not built. */
static int open_check_supported(const Photon__Open *open, pd_refusal *why) {
    if (open->byte_order == PHOTON__BYTE_ORDER__BYTES_BIG_ENDIAN)
        return pd_refuse(why, CODE(NOT_SUPPORTED), "open.byte_order",
                         "big-endian columns are not supported yet");
    return 0;
}

static int open_check_values(const Photon__Open *open, pd_refusal *why) {
    const char *fault = wire_pattern_fault(open->name);
    if (fault)
        return pd_refuse(why, CODE(BAD_NAME), "open.name", fault);
    if (open->mode != PHOTON__OPEN_MODE__MODE_CREATE && open->mode != PHOTON__OPEN_MODE__MODE_COUNTER &&
        open->mode != PHOTON__OPEN_MODE__MODE_RESUME)
        return pd_refuse(why, CODE(NOT_SUPPORTED), "open.mode", "unknown mode");
    if (open->overflow != PHOTON__OVERFLOW__OVERFLOW_BLOCK &&
        open->overflow != PHOTON__OVERFLOW__OVERFLOW_DROP)
        return pd_refuse(why, CODE(NOT_SUPPORTED), "open.overflow", "unknown policy");
    if (open->byte_order != PHOTON__BYTE_ORDER__BYTES_LITTLE_ENDIAN &&
        open->byte_order != PHOTON__BYTE_ORDER__BYTES_BIG_ENDIAN)
        return pd_refuse(why, CODE(NOT_SUPPORTED), "open.byte_order", "unknown byte order");
    if (open->stop && !(open->stop->seconds >= 0 && isfinite(open->stop->seconds)))
        return pd_refuse(why, CODE(MALFORMED), "open.stop.seconds", "not a time");
    const Photon__TimeBase *t = open->time_base;
    if (t && (t->tick_ps_numerator == 0) != (t->tick_ps_denominator == 0))
        return pd_refuse(why, CODE(MALFORMED), "open.time_base", "numerator and denominator belong together");
    if (t && t->counter_bits > 64)
        return pd_refuse(why, CODE(MALFORMED), "open.time_base.counter_bits", "64 bits are the most");
    if (t && !(t->laser_period_ps >= 0 && t->laser_period_ps < 1e18))
        return pd_refuse(why, CODE(MALFORMED), "open.time_base.laser_period_ps", "not a period");
    return 0;
}

static int open_check_attributes(const pd_config *config, const Photon__Open *open, pd_refusal *why) {
    if (open->n_attributes > config->max_attributes)
        return pd_refuse(why, CODE(LIMIT), "open.attributes", "more than Limits.attributes allows");
    for (size_t i = 0; i < open->n_attributes; i++) {
        pd_attribute attribute = {open->attributes[i]->key, open->attributes[i]->value};
        const char *fault = pd_attribute_fault(config, &attribute);
        if (fault) {
            pd_refuse(why, CODE(BAD_ATTRIBUTE), "", fault);
            snprintf(why->field, sizeof why->field, "open.attributes[%zu]", i);
            return -1;
        }
    }
    return 0;
}

static bool is_power_of_two(uint32_t n) {
    return n && !(n & (n - 1));
}

static int open_summary(const pd_config *config, const Photon__Open *open, pd_run_spec *spec,
                        pd_refusal *why) {
    const Photon__SummaryOptions *o = open->summary;
    spec->summary = config->summaries;
    spec->export_interval_ms = config->export_interval_ms;
    if (!o)
        return 0;
    if (o->enabled != PHOTON__SWITCH__SWITCH_DEFAULT && o->enabled != PHOTON__SWITCH__SWITCH_ON &&
        o->enabled != PHOTON__SWITCH__SWITCH_OFF)
        return pd_refuse(why, CODE(NOT_SUPPORTED), "open.summary.enabled", "unknown switch");
    if (o->enabled != PHOTON__SWITCH__SWITCH_DEFAULT)
        spec->summary.enabled = o->enabled == PHOTON__SWITCH__SWITCH_ON;
    if (o->pixels) {
        if (!is_power_of_two(o->pixels) || o->pixels < 16 || o->pixels > 4096)
            return pd_refuse(why, CODE(LIMIT), "open.summary.pixels",
                             "a power of two from 16 to 4096 is needed");
        spec->summary.pixels = o->pixels;
    }
    if (o->export_interval_ms) {
        if (o->export_interval_ms < OPEN_EXPORT_INTERVAL_MIN_MS)
            return pd_refuse(why, CODE(LIMIT), "open.summary.export_interval_ms", "10 ms are the least");
        spec->export_interval_ms = o->export_interval_ms;
    }
    return 0;
}

/* ---- the specification of a run ---- */

void pd_open_plan_free(pd_open_plan *plan) {
    free(plan->datasets);
    free(plan->attributes);
}

static int plan_check_datasets(const pd_config *config, pd_open_plan *plan, pd_refusal *why) {
    size_t index = 0;
    const char *field = NULL;
    pd_error err = {""};
    if (plan->spec.n_datasets > config->max_datasets)
        return pd_refuse(why, CODE(LIMIT), "open.datasets", "more than Limits.datasets allows");
    if (plan->spec.n_datasets > WIRE_MAX_COLUMNS)
        return pd_refuse(why, CODE(LIMIT), "open.datasets", "more than 256 datasets");
    if (pd_datasets_check(plan->spec.datasets, plan->spec.n_datasets, &index, &field, &err) == 0)
        return 0;
    pd_refuse(why, CODE(BAD_DATASETS), "", err.text);
    snprintf(why->field, sizeof why->field, "open.datasets[%zu]%s%s", index, field ? "." : "",
             field ? field : "");
    return -1;
}

static int plan_given_datasets(const pd_config *config, const Photon__Open *open, pd_open_plan *plan,
                               pd_refusal *why) {
    if (open->n_datasets > config->max_datasets)
        return pd_refuse(why, CODE(LIMIT), "open.datasets", "more than Limits.datasets allows");
    plan->datasets = calloc(open->n_datasets, sizeof *plan->datasets);
    if (!plan->datasets)
        return pd_refuse(why, CODE(NO_ROOM), "open.datasets", "out of memory");
    for (size_t i = 0; i < open->n_datasets; i++) {
        const Photon__Dataset *d = open->datasets[i];
        const char *fault = wire_dataset_name_fault(d->name);
        if (fault) {
            pd_refuse(why, CODE(BAD_DATASETS), "", fault);
            snprintf(why->field, sizeof why->field, "open.datasets[%zu].name", i);
            return -1;
        }
        plan->datasets[i] =
            (pd_dataset){d->name, (d7_type)d->type, d->group, (pd_role)d->role, d->unit, d->scale};
    }
    plan->spec.datasets = plan->datasets;
    plan->spec.n_datasets = open->n_datasets;
    return 0;
}

/* Milliseconds of dropped batches are written as empty ones: there must be one list of them, of integers. */
static int plan_overflow(const pd_config *config, const Photon__Open *open, pd_open_plan *plan,
                         pd_refusal *why) {
    size_t n_ms = 0;
    bool counts = true;
    plan->spec.drop =
        config->overflow == PD_OVERFLOW_DROP ||
        (config->overflow == PD_OVERFLOW_CLIENT && open->overflow == PHOTON__OVERFLOW__OVERFLOW_DROP);
    for (size_t i = 0; i < plan->spec.n_datasets; i++) {
        const pd_dataset *d = &plan->spec.datasets[i];
        if (d->role != PD_ROLE_MS_INDEX)
            continue;
        n_ms++;
        counts &= d->type != D7_FLOAT && d->type != D7_DOUBLE;
    }
    if (plan->spec.drop && (n_ms > 1 || !counts))
        return pd_refuse(why, CODE(NOT_SUPPORTED), "open.overflow",
                         "batches can be dropped of runs with one ms_index, of an integer type, or none");
    return 0;
}

static int plan_datasets(const pd_config *config, const Photon__Open *open, pd_open_plan *plan,
                         const pd_profile **profile, pd_refusal *why) {
    if ((*open->profile != 0) == (open->n_datasets > 0))
        return pd_refuse(why, CODE(BAD_DATASETS), "open.datasets",
                         "either a profile or datasets must be given");
    plan->spec.profile = open->profile;
    if (!*open->profile)
        return plan_given_datasets(config, open, plan, why) != 0 ? -1
                                                                 : plan_check_datasets(config, plan, why);
    *profile = pd_profiles_find(config->profiles, open->profile);
    if (!*profile)
        return pd_refuse(why, CODE(UNKNOWN_PROFILE), "open.profile", "no profile of this name is configured");
    plan->spec.datasets = (*profile)->datasets;
    plan->spec.n_datasets = (*profile)->n_datasets;
    return plan_check_datasets(config, plan, why);
}

/* The client's attributes, and those that files of such an instrument carry when the client gave none. */
static int plan_attributes(const Photon__Open *open, pd_open_plan *plan, pd_refusal *why) {
    plan->attributes = calloc(open->n_attributes + PD_LINCAM_DEFAULTS_MAX, sizeof *plan->attributes);
    if (!plan->attributes)
        return pd_refuse(why, CODE(NO_ROOM), "open.attributes", "out of memory");
    size_t n = 0;
    for (; n < open->n_attributes; n++)
        plan->attributes[n] = (pd_attribute){open->attributes[n]->key, open->attributes[n]->value};
    if (plan->lincam) {
        size_t n_defaults = pd_lincam_defaults(plan->defaults, plan->attributes, n);
        for (size_t i = 0; i < n_defaults; i++)
            plan->attributes[n++] = (pd_attribute){plan->defaults[i].key, plan->defaults[i].value};
    }
    plan->spec.attributes = plan->attributes;
    plan->spec.n_attributes = n;
    return 0;
}

/* A pattern is filled in; its counter, or one behind a name that is taken, when the file gets its name. */
static int plan_name(const Photon__Open *open, pd_open_plan *plan, pd_refusal *why) {
    struct tm when;
    time_t now = time(NULL);
    plan->spec.name = open->name;
    plan->spec.counter = open->mode == PHOTON__OPEN_MODE__MODE_COUNTER;
    if (!wire_pattern_is(open->name))
        return 0;
    plan->spec.name = plan->name;
    plan->spec.counter = true;
    char counted[WIRE_RUN_NAME_ROOM];
    if (!localtime_r(&now, &when) || wire_pattern_fill(plan->name, open->name, &when, open->profile) != 0 ||
        wire_pattern_count(counted, plan->name, 1) != 0)
        return pd_refuse(why, CODE(BAD_NAME), "open.name", "is too long when it is filled in");
    const char *fault = wire_run_name_fault(counted);
    return fault ? pd_refuse(why, CODE(BAD_NAME), "open.name", fault) : 0;
}

int pd_open_plan_make(pd_open_plan *plan, const pd_config *config, const Photon__Open *open,
                      pd_refusal *why) {
    const pd_profile *profile = NULL;
    memset(plan, 0, sizeof *plan);
    if (open_check_values(open, why) != 0 || open_check_supported(open, why) != 0 ||
        open_check_attributes(config, open, why) != 0 || open_summary(config, open, &plan->spec, why) != 0)
        return -1;
    memcpy(plan->spec.id, open->run_id.data, PD_RUN_ID_BYTES);
    if (plan_name(open, plan, why) != 0)
        return -1;
    if (open->stop)
        plan->spec.stop = (pd_run_stop){.photons = open->stop->photons,
                                        .bytes = open->stop->bytes,
                                        .ms = pd_run_stop_ms(open->stop->seconds)};
    if (open->time_base) {
        plan->spec.time_base =
            (pd_time_base){open->time_base->tick_ps_numerator, open->time_base->tick_ps_denominator,
                           open->time_base->counter_bits};
        plan->spec.start_utc_ns = open->time_base->start_utc_ns;
        plan->spec.start_uncertainty_ns = open->time_base->start_uncertainty_ns;
        plan->spec.laser_period_ps = open->time_base->laser_period_ps;
    }
    if (plan_datasets(config, open, plan, &profile, why) != 0 || plan_overflow(config, open, plan, why) != 0)
        return -1;
    plan->lincam = profile && profile->lincam;
    plan->spec.warned = plan->lincam;
    return plan_attributes(open, plan, why);
}

static void plan_warning(void *user, const char *sentence) {
    pd_log(PD_LOG_WARNING, "run %s: %s", ((const pd_open_plan *)user)->spec.name, sentence);
}

void pd_open_plan_warn(pd_open_plan *plan) {
    if (plan->lincam)
        pd_lincam_check(plan->attributes, plan->spec.n_attributes, plan_warning, plan);
}

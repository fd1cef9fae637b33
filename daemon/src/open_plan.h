/* What an Open asks for, checked field by field: the specification of a run, or why there is none. Thread: the loop's.
 */
#ifndef PD_OPEN_PLAN_H
#define PD_OPEN_PLAN_H

#include "ingest.pb-c.h"
#include "profile.h"
#include "run.h"
#include "wire/pattern.h"

typedef struct pd_open_plan {
    pd_run_spec spec; /* instance and client_name are the caller's; the rest points into Open and below */
    bool lincam;      /* a profile whose files carry the vendor's attributes */
    pd_dataset *datasets;
    pd_attribute *attributes;
    pd_default_attribute defaults[PD_LINCAM_DEFAULTS_MAX];
    char name[WIRE_RUN_NAME_ROOM]; /* a pattern, filled in but for its counter */
} pd_open_plan;

/* Returns 0; -1 with why: code, field path and reason. Free in both cases. */
PD_MUST_USE int pd_open_plan_make(pd_open_plan *plan, const pd_config *config, const Photon__Open *open,
                                  pd_refusal *why);
void pd_open_plan_free(pd_open_plan *plan);

/* Logs what analysis will miss in the attributes of a run that is opened. */
void pd_open_plan_warn(pd_open_plan *plan);

#endif

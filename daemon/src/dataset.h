/* A dataset as a run declares it: its element type, and what it means. */
#ifndef PD_DATASET_H
#define PD_DATASET_H

#include <d7/d7.h>
#include <stddef.h>

/* What a dataset means; summaries go by this and never by names. The numbers are those of
 * proto/ingest.proto's Role.   X(name, number, text) */
#define PD_ROLE_MAP(X)                                                                                       \
    X(NONE, 0, "none")                                                                                       \
    X(POSITION_X, 1, "position_x")                                                                           \
    X(POSITION_Y, 2, "position_y")                                                                           \
    X(MICRO_TIME, 3, "micro_time")                                                                           \
    X(CHANNEL, 4, "channel")                                                                                 \
    X(TIME_STAMP, 5, "time_stamp")                                                                           \
    X(MS_INDEX, 6, "ms_index")                                                                               \
    X(START, 7, "start")                                                                                     \
    X(STOP, 8, "stop")

typedef enum pd_role {
#define PD_ROLE_ENUM(name, number, text) PD_ROLE_##name = number,
    PD_ROLE_MAP(PD_ROLE_ENUM)
#undef PD_ROLE_ENUM
} pd_role;

/* The text of a role ("micro_time"); NULL for numbers that are no role. */
const char *pd_role_name(pd_role role);

/* Finds a role by its text. Returns 0, or -1 when there is none. */
int pd_role_parse(const char *text, pd_role *ret);

typedef struct pd_dataset {
    const char *name; /* as it stands in the file: "/photons/x" */
    d7_type type;
    const char *group; /* datasets of a group have equal length; NULL or "": one of its own, named like it */
    pd_role role;
    const char *unit; /* of value times scale; NULL or "": none */
    double scale;     /* 0 counts as 1 */
} pd_dataset;

/* The group it belongs to: `group`, or its own name. */
const char *pd_dataset_group(const pd_dataset *dataset);

/* The dataset whose group's items are the run's photons: the first of role position_x, position_y, micro_time, channel or
 * time_stamp, in this order of roles; where there is none, the first that is no ms_index. */
size_t pd_datasets_photons(const pd_dataset *datasets, size_t n);

/* The run's item that a part's file begins with, when the parts before have `items`: the millisecond that is under way
 * when a part begins stands in both (d7 merge expects it). */
uint64_t pd_dataset_part_row(const pd_dataset *dataset, uint64_t items);

/* An attribute of a run: UTF-8, no NUL. */
typedef struct pd_attribute {
    const char *key;
    const char *value;
} pd_attribute;

/* The value of `key`, or NULL. The last one counts when a key is there twice. */
const char *pd_attribute_find(const pd_attribute *attributes, size_t n, const char *key);

/* The same as a number; 0: there is none. */
uint64_t pd_attribute_number(const pd_attribute *attributes, size_t n, const char *key);

#endif

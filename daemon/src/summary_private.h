/* What the kinds of summaries share with summary.c. */
#ifndef PD_SUMMARY_PRIVATE_H
#define PD_SUMMARY_PRIVATE_H

#include "summary.h"

/* Where a column is. */
typedef struct pd_summary_column {
    size_t group;
    size_t column; /* in the group */
    d7_type type;
    const pd_dataset *dataset;
} pd_summary_column;

/* A kind of summary. All functions but bin and tick may fail by running out of memory only, and say so
 * by -1. */
typedef struct pd_summary_kind {
    const char *name;

    /* Keys of the attributes that shape its accumulators, up to the first NULL. */
    const char *attributes[2];

    /* Whether a run with these datasets and options gets one. */
    bool (*wanted)(const pd_summary *s);

    /* *ret: its accumulators, all allocated. May call pd_summary_warn. */
    int (*create)(void **ret, pd_summary *s);
    void (*free)(void *state);

    /* Bytes of the accumulators together with their copy in a snapshot. */
    size_t (*bytes)(const void *state);

    /* n more items of a group; columns as in pd_summary_bin. */
    void (*bin)(void *state, size_t group, const void *const *columns, size_t n);
    void (*first_photon)(void *state, uint64_t photon); /* as pd_summary_first_photon(); may be NULL */

    /* Optional: pd_summary_tick, pd_summary_instrument_time. */
    void (*tick)(void *state, uint64_t elapsed_ns);
    void (*instrument_time)(void *state, int64_t ticks);

    /* Optional: the run's duration on the instrument's clock; negative when it has none. */
    double (*duration_s)(const void *state);

    /* Appends its properties. */
    int (*freeze)(const void *state, const pd_summary *s, pd_snapshot *snapshot);
} pd_summary_kind;

extern const pd_summary_kind pd_summary_image;
extern const pd_summary_kind pd_summary_decay;
extern const pd_summary_kind pd_summary_rate;

/* ---- what the kinds may ask of a summary ---- */

const pd_summary_options *pd_summary_get_options(const pd_summary *s);
const pd_time_base *pd_summary_get_time_base(const pd_summary *s);

/* The first column of that role, of the group of photons when it has one. Whether there is one. */
bool pd_summary_find(const pd_summary *s, pd_role role, pd_summary_column *ret);

/* The group that the scalar `photons` counts: that of the positions, else of the micro time, else of the
 * channels or time stamps, else the first. */
size_t pd_summary_photon_group(const pd_summary *s);

/* The value of an attribute, or NULL. */
const char *pd_summary_get_attribute(const pd_summary *s, const char *key);

/* The attribute as a whole number from `low` to `high`; `missing`, with a warning, when it is none. */
unsigned pd_summary_get_bits(pd_summary *s, const char *key, unsigned low, unsigned high, unsigned missing);

/* The attribute as a positive finite number, or 0. */
double pd_summary_get_number(const pd_summary *s, const char *key);

/* Picoseconds that a step of 1 in a dataset stands for by its unit and scale; 0 when its unit is no
 * time. */
double pd_summary_step_ps(const pd_dataset *dataset);

/* Adds a warning; when memory is short it is dropped. */
void pd_summary_warn(pd_summary *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- attributes as scalars (summary_attributes.c) ---- */

typedef struct pd_summary_attributes {
    struct pd_summary_attribute_entry {
        char *key;
        char *value;
        char *scalar; /* its name in the export */
    } * entries;      /* [n] */
    size_t n;
    size_t cap;
    uint64_t n_skipped;
} pd_summary_attributes;

/* Sets one, replacing a value of the same key. Returns 0, or -1 when out of memory. */
int pd_summary_attributes_set(pd_summary_attributes *list, const char *key, const char *value);
const char *pd_summary_attributes_get(const pd_summary_attributes *list, const char *key);
size_t pd_summary_attributes_bytes(const pd_summary_attributes *list);
void pd_summary_attributes_clear(pd_summary_attributes *list);

/* Appends them as String scalars, less those named like a scalar that the snapshot has. */
int pd_summary_attributes_freeze(const pd_summary_attributes *list, pd_snapshot *snapshot);

/* The name in an export of a dataset or attribute of that name: the leading "/" dropped, further ones as
 * "."; whether it can be stored. Writes at most cap bytes with the NUL. */
bool pd_summary_scalar_name(char *to, size_t cap, const char *prefix, const char *name);

#endif

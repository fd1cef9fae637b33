/* A frozen copy of a run's summaries: a list of properties as they are to stand in the exported repository.
 *
 * A snapshot owns all it points to. Its memory is kept from one use to the next (pd_snapshot_reset), so
 * that a run that exports for days takes memory once. One owner at a time: the run's summary job fills
 * it, the exporter reads it, and gives it back.
 */
#ifndef PD_SNAPSHOT_H
#define PD_SNAPSHOT_H

#include <daf/daf.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

typedef enum pd_property_kind { PD_SCALAR, PD_AXIS, PD_VECTOR, PD_MATRIX } pd_property_kind;

typedef struct pd_property {
    pd_property_kind kind;
    const char *name;    /* of an axis: the axis */
    const char *rows;    /* vector and matrix: the axis its (rows) run along */
    const char *columns; /* matrix */
    daf_type type;       /* vector, matrix */
    daf_scalar scalar;   /* scalar */
    uint64_t n;          /* axis: entries; vector, matrix: values */
    int64_t first, step; /* axis: entry i is first + i * step */
    void *values;        /* vector, matrix: [n], host byte order, column-major */
} pd_property;

typedef struct pd_snapshot {
    pd_property *properties; /* [n_properties]; axes come before what uses them */
    size_t n_properties;
    size_t properties_cap;
    struct pd_snapshot_block *blocks; /* the memory behind the pointers above */
    uint64_t export_number;           /* from 1; also the scalar "export" */
} pd_snapshot;

/* An empty one. */
void pd_snapshot_init(pd_snapshot *snapshot);

/* Frees all it holds, and leaves it empty. */
void pd_snapshot_clear(pd_snapshot *snapshot);

/* Forgets the properties and keeps the memory. */
void pd_snapshot_reset(pd_snapshot *snapshot);

/* Bytes that it holds. */
size_t pd_snapshot_bytes(const pd_snapshot *snapshot);

/* The functions that fill it. Names and texts are copied. 0, or -1 when out of memory; the array
 * functions return the place for the caller to fill (zeroed memory is not promised), or NULL. */
PD_MUST_USE int pd_snapshot_uint64(pd_snapshot *s, const char *name, uint64_t value);
PD_MUST_USE int pd_snapshot_float64(pd_snapshot *s, const char *name, double value);
PD_MUST_USE int pd_snapshot_string(pd_snapshot *s, const char *name, const char *text);
PD_MUST_USE int pd_snapshot_axis(pd_snapshot *s, const char *name, int64_t first, int64_t step, uint64_t n);
PD_MUST_USE void *pd_snapshot_vector(pd_snapshot *s, const char *axis, const char *name, daf_type type,
                                     uint64_t n);
PD_MUST_USE void *pd_snapshot_matrix(pd_snapshot *s, const char *rows, const char *columns, const char *name,
                                     daf_type type, uint64_t n);

/* The property of that kind and name (of the rows axis, unless NULL), or NULL. */
const pd_property *pd_snapshot_find(const pd_snapshot *s, pd_property_kind kind, const char *rows,
                                    const char *name);

#endif

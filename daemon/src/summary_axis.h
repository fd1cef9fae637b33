/* Which bin a value falls into: bin = value >> shift for 0 <= value <= max, else the bin "outside". */
#ifndef PD_SUMMARY_AXIS_H
#define PD_SUMMARY_AXIS_H

#include <d7/d7.h>
#include <stddef.h>
#include <stdint.h>

/* Values are turned into bins a block at a time, so that both fit into the first-level cache. */
enum { PD_AXIS_BLOCK = 1024 };

typedef struct pd_axis {
    uint32_t n_bins; /* 2^n; the bin "outside" has this number */
    uint32_t max;    /* largest value inside: n_bins * 2^shift - 1 */
    unsigned shift;
    d7_type type; /* of the values */
} pd_axis;

/* The axis of 2^bits values in n_bins bins (a power of two, at most 2^bits); bits <= 31. */
void pd_axis_init(pd_axis *axis, d7_type type, unsigned bits, uint32_t n_bins);

/* bins[i] of values[i], for n <= PD_AXIS_BLOCK. */
void pd_axis_bins(const pd_axis *axis, uint32_t *restrict bins, const void *restrict values, size_t n);

/* The values from item `i` on. */
static inline const void *pd_axis_at(const pd_axis *axis, const void *values, size_t i) {
    return (const uint8_t *)values + i * d7_type_size(axis->type);
}

#endif

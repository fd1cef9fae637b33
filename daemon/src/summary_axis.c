#include "summary_axis.h"

#include <string.h>

void pd_axis_init(pd_axis *axis, d7_type type, unsigned bits, uint32_t n_bins) {
    axis->type = type;
    axis->n_bins = n_bins;
    axis->max = (uint32_t)((UINT64_C(1) << bits) - 1);
    axis->shift = bits - (unsigned)__builtin_ctz(n_bins);
}

/* A loop per element type. `wide` is the unsigned type to compare in: negative values become large
 * there. */
#define AXIS_LOOP(name, element, signed_wide, wide)                                                          \
    static void axis_##name(const pd_axis *axis, uint32_t *restrict bins, const void *restrict values,       \
                            size_t n) {                                                                      \
        const element *v = values;                                                                           \
        const wide max = axis->max;                                                                          \
        const uint32_t outside = axis->n_bins;                                                               \
        const unsigned shift = axis->shift;                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                     \
            wide value = (wide)(signed_wide)v[i];                                                            \
            uint32_t bin = (uint32_t)(value >> shift);                                                       \
            bins[i] = value <= max ? bin : outside;                                                          \
        }                                                                                                    \
    }

AXIS_LOOP(int8, int8_t, int32_t, uint32_t)
AXIS_LOOP(int16, int16_t, int32_t, uint32_t)
AXIS_LOOP(int32, int32_t, int32_t, uint32_t)
AXIS_LOOP(int64, int64_t, int64_t, uint64_t)
AXIS_LOOP(uint8, uint8_t, uint32_t, uint32_t)
AXIS_LOOP(uint16, uint16_t, uint32_t, uint32_t)
AXIS_LOOP(uint32, uint32_t, uint32_t, uint32_t)
AXIS_LOOP(uint64, uint64_t, uint64_t, uint64_t)

/* A fractional value belongs to the integer below it. NaN fails every comparison and is outside. */
#define AXIS_FLOAT_LOOP(name, element)                                                                       \
    static void axis_##name(const pd_axis *axis, uint32_t *restrict bins, const void *restrict values,       \
                            size_t n) {                                                                      \
        const element *v = values;                                                                           \
        const double end = (double)axis->max + 1;                                                            \
        for (size_t i = 0; i < n; i++) {                                                                     \
            double value = (double)v[i];                                                                     \
            bins[i] = value >= 0 && value < end ? (uint32_t)value >> axis->shift : axis->n_bins;             \
        }                                                                                                    \
    }

AXIS_FLOAT_LOOP(float, float)
AXIS_FLOAT_LOOP(double, double)

void pd_axis_bins(const pd_axis *axis, uint32_t *restrict bins, const void *restrict values, size_t n) {
    static void (*const loops[D7_N_TYPES])(const pd_axis *, uint32_t *restrict, const void *restrict,
                                           size_t) = {
        [D7_INT8] = axis_int8,     [D7_INT16] = axis_int16,   [D7_INT32] = axis_int32,
        [D7_INT64] = axis_int64,   [D7_UINT8] = axis_uint8,   [D7_UINT16] = axis_uint16,
        [D7_UINT32] = axis_uint32, [D7_UINT64] = axis_uint64, [D7_FLOAT] = axis_float,
        [D7_DOUBLE] = axis_double};
    loops[axis->type](axis, bins, values, n);
}

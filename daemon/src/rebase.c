#include "rebase.h"

#include <string.h>

void pd_rebase_begin(pd_rebase *r, uint64_t n) {
    r->base += n;
}

void pd_rebase_gap_add(pd_rebase *r, uint64_t first, uint64_t n) {
    if (n == 0)
        return;
    pd_rebase_gap *last = r->n_gaps ? &r->gaps[r->n_gaps - 1] : NULL;
    if (last && last->first + last->n == first) {
        last->n += n;
        return;
    }
    if (r->n_gaps == PD_REBASE_GAPS) {
        r->base += r->gaps[0].n;
        r->n_gaps--;
        memmove(r->gaps, r->gaps + 1, r->n_gaps * sizeof *r->gaps);
    }
    r->gaps[r->n_gaps++] = (pd_rebase_gap){first, n};
}

static inline uint64_t rebase_one(const pd_rebase *r, uint64_t sent) {
    uint64_t missing = r->base;
    for (uint32_t g = 0; g < r->n_gaps; g++) {
        uint64_t past = sent > r->gaps[g].first ? sent - r->gaps[g].first : 0;
        missing += past < r->gaps[g].n ? past : r->gaps[g].n;
    }
    return sent > missing ? sent - missing : 0;
}

uint64_t pd_rebase_index(const pd_rebase *r, uint64_t sent) {
    return rebase_one(r, sent);
}

#define REBASE_LOOP(T)                                                                                       \
    do {                                                                                                     \
        T *v = values;                                                                                       \
        for (size_t i = 0; i < n; i++)                                                                       \
            v[i] = (T)rebase_one(r, v[i] > 0 ? (uint64_t)v[i] : 0);                                          \
    } while (0)

/* Almost always: uint64, and nothing was dropped. */
static void rebase_plain(uint64_t base, uint64_t *values, size_t n) {
    for (size_t i = 0; i < n; i++)
        values[i] = values[i] > base ? values[i] - base : 0;
}

#define REBASE_TYPES(X)                                                                                      \
    X(D7_UINT64, uint64_t)                                                                                   \
    X(D7_INT64, int64_t)                                                                                     \
    X(D7_UINT32, uint32_t)                                                                                   \
    X(D7_INT32, int32_t)                                                                                     \
    X(D7_UINT16, uint16_t)                                                                                   \
    X(D7_INT16, int16_t)                                                                                     \
    X(D7_UINT8, uint8_t)                                                                                     \
    X(D7_INT8, int8_t)

void pd_rebase_values(const pd_rebase *r, d7_type type, void *values, size_t n) {
    if (type == D7_UINT64 && r->n_gaps == 0) {
        rebase_plain(r->base, values, n);
        return;
    }
    switch (type) {
#define REBASE_VALUES(code, T)                                                                               \
    case code:                                                                                               \
        REBASE_LOOP(T);                                                                                      \
        break;
        REBASE_TYPES(REBASE_VALUES)
#undef REBASE_VALUES
    default:
        break;
    }
}

void pd_rebase_fill(d7_type type, void *values, size_t n, uint64_t index) {
    switch (type) {
#define REBASE_FILL(code, T)                                                                                 \
    case code:                                                                                               \
        for (size_t i = 0; i < n; i++)                                                                       \
            ((T *)values)[i] = (T)index;                                                                     \
        break;
        REBASE_TYPES(REBASE_FILL)
#undef REBASE_FILL
    default:
        memset(values, 0, n * d7_type_size(type));
    }
}

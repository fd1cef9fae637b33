#include "indices.h"

/* X(type, C type): of each width the signed and the unsigned type differ only in how they widen. */
#define INDEX_TYPES(X)                                                                                       \
    X(INT8, int8_t)                                                                                          \
    X(INT16, int16_t)                                                                                        \
    X(INT32, int32_t)                                                                                        \
    X(INT64, int64_t)                                                                                        \
    X(UINT8, uint8_t)                                                                                        \
    X(UINT16, uint16_t)                                                                                      \
    X(UINT32, uint32_t)                                                                                      \
    X(UINT64, uint64_t)

void daf__indices_widen(uint64_t *to, daf_type type, const void *from, uint64_t first, size_t n) {
    switch (type) {
#define WIDEN(name, c_type)                                                                                  \
    case DAF_##name:                                                                                         \
        for (size_t k = 0; k < n; k++)                                                                       \
            to[k] = (uint64_t)((const c_type *)from)[first + k];                                             \
        break;
        INDEX_TYPES(WIDEN)
    default:
        break;
    }
}

void daf__indices_narrow(void *to, daf_type type, uint64_t first, const uint64_t *from, size_t n) {
    switch (type) {
#define NARROW(name, c_type)                                                                                 \
    case DAF_##name:                                                                                         \
        for (size_t k = 0; k < n; k++)                                                                       \
            ((c_type *)to)[first + k] = (c_type)from[k];                                                     \
        break;
        INDEX_TYPES(NARROW)
    default:
        break;
    }
}

void daf__indices_scatter(void *to, daf_type type, const uint64_t *places, const uint64_t *from, size_t n) {
    switch (type) {
#define SCATTER(name, c_type)                                                                                \
    case DAF_##name:                                                                                         \
        for (size_t k = 0; k < n; k++)                                                                       \
            ((c_type *)to)[places[k]] = (c_type)from[k];                                                     \
        break;
        INDEX_TYPES(SCATTER)
    default:
        break;
    }
}

uint64_t daf__index_at(daf_type type, const void *from, uint64_t i) {
    uint64_t v = 0;
    daf__indices_widen(&v, type, from, i, 1);
    return v;
}

uint64_t daf__index_max(daf_type type) {
    switch (type) {
    case DAF_INT8:
        return INT8_MAX;
    case DAF_INT16:
        return INT16_MAX;
    case DAF_INT32:
        return INT32_MAX;
    case DAF_INT64:
        return INT64_MAX;
    case DAF_UINT8:
        return UINT8_MAX;
    case DAF_UINT16:
        return UINT16_MAX;
    case DAF_UINT32:
        return UINT32_MAX;
    case DAF_UINT64:
        return UINT64_MAX;
    default:
        return 0;
    }
}

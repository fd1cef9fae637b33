#include <string.h>

#include "d7/d7.h"

static const struct {
    const char *name;
    size_t size;
} types[D7_N_TYPES] = {
    [D7_INT8] = {"int8", 1},     [D7_INT16] = {"int16", 2},   [D7_INT32] = {"int32", 4},
    [D7_INT64] = {"int64", 8},   [D7_UINT8] = {"uint8", 1},   [D7_UINT16] = {"uint16", 2},
    [D7_UINT32] = {"uint32", 4}, [D7_UINT64] = {"uint64", 8}, [D7_FLOAT] = {"float", 4},
    [D7_DOUBLE] = {"double", 8},
};

size_t d7_type_size(d7_type type) {
    return (unsigned)type < D7_N_TYPES ? types[type].size : 0;
}

const char *d7_type_name(d7_type type) {
    return (unsigned)type < D7_N_TYPES ? types[type].name : NULL;
}

int d7_type_parse(const char *name, d7_type *ret_type) {
    for (unsigned i = 0; i < D7_N_TYPES; i++)
        if (strcmp(types[i].name, name) == 0) {
            *ret_type = (d7_type)i;
            return 0;
        }
    return D7_ERR_NOTFOUND;
}

size_t d7_items_per_page(d7_type type, size_t bytes_per_page) {
    size_t size = d7_type_size(type);
    return size ? bytes_per_page / size : 0;
}

const char *d7_version(void) {
    return D7_VERSION;
}

#include "dense.h"

int daf_set_matrix(daf *d, const char *rows, const char *columns, const char *name, daf_type type,
                   const void *values, uint64_t n, const daf_set_options *options, daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, name);
    return daf__dense_set(d, &p, type, values, n, options, err);
}

int daf_get_matrix(daf *d, daf_array **ret, const char *rows, const char *columns, const char *name,
                   daf_error *err) {
    daf__property p = daf__matrix_property(rows, columns, name);
    return daf__dense_get(d, ret, &p, err);
}

/* The values a caller gets. */
#ifndef DAF_SRC_ARRAY_H
#define DAF_SRC_ARRAY_H

#include "text.h"

struct daf_array {
    daf_type type;
    uint64_t rows, columns;
    const void *values; /* numeric: in the mapping or in `owned` */
    void *owned;
    daf__map map;
    daf__texts texts; /* String */
};

daf_array *daf__array_new(daf_type type, uint64_t rows, uint64_t columns);

#endif

/* Copying properties from one repository to another. */
#ifndef DAF_SRC_COPY_H
#define DAF_SRC_COPY_H

#include "property.h"

typedef struct daf__copying {
    daf *to, *from;
    daf_copy_options options;
    uint64_t done_bytes;
    uint8_t *piece; /* two of DAF__COPY_PIECE bytes */
    daf_error *err;
} daf__copying;

enum { DAF__COPY_PIECE = 1 << 20 };

/* So many more bytes were copied. Returns 0; DAF_ERR_CANCELLED. */
int daf__copied(daf__copying *c, uint64_t bytes);

/* A vector or matrix. */
int daf__copy_property(daf__copying *c, const daf__property *p);

#endif

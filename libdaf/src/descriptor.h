/* The JSON beside each vector and matrix (specification section 2.4), read by shape, not by version. */
#ifndef DAF_SRC_DESCRIPTOR_H
#define DAF_SRC_DESCRIPTOR_H

#include "buf.h"
#include "names.h"

typedef struct daf__packing {
    bool indexed; /* "indexed+zipped", else "zipped" */
    uint64_t chunk_rows, chunk_columns;
    char compression[32]; /* as written */
    int level;            /* as written; 0 when missing */
} daf__packing;

typedef struct daf__descriptor {
    daf_type type;
    bool sparse;
    bool packed; /* dense only */
    daf__packing packing;
} daf__descriptor;

/* Parses the descriptor of a vector or matrix. `where` names the file in errors.
 * Returns 0; DAF_ERR_CORRUPT; DAF_ERR_UNSUPPORTED an unknown packed_format; DAF_ERR_NOMEM. */
int daf__descriptor_parse(daf__descriptor *ret, daf__kind kind, const void *text, size_t bytes,
                          const char *where, daf_error *err);

/* Appends the descriptor of a dense property in its written form, with the final LF. */
void daf__descriptor_write(daf__buf *out, daf__kind kind, const daf__descriptor *d);

#endif

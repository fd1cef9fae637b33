/* Dense vectors and matrices; a vector is a matrix of one column. */
#ifndef DAF_SRC_DENSE_H
#define DAF_SRC_DENSE_H

#include "array.h"
#include "descriptor.h"
#include "handle.h"

int daf__dense_set(daf *d, const daf__property *p, daf_type type, const void *values, uint64_t n,
                   const daf_set_options *options, daf_error *err);

int daf__dense_get(daf *d, daf_array **ret, const daf__property *p, daf_error *err);

/* Reads and parses the descriptor. Returns as daf__descriptor_parse; DAF_ERR_MISSING no such property. */
int daf__read_descriptor(daf *d, daf__descriptor *ret, daf__stamp *stamp, const daf__property *p,
                         daf_error *err);

/* The suffix of a dense payload. */
const char *daf__payload_suffix(const daf__descriptor *d);

#endif

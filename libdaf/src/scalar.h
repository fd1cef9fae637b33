/* The JSON of a scalar (specification section 2.3). */
#ifndef DAF_SRC_SCALAR_H
#define DAF_SRC_SCALAR_H

#include "buf.h"

/* The caller clears the scalar. `text` has a NUL behind it. Returns 0; DAF_ERR_CORRUPT; DAF_ERR_NOMEM. */
int daf__scalar_parse(daf_scalar *ret, const void *text, size_t bytes, const char *where, daf_error *err);

/* Checks that the scalar can be stored. Returns 0; DAF_ERR_ARG; DAF_ERR_VALUE. */
int daf__scalar_check(const daf_scalar *scalar, bool non_finite, daf_error *err);

/* Appends the descriptor, with the final LF. */
void daf__scalar_write(daf__buf *out, const daf_scalar *scalar);

#endif

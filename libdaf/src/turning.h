/* The transpose of a sparse matrix of numbers, written by bands: some of its columns at a time are gathered in memory, each
 * time by reading all that is stored. */
#ifndef DAF_SRC_TURNING_H
#define DAF_SRC_TURNING_H

#include "property.h"

#define DAF__TURNING_BYTES ((uint64_t)64 << 20)

/* Stages the transpose of `p` as `other`, when p is sparse, stays so, and what it stores takes more than band_bytes;
 * *staged: whether it was. `there`: something is, and is replaced.
 * Returns as daf_get_sparse_matrix and daf_set_sparse_matrix. */
int daf__turning_stage(daf__edit *e, const daf__property *p, const daf__property *other,
                       const daf_set_options *o, bool there, uint64_t band_bytes, bool *staged,
                       daf_error *err);

#endif

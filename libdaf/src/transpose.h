/* Transposing dense values. */
#ifndef DAF_SRC_TRANSPOSE_H
#define DAF_SRC_TRANSPOSE_H

#include "daf/daf.h"

/* Memory for the result, not cleared, to be freed: at the boundary of a cache line; much of it in large pages where the
 * system has them. NULL without memory. */
void *daf__transpose_alloc(size_t width, uint64_t rows, uint64_t columns);

/* to[j + i * columns] = from[i + j * stride], i < rows <= stride, of values of 1, 2, 4 or 8 bytes; in parallel when there is
 * an executor. */
void daf__transpose(void *to, const void *from, size_t width, uint64_t rows, uint64_t columns,
                    uint64_t stride, const daf_executor *executor);

#endif

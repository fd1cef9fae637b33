/* Transposing dense values. */
#ifndef DAF_SRC_TRANSPOSE_H
#define DAF_SRC_TRANSPOSE_H

#include "daf/daf.h"

/* to[j + i * columns] = from[i + j * rows], of values of 1, 2, 4 or 8 bytes; in parallel when there is an executor. */
void daf__transpose(void *to, const void *from, size_t width, uint64_t rows, uint64_t columns,
                    const daf_executor *executor);

#endif

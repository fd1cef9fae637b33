#include "transpose.h"

void daf__transpose(void *to, const void *from, size_t width, uint64_t rows, uint64_t columns,
                    const daf_executor *executor) {
    (void)executor;
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t j = 0; j < columns; j++)
            __builtin_memcpy((char *)to + (j + i * columns) * width,
                             (const char *)from + (i + j * rows) * width, width);
}

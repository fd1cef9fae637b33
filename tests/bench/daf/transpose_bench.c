/* How fast dense values are transposed, beside a plain copy of as many bytes, in processor time of the one thread.
 *
 *   transpose_bench ROWS COLUMNS BYTES REPEAT
 *
 * Prints "COPY TRANSPOSE", in seconds: the best of REPEAT runs of each, taken in turn. Exit status 1: wrong values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "transpose.h"

enum { PAGE_BYTES = 4096 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int is_transpose(const unsigned char *a, const unsigned char *b, size_t width, size_t rows,
                        size_t columns) {
    for (size_t j = 0; j < columns; j++)
        for (size_t i = 0; i < rows; i++)
            if (memcmp(a + (i + j * rows) * width, b + (j + i * columns) * width, width) != 0)
                return 0;
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: transpose_bench ROWS COLUMNS BYTES REPEAT\n");
        return 2;
    }
    size_t rows = (size_t)atol(argv[1]), columns = (size_t)atol(argv[2]), width = (size_t)atol(argv[3]);
    size_t bytes = rows * columns * width;
    unsigned char *from = aligned_alloc(PAGE_BYTES, (bytes / PAGE_BYTES + 1) * PAGE_BYTES);
    unsigned char *to = daf__transpose_alloc(width, rows, columns);
    double copy = 1e9, transpose = 1e9;
    if (!from || !to)
        return 2;
    for (size_t i = 0; i < bytes; i++)
        from[i] = (unsigned char)(i * 2654435761u >> 7);
    memcpy(to, from, bytes);
    for (int k = 0; k < atoi(argv[4]); k++) {
        double start = now();
        memcpy(to, from, bytes);
        double middle = now();
        daf__transpose(to, from, width, rows, columns, rows, NULL);
        double end = now();
        copy = middle - start < copy ? middle - start : copy;
        transpose = end - middle < transpose ? end - middle : transpose;
    }
    printf("%.4f %.4f\n", copy, transpose);
    return is_transpose(from, to, width, rows, columns) ? 0 : 1;
}

/* The header of NumPy's .npy format, for the commands' `--format npy`: version 1.0 is written, 1.0 to 3.0 are read. */
#ifndef COMMON_CLI_NPY_H
#define COMMON_CLI_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Writes the header of an array whose little-endian values the caller writes next.
 * kind       'i' signed, 'u' unsigned, 'f' float, 'b' bool
 * item_bytes size of an element
 * shape      [rank], rank 0 to 2; fortran: column-major
 * Returns 0, or -1 when the stream failed. */
int cli_npy_header(FILE *out, char kind, size_t item_bytes, const uint64_t *shape, size_t rank, bool fortran);

/* What the header of an array says. */
typedef struct cli_npy_array {
    char kind;         /* 'i', 'u', 'f', 'b' */
    size_t item_bytes; /* 1, 2, 4 or 8 */
    bool big_endian;
    bool fortran;
    size_t rank; /* 0 to 2 */
    uint64_t shape[2];
    size_t data_offset;
} cli_npy_array;

/* Reads the header at `data`. Returns 0, or -1 when it is none, or one of an array that the commands cannot use
 * (other kinds of elements, more dimensions). */
int cli_npy_parse(cli_npy_array *ret, const uint8_t *data, size_t bytes);

#endif

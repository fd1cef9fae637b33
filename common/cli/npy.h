/* The header of NumPy's .npy format, version 1.0, for the commands' `--format npy`. */
#ifndef COMMON_CLI_NPY_H
#define COMMON_CLI_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Writes the header of an array whose little-endian values the caller writes next.
 * kind       'i' signed, 'u' unsigned, 'f' float, 'b' bool
 * item_bytes size of an element
 * shape      [rank], rank 1 or 2; fortran: column-major
 * Returns 0, or -1 when the stream failed. */
int cli_npy_header(FILE *out, char kind, size_t item_bytes, const uint64_t *shape, size_t rank, bool fortran);

#endif

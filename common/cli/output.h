/* How the commands print values, and how they end: results on standard output, checked. */
#ifndef COMMON_CLI_OUTPUT_H
#define COMMON_CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Exit codes of every command of the project. */
enum { CLI_OK = 0, CLI_PROBLEMS = 1, CLI_USAGE = 2 };

/* One number as text that reads back to the same value. kind and item_bytes as in cli_npy_header; value in
 * host byte order. Writes at most `cap` bytes including the NUL (40 always suffice) and returns the length.
 */
size_t cli_format_number(char *text, size_t cap, char kind, size_t item_bytes, const void *value);

/* n values, one a line. Returns 0, or -1 when the stream failed. */
int cli_write_lines(FILE *out, char kind, size_t item_bytes, const void *values, size_t n);

/* n values as raw little-endian bytes. Returns 0, or -1 when the stream failed. */
int cli_write_raw(FILE *out, size_t item_bytes, const void *values, size_t n);

/* A string as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. Returns 0, or -1 when the
 * stream failed. */
int cli_write_json_string(FILE *out, const char *text);

/* The same for `bytes` bytes, which may hold a NUL. */
int cli_write_json_text(FILE *out, const char *text, size_t bytes);

/* Flushes standard output; a failure (full disk, closed pipe) is reported as "PROGRAM: ..." on standard
 * error. Returns `code`, or CLI_USAGE when the output could not be written whole. */
int cli_finish(const char *program, int code);

#endif

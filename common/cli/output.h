/* How the commands print values, and how they end: results on standard output, checked. */
#ifndef COMMON_CLI_OUTPUT_H
#define COMMON_CLI_OUTPUT_H

#include <stdarg.h>
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

/* Text from outside as base/printable.h shows it, so that it cannot end a line or steer a terminal. */
void cli_write_printable(FILE *out, const char *text, size_t bytes);

/* One line, with its end added: whatever the arguments hold, it stays one and is printable. */
void cli_print_line(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_vprint_line(FILE *out, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

/* First thing in main(): a standard stream that is closed gets a place holder that can be neither read nor written, so that no
 * file gets its number, and what is printed. */
void cli_begin(void);

/* To be called right after a write to standard output has failed: keeps errno as the reason, for cli_finish() to say. Nothing
 * else has to be said then. Returns CLI_USAGE, for the caller to return. */
int cli_stdout_failed(void);

/* Flushes standard output. Returns 0, or CLI_USAGE with the reason kept, when not all of it could be written. */
int cli_flush_stdout(void);

/* Flushes standard output; that it could not be written whole (full disk, closed pipe), now or earlier, is reported as
 * "PROGRAM: ..." on standard error, once and with the first reason. Returns `code`, or CLI_USAGE in that case. */
int cli_finish(const char *program, int code);

#endif

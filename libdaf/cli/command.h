/* The daf command: one file a subcommand, joined by the table in main.c. */
#ifndef DAF_CLI_COMMAND_H
#define DAF_CLI_COMMAND_H

#include <daf/daf.h>
#include <stdio.h>

#include "cli/output.h"

typedef struct command {
    const char *name;
    const char *summary; /* one line of the overview */
    const char *usage;   /* the whole help */
    /* argv[0] is the program's name; the subcommand's own arguments follow. Returns an exit code. */
    int (*run)(int argc, char **argv);
} command;

extern const command command_describe, command_get, command_set;

/* Says why on standard error, and returns the exit code: 1 when the repository is damaged, else 2. */
int command_fail(const daf_error *err);

/* A usage error: prints the sentence and how to get help. Returns CLI_USAGE. */
int command_usage(const command *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the help to standard output. Returns CLI_OK. */
int command_help(const command *c);

/* ---- which property */

typedef enum target_kind { TARGET_SCALAR, TARGET_AXIS, TARGET_VECTOR, TARGET_MATRIX } target_kind;

/* `scalar NAME | axis NAME | vector AXIS NAME | matrix ROWS COLUMNS NAME` */
typedef struct target {
    target_kind kind;
    const char *axis; /* of a vector; the rows of a matrix */
    const char *columns;
    const char *name;
} target;

/* Takes a target from the arguments. Returns how many it took, or 0. */
int target_parse(target *ret, int argc, char **argv);

/* ---- formats */

typedef enum value_format {
    FORMAT_TEXT,
    FORMAT_CSV,
    FORMAT_RAW,
    FORMAT_NPY,
    FORMAT_JSON,
    N_FORMATS
} value_format;

/* Returns 0, or -1. */
int format_parse(value_format *ret, const char *name);

/* The kind letter of cli_npy_header for a numeric type. */
char type_letter(daf_type type);

/* ---- values on standard output */

void print_json_string(FILE *out, const char *text);
void print_json_number(FILE *out, daf_type type, const void *value);

/* Element i as text, in JSON or for people; csv: quoted where it must be. */
void print_json_element(FILE *out, const daf_array *a, uint64_t i);
void print_text_element(FILE *out, const daf_array *a, uint64_t i);
void print_csv_element(FILE *out, const daf_array *a, uint64_t i);
void print_csv_text(FILE *out, const char *text);
void print_json_scalar(FILE *out, const daf_scalar *scalar);

/* The value of a numeric scalar in its own type's bytes, host order. */
size_t scalar_bytes(const daf_scalar *scalar, uint8_t bytes[8]);

#endif

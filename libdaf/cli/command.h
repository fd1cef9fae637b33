/* The daf command: one file a subcommand, joined by the table in main.c. */
#ifndef DAF_CLI_COMMAND_H
#define DAF_CLI_COMMAND_H

#include <daf/daf.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/pool.h"

extern const cli_command command_copy, command_delete, command_describe, command_get, command_merge,
    command_pack, command_reorder, command_set, command_tree, command_unpack, command_unzip, command_verify,
    command_zip;

/* Says why; returns the exit code: CLI_PROBLEMS when the repository is damaged, else CLI_USAGE. */
int command_fail(const cli_command *self, const daf_error *err);

/* The library's defaults, with the pool's threads (NULL: none) as the executor, which must outlive the call that takes the
 * options. */
void command_options(daf_options *options, daf_executor *executor, cli_pool *pool);

/* Opens the repository; chunks are worked on by the pool's threads (NULL: by the calling one). Returns 0, or an exit code
 * after saying why. */
int command_open(const cli_command *self, daf **ret, const char *path, const char *mode, cli_pool *pool);

/* Ends a writable handle. `code`: the exit code so far. Returns that, or, when it is 0 and closing fails, another after
 * saying why. */
int command_close(const cli_command *self, daf *d, int code);

/* A whole number from 1 to `most`. Returns false after saying why. */
bool parse_positive(const cli_command *self, const char *option, const char *text, long most, long *ret);

/* --codec, --level, --chunk-kb of what is written packed. */
enum { OPTION_CODEC = 512, OPTION_LEVEL, OPTION_CHUNK_KB };
#define PACKING_OPTIONS                                                                                      \
    {"codec", required_argument, NULL, OPTION_CODEC}, {"level", required_argument, NULL, OPTION_LEVEL}, {    \
        "chunk-kb", required_argument, NULL, OPTION_CHUNK_KB                                                 \
    }
bool take_packing_option(const cli_command *self, daf_set_options *how, int option, const char *argument);

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
    FORMAT_NPZ,
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

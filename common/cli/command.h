/* A command of subcommands: `PROGRAM SUBCOMMAND ARGUMENT...`. */
#ifndef COMMON_CLI_COMMAND_H
#define COMMON_CLI_COMMAND_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/stop.h"

/* One subcommand. run() gets the program's name as argv[0], the arguments behind the subcommand's name after it, and
 * returns the exit code. */
typedef struct cli_command {
    const char *name;
    const char *summary; /* one line of the overview */
    const char *help;    /* usage, options, examples */
    int (*run)(const struct cli_command *self, int argc, char **argv);
    const char *letters; /* short options beside -h, as getopt(3) takes them; NULL: none */
    bool
        makes; /* files: a signal that stops it before it looks out for one leaves nothing, with exit status 2 */
} cli_command;

/* A program. */
typedef struct cli_program {
    const char *name, *version;
    const char *about; /* usage and purpose: what the overview begins with */
    const char *exits; /* what it ends with */
    const cli_command *const *commands;
    size_t n_commands;
} cli_program;

/* Everything of main(): standard streams, --help, --version, the subcommand, and the check of what was printed. */
int cli_main(const cli_program *program, int argc, char **argv);

/* What an option of a subcommand does: sets a flag or takes the argument. Returns false when that is not usable, after
 * saying why. */
typedef bool cli_take_option(void *context, int option, const char *argument);

/* Reads options (see getopt_long(3)); --help and -h are known to all, and self->letters. Then there must be `least` to `most` arguments,
 * which begin at argv[optind]. Returns -1 to go on, else the exit code. */
int cli_options(const cli_command *self, int argc, char **argv, const struct option *options,
                cli_take_option *take, void *context, int least, int most);

/* "PROGRAM SUBCOMMAND: ..." on standard error, printable; each line end of the message makes a line. Returns CLI_USAGE. */
int cli_fail(const cli_command *self, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same, and where help is to be had. */
int cli_misused(const cli_command *self, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Says that the command was stopped. Returns CLI_USAGE. */
int cli_stopped_code(const cli_command *self);

#endif

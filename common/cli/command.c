#include "cli/command.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"

/* Of the program that runs, for messages. */
static const char *program_name = "";

/* ---- messages */

__attribute__((format(printf, 2, 0))) static void vfail(const cli_command *self, const char *format,
                                                        va_list args) {
    char *text;
    if (vasprintf(&text, format, args) < 0) {
        cli_print_line(stderr, "%s: out of memory", program_name);
        return;
    }
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));)
        cli_print_line(stderr, "%s %s: %s", program_name, self->name, line);
    free(text);
}

int cli_fail(const cli_command *self, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfail(self, format, args);
    va_end(args);
    return CLI_USAGE;
}

int cli_misused(const cli_command *self, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfail(self, format, args);
    va_end(args);
    fprintf(stderr, "Try '%s %s --help'.\n", program_name, self->name);
    return CLI_USAGE;
}

/* ---- options */

int cli_options(const cli_command *self, int argc, char **argv, const struct option *options,
                cli_take_option *take, void *context, int least, int most) {
    char letters[32];
    snprintf(letters, sizeof letters, "h%s", self->letters ? self->letters : "");
    for (int option; (option = getopt_long(argc, argv, letters, options, NULL)) != -1;) {
        if (option == 'h') {
            fputs(self->help, stdout);
            return CLI_OK;
        }
        if (option == '?' || !take(context, option, optarg)) {
            fprintf(stderr, "Try '%s %s --help'.\n", program_name, self->name);
            return CLI_USAGE;
        }
    }
    int n = argc - optind;
    if (n >= least && n <= most)
        return -1;
    return cli_misused(self, n < least ? "arguments are missing" : "there are too many arguments");
}

/* ---- main */

static void print_overview(FILE *out, const cli_program *program) {
    fputs(program->about, out);
    for (size_t i = 0; i < program->n_commands; i++)
        fprintf(out, "  %-10s %s\n", program->commands[i]->name, program->commands[i]->summary);
    fputs(program->exits, out);
}

static const cli_command *find_command(const cli_program *program, const char *name) {
    for (size_t i = 0; i < program->n_commands; i++)
        if (strcmp(program->commands[i]->name, name) == 0)
            return program->commands[i];
    return NULL;
}

static int run(const cli_program *program, int argc, char **argv) {
    if (argc < 2) {
        print_overview(stderr, program);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_overview(stdout, program);
        return CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("%s %s\n", program->name, program->version);
        return CLI_OK;
    }
    const cli_command *c = find_command(program, argv[1]);
    if (!c) {
        cli_print_line(stderr, "%s: there is no command \"%s\"", program->name, argv[1]);
        fprintf(stderr, "Try '%s --help'.\n", program->name);
        return CLI_USAGE;
    }
    argv[1] = argv[0]; /* what getopt's messages begin with */
    if (c->makes)
        cli_end_when_stopped(program->name, c->name);
    return c->run(c, argc - 1, argv + 1);
}

int cli_main(const cli_program *program, int argc, char **argv) {
    cli_begin();
    /* A limit on the size of files is an error of the write, and what was begun is taken away. */
    signal(SIGXFSZ, SIG_IGN);
    program_name = program->name;
    if (argc > 0)
        argv[0] = (char *)(size_t)program->name;
    return cli_finish(program->name, run(program, argc, argv));
}

int cli_stopped_code(const cli_command *self) {
    return cli_fail(self, CLI_STOPPED_TEXT);
}

#include <stdarg.h>
#include <string.h>

#include "command.h"

static const command *const commands[] = {&command_describe, &command_get, &command_set};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

int command_fail(const daf_error *err) {
    fprintf(stderr, "daf: %s\n", err->text);
    return err->code == DAF_ERR_CORRUPT || err->code == DAF_ERR_TRUNCATED ? CLI_PROBLEMS : CLI_USAGE;
}

int command_usage(const command *c, const char *format, ...) {
    va_list args;
    fprintf(stderr, "daf %s: ", c->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\nTry 'daf %s --help'.\n", c->name);
    return CLI_USAGE;
}

int command_help(const command *c) {
    fputs(c->usage, stdout);
    return CLI_OK;
}

static void print_overview(FILE *out) {
    fputs("Usage: daf COMMAND PATH ...\n"
          "Reads and writes FilesDaf repositories: directories of scalars, axes, vectors and matrices.\n\n",
          out);
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\nOptions: --help, --version; 'daf COMMAND --help' tells more.\n"
          "Exit codes: 0 good, 1 the repository is damaged, 2 wrong usage or cannot read.\n",
          out);
}

static int run(int argc, char **argv) {
    static char program[] = "daf";
    if (argc < 2) {
        print_overview(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_overview(stdout);
        return CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("daf %s\n", daf_version());
        return CLI_OK;
    }
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(argv[1], commands[i]->name) != 0)
            continue;
        argv[1] = program; /* what getopt's messages begin with */
        return commands[i]->run(argc - 1, argv + 1);
    }
    fprintf(stderr, "daf: no command \"%s\"\nTry 'daf --help'.\n", argv[1]);
    return CLI_USAGE;
}

int main(int argc, char **argv) {
    return cli_finish("daf", run(argc, argv));
}

/* d7: looks into D7 .photons files. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/output.h"
#include "cli/stop.h"
#include "commands.h"

static const command *const commands[] = {
    &command_info, &command_cat,    &command_verify, &command_repair, &command_follow,
    &command_copy, &command_split,  &command_merge,  &command_image,  &command_decay,
    &command_rate, &command_export, &command_import,
};

enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void print_help(FILE *out) {
    fprintf(out, "usage: d7 COMMAND [OPTION...] FILE...\n"
                 "       d7 COMMAND --help\n"
                 "       d7 --version\n\n"
                 "Looks into D7 .photons files, also while they are being written.\n\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(out, "\nExit status: 0 good, 1 the data has problems, 2 usage, or the file cannot be read.\n");
}

static const command *find_command(const char *name) {
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

int main(int argc, char **argv) {
    cli_begin();
    /* A limit on the size of files is an error of the write, and what was begun is taken away. */
    signal(SIGXFSZ, SIG_IGN);
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        print_help(stdout);
        return cli_finish("d7", CLI_OK);
    }
    if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
        printf("d7 %s\n", d7_version());
        return cli_finish("d7", CLI_OK);
    }
    const command *c = argc >= 2 ? find_command(argv[1]) : NULL;
    if (!c) {
        if (argc >= 2)
            cli_print_line(stderr, "d7: there is no command \"%s\"", argv[1]);
        print_help(stderr);
        return CLI_USAGE;
    }
    if (c->makes)
        cli_end_when_stopped("d7", c->name);
    return cli_finish("d7", c->run(c, argc - 1, argv + 1));
}

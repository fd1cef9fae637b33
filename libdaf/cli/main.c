#include "command.h"

static const cli_command *const commands[] = {
    &command_describe, &command_tree,    &command_get,   &command_set,   &command_delete,
    &command_pack,     &command_unpack,  &command_zip,   &command_unzip, &command_copy,
    &command_merge,    &command_reorder, &command_verify};

int main(int argc, char **argv) {
    const cli_program program = {
        .name = "daf",
        .version = daf_version(),
        .about = "Usage: daf COMMAND PATH ...\n"
                 "Reads and writes FilesDaf repositories: named scalars, axes, vectors and matrices.\n\n"
                 "PATH is a directory, RUN.daf.zip (a repository in a ZIP archive), or RUNS.dafs.zip#/GROUP "
                 "(one of\n"
                 "several in an archive).\n\n",
        .exits = "\nOptions: --help, --version; 'daf COMMAND --help' tells more.\n"
                 "Exit codes: 0 good, 1 the repository is damaged, 2 wrong usage or cannot read.\n",
        .commands = commands,
        .n_commands = sizeof commands / sizeof commands[0]};
    return cli_main(&program, argc, argv);
}

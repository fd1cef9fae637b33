/* d7: looks into D7 .photons files. */
#include "commands.h"

static const command *const commands[] = {
    &command_info, &command_cat,    &command_verify, &command_repair, &command_follow,
    &command_copy, &command_split,  &command_merge,  &command_image,  &command_decay,
    &command_rate, &command_export, &command_import,
};

int main(int argc, char **argv) {
    const cli_program program = {
        .name = "d7",
        .version = d7_version(),
        .about = "usage: d7 COMMAND [OPTION...] FILE...\n"
                 "       d7 COMMAND --help\n"
                 "       d7 --version\n\n"
                 "Looks into D7 .photons files, also while they are being written.\n\n",
        .exits = "\nExit status: 0 good, 1 the data has problems, 2 usage, or the file cannot be read.\n",
        .commands = commands,
        .n_commands = sizeof commands / sizeof *commands};
    return cli_main(&program, argc, argv);
}

#include "ctl.h"

int main(int argc, char **argv) {
    static const cli_command *const commands[] = {&ctl_status, &ctl_runs,   &ctl_start, &ctl_stop,
                                                  &ctl_flush,  &ctl_rotate, &ctl_note,  &ctl_export,
                                                  &ctl_drain,  &ctl_reload, &ctl_token, &ctl_verify_summaries,
                                                  &ctl_version};
    const cli_program program = {
        .name = "photonctl",
        .version = PHOTOND_VERSION,
        .about = "Usage: photonctl COMMAND [ARGUMENT...] [--control ADDRESS]\n"
                 "Asks a running photond how it is, and tells it what to do.\n\n",
        .exits = "\nOptions: --help, --version; 'photonctl COMMAND --help' tells more.\n"
                 "Exit status: 0 good, 1 not OK or refused, 2 unreachable or wrong usage.\n",
        .commands = commands,
        .n_commands = sizeof commands / sizeof commands[0]};
    return cli_main(&program, argc, argv);
}

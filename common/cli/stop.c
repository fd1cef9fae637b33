#include "cli/stop.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"

volatile sig_atomic_t cli_stopped;

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

enum { N_SIGNALS = sizeof signals / sizeof *signals };

static void note_stop(int signal_number) {
    (void)signal_number;
    cli_stopped = 1;
}

static const char *program_name, *command_name;

static void say(const char *text) {
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        _exit(CLI_USAGE);
}

static void end_now(int signal_number) {
    (void)signal_number;
    say(program_name);
    say(" ");
    say(command_name);
    say(": " CLI_STOPPED_TEXT "\n");
    _exit(CLI_USAGE);
}

void cli_end_when_stopped(const char *program, const char *command) {
    struct sigaction action = {.sa_handler = end_now}, now;
    program_name = program;
    command_name = command;
    for (size_t i = 0; i < N_SIGNALS; i++)
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL);
}

void cli_catch_stop(void) {
    struct sigaction action = {.sa_handler = note_stop, .sa_flags = SA_RESTART | (int)SA_RESETHAND}, now;
    for (size_t i = 0; i < N_SIGNALS; i++)
        if (sigaction(signals[i], NULL, &now) == 0 &&
            (now.sa_handler == SIG_DFL || now.sa_handler == end_now) && !cli_stopped)
            sigaction(signals[i], &action, NULL);
}

#include "cli/stop.h"

#include <stddef.h>

volatile sig_atomic_t cli_stopped;

static void note_stop(int signal_number) {
    (void)signal_number;
    cli_stopped = 1;
}

void cli_catch_stop(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = note_stop, .sa_flags = SA_RESTART | (int)SA_RESETHAND}, now;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL && !cli_stopped)
            sigaction(signals[i], &action, NULL);
}

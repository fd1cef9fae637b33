#include <stdarg.h>
#include <string.h>

#include "cli/output.h"
#include "ctl.h"

/* Later verbs have their place here. */
const ctl_verb ctl_verbs[] = {
    {"status", "what the daemon does, on one screen; --json for programs, --check for monitoring",
     ctl_status},
    {"version", "versions of photonctl and of the daemon", ctl_version},
};
const size_t ctl_n_verbs = sizeof ctl_verbs / sizeof ctl_verbs[0];

int ctl_fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("photonctl: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return CTL_UNREACHABLE;
}

static void main_help(void) {
    puts("photonctl: asks a running photond how it is.\n"
         "\n"
         "  photonctl VERB [--control ADDRESS] [--json] [--check]\n"
         "  photonctl --help | --version\n"
         "\n"
         "Verbs:");
    for (size_t i = 0; i < ctl_n_verbs; i++)
        printf("  %-8s  %s\n", ctl_verbs[i].name, ctl_verbs[i].help);
    puts("\n"
         "Options:\n"
         "  --control ADDRESS  the daemon's control socket, unix:PATH (default: /run/photond/control.sock, "
         "for users\n"
         "                     $XDG_RUNTIME_DIR/photond/control.sock)\n"
         "  --json             the answer as one JSON object\n"
         "  --check            status: one line only, and exit status 1 when the daemon is not OK\n"
         "\n"
         "Examples:\n"
         "  photonctl status\n"
         "  photonctl status --json | jq '.runs[] | {name, photons: .counters.photons}'\n"
         "  photonctl status --check || systemctl status photond\n"
         "\n"
         "Exit status: 0 good (or degraded), 1 not OK or refused, 2 unreachable or a usage error.");
}

/* Takes the options after the verb. Returns 0, or -1 (said). */
static int main_options(ctl_options *options, int argc, char **argv) {
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            options->json = true;
        } else if (strcmp(argv[i], "--check") == 0) {
            options->check = true;
        } else if (strncmp(argv[i], "--control=", 10) == 0) {
            options->control = argv[i] + 10;
        } else if (strcmp(argv[i], "--control") == 0 && i + 1 < argc) {
            options->control = argv[++i];
        } else {
            ctl_fail("%s: %s; see photonctl --help", argv[i],
                     strcmp(argv[i], "--control") == 0 ? "an address is missing" : "unknown option");
            return -1;
        }
    }
    return 0;
}

static int main_run(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        main_help();
        return argc < 2 ? CTL_UNREACHABLE : CTL_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("photonctl " PHOTOND_VERSION);
        return CTL_OK;
    }
    for (size_t i = 0; i < ctl_n_verbs; i++) {
        if (strcmp(argv[1], ctl_verbs[i].name) != 0)
            continue;
        ctl_options options = {.control = "auto"};
        for (int a = 2; a < argc; a++) {
            if (strcmp(argv[a], "--help") == 0) {
                main_help();
                return CTL_OK;
            }
        }
        if (main_options(&options, argc - 2, argv + 2) != 0)
            return CTL_UNREACHABLE;
        return ctl_verbs[i].run(&options);
    }
    return ctl_fail("%s: no such verb; see photonctl --help", argv[1]);
}

int main(int argc, char **argv) {
    return cli_finish("photonctl", main_run(argc, argv));
}

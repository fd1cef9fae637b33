/* photonctl: commands that talk to a running photond over its control socket. */
#ifndef PHOTONCTL_CTL_H
#define PHOTONCTL_CTL_H

#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/output.h"

/* Exit statuses: CLI_OK; CLI_PROBLEMS: the daemon is not OK, or it refused; CLI_USAGE: no daemon, no usable answer, or wrong
 * usage. */

/* What a command was called with. */
typedef struct ctl_call {
    const cli_command *self;
    const char *control; /* address */
    const char *profile;
    unsigned timeout_s;                /* for an answer */
    unsigned watch_s;                  /* 0: once */
    uint64_t stop_photons, stop_bytes; /* 0: not given */
    double stop_seconds;
    bool json, check, force, off, no_wait;
} ctl_call;

/* Options, by their letters in `which`: j --json, c --check, w --watch, f --force, p --profile, o --off, n --no-wait,
 * s --stop-photons --stop-bytes --stop-seconds; all have --control and --timeout. Then `n` arguments at argv[optind]. Returns -1 to go on, else the exit status. */
int ctl_begin(ctl_call *call, const cli_command *self, const char *which, int argc, char **argv, int n);

/* Sends a command with its members (stolen, NULL: none) and gives the answer, an object whose "ok" is true (a new
 * reference). Returns CLI_OK; else what to exit with, said on standard error. */
int ctl_request(const ctl_call *call, const char *command, json_t *members, json_t **ret);

/* The answer as it is, on standard output. Returns CLI_OK. */
int ctl_print_json(const json_t *answer);

/* A text of an answer, printable; "-" when there is none. Returns `buffer`. */
const char *ctl_text(const json_t *object, const char *key, char *buffer, size_t cap);

/* The status for people; the open runs of it. */
void ctl_print_status(FILE *out, const json_t *status);
void ctl_print_runs(FILE *out, const json_t *status);

#define CTL_COMMON_HELP                                                                                      \
    "  --control ADDRESS  the daemon's control socket, unix:PATH (default: /run/photond/control.sock,\n"     \
    "                     for users without that folder $XDG_RUNTIME_DIR/photond/control.sock)\n"            \
    "  --timeout SECONDS  how long to wait for an answer (default 10)\n"                                     \
    "  --help             this help\n"

extern const cli_command ctl_status, ctl_runs, ctl_version, ctl_start, ctl_stop, ctl_flush, ctl_rotate,
    ctl_note, ctl_export, ctl_drain, ctl_reload, ctl_token, ctl_verify_summaries;

#endif

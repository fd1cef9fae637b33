/* photonctl: verbs that talk to a running photond over its control socket. */
#ifndef PHOTONCTL_CTL_H
#define PHOTONCTL_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Exit statuses. */
enum {
    CTL_OK = 0,
    CTL_NOT_OK = 1,     /* status --check: the daemon is not OK; else: it refused */
    CTL_UNREACHABLE = 2 /* no daemon, no usable answer, or a usage error */
};

/* What all verbs understand. */
typedef struct ctl_options {
    const char *control; /* address */
    bool json;
    bool check;
} ctl_options;

typedef struct ctl_verb {
    const char *name;
    const char *help; /* one line */
    int (*run)(const ctl_options *options);
} ctl_verb;

extern const ctl_verb ctl_verbs[];
extern const size_t ctl_n_verbs;

/* Says something on standard error. Returns CTL_UNREACHABLE. */
int ctl_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Sends {"command": command} and gives the answer, an object whose "ok" is true (a new reference).
 * Returns CTL_OK; else what to exit with, said on standard error. */
int ctl_request(const char *control, const char *command, json_t **ret);

int ctl_status(const ctl_options *options);
int ctl_version(const ctl_options *options);

/* The status for people. */
void ctl_print_status(FILE *out, const json_t *status);

#endif

/* photon-send's command line. */
#ifndef CLIENT_TOOLS_OPTIONS_H
#define CLIENT_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source.h"

enum { SEND_LIST_MAX = 64 };

typedef struct send_options {
    const char *to;
    const char *run;
    const char *source; /* NULL when simulated */
    const char *layout;
    bool simulate;
    send_simulation simulation;
    bool real;      /* paced by the events' own times */
    uint64_t batch; /* events in a batch; 0: as many as the server takes */
    bool batch_random;
    uint64_t count;
    const char *profile; /* NULL: chosen by the datasets; "none": never */
    uint32_t mode;
    const char *volume; /* NULL: the server's first */
    const char *instance;
    const char *ca_file, *certificate_file, *key_file, *token_file; /* NULL: not given */
    uint32_t timeout_ms;                                            /* without progress; 0: none */
    uint32_t wait_ms;                                               /* for a server that is not there yet */
    bool no_reconnect;
    bool drop; /* whole batches rather than be held back */
    bool json;
    send_column_name columns[SEND_LIST_MAX];
    size_t n_columns;
    photon_client_attribute attributes[SEND_LIST_MAX];
    size_t n_attributes;
} send_options;

/* Reads the command line; the strings stay in argv. Prints help, version or what is wrong. Returns -1 when there is
 * something to send, else the exit status. */
int send_options_read(int argc, char **argv, send_options *options);

/* "1.5M", "250k", "1e6". Returns 0 or -1. */
int send_parse_rate(const char *text, double *ret);

/* "10s", "500ms", "2min", "1h", or seconds without a unit. Returns 0 or -1. */
int send_parse_duration(const char *text, double *ret_s);

#endif

/* How a command was called. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "text.h"

enum { CALL_CONTROL = 256, CALL_TIMEOUT, CALL_STOP_PHOTONS, CALL_STOP_BYTES, CALL_STOP_SECONDS };
enum { CALL_TIMEOUT_S = 10, CALL_SECONDS_MAX = 86400, CALL_WATCH_S = 1 };

static const struct option call_all[] = {
    {"json", no_argument, NULL, 'j'},
    {"check", no_argument, NULL, 'c'},
    {"watch", optional_argument, NULL, 'w'},
    {"force", no_argument, NULL, 'f'},
    {"profile", required_argument, NULL, 'p'},
    {"off", no_argument, NULL, 'o'},
    {"no-wait", no_argument, NULL, 'n'},
    {"stop-photons", required_argument, NULL, CALL_STOP_PHOTONS},
    {"stop-bytes", required_argument, NULL, CALL_STOP_BYTES},
    {"stop-seconds", required_argument, NULL, CALL_STOP_SECONDS},
};
enum { CALL_N_ALL = sizeof call_all / sizeof call_all[0], CALL_N_COMMON = 3 };

static bool call_seconds(const ctl_call *call, const char *text, unsigned *ret) {
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || value == 0 || value > CALL_SECONDS_MAX) {
        cli_fail(call->self, "\"%s\" is no number of seconds from 1 to %d", text, CALL_SECONDS_MAX);
        return false;
    }
    *ret = (unsigned)value;
    return true;
}

static bool call_count(const ctl_call *call, const char *text, uint64_t *ret) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value == 0 || value > INT64_MAX) {
        cli_fail(call->self, "\"%s\" is no whole number above 0", text);
        return false;
    }
    *ret = value;
    return true;
}

static bool call_time(ctl_call *call, const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (*text < '0' || *text > '9' || *end || !isfinite(value) || !(value > 0)) {
        cli_fail(call->self, "\"%s\" is no number of seconds above 0", text);
        return false;
    }
    call->stop_seconds = value;
    return true;
}

static bool call_take(void *context, int option, const char *argument) {
    ctl_call *call = context;
    switch (option) {
    case CALL_CONTROL:
        call->control = argument;
        return true;
    case CALL_TIMEOUT:
        return call_seconds(call, argument, &call->timeout_s);
    case 'w':
        call->watch_s = CALL_WATCH_S;
        return !argument || call_seconds(call, argument, &call->watch_s);
    case CALL_STOP_PHOTONS:
        return call_count(call, argument, &call->stop_photons);
    case CALL_STOP_BYTES:
        return call_count(call, argument, &call->stop_bytes);
    case CALL_STOP_SECONDS:
        return call_time(call, argument);
    case 'p':
        call->profile = argument;
        return true;
    case 'j':
        call->json = true;
        return true;
    case 'c':
        call->check = true;
        return true;
    case 'f':
        call->force = true;
        return true;
    case 'o':
        call->off = true;
        return true;
    case 'n':
        call->no_wait = true;
        return true;
    default:
        return false;
    }
}

int ctl_begin(ctl_call *call, const cli_command *self, const char *which, int argc, char **argv, int n) {
    struct option options[CALL_N_ALL + CALL_N_COMMON + 1] = {
        {"help", no_argument, NULL, 'h'},
        {"control", required_argument, NULL, CALL_CONTROL},
        {"timeout", required_argument, NULL, CALL_TIMEOUT}};
    size_t n_options = CALL_N_COMMON;
    for (size_t i = 0; i < CALL_N_ALL; i++)
        if (strchr(which, call_all[i].val < CALL_CONTROL ? call_all[i].val : 's'))
            options[n_options++] = call_all[i];
    *call = (ctl_call){.self = self, .control = "auto", .profile = "", .timeout_s = CALL_TIMEOUT_S};
    return cli_options(self, argc, argv, options, call_take, call, n, n);
}

int ctl_print_json(const json_t *answer) {
    json_dumpf(answer, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    putchar('\n');
    return CLI_OK;
}

const char *ctl_text(const json_t *object, const char *key, char *buffer, size_t cap) {
    const char *text = json_string_value(json_object_get(object, key));
    pd_text_escape(buffer, cap, text && text[0] ? text : "-");
    return buffer;
}

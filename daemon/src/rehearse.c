#include "rehearse.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>

#include "cli/output.h"
#include "rehearse_private.h"

volatile sig_atomic_t pd_rehearse__stopped;

static void rehearse_stop(int number) {
    pd_rehearse__stopped = number;
}

double pd_rehearse__now(void) {
    return (double)uv_hrtime() / 1e9;
}

void pd_rehearse__sleep(double seconds) {
    if (seconds > 0)
        nanosleep(&(struct timespec){(time_t)seconds, (long)(fmod(seconds, 1) * 1e9)}, NULL);
}

/* ---- the command line ---- */

int pd_rehearse__fail(const char *format, ...) {
    va_list args;
    fputs("photond --rehearse: ", stderr);
    va_start(args, format);
    cli_vprint_line(stderr, format, args);
    va_end(args);
    return CLI_USAGE;
}

bool pd_rehearse_asked(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--rehearse") == 0 || strncmp(argv[i], "--rehearse=", 11) == 0)
            return true;
    return false;
}

/* A number above 0 with one of the endings; false for anything else. */
static bool rehearse_number(const char *text, const char *const *endings, const double *factors, size_t n,
                            double *ret) {
    char *end;
    double value = strtod(text, &end);
    if (*text < '0' || *text > '9' || !isfinite(value) || !(value > 0))
        return false;
    for (size_t i = 0; i < n; i++)
        if (strcmp(end, endings[i]) == 0) {
            *ret = value * factors[i];
            return true;
        }
    return false;
}

static bool rehearse_rate(const char *text, double *ret) {
    static const char *const endings[] = {"", "k", "M", "G"};
    static const double factors[] = {1, 1e3, 1e6, 1e9};
    return rehearse_number(text, endings, factors, 4, ret) && *ret >= 1 && *ret <= 1e12;
}

static bool rehearse_time(const char *text, double *ret) {
    static const char *const endings[] = {"", "s", "ms", "min", "h"};
    static const double factors[] = {1, 1, 1e-3, 60, 3600};
    return rehearse_number(text, endings, factors, 5, ret) && *ret >= 0.1 && *ret <= 86400;
}

/* The value of option `name` at argv[*i], which is moved to its last argument; NULL: it is another one. */
static const char *rehearse_value(const char *name, int argc, char **argv, int *i) {
    size_t n = strlen(name);
    if (strncmp(argv[*i], name, n) != 0)
        return NULL;
    if (argv[*i][n] == '=')
        return argv[*i] + n + 1;
    if (argv[*i][n] != 0)
        return NULL;
    return *i + 1 < argc ? argv[++*i] : "";
}

/* Takes its own options; the others, which are the configuration's, go to `rest` [argc + 1]. */
static int rehearse_args(rehearsal *r, int argc, char **argv, int *ret_n, char **rest) {
    const char *rate = "1M", *seconds = "30s", *value;
    int n = 0;
    for (int i = 0; i < argc; i++) {
        if (i > 0 && (value = rehearse_value("--rehearse", argc, argv, &i)))
            r->profile_name = value;
        else if (i > 0 && (value = rehearse_value("--rate", argc, argv, &i)))
            rate = value;
        else if (i > 0 && (value = rehearse_value("--for", argc, argv, &i)))
            seconds = value;
        else if (i > 0 && strcmp(argv[i], "--json") == 0)
            r->json = true;
        else
            rest[n++] = argv[i];
    }
    rest[n] = NULL;
    *ret_n = n;
    if (!rehearse_rate(rate, &r->rate_hz))
        return pd_rehearse__fail("--rate \"%s\": events per second are a number from 1 on: 500000, 250k, 5M",
                                 rate);
    if (!rehearse_time(seconds, &r->seconds))
        return pd_rehearse__fail("--for \"%s\": a time is a number with ms, s, min or h, from 100ms on",
                                 seconds);
    return 0;
}

static int rehearse_configure(rehearsal *r, int argc, char **argv) {
    char **rest = calloc((size_t)argc + 1, sizeof *rest);
    int n = 0, code = rest ? rehearse_args(r, argc, argv, &n, rest) : pd_rehearse__fail("out of memory");
    if (code == 0 && pd_config_from_args(&r->config, n, rest) != PD_CONFIG_RUN)
        code = CLI_USAGE;
    free(rest);
    if (code)
        return code;
    r->profile = pd_profiles_find(r->config.profiles, r->profile_name);
    return r->profile
               ? 0
               : pd_rehearse__fail("there is no profile \"%s\": see docs/configuration.md, \"Profiles\"",
                                   r->profile_name);
}

/* ---- all of it ---- */

static void rehearse_watch_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction stop = {.sa_handler = rehearse_stop}; /* without SA_RESTART: sleeps end */
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &stop, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int pd_rehearse(int argc, char **argv) {
    rehearsal r = {.data_fd = -1, .lock_fd = -1};
    int code = rehearse_configure(&r, argc, argv);
    if (code == 0) {
        rehearse_watch_signals();
        code = pd_rehearse__place(&r);
        if (code == 0)
            code = pd_rehearse__daemon(&r);
        if (code == 0)
            code = pd_rehearse__send(&r);
        if (code == 0)
            code = pd_rehearse__tell(&r);
        pd_rehearse__daemon_end(&r);
        pd_rehearse__place_remove(&r);
        if (pd_rehearse__stopped)
            pd_rehearse__fail("stopped by a signal; nothing is left of it");
    }
    json_decref(r.status);
    pd_config_free(&r.config);
    return pd_rehearse__stopped ? CLI_USAGE : code;
}

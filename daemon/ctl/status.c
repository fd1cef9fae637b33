/* Commands that look: status, runs, version. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl.h"
#include "text.h"

static const char *status_string(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void status_check_line(FILE *out, const json_t *status) {
    const json_t *reason;
    size_t i;
    char safe[512];
    pd_text_escape(safe, sizeof safe, status_string(status, "health"));
    fputs(safe, out);
    json_array_foreach(json_object_get(status, "reasons"), i, reason) {
        pd_text_escape(safe, sizeof safe, json_is_string(reason) ? json_string_value(reason) : "?");
        fprintf(out, "%s%s", i ? "; " : ": ", safe);
    }
    fputc('\n', out);
}

static int status_once(const ctl_call *call) {
    json_t *status = NULL;
    int code = ctl_request(call, "status", NULL, &status);
    if (code != CLI_OK)
        return call->check ? CLI_USAGE : code;
    if (call->json)
        ctl_print_json(status);
    else if (call->check)
        status_check_line(stdout, status);
    else
        ctl_print_status(stdout, status);
    const char *health = status_string(status, "health");
    bool good = strcmp(health, "ok") == 0 || strcmp(health, "degraded") == 0;
    json_decref(status);
    return call->check && !good ? CLI_PROBLEMS : CLI_OK;
}

/* Until it is interrupted, standard output ends, or the daemon does not answer. A terminal shows one screen. */
static int status_watch(const ctl_call *call) {
    bool screen = isatty(STDOUT_FILENO) && !call->json && !call->check;
    for (;;) {
        if (screen)
            fputs("\033[H\033[2J", stdout);
        int code = status_once(call);
        if (code == CLI_USAGE || fflush(stdout) != 0)
            return code;
        nanosleep(&(struct timespec){.tv_sec = (time_t)call->watch_s}, NULL);
    }
}

static int status_run(const cli_command *self, int argc, char **argv) {
    ctl_call call;
    int code = ctl_begin(&call, self, "jcw", argc, argv, 0);
    if (code >= 0)
        return code;
    if (call.json && call.check)
        return cli_misused(self, "--json and --check exclude each other");
    return call.watch_s ? status_watch(&call) : status_once(&call);
}

const cli_command ctl_status = {
    .name = "status",
    .summary = "what the daemon does, on one screen",
    .help =
        "Usage: photonctl status [--json | --check] [--watch[=SECONDS]]\n"
        "Shows rates, the ring, the disk, totals, every run and every client.\n\n"
        "  --json             the answer as one JSON object, with all there is\n"
        "  --check            one line for monitoring; exit status 0 ok or degraded, 1 not OK, 2 no answer\n"
        "  --watch[=SECONDS]  again and again, every second or as told\n" CTL_COMMON_HELP "\nExamples:\n"
        "  photonctl status --json | jq '.runs[] | {name, photons: .counters.photons}'\n"
        "  photonctl status --check || systemctl status photond\n",
    .run = status_run};

static int runs_run(const cli_command *self, int argc, char **argv) {
    ctl_call call;
    json_t *status = NULL;
    int code = ctl_begin(&call, self, "j", argc, argv, 0);
    if (code < 0)
        code = ctl_request(&call, "status", NULL, &status);
    else
        return code;
    if (code != CLI_OK)
        return code;
    if (call.json)
        ctl_print_json(json_object_get(status, "runs"));
    else
        ctl_print_runs(stdout, status);
    json_decref(status);
    return CLI_OK;
}

const cli_command ctl_runs = {
    .name = "runs",
    .summary = "the open runs, and those that wait for their producers",
    .help = "Usage: photonctl runs [--json]\n"
            "Shows the open runs: state, photons, rate, size, how long ago all was safe on the disk.\n\n"
            "  --json             a JSON list, as in status\n" CTL_COMMON_HELP,
    .run = runs_run};

static int version_run(const cli_command *self, int argc, char **argv) {
    ctl_call call;
    json_t *status = NULL;
    char safe[128] = "";
    int code = ctl_begin(&call, self, "j", argc, argv, 0);
    if (code >= 0)
        return code;
    code = ctl_request(&call, "status", NULL, &status);
    if (code == CLI_OK)
        pd_text_escape(safe, sizeof safe, status_string(status, "version"));
    json_decref(status);
    if (call.json) {
        json_t *versions =
            json_pack("{s:s, s:s?}", "photonctl", PHOTOND_VERSION, "photond", code == CLI_OK ? safe : NULL);
        ctl_print_json(versions);
        json_decref(versions);
    } else {
        printf("photonctl %s\n", PHOTOND_VERSION);
        if (code == CLI_OK)
            printf("photond   %s\n", safe);
    }
    return code;
}

const cli_command ctl_version = {.name = "version",
                                 .summary = "versions of photonctl and of the daemon",
                                 .help = "Usage: photonctl version [--json]\n\n"
                                         "  --json             as one JSON object\n" CTL_COMMON_HELP,
                                 .run = version_run};

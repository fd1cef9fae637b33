/* Commands for the daemon as a whole: drain, reload. */
#include "ctl.h"

static void service_list(const char *what, const json_t *keys) {
    const json_t *key;
    size_t i;
    json_array_foreach(keys, i, key) {
        cli_print_line(stdout, "%-12s %s", what, json_is_string(key) ? json_string_value(key) : "?");
    }
}

static int reload_run(const cli_command *self, int argc, char **argv) {
    ctl_call call;
    json_t *answer = NULL;
    int code = ctl_begin(&call, self, "j", argc, argv, 0);
    if (code >= 0)
        return code;
    code = ctl_request(&call, "reload", NULL, &answer);
    if (code != CLI_OK)
        return code;
    const json_t *changed = json_object_get(answer, "changed"), *restart = json_object_get(answer, "restart");
    if (call.json) {
        ctl_print_json(answer);
    } else if (json_array_size(changed) + json_array_size(restart) == 0) {
        puts("nothing has changed");
    } else {
        service_list("changed", changed);
        service_list("restart", restart);
    }
    json_decref(answer);
    return CLI_OK;
}

const cli_command ctl_reload = {
    .name = "reload",
    .summary = "read the configuration again",
    .help = "Usage: photonctl reload [--json]\n"
            "As SIGHUP: the daemon reads its configuration file again. Shows the keys that have changed, and "
            "those "
            "that differ and\n"
            "need a restart. Exit status 1: the configuration is bad, and all stays as it was.\n\n"
            "  --json             the answer as one JSON object\n" CTL_COMMON_HELP,
    .run = reload_run};

static int drain_run(const cli_command *self, int argc, char **argv) {
    ctl_call call;
    json_t *answer = NULL;
    int code = ctl_begin(&call, self, "jo", argc, argv, 0);
    if (code >= 0)
        return code;
    code = ctl_request(&call, "drain", json_pack("{s:b}", "off", call.off), &answer);
    if (code != CLI_OK)
        return code;
    if (call.json)
        ctl_print_json(answer);
    else
        printf("new runs are %s; %lld are open\n", call.off ? "taken" : "refused",
               (long long)json_integer_value(json_object_get(answer, "open")));
    json_decref(answer);
    return CLI_OK;
}

const cli_command ctl_drain = {
    .name = "drain",
    .summary = "take no new runs, before a restart",
    .help = "Usage: photonctl drain [--off] [--json]\n"
            "New runs are refused from now on, those that are open go on until they are closed.\n\n"
            "  --off              take new runs again\n"
            "  --json             the answer as one JSON object\n" CTL_COMMON_HELP "\nExample:\n"
            "  photonctl drain && until photonctl runs | grep -q 'no open runs'; do sleep 1; done; systemctl "
            "restart "
            "photond\n",
    .run = drain_run};

/* The command line of photond. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "config_keys.h"
#include "text.h"

typedef struct args_option {
    const char *name;  /* without dashes */
    const char *value; /* NULL: none was given */
} args_option;

/* What is asked for beside the keys. */
typedef struct args_plan {
    const char *config_file;
    const char *check_file;
    bool print, help, version;
} args_plan;

static int args_help(FILE *out) {
    fputs(
        "photond: receives photon events over sockets and stores them, with summaries while the run is on.\n"
        "\n"
        "  photond [--config FILE] [OPTION...]     run until SIGTERM or SIGINT\n"
        "  photond --check-config FILE             read a configuration, say what is wrong, and exit\n"
        "  photond [--config FILE] --print-config  print the whole configuration as JSON, and exit\n"
        "  photond --help | --version\n"
        "\n"
        "Every key of the configuration is an option, which overrides the file. TIME is a number in the unit "
        "that\n"
        "the option's name ends in, or with one: 200ms, 5s, 2min, 1h. SIZE likewise: 64MiB, 1GB.\n"
        "\n",
        out);
    for (size_t i = 0; i < pd_config_n_keys; i++) {
        static const char *const arguments[] = {
#define ARGS_ARGUMENT(kind, argument) argument,
            PD_CONFIG_KIND_MAP(ARGS_ARGUMENT)
#undef ARGS_ARGUMENT
        };
        const pd_config_key *key = &pd_config_keys[i];
        char option[PD_CONFIG_OPTION_BYTES];
        if (key->kind == PD_CONFIG_PROFILES)
            continue;
        fprintf(out, "  --%s %s\n        %s", pd_config_option(key, option), arguments[key->kind], key->help);
        fprintf(out, key->value[0] ? " (default %s)\n" : "\n", key->value);
    }
    fputs("\n"
          "Examples:\n"
          "  photond --data-dir /data --listen tcp://127.0.0.1:7777 --listen unix:/run/photond/ingest.sock\n"
          "  photond --config /etc/photond/photond.json --log-level debug\n"
          "  photond --ring-mb 256 --sync-interval-ms 500ms --print-config > photond.json\n"
          "\n"
          "Exit status: 0 stopped as asked; 1 stopped, but a run could not be closed and is left as it was "
          "on the disk;\n"
          "2 bad configuration, data folder in use, or an address that cannot be listened at.\n"
          "docs/configuration.md explains the keys, docs/operations.md the rest.\n",
          out);
    return ferror(out) ? -1 : 0;
}

static pd_config_action args_fail(const char *sentence) {
    fprintf(stderr, "photond: %s\n", sentence);
    return PD_CONFIG_FAIL;
}

/* Splits "--name=value" and "--name value"; a bool may stand alone. Returns the arguments used (1 or 2),
 * or 0 with err. `buffer` keeps the name. */
static int args_take(args_option *option, char *buffer, size_t cap, int n, char **argv, pd_error *err) {
    const char *arg = argv[0];
    if (strncmp(arg, "--", 2) != 0 || arg[2] == '\0') {
        pd_error_set(err, "%.100s: not an option; see photond --help", arg);
        return 0;
    }
    const char *equals = strchr(arg, '=');
    size_t name_bytes = equals ? (size_t)(equals - arg) - 2 : strlen(arg) - 2;
    if (name_bytes >= cap)
        name_bytes = cap - 1;
    memcpy(buffer, arg + 2, name_bytes);
    buffer[name_bytes] = '\0';
    option->name = buffer;
    option->value = equals ? equals + 1 : NULL;
    const pd_config_key *key = pd_config_key_by_option(buffer);
    bool bare =
        strcmp(buffer, "help") == 0 || strcmp(buffer, "version") == 0 || strcmp(buffer, "print-config") == 0;
    if (equals || bare)
        return 1;
    if (key && key->kind == PD_CONFIG_BOOL && (n < 2 || strncmp(argv[1], "--", 2) == 0)) {
        option->value = "true";
        return 1;
    }
    if (n < 2)
        return 1;
    option->value = argv[1];
    return 2;
}

static bool args_is(const args_option *option, const char *name) {
    return strcmp(option->name, name) == 0;
}

/* Options that are no keys. Returns whether it was one. */
static bool args_plan_option(args_plan *plan, const args_option *option) {
    if (args_is(option, "config"))
        plan->config_file = option->value;
    else if (args_is(option, "check-config"))
        plan->check_file = option->value;
    else if (args_is(option, "print-config"))
        plan->print = true;
    else if (args_is(option, "help"))
        plan->help = true;
    else if (args_is(option, "version"))
        plan->version = true;
    else
        return false;
    return true;
}

static int args_unknown(const char *name, pd_error *err) {
    const char *nearest = NULL;
    size_t best = strlen(name) / 3 + 2;
    char option[PD_CONFIG_OPTION_BYTES], kept[PD_CONFIG_OPTION_BYTES];
    for (size_t i = 0; i < pd_config_n_keys; i++) {
        size_t distance = pd_text_distance(name, pd_config_option(&pd_config_keys[i], option), best);
        if (distance < best) {
            best = distance;
            nearest = strcpy(kept, option);
        }
    }
    if (nearest)
        return pd_error_set(err, "--%.60s: unknown option; did you mean --%s?", name, nearest);
    return pd_error_set(err, "--%.60s: unknown option; see photond --help", name);
}

/* Whether a key was set by an earlier option. */
static bool args_set_before(int argc, char **argv, const char *name) {
    size_t n = strlen(name);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], "--", 2) == 0 && strncmp(argv[i] + 2, name, n) == 0 &&
            (argv[i][2 + n] == '\0' || argv[i][2 + n] == '='))
            return true;
    return false;
}

/* One pass over the options: the first (config NULL) only looks for the plan, the second sets the keys
 * over the file. */
static int args_pass(args_plan *plan, pd_config *config, int argc, char **argv, pd_error *err) {
    for (int i = 1; i < argc;) {
        args_option option;
        char buffer[100];
        int used = args_take(&option, buffer, sizeof buffer, argc - i, argv + i, err);
        if (used == 0)
            return -1;
        bool planned = args_plan_option(plan, &option);
        if (!planned && !pd_config_key_by_option(option.name))
            return args_unknown(option.name, err);
        if (!option.value && !plan->help && !plan->version && !(planned && args_is(&option, "print-config")))
            return pd_error_set(err, "--%s: a value is missing", option.name);
        if (config && !planned &&
            pd_config_set(config, option.name, option.value, !args_set_before(i, argv, option.name), err) !=
                0)
            return -1;
        i += used;
    }
    return 0;
}

static int args_build(pd_config *config, const args_plan *plan, int argc, char **argv, pd_error *err) {
    args_plan ignored = *plan;
    const char *file = plan->check_file ? plan->check_file : plan->config_file;
    if (pd_config_init(config, err) != 0 || (file && pd_config_read(config, file, err) != 0) ||
        args_pass(&ignored, config, argc, argv, err) != 0)
        return -1;
    if (pd_config_check(config, err) != 0)
        return file ? pd_error_prefix(err, "%s", file) : -1;
    if (config->encoder_threads == 0 && !plan->print) {
        long processors = sysconf(_SC_NPROCESSORS_ONLN);
        config->encoder_threads = processors < 1 ? 1 : processors > 1024 ? 1024 : (uint32_t)processors;
    }
    return 0;
}

static pd_config_action args_exit(int failed) {
    if (failed || fflush(stdout) != 0)
        return args_fail("standard output could not be written whole");
    return PD_CONFIG_EXIT;
}

pd_config_action pd_config_from_args(pd_config *config, int argc, char **argv) {
    args_plan plan = {0};
    pd_error err;
    memset(config, 0, sizeof *config);
    if (args_pass(&plan, NULL, argc, argv, &err) != 0)
        return args_fail(err.text);
    if (plan.help)
        return args_exit(args_help(stdout));
    if (plan.version)
        return args_exit(puts("photond " PHOTOND_VERSION) < 0);
    if (args_build(config, &plan, argc, argv, &err) != 0)
        return args_fail(err.text);
    if (plan.print)
        return args_exit(pd_config_print(config, stdout));
    if (plan.check_file)
        return args_exit(printf("%s: good\n", plan.check_file) < 0);
    return PD_CONFIG_RUN;
}

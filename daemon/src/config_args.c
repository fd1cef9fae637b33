/* The command line of photond. */
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "config_keys.h"
#include "text.h"

/* Options that are no keys. */
typedef enum args_command {
    ARGS_NONE,
    ARGS_CONFIG,
    ARGS_CHECK,
    ARGS_PRINT,
    ARGS_HELP,
    ARGS_VERSION
} args_command;

enum { ARGS_N_COMMANDS = ARGS_VERSION + 1, ARGS_NAME_BYTES = 100 };

static const struct {
    const char *name;
    bool takes_value;
} args_commands[ARGS_N_COMMANDS] = {[ARGS_CONFIG] = {"config", true},
                                    [ARGS_CHECK] = {"check-config", true},
                                    [ARGS_PRINT] = {"print-config", false},
                                    [ARGS_HELP] = {"help", false},
                                    [ARGS_VERSION] = {"version", false}};

typedef struct args_option {
    char name[ARGS_NAME_BYTES]; /* without dashes */
    args_command command;       /* or ARGS_NONE, and then */
    const pd_config_key *key;
    const char *value; /* "true" where none was given nor needed */
} args_option;

/* The commands that were given, by number: their values. */
typedef const char *args_plan[ARGS_N_COMMANDS];

static int args_help(FILE *out) {
    fputs(
        "photond: receives photon events over sockets and stores them, with summaries while the run is on.\n"
        "\n"
        "  photond [--config FILE] [OPTION...]     run until SIGTERM or SIGINT\n"
        "  photond --check-config FILE             read a configuration, say what is wrong, and exit\n"
        "  photond [--config FILE] --print-config  print the whole configuration as JSON, and exit\n"
        "  photond --rehearse PROFILE [--rate R] [--for TIME] [--json] [--config FILE] [OPTION...]\n"
        "                                          try what this machine sustains, and exit\n"
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
        if (pd_config_key_is_file_only(key))
            continue;
        fprintf(out, "  --%s %s\n        %s", pd_config_option(key, option), arguments[key->kind], key->help);
        fprintf(out, key->value[0] ? " (default %s)\n" : "\n", key->value);
    }
    fputs("\n"
          "Examples:\n"
          "  photond --data-dir /data --listen tcp://127.0.0.1:7777 --listen unix:/run/photond/ingest.sock\n"
          "  photond --config /etc/photond/photond.json --log-level debug\n"
          "  photond --ring-mb 256 --sync-interval-ms 500ms --print-config > photond.json\n"
          "  photond --rehearse lincam --rate 5M --for 30s --data-dir /data\n"
          "\n"
          "A rehearsal sends made events of a profile (R a second: 250k, 5M; default 1M for 30s) through the "
          "whole path, in a hidden\n"
          "folder of the data folder that is removed again, also beside a photond that runs there. It says "
          "which rate was\n"
          "sustained, how long the disk may stand still, how long syncs took, and how long the room on the "
          "disk lasts. Exit status: 0\n"
          "the rate was sustained, 1 it was not, 2 wrong usage or it could not be done.\n"
          "\n"
          "Exit status: 0 stopped as asked; 1 stopped, but a run could not be closed and is left as it was "
          "on the disk;\n"
          "2 bad configuration, data folder in use, or an address that cannot be listened at; 3 stopped "
          "without a disk that did not "
          "answer,\nthe next start goes on with the runs.\n"
          "docs/configuration.md explains the keys, docs/operations.md the rest.\n",
          out);
    return ferror(out) ? -1 : 0;
}

static pd_config_action args_fail(const char *sentence) {
    fprintf(stderr, "photond: %s\n", sentence);
    return PD_CONFIG_FAIL;
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

/* Finds what an option is. Returns 0, or -1 with err. */
static int args_look_up(args_option *option, pd_error *err) {
    option->command = ARGS_NONE;
    for (int c = ARGS_NONE + 1; c < ARGS_N_COMMANDS; c++)
        if (strcmp(option->name, args_commands[c].name) == 0)
            option->command = (args_command)c;
    option->key = pd_config_key_by_option(option->name);
    return option->command || option->key ? 0 : args_unknown(option->name, err);
}

/* Whether the next argument is its value. A key that is true or false may stand alone. */
static bool args_wants_next(const args_option *option, const char *next) {
    if (option->command)
        return args_commands[option->command].takes_value;
    return option->key->kind != PD_CONFIG_BOOL || (next && strncmp(next, "--", 2) != 0);
}

/* Reads the option at argv[*i], "--name=value", "--name value" or "--name", and moves *i past it.
 * Returns 0, or -1 with err. */
static int args_next(args_option *option, int *i, int argc, char **argv, pd_error *err) {
    const char *arg = argv[(*i)++];
    if (strncmp(arg, "--", 2) != 0 || arg[2] == '\0')
        return pd_error_set(err, "%.100s: not an option; see photond --help", arg);
    size_t n = strcspn(arg + 2, "="), kept = n < ARGS_NAME_BYTES ? n : ARGS_NAME_BYTES - 1;
    bool equals = arg[2 + n] == '=';
    memcpy(option->name, arg + 2, kept);
    option->name[kept] = '\0';
    option->value = equals ? arg + 2 + n + 1 : NULL;
    if (args_look_up(option, err) != 0)
        return -1;
    if (equals)
        return 0;
    bool takes_next = args_wants_next(option, *i < argc ? argv[*i] : NULL);
    if (takes_next && *i == argc)
        return pd_error_set(err, "--%s: a value is missing", option->name);
    option->value = takes_next ? argv[(*i)++] : "true";
    return 0;
}

/* Which commands there are. */
static int args_read_plan(args_plan plan, int argc, char **argv, pd_error *err) {
    for (int i = 1; i < argc;) {
        args_option option;
        if (args_next(&option, &i, argc, argv, err) != 0)
            return -1;
        if (option.command)
            plan[option.command] = option.value;
    }
    return 0;
}

/* Sets the keys that are given as options. */
static int args_set_keys(pd_config *config, int argc, char **argv, pd_error *err) {
    bool listed = false; /* the one list among the options has had its first value */
    for (int i = 1; i < argc;) {
        args_option option;
        if (args_next(&option, &i, argc, argv, err) != 0)
            return -1;
        if (option.command)
            continue;
        if (pd_config_set(config, option.name, option.value, !listed, err) != 0)
            return -1;
        listed = listed || option.key->kind == PD_CONFIG_ADDRESSES;
    }
    return 0;
}

static int args_build(pd_config *config, args_plan plan, int argc, char **argv, pd_error *err) {
    const char *file = plan[ARGS_CHECK] ? plan[ARGS_CHECK] : plan[ARGS_CONFIG];
    if (pd_config_init(config, err) != 0 || (file && pd_config_read(config, file, err) != 0) ||
        args_set_keys(config, argc, argv, err) != 0)
        return -1;
    int64_t gid;
    if (pd_config_check(config, err) != 0 || (plan[ARGS_CHECK] && pd_config_gid(config, &gid, err) != 0))
        return file ? pd_error_prefix(err, "%s", file) : -1;
    return 0;
}

int pd_config_again(pd_config *config, int argc, char **argv, pd_error *err) {
    args_plan plan = {NULL};
    memset(config, 0, sizeof *config);
    return args_read_plan(plan, argc, argv, err) != 0 ? -1 : args_build(config, plan, argc, argv, err);
}

static pd_config_action args_exit(int failed) {
    if (failed || fflush(stdout) != 0)
        return args_fail("standard output could not be written whole");
    return PD_CONFIG_EXIT;
}

pd_config_action pd_config_from_args(pd_config *config, int argc, char **argv) {
    args_plan plan = {NULL};
    pd_error err;
    memset(config, 0, sizeof *config);
    if (args_read_plan(plan, argc, argv, &err) != 0)
        return args_fail(err.text);
    if (plan[ARGS_HELP])
        return args_exit(args_help(stdout));
    if (plan[ARGS_VERSION])
        return args_exit(puts("photond " PHOTOND_VERSION) < 0);
    if (args_build(config, plan, argc, argv, &err) != 0)
        return args_fail(err.text);
    if (plan[ARGS_PRINT])
        return args_exit(pd_config_print(config, stdout));
    if (plan[ARGS_CHECK])
        return args_exit(printf("%s: good\n", plan[ARGS_CHECK]) < 0);
    return PD_CONFIG_RUN;
}

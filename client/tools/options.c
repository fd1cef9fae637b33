#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "say.h"

static const char options_help[] =
    "usage: photon-send --to ADDRESS --run NAME [options] SOURCE\n"
    "       photon-send --to ADDRESS --run NAME [options] --simulate lincam|lintag\n"
    "\n"
    "Sends photon events to photond: a recording, events from standard input, or those of a simulated "
    "instrument.\n"
    "\n"
    "ADDRESS is tcp://HOST:PORT, tls://HOST:PORT or unix:PATH. SOURCE is\n"
    "  a folder      of raw little-endian columns with a manifest.json: x.u16 y.u16 dt.u16 ms.u64 (start.u64 "
    "stop.u64),\n"
    "                or channel.u8 time.u64; others by --column\n"
    "  a file        NAME.photons\n"
    "  -             standard input: records as --layout says, without gaps, little-endian\n"
    "\n"
    "  --run NAME              of the run and its file; '': the run that `photonctl start` has announced\n"
    "  --simulate KIND         lincam (image, decay, background, dead time) or lintag (eight inputs, ps "
    "stamps)\n"
    "  --rate R                of the simulated events per second: 1M, 250k (default 1M)\n"
    "  --duration T            of the simulation: 10s, 500ms, 2min (default: until --count, or Ctrl-C)\n"
    "  --seed N                of everything random (default 1): the same seed gives the same events\n"
    "  --column FILE=DATASET   a further column of the folder; the ending of FILE names its type: i8 ... u64 "
    "f32 f64\n"
    "  --layout COLUMNS        of standard input (default x:u16,y:u16,dt:u16); names as those of files, or "
    "/a/dataset\n"
    "  --count N               send only the first N events\n"
    "  --speed real|max        as the events happened, or as fast as it goes (default max; real for "
    "--simulate)\n"
    "  --batch N|random        events in a batch (default: as many as the server takes; random: 1 to "
    "100,000)\n"
    "  --profile NAME|none     open the run by a profile of the server (default: lincam, lincam-dual or "
    "lintag when the\n"
    "                          columns are just theirs)\n"
    "  --create-mode MODE      create: the name must be free (default); counter: a taken name gets a number\n"
    "  --volume NAME           a further data folder of the server, as its configuration names it (default: "
    "the first)\n"
    "  --attribute KEY=VALUE   set an attribute; may be given often, the last of a key counts\n"
    "  --instance NAME         names this sender through its restarts (default: one that is used once)\n"
    "  --ca FILE               of tls://: who signs the server's certificate, PEM (default: the system's "
    "list)\n"
    "  --certificate FILE      of tls://: what to show to the server, PEM; with --key FILE unless it holds "
    "the key\n"
    "  --token-file FILE       a file with a token of photonctl token, to show to the server\n"
    "  --timeout T             give up when the server takes nothing for so long (default: wait;\n"
    "                          10 s to connect, 30 s to open the run)\n"
    "  --wait T                wait so long for a server that is not there yet\n"
    "  --drop                  let the server drop whole batches rather than hold the stream back; it counts "
    "them\n"
    "  --no-reconnect          give up when the connection is lost (default: come back and send again)\n"
    "  --json                  print a summary as one JSON object at the end\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 everything is stored durably, 1 not everything is (or the summary was not written), 2 "
    "nothing was\nsent: wrong usage, no source or no connection.\n"
    "\n"
    "Examples:\n"
    "  photon-send --to tcp://127.0.0.1:7777 --run first --simulate lincam --rate 1M --duration 10s\n"
    "  photon-send --to unix:/run/photond/ingest.sock --run replay old.photons\n"
    "  photon-send --to tcp://daq:7777 --run scan --speed real --attribute Comment='second sample' "
    "hazelnut/\n"
    "  digitizer | photon-send --to tcp://daq:7777 --run tags --layout channel:u8,time:u64 -\n";

enum {
    OPTION_TO = 256,
    OPTION_RUN,
    OPTION_SIMULATE,
    OPTION_RATE,
    OPTION_DURATION,
    OPTION_SEED,
    OPTION_COLUMN,
    OPTION_LAYOUT,
    OPTION_COUNT,
    OPTION_SPEED,
    OPTION_BATCH,
    OPTION_PROFILE,
    OPTION_CREATE_MODE,
    OPTION_VOLUME,
    OPTION_ATTRIBUTE,
    OPTION_INSTANCE,
    OPTION_CA,
    OPTION_CERTIFICATE,
    OPTION_KEY,
    OPTION_TOKEN_FILE,
    OPTION_TIMEOUT,
    OPTION_WAIT,
    OPTION_DROP,
    OPTION_NO_RECONNECT,
    OPTION_JSON,
    OPTION_HELP,
    OPTION_VERSION
};

static const struct option options_long[] = {
    {"to", required_argument, NULL, OPTION_TO},
    {"run", required_argument, NULL, OPTION_RUN},
    {"simulate", required_argument, NULL, OPTION_SIMULATE},
    {"rate", required_argument, NULL, OPTION_RATE},
    {"duration", required_argument, NULL, OPTION_DURATION},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"column", required_argument, NULL, OPTION_COLUMN},
    {"layout", required_argument, NULL, OPTION_LAYOUT},
    {"count", required_argument, NULL, OPTION_COUNT},
    {"speed", required_argument, NULL, OPTION_SPEED},
    {"batch", required_argument, NULL, OPTION_BATCH},
    {"profile", required_argument, NULL, OPTION_PROFILE},
    {"create-mode", required_argument, NULL, OPTION_CREATE_MODE},
    {"volume", required_argument, NULL, OPTION_VOLUME},
    {"attribute", required_argument, NULL, OPTION_ATTRIBUTE},
    {"instance", required_argument, NULL, OPTION_INSTANCE},
    {"ca", required_argument, NULL, OPTION_CA},
    {"certificate", required_argument, NULL, OPTION_CERTIFICATE},
    {"key", required_argument, NULL, OPTION_KEY},
    {"token-file", required_argument, NULL, OPTION_TOKEN_FILE},
    {"timeout", required_argument, NULL, OPTION_TIMEOUT},
    {"wait", required_argument, NULL, OPTION_WAIT},
    {"drop", no_argument, NULL, OPTION_DROP},
    {"no-reconnect", no_argument, NULL, OPTION_NO_RECONNECT},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

/* What was given that asks for another option beside it. */
typedef struct options_seen {
    bool rate, duration, layout, speed;
} options_seen;

static int options_wrong(const char *name, const char *value, const char *wanted) {
    send_say("--%s '%s': %s (see --help)", name, value, wanted);
    return CLI_USAGE;
}

static int options_usage(const char *what) {
    send_say("%s (see --help)", what);
    return CLI_USAGE;
}

/* ---- values */

int send_parse_rate(const char *text, double *ret) {
    static const char prefixes[] = "kMG";
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    const char *prefix = *end ? strchr(prefixes, *end) : NULL;
    if (end == text || errno)
        return -1;
    if (prefix) {
        for (long i = 0; i <= prefix - prefixes; i++)
            value *= 1000;
        end++;
    }
    if (*end || !isfinite(value) || !(value > 0) || value > 1e11)
        return -1;
    *ret = value;
    return 0;
}

int send_parse_duration(const char *text, double *ret_s) {
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"", 1},   {"s", 1},    {"ms", 1e-3}, {"us", 1e-6},
                 {"m", 60}, {"min", 60}, {"h", 3600},  {"d", 86400}};
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || errno || !(value > 0))
        return -1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(end, units[i].unit) == 0 && value * units[i].seconds <= 1e8) {
            *ret_s = value * units[i].seconds;
            return 0;
        }
    }
    return -1;
}

static int options_whole(const char *text, uint64_t *ret) {
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (end == text || *end || errno || text[0] == '-')
        return -1;
    *ret = value;
    return 0;
}

/* Cuts "A=B" in argv into two strings. */
static int options_pair(char *text, const char **left, const char **right) {
    char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return -1;
    *equals = '\0';
    *left = text;
    *right = equals + 1;
    return 0;
}

static int options_milliseconds(const char *name, const char *value, uint32_t *ret_ms) {
    double seconds;
    if (send_parse_duration(value, &seconds) != 0 || seconds > 4e6)
        return options_wrong(name, value, "not a time like 10s or 500ms");
    *ret_ms = seconds < 0.001 ? 1 : (uint32_t)(seconds * 1000);
    return -1;
}

/* ---- one option */

static int options_number(send_options *o, int option, const char *value) {
    switch (option) {
    case OPTION_RATE:
        return send_parse_rate(value, &o->simulation.rate_hz) == 0
                   ? -1
                   : options_wrong("rate", value, "not a rate like 1M or 250k");
    case OPTION_DURATION:
        return send_parse_duration(value, &o->simulation.duration_s) == 0
                   ? -1
                   : options_wrong("duration", value, "not a time like 10s or 500ms");
    case OPTION_TIMEOUT:
        return options_milliseconds("timeout", value, &o->timeout_ms);
    case OPTION_WAIT:
        return options_milliseconds("wait", value, &o->wait_ms);
    case OPTION_SEED:
        return options_whole(value, &o->simulation.seed) == 0
                   ? -1
                   : options_wrong("seed", value, "not a whole number");
    default:
        return options_whole(value, &o->count) == 0 && o->count
                   ? -1
                   : options_wrong("count", value, "not a number of events");
    }
}

static int options_choice(send_options *o, int option, const char *value) {
    if (option == OPTION_SIMULATE) {
        o->simulate = true;
        o->simulation.tags = strcmp(value, "lintag") == 0;
        return o->simulation.tags || strcmp(value, "lincam") == 0
                   ? -1
                   : options_wrong("simulate", value, "lincam or lintag");
    }
    if (option == OPTION_SPEED) {
        o->real = strcmp(value, "real") == 0;
        return o->real || strcmp(value, "max") == 0 ? -1 : options_wrong("speed", value, "real or max");
    }
    if (option == OPTION_CREATE_MODE) {
        bool counter = strcmp(value, "counter") == 0;
        o->mode = counter ? PHOTON_CLIENT_COUNTER : PHOTON_CLIENT_CREATE;
        return counter || strcmp(value, "create") == 0
                   ? -1
                   : options_wrong("create-mode", value, "create or counter");
    }
    o->batch_random = strcmp(value, "random") == 0;
    if (!o->batch_random && (options_whole(value, &o->batch) != 0 || o->batch == 0))
        return options_wrong("batch", value, "a number of events, or random");
    return -1;
}

static int options_list(send_options *o, int option, char *value) {
    if (option == OPTION_COLUMN) {
        if (o->n_columns == SEND_LIST_MAX)
            return options_usage("too many --column");
        send_column_name *c = &o->columns[o->n_columns++];
        return options_pair(value, &c->file, &c->dataset) == 0 && *c->dataset
                   ? -1
                   : options_wrong("column", value, "not FILE=DATASET");
    }
    if (o->n_attributes == SEND_LIST_MAX)
        return options_usage("too many --attribute");
    photon_client_attribute *a = &o->attributes[o->n_attributes++];
    return options_pair(value, &a->key, &a->value) == 0 ? -1
                                                        : options_wrong("attribute", value, "not KEY=VALUE");
}

static const char **options_file_of(send_options *o, int option) {
    if (option == OPTION_CA)
        return &o->ca_file;
    if (option == OPTION_CERTIFICATE)
        return &o->certificate_file;
    return option == OPTION_KEY ? &o->key_file : &o->token_file;
}

/* Returns -1, or the exit status. */
static int options_take(send_options *o, options_seen *seen, int option, char *value) {
    switch (option) {
    case OPTION_TO:
        o->to = value;
        return -1;
    case OPTION_RUN:
        o->run = value;
        return -1;
    case OPTION_LAYOUT:
        o->layout = value;
        seen->layout = true;
        return -1;
    case OPTION_PROFILE:
        o->profile = value;
        return -1;
    case OPTION_VOLUME:
        o->volume = value;
        return -1;
    case OPTION_INSTANCE:
        o->instance = value;
        return -1;
    case OPTION_CA:
    case OPTION_CERTIFICATE:
    case OPTION_KEY:
    case OPTION_TOKEN_FILE:
        *options_file_of(o, option) = value;
        return -1;
    case OPTION_JSON:
        o->json = true;
        return -1;
    case OPTION_DROP:
        o->drop = true;
        return -1;
    case OPTION_NO_RECONNECT:
        o->no_reconnect = true;
        return -1;
    case OPTION_COLUMN:
    case OPTION_ATTRIBUTE:
        return options_list(o, option, value);
    case OPTION_SIMULATE:
    case OPTION_SPEED:
    case OPTION_CREATE_MODE:
    case OPTION_BATCH:
        seen->speed = seen->speed || option == OPTION_SPEED;
        return options_choice(o, option, value);
    case OPTION_RATE:
    case OPTION_DURATION:
    case OPTION_TIMEOUT:
    case OPTION_WAIT:
    case OPTION_SEED:
    case OPTION_COUNT:
        seen->rate = seen->rate || option == OPTION_RATE;
        seen->duration = seen->duration || option == OPTION_DURATION;
        return options_number(o, option, value);
    case OPTION_HELP:
        fputs(options_help, stdout);
        return cli_finish("photon-send", CLI_OK);
    case OPTION_VERSION:
        printf("photon-send %s\n", photon_client_version());
        return cli_finish("photon-send", CLI_OK);
    default:
        return options_usage("wrong usage");
    }
}

/* ---- the whole */

static int options_check(send_options *o, const options_seen *seen) {
    bool standard_input = o->source && strcmp(o->source, "-") == 0;
    if (!o->to)
        return options_usage("--to ADDRESS is missing");
    if (!o->run)
        return options_usage("--run NAME is missing");
    if (o->simulate == (o->source != NULL))
        return options_usage(o->simulate ? "--simulate takes no SOURCE" : "SOURCE is missing");
    if (!o->simulate && (seen->rate || seen->duration))
        return options_usage("--rate and --duration belong to --simulate");
    if (seen->layout && !standard_input)
        return options_usage("--layout belongs to standard input ('-')");
    if (o->n_columns && (o->simulate || standard_input))
        return options_usage("--column belongs to a folder of columns");
    if (standard_input && o->real)
        return options_usage("standard input comes at its own speed: no --speed real");
    if (o->simulate && !seen->speed)
        o->real = true;
    return -1;
}

int send_options_read(int argc, char **argv, send_options *options) {
    options_seen seen = {false, false, false, false};
    *options = (send_options){.layout = "x:u16,y:u16,dt:u16",
                              .simulation = {.rate_hz = 1e6, .seed = 1},
                              .count = SEND_UNKNOWN,
                              .mode = PHOTON_CLIENT_CREATE};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, "", options_long, NULL)) != -1;) {
        if (option == '?') {
            send_say("'%s': no such option, or its value is missing or too much (see --help)",
                     argv[optind - 1]);
            return CLI_USAGE;
        }
        int status = options_take(options, &seen, option, optarg);
        if (status >= 0)
            return status;
    }
    if (optind < argc)
        options->source = argv[optind++];
    if (optind < argc)
        return options_usage("more than one SOURCE");
    return options_check(options, &seen);
}

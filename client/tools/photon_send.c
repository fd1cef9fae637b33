/* photon-send: replays recordings into photond and simulates instruments. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/progress.h"
#include "options.h"
#include "say.h"
#include "session.h"

static send_source *main_source(const send_options *o, send_fault *fault) {
    struct stat st;
    if (o->simulate)
        return send_open_simulation(&o->simulation, o->count, fault);
    if (strcmp(o->source, "-") == 0)
        return send_open_stream(STDIN_FILENO, o->layout, o->count, fault);
    if (stat(o->source, &st) == 0 && S_ISDIR(st.st_mode))
        return send_open_folder(o->source, o->columns, o->n_columns, o->count, fault);
    if (o->n_columns) {
        send_refuse(fault, "--column belongs to a folder of columns, which %s is not", o->source);
        return NULL;
    }
    return send_open_photons(o->source, o->count, fault);
}

/* Those of the command line come last, so that they count. */
static int main_attributes(const send_options *o, send_source *source, send_fault *fault) {
    for (size_t i = 0; i < o->n_attributes; i++) {
        if (strcmp(o->attributes[i].key, "/photons/TimerFrequency") == 0)
            source->recorded.laser_period_ps = 0;
        if (send_add_attribute(source, o->attributes[i].key, o->attributes[i].value, fault) != 0)
            return -1;
    }
    send_settle_time(source);
    return 0;
}

static void main_print_json(const send_report *r, bool complete) {
    fputs("{\"run\": ", stdout);
    cli_write_json_string(stdout, r->run);
    fputs(", \"path\": ", stdout);
    cli_write_json_string(stdout, r->path);
    printf(", \"sent\": %" PRIu64 ", \"received\": %" PRIu64 ", \"durable\": %" PRIu64
           ", \"messages\": %" PRIu64 ", \"resent\": %" PRIu64 ", \"dropped\": %" PRIu64,
           r->sent, r->received, r->durable, r->messages, r->resent, r->dropped);
    printf(", \"seconds\": %.6f, \"photons_per_second\": %.1f, \"complete\": %s, \"error\": ", r->seconds,
           r->seconds > 0 ? (double)r->sent / r->seconds : 0, complete ? "true" : "false");
    if (r->fault[0])
        cli_write_json_string(stdout, r->fault);
    else
        fputs("null", stdout);
    fputs("}\n", stdout);
}

static void main_print(const send_report *r, const char *unit, bool complete) {
    char rate[16];
    cli_format_count(rate, sizeof rate, r->seconds > 0 ? (double)r->sent / r->seconds : 0);
    printf("%s: %" PRIu64 " %s sent in %.2f s (%s%s/s), ", r->run, r->sent, unit, r->seconds, rate, unit);
    if (complete)
        printf("all of them durable in %s\n", r->path);
    else
        printf("%" PRIu64 " received, %" PRIu64 " durable\n", r->received, r->durable);
}

/* A summary that is not written whole changes nothing about what is stored: 2 would say that nothing was sent. */
static int main_finish(int status) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    send_say("the summary could not be written whole: %s", strerror(errno));
    return status == CLI_OK ? CLI_PROBLEMS : status;
}

int main(int argc, char **argv) {
    send_options options;
    send_fault fault;
    send_report report;
    int status = send_options_read(argc, argv, &options);
    if (status >= 0)
        return status;
    send_source *source = main_source(&options, &fault);
    if (!source || main_attributes(&options, source, &fault) != 0) {
        send_say("%s", fault.text);
        send_source_free(source);
        return CLI_USAGE;
    }
    if (options.real && !source->timed) {
        send_say("--speed real: the source has no index of milliseconds and no time stamps");
        send_source_free(source);
        return CLI_USAGE;
    }
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is told like a full disk */
    status = send_session(&options, source, &report);
    if (options.json)
        main_print_json(&report, status == CLI_OK);
    else if (status != CLI_USAGE)
        main_print(&report, source->unit, status == CLI_OK);
    send_source_free(source);
    return main_finish(status);
}

/* Commands that do something to a run: start, stop, flush, rotate, note, export. */
#include <string.h>
#include <time.h>

#include "ctl.h"

enum { RUN_TEXT_BYTES = 300, RUN_POLL_MS = 100 };

/* Whether what is waited for has come about. */
typedef bool run_arrived(const json_t *asked, const json_t *run);

static int64_t run_number(const json_t *run, const char *key) {
    return (int64_t)json_integer_value(json_object_get(run, key));
}

static bool run_is(const json_t *run, const char *state) {
    const char *is = json_string_value(json_object_get(run, "state"));
    return is && strcmp(is, state) == 0;
}

/* Tells how it went. Steals `run`. */
static int run_report(const ctl_call *call, json_t *run) {
    char name[RUN_TEXT_BYTES], state[RUN_TEXT_BYTES], why[RUN_TEXT_BYTES];
    bool failed = run_is(run, "failed");
    ctl_text(run, "run", name, sizeof name);
    if (call->json)
        ctl_print_json(run);
    else if (!failed)
        printf("%s: %s\n", name, ctl_text(run, "state", state, sizeof state));
    if (failed)
        cli_fail(call->self, "run %s failed: %s", name, ctl_text(run, "failure", why, sizeof why));
    json_decref(run);
    return failed ? CLI_PROBLEMS : CLI_OK;
}

/* Asks after the run until it has arrived, or has ended. Steals `asked`, the answer to the command. */
static int run_wait(const ctl_call *call, json_t *asked, run_arrived *arrived) {
    json_t *id = json_object_get(asked, "id"), *run = json_incref(asked);
    int code = CLI_OK;
    while (code == CLI_OK && id && !run_is(run, "closed") && !run_is(run, "failed") && !arrived(asked, run)) {
        nanosleep(&(struct timespec){.tv_nsec = RUN_POLL_MS * 1000000L}, NULL);
        json_decref(run);
        run = NULL;
        code = ctl_request(call, "run", json_pack("{s:O}", "id", id), &run);
    }
    json_decref(asked);
    return code == CLI_OK ? run_report(call, run) : code;
}

/* `command NAME`, or `command NAME TEXT`, and then the waiting. */
static int run_command(const cli_command *self, int argc, char **argv, int n, run_arrived *arrived) {
    ctl_call call;
    json_t *asked = NULL;
    int code = ctl_begin(&call, self, "jn", argc, argv, n);
    if (code >= 0)
        return code;
    json_t *members = json_pack("{s:s}", "run", argv[optind]);
    if (n > 1 && members && json_object_set_new(members, "text", json_string(argv[optind + 1])) != 0) {
        json_decref(members);
        return cli_fail(self, "the text is no UTF-8");
    }
    code = ctl_request(&call, self->name, members, &asked);
    if (code != CLI_OK)
        return code;
    return call.no_wait ? run_report(&call, asked) : run_wait(&call, asked, arrived);
}

#define RUN_WAIT_HELP                                                                                        \
    "  --no-wait          do not wait until it is done\n"                                                    \
    "  --json             the answer as one JSON object\n"

static bool never(const json_t *asked, const json_t *run) {
    (void)asked;
    (void)run;
    return false;
}

static int stop_run(const cli_command *self, int argc, char **argv) {
    return run_command(self, argc, argv, 1, never);
}

const cli_command ctl_stop = {
    .name = "stop",
    .summary = "close a run; its producer is told",
    .help = "Usage: photonctl stop NAME [--no-wait] [--json]\n"
            "Closes an open run: what came is stored, the file is closed, the last export "
            "made. A run that waits for its\n"
            "producer is called off. Exit status 1: there is no such run, or it could not "
            "be closed.\n\n" RUN_WAIT_HELP CTL_COMMON_HELP,
    .run = stop_run};

static bool exported(const json_t *asked, const json_t *run) {
    return run_number(run, "exports") > run_number(asked, "exports");
}

static int export_run(const cli_command *self, int argc, char **argv) {
    return run_command(self, argc, argv, 1, exported);
}

const cli_command ctl_export = {.name = "export",
                                .summary = "export the summaries of a run now",
                                .help =
                                    "Usage: photonctl export NAME [--no-wait] [--json]\n"
                                    "Makes an export of a running run at once, besides those that are due "
                                    "anyway. Exit status 1: there is no such run,\n"
                                    "or it has no summaries.\n\n" RUN_WAIT_HELP CTL_COMMON_HELP,
                                .run = export_run};

static bool synced(const json_t *asked, const json_t *run) {
    return run_number(run, "syncs") >= run_number(asked, "until");
}

static int flush_run(const cli_command *self, int argc, char **argv) {
    return run_command(self, argc, argv, 1, synced);
}

const cli_command ctl_flush = {
    .name = "flush",
    .summary = "make all of a run durable now",
    .help = "Usage: photonctl flush NAME [--no-wait] [--json]\n"
            "Syncs what a running run has taken, without waiting for the next interval. When it returns with "
            "0, all "
            "that had come\n"
            "before is on the disk. Exit status 1: there is no such run, or it failed.\n\n" RUN_WAIT_HELP
                CTL_COMMON_HELP,
    .run = flush_run};

static bool rotated(const json_t *asked, const json_t *run) {
    return run_number(run, "parts_closed") >= run_number(asked, "until");
}

static int rotate_run(const cli_command *self, int argc, char **argv) {
    return run_command(self, argc, argv, 1, rotated);
}

const cli_command ctl_rotate = {
    .name = "rotate",
    .summary = "let a run go on in a new file",
    .help = "Usage: photonctl rotate NAME [--no-wait] [--json]\n"
            "The run's file is closed between two batches, and the run goes on in "
            "NAME.0001.photons, NAME.0002.photons "
            "and so on:\n"
            "each is a whole file of its own, and 'd7 merge' puts them together again. "
            "When it returns with 0, the file "
            "of before is\n"
            "closed and on the disk. Exit status 1: there is no such run, it failed, or "
            "nothing is in its file yet.\n\n" RUN_WAIT_HELP CTL_COMMON_HELP,
    .run = rotate_run};

static int note_run(const cli_command *self, int argc, char **argv) {
    return run_command(self, argc, argv, 2, synced);
}

const cli_command ctl_note = {
    .name = "note",
    .summary = "write a note into a run, at the place where it is now",
    .help = "Usage: photonctl note NAME TEXT [--no-wait] [--json]\n"
            "The text becomes a marker (attribute photond.marker.N) at the next photon, and is on the disk "
            "when this "
            "returns with 0.\n"
            "At most 2000 bytes. Exit status 1: there is no such run, or it failed.\n\n" RUN_WAIT_HELP
                CTL_COMMON_HELP "\nExample:\n"
            "  photonctl note cells-7 'buffer exchanged'\n",
    .run = note_run};

static json_t *start_members(const ctl_call *call, const char *name) {
    json_t *members =
        json_pack("{s:s, s:s, s:b}", "run", name, "profile", call->profile, "force", call->force);
    if (call->stop_photons)
        json_object_set_new(members, "stop_photons", json_integer((json_int_t)call->stop_photons));
    if (call->stop_bytes)
        json_object_set_new(members, "stop_bytes", json_integer((json_int_t)call->stop_bytes));
    if (call->stop_seconds > 0)
        json_object_set_new(members, "stop_seconds", json_real(call->stop_seconds));
    return members;
}

static int start_run(const cli_command *self, int argc, char **argv) {
    ctl_call call;
    json_t *answer = NULL;
    int code = ctl_begin(&call, self, "jfps", argc, argv, 1);
    if (code >= 0)
        return code;
    code = ctl_request(&call, "start", start_members(&call, argv[optind]), &answer);
    return code == CLI_OK ? run_report(&call, answer) : code;
}

const cli_command ctl_start = {
    .name = "start",
    .summary = "announce a run, for the next producer that opens one without a name",
    .help = "Usage: photonctl start NAME [--profile PROFILE] [--stop-photons N] [--stop-seconds S] "
            "[--stop-bytes N] [--force] [--json]\n"
            "The next producer that opens a run without a name gets this one. Refused when the daemon is not "
            "OK, is being\n"
            "drained, or has an open run of that name. 'photonctl stop NAME' calls it off. {date}, {time}, "
            "{profile} and\n"
            "{counter} in the name are filled in when the run is opened; a name whose file is there already "
            "is refused to\n"
            "the producer then. The run ends at the first that it reaches:\n\n"
            "  --stop-photons N   so many photons; the batch that reaches them is the last\n"
            "  --stop-seconds S   so long after its opening\n"
            "  --stop-bytes N     so many bytes of events, as they come in\n\n"
            "  --profile PROFILE  only for a producer that opens with this profile\n"
            "  --force            also when the daemon is not OK\n"
            "  --json             the answer as one JSON object\n" CTL_COMMON_HELP "\nExamples:\n"
            "  photonctl start cells-7 --profile lincam --stop-photons 10000000\n"
            "  photonctl start '{date}-cells-{counter}' --stop-seconds 1800\n",
    .run = start_run};

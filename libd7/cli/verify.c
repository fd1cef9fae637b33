/* d7 verify: a file against the rules of the format. */
#include <inttypes.h>

#include "cli/output.h"
#include "cli/progress.h"
#include "commands.h"

typedef struct verify_job {
    const char *path;
    const d7_reader *names;
    bool json;
    const char *separator;
} verify_job;

enum { OPTION_JSON = 256 };

static bool verify_option(void *ctx, int option, const char *argument) {
    verify_job *job = ctx;
    (void)argument;
    job->json |= option == OPTION_JSON;
    return true;
}

static void verify_problem(void *ctx, const d7_problem *problem) {
    verify_job *job = ctx;
    if (!job->json) {
        print_problem(stdout, job->path, problem, job->names);
        return;
    }
    printf("%s\n    ", job->separator);
    print_problem_json(stdout, problem, job->names);
    job->separator = ",";
}

static void print_summary(const verify_job *job, const d7_verify_summary *s) {
    const char *state = s->state == D7_STATE_CLOSED ? "closed" : "open",
               *held = s->held ? " (being written)" : "";
    if (job->json) {
        printf("\n  ],\n  \"state\": \"%s\",\n  \"held\": %s,\n  \"bytes\": %" PRIu64
               ",\n  \"entries\": %" PRIu64 ",\n  \"pages\": %" PRIu64 ",\n  \"damages\": %" PRIu64
               ",\n  \"notes\": %" PRIu64 "\n}\n",
               state, s->held ? "true" : "false", s->file_bytes, s->entries, s->pages, s->damages, s->notes);
        return;
    }
    const char *verdict = s->damages ? "damaged" : s->notes ? "no damage, but see the notes" : "clean";
    printf("%s: %s: %s%s, pages: %" PRIu64 ", entries: %" PRIu64, job->path, verdict, state, held, s->pages,
           s->entries);
    if (s->damages || s->notes)
        printf(", damages: %" PRIu64 ", notes: %" PRIu64, s->damages, s->notes);
    printf("\n");
}

static int verify_reader(const command *self, verify_job *job, d7_reader *r) {
    d7_error err;
    d7_verify_summary summary;
    cli_progress bar;
    job->names = r;
    job->separator = "";
    if (job->json) {
        printf("{\n  \"file\": ");
        cli_write_json_string(stdout, job->path);
        printf(",\n  \"problems\": [");
    }
    cli_progress_start(&bar, "verifying", "B", 0);
    int rc = d7_reader_verify(r, verify_problem, job, command_progress, &bar, &summary, &err);
    cli_progress_end(&bar, bar.total);
    if (rc != 0)
        return command_fail(self, "%s", err.text);
    print_summary(job, &summary);
    return summary.damages ? CLI_PROBLEMS : CLI_OK;
}

static int verify_run(const command *self, int argc, char **argv) {
    static const struct option options[] = {
        {"json", no_argument, NULL, OPTION_JSON}, {"help", no_argument, NULL, 'h'}, {0}};
    verify_job job = {0};
    int code = command_options(self, argc, argv, options, verify_option, &job, 1);
    if (code >= 0)
        return code;
    job.path = argv[optind];
    d7_error err;
    d7_reader *r;
    if (d7_reader_open(&r, job.path, NULL, &err) != 0)
        return command_fail(self, "%s", err.text);
    code = verify_reader(self, &job, r);
    d7_reader_free(r);
    return code;
}

const command command_verify = {
    .name = "verify",
    .summary = "hold a whole file against the rules of the format",
    .help = "usage: d7 verify FILE [--json]\n\n"
            "Reads a whole .photons file and prints a line for everything in it that breaks a rule of the "
            "format:\n"
            "class, code, byte, dataset, items, reason. Damage means that data is lost or that readers will "
            "stumble;\n"
            "a note is worth knowing and no more. The last line says how the file is.\n\n"
            "  --json   one JSON object instead\n"
            "  --help   this text\n\n"
            "Exit status: 0 clean (also a file that is open and whole), 1 damaged, or cut short and not held "
            "by a\n"
            "writer, 2 usage, or the file cannot be read.\n\n"
            "Examples:\n"
            "  d7 verify run.photons\n"
            "  for f in *.photons; do d7 verify \"$f\" > /dev/null || echo \"$f\"; done\n",
    .run = verify_run,
};

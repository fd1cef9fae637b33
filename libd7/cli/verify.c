/* d7 verify: a file against the rules of the format. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "certificate.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "commands.h"
#include "result.h"

typedef struct verify_job {
    const char *path;
    const d7_reader *names;
    bool json, strict, write_checksums, no_certificate;
    const char *key; /* of the certificate's signature; NULL: nobody asks */
    const char *separator;
} verify_job;

enum { OPTION_JSON = 256, OPTION_STRICT, OPTION_WRITE_CHECKSUMS, OPTION_KEY, OPTION_NO_CERTIFICATE };

static bool verify_option(void *ctx, int option, const char *argument) {
    verify_job *job = ctx;
    if (option == OPTION_KEY)
        job->key = argument;
    job->no_certificate |= option == OPTION_NO_CERTIFICATE;
    job->json |= option == OPTION_JSON;
    job->strict |= option == OPTION_STRICT;
    job->write_checksums |= option == OPTION_WRITE_CHECKSUMS;
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

static const char *state_name(const d7_verify_summary *s) {
    return s->state == D7_STATE_CLOSED ? "closed" : "open";
}

static void print_certificate_json(const certificate_result *c) {
    printf(",\n  \"certified\": %s,\n  \"signed\": %s",
           !c->there   ? "null"
           : c->agrees ? "true"
                       : "false",
           !c->asked          ? "null"
           : c->signed_by_key ? "true"
                              : "false");
}

static void print_summary_json(const d7_verify_summary *s, const certificate_result *c, bool good) {
    printf("\n  ],\n  \"state\": \"%s\",\n  \"held\": %s,\n  \"bytes\": %" PRIu64 ",\n  \"entries\": %" PRIu64
           ",\n  \"pages\": %" PRIu64,
           state_name(s), s->held ? "true" : "false", s->file_bytes, s->entries, s->pages);
    if (s->has_checksums)
        printf(",\n  \"checked_entries\": %" PRIu64, s->checked_entries);
    else
        printf(",\n  \"checked_entries\": null");
    print_certificate_json(c);
    printf(",\n  \"damages\": %" PRIu64 ",\n  \"data_notes\": %" PRIu64 ",\n  \"style_notes\": %" PRIu64
           ",\n  \"good\": %s\n}\n",
           s->damages, s->data_notes, s->style_notes, good ? "true" : "false");
}

static void print_summary_text(const verify_job *job, const d7_verify_summary *s,
                               const certificate_result *c) {
    bool notes = s->data_notes || s->style_notes;
    const char *verdict = s->damages ? "damaged" : notes ? "no damage, but see the notes" : "clean";
    cli_write_printable(stdout, job->path, strlen(job->path));
    printf(": %s: %s%s, pages: %" PRIu64 ", entries: %" PRIu64, verdict, state_name(s),
           s->held ? " (being written)" : "", s->pages, s->entries);
    if (s->has_checksums)
        printf(", checksums that agree: %" PRIu64, s->checked_entries);
    if (c->there && c->agrees)
        printf(", as certified%s", c->signed_by_key ? " and signed" : "");
    if (s->damages || notes)
        printf(", damages: %" PRIu64 ", data notes: %" PRIu64 ", style notes: %" PRIu64, s->damages,
               s->data_notes, s->style_notes);
    printf("\n");
}

/* Under another name first, so that what is there stays until the new one is whole. */
static int write_checksums(const command *self, const verify_job *job, d7_reader *r) {
    result_file result;
    cli_progress bar;
    d7_error err;
    char *path = command_beside(job->path, "", D7_CHECKSUMS_SUFFIX);
    if (!path)
        return command_fail(self, "out of memory");
    int code = result_begin(self, path, true, &result);
    free(path);
    if (code != 0)
        return code;
    cli_progress_start(&bar, "summing", "B", 0);
    if (d7_reader_write_checksums(r, result.temporary, command_progress, &bar, &err) != 0)
        code = err.code == D7_ERR_CANCELLED ? command_stopped_code(self) : command_fail(self, "%s", err.text);
    cli_progress_end(&bar, bar.total);
    if (code == 0)
        code = result_commit(&result);
    result_drop(&result);
    return code;
}

static int verify_failed(const command *self, const verify_job *job, const char *text) {
    if (job->json) {
        printf("\n  ],\n  \"good\": false,\n  \"error\": ");
        cli_write_json_string(stdout, text);
        printf("\n}\n");
    }
    return command_fail(self, "%s", text);
}

/* A file that is being written has none yet. */
static int verify_certificate(const command *self, verify_job *job, const d7_reader *r, d7_verify_summary *s,
                              certificate_result *ret) {
    if (job->no_certificate || (s->held && !job->key))
        return 0;
    int code = certificate_check(self, job->path, r, job->key, verify_problem, job, ret);
    s->damages += ret->n_problems[0];
    s->style_notes += ret->n_problems[1];
    return code;
}

static int verify_reader(const command *self, verify_job *job, d7_reader *r, d7_verify_summary *ret_summary) {
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
        return verify_failed(self, job, err.text);
    certificate_result certificate = {0};
    int code = verify_certificate(self, job, r, &summary, &certificate);
    if (code != 0)
        return job->json ? verify_failed(self, job, "it was not held against its certificate") : code;
    bool good = summary.damages == 0 && !(job->strict && (summary.data_notes || summary.style_notes));
    if (job->json)
        print_summary_json(&summary, &certificate, good);
    else
        print_summary_text(job, &summary, &certificate);
    *ret_summary = summary;
    return good ? CLI_OK : CLI_PROBLEMS;
}

static int verify_run(const command *self, int argc, char **argv) {
    static const struct option options[] = {{"json", no_argument, NULL, OPTION_JSON},
                                            {"strict", no_argument, NULL, OPTION_STRICT},
                                            {"write-checksums", no_argument, NULL, OPTION_WRITE_CHECKSUMS},
                                            {"key", required_argument, NULL, OPTION_KEY},
                                            {"no-certificate", no_argument, NULL, OPTION_NO_CERTIFICATE},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    verify_job job = {0};
    int code = command_options(self, argc, argv, options, verify_option, &job, 1);
    if (code >= 0)
        return code;
    if (job.key && job.no_certificate)
        return command_fail(self, "--key and --no-certificate exclude each other");
    job.path = argv[optind];
    d7_error err;
    d7_reader *r;
    d7_reader_options reading;
    d7_reader_options_init(&reading);
    reading.pages_only = true; /* what a tail beside holds is not the file's */
    if (d7_reader_open(&r, job.path, &reading, &err) != 0)
        return command_fail(self, "%s", err.text);
    d7_verify_summary summary = {0};
    code = verify_reader(self, &job, r, &summary);
    if (job.write_checksums && code != CLI_USAGE) {
        int written = summary.damages ? command_fail(self, "%s: damaged: no checksums are written", job.path)
                                      : write_checksums(self, &job, r);
        code = summary.damages || written == CLI_OK ? code : written;
    }
    d7_reader_free(r);
    return code;
}

const command command_verify = {
    .name = "verify",
    .summary = "hold a whole file against the rules of the format",
    .help =
        "usage: d7 verify FILE [--strict] [--json] [--write-checksums] [--key PUBLIC.pem | "
        "--no-certificate]\n\n"
        "Reads a whole .photons file and prints a line for everything in it that is not as it should be:\n"
        "class, code, byte, dataset, items, reason. Where NAME.run.json, its certificate, lies beside it, "
        "the file is\n"
        "held against that as well. The classes:\n\n"
        "  damage   data is lost, or the file breaks the format\n"
        "  data     what was recorded is odd: values out of range, columns of unequal length\n"
        "  style    written otherwise than it should be; nothing is lost, but some readers may mind\n"
        "  notice   a writer is at work on the file; no problem\n\n"
        "The codes are in d7(1). The last line says how the file is.\n\n"
        "  --strict           data and style count as problems too\n"
        "  --json             one JSON object instead\n"
        "  --write-checksums  then, of a file without damage, write FILE.crc: the checksum of every page, "
        "which later\n"
        "                     runs compare\n"
        "  --key PUBLIC.pem   the certificate must be there, and signed by this key: its public key, or a\n"
        "                     certificate of it, in PEM\n"
        "  --no-certificate   leaves the certificate alone\n"
        "  --help             this text\n\n"
        "Exit status: 0 no damage (also a file that is open and whole, or being written), 1 damaged, or cut "
        "short\n"
        "and not held by a writer, or, with --strict, a problem of any class; 2 usage, or the file cannot be "
        "read.\n\n"
        "Examples:\n"
        "  d7 verify run.photons\n"
        "  d7 verify --key lab.pem run.photons\n"
        "  d7 verify --write-checksums run.photons && rsync run.photons* archive:\n"
        "  for f in *.photons; do d7 verify --strict \"$f\" > /dev/null || echo \"$f\"; done\n",
    .run = verify_run,
};

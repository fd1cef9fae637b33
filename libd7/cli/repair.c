/* d7 repair: what can be saved of a file, or of all files in a folder, as files that are closed and without damage. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/progress.h"
#include "commands.h"
#include "result.h"

enum {
    OPTION_OUT = 'o',
    OPTION_IN_PLACE = 256,
    OPTION_KEEP_RAGGED,
    OPTION_RECURSIVE,
    OPTION_JSON,
    OPTION_OVERWRITE
};

static const char suffix[] = ".photons", repaired[] = ".repaired";

/* A line of the table at the end. */
typedef struct row {
    char *path;
    const char *state; /* "closed", "open"; "?" for what could not be read */
    uint64_t kept, lost;
    const char *result;
} row;

typedef struct repair_job {
    const command *self;
    const char *out;
    bool in_place, recursive, json, overwrite;
    d7_repair_options options;
    const char *separator;
    row *rows; /* [n_rows] with `recursive` */
    size_t n_rows, cap_rows;
    int code;
} repair_job;

static bool repair_option(void *ctx, int option, const char *argument) {
    repair_job *job = ctx;
    if (option == OPTION_OUT)
        job->out = argument;
    job->in_place |= option == OPTION_IN_PLACE;
    job->recursive |= option == OPTION_RECURSIVE;
    job->json |= option == OPTION_JSON;
    job->overwrite |= option == OPTION_OVERWRITE;
    job->options.keep_ragged |= option == OPTION_KEEP_RAGGED;
    return true;
}

/* ---- names ---- */

static bool ends_in(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

/* NAME.photons -> NAME.repaired.photons */
static char *result_name(const char *path) {
    size_t n = strlen(path) - (ends_in(path, suffix) ? sizeof suffix - 1 : 0);
    char *name;
    return asprintf(&name, "%.*s%s%s", (int)n, path, repaired, path + n) < 0 ? NULL : name;
}

/* ---- what became of a file ---- */

static uint64_t lost_of(const d7_repair_report *report) {
    uint64_t n = 0;
    for (size_t i = 0; i < report->n_datasets; i++)
        n += report->datasets[i].lost + report->datasets[i].left_out;
    return n;
}

static uint64_t kept_of(const d7_repair_report *report) {
    uint64_t n = 0;
    for (size_t i = 0; i < report->n_datasets; i++)
        n += report->datasets[i].kept;
    return n;
}

static const char *state_of(const d7_repair_report *report) {
    return report->unframed ? "unframed" : report->source_state == D7_STATE_CLOSED ? "closed" : "open";
}

static const char *const outcome_names[] = {"fine", "repaired", "repaired in place"};

static void print_datasets(const d7_repair_report *report) {
    printf("  %-16s %-7s %14s %12s %12s\n", "dataset", "type", "kept", "lost", "left out");
    for (size_t i = 0; i < report->n_datasets; i++) {
        const d7_repair_dataset *d = &report->datasets[i];
        cli_print_line(stdout, "  %-16s %-7s %14" PRIu64 " %12" PRIu64 " %12" PRIu64 "%s", d->name,
                       d7_type_name(d->type), d->kept, d->lost, d->left_out,
                       d->more_lost ? "  and an unknown number at its end" : "");
        if (d->filled)
            printf("  %-16s %" PRIu64
                   " of the lost entries were filled, so that later milliseconds keep their numbers\n",
                   "", d->filled);
    }
}

enum { SHOWN = 20 };

static void print_fills(const d7_repair_report *report) {
    for (size_t i = 0; i < report->n_fills && i < SHOWN; i++) {
        const d7_repair_fill *f = &report->fills[i];
        cli_print_line(stdout, "  filled: items %" PRIu64 " to %" PRIu64 " of %s, with the next one's value",
                       f->item, f->item + f->n_items - 1, report->datasets[f->dataset_id].name);
    }
    if (report->n_fills > SHOWN)
        printf("  and %zu more that were filled; --json lists all\n", report->n_fills - SHOWN);
}

static void print_gaps(const d7_repair_report *report) {
    static const char *const groups[] = {"items", "photons", "tags"};
    for (size_t i = 0; i < report->n_gaps && i < SHOWN; i++) {
        const d7_repair_gap *g = &report->gaps[i];
        cli_print_line(stdout,
                       "  gap: %" PRIu64 " %s taken out before item %" PRIu64 " (from %" PRIu64
                       " of the damaged file)%s%s",
                       g->n_items, groups[g->group], g->item, g->source_item,
                       g->group == D7_GROUP_NONE ? " of " : "",
                       g->group == D7_GROUP_NONE ? report->datasets[g->dataset_id].name : "");
    }
    if (report->n_gaps > SHOWN)
        printf("  and %zu more gaps; --json lists all\n", report->n_gaps - SHOWN);
}

static void print_text(const char *path, const char *out, const d7_repair_report *report) {
    if (report->outcome == D7_REPAIR_FINE) {
        cli_print_line(stdout, "%s: fine, nothing to do", path);
        return;
    }
    if (report->outcome == D7_REPAIR_IN_PLACE) {
        if (report->cut_bytes)
            cli_print_line(stdout,
                           "%s: closed in its place; %" PRIu64 " bytes of its end are in %s.cut.%" PRIu32,
                           path, report->cut_bytes, path, report->cut_number);
        else
            cli_print_line(stdout, "%s: closed in its place", path);
    } else {
        cli_print_line(stdout, "%s: repaired as %s", path, out);
    }
    print_datasets(report);
    print_gaps(report);
    print_fills(report);
    if (report->tail_included)
        printf("  The newest items are from the tail beside the file.\n");
    if (*report->tail_fault)
        cli_print_line(stdout, "  The newest items are not among them: %s.", report->tail_fault);
    if (report->torn_bytes)
        printf("  The file ends inside an entry, of which %" PRIu64 " bytes are there and lost.\n",
               report->torn_bytes);
    if (report->unlisted_pages)
        printf("  Pages that stand where an index says that there were none, and are not kept: %" PRIu64 "\n",
               report->unlisted_pages);
    if (report->changed_header)
        printf("  The header is not what was written, by the checksums beside the file: names, types and the "
               "page "
               "size may be wrong.\n");
    if (report->lost_attributes)
        printf("  Attributes that have changed since they were written, by the checksums beside the file, "
               "and are "
               "not kept: %" PRIu64 "\n",
               report->lost_attributes);
    if (report->unknown_from != D7_NO_OFFSET)
        printf("  From byte %" PRIu64 " on nothing is kept: no index tells what was lost there.\n",
               report->unknown_from);
}

static void print_json_dataset(const d7_repair_dataset *d) {
    printf("{\"name\": ");
    cli_write_json_string(stdout, d->name);
    printf(", \"type\": \"%s\", \"kept\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"left_out\": %" PRIu64
           ", \"filled\": %" PRIu64 ", \"more_lost\": %s}",
           d7_type_name(d->type), d->kept, d->lost, d->left_out, d->filled, d->more_lost ? "true" : "false");
}

static void print_json_gap(const d7_repair_report *report, const d7_repair_gap *g) {
    printf("{\"%s\": ", g->group == D7_GROUP_NONE ? "dataset" : "group");
    cli_write_json_string(stdout, g->group == D7_GROUP_NONE   ? report->datasets[g->dataset_id].name
                                  : g->group == D7_GROUP_TAGS ? "tags"
                                                              : "photons");
    printf(", \"item\": %" PRIu64 ", \"source_item\": %" PRIu64 ", \"count\": %" PRIu64 "}", g->item,
           g->source_item, g->n_items);
}

static void print_json_report(const char *out, const d7_repair_report *report) {
    printf("\"result\": \"%s\", \"state\": \"%s\", \"written\": ", outcome_names[report->outcome],
           state_of(report));
    if (report->outcome == D7_REPAIR_WRITTEN)
        cli_write_json_string(stdout, out);
    else
        printf("null");
    printf(", \"tail_included\": %s, \"torn_bytes\": %" PRIu64 ", \"unlisted_pages\": %" PRIu64
           ", \"unknown_from\": ",
           report->tail_included ? "true" : "false", report->torn_bytes, report->unlisted_pages);
    if (report->unknown_from == D7_NO_OFFSET)
        printf("null");
    else
        printf("%" PRIu64, report->unknown_from);
    printf(", \"tail_fault\": ");
    if (*report->tail_fault)
        cli_write_json_string(stdout, report->tail_fault);
    else
        printf("null");
    printf(", \"changed_header\": %s, \"lost_attributes\": %" PRIu64,
           report->changed_header ? "true" : "false", report->lost_attributes);
    printf(", \"checksum_fault\": ");
    if (*report->checksum_fault)
        cli_write_json_string(stdout, report->checksum_fault);
    else
        printf("null");
    printf(", \"cut_bytes\": %" PRIu64 ", \"cut_number\": ", report->cut_bytes);
    if (report->cut_bytes)
        printf("%" PRIu32, report->cut_number);
    else
        printf("null");
    printf(",\n \"datasets\": [");
    for (size_t i = 0; i < report->n_datasets; i++) {
        printf("%s\n  ", i ? "," : "");
        print_json_dataset(&report->datasets[i]);
    }
    printf("],\n \"gaps\": [");
    for (size_t i = 0; i < report->n_gaps; i++) {
        printf("%s\n  ", i ? "," : "");
        print_json_gap(report, &report->gaps[i]);
    }
    printf("],\n \"fills\": [");
    for (size_t i = 0; i < report->n_fills; i++) {
        const d7_repair_fill *f = &report->fills[i];
        printf("%s\n  {\"dataset\": ", i ? "," : "");
        cli_write_json_string(stdout, report->datasets[f->dataset_id].name);
        printf(", \"item\": %" PRIu64 ", \"count\": %" PRIu64 "}", f->item, f->n_items);
    }
    printf("]");
}

/* ---- one file ---- */

/* Not even its header can be read. */
static bool is_unreadable(const repair_job *job, const char *path) {
    d7_reader *r;
    d7_reader_options options;
    d7_reader_options_init(&options);
    options.unframed = job->options.unframed && !job->in_place;
    int rc = d7_reader_open(&r, path, &options, NULL);
    if (rc == 0)
        d7_reader_free(r);
    return rc != 0;
}

/* No whole file could be made of it, or it could not be read, or the result not be written. */
static int failure_code(const repair_job *job, const char *path, int rc) {
    switch (rc) {
    case D7_ERR_LOCKED:
    case D7_ERR_STATE:
        return CLI_PROBLEMS;
    case D7_ERR_CORRUPT:
    case D7_ERR_TRUNCATED:
    case D7_ERR_LIMIT:
        return is_unreadable(job, path) ? CLI_USAGE : CLI_PROBLEMS;
    default:
        return CLI_USAGE;
    }
}

static void note_code(repair_job *job, int code) {
    job->code = code > job->code ? code : job->code;
}

static void note_row(repair_job *job, const char *path, const char *state, uint64_t kept, uint64_t lost,
                     const char *result) {
    if (!job->recursive)
        return;
    if (job->n_rows == job->cap_rows) {
        size_t cap = job->cap_rows ? 2 * job->cap_rows : 64;
        row *rows = realloc(job->rows, cap * sizeof *rows);
        if (!rows)
            return;
        job->rows = rows;
        job->cap_rows = cap;
    }
    job->rows[job->n_rows++] =
        (row){.path = strdup(path), .state = state, .kept = kept, .lost = lost, .result = result};
}

/* Of what was said. */
static void note_failure(repair_job *job, const char *path, const char *text, int code) {
    if (job->json) {
        char *reason = result_message(text);
        printf("%s{\"file\": ", job->separator);
        cli_write_json_string(stdout, path);
        printf(", \"result\": \"failed\", \"reason\": ");
        cli_write_json_string(stdout, reason ? reason : text);
        printf("}");
        job->separator = ",\n";
        free(reason);
    }
    note_row(job, path, "?", 0, 0, "failed");
    note_code(job, code);
}

static void tell_failure(repair_job *job, const char *path, const char *text, int code) {
    (void)cli_flush_stdout();
    command_fail(job->self, "%s", text);
    note_failure(job, path, text, code);
}

/* What stands in its way was said. */
static void note_no_result(repair_job *job, const char *path, const char *out, int code) {
    char *text = NULL;
    (void)cli_flush_stdout();
    if (asprintf(&text, "%s: the result could not be written, or not be given this name", out) < 0)
        text = NULL;
    note_failure(job, path, text ? text : "out of memory", code);
    free(text);
}

static void tell_success(repair_job *job, const char *path, const char *out, const d7_repair_report *report) {
    if (job->json) {
        printf("%s{\"file\": ", job->separator);
        cli_write_json_string(stdout, path);
        printf(", ");
        print_json_report(out, report);
        printf("}");
        job->separator = ",\n";
    } else if (!job->recursive || report->outcome != D7_REPAIR_FINE) {
        print_text(path, out, report);
    }
    if (*report->checksum_fault) {
        (void)cli_flush_stdout();
        command_tell_fault(job->self, report->checksum_fault);
    }
    note_row(job, path, state_of(report), kept_of(report), lost_of(report), outcome_names[report->outcome]);
    if (report->changed_header)
        note_code(job, CLI_PROBLEMS);
}

static void repair_in_place(repair_job *job, const char *path) {
    d7_repair_report report = {0};
    d7_error err;
    cli_progress bar;
    cli_progress_start(&bar, "closing", "B", 0);
    job->options.progress = command_progress;
    job->options.progress_ctx = &bar;
    cli_catch_stop();
    int rc = d7_repair_in_place(path, &job->options, &report, &err);
    cli_progress_end(&bar, bar.total);
    if (rc != 0)
        tell_failure(job, path, err.text, failure_code(job, path, rc));
    if (rc == D7_ERR_STATE)
        command_fail(job->self, "without --in-place, or with -o, a new file is written");
    if (rc == 0)
        tell_success(job, path, NULL, &report);
    d7_repair_report_free(&report);
}

/* The result gets its name only now; a file that needs no repair has none. */
static void finish_copy(repair_job *job, const char *path, result_file *result,
                        const d7_repair_report *report) {
    char *out = strdup(result->path);
    int code = 0;
    if (report->outcome == D7_REPAIR_WRITTEN) {
        result->overwrite = job->overwrite;
        code = result_commit(result);
    }
    if (code != 0 || !out)
        note_no_result(job, path, out ? out : path, code ? code : CLI_USAGE);
    else
        tell_success(job, path, out, report);
    free(out);
}

static bool is_fine(const char *path, cli_progress *bar) {
    d7_reader *r;
    d7_verify_summary summary = {.damages = 1};
    if (d7_reader_open(&r, path, NULL, NULL) != 0)
        return false;
    int rc = d7_reader_state(r) == D7_STATE_CLOSED
                 ? d7_reader_verify(r, NULL, NULL, command_progress, bar, &summary, NULL)
                 : 0;
    d7_reader_free(r);
    return rc == 0 && summary.damages == 0;
}

/* What is there already is refused before the work, but beside a file that needs no other. */
static bool may_be_there(const repair_job *job, const char *path, const char *out) {
    struct stat st;
    cli_progress bar;
    if (job->overwrite || job->out || lstat(out, &st) != 0)
        return job->overwrite;
    cli_progress_start(&bar, "checking", "B", 0);
    bool fine = is_fine(path, &bar);
    cli_progress_end(&bar, bar.total);
    return fine;
}

/* Where nothing can be written a file may still be fine. */
static bool may_be_made(const char *out) {
    char *copy = strdup(out);
    bool may = !copy || access(dirname(copy), W_OK) == 0;
    free(copy);
    return may;
}

/* A file that needs no repair has no result. */
static bool is_left_alone(repair_job *job, const char *path, const char *out) {
    d7_repair_report report = {0};
    cli_progress bar;
    if (job->out || may_be_made(out))
        return false;
    cli_progress_start(&bar, "checking", "B", 0);
    bool fine = is_fine(path, &bar);
    cli_progress_end(&bar, bar.total);
    fine =
        fine && d7_repair(path, out, &job->options, &report, NULL) == 0 && report.outcome == D7_REPAIR_FINE;
    if (fine)
        tell_success(job, path, out, &report);
    d7_repair_report_free(&report);
    return fine;
}

static void repair_copy(repair_job *job, const char *path, const char *out) {
    d7_repair_report report = {0};
    d7_error err;
    result_file result;
    cli_progress bar;
    result_source(path);
    if (is_left_alone(job, path, out))
        return;
    int code = result_begin(job->self, out, may_be_there(job, path, out), &result);
    if (code != 0) {
        note_no_result(job, path, out, code);
        return;
    }
    cli_progress_start(&bar, "repairing", "B", 0);
    job->options.progress = command_progress;
    job->options.progress_ctx = &bar;
    int rc = d7_repair(path, result.temporary, &job->options, &report, &err);
    cli_progress_end(&bar, bar.total);
    if (rc != 0)
        tell_failure(job, path, rc == D7_ERR_CANCELLED ? CLI_STOPPED_TEXT : err.text,
                     failure_code(job, path, rc));
    else
        finish_copy(job, path, &result, &report);
    result_drop(&result);
    d7_repair_report_free(&report);
}

static void repair_file(repair_job *job, const char *path) {
    if (job->in_place) {
        repair_in_place(job, path);
        return;
    }
    char *name = job->out ? strdup(job->out) : result_name(path);
    if (name)
        repair_copy(job, path, name);
    else
        tell_failure(job, path, "out of memory", CLI_USAGE);
    free(name);
}

/* ---- folders ---- */

static int wanted(const struct dirent *e) {
    return e->d_name[0] != '.';
}

static void repair_folder(repair_job *job, const char *path);

static void repair_member(repair_job *job, const char *folder, const char *name) {
    char *path;
    struct stat st;
    if (asprintf(&path, "%s/%s", folder, name) < 0) {
        note_code(job, command_fail(job->self, "out of memory"));
        return;
    }
    if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
        repair_folder(job, path);
    else if (S_ISREG(st.st_mode) && ends_in(name, suffix) && !ends_in(name, ".repaired.photons"))
        repair_file(job, path);
    free(path);
}

static void repair_folder(repair_job *job, const char *path) {
    struct dirent **members;
    int n = scandir(path, &members, wanted, alphasort);
    if (n < 0) {
        note_code(job, command_fail(job->self, "%s: cannot be read: %s", path, strerror(errno)));
        return;
    }
    for (int i = 0; i < n; i++) {
        if (!cli_stopped)
            repair_member(job, path, members[i]->d_name);
        free(members[i]);
    }
    free(members);
}

static void print_table(repair_job *job) {
    if (!job->json)
        printf("%s%-8s %16s %14s  %-18s %s\n", job->n_rows ? "\n" : "", "state", "kept", "lost", "result",
               "file");
    for (size_t i = 0; i < job->n_rows; i++) {
        const row *r = &job->rows[i];
        if (!job->json)
            cli_print_line(stdout, "%-8s %16" PRIu64 " %14" PRIu64 "  %-18s %s", r->state, r->kept, r->lost,
                           r->result, r->path ? r->path : "?");
        free(r->path);
    }
    free(job->rows);
}

static int repair_all(repair_job *job, const char *path) {
    struct stat st;
    bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (folder && !job->recursive)
        return command_fail(job->self, "%s: is a folder; --recursive repairs the files in it", path);
    if (job->recursive && job->out)
        return command_fail(job->self,
                            "-o names one file; with --recursive each result lies beside its file");
    job->separator = "";
    if (job->json && job->recursive)
        printf("[");
    if (folder)
        repair_folder(job, path);
    if (folder && cli_stopped && job->code != CLI_USAGE)
        note_code(job, command_stopped_code(job->self));
    if (!folder)
        repair_file(job, path);
    if (job->json)
        printf(job->recursive ? "]\n" : "\n");
    if (job->recursive)
        print_table(job);
    return job->code;
}

static int repair_run(const command *self, int argc, char **argv) {
    static const struct option options[] = {{"output", required_argument, NULL, OPTION_OUT},
                                            {"in-place", no_argument, NULL, OPTION_IN_PLACE},
                                            {"keep-ragged", no_argument, NULL, OPTION_KEEP_RAGGED},
                                            {"recursive", no_argument, NULL, OPTION_RECURSIVE},
                                            {"json", no_argument, NULL, OPTION_JSON},
                                            {"overwrite", no_argument, NULL, OPTION_OVERWRITE},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    repair_job job = {.self = self};
    d7_repair_options_init(&job.options);
    job.options.unframed = true;
    int code = command_options(self, argc, argv, options, repair_option, &job, 1);
    if (code >= 0)
        return code;
    if (job.in_place && (job.out || job.options.keep_ragged || job.overwrite))
        return command_fail(self,
                            "--in-place takes no -o, --keep-ragged or --overwrite: it never rewrites a page");
    return repair_all(&job, argv[optind]);
}

const command command_repair = {
    .name = "repair",
    .summary = "save what is whole of a damaged or cut file into a closed one",
    .help =
        "usage: d7 repair FILE [-o OUT] [--keep-ragged] [--overwrite] [--json]\n"
        "       d7 repair FILE --in-place [--json]\n"
        "       d7 repair FOLDER --recursive [OPTION...]\n\n"
        "Writes every whole page of a .photons file into a new one, NAME.repaired.photons beside it, that "
        "is\n"
        "closed and free of damage; says what was kept and lost of each dataset. The file itself is never\n"
        "changed. One that is closed and without damage is left alone, and so is one that is being "
        "written.\n\n"
        "Columns of the same photons (/photons/x, y, dt ..., /start/time, /stop/time) or tags (/tags/...) "
        "stay\n"
        "aligned: what one has lost in the middle is taken out of all, and all end where the shortest does.\n"
        "/photons/ms is re-based, and each gap leaves a record (attribute photond.gap.N). Items in a tail\n"
        "beside the file (NAME.photons.tail) are included. Files of unframed blocks are rewritten as valid "
        "D7.\n\n"
        "  -o, --output OUT  write there\n"
        "  --overwrite       replace the result of an earlier repair\n"
        "  --keep-ragged     let columns end where they do in the file\n"
        "  --in-place        only close the file: cut its torn end (kept as NAME.photons.cut.N) and append "
        "the\n"
        "                    index. Refused when pages are damaged, or when there is a tail beside\n"
        "  --recursive       all .photons files in a folder and those below, with a table at the end\n"
        "  --json            one JSON object, or with --recursive an array of them\n"
        "  --help            this text\n\n"
        "Exit status: 0 the result is whole and closed, or the file was fine (what was lost is printed);\n"
        "1 no whole file could be made, and nothing is left, or its header is not what was written; 2 usage, "
        "the file cannot be read, its result "
        "not be "
        "written, or\n"
        "the command was stopped.\n\n"
        "Examples:\n"
        "  d7 repair run.photons\n"
        "  d7 repair run.photons -o saved.photons --json | jq '.datasets[] | {name, kept, lost}'\n"
        "  d7 repair /data/2024 --recursive\n",
    .run = repair_run,
    .letters = "o:",
    .makes = true,
};

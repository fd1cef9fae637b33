/* daf copy, zip, unzip: a repository in another form, its payloads byte for byte. */
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "report.h"
#include "result.h"

enum { OPTION_OVERWRITE = 256 };

typedef struct job {
    const cli_command *self;
    const char *from;
    daf *source; /* opened from there */
    const char *to;
    bool overwrite;
    cli_progress bar;
    uint64_t done_bytes;
} job;

static bool take(void *context, int option, const char *argument) {
    job *j = context;
    (void)argument;
    j->overwrite |= option == OPTION_OVERWRITE;
    return true;
}

static bool show_progress(void *context, uint64_t done_bytes) {
    job *j = context;
    j->done_bytes = done_bytes;
    cli_progress_update(&j->bar, done_bytes < j->bar.total ? done_bytes : j->bar.total);
    return cli_stopped;
}

/* How much there is to copy, for the bar. */
static uint64_t count_bytes(daf *d) {
    report r;
    uint64_t bytes = 0;
    report_gather(&r, d, false);
    for (size_t i = 0; i < r.n; i++)
        bytes += r.rows[i].info.disk_bytes;
    report_free(&r);
    return bytes;
}

static int copy(job *j, const result *r) {
    daf_copy_options options;
    daf_error err;
    daf_copy_options_init(&options);
    options.progress = show_progress;
    options.context = j;
    cli_progress_start(&j->bar, j->self->name, "B", 0);
    if (j->bar.terminal)
        j->bar.total = count_bytes(j->source);
    int rc = daf_copy(r->d, j->source, &options, &err);
    cli_progress_end(&j->bar, j->done_bytes);
    if (rc == DAF_ERR_CANCELLED)
        return cli_stopped_code(j->self);
    if (rc == 0)
        return CLI_OK;
    result_show_name(r, &err);
    return command_fail(j->self, &err);
}

static int export_zarr(const job *j, const char *to, cli_pool *pool) {
    daf_zarr_options options;
    daf_options executing;
    daf_executor executor;
    daf_error err;
    command_options(&executing, &executor, pool);
    daf_zarr_options_init(&options);
    options.sync = true;
    options.executor = executing.executor;
    return daf_zarr_export(NULL, j->from, to, &options, &err) == 0 ? CLI_OK : command_fail(j->self, &err);
}

static int open_source(void *context, cli_pool *pool) {
    job *j = context;
    return command_open(j->self, &j->source, j->from, "r", pool);
}

static int run_job(job *j) {
    cli_pool *pool = cli_pool_new(0);
    result r;
    int code = result_begin_from(&r, j->self, j->to, j->overwrite, pool, open_source, j);
    if (code == CLI_OK)
        code = result_end(&r, r.kind == RESULT_ZARR ? export_zarr(j, r.path, pool) : copy(j, &r));
    daf_free(j->source);
    cli_pool_free(pool);
    return code;
}

static const struct option options[] = {
    {"overwrite", no_argument, NULL, OPTION_OVERWRITE}, {"help", no_argument, NULL, 'h'}, {0}};

static int run_copy(const cli_command *self, int argc, char **argv) {
    job j = {.self = self};
    int code = cli_options(self, argc, argv, options, take, &j, 2, 2);
    if (code >= 0)
        return code;
    j.from = argv[optind];
    j.to = argv[optind + 1];
    return run_job(&j);
}

static int run_zip(const cli_command *self, int argc, char **argv) {
    job j = {.self = self};
    int code = cli_options(self, argc, argv, options, take, &j, 1, 2);
    if (code >= 0)
        return code;
    j.from = argv[optind];
    char *to = NULL;
    size_t n = strlen(j.from);
    while (n > 1 && j.from[n - 1] == '/')
        n--;
    if (argc - optind == 2)
        to = strdup(argv[optind + 1]);
    else if (n > 4 && strncmp(j.from + n - 4, ".daf", 4) == 0 &&
             asprintf(&to, "%.*s.zip", (int)n, j.from) < 0)
        to = NULL;
    if (!to)
        return cli_misused(self, "%s: does not end in .daf; name the archive", j.from);
    j.to = to;
    result_kind kind = result_kind_of(to);
    code = kind == RESULT_ARCHIVE || kind == RESULT_GROUP
               ? run_job(&j)
               : cli_misused(self, "%s: ends neither in .daf.zip nor in .dafs.zip#/GROUP", to);
    free(to);
    return code;
}

static int run_unzip(const cli_command *self, int argc, char **argv) {
    job j = {.self = self};
    int code = cli_options(self, argc, argv, options, take, &j, 1, 2);
    if (code >= 0)
        return code;
    j.from = argv[optind];
    result_kind kind = result_kind_of(j.from);
    char *to = argc - optind == 2       ? strdup(argv[optind + 1])
               : kind == RESULT_ARCHIVE ? strndup(j.from, strlen(j.from) - strlen(".zip"))
                                        : NULL;
    if (kind != RESULT_ARCHIVE && kind != RESULT_GROUP)
        code = cli_misused(self, "%s: ends neither in .daf.zip nor in .dafs.zip#/GROUP", j.from);
    else if (!to)
        code = cli_misused(self, "the directory of a group has to be named");
    else if (result_kind_of(to) != RESULT_DIRECTORY)
        code = cli_misused(self, "%s: is not the name of a directory", to);
    j.to = to;
    if (code < 0)
        code = run_job(&j);
    free(to);
    return code;
}

#define COMMON_HELP                                                                                          \
    "Payloads stay as they are, byte for byte. The result is written under a hidden name beside, and gets "  \
    "its own when it\n"                                                                                      \
    "is whole; a group that is added to an archive counts from then on.\n\n"                                 \
    "  --overwrite   replace the result if it is there (never a group)\n"                                    \
    "  --help        this text\n\n"

const cli_command command_copy = {
    .name = "copy",
    .summary = "copies a repository, in this or another form",
    .help = "Usage: daf copy FROM TO [--overwrite]\n"
            "Copies a repository. The name of TO says what it becomes: an archive (.daf.zip), a group of an "
            "archive\n"
            "(.dafs.zip#/GROUP), a Zarr tree (.daf.zarr), else a directory.\n" COMMON_HELP "Examples:\n"
            "  daf copy run.daf backup/run.daf\n"
            "  daf copy run.daf runs.dafs.zip#/2026-11-30\n"
            "  daf copy run.daf.zip run.daf.zarr\n",
    .run = run_copy};

const cli_command command_zip = {.name = "zip",
                                 .summary = "puts a repository into a ZIP archive",
                                 .help = "Usage: daf zip PATH [ARCHIVE] [--overwrite]\n"
                                         "Makes an archive of a repository: ARCHIVE ends in .daf.zip or in "
                                         ".dafs.zip#/GROUP (default: PATH.zip). It is\n"
                                         "an ordinary ZIP archive, whose entries are stored and aligned, so "
                                         "that readers map them in place.\n" COMMON_HELP "Examples:\n"
                                         "  daf zip run.daf\n"
                                         "  daf zip run.daf runs.dafs.zip#/2026-11-30\n",
                                 .run = run_zip};

const cli_command command_unzip = {.name = "unzip",
                                   .summary = "makes a directory of an archive",
                                   .help = "Usage: daf unzip ARCHIVE [DIRECTORY] [--overwrite]\n"
                                           "Makes a directory of a repository in an archive (RUN.daf.zip, "
                                           "default: RUN.daf; or RUNS.dafs.zip#/GROUP).\n" COMMON_HELP
                                           "Examples:\n"
                                           "  daf unzip run.daf.zip\n"
                                           "  daf unzip runs.dafs.zip#/2026-11-30 run.daf\n",
                                   .run = run_unzip};

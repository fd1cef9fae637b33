/* daf pack, daf unpack: vectors and matrices are encoded anew in their place. */
#include <inttypes.h>
#include <string.h>

#include "cli/progress.h"
#include "report.h"

enum { OPTION_JSON = 256 };

typedef struct job {
    const cli_command *self;
    daf_set_options how;
    bool json, all;
    target target; /* not all */
    daf *d;
    cli_progress bar;
    daf_repacked sum;
    uint64_t done_bytes; /* as the repository had them */
    uint64_t bytes;      /* so of the property that is under way */
    const char *separator;
} job;

static bool take(void *context, int option, const char *argument) {
    job *j = context;
    j->json |= option == OPTION_JSON;
    return take_packing_option(j->self, &j->how, option, argument);
}

static void print_ratio(const daf_repacked *r) {
    printf("%" PRIu64 " bytes -> %" PRIu64, r->before_bytes, r->after_bytes);
    if (r->raw_bytes && r->after_bytes)
        printf(", ratio %.2f", (double)r->raw_bytes / (double)r->after_bytes);
    putchar('\n');
}

static void print_name(const job *j, const target *t) {
    char text[1024];
    int n = t->columns ? snprintf(text, sizeof text, "matrices/%s/%s/%s", t->axis, t->columns, t->name)
                       : snprintf(text, sizeof text, "vectors/%s/%s", t->axis, t->name);
    if (n >= (int)sizeof text)
        text[sizeof text - 2] = '~';
    if (j->json)
        print_json_string(stdout, text);
    else
        cli_write_printable(stdout, text, strlen(text));
}

static void print_done(job *j, const target *t, const daf_repacked *r) {
    if (j->json) {
        printf("%s{\"property\":", j->separator);
        print_name(j, t);
        printf(",\"raw_bytes\":%" PRIu64 ",\"before_bytes\":%" PRIu64 ",\"after_bytes\":%" PRIu64 "}",
               r->raw_bytes, r->before_bytes, r->after_bytes);
    } else {
        print_name(j, t);
        fputs(": ", stdout);
        print_ratio(r);
    }
    j->separator = ",";
    j->sum.raw_bytes += r->raw_bytes;
    j->sum.before_bytes += r->before_bytes;
    j->sum.after_bytes += r->after_bytes;
}

static int stop(const job *j) {
    return cli_fail(j->self, "stopped; what was reported is done, nothing is half done");
}

static bool show_progress(void *context, uint64_t done, uint64_t total) {
    job *j = context;
    double part = total ? (double)done / (double)total : 1;
    cli_progress_update(&j->bar, j->done_bytes + (uint64_t)(part * (double)j->bytes));
    return cli_stopped;
}

static int repack(job *j, const target *t, uint64_t bytes) {
    daf_repacked done;
    daf_error err;
    j->bytes = bytes;
    if (cli_stopped)
        return stop(j);
    int rc = t->kind == TARGET_VECTOR
                 ? daf_repack_vector(j->d, &done, t->axis, t->name, &j->how, &err)
                 : daf_repack_matrix(j->d, &done, t->axis, t->columns, t->name, &j->how, &err);
    if (rc)
        return rc == DAF_ERR_CANCELLED ? stop(j) : command_fail(j->self, &err);
    j->done_bytes += done.before_bytes;
    cli_progress_update(&j->bar, j->done_bytes);
    print_done(j, t, &done);
    return CLI_OK;
}

static int repack_all(job *j) {
    report r;
    report_gather(&r, j->d, false);
    int code = r.failed ? command_fail(j->self, &r.err) : CLI_OK;
    uint64_t total = 0;
    for (size_t i = 0; i < r.n; i++)
        total += r.rows[i].info.disk_bytes;
    j->bar.total = total;
    for (size_t i = 0; i < r.n && code == CLI_OK; i++) {
        const row *this = &r.rows[i];
        const target t = {this->kind, this->axis, this->columns, this->name};
        if (this->kind != TARGET_VECTOR && this->kind != TARGET_MATRIX)
            continue;
        if (this->problem) {
            cli_fail(j->self, "%s", this->problem);
            code = CLI_PROBLEMS;
        } else {
            code = repack(j, &t, this->info.disk_bytes);
        }
    }
    report_free(&r);
    return code;
}

static int repack_one(job *j) {
    const target *t = &j->target;
    daf_info info;
    daf_error err;
    int rc = t->kind == TARGET_VECTOR ? daf_vector_info(j->d, &info, t->axis, t->name, &err)
                                      : daf_matrix_info(j->d, &info, t->axis, t->columns, t->name, &err);
    if (rc)
        return command_fail(j->self, &err);
    j->bar.total = info.disk_bytes;
    return repack(j, t, info.disk_bytes);
}

static int repack_job(job *j) {
    daf_error err;
    j->separator = "";
    if (j->json)
        fputs("{\"properties\":[", stdout);
    cli_progress_start(&j->bar, j->self->name, "B", 0);
    int code = daf_batch_begin(j->d, &err) ? command_fail(j->self, &err) : CLI_OK;
    if (code == CLI_OK)
        code = j->all ? repack_all(j) : repack_one(j);
    if (daf_batch_commit(j->d, &err) != 0 && code == CLI_OK)
        code = command_fail(j->self, &err);
    cli_progress_end(&j->bar, j->done_bytes);
    if (j->json) {
        printf("],\"raw_bytes\":%" PRIu64 ",\"before_bytes\":%" PRIu64 ",\"after_bytes\":%" PRIu64
               ",\"done\":%s}\n",
               j->sum.raw_bytes, j->sum.before_bytes, j->sum.after_bytes, code == CLI_OK ? "true" : "false");
    } else if (j->all && code == CLI_OK) {
        fputs("all: ", stdout);
        print_ratio(&j->sum);
    }
    return code;
}

static int run_job(job *j, int argc, char **argv) {
    int n = argc - optind - 1;
    j->all = n == 0;
    if (n && (target_parse(&j->target, n, argv + optind + 1) != n ||
              (j->target.kind != TARGET_VECTOR && j->target.kind != TARGET_MATRIX)))
        return cli_misused(j->self, "a path and at most one vector or matrix are needed");
    cli_pool *pool = cli_pool_new(0);
    int code = command_open(j->self, &j->d, argv[optind], "r+", pool);
    if (code == CLI_OK) {
        cli_catch_stop();
        code = command_close(j->self, j->d, repack_job(j));
    }
    cli_pool_free(pool);
    return code;
}

static int run_pack(const cli_command *self, int argc, char **argv) {
    static const struct option options[] = {
        PACKING_OPTIONS, {"json", no_argument, NULL, OPTION_JSON}, {"help", no_argument, NULL, 'h'}, {0}};
    job j = {.self = self};
    daf_set_options_init(&j.how);
    j.how.progress = show_progress;
    j.how.context = &j;
    j.how.packing = DAF_PACK_LARGE;
    int code = cli_options(self, argc, argv, options, take, &j, 1, 5);
    return code >= 0 ? code : run_job(&j, argc, argv);
}

static int run_unpack(const cli_command *self, int argc, char **argv) {
    static const struct option options[] = {
        {"json", no_argument, NULL, OPTION_JSON}, {"help", no_argument, NULL, 'h'}, {0}};
    job j = {.self = self};
    daf_set_options_init(&j.how);
    j.how.progress = show_progress;
    j.how.context = &j;
    j.how.packing = DAF_PACK_NEVER;
    int code = cli_options(self, argc, argv, options, take, &j, 1, 5);
    return code >= 0 ? code : run_job(&j, argc, argv);
}

const cli_command command_pack = {
    .name = "pack",
    .summary = "compresses vectors and matrices in their place",
    .help = "Usage: daf pack PATH [options]\n"
            "       daf pack PATH vector AXIS NAME [options]\n"
            "       daf pack PATH matrix ROWS COLUMNS NAME [options]\n"
            "Stores all vectors and matrices, or one, compressed in chunks; what is smaller than a chunk "
            "stays flat, and\n"
            "what is packed already is packed anew. Each property is replaced whole or not at all. Of a "
            "matrix only the\n"
            "layout that is named is changed. Says for each what it took before and takes now.\n\n"
            "  --codec blosc_zstd_bitshuffle|blosc_lz4_bitshuffle|zstd|gzip\n"
            "                  how it is compressed (default blosc_zstd_bitshuffle)\n"
            "  --level N       1 to 9, zstd 1 to 22 (default 5)\n"
            "  --chunk-kb N    size of a chunk before compression in KB (default 8)\n"
            "  --json          one JSON object\n"
            "  --help          this text\n\n"
            "Examples:\n"
            "  daf pack run.daf\n"
            "  daf pack run.daf matrix y_pixel x_pixel intensity --codec zstd --level 19 --chunk-kb 256\n",
    .run = run_pack};

const cli_command command_unpack = {.name = "unpack",
                                    .summary = "stores packed vectors and matrices flat",
                                    .help = "Usage: daf unpack PATH [--json]\n"
                                            "       daf unpack PATH vector AXIS NAME [--json]\n"
                                            "       daf unpack PATH matrix ROWS COLUMNS NAME [--json]\n"
                                            "Stores all vectors and matrices, or one, as bare values, which "
                                            "every reader maps without decoding. Each\n"
                                            "property is replaced whole or not at all.\n\n"
                                            "  --json   one JSON object\n"
                                            "  --help   this text\n\n"
                                            "Examples:\n"
                                            "  daf unpack run.daf\n"
                                            "  daf unpack run.daf vector dt_bin counts\n",
                                    .run = run_unpack};

/* d7 cat: the values of a dataset.
 *
 * Values go out a piece at a time. Where a page is damaged its items are left out and named on standard
 * error; for npy, whose header says how many values follow, a first pass finds out how many can be read. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/npy.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "commands.h"

typedef enum cat_format { FORMAT_TEXT, FORMAT_CSV, FORMAT_RAW, FORMAT_NPY } cat_format;

typedef struct cat_options {
    const command *self;
    uint64_t from, count;
    cat_format format;
    bool unframed;
} cat_options;

enum { OPTION_FROM = 256, OPTION_COUNT, OPTION_FORMAT, OPTION_UNFRAMED };

static bool parse_format(const char *text, cat_format *ret) {
    static const char *const names[] = {"text", "csv", "raw", "npy"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], text) == 0) {
            *ret = (cat_format)i;
            return true;
        }
    return false;
}

static bool cat_option(void *ctx, int option, const char *argument) {
    cat_options *o = ctx;
    if (option == OPTION_UNFRAMED) {
        o->unframed = true;
        return true;
    }
    if (option == OPTION_FORMAT) {
        if (parse_format(argument, &o->format))
            return true;
        command_fail(o->self, "--format is text, csv, raw or npy, not %s", argument);
        return false;
    }
    if (parse_count(argument, option == OPTION_FROM ? &o->from : &o->count))
        return true;
    command_fail(o->self, "--from and --count take a whole number, not %s", argument);
    return false;
}

typedef struct cat_job {
    const command *self;
    d7_reader *r;
    uint32_t ds;
    d7_type type;
    cat_format format;
    uint64_t from, count; /* as asked for */
    uint64_t items, end;  /* of the dataset; of what is to be written */
    void *values;         /* room for PIECE_ITEMS */
    cli_progress *bar;
    bool damaged; /* something was left out */
} cat_job;

enum { PIECE_ITEMS = 65536 };

static char kind_of(d7_type type) {
    return type >= D7_FLOAT ? 'f' : type >= D7_UINT8 ? 'u' : 'i';
}

static int write_values(const cat_job *job, const void *values, size_t n) {
    size_t size = d7_type_size(job->type);
    if (job->format == FORMAT_RAW || job->format == FORMAT_NPY)
        return cli_write_raw(stdout, size, values, n);
    return cli_write_lines(stdout, kind_of(job->type), size, values, n);
}

/* A page of unexpected length made the reader count the dataset anew: how far does it go now? */
static bool counted_anew(cat_job *job) {
    d7_dataset_info info;
    if (d7_reader_dataset(job->r, job->ds, &info) != 0 || info.items == job->items)
        return false;
    job->items = info.items;
    job->end =
        job->from < info.items && job->count < info.items - job->from ? job->from + job->count : info.items;
    /* Places before this page were told by the length that pages should have. */
    job->damaged |= job->from > 0;
    return true;
}

/* Reads [at, *end) of a page. *ret_n values were read: none of a damaged page, and none, with *end moved back
 * to `at`, when the dataset was counted anew and the place has to be looked up again. */
static int read_part(cat_job *job, uint64_t at, uint64_t *end, size_t *ret_n) {
    d7_error err;
    size_t n = (size_t)(*end - at);
    int rc = d7_reader_read(job->r, job->ds, at, n, job->values, &err);
    *ret_n = rc == 0 ? n : 0;
    bool anew = counted_anew(job);
    if (rc == D7_ERR_ARG && anew)
        *end = at;
    else if (rc == D7_ERR_CORRUPT)
        job->damaged = true;
    else if (rc != 0)
        return command_fail(job->self, "%s", err.text);
    return 0;
}

/* Where the part of a page that begins at item `at` ends, as far as it fits a piece. */
static uint64_t part_end(const cat_job *job, uint64_t at) {
    uint64_t page, end = job->end;
    d7_page_info info;
    if (d7_reader_find_page(job->r, job->ds, at, &page) == 0 &&
        d7_reader_page(job->r, job->ds, page, &info) == 0 && info.first_item + info.n_items < end)
        end = info.first_item + info.n_items;
    return end - at > PIECE_ITEMS ? at + PIECE_ITEMS : end;
}

/* Counts what can be read and, when `write`, writes it. */
static int walk(cat_job *job, bool write, uint64_t *ret_readable) {
    uint64_t readable = 0;
    for (uint64_t at = job->from; at < job->end;) {
        uint64_t end = part_end(job, at);
        size_t n;
        int code = read_part(job, at, &end, &n);
        if (code != 0)
            return code;
        if (write && write_values(job, job->values, n) != 0)
            return cli_stdout_failed();
        readable += n;
        at = end;
        cli_progress_update(job->bar, at - job->from);
    }
    *ret_readable = readable;
    return 0;
}

static int write_head(cat_job *job, const char *name) {
    uint64_t n;
    if (job->format == FORMAT_CSV) {
        putchar('"');
        for (const char *p = name; *p; p++)
            printf(*p == '"' ? "\"\"" : "%c", *p);
        printf("\"\n");
    }
    if (job->format != FORMAT_NPY)
        return 0;
    int code = walk(job, false, &n);
    if (code != 0)
        return code;
    return cli_npy_header(stdout, kind_of(job->type), d7_type_size(job->type), &n, 1, false) == 0
               ? 0
               : cli_stdout_failed();
}

/* Problems of this dataset, and of the file as a whole: also that it ends early, whichever dataset's page was cut. */
static int print_problems(const cat_job *job, const char *path) {
    int code = CLI_OK;
    d7_problem p;
    for (size_t i = 0; d7_reader_problem(job->r, i, &p) == 0; i++) {
        if (p.dataset_id != job->ds && p.dataset_id != D7_NO_DATASET && p.code != D7_PROBLEM_TORN_TAIL)
            continue;
        print_problem(stderr, path, &p, job->r);
        if (p.severity == D7_DAMAGE)
            code = CLI_PROBLEMS;
    }
    return job->damaged ? CLI_PROBLEMS : code;
}

static int cat_dataset(cat_job *job, const char *path, const char *name) {
    uint64_t n;
    cli_progress bar;
    job->values = malloc(PIECE_ITEMS * sizeof(uint64_t));
    if (!job->values)
        return command_fail(job->self, "out of memory");
    cli_progress_start(&bar, "reading", " items", job->end - job->from);
    bar.terminal = bar.terminal && !(job->format <= FORMAT_CSV && isatty(fileno(stdout)));
    job->bar = &bar;
    int code = write_head(job, name);
    if (code == 0)
        code = walk(job, true, &n);
    cli_progress_end(&bar, job->end - job->from);
    free(job->values);
    return code != 0 ? code : print_problems(job, path);
}

static int cat_open(const cat_options *o, const char *path, const char *name, cat_job *job) {
    d7_dataset_info info;
    int code = command_open(o->self, path, o->unframed, NULL, &job->r);
    if (code != 0)
        return code;
    if (d7_reader_find_dataset(job->r, name, &job->ds) != 0 || d7_reader_dataset(job->r, job->ds, &info) != 0)
        return command_fail(o->self, "%s: there is no dataset %s; d7 info shows which there are", path, name);
    if (o->from > info.items)
        return command_fail(o->self, "%s: dataset %s holds %" PRIu64 " items, --from is %" PRIu64, path, name,
                            info.items, o->from);
    job->self = o->self;
    job->type = info.type;
    job->format = o->format;
    job->from = o->from;
    job->count = o->count;
    job->items = info.items;
    job->end = o->count < info.items - o->from ? o->from + o->count : info.items;
    return 0;
}

static int cat_run(const command *self, int argc, char **argv) {
    static const struct option options[] = {{"from", required_argument, NULL, OPTION_FROM},
                                            {"count", required_argument, NULL, OPTION_COUNT},
                                            {"format", required_argument, NULL, OPTION_FORMAT},
                                            {"unframed", no_argument, NULL, OPTION_UNFRAMED},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    cat_options o = {.self = self, .count = UINT64_MAX};
    int code = command_options(self, argc, argv, options, cat_option, &o, 2);
    if (code >= 0)
        return code;
    cat_job job = {0};
    code = cat_open(&o, argv[optind], argv[optind + 1], &job);
    if (code == 0)
        code = cat_dataset(&job, argv[optind], argv[optind + 1]);
    d7_reader_free(job.r);
    return code;
}

const command command_cat = {
    .name = "cat",
    .summary = "the values of a dataset, as text or raw",
    .help = "usage: d7 cat FILE DATASET [--from N] [--count N] [--format text|csv|raw|npy] [--unframed]\n\n"
            "Writes the values of a dataset to standard output. Items of damaged pages are left out and "
            "named on\n"
            "standard error.\n\n"
            "  --from N     the first item, counted from 0; default 0\n"
            "  --count N    at most so many items; default all\n"
            "  --format F   text: one value a line (default); csv: the same under a line with the dataset's "
            "name;\n"
            "               raw: little-endian values, nothing else; npy: a NumPy file\n"
            "  --unframed   also read a file whose blocks have no begin and end bits\n"
            "  --help       this text\n\n"
            "Exit status: 0 good, 1 the data has problems, 2 usage, or the file cannot be read.\n\n"
            "Examples:\n"
            "  d7 cat run.photons /photons/dt --count 10\n"
            "  d7 cat run.photons /photons/x --format npy > x.npy\n",
    .run = cat_run,
};

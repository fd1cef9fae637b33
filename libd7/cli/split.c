/* d7 split: a file as parts that each stand alone. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/output.h"
#include "range.h"
#include "result.h"
#include "split_names.h"
#include "transfer_part.h"

typedef enum split_by { BY_NOTHING, BY_SIZE, BY_TIME, BY_COUNT } split_by;

typedef struct split_options {
    const command *self;
    const char *output;
    split_by by;
    uint64_t every; /* bytes, ps, rows */
    bool overwrite, unframed, json;
} split_options;

enum { OPTION_SIZE = 256, OPTION_TIME, OPTION_COUNT, OPTION_OVERWRITE, OPTION_UNFRAMED, OPTION_JSON };

static const uint64_t max_parts = 100000, ps_per_ms = 1000000000u;

/* Takes how the parts are measured, once. */
static bool set_by(split_options *o, split_by by, uint64_t every) {
    if (o->by != BY_NOTHING) {
        command_fail(o->self, "--size, --time and --count exclude each other");
        return false;
    }
    o->by = by;
    o->every = every;
    return true;
}

static bool not_valid(const split_options *o, const char *problem, const char *argument) {
    command_fail(o->self, "%s, not %s", problem, argument);
    return false;
}

static bool split_option(void *ctx, int option, const char *argument) {
    split_options *o = ctx;
    range_end end;
    uint64_t n;
    switch (option) {
    case 'o':
        o->output = argument;
        return true;
    case OPTION_SIZE:
        return split_parse_bytes(argument, &n) ? set_by(o, BY_SIZE, n)
                                               : not_valid(o, "--size takes bytes (2GB, 500MiB)", argument);
    case OPTION_COUNT:
        return split_parse_count(argument, &n) ? set_by(o, BY_COUNT, n)
                                               : not_valid(o, "--count takes a number (10M, 4096)", argument);
    case OPTION_TIME:
        return range_parse(argument, &end) && end.is_time && end.time_ps
                   ? set_by(o, BY_TIME, end.time_ps)
                   : not_valid(o, "--time takes a time (60s, 250ms, 5min)", argument);
    default:
        o->overwrite |= option == OPTION_OVERWRITE;
        o->unframed |= option == OPTION_UNFRAMED;
        o->json |= option == OPTION_JSON;
        return true;
    }
}

/* ---- where the parts begin and end ---- */

typedef struct split_job {
    const split_options *o;
    const char *path;
    char *first_path;
    transfer_input in;
    bool *wanted;
    transfer_plan plan;
    cli_progress bar;
    transfer_part part; /* the present one */
    uint64_t number;    /* its number */
    bool last;          /* it is the last one */
    bool json_begun;
} split_job;

static column_set main_set(const split_job *job) {
    return input_has(&job->in, SET_PHOTONS) ? SET_PHOTONS : SET_TAGS;
}

/* Ends a set of columns at a time; true when that is past its end. */
static int end_by_time(split_job *job, column_set set, uint64_t time_ps, bool *ret_past) {
    uint64_t from, to;
    range_end none = {0}, end = {.given = true, .is_time = true, .time_ps = time_ps};
    int code = range_resolve_in(job->o->self, job->in.reader, job->path,
                                set == SET_TAGS ? D7_GROUP_TAGS : D7_GROUP_PHOTONS, &none, &end, &from, &to);
    if (code != 0)
        return code;
    bool past = to >= input_rows(&job->in, set);
    if (set == SET_PHOTONS && job->in.ms != D7_NO_DATASET)
        past = time_ps / ps_per_ms >= input_lengths(&job->in).ms;
    *ret_past &= past;
    job->part.cut.to[set] = past ? UINT64_MAX : to;
    return 0;
}

static int end_at_time(split_job *job) {
    uint64_t time_ps = (job->number + 1) * job->o->every;
    transfer_cut *cut = &job->part.cut;
    int code = 0;
    job->last = true;
    for (column_set set = SET_PHOTONS; set <= SET_TAGS && code == 0; set++)
        if (input_has(&job->in, set))
            code = end_by_time(job, set, time_ps, &job->last);
    if (job->in.ms != D7_NO_DATASET && cut->to[SET_PHOTONS] != UINT64_MAX)
        cut->to[SET_MS] = time_ps / ps_per_ms;
    return code;
}

static int end_at_count(split_job *job) {
    column_set set = main_set(job);
    transfer_cut *cut = &job->part.cut;
    uint64_t rows = input_rows(&job->in, set), first;
    job->last = job->o->every >= rows - cut->from[set];
    if (job->last)
        return 0;
    cut->to[set] = cut->from[set] + job->o->every;
    return job->in.ms == D7_NO_DATASET ? 0
                                       : input_ms_bounds(&job->in, cut->to[set], &first, &cut->to[SET_MS]);
}

static int find_end(split_job *job) {
    job->part.cut.to[SET_PHOTONS] = job->part.cut.to[SET_TAGS] = job->part.cut.to[SET_MS] = UINT64_MAX;
    return job->o->by == BY_TIME ? end_at_time(job) : job->o->by == BY_COUNT ? end_at_count(job) : 0;
}

/* The part after this one begins where it ended. */
static int go_on(split_job *job) {
    transfer_cut *cut = &job->part.cut;
    uint64_t end;
    for (unsigned set = SET_PHOTONS; set < N_SETS; set++)
        cut->from[set] = cut->to[set] == UINT64_MAX ? input_rows(&job->in, (column_set)set) : cut->to[set];
    cut->own = false;
    job->number++;
    if (job->in.ms == D7_NO_DATASET || job->o->by == BY_TIME)
        return 0;
    return input_ms_bounds(&job->in, cut->from[SET_PHOTONS], &cut->from[SET_MS], &end);
}

/* How many parts there will be, or an estimate that is not too small. */
static int count_parts(split_job *job, uint64_t *ret) {
    uint64_t rows = input_rows(&job->in, main_set(job)), every = job->o->every;
    *ret = job->o->by == BY_COUNT ? rows / every + 1 : d7_reader_file_bytes(job->in.reader) / every + 1;
    if (job->o->by != BY_TIME)
        return 0;
    uint64_t low = 0, high = max_parts + 1; /* parts that are not enough; that are */
    if (every > UINT64_MAX / (max_parts + 2))
        high = UINT64_MAX / every;
    while (high - low > 1) {
        job->number = low + (high - low) / 2 - 1;
        int code = find_end(job);
        if (code != 0)
            return code;
        *(job->last ? &high : &low) = job->number + 1;
    }
    job->number = 0;
    *ret = high;
    return 0;
}

static int check_parts(split_job *job) {
    uint64_t n;
    int code = count_parts(job, &n);
    if (code == 0 && n > max_parts)
        code =
            command_fail(job->o->self, "%s: that would be more than %" PRIu64 " parts", job->path, max_parts);
    return code == 0 ? split_check_paths(job->o->self, job->path, job->first_path, n, job->o->overwrite)
                     : code;
}

/* ---- the parts ---- */

static void print_part(split_job *job) {
    const transfer_part *part = &job->part;
    const char *names[N_SETS] = {"", job->in.grouped ? "photons" : "items", "tags", "milliseconds"};
    const char *keys[N_SETS] = {"", job->in.grouped ? "photon" : "item", "tag", "ms"};
    if (job->o->json) {
        printf("%s\n    {\"file\": ", job->json_begun ? "," : "{\n  \"parts\": [");
        job->json_begun = true;
        cli_write_json_string(stdout, part->path);
        printf(", \"bytes\": %" PRIu64, part->file_bytes);
    } else {
        cli_write_printable(stdout, part->path, strlen(part->path));
        printf(": %" PRIu64 " bytes", part->file_bytes);
    }
    for (unsigned set = SET_PHOTONS; set < N_SETS; set++) {
        uint64_t all = input_rows(&job->in, (column_set)set), from = part->cut.from[set],
                 to = part->cut.to[set] < all ? part->cut.to[set] : all;
        if (!input_has(&job->in, (column_set)set))
            continue;
        if (job->o->json)
            printf(", \"first_%s\": %" PRIu64 ", \"%s\": %" PRIu64, keys[set], from, names[set], to - from);
        else
            printf(", %" PRIu64 " %s from %" PRIu64, to - from, names[set], from);
    }
    fputs(job->o->json ? "}" : "\n", stdout);
    (void)cli_flush_stdout(); /* said at the end; the parts are what counts */
}

/* A split with a size ends a part where the file is full. */
static int end_of_milliseconds(split_job *job) {
    transfer_cut *cut = &job->part.cut;
    uint64_t first;
    if (job->last || job->o->by != BY_SIZE || job->in.ms == D7_NO_DATASET)
        return 0;
    return input_ms_bounds(&job->in, cut->to[SET_PHOTONS], &first, &cut->to[SET_MS]);
}

static int make_part(split_job *job) {
    transfer_part *part = &job->part;
    part->max_bytes = job->o->by == BY_SIZE ? job->o->every : 0;
    part->place = (record_place){.has_part = true,
                                 .has_photons = job->in.grouped && input_has(&job->in, SET_PHOTONS),
                                 .has_ms = job->in.ms != D7_NO_DATASET,
                                 .has_tags = input_has(&job->in, SET_TAGS),
                                 .last = job->last,
                                 .part = job->number,
                                 .photon = part->cut.from[SET_PHOTONS],
                                 .ms = part->cut.from[SET_MS],
                                 .tag = part->cut.from[SET_TAGS]};
    char *path = split_path(job->first_path, job->number);
    part->path = path;
    int code = path ? part_make(part) : command_fail(job->o->self, "out of memory");
    if (code == 0 && part->max_bytes)
        job->last = part->cut.to[main_set(job)] == UINT64_MAX;
    if (code == 0)
        code = end_of_milliseconds(job);
    if (code == 0)
        print_part(job);
    free(path);
    return code;
}

static int make_parts(split_job *job) {
    for (;;) {
        int code = find_end(job);
        if (code == 0)
            code = make_part(job);
        if (code != 0 || job->last)
            return code;
        code = go_on(job);
        if (code != 0)
            return code;
    }
}

static void tell_rest(const split_job *job) {
    struct stat st;
    char *path = split_path(job->first_path, job->number + 1);
    if (path && lstat(path, &st) == 0)
        command_fail(job->o->self, "%s: was there before and is no part of this", path);
    free(path);
}

static int split_all(split_job *job) {
    job->part = (transfer_part){.self = job->o->self,
                                .in = &job->in,
                                .plan = &job->plan,
                                .overwrite = job->o->overwrite,
                                .cut = cut_of_all(),
                                .is_cut = true,
                                .bar = &job->bar};
    int code = check_parts(job);
    if (code != 0)
        return code;
    transfer_cut all = cut_of_all();
    cli_progress_start(&job->bar, "splitting", "B", plan_cut(&job->plan, &job->in, &all));
    code = make_parts(job);
    cli_progress_end(&job->bar, job->part.done_bytes);
    part_free(&job->part);
    if (code == 0)
        tell_rest(job);
    else if (job->number)
        command_fail(job->o->self, "%s: %" PRIu64 " part%s complete and %s kept; what follows is missing",
                     job->first_path, job->number, job->number == 1 ? " is" : "s are",
                     job->number == 1 ? "is" : "are");
    return code;
}

/* ---- the command ---- */

static int check_input(const split_job *job) {
    const transfer_input *in = &job->in;
    bool photons = input_has(in, SET_PHOTONS), tags = input_has(in, SET_TAGS);
    if (in->n_datasets == 0)
        return command_fail(in->self, "%s: holds no datasets: nothing to split", in->path);
    if (!photons && !tags)
        return command_fail(
            in->self,
            "%s: there are no photons or tags, and the datasets are not of one length: nothing to "
            "split by",
            in->path);
    if (photons && tags && job->o->by != BY_TIME)
        return command_fail(in->self, "%s: there are photons and tags: split by --time", in->path);
    if (job->o->by == BY_TIME && job->in.ms != D7_NO_DATASET && job->o->every % ps_per_ms)
        return command_fail(in->self, "%s: --time is whole milliseconds here", in->path);
    return 0;
}

static int split_input(split_job *job) {
    job->first_path = split_first_path(job->o->output, job->path);
    job->wanted = malloc(job->in.n_datasets + 1u);
    if (!job->first_path || !job->wanted)
        return command_fail(job->o->self, "out of memory");
    memset(job->wanted, 1, job->in.n_datasets + 1u);
    transfer_cut all = cut_of_all();
    int code = check_input(job);
    if (code == 0)
        code = input_compare(&job->in);
    if (code == 0)
        code = input_judge(&job->in, job->wanted, &all);
    if (code == 0)
        code = plan_begin(&job->plan, &job->in, job->wanted);
    if (code != 0)
        return code;
    input_tell_trimmed(&job->in, job->wanted);
    code = split_all(job);
    if (code == MOVE_AGAIN && job->number == 0) {
        code = input_count(&job->in);
        if (code == 0)
            code = split_all(job);
    }
    if (code == MOVE_AGAIN)
        code = command_fail(job->o->self,
                            "%s: its pages have unexpected lengths; d7 repair makes a regular file of it",
                            job->path);
    if (job->o->json && job->json_begun)
        printf("\n  ],\n  \"complete\": %s\n}\n", code == 0 ? "true" : "false");
    return code;
}

static int split_file(const split_options *o, const char *path) {
    split_job job = {.o = o, .path = path};
    input_options io = {.unframed = o->unframed, .pool = cli_pool_new(0)};
    int code = input_open(&job.in, o->self, path, &io);
    if (code == 0) {
        code = split_input(&job);
        plan_free(&job.plan);
        free(job.wanted);
        free(job.first_path);
        input_close(&job.in);
    }
    cli_pool_free(io.pool);
    return code;
}

static int split_run(const command *self, int argc, char **argv) {
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"size", required_argument, NULL, OPTION_SIZE},
                                            {"time", required_argument, NULL, OPTION_TIME},
                                            {"count", required_argument, NULL, OPTION_COUNT},
                                            {"overwrite", no_argument, NULL, OPTION_OVERWRITE},
                                            {"unframed", no_argument, NULL, OPTION_UNFRAMED},
                                            {"json", no_argument, NULL, OPTION_JSON},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    split_options o = {.self = self};
    int code = command_options(self, argc, argv, options, split_option, &o, 1);
    if (code >= 0)
        return code;
    if (!o.output || o.by == BY_NOTHING)
        return command_fail(self, "%s is needed; d7 split --help shows how it is used",
                            o.output ? "--size, --time or --count"
                                     : "-o with the name of the first part, or a folder,");
    return split_file(&o, argv[optind]);
}

const command command_split = {
    .name = "split",
    .summary = "a file as parts that each stand alone",
    .help = "usage: d7 split IN -o NAME.photons|FOLDER (--size BYTES | --time T | --count N)\n"
            "                [--overwrite] [--unframed] [--json]\n\n"
            "Splits a .photons file into NAME.photons, NAME.0001.photons, NAME.0002.photons, ... Each part "
            "is a closed file\n"
            "that stands alone, with all attributes; photond.part, photond.first_photon and photond.first_ms "
            "tell its place,\n"
            "and d7 merge puts the parts together again.\n\n"
            "  -o, --output OUT  the first part's name; or a folder, where parts are named as IN\n"
            "  --size BYTES      parts of at most so many bytes (2GB, 500MiB); only milliseconds of a long "
            "darkness may\n"
            "                    make one larger\n"
            "  --time T          parts of so much time (60s, 250ms, 5min, 1h), the last one less\n"
            "  --count N         parts of so many photons or tags (10M, 500k), the last one less\n"
            "  --overwrite       replace files that are there\n"
            "  --unframed        read a file without begin and end bits, as one other program writes them\n"
            "  --json            say in one JSON object what was made\n"
            "  --help            this text\n\n"
            "A line on standard output tells of each part when it is complete and has its name. Should the "
            "command fail or be\n"
            "stopped, the parts that are complete stay. Datasets that belong to no photons or tags go to the "
            "first part.\n"
            "Exit status: 0 good, 1 the data has problems, 2 usage, IN cannot be read, or a part cannot be "
            "written.\n\n"
            "Examples:\n"
            "  d7 split night.photons -o parts/ --size 2GB\n"
            "  d7 split run.photons -o minutes.photons --time 1min\n",
    .run = split_run,
    .letters = "o:",
    .makes = true,
};

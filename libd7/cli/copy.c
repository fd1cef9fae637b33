/* d7 copy: a file, or a part of it, as a new file. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "copy_whole.h"
#include "range.h"
#include "result.h"
#include "transfer_part.h"

typedef struct name_list {
    const char **names;
    size_t n;
} name_list;

typedef struct copy_options {
    const command *self;
    range_end from, to;
    name_list only, without;
    bool overwrite, skip_damaged, unframed, json;
} copy_options;

enum {
    OPTION_FROM = 256,
    OPTION_TO,
    OPTION_DATASET,
    OPTION_EXCLUDE,
    OPTION_OVERWRITE,
    OPTION_SKIP,
    OPTION_UNFRAMED,
    OPTION_JSON
};

static bool add_name(const copy_options *o, name_list *list, const char *name) {
    const char **more = realloc(list->names, (list->n + 1) * sizeof *more);
    if (!more) {
        command_fail(o->self, "out of memory");
        return false;
    }
    list->names = more;
    list->names[list->n++] = name;
    return true;
}

static bool copy_option(void *ctx, int option, const char *argument) {
    copy_options *o = ctx;
    switch (option) {
    case OPTION_FROM:
        return range_option(o->self, "--from", argument, &o->from);
    case OPTION_TO:
        return range_option(o->self, "--to", argument, &o->to);
    case OPTION_DATASET:
        return add_name(o, &o->only, argument);
    case OPTION_EXCLUDE:
        return add_name(o, &o->without, argument);
    default:
        o->overwrite |= option == OPTION_OVERWRITE;
        o->skip_damaged |= option == OPTION_SKIP;
        o->unframed |= option == OPTION_UNFRAMED;
        o->json |= option == OPTION_JSON;
        return true;
    }
}

/* ---- what is wanted ---- */

typedef struct copy_job {
    const copy_options *o;
    const char *path, *output;
    transfer_input in;
    bool *wanted; /* [in.n_datasets] */
    bool all;     /* every dataset is */
    transfer_cut cut;
    bool is_cut; /* the cut leaves something out */
    transfer_plan plan;
    transfer_part part;
    cli_progress bar;
    bool whole; /* copied byte for byte */
    uint64_t file_bytes;
} copy_job;

static int find_names(copy_job *job, const name_list *list, bool value) {
    for (size_t i = 0; i < list->n; i++) {
        uint32_t id;
        if (d7_reader_find_dataset(job->in.reader, list->names[i], &id) != 0)
            return command_fail(job->o->self, "%s: there is no dataset %s; d7 info shows which there are",
                                job->path, list->names[i]);
        job->wanted[id] = value;
    }
    return 0;
}

static int select_datasets(copy_job *job) {
    job->wanted = calloc(job->in.n_datasets + 1u, sizeof *job->wanted);
    if (!job->wanted)
        return command_fail(job->o->self, "out of memory");
    for (uint32_t i = 0; i < job->in.n_datasets; i++)
        job->wanted[i] = job->o->only.n == 0;
    int code = find_names(job, &job->o->only, true);
    if (code == 0)
        code = find_names(job, &job->o->without, false);
    bool some = false;
    job->all = true;
    for (uint32_t i = 0; i < job->in.n_datasets; i++) {
        some |= job->wanted[i];
        job->all &= job->wanted[i];
    }
    return code == 0 && !some && job->in.n_datasets
               ? command_fail(job->o->self, "%s: no dataset is left to copy", job->path)
               : code;
}

static bool wants(const copy_job *job, column_set set) {
    for (uint32_t i = 0; i < job->in.n_datasets; i++)
        if (job->wanted[i] && job->in.sets[i] == set)
            return true;
    return false;
}

/* ---- the range ---- */

static int resolve_set(copy_job *job, column_set set, d7_group group) {
    uint64_t from, to;
    const copy_options *o = job->o;
    int code = range_resolve_in(o->self, job->in.reader, job->path, group, &o->from, &o->to, &from, &to);
    if (code != 0)
        return code;
    bool to_end = !o->to.given || to >= input_rows(&job->in, set);
    if (!job->in.grouped)
        to_end = !o->to.given;
    job->cut.from[set] = from;
    job->cut.to[set] = to_end ? UINT64_MAX : to;
    job->is_cut |= from > 0 || !to_end;
    return 0;
}

/* A time is a millisecond; an item is in one, which has begun before it unless the item is its first. */
static int resolve_ms(copy_job *job) {
    uint64_t other, items = input_lengths(&job->in).ms;
    const copy_options *o = job->o;
    uint64_t *from = &job->cut.from[SET_MS], *to = &job->cut.to[SET_MS];
    int code = 0;
    if (job->cut.from[SET_PHOTONS] > 0 || o->from.is_time)
        code = input_ms_bounds(&job->in, job->cut.from[SET_PHOTONS], from, &other);
    if (code == 0 && job->cut.to[SET_PHOTONS] != UINT64_MAX)
        code = input_ms_bounds(&job->in, job->cut.to[SET_PHOTONS], &other, to);
    if (o->from.is_time && o->from.time_ps / 1000000000u < items)
        *from = o->from.time_ps / 1000000000u;
    if (o->to.is_time && o->to.time_ps / 1000000000u < items)
        *to = o->to.time_ps / 1000000000u;
    job->is_cut |= *from > 0 || *to < items;
    return code;
}

static bool ranged(const copy_options *o) {
    return o->from.given || o->to.given;
}

static int resolve_range(copy_job *job) {
    const copy_options *o = job->o;
    job->cut = cut_of_all();
    if (!ranged(o))
        return 0;
    int code = input_compare(&job->in); /* what tells where the range is must be right */
    if (code != 0)
        return code;
    bool photons = wants(job, SET_PHOTONS) || wants(job, SET_MS), tags = wants(job, SET_TAGS);
    if (photons && tags && ((o->from.given && !o->from.is_time) || (o->to.given && !o->to.is_time)))
        return command_fail(
            o->self,
            "%s: there are photons and tags, and %s counts only one of them: give times, or leave "
            "one out with --exclude",
            job->path, o->from.given && !o->from.is_time ? "--from" : "--to");
    if (photons || !job->in.grouped)
        code = resolve_set(job, SET_PHOTONS, job->in.grouped ? D7_GROUP_PHOTONS : D7_GROUP_NONE);
    if (code == 0 && tags)
        code = resolve_set(job, SET_TAGS, D7_GROUP_TAGS);
    if (code == 0 && job->in.ms != D7_NO_DATASET)
        code = resolve_ms(job);
    if (code == 0 && job->in.grouped && !photons && !tags)
        command_fail(
            o->self,
            "%s: the datasets that are copied are of no photons or tags: the range does not cut them",
            job->path);
    return code;
}

/* ---- copying ---- */

/* Everything of a closed file without damage. */
static int try_whole(copy_job *job) {
    d7_error err;
    d7_verify_summary summary;
    if (!job->all || job->is_cut || d7_reader_state(job->in.reader) != D7_STATE_CLOSED ||
        d7_reader_unframed(job->in.reader))
        return 0;
    cli_catch_stop();
    cli_progress_start(&job->bar, "checking", "B", 0);
    int rc = d7_reader_verify(job->in.reader, NULL, NULL, command_progress, &job->bar, &summary, &err);
    cli_progress_end(&job->bar, job->bar.total);
    if (rc == D7_ERR_CANCELLED)
        return command_stopped_code(job->o->self);
    if (rc != 0)
        return command_fail(job->o->self, "%s", err.text);
    job->whole = summary.damages == 0;
    if (job->whole && !ranged(job->o))
        command_tell_checksums(job->o->self, job->in.reader);
    return 0;
}

static int copy_bytes(copy_job *job) {
    result_file result;
    job->file_bytes = d7_reader_file_bytes(job->in.reader);
    int code = result_begin(job->o->self, job->output, job->o->overwrite, &result);
    if (code != 0)
        return code;
    cli_progress_start(&job->bar, "copying", "B", job->file_bytes);
    code = copy_whole(job->o->self, job->path, job->file_bytes, result.temporary, job->output, &job->bar);
    cli_progress_end(&job->bar, job->file_bytes);
    if (code == 0)
        return result_commit(&result);
    result_drop(&result);
    return code;
}

static void set_part(copy_job *job) {
    const transfer_cut *cut = &job->cut;
    job->part = (transfer_part){
        .self = job->o->self,
        .in = &job->in,
        .plan = &job->plan,
        .path = job->output,
        .overwrite = job->o->overwrite,
        .cut = *cut,
        .is_cut = job->is_cut && job->in.grouped,
        .bar = &job->bar,
        .place = {.has_photons = wants(job, SET_PHOTONS),
                  .has_ms = wants(job, SET_MS),
                  .has_tags = wants(job, SET_TAGS),
                  .photon = cut->from[SET_PHOTONS],
                  .ms = cut->from[SET_MS],
                  .tag = cut->from[SET_TAGS]},
    };
}

static int copy_items(copy_job *job) {
    if (job->in.n_datasets == 0)
        return command_fail(
            job->o->self,
            "%s: holds no datasets, and is not a closed file without damage, which is copied as it is",
            job->path);
    int code = ranged(job->o) ? 0 : input_compare(&job->in);
    if (code == 0)
        code = input_judge(&job->in, job->wanted, &job->cut);
    if (code == 0)
        code = plan_begin(&job->plan, &job->in, job->wanted);
    if (code != 0)
        return code;
    input_tell_trimmed(&job->in, job->wanted);
    set_part(job);
    cli_progress_start(&job->bar, "copying", "B", plan_cut(&job->plan, &job->in, &job->cut));
    code = part_make(&job->part);
    cli_progress_end(&job->bar, job->part.done_bytes);
    job->file_bytes = job->part.file_bytes;
    return code;
}

/* ---- telling ---- */

static void print_json(const copy_job *job) {
    d7_dataset_info info;
    const char *separator = "";
    set_lengths lengths = input_lengths(&job->in);
    printf("{\n  \"file\": ");
    cli_write_json_string(stdout, job->path);
    printf(",\n  \"output\": ");
    cli_write_json_string(stdout, job->output);
    printf(",\n  \"bytes\": %" PRIu64 ",\n  \"datasets\": [", job->file_bytes);
    for (uint32_t i = 0; i < job->in.n_datasets; i++) {
        if (!job->wanted[i] || d7_reader_dataset(job->in.reader, i, &info) != 0)
            continue;
        item_range range = cut_range(&job->in, &lengths, &job->cut, i);
        printf("%s\n    {\"name\": ", separator);
        cli_write_json_string(stdout, info.name);
        printf(", \"from\": %" PRIu64 ", \"to\": %" PRIu64 "}", range.from, range.to);
        separator = ",";
    }
    printf("\n  ],\n  \"left_out\": ");
    part_print_skipped(&job->part);
    d7_problem fault;
    printf(",\n  \"checksum_fault\": ");
    if (d7_reader_checksum_fault(job->in.reader, &fault) == 0)
        cli_write_json_string(stdout, fault.text);
    else
        printf("null");
    printf("\n}\n");
}

static int finish(copy_job *job) {
    part_tell_skipped(&job->part);
    if (job->o->json)
        print_json(job);
    bool lost = !job->whole && input_lost_end(&job->in, job->wanted, &job->cut);
    return job->part.n_skipped || lost ? CLI_PROBLEMS : CLI_OK;
}

/* ---- the command ---- */

static int copy_file(copy_job *job) {
    int code = select_datasets(job);
    if (code == 0)
        code = resolve_range(job);
    if (code == 0)
        code = try_whole(job);
    if (code == 0)
        code = job->whole ? copy_bytes(job) : copy_items(job);
    return code == 0 ? finish(job) : code;
}

static void job_clear(copy_job *job) {
    plan_free(&job->plan);
    part_free(&job->part);
    free(job->wanted);
    job->wanted = NULL;
    job->is_cut = false;
}

static int copy_open(const copy_options *o, const char *path, const char *output) {
    copy_job job = {.o = o, .path = path, .output = output};
    input_options io = {.unframed = o->unframed, .skip_damaged = o->skip_damaged, .pool = cli_pool_new(0)};
    int code = input_open(&job.in, o->self, path, &io);
    if (code == 0) {
        do {
            job_clear(&job);
            code = copy_file(&job);
        } while (code == MOVE_AGAIN && (code = input_count(&job.in)) == 0);
        job_clear(&job);
        input_close(&job.in);
    }
    cli_pool_free(io.pool);
    return code;
}

static int copy_run(const command *self, int argc, char **argv) {
    static const struct option options[] = {{"from", required_argument, NULL, OPTION_FROM},
                                            {"to", required_argument, NULL, OPTION_TO},
                                            {"dataset", required_argument, NULL, OPTION_DATASET},
                                            {"exclude", required_argument, NULL, OPTION_EXCLUDE},
                                            {"overwrite", no_argument, NULL, OPTION_OVERWRITE},
                                            {"skip-damaged", no_argument, NULL, OPTION_SKIP},
                                            {"unframed", no_argument, NULL, OPTION_UNFRAMED},
                                            {"json", no_argument, NULL, OPTION_JSON},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    copy_options o = {.self = self};
    int code = command_options(self, argc, argv, options, copy_option, &o, 2);
    if (code < 0)
        code = copy_open(&o, argv[optind], argv[optind + 1]);
    free(o.only.names);
    free(o.without.names);
    return code;
}

const command command_copy = {
    .name = "copy",
    .summary = "a file, or a part of it, as a new closed file",
    .help =
        "usage: d7 copy IN OUT [--from A] [--to B] [--dataset NAME]... [--exclude NAME]... [--skip-damaged]\n"
        "               [--overwrite] [--unframed] [--json]\n\n"
        "Copies a .photons file, also one that is being written or was cut short: the copy is closed. What "
        "belongs\n"
        "together is cut together: all columns of the photons (or tags), the milliseconds, gaps and markers, "
        "which\n"
        "count from the first photon of the copy. Everything of a closed file is copied byte for byte, after "
        "a check.\n\n" RANGE_HELP "  --dataset NAME   only this dataset; may be given again\n"
        "  --exclude NAME   all but this dataset; may be given again\n"
        "  --skip-damaged   leave out photons of which a page is damaged, in all columns, and say so (exit "
        "status 1);\n"
        "                   else damage ends the command and nothing is left\n"
        "  --overwrite      replace OUT if it is there\n"
        "  --unframed       read a file without begin and end bits, as one other program writes them\n"
        "  --json           say in one JSON object what was copied\n"
        "  --help           this text\n\n"
        "OUT gets its name when it is complete; until then, and when something goes wrong, there is none.\n"
        "Exit status: 0 good, 1 the data has problems, 2 usage, the file cannot be read, or OUT cannot be "
        "written.\n\n"
        "Examples:\n"
        "  d7 copy run.photons minute2.photons --from 1min --to 2min\n"
        "  d7 copy run.photons first.photons --to 1000000\n"
        "  d7 copy run.photons image.photons --dataset /photons/x --dataset /photons/y\n",
    .run = copy_run,
    .makes = true,
};

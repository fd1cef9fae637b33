/* d7 merge: parts of a recording as one file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "merge_parts.h"
#include "transfer_move.h"
#include "transfer_output.h"
#include "transfer_records.h"

typedef struct merge_options {
    const command *self;
    bool overwrite, force, partial, unframed, json;
} merge_options;

enum { OPTION_OVERWRITE = 256, OPTION_FORCE, OPTION_PARTIAL, OPTION_UNFRAMED, OPTION_JSON };

static bool merge_option(void *ctx, int option, const char *argument) {
    merge_options *o = ctx;
    (void)argument;
    o->overwrite |= option == OPTION_OVERWRITE;
    o->force |= option == OPTION_FORCE;
    o->partial |= option == OPTION_PARTIAL;
    o->unframed |= option == OPTION_UNFRAMED;
    o->json |= option == OPTION_JSON;
    return true;
}

typedef struct merge_job {
    const merge_options *o;
    const char *output;
    merge_parts parts;
    transfer_input head; /* the first part, open all the time: names and header are its */
    size_t n;            /* datasets */
    d7_dataset *datasets;
    uint32_t *ids;      /* [n] of the part in hand */
    item_range *ranges; /* [n] likewise */
    uint64_t *base;     /* [n] items of the parts before it */
    attribute_list attributes;
    attribute_list differing; /* keys whose values are not the same in all parts */
    cli_progress bar;
    uint64_t file_bytes;
} merge_job;

static int no_memory(const merge_job *job) {
    return command_fail(job->o->self, "out of memory");
}

/* ---- attributes ---- */

typedef struct base_map {
    const merge_job *job;
    const merge_part *part;
    const transfer_input *in;
} base_map;

/* How many items of the dataset that a record names come before the part. */
static uint64_t base_of_own(const base_map *map, const common_record *record) {
    char name[256];
    uint32_t id;
    if (!record->dataset || record->dataset_bytes >= sizeof name)
        return 0;
    snprintf(name, sizeof name, "%.*s", (int)record->dataset_bytes, record->dataset);
    if (d7_reader_find_dataset(map->in->reader, name, &id) != 0)
        return 0;
    for (size_t k = 0; k < map->job->n; k++)
        if (map->job->ids[k] == id)
            return map->job->base[k];
    return 0;
}

static bool map_to_base(void *ctx, d7_group group, const common_record *own, uint64_t item,
                        uint64_t *ret_item) {
    const base_map *map = ctx;
    *ret_item = item + (own ? base_of_own(map, own)
                            : map->part->base[group == D7_GROUP_TAGS ? SET_TAGS : SET_PHOTONS]);
    return true;
}

static void add_to_base(merge_job *job, const transfer_input *in) {
    set_lengths lengths = input_lengths(in);
    for (size_t k = 0; k < job->n; k++)
        job->base[k] += input_items(in, &lengths, job->ids[k]);
}

static void note_difference(void *ctx, const char *key) {
    merge_job *job = ctx;
    (void)attribute_put(&job->differing, NULL, key, "");
}

/* Without them the numbers of the parts mean different things. */
static bool must_agree(const char *key) {
    return *key == '/' || strcmp(key, "photond.run") == 0;
}

static int check_differences(const merge_job *job) {
    int code = 0;
    for (const attribute_node *node = job->differing.first; node; node = node->next) {
        bool refused = must_agree(node->key) && !job->o->force;
        command_fail(job->o->self, "attribute %s is not the same in all parts%s", node->key,
                     refused ? "; --force takes the first part's" : "; the first part's is taken");
        if (refused)
            code = CLI_USAGE;
    }
    return code;
}

static int add_attributes(merge_job *job, const merge_part *part) {
    transfer_input in;
    attribute_list list = {0};
    base_map map = {job, part, &in};
    int code = merge_open(&job->parts, part, job->datasets, job->n, &in, job->ids);
    if (code != 0)
        return code;
    code = input_attributes(&in, &list);
    if (code == 0 && (!input_map_records(&in, &list, map_to_base, &map) ||
                      !records_merge(&job->attributes, &list, note_difference, job)))
        code = no_memory(job);
    add_to_base(job, &in);
    attribute_free(&list);
    input_close(&in);
    return code;
}

static int merge_attributes(merge_job *job) {
    int code = input_attributes(&job->head, &job->attributes);
    add_to_base(job, &job->head);
    for (size_t i = 1; i < job->parts.n && code == 0; i++)
        code = add_attributes(job, &job->parts.parts[i]);
    if (code == 0)
        code = check_differences(job);
    const split_mark *last = &job->parts.parts[job->parts.n - 1].mark;
    return code == 0 && !records_end_cut(&job->attributes, last) ? no_memory(job) : code;
}

/* ---- items ---- */

static int move_part(merge_job *job, mover *m, size_t i) {
    const merge_part *part = &job->parts.parts[i];
    transfer_input in;
    transfer_cut cut = cut_of_all();
    cut.from[SET_MS] = part->repeated_ms;
    int code = merge_open(&job->parts, part, job->datasets, job->n, &in, job->ids);
    if (code != 0)
        return code;
    set_lengths lengths = input_lengths(&in);
    for (size_t k = 0; k < job->n; k++)
        job->ranges[k] = cut_range(&in, &lengths, &cut, job->ids[k]);
    move_source source = {.in = &in, .ids = job->ids, .ranges = job->ranges, .last = i + 1 == job->parts.n};
    code = mover_move(m, &source);
    free(source.skipped);
    input_close(&in);
    return code;
}

static uint32_t page_bytes(const merge_job *job) {
    return output_page_bytes(job->head.reader, job->datasets, job->n);
}

static int move_all(merge_job *job, d7_writer *w) {
    mover m;
    int code =
        mover_begin(&m, job->o->self, w, job->datasets, job->head.sets, job->n, page_bytes(job), &job->bar);
    if (code != 0)
        return code;
    for (size_t i = 0; i < job->parts.n && code == 0; i++)
        code = move_part(job, &m, i);
    mover_free(&m);
    return code;
}

static int write_output(merge_job *job) {
    transfer_output out;
    output_options o = {.path = job->output,
                        .overwrite = job->o->overwrite,
                        .like = job->head.reader,
                        .page_bytes = page_bytes(job),
                        .datasets = job->datasets,
                        .n_datasets = job->n,
                        .attributes = &job->attributes,
                        .executor = job->head.executor.ctx ? &job->head.executor : NULL};
    int code = output_begin(&out, job->o->self, &o);
    if (code != 0)
        return code;
    code = move_all(job, out.writer);
    if (code == 0)
        return output_end(&out, &job->file_bytes);
    output_drop(&out);
    return code;
}

/* ---- telling ---- */

static void print_json(const merge_job *job) {
    printf("{\n  \"output\": ");
    cli_write_json_string(stdout, job->output);
    printf(",\n  \"bytes\": %" PRIu64 ",\n  \"parts\": [", job->file_bytes);
    for (size_t i = 0; i < job->parts.n; i++) {
        const merge_part *p = &job->parts.parts[i];
        printf("%s\n    {\"file\": ", i ? "," : "");
        cli_write_json_string(stdout, p->path);
        if (job->head.grouped)
            printf(", \"photons\": %" PRIu64 ", \"tags\": %" PRIu64, p->rows[SET_PHOTONS], p->rows[SET_TAGS]);
        printf("}");
    }
    printf("\n  ],\n  \"attributes_that_differ\": [");
    for (const attribute_node *node = job->differing.first; node; node = node->next) {
        cli_write_json_string(stdout, node->key);
        fputs(node->next ? ", " : "", stdout);
    }
    printf("]\n}\n");
}

/* ---- the command ---- */

static int take_head(merge_job *job) {
    int code = input_open(&job->head, job->o->self, job->parts.parts[0].path, &job->parts.options);
    if (code != 0)
        return code;
    job->n = job->head.n_datasets;
    job->datasets = calloc(job->n + 1, sizeof *job->datasets);
    job->ids = calloc(job->n + 1, sizeof *job->ids);
    job->ranges = calloc(job->n + 1, sizeof *job->ranges);
    job->base = calloc(job->n + 1, sizeof *job->base);
    if (!job->datasets || !job->ids || !job->ranges || !job->base)
        return no_memory(job);
    if (job->n == 0)
        return command_fail(job->o->self, "%s: holds no datasets: nothing to merge", job->head.path);
    d7_dataset_info info;
    for (uint32_t i = 0; i < job->n && d7_reader_dataset(job->head.reader, i, &info) == 0; i++) {
        job->datasets[i] = (d7_dataset){.name = info.name, .type = info.type};
        job->ids[i] = i;
    }
    if (input_has(&job->head, SET_MS) && !input_has(&job->head, SET_PHOTONS) && job->parts.n > 1)
        return command_fail(job->o->self, "%s: there are milliseconds, but no photons that they count",
                            job->head.path);
    return 0;
}

static int merge_all(merge_job *job) {
    int code = merge_survey(&job->parts);
    if (code == 0)
        code = merge_order(&job->parts);
    if (code == 0)
        code = take_head(job);
    if (code == 0)
        code = merge_attributes(job);
    if (code != 0)
        return code;
    uint64_t bytes = 0;
    for (size_t i = 0; i < job->parts.n; i++)
        bytes += job->parts.parts[i].bytes;
    cli_progress_start(&job->bar, "merging", "B", bytes);
    code = write_output(job);
    cli_progress_end(&job->bar, bytes);
    if (code == 0 && job->o->json)
        print_json(job);
    return code;
}

static void job_clear(merge_job *job) {
    if (job->head.reader)
        input_close(&job->head);
    attribute_free(&job->attributes);
    attribute_free(&job->differing);
    free(job->datasets);
    free(job->ids);
    free(job->ranges);
    free(job->base);
    merge_free(&job->parts);
    job->datasets = NULL;
    job->ids = NULL;
    job->ranges = NULL;
    job->base = NULL;
}

static int merge_once(merge_job *job, char **paths) {
    job->parts.parts = calloc(job->parts.n, sizeof *job->parts.parts);
    if (!job->parts.parts)
        return no_memory(job);
    for (size_t i = 0; i < job->parts.n; i++) {
        job->parts.parts[i].path = paths[i];
        job->parts.parts[i].given = i;
    }
    int code = merge_all(job);
    job_clear(job);
    return code;
}

static int merge_files(const merge_options *o, const char *output, char **paths, size_t n) {
    merge_job job = {.o = o, .output = output};
    job.parts = (merge_parts){.self = o->self,
                              .n = n,
                              .options = {.unframed = o->unframed, .pool = cli_pool_new(0)},
                              .force = o->force,
                              .partial = o->partial};
    int code = merge_once(&job, paths);
    if (code == MOVE_AGAIN) {
        job.parts.options.count = true;
        code = merge_once(&job, paths);
    }
    if (code == MOVE_AGAIN)
        code = command_fail(o->self, "pages have unexpected lengths; d7 repair makes regular files");
    cli_pool_free(job.parts.options.pool);
    return code;
}

static int merge_run(const command *self, int argc, char **argv) {
    static const struct option options[] = {{"overwrite", no_argument, NULL, OPTION_OVERWRITE},
                                            {"force", no_argument, NULL, OPTION_FORCE},
                                            {"partial", no_argument, NULL, OPTION_PARTIAL},
                                            {"unframed", no_argument, NULL, OPTION_UNFRAMED},
                                            {"json", no_argument, NULL, OPTION_JSON},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    merge_options o = {.self = self};
    int code = command_options(self, argc, argv, options, merge_option, &o, -2);
    return code >= 0 ? code : merge_files(&o, argv[optind], argv + optind + 1, (size_t)(argc - optind - 1));
}

const command command_merge = {
    .name = "merge",
    .summary = "parts of a recording as one file",
    .help =
        "usage: d7 merge OUT PART... [--partial] [--force] [--overwrite] [--unframed] [--json]\n\n"
        "Puts .photons files together, one after the other: the parts that d7 split made, or those that "
        "a recorder rolled\n"
        "over to. Milliseconds, gaps and markers count from the first photon of all. Parts that tell "
        "their place\n"
        "(photond.part, photond.first_photon) are put in that order, and none may be missing; others "
        "come as given.\n"
        "What d7 split took apart becomes what it was. Its parts also tell which is the first and which the "
        "last; those that\n"
        "a recorder made do not tell which is the last.\n\n"
        "  --partial     parts of a split may be missing before and after those given\n"
        "  --force       merge also what does not follow each other, or is of different recordings or "
        "instruments, in the\n"
        "                order given\n"
        "  --overwrite   replace OUT if it is there\n"
        "  --unframed    read files without begin and end bits, as one other program writes them\n"
        "  --json        say in one JSON object what was merged\n"
        "  --help        this text\n\n"
        "Attributes are the first part's, in its order; those of later parts that it lacks are added, "
        "those that differ are\n"
        "named. OUT gets its name when it is complete; until then, and when something goes wrong, there "
        "is none.\n"
        "Exit status: 0 good, 1 the data has problems, 2 usage, a part cannot be read or does not fit, "
        "or OUT cannot be\n"
        "written.\n\n"
        "Examples:\n"
        "  d7 merge whole.photons run.photons run.*.photons\n",
    .run = merge_run,
    .makes = true,
};

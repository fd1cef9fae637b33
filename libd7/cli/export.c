/* d7 export: a .photons file, or a part of it, for other programs. */
#include "export.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"
#include "result.h"

enum {
    OPTION_FORMAT = 256,
    OPTION_FROM,
    OPTION_TO,
    OPTION_DATASET,
    OPTION_COMPRESS,
    OPTION_OVERWRITE,
    OPTION_UNFRAMED,
    TRIES = 5
};

typedef struct export_format {
    const char *name, *ending;
    int (*write)(export_job *job);
    bool to_stream, compresses;
} export_format;

static const export_format formats[] = {
    {"npz", ".npz", export_npz, false, true},
    {"csv", ".csv", export_csv, true, false},
    {"photon-hdf5", ".hdf5", export_photon_hdf5, false, true},
    {"photon-hdf5", ".h5", export_photon_hdf5, false, true},
};

enum { N_FORMATS = sizeof formats / sizeof *formats };

typedef struct export_options {
    const command *self;
    const char *output;
    const export_format *format; /* NULL: by the name's end */
    range_end from, to;
    const char **names; /* [n_names] */
    size_t n_names;
    int level;
    bool overwrite, unframed;
} export_options;

static const export_format *find_format(const char *name, const char *output) {
    for (size_t i = 0; i < N_FORMATS; i++) {
        size_t n = output ? strlen(output) : 0, ending = strlen(formats[i].ending);
        if (name ? strcmp(name, formats[i].name) == 0
                 : n > ending && strcmp(output + n - ending, formats[i].ending) == 0)
            return &formats[i];
    }
    return NULL;
}

static bool add_name(export_options *o, const char *name) {
    const char **names = realloc(o->names, (o->n_names + 1) * sizeof *names);
    if (!names) {
        command_fail(o->self, "out of memory");
        return false;
    }
    o->names = names;
    names[o->n_names++] = name;
    return true;
}

static bool export_option(void *ctx, int option, const char *argument) {
    export_options *o = ctx;
    uint64_t level;
    switch (option) {
    case 'o':
        o->output = argument;
        return true;
    case OPTION_OVERWRITE:
        o->overwrite = true;
        return true;
    case OPTION_UNFRAMED:
        o->unframed = true;
        return true;
    case OPTION_FROM:
        return range_option(o->self, "--from", argument, &o->from);
    case OPTION_TO:
        return range_option(o->self, "--to", argument, &o->to);
    case OPTION_DATASET:
        return add_name(o, argument);
    case OPTION_COMPRESS:
        if (!parse_count(argument, &level) || level > 9) {
            command_fail(o->self, "--compress takes a level from 0 to 9, not %s", argument);
            return false;
        }
        o->level = (int)level;
        return true;
    default:
        o->format = find_format(argument, NULL);
        if (!o->format)
            command_fail(o->self, "--format is npz, csv or photon-hdf5, not %s", argument);
        return o->format != NULL;
    }
}

/* ---- what is asked for ---- */

static int check_options(export_options *o) {
    if (!o->output)
        return command_fail(o->self, "where to? give -o OUT");
    bool standard = strcmp(o->output, "-") == 0;
    if (!o->format)
        o->format = standard ? find_format("csv", NULL) : find_format(NULL, o->output);
    if (!o->format)
        return command_fail(o->self, "%s: the name does not end in .npz, .csv, .hdf5 or .h5: give --format",
                            o->output);
    if (standard && !o->format->to_stream)
        return command_fail(o->self, "%s cannot be written to standard output: give -o FILE",
                            o->format->name);
    if (o->level && !o->format->compresses)
        return command_fail(o->self, "--compress has no meaning for %s", o->format->name);
    if (o->format->write == export_photon_hdf5 && !export_has_hdf5())
        return command_fail(o->self, "this d7 was built without libhdf5: npz and csv are what it can write");
    return 0;
}

static bool is_named(const export_options *o, const char *name) {
    for (size_t i = 0; i < o->n_names; i++)
        if (strcmp(o->names[i], name) == 0)
            return true;
    return false;
}

/* What Photon-HDF5 has fields for goes there whatever else is chosen. */
static int add_needed(export_options *o, const d7_reader *r) {
    d7_dataset_info info;
    if (o->n_names == 0 || o->format->write != export_photon_hdf5)
        return 0;
    for (uint32_t i = 0; d7_reader_dataset(r, i, &info) == 0; i++) {
        d7_role role = d7_role_of(info.name);
        bool needed = role >= D7_ROLE_MICRO_TIME || strcmp(info.name, "/photons/channel") == 0;
        if (needed && role != D7_ROLE_STOP && !is_named(o, info.name) && !add_name(o, info.name))
            return CLI_USAGE;
    }
    return 0;
}

static int open_file(export_job *job, bool unframed) {
    job->pool = cli_pool_new(0);
    return command_open(job->self, job->path, unframed, job->pool, &job->reader);
}

static int plan(export_job *job, const export_options *o) {
    export_range range = {0, UINT64_MAX, 0};
    job->all_rows = !o->from.given && !o->to.given;
    job->ranged = range_group(job->reader);
    if (!job->all_rows) {
        int code = range_resolve(job->self, job->reader, job->path, &o->from, &o->to, &range.from, &range.to);
        if (code != 0)
            return code;
    }
    job->range = range;
    job->chosen = o->n_names > 0;
    return export_plan(job, o->names, o->n_names);
}

static int check_together(const export_job *job) {
    bool several = false, ms = false;
    for (size_t i = 0; i < job->n_sets; i++) {
        several |= job->sets[i].n > 1;
        ms |= job->sets[i].columns[0].role == D7_ROLE_MS;
    }
    several |= ms && job->n_sets > 1;
    return several || !job->all_rows ? command_together(job->self, job->path, job->reader) : 0;
}

/* ---- how it went ---- */

static bool concerns(const export_job *job, uint32_t dataset_id) {
    return dataset_id >= d7_reader_n_datasets(job->reader) ? dataset_id == D7_NO_DATASET
                                                           : job->goes_out[dataset_id];
}

/* Of columns of unequal length the shortest counts. */
static void say_ragged(const export_job *job, const export_set *set) {
    d7_dataset_info info;
    uint64_t longest = 0, shortest = UINT64_MAX;
    const char *long_name = "", *short_name = "";
    for (size_t i = 0; i < set->n; i++) {
        if (d7_reader_dataset(job->reader, set->columns[i].dataset_id, &info) != 0)
            continue;
        if (info.items > longest) {
            longest = info.items;
            long_name = info.name;
        }
        if (info.items < shortest) {
            shortest = info.items;
            short_name = info.name;
        }
    }
    if (shortest < longest && job->range.to >= shortest)
        command_fail(job->self,
                     "%s: items %" PRIu64 " to %" PRIu64
                     " of %s have none beside them in %s and were left out",
                     job->path, shortest, longest - 1, long_name, short_name);
}

static int judge(const export_job *job) {
    int code = CLI_OK;
    d7_problem problem;
    for (size_t i = 0; d7_reader_problem(job->reader, i, &problem) == 0; i++)
        if (concerns(job, problem.dataset_id)) {
            print_problem(stderr, job->path, &problem, job->reader);
            if (problem.severity == D7_DAMAGE)
                code = CLI_PROBLEMS;
        }
    for (size_t s = 0; s < job->n_sets; s++)
        say_ragged(job, &job->sets[s]);
    for (size_t s = 0; s < job->n_sets; s++)
        if (job->sets[s].left_out) {
            command_fail(job->self, "%s: %" PRIu64 " items of %s%s were left out", job->path,
                         job->sets[s].left_out, job->sets[s].columns[0].name,
                         job->sets[s].n > 1 ? " and the columns beside it" : "");
            code = CLI_PROBLEMS;
        }
    return code;
}

static int write_format(export_job *job, const export_options *o) {
    int code = EXPORT_AGAIN;
    cli_progress_start(&job->bar, "exporting", " values", export_values(job));
    if (!job->temporary && isatty(STDOUT_FILENO))
        job->bar.terminal = false;
    for (int i = 0; i < TRIES && code == EXPORT_AGAIN; i++) {
        job->done = 0;
        code = o->format->write(job);
    }
    cli_progress_end(&job->bar, job->done);
    return code == EXPORT_AGAIN ? command_fail(job->self, "%s: the file changes while it is read", job->path)
                                : code;
}

static int export_to(export_job *job, const export_options *o) {
    result_file result = {0};
    int code = 0;
    job->final = o->output;
    job->level = o->level;
    if (strcmp(o->output, "-") == 0)
        cli_catch_stop();
    else
        code = result_begin(job->self, o->output, o->overwrite, &result);
    job->temporary = result.temporary;
    if (code == 0)
        code = write_format(job, o);
    if (code != 0)
        result_drop(&result);
    else if (result.temporary)
        code = result_commit(&result);
    return code == 0 ? judge(job) : code;
}

static int export_run(const command *self, int argc, char **argv) {
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"format", required_argument, NULL, OPTION_FORMAT},
                                            {"from", required_argument, NULL, OPTION_FROM},
                                            {"to", required_argument, NULL, OPTION_TO},
                                            {"dataset", required_argument, NULL, OPTION_DATASET},
                                            {"compress", required_argument, NULL, OPTION_COMPRESS},
                                            {"overwrite", no_argument, NULL, OPTION_OVERWRITE},
                                            {"unframed", no_argument, NULL, OPTION_UNFRAMED},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    export_options o = {.self = self};
    export_job job = {.self = self};
    int code = command_options(self, argc, argv, options, export_option, &o, 1);
    if (code < 0) {
        job.path = argv[optind];
        code = check_options(&o);
        if (code == 0)
            code = open_file(&job, o.unframed);
        if (code == 0)
            code = command_compare(self, job.reader);
        if (code == 0)
            code = add_needed(&o, job.reader);
        if (code == 0)
            code = plan(&job, &o);
        if (code == 0)
            code = check_together(&job);
        if (code == 0)
            code = export_to(&job, &o);
        export_release(&job);
        d7_reader_free(job.reader);
        cli_pool_free(job.pool);
    }
    free(o.names);
    return code;
}

const command command_export = {
    .name = "export",
    .summary = "a file for NumPy, as CSV, or as Photon-HDF5",
    .help =
        "usage: d7 export FILE -o OUT [--format npz|csv|photon-hdf5] [--from A] [--to B] [--dataset "
        "NAME]...\n"
        "                 [--compress LEVEL] [--overwrite] [--unframed]\n\n"
        "Writes datasets and attributes for other programs. What a damaged page of one column held is left "
        "out "
        "of the\n"
        "columns beside it too, and named on standard error.\n\n"
        "  -o, --output OUT  where to; the name's end chooses the format; - is standard output (csv only)\n"
        "  --format F        npz: for numpy.load; csv: columns of the photons, or tags, side by side;\n"
        "                    photon-hdf5: Photon-HDF5 0.5\n" RANGE_HELP
        "  --dataset NAME    only this dataset; may be repeated\n"
        "  --compress LEVEL  of npz and photon-hdf5, from 1, fast, to 9, small; default 0: not at all\n"
        "  --overwrite       replace OUT if it is there\n"
        "  --unframed        also read a file whose blocks have no begin and end bits\n"
        "  --help            this text\n\n"
        "Exit status: 0 good, 1 the data has problems (what can be read was exported), 2 usage, or nothing "
        "could\n"
        "be exported.\n\n"
        "Examples:\n"
        "  d7 export run.photons -o run.npz\n"
        "  d7 export run.photons -o - --dataset /photons/x --dataset /photons/y --from 10s --to 11s\n"
        "  d7 export run.photons -o run.hdf5 --compress 4\n",
    .run = export_run,
    .letters = "o:",
    .makes = true,
};

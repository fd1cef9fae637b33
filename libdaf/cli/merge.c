/* daf merge: several repositories in one. What lies on joined axes is put together by merge_join.c; everything else is
 * copied, input after input. */
#include "merge.h"

#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "result.h"

enum { OPTION_OVERWRITE = 256, OPTION_JOIN };

typedef struct job {
    const result *result;
    merging m;
    const char **joins; /* names of axes */
    size_t n_joins;
    size_t n_paths; /* of inputs */
    cli_progress bar;
    uint64_t done_bytes, before_bytes; /* of the inputs before the present one */
} job;

static bool take(void *context, int option, const char *argument) {
    job *j = context;
    j->m.overwrite |= option == OPTION_OVERWRITE;
    if (option == OPTION_JOIN)
        j->joins[j->n_joins++] = argument;
    return true;
}

/* ---- what is copied */

static bool is_copied(void *context, const daf_item *item) {
    const job *j = context;
    if (item->kind == DAF_KIND_AXIS)
        return !find_joined(&j->m, item->name);
    return !(item->axis && find_joined(&j->m, item->axis)) &&
           !(item->columns && find_joined(&j->m, item->columns));
}

static bool show_progress(void *context, uint64_t done_bytes) {
    job *j = context;
    j->done_bytes = j->before_bytes + done_bytes;
    cli_progress_update(&j->bar, j->done_bytes);
    return cli_stopped;
}

static int copy_input(job *j, size_t i) {
    daf_copy_options options;
    daf_error err;
    daf_copy_options_init(&options);
    options.overwrite = j->m.overwrite;
    options.wanted = is_copied;
    options.progress = show_progress;
    options.context = j;
    int rc = daf_copy(j->m.to, j->m.inputs[i], &options, &err);
    j->before_bytes = j->done_bytes;
    if (rc == DAF_ERR_CANCELLED)
        return cli_stopped_code(j->m.self);
    if (rc == 0)
        return CLI_OK;
    result_show_name(j->result, &err);
    int code = command_fail(j->m.self, &err);
    if (rc == DAF_ERR_EXISTS)
        cli_fail(j->m.self, "%s: has other values than an input before it; --overwrite takes the last ones",
                 j->m.paths[i]);
    else if (rc == DAF_ERR_VALUE)
        cli_fail(j->m.self, "%s: axes must agree, or be joined (--join AXIS)", j->m.paths[i]);
    return code;
}

/* ---- what is joined */

static bool is_first(const merging *m, size_t input, const char *rows, const char *columns,
                     const char *name) {
    for (size_t i = 0; i < input; i++) {
        bool there = false;
        int rc = columns ? daf_has_matrix(m->inputs[i], &there, rows, columns, name, NULL)
                         : daf_has_vector(m->inputs[i], &there, rows, name, NULL);
        if (rc == 0 && there)
            return false;
    }
    return true;
}

/* Each property once, when the first input that has it comes. */
static int join_listed(const merging *m, size_t input, const char *rows, const char *columns) {
    daf_names names = {0};
    daf_error err;
    int rc = columns ? daf_list_matrices(m->inputs[input], &names, rows, columns, &err)
                     : daf_list_vectors(m->inputs[input], &names, rows, &err);
    int code = rc ? command_fail(m->self, &err) : CLI_OK;
    for (size_t i = 0; i < names.n && code == CLI_OK; i++) {
        if (cli_stopped)
            code = cli_stopped_code(m->self);
        else if (is_first(m, input, rows, columns, names.names[i]))
            code = join_property(m, rows, columns, names.names[i]);
    }
    daf_names_clear(&names);
    return code;
}

static int join_input(const merging *m, size_t input) {
    daf_names axes;
    daf_error err;
    if (daf_list_axes(m->inputs[input], &axes, &err) != 0)
        return command_fail(m->self, &err);
    int code = CLI_OK;
    for (size_t i = 0; i < axes.n && code == CLI_OK; i++) {
        bool joined = find_joined(m, axes.names[i]) != NULL;
        if (joined)
            code = join_listed(m, input, axes.names[i], NULL);
        for (size_t k = 0; k < axes.n && code == CLI_OK; k++)
            if (joined || find_joined(m, axes.names[k]))
                code = join_listed(m, input, axes.names[i], axes.names[k]);
    }
    daf_names_clear(&axes);
    return code;
}

/* ---- all */

static int merge(job *j) {
    int code = join_axes(&j->m);
    for (size_t i = 0; i < j->m.n_inputs && code == CLI_OK; i++)
        code = copy_input(j, i);
    for (size_t i = 0; i < j->m.n_inputs && code == CLI_OK; i++)
        code = join_input(&j->m, i);
    return code;
}

static int open_inputs(void *context, cli_pool *pool) {
    job *j = context;
    int code = CLI_OK;
    for (size_t i = 0; i < j->n_paths && code == CLI_OK; i++) {
        code = command_open(j->m.self, &j->m.inputs[i], j->m.paths[i], "r", pool);
        j->m.n_inputs += code == CLI_OK;
    }
    return code;
}

static int merge_opened(job *j, result *r) {
    j->m.to = r->d;
    j->result = r;
    cli_progress_start(&j->bar, "merging", "B", 0);
    int code = merge(j);
    cli_progress_end(&j->bar, j->done_bytes);
    return code;
}

static int merge_to(job *j, const char *to, cli_pool *pool) {
    result r;
    if (result_kind_of(to) == RESULT_ZARR)
        return cli_fail(j->m.self, "%s: merge to a directory or an archive, and copy that", to);
    int code = result_begin_from(&r, j->m.self, to, j->m.overwrite, pool, open_inputs, j);
    return code ? code : result_end(&r, merge_opened(j, &r));
}

static int run_job(job *j, int argc, char **argv) {
    size_t n = (size_t)(argc - optind - 1);
    cli_pool *pool = cli_pool_new(0);
    j->m.inputs = calloc(n, sizeof *j->m.inputs);
    j->m.paths = calloc(n, sizeof *j->m.paths);
    j->m.axes = calloc(j->n_joins + 1, sizeof *j->m.axes);
    int code = j->m.inputs && j->m.paths && j->m.axes ? CLI_OK : cli_fail(j->m.self, "out of memory");
    for (size_t i = 0; i < j->n_joins && j->m.axes; i++)
        if (!find_joined(&j->m, j->joins[i]))
            j->m.axes[j->m.n_axes++].name = j->joins[i];
    for (; j->n_paths < n && code == CLI_OK; j->n_paths++)
        j->m.paths[j->n_paths] = argv[optind + 1 + (int)j->n_paths];
    if (code == CLI_OK)
        code = merge_to(j, argv[optind], pool);
    free_joined(&j->m);
    for (size_t i = 0; i < j->m.n_inputs; i++)
        daf_free(j->m.inputs[i]);
    free(j->m.inputs);
    free(j->m.paths);
    free(j->m.axes);
    cli_pool_free(pool);
    return code;
}

static int run(const cli_command *self, int argc, char **argv) {
    static const struct option options[] = {{"overwrite", no_argument, NULL, OPTION_OVERWRITE},
                                            {"join", required_argument, NULL, OPTION_JOIN},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    job j = {.m = {.self = self}};
    j.joins = calloc((size_t)argc, sizeof *j.joins);
    if (!j.joins)
        return cli_fail(self, "out of memory");
    int code = cli_options(self, argc, argv, options, take, &j, 2, argc);
    if (code < 0)
        code = run_job(&j, argc, argv);
    free(j.joins);
    return code;
}

const cli_command command_merge = {
    .name = "merge",
    .summary = "makes one repository of several",
    .help = "Usage: daf merge TO FROM... [--join AXIS]... [--overwrite]\n"
            "Makes a repository that holds what all of FROM hold. An axis of several must have the same "
            "entries in all, or be\n"
            "joined. A property of several must be the same in all.\n\n"
            "A joined axis gets the entries of all inputs, in the order in which they first appear. A vector "
            "or matrix on it is\n"
            "put together from the values that the inputs have for their entries; where none has a value it "
            "is 0, false or \"\".\n"
            "Where several have one that is a conflict. Types must agree; it becomes sparse when all are.\n\n"
            "  --join AXIS   join this axis; may be given for several\n"
            "  --overwrite   replace TO if it is there (never a group), and of conflicts take the value of "
            "the last input\n"
            "  --help        this text\n\n"
            "TO is written under a hidden name beside, and gets its own when it is whole.\n\n"
            "Examples:\n"
            "  daf merge all.daf counts.daf.zip images.daf\n"
            "  daf merge all.daf day1.daf day2.daf --join sample\n",
    .run = run};

/* daf reorder: the entries of an axis in another order, with all that lies on it. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "name_index.h"

enum { OPTION_BY = 256, OPTION_INDICES, OPTION_REVERSE };

typedef struct job {
    const cli_command *self;
    const char *path, *axis, *by;
    bool indices, reverse;
    input in; /* the file of the order */
    daf_array *entries;
    uint64_t n, *order;
} job;

static bool take(void *context, int option, const char *argument) {
    job *j = context;
    j->indices |= option == OPTION_INDICES;
    j->reverse |= option == OPTION_REVERSE;
    if (option == OPTION_BY)
        j->by = argument;
    return true;
}

/* ---- by a vector */

typedef struct key {
    const daf_array *values;
    uint64_t index;
} key;

static int compare_doubles(double x, double y) {
    return (x > y) - (x < y);
}

static bool is_nan(const key *k) {
    const void *v = daf_array_values(k->values);
    if (daf_array_type(k->values) == DAF_FLOAT32)
        return isnan(((const float *)v)[k->index]);
    return daf_array_type(k->values) == DAF_FLOAT64 && isnan(((const double *)v)[k->index]);
}

#define COMPARE(type)                                                                                        \
    return (((const type *)v)[a->index] > ((const type *)v)[b->index]) -                                     \
           (((const type *)v)[a->index] < ((const type *)v)[b->index])

static int compare_values(const key *a, const key *b) {
    const void *v = daf_array_values(a->values);
    switch (daf_array_type(a->values)) {
    case DAF_STRING:
        return strcmp(daf_array_strings(a->values)[a->index], daf_array_strings(b->values)[b->index]);
    case DAF_BOOL:
    case DAF_UINT8:
        COMPARE(uint8_t);
    case DAF_UINT16:
        COMPARE(uint16_t);
    case DAF_UINT32:
        COMPARE(uint32_t);
    case DAF_UINT64:
        COMPARE(uint64_t);
    case DAF_INT8:
        COMPARE(int8_t);
    case DAF_INT16:
        COMPARE(int16_t);
    case DAF_INT32:
        COMPARE(int32_t);
    case DAF_INT64:
        COMPARE(int64_t);
    case DAF_FLOAT32:
        return compare_doubles((double)((const float *)v)[a->index], (double)((const float *)v)[b->index]);
    default:
        return compare_doubles(((const double *)v)[a->index], ((const double *)v)[b->index]);
    }
}

/* NaN last, equal ones in the order in which they were. */
static int compare_keys(const key *x, const key *y, int order) {
    int x_nan = is_nan(x), y_nan = is_nan(y);
    if (x_nan || y_nan)
        order = x_nan - y_nan;
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int compare_up(const void *a, const void *b) {
    return compare_keys(a, b, compare_values(a, b));
}

static int compare_down(const void *a, const void *b) {
    return compare_keys(a, b, compare_values(b, a));
}

static int order_by_values(job *j, const daf_array *values) {
    key *keys = malloc((size_t)(j->n + 1) * sizeof *keys);
    if (!keys)
        return cli_fail(j->self, "out of memory");
    for (uint64_t i = 0; i < j->n; i++)
        keys[i] = (key){values, i};
    qsort(keys, (size_t)j->n, sizeof *keys, j->reverse ? compare_down : compare_up);
    for (uint64_t i = 0; i < j->n; i++)
        j->order[i] = keys[i].index;
    free(keys);
    return CLI_OK;
}

static int order_by_vector(job *j, daf *d) {
    daf_error err;
    daf_array *values;
    if (strcmp(j->by, j->axis) == 0)
        return order_by_values(j, j->entries);
    if (daf_get_vector(d, &values, j->axis, j->by, &err) != 0)
        return command_fail(j->self, &err);
    int code = order_by_values(j, values);
    daf_array_free(values);
    return code;
}

/* ---- by a list */

static int order_by_names(job *j) {
    name_index *x = name_index_new(j->entries);
    int code = x ? CLI_OK : cli_fail(j->self, "out of memory");
    for (uint64_t i = 0; i < j->n && code == CLI_OK; i++) {
        j->order[i] = name_index_find(x, j->in.texts[i]);
        if (j->order[i] == NO_INDEX)
            code = cli_fail(j->self, "line %" PRIu64 ", \"%.100s\", is no entry of axis \"%s\"", i + 1,
                            j->in.texts[i], j->axis);
    }
    name_index_free(x);
    return code;
}

static int order_by_indices(job *j) {
    for (uint64_t i = 0; i < j->n; i++) {
        uint64_t index;
        if (parse_number(&index, DAF_UINT64, j->in.texts[i]) != 0 || index >= j->n)
            return cli_fail(j->self, "line %" PRIu64 ", \"%.60s\", is no index from 0 to %" PRIu64, i + 1,
                            j->in.texts[i], j->n - 1);
        j->order[i] = index;
    }
    return CLI_OK;
}

/* Each entry once. */
static int check_order(job *j) {
    uint8_t *seen = calloc((size_t)j->n + 1, 1);
    int code = seen ? CLI_OK : cli_fail(j->self, "out of memory");
    for (uint64_t i = 0; i < j->n && code == CLI_OK; i++) {
        if (seen[j->order[i]]++)
            code = cli_fail(j->self, "line %" PRIu64 ": entry \"%.100s\" was given before", i + 1,
                            daf_array_strings(j->entries)[j->order[i]]);
    }
    free(seen);
    return code;
}

static int order_by_list(job *j) {
    if (j->in.n != j->n)
        return cli_fail(j->self, "%" PRIu64 " lines, but axis \"%s\" has %" PRIu64 " entries", j->in.n,
                        j->axis, j->n);
    int code = j->indices ? order_by_indices(j) : order_by_names(j);
    return code == CLI_OK ? check_order(j) : code;
}

/* ---- all */

static int reorder(job *j, daf *d) {
    daf_error err;
    if (daf_get_axis(d, &j->entries, j->axis, &err) != 0)
        return command_fail(j->self, &err);
    j->n = daf_array_count(j->entries);
    j->order = malloc((size_t)(j->n + 1) * sizeof *j->order);
    int code = j->order ? CLI_OK : cli_fail(j->self, "out of memory");
    if (code == CLI_OK)
        code = j->by ? order_by_vector(j, d) : order_by_list(j);
    if (code == CLI_OK && daf_reorder_axis(d, j->axis, j->order, j->n, &err) != 0)
        code = command_fail(j->self, &err);
    daf_array_free(j->entries);
    free(j->order);
    return code;
}

static int run(const cli_command *self, int argc, char **argv) {
    static const struct option options[] = {{"by", required_argument, NULL, OPTION_BY},
                                            {"indices", no_argument, NULL, OPTION_INDICES},
                                            {"reverse", no_argument, NULL, OPTION_REVERSE},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    job j = {.self = self, .in = {.path = "-", .form = FORMAT_TEXT, .type = DAF_STRING, .rank = 1}};
    daf *d;
    int code = cli_options(self, argc, argv, options, take, &j, 2, 3);
    if (code >= 0)
        return code;
    j.path = argv[optind];
    j.axis = argv[optind + 1];
    if (argc - optind == 3)
        j.in.path = argv[optind + 2];
    if (j.by && (argc - optind == 3 || j.indices))
        return cli_misused(self, "--by goes without a file and --indices");
    if (j.reverse && !j.by)
        return cli_misused(self, "--reverse goes with --by");
    j.in.self = self;
    if (!j.by && input_read(&j.in) != 0) {
        input_free(&j.in);
        return CLI_USAGE;
    }
    cli_pool *pool = cli_pool_new(0);
    code = command_open(self, &d, j.path, "r+", pool);
    if (code == CLI_OK)
        code = command_close(self, d, reorder(&j, d));
    cli_pool_free(pool);
    input_free(&j.in);
    return code;
}

const cli_command command_reorder = {
    .name = "reorder",
    .summary = "brings the entries of an axis into another order",
    .help = "Usage: daf reorder PATH AXIS [FILE] [--indices]\n"
            "       daf reorder PATH AXIS --by VECTOR [--reverse]\n"
            "Brings the entries of an axis into the order of FILE (or of standard input), which holds every "
            "entry once, one a\n"
            "line; all vectors and matrices on the axis follow. All is changed, or nothing: what an "
            "interrupted reorder has\n"
            "left is undone by the next command that writes. Archives cannot be reordered.\n\n"
            "  --indices     FILE holds, in place of entries, their indices from 0\n"
            "  --by VECTOR   in the order of a vector's values (AXIS itself: of the entries); equal ones "
            "keep theirs, NaN\n"
            "                come last\n"
            "  --reverse     from the largest down\n"
            "  --help        this text\n\n"
            "Examples:\n"
            "  daf get run.daf axis sample | sort -V | daf reorder run.daf sample\n"
            "  daf reorder run.daf y_pixel --by counts --reverse\n",
    .run = run};

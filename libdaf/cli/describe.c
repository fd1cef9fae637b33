/* daf describe: what a repository holds. One walk over it fills a report, which is then printed in either form. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

static const char usage[] =
    "Usage: daf describe PATH [--json]\n"
    "Lists scalars, axes, vectors and matrices: type, form and sizes.\n\n"
    "  --json   one JSON object\n"
    "  --help   this text\n\n"
    "A property that cannot be read is listed as a problem, and the exit code is 1.\n\n"
    "Examples:\n"
    "  daf describe run.daf\n"
    "  daf describe run.daf --json | jq '.vectors.dt_bin'\n";

/* One line of the report; which names count depends on the kind. */
typedef struct row {
    target_kind kind;
    char *axis, *columns, *name;
    char *problem;     /* why it cannot be read; NULL: it can */
    daf_scalar scalar; /* of a scalar */
    uint64_t length;   /* of an axis */
    daf_info info;     /* of a vector or matrix */
} row;

typedef struct report {
    daf *d;
    row *rows;
    size_t n, capacity;
    bool failed; /* out of memory, or a list could not be had: `err` says */
    daf_error err;
} report;

/* ---- gathering */

static char *copy_of(const char *text) {
    return text ? strdup(text) : NULL;
}

static row *add_row(report *r, target_kind kind, const char *axis, const char *columns, const char *name) {
    if (r->n == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 32;
        row *rows = realloc(r->rows, capacity * sizeof *rows);
        if (!rows) {
            r->failed = true;
            snprintf(r->err.text, sizeof r->err.text, "out of memory");
            return NULL;
        }
        r->rows = rows;
        r->capacity = capacity;
    }
    row *new = &r->rows[r->n++];
    *new = (row){.kind = kind, .axis = copy_of(axis), .columns = copy_of(columns), .name = copy_of(name)};
    return new;
}

static void mark_broken(row *new, int rc, const daf_error *err) {
    if (rc)
        new->problem = copy_of(err->text);
}

static void gather_scalar(report *r, const char *name) {
    daf_error err;
    row *new = add_row(r, TARGET_SCALAR, NULL, NULL, name);
    if (new)
        mark_broken(new, daf_get_scalar(r->d, &new->scalar, name, &err), &err);
}

static void gather_axis(report *r, const char *name) {
    daf_error err;
    daf_array *entries = NULL;
    row *new = add_row(r, TARGET_AXIS, NULL, NULL, name);
    if (!new)
        return;
    mark_broken(new, daf_get_axis(r->d, &entries, name, &err), &err);
    if (entries)
        new->length = daf_array_count(entries);
    daf_array_free(entries);
}

static void gather_vector(report *r, const char *axis, const char *name) {
    daf_error err;
    row *new = add_row(r, TARGET_VECTOR, axis, NULL, name);
    if (new)
        mark_broken(new, daf_vector_info(r->d, &new->info, axis, name, &err), &err);
}

static void gather_matrix(report *r, const char *rows, const char *columns, const char *name) {
    daf_error err;
    row *new = add_row(r, TARGET_MATRIX, rows, columns, name);
    if (new)
        mark_broken(new, daf_matrix_info(r->d, &new->info, rows, columns, name, &err), &err);
}

/* Takes over a list that was just asked for, or its failure. */
static size_t listed(report *r, int rc) {
    r->failed |= rc != 0;
    return r->failed ? 0 : SIZE_MAX;
}

static void gather_on_axis(report *r, const daf_names *axes, const char *axis) {
    daf_names names = {0};
    size_t limit = listed(r, daf_list_vectors(r->d, &names, axis, &r->err));
    for (size_t i = 0; i < names.n && i < limit; i++)
        gather_vector(r, axis, names.names[i]);
    daf_names_clear(&names);
    for (size_t k = 0; k < axes->n && !r->failed; k++) {
        const char *columns = axes->names[k];
        limit = listed(r, daf_list_matrices(r->d, &names, axis, columns, &r->err));
        for (size_t i = 0; i < names.n && i < limit; i++)
            gather_matrix(r, axis, columns, names.names[i]);
        daf_names_clear(&names);
    }
}

static void gather(report *r) {
    daf_names scalars = {0}, axes = {0};
    size_t limit = listed(r, daf_list_scalars(r->d, &scalars, &r->err));
    for (size_t i = 0; i < scalars.n && i < limit; i++)
        gather_scalar(r, scalars.names[i]);
    limit = listed(r, daf_list_axes(r->d, &axes, &r->err));
    for (size_t i = 0; i < axes.n && i < limit; i++)
        gather_axis(r, axes.names[i]);
    for (size_t i = 0; i < axes.n && i < limit; i++)
        gather_on_axis(r, &axes, axes.names[i]);
    daf_names_clear(&scalars);
    daf_names_clear(&axes);
}

static void report_free(report *r) {
    for (size_t i = 0; i < r->n; i++) {
        free(r->rows[i].axis);
        free(r->rows[i].columns);
        free(r->rows[i].name);
        free(r->rows[i].problem);
        daf_scalar_clear(&r->rows[i].scalar);
    }
    free(r->rows);
}

static size_t count_problems(const report *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += r->rows[i].problem != NULL;
    return n;
}

/* ---- for people */

static void print_info(const row *r) {
    const daf_info *info = &r->info;
    printf("%-8s %10" PRIu64, daf_type_name(info->type), info->rows);
    if (r->kind == TARGET_MATRIX)
        printf(" x %-8" PRIu64, info->columns);
    if (info->sparse)
        printf("  sparse");
    else if (!info->packed)
        printf("  flat");
    else
        printf("  %s %d, %" PRIu64 " chunks of %" PRIu64 " x %" PRIu64, info->compression, info->level,
               info->n_chunks, info->chunk_rows, info->chunk_columns);
    printf(", %" PRIu64 " bytes on disk", info->disk_bytes);
    if (info->packed && info->raw_bytes && info->disk_bytes)
        printf(" (ratio %.2f)", (double)info->raw_bytes / (double)info->disk_bytes);
}

static void print_row(const row *r) {
    char label[512];
    if (r->kind == TARGET_MATRIX)
        snprintf(label, sizeof label, "%s, %s: %s", r->axis, r->columns, r->name);
    else if (r->kind == TARGET_VECTOR)
        snprintf(label, sizeof label, "%s: %s", r->axis, r->name);
    else
        snprintf(label, sizeof label, "%s", r->name);
    printf("  %-32s ", label);
    if (r->problem) {
        printf("PROBLEM: %s", r->problem);
    } else if (r->kind == TARGET_SCALAR) {
        printf("%-8s ", daf_type_name(r->scalar.type));
        print_json_scalar(stdout, &r->scalar);
    } else if (r->kind == TARGET_AXIS) {
        printf("%" PRIu64 " entries", r->length);
    } else {
        print_info(r);
    }
    putchar('\n');
}

static void print_text(report *r, const char *path) {
    static const char *const headings[] = {"scalars", "axes", "vectors", "matrices"};
    int major, minor;
    daf_format_version(r->d, &major, &minor);
    printf("%s: FilesDaf %d.%d", path, major, minor);
    if (strcmp(daf_name(r->d), path) != 0)
        printf(", named %s", daf_name(r->d));
    putchar('\n');
    for (int kind = TARGET_SCALAR; kind <= TARGET_MATRIX; kind++) {
        bool heading = false;
        for (size_t i = 0; i < r->n; i++) {
            if ((int)r->rows[i].kind != kind)
                continue;
            if (!heading)
                printf("%s\n", headings[kind]);
            heading = true;
            print_row(&r->rows[i]);
        }
    }
}

/* ---- JSON */

static void print_info_json(const row *r) {
    const daf_info *i = &r->info;
    printf("{\"type\":\"%s\",\"format\":\"%s\",\"rows\":%" PRIu64, daf_type_name(i->type),
           i->sparse ? "sparse" : "dense", i->rows);
    if (r->kind == TARGET_MATRIX)
        printf(",\"columns\":%" PRIu64, i->columns);
    printf(",\"packed\":%s", i->packed ? "true" : "false");
    if (i->packed) {
        printf(",\"indexed\":%s,\"compression\":", i->indexed ? "true" : "false");
        print_json_string(stdout, i->compression);
        printf(",\"level\":%d,\"chunk_shape\":[%" PRIu64, i->level, i->chunk_rows);
        if (r->kind == TARGET_MATRIX)
            printf(",%" PRIu64, i->chunk_columns);
        printf("],\"chunks\":%" PRIu64, i->n_chunks);
    }
    if (i->type != DAF_STRING)
        printf(",\"raw_bytes\":%" PRIu64, i->raw_bytes);
    printf(",\"disk_bytes\":%" PRIu64 "}", i->disk_bytes);
}

static void print_value_json(const row *r) {
    if (r->kind == TARGET_SCALAR) {
        printf("{\"type\":\"%s\",\"value\":", daf_type_name(r->scalar.type));
        print_json_scalar(stdout, &r->scalar);
        putchar('}');
    } else if (r->kind == TARGET_AXIS) {
        printf("{\"entries\":%" PRIu64 "}", r->length);
    } else {
        print_info_json(r);
    }
}

/* The members of a map of maps that r opens: the levels in which it differs from the row before it. */
static void open_levels(const row *r, const row *before) {
    bool same_axis = before && r->axis && strcmp(before->axis, r->axis) == 0;
    bool same_columns = same_axis && r->columns && strcmp(before->columns, r->columns) == 0;
    if (before) {
        if (r->columns && !same_columns)
            putchar('}');
        if (r->axis && !same_axis)
            putchar('}');
        putchar(',');
    }
    if (r->axis && !same_axis) {
        print_json_string(stdout, r->axis);
        fputs(":{", stdout);
    }
    if (r->columns && !same_columns) {
        print_json_string(stdout, r->columns);
        fputs(":{", stdout);
    }
}

static void print_kind_json(const report *r, target_kind kind, const char *heading) {
    const row *before = NULL;
    printf(",\"%s\":{", heading);
    for (size_t i = 0; i < r->n; i++) {
        const row *this = &r->rows[i];
        if (this->kind != kind || this->problem)
            continue;
        open_levels(this, before);
        print_json_string(stdout, this->name);
        putchar(':');
        print_value_json(this);
        before = this;
    }
    if (before && before->columns)
        putchar('}');
    if (before && before->axis)
        putchar('}');
    putchar('}');
}

static void print_json(report *r, const char *path) {
    int major, minor;
    bool first = true;
    daf_format_version(r->d, &major, &minor);
    fputs("{\"path\":", stdout);
    print_json_string(stdout, path);
    fputs(",\"name\":", stdout);
    print_json_string(stdout, daf_name(r->d));
    printf(",\"version\":[%d,%d]", major, minor);
    print_kind_json(r, TARGET_SCALAR, "scalars");
    print_kind_json(r, TARGET_AXIS, "axes");
    print_kind_json(r, TARGET_VECTOR, "vectors");
    print_kind_json(r, TARGET_MATRIX, "matrices");
    fputs(",\"problems\":[", stdout);
    for (size_t i = 0; i < r->n; i++) {
        if (!r->rows[i].problem)
            continue;
        if (!first)
            putchar(',');
        first = false;
        print_json_string(stdout, r->rows[i].problem);
    }
    fputs("]}\n", stdout);
}

static int run(int argc, char **argv) {
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
    bool json = false;
    report r = {0};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'h')
            return command_help(&command_describe);
        if (c != 'j')
            return command_usage(&command_describe, "wrong options");
        json = true;
    }
    if (argc - optind != 1)
        return command_usage(&command_describe, "one path is needed");
    if (daf_open(&r.d, argv[optind], "r", NULL, &r.err) != 0)
        return command_fail(&r.err);
    gather(&r);
    int code = r.failed ? command_fail(&r.err) : count_problems(&r) ? CLI_PROBLEMS : CLI_OK;
    if (!r.failed && json)
        print_json(&r, argv[optind]);
    else if (!r.failed)
        print_text(&r, argv[optind]);
    report_free(&r);
    daf_free(r.d);
    return code;
}

const command command_describe = {
    .name = "describe", .summary = "lists what a repository holds", .usage = usage, .run = run};

/* daf describe: what a repository holds, as a table or as JSON. */
#include <string.h>

#include "base/printable.h"
#include "report.h"

static void print_row(const row *r) {
    char label[1024], shown[1024];
    if (r->kind == TARGET_MATRIX)
        snprintf(label, sizeof label, "%s, %s: %s", r->axis, r->columns, r->name);
    else if (r->kind == TARGET_VECTOR)
        snprintf(label, sizeof label, "%s: %s", r->axis, r->name);
    else
        snprintf(label, sizeof label, "%s", r->name);
    common_printable(shown, sizeof shown, label, strlen(label));
    printf("  %-32s ", shown);
    print_facts(stdout, r);
    putchar('\n');
}

static void print_heading(report *r, const char *path) {
    int major, minor;
    daf_format_version(r->d, &major, &minor);
    cli_write_printable(stdout, path, strlen(path));
    printf(": FilesDaf %d.%d", major, minor);
    const char *name = daf_name(r->d);
    if (strcmp(name, path) != 0) {
        fputs(", named ", stdout);
        cli_write_printable(stdout, name, strlen(name));
    }
    putchar('\n');
}

static void print_text(report *r, const char *path) {
    static const char *const headings[] = {"scalars", "axes", "vectors", "matrices"};
    print_heading(r, path);
    for (size_t i = 0; i < r->n; i++) {
        if (i == 0 || r->rows[i].kind != r->rows[i - 1].kind)
            printf("%s\n", headings[r->rows[i].kind]);
        print_row(&r->rows[i]);
    }
}

static void print_group(const char *path, const char *name, bool json, bool first) {
    if (json) {
        fputs(first ? "" : ",", stdout);
        print_json_string(stdout, name);
        return;
    }
    cli_write_printable(stdout, path, strlen(path));
    fputs("#/", stdout);
    cli_write_printable(stdout, name, strlen(name));
    putchar('\n');
}

static void print_groups(const daf_names *groups, const char *path, bool json) {
    if (json) {
        fputs("{\"path\":", stdout);
        print_json_string(stdout, path);
        fputs(",\"groups\":[", stdout);
    }
    for (size_t i = 0; i < groups->n; i++)
        print_group(path, groups->names[i], json, i == 0);
    if (json)
        puts("]}");
}

/* Of an archive of several repositories that is named without one of them. Returns -1: the path is none of that kind. */
static int list_groups(const cli_command *self, const char *path, bool json) {
    daf_names groups;
    daf_error err;
    int rc = daf_list_groups(&groups, path, NULL, &err);
    if (rc)
        return rc == DAF_ERR_ARG ? -1 : command_fail(self, &err);
    print_groups(&groups, path, json);
    daf_names_clear(&groups);
    return CLI_OK;
}

static bool take(void *context, int option, const char *argument) {
    (void)option;
    (void)argument;
    *(bool *)context = true;
    return true;
}

static int run(const cli_command *self, int argc, char **argv) {
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
    bool json = false;
    report r;
    daf *d;
    int code = cli_options(self, argc, argv, options, take, &json, 1, 1);
    if (code >= 0)
        return code;
    const char *path = argv[optind];
    code = list_groups(self, path, json);
    if (code >= 0)
        return code;
    code = command_open(self, &d, path, "r", NULL);
    if (code)
        return code;
    report_gather(&r, d, !strstr(path, "://"));
    if (r.failed)
        code = command_fail(self, &r.err);
    else if (json)
        report_print_json(&r, path);
    else
        print_text(&r, path);
    if (code == CLI_OK && report_count_problems(&r))
        code = CLI_PROBLEMS;
    report_free(&r);
    daf_free(d);
    return code;
}

const cli_command command_describe = {
    .name = "describe",
    .summary = "lists what a repository holds",
    .help =
        "Usage: daf describe PATH [--json]\n"
        "Lists scalars, axes, vectors and matrices: type, form and sizes. A sparse property is told with "
        "how many\n"
        "values it stores, a packed one with codec, level, chunks and ratio. All payloads are looked at "
        "(sizes, "
        "lines of\n"
        "texts, directories of shards), but of a repository at a URL. Of an archive RUNS.dafs.zip without a "
        "group it\n"
        "lists the groups, each as a path to be opened.\n\n"
        "  --json   one JSON object\n"
        "  --help   this text\n\n"
        "A property that cannot be read is listed as a problem, and the exit code is 1.\n\n"
        "Examples:\n"
        "  daf describe run.daf\n"
        "  daf describe runs.dafs.zip\n"
        "  daf describe runs.dafs.zip#/first --json | jq '.vectors.dt_bin'\n",
    .run = run};

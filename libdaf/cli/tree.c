/* daf tree: the properties as a tree of names. */
#include <string.h>

#include "report.h"

enum { N_LEVELS = 4 };

/* The names that lead to a row, from its kind on. */
typedef struct path {
    const char *names[N_LEVELS];
    size_t n;
} path;

static path path_of(const row *r) {
    static const char *const kinds[] = {"scalars", "axes", "vectors", "matrices"};
    path p = {.names = {kinds[r->kind]}, .n = 1};
    if (r->axis)
        p.names[p.n++] = r->axis;
    if (r->columns)
        p.names[p.n++] = r->columns;
    p.names[p.n++] = r->name;
    return p;
}

/* How many levels the two have in common from the top. */
static size_t shared(const path *a, const path *b) {
    size_t n = 0;
    while (n < a->n && n < b->n && strcmp(a->names[n], b->names[n]) == 0)
        n++;
    return n;
}

/* Of each level: up to which row the parent of the last name that was printed stays the same in name, and whether
 * another name follows under its parent then. */
typedef struct outlook {
    const report *report;
    size_t end[N_LEVELS];
    bool goes_on[N_LEVELS];
} outlook;

/* Whether more comes at `level` under the same parent behind row i. */
static bool goes_on(outlook *o, size_t i, size_t level) {
    const report *r = o->report;
    if (i < o->end[level])
        return o->goes_on[level];
    path here = path_of(&r->rows[i]);
    size_t k = i + 1, common = level;
    for (; k < r->n; k++) {
        path there = path_of(&r->rows[k]);
        common = shared(&here, &there);
        if (common <= level)
            break;
    }
    o->end[level] = k;
    o->goes_on[level] = k < r->n && common == level;
    return o->goes_on[level];
}

static void print_name_line(outlook *o, size_t i, size_t level, const char *name) {
    for (size_t l = 0; l < level; l++)
        fputs(goes_on(o, i, l) ? "|   " : "    ", stdout);
    fputs(goes_on(o, i, level) ? "|-- " : "`-- ", stdout);
    cli_write_printable(stdout, name, strlen(name));
}

/* Prints the names in which row i differs from the one before it, and its facts behind the last. */
static void print_levels(outlook *o, size_t i) {
    const row *rows = o->report->rows;
    path here = path_of(&rows[i]);
    size_t from = 0;
    if (i > 0) {
        path before = path_of(&rows[i - 1]);
        from = shared(&here, &before);
    }
    for (size_t level = from; level < here.n; level++) {
        print_name_line(o, i, level, here.names[level]);
        if (level + 1 == here.n) {
            fputs("  ", stdout);
            print_facts(stdout, &rows[i]);
        }
        putchar('\n');
    }
}

static bool no_option(void *context, int option, const char *argument) {
    (void)context;
    (void)option;
    (void)argument;
    return false;
}

static int run(const cli_command *self, int argc, char **argv) {
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    report r;
    daf *d;
    int code = cli_options(self, argc, argv, options, no_option, NULL, 1, 1);
    if (code >= 0)
        return code;
    code = command_open(self, &d, argv[optind], "r", NULL);
    if (code)
        return code;
    report_gather(&r, d, false);
    if (r.failed)
        code = command_fail(self, &r.err);
    else
        cli_print_line(stdout, "%s", argv[optind]);
    outlook o = {.report = &r};
    for (size_t i = 0; i < r.n && code == 0; i++)
        print_levels(&o, i);
    if (code == CLI_OK && report_count_problems(&r))
        code = CLI_PROBLEMS;
    report_free(&r);
    daf_free(d);
    return code;
}

const cli_command command_tree = {
    .name = "tree",
    .summary = "shows the names as a tree",
    .help = "Usage: daf tree PATH\n"
            "Shows the properties as the tree of folders in which they lie.\n\n"
            "  --help   this text\n\n"
            "A property that cannot be read is shown as a problem, and the exit code is 1.\n\n"
            "Examples:\n"
            "  daf tree run.daf\n"
            "  daf tree run.daf.zip\n",
    .run = run};

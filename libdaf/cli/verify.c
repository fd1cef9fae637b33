/* daf verify: a repository against the rules of the format. */
#include <inttypes.h>
#include <string.h>

#include "cli/progress.h"
#include "command.h"

enum { OPTION_JSON = 256, OPTION_STRICT, OPTION_CODES };

typedef struct job {
    const char *path;
    bool json, strict, codes;
    const char *separator;
    cli_progress bar;
} job;

static bool take(void *context, int option, const char *argument) {
    job *j = context;
    (void)argument;
    j->json |= option == OPTION_JSON;
    j->strict |= option == OPTION_STRICT;
    j->codes |= option == OPTION_CODES;
    return true;
}

static const char *class_of(daf_problem_code code) {
    return daf_problem_class_name(daf_problem_class_of(code));
}

static void print_json_problem(job *j, const daf_problem *p) {
    printf("%s\n    {\"code\": \"%s\", \"class\": \"%s\", \"place\": ", j->separator,
           daf_problem_name(p->code), class_of(p->code));
    print_json_string(stdout, p->place);
    if (p->offset == DAF_NO_OFFSET)
        fputs(", \"offset\": null, \"text\": ", stdout);
    else
        printf(", \"offset\": %" PRIu64 ", \"text\": ", p->offset);
    print_json_string(stdout, p->text);
    putchar('}');
    j->separator = ",";
}

static void print_problem(void *context, const daf_problem *p) {
    job *j = context;
    if (j->json) {
        print_json_problem(j, p);
        return;
    }
    cli_write_printable(stdout, j->path, strlen(j->path));
    printf(": %s: %s", class_of(p->code), daf_problem_name(p->code));
    if (*p->place)
        fputs(": ", stdout);
    cli_write_printable(stdout, p->place, strlen(p->place));
    if (p->offset != DAF_NO_OFFSET)
        printf(" at byte %" PRIu64, p->offset);
    cli_print_line(stdout, ": %s", p->text);
}

static bool show_progress(void *context, uint64_t done, uint64_t total) {
    job *j = context;
    j->bar.total = total;
    cli_progress_update(&j->bar, done < total ? done : total);
    return cli_stopped;
}

static bool is_good(const daf_verify_summary *s) {
    return s->n[DAF_CLASS_DAMAGE] == 0 && s->n[DAF_CLASS_FAULT] == 0 && s->n[DAF_CLASS_STYLE] == 0;
}

static void print_summary(const job *j, const daf_verify_summary *s) {
    uint64_t damages = s->n[DAF_CLASS_DAMAGE], faults = s->n[DAF_CLASS_FAULT], styles = s->n[DAF_CLASS_STYLE];
    if (j->json) {
        printf("\n  ],\n  \"properties\": %" PRIu64 ",\n  \"bytes\": %" PRIu64 ",\n  \"damages\": %" PRIu64
               ",\n  \"faults\": %" PRIu64 ",\n  \"styles\": %" PRIu64 ",\n  \"good\": %s\n}\n",
               s->properties, s->bytes, damages, faults, styles, is_good(s) ? "true" : "false");
        return;
    }
    cli_write_printable(stdout, j->path, strlen(j->path));
    printf(": %s, properties: %" PRIu64 ", bytes: %" PRIu64,
           damages      ? "damaged"
           : is_good(s) ? "good"
                        : "no damage, but see above",
           s->properties, s->bytes);
    if (!is_good(s))
        printf(", damages: %" PRIu64 ", faults: %" PRIu64 ", styles: %" PRIu64, damages, faults, styles);
    putchar('\n');
}

static int verify(const cli_command *self, job *j) {
    cli_pool *pool = cli_pool_new(0);
    const daf_executor executor = {.context = pool,
                                   .submit = cli_pool_submit,
                                   .wait = cli_pool_wait,
                                   .n_threads = cli_pool_threads(pool)};
    daf_verify_options options;
    daf_verify_summary summary;
    daf_error err;
    daf_verify_options_init(&options);
    options.strict = j->strict;
    options.executor = pool ? &executor : NULL;
    options.problem = print_problem;
    options.progress = show_progress;
    options.context = j;
    cli_catch_stop();
    cli_progress_start(&j->bar, "verifying", "B", 0);
    int rc = daf_verify(j->path, &options, &summary, &err);
    cli_progress_end(&j->bar, j->bar.total);
    cli_pool_free(pool);
    if (rc == 0) {
        print_summary(j, &summary);
        return is_good(&summary) ? CLI_OK : CLI_PROBLEMS;
    }
    if (j->json) {
        fputs("\n  ],\n  \"good\": false,\n  \"error\": ", stdout);
        print_json_string(stdout, err.text);
        fputs("\n}\n", stdout);
    }
    return cli_fail(self, "%s", err.text);
}

static int print_codes(void) {
    for (int i = 0; i < DAF_N_PROBLEMS; i++) {
        daf_problem_code code = (daf_problem_code)i;
        printf("%-18s %-7s %s\n", daf_problem_name(code), class_of(code), daf_problem_meaning(code));
    }
    return CLI_OK;
}

static int run(const cli_command *self, int argc, char **argv) {
    static const struct option options[] = {{"json", no_argument, NULL, OPTION_JSON},
                                            {"strict", no_argument, NULL, OPTION_STRICT},
                                            {"codes", no_argument, NULL, OPTION_CODES},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    job j = {.separator = ""};
    int code = cli_options(self, argc, argv, options, take, &j, 0, 1);
    if (code >= 0)
        return code;
    if (j.codes)
        return print_codes();
    if (argc == optind)
        return cli_misused(self, "arguments are missing");
    j.path = argv[optind];
    if (j.json) {
        fputs("{\n  \"path\": ", stdout);
        print_json_string(stdout, j.path);
        fputs(",\n  \"problems\": [", stdout);
    }
    return verify(self, &j);
}

const cli_command command_verify = {
    .name = "verify",
    .summary = "holds a repository against the rules of the format",
    .help = "Usage: daf verify PATH [--strict] [--json]\n"
            "       daf verify --codes\n"
            "Reads a whole repository and prints a line for everything that is not as it should be: class, "
            "code, file,\n"
            "byte, reason. Nothing is changed. The classes:\n\n"
            "  damage   values are lost, wrong or cannot be read\n"
            "  fault    against the rules of the format, but all values can be read; what a killed writer "
            "has left\n"
            "  style    within the rules, but some reader minds (with --strict only)\n\n"
            "Of one kind of problem in one file only the first is printed, with the number of the others. "
            "The last line\n"
            "says how the repository is.\n\n"
            "  --strict   also what the readers of this format are picky about\n"
            "  --json     one JSON object instead\n"
            "  --codes    prints the codes and what they mean\n"
            "  --help     this text\n\n"
            "Exit codes: 0 nothing was found, 1 something was, 2 wrong usage or cannot read.\n\n"
            "Examples:\n"
            "  daf verify run.daf\n"
            "  daf verify --strict runs.dafs.zip#/first\n"
            "  daf verify --json run.daf.zip | jq -r '.problems[].code'\n",
    .run = run};

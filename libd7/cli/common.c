#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "certificate.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "commands.h"
#include "result.h"

int command_fail(const command *self, const char *format, ...) {
    char *text, *message = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) >= 0) {
        message = result_message(text);
        free(text);
    }
    va_end(args);
    cli_fail(self, "%s", message ? message : "out of memory");
    free(message);
    return CLI_USAGE;
}

char *command_beside(const char *path, const char *suffix, const char *other) {
    struct stat st;
    char *real = lstat(path, &st) == 0 && S_ISLNK(st.st_mode) ? realpath(path, NULL) : NULL, *beside = NULL;
    const char *file = real ? real : path;
    size_t n = strlen(file), end = strlen(suffix);
    if (n > end && strcmp(file + n - end, suffix) == 0 &&
        asprintf(&beside, "%.*s%s", (int)(n - end), file, other) < 0)
        beside = NULL;
    free(real);
    return beside;
}

char *certificate_beside(const char *path) {
    char *beside = command_beside(path, ".photons", CERTIFICATE_SUFFIX);
    if (beside && access(beside, F_OK) == 0)
        return beside;
    free(beside);
    return NULL;
}

int command_options(const command *self, int argc, char **argv, const struct option *options,
                    cli_take_option *take, void *ctx, int n_arguments) {
    int least = n_arguments < 0 ? -n_arguments : n_arguments;
    return cli_options(self, argc, argv, options, take, ctx, least, n_arguments < 0 ? INT_MAX : n_arguments);
}

int command_open(const command *self, const char *path, bool unframed, cli_pool *pool,
                 d7_reader **ret_reader) {
    d7_executor executor = {.ctx = pool, .submit = cli_pool_submit, .wait = cli_pool_wait};
    d7_reader_options options;
    d7_error err;
    d7_reader_options_init(&options);
    options.unframed = unframed;
    if (pool) {
        options.executor = &executor;
        options.lanes = cli_pool_threads(pool);
    }
    result_source(path);
    return d7_reader_open(ret_reader, path, &options, &err) == 0 ? 0 : command_fail(self, "%s", err.text);
}

int command_progress(void *bar, uint64_t done, uint64_t total) {
    cli_progress *p = bar;
    p->total = total;
    cli_progress_update(p, done);
    return cli_stopped;
}

void command_tell_fault(const command *self, const char *fault) {
    command_fail(self, "%s; without it nobody knows whether values have changed since they were written",
                 fault);
}

void command_tell_checksums(const command *self, const d7_reader *r) {
    d7_problem p;
    if (d7_reader_checksum_fault(r, &p) == 0)
        command_tell_fault(self, p.text);
}

int command_compare(const command *self, d7_reader *r) {
    d7_error err;
    cli_progress bar;
    cli_progress_start(&bar, "checking", "B", 0);
    int rc = d7_reader_compare_checksums(r, command_progress, &bar, &err);
    cli_progress_end(&bar, bar.total);
    if (rc == 0)
        command_tell_checksums(self, r);
    return rc == 0                  ? 0
           : rc == D7_ERR_CANCELLED ? command_stopped_code(self)
                                    : command_fail(self, "%s", err.text);
}

bool problem_hides_pages(const d7_problem *p) {
    return p->severity == D7_DAMAGE &&
           (p->code == D7_PROBLEM_BAD_FRAME || p->code == D7_PROBLEM_BAD_ENTRY ||
            p->code == D7_PROBLEM_MISSING_PAGE || p->code == D7_PROBLEM_UNLISTED_PAGE ||
            p->code == D7_PROBLEM_UNPLACED);
}

int command_together(const command *self, const char *path, const d7_reader *r) {
    d7_problem p;
    for (size_t i = 0; d7_reader_problem(r, i, &p) == 0; i++)
        if (problem_hides_pages(&p)) {
            print_problem(stderr, path, &p, r);
            command_fail(
                self,
                "%s: pages may be missing, so that columns would not belong together; d7 repair makes a "
                "whole file of what is good",
                path);
            return CLI_PROBLEMS;
        }
    return 0;
}

uint64_t milliseconds_within(d7_reader *r, uint32_t dataset_id, uint64_t n_photons) {
    d7_dataset_info info;
    uint64_t low = 0, high = d7_reader_dataset(r, dataset_id, &info) == 0 ? info.items : 0;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2, first;
        if (d7_reader_read(r, dataset_id, middle, 1, &first, NULL) == 0 && first > n_photons)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

bool parse_count(const char *text, uint64_t *ret) {
    if (!isdigit((unsigned char)*text))
        return false;
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *end)
        return false;
    *ret = value;
    return true;
}

void print_name(FILE *out, const d7_dataset_info *info) {
    cli_write_printable(out, info->name, info->name_bytes);
}

static bool find_dataset(const d7_reader *names, uint32_t dataset_id, d7_dataset_info *ret_info) {
    return names && d7_reader_dataset(names, dataset_id, ret_info) == 0;
}

void print_problem(FILE *out, const char *file, const d7_problem *p, const d7_reader *names) {
    cli_write_printable(out, file, strlen(file));
    fprintf(out, ": %s: %s", d7_severity_name(p->severity), d7_problem_name(p->code));
    if (p->offset != D7_NO_OFFSET)
        fprintf(out, " at byte %" PRIu64, p->offset);
    if (p->dataset_id != D7_NO_DATASET) {
        d7_dataset_info info;
        fputs(", dataset ", out);
        if (find_dataset(names, p->dataset_id, &info))
            print_name(out, &info);
        else
            fprintf(out, "%" PRIu32, p->dataset_id);
    }
    if (p->n_items)
        fprintf(out, ", items %" PRIu64 " to %" PRIu64, p->first_item, p->first_item + p->n_items - 1);
    cli_print_line(out, ": %s", p->text);
}

void print_problem_json(FILE *out, const d7_problem *p, const d7_reader *names) {
    fprintf(out, "{\"code\": \"%s\", \"severity\": \"%s\", \"offset\": ", d7_problem_name(p->code),
            d7_severity_name(p->severity));
    if (p->offset == D7_NO_OFFSET)
        fputs("null", out);
    else
        fprintf(out, "%" PRIu64, p->offset);
    fputs(", \"dataset\": ", out);
    d7_dataset_info info;
    if (find_dataset(names, p->dataset_id, &info))
        cli_write_json_text(out, info.name, info.name_bytes);
    else
        fputs("null", out);
    fprintf(out, ", \"first_item\": %" PRIu64 ", \"items\": %" PRIu64 ", \"text\": ", p->first_item,
            p->n_items);
    cli_write_json_string(out, p->text);
    fputc('}', out);
}

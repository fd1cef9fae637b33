/* d7 info: what a file holds. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "certificate.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "commands.h"

/* Files up to this size are checked page by page: that takes a moment at most. */
static const uint64_t check_bytes = 64u << 20;

typedef struct info_options {
    bool json, full, unframed;
} info_options;

enum { OPTION_JSON = 256, OPTION_FULL, OPTION_UNFRAMED };

static bool info_option(void *ctx, int option, const char *argument) {
    info_options *o = ctx;
    (void)argument;
    o->json |= option == OPTION_JSON;
    o->full |= option == OPTION_FULL;
    o->unframed |= option == OPTION_UNFRAMED;
    return true;
}

static int info_check(const command *self, d7_reader *r) {
    d7_error err;
    cli_progress bar;
    cli_progress_start(&bar, "checking", "B", 0);
    int rc = d7_reader_check(r, command_progress, &bar, &err);
    cli_progress_end(&bar, bar.total);
    return rc == 0 ? 0 : command_fail(self, "%s", err.text);
}

/* ---- JSON ---- */

static void json_attributes(const d7_reader *r) {
    printf("\"attributes\": {");
    for (size_t i = 0; i < d7_reader_n_attributes(r); i++) {
        d7_attribute a;
        if (d7_reader_attribute(r, i, &a) != 0)
            break;
        printf("%s\n    ", i ? "," : "");
        cli_write_json_text(stdout, a.key, a.key_bytes);
        printf(": ");
        cli_write_json_text(stdout, a.value, a.value_bytes);
    }
    printf("\n  }");
}

static void json_datasets(const d7_reader *r) {
    printf("\"datasets\": [");
    for (size_t i = 0; i < d7_reader_n_datasets(r); i++) {
        d7_dataset_info d;
        if (d7_reader_dataset(r, (uint32_t)i, &d) != 0)
            break;
        printf("%s\n    {\"name\": ", i ? "," : "");
        cli_write_json_text(stdout, d.name, d.name_bytes);
        printf(", \"type\": \"%s\", \"items\": %" PRIu64 ", \"paged_items\": %" PRIu64 ", \"pages\": %" PRIu64
               ", \"shape\": [",
               d7_type_name(d.type), d.items, d.paged_items, d.pages);
        for (size_t k = 0; k < d.rank; k++)
            printf("%s%" PRIu64, k ? ", " : "", d.shape[k]);
        printf("]}");
    }
    printf("\n  ]");
}

/* Damage, or everything else. */
static void json_problems(const d7_reader *r, const char *key, bool damage) {
    const char *separator = "";
    d7_problem p;
    printf("\"%s\": [", key);
    for (size_t i = 0; d7_reader_problem(r, i, &p) == 0; i++) {
        if ((p.severity == D7_DAMAGE) != damage)
            continue;
        printf("%s\n    ", separator);
        print_problem_json(stdout, &p, r);
        separator = ",";
    }
    printf("\n  ]");
}

static void json_certificate(const char *path) {
    char *beside = certificate_beside(path);
    printf(",\n  \"certificate\": ");
    if (beside)
        cli_write_json_string(stdout, beside);
    else
        printf("null");
    free(beside);
}

static void print_json(const char *path, const d7_reader *r, bool checked) {
    uint32_t version[3];
    d7_reader_version(r, version);
    printf("{\n  \"file\": ");
    cli_write_json_string(stdout, path);
    json_certificate(path);
    printf(",\n  \"bytes\": %" PRIu64 ",\n  \"state\": \"%s\",\n  \"held\": %s,\n  \"unframed\": %s,\n",
           d7_reader_file_bytes(r), d7_reader_state(r) == D7_STATE_CLOSED ? "closed" : "open",
           d7_reader_held(r) ? "true" : "false", d7_reader_unframed(r) ? "true" : "false");
    printf("  \"version\": [%" PRIu32 ", %" PRIu32 ", %" PRIu32 "],\n", version[0], version[1], version[2]);
    printf("  \"index_step\": %" PRIu32 ",\n  \"bytes_per_page\": %" PRIu32 ",\n  ", d7_reader_index_step(r),
           d7_reader_bytes_per_page(r));
    json_attributes(r);
    printf(",\n  ");
    json_datasets(r);
    printf(",\n  ");
    json_problems(r, "problems", true);
    printf(",\n  ");
    json_problems(r, "notes", false);
    printf(",\n  \"pages_checked\": %s\n}\n", checked ? "true" : "false");
}

/* ---- text ---- */

/* At most n of the text's bytes, which are more, and no half character. */
static size_t text_cut(const char *text, size_t n) {
    size_t at = n;
    while (at > 0 && n - at < 3 && ((unsigned char)text[at] & 0xC0) == 0x80)
        at--;
    return ((unsigned char)text[at] & 0xC0) == 0x80 ? n : at;
}

/* Long text would spoil the table. */
static void print_plain(const char *text, size_t bytes) {
    enum { SHOWN = 200 };
    cli_write_printable(stdout, text, bytes < SHOWN ? bytes : text_cut(text, SHOWN));
    if (bytes > SHOWN)
        printf("... (%zu bytes)", bytes);
}

static void print_text(const char *path, const d7_reader *r, bool checked) {
    uint32_t version[3];
    char size[16];
    d7_reader_version(r, version);
    cli_format_count(size, sizeof size, (double)d7_reader_file_bytes(r));
    cli_print_line(stdout,
                   "%s: %s%s%s, %sB, D7 %" PRIu32 ".%" PRIu32 ".%" PRIu32 ", pages: %" PRIu64 " of %" PRIu32
                   " bytes, an island every %" PRIu32 " blocks",
                   path, d7_reader_state(r) == D7_STATE_CLOSED ? "closed" : "open",
                   d7_reader_held(r) ? " (being written)" : "", d7_reader_unframed(r) ? ", unframed" : "",
                   size, version[0], version[1], version[2], d7_reader_pages(r), d7_reader_bytes_per_page(r),
                   d7_reader_index_step(r));
    char *certificate = certificate_beside(path);
    if (certificate)
        cli_print_line(stdout, "  certificate: %s; d7 verify holds the file against it", certificate);
    free(certificate);
    printf("\n  %-7s %16s %10s  %s\n", "type", "items", "pages", "dataset");
    for (size_t i = 0; i < d7_reader_n_datasets(r); i++) {
        d7_dataset_info d;
        if (d7_reader_dataset(r, (uint32_t)i, &d) != 0)
            break;
        printf("  %-7s %16" PRIu64 " %10" PRIu64 "  ", d7_type_name(d.type), d.items, d.pages);
        print_name(stdout, &d);
        printf("\n");
    }
    if (d7_reader_n_attributes(r))
        printf("\n");
    for (size_t i = 0; i < d7_reader_n_attributes(r); i++) {
        d7_attribute a;
        if (d7_reader_attribute(r, i, &a) != 0)
            break;
        printf("  ");
        print_plain(a.key, a.key_bytes);
        printf(" = ");
        print_plain(a.value, a.value_bytes);
        printf("\n");
    }
    if (!checked)
        printf("\n  Pages were not looked into one by one; --full, or d7 verify, does.\n");
}

static void print_problems(const char *path, const d7_reader *r) {
    d7_problem p;
    for (size_t i = 0; d7_reader_problem(r, i, &p) == 0; i++)
        print_problem(stderr, path, &p, r);
}

static int info_run(const command *self, int argc, char **argv) {
    static const struct option options[] = {{"json", no_argument, NULL, OPTION_JSON},
                                            {"full", no_argument, NULL, OPTION_FULL},
                                            {"unframed", no_argument, NULL, OPTION_UNFRAMED},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    info_options o = {0};
    int code = command_options(self, argc, argv, options, info_option, &o, 1);
    if (code >= 0)
        return code;
    const char *path = argv[optind];
    d7_reader *r;
    code = command_open(self, path, o.unframed, NULL, &r);
    if (code != 0)
        return code;
    bool check = o.full || d7_reader_file_bytes(r) <= check_bytes;
    code = check ? info_check(self, r) : 0;
    if (code == 0) {
        (o.json ? print_json : print_text)(path, r, check);
        print_problems(path, r);
        code = d7_reader_n_damages(r) ? CLI_PROBLEMS : CLI_OK;
    }
    d7_reader_free(r);
    return code;
}

const command command_info = {
    .name = "info",
    .summary = "what a file holds: state, datasets, attributes, problems",
    .help =
        "usage: d7 info FILE [--json] [--full] [--unframed]\n\n"
        "Shows what a .photons file holds. Problems go to standard error. Items that only the tail beside a\n"
        "file holds (NAME.photons.tail) are counted.\n\n"
        "  --json       one JSON object on standard output\n"
        "  --full       look into every page whatever the file's size (files up to 64 MiB: always)\n"
        "  --unframed   also read a file whose blocks have no begin and end bits\n"
        "  --help       this text\n\n"
        "Exit status: 0 good, 1 the data has problems, 2 usage, or the file cannot be read.\n"
        "A file that is being written, or that was never closed but is whole, is good.\n\n"
        "Examples:\n"
        "  d7 info run.photons\n"
        "  d7 info run.photons --json | jq '.datasets[] | {name, items}'\n",
    .run = info_run,
};

/* d7 follow: lines of items, of how far a recording is, and of what happens. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/output.h"
#include "cli/progress.h"
#include "follow.h"
#include "result.h"

enum { CHUNK_ITEMS = 4096, NUMBER_BYTES = 48, NAMES_SHOWN = 8 };

uint64_t follow_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void format_time(char text[32]) {
    time_t now = time(NULL);
    struct tm utc = {0};
    gmtime_r(&now, &utc);
    strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* `{"event": "NAME", "file": "PATH"` */
static void json_begin(const follow *f, const char *name) {
    printf("{\"event\": \"%s\", \"file\": ", name);
    cli_write_json_string(stdout, f->path);
}

void follow_tell(const follow *f, const char *name, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!f->o->json) {
        command_fail(f->o->self, "%s", text);
        return;
    }
    json_begin(f, name);
    printf(", \"item\": %" PRIu64 ", \"text\": ", f->at);
    cli_write_json_string(stdout, text);
    printf("}\n");
    fflush(stdout);
}

/* ---- items ---- */

/* One value; not a number where JSON has none. */
static void put_value(const follow *f, d7_type type, const void *values, size_t i) {
    char text[NUMBER_BYTES];
    size_t size = d7_type_size(type);
    const uint8_t *value = (const uint8_t *)values + i * size;
    char kind = type >= D7_FLOAT ? 'f' : type >= D7_UINT8 ? 'u' : 'i';
    size_t n = cli_format_number(text, sizeof text, kind, size, value);
    bool finite = true;
    if (type == D7_FLOAT) {
        float v;
        memcpy(&v, value, sizeof v);
        finite = isfinite(v);
    } else if (type == D7_DOUBLE) {
        double v;
        memcpy(&v, value, sizeof v);
        finite = isfinite(v);
    }
    if (f->o->json && !finite)
        fputs("null", stdout);
    else
        fwrite(text, 1, n, stdout);
}

static void put_json(const follow *f, const d7_chunk *chunk) {
    json_begin(f, "items");
    printf(", \"first\": %" PRIu64 ", \"items\": %zu, \"values\": {", chunk->first_item, chunk->n);
    for (size_t c = 0; c < f->o->n_names; c++) {
        fputs(c ? ", " : "", stdout);
        cli_write_json_string(stdout, f->o->names[c]);
        fputs(": [", stdout);
        for (size_t i = 0; i < chunk->n; i++) {
            fputs(i ? ", " : "", stdout);
            put_value(f, f->types[c], chunk->values[c], i);
        }
        fputc(']', stdout);
    }
    fputs("}}\n", stdout);
}

static void put_lines(const follow *f, const d7_chunk *chunk) {
    for (size_t i = 0; i < chunk->n; i++)
        for (size_t c = 0; c < f->o->n_names; c++) {
            put_value(f, f->types[c], chunk->values[c], i);
            fputc(c + 1 < f->o->n_names ? '\t' : '\n', stdout);
        }
}

static void tell_lost(follow *f, uint64_t to) {
    f->damaged = true;
    follow_tell(f, "lost", "%s: items %" PRIu64 " to %" PRIu64 " are damaged and left out", f->path, f->at,
                to - 1);
}

/* Rows up to `to`; those that are damaged are named. */
static int print_rows(follow *f, d7_columns *columns, uint64_t to) {
    d7_error err;
    d7_chunk chunk;
    int rc;
    while ((rc = d7_columns_next(columns, &chunk, &err)) == 0 && chunk.n && !cli_stopped) {
        if (chunk.first_item > f->at)
            tell_lost(f, chunk.first_item);
        if (f->o->json)
            put_json(f, &chunk);
        else
            put_lines(f, &chunk);
        f->at = chunk.first_item + chunk.n;
        if (cli_flush_stdout() != 0)
            return CLI_USAGE;
    }
    /* A file that is cut while it is read is found so by the next refresh. */
    if (rc != 0)
        return rc == D7_ERR_TRUNCATED || rc == D7_ERR_STATE ? 0 : command_fail(f->o->self, "%s", err.text);
    if (f->at < to && !cli_stopped) {
        tell_lost(f, to);
        f->at = to;
    }
    return 0;
}

static int print_items(follow *f) {
    uint64_t to = follow_items(f);
    d7_columns *columns;
    d7_columns_options options;
    d7_error err;
    if (f->at >= to)
        return 0;
    d7_columns_options_init(&options);
    options.from = f->at;
    options.to = to;
    options.chunk_items = CHUNK_ITEMS;
    options.skip_damaged = true;
    int rc = d7_columns_open(&columns, f->reader, f->ids, f->o->n_names, &options, &err);
    if (rc != 0)
        return command_fail(f->o->self, "%s", err.text);
    int code = print_rows(f, columns, to);
    d7_columns_free(columns);
    return code;
}

/* ---- how far it is ---- */

/* What the rate is of: the first group that the file has, else all items. */
static uint64_t main_items(const follow *f, const char **ret_unit) {
    static const struct {
        d7_group group;
        const char *unit;
    } groups[] = {{D7_GROUP_PHOTONS, "photons"}, {D7_GROUP_TAGS, "tags"}};
    uint64_t sum = 0;
    d7_dataset_info info;
    for (size_t g = 0; g < 2; g++)
        for (uint32_t i = 0; d7_reader_dataset(f->reader, i, &info) == 0; i++)
            if (d7_group_of(info.name) == groups[g].group) {
                *ret_unit = groups[g].unit;
                return d7_reader_group_items(f->reader, groups[g].group);
            }
    for (uint32_t i = 0; d7_reader_dataset(f->reader, i, &info) == 0; i++)
        sum += info.items;
    *ret_unit = "items";
    return sum;
}

static void put_summary_json(const follow *f, const char *time, double rate) {
    d7_dataset_info info;
    json_begin(f, "status");
    printf(", \"time\": \"%s\", \"state\": \"%s\", \"held\": %s, \"bytes\": %" PRIu64
           ", \"rate\": %.6g, \"items\": {",
           time, d7_reader_state(f->reader) == D7_STATE_CLOSED ? "closed" : "open",
           d7_reader_held(f->reader) ? "true" : "false", d7_reader_file_bytes(f->reader), rate);
    for (uint32_t i = 0; d7_reader_dataset(f->reader, i, &info) == 0; i++) {
        fputs(i ? ", " : "", stdout);
        cli_write_json_text(stdout, info.name, info.name_bytes);
        printf(": %" PRIu64, info.items);
    }
    fputs("}}\n", stdout);
}

/* Datasets that the unit does not speak of. */
static void put_others(const follow *f, bool grouped) {
    d7_dataset_info info;
    unsigned shown = 0;
    for (uint32_t i = 0; d7_reader_dataset(f->reader, i, &info) == 0; i++) {
        if (grouped && d7_group_of(info.name) != D7_GROUP_NONE)
            continue;
        if (shown++ == NAMES_SHOWN) {
            printf(", ...");
            return;
        }
        printf(", ");
        print_name(stdout, &info);
        printf(" %" PRIu64, info.items);
    }
}

static void put_summary_text(const follow *f, const char *time, const char *unit, uint64_t items,
                             double rate) {
    char bytes[16], speed[16];
    cli_format_count(bytes, sizeof bytes, (double)d7_reader_file_bytes(f->reader));
    cli_format_count(speed, sizeof speed, rate);
    printf("%s ", time);
    cli_write_printable(stdout, f->path, strlen(f->path));
    printf(": %" PRIu64 " %s, %s%s/s", items, unit, speed, unit);
    put_others(f, strcmp(unit, "items") != 0);
    printf(", %sB, %s\n", bytes,
           d7_reader_state(f->reader) == D7_STATE_CLOSED ? "closed"
           : d7_reader_held(f->reader)                   ? "being written"
                                                         : "open");
}

static int print_summary(follow *f) {
    const char *unit;
    char time[32];
    uint64_t items = main_items(f, &unit), bytes = d7_reader_file_bytes(f->reader), now = follow_now_ns();
    bool closed = d7_reader_state(f->reader) == D7_STATE_CLOSED;
    if (f->told && items == f->told_items && bytes == f->told_bytes && !closed)
        return 0;
    double seconds = (double)(now - f->told_ns) * 1e-9;
    double rate =
        f->told && items > f->told_items && seconds > 0 ? (double)(items - f->told_items) / seconds : 0;
    format_time(time);
    if (f->o->json)
        put_summary_json(f, time, rate);
    else
        put_summary_text(f, time, unit, items, rate);
    f->told = true;
    f->told_ns = now;
    f->told_items = items;
    f->told_bytes = bytes;
    return cli_flush_stdout();
}

int follow_print(follow *f) {
    return f->o->n_names ? print_items(f) : print_summary(f);
}

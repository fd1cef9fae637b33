#include "view.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/npy.h"
#include "cli/output.h"
#include "cli/progress.h"

/* ---- options ---- */

static const char *const format_names[] = {NULL, "png", "csv", "npy"};

static bool find_format(const char *name, view_format *ret) {
    for (unsigned i = VIEW_PNG; i <= VIEW_NPY; i++)
        if (strcmp(name, format_names[i]) == 0) {
            *ret = (view_format)i;
            return true;
        }
    return false;
}

bool view_option(view *v, int option, const char *argument) {
    switch (option) {
    case VIEW_OPTION_FROM:
        return range_option(v->self, "--from", argument, &v->from_end);
    case VIEW_OPTION_TO:
        return range_option(v->self, "--to", argument, &v->to_end);
    case VIEW_OPTION_OUTPUT:
        v->output = argument;
        return true;
    case VIEW_OPTION_OVERWRITE:
        v->overwrite = true;
        return true;
    case VIEW_OPTION_UNFRAMED:
        v->unframed = true;
        return true;
    default:
        if (find_format(argument, &v->format))
            return true;
        command_fail(v->self, "--format is png, csv or npy, not %s", argument);
        return false;
    }
}

static int choose_format(view *v) {
    const char *dot = v->output ? strrchr(v->output, '.') : NULL;
    bool standard = v->output && strcmp(v->output, "-") == 0;
    if (!v->output)
        return command_fail(v->self, "where to? give -o FILE, or -o - for standard output");
    if (v->format == VIEW_BY_NAME && standard)
        v->format = VIEW_CSV;
    if (v->format == VIEW_BY_NAME && (!dot || !find_format(dot + 1, &v->format)))
        return command_fail(v->self, "%s: the name does not end in .png, .csv or .npy: give --format",
                            v->output);
    if (v->format == VIEW_PNG && !plot_has_png())
        return command_fail(v->self, "this d7 was built without libpng: csv and npy are what it can write");
    if (standard && v->format != VIEW_CSV && isatty(STDOUT_FILENO))
        return command_fail(v->self, "%s is not for a terminal: give -o FILE", format_names[v->format]);
    return 0;
}

/* ---- the file ---- */

static int open_reader(view *v) {
    v->pool = cli_pool_new(0);
    return command_open(v->self, v->path, v->unframed, v->pool, &v->reader);
}

static int open_output(view *v) {
    if (strcmp(v->output, "-") == 0) {
        v->out = stdout;
        cli_catch_stop();
        return 0;
    }
    return result_begin(v->self, v->output, v->overwrite, &v->result);
}

int view_begin(view *v, const char *path) {
    v->path = path;
    int code = choose_format(v);
    if (code == 0)
        code = open_reader(v);
    if (code == 0)
        code = command_compare(v->self, v->reader);
    if (code == 0 && (v->from_end.given || v->to_end.given))
        code = command_together(v->self, path, v->reader);
    if (code == 0)
        code = open_output(v);
    if (code == 0)
        v->tags = range_group(v->reader) == D7_GROUP_TAGS;
    if (code == 0)
        code = range_resolve(v->self, v->reader, path, &v->from_end, &v->to_end, &v->from, &v->to);
    return code;
}

void view_note_used(view *v, uint32_t dataset_id) {
    if (v->n_used < sizeof v->used / sizeof *v->used)
        v->used[v->n_used++] = dataset_id;
}

int view_need(view *v, d7_role role, const char *name, uint32_t *ret_dataset_id) {
    d7_dataset_info info;
    uint32_t id;
    if (d7_reader_find_role(v->reader, role, &id) != 0 || d7_reader_dataset(v->reader, id, &info) != 0)
        return command_fail(v->self, "%s: there is no dataset %s; d7 info shows which there are", v->path,
                            name);
    if (info.type >= D7_FLOAT)
        return command_fail(v->self, "%s: dataset %s is of type %s; whole numbers are needed", v->path, name,
                            d7_type_name(info.type));
    view_note_used(v, id);
    *ret_dataset_id = id;
    return 0;
}

uint64_t view_end_of_range(const view *v) {
    return v->to_end.given ? v->to : UINT64_MAX;
}

/* ---- rows ---- */

typedef struct rows_job {
    const uint32_t *dataset_ids;
    size_t n;
    d7_columns_options options;
    view_rows_fn *take;
    void *ctx;
} rows_job;

/* Reads all rows. Returns 0 or the library's code. */
static int read_rows(view *v, const rows_job *job, cli_progress *bar, uint64_t *ret_skipped, d7_error *err) {
    d7_columns *columns;
    d7_chunk chunk = {0};
    int rc = d7_columns_open(&columns, v->reader, job->dataset_ids, job->n, &job->options, err);
    if (rc != 0)
        return rc;
    for (;;) {
        rc = cli_stopped ? D7_ERR_CANCELLED : d7_columns_next(columns, &chunk, err);
        if (rc != 0 || chunk.n == 0)
            break;
        job->take(job->ctx, &chunk);
        cli_progress_update(bar, chunk.first_item + chunk.n - job->options.from);
    }
    *ret_skipped = d7_columns_skipped(columns);
    d7_columns_free(columns);
    return rc;
}

/* How many rows there will be, as far as is known. */
static uint64_t rows_expected(const view *v, const rows_job *job) {
    uint64_t end = job->options.to;
    d7_dataset_info info;
    for (size_t i = 0; i < job->n; i++)
        if (d7_reader_dataset(v->reader, job->dataset_ids[i], &info) == 0 && info.items < end)
            end = info.items;
    return end > job->options.from ? end - job->options.from : 0;
}

int view_rows(view *v, const uint32_t *dataset_ids, size_t n, uint64_t from, uint64_t to,
              void (*restart)(void *ctx), view_rows_fn *take, void *ctx) {
    rows_job job = {.dataset_ids = dataset_ids, .n = n, .take = take, .ctx = ctx};
    d7_error err = {0};
    cli_progress bar;
    uint64_t skipped = 0;
    int rc, tries = 0, code = n > 1 ? command_together(v->self, v->path, v->reader) : 0;
    if (code != 0)
        return code;
    d7_columns_options_init(&job.options);
    job.options.from = from;
    job.options.to = to;
    job.options.skip_damaged = true;
    cli_progress_start(&bar, "reading", " items", rows_expected(v, &job));
    do {
        restart(ctx);
        rc = read_rows(v, &job, &bar, &skipped, &err);
    } while (rc == D7_ERR_STATE && ++tries < 3);
    cli_progress_end(&bar, rc == 0 ? bar.total : 0);
    v->skipped += skipped;
    if (rc == D7_ERR_CANCELLED)
        return command_stopped_code(v->self);
    return rc == 0 ? 0 : command_fail(v->self, "%s", err.text);
}

/* ---- attributes and values ---- */

double view_number(const view *v, const char *key) {
    const char *text = d7_reader_find_attribute(v->reader, key);
    char *end;
    double value = text ? strtod(text, &end) : 0;
    if (!text || end == text || *end || !isfinite(value) || !(value > 0))
        return NAN;
    return value;
}

unsigned view_bits(view *v, const char *key, unsigned low, unsigned high, unsigned otherwise) {
    const char *text = d7_reader_find_attribute(v->reader, key);
    uint64_t value;
    if (text && parse_count(text, &value) && value >= low && value <= high)
        return (unsigned)value;
    command_fail(v->self, "%s: attribute %s is %s; %u is assumed", v->path, key,
                 text ? "not usable" : "missing", otherwise);
    return otherwise;
}

static uint64_t of_signed(int64_t value) {
    return value < 0 ? UINT64_MAX : (uint64_t)value;
}

uint64_t view_value(d7_type type, const void *values, size_t i) {
    switch (type) {
    case D7_INT8:
        return of_signed(((const int8_t *)values)[i]);
    case D7_INT16:
        return of_signed(((const int16_t *)values)[i]);
    case D7_INT32:
        return of_signed(((const int32_t *)values)[i]);
    case D7_INT64:
        return of_signed(((const int64_t *)values)[i]);
    case D7_UINT8:
        return ((const uint8_t *)values)[i];
    case D7_UINT16:
        return ((const uint16_t *)values)[i];
    case D7_UINT32:
        return ((const uint32_t *)values)[i];
    default:
        return ((const uint64_t *)values)[i];
    }
}

/* ---- results ---- */

void view_count_text(char text[32], uint64_t count) {
    char digits[24];
    size_t n = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, count), at = 0;
    for (size_t i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
}

static void range_text(const view *v, char *text, size_t cap) {
    char from[32], to[32];
    view_count_text(from, v->from);
    view_count_text(to, v->to);
    text[0] = '\0';
    if (v->from_end.given || v->to_end.given)
        snprintf(text, cap, "items %s to %s", from, to);
}

void view_make_titles(const view *v, view_titles *titles, const char *facts) {
    const char *slash = strrchr(v->path, '/'), *created = d7_reader_find_attribute(v->reader, "Created");
    char range[80];
    range_text(v, range, sizeof range);
    snprintf(titles->name, sizeof titles->name, "%s", slash ? slash + 1 : v->path);
    snprintf(titles->facts, sizeof titles->facts, "%s", facts);
    snprintf(titles->part, sizeof titles->part, "%s%s%s%s", created ? "created " : "", created ? created : "",
             created && range[0] ? ", " : "", range);
}

int view_open_stream(view *v) {
    if (!v->out)
        v->out = fopen(v->result.temporary, "wbx");
    return v->out ? 0 : command_fail(v->self, "%s: cannot be made: %s", v->output, strerror(errno));
}

static int write_failed(view *v, const char *reason) {
    return v->out == stdout ? cli_stdout_failed()
                            : command_fail(v->self, "%s: writing failed: %s", v->output, reason);
}

int view_flush(view *v) {
    if (cli_stopped)
        return command_stopped_code(v->self);
    return fflush(v->out) != 0 || ferror(v->out) ? write_failed(v, strerror(errno)) : 0;
}

int view_write_png(view *v, const plot_figure *figure, const char *title) {
    char area[64], software[64];
    snprintf(area, sizeof area, "%d %d %d %d", figure->area.x, figure->area.y, figure->area.width,
             figure->area.height);
    snprintf(software, sizeof software, "d7 %s %s", v->self->name, d7_version());
    const plot_note notes[] = {{"Title", title}, {"Software", software}, {"d7.plot_area", area}};
    int code = view_open_stream(v);
    if (code != 0)
        return code;
    const char *failed = plot_write_png(&figure->canvas, notes, sizeof notes / sizeof *notes, v->out);
    return failed ? write_failed(v, failed) : 0;
}

static void write_csv(const view_table *table, FILE *out) {
    fprintf(out, "%s\n", table->names);
    for (size_t row = 0; row < table->rows && !ferror(out) && !cli_stopped; row++) {
        table->print(table->ctx, row, out);
        fputc('\n', out);
    }
}

static void write_npy(const view_table *table, FILE *out) {
    uint64_t shape[2] = {table->rows, table->columns};
    if (cli_npy_header(out, 'f', sizeof(double), shape, 2, false) != 0)
        return;
    for (size_t row = 0; row < table->rows; row++)
        for (size_t column = 0; column < table->columns; column++) {
            double value = table->value(table->ctx, row, column);
            if (cli_write_raw(out, sizeof value, &value, 1) != 0)
                return;
        }
}

int view_write_table(view *v, const view_table *table) {
    int code = view_open_stream(v);
    if (code != 0)
        return code;
    if (v->format == VIEW_NPY)
        write_npy(table, v->out);
    else
        write_csv(table, v->out);
    return view_flush(v);
}

/* ---- the end ---- */

static bool is_used(const view *v, uint32_t dataset_id) {
    for (size_t i = 0; i < v->n_used; i++)
        if (v->used[i] == dataset_id)
            return true;
    return dataset_id == D7_NO_DATASET;
}

/* Says what is wrong with the file as a whole and with the datasets that were used. */
static int say_problems(const view *v) {
    int code = CLI_OK;
    d7_problem p;
    for (size_t i = 0; d7_reader_problem(v->reader, i, &p) == 0; i++)
        if (p.severity == D7_DAMAGE && is_used(v, p.dataset_id)) {
            print_problem(stderr, v->path, &p, v->reader);
            code = CLI_PROBLEMS;
        }
    if (v->skipped == 0)
        return code;
    command_fail(v->self, "%s: %" PRIu64 " items were left out, which damaged pages held", v->path,
                 v->skipped);
    return CLI_PROBLEMS;
}

int view_finish(view *v, int code) {
    if (v->out && v->out != stdout && fclose(v->out) != 0 && code == 0)
        code = write_failed(v, strerror(errno));
    if (code == 0 && v->result.temporary)
        code = result_commit(&v->result);
    if (code == 0)
        code = say_problems(v);
    result_drop(&v->result);
    d7_reader_free(v->reader);
    cli_pool_free(v->pool);
    return code;
}

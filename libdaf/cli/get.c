/* daf get: the values of one property on standard output. */
#include "get.h"
#include "cli/npy.h"

#include <stdlib.h>
#include <string.h>

static int refuse_form(const char *what) {
    return cli_fail(&command_get, "%s has no npy form; use text, csv or json", what);
}

/* ---- scalars */

static void print_scalar_text(const daf_scalar *scalar) {
    uint8_t bytes[8];
    char text[48];
    if (scalar->type == DAF_STRING) {
        fwrite(scalar->value.s.text, 1, scalar->value.s.bytes, stdout);
        return;
    }
    size_t n = scalar_bytes(scalar, bytes);
    cli_format_number(text, sizeof text, type_letter(scalar->type), n, bytes);
    fputs(text, stdout);
}

static void print_scalar_raw(const daf_scalar *scalar) {
    uint8_t bytes[8];
    if (scalar->type == DAF_STRING)
        print_scalar_text(scalar);
    else
        cli_write_raw(stdout, scalar_bytes(scalar, bytes), bytes, 1);
}

static int print_scalar(const char *name, const daf_scalar *scalar, value_format form) {
    switch (form) {
    case FORMAT_RAW:
        print_scalar_raw(scalar);
        return CLI_OK;
    case FORMAT_NPY:
        if (scalar->type == DAF_STRING)
            return refuse_form("a String");
        cli_npy_header(stdout, type_letter(scalar->type), daf_type_bytes(scalar->type), NULL, 0, false);
        print_scalar_raw(scalar);
        return CLI_OK;
    case FORMAT_NPZ:
        return cli_fail(&command_get, "a scalar has no npz form");
    case FORMAT_JSON:
        print_json_scalar(stdout, scalar);
        break;
    case FORMAT_CSV:
        print_csv_text(stdout, name);
        fputc('\n', stdout);
        if (scalar->type == DAF_STRING)
            print_csv_text(stdout, scalar->value.s.text);
        else
            print_scalar_text(scalar);
        break;
    default:
        print_scalar_text(scalar);
    }
    fputc('\n', stdout);
    return CLI_OK;
}

/* ---- arrays */

enum { OPTION_FORMAT = 256, OPTION_RELAYOUT, OPTION_ROWS, OPTION_COLUMNS, OPTION_ROW, OPTION_COLUMN };

typedef struct request {
    value_format form;
    bool relayout;
    selecting rows, columns;
} request;

static int print_selected(getting *g) {
    if (g->form == FORMAT_NPZ)
        return get_npz(g);
    return g->form == FORMAT_RAW || g->form == FORMAT_NPY ? get_columns(g) : get_rows(g);
}

static int select_both(getting *g, const request *r) {
    const target *t = g->target;
    const char *axis = t->kind == TARGET_AXIS ? t->name : t->axis;
    int code = select_entries(g->self, g->d, axis, g->source.rows, &r->rows, &g->rows);
    if (code == CLI_OK)
        code = select_entries(g->self, g->d, t->columns, g->source.columns, &r->columns, &g->columns);
    return code;
}

static int get_array(daf *d, const target *t, const request *r) {
    getting g = {.self = &command_get, .d = d, .target = t, .form = r->form, .relayout = r->relayout};
    int code = source_open(&g.source, g.self, d, t, r->relayout);
    if (code)
        return code;
    code = select_both(&g, r);
    if (code == CLI_OK)
        code = print_selected(&g);
    selection_free(&g.rows);
    selection_free(&g.columns);
    source_close(&g.source);
    return code;
}

static int get_scalar(daf *d, const target *t, const request *r) {
    daf_error err;
    daf_scalar scalar;
    if (daf_get_scalar(d, &scalar, t->name, &err) != 0)
        return command_fail(&command_get, &err);
    int code = print_scalar(t->name, &scalar, r->form);
    daf_scalar_clear(&scalar);
    return code;
}

/* ---- arguments */

static bool take(void *context, int option, const char *argument) {
    request *r = context;
    switch (option) {
    case OPTION_FORMAT:
        if (format_parse(&r->form, argument) == 0)
            return true;
        cli_fail(&command_get, "no format \"%s\"", argument);
        return false;
    case OPTION_RELAYOUT:
        r->relayout = true;
        return true;
    case OPTION_ROWS:
        r->rows.range = argument;
        return true;
    case OPTION_COLUMNS:
        r->columns.range = argument;
        return true;
    case OPTION_ROW:
        r->rows.names[r->rows.n_names++] = argument;
        return true;
    default:
        r->columns.names[r->columns.n_names++] = argument;
        return true;
    }
}

static int check_request(const request *r, const target *t) {
    bool some_rows = r->rows.range || r->rows.n_names, some_columns = r->columns.range || r->columns.n_names;
    if (t->kind == TARGET_SCALAR && some_rows)
        return cli_misused(&command_get, "a scalar has no rows");
    if (t->kind != TARGET_MATRIX && (some_columns || r->relayout))
        return cli_misused(&command_get, "--columns, --column and --relayout are for a matrix");
    return CLI_OK;
}

static int get(const request *r, int argc, char **argv) {
    target t;
    daf *d;
    int n = argc - optind - 1;
    if (target_parse(&t, n, argv + optind + 1) != n)
        return cli_misused(&command_get, "a path and one property are needed");
    int code = check_request(r, &t);
    if (code)
        return code;
    cli_pool *pool = cli_pool_new(0);
    code = command_open(&command_get, &d, argv[optind], "r", pool);
    if (code == CLI_OK) {
        code = t.kind == TARGET_SCALAR ? get_scalar(d, &t, r) : get_array(d, &t, r);
        daf_free(d);
    }
    cli_pool_free(pool);
    return code;
}

static int run_get(const cli_command *self, int argc, char **argv) {
    static const struct option options[] = {{"format", required_argument, NULL, OPTION_FORMAT},
                                            {"relayout", no_argument, NULL, OPTION_RELAYOUT},
                                            {"rows", required_argument, NULL, OPTION_ROWS},
                                            {"columns", required_argument, NULL, OPTION_COLUMNS},
                                            {"row", required_argument, NULL, OPTION_ROW},
                                            {"column", required_argument, NULL, OPTION_COLUMN},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    request r = {.form = FORMAT_TEXT, .rows.option = "rows", .columns.option = "columns"};
    r.rows.names = calloc((size_t)argc, sizeof *r.rows.names);
    r.columns.names = calloc((size_t)argc, sizeof *r.columns.names);
    int code = r.rows.names && r.columns.names ? cli_options(self, argc, argv, options, take, &r, 2, 5)
                                               : cli_fail(self, "out of memory");
    if (code < 0)
        code = get(&r, argc, argv);
    free(r.rows.names);
    free(r.columns.names);
    return code;
}

const cli_command command_get = {
    .name = "get",
    .summary = "writes the values of a property",
    .help = "Usage: daf get PATH scalar NAME\n"
            "       daf get PATH axis NAME\n"
            "       daf get PATH vector AXIS NAME\n"
            "       daf get PATH matrix ROWS COLUMNS NAME\n"
            "Writes the values to standard output.\n\n"
            "  --format text|csv|raw|npy|json|npz\n"
            "           text   one value a line; of a matrix one row a line, its values separated by tabs "
            "(default)\n"
            "           csv    with the entries of the axes and a heading line\n"
            "           raw    bare little-endian values, a matrix column by column; texts as lines\n"
            "           npy    a NumPy array of the same shape (numbers only)\n"
            "           json   a value, an array, or an array of rows; NaN and infinities as strings\n"
            "           npz    what is stored of it, as SciPy's save_npz does; a vector as a matrix of one "
            "column\n"
            "  --rows FIRST:END, --columns FIRST:END\n"
            "                  only these, counted from 0, without END; either may be left out\n"
            "  --row ENTRY, --column ENTRY\n"
            "                  only the entries of these names, in this order; may be given for several\n"
            "  --relayout      read a matrix that is stored as COLUMNS x ROWS only from that\n"
            "  --help          this text\n\n"
            "Examples:\n"
            "  daf get run.daf scalar photons\n"
            "  daf get run.daf vector dt_bin counts --format csv --rows 0:100 > decay.csv\n"
            "  daf get run.daf matrix y_pixel x_pixel intensity --format npy > image.npy\n"
            "  daf get cells.daf matrix gene cell counts --row TP53 --format csv\n",
    .run = run_get};

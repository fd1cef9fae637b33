/* daf get: the values of one property on standard output. */
#include <string.h>

#include "cli/npy.h"
#include "command.h"

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

typedef struct view {
    const daf_array *values;
    const daf_array *rows, *columns; /* the entries of its axes; NULL where there are none */
    const target *target;
} view;

static uint64_t index_of(const view *v, uint64_t row, uint64_t column) {
    return row + column * daf_array_rows(v->values);
}

static void print_text(const view *v) {
    for (uint64_t r = 0; r < daf_array_rows(v->values); r++) {
        for (uint64_t c = 0; c < daf_array_columns(v->values); c++) {
            if (c)
                fputc('\t', stdout);
            print_text_element(stdout, v->values, index_of(v, r, c));
        }
        fputc('\n', stdout);
    }
}

static void print_csv_heading(const view *v) {
    if (v->target->kind == TARGET_AXIS) {
        print_csv_text(stdout, v->target->name);
    } else {
        print_csv_text(stdout, v->target->axis);
        if (v->target->kind == TARGET_VECTOR) {
            fputc(',', stdout);
            print_csv_text(stdout, v->target->name);
        }
    }
    for (uint64_t c = 0; v->columns && c < daf_array_count(v->columns); c++) {
        fputc(',', stdout);
        print_csv_element(stdout, v->columns, c);
    }
    fputc('\n', stdout);
}

static void print_csv(const view *v) {
    print_csv_heading(v);
    for (uint64_t r = 0; r < daf_array_rows(v->values); r++) {
        if (v->rows) {
            print_csv_element(stdout, v->rows, r);
            fputc(',', stdout);
        }
        for (uint64_t c = 0; c < daf_array_columns(v->values); c++) {
            if (c)
                fputc(',', stdout);
            print_csv_element(stdout, v->values, index_of(v, r, c));
        }
        fputc('\n', stdout);
    }
}

static void print_json(const view *v) {
    bool matrix = v->target->kind == TARGET_MATRIX;
    fputc('[', stdout);
    for (uint64_t r = 0; r < daf_array_rows(v->values); r++) {
        if (r)
            fputs(matrix ? ",\n" : ",", stdout);
        if (matrix)
            fputc('[', stdout);
        for (uint64_t c = 0; c < daf_array_columns(v->values); c++) {
            if (c)
                fputc(',', stdout);
            print_json_element(stdout, v->values, index_of(v, r, c));
        }
        if (matrix)
            fputc(']', stdout);
    }
    fputs("]\n", stdout);
}

static int print_raw(const view *v) {
    const daf_array *a = v->values;
    uint64_t n = daf_array_count(a);
    if (daf_array_type(a) != DAF_STRING)
        return cli_write_raw(stdout, daf_type_bytes(daf_array_type(a)), daf_array_values(a), (size_t)n);
    for (uint64_t i = 0; i < n; i++)
        fprintf(stdout, "%s\n", daf_array_strings(a)[i]);
    return 0;
}

static int print_npy(const view *v) {
    const daf_array *a = v->values;
    daf_type type = daf_array_type(a);
    uint64_t shape[2] = {daf_array_rows(a), daf_array_columns(a)};
    size_t rank = v->target->kind == TARGET_MATRIX ? 2 : 1;
    if (type == DAF_STRING)
        return refuse_form("a property of Strings");
    cli_npy_header(stdout, type_letter(type), daf_type_bytes(type), shape, rank, rank == 2);
    print_raw(v);
    return CLI_OK;
}

static int print_view(const view *v, value_format form) {
    switch (form) {
    case FORMAT_CSV:
        print_csv(v);
        return CLI_OK;
    case FORMAT_RAW:
        print_raw(v);
        return CLI_OK;
    case FORMAT_NPY:
        return print_npy(v);
    case FORMAT_JSON:
        print_json(v);
        return CLI_OK;
    default:
        print_text(v);
        return CLI_OK;
    }
}

static int get_values(daf *d, const target *t, daf_array **ret, daf_error *err) {
    switch (t->kind) {
    case TARGET_AXIS:
        return daf_get_axis(d, ret, t->name, err);
    case TARGET_VECTOR:
        return daf_get_vector(d, ret, t->axis, t->name, err);
    default:
        return daf_get_matrix(d, ret, t->axis, t->columns, t->name, err);
    }
}

static int get_array(daf *d, const target *t, value_format form) {
    daf_error err;
    daf_array *values = NULL, *rows = NULL, *columns = NULL;
    int code, rc = get_values(d, t, &values, &err);
    if (rc == 0 && form == FORMAT_CSV && t->axis)
        rc = daf_get_axis(d, &rows, t->axis, &err);
    if (rc == 0 && form == FORMAT_CSV && t->columns)
        rc = daf_get_axis(d, &columns, t->columns, &err);
    view v = {.values = values, .rows = rows, .columns = columns, .target = t};
    code = rc ? command_fail(&command_get, &err) : print_view(&v, form);
    daf_array_free(values);
    daf_array_free(rows);
    daf_array_free(columns);
    return code;
}

static int get_scalar(daf *d, const target *t, value_format form) {
    daf_error err;
    daf_scalar scalar;
    if (daf_get_scalar(d, &scalar, t->name, &err) != 0)
        return command_fail(&command_get, &err);
    int code = print_scalar(t->name, &scalar, form);
    daf_scalar_clear(&scalar);
    return code;
}

static bool take(void *context, int option, const char *argument) {
    (void)option;
    if (format_parse(context, argument) == 0)
        return true;
    cli_fail(&command_get, "no format \"%s\"", argument);
    return false;
}

static int run(const cli_command *self, int argc, char **argv) {
    static const struct option options[] = {
        {"format", required_argument, NULL, 'f'}, {"help", no_argument, NULL, 'h'}, {0}};
    value_format form = FORMAT_TEXT;
    target t;
    daf *d;
    int code = cli_options(self, argc, argv, options, take, &form, 2, 5);
    if (code >= 0)
        return code;
    int n = argc - optind - 1;
    if (target_parse(&t, n, argv + optind + 1) != n)
        return cli_misused(self, "a path and one property are needed");
    cli_pool *pool = cli_pool_new(0);
    code = command_open(self, &d, argv[optind], "r", pool);
    if (code == CLI_OK) {
        code = t.kind == TARGET_SCALAR ? get_scalar(d, &t, form) : get_array(d, &t, form);
        daf_free(d);
    }
    cli_pool_free(pool);
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
            "  --format text   one value a line; of a matrix one row a line, its values separated by tabs "
            "(default)\n"
            "           csv    with the entries of the axes and a heading line\n"
            "           raw    bare little-endian values, a matrix column by column; texts as lines\n"
            "           npy    a NumPy array of the same shape (numbers only)\n"
            "           json   a value, an array, or an array of rows; NaN and infinities as strings\n"
            "  --help          this text\n\n"
            "Examples:\n"
            "  daf get run.daf scalar photons\n"
            "  daf get run.daf vector dt_bin counts --format csv > decay.csv\n"
            "  daf get run.daf matrix y_pixel x_pixel intensity --format npy > image.npy\n",
    .run = run};

/* The forms that go row by row: text, CSV and JSON. */
#include "get.h"

typedef struct printing {
    FILE *out;
    void (*print)(FILE *out, const daf_array *a, uint64_t i);
    const char *separator;
    bool first;
} printing;

static void print_cell(void *context, const daf_array *values, uint64_t index) {
    printing *p = context;
    if (!p->first)
        fputs(p->separator, p->out);
    p->first = false;
    p->print(p->out, values, index);
}

/* ---- CSV: the entries of the axes */

static int get_entries(const getting *g, daf_array **rows, daf_array **columns) {
    daf_error err;
    int rc = 0;
    *rows = *columns = NULL;
    if (g->form == FORMAT_CSV && g->target->axis)
        rc = daf_get_axis(g->d, rows, g->target->axis, &err);
    if (rc == 0 && g->form == FORMAT_CSV && g->target->columns)
        rc = daf_get_axis(g->d, columns, g->target->columns, &err);
    return rc ? command_fail(g->self, &err) : CLI_OK;
}

static void print_heading(const getting *g, const daf_array *columns) {
    const target *t = g->target;
    print_csv_text(stdout, t->axis ? t->axis : t->name);
    if (t->kind == TARGET_VECTOR) {
        fputc(',', stdout);
        print_csv_text(stdout, t->name);
    }
    for (size_t i = 0; i < g->columns.n_runs && columns; i++)
        for (uint64_t c = 0; c < g->columns.runs[i].n; c++) {
            fputc(',', stdout);
            print_csv_element(stdout, columns, g->columns.runs[i].first + c);
        }
    fputc('\n', stdout);
}

/* ---- rows */

static void print_row(const getting *g, const block *b, uint64_t row, bool very_first,
                      const daf_array *entries) {
    bool matrix = g->target->kind == TARGET_MATRIX;
    printing p = {.out = stdout, .first = true, .separator = g->form == FORMAT_TEXT ? "\t" : ","};
    p.print = g->form == FORMAT_JSON  ? print_json_element
              : g->form == FORMAT_CSV ? print_csv_element
                                      : print_text_element;
    if (g->form == FORMAT_JSON && !very_first)
        fputs(matrix ? ",\n" : ",", stdout);
    if (g->form == FORMAT_JSON && matrix)
        fputc('[', stdout);
    if (entries) {
        print_csv_element(stdout, entries, b->rows.first + row);
        p.first = false;
    }
    block_for_row(b, row, print_cell, &p);
    if (g->form != FORMAT_JSON)
        fputc('\n', stdout);
    else if (matrix)
        fputc(']', stdout);
}

static int print_run(getting *g, run rows, bool *very_first, const daf_array *entries) {
    uint64_t at_once = source_rows_at_once(&g->source, g->columns.n);
    int code = CLI_OK;
    for (uint64_t done = 0; done < rows.n && code == CLI_OK; done += at_once) {
        uint64_t n = rows.n - done < at_once ? rows.n - done : at_once;
        block b;
        code = block_read(&b, &g->source, (run){rows.first + done, n}, &g->columns);
        if (code)
            break;
        for (uint64_t r = 0; r < n; r++) {
            print_row(g, &b, r, *very_first, entries);
            *very_first = false;
        }
        block_free(&b);
        if (ferror(stdout))
            code = cli_stdout_failed();
    }
    return code;
}

int get_rows(getting *g) {
    daf_array *rows, *columns;
    bool very_first = true;
    int code = get_entries(g, &rows, &columns);
    if (code == CLI_OK && g->form == FORMAT_CSV)
        print_heading(g, columns);
    if (code == CLI_OK && g->form == FORMAT_JSON)
        fputc('[', stdout);
    for (size_t i = 0; i < g->rows.n_runs && code == CLI_OK; i++)
        code = print_run(g, g->rows.runs[i], &very_first, rows);
    if (code == CLI_OK && g->form == FORMAT_JSON)
        fputs("]\n", stdout);
    daf_array_free(rows);
    daf_array_free(columns);
    return code;
}

/* The forms that go column by column: bare values, and NumPy's. */
#include "cli/npy.h"
#include "get.h"

static void write_cell(void *context, const daf_array *values, uint64_t index) {
    size_t width = *(const size_t *)context;
    if (daf_array_type(values) == DAF_STRING)
        fprintf(stdout, "%s\n", daf_array_strings(values)[index]);
    else
        cli_write_raw(stdout, width, (const uint8_t *)daf_array_values(values) + index * width, 1);
}

/* The rows of some columns, which lie in one piece as they are wanted. */
static void write_piece(const getting *g, const piece *p, uint64_t n_rows) {
    size_t width = daf_type_bytes(g->source.type);
    for (uint64_t c = 0; c < p->n_columns; c++)
        cli_write_raw(stdout, width,
                      (const uint8_t *)daf_array_values(p->values) + (p->first + c * p->column_step) * width,
                      (size_t)n_rows);
}

/* Columns and rows of one run each. */
static int write_block(getting *g, run rows, run columns) {
    const selection one = {.runs = &columns, .n_runs = 1, .n = columns.n};
    size_t width = daf_type_bytes(g->source.type);
    block b;
    int code = block_read(&b, &g->source, rows, &one);
    if (code)
        return code;
    if (g->source.type != DAF_STRING && !g->source.transposed) {
        write_piece(g, &b.pieces[0], b.rows.n);
    } else {
        const piece *p = &b.pieces[0];
        for (uint64_t c = 0; c < columns.n; c++)
            for (uint64_t r = 0; r < b.rows.n; r++)
                write_cell(&width, p->values, p->first + r * p->row_step + c * p->column_step);
    }
    block_free(&b);
    return ferror(stdout) ? cli_stdout_failed() : CLI_OK;
}

/* One column, a part of its rows after the other. */
static int write_column(getting *g, uint64_t column) {
    uint64_t at_once = source_rows_at_once(&g->source, 1);
    int code = CLI_OK;
    for (size_t i = 0; i < g->rows.n_runs; i++) {
        run rows = g->rows.runs[i];
        for (uint64_t done = 0; done < rows.n && code == CLI_OK; done += at_once) {
            uint64_t n = rows.n - done < at_once ? rows.n - done : at_once;
            code = write_block(g, (run){rows.first + done, n}, (run){column, 1});
        }
    }
    return code;
}

/* Several columns at once when they are small, and their rows lie together. */
static int write_run(getting *g, run columns) {
    uint64_t at_once = g->rows.n_runs == 1 ? source_rows_at_once(&g->source, g->rows.n) : 1;
    int code = CLI_OK;
    for (uint64_t done = 0; done < columns.n && code == CLI_OK; done += at_once) {
        uint64_t n = columns.n - done < at_once ? columns.n - done : at_once;
        code = at_once > 1 ? write_block(g, g->rows.runs[0], (run){columns.first + done, n})
                           : write_column(g, columns.first + done);
    }
    return code;
}

int get_columns(getting *g) {
    const source *s = &g->source;
    uint64_t shape[2] = {g->rows.n, g->columns.n};
    size_t rank = g->target->kind == TARGET_MATRIX ? 2 : 1;
    int code = CLI_OK;
    if (g->form == FORMAT_NPY && s->type == DAF_STRING)
        return cli_fail(g->self, "Strings have no npy form; use text, csv or json");
    if (g->form == FORMAT_NPY)
        cli_npy_header(stdout, type_letter(s->type), daf_type_bytes(s->type), shape, rank, rank == 2);
    for (size_t i = 0; i < g->columns.n_runs && g->rows.n_runs && code == CLI_OK; i++)
        code = write_run(g, g->columns.runs[i]);
    return code;
}

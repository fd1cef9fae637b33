#include "source.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 25 };

/* ---- opening */

/* All is read by parts, also what could be a view of its file: another program may cut that while it is printed. */
static int open_values(source *s, daf *d, const target *t, const daf_info *info, daf_error *err) {
    bool matrix = t->kind == TARGET_MATRIX;
    s->type = info->type;
    s->rows = info->rows;
    s->columns = info->columns;
    s->is_sparse = info->sparse;
    return matrix ? daf_open_matrix_reader(d, &s->reader, t->axis, t->columns, t->name, err)
                  : daf_open_vector_reader(d, &s->reader, t->axis, t->name, err);
}

static int open_axis(source *s, daf *d, const char *name, daf_error *err) {
    int rc = daf_get_axis(d, &s->array, name, err);
    if (rc)
        return rc;
    s->type = DAF_STRING;
    s->rows = daf_array_count(s->array);
    s->columns = 1;
    return 0;
}

static int get_info(daf *d, const target *t, daf_info *ret, daf_error *err) {
    return t->kind == TARGET_MATRIX ? daf_matrix_info(d, ret, t->axis, t->columns, t->name, err)
                                    : daf_vector_info(d, ret, t->axis, t->name, err);
}

static int open_other_layout(source *s, daf *d, const target *t, daf_error *err) {
    const target other = {.kind = TARGET_MATRIX, .axis = t->columns, .columns = t->axis, .name = t->name};
    daf_info info;
    int rc = get_info(d, &other, &info, err);
    if (rc == 0)
        rc = open_values(s, d, &other, &info, err);
    uint64_t rows = s->rows;
    s->rows = s->columns;
    s->columns = rows;
    s->transposed = true;
    return rc;
}

static bool has_other_layout(daf *d, const target *t) {
    bool there = false;
    return t->kind == TARGET_MATRIX && daf_has_matrix(d, &there, t->columns, t->axis, t->name, NULL) == 0 &&
           there;
}

int source_open(source *ret, const cli_command *self, daf *d, const target *t, bool relayout) {
    daf_error err;
    daf_info info;
    *ret = (source){.self = self};
    if (t->kind == TARGET_AXIS)
        return open_axis(ret, d, t->name, &err) ? command_fail(self, &err) : CLI_OK;
    int rc = get_info(d, t, &info, &err);
    if (rc == 0)
        rc = open_values(ret, d, t, &info, &err);
    else if (rc == DAF_ERR_MISSING && relayout && has_other_layout(d, t))
        rc = open_other_layout(ret, d, t, &err);
    if (rc == 0)
        return CLI_OK;
    int code = command_fail(self, &err);
    if (rc == DAF_ERR_MISSING && has_other_layout(d, t))
        cli_fail(self, "it is there in the other layout; --relayout reads that");
    return code;
}

void source_close(source *s) {
    daf_array_free(s->array);
    daf_reader_free(s->reader);
}

/* ---- blocks */

uint64_t source_rows_at_once(const source *s, uint64_t n_columns) {
    uint64_t width = s->type == DAF_STRING ? 64 : daf_type_bytes(s->type);
    if (n_columns == 0)
        return s->rows ? s->rows : 1;
    return BLOCK_BYTES / width / n_columns + 1;
}

static int read_piece(piece *ret, source *s, run rows, run columns) {
    daf_error err;
    run down = s->transposed ? columns : rows, across = s->transposed ? rows : columns; /* as stored */
    uint64_t step = s->array ? daf_array_rows(s->array) : down.n;
    *ret = (piece){.values = s->array, .n_columns = columns.n};
    if (s->array) {
        ret->first = down.first + across.first * step;
    } else {
        const daf_range range = {down.first, down.n, across.first, across.n};
        if (daf_reader_read(s->reader, &ret->owned, &range, &err) != 0)
            return command_fail(s->self, &err);
        ret->values = ret->owned;
    }
    ret->row_step = s->transposed ? step : 1;
    ret->column_step = s->transposed ? 1 : step;
    return CLI_OK;
}

int block_read(block *ret, source *s, run rows, const selection *columns) {
    block b = {.rows = rows, .n_columns = columns->n};
    b.pieces = calloc(columns->n_runs + 1, sizeof *b.pieces);
    int code = b.pieces ? CLI_OK : cli_fail(s->self, "out of memory");
    for (size_t i = 0; i < columns->n_runs && code == CLI_OK; i++, b.n_pieces++)
        code = read_piece(&b.pieces[i], s, rows, columns->runs[i]);
    if (code)
        block_free(&b);
    else
        *ret = b;
    return code;
}

void block_free(block *b) {
    for (size_t i = 0; i < b->n_pieces; i++)
        daf_array_free(b->pieces[i].owned);
    free(b->pieces);
}

void block_for_row(const block *b, uint64_t row, each_cell visit, void *context) {
    for (size_t i = 0; i < b->n_pieces; i++) {
        const piece *p = &b->pieces[i];
        uint64_t index = p->first + row * p->row_step;
        for (uint64_t c = 0; c < p->n_columns; c++, index += p->column_step)
            visit(context, p->values, index);
    }
}

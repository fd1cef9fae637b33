/* Rows and columns of sparse values that do not lie side by side, in the order in which they are wanted. The result is set,
 * and so checked, in a repository in memory. */
#include <stdlib.h>
#include <string.h>

#include "get.h"

/* Where the rows go: the places of row r are places[starts[r]] up to starts[r + 1]; one may be wanted twice. */
typedef struct row_map {
    uint64_t *starts, *places;
} row_map;

typedef struct stored {
    uint64_t row, k; /* new row; number of the value */
} stored;

typedef struct picking {
    const daf_sparse *whole;
    const selection *rows, *columns;
    row_map map;
    stored *found; /* of one column */
    uint64_t *colptr, *indices;
    uint8_t *values;
} picking;

static void free_picking(picking *p) {
    free(p->map.starts);
    free(p->map.places);
    free(p->found);
    free(p->colptr);
    free(p->indices);
    free(p->values);
}

static bool map_rows(picking *p) {
    uint64_t n_rows = daf_sparse_csc(p->whole)->rows, place = 0;
    uint64_t *starts = calloc((size_t)n_rows + 2, sizeof *starts);
    uint64_t *places = calloc((size_t)p->rows->n + 1, sizeof *places);
    p->map = (row_map){starts, places};
    p->found = calloc((size_t)p->rows->n + 1, sizeof *p->found);
    if (!starts || !places || !p->found)
        return false;
    for (size_t i = 0; i < p->rows->n_runs; i++)
        for (uint64_t r = 0; r < p->rows->runs[i].n; r++)
            starts[p->rows->runs[i].first + r + 2]++;
    for (uint64_t r = 0; r < n_rows; r++)
        starts[r + 2] += starts[r + 1];
    for (size_t i = 0; i < p->rows->n_runs; i++)
        for (uint64_t r = 0; r < p->rows->runs[i].n; r++)
            places[starts[p->rows->runs[i].first + r + 1]++] = place++;
    return true;
}

static int by_row(const void *a, const void *b) {
    const stored *x = a, *y = b;
    return (x->row > y->row) - (x->row < y->row);
}

/* The wanted values of one column, in the order of their new rows. */
static uint64_t find(picking *p, uint64_t column) {
    uint64_t n = 0, end = daf_sparse_start(p->whole, column + 1);
    bool sorted = true;
    for (uint64_t k = daf_sparse_start(p->whole, column); k < end; k++) {
        uint64_t row = daf_sparse_index(p->whole, k);
        for (uint64_t at = p->map.starts[row]; at < p->map.starts[row + 1]; at++) {
            p->found[n] = (stored){p->map.places[at], k};
            sorted = sorted && (n == 0 || p->found[n - 1].row < p->found[n].row);
            n++;
        }
    }
    if (!sorted)
        qsort(p->found, (size_t)n, sizeof *p->found, by_row);
    return n;
}

/* Puts the column's values behind the nnz that there are, or, without room for any yet, counts them. Returns how many. */
static uint64_t put_column(picking *p, uint64_t column, uint64_t nnz) {
    const daf_csc *c = daf_sparse_csc(p->whole);
    size_t width = daf_type_bytes(c->type);
    uint64_t n = find(p, column);
    for (uint64_t i = 0; i < n && p->indices; i++) {
        p->indices[nnz + i] = p->found[i].row + 1;
        if (p->values)
            memcpy(p->values + (nnz + i) * width, (const uint8_t *)c->values + p->found[i].k * width, width);
    }
    return n;
}

static uint64_t put_columns(picking *p) {
    uint64_t nnz = 0, column = 0;
    for (size_t i = 0; i < p->columns->n_runs; i++)
        for (uint64_t j = 0; j < p->columns->runs[i].n; j++) {
            nnz += put_column(p, p->columns->runs[i].first + j, nnz);
            p->colptr[++column] = nnz + 1;
        }
    return nnz;
}

static int make(daf_sparse **ret, const daf_csc *c, daf_error *err) {
    daf *d;
    int rc = daf_open_memory(&d, NULL, err);
    if (rc)
        return rc;
    rc = daf_add_axis_integers(d, "rows", 0, 1, c->rows, err);
    if (rc == 0)
        rc = daf_add_axis_integers(d, "columns", 0, 1, c->columns, err);
    if (rc == 0)
        rc = daf_set_sparse_matrix(d, "rows", "columns", "picked", c, NULL, err);
    if (rc == 0)
        rc = daf_get_sparse_matrix(d, ret, "rows", "columns", "picked", err);
    daf_free(d);
    return rc;
}

/* False without memory. */
static bool pick(picking *p, daf_csc *c) {
    size_t width = daf_type_bytes(c->type);
    p->colptr = calloc((size_t)c->columns + 1, sizeof *p->colptr);
    if (!map_rows(p) || !p->colptr)
        return false;
    p->colptr[0] = 1;
    c->nnz = put_columns(p);
    p->indices = calloc((size_t)c->nnz + 1, sizeof *p->indices);
    p->values = c->values ? calloc((size_t)c->nnz + 1, width) : NULL;
    if (!p->indices || (c->values && !p->values))
        return false;
    put_columns(p);
    c->colptr = p->colptr;
    c->indices = p->indices;
    c->values = p->values;
    return true;
}

int pick_sparse(daf_sparse **ret, const cli_command *self, const daf_sparse *whole, const selection *rows,
                const selection *columns) {
    picking p = {.whole = whole, .rows = rows, .columns = columns};
    daf_csc c = *daf_sparse_csc(whole);
    daf_error err;
    c.index_type = DAF_UINT64;
    c.rows = rows->n;
    c.columns = columns->n;
    int code = pick(&p, &c) ? CLI_OK : cli_fail(self, "out of memory");
    if (code == CLI_OK && make(ret, &c, &err) != 0)
        code = command_fail(self, &err);
    free_picking(&p);
    return code;
}

/* The values of a property, read block by block, so that large packed and sparse data need no memory for the whole. */
#ifndef DAF_CLI_SOURCE_H
#define DAF_CLI_SOURCE_H

#include "command.h"

/* ---- which rows or columns */

typedef struct run {
    uint64_t first, n;
} run;

/* In the order in which they are wanted. */
typedef struct selection {
    run *runs;
    size_t n_runs;
    uint64_t n; /* of all runs */
} selection;

/* What the options of one dimension say. */
typedef struct selecting {
    const char *option; /* "rows" */
    const char *range;  /* FIRST:END, FIRST:, :END or INDEX; NULL: not given */
    const char **names; /* entries of the axis */
    size_t n_names;
} selecting;

/* Of the axis, which has `length` entries. Neither range nor names: all. Returns 0, or an exit code after saying why. */
int select_entries(const cli_command *self, daf *d, const char *axis, uint64_t length, const selecting *how,
                   selection *ret);
void selection_free(selection *s);

/* ---- values */

typedef struct source {
    const cli_command *self;
    daf_type type;
    uint64_t rows, columns; /* as they are asked for; of a vector or axis: 1 column */
    bool transposed;        /* what is stored is the transpose */
    bool is_sparse;         /* as stored */
    daf_array *array;       /* of an axis: the whole, */
    daf_reader *reader;     /* else by parts */
} source;

/* Opens a vector, a matrix or an axis. relayout: a matrix that is stored only as columns x rows is read from that. Returns
 * 0, or an exit code after saying why. */
int source_open(source *ret, const cli_command *self, daf *d, const target *t, bool relayout);
void source_close(source *s);

/* Some rows, all in one run, and some columns. */
typedef struct piece {
    const daf_array *values;
    daf_array *owned;
    uint64_t first; /* element of the first value */
    uint64_t n_columns;
    uint64_t row_step, column_step; /* in elements */
} piece;

typedef struct block {
    run rows;
    uint64_t n_columns;
    piece *pieces; /* one after the other by columns */
    size_t n_pieces;
} block;

/* How many rows a block of so many columns should have. */
uint64_t source_rows_at_once(const source *s, uint64_t n_columns);

int block_read(block *ret, source *s, run rows, const selection *columns);
void block_free(block *b);

/* Calls back for every value of a row of the block, column after column. */
typedef void (*each_cell)(void *context, const daf_array *values, uint64_t index);
void block_for_row(const block *b, uint64_t row, each_cell visit, void *context);

#endif

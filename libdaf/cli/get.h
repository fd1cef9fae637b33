/* What the forms of daf get share. */
#ifndef DAF_CLI_GET_H
#define DAF_CLI_GET_H

#include "source.h"

/* Some rows and columns of a vector, matrix or axis, on standard output. */
typedef struct getting {
    const cli_command *self;
    daf *d;
    const target *target;
    value_format form;
    bool relayout;
    source source;
    selection rows, columns;
} getting;

/* Each returns an exit code. */
int get_rows(getting *g);    /* text, csv, json */
int get_columns(getting *g); /* raw, npy */
int get_npz(getting *g);

/* The values of some rows and columns; numbers only. Returns 0, or an exit code after saying why. */
int pick_sparse(daf_sparse **ret, const cli_command *self, const daf_sparse *whole, const selection *rows,
                const selection *columns);

#endif

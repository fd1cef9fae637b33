/* What a repository holds, gathered in one walk. */
#ifndef DAF_CLI_REPORT_H
#define DAF_CLI_REPORT_H

#include "command.h"

/* One property; which names and facts count depends on the kind. */
typedef struct row {
    target_kind kind;
    char *axis, *columns, *name;
    char *problem;     /* why it cannot be read; NULL: it can */
    daf_scalar scalar; /* of a scalar */
    uint64_t length;   /* of an axis */
    uint64_t bytes;    /* of an axis: on disk */
    daf_info info;     /* of a vector or matrix */
} row;

/* Scalars, axes, vectors by axis, matrices by rows and columns axis; all by name. */
typedef struct report {
    daf *d;
    bool examines; /* looks into payloads, too: not through the net */
    row *rows;
    size_t n, capacity;
    bool failed; /* `err` says why */
    daf_error err;
} report;

/* Fills in what the handle's repository holds; looks into the payloads, or at descriptors and sizes alone. `failed` says when
 * that could not be had. */
void report_gather(report *r, daf *d, bool examines);
void report_free(report *r);

size_t report_count_problems(const report *r);

/* What a vector or matrix is, such as "Float32 5 x 3, zstd 5, ..., 1234 bytes on disk". */
void print_info(FILE *out, const row *r);

/* The facts of a row on one line: print_info(), a scalar's value, an axis' length, or the problem. */
void print_facts(FILE *out, const row *r);

/* The whole as one JSON object. */
void report_print_json(report *r, const char *path);

#endif

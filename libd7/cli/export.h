/* What `d7 export` is made of: export.c has the command, export_rows.c finds out which rows of which datasets go out and reads
 * them, and each format has a file of its own.
 *
 * Columns of one group (photons, tags) go out row by row: what a damaged page of one of them held is left out of all. That is
 * found out by reading, so a format that must say beforehand how much there is may be told EXPORT_AGAIN: it then begins anew,
 * with the rows known. */
#ifndef D7_CLI_EXPORT_H
#define D7_CLI_EXPORT_H

#include "cli/pool.h"
#include "cli/progress.h"
#include "commands.h"
#include "range.h"

enum { EXPORT_AGAIN = -1 };

typedef struct export_range {
    uint64_t from, to;
    uint64_t before; /* rows of the ranges before it */
} export_range;

typedef struct export_column {
    uint32_t dataset_id;
    d7_role role;
    d7_type type;
    const char *name;
} export_column;

/* Columns of equal length: those of a group, or one dataset that belongs to none. */
typedef struct export_set {
    d7_group group;
    export_column *columns; /* [n] */
    size_t n;
    size_t first_key;     /* the place of its first column among the names, see export_names.h */
    export_range *ranges; /* [n_ranges] rows that go out, in order */
    size_t n_ranges;
    uint64_t rows;     /* in all ranges */
    uint64_t left_out; /* rows in between, in damaged pages */
    bool looked;       /* the ranges are known by having read them all */
} export_set;

typedef struct export_job {
    const command *self;
    const char *path;
    const char *temporary; /* what to write to; NULL: standard output */
    const char *final;     /* the name it will have */
    int level;             /* of compression; 0: none */
    d7_reader *reader;
    cli_pool *pool;
    export_set *sets; /* [n_sets] */
    size_t n_sets;
    size_t set_of[D7_GROUP_TAGS + 1];        /* 1 + the place of a group's set in `sets`; 0: none */
    uint64_t group_items[D7_GROUP_TAGS + 1]; /* in the file, as the library counts them */
    bool *goes_out;                          /* [datasets] */
    d7_group ranged;                         /* the group that `range` counts in */
    export_range range;                      /* rows of it that are wanted; `to` of UINT64_MAX: to the end */
    bool all_rows;                           /* no range was asked for */
    bool chosen;                             /* datasets were named */
    cli_progress bar;
    uint64_t done; /* values, for the bar */
} export_job;

/* Sorts the datasets of these names (n of 0: all) into sets. Returns 0, or an exit code after saying why; as all functions
 * here, which may also return EXPORT_AGAIN where it is named. */
int export_plan(export_job *job, const char *const *names, size_t n);
void export_release(export_job *job);

/* The set of a group; NULL where nothing of it goes out. */
export_set *export_find_set(const export_job *job, d7_group group);

/* Values in all sets. */
uint64_t export_values(const export_job *job);

/* Rows, good for the call. Returns 0 or an exit code. */
typedef int export_take(void *ctx, const d7_chunk *chunk);

/* Reads the rows of a set: columns [first, first + n) of it. /photons/ms comes with the numbers that its photons have in what
 * goes out. EXPORT_AGAIN: the rows are not what was thought; the set knows them now. */
int export_read(export_job *job, export_set *set, size_t first, size_t n, export_take *take, void *ctx);

/* The same, all columns, for a format that need not know beforehand how much comes: damaged rows are left out on the way.
 * EXPORT_AGAIN only where pages hold another number of items than they should. */
int export_stream(export_job *job, export_set *set, export_take *take, void *ctx);

/* The number that a row of the file's photons has in what goes out; of one that is left out, that of the next. */
uint64_t export_row_number(const export_job *job, uint64_t row);

/* The formats. EXPORT_AGAIN: what was written is to be thrown away, then begin anew. */
int export_csv(export_job *job);
int export_npz(export_job *job);
int export_photon_hdf5(export_job *job);
bool export_has_hdf5(void);

#endif

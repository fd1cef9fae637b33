/* Verification's parts, shared by verify.c (the walk over the file), verify_islands.c, verify_pages.c (one
 * page) and verify_values.c (what the values of columns must be). */
#ifndef D7_SRC_VERIFY_H
#define D7_SRC_VERIFY_H

#include "checksums.h"
#include "reader.h"

/* What can be wrong with a page that is whole. */
typedef enum d7__fault { D7__FAULT_LENGTH, D7__FAULT_FORM, D7__FAULT_VALUES, D7__N_FAULTS } d7__fault;

/* Consecutive pages of a dataset with the same fault: one problem. */
typedef struct d7__run {
    d7_problem problem; /* of the first page; its items grow */
    const char *kind;   /* pages with another kind of the fault begin another run; NULL: no run */
    size_t last_page;
    uint64_t n_pages;
    uint64_t n_values; /* that are wrong; 0 where the fault is the page's */
} d7__run;

/* One dataset: what its values must be, and what was seen of it. */
typedef struct d7__column {
    size_t cursor;    /* pages of the map that were passed */
    uint64_t items;   /* in them */
    bool unknown_end; /* the last of them is damaged */
    unsigned bits;    /* that a value may have; 0: any */
    const char *bits_from;
    bool is_ms;
    uint64_t last_ms, largest_ms;
    d7__run *runs; /* [D7__N_FAULTS]; NULL: none yet */
} d7__column;

/* A run of Index entries one after the other. */
typedef struct d7__island {
    bool there;
    bool due; /* it came at or past the block where one was due */
    bool has_marker;
    uint64_t offset; /* of its first entry that was due, else of its first */
    uint64_t end;
    d7__page_ref *listed;
    size_t n_listed, cap_listed;
} d7__island;

/* How the checksums beside the file fit it. */
typedef struct d7__sum_check {
    d7__sums_compare compare;
    bool differs;       /* the entry at hand */
    d7_problem *differ; /* [n_kept] of those that do */
    size_t n_kept, cap_differ;
} d7__sum_check;

typedef struct d7__verifier {
    d7_reader *r;
    d7_verify_summary sum;
    uint64_t next_island; /* block */
    uint64_t span_start;  /* where the last island ended */
    bool page_seen;
    bool lengths_judged;
    bool epilogue_seen;
    bool index_last;       /* the last entry was an Index */
    uint64_t n_global;     /* Index entries of the global index */
    d7__page_log unlisted; /* pages since the last island */
    d7__island island;
    d7__column *columns;       /* [n_datasets] */
    d7__attributes attributes; /* of islands, to be found again in the global index */
    d7__sum_check sums;
    d7_problem place; /* where the entry at hand is, and of which items */
} d7__verifier;

void d7__verify_report(d7__verifier *v, d7_problem_code code, uint64_t offset, uint32_t ds, const char *text);

/* ---- islands ---- */

/* Takes an Index entry. Returns 0; D7_ERR_NOMEM. */
int d7__verify_index(d7__verifier *v, const d7__entry *entry, d7__cursor body, d7_error *err);

/* Before a page: is an island there when one is due? */
void d7__verify_island_due(d7__verifier *v, uint64_t offset);

/* At the end of the file. */
void d7__verify_last_island(d7__verifier *v);

/* ---- pages ---- */

/* Holds a page that the walk has come to against the map, and looks into it. Returns 0; as
 * d7__reader_check_page(). */
int d7__verify_page(d7__verifier *v, const d7__entry *entry, uint64_t dataset_id, d7_error *err);

/* Pages of the map before `offset` that the walk has not come to. Returns likewise. */
int d7__verify_passed(d7__verifier *v, uint32_t ds, uint64_t offset, d7_error *err);

/* Adds a page with a fault to the dataset's run, or begins a new one with this problem; n_values are wrong
 * (0: the page is). */
void d7__verify_fault(d7__verifier *v, d7__fault fault, const char *kind, size_t page,
                      const d7_problem *problem, uint64_t n_values);

/* Reports the runs that are still going on. */
void d7__verify_end_runs(d7__verifier *v);

/* ---- values ---- */

/* What the attributes and names of the file ask of values. */
void d7__verify_learn_columns(d7__verifier *v);

/* Looks at the values of a page that was just decoded: n of them, from item `first` on. */
void d7__verify_values(d7__verifier *v, uint32_t ds, size_t page, uint64_t first, const uint8_t *values,
                       size_t n);

/* At the end of a closed file: lengths of columns, and where milliseconds point to. Returns 0; as
 * d7_reader_read(). */
int d7__verify_columns(d7__verifier *v, d7_error *err);

/* ---- checksums ---- */

/* Looks for them beside the file, and at the header's. Returns 0; D7_ERR_NOMEM; as d7__entry_at(). */
int d7__verify_sums_begin(d7__verifier *v, d7_error *err);

/* Compares an entry while its bytes are there; then, when v->place is known, remembers that they differ.
 * Return 0; D7_ERR_NOMEM; as d7__sums_compare_entry(). */
int d7__verify_sum(d7__verifier *v, const d7__entry *entry, d7_error *err);
int d7__verify_sum_place(d7__verifier *v, d7_error *err);

/* At the end of the file. Returns 0; as d7__sums_compare_end(). */
int d7__verify_sums_end(d7__verifier *v, d7_error *err);
void d7__verify_sums_free(d7__verifier *v);

#endif

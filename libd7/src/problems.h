/* What is wrong with a file: made in one form, kept by a reader or handed to a caller as it is found. */
#ifndef D7_SRC_PROBLEMS_H
#define D7_SRC_PROBLEMS_H

#include "alloc.h"

enum { D7__PROBLEMS_KEPT = 1000 };

typedef struct d7__problems {
    const d7_alloc *alloc;
    d7_problem_fn *tell; /* NULL: none */
    void *tell_ctx;
    bool keep;
    d7_problem *items; /* [n] those kept */
    size_t n, cap;
    uint16_t *
        places; /* of those kept, by code, place and dataset: 1 + place in items; a hash table, 0 for a free slot */
    uint64_t total, by_severity[D7_N_SEVERITIES];
} d7__problems;

void d7__problems_free(d7__problems *p);
void d7__problems_clear(d7__problems *p);

/* Forgets those of a kind. */
void d7__problems_drop(d7__problems *p, d7_problem_code code);

/* A problem with its severity, no dataset and no items. */
d7_problem d7__problem(d7_problem_code code, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Counts, tells and keeps it; one that is kept already (same code, place and dataset) is passed over. When
 * memory runs out it is counted only. */
void d7__problems_add(d7__problems *p, const d7_problem *problem);

#endif

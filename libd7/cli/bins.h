/* Histograms of rows, counted by all threads at once: each into its own, which one owner adds up. */
#ifndef D7_CLI_BINS_H
#define D7_CLI_BINS_H

#include "cli/pool.h"
#include "d7/d7.h"

/* Where a row of one or two columns belongs: column c, a value below 2^bits, to place value >> shift; the second column
 * counts places << row_shift. So an image has x and y. Or, with a width, two columns of time stamps: the place is
 * (second - first - low) / width. */
typedef struct bins_rule {
    size_t columns; /* 1 or 2 */
    d7_type types[2];
    unsigned bits, shift, row_shift;
    uint64_t width; /* 0: none */
    int64_t low;
} bins_rule;

typedef struct bins bins;

/* n: places. Returns NULL when memory is short. The pool (may be NULL) must outlive it. */
bins *bins_new(size_t n, const bins_rule *rule, cli_pool *pool);
void bins_free(bins *b);

/* Forgets all counts. `b` is a bins: fits view_rows(). */
void bins_clear(void *b);

/* Counts rows; fits view_rows(). */
void bins_take(void *b, const d7_chunk *chunk);

/* Adds up what the threads have counted and lets go of their memory: once, after the last rows. */
void bins_finish(bins *b);

/* After bins_finish(): what a place holds, and what the fullest of all does. */
uint64_t bins_count(const bins *b, size_t place);
uint64_t bins_largest(const bins *b);

/* Rows that belong to a place, and those that do not. */
uint64_t bins_inside(const bins *b);
uint64_t bins_outside(const bins *b);

#endif

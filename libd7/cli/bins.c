/* Counting is bound by memory: places are random and there may be millions. So counts of a thread have 16 bits (one that
 * wraps gives 2^16 to the total), places are found for a block of rows first, and the memory of places to come is asked for
 * ahead. */
#include "bins.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "view.h"

/* Together the threads' histograms take at most this: few threads count where there are very many places. */
enum { PARTS_BYTES_MAX = 64 << 20, PARTS_MAX = 64, ROWS_A_PART_MIN = 16384 };

enum { BLOCK_ROWS = 1024, AHEAD = 24, WRAP = 1 << 16 };

/* What one thread counts, of the rows that it is given. */
typedef struct bins_part {
    bins *whole;
    const void *values[2];
    size_t from, to;
    uint16_t *counts; /* [n + 1] */
} bins_part;

struct bins {
    bins_rule rule;
    uint32_t n; /* places; one more takes what is outside */
    cli_pool *pool;
    _Atomic uint64_t *carried; /* [n + 1] what wrapped, and after bins_total() all */
    unsigned n_parts;
    bins_part parts[PARTS_MAX];
    uint64_t rows;
};

/* ---- places of rows [from, from + n) ---- */

/* Two columns of uint16, the usual image. */
static void place_positions(const bins *b, const uint16_t *x, const uint16_t *y, size_t n, uint32_t *places) {
    unsigned bits = b->rule.bits, shift = b->rule.shift, row_shift = b->rule.row_shift;
    uint32_t outside = b->n;
    for (size_t i = 0; i < n; i++) {
        uint32_t column = x[i], row = y[i], place = (row >> shift) << row_shift | column >> shift;
        places[i] = (column | row) >> bits ? outside : place;
    }
}

/* One column of uint16, the usual decay. */
static void place_channels(const bins *b, const uint16_t *values, size_t n, uint32_t *places) {
    unsigned bits = b->rule.bits, shift = b->rule.shift;
    uint32_t outside = b->n;
    for (size_t i = 0; i < n; i++) {
        uint32_t value = values[i];
        places[i] = value >> bits ? outside : value >> shift;
    }
}

/* Differences wrap as the stamps do. */
static void place_differences(const bins *b, const uint64_t *start, const uint64_t *stop, size_t n,
                              uint32_t *places) {
    uint64_t low = (uint64_t)b->rule.low, width = b->rule.width;
    for (size_t i = 0; i < n; i++) {
        uint64_t place = (stop[i] - start[i] - low) / width;
        places[i] = place < b->n ? (uint32_t)place : b->n;
    }
}

static void place_any(const bins *b, const bins_part *p, size_t from, size_t n, uint32_t *places) {
    const bins_rule *rule = &b->rule;
    for (size_t i = 0; i < n; i++) {
        uint64_t column = view_value(rule->types[0], p->values[0], from + i), row = 0;
        if (rule->columns == 2)
            row = view_value(rule->types[1], p->values[1], from + i);
        uint64_t place = (row >> rule->shift) << rule->row_shift | column >> rule->shift;
        places[i] = (column | row) >> rule->bits ? b->n : (uint32_t)place;
    }
}

static void find_places(const bins_part *p, size_t from, size_t n, uint32_t *places) {
    const bins *b = p->whole;
    const bins_rule *rule = &b->rule;
    if (rule->width)
        place_differences(b, (const uint64_t *)p->values[0] + from, (const uint64_t *)p->values[1] + from, n,
                          places);
    else if (rule->types[0] != D7_UINT16 || (rule->columns == 2 && rule->types[1] != D7_UINT16))
        place_any(b, p, from, n, places);
    else if (rule->columns == 2)
        place_positions(b, (const uint16_t *)p->values[0] + from, (const uint16_t *)p->values[1] + from, n,
                        places);
    else
        place_channels(b, (const uint16_t *)p->values[0] + from, n, places);
}

/* ---- counting ---- */

/* places: [n + AHEAD], of which the last are only looked at. */
static void count_places(bins_part *p, const uint32_t *places, size_t n) {
    uint16_t *counts = p->counts;
    for (size_t i = 0; i < n; i++) {
        __builtin_prefetch(&counts[places[i + AHEAD]], 1);
        if (++counts[places[i]] == 0)
            atomic_fetch_add_explicit(&p->whole->carried[places[i]], WRAP, memory_order_relaxed);
    }
}

static void count_part(void *part) {
    bins_part *p = part;
    uint32_t places[BLOCK_ROWS + AHEAD] = {0};
    for (size_t at = p->from; at < p->to; at += BLOCK_ROWS) {
        size_t n = p->to - at < BLOCK_ROWS ? p->to - at : BLOCK_ROWS;
        find_places(p, at, n, places);
        count_places(p, places, n);
    }
}

/* ---- the whole ---- */

bins *bins_new(size_t n, const bins_rule *rule, cli_pool *pool) {
    bins *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->rule = *rule;
    b->n = (uint32_t)n;
    b->pool = pool;
    b->carried = calloc(n + 1, sizeof *b->carried);
    size_t most = PARTS_BYTES_MAX / sizeof(uint16_t) / n, threads = cli_pool_threads(pool);
    threads = threads < most ? threads : most;
    threads = threads < PARTS_MAX ? threads : PARTS_MAX;
    b->n_parts = threads ? (unsigned)threads : 1;
    bool good = b->carried != NULL;
    for (unsigned i = 0; i < b->n_parts; i++) {
        b->parts[i] = (bins_part){.whole = b, .counts = calloc(n + 1, sizeof(uint16_t))};
        good = good && b->parts[i].counts;
    }
    if (good)
        return b;
    bins_free(b);
    return NULL;
}

void bins_free(bins *b) {
    if (!b)
        return;
    for (unsigned i = 0; i < b->n_parts; i++)
        free(b->parts[i].counts);
    free(b->carried);
    free(b);
}

void bins_clear(void *ctx) {
    bins *b = ctx;
    memset((void *)b->carried, 0, (b->n + 1u) * sizeof *b->carried);
    for (unsigned i = 0; i < b->n_parts; i++)
        memset(b->parts[i].counts, 0, (b->n + 1u) * sizeof(uint16_t));
    b->rows = 0;
}

void bins_take(void *ctx, const d7_chunk *chunk) {
    bins *b = ctx;
    size_t parts = chunk->n / ROWS_A_PART_MIN + 1;
    parts = parts < b->n_parts ? parts : b->n_parts;
    b->rows += chunk->n;
    for (size_t i = 0; i < parts; i++) {
        bins_part *p = &b->parts[i];
        for (size_t k = 0; k < b->rule.columns; k++)
            p->values[k] = chunk->values[k];
        p->from = chunk->n / parts * i;
        p->to = i + 1 == parts ? chunk->n : chunk->n / parts * (i + 1);
        if (i + 1 == parts || !b->pool || cli_pool_submit(b->pool, count_part, p) != 0)
            count_part(p);
    }
    if (b->pool && parts > 1)
        cli_pool_wait(b->pool);
}

void bins_finish(bins *b) {
    for (unsigned k = 0; k < b->n_parts; k++) {
        bins_part *p = &b->parts[k];
        for (size_t i = 0; i <= b->n; i++)
            atomic_store_explicit(&b->carried[i], bins_count(b, i) + p->counts[i], memory_order_relaxed);
        free(p->counts);
    }
    b->n_parts = 0;
}

uint64_t bins_count(const bins *b, size_t place) {
    return atomic_load_explicit(&b->carried[place], memory_order_relaxed);
}

uint64_t bins_largest(const bins *b) {
    uint64_t largest = 0;
    for (size_t i = 0; i < b->n; i++)
        largest = bins_count(b, i) > largest ? bins_count(b, i) : largest;
    return largest;
}

uint64_t bins_outside(const bins *b) {
    return bins_count(b, b->n);
}

uint64_t bins_inside(const bins *b) {
    return b->rows - bins_outside(b);
}

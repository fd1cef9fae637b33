#include "bins.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "view.h"

/* Together the threads' histograms take at most this: few threads count where there are very many places. */
enum { PARTS_BYTES_MAX = 64 << 20, PARTS_MAX = 64, ROWS_A_PART_MIN = 16384 };

/* What one thread counts, of the rows that it is given. */
typedef struct bins_part {
    const bins_rule *rule;
    const void *values[2];
    size_t from, to;
    size_t places;
    uint64_t outside;
    uint32_t *counts; /* [places] */
} bins_part;

struct bins {
    bins_rule rule;
    size_t n;
    cli_pool *pool;
    uint64_t *total;
    uint64_t counted; /* rows since the parts were last added up: no part can have wrapped */
    uint64_t rows;    /* in all */
    uint64_t outside; /* of the parts that were added up */
    unsigned n_parts;
    bins_part parts[PARTS_MAX];
};

/* ---- counting ---- */

/* Two columns of uint16, the usual image. */
static void count_positions(bins_part *p) {
    const uint16_t *x = p->values[0], *y = p->values[1];
    uint32_t *counts = p->counts;
    unsigned bits = p->rule->bits, shift = p->rule->shift, row_shift = p->rule->row_shift;
    uint64_t outside = 0;
    for (size_t i = p->from; i < p->to; i++) {
        uint32_t column = x[i], row = y[i];
        if ((column | row) >> bits)
            outside++;
        else
            counts[(row >> shift) << row_shift | column >> shift]++;
    }
    p->outside += outside;
}

/* One column of uint16, the usual decay. */
static void count_channels(bins_part *p) {
    const uint16_t *values = p->values[0];
    uint32_t *counts = p->counts;
    unsigned bits = p->rule->bits, shift = p->rule->shift;
    uint64_t outside = 0;
    for (size_t i = p->from; i < p->to; i++) {
        uint32_t value = values[i];
        if (value >> bits)
            outside++;
        else
            counts[value >> shift]++;
    }
    p->outside += outside;
}

static void count_any(bins_part *p) {
    const bins_rule *rule = p->rule;
    for (size_t i = p->from; i < p->to; i++) {
        uint64_t column = view_value(rule->types[0], p->values[0], i), row = 0;
        if (rule->columns == 2)
            row = view_value(rule->types[1], p->values[1], i);
        if ((column | row) >> rule->bits)
            p->outside++;
        else
            p->counts[(row >> rule->shift) << rule->row_shift | column >> rule->shift]++;
    }
}

/* Differences wrap as the stamps do. */
static void count_differences(bins_part *p) {
    const uint64_t *start = p->values[0], *stop = p->values[1];
    uint64_t low = (uint64_t)p->rule->low, width = p->rule->width;
    for (size_t i = p->from; i < p->to; i++) {
        uint64_t from_low = stop[i] - start[i] - low;
        if (from_low / width >= p->places)
            p->outside++;
        else
            p->counts[from_low / width]++;
    }
}

static void count_part(void *part) {
    bins_part *p = part;
    const bins_rule *rule = p->rule;
    if (rule->width)
        count_differences(p);
    else if (rule->types[0] != D7_UINT16 || (rule->columns == 2 && rule->types[1] != D7_UINT16))
        count_any(p);
    else if (rule->columns == 2)
        count_positions(p);
    else
        count_channels(p);
}

/* ---- the whole ---- */

bins *bins_new(size_t n, const bins_rule *rule, cli_pool *pool) {
    bins *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->rule = *rule;
    b->n = n;
    b->pool = pool;
    b->total = calloc(n, sizeof *b->total);
    size_t most = PARTS_BYTES_MAX / sizeof(uint32_t) / n, threads = cli_pool_threads(pool);
    threads = threads < most ? threads : most;
    threads = threads < PARTS_MAX ? threads : PARTS_MAX;
    b->n_parts = threads ? (unsigned)threads : 1;
    bool good = b->total != NULL;
    for (unsigned i = 0; i < b->n_parts; i++) {
        b->parts[i] = (bins_part){.rule = &b->rule, .places = n, .counts = calloc(n, sizeof(uint32_t))};
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
    free(b->total);
    free(b);
}

void bins_clear(void *ctx) {
    bins *b = ctx;
    memset(b->total, 0, b->n * sizeof *b->total);
    for (unsigned i = 0; i < b->n_parts; i++) {
        memset(b->parts[i].counts, 0, b->n * sizeof(uint32_t));
        b->parts[i].outside = 0;
    }
    b->counted = b->rows = b->outside = 0;
}

static void add_up(bins *b) {
    for (unsigned k = 0; k < b->n_parts; k++) {
        bins_part *p = &b->parts[k];
        for (size_t i = 0; i < b->n; i++)
            b->total[i] += p->counts[i];
        memset(p->counts, 0, b->n * sizeof(uint32_t));
        b->outside += p->outside;
        p->outside = 0;
    }
    b->counted = 0;
}

void bins_take(void *ctx, const d7_chunk *chunk) {
    bins *b = ctx;
    if (b->counted + chunk->n > UINT32_MAX)
        add_up(b);
    b->counted += chunk->n;
    b->rows += chunk->n;
    size_t parts = chunk->n / ROWS_A_PART_MIN + 1;
    parts = parts < b->n_parts ? parts : b->n_parts;
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

const uint64_t *bins_total(bins *b) {
    add_up(b);
    for (unsigned i = 0; i < b->n_parts; i++) {
        free(b->parts[i].counts);
        b->parts[i].counts = NULL;
    }
    b->n_parts = 0;
    return b->total;
}

uint64_t bins_inside(const bins *b) {
    return b->rows - b->outside;
}

uint64_t bins_outside(const bins *b) {
    return b->outside;
}

/* Decoding all chunks of a shard: many at once, through the executor, and one by one where that fails. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "verify.h"

#define GROUP_BYTES ((uint64_t)16 << 20)

void daf__check_numbers(daf__number_check *c, const void *values, uint64_t n) {
    const int64_t most = (int64_t)1 << 53; /* what a double holds */
    if (c->type == DAF_UINT32) {
        const uint32_t *u = values;
        for (uint64_t i = 0; i < n; i++)
            c->n_wide += u[i] > INT32_MAX;
    } else if (c->type == DAF_UINT64) {
        const uint64_t *u = values;
        for (uint64_t i = 0; i < n; i++)
            c->n_wide += u[i] > INT64_MAX;
    } else if (c->type == DAF_INT64 && c->sparse) {
        const int64_t *k = values;
        for (uint64_t i = 0; i < n; i++)
            c->n_wide += k[i] > most || k[i] < -most;
    }
}

static int decode_texts(daf__shard *s, const daf__span *box, daf_error *details) {
    daf__texts texts = {0};
    int rc = daf__shard_read_texts(s, box, &texts, details);
    if (rc == 0)
        daf__texts_free(&texts);
    return rc;
}

static int decode(daf__shard *s, const daf__span *box, daf__number_check *numbers, daf_error *details) {
    if (s->type == DAF_STRING)
        return decode_texts(s, box, details);
    uint64_t n = box->n_rows * box->n_columns;
    void *values = calloc((size_t)n, daf_type_bytes(s->type));
    if (!values)
        return daf__no_memory(details);
    int rc = daf__shard_read_values(s, box, values, details);
    if (rc == 0 && numbers)
        daf__check_numbers(numbers, values, n);
    free(values);
    return rc;
}

/* The chunks of a group: whole columns of chunks when they are small, else a part of one. */
typedef struct group {
    uint64_t row, n_rows, column, n_columns; /* in chunks */
} group;

static uint64_t at_most(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static group group_at(const daf__shard *s, uint64_t row, uint64_t column) {
    const daf__grid *g = &s->grid;
    uint64_t width = s->type == DAF_STRING ? 64 : daf_type_bytes(s->type);
    uint64_t per_group = GROUP_BYTES / (g->chunk_elements * width) + 1; /* chunks */
    if (row > 0 || per_group < g->row_chunks)
        return (group){row, at_most(per_group, g->row_chunks - row), column, 1};
    return (group){0, g->row_chunks, column, at_most(per_group / g->row_chunks, g->column_chunks - column)};
}

static daf__span span_of(const daf__grid *g, const group *c) {
    uint64_t row = c->row * g->chunk_rows, column = c->column * g->chunk_columns;
    return (daf__span){.row = row,
                       .column = column,
                       .n_rows = at_most(c->n_rows * g->chunk_rows, g->rows - row),
                       .n_columns = at_most(c->n_columns * g->chunk_columns, g->columns - column)};
}

/* What went wrong with a chunk is told; anything else ends. */
static int take_failure(daf__verifier *v, const daf_error *details, const char *place, daf__tally *bad) {
    if (details->code == DAF_ERR_NOMEM || details->code == DAF_ERR_IO)
        return daf__pass(v->err, details);
    const char *text = strstr(details->text, place), *from = text ? text + strlen(place) : details->text;
    daf__count(bad, details->offset ? details->offset : DAF_NO_OFFSET, "%s",
               text && strncmp(from, ": ", 2) == 0 ? from + 2 : details->text);
    return 0;
}

static int verify_one_by_one(daf__verifier *v, daf__shard *s, const group *all, const char *place,
                             daf__number_check *numbers, daf__tally *bad) {
    int rc = 0;
    for (uint64_t c = all->column; c < all->column + all->n_columns && rc == 0; c++)
        for (uint64_t r = all->row; r < all->row + all->n_rows && rc == 0; r++) {
            daf_error details = {.code = 0};
            group one = {r, 1, c, 1};
            daf__span box = span_of(&s->grid, &one);
            if (decode(s, &box, numbers, &details) != 0)
                rc = take_failure(v, &details, place, bad);
        }
    return rc;
}

int daf__verify_chunks(daf__verifier *v, daf__shard *s, const char *place, daf__number_check *numbers,
                       daf__tally *bad) {
    const daf__grid *g = &s->grid;
    uint64_t told = 0, row = 0, column = 0;
    int rc = 0;
    while (column < g->column_chunks && rc == 0) {
        group c = group_at(s, row, column);
        daf__span box = span_of(g, &c);
        daf_error details = {.code = 0};
        daf__number_check before = numbers ? *numbers : (daf__number_check){.n_wide = 0};
        if (decode(s, &box, numbers, &details) != 0) {
            if (numbers)
                *numbers = before;
            rc = verify_one_by_one(v, s, &c, place, numbers, bad);
        }
        row = c.row + c.n_rows;
        if (row >= g->row_chunks) {
            row = 0;
            column += c.n_columns;
        }
        /* As many bytes of the file as chunks of all. */
        uint64_t done =
            (uint64_t)((double)s->file->size * ((double)column + (double)row / (double)g->row_chunks) /
                       (double)g->column_chunks);
        if (rc == 0 && done > told && done <= s->file->size) {
            rc = daf__looked_at(v, done - told);
            told = done;
        }
    }
    return rc || told == s->file->size ? rc : daf__looked_at(v, s->file->size - told);
}

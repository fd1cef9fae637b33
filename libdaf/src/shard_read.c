/* The elements of a box, from the chunks that hold some of them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "error.h"
#include "shard_batch.h"
#include "utf8.h"

int daf__chunks_of(const daf__grid *g, const daf__span *box, daf__chunk_list *ret, daf_error *err) {
    daf__chunk_list list = {0};
    if (box->n_rows && box->n_columns) {
        uint64_t row = box->row / g->chunk_rows, row_end = (box->row + box->n_rows - 1) / g->chunk_rows + 1;
        uint64_t column = box->column / g->chunk_columns;
        uint64_t column_end = (box->column + box->n_columns - 1) / g->chunk_columns + 1;
        uint64_t most = (row_end - row) * (column_end - column);
        list.chunks =
            most < SIZE_MAX / sizeof *list.chunks ? malloc((size_t)most * sizeof *list.chunks) : NULL;
        if (!list.chunks)
            return daf__no_memory(err);
        for (uint64_t c = column; c < column_end; c++)
            for (uint64_t r = row; r < row_end; r++)
                list.chunks[list.n++] = r + c * g->row_chunks;
    }
    *ret = list;
    return 0;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

void daf__chunk_scatter(const daf__grid *g, daf_type type, uint64_t k, const uint8_t *raw,
                        const daf__span *box, uint8_t *values) {
    size_t width = daf_type_bytes(type);
    daf__span span = daf__grid_span(g, k);
    uint64_t row = larger(span.row, box->row), column = larger(span.column, box->column);
    uint64_t row_end = smaller(span.row + span.n_rows, box->row + box->n_rows);
    uint64_t column_end = smaller(span.column + span.n_columns, box->column + box->n_columns);
    for (; column < column_end; column++) {
        uint64_t from = (column - span.column) * g->chunk_rows + row - span.row;
        uint64_t to = (column - box->column) * box->n_rows + row - box->row;
        daf__values_copy(values + (size_t)to * width, type, raw + (size_t)from * width,
                         (size_t)(row_end - row));
    }
}

static daf__span whole(const daf__grid *g) {
    return (daf__span){.n_rows = g->rows, .n_columns = g->columns};
}

int daf__shard_read_values(daf__shard *s, const daf__span *box, void *values, daf_error *err) {
    daf__target target = {.box = box ? *box : whole(&s->grid), .values = values};
    daf__chunk_list list;
    int rc = daf__chunks_of(&s->grid, &target.box, &list, err);
    if (rc)
        return rc;
    rc = daf__decode_chunks(s, &list, &target, NULL, err);
    free(list.chunks);
    return rc;
}

/* ---- texts */

int daf__text_places_init(daf__text_places *p, const daf__span *box, daf_error *err) {
    uint64_t n = box->n_rows * box->n_columns;
    *p = (daf__text_places){.box = *box};
    p->offsets = n < SIZE_MAX / 16 ? calloc((size_t)n + 1, sizeof *p->offsets) : NULL;
    daf__buf_append(&p->pool, "", 1); /* offset 0 is the empty text */
    int rc = p->offsets ? daf__buf_check(&p->pool, err) : daf__no_memory(err);
    if (rc)
        daf__text_places_free(p);
    return rc;
}

void daf__text_places_free(daf__text_places *p) {
    daf__buf_free(&p->pool);
    free(p->offsets);
    *p = (daf__text_places){0};
}

typedef struct raw_texts {
    const daf__shard *shard;
    uint64_t k;
    const uint8_t *data;
    size_t bytes, at;
} raw_texts;

/* Takes the next text; to the pool when there is one. */
static int take_text(raw_texts *t, daf__buf *pool, daf_error *err) {
    if (t->bytes - t->at < 4)
        return daf__bad_chunk(t->shard, t->k, 0, "its texts are cut short", err);
    size_t bytes = bytes_load32(t->data + t->at);
    t->at += 4;
    if (bytes > t->bytes - t->at)
        return daf__bad_chunk(t->shard, t->k, 0, "a text is longer than the chunk", err);
    const char *text = (const char *)t->data + t->at;
    if (daf__utf8_prefix(text, bytes) < bytes || memchr(text, 0, bytes))
        return daf__bad_chunk(t->shard, t->k, 0, "a text with a NUL or that is not valid UTF-8", err);
    t->at += bytes;
    if (pool && bytes) {
        daf__buf_append(pool, text, bytes);
        daf__buf_append(pool, "", 1);
    }
    return 0;
}

/* Where the element at row r and column c of the chunk's full shape belongs in the box; NULL: nowhere. */
static uint64_t *place_of(const daf__text_places *p, const daf__span *span, uint64_t r, uint64_t c) {
    uint64_t row = span->row + r, column = span->column + c;
    if (r >= span->n_rows || c >= span->n_columns || row < p->box.row || column < p->box.column ||
        row - p->box.row >= p->box.n_rows || column - p->box.column >= p->box.n_columns)
        return NULL;
    return &p->offsets[(column - p->box.column) * p->box.n_rows + row - p->box.row];
}

int daf__text_places_take(daf__text_places *p, const daf__shard *s, uint64_t k, const uint8_t *raw,
                          size_t bytes, daf_error *err) {
    const daf__grid *g = &s->grid;
    daf__span span = daf__grid_span(g, k);
    raw_texts t = {.shard = s, .k = k, .data = raw, .bytes = bytes, .at = 4};
    if (!raw)
        return 0;
    if (bytes < 4 || bytes_load32(raw) != g->chunk_elements)
        return daf__bad_chunk(s, k, 0, "another number of texts than its shape needs", err);
    int rc = 0;
    for (uint64_t i = 0; i < g->chunk_elements && rc == 0; i++) {
        uint64_t *place = place_of(p, &span, i % g->chunk_rows, i / g->chunk_rows);
        size_t at = p->pool.size;
        rc = take_text(&t, place ? &p->pool : NULL, err);
        if (place && p->pool.size > at)
            *place = at;
    }
    if (rc == 0 && t.at != bytes)
        rc = daf__bad_chunk(s, k, 0, "bytes behind its last text", err);
    if (rc == 0 && p->pool.size / daf__codec_max_ratio(s->codec) > s->file->size)
        rc = daf__bad_chunk(s, k, 0, "it claims more raw bytes than its data can hold", err);
    return rc ? rc : daf__buf_check(&p->pool, err);
}

static const char *text_in_pool(const void *ctx, uint64_t i) {
    const daf__text_places *p = ctx;
    return (const char *)p->pool.data + p->offsets[i];
}

int daf__text_places_finish(daf__text_places *p, daf__texts *ret, daf_error *err) {
    return daf__texts_gather(ret, text_in_pool, p, p->box.n_rows * p->box.n_columns, err);
}

typedef struct text_sink {
    daf__shard *shard;
    daf__text_places places;
} text_sink;

static int take_chunk(void *context, uint64_t k, const uint8_t *raw, size_t bytes, daf_error *err) {
    text_sink *t = context;
    return daf__text_places_take(&t->places, t->shard, k, raw, bytes, err);
}

int daf__shard_read_texts(daf__shard *s, const daf__span *box, daf__texts *ret, daf_error *err) {
    daf__span all = whole(&s->grid);
    text_sink t = {.shard = s};
    daf__sink sink = {.context = &t, .take = take_chunk};
    daf__chunk_list list;
    int rc = daf__text_places_init(&t.places, box ? box : &all, err);
    if (rc)
        return rc;
    rc = daf__chunks_of(&s->grid, &t.places.box, &list, err);
    if (rc == 0) {
        rc = daf__decode_chunks(s, &list, NULL, &sink, err);
        free(list.chunks);
    }
    if (rc == 0)
        rc = daf__text_places_finish(&t.places, ret, err);
    daf__text_places_free(&t.places);
    return rc;
}

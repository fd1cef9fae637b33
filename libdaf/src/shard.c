/* What writing and reading a shard share: the grid, the names, the raw form of a chunk. */
#include "shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "error.h"

static uint64_t ceil_div(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

int daf__grid_make(daf__grid *ret, daf__kind kind, uint64_t rows, uint64_t columns,
                   const daf__packing *packing, const char *where, daf_error *err) {
    daf__grid g = {.kind = kind,
                   .rows = rows,
                   .columns = columns,
                   .chunk_rows = packing->chunk_rows,
                   .chunk_columns = packing->chunk_columns,
                   .row_chunks = ceil_div(rows, packing->chunk_rows),
                   .column_chunks = ceil_div(columns, packing->chunk_columns)};
    if (__builtin_mul_overflow(g.row_chunks, g.column_chunks, &g.n_chunks) || g.n_chunks > UINT64_MAX / 256 ||
        __builtin_mul_overflow(g.chunk_rows, g.chunk_columns, &g.chunk_elements) ||
        g.chunk_elements > DAF__MAX_CHUNK_BYTES)
        return daf__fail(err, DAF_ERR_LIMIT, 0, 0,
                         "%s: chunks of %" PRIu64 " x %" PRIu64 " elements are too large", where,
                         g.chunk_rows, g.chunk_columns);
    *ret = g;
    return 0;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

daf__span daf__grid_span(const daf__grid *g, uint64_t k) {
    daf__span s = {.row = k % g->row_chunks * g->chunk_rows, .column = k / g->row_chunks * g->chunk_columns};
    s.n_rows = smaller(g->chunk_rows, g->rows - s.row);
    s.n_columns = smaller(g->chunk_columns, g->columns - s.column);
    return s;
}

static int digits_of(uint64_t v) {
    int n = 1;
    for (; v >= 10; v /= 10)
        n++;
    return n;
}

/* The name is the header of a gzip member; flag FTEXT keeps its byte 3 from being 0, the time is the chunk's number
 * in base64. */
static size_t gzip_name(uint8_t *name, uint64_t k) {
    static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const uint8_t head[4] = {0x1F, 0x8B, 0x08, 0x01};
    memcpy(name, head, sizeof head);
    for (unsigned i = 0; i < 4; i++)
        name[4 + i] = (uint8_t)base64[k >> (18 - 6 * i) & 63];
    name[8] = 0x02;
    name[9] = 0xFF;
    return 10;
}

size_t daf__chunk_name(uint8_t name[DAF__CHUNK_NAME_BYTES], const daf__grid *g, daf_codec codec, uint64_t k) {
    if (codec == DAF_CODEC_GZIP)
        return gzip_name(name, k);
    char text[DAF__CHUNK_NAME_BYTES];
    int row_digits = digits_of(g->row_chunks - 1), n;
    if (g->kind == DAF__MATRIX)
        n = snprintf(text, sizeof text, "c/%0*" PRIu64 "/%0*" PRIu64, digits_of(g->column_chunks - 1),
                     k / g->row_chunks, row_digits, k % g->row_chunks);
    else
        n = snprintf(text, sizeof text, "c/%0*" PRIu64, row_digits, k);
    memcpy(name, text, (size_t)n);
    return (size_t)n;
}

void daf__values_copy(void *to, daf_type type, const void *from, size_t n) {
    if (type != DAF_BOOL) {
        bytes_copy_le(to, from, n, daf_type_bytes(type));
        return;
    }
    const uint8_t *in = from;
    uint8_t *out = to;
    for (size_t i = 0; i < n; i++)
        out[i] = in[i] != 0;
}

static int gather_numeric(daf__buf *raw, const daf__grid *g, daf_type type, const void *values,
                          uint64_t first_element, uint64_t k, daf_error *err) {
    size_t width = daf_type_bytes(type), column_bytes = (size_t)g->chunk_rows * width;
    size_t bytes = (size_t)g->chunk_elements * width;
    daf__span span = daf__grid_span(g, k);
    uint8_t *to = daf__buf_reserve(raw, bytes);
    if (!to)
        return daf__no_memory(err);
    raw->size += bytes;
    for (uint64_t c = 0; c < g->chunk_columns; c++, to += column_bytes) {
        size_t filled = 0;
        if (c < span.n_columns) {
            uint64_t first = (span.column + c) * g->rows + span.row;
            daf__values_copy(to, type, (const uint8_t *)values + (size_t)(first - first_element) * width,
                             (size_t)span.n_rows);
            filled = (size_t)span.n_rows * width;
        }
        memset(to + filled, 0, column_bytes - filled);
    }
    return 0;
}

static void append32(daf__buf *b, uint32_t v) {
    uint8_t bytes[4];
    bytes_store32(bytes, v);
    daf__buf_append(b, bytes, sizeof bytes);
}

static int gather_texts(daf__buf *raw, const daf__grid *g, const char *const *texts, uint64_t first_element,
                        uint64_t k, daf_error *err) {
    daf__span span = daf__grid_span(g, k);
    append32(raw, (uint32_t)g->chunk_elements);
    for (uint64_t c = 0; c < g->chunk_columns; c++) {
        for (uint64_t r = 0; r < g->chunk_rows; r++) {
            bool padding = c >= span.n_columns || r >= span.n_rows;
            const char *text =
                padding ? "" : texts[(span.column + c) * g->rows + span.row + r - first_element];
            size_t bytes = strlen(text);
            if (bytes > DAF__MAX_CHUNK_BYTES || raw->size > DAF__MAX_CHUNK_BYTES)
                return daf__fail(err, DAF_ERR_LIMIT, 0, 0,
                                 "the texts of one chunk are larger than %" PRIu64 " bytes",
                                 DAF__MAX_CHUNK_BYTES);
            append32(raw, (uint32_t)bytes);
            daf__buf_append(raw, text, bytes);
        }
    }
    return daf__buf_check(raw, err);
}

int daf__chunk_gather(daf__buf *raw, const daf__grid *g, daf_type type, const void *values,
                      uint64_t first_element, uint64_t k, daf_error *err) {
    return type == DAF_STRING ? gather_texts(raw, g, values, first_element, k, err)
                              : gather_numeric(raw, g, type, values, first_element, k, err);
}

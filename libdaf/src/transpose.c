/* Tiles of 64 bytes by 64 bytes: a cache line of each of some columns goes in, a whole line of each of as many rows
 * comes out. Blocks of 16 x 16 bytes are transposed in vector registers. Where the lines of the result are aligned they
 * bypass the cache on x86, as nothing of them is read again; else the blocks go to their place at once.
 *
 * Panels of columns are walked down a band of rows, so that they are read as a few sequential streams while the pages
 * of the band's result stay in the processor's table of them. Measured (10,000 x 10,000 values, processor time beside
 * memcpy; tests/bench/daf): square tiles in row order took twice as long, results at odd addresses too. */
#include "transpose.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    LINE_BYTES = 64,
    VECTOR_BYTES = 16,
    BAND_BYTES = 1 << 13,
    MAX_JOBS = 64,
    SHIFTED_ROWS = 512,
    AHEAD_BYTES = 4 * 64,
    MIN_SHIFTED_BYTES = 1 << 10
};
#define JOB_BYTES ((uint64_t)1 << 20) /* less is not worth a job of its own */

#define LARGE_PAGE_BYTES ((size_t)2 << 20)

void *daf__transpose_alloc(size_t width, uint64_t rows, uint64_t columns) {
    uint64_t n;
    if (__builtin_mul_overflow(rows, columns, &n) || n > SIZE_MAX / 4 / width)
        return NULL;
    size_t bytes = (size_t)n * width, unit = bytes < LARGE_PAGE_BYTES ? LINE_BYTES : LARGE_PAGE_BYTES;
    bytes = (bytes / unit + 1) * unit;
    void *values = aligned_alloc(unit, bytes);
    if (values && unit == LARGE_PAGE_BYTES)
        (void)madvise(values, bytes, MADV_HUGEPAGE);
    return values;
}

typedef struct span {
    uint8_t *to;
    const uint8_t *from;
    size_t width, rows, columns; /* of `from` */
    size_t stride;               /* values from one column of `from` to the next */
    bool streams;                /* whole lines of `to` may bypass the cache */
    bool shifted;                /* so they may, but rows begin and end within lines */
} span;

/* The vectors of a block stay in registers only when all loops over them are unrolled. */
#ifdef __clang__
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

/* Transposes n x n values of a block, n = 16 / their width: interleaving the first half of the vectors with the second,
 * log2(n) times. */
#define DEFINE_BLOCK(name, type, n, low, high)                                                               \
    typedef type name##_vector __attribute__((vector_size(VECTOR_BYTES)));                                   \
    static void name(uint8_t *to, size_t to_stride, const uint8_t *from, size_t from_stride) {               \
        name##_vector a[n], b[n];                                                                            \
        UNROLLED                                                                                             \
        for (unsigned i = 0; i < (n); i++)                                                                   \
            memcpy(&a[i], from + i * from_stride, VECTOR_BYTES);                                             \
        UNROLLED                                                                                             \
        for (unsigned step = 1; step < (n); step *= 2) {                                                     \
            UNROLLED                                                                                         \
            for (unsigned i = 0; i < (n) / 2; i++) {                                                         \
                b[2 * i] = __builtin_shufflevector(a[i], a[i + (n) / 2], low);                               \
                b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + (n) / 2], high);                          \
            }                                                                                                \
            UNROLLED                                                                                         \
            for (unsigned i = 0; i < (n); i++)                                                               \
                a[i] = b[i];                                                                                 \
        }                                                                                                    \
        UNROLLED                                                                                             \
        for (unsigned i = 0; i < (n); i++)                                                                   \
            memcpy(to + i * to_stride, &a[i], VECTOR_BYTES);                                                 \
    }

#define LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_4 0, 4, 1, 5
#define HIGH_4 2, 6, 3, 7
#define LOW_2 0, 2
#define HIGH_2 1, 3
DEFINE_BLOCK(block_1, uint8_t, 16, LOW_16, HIGH_16)
DEFINE_BLOCK(block_2, uint16_t, 8, LOW_8, HIGH_8)
DEFINE_BLOCK(block_4, uint32_t, 4, LOW_4, HIGH_4)
DEFINE_BLOCK(block_8, uint64_t, 2, LOW_2, HIGH_2)

static void stream_line(uint8_t *to, const uint8_t *line) {
#ifdef __SSE2__
    for (unsigned i = 0; i < LINE_BYTES; i += VECTOR_BYTES)
        _mm_stream_si128((__m128i *)(void *)(to + i),
                         _mm_loadu_si128((const __m128i *)(const void *)(line + i)));
#else
    memcpy(to, line, LINE_BYTES);
#endif
}

/* Writes a whole tile to `to`: its first value is that of row i, column j. */
#define DEFINE_TILE(name, block, bytes)                                                                      \
    static void name(uint8_t *to, size_t to_stride, const span *s, size_t i, size_t j) {                     \
        enum { SIDE = LINE_BYTES / (bytes), BLOCK = VECTOR_BYTES / (bytes) };                                \
        const size_t from_stride = s->stride * (bytes);                                                      \
        for (unsigned c = 0; c < SIDE; c += BLOCK)                                                           \
            for (unsigned r = 0; r < SIDE; r += BLOCK)                                                       \
                block(to + r * to_stride + c * (bytes), to_stride,                                           \
                      s->from + (j + c) * from_stride + (i + r) * (bytes), from_stride);                     \
    }

DEFINE_TILE(tile_1, block_1, 1)
DEFINE_TILE(tile_2, block_2, 2)
DEFINE_TILE(tile_4, block_4, 4)
DEFINE_TILE(tile_8, block_8, 8)

/* More columns are read side by side than the hardware follows by itself. */
static void fetch_ahead(const span *s, size_t i, size_t j) {
    i += AHEAD_BYTES / s->width;
    if (i >= s->rows)
        return;
    for (unsigned c = 0; c < LINE_BYTES / s->width; c++)
        __builtin_prefetch(s->from + ((j + c) * s->stride + i) * s->width);
}

static void put_tile(uint8_t *to, size_t to_stride, const span *s, size_t i, size_t j) {
    fetch_ahead(s, i, j);
    switch (s->width) {
    case 1:
        tile_1(to, to_stride, s, i, j);
        break;
    case 2:
        tile_2(to, to_stride, s, i, j);
        break;
    case 4:
        tile_4(to, to_stride, s, i, j);
        break;
    default:
        tile_8(to, to_stride, s, i, j);
    }
}

static uint8_t *place_of(const span *s, size_t i, size_t j) {
    return s->to + (i * s->columns + j) * s->width;
}

static void whole_tile(const span *s, size_t i, size_t j) {
    _Alignas(LINE_BYTES) uint8_t tile[LINE_BYTES][LINE_BYTES];
    if (!s->streams) {
        put_tile(place_of(s, i, j), s->columns * s->width, s, i, j);
        return;
    }
    put_tile(tile[0], LINE_BYTES, s, i, j);
    for (unsigned r = 0; r < LINE_BYTES / s->width; r++)
        stream_line(place_of(s, i + r, j), tile[r]);
}

/* ---- rows that begin anywhere in a line */

/* The end of a row's last tile that did not fill a line waits in `waiting` for the next tile. */
static void shifted_tile(const span *s, size_t i, size_t j, uint8_t (*waiting)[LINE_BYTES]) {
    _Alignas(LINE_BYTES) uint8_t tile[LINE_BYTES][2 * LINE_BYTES];
    put_tile(tile[0] + LINE_BYTES, 2 * LINE_BYTES, s, i, j);
    for (unsigned r = 0; r < LINE_BYTES / s->width; r++) {
        uint8_t *place = place_of(s, i + r, j), *fresh = tile[r] + LINE_BYTES;
        size_t shift = (uintptr_t)place % LINE_BYTES;
        if (j == 0) { /* the line before it is another row's */
            memcpy(place, fresh, LINE_BYTES - shift);
        } else {
            memcpy(tile[r], waiting[r], LINE_BYTES);
            stream_line(place - shift, fresh - shift);
        }
        memcpy(waiting[r], fresh, LINE_BYTES);
    }
}

/* A tile at the edges. */
static void part_tile(const span *s, size_t i, size_t i_end, size_t j, size_t j_end) {
    for (size_t r = i; r < i_end; r++)
        for (size_t c = j; c < j_end; c++)
            memcpy(s->to + (r * s->columns + c) * s->width, s->from + (c * s->stride + r) * s->width,
                   s->width);
}

typedef struct transpose_job {
    const span *span;
    size_t row, row_end;
} transpose_job;

static void transpose_band(const span *s, size_t row, size_t row_end) {
    size_t side = LINE_BYTES / s->width;
    for (size_t j = 0; j < s->columns; j += side) {
        size_t j_end = s->columns - j < side ? s->columns : j + side;
        for (size_t i = row; i < row_end; i += side) {
            size_t i_end = row_end - i < side ? row_end : i + side;
            if (i_end - i == side && j_end - j == side)
                whole_tile(s, i, j);
            else
                part_tile(s, i, i_end, j, j_end);
        }
    }
}

/* Whole tiles alone; the rest is left to the edges. */
static void shifted_band(const span *s, size_t row, size_t row_end) {
    _Alignas(LINE_BYTES) uint8_t waiting[SHIFTED_ROWS][LINE_BYTES];
    size_t side = LINE_BYTES / s->width, end = s->columns / side * side;
    for (size_t j = 0; j < end; j += side)
        for (size_t i = row; i < row_end; i += side)
            shifted_tile(s, i, j, waiting + (i - row));
    for (size_t i = row; i < row_end; i++) {
        uint8_t *place = place_of(s, i, end);
        size_t shift = (uintptr_t)place % LINE_BYTES;
        memcpy(place - shift, waiting[i - row] + LINE_BYTES - shift, shift);
    }
    part_tile(s, row, row_end, end, s->columns);
}

static void run_shifted(const transpose_job *job) {
    size_t side = LINE_BYTES / job->span->width, end = job->row + (job->row_end - job->row) / side * side;
    for (size_t i = job->row; i < end; i += SHIFTED_ROWS)
        shifted_band(job->span, i, end - i < SHIFTED_ROWS ? end : i + SHIFTED_ROWS);
    part_tile(job->span, end, job->row_end, 0, job->span->columns);
}

static void run_job(void *data) {
    const transpose_job *job = data;
    size_t band = BAND_BYTES / job->span->width;
    if (job->span->shifted)
        run_shifted(job);
    for (size_t i = job->row; i < job->row_end && !job->span->shifted; i += band)
        transpose_band(job->span, i, job->row_end - i < band ? job->row_end : i + band);
#ifdef __SSE2__
    _mm_sfence();
#endif
}

/* Jobs are ranges of whole tiles of rows, so that no two write to one line. */
void daf__transpose(void *to, const void *from, size_t width, uint64_t rows, uint64_t columns,
                    uint64_t stride, const daf_executor *executor) {
    span s = {.to = to,
              .from = from,
              .width = width,
              .rows = (size_t)rows,
              .columns = (size_t)columns,
              .stride = (size_t)stride};
    transpose_job jobs[MAX_JOBS];
    uint64_t side = LINE_BYTES / width, tiles = (rows + side - 1) / side;
    uint64_t n = executor ? executor->n_threads : 1, work = rows * columns * width / JOB_BYTES + 1;
    n = n < work ? n : work;
    n = n < tiles ? n : tiles;
    n = n < 1 ? 1 : n > MAX_JOBS ? MAX_JOBS : n;
    s.streams = columns * width % LINE_BYTES == 0 && (uintptr_t)to % LINE_BYTES == 0;
    s.shifted = !s.streams && columns * width >= MIN_SHIFTED_BYTES;
    for (uint64_t k = 0; k < n; k++) {
        uint64_t end = tiles * (k + 1) / n * side;
        jobs[k] = (transpose_job){&s, (size_t)(tiles * k / n * side), (size_t)(end < rows ? end : rows)};
        if (n == 1 || executor->submit(executor->context, run_job, &jobs[k]) != 0)
            run_job(&jobs[k]);
    }
    if (n > 1)
        executor->wait(executor->context);
}

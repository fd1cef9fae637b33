/* Files beyond what small numbers hold: more than 3 million pages (a global index of several entries),
 * offsets over 2^32, dataset ids over 127, a header over one block, attributes of more than 1 MB; closed,
 * and read by recovery. And how much memory it takes to open and to read them. */
#include <errno.h>

#include "d7_testing.h"
#include "testing.h"

enum {
    N_DATASETS = 200,
    PLACES = 150, /* of the datasets that hold something: 0 and this one */
    N_PAGES = 3100000,
    LONG_VALUE = 1500000,
    FIXED_MEMORY = 64 << 20
};

typedef struct fixture {
    testing_place at;
    d7_reader *r;
    d7_error err;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    testing_place_begin(&f->at);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    d7_reader_free(f->r);
    bool leak = testing_place_end(&f->at);
    free(f);
    return leak;
}

static void reopen(fixture *f, const d7_io *io, bool recover, bool quick) {
    d7_reader_options o;
    d7_reader_options_init(&o);
    o.recover = recover;
    o.quick = quick;
    o.io = io;
    o.alloc = &f->at.alloc;
    o.executor = &f->at.executor;
    d7_reader_free(f->r);
    f->r = NULL;
    f->at.memory.peak = 0;
    if (d7_reader_open(&f->r, "memory", &o, &f->err) != 0)
        fail_msg("open: %s", f->err.text);
}

static void must(int rc, const d7_error *err) {
    if (rc != 0)
        fail_msg("%s", err->text);
}

/* ---- many pages ---- */

/* Pages of 16 bytes: 2 of these values, or 8 of those. */
static uint64_t time_of(uint64_t i) {
    return i * 1000 + i % 13;
}

static uint16_t place_of(uint64_t i) {
    return (uint16_t)((i * 2654435761u) >> 20 & 0xFFF);
}

static char *long_value(void) {
    char *text = malloc(LONG_VALUE + 1);
    for (size_t i = 0; i < LONG_VALUE; i++)
        text[i] = (char)('a' + i % 23);
    text[LONG_VALUE] = 0;
    return text;
}

/* A group of 32 time stamps and 32 places is 16 and 4 pages. */
static void append_group(d7_writer *w, uint64_t first, d7_error *err) {
    uint64_t times[32];
    uint16_t places[32];
    for (uint64_t i = 0; i < 32; i++) {
        times[i] = time_of(first + i);
        places[i] = place_of(first + i);
    }
    must(d7_writer_append(w, 0, times, 32, err), err);
    must(d7_writer_append(w, PLACES, places, 32, err), err);
}

static uint64_t write_many_pages(fixture *f, const d7_io *io, bool close) {
    static char names[N_DATASETS][128];
    d7_dataset datasets[N_DATASETS];
    d7_writer_options o = testing_writer_options(io);
    d7_writer *w;
    char *value = long_value();
    for (size_t i = 0; i < N_DATASETS; i++) {
        snprintf(names[i], sizeof names[i],
                 "/a/long/name/that/makes/the/header/longer/than/one/block/of/the/file/%08zu/%08zu", i, i);
        datasets[i] = (d7_dataset){names[i], i == 0 ? D7_UINT64 : D7_UINT16};
    }
    o.bytes_per_page = D7_PAGE_BYTES_MIN;
    o.overwrite = true;
    must(d7_writer_create(&w, "memory", datasets, N_DATASETS, &o, &f->err), &f->err);
    assert_int_equal(d7_writer_warnings(w) & (D7_WARN_MANY_DATASETS | D7_WARN_LONG_HEADER),
                     D7_WARN_MANY_DATASETS | D7_WARN_LONG_HEADER);
    must(d7_writer_set_attribute(w, "long", value, &f->err), &f->err);
    uint64_t n = 0;
    for (; d7_writer_pages(w) < N_PAGES; n += 32)
        append_group(w, n, &f->err);
    must(d7_writer_set_attribute(w, "later", value, &f->err), &f->err);
    if (close) {
        assert_true(d7_writer_index_bytes(w) > D7_INDEX_BODY_MAX);
        must(d7_writer_close(w, &f->err), &f->err);
    } else
        must(d7_writer_flush(w, &f->err), &f->err);
    d7_writer_free(w);
    free(value);
    return n;
}

static uint64_t items(const fixture *f, uint32_t ds) {
    d7_dataset_info info;
    assert_int_equal(d7_reader_dataset(f->r, ds, &info), 0);
    return info.items;
}

static void check_rows(fixture *f, uint64_t from, uint64_t to, size_t chunk_items) {
    static const uint32_t ids[] = {PLACES, 0};
    d7_columns_options o = {.from = from, .to = to, .chunk_items = chunk_items};
    d7_columns *c;
    d7_chunk chunk;
    uint64_t at = from;
    must(d7_columns_open(&c, f->r, ids, 2, &o, &f->err), &f->err);
    for (;;) {
        must(d7_columns_next(c, &chunk, &f->err), &f->err);
        if (chunk.n == 0)
            break;
        assert_int_equal(chunk.first_item, at);
        const uint16_t *places = chunk.values[0];
        const uint64_t *times = chunk.values[1];
        for (size_t i = 0; i < chunk.n; i++)
            if (places[i] != place_of(at + i) || times[i] != time_of(at + i))
                fail_msg("row %llu", (unsigned long long)(at + i));
        at += chunk.n;
    }
    assert_int_equal(at, to);
    d7_columns_free(c);
}

static void check_many_pages(fixture *f, uint64_t n, bool closed) {
    char *value = long_value();
    assert_true(d7_reader_pages(f->r) >= N_PAGES);
    assert_true(f->at.memory.peak <= FIXED_MEMORY + 16 * d7_reader_pages(f->r));
    assert_int_equal(d7_reader_n_damages(f->r), 0);
    assert_int_equal(items(f, 0), n);
    assert_int_equal(items(f, PLACES), n);
    assert_int_equal(items(f, N_DATASETS - 1), 0);
    assert_string_equal(d7_reader_find_attribute(f->r, "long"), value);
    if (closed)
        assert_string_equal(d7_reader_find_attribute(f->r, "later"), value);
    size_t before = f->at.memory.bytes;
    f->at.memory.peak = before;
    check_rows(f, 0, n, 0);
    check_rows(f, n / 2 + 1, n / 2 + 100, 0);
    assert_true(f->at.memory.peak - before < 8 << 20);
    free(value);
}

static void three_million_pages(void **state) {
    fixture *f = *state;
    for (int close = 1; close >= 0; close--) {
        memio file = {0};
        d7_io io = memio_table(&file);
        uint64_t n = write_many_pages(f, &io, close);
        size_t whole = file.n;
        if (close) {
            reopen(f, &io, false, false);
            assert_int_equal(d7_reader_state(f->r), D7_STATE_CLOSED);
            check_many_pages(f, n, true);
        }
        reopen(f, &io, true, false);
        check_many_pages(f, n, close);
        /* cut inside the last entry of the global index, and inside the one before */
        for (size_t cut = 1 << 20; close && cut < 20 << 20; cut += 10 << 20) {
            file.n = whole - cut;
            reopen(f, &io, false, false);
            assert_int_equal(d7_reader_state(f->r), D7_STATE_OPEN);
            assert_int_equal(items(f, 0), n);
            assert_int_equal(items(f, PLACES), n);
            check_rows(f, n - 500000, n, 0);
        }
        d7_reader_free(f->r);
        f->r = NULL;
        memio_free(&file);
    }
}

/* ---- large offsets ---- */

/* A file in memory whose blocks are mostly one byte over and over, behind a fragment's header. */
enum { BLOCKS_MAX = 300000 };

typedef struct block {
    uint8_t head[2], fill;
    uint8_t *bytes; /* NULL: head and fill */
} block;

typedef struct squeezed {
    block blocks[BLOCKS_MAX];
    uint64_t size;
} squeezed;

static void unsqueeze(const block *b, uint8_t *out) {
    if (b->bytes) {
        memcpy(out, b->bytes, D7_BLOCK_BYTES);
        return;
    }
    memset(out, b->fill, D7_BLOCK_BYTES);
    memcpy(out, b->head, 2);
}

static void squeeze(block *b, const uint8_t *in) {
    bool same = memcmp(in + 2, in + 3, D7_BLOCK_BYTES - 3) == 0;
    if (same) {
        free(b->bytes);
        *b = (block){.head = {in[0], in[1]}, .fill = in[2]};
        return;
    }
    if (!b->bytes)
        b->bytes = malloc(D7_BLOCK_BYTES);
    memcpy(b->bytes, in, D7_BLOCK_BYTES);
}

static int squeezed_open(void *ctx, const char *path, int flags, unsigned mode, void **ret_file) {
    (void)flags;
    (void)mode;
    *ret_file = ctx;
    return strcmp(path, "memory") == 0 ? 0 : -ENOENT;
}

static int squeezed_nothing(void *ctx, void *file) {
    (void)ctx;
    (void)file;
    return 0;
}

static int64_t squeezed_pread(void *ctx, void *file, void *buffer, size_t bytes, uint64_t offset) {
    const squeezed *s = ctx;
    uint8_t whole[D7_BLOCK_BYTES], *out = buffer;
    (void)file;
    if (offset >= s->size)
        return 0;
    bytes = s->size - offset < bytes ? (size_t)(s->size - offset) : bytes;
    for (size_t done = 0, n; done < bytes; done += n) {
        size_t in_block = (size_t)((offset + done) % D7_BLOCK_BYTES);
        n = D7_BLOCK_BYTES - in_block < bytes - done ? D7_BLOCK_BYTES - in_block : bytes - done;
        unsqueeze(&s->blocks[(offset + done) / D7_BLOCK_BYTES], whole);
        memcpy(out + done, whole + in_block, n);
    }
    return (int64_t)bytes;
}

static int64_t squeezed_pwrite(void *ctx, void *file, const void *data, size_t bytes, uint64_t offset) {
    squeezed *s = ctx;
    uint8_t whole[D7_BLOCK_BYTES];
    const uint8_t *in = data;
    (void)file;
    for (size_t done = 0, n; done < bytes; done += n) {
        size_t in_block = (size_t)((offset + done) % D7_BLOCK_BYTES);
        block *b = &s->blocks[(offset + done) / D7_BLOCK_BYTES];
        n = D7_BLOCK_BYTES - in_block < bytes - done ? D7_BLOCK_BYTES - in_block : bytes - done;
        if (b >= s->blocks + BLOCKS_MAX)
            return -ENOSPC;
        if (n == D7_BLOCK_BYTES) {
            squeeze(b, in + done);
            continue;
        }
        unsqueeze(b, whole);
        memcpy(whole + in_block, in + done, n);
        squeeze(b, whole);
    }
    s->size = offset + bytes > s->size ? offset + bytes : s->size;
    return (int64_t)bytes;
}

static int squeezed_size(void *ctx, void *file, uint64_t *ret_bytes) {
    (void)file;
    *ret_bytes = ((const squeezed *)ctx)->size;
    return 0;
}

static int squeezed_truncate(void *ctx, void *file, uint64_t bytes) {
    (void)file;
    ((squeezed *)ctx)->size = bytes;
    return 0;
}

static int squeezed_held(void *ctx, void *file, bool *ret_held) {
    (void)ctx;
    (void)file;
    *ret_held = false;
    return 0;
}

static d7_io squeezed_table(squeezed *s) {
    return (d7_io){.ctx = s,
                   .open = squeezed_open,
                   .close = squeezed_nothing,
                   .pread = squeezed_pread,
                   .pwrite = squeezed_pwrite,
                   .sync_data = squeezed_nothing,
                   .size = squeezed_size,
                   .truncate = squeezed_truncate,
                   .lock = squeezed_nothing,
                   .held = squeezed_held};
}

enum { LARGE_PAGE = 4 << 20, LARGE_PAGES = 1100, SMALL_ITEMS = LARGE_PAGE / 8 };

/* 4.4 GB of pages that are one byte over and over, and a page of differences now and then. */
static void write_large(fixture *f, const d7_io *io, bool close) {
    static const d7_dataset datasets[] = {{"/bytes", D7_UINT8}, {"/times", D7_UINT64}};
    d7_writer_options o = testing_writer_options(io);
    d7_writer *w;
    uint8_t *bytes = malloc(LARGE_PAGE);
    uint64_t *times = malloc(LARGE_PAGE), n = 0;
    o.overwrite = true;
    o.bytes_per_page = LARGE_PAGE;
    must(d7_writer_create(&w, "memory", datasets, 2, &o, &f->err), &f->err);
    for (int i = 0; i < LARGE_PAGES; i++) {
        memset(bytes, i, LARGE_PAGE);
        must(d7_writer_append(w, 0, bytes, LARGE_PAGE, &f->err), &f->err);
        if (i % 100)
            continue;
        for (size_t k = 0; k < SMALL_ITEMS; k++)
            times[k] = time_of(n++);
        must(d7_writer_append(w, 1, times, SMALL_ITEMS, &f->err), &f->err);
    }
    assert_true(d7_writer_framed_bytes(w) > (uint64_t)1 << 32);
    if (close)
        must(d7_writer_close(w, &f->err), &f->err);
    else
        must(d7_writer_flush(w, &f->err), &f->err);
    d7_writer_free(w);
    free(bytes);
    free(times);
}

static void check_large(fixture *f) {
    d7_page_info page;
    uint8_t bytes[200];
    uint64_t times[100], rng = 3;
    assert_int_equal(d7_reader_n_damages(f->r), 0);
    assert_int_equal(items(f, 0), (uint64_t)LARGE_PAGES * LARGE_PAGE);
    assert_int_equal(items(f, 1), (uint64_t)(LARGE_PAGES / 100) * SMALL_ITEMS);
    assert_int_equal(d7_reader_page(f->r, 0, LARGE_PAGES - 1, &page), 0);
    assert_true(page.offset > (uint64_t)1 << 32);
    for (int i = 0; i < 20; i++) {
        uint64_t at = i == 0 ? items(f, 0) - 200 : testing_random(&rng) % (items(f, 0) - 200);
        must(d7_reader_read(f->r, 0, at, 200, bytes, &f->err), &f->err);
        for (size_t k = 0; k < 200; k++)
            assert_int_equal(bytes[k], (uint8_t)((at + k) / LARGE_PAGE));
        at = i == 0 ? items(f, 1) - 100 : testing_random(&rng) % (items(f, 1) - 100);
        must(d7_reader_read(f->r, 1, at, 100, times, &f->err), &f->err);
        for (size_t k = 0; k < 100; k++)
            assert_int_equal(times[k], time_of(at + k));
    }
}

static void offsets_over_4_gb(void **state) {
    fixture *f = *state;
    squeezed *file = calloc(1, sizeof *file);
    d7_io io = squeezed_table(file);
    write_large(f, &io, true);
    reopen(f, &io, false, false);
    assert_int_equal(d7_reader_state(f->r), D7_STATE_CLOSED);
    check_large(f);
    reopen(f, &io, true, false);
    check_large(f);
    assert_true(f->at.memory.peak <= FIXED_MEMORY);
    file->size -= file->size % D7_BLOCK_BYTES; /* all but the epilogue */
    reopen(f, &io, false, false);
    assert_int_equal(d7_reader_state(f->r), D7_STATE_OPEN);
    assert_int_equal(items(f, 0), (uint64_t)LARGE_PAGES * LARGE_PAGE);
    d7_reader_free(f->r);
    f->r = NULL;
    for (size_t i = 0; i < BLOCKS_MAX; i++)
        free(file->blocks[i].bytes);
    free(file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(three_million_pages),
        TEST(offsets_over_4_gb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

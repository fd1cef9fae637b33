/* Rows of several datasets: types whose pages hold different numbers of items, ranges, chunks, damaged
 * pages, columns of unequal length, pages of unexpected length. Each with one lane and with several. */
#include "d7_builder.h"
#include "d7_testing.h"
#include "testing.h"

enum { N = 60000, PAGE = 4096 };

static const d7_dataset datasets[] = {
    {"/x", D7_UINT16}, {"/t", D7_UINT64}, {"/b", D7_UINT8}, {"/none", D7_INT32}};

typedef struct fixture {
    testing_place at;
    d7_reader *r;
    d7_columns *c;
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
    d7_columns_free(f->c);
    d7_reader_free(f->r);
    bool leak = testing_place_end(&f->at);
    free(f);
    return leak;
}

static uint64_t value(uint32_t ds, uint64_t i) {
    uint64_t mixed = (i + 1) * 0x9E3779B97F4A7C15u + ds;
    return ds == 0 ? mixed >> 52 : ds == 1 ? i * 977 + (mixed >> 58) : mixed >> 56;
}

static void store(uint32_t ds, uint64_t i, void *out) {
    uint64_t v = value(ds, i);
    uint16_t v16 = (uint16_t)v;
    if (ds == 0)
        memcpy(out, &v16, 2);
    else if (ds == 1)
        memcpy(out, &v, 8);
    else
        *(uint8_t *)out = (uint8_t)v;
}

static void append(d7_writer *w, uint32_t ds, size_t n) {
    size_t size = d7_type_size(datasets[ds].type);
    uint8_t *values = malloc(n * size + 1);
    for (size_t i = 0; i < n; i++)
        store(ds, i, values + i * size);
    assert_int_equal(d7_writer_append(w, ds, values, n, NULL), 0);
    free(values);
}

static void write_file(fixture *f, size_t n_x, size_t n_t, size_t n_b) {
    d7_writer_options o = testing_writer_options(&f->at.io);
    d7_writer *w;
    o.overwrite = true;
    o.bytes_per_page = PAGE;
    assert_int_equal(d7_writer_create(&w, "memory", datasets, 4, &o, &f->err), 0);
    append(w, 0, n_x);
    append(w, 1, n_t);
    append(w, 2, n_b);
    assert_int_equal(d7_writer_close(w, &f->err), 0);
    d7_writer_free(w);
}

static void open_reader(fixture *f, unsigned lanes) {
    d7_reader_options o;
    d7_reader_options_init(&o);
    o.io = &f->at.io;
    o.alloc = &f->at.alloc;
    o.executor = lanes > 1 ? &f->at.executor : NULL;
    o.lanes = lanes;
    d7_columns_free(f->c);
    f->c = NULL;
    d7_reader_free(f->r);
    f->r = NULL;
    if (d7_reader_open(&f->r, "memory", &o, &f->err) != 0)
        fail_msg("open: %s", f->err.text);
}

static int open_columns(fixture *f, size_t n, uint64_t from, uint64_t to, size_t chunk_items, bool skip) {
    static const uint32_t ids[] = {1, 0, 2};
    d7_columns_options o = {.from = from, .to = to, .chunk_items = chunk_items, .skip_damaged = skip};
    d7_columns_free(f->c);
    f->c = NULL;
    return d7_columns_open(&f->c, f->r, ids, n, &o, &f->err);
}

/* The next chunk, which must follow on `at` (or on damage) and hold the right values. */
static int check_next(fixture *f, size_t n_columns, size_t chunk_items, uint64_t *at, size_t *ret_n) {
    static const uint32_t ids[] = {1, 0, 2};
    d7_chunk chunk = {.n = SIZE_MAX};
    int rc = d7_columns_next(f->c, &chunk, &f->err);
    *ret_n = 0;
    if (rc != 0) {
        assert_int_equal(chunk.n, SIZE_MAX);
        return rc;
    }
    assert_true(chunk.n <= chunk_items || chunk_items == 0);
    for (size_t i = 0; i < n_columns && chunk.n; i++) {
        size_t size = d7_type_size(datasets[ids[i]].type);
        const uint8_t *values = chunk.values[i];
        assert_int_equal((uintptr_t)values % size, 0);
        for (size_t j = 0; j < chunk.n; j++) {
            uint8_t want[8];
            store(ids[i], chunk.first_item + j, want);
            if (memcmp(want, values + j * size, size) != 0)
                fail_msg("column %zu, row %zu of the chunk from %llu", i, j,
                         (unsigned long long)chunk.first_item);
        }
    }
    assert_true(chunk.first_item >= *at);
    *at = chunk.first_item + chunk.n;
    *ret_n = chunk.n;
    return 0;
}

/* Reads all rows that were asked for, without damage. */
static void check_range(fixture *f, size_t n_columns, uint64_t from, uint64_t to, size_t chunk_items) {
    uint64_t at = from, before;
    size_t n;
    assert_int_equal(open_columns(f, n_columns, from, to, chunk_items, false), 0);
    do {
        before = at;
        int rc = check_next(f, n_columns, chunk_items, &at, &n);
        if (rc != 0)
            fail_msg("next: %s", f->err.text);
        assert_int_equal(at, before + n);
    } while (n);
    assert_int_equal(at, to);
    assert_int_equal(check_next(f, n_columns, chunk_items, &at, &n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(d7_columns_skipped(f->c), 0);
}

static void any_range_in_any_chunks(void **state) {
    static const size_t chunks[] = {0, 3000, 2048, 4096, 4097, 100000, SIZE_MAX};
    fixture *f = *state;
    uint64_t rng = 5;
    write_file(f, N, N, N);
    for (unsigned lanes = 1; lanes <= 4; lanes += 3) {
        open_reader(f, lanes);
        for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
            check_range(f, 3, 0, N, chunks[i]);
            for (int k = 0; k < 8; k++) {
                uint64_t a = testing_random(&rng) % (N + 1), b = testing_random(&rng) % (N + 1);
                check_range(f, 1 + (size_t)k % 3, a < b ? a : b, a < b ? b : a, chunks[i]);
            }
        }
        check_range(f, 3, N - 300, N, 1);
        check_range(f, 3, 2040, 2060, 7);
    }
}

static void ends_and_ragged_columns(void **state) {
    fixture *f = *state;
    uint32_t none = 3, unknown = 4, twice[] = {0, 0};
    uint64_t at = 0;
    size_t n;
    d7_chunk chunk;
    write_file(f, 20000, 9000, 50000);
    open_reader(f, 1);
    assert_int_equal(open_columns(f, 3, 8990, UINT64_MAX, 0, false), 0);
    assert_int_equal(check_next(f, 3, 0, &at, &n), 0);
    assert_int_equal(n, 10);
    assert_int_equal(check_next(f, 3, 0, &at, &n), 0);
    assert_int_equal(n, 0);
    check_range(f, 3, 9000, 9000, 0);
    assert_int_equal(open_columns(f, 3, 0, 9001, 0, false), D7_ERR_ARG);
    assert_non_null(strstr(f->err.text, "9000"));
    assert_int_equal(open_columns(f, 3, 9001, UINT64_MAX, 0, false), D7_ERR_ARG);
    assert_int_equal(open_columns(f, 3, 5, 4, 0, false), D7_ERR_ARG);
    assert_int_equal(open_columns(f, 0, 0, UINT64_MAX, 0, false), D7_ERR_ARG);
    assert_int_equal(d7_columns_open(&f->c, f->r, &unknown, 1, NULL, &f->err), D7_ERR_ARG);
    assert_int_equal(d7_columns_open(&f->c, f->r, &none, 1, NULL, &f->err), 0);
    assert_int_equal(d7_columns_next(f->c, &chunk, &f->err), 0);
    assert_int_equal(chunk.n, 0);
    d7_columns_free(f->c);
    assert_int_equal(d7_columns_open(&f->c, f->r, twice, 2, NULL, &f->err), 0);
    assert_int_equal(d7_columns_next(f->c, &chunk, &f->err), 0);
    assert_int_equal(chunk.n, 20000);
    assert_ptr_not_equal(chunk.values[0], chunk.values[1]);
    assert_memory_equal(chunk.values[0], chunk.values[1], 40000);
}

static void damage_page(fixture *f, uint32_t ds, uint64_t page) {
    d7_page_info info;
    assert_int_equal(d7_reader_page(f->r, ds, page, &info), 0);
    f->at.file.data[info.offset + 2] = 0x7A; /* the field's number */
}

/* Pages of /x hold 2048 items, of /t 512, of /b 4096. */
static void make_damage(fixture *f) {
    write_file(f, N, N, N);
    open_reader(f, 1);
    damage_page(f, 1, 0); /* rows 0 to 512 */
    damage_page(f, 0, 5); /* 10240 to 12288 */
    damage_page(f, 1, 21);
    damage_page(f, 1, 24); /* 12288 to 12800 */
    damage_page(f, 2, 10); /* 40960 to 45056 */
}

static void damaged_rows_are_left_out(void **state) {
    static const uint64_t runs[][2] = {{512, 10240}, {12800, 40960}, {45056, N}};
    fixture *f = *state;
    make_damage(f);
    for (unsigned lanes = 1; lanes <= 4; lanes += 3)
        for (size_t chunk = 0; chunk <= 6000; chunk += 3000) {
            uint64_t at = 0;
            size_t n, run = 0;
            open_reader(f, lanes);
            assert_int_equal(open_columns(f, 3, 0, UINT64_MAX, chunk, true), 0);
            for (;;) {
                uint64_t before = at;
                assert_int_equal(check_next(f, 3, chunk, &at, &n), 0);
                if (n == 0)
                    break;
                if (at - n != before)
                    assert_int_equal(at - n, runs[run][0]);
                if (at == runs[run][1])
                    run++;
            }
            assert_int_equal(run, 3);
            assert_int_equal(d7_columns_skipped(f->c), 512 + 2560 + 4096);
            assert_int_equal(d7_reader_n_damages(f->r), 5);
        }
}

static void damage_is_an_error_where_it_begins(void **state) {
    fixture *f = *state;
    make_damage(f);
    for (unsigned lanes = 1; lanes <= 4; lanes += 3) {
        uint64_t at = 513, before;
        size_t n;
        int rc;
        d7_page_info page;
        open_reader(f, lanes);
        assert_int_equal(open_columns(f, 3, 513, UINT64_MAX, 0, false), 0);
        do {
            before = at;
            rc = check_next(f, 3, 0, &at, &n);
            assert_true(rc != 0 || at == before + n);
        } while (rc == 0 && n);
        assert_int_equal(rc, D7_ERR_CORRUPT);
        assert_int_equal(at, 10240);
        assert_int_equal(d7_reader_page(f->r, 0, 5, &page), 0);
        assert_int_equal(f->err.offset, page.offset);
        assert_non_null(strstr(f->err.text, "/x"));
        assert_int_equal(check_next(f, 3, 0, &at, &n), D7_ERR_CORRUPT);
        assert_int_equal(at, 10240);
    }
}

/* ---- pages of unexpected length ---- */

static void build_dataset_page(builder *b, uint32_t ds, uint64_t first, size_t n) {
    uint8_t values[8 * 256];
    size_t size = d7_type_size(datasets[ds].type);
    for (size_t i = 0; i < n; i++)
        store(ds, first + i, values + i * size);
    build_page(b, ds, datasets[ds].type, values, n);
}

/* Whole pages of /x hold 32 items, of /t 8. Page `odd` of /x holds n_odd. */
static void build_odd(fixture *f, size_t odd, size_t n_odd) {
    static builder b;
    uint64_t t = 0, x = 0;
    build_start(&b, datasets, 2, 512, 64);
    for (size_t i = 0; i < 40; i++) {
        size_t n = i == odd ? n_odd : i == 39 ? 20 : 32;
        build_dataset_page(&b, 0, x, n);
        x += n;
        for (; t + 8 <= x; t += 8)
            build_dataset_page(&b, 1, t, 8);
    }
    build_epilogue(&b, build_index(&b, 0, b.n_pages, NULL), true);
    build_end(&b, &f->at.file);
}

static void odd_pages_in_the_middle(void **state) {
    static const size_t lengths[] = {1, 30, 33, 100};
    fixture *f = *state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t odd = 0; odd < 39; odd += 19)
            for (size_t chunk = 0; chunk <= 1000; chunk += 125)
                for (unsigned lanes = 1; lanes <= 4; lanes += 3) {
                    build_odd(f, odd, lengths[i]);
                    uint64_t items = 38 * 32 + lengths[i] + 20;
                    uint64_t at = 0, before;
                    size_t n;
                    open_reader(f, lanes);
                    assert_int_equal(open_columns(f, 2, 0, UINT64_MAX, chunk, false), 0);
                    do {
                        before = at;
                        assert_int_equal(check_next(f, 2, chunk, &at, &n), 0);
                        assert_int_equal(at, before + n);
                    } while (n);
                    assert_int_equal(at, items / 8 * 8);
                }
}

/* Rows given already turn out to have had other numbers: an error, and right when begun anew. */
static void odd_page_before_the_first_row(void **state) {
    fixture *f = *state;
    uint64_t at = 0;
    for (unsigned lanes = 1; lanes <= 4; lanes += 3) {
        static builder b;
        build_start(&b, datasets, 1, 512, 64);
        uint64_t x = 0;
        for (size_t i = 0; i < 40; i++) {
            size_t length = i == 3 || i == 30 ? 31 : 32;
            build_dataset_page(&b, 0, x, length);
            x += length;
        }
        build_epilogue(&b, build_index(&b, 0, b.n_pages, NULL), true);
        build_end(&b, &f->at.file);
        open_reader(f, lanes);
        d7_columns_options o = {.from = 320, .to = UINT64_MAX, .chunk_items = 64};
        d7_chunk chunk;
        int rc;
        assert_int_equal(d7_columns_open(&f->c, f->r, &(uint32_t){0}, 1, &o, &f->err), 0);
        while ((rc = d7_columns_next(f->c, &chunk, &f->err)) == 0 && chunk.n)
            at = chunk.first_item + chunk.n;
        assert_int_equal(rc, D7_ERR_STATE);
        assert_in_range(at, 320, 960);
        d7_columns_free(f->c);
        assert_int_equal(d7_columns_open(&f->c, f->r, &(uint32_t){0}, 1, &o, &f->err), 0);
        at = 320;
        while ((rc = d7_columns_next(f->c, &chunk, &f->err)) == 0 && chunk.n) {
            uint16_t want;
            store(0, at, &want);
            assert_memory_equal(chunk.values[0], &want, 2);
            assert_int_equal(chunk.first_item, at);
            at += chunk.n;
        }
        assert_int_equal(rc, 0);
        assert_int_equal(at, 40 * 32 - 2);
    }
}

/* ---- refreshing in between ---- */

static d7_writer *start_growing(fixture *f) {
    d7_writer_options o = testing_writer_options(&f->at.io);
    d7_writer *w;
    o.overwrite = true;
    o.bytes_per_page = PAGE;
    assert_int_equal(d7_writer_create(&w, "memory", datasets, 4, &o, &f->err), 0);
    return w;
}

/* Whole pages of /x and /t with values [first, first + n). */
static void grow(d7_writer *w, uint64_t first, size_t n) {
    for (uint32_t ds = 0; ds < 2; ds++) {
        size_t size = d7_type_size(datasets[ds].type);
        uint8_t *values = malloc(n * size);
        for (size_t i = 0; i < n; i++)
            store(ds, first + i, values + i * size);
        assert_int_equal(d7_writer_append(w, ds, values, n, NULL), 0);
        free(values);
    }
    assert_int_equal(d7_writer_flush(w, NULL), 0);
}

static void read_up_to(fixture *f, uint64_t *at, uint64_t end) {
    uint64_t before;
    size_t n;
    do {
        before = *at;
        assert_int_equal(check_next(f, 2, 0, at, &n), 0);
        assert_int_equal(*at, before + n);
    } while (n);
    assert_int_equal(*at, end);
}

static void rows_that_are_added_follow(void **state) {
    fixture *f = *state;
    d7_writer *w = start_growing(f);
    uint64_t at = 0;
    open_reader(f, 4);
    assert_int_equal(open_columns(f, 2, 0, UINT64_MAX, 0, false), 0);
    read_up_to(f, &at, 0);
    for (uint64_t n = 0; n < 40 * 2048; n += 8 * 2048) {
        grow(w, n, 8 * 2048);
        read_up_to(f, &at, n);
        assert_int_equal(d7_reader_refresh(f->r, NULL, &f->err), 0);
        read_up_to(f, &at, n + 8 * 2048);
    }
    d7_writer_free(w);
}

static void a_cut_file_ends_the_reading(void **state) {
    fixture *f = *state;
    static const uint64_t ends[] = {UINT64_MAX, 15 * 2048};
    for (size_t i = 0; i < 2; i++) {
        d7_writer *w = start_growing(f);
        uint64_t at = 0;
        size_t n, half;
        unsigned changes;
        grow(w, 0, 8 * 2048);
        half = f->at.file.n;
        grow(w, 8 * 2048, 8 * 2048);
        d7_writer_free(w);
        open_reader(f, 4);
        assert_int_equal(open_columns(f, 2, 0, ends[i], 12 * 2048, false), 0);
        assert_int_equal(check_next(f, 2, 0, &at, &n), 0);
        assert_int_equal(n, 12 * 2048);
        f->at.file.n = half;
        assert_int_equal(d7_reader_refresh(f->r, &changes, &f->err), 0);
        assert_true(changes & D7_CHANGE_CUT);
        assert_int_equal(check_next(f, 2, 0, &at, &n), D7_ERR_STATE);
        assert_non_null(strstr(f->err.text, "begin anew"));
    }
}

/* ---- memory ---- */

static int read_all(fixture *f) {
    uint64_t at = 0;
    size_t n = 0;
    int rc = open_columns(f, 3, 100, UINT64_MAX, 0, true);
    while (rc == 0 && ((rc = check_next(f, 3, 0, &at, &n)) == 0 && n))
        continue;
    return rc;
}

static void memory_may_end_anywhere(void **state) {
    fixture *f = *state;
    make_damage(f);
    for (unsigned lanes = 1; lanes <= 4; lanes += 3)
        for (long at = 1;; at++) {
            open_reader(f, lanes);
            f->at.memory.calls = 0;
            f->at.memory.fail_at = at;
            int rc = read_all(f);
            f->at.memory.fail_at = 0;
            if (rc == 0)
                break;
            assert_int_equal(rc, D7_ERR_NOMEM);
            assert_int_equal(read_all(f), 0);
            assert_int_equal(d7_columns_skipped(f->c), 412 + 2560 + 4096);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(any_range_in_any_chunks),    TEST(ends_and_ragged_columns),
        TEST(damaged_rows_are_left_out),  TEST(damage_is_an_error_where_it_begins),
        TEST(odd_pages_in_the_middle),    TEST(odd_page_before_the_first_row),
        TEST(rows_that_are_added_follow), TEST(a_cut_file_ends_the_reading),
        TEST(memory_may_end_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

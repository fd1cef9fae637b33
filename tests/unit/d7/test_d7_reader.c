/* The reader: item ranges, attributes, pages of unexpected length, recovery by islands, problems,
 * verification. */
#include "base/bytes.h"
#include "d7_builder.h"
#include "d7_testing.h"
#include "framing.h"
#include "testing.h"

enum { N = 200000, TURN = 3000 };

typedef struct fixture {
    memio file;
    d7_io io;
    d7_reader *r;
    d7_error err;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->io = memio_table(&f->file);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    d7_reader_free(f->r);
    bool open = f->file.opened_memory;
    memio_free(&f->file);
    free(f);
    return open;
}

static void reopen(fixture *f, bool recover, bool quick) {
    d7_reader_free(f->r);
    f->r = testing_open(&f->io, recover, quick);
}

static uint64_t items(const fixture *f, uint32_t ds) {
    d7_dataset_info info;
    assert_int_equal(d7_reader_dataset(f->r, ds, &info), 0);
    return info.items;
}

static bool has_problem(const fixture *f, d7_problem_code code) {
    d7_problem p;
    for (size_t i = 0; d7_reader_problem(f->r, i, &p) == 0; i++)
        if (p.code == code)
            return true;
    return false;
}

static void any_range_can_be_read(void **state) {
    fixture *f = *state;
    uint16_t *x = testing_noise(11, N), *got = malloc(N * 2);
    uint64_t rng = 9;
    testing_write(&f->io, N, TURN, 4, 4096, true);
    reopen(f, false, false);
    testing_check_values(f->r, N);
    for (int i = 0; i < 2000; i++) {
        uint64_t from = testing_random(&rng) % (N + 1);
        size_t n = (size_t)(testing_random(&rng) % (i % 2 ? 50 : N - from + 1));
        n = n > N - from ? (size_t)(N - from) : n;
        assert_int_equal(d7_reader_read(f->r, 0, from, n, got, &f->err), 0);
        assert_memory_equal(got, x + from, n * 2);
    }
    assert_int_equal(d7_reader_read(f->r, 0, N, 1, got, &f->err), D7_ERR_ARG);
    assert_int_equal(d7_reader_read(f->r, 0, UINT64_MAX, 2, got, &f->err), D7_ERR_ARG);
    assert_int_equal(d7_reader_read(f->r, 9, 0, 1, got, &f->err), D7_ERR_ARG);
    assert_int_equal(d7_reader_read(f->r, 0, N, 0, NULL, &f->err), 0);
    free(x);
    free(got);
}

static void file_is_described(void **state) {
    fixture *f = *state;
    uint32_t version[3], ds;
    d7_dataset_info info;
    d7_attribute a;
    d7_page_info page;
    uint64_t number;
    testing_write(&f->io, N, TURN, 4, 4096, true);
    reopen(f, false, false);
    d7_reader_version(f->r, version);
    assert_int_equal(version[0], 1);
    assert_int_equal(version[2], 1);
    assert_int_equal(d7_reader_index_step(f->r), 4);
    assert_int_equal(d7_reader_bytes_per_page(f->r), 4096);
    assert_int_equal(d7_reader_file_bytes(f->r), f->file.n);
    assert_int_equal(d7_reader_find_dataset(f->r, "/ms", &ds), 0);
    assert_int_equal(ds, 2);
    assert_int_equal(d7_reader_find_dataset(f->r, "/m", &ds), D7_ERR_NOTFOUND);
    assert_int_equal(d7_reader_dataset(f->r, 2, &info), 0);
    assert_string_equal(info.name, "/ms");
    assert_int_equal(info.type, D7_UINT64);
    assert_int_equal(info.items, N / 50);
    assert_int_equal(info.pages, 8);
    assert_int_equal(info.rank, 1);
    assert_int_equal(d7_reader_dataset(f->r, 3, &info), D7_ERR_ARG);
    assert_int_equal(d7_reader_n_attributes(f->r), 2);
    assert_int_equal(d7_reader_attribute(f->r, 0, &a), 0);
    assert_string_equal(a.key, "a");
    assert_int_equal(a.value_bytes, strlen("set at the start"));
    assert_int_equal(d7_reader_attribute(f->r, 2, &a), D7_ERR_ARG);
    assert_string_equal(d7_reader_find_attribute(f->r, "b"), "set later");
    assert_null(d7_reader_find_attribute(f->r, D7_MARKER_KEY));
    assert_int_equal(d7_reader_find_page(f->r, 0, 2048, &number), 0);
    assert_int_equal(number, 1);
    assert_int_equal(d7_reader_find_page(f->r, 0, N, &number), D7_ERR_ARG);
    assert_int_equal(d7_reader_page(f->r, 0, N / 2048, &page), 0);
    assert_int_equal(page.first_item, N / 2048 * 2048);
    assert_int_equal(page.n_items, N % 2048);
    assert_false(page.damaged);
    assert_int_equal(d7_reader_page(f->r, 0, N / 2048 + 1, &page), D7_ERR_ARG);
}

static void unclosed_files_are_read(void **state) {
    fixture *f = *state;
    testing_write(&f->io, N, TURN, 4, 4096, false);
    reopen(f, false, false);
    assert_int_equal(d7_reader_state(f->r), D7_STATE_OPEN);
    assert_int_equal(d7_reader_n_problems(f->r), 0);
    assert_int_equal(items(f, 0), N / 2048 * 2048);
    assert_string_equal(d7_reader_find_attribute(f->r, "b"), "set later");
    testing_check_values(f->r, N);
    uint64_t all = d7_reader_pages(f->r);
    reopen(f, false, true); /* quick: what islands list, and no more */
    assert_in_range(d7_reader_pages(f->r), all - 40, all - 1);
    testing_check_values(f->r, N);
}

static void recovery_agrees_with_the_global_index(void **state) {
    fixture *f = *state;
    testing_write(&f->io, N, TURN, 4, 4096, true);
    reopen(f, false, false);
    uint64_t pages = d7_reader_pages(f->r);
    reopen(f, true, false);
    assert_int_equal(d7_reader_pages(f->r), pages);
    assert_int_equal(d7_reader_state(f->r), D7_STATE_CLOSED);
    assert_int_equal(d7_reader_n_problems(f->r), 0);
    assert_int_equal(d7_reader_n_attributes(f->r), 2);
    assert_int_equal(items(f, 0), N);
    testing_check_values(f->r, N);
}

/* Finding the pages of an unclosed file with good islands costs the islands and what follows the last one. */
static void recovery_reads_little(void **state) {
    fixture *f = *state;
    testing_write(&f->io, 4000000, 100000, 64, 16384, false);
    f->file.bytes_read = 0;
    reopen(f, false, false);
    assert_true(f->file.n > 12000000);
    /* an island every MiB: a window each, the tail, the ends of three datasets */
    assert_true(f->file.bytes_read < 13 * 65536 + (3u << 20));
    assert_int_equal(d7_reader_n_problems(f->r), 0);
    assert_int_equal(items(f, 0), 4000000 / 8192 * 8192);
}

/* Overwrites the island at or after block `block` with fragments that begin nothing. */
static void destroy_entry_at(fixture *f, uint64_t offset) {
    size_t at = (size_t)offset;
    size_t n = bytes_load16(f->file.data + at) & 0x3FFF;
    bytes_store16(f->file.data + at, (uint16_t)n);
}

/* The first fragment with a begin bit at or after a block's start. */
static uint64_t first_entry_in(const fixture *f, uint64_t block) {
    uint64_t at = block * D7_BLOCK_BYTES;
    while (!(bytes_load16(f->file.data + at) & 0x8000))
        at += 2 + (bytes_load16(f->file.data + at) & 0x3FFF);
    return at;
}

static void missing_islands_are_made_up_for(void **state) {
    fixture *f = *state;
    testing_write(&f->io, N, TURN, 4, 4096, false);
    reopen(f, false, false);
    uint64_t pages = d7_reader_pages(f->r);
    destroy_entry_at(f, first_entry_in(f, 4)); /* the first island */
    reopen(f, false, false);
    assert_int_equal(d7_reader_pages(f->r), pages);
    testing_check_values(f->r, N);
    assert_false(has_problem(f, D7_PROBLEM_UNPLACED));
    destroy_entry_at(f, first_entry_in(f, 16));
    destroy_entry_at(f, first_entry_in(f, 20));
    reopen(f, false, false); /* two in a row: nobody knows that the first was no page */
    assert_true(d7_reader_pages(f->r) > pages / 4 && d7_reader_pages(f->r) < pages);
    testing_check_values(f->r, N);
    assert_true(has_problem(f, D7_PROBLEM_UNPLACED));
}

/* Zeros behind the end, as after a crash of a machine that had extended the file. */
static void zeros_at_the_end_are_nothing(void **state) {
    fixture *f = *state;
    testing_write(&f->io, N, TURN, 4, 4096, false);
    reopen(f, false, false);
    uint64_t pages = d7_reader_pages(f->r), n = f->file.n;
    for (size_t zeros = 1; zeros < 70000; zeros = zeros * 3 + 1) {
        uint8_t *longer = calloc(1, (size_t)n + zeros);
        memcpy(longer, f->file.data, (size_t)n);
        memio_set(&f->file, longer, (size_t)n + zeros);
        reopen(f, false, false);
        assert_int_equal(d7_reader_pages(f->r), pages);
        assert_int_equal(items(f, 0), N / 2048 * 2048);
        f->file.n = (size_t)n;
        free(longer);
    }
}

static void held_files_are_no_problem(void **state) {
    fixture *f = *state;
    testing_write(&f->io, N, TURN, 4, 4096, false);
    f->file.n -= 7;
    reopen(f, false, false);
    assert_false(d7_reader_held(f->r));
    assert_int_equal(d7_reader_n_damages(f->r), 1);
    assert_true(has_problem(f, D7_PROBLEM_TORN_TAIL));
    f->file.held = true;
    reopen(f, false, false);
    assert_true(d7_reader_held(f->r));
    assert_int_equal(d7_reader_n_damages(f->r), 0);
    assert_true(has_problem(f, D7_PROBLEM_BEING_WRITTEN));
}

static void shrinking_is_an_error(void **state) {
    fixture *f = *state;
    uint16_t *out = malloc(N * 2);
    testing_write(&f->io, N, TURN, 4, 4096, true);
    reopen(f, false, false);
    f->file.n /= 2;
    assert_int_equal(d7_reader_read(f->r, 0, 0, N, out, &f->err), D7_ERR_TRUNCATED);
    assert_non_null(strstr(f->err.text, "has shrunk"));
    free(out);
}

/* ---- files that no writer of ours makes ---- */

static void end_and_open(builder *b, fixture *f) {
    build_end(b, &f->file);
    reopen(f, false, false);
}

static const d7_dataset one[] = {{"/x", D7_UINT16}};

/* Pages of 3, 5, 1, 8 and 2 items where 8 are a full page's: with the first one odd, opening counts them;
 * without, the first read that meets one does. */
static void uneven_pages_are_counted(void **state) {
    fixture *f = *state;
    static const size_t lengths[2][5] = {{3, 5, 1, 8, 2}, {8, 8, 1, 8, 2}};
    for (int form = 0; form < 2; form++) {
        builder b;
        uint16_t *v = testing_noise(3, 64), got[64];
        size_t total = 0;
        d7_page_info page;
        build_start(&b, one, 1, 512, 16);
        for (size_t i = 0; i < 5; i++) {
            build_page(&b, 0, D7_UINT16, v + total, lengths[form][i]);
            total += lengths[form][i];
        }
        build_epilogue(&b, build_index(&b, 0, 5, NULL), true);
        end_and_open(&b, f);
        assert_int_equal(items(f, 0), form == 0 ? total : 34);
        if (form == 1) {
            assert_int_equal(d7_reader_read(f->r, 0, 0, 16, got, &f->err), 0);
            assert_int_equal(d7_reader_read(f->r, 0, 15, 4, got, &f->err),
                             0); /* meets the page of one item */
            assert_memory_equal(got, v + 15, 8);
        }
        assert_int_equal(items(f, 0), total);
        for (size_t from = 0; from <= total; from++)
            for (size_t n = 0; from + n <= total; n++) {
                assert_int_equal(d7_reader_read(f->r, 0, from, n, got, &f->err), 0);
                assert_memory_equal(got, v + from, n * 2);
            }
        assert_int_equal(d7_reader_page(f->r, 0, 3, &page), 0);
        assert_int_equal(page.n_items, 8);
        assert_int_equal(page.first_item, total - 10);
        assert_int_equal(d7_reader_n_damages(f->r), 0);
        assert_true(has_problem(f, D7_PROBLEM_PAGE_LENGTH));
        free(v);
    }
}

static void damage_is_told_once_and_read_around(void **state) {
    fixture *f = *state;
    builder b;
    uint16_t *v = testing_noise(3, 64), got[40];
    d7_problem p;
    build_start(&b, one, 1, 512, 16);
    for (size_t i = 0; i < 4; i++)
        build_page(&b, 0, D7_UINT16, v + 8 * i, 8);
    build_page(&b, 0, D7_UINT16, v + 32, 3);
    build_epilogue(&b, build_index(&b, 0, 5, NULL), true);
    uint64_t bad = b.pages[2].offset;
    end_and_open(&b, f);
    f->file.data[bad + 2] = 0x7A; /* the field's number */
    reopen(f, false, false);
    memset(got, 0, sizeof got);
    assert_int_equal(d7_reader_n_problems(f->r), 0);
    assert_int_equal(d7_reader_read(f->r, 0, 0, 35, got, &f->err), D7_ERR_CORRUPT);
    assert_int_equal(f->err.offset, bad);
    assert_memory_equal(got, v, 32);
    assert_memory_equal(got + 24, v + 24, 22);
    assert_int_equal(d7_reader_read(f->r, 0, 17, 1, got, &f->err), D7_ERR_CORRUPT);
    assert_int_equal(d7_reader_read(f->r, 0, 24, 8, got, &f->err), 0);
    assert_int_equal(d7_reader_check(f->r, NULL, NULL, &f->err), 0);
    assert_int_equal(d7_reader_n_problems(f->r), 1);
    assert_int_equal(d7_reader_problem(f->r, 0, &p), 0);
    assert_int_equal(p.code, D7_PROBLEM_BAD_PAGE);
    assert_int_equal(p.offset, bad);
    assert_int_equal(p.dataset_id, 0);
    assert_int_equal(p.first_item, 16);
    assert_int_equal(p.n_items, 8);
    /* the last page: its items are not there at all */
    f->file.data[b.pages[4].offset + 2] = 0x7A;
    reopen(f, false, false);
    assert_int_equal(items(f, 0), 32);
    assert_true(has_problem(f, D7_PROBLEM_BAD_PAGE));
    free(v);
}

/* Besides, there is a note on pages that are shorter than some readers can read. */
static void verify_now(fixture *f, uint64_t damages, uint64_t notes) {
    d7_verify_summary s;
    d7_problem p;
    if (d7_reader_verify(f->r, NULL, NULL, NULL, NULL, &s, &f->err) != 0)
        fail_msg("verify: %s", f->err.text);
    notes += d7_reader_bytes_per_page(f->r) != D7_PAGE_BYTES_DEFAULT;
    if (s.damages == damages && s.data_notes + s.style_notes == notes)
        return;
    for (size_t i = 0; d7_reader_problem(f->r, i, &p) == 0; i++)
        print_error("%s %s\n", d7_problem_name(p.code), p.text);
    fail_msg("%d damages, %d data notes, %d style notes", (int)s.damages, (int)s.data_notes,
             (int)s.style_notes);
}

/* A global index with a page of no dataset: who wrote that? */
static void impossible_indexes_are_not_trusted(void **state) {
    fixture *f = *state;
    uint16_t *v = testing_noise(3, 8);
    builder b;
    build_start(&b, one, 1, 512, 16);
    build_page(&b, 0, D7_UINT16, v, 8);
    build_page(&b, 7, D7_UINT16, v, 8);
    build_epilogue(&b, build_index(&b, 0, 2, NULL), true);
    end_and_open(&b, f);
    assert_true(has_problem(f, D7_PROBLEM_UNKNOWN_DATASET));
    assert_true(has_problem(f, D7_PROBLEM_BAD_EPILOGUE));
    assert_int_equal(items(f, 0), 8);
    free(v);
}

static void islands_are_verified(void **state) {
    fixture *f = *state;
    testing_write(&f->io, N, TURN, 4, 4096, true);
    reopen(f, false, false);
    verify_now(f, 0, 0);
    uint64_t island = first_entry_in(f, 8);
    destroy_entry_at(f, island);
    reopen(f, false, false);
    verify_now(
        f, 2,
        1); /* the fragment without a beginning; what the next island does not list; none where one was due */
    assert_true(has_problem(f, D7_PROBLEM_ISLAND_PLACE));
}

/* One dataset closed early and thousands of others: ids beyond 127, several hundred pages. */
static void many_datasets(void **state) {
    fixture *f = *state;
    enum { MANY = 1000 };
    static d7_dataset datasets[MANY];
    static char names[MANY][16];
    d7_writer_options o = testing_writer_options(&f->io);
    d7_writer *w;
    for (size_t i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "/d%zu", i);
        datasets[i] = (d7_dataset){names[i], D7_UINT32};
    }
    o.index_step = 1;
    assert_int_equal(d7_writer_create(&w, "memory", datasets, MANY, &o, &f->err), 0);
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(d7_writer_append(w, i, (uint32_t[]){i, i + 1, i * i}, i % 4, &f->err), 0);
    assert_int_equal(d7_writer_close(w, &f->err), 0);
    d7_writer_free(w);
    for (int recover = 0; recover < 2; recover++) {
        reopen(f, recover, false);
        assert_int_equal(d7_reader_n_problems(f->r), 0);
        for (uint32_t i = 0; i < MANY; i++) {
            uint32_t got[3], want[] = {i, i + 1, i * i};
            assert_int_equal(items(f, i), i % 4);
            assert_int_equal(d7_reader_read(f->r, i, 0, i % 4, got, &f->err), 0);
            assert_memory_equal(got, want, i % 4 * 4);
        }
        verify_now(f, 0, 1); /* some readers lose them */
    }
}

static int stop_at_once(void *ctx, uint64_t done, uint64_t total) {
    ++*(int *)ctx;
    assert_true(done <= total);
    return 1;
}

static void long_work_can_be_stopped(void **state) {
    fixture *f = *state;
    d7_verify_summary s;
    int calls = 0;
    testing_write(&f->io, N, TURN, 4, 4096, true);
    reopen(f, false, false);
    assert_int_equal(d7_reader_check(f->r, stop_at_once, &calls, &f->err), D7_ERR_CANCELLED);
    assert_int_equal(d7_reader_verify(f->r, NULL, NULL, stop_at_once, &calls, &s, &f->err), D7_ERR_CANCELLED);
    assert_int_equal(calls, 2);
}

static void what_is_no_d7_file_is_named(void **state) {
    fixture *f = *state;
    d7_reader_options o = {.io = &f->io};
    d7_reader *r = NULL;
    assert_int_equal(d7_reader_open(&r, "memory", &o, &f->err), D7_ERR_NOTFOUND);
    memio_set(&f->file, "", 0);
    assert_int_equal(d7_reader_open(&r, "memory", &o, &f->err), D7_ERR_TRUNCATED);
    assert_string_equal(f->err.text, "memory: the file is empty");
    static const char foreign[] = "\x89HDF\r\n\x1a\n and more that is no D7";
    memio_set(&f->file, foreign, sizeof foreign - 1);
    assert_int_equal(d7_reader_open(&r, "memory", &o, &f->err), D7_ERR_CORRUPT);
    assert_non_null(strstr(f->err.text, "no D7 file"));
    assert_int_equal(d7_reader_open(&r, "", &o, &f->err), D7_ERR_ARG);
    assert_int_equal(d7_reader_open(&r, "/", NULL, &f->err), D7_ERR_IO);
    assert_null(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(any_range_can_be_read),
        TEST(file_is_described),
        TEST(unclosed_files_are_read),
        TEST(recovery_agrees_with_the_global_index),
        TEST(recovery_reads_little),
        TEST(missing_islands_are_made_up_for),
        TEST(zeros_at_the_end_are_nothing),
        TEST(held_files_are_no_problem),
        TEST(shrinking_is_an_error),
        TEST(uneven_pages_are_counted),
        TEST(damage_is_told_once_and_read_around),
        TEST(impossible_indexes_are_not_trusted),
        TEST(islands_are_verified),
        TEST(many_datasets),
        TEST(long_work_can_be_stopped),
        TEST(what_is_no_d7_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

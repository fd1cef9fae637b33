/* A reader that goes on with a file that grows, is closed, cut or replaced: it knows what a new one would, and reads what
 * was added. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "d7_testing.h"
#include "testing.h"

enum { N = 40000, TURN = 1000 };

typedef struct fixture {
    memio file;
    d7_io io;
    memcount memory;
    d7_alloc alloc;
    d7_reader_options options;
    d7_reader *r;
    d7_error err;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->io = memio_table(&f->file);
    f->alloc = memcount_table(&f->memory);
    f->options = (d7_reader_options){.io = &f->io, .alloc = &f->alloc};
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    d7_reader_free(f->r);
    bool leak = f->memory.outstanding != 0 || f->file.opened_memory;
    memio_free(&f->file);
    free(f);
    return leak;
}

static d7_reader *open_now(fixture *f) {
    d7_reader *r = NULL;
    if (d7_reader_open(&r, "memory", &f->options, &f->err) != 0)
        fail_msg("open: %s", f->err.text);
    return r;
}

static unsigned refresh(fixture *f) {
    unsigned changes = 1000;
    if (d7_reader_refresh(f->r, &changes, &f->err) != 0)
        fail_msg("refresh: %s", f->err.text);
    return changes;
}

static uint64_t items(const d7_reader *r, uint32_t ds) {
    d7_dataset_info info;
    assert_int_equal(d7_reader_dataset(r, ds, &info), 0);
    return info.items;
}

/* ---- the same as a new reader ---- */

static void check_same_pages(const d7_reader *a, const d7_reader *b) {
    assert_int_equal(d7_reader_n_datasets(a), d7_reader_n_datasets(b));
    for (uint32_t ds = 0; ds < d7_reader_n_datasets(a); ds++) {
        assert_int_equal(items(a, ds), items(b, ds));
        d7_page_info x, y;
        for (uint64_t i = 0; d7_reader_page(b, ds, i, &y) == 0; i++) {
            assert_int_equal(d7_reader_page(a, ds, i, &x), 0);
            assert_int_equal(x.offset, y.offset);
            assert_int_equal(x.first_item, y.first_item);
            assert_int_equal(x.n_items, y.n_items);
        }
    }
    assert_int_equal(d7_reader_pages(a), d7_reader_pages(b));
}

static void check_same_attributes(const d7_reader *a, const d7_reader *b) {
    d7_attribute x;
    assert_int_equal(d7_reader_n_attributes(a), d7_reader_n_attributes(b));
    for (size_t i = 0; d7_reader_attribute(a, i, &x) == 0; i++)
        assert_string_equal(x.value, d7_reader_find_attribute(b, x.key));
}

static void print_problems(const d7_reader *r, const char *which) {
    d7_problem p;
    for (size_t i = 0; d7_reader_problem(r, i, &p) == 0; i++)
        print_error("%s: %s at %llu: %s\n", which, d7_problem_name(p.code), (unsigned long long)p.offset,
                    p.text);
}

static void check_same_problems(const d7_reader *a, const d7_reader *b) {
    d7_problem x, y;
    if (d7_reader_n_problems(a) != d7_reader_n_problems(b)) {
        print_problems(a, "refreshed");
        print_problems(b, "new");
    }
    assert_int_equal(d7_reader_n_problems(a), d7_reader_n_problems(b));
    assert_int_equal(d7_reader_n_damages(a), d7_reader_n_damages(b));
    for (size_t i = 0; d7_reader_problem(a, i, &x) == 0; i++) {
        assert_int_equal(d7_reader_problem(b, i, &y), 0);
        assert_int_equal(x.code, y.code);
        assert_int_equal(x.offset, y.offset);
        assert_int_equal(x.first_item, y.first_item);
    }
}

static void check_same_as_new(fixture *f) {
    d7_reader *now = open_now(f);
    assert_int_equal(d7_reader_state(f->r), d7_reader_state(now));
    assert_int_equal(d7_reader_file_bytes(f->r), d7_reader_file_bytes(now));
    check_same_pages(f->r, now);
    check_same_attributes(f->r, now);
    check_same_problems(f->r, now);
    d7_reader_free(now);
}

/* The file in memory, shown up to `from`, then further and further. */
static void grow_by(fixture *f, size_t from, size_t least, size_t most) {
    size_t end = f->file.n;
    uint64_t rng = 3, before;
    f->file.n = from;
    f->r = open_now(f);
    while (f->file.n < end) {
        size_t step = least + (size_t)(testing_random(&rng) % (most - least + 1));
        before = items(f->r, 0);
        f->file.n = end - f->file.n < step ? end : f->file.n + step;
        unsigned changes = refresh(f);
        assert_int_equal(changes & (D7_CHANGE_CUT | D7_CHANGE_REPLACED), 0);
        assert_int_equal((changes & D7_CHANGE_CLOSED) != 0, d7_reader_state(f->r) == D7_STATE_CLOSED);
        assert_true(changes & D7_CHANGE_GREW || items(f->r, 0) == before);
        check_same_as_new(f);
    }
    testing_check_values(f->r, N);
    assert_int_equal(refresh(f), 0);
    d7_reader_free(f->r);
    f->r = NULL;
}

static void each_byte_that_is_added_is_as_for_a_new_reader(void **state) {
    fixture *f = *state;
    for (int closed = 0; closed < 2; closed++) {
        testing_write(&f->io, 800, 100, 512, 256, closed);
        if (closed)
            f->file.n -= f->file.n > 16384 ? 0 : 1;
        size_t end = f->file.n, from = 200;
        f->file.n = from;
        f->r = open_now(f);
        for (size_t n = from + 1; n <= end; n += n > 5000 && n + 100 < end ? 61 : 1) {
            f->file.n = n;
            refresh(f);
            check_same_as_new(f);
        }
        f->file.n = end;
        refresh(f);
        check_same_as_new(f);
        d7_reader_free(f->r);
        f->r = NULL;
    }
}

static void any_steps_are_as_for_a_new_reader(void **state) {
    fixture *f = *state;
    static const uint32_t steps[] = {1, 2, 4, 512};
    for (int closed = 0; closed < 2; closed++)
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            testing_write(&f->io, N, TURN, steps[i], 4096, closed);
            size_t end = f->file.n;
            grow_by(f, 150, 1, 300);
            f->file.n = end;
            grow_by(f, 150, 1, 40000);
            f->file.n = end;
            grow_by(f, end / 2, end, end);
        }
}

/* ---- what it costs ---- */

static d7_writer *start_long_file(fixture *f, size_t n) {
    static const d7_dataset datasets[] = {{"/x", D7_UINT16}};
    static uint16_t values[1 << 16];
    d7_writer_options o = testing_writer_options(&f->io);
    d7_writer *w;
    o.bytes_per_page = 64;
    o.buffer_bytes = 1 << 20;
    o.overwrite = true;
    assert_int_equal(d7_writer_create(&w, "memory", datasets, 1, &o, &f->err), 0);
    for (size_t done = 0; done < n; done += 1 << 16)
        assert_int_equal(d7_writer_append(w, 0, values, 1 << 16, &f->err), 0);
    assert_int_equal(d7_writer_flush(w, &f->err), 0);
    return w;
}

static void refreshing_costs_what_was_added(void **state) {
    fixture *f = *state;
    static uint16_t values[64];
    d7_writer *w = start_long_file(f, 16 << 16);
    f->r = open_now(f);
    uint64_t calls = (uint64_t)f->file.calls[MEMIO_PREAD];
    for (int i = 0; i < 200; i++) {
        size_t size = f->file.n;
        f->file.bytes_read = 0;
        assert_int_equal(d7_writer_append(w, 0, values, 64, &f->err), 0);
        assert_int_equal(d7_writer_flush(w, &f->err), 0);
        assert_int_equal(refresh(f), D7_CHANGE_GREW);
        /* what was added, the last block, and the mark twice */
        assert_true(f->file.bytes_read <= 2 * (f->file.n - size) + 2 * D7_BLOCK_BYTES + 4 * 320);
    }
    assert_true((uint64_t)f->file.calls[MEMIO_PREAD] - calls <= 200 * 8);
    f->file.bytes_read = 0;
    assert_int_equal(refresh(f), 0); /* nothing new */
    assert_true(f->file.bytes_read <= 4 * 320);
    d7_writer_free(w);
}

static void the_map_is_not_copied(void **state) {
    fixture *f = *state;
    static uint16_t values[64];
    d7_writer *w = start_long_file(f, 16 << 16); /* 32768 pages: 256 KiB of offsets */
    f->r = open_now(f);
    assert_int_equal(d7_reader_pages(f->r), (16 << 16) / 32);
    size_t before = f->memory.bytes;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(d7_writer_append(w, 0, values, 32, &f->err), 0);
        assert_int_equal(d7_writer_flush(w, &f->err), 0);
        f->memory.peak = f->memory.bytes;
        size_t start = f->memory.bytes;
        refresh(f);
        if (f->memory.bytes == start) /* room was there */
            assert_true(f->memory.peak - start < 100000);
    }
    assert_true(f->memory.bytes - before <= (16 << 16) / 32 * 8 + 100000);
    d7_writer_free(w);
}

/* ---- cuts ---- */

/* Cut and written on: other values, in pages of the same place or not. */
static void a_cut_file_is_read_anew(void **state) {
    fixture *f = *state;
    uint64_t rng = 17;
    testing_write(&f->io, N, TURN, 2, 4096, false);
    size_t n = f->file.n, n_other;
    uint8_t *one = malloc(n), *other;
    memcpy(one, f->file.data, n);
    testing_write(&f->io, N, TURN, 2, 2048, true);
    n_other = f->file.n;
    other = malloc(n_other);
    memcpy(other, f->file.data, n_other);
    for (int i = 0; i < 60; i++) {
        memio_set(&f->file, one, n);
        f->file.n = 200 + (size_t)(testing_random(&rng) % (n - 200));
        f->r = open_now(f);
        f->file.n = n;
        assert_int_equal(refresh(f) & D7_CHANGE_CUT, 0);
        size_t cut = 200 + (size_t)(testing_random(&rng) % (n - 300));
        f->file.n = cut;
        assert_int_equal(refresh(f) & D7_CHANGE_CUT, D7_CHANGE_CUT);
        check_same_as_new(f);
        memio_set(&f->file, one, n);
        refresh(f);
        check_same_as_new(f);
        memio_set(&f->file, other, i % 2 ? n_other : cut); /* was cut and grew since the last look */
        unsigned changes = refresh(f);
        check_same_as_new(f);
        assert_int_equal(changes & D7_CHANGE_CUT, D7_CHANGE_CUT);
        if (i % 2)
            assert_int_equal(changes & D7_CHANGE_CLOSED, D7_CHANGE_CLOSED);
        d7_reader_free(f->r);
        f->r = NULL;
    }
    free(one);
    free(other);
}

/* Attributes that were only in what was cut are forgotten. */
static void attributes_that_were_cut_are_forgotten(void **state) {
    fixture *f = *state;
    testing_write(&f->io, N, TURN, 1, 4096, false);
    f->r = open_now(f);
    assert_string_equal(d7_reader_find_attribute(f->r, "b"), "set later");
    f->file.n = 1000;
    assert_int_equal(refresh(f), D7_CHANGE_CUT | D7_CHANGE_GREW);
    assert_null(d7_reader_find_attribute(f->r, "b"));
    check_same_as_new(f);
}

static void a_closed_file_that_changes_is_read_anew(void **state) {
    fixture *f = *state;
    testing_write(&f->io, N, TURN, 2, 4096, true);
    f->r = open_now(f);
    assert_int_equal(refresh(f), 0);
    f->file.n -= 1;
    assert_int_equal(refresh(f), D7_CHANGE_CUT | D7_CHANGE_GREW);
    assert_int_equal(d7_reader_state(f->r), D7_STATE_OPEN);
    check_same_as_new(f);
    f->file.n += 1;
    assert_int_equal(refresh(f) & D7_CHANGE_CLOSED, D7_CHANGE_CLOSED);
    check_same_as_new(f);
}

static void a_page_that_was_read_is_not_remembered_over_a_cut(void **state) {
    fixture *f = *state;
    uint16_t value, *x = testing_noise(11, N);
    testing_write(&f->io, N, TURN, 512, 4096, false);
    f->r = open_now(f);
    uint64_t last = items(f->r, 0) - 1;
    assert_int_equal(d7_reader_read(f->r, 0, last, 1, &value, &f->err),
                     0); /* the last page is decoded and kept */
    assert_int_equal(value, x[last]);
    f->file.n -= 9000;
    assert_true(refresh(f) & D7_CHANGE_CUT);
    assert_true(items(f->r, 0) <= last);
    assert_int_equal(d7_reader_read(f->r, 0, last, 1, &value, &f->err), D7_ERR_ARG);
    testing_check_values(f->r, N);
    free(x);
}

/* ---- closing ---- */

static void the_close_is_noticed(void **state) {
    fixture *f = *state;
    static const d7_dataset datasets[] = {{"/x", D7_UINT16}, {"/y", D7_UINT16}};
    d7_writer_options o = testing_writer_options(&f->io);
    d7_writer *w;
    uint16_t *x = testing_noise(1, 5000);
    assert_int_equal(d7_writer_create(&w, "memory", datasets, 2, &o, &f->err), 0);
    f->file.held = true;
    f->r = open_now(f);
    assert_int_equal(refresh(f), 0);
    assert_int_equal(d7_writer_append(w, 0, x, 5000, &f->err), 0);
    assert_int_equal(d7_writer_set_attribute(w, "k", "v", &f->err), 0);
    assert_int_equal(d7_writer_flush(w, &f->err), 0);
    assert_int_equal(refresh(f), 0); /* no page is full, no island due */
    assert_true(d7_reader_held(f->r));
    assert_int_equal(d7_writer_close(w, &f->err), 0);
    f->file.held = false;
    assert_int_equal(refresh(f), D7_CHANGE_GREW | D7_CHANGE_CLOSED);
    assert_false(d7_reader_held(f->r));
    assert_int_equal(d7_reader_n_problems(f->r), 0);
    assert_int_equal(items(f->r, 0), 5000);
    assert_string_equal(d7_reader_find_attribute(f->r, "k"), "v");
    check_same_as_new(f);
    assert_int_equal(refresh(f), 0);
    d7_writer_free(w);
    free(x);
}

/* ---- failures ---- */

/* Whatever fails, the reader holds what it held or more, and the next refresh finds and tells the rest. */
static void failed_refreshes_are_made_up_for(void **state) {
    fixture *f = *state;
    for (int memory = 0; memory < 2; memory++)
        for (int closed = 0; closed < 2; closed++)
            for (long at = 1; at < 10000; at++) {
                testing_write(&f->io, 6000, TURN, 1, 1024, closed);
                size_t end = f->file.n;
                f->file.n = 9000;
                f->r = open_now(f);
                uint64_t before = items(f->r, 0), pages = d7_reader_pages(f->r);
                f->file.n = end;
                f->memory.calls = 0;
                f->memory.fail_at = memory ? at : 0;
                f->file.fail_op = MEMIO_PREAD;
                f->file.calls[MEMIO_PREAD] = 0;
                f->file.fail_at = at;
                f->file.fail_times = 1;
                f->file.fail_errno = memory ? 0 : EIO;
                int rc = d7_reader_refresh(f->r, NULL, &f->err);
                bool reached = memory ? f->memory.calls >= at : f->file.calls[MEMIO_PREAD] >= at;
                f->memory.fail_at = 0;
                f->file.fail_errno = 0;
                if (rc != 0) {
                    assert_int_equal(rc, memory ? D7_ERR_NOMEM : D7_ERR_IO);
                    assert_true(items(f->r, 0) >= before && d7_reader_pages(f->r) >= pages);
                    testing_check_values(f->r, 6000);
                    bool was_closed = d7_reader_state(f->r) == D7_STATE_CLOSED;
                    unsigned changes = refresh(f);
                    assert_int_equal(changes,
                                     D7_CHANGE_GREW | (closed ? D7_CHANGE_CLOSED : 0)); /* all is told */
                    assert_true(closed || !was_closed);
                }
                assert_int_equal(d7_reader_state(f->r), closed ? D7_STATE_CLOSED : D7_STATE_OPEN);
                testing_check_values(f->r, 6000);
                if (rc == 0 || memory == 0)
                    check_same_as_new(f);
                d7_reader_free(f->r);
                f->r = NULL;
                if (!reached)
                    break;
            }
}

/* ---- real files ---- */

static void another_file_at_the_path_is_told_once(void **state) {
    fixture *f = *state;
    static const d7_dataset one[] = {{"/x", D7_UINT16}};
    char folder[] = "/tmp/d7-refresh-XXXXXX", path[64], aside[64];
    d7_writer *w[2];
    d7_writer_options o;
    d7_reader_options reading = {.alloc = &f->alloc};
    static uint16_t values[20000];
    d7_writer_options_init(&o);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.photons", folder);
    snprintf(aside, sizeof aside, "%s/b.photons", folder);
    assert_int_equal(d7_writer_create(&w[0], path, one, 1, &o, &f->err), 0);
    assert_int_equal(d7_reader_open(&f->r, path, &reading, &f->err), 0);
    assert_int_equal(refresh(f), 0);
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(refresh(f), D7_CHANGE_REPLACED); /* none is there */
    assert_int_equal(d7_writer_create(&w[1], path, one, 1, &o, &f->err), 0);
    assert_int_equal(refresh(f), 0); /* told already */
    assert_int_equal(d7_writer_append(w[0], 0, values, 20000, &f->err), 0);
    assert_int_equal(d7_writer_close(w[0], &f->err), 0);
    assert_int_equal(refresh(f), D7_CHANGE_GREW | D7_CHANGE_CLOSED); /* it stays with its file */
    assert_int_equal(items(f->r, 0), 20000);
    assert_int_equal(rename(aside, path), 0);
    assert_int_equal(refresh(f), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(refresh(f), D7_CHANGE_REPLACED);
    d7_writer_free(w[0]);
    d7_writer_free(w[1]);
    assert_int_equal(rmdir(folder), 0);
}

/* A page breaks off in the last block of the file; what follows tells where it would have ended. */
static void damage_at_the_end_is_judged_anew(void **state) {
    static const size_t behind[] = {5, 160, 9000};
    fixture *f = *state;
    testing_write(&f->io, N, TURN, 512, 4096, false);
    size_t whole = f->file.n;
    for (size_t block = 1; block + 2 < whole / D7_BLOCK_BYTES; block++)
        for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
            uint8_t *at = f->file.data + block * D7_BLOCK_BYTES, was[5];
            memcpy(was, at, sizeof was);
            memset(at, 0, sizeof was);
            f->file.n = block * D7_BLOCK_BYTES + behind[i];
            f->r = open_now(f);
            f->file.n = whole;
            refresh(f);
            d7_reader *now = open_now(f);
            check_same_pages(f->r, now);
            d7_reader_free(now);
            d7_reader_free(f->r);
            f->r = NULL;
            memcpy(at, was, sizeof was);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(each_byte_that_is_added_is_as_for_a_new_reader),
        TEST(any_steps_are_as_for_a_new_reader),
        TEST(refreshing_costs_what_was_added),
        TEST(the_map_is_not_copied),
        TEST(a_cut_file_is_read_anew),
        TEST(attributes_that_were_cut_are_forgotten),
        TEST(a_closed_file_that_changes_is_read_anew),
        TEST(a_page_that_was_read_is_not_remembered_over_a_cut),
        TEST(the_close_is_noticed),
        TEST(failed_refreshes_are_made_up_for),
        TEST(damage_at_the_end_is_judged_anew),
        TEST(another_file_at_the_path_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

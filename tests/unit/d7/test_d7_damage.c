/* Small files cut at every byte and with every bit flipped: no crash, every whole page is found, nothing is
 * invented. */
#include "d7_builder.h"
#include "d7_testing.h"
#include "testing.h"

enum { N = 800, TURN = 100 };

typedef struct fixture {
    memio file;
    d7_io io;
    memcount memory;
    d7_alloc alloc;
    d7_reader_options options;
    uint8_t *good;
    size_t n_good;
    uint16_t *x, *y;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->io = memio_table(&f->file);
    f->alloc = memcount_table(&f->memory);
    f->options = (d7_reader_options){.io = &f->io, .alloc = &f->alloc};
    f->x = testing_noise(11, N);
    f->y = testing_noise(12, N);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    bool leak = f->memory.outstanding != 0 || f->file.opened_memory;
    memio_free(&f->file);
    free(f->good);
    free(f->x);
    free(f->y);
    free(f);
    return leak;
}

static void keep_good(fixture *f) {
    free(f->good);
    f->n_good = f->file.n;
    f->good = malloc(f->n_good);
    memcpy(f->good, f->file.data, f->n_good);
}

/* Reads all of a column, page by page. A page that reads must hold what was written at its place; returns how
 * many do. */
static size_t good_pages(d7_reader *r, uint32_t ds, const uint16_t *want) {
    static uint16_t got[1 << 16];
    d7_page_info page;
    size_t good = 0;
    for (uint64_t i = 0; d7_reader_page(r, ds, i, &page) == 0; i++) {
        if (page.n_items > 1 << 16 ||
            d7_reader_read(r, ds, page.first_item, (size_t)page.n_items, got, NULL) != 0)
            continue;
        good += page.n_items > 0;
        if (want) {
            assert_true(page.first_item + page.n_items <= N);
            assert_memory_equal(got, want + page.first_item, (size_t)page.n_items * 2);
        }
    }
    return good;
}

/* Ends of entries of the good file, as the whole pages of x and y that a cut there leaves. */
typedef struct page_end {
    uint64_t end;
    uint32_t ds;
} page_end;

static size_t page_ends(fixture *f, page_end *ends, size_t cap) {
    d7_reader *r = testing_open(&f->io, true, false);
    size_t n = 0;
    for (uint32_t ds = 0; ds < 2; ds++) {
        d7_page_info page;
        for (uint64_t i = 0; d7_reader_page(r, ds, i, &page) == 0; i++) {
            assert_true(n < cap);
            ends[n].ds = ds;
            ends[n++].end = page.offset;
        }
    }
    d7_reader_free(r);
    return n;
}

/* The middle of the padding of a small closed file, which is all the same. */
static bool in_padding(const fixture *f, size_t at) {
    return at > 5000 && at + 100 < f->n_good;
}

/* Cut at every byte: pages that end before the cut are all there, with their values. */
static void cut_anywhere(fixture *f, uint32_t step, bool close) {
    static page_end starts[256];
    testing_write(&f->io, N, TURN, step, 256, close);
    keep_good(f);
    size_t n_pages = page_ends(f, starts, 256), whole_before = 0;
    for (size_t cut = 0; cut <= f->n_good; cut += in_padding(f, cut) ? 61 : 1) {
        d7_reader *r = NULL;
        d7_error err;
        f->file.n = cut;
        int rc = d7_reader_open(&r, "memory", &f->options, &err);
        if (rc != 0) {
            assert_int_equal(rc, D7_ERR_TRUNCATED);
            assert_true(cut < 120); /* inside the header */
            continue;
        }
        size_t good = good_pages(r, 0, f->x) + good_pages(r, 1, f->y), begun = 0;
        for (size_t i = 0; i < n_pages; i++)
            begun += starts[i].end + 20 < cut;
        assert_true(good >= whole_before);                 /* never fewer than with a byte less */
        assert_true(good <= n_pages && good + 1 >= begun); /* all that had begun, but the torn one */
        whole_before = good;
        d7_verify_summary s;
        assert_int_equal(d7_reader_verify(r, NULL, NULL, NULL, NULL, &s, &err), 0);
        if (cut == f->n_good)
            assert_int_equal(s.damages, 0);
        d7_reader_free(r);
    }
    assert_int_equal(whole_before, n_pages);
    f->file.n = f->n_good;
}

static void cut_open_file_at_every_byte(void **state) {
    cut_anywhere(*state, 512, false);
}

static void cut_closed_file_at_every_byte(void **state) {
    cut_anywhere(*state, 512, true);
}

/* Larger, with islands: cut around every place where an entry begins. */
static void cut_file_with_islands(void **state) {
    fixture *f = *state;
    testing_write(&f->io, 40000, 1000, 1, 4096, true);
    keep_good(f);
    uint16_t *x = testing_noise(11, 40000);
    size_t before = 0;
    for (size_t cut = 200; cut <= f->n_good; cut += cut % 16384 < 20 || cut % 16384 > 16370 ? 1 : 37) {
        d7_error err;
        d7_reader *r;
        f->file.n = cut;
        assert_int_equal(d7_reader_open(&r, "memory", &f->options, &err), 0);
        d7_dataset_info info;
        assert_int_equal(d7_reader_dataset(r, 0, &info), 0);
        static uint16_t got[40000];
        assert_true(info.items <= 40000 && info.items >= before);
        before = (size_t)info.items;
        assert_int_equal(d7_reader_read(r, 0, 0, (size_t)info.items, got, &err), 0);
        assert_memory_equal(got, x, (size_t)info.items * 2);
        d7_reader_free(r);
    }
    free(x);
}

/* One bit: the rest of the file must stay readable. Flips in values cannot be noticed, so only structure is
 * checked. */
static void flip(fixture *f, size_t byte, unsigned bit, size_t *unnoticed) {
    d7_reader *r = NULL;
    d7_error err;
    d7_verify_summary s;
    f->file.data[byte] ^= (uint8_t)(1u << bit);
    int rc = d7_reader_open(&r, "memory", &f->options, &err);
    if (rc == 0) {
        for (uint32_t ds = 0; ds < d7_reader_n_datasets(r); ds++)
            good_pages(r, ds, NULL);
        assert_int_equal(d7_reader_check(r, NULL, NULL, &err), 0);
        assert_int_equal(d7_reader_verify(r, NULL, NULL, NULL, NULL, &s, &err), 0);
        *unnoticed += s.damages == 0;
        d7_reader_free(r);
    } else {
        assert_true(byte < 120); /* only the header can make a file unreadable */
        assert_string_not_equal(err.text, "");
    }
    assert_int_equal(f->memory.outstanding, 0);
    f->file.data[byte] ^= (uint8_t)(1u << bit);
}

static void flip_every_bit(void **state) {
    fixture *f = *state;
    for (int closed = 0; closed < 2; closed++) {
        size_t unnoticed = 0, flips = 0;
        testing_write(&f->io, 250, TURN, 512, 128, closed);
        keep_good(f);
        size_t end = f->n_good < 1800 ? f->n_good : 1800;
        for (size_t byte = 0; byte < f->n_good; byte++) {
            if (byte == end)
                byte = f->n_good - 60; /* the middle of the padding is all the same */
            for (unsigned bit = 0; bit < 8; bit++, flips++)
                flip(f, byte, bit, &unnoticed);
        }
        print_message("%zu flips, %zu of them unnoticed: in values and names\n", flips, unnoticed);
    }
}

/* Damage in the middle: what lies outside the damaged block can be read. */
static void lose_every_block(void **state) {
    fixture *f = *state;
    for (int closed = 0; closed < 2; closed++) {
        testing_write(&f->io, 40000, 1000, 2, 4096, closed);
        keep_good(f);
        d7_reader *r = testing_open(&f->io, false, false);
        size_t all = good_pages(r, 0, NULL) + good_pages(r, 1, NULL);
        d7_reader_free(r);
        for (size_t block = 1; block < f->n_good / 16384; block++) {
            memset(f->file.data + block * 16384, closed ? 0 : 0xFF, 16384);
            r = testing_open(&f->io, false, false);
            size_t good = good_pages(r, 0, NULL) + good_pages(r, 1, NULL);
            assert_true(good + 8 >= all); /* a block holds parts of about five pages */
            assert_true(good < all);
            d7_verify_summary s;
            assert_int_equal(d7_reader_verify(r, NULL, NULL, NULL, NULL, &s, NULL), 0);
            assert_true(s.damages > 0);
            d7_reader_free(r);
            memcpy(f->file.data + block * 16384, f->good + block * 16384, 16384);
        }
    }
}

/* Whatever of a column can be read is at its number. Returns how many items are. */
static uint64_t check_numbers(d7_reader *r, uint32_t ds, const uint16_t *want, size_t n_want) {
    static uint16_t got[2048];
    d7_page_info page;
    uint64_t n = 0;
    for (uint64_t i = 0; d7_reader_page(r, ds, i, &page) == 0; i++) {
        assert_true(page.n_items <= 2048);
        if (d7_reader_read(r, ds, page.first_item, (size_t)page.n_items, got, NULL) != 0)
            continue;
        assert_true(page.first_item + page.n_items <= n_want);
        assert_memory_equal(got, want + page.first_item, (size_t)page.n_items * 2);
        n += page.n_items;
    }
    return n;
}

/* Pages may have been where zeros are: unless an index tells which, nothing behind is given out. */
static void numbers_hold_behind_every_zeroed_block(void **state) {
    enum { MANY = 40000 };
    static const uint32_t steps[] = {512, 3, 1};
    fixture *f = *state;
    uint16_t *x = testing_noise(11, MANY), *y = testing_noise(12, MANY);
    for (size_t s = 0; s < 3; s++) {
        testing_write(&f->io, MANY, 1000, steps[s], 4096, false);
        keep_good(f);
        for (size_t block = 1; block < f->n_good / 16384; block++)
            for (int full = 0; full < 2; full++) {
                d7_reader *r;
                memset(f->file.data + block * 16384, 0, 16384);
                f->options.full = full;
                assert_int_equal(d7_reader_open(&r, "memory", &f->options, NULL), 0);
                f->options.full = false;
                uint64_t items = check_numbers(r, 0, x, MANY) + check_numbers(r, 1, y, MANY);
                assert_true(items + 2 * 16384 >= (block - 1) * 16384 / 8 * 5); /* what is before is there */
                assert_true(d7_reader_n_damages(r) > 0);
                d7_reader_free(r);
                memcpy(f->file.data + block * 16384, f->good + block * 16384, 16384);
            }
    }
    free(x);
    free(y);
}

/* An attribute with which an index ends where the block does. */
static void fill_block(builder *b) {
    static char text[D7_BLOCK_BYTES];
    size_t room = D7_BLOCK_BYTES - (size_t)(d7__out_framed(&b->out) % D7_BLOCK_BYTES) - 2;
    memset(text, 'a', sizeof text);
    for (size_t n = 0; n < room; n++) {
        d7_attribute a = {.key = "k", .key_bytes = 1, .value = text, .value_bytes = n};
        size_t bytes = d7__index_attribute_bytes(&a);
        if (1 + d7__varint_bytes(bytes) + bytes != room)
            continue;
        build_index(b, 0, 0, &a);
        return;
    }
    fail_msg("no attribute of that length");
}

/* Zeros up to the end of a block, behind which an entry begins, are no padding: writers go on from block to block. */
static void zeros_to_the_end_of_a_block_are_a_hole(void **state) {
    static const d7_dataset datasets[] = {{"/photons/x", D7_UINT8}, {"/photons/y", D7_UINT8}};
    static builder b;
    fixture *f = *state;
    uint8_t values[1000];
    uint64_t lost = 0;
    build_start(&b, datasets, 2, 512, 1000);
    for (int page = 0; page < 60; page++) {
        memset(values, page / 2, sizeof values);
        uint64_t at = build_page(&b, (uint32_t)page % 2, D7_UINT8, values, sizeof values);
        lost = page == 8 ? at : lost;
        if (page == 9)
            fill_block(&b);
    }
    build_end(&b, &f->file);
    for (int full = 0; full < 2; full++) {
        d7_reader *r;
        d7_dataset_info info;
        memset(f->file.data + lost, 0, D7_BLOCK_BYTES - (size_t)lost);
        f->options.full = full;
        assert_int_equal(d7_reader_open(&r, "memory", &f->options, NULL), 0);
        assert_true(d7_reader_n_damages(r) > 0);
        for (uint32_t ds = 0; ds < 2; ds++) {
            assert_int_equal(d7_reader_dataset(r, ds, &info), 0);
            assert_int_equal(info.items, 4000);
        }
        d7_reader_free(r);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(cut_open_file_at_every_byte),
        TEST(cut_closed_file_at_every_byte),
        TEST(cut_file_with_islands),
        TEST(flip_every_bit),
        TEST(lose_every_block),
        TEST(numbers_hold_behind_every_zeroed_block),
        TEST(zeros_to_the_end_of_a_block_are_a_hole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

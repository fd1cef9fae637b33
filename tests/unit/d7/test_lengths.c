/* Pages of unexpected length: those that changed keep their place, and so do all rows after them; those that another writer
 * made are counted. */
#include "d7_builder.h"
#include "d7_testing.h"
#include "testing.h"

enum { X, Y, MS, N_COLUMNS, PAGES_MAX = 8, FULL = 32, FULL_MS = 8 };

static const d7_dataset datasets[] = {
    {"/photons/x", D7_UINT16}, {"/photons/y", D7_UINT16}, {"/photons/ms", D7_UINT64}};

/* Lengths of each column's pages; 0 ends a list. A page with a minus before its length holds a full page's items as they were
 * written, but decodes to that many. */
typedef struct sheet {
    const char *name;
    bool open;
    int pages[N_COLUMNS][PAGES_MAX];
    uint64_t items[N_COLUMNS]; /* that the reader finds */
} sheet;

static const sheet sheets[] = {
    {"longer", false, {{32, 32, 32, 32, 9}, {32, 32, -40, 32, 9}, {8, 5}}, {137, 137, 13}},
    {"shorter by one", false, {{32, -31, 32, 32, 9}, {32, 32, 32, 32, 9}, {8, 5}}, {137, 137, 13}},
    {"the first", false, {{-33, 32, 32, 9}, {32, 32, 32, 9}, {8, 5}}, {105, 105, 13}},
    {"two of a column", false, {{-33, 32, -60, 32, 32}, {32, 32, 32, 32, 32}, {8, 5}}, {160, 160, 13}},
    {"the same page of both", false, {{32, -33, 32, 32, 9}, {32, -40, 32, 32, 9}, {8, 5}}, {137, 137, 13}},
    {"open", true, {{32, 32, 32, 32, 32}, {32, -40, 32, 32}, {8, 8}}, {160, 128, 16}},
    {"last, too long", true, {{32, 32, 32, 32}, {32, 32, 32, -33}, {8, 8}}, {128, 96, 16}},
    {"the only page, too long", true, {{32}, {-40}, {8}}, {32, 0, 8}},
    {"the last page of the only column, too long", true, {{32, 32, -40}, {0}, {8}}, {64, 0, 8}},
    {"the only page of milliseconds, too long", true, {{32, 32}, {32, 32}, {-9}}, {64, 64, 0}},
    {"one page each, all long", true, {{40}, {40}, {8}}, {40, 40, 8}},
    {"a single page, long", true, {{40}, {0}, {0}}, {40, 0, 0}},
    {"more long pages than full ones", true, {{40}, {44}, {8}}, {40, 44, 8}},
    {"milliseconds", false, {{32, 32, 32, 9}, {32, 32, 32, 9}, {8, 8, -9, 8, 8, 5}}, {105, 105, 45}},
    {"milliseconds, two pages", false, {{32, 32, 32, 9}, {32, 32, 32, 9}, {-9, 5}}, {105, 105, 13}},
    {"early ends of all", false, {{32, 10, 32, 9}, {32, 10, 32, 9}, {8, 3, 8, 5}}, {83, 83, 24}},
    {"early ends of all, open", true, {{32, 10, 32, 32}, {32, 10, 32}, {8, 3, 8}}, {106, 74, 19}},
    {"an early end and damage",
     true,
     {{32, 10, 32, 32, 32}, {32, 10, 32, -40, 32}, {8, 3, 8}},
     {138, 138, 19}},
    {"damage and an early end",
     true,
     {{32, 32, 10, 32, 32}, {-40, 32, 10, 32, 32}, {8, 3, 8}},
     {138, 138, 19}},
    {"both, few pages", false, {{-31, 32, 9}, {-34, 32, 9}, {8, 5}}, {73, 73, 13}},
    {"milliseconds, shorter", false, {{32, 32, 9}, {32, 32, 9}, {-7, 5}}, {73, 73, 13}},
    {"another length than the header's",
     false,
     {{16, 16, 16, 16, 9}, {16, 16, -15, 16, 9}, {8, 5}},
     {73, 73, 13}},
    {"damage that cancels out", false, {{32, 32, 32, 32}, {-31, 32, -33, 32}, {8, 5}}, {128, 128, 13}},
    {"counts that agree", false, {{32, 32, 10, 32, 32, 22}, {32, 32, 32, 32, 32}, {8, 5}}, {160, 160, 13}},
    {"pages that vary", true, {{3, 40, 11, 32}, {32, 31, 30, 2}, {8, 5}}, {86, 95, 13}}};

typedef struct fixture {
    memio file;
    d7_io io;
    d7_reader *r;
    d7_error err;
} fixture;

static uint64_t value(uint32_t ds, uint64_t item) {
    return ds == MS ? item * 3 : (item * 7 + ds) % 4096;
}

static size_t full(uint32_t ds) {
    return ds == MS ? FULL_MS : FULL;
}

static void build_column_page(builder *b, uint32_t ds, uint64_t first, size_t n) {
    uint16_t narrow[64];
    uint64_t wide[64];
    for (size_t i = 0; i < n; i++) {
        wide[i] = value(ds, first + i);
        narrow[i] = (uint16_t)wide[i];
    }
    build_page(b, ds, datasets[ds].type, ds == MS ? (void *)wide : (void *)narrow, n);
}

/* What a page of the column holds as a rule. */
static size_t usual(const sheet *s, uint32_t ds) {
    return ds != MS && s->pages[ds][0] == 16 ? 16 : full(ds);
}

static void build(fixture *f, const sheet *s) {
    static builder b;
    uint64_t first[N_COLUMNS] = {0};
    build_start(&b, datasets, N_COLUMNS, 512, 64);
    for (size_t page = 0; page < PAGES_MAX; page++)
        for (uint32_t ds = 0; ds < N_COLUMNS; ds++) {
            int n = s->pages[ds][page];
            if (n == 0)
                continue;
            build_column_page(&b, ds, first[ds], (size_t)(n < 0 ? -n : n));
            first[ds] += n < 0 ? usual(s, ds) : (size_t)n;
        }
    if (!s->open)
        build_epilogue(&b, build_index(&b, 0, b.n_pages, NULL), true);
    build_end(&b, &f->file);
}

static size_t count_damaged(const sheet *s) {
    size_t n = 0;
    for (uint32_t ds = 0; ds < N_COLUMNS; ds++)
        for (size_t page = 0; page < PAGES_MAX; page++)
            n += s->pages[ds][page] < 0;
    return n;
}

static void reopen(fixture *f) {
    d7_reader_free(f->r);
    f->r = testing_open(&f->io, false, false);
}

/* Each page by itself: its values, or damage. */
static void check_pages(fixture *f, const sheet *s, uint32_t ds) {
    d7_page_info info;
    uint64_t first = 0;
    for (uint64_t page = 0; d7_reader_page(f->r, ds, page, &info) == 0; page++) {
        bool bad = s->pages[ds][page] < 0;
        uint64_t values[64] = {0};
        assert_int_equal(info.first_item, first);
        assert_int_equal(info.damaged, bad);
        int rc = d7_reader_read(f->r, ds, first, (size_t)info.n_items, values, &f->err);
        assert_int_equal(rc, bad && info.n_items ? D7_ERR_CORRUPT : 0);
        for (size_t i = 0; !bad && i < info.n_items; i++) {
            uint64_t got = ds == MS ? values[i] : ((uint16_t *)values)[i];
            assert_int_equal(got, value(ds, first + i));
        }
        first += info.n_items;
    }
}

static void check(fixture *f, const sheet *s) {
    for (uint32_t ds = 0; ds < N_COLUMNS; ds++) {
        d7_dataset_info info;
        assert_int_equal(d7_reader_dataset(f->r, ds, &info), 0);
        if (info.items != s->items[ds])
            fail_msg("%s: column %u holds %d items, not %d", s->name, ds, (int)info.items, (int)s->items[ds]);
        check_pages(f, s, ds);
    }
}

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->io = memio_table(&f->file);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    d7_reader_free(f->r);
    memio_free(&f->file);
    free(f);
    return 0;
}

#define EACH_SHEET(s) for (const sheet *s = sheets; s < sheets + sizeof sheets / sizeof *sheets; s++)

static void checking_places_every_page(void **state) {
    fixture *f = *state;
    EACH_SHEET(s) {
        build(f, s);
        reopen(f);
        assert_int_equal(d7_reader_check(f->r, NULL, NULL, &f->err), 0);
        check(f, s);
    }
}

static void verification_tells_damage_from_style(void **state) {
    fixture *f = *state;
    EACH_SHEET(s) {
        d7_verify_summary sum;
        build(f, s);
        reopen(f);
        assert_int_equal(d7_reader_verify(f->r, NULL, NULL, NULL, NULL, &sum, &f->err), 0);
        if (sum.damages != count_damaged(s))
            fail_msg("%s: %d damages", s->name, (int)sum.damages);
        check(f, s);
    }
}

/* Reading comes upon the page by itself; the first try is to give the values, or the damage. */
static void reading_gives_no_shifted_rows(void **state) {
    fixture *f = *state;
    EACH_SHEET(s) {
        uint64_t values[192];
        build(f, s);
        reopen(f);
        for (uint32_t ds = 0; ds < N_COLUMNS; ds++) {
            d7_dataset_info info;
            assert_int_equal(d7_reader_dataset(f->r, ds, &info), 0);
            int rc = d7_reader_read(f->r, ds, 0, (size_t)info.items, values, &f->err);
            assert_true(rc == 0 || rc == D7_ERR_CORRUPT || rc == D7_ERR_ARG);
        }
        check(f, s);
    }
}

/* A page that ended early lies before the items that are read, and is not passed on the way. */
static void early_ends_are_found_before_any_item_is_read(void **state) {
    static const sheet early = {
        .name = "early",
        .pages = {{32, 32, 10, 32, 32, 32}, {32, 32, 10, 32, 32, 32}, {8, 8, 2, 8, 8, 1}},
        .items = {170, 170, 35}};
    static const d7_dataset wide[] = {{"/photons/x", D7_UINT16}, {"/photons/aat", D7_UINT64}};
    fixture *f = *state;
    uint16_t x;
    static builder b;
    uint64_t aat, at[2] = {0};
    build(f, &early);
    reopen(f);
    assert_int_equal(d7_reader_read(f->r, X, 140, 1, &x, &f->err), 0);
    /* Columns of one width are in line with each other: without a look at the page nobody can tell. */
    assert_true(x == value(X, 140) || x == value(X, 140 - 22));

    build_start(&b, wide, 2, 512, 64);
    for (int page = 0; page < 6; page++, at[0] += page == 3 ? 12 : 32)
        build_column_page(&b, X, at[0], page == 2 ? 12 : 32);
    for (int page = 0; page < 22; page++) {
        uint64_t values[8];
        size_t n = page == 9 ? 4 : 8;
        for (size_t i = 0; i < n; i++)
            values[i] = at[1] + i;
        at[1] += n;
        build_page(&b, 1, D7_UINT64, values, n);
    }
    build_epilogue(&b, build_index(&b, 0, b.n_pages, NULL), true);
    build_end(&b, &f->file);
    reopen(f);
    assert_int_equal(at[0], at[1]);
    assert_int_equal(d7_reader_read(f->r, X, 140, 1, &x, &f->err), 0);
    assert_int_equal(d7_reader_read(f->r, 1, 140, 1, &aat, &f->err), 0);
    assert_int_equal(x, value(X, 140));
    assert_int_equal(aat, 140);
}

static void rows_around_the_page_are_given(void **state) {
    fixture *f = *state;
    const uint32_t xy[] = {X, Y};
    d7_columns_options o;
    d7_columns *c;
    d7_chunk chunk;
    uint64_t rows = 0;
    build(f, &sheets[0]);
    reopen(f);
    d7_columns_options_init(&o);
    o.skip_damaged = true;
    assert_int_equal(d7_columns_open(&c, f->r, xy, 2, &o, &f->err), 0);
    while (d7_columns_next(c, &chunk, &f->err) == 0 && chunk.n) {
        for (size_t i = 0; i < chunk.n; i++)
            for (uint32_t k = 0; k < 2; k++)
                assert_int_equal(((const uint16_t *)chunk.values[k])[i], value(xy[k], chunk.first_item + i));
        rows += chunk.n;
    }
    assert_int_equal(rows, 137 - FULL);
    assert_int_equal(d7_columns_skipped(c), FULL);
    d7_columns_free(c);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(checking_places_every_page), TEST(verification_tells_damage_from_style),
        TEST(reading_gives_no_shifted_rows), TEST(rows_around_the_page_are_given),
        TEST(early_ends_are_found_before_any_item_is_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

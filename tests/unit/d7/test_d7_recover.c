/* Files without an epilogue, as other writers and accidents leave them: islands that drift or lie, pages that are lost in
 * the middle, entries that were given up. What is whole is found, at its number; what is lost is told with its items. */
#include "base/bytes.h"
#include "d7_builder.h"
#include "d7_testing.h"
#include "framing.h"
#include "testing.h"

enum { PAGE_ITEMS = 2048, PAGE_BYTES = 2 * PAGE_ITEMS };

typedef struct fixture {
    memio file;
    d7_io io;
    d7_reader_options options;
    d7_reader *r;
    uint16_t *values; /* of both datasets, page after page */
    builder b;
    d7_error err;
} fixture;

static const d7_dataset two[] = {{"/photons/x", D7_UINT16}, {"/photons/y", D7_UINT16}};

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->io = memio_table(&f->file);
    f->options.io = &f->io;
    f->values = testing_noise(8, 400 * PAGE_ITEMS);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    d7_reader_free(f->r);
    bool open = f->file.opened_memory;
    memio_free(&f->file);
    free(f->values);
    free(f);
    return open;
}

static void reopen(fixture *f) {
    d7_reader_free(f->r);
    f->r = NULL;
    f->file.bytes_read = 0;
    if (d7_reader_open(&f->r, "memory", &f->options, &f->err) != 0)
        fail_msg("open: %s", f->err.text);
}

/* Pages of x and y in turn; the values of page k are those from k * PAGE_ITEMS on. */
static void put_pages(fixture *f, size_t n) {
    for (size_t i = 0; i < n; i++)
        build_page(&f->b, (uint32_t)(f->b.n_pages % 2), D7_UINT16, f->values + f->b.n_pages * PAGE_ITEMS,
                   PAGE_ITEMS);
}

static void end(fixture *f) {
    build_end(&f->b, &f->file);
    reopen(f);
}

static const d7_problem *find(fixture *f, d7_problem_code code) {
    static d7_problem p;
    for (size_t i = 0; d7_reader_problem(f->r, i, &p) == 0; i++)
        if (p.code == code)
            return &p;
    return NULL;
}

/* Page k of all pages has its values at its number; `lost` alone has none. */
static void check_pages(fixture *f, size_t n, size_t lost) {
    static uint16_t got[PAGE_ITEMS];
    for (size_t k = 0; k < n; k++) {
        int rc = d7_reader_read(f->r, (uint32_t)(k % 2), k / 2 * PAGE_ITEMS, PAGE_ITEMS, got, &f->err);
        assert_int_equal(rc, k == lost ? D7_ERR_CORRUPT : 0);
        if (rc == 0)
            assert_memory_equal(got, f->values + k * PAGE_ITEMS, sizeof got);
    }
}

/* ---- islands ---- */

/* Every 5 blocks since the last island, where 4 are due: each comes later in its span, and now and then one is missing. */
static void drifting_islands_are_found(void **state) {
    fixture *f = *state;
    size_t listed = 0;
    uint64_t last = 0;
    build_start(&f->b, two, 2, 4, PAGE_BYTES);
    while (f->b.n_pages < 300) {
        put_pages(f, 1);
        uint64_t block = f->b.pages[f->b.n_pages - 1].offset / D7_BLOCK_BYTES;
        if (block < last + 5)
            continue;
        build_index(&f->b, listed, f->b.n_pages - listed, NULL);
        listed = f->b.n_pages;
        last = block;
    }
    end(f);
    assert_int_equal(d7_reader_n_problems(f->r), 0);
    assert_int_equal(d7_reader_pages(f->r), 300);
    check_pages(f, 300, SIZE_MAX);
    f->options.full = true;
    reopen(f);
    assert_int_equal(d7_reader_n_problems(f->r), 0);
    assert_int_equal(d7_reader_pages(f->r), 300);
}

/* An island that lists its pages backwards, dataset by dataset, or each twice. */
static void pages_may_be_listed_in_any_order(void **state) {
    fixture *f = *state;
    for (int form = 0; form < 2; form++) {
        d7__page_ref order[32];
        build_start(&f->b, two, 2, 1, PAGE_BYTES);
        put_pages(f, 16);
        memcpy(order, f->b.pages, sizeof order / 2);
        for (size_t i = 0; i < 16; i++)
            f->b.pages[i] = order[form ? i % 8 * 2 + i / 8 : 15 - i];
        build_index(&f->b, 0, 16, NULL);
        build_index(&f->b, 0, 16, NULL);
        memcpy(f->b.pages, order, sizeof order / 2);
        put_pages(f, 2);
        end(f);
        assert_int_equal(d7_reader_pages(f->r), 18);
        check_pages(f, 18, SIZE_MAX);
    }
}

/* An island with an offset past itself, or of no dataset, is not believed: what it speaks of is scanned. */
static void impossible_islands_are_made_up_for(void **state) {
    fixture *f = *state;
    for (int form = 0; form < 2; form++) {
        build_start(&f->b, two, 2, 1, PAGE_BYTES);
        put_pages(f, 12);
        d7__page_ref good = f->b.pages[5];
        if (form == 0)
            f->b.pages[5].offset += 1 << 20;
        else
            f->b.pages[5].dataset_id = 9;
        build_index(&f->b, 0, 12, NULL);
        f->b.pages[5] = good;
        put_pages(f, 4);
        end(f);
        assert_int_equal(d7_reader_pages(f->r), 16);
        check_pages(f, 16, SIZE_MAX);
    }
}

/* An island that lists a place where no page begins: where the file was scanned, that is no page; with `full` it is
 * scanned everywhere. */
static void listed_pages_that_are_not_there_are_told(void **state) {
    fixture *f = *state;
    build_start(&f->b, two, 2, 1, PAGE_BYTES);
    put_pages(f, 12);
    f->b.pages[6].offset += 8; /* inside page 6 */
    build_index(&f->b, 0, 12, NULL);
    f->b.pages[6].offset -= 8;
    put_pages(f, 4);
    end(f);
    f->options.full = true;
    reopen(f);
    const d7_problem *p = find(f, D7_PROBLEM_MISSING_PAGE);
    assert_non_null(p);
    assert_int_equal(p->offset, f->b.pages[6].offset + 8);
    assert_int_equal(d7_reader_pages(f->r), 16);
    check_pages(f, 16, SIZE_MAX);
}

/* ---- what is lost in the middle ---- */

/* The page among the first 40 that goes over the end of its block. */
static size_t page_over_a_block(const fixture *f) {
    for (size_t k = 4; k < 40; k++)
        if (f->b.pages[k].offset / D7_BLOCK_BYTES != f->b.pages[k + 1].offset / D7_BLOCK_BYTES &&
            f->b.pages[k + 1].offset % D7_BLOCK_BYTES > 100)
            return k;
    fail_msg("no page goes over a block's end");
    return 0;
}

/* Its beginning is there: which items are lost is known, and those after keep their numbers. */
/* An index that has something, and nothing that an index has: what was here may have been a page. One that is empty is an
 * index, and so is one with something unknown beside its pages. */
static void an_index_that_says_nothing_is_a_hole(void **state) {
    static const uint8_t mute[] = {0x1A, 5, 0x18, 2, 0x22, 1, 4}, varint[] = {0x1A, 4, 0x08, 0, 0x22, 0},
                         empty[] = {0x1A, 0}, more[] = {0x1A, 8, 0x12, 3, 0x0A, 1, 'k', 0x22, 1, 4};
    const struct {
        const uint8_t *entry;
        size_t bytes;
        bool hole;
    } cases[] = {{mute, sizeof mute, true},
                 {varint, sizeof varint, true},
                 {empty, sizeof empty, false},
                 {more, sizeof more, false}};
    fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        d7_dataset_info info;
        build_start(&f->b, two, 2, 512, PAGE_BYTES);
        put_pages(f, 4);
        uint64_t at = build_entry(&f->b, cases[i].entry, cases[i].bytes);
        put_pages(f, 4);
        end(f);
        const d7_problem *p = find(f, D7_PROBLEM_BAD_ENTRY);
        assert_int_equal(p != NULL, cases[i].hole);
        assert_true(!p || p->offset == at);
        assert_int_equal(find(f, D7_PROBLEM_UNPLACED) != NULL, cases[i].hole);
        check_pages(f, cases[i].hole ? 4 : 8, SIZE_MAX);
        assert_int_equal(d7_reader_dataset(f->r, 0, &info), 0);
        assert_int_equal(info.pages, cases[i].hole ? 2 : 4);
        d7_reader_free(f->r);
        f->r = NULL;
        memio_free(&f->file);
    }
}

static void a_page_that_breaks_off_keeps_its_place(void **state) {
    fixture *f = *state;
    build_start(&f->b, two, 2, 512, PAGE_BYTES);
    put_pages(f, 48);
    end(f);
    size_t lost = page_over_a_block(f);
    uint64_t block = f->b.pages[lost + 1].offset / D7_BLOCK_BYTES * D7_BLOCK_BYTES;
    bytes_store16(f->file.data + block, 0); /* the fragment that ends it */
    reopen(f);
    const d7_problem *p = find(f, D7_PROBLEM_BAD_PAGE);
    assert_non_null(p);
    assert_int_equal(p->offset, f->b.pages[lost].offset);
    assert_int_equal(p->dataset_id, lost % 2);
    assert_int_equal(p->first_item, lost / 2 * PAGE_ITEMS);
    assert_int_equal(p->n_items, PAGE_ITEMS);
    static uint16_t got[PAGE_ITEMS];
    for (size_t k = 0; k <= lost; k++)
        assert_int_equal(
            d7_reader_read(f->r, (uint32_t)(k % 2), k / 2 * PAGE_ITEMS, PAGE_ITEMS, got, &f->err),
            k == lost ? D7_ERR_CORRUPT : 0);
}

/* A block of which nothing is left: what began in it is gone without a trace, but where it is missing is said. */
static void a_lost_block_says_where_items_are_missing(void **state) {
    fixture *f = *state;
    build_start(&f->b, two, 2, 512, PAGE_BYTES);
    put_pages(f, 48);
    end(f);
    size_t lost = page_over_a_block(f);
    uint64_t block = f->b.pages[lost + 1].offset / D7_BLOCK_BYTES * D7_BLOCK_BYTES;
    memset(f->file.data + block, 0, D7_BLOCK_BYTES);
    reopen(f);
    const d7_problem *p = find(f, D7_PROBLEM_BAD_PAGE); /* the one that began before */
    assert_non_null(p);
    assert_int_equal(p->first_item, lost / 2 * PAGE_ITEMS);
    assert_true(d7_reader_n_damages(f->r) >= 1);
    /* the beginning of the first page of the block alone: its rest is an end without a beginning */
    size_t orphan = lost + 1;
    build_start(&f->b, two, 2, 512, PAGE_BYTES);
    put_pages(f, 48);
    end(f);
    uint8_t *head = f->file.data + f->b.pages[orphan].offset;
    head[1] &= 0x7F; /* no begin bit */
    reopen(f);
    p = find(f, D7_PROBLEM_BAD_FRAME);
    assert_non_null(p);
    assert_int_equal(p->offset, f->b.pages[orphan].offset);
    char place[64];
    snprintf(place, sizeof place, "from /photons/x at item %zu", (orphan + 1) / 2 * PAGE_ITEMS);
    assert_non_null(strstr(p->text, place));
    snprintf(place, sizeof place, "from /photons/y at item %zu", orphan / 2 * PAGE_ITEMS);
    assert_non_null(strstr(p->text, place));
    /* and nobody knows which numbers the items behind have */
    assert_int_equal(d7_reader_pages(f->r), orphan);
    p = find(f, D7_PROBLEM_UNPLACED);
    assert_non_null(p);
    assert_int_equal(p->offset, f->b.pages[orphan].offset);
}

/* A writer that died, and one that went on behind, or a block of another place: the unfinished entry is dropped, and what is
 * behind has no known place. */
static void an_entry_that_was_given_up_is_dropped(void **state) {
    fixture *f = *state;
    build_start(&f->b, two, 2, 512, PAGE_BYTES);
    put_pages(f, 48);
    end(f);
    size_t given_up = page_over_a_block(f);
    uint64_t block = f->b.pages[given_up + 1].offset / D7_BLOCK_BYTES * D7_BLOCK_BYTES;
    uint8_t *fragment = f->file.data + block;
    unsigned length = bytes_load16(fragment) & 0x3FFF;
    assert_true(length > 8);
    /* a whole entry of nothing known, in place of the end of the page */
    bytes_store16(fragment, (uint16_t)(length | 0xC000));
    memset(fragment + 2, 0, length);
    fragment[2] = 0x7A;
    fragment[3] = (uint8_t)((length - 3) | 0x80);
    fragment[4] = (uint8_t)((length - 3) >> 7);
    reopen(f);
    const d7_problem *p = find(f, D7_PROBLEM_BAD_FRAME);
    assert_non_null(p);
    assert_int_equal(p->offset, f->b.pages[given_up].offset);
    assert_int_equal(d7_reader_pages(f->r), given_up);
    assert_null(find(f, D7_PROBLEM_BAD_PAGE));
    assert_non_null(find(f, D7_PROBLEM_UNPLACED));
}

/* The torn entry at the end of the file tells whose items it had. */
static void the_torn_page_is_told_with_its_items(void **state) {
    fixture *f = *state;
    build_start(&f->b, two, 2, 512, PAGE_BYTES);
    put_pages(f, 7);
    end(f);
    f->file.n -= 10;
    reopen(f);
    const d7_problem *p = find(f, D7_PROBLEM_TORN_TAIL);
    assert_non_null(p);
    assert_int_equal(p->dataset_id, 0);
    assert_int_equal(p->first_item, 3 * PAGE_ITEMS);
    assert_int_equal(p->n_items, PAGE_ITEMS);
    assert_int_equal(d7_reader_pages(f->r), 6);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(drifting_islands_are_found),
        TEST(pages_may_be_listed_in_any_order),
        TEST(impossible_islands_are_made_up_for),
        TEST(listed_pages_that_are_not_there_are_told),
        TEST(an_index_that_says_nothing_is_a_hole),
        TEST(a_page_that_breaks_off_keeps_its_place),
        TEST(a_lost_block_says_where_items_are_missing),
        TEST(an_entry_that_was_given_up_is_dropped),
        TEST(the_torn_page_is_told_with_its_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Verification: every code is produced by a file that breaks its rule and no other, with the place and the
 * items that it concerns; and good files have none. The last test looks whether all codes were seen. */
#include "base/bytes.h"
#include "d7_builder.h"
#include "d7_testing.h"
#include "framing.h"
#include "messages.h"
#include "testing.h"

static const d7_dataset one[] = {{"/x", D7_UINT16}};
static const d7_dataset lincam[] = {{"/photons/x", D7_UINT16},
                                    {"/photons/y", D7_UINT16},
                                    {"/photons/dt", D7_UINT16},
                                    {"/photons/ms", D7_UINT64}};
static const d7_attribute marker = {.key = D7_MARKER_KEY, .value = "1", .key_bytes = 15, .value_bytes = 1};
static bool seen[D7_N_PROBLEMS]; /* by any test */

enum { X, Y, DT, MS, N_VALUES = 64 };

typedef struct fixture {
    builder b;
    memio file;
    d7_io io;
    d7_reader *r;
    d7_verify_summary s;
    d7_error err;
    uint16_t v[N_VALUES]; /* below 4096 */
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->io = memio_table(&f->file);
    for (size_t i = 0; i < N_VALUES; i++)
        f->v[i] = (uint16_t)(i * 63);
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

/* ---- what is found ---- */

static void verify_again(fixture *f) {
    d7_problem p;
    d7_reader_free(f->r);
    f->r = testing_open(&f->io, false, false);
    if (d7_reader_verify(f->r, NULL, NULL, NULL, NULL, &f->s, &f->err) != 0)
        fail_msg("verify: %s", f->err.text);
    for (size_t i = 0; d7_reader_problem(f->r, i, &p) == 0; i++)
        seen[p.code] = true;
}

/* Ends the file and verifies it. */
static void verify_built(fixture *f) {
    build_end(&f->b, &f->file);
    verify_again(f);
}

/* As a closed file with all pages so far in its global index. */
static void verify_closed(fixture *f) {
    build_epilogue(&f->b, build_index(&f->b, 0, f->b.n_pages, &marker), true);
    verify_built(f);
}

/* Most of these files have short pages, which is told once. */
static uint64_t notes_of_page_size(fixture *f) {
    d7_problem p;
    uint64_t n = 0;
    for (size_t i = 0; d7_reader_problem(f->r, i, &p) == 0; i++)
        n += p.code == D7_PROBLEM_NARROW_READERS && p.offset == D7_NO_OFFSET;
    assert_int_equal(n, d7_reader_bytes_per_page(f->r) != D7_PAGE_BYTES_DEFAULT);
    return n;
}

/* Exactly so many problems beside; fails with a list of what there is. */
static void expect_n(fixture *f, uint64_t n) {
    d7_problem p;
    if (d7_reader_n_problems(f->r) == n + notes_of_page_size(f))
        return;
    for (size_t i = 0; d7_reader_problem(f->r, i, &p) == 0; i++)
        print_error("%s at %llu, dataset %u: %s\n", d7_problem_name(p.code), (unsigned long long)p.offset,
                    (unsigned)p.dataset_id, p.text);
    fail_msg("%d problems, not %d", (int)d7_reader_n_problems(f->r), (int)(n + notes_of_page_size(f)));
}

static d7_problem find(fixture *f, d7_problem_code code) {
    d7_problem p;
    for (size_t i = 0; d7_reader_problem(f->r, i, &p) == 0; i++)
        if (p.code == code && (p.code != D7_PROBLEM_NARROW_READERS || p.offset != D7_NO_OFFSET))
            return p;
    fail_msg("no %s", d7_problem_name(code));
    return (d7_problem){0};
}

/* That problem and no other, at the place. */
static d7_problem expect_only(fixture *f, d7_problem_code code, uint64_t offset) {
    d7_problem p = find(f, code);
    expect_n(f, 1);
    if (p.offset != offset)
        fail_msg("%s at byte %lld, not %lld", d7_problem_name(code), (long long)p.offset, (long long)offset);
    assert_int_equal(f->s.damages, p.severity == D7_DAMAGE);
    assert_int_equal(f->s.data_notes, p.severity == D7_DATA);
    assert_int_equal(f->s.style_notes, (p.severity == D7_STYLE) + notes_of_page_size(f));
    return p;
}

static void expect_items(const d7_problem *p, uint32_t ds, uint64_t first, uint64_t n) {
    assert_int_equal(p->dataset_id, ds);
    assert_int_equal(p->first_item, first);
    assert_int_equal(p->n_items, n);
}

/* ---- the format: damage ---- */

static void good_files_have_no_problem(void **state) {
    fixture *f = *state;
    build_start(&f->b, one, 1, 512, 16);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    build_page(&f->b, 0, D7_UINT16, f->v, 4);
    verify_closed(f);
    expect_n(f, 0);
    assert_int_equal(f->s.state, D7_STATE_CLOSED);
    assert_int_equal(f->s.pages, 2);
    assert_int_equal(f->s.entries, 5);
    build_start(&f->b, one, 1, 512, 16);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    verify_built(f);
    expect_n(f, 0);
    assert_int_equal(f->s.state, D7_STATE_OPEN);
}

static void torn_tail(void **state) {
    fixture *f = *state;
    build_start(&f->b, one, 1, 512, 16);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    uint64_t last = build_page(&f->b, 0, D7_UINT16, f->v, 8);
    build_end(&f->b, &f->file);
    f->file.n--;
    verify_again(f);
    expect_only(f, D7_PROBLEM_TORN_TAIL, last);
}

/* The same while a writer is there: no problem of any class. */
static void being_written(void **state) {
    fixture *f = *state;
    build_start(&f->b, one, 1, 512, 16);
    uint64_t last = build_page(&f->b, 0, D7_UINT16, f->v, 8);
    build_end(&f->b, &f->file);
    f->file.n--;
    f->file.held = true;
    verify_again(f);
    expect_only(f, D7_PROBLEM_BEING_WRITTEN, last);
    assert_true(f->s.held);
    assert_int_equal(f->s.damages + f->s.data_notes, 0);
}

static void no_epilogue(void **state) {
    fixture *f = *state;
    build_start(&f->b, one, 1, 512, 16);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    uint64_t index = build_index(&f->b, 0, 1, &marker);
    verify_built(f);
    expect_only(f, D7_PROBLEM_NO_EPILOGUE, index);
}

static void bad_epilogue(void **state) {
    fixture *f = *state;
    build_start(&f->b, one, 1, 512, 16);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    build_index(&f->b, 0, 1, &marker);
    build_epilogue(&f->b, 1000000, true);
    verify_built(f);
    expect_only(f, D7_PROBLEM_BAD_EPILOGUE, 16384);
    build_start(&f->b, one, 1, 512, 16); /* in the middle of a block */
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    build_epilogue(&f->b, build_index(&f->b, 0, 1, &marker), false);
    verify_built(f);
    assert_int_equal(f->s.state, D7_STATE_OPEN);
    expect_n(f, 1);
    find(f, D7_PROBLEM_BAD_EPILOGUE);
}

static void trailing_bytes(void **state) {
    fixture *f = *state;
    build_start(&f->b, one, 1, 512, 16);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    verify_closed(f);
    size_t end = f->file.n;
    f->file.data[f->file.n++] = 0;
    verify_again(f);
    expect_only(f, D7_PROBLEM_TRAILING_BYTES, end);
}

static void bad_frame(void **state) {
    fixture *f = *state;
    build_start(&f->b, one, 1, 512, 16);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    verify_closed(f);
    f->file.data[9000] = 1; /* padding */
    verify_again(f);
    expect_only(f, D7_PROBLEM_BAD_FRAME, 9000);
}

static void bad_entries_and_a_second_header(void **state) {
    fixture *f = *state;
    uint8_t *header;
    size_t bytes;
    build_start(&f->b, one, 1, 512, 16);
    assert_int_equal(d7__header_pack(&f->b.alloc, one, 1, 512, 16, &header, &bytes), 0);
    uint64_t second = build_entry(&f->b, header, bytes);
    build_entry(&f->b, "\x2A\x01x", 3); /* an unknown message */
    build_entry(&f->b, "", 0);
    free(header);
    verify_built(f);
    expect_n(f, 3);
    assert_int_equal(f->s.damages, 3);
    assert_int_equal(find(f, D7_PROBLEM_HEADER_PLACE).offset, second);
    find(f, D7_PROBLEM_BAD_ENTRY);
}

/* What cannot be read may have been a page: of those behind nobody knows the items, but whether they are damaged is told. */
static void pages_without_a_place(void **state) {
    fixture *f = *state;
    build_start(&f->b, one, 1, 512, 16);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    uint64_t lost = build_entry(&f->b, "\x2A\x01x", 3);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    uint64_t bad = build_entry(&f->b, "\x12\x05\x08\x00\x22\x01\x80", 7);
    verify_built(f);
    assert_int_equal(find(f, D7_PROBLEM_BAD_ENTRY).offset, lost);
    assert_int_equal(find(f, D7_PROBLEM_UNPLACED).offset, lost);
    assert_int_equal(find(f, D7_PROBLEM_BAD_PAGE).offset, bad);
    expect_n(f, 3);
    assert_int_equal(f->s.damages, 3);
}

static void bad_header(void **state) {
    fixture *f = *state;
    static const d7_dataset unnamed[] = {{"/x", D7_UINT16}, {"\xFF", D7_UINT16}};
    build_start(&f->b, unnamed, 2, 512, 16);
    verify_built(f);
    d7_problem p = expect_only(f, D7_PROBLEM_BAD_HEADER, 0);
    assert_int_equal(p.dataset_id, 1);
}

/* The global index lists one page too few and one that is none. */
static void unlisted_and_bad_pages(void **state) {
    fixture *f = *state;
    build_start(&f->b, one, 1, 512, 16);
    uint64_t first = build_page(&f->b, 0, D7_UINT16, f->v, 8);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    f->b.pages[0].offset += 2;
    verify_closed(f);
    expect_n(f, 2);
    assert_int_equal(f->s.damages, 2);
    assert_int_equal(find(f, D7_PROBLEM_UNLISTED_PAGE).offset, first);
    assert_int_equal(find(f, D7_PROBLEM_BAD_PAGE).offset, first + 2);
}

static void missing_page(void **state) {
    fixture *f = *state;
    build_start(&f->b, one, 1, 512, 16);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    f->b.pages[f->b.n_pages++] = (d7__page_ref){.offset = 1u << 30, .dataset_id = 0};
    verify_closed(f);
    find(f, D7_PROBLEM_MISSING_PAGE);
    assert_true(f->s.damages > 0);
}

static void unknown_dataset(void **state) {
    fixture *f = *state;
    build_start(&f->b, one, 1, 512, 16);
    uint64_t page = build_page(&f->b, 7, D7_UINT16, f->v, 8);
    verify_built(f);
    expect_only(f, D7_PROBLEM_UNKNOWN_DATASET, page);
}

static void attributes_that_are_lost_or_no_text(void **state) {
    fixture *f = *state;
    static const d7_attribute bad_utf8 = {.key = "k", .value = "\xFF", .key_bytes = 1, .value_bytes = 1};
    static const d7_attribute key = {.key = "k", .value = "v", .key_bytes = 1, .value_bytes = 1};
    build_start(&f->b, one, 1, 512, 16);
    uint64_t early = build_index(&f->b, 0, 0, &bad_utf8);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    verify_built(f);
    expect_only(f, D7_PROBLEM_BAD_ATTRIBUTE, early);
    build_start(&f->b, one, 1, 512, 16);
    build_index(&f->b, 0, 0, &key);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    verify_closed(f);
    expect_n(f, 1);
    find(f, D7_PROBLEM_BAD_ATTRIBUTE);
}

/* An island before its time, and one that lists too little. */
static void islands_out_of_place(void **state) {
    fixture *f = *state;
    build_start(&f->b, one, 1, 512, 16);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    uint64_t island = build_index(&f->b, 0, 1, NULL);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    verify_built(f);
    expect_n(f, 2);
    assert_int_equal(find(f, D7_PROBLEM_ISLAND_PLACE).offset, island);
    assert_int_equal(find(f, D7_PROBLEM_ISLAND_PLACE).severity, D7_STYLE);
    assert_int_equal(find(f, D7_PROBLEM_ISLAND_LIST).offset, island);
    assert_int_equal(f->s.damages, 1);
}

/* ---- the writer's style ---- */

static void page_lengths_are_one_problem_a_run(void **state) {
    fixture *f = *state;
    uint64_t at[9];
    static const size_t lengths[9] = {8, 8, 3, 5, 7, 8, 2, 8, 4};
    build_start(&f->b, one, 1, 512, 16);
    for (size_t i = 0; i < 9; i++)
        at[i] = build_page(&f->b, 0, D7_UINT16, f->v, lengths[i]);
    verify_closed(f);
    d7_problem p = find(f, D7_PROBLEM_PAGE_LENGTH);
    expect_n(f, 2);
    assert_int_equal(f->s.style_notes, 3);
    assert_int_equal(p.offset, at[2]);
    expect_items(&p, 0, 16, 15);
    assert_string_equal(p.text, "the page holds 3 items, not 8; so it is with 2 pages after it");
    assert_int_equal(d7_reader_problem(f->r, 1, &p), 0);
    assert_int_equal(p.offset, at[6]);
    expect_items(&p, 0, 39, 2);
}

/* A page as other writers make them: the fields are given as they are on the wire. */
static uint64_t odd_page(fixture *f, const char *fields, size_t n) {
    uint8_t entry[128] = {0x12, (uint8_t)n};
    memcpy(entry + 2, fields, n);
    uint64_t offset = build_entry(&f->b, entry, n + 2);
    f->b.pages[f->b.n_pages++] = (d7__page_ref){.offset = offset, .dataset_id = 0};
    return offset;
}

#define FIELDS(text) text, sizeof text - 1

static void page_forms(void **state) {
    fixture *f = *state;
    static const struct {
        const char *fields;
        size_t n;
        const char *reason;
    } forms[] = {
        {FIELDS("\x18\x02\x22\x01\x02"), "the page leaves out its dataset's number, which some readers need"},
        {FIELDS("\x08\x00\x22\x01\x02"), "the page leaves out its first value, which some readers need"},
        {FIELDS("\x08\x00\x18\x02"),
         "the page has no field for its differences: some readers lose its only item"},
        {FIELDS("\x18\x02\x08\x00\x22\x01\x02"), "the fields of the page are out of order"},
        {FIELDS("\x08\x00\x22\x01\x02\x18\x02"), "the fields of the page are out of order"},
        {FIELDS("\x08\x00\x18\x02\x20\x02"), "the differences in the page are not packed"},
        {FIELDS("\x08\x00\x18\x02\x22\x01\x02\x22\x01\x02"), "the values of the page are in several pieces"},
        {FIELDS("\x08\x00\x18\x02\x2A\x01\x02"),
         "the values of the page are in another field than they should be"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        build_start(&f->b, one, 1, 512, 16);
        uint64_t page = odd_page(f, forms[i].fields, forms[i].n);
        verify_closed(f);
        d7_problem p = expect_only(f, D7_PROBLEM_PAGE_FORM, page);
        assert_string_equal(p.text, forms[i].reason);
    }
}

static void empty_differences_and_unknown_fields_are_usual(void **state) {
    fixture *f = *state;
    build_start(&f->b, one, 1, 512, 16);
    odd_page(f, FIELDS("\x08\x00\x18\x02\x22\x00"));
    verify_closed(f);
    expect_n(f, 0);
    build_start(&f->b, one, 1, 512, 16);
    odd_page(f, FIELDS("\x52\x02hi\x08\x00\x10\x07\x18\x02\x22\x01\x02\x58\x05"));
    verify_closed(f);
    expect_n(f, 0);
}

/* The island's marker stands first; then pages in the wrong order; then one at the spare byte before it. */
static void index_forms(void **state) {
    fixture *f = *state;
    build_start(&f->b, one, 1, 512, 16);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    d7__page_ref first = f->b.pages[0];
    f->b.pages[0] = f->b.pages[1];
    f->b.pages[1] = first;
    uint64_t index = build_index(&f->b, 0, 2, &marker);
    build_epilogue(&f->b, index, true);
    verify_built(f);
    expect_only(f, D7_PROBLEM_INDEX_FORM, index);
    build_start(&f->b, one, 1, 512, 16);
    uint64_t page = build_page(&f->b, 0, D7_UINT16, f->v, 8);
    uint8_t entry[64] = {0x1A, 0, 0x12, 4 + 15 + 1, 0x0A, 15};
    memcpy(entry + 6, D7_MARKER_KEY, 15);
    memcpy(entry + 21, "\x12\x01\x31\x0A\x04\x08\x00\x10", 8);
    entry[29] = (uint8_t)page;
    entry[1] = 28;
    assert_true(page < 128);
    index = build_entry(&f->b, entry, 30);
    build_epilogue(&f->b, index, true);
    verify_built(f);
    expect_only(f, D7_PROBLEM_INDEX_FORM, index);
}

static void spare_byte_offsets_are_taken(void **state) {
    fixture *f = *state;
    static const d7_dataset bytes[] = {{"/b", D7_UINT8}, {"/c", D7_UINT8}};
    uint8_t *raw = calloc(1, D7_BLOCK_BYTES);
    build_start(&f->b, bytes, 2, 512, D7_BLOCK_BYTES);
    size_t used = (size_t)d7__out_framed(&f->b.out), n = D7_BLOCK_BYTES - 1 - used - 2 - 8;
    build_page(&f->b, 0, D7_UINT8, raw, n); /* leaves one byte in the block */
    assert_int_equal(d7__out_framed(&f->b.out), D7_BLOCK_BYTES - 1);
    build_page(&f->b, 1, D7_UINT8, raw, 10);
    assert_int_equal(f->b.pages[1].offset, D7_BLOCK_BYTES);
    f->b.pages[1].offset--;
    uint64_t index = build_index(&f->b, 0, 2, &marker);
    build_epilogue(&f->b, index, true);
    verify_built(f);
    expect_only(f, D7_PROBLEM_INDEX_FORM, index);
    d7_reader *recovered = testing_open(&f->io, true, false);
    assert_int_equal(d7_reader_pages(recovered), 2);
    d7_reader_free(recovered);
    free(raw);
}

static void zero_gaps(void **state) {
    fixture *f = *state;
    build_start(&f->b, one, 1, 512, 16);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    uint64_t gap = d7__out_framed(&f->b.out);
    assert_int_equal(d7__out_reserve(&f->b.out, 1, D7_BLOCK_BYTES), 0);
    d7__out_pad(&f->b.out);
    build_page(&f->b, 0, D7_UINT16, f->v, 4);
    verify_closed(f);
    expect_only(f, D7_PROBLEM_ZERO_GAP, gap);
    build_start(&f->b, one, 1, 512, 16); /* at the end of an open file */
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    assert_int_equal(d7__out_reserve(&f->b.out, 1, D7_BLOCK_BYTES), 0);
    d7__out_pad(&f->b.out);
    verify_built(f);
    expect_only(f, D7_PROBLEM_ZERO_GAP, gap);
    f->file.held = true; /* while a writer is there it may still fill it */
    verify_again(f);
    expect_n(f, 0);
}

static void files_beyond_some_readers(void **state) {
    fixture *f = *state;
    enum { MANY = 130, LONG = 200 };
    static d7_dataset datasets[MANY];
    static char names[MANY][LONG];
    for (size_t i = 0; i < MANY; i++) {
        snprintf(names[i], LONG, "/%03zu", i);
        datasets[i] = (d7_dataset){names[i], D7_UINT16};
    }
    build_start(&f->b, datasets, MANY, 512, 16); /* many datasets alone are fine */
    build_page(&f->b, 127, D7_UINT16, f->v, 8);
    verify_closed(f);
    expect_n(f, 0);
    build_start(&f->b, datasets, MANY, 512, 16);
    uint64_t page = build_page(&f->b, 129, D7_UINT16, f->v, 8);
    verify_closed(f);
    assert_int_equal(expect_only(f, D7_PROBLEM_NARROW_READERS, page).dataset_id, 129);
    for (size_t i = 0; i < MANY; i++)
        snprintf(names[i], LONG, "/%0150zu", i);
    build_start(&f->b, datasets, MANY, 512, 16);
    verify_built(f);
    expect_only(f, D7_PROBLEM_NARROW_READERS, 0);
    build_start(&f->b, one, 1, 512, 16); /* two global index entries */
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    build_page(&f->b, 0, D7_UINT16, f->v, 8);
    uint64_t index = build_index(&f->b, 0, 1, &marker);
    build_index(&f->b, 1, 1, NULL);
    build_epilogue(&f->b, index, true);
    verify_built(f);
    expect_only(f, D7_PROBLEM_NARROW_READERS, index);
}

static void pages_of_another_size(void **state) {
    fixture *f = *state;
    static const uint32_t sizes[] = {D7_PAGE_BYTES_DEFAULT, 16, 2 * D7_PAGE_BYTES_DEFAULT};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        build_start(&f->b, one, 1, 512, sizes[i]);
        build_page(&f->b, 0, D7_UINT16, f->v, 8);
        verify_closed(f);
        assert_int_equal(d7_reader_n_problems(f->r), i > 0);
        assert_int_equal(f->s.style_notes, i > 0);
        assert_int_equal(notes_of_page_size(f), i > 0);
    }
}

/* ---- data ---- */

static const d7_attribute bits_of_4 = {
    .key = "/photons/PositionBits", .value = "4", .key_bytes = 21, .value_bytes = 1};

/* Columns of these lengths, every value `value`. */
static void build_columns(fixture *f, const size_t lengths[3], uint16_t value) {
    uint16_t v[8] = {value, value, value, value, value, value, value, value};
    build_start(&f->b, lincam, 4, 512, 16);
    for (uint32_t ds = X; ds <= DT; ds++)
        for (size_t at = 0; at < lengths[ds]; at += 8)
            build_page(&f->b, ds, D7_UINT16, v, lengths[ds] - at < 8 ? lengths[ds] - at : 8);
}

static void ragged_columns(void **state) {
    fixture *f = *state;
    build_columns(f, (size_t[]){20, 13, 20}, 1);
    verify_closed(f);
    d7_problem p = expect_only(f, D7_PROBLEM_RAGGED, D7_NO_OFFSET);
    expect_items(&p, Y, 13, 7);
    build_columns(f, (size_t[]){20, 20, 0}, 1); /* one that was never written to */
    verify_closed(f);
    expect_n(f, 0);
    build_columns(f, (size_t[]){24, 8, 16}, 1); /* pages of an open file end where they end */
    verify_built(f);
    expect_n(f, 0);
}

/* Values past their bits: one problem for pages in a row, with a value and how many they are. */
static void values_past_their_bits(void **state) {
    fixture *f = *state;
    static const d7_attribute tac = {
        .key = "/photons/TacBits", .value = "5", .key_bytes = 16, .value_bytes = 1};
    build_start(&f->b, lincam, 4, 512, 16);
    build_index(&f->b, 0, 0, &bits_of_4);
    build_index(&f->b, 0, 0, &tac);
    uint64_t at[4];
    for (size_t i = 0; i < 4; i++)
        at[i] = build_page(&f->b, X, D7_UINT16,
                           (uint16_t[]){15, 0, i == 3 ? 1 : 16, 15, 3, i == 1 ? 4000 : 2, 1, 1}, 8);
    build_page(&f->b, Y, D7_UINT16, (uint16_t[]){15, 15, 15, 15}, 4);
    uint64_t dt = build_page(&f->b, DT, D7_UINT16, (uint16_t[]){31, 32}, 2);
    verify_built(f);
    expect_n(f, 2);
    assert_int_equal(f->s.data_notes, 2);
    d7_problem p;
    assert_int_equal(d7_reader_problem(f->r, 0, &p), 0);
    assert_int_equal(p.code, D7_PROBLEM_VALUE_RANGE);
    assert_int_equal(p.offset, at[0]);
    expect_items(&p, X, 2, 17);
    assert_string_equal(
        p.text, "item 2 is 16, but the largest value of /photons/PositionBits (4) is 15; such values: 4");
    assert_int_equal(d7_reader_problem(f->r, 1, &p), 0);
    assert_int_equal(p.offset, dt);
    expect_items(&p, DT, 1, 1);
}

static void missing_bits_ask_nothing(void **state) {
    fixture *f = *state;
    build_columns(f, (size_t[]){9, 9, 9}, 65535);
    verify_closed(f);
    expect_n(f, 0);
}

/* Every element size, with the one bad value anywhere. */
static void every_place_and_width_is_looked_at(void **state) {
    fixture *f = *state;
    static const d7_type types[] = {D7_UINT8, D7_INT16, D7_UINT32, D7_INT64};
    for (size_t t = 0; t < 4; t++)
        for (size_t bad = 0; bad < 70; bad++) {
            uint64_t v[70] = {0};
            uint8_t narrow[70 * 8];
            size_t size = d7_type_size(types[t]);
            d7_dataset dataset[] = {{"/photons/x", types[t]}};
            for (size_t i = 0; i < 70; i++)
                v[i] = i == bad ? 16 : 15;
            for (size_t i = 0; i < 70; i++)
                memcpy(narrow + i * size, (uint8_t *)&v[i] + (BYTES_HOST_IS_LITTLE ? 0 : 8 - size), size);
            build_start(&f->b, dataset, 1, 512, 1024);
            build_index(&f->b, 0, 0, &bits_of_4);
            uint64_t page = build_page(&f->b, 0, types[t], narrow, 70);
            verify_built(f);
            d7_problem p = expect_only(f, D7_PROBLEM_VALUE_RANGE, page);
            expect_items(&p, 0, bad, 1);
        }
}

static void odd_numbers_of_bits(void **state) {
    fixture *f = *state;
    static const char *const texts[] = {"", "0", "65", "twelve", "12 ", "-3", "4294967308"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        d7_attribute bits = bits_of_4;
        bits.value = texts[i];
        bits.value_bytes = strlen(texts[i]);
        build_start(&f->b, lincam, 4, 512, 16);
        build_index(&f->b, 0, 0, &bits);
        build_page(&f->b, X, D7_UINT16, (uint16_t[]){65535}, 1);
        verify_built(f);
        expect_only(f, D7_PROBLEM_ATTRIBUTE_VALUE, D7_NO_OFFSET);
    }
}

static void milliseconds_that_go_back(void **state) {
    fixture *f = *state;
    build_start(&f->b, lincam, 4, 512, 16);
    build_page(&f->b, MS, D7_UINT64, (uint64_t[]){0, 5}, 2);
    uint64_t page = build_page(&f->b, MS, D7_UINT64, (uint64_t[]){4, 6}, 2); /* across the pages' border */
    build_page(&f->b, MS, D7_UINT64, (uint64_t[]){6, 6}, 2);
    verify_built(f);
    d7_problem p = expect_only(f, D7_PROBLEM_MS_ORDER, page);
    expect_items(&p, MS, 2, 1);
    assert_string_equal(p.text, "item 2 is 4, after 5: the index of a photon went back");
}

static void milliseconds_past_the_photons(void **state) {
    fixture *f = *state;
    build_columns(f, (size_t[]){9, 9, 9}, 1);
    build_page(&f->b, MS, D7_UINT64, (uint64_t[]){0, 8}, 2);
    build_page(&f->b, MS, D7_UINT64, (uint64_t[]){9, 10}, 2);
    build_page(&f->b, MS, D7_UINT64, (uint64_t[]){11}, 1);
    verify_closed(f);
    d7_problem p = expect_only(f, D7_PROBLEM_MS_RANGE, D7_NO_OFFSET);
    expect_items(&p, MS, 3, 2);
    assert_string_equal(p.text, "item 3 is 10, but there are 9 photons; such values: 2");
    build_columns(f, (size_t[]){8, 8, 8}, 1); /* an open file has photons that are in no page yet */
    build_page(&f->b, MS, D7_UINT64, (uint64_t[]){0, 12}, 2);
    verify_built(f);
    expect_n(f, 0);
}

static void same_names(void **state) {
    fixture *f = *state;
    static const d7_dataset twice[] = {{"/a", D7_UINT8}, {"/b", D7_UINT8}, {"/a", D7_UINT16}};
    build_start(&f->b, twice, 3, 512, 16);
    verify_built(f);
    assert_int_equal(expect_only(f, D7_PROBLEM_SAME_NAME, 0).dataset_id, 2);
}

/* What the last page of a column held is not known: no word about lengths, the damage is told. */
static void damaged_ends_are_not_ragged(void **state) {
    fixture *f = *state;
    build_columns(f, (size_t[]){20, 20, 20}, 1);
    uint64_t last = f->b.pages[8].offset;
    size_t end = (size_t)d7__out_framed(&f->b.out);
    verify_closed(f);
    expect_n(f, 0);
    f->file.data[end - 1] = 0x80; /* goes on where nothing follows */
    verify_again(f);
    expect_only(f, D7_PROBLEM_BAD_PAGE, last);
}

/* ---- all ---- */

/* Those of checksums are in test_checksums.c, that of tails in test_reader_tail.c, those of certificates are the d7 command's. */
static bool seen_elsewhere(int code) {
    return code == D7_PROBLEM_CHECKSUM || code == D7_PROBLEM_CHECKSUM_FILE ||
           code == D7_PROBLEM_CERTIFICATE || code == D7_PROBLEM_CERTIFICATE_FILE ||
           code == D7_PROBLEM_SIGNATURE || code == D7_PROBLEM_TAIL;
}

static void every_code_was_seen(void **state) {
    (void)state;
    for (int code = 0; code < D7_N_PROBLEMS; code++)
        if (!seen[code] && !seen_elsewhere(code))
            fail_msg("no test produces %s", d7_problem_name((d7_problem_code)code));
    assert_null(d7_problem_name(D7_N_PROBLEMS));
    assert_null(d7_severity_name((d7_severity)D7_N_SEVERITIES));
    assert_string_equal(d7_severity_name(D7_DATA), "data");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(good_files_have_no_problem),
        TEST(torn_tail),
        TEST(being_written),
        TEST(no_epilogue),
        TEST(bad_epilogue),
        TEST(trailing_bytes),
        TEST(bad_frame),
        TEST(bad_entries_and_a_second_header),
        TEST(pages_without_a_place),
        TEST(bad_header),
        TEST(unlisted_and_bad_pages),
        TEST(missing_page),
        TEST(unknown_dataset),
        TEST(attributes_that_are_lost_or_no_text),
        TEST(islands_out_of_place),
        TEST(page_lengths_are_one_problem_a_run),
        TEST(page_forms),
        TEST(empty_differences_and_unknown_fields_are_usual),
        TEST(index_forms),
        TEST(spare_byte_offsets_are_taken),
        TEST(zero_gaps),
        TEST(files_beyond_some_readers),
        TEST(pages_of_another_size),
        TEST(ragged_columns),
        TEST(values_past_their_bits),
        TEST(missing_bits_ask_nothing),
        TEST(every_place_and_width_is_looked_at),
        TEST(odd_numbers_of_bits),
        TEST(milliseconds_that_go_back),
        TEST(milliseconds_past_the_photons),
        TEST(same_names),
        TEST(damaged_ends_are_not_ragged),
        TEST(every_code_was_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

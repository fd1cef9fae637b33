/* Bits that make an entry another one: a page an index, an index a page, or a page of one column one of another. All of them are
 * whole as the framing goes; no column may move against the others because of it. */
#include "repairing.h"
#include "testing.h"

enum { SMALL = 3000, TURN = 170, TAG = 2 };

/* Opens and repairs the source with a bit of it changed: what is read and what is kept is as it was recorded. */
static void flip_and_check(recording *r, const uint8_t *bytes, size_t at, unsigned bit) {
    uint8_t *changed = malloc(r->n_bytes);
    d7_repair_report report;
    memcpy(changed, bytes, r->n_bytes);
    changed[at] ^= (uint8_t)(1u << bit);
    put_source(r, changed, r->n_bytes);
    check_source(r);
    repair_and_check(r, &report);
    d7_repair_report_free(&report);
    free(changed);
}

static void any_bit_of_a_tag_is_damage(void **state) {
    (void)state;
    static const uint32_t steps[] = {1, 1000};
    for (size_t k = 0; k < 2; k++) {
        recording *r = recording_make(SMALL, TURN, steps[k], false);
        for (uint32_t c = 0; c < N_COLUMNS; c++)
            for (uint64_t item = 0; item + 600 < r->items[c]; item += 531) {
                put_source(r, r->bytes, r->n_bytes);
                d7_page_info page = page_at(r, c, item);
                if (page.offset % D7_BLOCK_BYTES + TAG < D7_BLOCK_BYTES)
                    for (unsigned bit = 0; bit < 8; bit++)
                        flip_and_check(r, r->bytes, (size_t)page.offset + TAG, bit);
            }
        recording_free(r);
    }
}

/* Where the n-th entry after the header begins that says that it is an index; 0: there is none. */
static size_t find_index(const recording *r, size_t from) {
    for (size_t at = from; at + 4 < r->n_bytes; at++) {
        const uint8_t *p = r->bytes + at;
        size_t n = (size_t)(p[0] | (p[1] & 0x3F) << 8);
        if (p[1] >> 6 == 3 && p[2] == 0x1A && p[3] >= 0x80 && (size_t)(p[3] & 0x7F) + 128u * p[4] + 3 == n &&
            p[5] == 0x0A)
            return at;
    }
    return 0;
}

static void an_island_is_no_page(void **state) {
    (void)state;
    recording *r = recording_make(SMALL * 3, TURN, 1, false);
    size_t n = 0;
    for (size_t at = find_index(r, 1); at; at = find_index(r, at + 1), n++)
        for (unsigned bit = 0; bit < 8; bit++)
            flip_and_check(r, r->bytes, at + TAG, bit);
    assert_true(n >= 2);
    recording_free(r);
}

/* The island is gone, but nothing else: all is kept that is without the change. */
static void an_island_that_is_no_message_loses_nothing(void **state) {
    (void)state;
    recording *r = recording_make(SMALL * 3, TURN, 1, false);
    d7_repair_report before, after;
    repair_and_check(r, &before);
    size_t at = find_index(r, 1);
    assert_true(at > 0);
    r->bytes[at + TAG] ^= 0x08;
    put_source(r, r->bytes, r->n_bytes);
    assert_true(check_source(r));
    repair_and_check(r, &after);
    for (uint32_t c = 0; c < N_COLUMNS; c++) {
        assert_int_equal(after.datasets[c].kept, before.datasets[c].kept);
        assert_int_equal(after.datasets[c].lost, 0);
    }
    d7_repair_report_free(&before);
    d7_repair_report_free(&after);
    recording_free(r);
}

/* Where the number of a page's dataset is; 0: in the next block. */
static size_t id_at(const recording *r, const d7_page_info *page) {
    size_t at = (size_t)page->offset + TAG + 1;
    while (r->bytes[at] & 0x80)
        at++;
    return page->offset % D7_BLOCK_BYTES + 8 < D7_BLOCK_BYTES && r->bytes[at + 1] == 0x08 ? at + 2 : 0;
}

/* A page of another column's form, or one too many and one too few for columns of one size: turns tell it. Not so milliseconds and
 * aat, of which a page more or less may be waiting for others. */
static void another_dataset_is_told(void **state) {
    (void)state;
    static const uint32_t steps[] = {1, 1000};
    for (size_t k = 0; k < 2; k++) {
        recording *r = recording_make(SMALL, TURN, steps[k], false);
        for (uint32_t c = 0; c < N_COLUMNS; c++)
            for (uint64_t item = r->items[c] / 3; item < r->items[c] * 3 / 4; item += 297) {
                put_source(r, r->bytes, r->n_bytes);
                d7_page_info page = page_at(r, c, item);
                size_t at = id_at(r, &page);
                for (unsigned bit = 0; at && bit < 8; bit++) {
                    uint32_t id = c ^ 1u << bit;
                    if (!(c == COLUMN_AAT && id == COLUMN_MS) && !(c == COLUMN_MS && id == COLUMN_AAT)) {
                        flip_and_check(r, r->bytes, at, bit);
                        flip_and_check(r, r->bytes, at - 1, bit);
                    }
                }
            }
        recording_free(r);
    }
}

/* Reading and repairing lose nothing that came before the last turn that was as it should be. */
static void rows_before_the_page_are_kept(void **state) {
    (void)state;
    recording *r = recording_make(SMALL * 3, TURN, 1000, false);
    d7_repair_report report;
    d7_page_info page = page_at(r, COLUMN_Y, SMALL * 2);
    size_t at = id_at(r, &page);
    assert_true(at > 0);
    r->bytes[at] = COLUMN_X;
    put_source(r, r->bytes, r->n_bytes);
    assert_true(check_source(r));
    repair_and_check(r, &report);
    assert_true(report.unknown_from < page.offset);
    assert_true(report.datasets[COLUMN_X].kept + 3 * TURN + 128 > SMALL * 2);
    assert_true(report.datasets[COLUMN_Y].more_lost);
    d7_repair_report_free(&report);
    recording_free(r);
}

/* A page whose length in the framing is too large loses itself alone, and not the page before: all that follows stands as listed. */
static void a_length_too_large_loses_one_page(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, true);
    size_t n = 0;
    for (uint32_t c = 0; c <= COLUMN_AAT; c++)
        for (uint64_t item = 200; item + 600 < r->items[c]; item += 531) {
            d7_repair_report report;
            put_source(r, r->bytes, r->n_bytes);
            d7_page_info page = page_at(r, c, item);
            if (page.offset % D7_BLOCK_BYTES < 300 || page.offset % D7_BLOCK_BYTES + 600 > D7_BLOCK_BYTES)
                continue;
            uint8_t *bytes = malloc(r->n_bytes);
            memcpy(bytes, r->bytes, r->n_bytes);
            bytes[page.offset] = bytes[page.offset + 1] = 0xFF;
            put_source(r, bytes, r->n_bytes);
            repair_and_check(r, &report);
            for (uint32_t k = 0; k < N_COLUMNS; k++)
                assert_int_equal(report.datasets[k].lost, k == c ? page.n_items : 0);
            assert_int_equal(report.n_gaps, 1);
            assert_int_equal(report.gaps[0].source_item, page.first_item);
            n++;
            d7_repair_report_free(&report);
            free(bytes);
        }
    assert_true(n > 3);
    recording_free(r);
}

/* Changes a byte of a page's values so that it holds one item more, or one less. */
static void change_count(recording *r, const d7_page_info *page, bool more) {
    uint8_t *at = r->bytes + page->offset + 20;
    while ((*at & 0x80) != (more ? 0x80 : 0))
        at++;
    *at ^= 0x80;
}

/* One page of a column holds one item too many, and one behind a place of unknown content one too few: that they make up for one
 * another says nothing. */
static void what_is_behind_a_hole_justifies_nothing(void **state) {
    (void)state;
    recording *r = recording_make(3072, 128, 1000, false);
    d7_repair_report report;
    d7_page_info first = page_at(r, COLUMN_Y, 512), second = page_at(r, COLUMN_Y, 2816),
                 hole = page_at(r, COLUMN_OTHER, 512);
    assert_true(first.offset < hole.offset && hole.offset < second.offset);
    change_count(r, &first, true);
    change_count(r, &second, false);
    r->bytes[hole.offset + TAG] ^= 0x08;
    put_source(r, r->bytes, r->n_bytes);
    repair_and_check(r, &report);
    assert_true(report.unknown_from == hole.offset);
    assert_int_equal(report.n_gaps, 1);
    assert_int_equal(report.gaps[0].source_item, 512);
    assert_int_equal(report.gaps[0].n_items, 128);
    d7_repair_report_free(&report);
    recording_free(r);
}

/* As a crash leaves a file that was made longer, in the midst of its first page: zeros are no values. */
static void zeros_are_no_values(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1000, false);
    d7_page_info page = page_at(r, COLUMN_X, 0);
    size_t n = (size_t)page.offset + 40;
    uint8_t *bytes = calloc(1, n + 3 * D7_BLOCK_BYTES);
    d7_repair_report report;
    memcpy(bytes, r->bytes, n);
    put_source(r, bytes, n + 3 * D7_BLOCK_BYTES);
    assert_true(check_source(r));
    repair_and_check(r, &report);
    assert_int_equal(report.datasets[COLUMN_X].kept, 0);
    d7_repair_report_free(&report);
    free(bytes);
    recording_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_bit_of_a_tag_is_damage),
        cmocka_unit_test(an_island_is_no_page),
        cmocka_unit_test(an_island_that_is_no_message_loses_nothing),
        cmocka_unit_test(another_dataset_is_told),
        cmocka_unit_test(rows_before_the_page_are_kept),
        cmocka_unit_test(a_length_too_large_loses_one_page),
        cmocka_unit_test(zeros_are_no_values),
        cmocka_unit_test(what_is_behind_a_hole_justifies_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

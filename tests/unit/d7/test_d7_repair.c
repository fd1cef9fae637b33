/* Repair into a new file: cuts at every byte, damage in every block and page, columns that stay aligned, records of gaps,
 * what is refused, and faults on the way. */
#include "base/bytes.h"
#include "repairing.h"
#include "testing.h"

enum { SMALL = 3000, TURN = 170 };

/* ---- the end ---- */

static void good_file_is_left_alone(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, true);
    d7_repair_report report;
    repair_and_check(r, &report);
    assert_int_equal(report.outcome, D7_REPAIR_FINE);
    assert_int_equal(report.datasets[COLUMN_X].kept, SMALL);
    assert_string_equal(report.datasets[COLUMN_MS].name, "/photons/ms");
    d7_repair_report_free(&report);
    assert_null(report.datasets);
    recording_free(r);
}

static void file_cut_at_any_byte_is_closed(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, true);
    uint64_t kept = 0;
    size_t first = 0;
    for (size_t n = 0; n < r->n_bytes; n += ONE_OF) {
        d7_repair_report report;
        put_source(r, r->bytes, n);
        int rc = repair(r, false, &report);
        if (rc != 0 && kept == 0 && first == 0) {
            assert_int_equal(rc, D7_ERR_TRUNCATED);
            assert_false(exists_on(r, out_path));
            continue;
        }
        first = first ? first : n;
        if (rc != 0)
            fail_msg("cut at %zu: %s", n, r->err.text);
        /* Every byte would take long to compare: the lengths are, at each. */
        assert_true(report.datasets[COLUMN_X].kept >= kept);
        assert_int_equal(report.datasets[COLUMN_X].kept, report.datasets[COLUMN_AAT].kept);
        if (report.datasets[COLUMN_X].kept != kept || n % 97 == 0)
            check_result(r, out_path, &report);
        kept = report.datasets[COLUMN_X].kept;
        size_t now;
        assert_memory_equal(disk_content(r->disk, source_path, &now), r->bytes, n);
        assert_int_equal(now, n);
        d7_repair_report_free(&report);
    }
    assert_int_equal(kept, SMALL);
    recording_free(r);
}

static void ragged_ends_are_trimmed_or_kept(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, false);
    d7_repair_report report;
    repair_and_check(r, &report);
    uint64_t kept = report.datasets[COLUMN_X].kept;
    assert_int_equal(report.datasets[COLUMN_AAT].left_out, SMALL / 32 * 32 - kept);
    assert_int_equal(kept, SMALL / 128 * 128);
    assert_int_equal(report.n_gaps, 0);
    d7_repair_report_free(&report);

    put_source(r, r->bytes, r->n_bytes);
    assert_int_equal(repair(r, true, &report), 0);
    check_result(r, out_path, &report);
    assert_int_equal(report.datasets[COLUMN_AAT].kept, SMALL / 32 * 32);
    assert_int_equal(report.datasets[COLUMN_X].kept, kept);
    d7_repair_report_free(&report);
    recording_free(r);
}

/* ms may only name photons that are there, or the place behind them. */
static void milliseconds_end_with_the_photons(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, true);
    d7_repair_report report;
    d7_page_info page = page_at(r, COLUMN_X, 2900);
    r->bytes[page.offset + 9] = 0xFF; /* the last page of x but one */
    put_source(r, r->bytes, r->n_bytes);
    page = page_at(r, COLUMN_X, 2999);
    memset(r->bytes + page.offset + 8, 0xFF, 12);
    put_source(r, r->bytes, r->n_bytes);
    repair_and_check(r, &report);
    assert_int_equal(report.datasets[COLUMN_X].kept, 2900 / 128 * 128);
    d7_reader *f = open_on(r, out_path);
    uint64_t last, n = items_of(f, COLUMN_MS);
    assert_int_equal(d7_reader_read(f, COLUMN_MS, n - 1, 1, &last, &r->err), 0);
    assert_true(last <= report.datasets[COLUMN_X].kept && n < SMALL / MS_PHOTONS);
    assert_true(r->ms[n] > report.datasets[COLUMN_X].kept);
    d7_reader_free(f);
    d7_repair_report_free(&report);
    recording_free(r);
}

static void column_without_items_does_not_count_when_unused(void **state) {
    (void)state;
    static const d7_dataset three[] = {
        {"/photons/x", D7_UINT16}, {"/photons/y", D7_UINT16}, {"/photons/aat", D7_UINT64}};
    for (int turns = 1; turns < 4; turns++) {
        recording *r = recording_make(10, 10, 1, true);
        d7_writer_options o;
        d7_writer *w;
        d7_repair_report report;
        d7_writer_options_init(&o);
        o.io = disk_io(r->disk);
        o.overwrite = true;
        o.bytes_per_page = 256;
        assert_int_equal(d7_writer_create(&w, source_path, three, 3, &o, &r->err), 0);
        for (int i = 0; i < turns; i++)
            for (uint32_t c = 0; c < 2; c++)
                assert_int_equal(d7_writer_append(w, c, r->x, 128, &r->err), 0);
        assert_int_equal(d7_writer_flush(w, &r->err), 0);
        d7_writer_free(w);
        assert_int_equal(repair(r, false, &report), 0);
        /* After one turn nobody knows whether aat was to come. */
        assert_int_equal(report.datasets[0].kept, turns == 1 ? 0 : turns * 128);
        d7_repair_report_free(&report);
        recording_free(r);
    }
}

/* ---- the middle ---- */

/* Losses of the report must hold the lost page. */
static void check_page_is_gone(const d7_repair_report *report, uint32_t column, const d7_page_info *page) {
    for (size_t i = 0; i < report->n_gaps; i++) {
        const d7_repair_gap *g = &report->gaps[i];
        bool same = d7_group_of(report->datasets[column].name) == D7_GROUP_NONE
                        ? g->dataset_id == column
                        : g->group == D7_GROUP_PHOTONS;
        if (same && g->source_item == page->first_item && g->n_items == page->n_items)
            return;
    }
    fail_msg("no gap of the page at %llu", (unsigned long long)page->offset);
}

static void damaged_page_takes_the_same_items_from_all(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, true);
    for (uint32_t c = 0; c < N_COLUMNS; c++)
        for (uint64_t item = 0; item + 300 < r->items[c]; item += 777) {
            d7_repair_report report;
            put_source(r, r->bytes, r->n_bytes);
            d7_page_info page = page_at(r, c, item);
            uint8_t *bytes = malloc(r->n_bytes);
            memcpy(bytes, r->bytes, r->n_bytes);
            bytes[page.offset + 2] ^= 0x40; /* no message any more */
            put_source(r, bytes, r->n_bytes);
            repair_and_check(r, &report);
            assert_int_equal(report.outcome, D7_REPAIR_WRITTEN);
            assert_int_equal(report.datasets[c].lost, page.n_items);
            if (c != COLUMN_MS)
                check_page_is_gone(&report, c, &page);
            for (uint32_t k = 0; k < N_COLUMNS && c < COLUMN_MS; k++)
                assert_int_equal(report.datasets[k].left_out, k == c || k >= COLUMN_MS ? 0 : page.n_items);
            d7_repair_report_free(&report);
            free(bytes);
        }
    recording_free(r);
}

/* Is the page, which lies in one block, still one, and of another length? */
static bool has_another_length(const uint8_t *bytes, uint32_t column, const d7_page_info *page) {
    static const d7_type types[] = {D7_UINT16, D7_UINT16, D7_UINT64, D7_UINT64};
    const uint8_t *at = bytes + page->offset;
    uint32_t id;
    size_t n;
    return d7_page_count(types[column], at + 2, bytes_load16(at) & 0x3FFF, &id, &n, NULL) == 0 &&
           n != page->n_items;
}

/* Bytes that change so that a page holds more or fewer items. */
static void page_of_another_length_is_lost(void **state) {
    (void)state;
    uint64_t rng = 7;
    size_t n_tried = 0;
    for (int closed = 0; closed < 2; closed++) {
        recording *r = recording_make(SMALL, TURN, 1, closed);
        uint8_t *bytes = malloc(r->n_bytes);
        for (int i = 0; i < 200; i++) {
            d7_repair_report report;
            uint32_t c = (uint32_t)(testing_random(&rng) % (COLUMN_MS + 1));
            put_source(r, r->bytes, r->n_bytes);
            d7_page_info page = page_at(r, c, testing_random(&rng) % (r->items[c] * 3 / 4));
            memcpy(bytes, r->bytes, r->n_bytes);
            uint8_t *at = bytes + page.offset + 12 + testing_random(&rng) % 20;
            if (page.offset % D7_BLOCK_BYTES > D7_BLOCK_BYTES - 300)
                continue;
            if (i % 2)
                memset(at, 0, 8);
            else
                *at ^= 0x80;
            if (!has_another_length(bytes, c, &page))
                continue;
            n_tried++;
            put_source(r, bytes, r->n_bytes);
            repair_and_check(r, &report);
            assert_int_equal(report.outcome, D7_REPAIR_WRITTEN);
            if (c != COLUMN_MS)
                check_page_is_gone(&report, c, &page);
            assert_int_equal(report.datasets[c].lost, page.n_items);
            d7_repair_report_free(&report);
        }
        free(bytes);
        recording_free(r);
    }
    assert_true(n_tried > 200);
}

static void zeroed_blocks_of_closed_files_lose_only_themselves(void **state) {
    (void)state;
    recording *r = recording_make(20000, TURN, 1, true);
    uint8_t *bytes = malloc(r->n_bytes);
    for (size_t block = 1; block + 1 < r->n_bytes / D7_BLOCK_BYTES; block++) {
        d7_repair_report report;
        memcpy(bytes, r->bytes, r->n_bytes);
        memset(bytes + block * D7_BLOCK_BYTES, 0, D7_BLOCK_BYTES);
        put_source(r, bytes, r->n_bytes);
        repair_and_check(r, &report);
        assert_true(report.unknown_from == D7_NO_OFFSET);
        /* A block holds no more than its bytes of pages. */
        assert_true(report.datasets[COLUMN_X].kept + 2 * D7_BLOCK_BYTES / 4 > 20000);
        d7_repair_report_free(&report);
    }
    free(bytes);
    recording_free(r);
}

/* In a file that was never closed the islands tell, and where one is damaged itself its place and the next one do. Only behind
 * the last one may nobody know. */
static void zeroed_blocks_of_open_files_lose_what_nobody_can_place(void **state) {
    (void)state;
    for (uint32_t step = 1; step <= 4; step += 3) {
        recording *r = recording_make(20000, TURN, step, false);
        uint8_t *bytes = malloc(r->n_bytes);
        size_t n_blocks = r->n_bytes / D7_BLOCK_BYTES, last_island = n_blocks / step * step;
        for (size_t block = 1; block < n_blocks; block++) {
            d7_repair_report report;
            memcpy(bytes, r->bytes, r->n_bytes);
            memset(bytes + block * D7_BLOCK_BYTES, 0, D7_BLOCK_BYTES);
            put_source(r, bytes, r->n_bytes);
            repair_and_check(r, &report);
            if (block < last_island)
                assert_true(report.unknown_from == D7_NO_OFFSET);
            else
                assert_true(report.unknown_from == D7_NO_OFFSET ||
                            report.unknown_from / D7_BLOCK_BYTES + 1 >= block);
            /* What came before is kept in any case. */
            assert_true(report.datasets[COLUMN_X].kept > (block - 1) * 20000 / (n_blocks + 1));
            d7_repair_report_free(&report);
        }
        free(bytes);
        recording_free(r);
    }
}

/* One flipped bit anywhere is repaired to something true, or is in what no reader checks: the values. */
static void flipped_bits_make_no_damaged_result(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, true);
    uint8_t *bytes = malloc(r->n_bytes);
    uint64_t rng = 3;
    for (int i = 0; i < 3000 / ONE_OF; i++) {
        d7_repair_report report;
        memcpy(bytes, r->bytes, r->n_bytes);
        bytes[testing_random(&rng) % r->n_bytes] ^= (uint8_t)(1u << testing_random(&rng) % 8);
        put_source(r, bytes, r->n_bytes);
        int rc = repair(r, false, &report);
        if (rc != 0) {
            assert_false(exists_on(r, out_path));
            continue;
        }
        if (report.outcome == D7_REPAIR_WRITTEN) {
            d7_reader *f = open_on(r, out_path);
            assert_int_equal(d7_reader_state(f), D7_STATE_CLOSED);
            check_aligned(f);
            d7_reader_free(f);
        }
        d7_repair_report_free(&report);
    }
    free(bytes);
    recording_free(r);
}

static void pages_stay_as_they_are(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, false);
    d7_repair_report report;
    repair_and_check(r, &report);
    d7_reader *from = open_on(r, source_path), *to = open_on(r, out_path);
    for (uint32_t c = 0; c < N_COLUMNS; c++)
        for (uint64_t i = 0; i < items_of(to, c) / (c < 2 ? 128 : c < 4 ? 32 : 256); i++) {
            const uint8_t *a, *b;
            size_t n_a, n_b;
            assert_int_equal(d7_reader_page_entry(from, c, i, &a, &n_a, &r->err), 0);
            assert_int_equal(d7_reader_page_entry(to, c, i, &b, &n_b, &r->err), 0);
            assert_int_equal(n_a, n_b);
            assert_memory_equal(a, b, n_a);
        }
    d7_reader_free(from);
    d7_reader_free(to);
    d7_repair_report_free(&report);
    recording_free(r);
}

/* ---- blocks of another place, behind the last index ---- */

/* A block that was written elsewhere in the file, as stale sectors are: none of its pages become items of the place. */
static void stale_blocks_add_nothing(void **state) {
    (void)state;
    for (int closed = 0; closed < 2; closed++) {
        recording *r = recording_make(PHOTONS_MAX / 2, TURN, 1000, closed);
        size_t n = r->n_bytes / D7_BLOCK_BYTES;
        assert_true(n >= 5);
        for (size_t from = 0; from < n; from += ONE_OF)
            for (size_t to = 1; to < n; to += 2) {
                d7_repair_report report;
                uint8_t *bytes = malloc(r->n_bytes);
                memcpy(bytes, r->bytes, r->n_bytes);
                memcpy(bytes + to * D7_BLOCK_BYTES, r->bytes + from * D7_BLOCK_BYTES, D7_BLOCK_BYTES);
                /* Without the global index only what is in the blocks tells. */
                if (closed)
                    memset(bytes + r->n_bytes / D7_BLOCK_BYTES * D7_BLOCK_BYTES - 1000, 0, 1000);
                put_source(r, bytes, r->n_bytes);
                if (from != to) {
                    repair_and_check(r, &report);
                    d7_repair_report_free(&report);
                }
                free(bytes);
            }
        recording_free(r);
    }
}

static bool may_miss_pages(const d7_reader *f) {
    d7_problem p;
    for (size_t i = 0; d7_reader_problem(f, i, &p) == 0; i++)
        if (p.code == D7_PROBLEM_BAD_FRAME || p.code == D7_PROBLEM_BAD_ENTRY || p.code == D7_PROBLEM_UNPLACED)
            return true;
    return false;
}

/* Who opens a file without an index is told when a hole may have held more than is counted: else all items are in their place. */
static void a_hole_of_unknown_content_is_told_at_opening(void **state) {
    (void)state;
    recording *r = recording_make(PHOTONS_MAX / 2, TURN, 1000, false);
    size_t n_told = 0, n = r->n_bytes / D7_BLOCK_BYTES;
    for (size_t block = 1; block < n; block++) {
        uint8_t *bytes = malloc(r->n_bytes);
        memcpy(bytes, r->bytes, r->n_bytes);
        memset(bytes + block * D7_BLOCK_BYTES, 0, D7_BLOCK_BYTES);
        put_source(r, bytes, r->n_bytes);
        free(bytes);
        d7_reader *f = open_on(r, source_path);
        bool told = may_miss_pages(f);
        d7_page_info page;
        uint16_t x[128];
        n_told += told;
        for (uint64_t i = 0; !told && d7_reader_page(f, COLUMN_X, i, &page) == 0; i++)
            if (!page.damaged && d7_reader_read(f, COLUMN_X, page.first_item, page.n_items, x, NULL) == 0)
                assert_memory_equal(x, r->x + page.first_item, page.n_items * sizeof *x);
        d7_reader_free(f);
    }
    assert_true(n_told > 0);
    recording_free(r);
}

/* Garbage in the block where the global index begins: the walk does not find that, and nothing is lost that is not counted. */
static void global_index_is_found_behind_damage(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, true);
    size_t index = (size_t)page_at(r, COLUMN_OTHER, r->items[COLUMN_OTHER] - 1).offset,
           block = index / D7_BLOCK_BYTES * D7_BLOCK_BYTES;
    for (size_t at = block + 1; at + 700 < index; at += 211) {
        d7_repair_report report;
        uint8_t *bytes = malloc(r->n_bytes);
        memcpy(bytes, r->bytes, r->n_bytes);
        memset(bytes + at, 0xff, 700);
        put_source(r, bytes, r->n_bytes);
        repair_and_check(r, &report);
        for (uint32_t c = 0; c < N_COLUMNS; c++) {
            const d7_repair_dataset *d = &report.datasets[c];
            assert_true(d->more_lost || d->kept + d->lost + d->left_out == r->items[c]);
        }
        d7_repair_report_free(&report);
        free(bytes);
    }
    recording_free(r);
}

/* Nor is it silent where no index is left. */
static void lost_end_is_told_for_all(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1000, true);
    d7_repair_report report;
    size_t block = (r->n_bytes / D7_BLOCK_BYTES - 1) * D7_BLOCK_BYTES;
    memset(r->bytes + block, 0, D7_BLOCK_BYTES);
    put_source(r, r->bytes, r->n_bytes);
    repair_and_check(r, &report);
    for (uint32_t c = 0; c < N_COLUMNS; c++)
        assert_true(report.datasets[c].more_lost);
    d7_repair_report_free(&report);
    recording_free(r);
}

/* A page that the end of the file cuts is lost too, and its beginning says whose it is. */
static void torn_page_is_told_of_its_column(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1000, false);
    for (uint32_t c = COLUMN_X; c <= COLUMN_AAT; c++) {
        d7_repair_report report;
        put_source(r, r->bytes, r->n_bytes);
        d7_page_info page = page_at(r, c, r->items[c] / 2);
        put_source(r, r->bytes, (size_t)page.offset + 20);
        repair_and_check(r, &report);
        for (uint32_t i = 0; i < N_COLUMNS; i++)
            assert_int_equal(report.datasets[i].more_lost, i == c);
        assert_true(report.torn_bytes > 0);
        d7_repair_report_free(&report);
    }
    recording_free(r);
}

/* In a closed file the other columns tell how many items a last page held that decodes to more. */
static void no_more_is_lost_than_there_was(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1000, true);
    d7_page_info page = page_at(r, COLUMN_Y, r->items[COLUMN_Y] - 1);
    d7_repair_report report;
    size_t at = (size_t)page.offset + 24;
    assert_true(page.n_items > 16 && page.n_items < 128);
    memset(r->bytes + at, 0, 12); /* each a difference of 0 */
    put_source(r, r->bytes, r->n_bytes);
    put_checksums(r);
    repair_and_check(r, &report);
    const d7_repair_dataset *y = &report.datasets[COLUMN_Y];
    assert_true(y->lost > 0);
    assert_int_equal(y->kept + y->lost + y->left_out, r->items[COLUMN_Y]);
    d7_repair_report_free(&report);
    recording_free(r);
}

/* ---- checksums ---- */

/* A page whose values changed and still decode is lost, when the checksums of this very file say so. */
static void changed_page_is_lost(void **state) {
    (void)state;
    for (int closed = 0; closed < 2; closed++) {
        recording *r = recording_make(SMALL, TURN, 1, closed);
        d7_page_info page = page_at(r, COLUMN_Y, 300);
        d7_repair_report report;
        r->bytes[page.offset + 40] ^= 0x02;
        put_source(r, r->bytes, r->n_bytes);
        put_checksums(r);
        repair_and_check(r, &report);
        assert_int_equal(report.n_gaps, 1);
        check_page_is_gone(&report, COLUMN_Y, &page);
        d7_repair_report_free(&report);

        put_source(r, r->bytes, r->n_bytes);
        assert_int_equal(repair(r, false, &report), 0);
        assert_int_equal(report.outcome, closed ? D7_REPAIR_FINE : D7_REPAIR_WRITTEN);
        assert_int_equal(report.n_gaps, 0);
        d7_repair_report_free(&report);
        recording_free(r);
    }
}

static uint8_t *find_text(recording *r, const char *text) {
    uint8_t *at = memmem(r->bytes, r->n_bytes, text, strlen(text));
    assert_non_null(at);
    return at;
}

/* Nor is an attribute kept that an index holds which has changed; one that is the same in another index is. */
static void changed_attribute_is_not_kept(void **state) {
    (void)state;
    for (int closed = 0; closed < 2; closed++) {
        recording *r = recording_make(SMALL, TURN, 1, closed);
        d7_repair_report report;
        find_text(r, "set at the start")[4] ^= 1;
        put_source(r, r->bytes, r->n_bytes);
        put_checksums(r);
        assert_int_equal(repair(r, false, &report), 0);
        assert_int_equal(report.outcome, D7_REPAIR_WRITTEN);
        assert_int_equal(report.lost_attributes, !closed);
        assert_false(report.changed_header);
        d7_reader *f = open_on(r, out_path);
        const char *kept = d7_reader_find_attribute(f, "a");
        if (closed)
            assert_string_equal(kept, "set at the start");
        else
            assert_null(kept);
        d7_reader_free(f);
        d7_repair_report_free(&report);
        recording_free(r);
    }
}

static void changed_header_is_told(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, true);
    d7_repair_report report;
    find_text(r, "/photons/y")[9] ^= 2;
    put_source(r, r->bytes, r->n_bytes);
    put_checksums(r);
    assert_int_equal(repair(r, false, &report), 0);
    assert_int_equal(report.outcome, D7_REPAIR_WRITTEN);
    assert_true(report.changed_header);
    assert_int_equal(report.lost_attributes, 0);
    d7_repair_report_free(&report);
    recording_free(r);
}

static void checksums_of_another_file_tell_nothing(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, false), *other = recording_make(SMALL / 2, 40, 1, false);
    d7_repair_report report;
    put_source(r, other->bytes, other->n_bytes);
    put_checksums(r);
    assert_int_equal(repair(r, false, &report), 0);
    assert_int_equal(report.datasets[COLUMN_X].lost, 0);
    assert_int_equal(report.datasets[COLUMN_X].kept, SMALL / 2 / 128 * 128);
    assert_int_equal(report.n_gaps, 0);
    d7_repair_report_free(&report);
    recording_free(r);
    recording_free(other);
}

/* ---- records ---- */

static void records_get_their_new_places(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, true);
    d7_repair_report report;
    d7_page_info page = page_at(r, COLUMN_Y, 128);
    r->bytes[page.offset + 2] ^= 0x40;
    put_source(r, r->bytes, r->n_bytes);
    repair_and_check(r, &report);
    assert_int_equal(report.n_gaps, 1);
    assert_int_equal(report.gaps[0].item, 128);
    assert_int_equal(report.gaps[0].n_items, 128);
    d7_reader *f = open_on(r, out_path);
    assert_string_equal(d7_reader_find_attribute(f, "photond.gap.00000002"), "{\"item\":100,\"count\":5}");
    assert_string_equal(d7_reader_find_attribute(f, "photond.marker.00000000"),
                        "{\"text\": \"\\\"item\\\": 1\", \"item\": 1372}");
    assert_string_equal(
        d7_reader_find_attribute(f, "photond.gap.00000003"),
        "{\"item\": 128, \"count\": 128, \"cause\": \"repair: damaged pages\", \"monotonic\": null, "
        "\"utc\": null, \"group\": \"photons\"}");
    assert_int_equal(d7_reader_n_attributes(f), 4);
    d7_reader_free(f);
    d7_repair_report_free(&report);
    recording_free(r);
}

static void lost_milliseconds_are_filled(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, true);
    d7_repair_report report;
    d7_page_info page = page_at(r, COLUMN_MS, 40);
    r->bytes[page.offset + 2] ^= 0x40;
    put_source(r, r->bytes, r->n_bytes);
    repair_and_check(r, &report);
    assert_int_equal(report.datasets[COLUMN_MS].filled, 32);
    assert_int_equal(report.datasets[COLUMN_MS].lost, 32);
    assert_int_equal(report.datasets[COLUMN_X].kept, SMALL);
    assert_int_equal(report.n_fills, 1);
    assert_int_equal(report.fills[0].dataset_id, COLUMN_MS);
    assert_int_equal(report.fills[0].item, 32);
    assert_int_equal(report.fills[0].n_items, 32);
    uint64_t ms[SMALL / MS_PHOTONS];
    d7_reader *f = open_on(r, out_path);
    assert_int_equal(items_of(f, COLUMN_MS), SMALL / MS_PHOTONS);
    assert_int_equal(d7_reader_read(f, COLUMN_MS, 0, SMALL / MS_PHOTONS, ms, &r->err), 0);
    for (size_t i = 0; i < SMALL / MS_PHOTONS; i++)
        assert_int_equal(ms[i], r->ms[i >= 32 && i < 64 ? 64 : i]);
    d7_reader_free(f);
    d7_repair_report_free(&report);
    recording_free(r);
}

/* Photons and milliseconds lost at once, at every distance: fills are in order, apart, never behind the last entry that is left, and
 * no value passes those around it. */
static void fills_stay_between_their_neighbours(void **state) {
    (void)state;
    for (size_t k = 0; k + 1 < SMALL / MS_PHOTONS / 32; k++) {
        recording *r = recording_make(SMALL, TURN, 1, k % 2);
        d7_page_info first = page_at(r, COLUMN_MS, 32 * k), second = page_at(r, COLUMN_MS, 32 * k + 32),
                     x = page_at(r, COLUMN_X, (32 * k + 40) * MS_PHOTONS % SMALL);
        d7_repair_report report;
        r->bytes[first.offset + 2] ^= 0x40;
        r->bytes[x.offset + 2] ^= 0x40;
        if (k % 3)
            r->bytes[second.offset + 2] ^= 0x40;
        put_source(r, r->bytes, r->n_bytes);
        assert_int_equal(repair(r, false, &report), 0);
        d7_reader *f = open_on(r, out_path);
        uint64_t n = items_of(f, COLUMN_MS), ms[SMALL / MS_PHOTONS], end = 0;
        assert_int_equal(d7_reader_read(f, COLUMN_MS, 0, (size_t)n, ms, &r->err), 0);
        for (size_t i = 0; i < report.n_fills; i++) {
            assert_true(report.fills[i].item > end || i == 0);
            end = report.fills[i].item + report.fills[i].n_items;
            assert_true(end < n);
        }
        for (size_t i = 1; i < n; i++)
            assert_true(ms[i - 1] <= ms[i]);
        assert_true(n == 0 || ms[n - 1] <= report.datasets[COLUMN_X].kept);
        d7_reader_free(f);
        d7_repair_report_free(&report);
        recording_free(r);
    }
}

/* ---- what is refused, and faults ---- */

static void file_that_is_being_written_is_refused(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, false);
    const d7_io *io = disk_io(r->disk);
    d7_repair_options o = repair_options(r);
    d7_repair_report report = {0};
    void *file;
    assert_int_equal(io->open(io->ctx, source_path, D7_IO_WRITE, 0, &file), 0);
    assert_int_equal(io->lock(io->ctx, file), 0);
    assert_int_equal(repair(r, false, &report), D7_ERR_LOCKED);
    assert_int_equal(d7_repair_in_place(source_path, &o, &report, &r->err), D7_ERR_LOCKED);
    assert_non_null(strstr(r->err.text, source_path));
    assert_null(report.datasets);
    assert_false(exists_on(r, out_path));
    io->close(io->ctx, file);
    recording_free(r);
}

static void result_that_exists_is_not_replaced(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, false);
    d7_repair_report report;
    disk_put(r->disk, out_path, "mine", 4);
    assert_int_equal(repair(r, false, &report), D7_ERR_EXISTS);
    size_t n;
    assert_memory_equal(disk_content(r->disk, out_path, &n), "mine", 4);
    d7_repair_options o = repair_options(r);
    assert_int_equal(d7_repair(source_path, source_path, &o, &report, &r->err), D7_ERR_EXISTS);
    assert_memory_equal(disk_content(r->disk, source_path, &n), r->bytes, r->n_bytes);
    assert_int_equal(d7_repair(source_path, "", &o, &report, &r->err), D7_ERR_ARG);
    assert_int_equal(d7_repair("nothing.photons", out_path, &o, &report, &r->err), D7_ERR_NOTFOUND);
    recording_free(r);
}

/* Whichever call fails, nothing is left and the error is the fault's. */
static void fault_on_the_way_leaves_nothing(void **state) {
    (void)state;
    static const int faults[][2] = {{28 /* ENOSPC */, D7_ERR_NOSPACE}, {5 /* EIO */, D7_ERR_IO}};
    recording *r = recording_make(20000, TURN, 1, false);
    for (size_t k = 0; k < 2; k++)
        for (long at = 1;; at++) {
            d7_repair_report report;
            put_source(r, r->bytes, r->n_bytes);
            disk_set_faults(r->disk,
                            &(disk_faults){.dies_after = -1, .fails_at = at, .fail_errno = faults[k][0]});
            int rc = repair(r, false, &report);
            disk_set_faults(r->disk, &(disk_faults){.dies_after = -1});
            if (rc == 0) {
                assert_true(at > 3);
                d7_repair_report_free(&report);
                break;
            }
            assert_true(rc == faults[k][1] || rc == D7_ERR_IO);
            assert_false(exists_on(r, out_path));
            size_t n;
            assert_memory_equal(disk_content(r->disk, source_path, &n), r->bytes, r->n_bytes);
        }
    recording_free(r);
}

static int stop_at(void *ctx, uint64_t done, uint64_t total) {
    long *calls = ctx;
    assert_true(done <= total);
    return --*calls == 0;
}

static void stopping_leaves_nothing(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, false);
    bool done = false;
    for (long at = 1; !done; at += 3) {
        put_source(r, r->bytes, r->n_bytes);
        d7_repair_options o = repair_options(r);
        d7_repair_report report;
        long calls = at;
        o.progress = stop_at;
        o.progress_ctx = &calls;
        int rc = d7_repair(source_path, out_path, &o, &report, &r->err);
        done = rc == 0;
        assert_true(done || rc == D7_ERR_CANCELLED);
        assert_int_equal(exists_on(r, out_path), done);
        if (done)
            d7_repair_report_free(&report);
    }
    recording_free(r);
}

/* A table of memory that fails. */
typedef struct heap {
    long calls, fail_at, outstanding;
} heap;

static void *heap_resize(void *ctx, void *old, size_t bytes) {
    heap *h = ctx;
    if (++h->calls >= h->fail_at)
        return NULL;
    h->outstanding += old == NULL;
    return realloc(old, bytes);
}

static void heap_release(void *ctx, void *old) {
    heap *h = ctx;
    h->outstanding -= old != NULL;
    free(old);
}

static void lack_of_memory_leaves_nothing(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, true);
    d7_page_info page = page_at(r, COLUMN_Y, 128);
    r->bytes[page.offset + 2] ^= 0x40;
    bool done = false;
    for (long at = 1; !done; at++) {
        heap h = {.fail_at = at};
        d7_alloc alloc = {.ctx = &h, .resize = heap_resize, .release = heap_release};
        put_source(r, r->bytes, r->n_bytes);
        d7_repair_options o = repair_options(r);
        d7_repair_report report;
        o.alloc = &alloc;
        int rc = d7_repair(source_path, out_path, &o, &report, &r->err);
        done = rc == 0;
        if (!done && rc != D7_ERR_NOMEM)
            fail_msg("allocation %ld: %s", at, r->err.text);
        assert_int_equal(exists_on(r, out_path), done);
        if (done)
            d7_repair_report_free(&report);
        assert_int_equal(h.outstanding, 0);
    }
    recording_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_file_is_left_alone),
        cmocka_unit_test(file_cut_at_any_byte_is_closed),
        cmocka_unit_test(ragged_ends_are_trimmed_or_kept),
        cmocka_unit_test(milliseconds_end_with_the_photons),
        cmocka_unit_test(column_without_items_does_not_count_when_unused),
        cmocka_unit_test(damaged_page_takes_the_same_items_from_all),
        cmocka_unit_test(page_of_another_length_is_lost),
        cmocka_unit_test(zeroed_blocks_of_closed_files_lose_only_themselves),
        cmocka_unit_test(zeroed_blocks_of_open_files_lose_what_nobody_can_place),
        cmocka_unit_test(flipped_bits_make_no_damaged_result),
        cmocka_unit_test(pages_stay_as_they_are),
        cmocka_unit_test(torn_page_is_told_of_its_column),
        cmocka_unit_test(no_more_is_lost_than_there_was),
        cmocka_unit_test(changed_page_is_lost),
        cmocka_unit_test(stale_blocks_add_nothing),
        cmocka_unit_test(a_hole_of_unknown_content_is_told_at_opening),
        cmocka_unit_test(global_index_is_found_behind_damage),
        cmocka_unit_test(lost_end_is_told_for_all),
        cmocka_unit_test(changed_attribute_is_not_kept),
        cmocka_unit_test(changed_header_is_told),
        cmocka_unit_test(checksums_of_another_file_tell_nothing),
        cmocka_unit_test(records_get_their_new_places),
        cmocka_unit_test(lost_milliseconds_are_filled),
        cmocka_unit_test(fills_stay_between_their_neighbours),
        cmocka_unit_test(file_that_is_being_written_is_refused),
        cmocka_unit_test(result_that_exists_is_not_replaced),
        cmocka_unit_test(fault_on_the_way_leaves_nothing),
        cmocka_unit_test(stopping_leaves_nothing),
        cmocka_unit_test(lack_of_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Repair in place: cuts at every byte, interrupted at every change, by a kill and by a power cut, and what is refused. */
#include "repairing.h"
#include "testing.h"

enum { SMALL = 3000, TURN = 170 };

static const char cut_path[] = "run.photons.cut.0", tail_path[] = "run.photons.tail";

static int close_it(recording *r, d7_repair_report *report) {
    d7_repair_options o = repair_options(r);
    return d7_repair_in_place(source_path, &o, report, &r->err);
}

/* Every page of the file before is in the file now, at the same place with the same bytes. */
static void check_untouched(recording *r, size_t n) {
    d7_reader *f = open_on(r, source_path);
    size_t n_now;
    const uint8_t *now = disk_content(r->disk, source_path, &n_now);
    uint64_t end = 0;
    for (uint32_t c = 0; c < N_COLUMNS; c++) {
        d7_page_info page;
        for (uint64_t i = 0; d7_reader_page(f, c, i, &page) == 0; i++) {
            const uint8_t *entry;
            size_t bytes;
            assert_int_equal(d7_reader_page_entry(f, c, i, &entry, &bytes, &r->err), 0);
            end = page.offset + bytes > end ? page.offset + bytes : end;
        }
    }
    assert_true(end <= n);
    assert_memory_equal(now, r->bytes, (size_t)end);
    d7_reader_free(f);
}

static void cut_file_is_closed_in_its_place(void **state) {
    (void)state;
    for (uint32_t step = 1; step < 4; step += 2) {
        recording *r = recording_make(SMALL, TURN, step, true);
        bool readable = false;
        for (size_t n = 0; n < r->n_bytes; n += step == 1 ? ONE_OF : 19) {
            d7_repair_report report;
            put_source(r, r->bytes, n);
            int rc = close_it(r, &report);
            if (rc == D7_ERR_TRUNCATED && !readable)
                continue;
            readable = true;
            if (rc != 0)
                fail_msg("cut at %zu: %s", n, r->err.text);
            assert_int_equal(report.outcome, D7_REPAIR_IN_PLACE);
            if (n % 61 == 0) {
                check_result(r, source_path, NULL);
                check_untouched(r, n);
            }
            size_t n_cut = 0, now;
            const uint8_t *cut = disk_content(r->disk, cut_path, &n_cut);
            assert_int_equal(n_cut, report.cut_bytes);
            if (cut)
                assert_memory_equal(cut, r->bytes + n - n_cut, n_cut);
            d7_repair_report_free(&report);
            disk_content(r->disk, source_path, &now);
            uint8_t *before = malloc(now);
            memcpy(before, disk_content(r->disk, source_path, &now), now);
            assert_int_equal(close_it(r, &report), 0);
            assert_int_equal(report.outcome, D7_REPAIR_FINE);
            assert_memory_equal(disk_content(r->disk, source_path, &n_cut), before, now);
            assert_int_equal(n_cut, now);
            free(before);
            d7_repair_report_free(&report);
        }
        recording_free(r);
    }
}

/* What the writer had closed, cut in its end, becomes the very file that it was. */
static void closing_that_was_interrupted_is_finished(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, true);
    d7_page_info last = page_at(r, COLUMN_OTHER, SMALL / 3 - 1);
    size_t index_at = (size_t)last.offset + 300, same = 0, now;
    for (size_t n = index_at; n < r->n_bytes; n += 7) {
        d7_repair_report report;
        put_source(r, r->bytes, n);
        assert_int_equal(close_it(r, &report), 0);
        const uint8_t *bytes = disk_content(r->disk, source_path, &now);
        same += now == r->n_bytes && memcmp(bytes, r->bytes, now) == 0;
        d7_repair_report_free(&report);
    }
    assert_true(same > 0);
    recording_free(r);
}

static void bytes_behind_the_end_are_cut(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, true);
    uint8_t *longer = calloc(1, r->n_bytes + 40000);
    memcpy(longer, r->bytes, r->n_bytes);
    for (size_t more = 1; more < 40000; more += 4099) {
        d7_repair_report report;
        size_t now;
        longer[r->n_bytes + more - 1] = 0x55;
        put_source(r, longer, r->n_bytes + more);
        assert_int_equal(close_it(r, &report), 0);
        const uint8_t *bytes = disk_content(r->disk, source_path, &now);
        assert_int_equal(now, r->n_bytes);
        assert_memory_equal(bytes, r->bytes, now);
        assert_int_equal(report.cut_bytes, more);
        d7_repair_report_free(&report);
    }
    free(longer);
    recording_free(r);
}

/* ---- interrupted ---- */

/* A cut in each kind of place: in a page, in the global index, in the epilogue, after the last page, and junk. */
static void each_interruption(uint64_t seed, bool power) {
    recording *r = recording_make(SMALL, TURN, 1, true);
    d7_page_info x = page_at(r, COLUMN_X, 1500), last = page_at(r, COLUMN_OTHER, SMALL / 3 - 1);
    const size_t cuts[] = {(size_t)x.offset, (size_t)x.offset + 50, (size_t)last.offset + 30, r->n_bytes - 20,
                           r->n_bytes - 60};
    for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++)
        for (long at = 0;; at++) {
            d7_repair_report report;
            put_source(r, r->bytes, cuts[k]);
            for (uint64_t i = 0; i < seed; i++)
                disk_random(r->disk, 2);
            disk_set_faults(r->disk, &(disk_faults){.dies_after = at});
            int rc = close_it(r, &report);
            bool died = disk_dead(r->disk);
            if (rc == 0)
                d7_repair_report_free(&report);
            (power ? disk_power_cut : disk_kill)(r->disk);
            disk_set_faults(r->disk, &(disk_faults){.dies_after = -1});
            if (close_it(r, &report) != 0)
                fail_msg("cut %zu, change %ld: %s", k, at, r->err.text);
            check_result(r, source_path, NULL);
            check_untouched(r, cuts[k]);
            d7_repair_report_free(&report);
            if (!died)
                break;
        }
    recording_free(r);
}

static void killed_at_each_change_it_goes_on(void **state) {
    (void)state;
    each_interruption(0, false);
}

static void power_cut_at_each_change_it_goes_on(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++)
        each_interruption(seed, true);
}

static void full_disk_leaves_a_file_cut_short(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, true);
    d7_page_info x = page_at(r, COLUMN_X, 1500);
    for (long at = 1;; at++) {
        d7_repair_report report;
        put_source(r, r->bytes, (size_t)x.offset + 50);
        disk_set_faults(r->disk,
                        &(disk_faults){.dies_after = -1, .fails_at = at, .fail_errno = 28 /* ENOSPC */});
        int rc = close_it(r, &report);
        disk_set_faults(r->disk, &(disk_faults){.dies_after = -1});
        if (rc == 0) {
            d7_repair_report_free(&report);
            break;
        }
        assert_true(rc == D7_ERR_NOSPACE || rc == D7_ERR_IO);
        assert_int_equal(close_it(r, &report), 0);
        check_result(r, source_path, NULL);
        d7_repair_report_free(&report);
    }
    recording_free(r);
}

/* ---- refused ---- */

static void check_refused(recording *r, const void *bytes, size_t n, const char *why) {
    d7_repair_report report;
    size_t now;
    assert_int_equal(close_it(r, &report), D7_ERR_STATE);
    if (!strstr(r->err.text, why))
        fail_msg("%s", r->err.text);
    assert_memory_equal(disk_content(r->disk, source_path, &now), bytes, n);
    assert_int_equal(now, n);
    assert_false(exists_on(r, cut_path));
}

static void damage_before_the_end_is_refused(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, false);
    d7_page_info page = page_at(r, COLUMN_Y, 700);
    r->bytes[page.offset + 20] = 0x80;
    r->bytes[page.offset + 21] ^= 0x80;
    memset(r->bytes + page.offset + 30, 0xFF, 11);
    put_source(r, r->bytes, r->n_bytes);
    check_refused(r, r->bytes, r->n_bytes, "write a repaired copy");
    recording_free(r);
}

static void tail_beside_is_refused(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, false);
    disk_put(r->disk, tail_path, "any", 3);
    check_refused(r, r->bytes, r->n_bytes, "tail");
    recording_free(r);
}

/* The file ends in a global index of other bytes than ours, whose attributes nothing else has. */
static void index_of_another_writer_is_refused(void **state) {
    (void)state;
    recording *r = recording_make(SMALL, TURN, 1, true);
    d7_reader *f = open_on(r, source_path);
    uint64_t last = 0;
    for (uint32_t c = 0; c < N_COLUMNS; c++) {
        d7_page_info page;
        for (uint64_t i = 0; d7_reader_page(f, c, i, &page) == 0; i++)
            last = page.offset > last ? page.offset : last;
    }
    d7_reader_free(f);
    /* The marker's value, far behind in the index: "1" becomes "2". */
    for (size_t i = r->n_bytes - 1; i > last; i--)
        if (memcmp(r->bytes + i, "d7.global_index", 15) == 0) {
            r->bytes[i + 17] = '2';
            break;
        }
    put_source(r, r->bytes, r->n_bytes - 50);
    check_refused(r, r->bytes, r->n_bytes - 50, "another writer");
    d7_repair_report report;
    assert_int_equal(repair(r, false, &report), 0);
    check_result(r, out_path, &report);
    d7_repair_report_free(&report);
    recording_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_file_is_closed_in_its_place),
        cmocka_unit_test(closing_that_was_interrupted_is_finished),
        cmocka_unit_test(bytes_behind_the_end_are_cut),
        cmocka_unit_test(killed_at_each_change_it_goes_on),
        cmocka_unit_test(power_cut_at_each_change_it_goes_on),
        cmocka_unit_test(full_disk_leaves_a_file_cut_short),
        cmocka_unit_test(damage_before_the_end_is_refused),
        cmocka_unit_test(tail_beside_is_refused),
        cmocka_unit_test(index_of_another_writer_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

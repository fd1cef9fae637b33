/* Repair of a file that has a tail beside: what only the tail holds is in the new file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recording.h"

static const char out_path[] = "out.photons";

static int repair(recording *r, d7_repair_report *report, d7_error *err) {
    d7_repair_options o;
    d7_repair_options_init(&o);
    o.io = disk_io(r->disk);
    return d7_repair(recording_path, out_path, &o, report, err);
}

static void check_column(d7_reader *f, uint32_t ds, const void *all, size_t width, uint64_t n) {
    uint8_t *got = malloc((size_t)n * width + 1);
    d7_dataset_info info;
    assert_int_equal(d7_reader_dataset(f, ds, &info), 0);
    assert_int_equal(info.items, n);
    assert_int_equal(info.items, info.paged_items);
    assert_int_equal(d7_reader_read(f, ds, 0, (size_t)n, got, NULL), 0);
    assert_memory_equal(got, all, (size_t)n * width);
    free(got);
}

/* Everything up to that batch, in pages. */
static void check_out(recording *r, uint64_t batch) {
    d7_reader_options o = {.io = disk_io(r->disk)};
    d7_reader *f;
    d7_verify_summary sum;
    assert_int_equal(d7_reader_open(&f, out_path, &o, NULL), 0);
    assert_int_equal(d7_reader_verify(f, NULL, NULL, NULL, NULL, &sum, NULL), 0);
    assert_int_equal(sum.damages, 0);
    check_column(f, 0, r->x, 2, batch * RECORDING_BATCH);
    check_column(f, 1, r->ms, 8, batch);
    for (uint64_t i = 0; i < r->n_notes; i++)
        assert_non_null(d7_reader_find_attribute(f, r->notes[i]));
    d7_reader_free(f);
}

static void what_only_the_tail_holds_is_included(void **state) {
    (void)state;
    unsigned included = 0;
    for (uint64_t n = 1; n < 70; n += 4) {
        recording *r = recording_new();
        d7_repair_report report;
        d7_error err;
        recording_put_note(r);
        recording_put_batches(r, n);
        recording_put_mark(r);
        recording_stop(r);
        if (repair(r, &report, &err) != 0)
            fail_msg("%s", err.text);
        check_out(r, n);
        included += report.tail_included;
        d7_repair_report_free(&report);
        recording_free(r);
    }
    assert_true(included > 10);
}

/* Slots that count on more than there is are passed over; whatever is taken, it is the beginning of what was recorded. */
static void only_what_is_true_of_a_tail_is_included(void **state) {
    (void)state;
    recording *all = recording_new_stopped();
    size_t bytes = recording_size_of(all, recording_path);
    recording_free(all);
    for (size_t n = 200; n < bytes; n += 23) {
        recording *r = recording_new_stopped();
        d7_repair_report report;
        d7_error err;
        recording_shorten(r, recording_path, n);
        if (repair(r, &report, &err) != 0)
            fail_msg("%s", err.text);
        d7_reader_options o = {.io = disk_io(r->disk)};
        d7_reader *f;
        assert_int_equal(d7_reader_open(&f, out_path, &o, NULL), 0);
        check_column(f, 0, r->x, 2, report.datasets[0].kept);
        check_column(f, 1, r->ms, 8, report.datasets[1].kept);
        d7_reader_free(f);
        d7_repair_report_free(&report);
        recording_free(r);
    }
}

/* The slots tell how much there was, and that what they count on is not there any more. */
static void what_a_tail_that_is_not_true_told_of_is_lost(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_repair_report report;
    d7_tail_slot newest;
    d7_error err;
    recording_place_of(r, 35, &newest);
    recording_shorten(r, recording_path, (size_t)newest.claim.length);
    assert_int_equal(repair(r, &report, &err), 0);
    assert_true(report.tail_included);
    assert_string_equal(report.tail_fault, "");
    assert_false(report.datasets[0].more_lost || report.datasets[1].more_lost);
    d7_repair_report_free(&report);
    disk_io(r->disk)->remove(disk_io(r->disk)->ctx, out_path);
    recording_spoil(r, recording_path, (size_t)newest.claim.base + 1);
    assert_int_equal(repair(r, &report, &err), 0);
    assert_non_null(strstr(report.tail_fault, "are not what was written"));
    assert_true(report.datasets[0].more_lost && report.datasets[1].more_lost);
    d7_repair_report_free(&report);
    recording_free(r);
}

static void recorder_recovers_it_in_place(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_repair_options o;
    d7_repair_report report;
    d7_error err;
    d7_repair_options_init(&o);
    o.io = disk_io(r->disk);
    uint32_t before = recording_sum_of(r, recording_path);
    assert_int_equal(d7_repair_in_place(recording_path, &o, &report, &err), D7_ERR_STATE);
    assert_int_equal(recording_sum_of(r, recording_path), before);
    assert_int_equal(repair(r, &report, &err), 0);
    d7_repair_report_free(&report);
    d7_tail_recovery recovery;
    assert_int_equal(recording_recover(r, &recovery, &err), 0);
    recording_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_only_the_tail_holds_is_included),
        cmocka_unit_test(only_what_is_true_of_a_tail_is_included),
        cmocka_unit_test(what_a_tail_that_is_not_true_told_of_is_lost),
        cmocka_unit_test(recorder_recovers_it_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

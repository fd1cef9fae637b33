/* Reading along: the newest true slot of a tail that someone else writes, or that a crash left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recording.h"

static d7_tail_reader *open_reader(const recording *r) {
    d7_reader_options options = {.io = disk_io(r->disk)};
    d7_tail_reader *reader = NULL;
    assert_int_equal(d7_tail_reader_open(&reader, recording_path, &options, NULL), 0);
    return reader;
}

static void a_reader_sees_each_slot(void **state) {
    (void)state;
    recording *r = recording_new();
    d7_tail_reader *reader = open_reader(r);
    const d7_tail_slot *slot;
    assert_int_equal(d7_tail_reader_peek(reader, &slot, NULL), 0);
    recording_check_holds(r, slot, 0);
    for (int i = 0; i < 12; i++) {
        recording_put_batches(r, 3);
        if (i % 4 == 3)
            recording_put_sync(r);
        else
            recording_put_mark(r);
        assert_int_equal(d7_tail_reader_peek(reader, &slot, NULL), 0);
        recording_check_holds(r, slot, r->batch);
    }
    d7_tail_reader_free(reader);
    recording_free(r);
}

static void a_reader_takes_the_slot_before_a_torn_one(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_reader *reader = open_reader(r);
    const d7_tail_slot *slot;
    d7_tail_slot s;
    recording_spoil(r, recording_tail_path, recording_place_of(r, 35, &s) + 200);
    assert_int_equal(d7_tail_reader_peek(reader, &slot, NULL), 0);
    assert_int_equal(slot->sequence, 30);
    recording_spoil(r, recording_path, (size_t)slot->claim.length - 1);
    assert_int_equal(d7_tail_reader_peek(reader, &slot, NULL), 0);
    assert_int_equal(slot->sequence, 30); /* the checksum up to here was known */
    d7_tail_reader_free(reader);
    reader = open_reader(r);
    assert_int_equal(d7_tail_reader_peek(reader, &slot, NULL), 0);
    assert_int_equal(slot->sequence, 20);
    recording_spoil(r, recording_tail_path, recording_place_of(r, 20, &s) + 200);
    assert_int_equal(d7_tail_reader_peek(reader, &slot, NULL), D7_ERR_NOTFOUND);
    d7_tail_reader_free(reader);
    recording_free(r);
}

static void a_reader_stays_with_a_recovered_file(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_reader *reader = open_reader(r);
    const d7_tail_slot *slot;
    d7_tail_slot s;
    assert_int_equal(d7_tail_reader_peek(reader, &slot, NULL), 0);
    assert_int_equal(slot->sequence, 35);
    recording_place_of(r, 35, &s);
    d7_tail_recover_options o = recording_options_for(r);
    d7_tail_recovery recovery;
    o.sequence_limit = 20; /* cut behind what the reader has seen */
    assert_int_equal(recording_recover_with(r, &o, &recovery, NULL), 0);
    assert_int_equal(d7_tail_reader_peek(reader, &slot, NULL), 0);
    recording_check_holds(r, slot, 20);
    d7_tail_reader_free(reader);
    recording_free(r);
}

static void a_reader_reads_what_was_added_only(void **state) {
    (void)state;
    recording *r = recording_new();
    d7_tail_reader *reader = open_reader(r);
    const d7_tail_slot *slot;
    recording_put_batches(r, 100);
    recording_put_mark(r);
    assert_int_equal(d7_tail_reader_peek(reader, &slot, NULL), 0);
    uint64_t before = disk_bytes_read(r->disk, recording_path);
    recording_put_batches(r, 1);
    recording_put_mark(r);
    uint64_t writers = disk_bytes_read(r->disk, recording_path) - before;
    assert_int_equal(writers, 0);
    assert_int_equal(d7_tail_reader_peek(reader, &slot, NULL), 0);
    assert_true(disk_bytes_read(r->disk, recording_path) - before < slot->identity.head_bytes + 300);
    d7_tail_reader_free(reader);
    recording_free(r);
}

static void a_reader_without_a_tail_is_told(void **state) {
    (void)state;
    recording *r = recording_new();
    d7_reader_options options = {.io = disk_io(r->disk)};
    d7_tail_reader *reader = NULL;
    recording_stop(r);
    options.io->remove(options.io->ctx, recording_tail_path);
    assert_int_equal(d7_tail_reader_open(&reader, recording_path, &options, NULL), D7_ERR_NOTFOUND);
    assert_int_equal(d7_tail_reader_open(&reader, "b.photons", &options, NULL), D7_ERR_NOTFOUND);
    assert_int_equal(d7_tail_reader_open(&reader, "", &options, NULL), D7_ERR_ARG);
    assert_null(reader);
    d7_tail_reader_free(NULL);
    recording_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_sees_each_slot),
        cmocka_unit_test(a_reader_takes_the_slot_before_a_torn_one),
        cmocka_unit_test(a_reader_stays_with_a_recovered_file),
        cmocka_unit_test(a_reader_reads_what_was_added_only),
        cmocka_unit_test(a_reader_without_a_tail_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

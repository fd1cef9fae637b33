/* Going on after a crash: what is appended then gives the bytes that it would have given without. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "memio.h"
#include "recording.h"

enum { STEPS = 30, STEP_BATCHES = 50 };

/* One step of a recording: batches, and now and then an attribute, set before or after them, or put at once. */
static void put_step(recording *r, int step) {
    if (step % 3 == 0)
        recording_put_note(r);
    recording_put_batches(r, STEP_BATCHES);
    if (step % 4 == 1)
        recording_put_note(r);
    if (step % 8 == 5)
        assert_int_equal(d7_writer_put_attributes(r->writer, NULL), 0);
}

/* The file when nothing happens. */
static uint8_t *undisturbed(size_t *ret_bytes) {
    recording *r = recording_new();
    for (int step = 0; step < STEPS; step++)
        put_step(r, step);
    assert_int_equal(d7_writer_close(r->writer, NULL), 0);
    uint8_t *file = recording_copy_of(r, recording_path, ret_bytes);
    assert_true(*ret_bytes > 4 * D7_BLOCK_BYTES);
    recording_free(r);
    return file;
}

/* The program is killed after `stop` steps and a bit of the next one, and goes on. */
static void crash_and_go_on(recording *r, int stop) {
    d7_tail_recovery recovery;
    recording_put_mark(r);
    uint64_t n_notes = r->n_notes;
    recording_put_note(r);
    recording_put_batches(r, 7);
    assert_int_equal(d7_writer_flush(r->writer, NULL), 0);
    recording_stop(r);
    assert_int_equal(recording_recover(r, &recovery, NULL), 0);
    recording_resume(r);
    assert_int_equal(r->batch, (uint64_t)stop * STEP_BATCHES);
    r->n_notes = n_notes;
}

static void check_file(const recording *r, const uint8_t *expected, size_t n) {
    assert_int_equal(recording_size_of(r, recording_path), n);
    size_t m;
    assert_memory_equal(disk_content(r->disk, recording_path, &m), expected, n);
}

static void the_same_appends_give_the_same_bytes(void **state) {
    (void)state;
    size_t n;
    uint8_t *expected = undisturbed(&n);
    for (int stop = 0; stop <= STEPS; stop++) {
        recording *r = recording_new();
        for (int step = 0; step < stop; step++)
            put_step(r, step);
        crash_and_go_on(r, stop);
        for (int step = stop; step < STEPS; step++)
            put_step(r, step);
        assert_int_equal(d7_writer_close(r->writer, NULL), 0);
        check_file(r, expected, n);
        recording_free(r);
    }
    free(expected);
}

static void a_crash_at_every_step_changes_no_byte(void **state) {
    (void)state;
    size_t n;
    uint8_t *expected = undisturbed(&n);
    recording *r = recording_new();
    for (int step = 0; step < STEPS; step++) {
        put_step(r, step);
        crash_and_go_on(r, step + 1);
        if (step % 7 == 0)
            recording_put_sync(r);
    }
    assert_int_equal(d7_writer_close(r->writer, NULL), 0);
    check_file(r, expected, n);
    recording_free(r);
    free(expected);
}

/* A reader that hops from island to island passes entries of attributes alone. */
static void attributes_that_went_ahead_are_found_by_readers(void **state) {
    (void)state;
    recording *r = recording_new();
    for (int step = 0; step < STEPS; step++)
        put_step(r, step);
    assert_int_equal(d7_writer_flush(r->writer, NULL), 0);
    size_t held = r->n_notes - d7_writer_unlisted_attributes(r->writer);
    d7_reader_options options = {.io = disk_io(r->disk)};
    d7_reader *reader = NULL;
    assert_int_equal(d7_reader_open(&reader, recording_path, &options, NULL), 0);
    assert_int_equal(d7_reader_n_attributes(reader), 1 + held);
    for (size_t i = 0; i < held; i++)
        assert_non_null(d7_reader_find_attribute(reader, r->notes[i]));
    d7_reader_free(reader);
    recording_free(r);
}

/* ---- what is refused ---- */

static int resume_with(recording *r, const d7_tail_slot *slot, const d7_alloc *alloc, d7_error *err) {
    d7_writer_options options;
    d7_writer_options_init(&options);
    options.io = d7_tail_io(r->tail);
    options.alloc = alloc;
    d7_writer *w = NULL;
    int rc = d7_writer_resume(&w, recording_path, slot, &options, err);
    d7_writer_free(w);
    return rc;
}

static recording *recovered(void) {
    recording *r = recording_new();
    d7_tail_recovery recovery;
    for (int step = 0; step < STEPS; step++)
        put_step(r, step);
    recording_put_mark(r);
    recording_stop(r);
    assert_int_equal(recording_recover(r, &recovery, NULL), 0);
    return r;
}

static void a_file_that_the_slot_does_not_tell_of_is_refused(void **state) {
    (void)state;
    recording *r = recovered();
    d7_error err;
    d7_tail_slot slot = *d7_tail_recovered(r->tail);
    assert_int_equal(resume_with(r, &slot, NULL, NULL), 0);
    assert_int_equal(resume_with(r, NULL, NULL, NULL), D7_ERR_ARG);
    slot.claim.length--;
    assert_int_equal(resume_with(r, &slot, NULL, &err), D7_ERR_CORRUPT);
    assert_non_null(strstr(err.text, "recover it first"));
    slot = *d7_tail_recovered(r->tail);
    slot.bytes_per_page = 32;
    assert_int_equal(resume_with(r, &slot, NULL, NULL), D7_ERR_CORRUPT);
    recording_free(r);
}

static void a_damaged_file_is_refused(void **state) {
    (void)state;
    recording *r = recovered();
    d7_error err;
    d7_tail_slot slot = *d7_tail_recovered(r->tail);
    recording_spoil(r, recording_path, (size_t)slot.claim.length - 20);
    size_t before = recording_size_of(r, recording_path);
    int rc = resume_with(r, &slot, NULL, &err);
    assert_true(rc == 0 || rc == D7_ERR_CORRUPT); /* a bit of a value is no damage */
    recording_shorten(r, recording_path, (size_t)slot.claim.length - 1);
    assert_int_equal(resume_with(r, &slot, NULL, NULL), D7_ERR_CORRUPT);
    slot.claim.length--;
    assert_int_equal(resume_with(r, &slot, NULL, &err), D7_ERR_CORRUPT);
    assert_non_null(strstr(err.text, "damaged"));
    assert_int_equal(recording_size_of(r, recording_path), before - 1);
    recording_free(r);
}

static void a_file_that_is_held_is_refused(void **state) {
    (void)state;
    recording *r = recovered();
    const d7_io *io = disk_io(r->disk);
    void *other;
    assert_int_equal(io->open(io->ctx, recording_path, D7_IO_WRITE, 0, &other), 0);
    assert_int_equal(io->lock(io->ctx, other), 0);
    assert_int_equal(resume_with(r, d7_tail_recovered(r->tail), NULL, NULL), D7_ERR_LOCKED);
    io->close(io->ctx, other);
    assert_int_equal(resume_with(r, d7_tail_recovered(r->tail), NULL, NULL), 0);
    recording_free(r);
}

/* A caller that encodes its pages itself keeps the slot's values, and appends them as part of a page. */
static void whole_pages_leave_the_values_to_the_caller(void **state) {
    (void)state;
    recording *r = recovered();
    const d7_tail_slot *slot = d7_tail_recovered(r->tail);
    d7_tail_dataset x = {0};
    uint16_t values[8192];
    uint8_t entry[32768];
    size_t bytes;
    assert_int_equal(d7_tail_slot_dataset(slot, 0, &x), 0);
    assert_in_range(x.n_partial, 1, 8191);
    assert_int_equal(d7_tail_slot_values(slot, 0, 0, x.n_partial, values), 0);
    d7_writer_options options;
    d7_writer_options_init(&options);
    options.io = d7_tail_io(r->tail);
    options.whole_pages = true;
    assert_int_equal(d7_writer_resume(&r->writer, recording_path, slot, &options, NULL), 0);
    assert_int_equal(d7_writer_items(r->writer, 0), x.items - x.n_partial);
    assert_int_equal(d7_page_encode(0, D7_UINT16, values, x.n_partial, entry, sizeof entry, &bytes), 0);
    assert_int_equal(d7_writer_append_page(r->writer, 0, entry, bytes, x.n_partial, NULL), 0);
    assert_int_equal(d7_writer_items(r->writer, 0), x.items);
    recording_free(r);
}

static void errors_name_a_tail_by_its_new_path(void **state) {
    (void)state;
    recording *r = recovered();
    d7_error err;
    assert_int_equal(d7_tail_renamed(r->tail, "", &err), D7_ERR_ARG);
    assert_non_null(strstr(err.text, recording_tail_path));
    assert_int_equal(d7_tail_renamed(r->tail, "elsewhere.tail", NULL), 0);
    assert_int_equal(d7_tail_finish_sync(r->tail, true, &err), D7_ERR_STATE);
    assert_non_null(strstr(err.text, "elsewhere.tail"));
    recording_free(r);
}

static void resuming_without_memory_is_told(void **state) {
    (void)state;
    recording *r = recovered();
    for (long call = 1;; call++) {
        memcount memory = {.fail_at = call};
        d7_alloc alloc = memcount_table(&memory);
        int rc = resume_with(r, d7_tail_recovered(r->tail), &alloc, NULL);
        assert_int_equal(memory.outstanding, 0);
        if (rc == 0)
            break;
        assert_int_equal(rc, D7_ERR_NOMEM);
    }
    recording_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_appends_give_the_same_bytes),
        cmocka_unit_test(a_crash_at_every_step_changes_no_byte),
        cmocka_unit_test(attributes_that_went_ahead_are_found_by_readers),
        cmocka_unit_test(a_file_that_the_slot_does_not_tell_of_is_refused),
        cmocka_unit_test(a_damaged_file_is_refused),
        cmocka_unit_test(a_file_that_is_held_is_refused),
        cmocka_unit_test(whole_pages_leave_the_values_to_the_caller),
        cmocka_unit_test(errors_name_a_tail_by_its_new_path),
        cmocka_unit_test(resuming_without_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

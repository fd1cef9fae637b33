/* Recovery of files that the writer made, case by case. Random histories are in tests/fault. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "memio.h"
#include "recording.h"
#include "tail_slot.h"

/* ---- which slot wins ---- */

static void the_newest_slot_wins(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    recording_check_recovers_to(r, 35, 0);
    recording_free(r);
}

static void a_torn_slot_is_passed_over(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_slot s;
    recording_spoil(r, recording_tail_path, recording_place_of(r, 35, &s) + 200);
    recording_check_recovers_to(r, 30, 0); /* a torn slot is not counted: it may be anything */
    recording_free(r);
}

static void bytes_that_differ_fail_the_claim(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_slot newest, older;
    recording_place_of(r, 35, &newest);
    recording_place_of(r, 30, &older);
    assert_true(older.claim.length < newest.claim.length);
    recording_spoil(r, recording_path, (size_t)newest.claim.length - 1);
    recording_check_recovers_to(r, 30, 1);
    recording_free(r);
}

static void bytes_before_base_are_not_asked(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_slot s, pinned;
    recording_place_of(r, 35, &s);
    recording_place_of(r, 20, &pinned);
    assert_int_equal(s.claim.base, pinned.claim.length);
    recording_spoil(r, recording_path, (size_t)s.claim.base);
    recording_check_recovers_to(r, 20, 2);
    recording_free(r);
}

static void a_length_past_the_file_fails_the_claim(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_slot s;
    recording_place_of(r, 35, &s);
    recording_shorten(r, recording_path, (size_t)s.claim.length - 1);
    recording_check_recovers_to(r, 30, 1);
    recording_free(r);
}

/* A slot that has nothing to prove, but whose file is shorter: no file is made longer. */
static void a_settled_slot_of_a_shorter_file_is_no_good(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_recovery recovery;
    assert_int_equal(recording_recover(r, &recovery, NULL), 0);
    size_t shorter = recording_size_of(r, recording_path) - 1;
    recording_shorten(r, recording_path, shorter);
    assert_int_equal(recording_recover(r, &recovery, NULL), 0);
    assert_true(recovery.length <= shorter);
    assert_true(d7_tail_recovered(r->tail)->sequence < 35);
    recording_free(r);
}

static void the_limit_of_the_next_part_holds(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_recover_options o = recording_options_for(r);
    d7_tail_recovery recovery;
    o.sequence_limit = 20;
    assert_int_equal(recording_recover_with(r, &o, &recovery, NULL), 0);
    assert_int_equal(recovery.n_rejected, 2);
    assert_int_equal(recovery.rejected_sequence, 35);
    recording_check_holds(r, d7_tail_recovered(r->tail), 20);
    o.sequence_limit = 19;
    assert_int_equal(recording_recover_with(r, &o, &recovery, NULL), D7_ERR_CORRUPT);
    recording_free(r);
}

static void no_true_slot_changes_nothing(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_slot s;
    d7_tail_recovery recovery;
    d7_error err;
    size_t before = recording_size_of(r, recording_path);
    for (uint64_t batch = 20; batch <= 35; batch += batch == 20 ? 10 : 5)
        recording_spoil(r, recording_tail_path, recording_place_of(r, batch, &s) + 170);
    assert_int_equal(recording_recover(r, &recovery, &err), D7_ERR_CORRUPT);
    assert_non_null(strstr(err.text, recording_tail_path));
    assert_int_equal(recording_size_of(r, recording_path), before);
    recording_free(r);
}

/* ---- what is beside it ---- */

static void what_is_cut_is_kept(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_recovery recovery;
    size_t before, m;
    uint8_t *all = recording_copy_of(r, recording_path, &before);
    disk_put(r->disk, "a.photons.cut.0", "something else", 14);
    assert_int_equal(recording_recover(r, &recovery, NULL), 0);
    assert_true(recovery.cut_bytes > 0);
    assert_int_equal(recovery.cut_bytes, before - recovery.length);
    assert_int_equal(recovery.cut_number, 1);
    const uint8_t *cut = disk_content(r->disk, "a.photons.cut.1", &m);
    assert_true(cut && m == recovery.cut_bytes);
    assert_memory_equal(cut, all + recovery.length, m);
    free(all);
    recording_free(r);
}

static void a_copy_that_is_there_is_not_made_again(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_recovery recovery;
    d7_tail_slot s;
    size_t n;
    recording_place_of(r, 35, &s);
    uint8_t *all = recording_copy_of(r, recording_path, &n);
    disk_put(r->disk, "a.photons.cut.0", all + s.claim.length, n - (size_t)s.claim.length);
    free(all);
    assert_int_equal(recording_recover(r, &recovery, NULL), 0);
    assert_int_equal(recovery.cut_number, 0);
    assert_int_equal(recording_size_of(r, "a.photons.cut.1"), SIZE_MAX);
    recording_free(r);
}

static void cutting_without_a_copy(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_recover_options o = recording_options_for(r);
    d7_tail_recovery recovery;
    o.keep_cut = false;
    assert_int_equal(recording_recover_with(r, &o, &recovery, NULL), 0);
    assert_true(recovery.cut_bytes > 0);
    assert_int_equal(recording_size_of(r, "a.photons.cut.0"), SIZE_MAX);
    recording_free(r);
}

static void a_second_recovery_changes_nothing(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_recovery recovery;
    recording_check_recovers_to(r, 35, 0);
    uint64_t generation = d7_tail_recovered(r->tail)->claim.generation;
    uint32_t file = recording_sum_of(r, recording_path), tail = recording_sum_of(r, recording_tail_path);
    assert_int_equal(recording_recover(r, &recovery, NULL), 0);
    assert_int_equal(recovery.cut_bytes, 0);
    assert_int_equal(d7_tail_recovered(r->tail)->claim.generation, generation);
    assert_int_equal(recording_sum_of(r, recording_path), file);
    assert_int_equal(recording_sum_of(r, recording_tail_path), tail);
    recording_free(r);
}

static void the_new_slot_stands_above_all(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_slot newest;
    recording_place_of(r, 35, &newest);
    recording_spoil(r, recording_path, (size_t)newest.claim.length - 1);
    uint64_t generation = newest.claim.generation;
    recording_check_recovers_to(r, 30, 1);
    const d7_tail_slot *s = d7_tail_recovered(r->tail);
    assert_true(s->claim.generation > generation);
    assert_true(s->claim.base == s->claim.length && s->claim.length == recording_size_of(r, recording_path));
    recording_free(r);
}

/* ---- not ours, not now ---- */

static void a_file_without_a_tail_is_not_ours(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_recovery recovery;
    const d7_io *io = disk_io(r->disk);
    assert_int_equal(io->remove(io->ctx, recording_tail_path), 0);
    size_t before = recording_size_of(r, recording_path);
    assert_int_equal(recording_recover(r, &recovery, NULL), D7_ERR_NOTFOUND);
    assert_int_equal(recording_size_of(r, recording_path), before);
    recording_free(r);
}

static void a_tail_without_its_file_is_an_orphan(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_recovery recovery;
    const d7_io *io = disk_io(r->disk);
    assert_int_equal(io->remove(io->ctx, recording_path), 0);
    assert_int_equal(recording_recover(r, &recovery, NULL), 0);
    assert_int_equal(recovery.outcome, D7_TAIL_ORPHAN);
    assert_null(r->tail);
    assert_true(recording_size_of(r, recording_tail_path) != SIZE_MAX);
    assert_int_equal(recording_size_of(r, recording_path), SIZE_MAX);
    recording_free(r);
}

static void another_file_in_its_place_is_left_alone(void **state) {
    (void)state;
    for (int closed = 0; closed < 2; closed++) {
        recording *r = recording_new_stopped();
        d7_tail_recovery recovery;
        d7_error err;
        const d7_io *io = disk_io(r->disk);
        assert_int_equal(io->remove(io->ctx, recording_path), 0);
        r->writer = recording_writer(io, &(d7_attribute){.key = "run", .value = "two"});
        r->batch = 0;
        recording_put_batches(r, 100);
        assert_int_equal(closed ? d7_writer_close(r->writer, NULL) : d7_writer_flush(r->writer, NULL), 0);
        recording_stop(r);
        size_t before = recording_size_of(r, recording_path);
        assert_int_equal(recording_recover(r, &recovery, &err), D7_ERR_CORRUPT);
        assert_non_null(strstr(err.text, "another file"));
        assert_int_equal(recording_size_of(r, recording_path), before);
        assert_true(recording_size_of(r, recording_tail_path) != SIZE_MAX);
        recording_free(r);
    }
}

static void another_run_is_left_alone(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    static const uint8_t other[D7_TAIL_FILE_ID_BYTES] = "another run";
    d7_tail_recover_options o = recording_options_for(r);
    d7_tail_recovery recovery;
    o.file_id = other;
    assert_int_equal(recording_recover_with(r, &o, &recovery, NULL), D7_ERR_CORRUPT);
    o.file_id = NULL;
    assert_int_equal(recording_recover_with(r, &o, &recovery, NULL), 0);
    recording_free(r);
}

static void a_later_version_is_left_alone(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_recovery recovery;
    d7_error err;
    size_t n, before = recording_size_of(r, recording_path);
    uint8_t *copy = recording_copy_of(r, recording_tail_path, &n);
    for (size_t i = 0; i < 3; i++) {
        uint8_t *slot = copy + i * n / 3;
        size_t used = d7__slot_used_bytes(slot, n / 3);
        bytes_store32(slot + D7__SLOT_VERSION, 2);
        if (used)
            bytes_store32(slot + used - 4, common_crc32c(0, slot, used - 4));
    }
    disk_put(r->disk, recording_tail_path, copy, n);
    free(copy);
    assert_int_equal(recording_recover(r, &recovery, &err), D7_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "later version"));
    assert_int_equal(recording_size_of(r, recording_path), before);
    recording_free(r);
}

static void a_file_that_is_held_is_left_alone(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_recovery recovery;
    const d7_io *io = disk_io(r->disk);
    void *other;
    assert_int_equal(io->open(io->ctx, recording_path, D7_IO_WRITE, 0, &other), 0);
    assert_int_equal(io->lock(io->ctx, other), 0);
    assert_int_equal(recording_recover(r, &recovery, NULL), D7_ERR_LOCKED);
    io->close(io->ctx, other);
    recording_check_recovers_to(r, 35, 0);
    recording_free(r);
}

static void a_tail_of_another_size_is_refused(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 4096, 12287, 12289, 3 * 4096 + 4096};
    static const uint8_t zeros[4 * 4096];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        recording *r = recording_new_stopped();
        d7_tail_recovery recovery;
        disk_put(r->disk, recording_tail_path, zeros, sizes[i]);
        assert_int_equal(recording_recover(r, &recovery, NULL), D7_ERR_CORRUPT);
        recording_free(r);
    }
}

/* ---- closed ---- */

static void a_closed_file_loses_its_tail(void **state) {
    (void)state;
    recording *r = recording_new();
    d7_tail_recovery recovery;
    recording_put_batches(r, 45);
    recording_put_mark(r);
    assert_int_equal(d7_writer_close(r->writer, NULL), 0);
    recording_stop(r);
    size_t before = recording_size_of(r, recording_path);
    assert_int_equal(recording_recover(r, &recovery, NULL), 0);
    assert_int_equal(recovery.outcome, D7_TAIL_CLOSED);
    assert_int_equal(recovery.length, before);
    assert_null(r->tail);
    assert_int_equal(recording_size_of(r, recording_path), before);
    assert_int_equal(recording_size_of(r, recording_tail_path), SIZE_MAX);
    recording_free(r);
}

/* Closing cut short at every byte of the index and the epilogue, and at the block before. */
static void a_closing_that_was_cut_short_is_undone(void **state) {
    (void)state;
    recording *r = recording_new();
    const d7_io *io = disk_io(r->disk);
    recording_put_batches(r, 45);
    recording_put_mark(r);
    size_t marked = recording_size_of(r, recording_path), whole, n;
    assert_int_equal(d7_writer_close(r->writer, NULL), 0);
    recording_stop(r);
    uint8_t *file = recording_copy_of(r, recording_path, &whole),
            *tail = recording_copy_of(r, recording_tail_path, &n);
    for (size_t size = marked + 1; size < whole; size += size + 64 < whole && size > marked + 2000 ? 61 : 1) {
        disk_put(r->disk, recording_path, file, size);
        disk_put(r->disk, recording_tail_path, tail, n);
        recording_check_recovers_to(r, 45, 0);
        assert_int_equal(recording_size_of(r, recording_path), marked);
        d7_tail_free(r->tail);
        r->tail = NULL;
        assert_int_equal(io->remove(io->ctx, "a.photons.cut.0"), 0);
        assert_int_equal(io->sync_directory(io->ctx, recording_path), 0);
    }
    free(file);
    free(tail);
    recording_free(r);
}

/* ---- failures on the way ---- */

/* Every changing call of a recovery fails once; the next recovery comes to the right end. */
static void every_failing_call_can_be_tried_again(void **state) {
    (void)state;
    static const int errors[] = {EIO, ENOSPC};
    for (int e = 0; e < 2; e++)
        for (long call = 1;; call++) {
            recording *r = recording_new_stopped();
            d7_tail_recovery recovery;
            d7_error err;
            disk_set_faults(r->disk,
                            &(disk_faults){.dies_after = -1, .fails_at = call, .fail_errno = errors[e]});
            int rc = recording_recover(r, &recovery, &err);
            disk_set_faults(r->disk, &(disk_faults){.dies_after = -1});
            bool struck = rc != 0;
            if (struck) {
                assert_true(rc == D7_ERR_IO || rc == D7_ERR_NOSPACE);
                assert_int_equal(err.os_errno, errors[e]);
                assert_null(r->tail);
                disk_power_cut(r->disk);
                assert_int_equal(recording_recover(r, &recovery, NULL), 0);
            }
            uint64_t batch = d7_tail_recovered(r->tail)->sequence;
            assert_true(batch == 20 || batch == 30 || batch == 35);
            recording_check_holds(r, d7_tail_recovered(r->tail), batch);
            recording_free(r);
            if (!struck) {
                assert_true(call > 10);
                break;
            }
        }
}

static void recovery_without_memory_is_told(void **state) {
    (void)state;
    for (long call = 1;; call++) {
        recording *r = recording_new_stopped();
        memcount memory = {.fail_at = call};
        d7_alloc alloc = memcount_table(&memory);
        d7_tail_recover_options o = recording_options_for(r);
        d7_tail_recovery recovery;
        o.alloc = &alloc;
        int rc = recording_recover_with(r, &o, &recovery, NULL);
        d7_tail_free(r->tail);
        r->tail = NULL;
        assert_int_equal(memory.outstanding, 0);
        if (rc != 0)
            assert_int_equal(rc, D7_ERR_NOMEM);
        recording_check_recovers_to(r, 35, 0);
        recording_free(r);
        if (rc == 0)
            return;
    }
}

/* ---- going on ---- */

static void the_recovered_tail_goes_on(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_tail_slot s;
    recording_check_recovers_to(r, 35, 0);
    const d7_io *io = d7_tail_io(r->tail);
    void *file;
    uint64_t length = d7_tail_recovered(r->tail)->claim.length;
    size_t room = d7_tail_attribute_room(r->tail);
    assert_true(room >= recording_layout.attribute_bytes);
    assert_int_equal(io->open(io->ctx, recording_path, D7_IO_WRITE, 0, &file), 0);
    assert_int_equal(io->pwrite(io->ctx, file, "more", 4, length), 4);
    d7_tail_dataset datasets[] = {{.type = D7_UINT16}, {.type = D7_UINT64}};
    d7_tail_mark m = {.sequence = 34, .datasets = datasets, .n_datasets = 2};
    assert_int_equal(d7_tail_mark_slot(r->tail, length + 4, &m, NULL), D7_ERR_STATE);
    m.sequence = 36;
    assert_int_equal(d7_tail_mark_slot(r->tail, length + 4, &m, NULL), 0);
    assert_null(d7_tail_recovered(r->tail));
    recording_place_of(r, 36, &s);
    assert_int_equal(s.claim.base, length);
    assert_int_equal(s.claim.crc32c, common_crc32c(0, "more", 4));
    recording_place_of(r, 35, &s);
    assert_memory_equal(s.identity.file_id, recording_file_id, sizeof recording_file_id);
    io->close(io->ctx, file);
    recording_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_slot_wins),
        cmocka_unit_test(a_torn_slot_is_passed_over),
        cmocka_unit_test(bytes_that_differ_fail_the_claim),
        cmocka_unit_test(bytes_before_base_are_not_asked),
        cmocka_unit_test(a_length_past_the_file_fails_the_claim),
        cmocka_unit_test(a_settled_slot_of_a_shorter_file_is_no_good),
        cmocka_unit_test(the_limit_of_the_next_part_holds),
        cmocka_unit_test(no_true_slot_changes_nothing),
        cmocka_unit_test(what_is_cut_is_kept),
        cmocka_unit_test(a_copy_that_is_there_is_not_made_again),
        cmocka_unit_test(cutting_without_a_copy),
        cmocka_unit_test(a_second_recovery_changes_nothing),
        cmocka_unit_test(the_new_slot_stands_above_all),
        cmocka_unit_test(a_file_without_a_tail_is_not_ours),
        cmocka_unit_test(a_tail_without_its_file_is_an_orphan),
        cmocka_unit_test(another_file_in_its_place_is_left_alone),
        cmocka_unit_test(another_run_is_left_alone),
        cmocka_unit_test(a_later_version_is_left_alone),
        cmocka_unit_test(a_file_that_is_held_is_left_alone),
        cmocka_unit_test(a_tail_of_another_size_is_refused),
        cmocka_unit_test(a_closed_file_loses_its_tail),
        cmocka_unit_test(a_closing_that_was_cut_short_is_undone),
        cmocka_unit_test(every_failing_call_can_be_tried_again),
        cmocka_unit_test(recovery_without_memory_is_told),
        cmocka_unit_test(the_recovered_tail_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The life of a tail: which slot is written when, what a claim counts on, what a sync changes, what failures
 * do. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "disk_model.h"
#include "memio.h"

static const d7_type two_types[] = {D7_UINT16, D7_UINT64};
static const uint16_t first_values[] = {1, 4095, 258};
static const uint64_t second_values[] = {1099511627777u};
static const d7_tail_layout layout = {
    .bytes_per_page = 16, .types = two_types, .n_datasets = 2, .attribute_bytes = 64};
static const d7_tail_dataset datasets[] = {
    {.type = D7_UINT16, .items = 19, .n_partial = 3, .partial = first_values},
    {.type = D7_UINT64, .items = 5, .n_partial = 1, .partial = second_values}};
static const d7_attribute attributes[] = {{.key = "/photons/TacChannel", .value = "12.3"},
                                          {.key = "k", .value = "v"}};

enum { PLACE = D7_TAIL_ALIGN_BYTES };

static const char tail_path[] = "a.photons.tail";
static const uint8_t file_id[D7_TAIL_FILE_ID_BYTES] = "0123456789abcde";

/* A tail, and a file of a few bytes written through it. */
typedef struct fixture {
    disk *disk;
    d7_tail *tail;
    void *file;
    uint64_t length;
} fixture;

static void fixture_write(fixture *f, size_t n) {
    static const uint8_t data[4096] = "some bytes of a file";
    const d7_io *io = d7_tail_io(f->tail);
    assert_int_equal(io->pwrite(io->ctx, f->file, data, n, f->length), n);
    f->length += n;
}

static fixture fixture_new(void) {
    fixture f = {.disk = disk_new(1)};
    d7_tail_options options;
    d7_tail_options_init(&options);
    options.io = disk_io(f.disk);
    assert_int_equal(d7_tail_create(&f.tail, tail_path, &layout, file_id, 3, 40, &options, NULL), 0);
    const d7_io *io = d7_tail_io(f.tail);
    assert_int_equal(io->open(io->ctx, "a.photons", D7_IO_WRITE | D7_IO_CREATE, 0, &f.file), 0);
    fixture_write(&f, 500);
    return f;
}

static void fixture_free(fixture *f) {
    const d7_io *io = d7_tail_io(f->tail);
    io->close(io->ctx, f->file);
    d7_tail_free(f->tail);
    disk_free(f->disk);
}

static d7_tail_mark fixture_mark(uint64_t sequence) {
    return (d7_tail_mark){.sequence = sequence,
                          .producer = "cam",
                          .epoch = 5,
                          .datasets = datasets,
                          .n_datasets = 2,
                          .attributes = attributes,
                          .n_attributes = 2};
}

static int put_mark(fixture *f, uint64_t sequence) {
    d7_tail_mark m = fixture_mark(sequence);
    return d7_tail_mark_slot(f->tail, f->length, &m, NULL);
}

static int put_begin(fixture *f, uint64_t sequence) {
    d7_tail_mark m = fixture_mark(sequence);
    return d7_tail_begin_sync(f->tail, f->length, &m, NULL);
}

/* The sequence in slot i; 0 where there is none. */
static uint64_t slot_sequence(const fixture *f, unsigned i, d7_tail_slot *ret_slot) {
    size_t n;
    const uint8_t *tail = disk_content(f->disk, tail_path, &n);
    assert_true(tail && n == 3 * PLACE);
    return d7_tail_slot_decode(tail + i * PLACE, PLACE, ret_slot, NULL) == 0 ? ret_slot->sequence : 0;
}

/* The slot with that sequence; fails where there is none. */
static d7_tail_slot slot_with(const fixture *f, uint64_t sequence) {
    d7_tail_slot s = {0};
    for (unsigned i = 0; i < 3; i++)
        if (slot_sequence(f, i, &s) == sequence)
            return s;
    fail_msg("no slot has sequence %llu", (unsigned long long)sequence);
    return s;
}

static void pinned_and_flying_slots_survive_marks(void **state) {
    (void)state;
    fixture f = fixture_new();
    assert_false(d7_tail_has_durable(f.tail));
    assert_int_equal(d7_tail_durable_sequence(f.tail), 40);
    assert_int_equal(put_begin(&f, 41), 0);
    for (uint64_t s = 42; s < 47; s++) {
        assert_int_equal(put_mark(&f, s), 0);
        slot_with(&f, 41);
        slot_with(&f, s);
    }
    assert_int_equal(d7_tail_finish_sync(f.tail, true, NULL), 0);
    assert_true(d7_tail_has_durable(f.tail));
    assert_int_equal(d7_tail_durable_sequence(f.tail), 41);
    assert_int_equal(d7_tail_durable_bytes(f.tail), 500);
    fixture_write(&f, 100);
    assert_int_equal(put_begin(&f, 50), 0);
    for (uint64_t s = 51; s < 56; s++) {
        assert_int_equal(put_mark(&f, s), 0);
        slot_with(&f, 41);
        slot_with(&f, 50);
        slot_with(&f, s);
    }
    fixture_free(&f);
}

static void claims_count_from_the_pinned_slot(void **state) {
    (void)state;
    fixture f = fixture_new();
    size_t n;
    assert_int_equal(put_begin(&f, 41), 0);
    d7_tail_slot s = slot_with(&f, 41);
    const uint8_t *file = disk_content(f.disk, "a.photons", &n);
    assert_true(s.claim.base == 0 && s.claim.length == 500 && s.claim.crc32c == common_crc32c(0, file, 500));
    assert_true(s.identity.head_bytes == 500 && s.identity.head_crc32c == s.claim.crc32c);
    assert_true(s.identity.part == 3 && s.identity.first_sequence == 40);
    fixture_write(&f, 70);
    assert_int_equal(put_mark(&f, 42), 0);
    s = slot_with(&f, 42);
    file = disk_content(f.disk, "a.photons", &n);
    assert_true(s.claim.base == 0 && s.claim.length == 570 && s.claim.crc32c == common_crc32c(0, file, 570));
    assert_int_equal(s.identity.head_bytes, 500);
    fixture_write(&f, 30);
    assert_int_equal(d7_tail_finish_sync(f.tail, true, NULL), 0);
    fixture_write(&f, 20);
    assert_int_equal(put_mark(&f, 43), 0);
    s = slot_with(&f, 43);
    file = disk_content(f.disk, "a.photons", &n);
    assert_true(s.claim.base == 500 && s.claim.length == 620);
    assert_int_equal(s.claim.crc32c, common_crc32c(0, file + 500, 120));
    fixture_free(&f);
}

static void a_failed_sync_is_final(void **state) {
    (void)state;
    fixture f = fixture_new();
    d7_error err;
    assert_int_equal(put_begin(&f, 41), 0);
    assert_int_equal(d7_tail_finish_sync(f.tail, true, NULL), 0);
    assert_int_equal(put_begin(&f, 45), 0);
    assert_int_equal(d7_tail_finish_sync(f.tail, false, &err), D7_ERR_IO);
    assert_non_null(strstr(err.text, "nothing after batch 41"));
    assert_int_equal(put_mark(&f, 46), D7_ERR_IO);
    assert_int_equal(put_begin(&f, 46), D7_ERR_IO);
    assert_int_equal(d7_tail_finish_sync(f.tail, true, NULL), D7_ERR_IO);
    assert_int_equal(d7_tail_durable_sequence(f.tail), 41);
    slot_with(&f, 41);
    fixture_free(&f);
}

static void the_tails_own_failed_sync_counts(void **state) {
    (void)state;
    fixture f = fixture_new();
    assert_int_equal(put_begin(&f, 41), 0);
    disk_set_faults(f.disk, &(disk_faults){.dies_after = -1, .fails_at = 1, .fail_errno = EIO});
    assert_int_equal(d7_tail_sync_data(f.tail, NULL), D7_ERR_IO);
    assert_int_equal(d7_tail_finish_sync(f.tail, true, NULL), D7_ERR_IO);
    assert_false(d7_tail_has_durable(f.tail));
    fixture_free(&f);
}

static void calls_out_of_order_are_told(void **state) {
    (void)state;
    fixture f = fixture_new();
    d7_tail_mark m = fixture_mark(44);
    assert_int_equal(d7_tail_finish_sync(f.tail, true, NULL), D7_ERR_STATE);
    assert_int_equal(d7_tail_mark_slot(f.tail, f.length - 1, &m, NULL), D7_ERR_STATE);
    assert_int_equal(d7_tail_mark_slot(f.tail, f.length + 1, &m, NULL), D7_ERR_STATE);
    assert_int_equal(d7_tail_mark_slot(f.tail, f.length, NULL, NULL), D7_ERR_ARG);
    assert_int_equal(put_mark(&f, 39), D7_ERR_STATE);
    assert_int_equal(put_mark(&f, 44), 0);
    assert_int_equal(put_mark(&f, 43), D7_ERR_STATE);
    assert_int_equal(put_begin(&f, 44), 0);
    assert_int_equal(put_begin(&f, 45), D7_ERR_STATE);
    assert_int_equal(put_mark(&f, 45), 0);
    assert_int_equal(d7_tail_finish_sync(f.tail, true, NULL), 0);
    fixture_free(&f);
}

static void attributes_that_do_not_fit_change_nothing(void **state) {
    (void)state;
    fixture f = fixture_new();
    size_t room = d7_tail_attribute_room(f.tail);
    assert_true(room >= 64 && room < PLACE);
    char *value = calloc(1, room + 1);
    assert_non_null(value);
    memset(value, 'v', room - 10);
    d7_attribute a = {.key = "k", .value = value};
    d7_tail_mark m = fixture_mark(44);
    m.attributes = &a;
    m.n_attributes = 1;
    assert_int_equal(d7_tail_mark_slot(f.tail, f.length, &m, NULL), D7_ERR_LIMIT);
    value[room - 11] = '\0';
    assert_int_equal(d7_tail_attribute_bytes(&a, 1), room);
    assert_int_equal(d7_tail_mark_slot(f.tail, f.length, &m, NULL), 0);
    slot_with(&f, 44);
    free(value);
    fixture_free(&f);
}

static void a_full_disk_is_a_pause(void **state) {
    (void)state;
    fixture f = fixture_new();
    assert_int_equal(put_begin(&f, 41), 0);
    assert_int_equal(d7_tail_finish_sync(f.tail, true, NULL), 0);
    for (int i = 0; i < 3; i++) {
        disk_set_faults(f.disk, &(disk_faults){.dies_after = -1, .fails_at = 1, .fail_errno = ENOSPC});
        assert_int_equal(i ? put_begin(&f, 42) : put_mark(&f, 42), D7_ERR_NOSPACE);
        slot_with(&f, 41);
    }
    assert_int_equal(put_begin(&f, 42), 0);
    assert_int_equal(d7_tail_finish_sync(f.tail, true, NULL), 0);
    assert_int_equal(d7_tail_durable_sequence(f.tail), 42);
    fixture_free(&f);
}

static void an_error_of_a_write_is_final(void **state) {
    (void)state;
    fixture f = fixture_new();
    d7_error err;
    d7_tail_mark m = fixture_mark(43);
    assert_int_equal(put_begin(&f, 41), 0);
    assert_int_equal(d7_tail_finish_sync(f.tail, true, NULL), 0);
    disk_set_faults(f.disk, &(disk_faults){.dies_after = -1, .fails_at = 1, .fail_errno = EIO});
    assert_int_equal(put_mark(&f, 42), D7_ERR_IO);
    assert_int_equal(d7_tail_mark_slot(f.tail, f.length, &m, &err), D7_ERR_IO);
    assert_int_equal(err.os_errno, EIO);
    assert_non_null(strstr(err.text, tail_path));
    assert_int_equal(d7_tail_durable_sequence(f.tail), 41);
    slot_with(&f, 41);
    fixture_free(&f);
}

static void changes_elsewhere_in_the_file_are_noticed(void **state) {
    (void)state;
    for (int how = 0; how < 2; how++) {
        fixture f = fixture_new();
        const d7_io *io = d7_tail_io(f.tail);
        if (how == 0)
            assert_int_equal(io->pwrite(io->ctx, f.file, "x", 1, 10), 1);
        else
            assert_int_equal(io->truncate(io->ctx, f.file, 10), 0);
        assert_int_equal(put_mark(&f, 42), D7_ERR_STATE);
        assert_int_equal(put_begin(&f, 42), D7_ERR_STATE);
        fixture_free(&f);
    }
}

static void short_writes_are_gone_on_with(void **state) {
    (void)state;
    fixture f = fixture_new();
    disk_set_faults(f.disk, &(disk_faults){.dies_after = -1, .transfer_max = 7});
    assert_int_equal(put_mark(&f, 42), 0);
    slot_with(&f, 42);
    fixture_free(&f);
}

/* ---- creation ---- */

static int create_on(disk *d, const d7_alloc *alloc) {
    d7_tail_options options;
    d7_tail_options_init(&options);
    options.io = disk_io(d);
    options.alloc = alloc;
    d7_tail *t = NULL;
    int rc = d7_tail_create(&t, tail_path, &layout, file_id, 0, 0, &options, NULL);
    d7_tail_free(t);
    return rc;
}

static void creation_takes_all_its_room(void **state) {
    (void)state;
    disk *d = disk_new(1);
    size_t n = 0;
    assert_int_equal(create_on(d, NULL), 0);
    assert_non_null(disk_content(d, tail_path, &n));
    assert_int_equal(n, 3 * PLACE);
    assert_int_equal(create_on(d, NULL), D7_ERR_EXISTS);
    disk_free(d);
}

static void a_failed_creation_leaves_no_file(void **state) {
    (void)state;
    size_t n;
    for (long call = 1;; call++) {
        disk *d = disk_new(1);
        disk_set_faults(d, &(disk_faults){.dies_after = -1, .fails_at = call, .fail_errno = ENOSPC});
        int rc = create_on(d, NULL);
        if (rc != 0) {
            assert_int_equal(rc, D7_ERR_NOSPACE);
            assert_null(disk_content(d, tail_path, &n));
        }
        disk_free(d);
        if (rc == 0) {
            assert_true(call > 3);
            return;
        }
    }
}

static void creation_without_memory_is_told(void **state) {
    (void)state;
    for (long call = 1;; call++) {
        disk *d = disk_new(1);
        memcount memory = {.fail_at = call};
        d7_alloc alloc = memcount_table(&memory);
        int rc = create_on(d, &alloc);
        assert_int_equal(memory.outstanding, 0);
        disk_free(d);
        if (rc == 0)
            return;
        assert_int_equal(rc, D7_ERR_NOMEM);
    }
}

static void bad_layouts_are_refused(void **state) {
    (void)state;
    d7_tail *t;
    d7_tail_layout l = layout;
    l.n_datasets = 0;
    assert_int_equal(d7_tail_create(&t, tail_path, &l, file_id, 0, 0, NULL, NULL), D7_ERR_ARG);
    assert_int_equal(d7_tail_create(&t, "", &layout, file_id, 0, 0, NULL, NULL), D7_ERR_ARG);
    l = layout;
    l.attribute_bytes = UINT32_MAX;
    assert_int_equal(d7_tail_create(&t, tail_path, &l, file_id, 0, 0, NULL, NULL), D7_ERR_LIMIT);
    d7_tail_free(NULL);
}

/* ---- threads ---- */

typedef struct syncer {
    d7_tail *tail;
    int rc;
} syncer;

static void *sync_thread(void *arg) {
    syncer *s = arg;
    s->rc = d7_tail_sync_data(s->tail, NULL);
    return NULL;
}

static void marks_go_on_while_another_thread_syncs(void **state) {
    (void)state;
    char path[] = "/tmp/photond-tail-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(remove(path), 0);
    d7_tail *t;
    assert_int_equal(d7_tail_create(&t, path, &layout, file_id, 0, 0, NULL, NULL), 0);
    uint64_t s = 1;
    for (int round = 0; round < 20; round++) {
        syncer sync = {.tail = t};
        pthread_t thread;
        d7_tail_mark m = fixture_mark(s);
        assert_int_equal(d7_tail_begin_sync(t, 0, &m, NULL), 0);
        assert_int_equal(pthread_create(&thread, NULL, sync_thread, &sync), 0);
        for (int i = 0; i < 20; i++) {
            m.sequence = ++s;
            assert_int_equal(d7_tail_mark_slot(t, 0, &m, NULL), 0);
        }
        pthread_join(thread, NULL);
        assert_int_equal(sync.rc, 0);
        assert_int_equal(d7_tail_finish_sync(t, true, NULL), 0);
    }
    d7_tail_free(t);
    assert_int_equal(remove(path), 0);
    fclose(fdopen(fd, "r"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pinned_and_flying_slots_survive_marks),
        cmocka_unit_test(claims_count_from_the_pinned_slot),
        cmocka_unit_test(a_failed_sync_is_final),
        cmocka_unit_test(the_tails_own_failed_sync_counts),
        cmocka_unit_test(calls_out_of_order_are_told),
        cmocka_unit_test(attributes_that_do_not_fit_change_nothing),
        cmocka_unit_test(a_full_disk_is_a_pause),
        cmocka_unit_test(an_error_of_a_write_is_final),
        cmocka_unit_test(changes_elsewhere_in_the_file_are_noticed),
        cmocka_unit_test(short_writes_are_gone_on_with),
        cmocka_unit_test(creation_takes_all_its_room),
        cmocka_unit_test(a_failed_creation_leaves_no_file),
        cmocka_unit_test(creation_without_memory_is_told),
        cmocka_unit_test(bad_layouts_are_refused),
        cmocka_unit_test(marks_go_on_while_another_thread_syncs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What the tail beside a file holds, as a reader of the file shows it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recording.h"

static d7_reader *open_reader(const recording *r, bool pages_only) {
    d7_reader_options options = {.io = disk_io(r->disk), .pages_only = pages_only};
    d7_reader *reader = NULL;
    d7_error err;
    if (d7_reader_open(&reader, recording_path, &options, &err) != 0)
        fail_msg("%s", err.text);
    return reader;
}

static unsigned refresh(d7_reader *reader) {
    unsigned changes;
    d7_error err;
    if (d7_reader_refresh(reader, &changes, &err) != 0)
        fail_msg("%s", err.text);
    return changes;
}

static d7_dataset_info info_of(const d7_reader *reader, uint32_t ds) {
    d7_dataset_info info;
    assert_int_equal(d7_reader_dataset(reader, ds, &info), 0);
    return info;
}

static void check_values(d7_reader *reader, const void *all, uint32_t ds, size_t width) {
    uint64_t n = info_of(reader, ds).items;
    uint8_t *got = malloc((size_t)n * width + 1);
    assert_int_equal(d7_reader_read(reader, ds, 0, (size_t)n, got, NULL), 0);
    assert_memory_equal(got, all, (size_t)n * width);
    /* from every place before the end, so that ranges begin and end in pages and in the tail */
    for (uint64_t from = n > 70 ? n - 70 : 0; from < n; from += 3)
        for (size_t k = 1; k <= n - from; k += 5) {
            assert_int_equal(d7_reader_read(reader, ds, from, k, got, NULL), 0);
            assert_memory_equal(got, (const uint8_t *)all + from * width, k * width);
        }
    assert_int_equal(d7_reader_read(reader, ds, n, 1, got, NULL), D7_ERR_ARG);
    free(got);
}

/* Everything up to that batch, and nothing else. */
static void check_shows(const recording *r, d7_reader *reader, uint64_t batch) {
    assert_int_equal(info_of(reader, 0).items, batch * RECORDING_BATCH);
    assert_int_equal(info_of(reader, 1).items, batch);
    check_values(reader, r->x, 0, 2);
    check_values(reader, r->ms, 1, 8);
}

static void the_newest_items_are_shown(void **state) {
    (void)state;
    recording *r = recording_new();
    d7_reader *reader = open_reader(r, false), *pages = open_reader(r, true);
    check_shows(r, reader, 0);
    for (int i = 0; i < 60; i++) {
        recording_put_batches(r, 1 + (uint64_t)i % 4);
        if (i % 4 == 3)
            recording_put_sync(r);
        else
            recording_put_mark(r);
        assert_int_equal(refresh(reader), D7_CHANGE_GREW);
        check_shows(r, reader, r->batch);
        assert_int_equal(refresh(reader), 0);
        d7_reader *now = open_reader(r, false);
        check_shows(r, now, r->batch);
        d7_reader_free(now);
        refresh(pages);
        for (uint32_t ds = 0; ds < 2; ds++) {
            d7_dataset_info with = info_of(reader, ds), without = info_of(pages, ds);
            assert_int_equal(without.items, without.paged_items);
            assert_int_equal(with.paged_items, without.items);
            assert_true(with.items - with.paged_items < 32);
        }
    }
    d7_reader_free(reader);
    d7_reader_free(pages);
    recording_free(r);
}

static void columns_end_with_the_tail(void **state) {
    (void)state;
    recording *r = recording_new();
    d7_columns *columns;
    d7_columns_options options;
    d7_chunk chunk;
    size_t n = 0;
    recording_put_batches(r, 37);
    recording_put_mark(r);
    d7_reader *reader = open_reader(r, false);
    d7_columns_options_init(&options);
    options.chunk_items = 50;
    assert_int_equal(d7_columns_open(&columns, reader, (uint32_t[]){0}, 1, &options, NULL), 0);
    while (d7_columns_next(columns, &chunk, NULL) == 0 && chunk.n) {
        assert_int_equal(chunk.first_item, n);
        assert_memory_equal(chunk.values[0], r->x + n, chunk.n * 2);
        n += chunk.n;
    }
    assert_int_equal(n, 37 * RECORDING_BATCH);
    d7_columns_free(columns);
    d7_reader_free(reader);
    recording_free(r);
}

/* Pages that were written after the newest slot hold what it holds, for the dataset whose pages they are. */
static void newer_pages_count_for_their_dataset(void **state) {
    (void)state;
    recording *r = recording_new();
    d7_reader *reader = open_reader(r, false);
    recording_put_batches(r, 3);
    recording_put_mark(r);
    refresh(reader);
    check_shows(r, reader, 3);
    recording_put_batches(r, 2); /* 125 items of x: another page of 32; ms has 8 to a page */
    assert_int_equal(d7_writer_flush(r->writer, NULL), 0);
    assert_int_equal(refresh(reader), D7_CHANGE_GREW);
    assert_int_equal(info_of(reader, 0).items, 125 / 32 * 32);
    assert_int_equal(info_of(reader, 0).paged_items, 125 / 32 * 32);
    assert_int_equal(info_of(reader, 1).items, 3);
    assert_int_equal(info_of(reader, 1).paged_items, 0);
    check_values(reader, r->x, 0, 2);
    check_values(reader, r->ms, 1, 8);
    d7_reader_free(reader);
    recording_free(r);
}

static void attributes_of_the_slot_are_shown(void **state) {
    (void)state;
    recording *r = recording_new();
    d7_reader *reader = open_reader(r, false);
    for (int i = 0; i < 40; i++) {
        recording_put_note(r);
        recording_put_batches(r, 1 + (uint64_t)i % 30);
        recording_put_mark(r);
        refresh(reader);
        assert_int_equal(d7_reader_n_attributes(reader), 1 + r->n_notes);
        d7_attribute a;
        for (size_t k = 0; k < r->n_notes; k++) {
            assert_string_equal(d7_reader_find_attribute(reader, r->notes[k]), "noted");
            assert_int_equal(d7_reader_attribute(reader, 1 + k, &a), 0);
            assert_string_equal(a.key, r->notes[k]); /* in the order of setting */
        }
        assert_int_equal(d7_reader_attribute(reader, 1 + r->n_notes, &a), D7_ERR_ARG);
    }
    /* A later value of a key that the file has. */
    d7_attribute attributes[RECORDING_NOTES];
    size_t n_unlisted = d7_writer_unlisted_attributes(r->writer);
    for (size_t k = 0; k < n_unlisted; k++)
        attributes[k] = (d7_attribute){.key = r->notes[r->n_notes - n_unlisted + k], .value = "noted"};
    attributes[n_unlisted] = (d7_attribute){.key = "note.0", .value = "another"};
    assert_int_equal(d7_writer_set_attribute(r->writer, "note.0", "another", NULL), 0);
    d7_tail_dataset datasets[2] = {{.type = D7_UINT16}, {.type = D7_UINT64}};
    for (uint32_t i = 0; i < 2; i++) {
        datasets[i].items = d7_writer_items(r->writer, i);
        uint64_t paged = d7_writer_paged_items(r->writer, i);
        datasets[i].n_partial = (uint32_t)(datasets[i].items - paged);
        datasets[i].partial = i == 0 ? (const void *)&r->x[paged] : (const void *)&r->ms[paged];
    }
    d7_tail_mark mark = {.sequence = r->batch,
                         .datasets = datasets,
                         .n_datasets = 2,
                         .attributes = attributes,
                         .n_attributes = n_unlisted + 1};
    assert_int_equal(d7_tail_mark_slot(r->tail, d7_writer_framed_bytes(r->writer), &mark, NULL), 0);
    assert_int_equal(refresh(reader), D7_CHANGE_GREW);
    d7_attribute a;
    assert_string_equal(d7_reader_find_attribute(reader, "note.0"), "another");
    assert_int_equal(d7_reader_attribute(reader, 1, &a), 0);
    assert_string_equal(a.value, "another");
    assert_int_equal(d7_reader_n_attributes(reader), 1 + r->n_notes);
    d7_reader_free(reader);
    recording_free(r);
}

static void a_recovery_that_cuts_is_followed(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_reader *reader = open_reader(r, false);
    d7_tail_recovery recovery;
    assert_true(info_of(reader, 0).items >=
                35 * RECORDING_BATCH); /* pages of batches up to 40, the slot of 35 */
    assert_int_equal(info_of(reader, 1).items, 40);
    d7_tail_recover_options o = recording_options_for(r);
    o.sequence_limit = 20;
    assert_int_equal(recording_recover_with(r, &o, &recovery, NULL), 0);
    assert_int_equal(refresh(reader) & D7_CHANGE_CUT, D7_CHANGE_CUT);
    check_shows(r, reader, 20);
    recording_resume(r);
    for (int i = 0; i < 30; i++) {
        recording_put_batches(r, 3);
        recording_put_mark(r);
        assert_int_equal(refresh(reader), D7_CHANGE_GREW);
        check_shows(r, reader, r->batch);
    }
    d7_reader_free(reader);
    recording_free(r);
}

/* Cut and written on between two looks. */
static void a_recovery_that_was_not_seen_is_followed(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    d7_reader *reader = open_reader(r, false);
    d7_tail_recovery recovery;
    d7_tail_recover_options o = recording_options_for(r);
    o.sequence_limit = 20;
    assert_int_equal(recording_recover_with(r, &o, &recovery, NULL), 0);
    recording_resume(r);
    for (unsigned i = 20 * RECORDING_BATCH; i < RECORDING_VALUES; i++)
        r->x[i] = (uint16_t)(r->x[i] ^ 0x5555); /* other values than before */
    recording_put_batches(r, 80);
    recording_put_mark(r);
    assert_int_equal(refresh(reader) & D7_CHANGE_CUT, D7_CHANGE_CUT);
    check_shows(r, reader, 100);
    d7_reader_free(reader);
    recording_free(r);
}

static void closing_ends_the_tail(void **state) {
    (void)state;
    recording *r = recording_new();
    recording_put_batches(r, 33);
    recording_put_mark(r);
    d7_reader *reader = open_reader(r, false);
    check_shows(r, reader, 33);
    recording_put_note(r);
    assert_int_equal(d7_writer_close(r->writer, NULL), 0);
    assert_int_equal(refresh(reader), D7_CHANGE_CLOSED | D7_CHANGE_GREW); /* the note */
    check_shows(r, reader, 33);
    assert_int_equal(info_of(reader, 0).paged_items, 33 * RECORDING_BATCH);
    assert_int_equal(d7_reader_n_problems(reader), 0);
    d7_reader_free(reader);
    reader = open_reader(r, false); /* the tail still lies there: it is not looked at */
    check_shows(r, reader, 33);
    d7_reader_free(reader);
    recording_free(r);
}

static bool tells_of_tail(d7_reader *reader, d7_problem *ret) {
    for (size_t i = 0; d7_reader_problem(reader, i, ret) == 0; i++)
        if (ret->code == D7_PROBLEM_TAIL)
            return true;
    return false;
}

/* A bit that changed in what the newest slot counts on, by who looks at it: as opened, pages only and verified. */
static void bytes_that_changed_since_are_told(void **state) {
    (void)state;
    for (int form = 0; form < 3; form++) {
        recording *r = recording_new_stopped();
        d7_tail_slot newest;
        d7_problem p;
        d7_verify_summary sum;
        recording_place_of(r, 35, &newest);
        d7_reader *reader = open_reader(r, false);
        assert_false(tells_of_tail(reader, &p));
        if (form == 0) /* in the last bytes that it counts on: an older one is true */
            recording_spoil(r, recording_path, (size_t)newest.claim.length - 2);
        else if (form == 1) /* in the first ones: none is */
            recording_spoil(r, recording_path, (size_t)newest.claim.base + 1);
        else
            recording_shorten(r, recording_path, (size_t)newest.claim.length - 1);
        d7_reader_free(reader);
        reader = open_reader(r, false);
        assert_true(tells_of_tail(reader, &p));
        assert_int_equal(p.severity, D7_DAMAGE);
        assert_int_equal(p.offset, form < 2 ? newest.claim.base : newest.claim.length - 1);
        assert_int_equal(strstr(p.text, "items of /x") != NULL, form > 0);
        d7_reader_free(reader);
        reader = open_reader(r, true);
        assert_false(tells_of_tail(reader, &p));
        assert_int_equal(d7_reader_verify(reader, NULL, NULL, NULL, NULL, &sum, NULL), 0);
        assert_true(tells_of_tail(reader, &p));
        assert_true(sum.damages > 0);
        d7_reader_free(reader);
        recording_free(r);
    }
}

/* A writer's slot is torn or older for a moment. */
static void nothing_is_told_while_the_file_is_written(void **state) {
    (void)state;
    recording *r = recording_new();
    d7_problem p;
    d7_tail_slot s;
    recording_put_batches(r, 33);
    recording_put_mark(r);
    recording_spoil(r, recording_tail_path, recording_place_of(r, 33, &s) + 170);
    recording_spoil(r, recording_tail_path, recording_place_of(r, 0, &s) + 170);
    d7_reader *reader = open_reader(r, false);
    assert_true(d7_reader_held(reader));
    assert_false(tells_of_tail(reader, &p));
    d7_reader_free(reader);
    recording_free(r);
}

static void what_is_no_tail_of_the_file_is_told_and_passed_over(void **state) {
    (void)state;
    recording *r = recording_new_stopped();
    size_t n;
    uint8_t *tail = recording_copy_of(r, recording_tail_path, &n);
    d7_reader *pages = open_reader(r, true);
    uint64_t paged = info_of(pages, 0).items;
    for (int form = 0; form < 5; form++) {
        disk_put(r->disk, recording_tail_path, form == 0 ? "?" : (const void *)tail,
                 form == 0   ? 1
                 : form == 1 ? n - 1
                 : form == 2 ? 0
                             : n);
        if (form == 3) /* every slot is torn */
            for (size_t i = 0; i < 3; i++)
                recording_spoil(r, recording_tail_path, i * n / 3 + 170);
        if (form == 4) { /* the file's head is another: an attribute in it */
            size_t n_file;
            const uint8_t *file = disk_content(r->disk, recording_path, &n_file);
            const uint8_t *value = memmem(file, n_file, "one", 3);
            recording_spoil(r, recording_path, (size_t)(value - file));
        }
        d7_reader *reader = NULL;
        d7_reader_options options = {.io = disk_io(r->disk)};
        assert_int_equal(d7_reader_open(&reader, recording_path, &options, NULL), 0);
        assert_int_equal(info_of(reader, 0).items, paged);
        assert_int_equal(info_of(reader, 1).items, info_of(pages, 1).items);
        d7_problem p;
        assert_true(tells_of_tail(reader, &p));
        d7_reader_free(reader);
    }
    d7_reader_free(pages);
    free(tail);
    recording_free(r);
}

/* A slot that is being written just then does not make items vanish. */
static void a_torn_slot_takes_nothing_away(void **state) {
    (void)state;
    recording *r = recording_new();
    d7_tail_slot s;
    size_t n;
    recording_put_batches(r, 3);
    recording_put_mark(r);
    d7_reader *reader = open_reader(r, false);
    check_shows(r, reader, 3);
    uint8_t *tail = recording_copy_of(r, recording_tail_path, &n);
    recording_spoil(r, recording_tail_path, recording_place_of(r, 3, &s) + 170);
    assert_int_equal(refresh(reader), 0);
    check_shows(r, reader, 3);
    recording_spoil(r, recording_tail_path, recording_place_of(r, 0, &s) + 170); /* none is whole */
    assert_int_equal(refresh(reader), 0);
    check_shows(r, reader, 3);
    disk_put(r->disk, recording_tail_path, tail, n);
    free(tail);
    d7_reader_free(reader);
    recording_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_items_are_shown),
        cmocka_unit_test(columns_end_with_the_tail),
        cmocka_unit_test(newer_pages_count_for_their_dataset),
        cmocka_unit_test(attributes_of_the_slot_are_shown),
        cmocka_unit_test(a_recovery_that_cuts_is_followed),
        cmocka_unit_test(a_recovery_that_was_not_seen_is_followed),
        cmocka_unit_test(closing_ends_the_tail),
        cmocka_unit_test(bytes_that_changed_since_are_told),
        cmocka_unit_test(nothing_is_told_while_the_file_is_written),
        cmocka_unit_test(what_is_no_tail_of_the_file_is_told_and_passed_over),
        cmocka_unit_test(a_torn_slot_takes_nothing_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

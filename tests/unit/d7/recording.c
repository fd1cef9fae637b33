#include "recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "d7_testing.h"

const char recording_path[] = "a.photons", recording_tail_path[] = "a.photons.tail";
const uint8_t recording_file_id[D7_TAIL_FILE_ID_BYTES] = "0123456789abcde";

static const d7_type types[] = {D7_UINT16, D7_UINT64};
const d7_tail_layout recording_layout = {
    .bytes_per_page = 64, .types = types, .n_datasets = 2, .attribute_bytes = 512};

d7_writer *recording_writer(const d7_io *io, const d7_attribute *attribute) {
    static const d7_dataset datasets[] = {{"/x", D7_UINT16}, {"/ms", D7_UINT64}};
    d7_writer_options options;
    d7_writer_options_init(&options);
    options.io = io;
    options.bytes_per_page = recording_layout.bytes_per_page;
    options.index_step = 1;
    options.attributes = attribute;
    options.n_attributes = 1;
    d7_writer *w = NULL;
    assert_int_equal(d7_writer_create(&w, recording_path, datasets, 2, &options, NULL), 0);
    return w;
}

void recording_put_note(recording *r) {
    assert_true(r->n_notes < RECORDING_NOTES);
    char *key = r->notes[r->n_notes];
    snprintf(key, sizeof r->notes[0], "note.%u", (unsigned)r->n_notes++);
    assert_int_equal(d7_writer_set_attribute(r->writer, key, "noted", NULL), 0);
}

void recording_put_batches(recording *r, uint64_t n) {
    for (; n > 0; n--, r->batch++) {
        uint16_t x[RECORDING_BATCH];
        for (unsigned i = 0; i < RECORDING_BATCH; i++)
            x[i] = r->x[r->batch * RECORDING_BATCH + i];
        assert_int_equal(d7_writer_append(r->writer, 0, x, RECORDING_BATCH, NULL), 0);
        assert_int_equal(d7_writer_append(r->writer, 1, &r->ms[r->batch], 1, NULL), 0);
    }
}

/* What a mark says now. */
typedef struct marking {
    d7_tail_mark mark;
    d7_tail_dataset datasets[2];
    d7_attribute attributes[RECORDING_NOTES];
} marking;

static void fill_marking(const recording *r, marking *m) {
    *m = (marking){0};
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t paged = d7_writer_paged_items(r->writer, i), items = d7_writer_items(r->writer, i);
        m->datasets[i] =
            (d7_tail_dataset){.type = types[i],
                              .items = items,
                              .n_partial = (uint32_t)(items - paged),
                              .partial = i == 0 ? (const void *)&r->x[paged] : (const void *)&r->ms[paged]};
    }
    size_t n = d7_writer_unlisted_attributes(r->writer);
    assert_true(n <= r->n_notes);
    for (size_t i = 0; i < n; i++)
        m->attributes[i] = (d7_attribute){.key = r->notes[r->n_notes - n + i], .value = "noted"};
    m->mark = (d7_tail_mark){.sequence = r->batch,
                             .datasets = m->datasets,
                             .n_datasets = 2,
                             .attributes = m->attributes,
                             .n_attributes = n};
}

void recording_put_mark(recording *r) {
    marking m;
    assert_int_equal(d7_writer_flush(r->writer, NULL), 0);
    fill_marking(r, &m);
    assert_int_equal(d7_tail_mark_slot(r->tail, d7_writer_framed_bytes(r->writer), &m.mark, NULL), 0);
}

void recording_put_sync(recording *r) {
    marking m;
    assert_int_equal(d7_writer_flush(r->writer, NULL), 0);
    fill_marking(r, &m);
    assert_int_equal(d7_tail_begin_sync(r->tail, d7_writer_framed_bytes(r->writer), &m.mark, NULL), 0);
    assert_int_equal(d7_writer_sync_data(r->writer, NULL), 0);
    assert_int_equal(d7_tail_sync_data(r->tail, NULL), 0);
    assert_int_equal(d7_tail_finish_sync(r->tail, true, NULL), 0);
}

recording *recording_new(void) {
    recording *r = calloc(1, sizeof *r);
    assert_non_null(r);
    for (unsigned i = 0; i < RECORDING_VALUES; i++) {
        r->x[i] = (uint16_t)(i * 7919);
        r->ms[i] = i * 1000003u;
    }
    r->disk = disk_new(5);
    d7_tail_options options;
    d7_tail_options_init(&options);
    options.io = disk_io(r->disk);
    assert_int_equal(d7_tail_create(&r->tail, recording_tail_path, &recording_layout, recording_file_id, 0, 0,
                                    &options, NULL),
                     0);
    r->writer = recording_writer(d7_tail_io(r->tail), &(d7_attribute){.key = "run", .value = "one"});
    recording_put_sync(r);
    assert_int_equal(options.io->sync_directory(options.io->ctx, recording_path), 0);
    return r;
}

void recording_stop(recording *r) {
    d7_writer_free(r->writer);
    d7_tail_free(r->tail);
    r->writer = NULL;
    r->tail = NULL;
    disk_kill(r->disk);
}

void recording_free(recording *r) {
    recording_stop(r);
    disk_free(r->disk);
    free(r);
}

recording *recording_new_stopped(void) {
    recording *r = recording_new();
    recording_put_batches(r, 20);
    recording_put_sync(r);
    recording_put_batches(r, 10);
    recording_put_mark(r);
    recording_put_batches(r, 5);
    recording_put_mark(r);
    recording_put_batches(r, 5);
    assert_int_equal(d7_writer_flush(r->writer, NULL), 0);
    recording_stop(r);
    return r;
}

size_t recording_size_of(const recording *r, const char *name) {
    size_t n = SIZE_MAX;
    return disk_content(r->disk, name, &n) ? n : SIZE_MAX;
}

d7_tail_recover_options recording_options_for(const recording *r) {
    d7_tail_recover_options o;
    d7_tail_recover_options_init(&o);
    o.io = disk_io(r->disk);
    o.file_id = recording_file_id;
    return o;
}

uint32_t recording_sum_of(const recording *r, const char *name) {
    size_t n;
    const uint8_t *now = disk_content(r->disk, name, &n);
    assert_non_null(now);
    return common_crc32c(0, now, n);
}

int recording_recover_with(recording *r, const d7_tail_recover_options *o, d7_tail_recovery *recovery,
                           d7_error *err) {
    d7_tail_free(r->tail);
    r->tail = NULL;
    return d7_tail_recover(&r->tail, recording_path, o, recovery, err);
}

int recording_recover(recording *r, d7_tail_recovery *recovery, d7_error *err) {
    d7_tail_recover_options o = recording_options_for(r);
    return recording_recover_with(r, &o, recovery, err);
}

void recording_check_holds(recording *r, const d7_tail_slot *slot, uint64_t batch) {
    d7_reader *reader;
    d7_reader_options options = {.io = disk_io(r->disk), .pages_only = true};
    assert_int_equal(d7_reader_open(&reader, recording_path, &options, NULL), 0);
    assert_int_equal(d7_reader_n_damages(reader), 0);
    assert_int_equal(slot->sequence, batch);
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t back[RECORDING_VALUES], n = i == 0 ? batch * RECORDING_BATCH : batch;
        size_t width = d7_type_size(types[i]);
        d7_dataset_info info;
        d7_tail_dataset d;
        assert_int_equal(d7_reader_dataset(reader, i, &info), 0);
        assert_int_equal(d7_tail_slot_dataset(slot, i, &d), 0);
        assert_int_equal(d.items, n);
        assert_int_equal(info.items, d.items - d.n_partial);
        assert_int_equal(d7_reader_read(reader, i, 0, (size_t)info.items, back, NULL), 0);
        assert_int_equal(d7_tail_slot_values(slot, i, 0, d.n_partial, (uint8_t *)back + info.items * width),
                         0);
        assert_memory_equal(back, i == 0 ? (const void *)r->x : (const void *)r->ms, n * width);
    }
    d7_reader_free(reader);
}

void recording_check_recovers_to(recording *r, uint64_t batch, unsigned n_rejected) {
    d7_tail_recovery recovery;
    assert_int_equal(recording_recover(r, &recovery, NULL), 0);
    assert_int_equal(recovery.outcome, D7_TAIL_RESUMED);
    assert_int_equal(recovery.n_rejected, n_rejected);
    assert_int_equal(recovery.length, recording_size_of(r, recording_path));
    recording_check_holds(r, d7_tail_recovered(r->tail), batch);
    assert_int_equal(d7_tail_durable_sequence(r->tail), batch);
}

uint8_t *recording_copy_of(const recording *r, const char *name, size_t *ret_bytes) {
    const uint8_t *now = disk_content(r->disk, name, ret_bytes);
    assert_non_null(now);
    uint8_t *copy = malloc(*ret_bytes);
    assert_non_null(copy);
    memcpy(copy, now, *ret_bytes);
    return copy;
}

void recording_shorten(recording *r, const char *name, size_t bytes) {
    size_t n;
    uint8_t *copy = recording_copy_of(r, name, &n);
    assert_true(bytes <= n);
    disk_put(r->disk, name, copy, bytes);
    free(copy);
}

void recording_spoil(recording *r, const char *name, size_t at) {
    size_t n;
    uint8_t *copy = recording_copy_of(r, name, &n);
    assert_true(at < n);
    copy[at] ^= 0x10;
    disk_put(r->disk, name, copy, n);
    free(copy);
}

size_t recording_place_of(const recording *r, uint64_t batch, d7_tail_slot *ret_slot) {
    size_t n;
    const uint8_t *tail = disk_content(r->disk, recording_tail_path, &n);
    for (size_t i = 0; i < 3; i++)
        if (d7_tail_slot_decode(tail + i * n / 3, n / 3, ret_slot, NULL) == 0 && ret_slot->sequence == batch)
            return i * n / 3;
    fail_msg("no slot of batch %llu", (unsigned long long)batch);
    return 0;
}

void recording_resume(recording *r) {
    const d7_tail_slot *slot = d7_tail_recovered(r->tail);
    d7_writer_options options;
    d7_writer_options_init(&options);
    options.io = d7_tail_io(r->tail);
    r->batch = slot->sequence;
    assert_int_equal(d7_writer_resume(&r->writer, recording_path, slot, &options, NULL), 0);
}

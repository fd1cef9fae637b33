#include "d7_testing.h"

#include <limits.h>

#include "testing.h"

static const d7_dataset datasets[] = {{"/x", D7_UINT16}, {"/y", D7_UINT16}, {"/ms", D7_UINT64}};

void testing_place_begin(testing_place *ret) {
    *ret = (testing_place){0};
    ret->io = memio_table(&ret->file);
    ret->alloc = memcount_table(&ret->memory);
    ret->threads = executor_new(3);
    ret->executor = executor_table(ret->threads);
}

bool testing_place_end(testing_place *place) {
    executor_free(place->threads);
    bool leak = place->memory.outstanding != 0 || place->file.opened_memory;
    memio_free(&place->file);
    return leak;
}

d7_writer_options testing_writer_options(const d7_io *io) {
    d7_writer_options o;
    d7_writer_options_init(&o);
    o.io = io;
    return o;
}

d7_reader *testing_open(const d7_io *io, bool recover, bool quick) {
    d7_reader_options o;
    d7_reader *r = NULL;
    d7_error err = {.code = INT_MAX};
    d7_reader_options_init(&o);
    o.io = io;
    o.recover = recover;
    o.quick = quick;
    if (d7_reader_open(&r, "memory", &o, &err) != 0)
        fail_msg("open: %s", err.text);
    assert_int_equal(err.code, INT_MAX); /* written only on failure */
    return r;
}

uint16_t *testing_noise(uint64_t seed, size_t n) {
    uint16_t *v = malloc((n + 1) * sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = (uint16_t)(testing_random(&seed) & 0xFFF);
    return v;
}

static uint64_t millisecond(size_t i) {
    return i * 50 + i % 7;
}

static void append_turn(d7_writer *w, const uint16_t *x, const uint16_t *y, size_t from, size_t n) {
    d7_error err;
    assert_int_equal(d7_writer_append(w, 0, x + from, n, &err), 0);
    assert_int_equal(d7_writer_append(w, 1, y + from, n, &err), 0);
    for (size_t i = from / 50; i < (from + n) / 50; i++)
        assert_int_equal(d7_writer_append(w, 2, &(uint64_t){millisecond(i)}, 1, &err), 0);
}

void testing_write(const d7_io *io, size_t n, size_t turn, uint32_t index_step, uint32_t bytes_per_page,
                   bool close) {
    d7_writer_options o = testing_writer_options(io);
    d7_writer *w;
    d7_error err;
    uint16_t *x = testing_noise(11, n), *y = testing_noise(12, n);
    o.overwrite = true;
    o.index_step = index_step;
    o.bytes_per_page = bytes_per_page;
    if (d7_writer_create(&w, "memory", datasets, 3, &o, &err) != 0)
        fail_msg("create: %s", err.text);
    assert_int_equal(d7_writer_set_attribute(w, "a", "set at the start", &err), 0);
    for (size_t from = 0; from < n; from += turn) {
        append_turn(w, x, y, from, n - from < turn ? n - from : turn);
        if (from == 0)
            assert_int_equal(d7_writer_set_attribute(w, "b", "set later", &err), 0);
    }
    assert_int_equal(close ? d7_writer_close(w, &err) : d7_writer_flush(w, &err), 0);
    d7_writer_free(w);
    free(x);
    free(y);
}

static void check_column(d7_reader *r, uint32_t ds, const uint16_t *want) {
    d7_dataset_info info;
    d7_error err;
    assert_int_equal(d7_reader_dataset(r, ds, &info), 0);
    uint16_t *got = malloc((size_t)info.items * 2 + 1);
    if (d7_reader_read(r, ds, 0, (size_t)info.items, got, &err) != 0)
        fail_msg("read: %s", err.text);
    assert_memory_equal(got, want, (size_t)info.items * 2);
    free(got);
}

void testing_check_values(d7_reader *r, size_t n) {
    uint16_t *x = testing_noise(11, n), *y = testing_noise(12, n);
    d7_dataset_info info;
    d7_error err;
    check_column(r, 0, x);
    check_column(r, 1, y);
    assert_int_equal(d7_reader_dataset(r, 2, &info), 0);
    for (uint64_t i = 0; i < info.items; i++) {
        uint64_t got;
        assert_int_equal(d7_reader_read(r, 2, i, 1, &got, &err), 0);
        assert_int_equal(got, millisecond((size_t)i));
    }
    free(x);
    free(y);
}

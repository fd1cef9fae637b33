/* Repairs of the small files of these tests, cut in many places: into a new file and in place, the result is closed, free of
 * damage, and holds exactly what the whole pages held. And repairs of which a read fails or is short. */
#include <errno.h>

#include "disk_model.h"
#include "specimen.h"
#include "testing.h"

#ifndef CUT_SHARE
#define CUT_SHARE 1
#endif

static const char source[] = "source.photons", out[] = "out.photons";

/* The disk's table, with reads that fail. */
typedef struct reads {
    d7_io io; /* ctx is this */
    d7_io inner;
    long calls, fail_at; /* 0: none */
    size_t transfer_max;
} reads;

static int64_t faulty_pread(void *ctx, void *file, void *buffer, size_t bytes, uint64_t offset) {
    reads *x = ctx;
    if (++x->calls == x->fail_at)
        return -EIO;
    if (x->transfer_max && x->calls % 2)
        return -EINTR;
    return x->inner.pread(x->inner.ctx, file, buffer,
                          x->transfer_max && bytes > x->transfer_max ? x->transfer_max : bytes, offset);
}

static int64_t pass_pwrite(void *ctx, void *file, const void *data, size_t bytes, uint64_t offset) {
    const reads *x = ctx;
    return x->inner.pwrite(x->inner.ctx, file, data, bytes, offset);
}

static int pass_open(void *ctx, const char *path, int flags, unsigned mode, void **ret_file) {
    const reads *x = ctx;
    return x->inner.open(x->inner.ctx, path, flags, mode, ret_file);
}

#define PASS_FILE(name)                                                                                      \
    static int pass_##name(void *ctx, void *file) {                                                          \
        const reads *x = ctx;                                                                                \
        return x->inner.name(x->inner.ctx, file);                                                            \
    }
PASS_FILE(close)
PASS_FILE(sync_data)
PASS_FILE(lock)

static int pass_size(void *ctx, void *file, uint64_t *ret_bytes) {
    const reads *x = ctx;
    return x->inner.size(x->inner.ctx, file, ret_bytes);
}

static int pass_truncate(void *ctx, void *file, uint64_t bytes) {
    const reads *x = ctx;
    return x->inner.truncate(x->inner.ctx, file, bytes);
}

static int pass_held(void *ctx, void *file, bool *ret_held) {
    const reads *x = ctx;
    return x->inner.held(x->inner.ctx, file, ret_held);
}

#define PASS_PATH(name)                                                                                      \
    static int pass_##name(void *ctx, const char *path) {                                                    \
        const reads *x = ctx;                                                                                \
        return x->inner.name(x->inner.ctx, path);                                                            \
    }
PASS_PATH(remove)
PASS_PATH(sync_directory)

static void reads_init(reads *x, disk *d) {
    *x = (reads){.inner = *disk_io(d)};
    x->io = (d7_io){.ctx = x,
                    .open = pass_open,
                    .close = pass_close,
                    .pread = faulty_pread,
                    .pwrite = pass_pwrite,
                    .sync_data = pass_sync_data,
                    .size = pass_size,
                    .truncate = pass_truncate,
                    .lock = pass_lock,
                    .held = pass_held,
                    .remove = pass_remove,
                    .sync_directory = pass_sync_directory};
}

static int repair(const d7_io *io, bool in_place, d7_error *err) {
    d7_repair_options o;
    d7_repair_report report = {0};
    d7_repair_options_init(&o);
    o.io = io;
    int rc =
        in_place ? d7_repair_in_place(source, &o, &report, err) : d7_repair(source, out, &o, &report, err);
    d7_repair_report_free(&report);
    return rc;
}

static void check_dataset(const specimen *s, size_t cut, d7_reader *r, uint32_t ds) {
    d7_dataset_info info;
    size_t size = d7_type_size(s->types[ds]);
    uint64_t items = 0;
    assert_int_equal(d7_reader_dataset(r, ds, &info), 0);
    uint8_t *values = malloc((size_t)info.items * size + 1);
    assert_int_equal(d7_reader_read(r, ds, 0, (size_t)info.items, values, NULL), 0);
    for (size_t i = 0; i < s->n_entries; i++) {
        const specimen_entry *e = &s->entries[i];
        if (e->kind != SPECIMEN_PAGE || e->dataset_id != ds || e->end > cut)
            continue;
        assert_true(items + e->n_items <= info.items);
        assert_memory_equal(values + items * size, e->values, e->n_items * size);
        items += e->n_items;
    }
    assert_int_equal(items, info.items);
    free(values);
}

static void check_result(const specimen *s, size_t cut, const d7_io *io, const char *path) {
    d7_reader_options o;
    d7_reader *r;
    d7_verify_summary sum;
    d7_error err;
    d7_reader_options_init(&o);
    o.io = io;
    if (d7_reader_open(&r, path, &o, &err) != 0)
        fail_msg("%s, cut at %zu: %s", s->name, cut, err.text);
    assert_int_equal(d7_reader_state(r), D7_STATE_CLOSED);
    assert_int_equal(d7_reader_n_datasets(r), s->n_datasets);
    for (uint32_t ds = 0; ds < s->n_datasets; ds++)
        check_dataset(s, cut, r, ds);
    assert_int_equal(d7_reader_verify(r, NULL, NULL, NULL, NULL, &sum, &err), 0);
    assert_int_equal(sum.damages, 0);
    d7_reader_free(r);
}

static size_t whole_end(const specimen *s, size_t cut) {
    size_t end = 0;
    for (size_t i = 0; i < s->n_entries; i++)
        if (s->entries[i].end <= cut && s->entries[i].kind == SPECIMEN_PAGE)
            end = (size_t)s->entries[i].end;
    return end;
}

static void cut_at(const specimen *s, size_t cut, bool in_place) {
    disk *d = disk_new(1);
    d7_error err = {0};
    size_t n;
    disk_put(d, source, s->bytes, cut);
    int rc = repair(disk_io(d), in_place, &err);
    if (rc != 0)
        fail_msg("%s, cut at %zu: %s", s->name, cut, err.text);
    const uint8_t *left = disk_content(d, source, &n);
    size_t same = in_place ? whole_end(s, cut) : cut;
    assert_true(n >= same && (in_place || n == cut));
    assert_memory_equal(left, s->bytes, same);
    check_result(s, cut, disk_io(d), in_place || (s->closed && cut == s->n) ? source : out);
    disk_free(d);
}

static void cut_and_repair(bool in_place) {
    specimen *s;
    for (size_t i = 0; (s = specimen_make(i)); i++) {
        uint64_t rng = 17;
        for (size_t k = 0; k < s->n_entries; k += CUT_SHARE) { /* around the ends of entries */
            size_t end = (size_t)s->entries[k].end;
            for (size_t cut = end; cut < end + 3 && cut <= s->n; cut++)
                cut_at(s, cut, in_place);
        }
        for (size_t k = 0; k < 30 / CUT_SHARE; k++)
            cut_at(s, (size_t)s->entries[0].end + (size_t)(testing_random(&rng) % (s->n - s->entries[0].end)),
                   in_place);
        specimen_free(s);
    }
}

static void cut_files_are_rewritten(void **state) {
    (void)state;
    cut_and_repair(false);
}

static void cut_files_are_closed_in_place(void **state) {
    (void)state;
    cut_and_repair(true);
}

/* What the source is for the tests of reads: an open file with islands that lost a block and its end. */
static void put_damaged(disk *d, const specimen *s, bool zeroed) {
    uint8_t *bytes = malloc(s->n);
    memcpy(bytes, s->bytes, s->n);
    if (zeroed)
        memset(bytes + 2 * D7_BLOCK_BYTES, 0, D7_BLOCK_BYTES);
    disk_put(d, source, bytes, s->n - 100);
    free(bytes);
}

/* Each read fails in turn: the error says so, nothing is left, and the source is as it was, or still to be repaired. */
static void each_read_error_leaves_nothing(bool in_place) {
    specimen *s = specimen_make(3);
    for (long at = 1;; at += at < 30 ? 1 : 5) {
        disk *d = disk_new(1);
        d7_error err = {0};
        reads x;
        size_t n, before;
        put_damaged(d, s, !in_place);
        disk_content(d, source, &before);
        reads_init(&x, d);
        x.fail_at = at;
        int rc = repair(&x.io, in_place, &err);
        bool reached = x.calls >= at;
        assert_int_equal(rc, reached ? D7_ERR_IO : 0);
        if (reached) {
            assert_int_equal(err.os_errno, EIO);
            assert_non_null(strstr(err.text, ".photons"));
            assert_null(disk_content(d, out, &n));
            assert_int_equal(repair(disk_io(d), in_place, &err), 0);
        }
        if (in_place)
            check_result(s, s->n - 100, disk_io(d), source);
        else
            assert_non_null(disk_content(d, out, &n));
        disk_free(d);
        if (!reached)
            break;
    }
    specimen_free(s);
}

static void each_read_error_of_a_repair_is_told(void **state) {
    (void)state;
    each_read_error_leaves_nothing(false);
}

static void each_read_error_in_place_is_told(void **state) {
    (void)state;
    each_read_error_leaves_nothing(true);
}

static void short_reads_change_no_repair(void **state) {
    (void)state;
    specimen *s = specimen_make(3);
    disk *d = disk_new(1);
    d7_error err;
    size_t n_want, n_got;
    put_damaged(d, s, true);
    assert_int_equal(repair(disk_io(d), false, &err), 0);
    const uint8_t *content = disk_content(d, out, &n_want);
    uint8_t *want = malloc(n_want);
    memcpy(want, content, n_want);
    disk_free(d);
    for (size_t max = 1; max < 20000; max = max * 13 + 1) {
        reads x;
        d = disk_new(1);
        put_damaged(d, s, true);
        reads_init(&x, d);
        x.transfer_max = max;
        assert_int_equal(repair(&x.io, false, &err), 0);
        const uint8_t *got = disk_content(d, out, &n_got);
        assert_int_equal(n_got, n_want);
        assert_memory_equal(got, want, n_want);
        disk_free(d);
    }
    free(want);
    specimen_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_files_are_rewritten),
        cmocka_unit_test(cut_files_are_closed_in_place),
        cmocka_unit_test(each_read_error_of_a_repair_is_told),
        cmocka_unit_test(each_read_error_in_place_is_told),
        cmocka_unit_test(short_reads_change_no_repair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

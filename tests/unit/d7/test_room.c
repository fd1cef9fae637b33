/* Space that is set aside: what a close takes is never more than it was said to, and all of it is given back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "d7_testing.h"
#include "memio.h"
#include "random.h"

/* A file in memory on a disk with `room` bytes, of which `reserved` are the file's. */
typedef struct disk {
    memio file;
    d7_io io;
    d7_io inner;
    uint64_t room, reserved;
    long allocations, truncations;
} disk;

static int disk_allocate(void *ctx, void *file, uint64_t offset, uint64_t bytes) {
    disk *d = ctx;
    (void)file;
    d->allocations++;
    if (offset + bytes > d->room)
        return -ENOSPC;
    if (offset + bytes > d->reserved)
        d->reserved = offset + bytes;
    return 0;
}

static int disk_open(void *ctx, const char *path, int flags, unsigned mode, void **ret_file) {
    disk *d = ctx;
    return d->inner.open(d->inner.ctx, path, flags, mode, ret_file);
}

static int disk_close(void *ctx, void *file) {
    disk *d = ctx;
    return d->inner.close(d->inner.ctx, file);
}

static int64_t disk_pread(void *ctx, void *file, void *buffer, size_t bytes, uint64_t offset) {
    disk *d = ctx;
    return d->inner.pread(d->inner.ctx, file, buffer, bytes, offset);
}

/* Only what was set aside can be written. */
static int64_t disk_pwrite(void *ctx, void *file, const void *data, size_t bytes, uint64_t offset) {
    disk *d = ctx;
    if (d->reserved && offset + bytes > d->reserved)
        return -ENOSPC;
    return d->inner.pwrite(d->inner.ctx, file, data, bytes, offset);
}

static int disk_sync(void *ctx, void *file) {
    disk *d = ctx;
    return d->inner.sync_data(d->inner.ctx, file);
}

static int disk_size(void *ctx, void *file, uint64_t *ret_bytes) {
    disk *d = ctx;
    return d->inner.size(d->inner.ctx, file, ret_bytes);
}

static int disk_truncate(void *ctx, void *file, uint64_t bytes) {
    disk *d = ctx;
    d->truncations++;
    d->reserved = bytes;
    return d->inner.truncate(d->inner.ctx, file, bytes);
}

static int disk_lock(void *ctx, void *file) {
    disk *d = ctx;
    return d->inner.lock(d->inner.ctx, file);
}

static int disk_held(void *ctx, void *file, bool *ret_held) {
    disk *d = ctx;
    return d->inner.held(d->inner.ctx, file, ret_held);
}

static void disk_init(disk *d) {
    memset(d, 0, sizeof *d);
    d->inner = memio_table(&d->file);
    d->room = UINT64_MAX;
    d->io = (d7_io){.ctx = d,
                    .open = disk_open,
                    .close = disk_close,
                    .pread = disk_pread,
                    .pwrite = disk_pwrite,
                    .sync_data = disk_sync,
                    .size = disk_size,
                    .truncate = disk_truncate,
                    .lock = disk_lock,
                    .held = disk_held,
                    .allocate = disk_allocate};
}

static const d7_dataset three[] = {
    {.name = "/a", .type = D7_UINT8}, {.name = "/b", .type = D7_UINT16}, {.name = "/c", .type = D7_INT64}};

static d7_writer *writer_on(disk *d, uint32_t index_step) {
    d7_writer_options o;
    d7_writer *w = NULL;
    d7_writer_options_init(&o);
    o.io = &d->io;
    o.bytes_per_page = 512;
    o.index_step = index_step;
    o.buffer_bytes = 8192;
    assert_int_equal(d7_writer_create(&w, "room.photons", three, 3, &o, NULL), 0);
    return w;
}

static void append_some(d7_writer *w, uint64_t *seed) {
    uint64_t values[700];
    char key[24], value[600];
    for (int i = 0; i < 700; i++)
        values[i] = testing_random(seed);
    if (testing_random(seed) % 8 == 0) {
        snprintf(key, sizeof key, "key %u", (unsigned)(testing_random(seed) % 1000));
        memset(value, 'v', sizeof value);
        value[testing_random(seed) % sizeof value] = 0;
        value[sizeof value - 1] = 0;
        assert_int_equal(d7_writer_set_attribute(w, key, value, NULL), 0);
    } else {
        assert_int_equal(d7_writer_append(w, (uint32_t)(testing_random(seed) % 3), values,
                                          (size_t)(testing_random(seed) % 700), NULL),
                         0);
    }
}

/* The promise, at any moment: the disk holds what was set aside and not a byte more, and the file is closed. */
static void a_close_needs_no_more_than_it_said(void **state) {
    (void)state;
    for (unsigned round = 0; round < 150; round++) {
        disk d;
        disk_init(&d);
        uint64_t seed = 1 + round;
        d7_writer *w = writer_on(&d, 1 + round % 7);
        for (unsigned n = (unsigned)(testing_random(&seed) % 120); n > 0; n--)
            append_some(w, &seed);
        uint64_t said = d7_writer_closed_bytes(w);
        d.room = said;
        assert_int_equal(d7_writer_allocate(w, said, 0, NULL), 0);
        assert_int_equal(d.reserved, said);
        d7_error err = {.text = ""};
        if (d7_writer_close(w, &err) != 0)
            fail_msg("round %u: %s", round, err.text);
        assert_true(d.file.n <= said);
        assert_int_equal(d.reserved, d.file.n);
        assert_int_equal(d.truncations, 1);
        d7_writer_free(w);
        memio_free(&d.file);
    }
}

/* Each page that comes adds at most itself and D7_CLOSED_PAGE_BYTES. */
static void it_grows_with_what_comes(void **state) {
    (void)state;
    disk d;
    disk_init(&d);
    d7_writer *w = writer_on(&d, 3);
    uint64_t values[64], seed = 9;
    for (unsigned i = 0; i < 2000; i++) {
        uint8_t entry[2048];
        size_t bytes;
        for (int k = 0; k < 64; k++)
            values[k] = testing_random(&seed);
        uint64_t before = d7_writer_closed_bytes(w);
        assert_int_equal(d7_page_encode(2, D7_INT64, values, 64, entry, sizeof entry, &bytes), 0);
        assert_int_equal(d7_writer_append_page(w, 2, entry, bytes, 64, NULL), 0);
        assert_in_range(d7_writer_closed_bytes(w), before + bytes,
                        before + bytes + D7_CLOSED_PAGE_BYTES + 3 * 128 * 17);
    }
    assert_int_equal(d7_writer_close(w, NULL), 0);
    d7_writer_free(w);
    memio_free(&d.file);
}

static void a_full_disk_is_told_and_nothing_changes(void **state) {
    (void)state;
    disk d;
    disk_init(&d);
    d7_writer *w = writer_on(&d, 3);
    uint64_t seed = 5, need = d7_writer_closed_bytes(w);
    d.room = need + 1000;
    d7_error err = {.text = ""};
    assert_int_equal(d7_writer_allocate(w, need, 0, &err), 0);
    assert_int_equal(d7_writer_allocate(w, need + 2000, 0, &err), D7_ERR_NOSPACE);
    assert_non_null(strstr(err.text, "room.photons: space cannot be set aside"));
    long before = d.allocations;
    assert_int_equal(d7_writer_allocate(w, need, 0, &err), 0); /* it is there */
    assert_int_equal(d.allocations, before);
    d.room = UINT64_MAX;
    d.reserved = UINT64_MAX;
    append_some(w, &seed);
    assert_int_equal(d7_writer_close(w, NULL), 0);
    d7_writer_free(w);
    memio_free(&d.file);
}

static void where_none_is_set_aside(void **state) {
    (void)state;
    disk d;
    disk_init(&d);
    d.io.allocate = NULL;
    d7_writer *w = writer_on(&d, 3);
    assert_int_equal(d7_writer_allocate(w, 1 << 20, 0, NULL), D7_ERR_UNSUPPORTED);
    assert_int_equal(d7_writer_close(w, NULL), 0);
    assert_int_equal(d.truncations, 0);
    d7_writer_free(w);
    memio_free(&d.file);
}

static void files_of_the_system_give_it_back(void **state) {
    (void)state;
    char path[] = "/tmp/photond-room.XXXXXX", sums[64];
    struct stat there;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    unlink(path);
    snprintf(sums, sizeof sums, "%s.crc", path);
    d7_writer_options o;
    d7_writer *w = NULL;
    d7_writer_options_init(&o);
    o.checksums = true;
    assert_int_equal(d7_writer_create(&w, path, three, 3, &o, NULL), 0);
    int code = d7_writer_allocate(w, 8 << 20, 1000, NULL);
    if (code == 0) {
        assert_int_equal(stat(path, &there), 0);
        assert_true(there.st_blocks * 512 >= 8 << 20 && there.st_size < 65536);
        assert_int_equal(stat(sums, &there), 0);
        assert_true(there.st_blocks * 512 >= 64000);
    } else {
        assert_int_equal(code, D7_ERR_UNSUPPORTED);
    }
    assert_int_equal(d7_writer_close(w, NULL), 0);
    d7_writer_free(w);
    const char *const paths[] = {path, sums};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(stat(paths[i], &there), 0);
        assert_true(there.st_blocks * 512 < there.st_size + 16384);
        unlink(paths[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_close_needs_no_more_than_it_said),      cmocka_unit_test(it_grows_with_what_comes),
        cmocka_unit_test(a_full_disk_is_told_and_nothing_changes), cmocka_unit_test(where_none_is_set_aside),
        cmocka_unit_test(files_of_the_system_give_it_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

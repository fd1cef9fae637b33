/* A full disk: nothing can be written, but what is there can be deleted, and what fails leaves nothing behind. */
#include "support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io.h"

/* No byte more is taken while `full`. */
static bool full;

static ssize_t write_if_room(void *context, int fd, const void *data, size_t bytes, off_t offset) {
    if (!full)
        return daf__system_io.pwrite(context, fd, data, bytes, offset);
    errno = ENOSPC;
    return -1;
}

static daf_io disk_io(void) {
    daf_io io = daf__system_io;
    io.pwrite = write_if_room;
    return io;
}

static daf *open_base(const char *path, const daf_io *io) {
    static const int32_t values[6] = {1, 2, 3, 4, 5, 6};
    const daf_scalar one = daf_scalar_int64(1);
    daf_set_options sparse;
    daf_options options;
    daf *d;
    daf_options_init(&options);
    options.io = io;
    daf_set_options_init(&sparse);
    sparse.form = DAF_FORM_SPARSE;
    sparse.both_layouts = true;
    full = false;
    OK(daf_open(&d, path, "w", &options, e));
    OK(daf_set_scalar(d, "s", &one, NULL, e));
    OK(daf_add_axis_integers(d, "a", 0, 1, 2, e));
    OK(daf_add_axis_integers(d, "b", 0, 1, 3, e));
    OK(daf_set_vector(d, "a", "v", DAF_INT32, values, 2, NULL, e));
    OK(daf_set_vector(d, "b", "w", DAF_INT32, values, 3, NULL, e));
    OK(daf_set_matrix(d, "a", "b", "m", DAF_INT32, values, 6, &sparse, e));
    return d;
}

static void check_verified(const char *path) {
    daf_verify_summary found;
    OK(daf_verify(path, NULL, &found, e));
    assert_int_equal(found.n[DAF_CLASS_DAMAGE] + found.n[DAF_CLASS_FAULT], 0);
}

static int delete_all(daf *d, unsigned which, daf_error *err) {
    switch (which) {
    case 0:
        return daf_delete_scalar(d, "s", err);
    case 1:
        return daf_delete_vector(d, "a", "v", err);
    case 2:
        return daf_delete_matrix(d, "b", "a", "m", err);
    default:
        return daf_delete_axis(d, "b", err);
    }
}

static void check_deleted(const char *path, unsigned which) {
    bool has[6];
    daf *d;
    OK(daf_open(&d, path, "r+", NULL, e));
    OK(daf_has_scalar(d, &has[0], "s", e));
    OK(daf_has_vector(d, &has[1], "a", "v", e));
    OK(daf_has_matrix(d, &has[2], "a", "b", "m", e));
    OK(daf_has_matrix(d, &has[3], "b", "a", "m", e));
    OK(daf_has_axis(d, &has[4], "b", e));
    OK(daf_has_vector(d, &has[5], "b", "w", e));
    OK(daf_close(d, e));
    assert_int_equal(has[0], which != 0);
    assert_int_equal(has[1], which != 1);
    assert_int_equal(has[2], which < 2);
    assert_int_equal(has[3], which < 2);
    assert_int_equal(has[4], which != 3);
    assert_int_equal(has[5], which != 3);
}

/* kinds: alone or in a batch; the room stays away, or is there again before the handle is closed. */
static void what_is_there_can_be_deleted(void **state) {
    daf_io io = disk_io();
    for (unsigned i = 0; i < 4 * 4; i++) {
        char name[32];
        bool in_batch = i / 4 & 1, room_again = i / 8;
        snprintf(name, sizeof name, "%u.daf", i);
        const char *path = test_path(state, name);
        daf *d = open_base(path, &io);
        if (in_batch)
            OK(daf_batch_begin(d, e));
        full = true;
        OK(delete_all(d, i % 4, e));
        full = !room_again;
        if (in_batch && room_again)
            OK(daf_batch_commit(d, e));
        daf_free(d);
        full = false;
        check_deleted(path, i % 4);
        check_verified(path);
    }
}

/* Behind a delete the index is right at once when its own files made the room. */
static void the_index_is_made_anew(void **state) {
    daf_io io = disk_io();
    const char *path = test_path(state, "a.daf");
    const daf_scalar two = daf_scalar_int64(2);
    daf *d = open_base(path, &io);
    full = true;
    OK(daf_delete_vector(d, "a", "v", e));
    full = false;
    OK(daf_set_scalar(d, "t", &two, NULL, e));
    check_verified(path);
    OK(daf_close(d, e));
    check_verified(path);
}

static void what_fails_leaves_nothing(void **state) {
    static const uint64_t order[3] = {2, 0, 1};
    static const int32_t values[3] = {7, 8, 9};
    daf_io io = disk_io();
    const char *path = test_path(state, "a.daf"), *before = test_path(state, "before.daf");
    const daf_scalar two = daf_scalar_int64(2);
    daf_set_options over;
    daf *d = open_base(path, &io);
    test_copy_tree(path, before);
    daf_set_options_init(&over);
    over.overwrite = true;
    full = true;
    FAILS(DAF_ERR_IO, "", daf_reorder_axis(d, "b", order, 3, e));
    test_same_tree(path, before);
    FAILS(DAF_ERR_IO, "", daf_set_scalar(d, "t", &two, NULL, e));
    FAILS(DAF_ERR_IO, "", daf_set_vector(d, "b", "w", DAF_INT32, values, 3, &over, e));
    FAILS(DAF_ERR_IO, "", daf_add_axis_integers(d, "c", 0, 1, 3, e));
    test_same_tree(path, before);
    check_verified(path);
    full = false;
    OK(daf_reorder_axis(d, "b", order, 3, e));
    OK(daf_close(d, e));
    check_verified(path);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_is_there_can_be_deleted),
        TEST(the_index_is_made_anew),
        TEST(what_fails_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

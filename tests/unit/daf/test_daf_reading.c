/* What opening for reading leaves on disk: nothing, but a metadata.json where there is none. */
#include "support.h"

#include "actions.h"
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct lacking {
    const char *path, *index; /* of a repository, whose index is missing */
    const char *whole;        /* the same with what a rebuild makes of the index */
    char *rebuilt;
    size_t bytes;
} lacking;

static void open_and_close(const char *path, const char *mode) {
    daf *d;
    OK(daf_open(&d, path, mode, NULL, e));
    OK(daf_close(d, e));
}

static void take_index(const char *index) {
    if (unlink(index) != 0)
        assert_int_equal(errno, ENOENT);
}

static void make(lacking *t, void **state) {
    t->path = test_path(state, "a.daf");
    t->index = test_path(state, "a.daf/metadata.json");
    t->whole = test_path(state, "whole.daf");
    test_make_base(t->path);
    take_index(t->index);
    open_and_close(t->path, "r+");
    t->rebuilt = test_read_file(t->index, &t->bytes);
    test_copy_tree(t->path, t->whole);
    take_index(t->index);
}

static void end(lacking *t) {
    free(t->rebuilt);
}

/* ---- which are made anew */

static void only_what_is_no_index_is_made(void **state) {
    static const struct {
        const char *text;
        bool kept;
    } cases[] = {{"", false},          {"{", false},          {"[]", false},
                 {"3", false},         {"{}", true},          {"{}\n", true},
                 {"{\"a\":{}", false}, {"{\"a\":01}", false}, {"{\"scalars/none\":{}}", true}};
    lacking t;
    make(&t, state);
    open_and_close(t.path, "r");
    test_same_tree(t.path, t.whole);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t bytes = 0;
        test_write_file(t.index, cases[i].text, strlen(cases[i].text));
        open_and_close(t.path, "r");
        if (!cases[i].kept) {
            test_same_tree(t.path, t.whole);
            continue;
        }
        char *now = test_read_file(t.index, &bytes);
        assert_int_equal(bytes, strlen(cases[i].text));
        assert_memory_equal(now, cases[i].text, bytes);
        free(now);
    }
    end(&t);
}

/* A link in its place is replaced, not followed; a folder stays. */
static void a_link_is_not_followed(void **state) {
    lacking t;
    struct stat st;
    make(&t, state);
    const char *other = test_path(state, "other");
    test_write_file(other, "other", 5);
    assert_int_equal(symlink(other, t.index), 0);
    open_and_close(t.path, "r");
    test_same_tree(t.path, t.whole);
    assert_true(lstat(t.index, &st) == 0 && S_ISREG(st.st_mode));
    size_t bytes;
    char *there = test_read_file(other, &bytes);
    assert_int_equal(bytes, 5);
    free(there);
    take_index(t.index);
    assert_int_equal(mkdir(t.index, 0777), 0);
    open_and_close(t.path, "r");
    assert_true(stat(t.index, &st) == 0 && S_ISDIR(st.st_mode));
    assert_int_equal(rmdir(t.index), 0);
    end(&t);
}

/* ---- when it is left to others */

static int delete_an_axis(void *context, const daf_io *io, daf_error *err) {
    daf_options options;
    daf *d;
    daf_options_init(&options);
    options.io = io;
    int rc = daf_open(&d, context, "r+", &options, err);
    if (rc)
        return rc;
    rc = daf_delete_axis(d, "a", err);
    daf_free(d);
    return rc;
}

/* Wherever a change was interrupted, its journal is of a change that waits, or the change is whole. */
static void not_before_a_change_is_undone(void **state) {
    unsigned n_waiting = 0;
    bool killed = true;
    lacking t;
    make(&t, state);
    const char *before = test_path(state, "before.daf"), *journal = test_path(state, "a.daf/.daf.journal");
    for (unsigned n = 1; killed; n++) {
        struct stat st;
        test_remove_tree(t.path);
        test_remove_tree(before);
        test_copy_tree(t.whole, t.path);
        killed = test_killed_at(n, delete_an_axis, (void *)(uintptr_t)t.path);
        take_index(t.index);
        test_copy_tree(t.path, before);
        bool waits = stat(journal, &st) == 0 && st.st_size > 0;
        open_and_close(t.path, "r");
        assert_true(test_equal_trees(before, t.path, "/metadata.json"));
        assert_int_equal(test_exists(t.index), !waits);
        n_waiting += waits;
    }
    assert_true(n_waiting > 3);
    end(&t);
}

static void not_before_a_reorder_is_undone(void **state) {
    lacking t;
    make(&t, state);
    const char *backup = test_path(state, "a.daf/.reorder.backup");
    assert_int_equal(mkdir(backup, 0777), 0);
    open_and_close(t.path, "r");
    assert_false(test_exists(t.index));
    assert_int_equal(rmdir(backup), 0);
    open_and_close(t.path, "r");
    test_same_tree(t.path, t.whole);
    end(&t);
}

static void not_beside_a_writer(void **state) {
    lacking t;
    daf *writer;
    make(&t, state);
    OK(daf_open(&writer, t.path, "r+", NULL, e));
    take_index(t.index);
    open_and_close(t.path, "r");
    assert_false(test_exists(t.index));
    OK(daf_close(writer, e));
    open_and_close(t.path, "r");
    test_same_tree(t.path, t.whole);
    end(&t);
}

/* A child without rights there. */
static int read_without_rights(int folder) {
    daf *d;
    if (geteuid() == 0 && setuid(65534) != 0)
        return 2;
    if (daf_openat(&d, folder, ".", "r", NULL, NULL) != 0)
        return 1;
    daf_free(d);
    return 0;
}

static void not_where_it_may_not_write(void **state) {
    lacking t;
    int status = 0;
    make(&t, state);
    assert_int_equal(chmod(t.path, 0555), 0);
    int folder = open(t.path, O_RDONLY | O_DIRECTORY);
    assert_true(folder >= 0);
    pid_t child = fork();
    if (child == 0)
        _exit(read_without_rights(folder));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(folder);
    assert_int_equal(chmod(t.path, 0755), 0);
    assert_false(test_exists(t.index));
    assert_true(test_equal_trees(t.whole, t.path, "/metadata.json"));
    end(&t);
}

/* ---- faults */

static int open_for_reading(void *context, const daf_io *io, daf_error *err) {
    daf_options options;
    daf *d;
    daf_options_init(&options);
    options.io = io;
    int rc = daf_open(&d, context, "r", &options, err);
    if (rc == 0)
        daf_free(d);
    return rc;
}

/* Whatever fails: the index is whole or not there, nothing else is, and failing to write is not told. */
static void failures_leave_nothing(void **state) {
    unsigned n_made = 0, n_failed = 0;
    bool fired = true;
    lacking t;
    make(&t, state);
    for (unsigned n = 1; fired; n++) {
        test_faults f = {.at = n, .os_errno = ENOSPC};
        daf_io io = test_faulty_io(&f);
        daf_error err = {0};
        take_index(t.index);
        int rc = open_for_reading((void *)(uintptr_t)t.path, &io, &err);
        fired = f.fired;
        n_failed += rc != 0;
        if (test_exists(t.index))
            test_same_tree(t.path, t.whole);
        else
            assert_true(test_equal_trees(t.whole, t.path, "/metadata.json"));
        n_made += test_exists(t.index);
    }
    assert_true(n_made >= 1 && n_failed >= 1);
    end(&t);
}

static void killed_readers_leave_what_a_writer_removes(void **state) {
    bool killed = true;
    lacking t;
    make(&t, state);
    for (unsigned n = 1; killed; n++) {
        take_index(t.index);
        killed = test_killed_at(n, open_for_reading, (void *)(uintptr_t)t.path);
        size_t bytes = 0;
        char *now = test_exists(t.index) ? test_read_file(t.index, &bytes) : NULL;
        assert_true(!now || (bytes == t.bytes && memcmp(now, t.rebuilt, bytes) == 0));
        free(now);
        open_and_close(t.path, "r+");
        test_same_tree(t.path, t.whole);
    }
    end(&t);
}

/* A writer that comes while readers make the index waits for them; it is refused only beside another writer. */
static void writers_wait_for_readers(void **state) {
    daf *d, *other;
    int status = 0, ready[2];
    char byte = 0;
    lacking t;
    make(&t, state);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        int folder = open(t.path, O_RDONLY | O_DIRECTORY);
        bool held = folder >= 0 && flock(folder, LOCK_SH) == 0 && write(ready[1], "x", 1) == 1;
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        _exit(!held);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    OK(daf_open(&d, t.path, "r+", NULL, e));
    FAILS(DAF_ERR_BUSY, "another writer has it open", daf_open(&other, t.path, "r+", NULL, e));
    OK(daf_close(d, e));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ready[0]);
    close(ready[1]);
    end(&t);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(only_what_is_no_index_is_made), TEST(a_link_is_not_followed),
        TEST(not_before_a_change_is_undone), TEST(not_before_a_reorder_is_undone),
        TEST(not_beside_a_writer),           TEST(not_where_it_may_not_write),
        TEST(failures_leave_nothing),        TEST(killed_readers_leave_what_a_writer_removes),
        TEST(writers_wait_for_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

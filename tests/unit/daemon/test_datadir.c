#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "datadir.h"
#include "log.h"

typedef struct folder {
    char path[64];
    pd_datadir dir;
} folder;

static int set_up(void **state) {
    folder *f = calloc(1, sizeof *f);
    pd_error err;
    snprintf(f->path, sizeof f->path, "/tmp/photond-datadir.XXXXXX");
    if (!mkdtemp(f->path))
        return -1;
    *state = f;
    return pd_datadir_open(&f->dir, f->path, 0755, &err);
}

static int tear_down(void **state) {
    folder *f = *state;
    char command[128];
    pd_datadir_close(&f->dir);
    snprintf(command, sizeof command, "rm -r %s", f->path);
    int failed = system(command);
    free(f);
    return failed;
}

static void touch(const folder *f, const char *name) {
    int fd = openat(f->dir.fd, name, O_CREAT | O_WRONLY | O_EXCL, 0644);
    assert_true(fd >= 0);
    close(fd);
}

static bool there(const folder *f, const char *name) {
    return faccessat(f->dir.fd, name, F_OK, 0) == 0;
}

/* In another process, as another daemon would: the lock belongs to the open file. */
static int open_elsewhere(const char *path) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        pd_datadir dir;
        pd_error err = {""};
        int failed = pd_datadir_open(&dir, path, 0755, &err);
        _exit(failed ? (strstr(err.text, "another photond (process") ? 1 : 2) : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static void a_second_daemon_is_refused_while_the_first_lives(void **state) {
    folder *f = *state;
    pd_error err;
    assert_true(f->dir.guarded);
    assert_int_equal(open_elsewhere(f->path), 1);
    pd_datadir_close(&f->dir);
    assert_int_equal(open_elsewhere(f->path), 0);
    assert_int_equal(open_elsewhere(f->path), 0); /* the lock went with the process */
    assert_int_equal(pd_datadir_open(&f->dir, f->path, 0755, &err), 0);
}

static void what_belongs_to_a_run_takes_its_name(void **state) {
    static const char *const files[] = {"a.photons",  "b.photons.tail", "c.daf",        "d.dafs.zip",
                                        "e.run.json", "f.0001.photons", "g.photons.crc"};
    folder *f = *state;
    char which[PD_FILE_NAME_BYTES];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char name[2] = {files[i][0], 0};
        assert_false(pd_datadir_taken(&f->dir, name, which));
        touch(f, files[i]);
        assert_true(pd_datadir_taken(&f->dir, name, which));
        assert_string_equal(which, files[i]);
    }
    assert_int_equal(symlinkat("nowhere", f->dir.fd, "h.photons"), 0);
    assert_true(pd_datadir_taken(&f->dir, "h", which));
    assert_false(pd_datadir_taken(&f->dir, "ab", which));
}

static void publishing_replaces_nothing(void **state) {
    static const uint8_t id[PD_RUN_ID_BYTES] = {0xab, 1};
    folder *f = *state;
    char path[128];
    assert_int_equal(pd_datadir_new_path(&f->dir, id, path, 20), -1);
    assert_int_equal(pd_datadir_new_path(&f->dir, id, path, sizeof path), 0);
    touch(f, ".photond/ab010000000000000000000000000000.new");
    touch(f, ".photond/ab010000000000000000000000000000.new.tail");
    touch(f, ".photond/ab010000000000000000000000000000.new.crc");
    touch(f, "taken.photons");
    touch(f, "half.photons.tail");
    touch(f, "third.photons.crc");
    assert_int_equal(pd_datadir_publish(&f->dir, path, "taken"), -EEXIST);
    assert_int_equal(pd_datadir_publish(&f->dir, path, "half"), -EEXIST);
    assert_int_equal(pd_datadir_publish(&f->dir, path, "third"), -EEXIST);
    assert_false(there(f, "taken.photons.tail"));
    assert_false(there(f, "third.photons"));
    assert_false(there(f, "third.photons.tail"));
    assert_false(there(f, "half.photons"));
    assert_int_equal(pd_datadir_publish(&f->dir, path, "free"), 0);
    assert_true(there(f, "free.photons"));
    assert_true(there(f, "free.photons.tail"));
    assert_true(there(f, "free.photons.crc"));
    assert_int_equal(pd_datadir_remove_tail(&f->dir, "free"), 0);
    assert_false(there(f, "free.photons.tail"));
    assert_int_equal(pd_datadir_remove_tail(&f->dir, "free"), -ENOENT);
    assert_int_equal(pd_datadir_publish(&f->dir, path, "again"), -ENOENT);
    touch(f, ".photond/ab010000000000000000000000000000.new");
    touch(f, ".photond/ab010000000000000000000000000000.new.tail");
    assert_int_equal(pd_datadir_publish(&f->dir, path, "plain"), 0); /* without checksums */
    assert_false(there(f, "plain.photons.crc"));
    assert_int_equal(pd_datadir_sync(&f->dir), 0);
}

static void only_our_left_overs_are_removed(void **state) {
    folder *f = *state;
    pd_error err;
    touch(f, ".photond/0123456789abcdef0123456789abcdef.new");
    touch(f, ".photond/0123456789abcdef0123456789abcdef.new.tail");
    touch(f, ".photond/0123456789abcdef0123456789abcdef.new.crc");
    touch(f, ".photond/0123456789abcdef.new");
    touch(f, ".photond/0123456789abcdef0123456789abcdef.new2");
    touch(f, "0123456789abcdef0123456789abcdef.new");
    pd_datadir_close(&f->dir);
    assert_int_equal(pd_datadir_open(&f->dir, f->path, 0755, &err), 0);
    assert_false(there(f, ".photond/0123456789abcdef0123456789abcdef.new"));
    assert_false(there(f, ".photond/0123456789abcdef0123456789abcdef.new.tail"));
    assert_false(there(f, ".photond/0123456789abcdef0123456789abcdef.new.crc"));
    assert_true(there(f, ".photond/0123456789abcdef.new"));
    assert_true(there(f, ".photond/0123456789abcdef0123456789abcdef.new2"));
    assert_true(there(f, "0123456789abcdef0123456789abcdef.new"));
}

static void a_folder_that_cannot_be_is_refused_by_name(void **state) {
    folder *f = *state;
    pd_datadir dir;
    pd_error err;
    char path[128];
    snprintf(path, sizeof path, "%s/no/such", f->path);
    assert_int_equal(pd_datadir_open(&dir, path, 0755, &err), -1);
    assert_non_null(strstr(err.text, path));
    touch(f, "file");
    snprintf(path, sizeof path, "%s/file", f->path);
    assert_int_equal(pd_datadir_open(&dir, path, 0755, &err), -1);
    snprintf(path, sizeof path, "%s/made//", f->path);
    assert_int_equal(pd_datadir_open(&dir, path, 0755, &err), 0);
    assert_int_equal(dir.path[strlen(dir.path) - 1], 'e');
    pd_datadir_close(&dir);
}

static void free_room_is_known(void **state) {
    folder *f = *state;
    assert_true(pd_datadir_free_bytes(&f->dir) < UINT64_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_second_daemon_is_refused_while_the_first_lives),
        TEST(what_belongs_to_a_run_takes_its_name),
        TEST(publishing_replaces_nothing),
        TEST(only_our_left_overs_are_removed),
        TEST(a_folder_that_cannot_be_is_refused_by_name),
        TEST(free_room_is_known),
    };
    pd_log_set_level(PD_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

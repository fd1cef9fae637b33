/* Real files: locks between writers and readers, creation, overwriting, permissions, big offsets. */
#include <sys/stat.h>
#include <unistd.h>

#include "d7_testing.h"
#include "testing.h"

static const d7_dataset one[] = {{"/x", D7_UINT16}};

typedef struct fixture {
    char folder[64], path[96];
    d7_writer_options options;
    d7_error err;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    strcpy(f->folder, "/tmp/d7-lock-XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    snprintf(f->path, sizeof f->path, "%s/run.photons", f->folder);
    d7_writer_options_init(&f->options);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    unlink(f->path);
    int rc = rmdir(f->folder); /* nothing else was left there */
    free(f);
    return rc;
}

static d7_reader *open_reader(fixture *f) {
    d7_reader *r = NULL;
    if (d7_reader_open(&r, f->path, NULL, &f->err) != 0)
        fail_msg("open: %s", f->err.text);
    return r;
}

static off_t file_size(const fixture *f) {
    struct stat st;
    assert_int_equal(stat(f->path, &st), 0);
    return st.st_size;
}

static void second_writer_is_refused(void **state) {
    fixture *f = *state;
    d7_writer *w, *other = NULL;
    assert_int_equal(d7_writer_create(&w, f->path, one, 1, NULL, &f->err), 0);
    assert_int_equal(d7_writer_warnings(w), 0);
    assert_int_equal(d7_writer_append(w, 0, (uint16_t[]){1, 2, 3}, 3, &f->err), 0);
    assert_int_equal(d7_writer_create(&other, f->path, one, 1, NULL, &f->err), D7_ERR_EXISTS);
    off_t size = file_size(f);
    f->options.overwrite = true;
    assert_int_equal(d7_writer_create(&other, f->path, one, 1, &f->options, &f->err), D7_ERR_LOCKED);
    assert_non_null(strstr(f->err.text, f->path));
    assert_int_equal(file_size(f), size);
    assert_null(other);
    d7_writer_free(w);
    assert_int_equal(d7_writer_create(&other, f->path, one, 1, &f->options, &f->err), 0);
    d7_writer_free(other);
}

/* Readers see who holds the file, come and go, and never keep the writer from anything. */
static void readers_see_and_do_not_disturb(void **state) {
    fixture *f = *state;
    d7_writer *w;
    assert_int_equal(d7_writer_create(&w, f->path, one, 1, NULL, &f->err), 0);
    d7_reader *during = open_reader(f);
    assert_true(d7_reader_held(during));
    assert_int_equal(d7_reader_state(during), D7_STATE_OPEN);
    d7_reader *more = open_reader(f);
    d7_reader_free(more); /* closing a descriptor of this process must not drop the lock */
    more = open_reader(f);
    assert_true(d7_reader_held(more));
    d7_reader_free(more);
    assert_int_equal(d7_writer_append(w, 0, (uint16_t[]){1, 2, 3}, 3, &f->err), 0);
    assert_int_equal(d7_writer_close(w, &f->err), 0);
    d7_reader *after = open_reader(f);
    assert_false(d7_reader_held(after));
    assert_int_equal(d7_reader_state(after), D7_STATE_CLOSED);
    d7_reader_free(after);
    d7_reader_free(during);
    d7_writer_free(w);
}

static void modes_are_obeyed(void **state) {
    fixture *f = *state;
    struct stat st;
    d7_writer *w;
    mode_t mask = umask(022);
    f->options.mode = 0640;
    assert_int_equal(d7_writer_create(&w, f->path, one, 1, &f->options, &f->err), 0);
    umask(mask);
    assert_int_equal(stat(f->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    d7_writer_free(w);
}

static void failed_creation_leaves_nothing(void **state) {
    fixture *f = *state;
    d7_writer *w = NULL;
    char path[128];
    snprintf(path, sizeof path, "%s/none/run.photons", f->folder);
    assert_int_equal(d7_writer_create(&w, path, one, 1, NULL, &f->err), D7_ERR_IO);
    assert_int_equal(f->err.os_errno, 2);
    assert_int_equal(d7_writer_create(&w, f->folder, one, 1, NULL, &f->err), D7_ERR_EXISTS);
    f->options.overwrite = true;
    assert_int_equal(d7_writer_create(&w, f->folder, one, 1, &f->options, &f->err), D7_ERR_IO);
    assert_null(w);
    FILE *made = fopen(f->path, "w"); /* so that teardown finds its file */
    fclose(made);
}

/* An overwritten file that was longer keeps nothing of what it held. */
static void overwriting_empties(void **state) {
    fixture *f = *state;
    d7_writer *w;
    FILE *old = fopen(f->path, "w");
    for (int i = 0; i < 100000; i++)
        fputs("old", old);
    fclose(old);
    f->options.overwrite = true;
    assert_int_equal(d7_writer_create(&w, f->path, one, 1, &f->options, &f->err), 0);
    assert_int_equal(d7_writer_close(w, &f->err), 0);
    d7_writer_free(w);
    assert_true(file_size(f) < 17000);
    d7_reader *r = open_reader(f);
    assert_int_equal(d7_reader_n_problems(r), 0);
    d7_reader_free(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(second_writer_is_refused), TEST(readers_see_and_do_not_disturb),
        TEST(modes_are_obeyed),         TEST(failed_creation_leaves_nothing),
        TEST(overwriting_empties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

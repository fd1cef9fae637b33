/* Files that commands make: nothing under the final name before the end, nothing replaced unasked, nothing left. */
#include "../../../libd7/cli/result.h"

#include <dirent.h>
#include <unistd.h>

#include "testing.h"

static const command self = {.name = "test"};
static char folder[] = "/tmp/d7-result-XXXXXX";
static char path[64];

static int setup_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/out.bin", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void write_text(const char *name, const char *text) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void check_text(const char *name, const char *want) {
    char got[32] = "";
    FILE *f = fopen(name, "r");
    assert_non_null(f);
    assert_non_null(fgets(got, sizeof got, f));
    fclose(f);
    assert_string_equal(got, want);
}

static unsigned n_files(void) {
    unsigned n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static void the_name_comes_last(void **state) {
    (void)state;
    result_file r;
    assert_int_equal(result_begin(&self, path, false, &r), 0);
    write_text(r.temporary, "one");
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(result_commit(&r), 0);
    check_text(path, "one");
    assert_int_equal(n_files(), 1);
    result_drop(&r);
    assert_int_equal(n_files(), 1);
}

static void nothing_is_replaced_unasked(void **state) {
    (void)state;
    result_file r;
    write_text(path, "old");
    assert_int_equal(result_begin(&self, path, false, &r), 2);
    result_drop(&r);
    unlink(path);
    assert_int_equal(result_begin(&self, path, false, &r), 0);
    write_text(r.temporary, "new");
    write_text(path, "other");
    assert_int_equal(result_commit(&r), 2);
    check_text(path, "other");
    assert_int_equal(n_files(), 1);
    assert_int_equal(result_begin(&self, path, true, &r), 0);
    write_text(r.temporary, "new");
    assert_int_equal(result_commit(&r), 0);
    check_text(path, "new");
}

static void what_is_dropped_is_gone(void **state) {
    (void)state;
    result_file r;
    unlink(path);
    assert_int_equal(result_begin(&self, path, false, &r), 0);
    write_text(r.temporary, "half");
    result_drop(&r);
    assert_int_equal(n_files(), 0);
    assert_int_equal(result_begin(&self, folder, true, &r), 2);
    result_drop(&r);
}

static void a_signal_stops(void **state) {
    (void)state;
    result_file r;
    assert_int_equal(result_begin(&self, path, false, &r), 0);
    write_text(r.temporary, "half");
    assert_int_equal(raise(SIGTERM), 0);
    assert_int_equal(cli_stopped, 1);
    assert_int_equal(result_commit(&r), 2);
    assert_int_equal(n_files(), 0);
    cli_stopped = 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_name_comes_last),
        cmocka_unit_test(nothing_is_replaced_unasked),
        cmocka_unit_test(what_is_dropped_is_gone),
        cmocka_unit_test(a_signal_stops),
    };
    return cmocka_run_group_tests(tests, setup_folder, remove_folder);
}

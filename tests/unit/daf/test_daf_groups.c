/* The groups of an archive are listed. */
#include "archive_support.h"

#include <stdio.h>
#include <sys/stat.h>

static void make_group(const char *path) {
    daf *d;
    OK(daf_open(&d, path, "w+", NULL, e));
    set_integer(d, "n", 1);
    OK(daf_close(d, e));
}

static void has_groups(const char *path, size_t n, const char *const *expected) {
    daf_names names;
    OK(daf_list_groups(&names, path, NULL, e));
    assert_int_equal(names.n, n);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(names.names[i], expected[i]);
    daf_names_clear(&names);
}

static void groups_are_listed(void **state) {
    static const char *const groups[] = {"a/deep/one", "second", "z \303\244"};
    char path[400], group[500];
    snprintf(path, sizeof path, "%s", test_path(state, "runs.dafs.zip"));
    for (unsigned i = 3; i-- > 0;) {
        snprintf(group, sizeof group, "%s#/%s", path, groups[i]);
        make_group(group);
    }
    has_groups(path, 3, groups);

    /* Staged in this process; an open handle is no obstacle. */
    static const char *const more[] = {"a", "a/deep/one", "second", "z \303\244"};
    daf_options late;
    daf *d;
    daf_options_init(&late);
    late.late_marker = true;
    snprintf(group, sizeof group, "%s#/a", path);
    OK(daf_open(&d, group, "w+", &late, e));
    has_groups(path, 3, groups);
    OK(daf_batch_begin(d, e));
    set_integer(d, "n", 2);
    OK(daf_batch_commit(d, e));
    has_groups(path, 4, more);
    OK(daf_close(d, e));
    has_groups(path, 4, more);
}

static void fixtures_list_theirs(void **state) {
    const char *path = test_path(state, "empty.dafs.zip");
    copy_file(FIXTURE("zip-groups/repo.dafs.zip"), path);
    daf_names names;
    OK(daf_list_groups(&names, path, NULL, e));
    assert_true(names.n > 1);
    for (size_t i = 0; i < names.n; i++) {
        char group[500];
        daf *d;
        snprintf(group, sizeof group, "%s#/%s", path, names.names[i]);
        OK(daf_open(&d, group, "r", NULL, e));
        daf_free(d);
    }
    daf_names_clear(&names);
}

static void other_paths_are_refused(void **state) {
    static const char *const paths[] = {"x.daf.zip", "x.dafs.zip#/g",   "x.daf",
                                        ".zip",      "folder.dafs.zip", NULL};
    const char *path = test_path(state, "folder.dafs.zip");
    daf_names names;
    assert_int_equal(mkdir(path, 0777), 0);
    FAILS(DAF_ERR_ARG, "no path of an archive with groups", daf_list_groups(&names, path, NULL, e));
    for (unsigned i = 0; paths[i]; i++) {
        path = test_path(state, paths[i]);
        FAILS(DAF_ERR_ARG, "no path of an archive with groups", daf_list_groups(&names, path, NULL, e));
    }
    FAILS(DAF_ERR_ARG, "NULL", daf_list_groups(&names, NULL, NULL, e));
    path = test_path(state, "none.dafs.zip");
    FAILS(DAF_ERR_NOT_DAF, "no such file", daf_list_groups(&names, path, NULL, e));
    test_write_file(path, "no archive", 10);
    FAILS(DAF_ERR_TRUNCATED, "none.dafs.zip", daf_list_groups(&names, path, NULL, e));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(groups_are_listed),
        TEST(fixtures_list_theirs),
        TEST(other_paths_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

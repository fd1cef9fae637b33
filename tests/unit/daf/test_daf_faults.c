/* Injected faults, counted: the n-th system call, or the n-th allocation, fails; n grows until none does. Afterwards the
 * call has told why, the properties are the old ones (or, when it succeeded all the same, the new ones), the index is
 * JSON, and the next writable open leaves no trace. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actions.h"
#include "allocations.h"
#include "faults.h"

static void same_content(const char *a, const char *b, const char *what, unsigned n) {
    if (!test_equal_trees(a, b, "/.daf."))
        fail_msg("%s, fault %u: the tree is neither the old nor the new one", what, n);
}

static void is_clean_after_reopening(const char *path) {
    daf *d;
    OK(daf_open(&d, path, "r+", NULL, e));
    OK(daf_close(d, e));
    DIR *folder = opendir(path);
    for (struct dirent *e; (e = readdir(folder));)
        assert_null(strstr(e->d_name, ".new"));
    closedir(folder);
}

typedef struct trees {
    const char *old, *new, *work;
} trees;

static void fresh_copy(const char *from, const char *to) {
    test_remove_tree(to);
    test_copy_tree(from, to);
}

/* One run with one fault; true when the fault fired. */
static bool run_with_fault(const trees *t, unsigned which, test_faults f) {
    daf_io io = test_faulty_io(&f);
    daf_options options;
    daf_error err = {0};
    daf *d;
    unsigned n = f.at;
    daf_options_init(&options);
    options.io = &io;
    options.sync = true;
    f.at = 0;
    fresh_copy(t->old, t->work);
    OK(daf_open(&d, t->work, "r+", &options, e));
    f.calls = 0;
    f.at = n;
    int rc = test_actions[which].act(d, &err);
    bool in_place = rc && strstr(err.text, "cannot sync") && test_equal_trees(t->new, t->work, "/.daf.");
    f.at = 0;
    daf_free(d);
    if (rc && (err.code != rc || !err.text[0]))
        fail_msg("%s, fault %u: code %d without a text", test_actions[which].name, n, rc);
    same_content(rc && !in_place ? t->old : t->new, t->work, test_actions[which].name, n);
    is_clean_after_reopening(t->work);
    return f.fired;
}

static void prepare(void **state, trees *t, unsigned which) {
    daf *d;
    char name[32];
    snprintf(name, sizeof name, "old-%u.daf", which);
    t->old = test_path(state, name);
    snprintf(name, sizeof name, "new-%u.daf", which);
    t->new = test_path(state, name);
    snprintf(name, sizeof name, "work-%u.daf", which);
    t->work = test_path(state, name);
    test_make_base(t->old);
    fresh_copy(t->old, t->new);
    OK(daf_open(&d, t->new, "r+", NULL, e));
    OK(test_actions[which].act(d, e));
    OK(daf_close(d, e));
}

static void each_system_call_fails_once(void **state) {
    static const int errnos[] = {EIO, ENOSPC};
    unsigned runs = 0;
    for (unsigned which = 0; which < test_n_actions; which++) {
        if (test_actions[which].in_batch)
            continue;
        trees t;
        prepare(state, &t, which);
        for (size_t k = 0; k < 2; k++)
            for (unsigned n = 1; run_with_fault(&t, which, (test_faults){.at = n, .os_errno = errnos[k]});
                 n++)
                runs++;
    }
    assert_true(runs > 500);
}

/* The disk is dead from the n-th call on: nothing can be undone then, but nothing crashes, the index is JSON, and
 * what had nothing to do with the change reads. */
static void each_system_call_fails_for_ever(void **state) {
    for (unsigned which = 0; which < test_n_actions; which++) {
        if (test_actions[which].in_batch)
            continue;
        trees t;
        prepare(state, &t, which);
        bool fired = true;
        for (unsigned n = 1; fired; n++) {
            test_faults f = {.kind = TEST_FAIL_FOR_EVER, .os_errno = EIO};
            daf_io io = test_faulty_io(&f);
            daf_options options;
            daf_error err = {0};
            daf_array *a;
            daf *d;
            daf_options_init(&options);
            options.io = &io;
            fresh_copy(t.old, t.work);
            OK(daf_open(&d, t.work, "r+", &options, e));
            f.calls = 0;
            f.at = n;
            (void)test_actions[which].act(d, &err);
            daf_free(d);
            fired = f.fired;
            OK(daf_open(&d, t.work, "r", NULL, e));
            OK(daf_get_axis(d, &a, "b", e));
            daf_array_free(a);
            OK(daf_close(d, e));
            is_clean_after_reopening(t.work);
        }
    }
}

static void short_counts_are_completed(void **state) {
    for (unsigned which = 0; which < test_n_actions; which++) {
        if (test_actions[which].in_batch)
            continue;
        trees t;
        prepare(state, &t, which);
        assert_false(run_with_fault(&t, which, (test_faults){.short_counts = true}));
    }
}

/* Creating a repository: it is there, or nothing is. */
static void creating_fails_whole(void **state) {
    const char *path = test_path(state, "made.daf");
    bool fired = true;
    for (unsigned n = 1; fired; n++) {
        test_faults f = {.at = n, .os_errno = ENOSPC};
        daf_io io = test_faulty_io(&f);
        daf_options options;
        daf_error err = {0};
        daf *d;
        daf_options_init(&options);
        options.io = &io;
        int rc = daf_open(&d, path, n % 2 ? "w" : "w+", &options, &err);
        fired = f.fired;
        if (rc) {
            assert_true(err.text[0] != 0);
            assert_false(test_exists(path));
        } else {
            daf_free(d);
            OK(daf_open(&d, path, "r+", NULL, e)); /* which removes what could not be removed */
            OK(daf_close(d, e));
            assert_int_equal(test_count_files(path), 6);
            test_remove_tree(path);
        }
    }
}

static void each_allocation_fails(void **state) {
    unsigned runs = 0;
    for (unsigned which = 0; which < test_n_actions; which++) {
        if (test_actions[which].in_batch)
            continue;
        trees t;
        prepare(state, &t, which);
        for (unsigned n = 1;; n++) {
            daf *d = NULL;
            daf_error err = {0};
            if (n == 1 || !test_actions[which].reads_only)
                fresh_copy(t.old, t.work);
            test_fail_allocation(n);
            int rc = daf_open(&d, t.work, "r+", NULL, &err);
            if (rc == 0)
                rc = test_actions[which].act(d, &err);
            bool fired = test_fail_allocation(0);
            daf_free(d);
            if (rc && (rc != DAF_ERR_NOMEM || err.code != rc))
                fail_msg("%s, allocation %u: %d %s", test_actions[which].name, n, rc, err.text);
            same_content(rc ? t.old : t.new, t.work, test_actions[which].name, n);
            runs++;
            if (!fired)
                break;
        }
    }
    assert_true(runs > 500);
}

/* Many lines in a small file are refused before each of them takes memory. */
static void empty_lines_take_no_memory(void **state) {
    enum { LINES = 1 << 20 };
    const char *path = test_path(state, "r.daf");
    static const char *const entries[] = {"a", "b"};
    char *lines = malloc(LINES);
    daf *d;
    daf_array *a;
    memset(lines, '\n', LINES);
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis(d, "x", entries, 2, e));
    OK(daf_set_vector(d, "x", "v", DAF_STRING, entries, 2, NULL, e));
    OK(daf_close(d, e));
    test_write_file(test_path(state, "r.daf/vectors/x/v.txt"), lines, LINES);
    test_write_file(test_path(state, "r.daf/axes/y.txt"), lines, LINES);
    OK(daf_open(&d, path, "r", NULL, e));
    test_largest_allocation();
    FAILS(DAF_ERR_CORRUPT, "stands twice", daf_get_axis(d, &a, "y", e));
    FAILS(DAF_ERR_CORRUPT, "too many lines", daf_get_vector(d, &a, "x", "v", e));
    assert_in_range(test_largest_allocation(), LINES, 3 * LINES);
    OK(daf_close(d, e));
    free(lines);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_system_call_fails_once), TEST(each_system_call_fails_for_ever),
        TEST(short_counts_are_completed),  TEST(creating_fails_whole),
        TEST(each_allocation_fails),       TEST(empty_lines_take_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* kill -9 before each system call, and in the midst of each write, of every call that writes; n grows until the call ends by
 * itself. The next writable open leaves the tree as it was before the call or as it is after it, and no trace. */
#include "actions.h"
#include "faults.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct work {
    const char *path;
    const char *mode;
    int (*act)(daf *d, daf_error *err);
    bool sync;
} work;

static int open_and_act(void *context, const daf_io *io, daf_error *err) {
    const work *w = context;
    daf_options options;
    daf *d;
    daf_options_init(&options);
    options.io = io;
    options.sync = w->sync;
    int rc = daf_open(&d, w->path, w->mode, &options, err);
    if (rc == 0) {
        rc = w->act(d, err);
        int closed = daf_close(d, err);
        rc = rc ? rc : closed;
    }
    return rc;
}

static int do_nothing(daf *d, daf_error *err) {
    (void)d;
    (void)err;
    return 0;
}

static void copy_anew(const char *from, const char *to) {
    test_remove_tree(to);
    test_copy_tree(from, to);
}

/* The index holds the descriptors of the tree, and nothing else. */
static void index_is_right(const char *path, const char *what, unsigned n) {
    char *command, *file;
    const char *key;
    json_t *descriptor;
    assert_true(asprintf(&file, "%s/metadata.json", path) > 0);
    json_t *index = test_load_json(file);
    free(file);
    json_object_foreach(index, key, descriptor) {
        if (strncmp(key, "axes/", 5) == 0)
            continue;
        assert_true(asprintf(&command, "%s/%s.json", path, key) > 0);
        json_t *there = test_load_json(command);
        if (!json_equal(there, descriptor))
            fail_msg("%s, killed at %u: the index differs from %s", what, n, command);
        json_decref(there);
        free(command);
    }
    json_decref(index);
}

static void no_trace_is_left(const char *path, const char *what, unsigned n) {
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder));)
        if (e->d_name[0] == '.' && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            fail_msg("%s, killed at %u: %s is left", what, n, e->d_name);
    closedir(folder);
}

static void reopen(const char *path, const char *what, unsigned n) {
    daf_error err;
    daf *d;
    if (daf_open(&d, path, "r+", NULL, &err) != 0)
        fail_msg("%s, killed at %u: %s", what, n, err.text);
    OK(daf_close(d, e));
    no_trace_is_left(path, what, n);
    index_is_right(path, what, n);
}

/* The entries of the index may stand in another order. */
static bool is_same(const char *a, const char *b) {
    char *file_a, *file_b;
    assert_true(asprintf(&file_a, "%s/metadata.json", a) > 0);
    assert_true(asprintf(&file_b, "%s/metadata.json", b) > 0);
    json_t *index_a = test_load_json(file_a), *index_b = test_load_json(file_b);
    bool same = json_equal(index_a, index_b) && test_equal_trees(a, b, "metadata.json");
    json_decref(index_a);
    json_decref(index_b);
    free(file_a);
    free(file_b);
    return same;
}

static void is_old_or_new(const char *old, const char *new, const char *path, const char *what, unsigned n) {
    if (!is_same(old, path) && !is_same(new, path))
        fail_msg("%s, killed at %u: the tree is neither the old nor the new one", what, n);
}

static void make_trees(const char *old, const char *new, const work *w) {
    work whole = *w;
    daf_error err = {0};
    test_make_base(old);
    test_copy_tree(old, new);
    whole.path = new;
    if (open_and_act(&whole, NULL, &err) != 0)
        fail_msg("%s", err.text);
}

static unsigned kill_at_each_call(void **state, const char *what, const work *w) {
    static unsigned serial;
    char name[32];
    snprintf(name, sizeof name, "old-%u.daf", ++serial);
    const char *old = test_path(state, name);
    snprintf(name, sizeof name, "new-%u.daf", serial);
    const char *new = test_path(state, name);
    make_trees(old, new, w);
    for (unsigned n = 1;; n++) {
        copy_anew(old, w->path);
        bool killed = test_killed_at(n, open_and_act, (void *)w);
        reopen(w->path, what, n);
        is_old_or_new(killed ? old : new, new, w->path, what, n);
        if (!killed)
            return n;
    }
}

static void each_write_is_killed(void **state) {
    work w = {.path = test_path(state, "work.daf"), .mode = "r+"};
    unsigned runs = 0;
    for (unsigned i = 0; i < test_n_actions; i++) {
        w.act = test_actions[i].act;
        w.sync = i % 2;
        if (test_actions[i].reads_only)
            continue;
        runs += kill_at_each_call(state, test_actions[i].name, &w);
    }
    assert_true(runs > 500);
}

static void emptying_is_killed(void **state) {
    work w = {.path = test_path(state, "work.daf"), .mode = "w", .act = do_nothing};
    assert_true(kill_at_each_call(state, "mode w", &w) > 10);
}

static void creating_is_killed(void **state) {
    work w = {.path = test_path(state, "work.daf"), .mode = "w+", .act = do_nothing};
    const char *new = test_path(state, "new.daf");
    daf *d;
    OK(daf_open(&d, new, "w", NULL, e));
    OK(daf_close(d, e));
    bool killed = true;
    for (unsigned n = 1; killed; n++) {
        test_remove_tree(w.path);
        killed = test_killed_at(n, open_and_act, &w);
        OK(daf_open(&d, w.path, "w+", NULL, e));
        OK(daf_close(d, e));
        no_trace_is_left(w.path, "create", n);
        is_old_or_new(new, new, w.path, "create", n);
    }
}

/* ---- an index so large that the one before is kept and taken on */

enum { LARGE_TEXT = 70000, SETS = 6 };
static unsigned n_sets;

static int set_some(daf *d, daf_error *err) {
    int rc = 0;
    for (unsigned i = 0; i < n_sets && rc == 0; i++) {
        daf_scalar s = daf_scalar_int64(i);
        char name[16];
        snprintf(name, sizeof name, "s%u", i);
        rc = daf_set_scalar(d, name, &s, NULL, err);
    }
    return rc;
}

static void make_large_index(const char *path) {
    char *text = malloc(LARGE_TEXT + 1);
    assert_non_null(text);
    memset(text, 'x', LARGE_TEXT);
    text[LARGE_TEXT] = 0;
    daf *d;
    daf_scalar s = daf_scalar_string(text);
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_set_scalar(d, "large", &s, NULL, e));
    OK(daf_close(d, e));
    free(text);
}

static void growing_a_large_index_is_killed(void **state) {
    const char *steps[SETS + 1];
    char name[32];
    work w = {.path = test_path(state, "work.daf"), .mode = "r+", .act = set_some};
    for (n_sets = 0; n_sets <= SETS; n_sets++) {
        snprintf(name, sizeof name, "step-%u.daf", n_sets);
        work whole = w;
        whole.path = steps[n_sets] = test_path(state, name);
        make_large_index(whole.path);
        OK(open_and_act(&whole, NULL, e));
    }
    n_sets = SETS;
    bool killed = true;
    unsigned n = 1, step = 0;
    for (; killed; n++) {
        copy_anew(steps[0], w.path);
        killed = test_killed_at(n, open_and_act, &w);
        reopen(w.path, "large index", n);
        while (step <= SETS && !is_same(steps[step], w.path))
            step++; /* they come in their order */
        if (step > SETS)
            fail_msg("large index, killed at %u: the tree is none of those between the calls", n);
    }
    assert_int_equal(step, SETS);
    assert_true(n > 4 * SETS);
}

/* The undoing itself is killed at each of its calls, and done by the open after it. */
static void recovering_is_killed(void **state) {
    static const char *const names[] = {"overwrite, other type", "overwrite other layout", "delete axis",
                                        "reorder axis"};
    static const unsigned strides[] = {4, 4, 4, 24}; /* of the first kill: all would take long */
    work w = {.path = test_path(state, "work.daf"), .mode = "r+"}, again = w;
    again.path = test_path(state, "again.daf");
    again.act = do_nothing;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[32];
        for (unsigned k = 0; k < test_n_actions; k++)
            if (strcmp(test_actions[k].name, names[i]) == 0)
                w.act = test_actions[k].act;
        snprintf(name, sizeof name, "old-%u.daf", i);
        const char *old = test_path(state, name);
        snprintf(name, sizeof name, "new-%u.daf", i);
        const char *new = test_path(state, name);
        make_trees(old, new, &w);
        bool killed = true;
        for (unsigned n = 1; killed; n += strides[i]) {
            copy_anew(old, w.path);
            killed = test_killed_at(n, open_and_act, &w);
            bool killed_again = killed;
            for (unsigned m = 1; killed_again; m++) {
                copy_anew(w.path, again.path);
                killed_again = test_killed_at(m, open_and_act, &again);
                reopen(again.path, names[i], n);
                is_old_or_new(old, new, again.path, names[i], n);
            }
        }
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_write_is_killed), TEST(emptying_is_killed),
        TEST(creating_is_killed),   TEST(growing_a_large_index_is_killed),
        TEST(recovering_is_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

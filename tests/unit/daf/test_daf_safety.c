/* What others do to the files: links, journals that are torn, foreign or hostile, files that are cut or replaced while they
 * are read. */
#include "actions.h"
#include "faults.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- links */

static void mode_w_follows_no_links(void **state) {
    const char *path = test_path(state, "a.daf"), *outside = test_path(state, "outside");
    daf *d;
    test_make_base(path);
    test_make_base(outside);
    char *before = NULL;
    size_t bytes;
    assert_int_equal(symlink(outside, test_path(state, "a.daf/foreign")), 0);
    test_remove_tree(test_path(state, "a.daf/vectors/a"));
    assert_int_equal(symlink(test_path(state, "outside/vectors/a"), test_path(state, "a.daf/vectors/a")), 0);
    unsigned n = test_count_files(outside);
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_close(d, e));
    assert_int_equal(test_count_files(outside), n);
    assert_int_equal(test_count_files(path), 6);
    before = test_read_file(test_path(state, "outside/vectors/a/v.data"), &bytes);
    assert_non_null(before);
    free(before);
}

static void deleting_an_axis_follows_no_links(void **state) {
    const char *path = test_path(state, "a.daf"), *outside = test_path(state, "outside");
    daf *d;
    test_make_base(path);
    test_make_base(outside);
    test_remove_tree(test_path(state, "a.daf/vectors/a"));
    assert_int_equal(symlink(test_path(state, "outside/vectors/a"), test_path(state, "a.daf/vectors/a")), 0);
    unsigned n = test_count_files(outside);
    OK(daf_open(&d, path, "r+", NULL, e));
    OK(daf_delete_axis(d, "a", e));
    OK(daf_close(d, e));
    assert_int_equal(test_count_files(outside), n);
}

static void make_outside(void **state, const char *name) {
    assert_int_equal(mkdir(test_path(state, "outside"), 0777), 0);
    assert_int_equal(mkdir(test_path(state, "outside/empty"), 0777), 0);
    test_write_file(test_path(state, "outside/keys"), "my keys\n", 8);
    assert_int_equal(symlink("../outside", test_path(state, name)), 0);
}

static void check_outside(void **state) {
    size_t bytes;
    char *keys = test_read_file(test_path(state, "outside/keys"), &bytes);
    assert_non_null(keys);
    assert_string_equal(keys, "my keys\n");
    free(keys);
    assert_int_equal(test_count_files(test_path(state, "outside")), 2);
}

/* A repository that somebody has sent: what it tells to undo lies elsewhere. */
static void a_journal_changes_nothing_behind_a_link(void **state) {
    static const char journal[] = "root 1\0put - 1 8 0 0 link/keys\0remove .daf.new.1 link/authorized_keys\0"
                                  "folder link/empty\0end";
    const char *path = test_path(state, "a.daf");
    daf *d;
    test_make_base(path);
    make_outside(state, "a.daf/link");
    test_write_file(test_path(state, "a.daf/.daf.new.1"), "other keys", 10);
    test_write_file(test_path(state, "a.daf/.daf.journal"), journal, sizeof journal);
    path = test_path(state, "a.daf");
    OK(daf_open(&d, path, "r", NULL, e));
    OK(daf_close(d, e));
    check_outside(state);
    path = test_path(state, "a.daf");
    FAILS(DAF_ERR_IO, "symbolic link", daf_open(&d, path, "r+", NULL, e));
    check_outside(state);
}

static void a_backup_is_not_restored_behind_a_link(void **state) {
    const char *path = test_path(state, "a.daf");
    daf *d;
    test_make_base(path);
    test_remove_tree(test_path(state, "a.daf/axes"));
    make_outside(state, "a.daf/axes");
    assert_int_equal(mkdir(test_path(state, "a.daf/.reorder.backup"), 0777), 0);
    assert_int_equal(mkdir(test_path(state, "a.daf/.reorder.backup/axes"), 0777), 0);
    test_write_file(test_path(state, "a.daf/.reorder.backup/axes/keys"), "other", 5);
    path = test_path(state, "a.daf");
    FAILS(DAF_ERR_IO, "symbolic link", daf_open(&d, path, "r+", NULL, e));
    check_outside(state);
}

static void a_backup_that_lies_elsewhere_is_not_restored(void **state) {
    const char *path = test_path(state, "a.daf");
    daf *d;
    test_make_base(path);
    make_outside(state, "a.daf/.reorder.backup");
    assert_int_equal(mkdir(test_path(state, "outside/empty/axes"), 0777), 0);
    assert_int_equal(rename(test_path(state, "outside/empty/axes"), test_path(state, "outside/axes")), 0);
    test_write_file(test_path(state, "outside/axes/zz.txt"), "x\n", 2);
    path = test_path(state, "a.daf");
    FAILS(DAF_ERR_IO, "symbolic link", daf_open(&d, path, "r+", NULL, e));
    assert_false(test_exists(test_path(state, "a.daf/axes/zz.txt")));
    assert_true(test_exists(test_path(state, "outside/axes/zz.txt")));
}

static void nothing_is_written_behind_a_link(void **state) {
    static const uint64_t order[3] = {2, 1, 0};
    static const int32_t values[3] = {1, 2, 3};
    const char *path = test_path(state, "a.daf");
    daf_set_options over;
    uint64_t n;
    daf *d;
    daf_set_options_init(&over);
    over.overwrite = true;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "a", 0, 1, 3, e));
    OK(daf_set_vector(d, "a", "keys", DAF_INT32, values, 3, NULL, e));
    assert_int_equal(rename(test_path(state, "a.daf/vectors/a"), test_path(state, "real")), 0);
    assert_int_equal(symlink("../../real", test_path(state, "a.daf/vectors/a")), 0);
    FAILS(DAF_ERR_IO, "symbolic link", daf_set_vector(d, "a", "new", DAF_INT32, values, 3, NULL, e));
    FAILS(DAF_ERR_IO, "symbolic link", daf_set_vector(d, "a", "keys", DAF_INT8, values, 3, &over, e));
    FAILS(DAF_ERR_IO, "symbolic link", daf_delete_vector(d, "a", "keys", e));
    FAILS(DAF_ERR_IO, "symbolic link", daf_reorder_axis(d, "a", order, 3, e));
    OK(daf_axis_length(d, &n, "a", e));
    daf_array *a;
    OK(daf_get_vector(d, &a, "a", "keys", e)); /* reading is fine */
    assert_memory_equal(daf_array_values(a), values, sizeof values);
    daf_array_free(a);
    OK(daf_close(d, e));
    assert_int_equal(test_count_files(test_path(state, "real")), 2);
}

/* ---- journals */

static void open_and_close(const char *path) {
    daf *d;
    OK(daf_open(&d, path, "r+", NULL, e));
    OK(daf_close(d, e));
}

/* Journals of which nothing may be done. NUL ends a record. */
static void other_journals_do_nothing(void **state) {
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {
#define JOURNAL(text) {text, sizeof text - 1}
        JOURNAL(""),
        JOURNAL("end\0"),
        JOURNAL("root 1\0"),
        JOURNAL("root 1\0remove .daf.new.1.1 scalars/s.json\0"),      /* torn */
        JOURNAL("root 1\0remove .daf.new.1.1 scalars/s.json\0en"),    /* torn */
        JOURNAL("root 1\0remove scalars/s.json daf.json\0end\0"),     /* no staging name */
        JOURNAL("root 1\0remove .daf.new./../x daf.json\0end\0"),     /* no name */
        JOURNAL("root 1\0remove .daf.new.1.1 ../outside.txt\0end\0"), /* above */
        JOURNAL("root 1\0remove .daf.new.1.1 /outside.txt\0end\0"),   /* absolute */
        JOURNAL("root 1\0remove .daf.new.1.1 vectors//x\0end\0"),     /* no name */
        JOURNAL("root 1\0folder ../outside\0end\0"),
        JOURNAL("root 1\0put - 1 2 3 4\0end\0"),                       /* no key */
        JOURNAL("root 1\0put - 1 2 daf.json\0end\0"),                  /* no numbers */
        JOURNAL("root 1\0put - 1 99999 3 4 scalars/s.json\0end\0"),    /* another file */
        JOURNAL("root 1\0remove .daf.new.none scalars/s.json\0end\0"), /* nothing was kept */
        JOURNAL("\xff\xfe\0\0\0end\0"),
#undef JOURNAL
    };
    const char *path = test_path(state, "a.daf"), *old = test_path(state, "old.daf");
    const char *journal = test_path(state, "a.daf/.daf.journal");
    const char *outside = test_path(state, "outside.txt");
    test_make_base(old);
    test_copy_tree(old, path);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_write_file(journal, cases[i].text, cases[i].bytes);
        test_write_file(outside, "x", 1);
        test_write_file(test_path(state, "a.daf/.daf.new.1.1"), "kept", 4);
        open_and_close(path);
        if (!test_equal_trees(old, path, "//"))
            fail_msg("journal %zu did something", i);
        assert_true(test_exists(outside));
    }
}

static int overwrite(daf *d, daf_error *err) {
    for (unsigned i = 0; i < test_n_actions; i++)
        if (strcmp(test_actions[i].name, "overwrite, other type") == 0)
            return test_actions[i].act(d, err);
    return DAF_ERR_ARG;
}

static int overwrite_at(void *path, const daf_io *io, daf_error *err) {
    daf_options options;
    daf *d;
    daf_options_init(&options);
    options.io = io;
    int rc = daf_open(&d, path, "r+", &options, err);
    if (rc)
        return rc;
    rc = overwrite(d, err);
    daf_free(d);
    return rc;
}

/* Kills a writer so that the property is gone and the journal tells how to get it back. */
static void interrupt(const char *path, const char *descriptor) {
    for (unsigned n = 1; test_exists(descriptor); n++)
        assert_true(test_killed_at(n, overwrite_at, (void *)(uintptr_t)path));
}

/* Another implementation wrote the property anew after the kill: the journal is of the past. */
static void a_tree_that_moved_on_is_left_alone(void **state) {
    static const char text[] = "{\"format\":\"dense\",\"eltype\":\"UInt8\"}\n";
    const char *path = test_path(state, "a.daf"), *json = test_path(state, "a.daf/vectors/a/v.json");
    const char *data = test_path(state, "a.daf/vectors/a/v.data");
    static uint8_t values[2000] = {1, 2, 3};
    daf_array *a;
    daf *d;
    test_make_base(path);
    interrupt(path, json);
    unlink(data);
    test_write_file(data, values, sizeof values);
    test_write_file(json, text, sizeof text - 1);
    open_and_close(path);
    assert_false(test_exists(test_path(state, "a.daf/.daf.journal")));
    OK(daf_open(&d, path, "r", NULL, e));
    OK(daf_get_vector(d, &a, "a", "v", e));
    assert_int_equal(daf_array_type(a), DAF_UINT8);
    assert_memory_equal(daf_array_values(a), values, sizeof values);
    daf_array_free(a);
    OK(daf_close(d, e));
}

/* ---- reading what a killed writer left */

static bool same_names(daf_names *a, daf_names *b) {
    bool same = a->n == b->n;
    for (size_t i = 0; i < a->n && same; i++)
        same = strcmp(a->names[i], b->names[i]) == 0;
    daf_names_clear(a);
    daf_names_clear(b);
    return same;
}

/* Whether a reader finds the same in both. */
static bool same_content(const char *path, const char *other) {
    daf *a, *b, *copy;
    daf_names left, right;
    OK(daf_open(&a, path, "r", NULL, e));
    OK(daf_open(&b, other, "r", NULL, e));
    OK(daf_open_memory(&copy, NULL, e));
    OK(daf_copy(copy, a, NULL, e));
    bool same = daf_copy(copy, b, NULL, NULL) == 0; /* what differs would have to be overwritten */
    OK(daf_list_scalars(a, &left, e));
    OK(daf_list_scalars(b, &right, e));
    same = same_names(&left, &right) && same;
    OK(daf_list_axes(a, &left, e));
    OK(daf_list_axes(b, &right, e));
    same = same_names(&left, &right) && same;
    OK(daf_list_vectors(a, &left, "a", e));
    OK(daf_list_vectors(b, &right, "a", e));
    same = same_names(&left, &right) && same;
    OK(daf_list_matrices(a, &left, "a", "b", e));
    OK(daf_list_matrices(b, &right, "a", "b", e));
    same = same_names(&left, &right) && same;
    daf_free(copy);
    daf_free(a);
    daf_free(b);
    return same;
}

typedef struct acting {
    const char *path, *mode;
    int (*act)(daf *d, daf_error *err);
} acting;

static int act_at(void *context, const daf_io *io, daf_error *err) {
    const acting *t = context;
    daf_options options;
    daf *d = NULL;
    daf_options_init(&options);
    options.io = io;
    int rc = daf_open(&d, t->path, t->mode, &options, err);
    if (rc == 0 && t->act)
        rc = t->act(d, err);
    if (d)
        daf_free(d);
    return rc;
}

/* Wherever a change was interrupted, a reader sees the old or the new repository, and writes nothing. */
static void a_reader_sees_it_undone(void **state) {
    static const char *const names[] = {"overwrite, other type", "overwrite sparse", "overwrite by packed",
                                        "delete axis", "set packed"};
    const char *old = test_path(state, "old.daf"), *new = test_path(state, "new.daf");
    const char *path = test_path(state, "a.daf"), *before = test_path(state, "before.daf");
    test_make_base(old);
    for (unsigned i = 0; i <= sizeof names / sizeof names[0]; i++) {
        acting t = {.path = new, .mode = "r+"};
        for (unsigned k = 0; k < test_n_actions; k++)
            if (i < sizeof names / sizeof names[0] && strcmp(test_actions[k].name, names[i]) == 0)
                t.act = test_actions[k].act;
        if (!t.act)
            t.mode = "w";
        test_remove_tree(new);
        test_copy_tree(old, new);
        OK(act_at(&t, NULL, e));
        t.path = path;
        bool killed = true;
        for (unsigned n = 1; killed; n++) {
            test_remove_tree(path);
            test_remove_tree(before);
            test_copy_tree(old, path);
            killed = test_killed_at(n, act_at, &t);
            test_copy_tree(path, before);
            if (!same_content(path, old) && !same_content(path, new))
                fail_msg("%s, killed at %u: neither the old nor the new repository is read", t.mode, n);
            if (!same_content(before, old) && !same_content(before, new))
                fail_msg("%s, killed at %u: not so in a copy", t.mode, n);
            assert_true(test_equal_trees(path, before, "//"));
        }
    }
}

/* ---- files that are cut while they are read */

typedef struct cutter {
    const char *path;
    unsigned calls, at;
} cutter;

static int cut_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)ftw;
    if (flag == FTW_F && st->st_size > 1 && truncate(path, st->st_size / 2) != 0)
        return -1;
    return 0;
}

/* Just before the call all payloads lose their second halves. */
static void count(void *context) {
    cutter *c = context;
    if (++c->calls != c->at)
        return;
    static const char *const folders[] = {"axes", "vectors", "matrices"};
    for (unsigned i = 0; i < 3; i++) {
        char folder[600];
        snprintf(folder, sizeof folder, "%s/%s", c->path, folders[i]);
        nftw(folder, cut_one, 8, FTW_PHYS);
    }
}

static int cutting_open(void *x, int dirfd, const char *path, int flags, mode_t mode) {
    count(x);
    return daf__system_io.open(NULL, dirfd, path, flags, mode);
}

static ssize_t cutting_pread(void *x, int fd, void *data, size_t bytes, off_t offset) {
    count(x);
    return daf__system_io.pread(NULL, fd, data, bytes, offset);
}

static int cutting_close(void *x, int fd) {
    count(x);
    return daf__system_io.close(NULL, fd);
}

static int get_texts(daf *d, daf_error *err) {
    daf_array *a = NULL;
    int rc = daf_get_matrix(d, &a, "a", "b", "m", err);
    daf_array_free(a);
    return rc;
}

static int get_packed(daf *d, daf_error *err) {
    daf_array *a = NULL;
    int rc = daf_get_vector(d, &a, "a", "p", err);
    daf_array_free(a);
    return rc;
}

static int get_axis(daf *d, daf_error *err) {
    daf_array *a = NULL;
    int rc = daf_get_axis(d, &a, "a", err);
    daf_array_free(a);
    return rc;
}

static int get_range(daf *d, daf_error *err) {
    daf_array *a = NULL;
    int rc = daf_get_vector_range(d, &a, "a", "v", 1500, 400, err);
    daf_array_free(a);
    return rc;
}

static int get_sparse_as_dense(daf *d, daf_error *err) {
    daf_array *a = NULL;
    int rc = daf_get_matrix(d, &a, "a", "b", "sparse", err);
    daf_array_free(a);
    return rc;
}

static int get_dense_as_sparse(daf *d, daf_error *err) {
    daf_sparse *s = NULL;
    int rc = daf_get_sparse_vector(d, &s, "a", "v", err);
    daf_sparse_free(s);
    return rc;
}

static int repack(daf *d, daf_error *err) {
    daf_set_options o;
    daf_set_options_init(&o);
    o.packing = DAF_PACK_NEVER;
    return daf_repack_vector(d, NULL, "a", "p", &o, err);
}

static int pack_flat(daf *d, daf_error *err) {
    daf_set_options o;
    daf_set_options_init(&o);
    o.packing = DAF_PACK_LARGE;
    o.target_chunk_kb = 1;
    return daf_repack_vector(d, NULL, "a", "v", &o, err);
}

static int relayout(daf *d, daf_error *err) {
    return daf_relayout_matrix(d, "a", "b", "m", NULL, err);
}

static int reorder(daf *d, daf_error *err) {
    static uint64_t order[2000];
    for (uint64_t i = 0; i < 2000; i++)
        order[i] = 1999 - i;
    return daf_reorder_axis(d, "a", order, 2000, err);
}

static int (*const copying[])(daf *d, daf_error *err) = {
    get_texts, get_packed,          get_axis,  get_range, get_sparse_as_dense,
    repack,    get_dense_as_sparse, pack_flat, relayout,  reorder};

/* An error or the whole, but no signal, whenever it happens. */
static void files_that_are_cut_are_errors(void **state) {
    const char *path = test_path(state, "a.daf"), *base = test_path(state, "base.daf");
    unsigned failures = 0;
    test_make_base(base);
    for (unsigned i = 0; i < sizeof copying / sizeof copying[0]; i++) {
        for (unsigned n = 1;; n++) {
            cutter c = {.path = path};
            daf_io io = daf__system_io;
            daf_options options;
            daf_error err = {0};
            daf *d;
            io.context = &c;
            io.open = cutting_open;
            io.pread = cutting_pread;
            io.close = cutting_close;
            daf_options_init(&options);
            options.io = &io;
            test_remove_tree(path);
            test_copy_tree(base, path);
            OK(daf_open(&d, path, "r+", &options, e));
            c.calls = 0;
            c.at = n;
            int rc = copying[i](d, &err);
            bool over = c.calls < n;
            c.at = 0;
            failures += rc != 0;
            if (rc && (err.code != rc || !err.text[0]))
                fail_msg("copying call %u, cut at %u: code %d without a text", i, n, rc);
            daf_free(d);
            if (over)
                break;
        }
    }
    assert_true(failures > 20);
}

/* What was got stays whole, and what is got after the cut is an error. */
static void copies_outlive_a_cut(void **state) {
    static int32_t values[4000] = {[3] = 1, [3999] = 2};
    const char *path = test_path(state, "a.daf");
    daf_set_options sparse;
    daf_options options;
    daf_array *a, *none;
    daf_sparse *s, *none_sparse;
    daf_error err;
    daf *d;
    test_make_base(path);
    daf_set_options_init(&sparse);
    sparse.form = DAF_FORM_SPARSE;
    daf_options_init(&options);
    options.copies = true;
    OK(daf_open(&d, path, "r+", &options, e));
    OK(daf_set_matrix(d, "a", "b", "flat", DAF_INT32, values, 4000, &sparse, e));
    OK(daf_get_vector(d, &a, "a", "v", e));
    OK(daf_get_sparse_matrix(d, &s, "a", "b", "flat", e));
    assert_false(daf_array_is_mapped(a));
    assert_false(daf_sparse_is_mapped(s));
    int32_t last = ((const int32_t *)daf_array_values(a))[1999];
    nftw(path, cut_one, 8, FTW_PHYS);
    assert_int_equal(((const int32_t *)daf_array_values(a))[1999], last);
    const daf_csc *csc = daf_sparse_csc(s);
    assert_int_equal(csc->nnz, 2);
    assert_int_equal(((const int32_t *)csc->values)[1], 2);
    assert_true(daf_get_vector(d, &none, "a", "v", &err) < 0);
    assert_true(daf_get_sparse_matrix(d, &none_sparse, "a", "b", "flat", &err) < 0);
    daf_array_free(a);
    daf_sparse_free(s);
    daf_free(d);
}

/* A view stays as it was when its file is replaced, or goes. */
static void views_outlive_their_files(void **state) {
    const char *path = test_path(state, "a.daf");
    daf_array *a;
    daf *d;
    test_make_base(path);
    OK(daf_open(&d, path, "r+", NULL, e));
    OK(daf_get_vector(d, &a, "a", "v", e));
    assert_true(daf_array_is_mapped(a));
    int32_t first = ((const int32_t *)daf_array_values(a))[7];
    OK(overwrite(d, e));
    OK(daf_delete_vector(d, "a", "v", e));
    OK(daf_close(d, e));
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_close(d, e));
    assert_int_equal(((const int32_t *)daf_array_values(a))[7], first);
    daf_array_free(a);
}

/* Of a memory repository too. */
static void views_outlive_a_memory_repository(void **state) {
    static const int32_t values[3] = {5, 6, 7};
    daf_array *a;
    daf *d;
    (void)state;
    OK(daf_open_memory(&d, NULL, e));
    OK(daf_add_axis_integers(d, "a", 0, 1, 3, e));
    OK(daf_set_vector(d, "a", "v", DAF_INT32, values, 3, NULL, e));
    OK(daf_get_vector(d, &a, "a", "v", e));
    assert_true(daf_array_is_mapped(a));
    OK(daf_delete_vector(d, "a", "v", e));
    OK(daf_close(d, e));
    assert_memory_equal(daf_array_values(a), values, sizeof values);
    daf_array_free(a);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(mode_w_follows_no_links),
        TEST(deleting_an_axis_follows_no_links),
        TEST(other_journals_do_nothing),
        TEST(a_tree_that_moved_on_is_left_alone),
        TEST(a_reader_sees_it_undone),
        TEST(files_that_are_cut_are_errors),
        TEST(copies_outlive_a_cut),
        TEST(views_outlive_their_files),
        TEST(views_outlive_a_memory_repository),
        TEST(a_journal_changes_nothing_behind_a_link),
        TEST(a_backup_is_not_restored_behind_a_link),
        TEST(a_backup_that_lies_elsewhere_is_not_restored),
        TEST(nothing_is_written_behind_a_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

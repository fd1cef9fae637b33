/* Reordering an axis: every kind and form of property follows and keeps its form; a reorder that was interrupted, by us or
 * by another program, is rolled back whole. */
#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 600, M = 3 };

static uint64_t order[N];
static int32_t numbers[N * N];
static double reals[N * M];
static const char *texts[N * M];
static char pool[N * M][16];

static void fill(void) {
    for (unsigned i = 0; i < N * M; i++) {
        reals[i] = i % 5 ? 0 : i / 4.0;
        if (i % 3 == 0)
            snprintf(pool[i], sizeof pool[i], "text %u", i);
        texts[i] = pool[i];
    }
    for (unsigned i = 0; i < N * N; i++)
        numbers[i] = (int32_t)(i % 7 ? 0 : i);
    for (uint64_t i = 0; i < N; i++)
        order[i] = (i * 11 + 5) % N;
}

static daf_set_options stored_as(daf_form form, daf_packing packing) {
    daf_set_options o;
    daf_set_options_init(&o);
    o.form = form;
    o.packing = packing;
    o.codec = DAF_CODEC_GZIP;
    o.level = 4;
    o.target_chunk_kb = 1;
    return o;
}

static const daf_form both_forms[] = {DAF_FORM_DENSE, DAF_FORM_SPARSE};
static const daf_packing both_packings[] = {DAF_PACK_NEVER, DAF_PACK_LARGE};

static void name_of(char name[32], const char *what, unsigned form, unsigned packing) {
    snprintf(name, 32, "%s %s %s", what, form ? "sparse" : "dense", packing ? "packed" : "flat");
}

static void set_all(daf *d) {
    fill();
    OK(daf_add_axis_integers(d, "a", 100, 1, N, e));
    OK(daf_add_axis_integers(d, "b", 0, 1, M, e));
    OK(daf_set_vector(d, "b", "other", DAF_INT32, numbers, M, NULL, e));
    for (unsigned f = 0; f < 2; f++)
        for (unsigned p = 0; p < 2; p++) {
            daf_set_options o = stored_as(both_forms[f], both_packings[p]);
            char name[32];
            name_of(name, "v", f, p);
            OK(daf_set_vector(d, "a", name, DAF_INT32, numbers, N, &o, e));
            name_of(name, "t", f, p);
            OK(daf_set_vector(d, "a", name, DAF_STRING, texts, N, &o, e));
            name_of(name, "m", f, p);
            OK(daf_set_matrix(d, "a", "b", name, DAF_FLOAT64, reals, N * M, &o, e));
            OK(daf_set_matrix(d, "b", "a", name, DAF_STRING, texts, N * M, &o, e));
            OK(daf_set_matrix(d, "a", "a", name, DAF_INT32, numbers, (uint64_t)N * N, &o, e));
        }
}

static uint64_t old_place(const char *axis, uint64_t i) {
    return strcmp(axis, "a") == 0 ? order[i] : i;
}

static void check_matrix(daf *d, const char *rows, const char *columns, const char *name) {
    daf_array *a;
    OK(daf_get_matrix(d, &a, rows, columns, name, e));
    uint64_t n_rows = daf_array_rows(a);
    const void *v = daf_array_values(a);
    for (uint64_t j = 0; j < daf_array_columns(a); j++)
        for (uint64_t i = 0; i < n_rows; i++) {
            uint64_t k = i + j * n_rows, old = old_place(rows, i) + old_place(columns, j) * n_rows;
            if (daf_array_type(a) == DAF_STRING)
                assert_string_equal(daf_array_strings(a)[k], texts[old]);
            else if (daf_array_type(a) == DAF_FLOAT64)
                assert_true(((const double *)v)[k] == reals[old]);
            else if (((const int32_t *)v)[k] != numbers[old])
                fail_msg("%s: row %d, column %d", name, (int)i, (int)j);
        }
    daf_array_free(a);
}

static void check_vectors(daf *d, unsigned f, unsigned p) {
    daf_array *a;
    char name[32];
    name_of(name, "v", f, p);
    OK(daf_get_vector(d, &a, "a", name, e));
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(((const int32_t *)daf_array_values(a))[i], numbers[order[i]]);
    daf_array_free(a);
    name_of(name, "t", f, p);
    OK(daf_get_vector(d, &a, "a", name, e));
    for (unsigned i = 0; i < N; i++)
        assert_string_equal(daf_array_strings(a)[i], texts[order[i]]);
    daf_array_free(a);
}

static void check_all(daf *d) {
    daf_array *a;
    char name[32];
    OK(daf_get_axis(d, &a, "a", e));
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(atoi(daf_array_strings(a)[i]), 100 + (int)order[i]);
    daf_array_free(a);
    OK(daf_get_vector(d, &a, "b", "other", e));
    assert_memory_equal(daf_array_values(a), numbers, M * sizeof *numbers);
    daf_array_free(a);
    for (unsigned f = 0; f < 2; f++)
        for (unsigned p = 0; p < 2; p++) {
            check_vectors(d, f, p);
            name_of(name, "m", f, p);
            check_matrix(d, "a", "b", name);
            check_matrix(d, "b", "a", name);
            check_matrix(d, "a", "a", name);
        }
}

/* The descriptors, in the order of the index. */
static json_t *descriptors(const char *path) {
    char file[600];
    snprintf(file, sizeof file, "%s/metadata.json", path);
    return test_load_json(file);
}

static void everything_on_the_axis_follows(void **state) {
    const char *path = test_path(state, "a.daf");
    daf *d;
    OK(daf_open(&d, path, "w", NULL, e));
    set_all(d);
    json_t *before = descriptors(path);
    OK(daf_reorder_axis(d, "a", order, N, e));
    check_all(d);
    OK(daf_close(d, e));
    json_t *after = descriptors(path);
    assert_true(json_equal(before, after));
    json_decref(before);
    json_decref(after);
    assert_false(test_exists(test_path(state, "a.daf/.reorder.backup")));
    OK(daf_open(&d, path, "r", NULL, e));
    check_all(d);
    OK(daf_close(d, e));
}

static void in_memory_and_in_a_batch_too(void **state) {
    daf *d;
    (void)state;
    OK(daf_open_memory(&d, NULL, e));
    OK(daf_batch_begin(d, e));
    set_all(d);
    OK(daf_reorder_axis(d, "a", order, N, e));
    check_all(d);
    OK(daf_batch_commit(d, e));
    check_all(d);
    OK(daf_close(d, e));
    const char *path = test_path(state, "b.daf");
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_batch_begin(d, e));
    set_all(d);
    OK(daf_reorder_axis(d, "a", order, N, e));
    OK(daf_close(d, e));
    OK(daf_open(&d, path, "r+", NULL, e));
    check_all(d);
    OK(daf_close(d, e));
}

static void wrong_orders_are_refused(void **state) {
    const char *path = test_path(state, "a.daf");
    daf *d;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "a", 0, 1, 3, e));
    OK(daf_set_vector(d, "a", "v", DAF_INT32, numbers, 3, NULL, e));
    FAILS(DAF_ERR_MISSING, "no axis", daf_reorder_axis(d, "b", order, 3, e));
    FAILS(DAF_ERR_ARG, "3 entries", daf_reorder_axis(d, "a", order, 2, e));
    FAILS(DAF_ERR_ARG, "NULL", daf_reorder_axis(d, "a", NULL, 3, e));
    FAILS(DAF_ERR_ARG, "twice", daf_reorder_axis(d, "a", (const uint64_t[]){0, 2, 0}, 3, e));
    FAILS(DAF_ERR_ARG, "out of range", daf_reorder_axis(d, "a", (const uint64_t[]){0, 1, 3}, 3, e));
    assert_int_equal(mkdir(test_path(state, "a.daf/.reorder.backup"), 0777), 0);
    FAILS(DAF_ERR_BUSY, "another reorder", daf_reorder_axis(d, "a", (const uint64_t[]){2, 1, 0}, 3, e));
    OK(daf_close(d, e));
    OK(daf_open(&d, path, "r", NULL, e));
    FAILS(DAF_ERR_READ_ONLY, "reading only", daf_reorder_axis(d, "a", order, 3, e));
    OK(daf_close(d, e));
}

/* A property that cannot be read makes the whole fail, and nothing is reordered. */
static void a_damaged_property_stops_it(void **state) {
    const char *path = test_path(state, "a.daf"), *old = test_path(state, "old.daf");
    daf *d;
    OK(daf_open(&d, path, "w", NULL, e));
    set_all(d);
    OK(daf_close(d, e));
    test_write_file(test_path(state, "a.daf/vectors/a/v sparse flat.nzind"), "x", 1);
    OK(daf_open(&d, path, "r+", NULL, e));
    test_copy_tree(path, old);
    FAILS(DAF_ERR_TRUNCATED, "v sparse flat", daf_reorder_axis(d, "a", order, N, e));
    OK(daf_close(d, e));
    assert_true(test_equal_trees(old, path, "metadata.json"));
    assert_false(test_exists(test_path(state, "a.daf/.reorder.backup")));
}

static void copy_fixture(const char *path) {
    test_copy_tree(TEST_FIXTURES "/daf/reorder-crash/repo.daf", path);
}

static void a_crashed_reorder_of_another_program_is_rolled_back(void **state) {
    const char *path = test_path(state, "a.daf");
    daf *d;
    copy_fixture(path);
    assert_true(test_exists(test_path(state, "a.daf/vectors/cell/flag.data")));
    OK(daf_open(&d, path, "r", NULL, e));
    daf_array *a;
    OK(daf_get_vector(d, &a, "cell", "flag", e)); /* from the backup */
    assert_int_equal(((const uint8_t *)daf_array_values(a))[0], 1);
    daf_array_free(a);
    OK(daf_close(d, e));
    assert_true(test_exists(test_path(state, "a.daf/.reorder.backup")));
    OK(daf_open(&d, path, "r+", NULL, e));
    OK(daf_close(d, e));
    assert_false(test_exists(test_path(state, "a.daf/.reorder.backup")));
    assert_false(test_exists(test_path(state, "a.daf/vectors/cell/flag.data")));
    assert_true(test_exists(test_path(state, "a.daf/vectors/cell/flag.nzind")));
    assert_true(test_exists(test_path(state, "a.daf/metadata.zip")));
    json_t *index = descriptors(path);
    assert_int_equal(json_object_size(index), 4 + 2 + 7 + 5);
    json_decref(index);
}

/* The backup was still being made: what is not in it was not touched. */
static void half_a_backup_loses_nothing(void **state) {
    const char *path = test_path(state, "a.daf"), *old = test_path(state, "old.daf");
    daf *d;
    OK(daf_open(&d, path, "w", NULL, e));
    set_all(d);
    OK(daf_close(d, e));
    test_copy_tree(path, old);
    assert_int_equal(mkdir(test_path(state, "a.daf/.reorder.backup"), 0777), 0);
    assert_int_equal(mkdir(test_path(state, "a.daf/.reorder.backup/vectors"), 0777), 0);
    assert_int_equal(mkdir(test_path(state, "a.daf/.reorder.backup/vectors/a"), 0777), 0);
    assert_int_equal(link(test_path(state, "a.daf/vectors/a/v sparse flat.json"),
                          test_path(state, "a.daf/.reorder.backup/vectors/a/v sparse flat.json")),
                     0);
    OK(daf_open(&d, path, "r+", NULL, e));
    OK(daf_close(d, e));
    assert_true(test_equal_trees(old, path, "metadata.json"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(everything_on_the_axis_follows),
        TEST(in_memory_and_in_a_batch_too),
        TEST(wrong_orders_are_refused),
        TEST(a_damaged_property_stops_it),
        TEST(a_crashed_reorder_of_another_program_is_rolled_back),
        TEST(half_a_backup_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

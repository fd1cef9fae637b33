/* Repositories that other programs wrote, read to their expected values (tests/fixtures/daf). */
#include "archive_support.h"
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct fixture {
    const char *folder, *repository;
} fixture;

static const fixture fixtures[] = {
    {"flat-all-types", "repo.daf"},
    {"flat-mixed-schemas", "repo.daf"},
    {"flat-no-metadata", "repo.daf"},
    {"flat-odd-names", "repo.daf"},
    {"flat-v1.0", "repo.daf"},
    {"foreign-spelling", "repo.daf"},
    {"metadata-stale", "repo.daf"},
    {"metadata-torn", "repo.daf"},
    {"dafr-flat", "repo.daf"},
    {"dafr-packed", "zstd.daf"},
    {"dafr-packed", "gzip.daf"},
    {"dafr-packed", "blosc_zstd_bitshuffle.daf"},
    {"dafr-packed", "blosc_lz4_bitshuffle.daf"},
    {"packed", "zstd.daf"},
    {"packed", "gzip.daf"},
    {"packed", "gzip-names-not-utf8.daf"},
    {"packed", "blosc_zstd_bitshuffle.daf"},
    {"packed", "blosc_lz4_bitshuffle.daf"},
    {"packed-all-types", "zstd.daf"},
    {"packed-all-types", "blosc_zstd_bitshuffle.daf"},
    {"packed-wide-chunks", "zstd.daf"},
    {"packed-wide-chunks", "gzip.daf"},
    {"zipped", "zstd.daf"},
    {"zipped", "gzip.daf"},
    {"zipped", "blosc_zstd_bitshuffle.daf"},
    {"zipped", "blosc_lz4_bitshuffle.daf"},
    {"zipped-plain", "zstd.daf"},
    {"zipped-plain", "gzip.daf"},
    {"reorder-crash", "repo.daf"},
};

static void check_repository(const char *path, const char *mode, const json_t *model, test_counts *n) {
    daf *d;
    OK(daf_open(&d, path, mode, NULL, e));
    test_check_model(d, model, n);
    OK(daf_close(d, e));
}

/* Reading wrote nothing but an index where there was none, or a torn one; and that not beside a backup. */
static void is_as_it_was(const char *from, const char *path) {
    char file[600], copy[600], backup[600];
    snprintf(file, sizeof file, "%.500s/metadata.json", from);
    snprintf(copy, sizeof copy, "%.500s/metadata.json", path);
    snprintf(backup, sizeof backup, "%.500s/.reorder.backup", from);
    bool lacks = !test_exists(file) || strstr(from, "metadata-torn");
    if (lacks && !test_exists(backup)) {
        assert_true(test_equal_trees(from, path, "/metadata.json"));
        json_decref(test_load_json(copy));
    } else {
        test_same_tree(from, path);
    }
}

static void each_fixture_reads(void **state) {
    test_counts n = {0};
    for (size_t i = 0; i < sizeof fixtures / sizeof fixtures[0]; i++) {
        char from[512], expected[512], name[32];
        snprintf(from, sizeof from, TEST_FIXTURES "/daf/%s/%s", fixtures[i].folder, fixtures[i].repository);
        snprintf(expected, sizeof expected, TEST_FIXTURES "/daf/%s/expected.json", fixtures[i].folder);
        snprintf(name, sizeof name, "copy-%zu.daf", i);
        const char *path = test_path(state, name);
        test_copy_tree(from, path);
        json_t *model = test_load_json(expected);
        check_repository(path, "r", model, &n);
        is_as_it_was(from, path);
        check_repository(path, "r+", model, &n);
        check_repository(path, "r", model, &n);
        json_decref(model);
    }
    /* Three passes over each repository; nothing was left out. */
    assert_int_equal(n.scalars, 3 * 81);
    assert_int_equal(n.axes, 3 * 65);
    assert_int_equal(n.dense, 3 * (302 + 55 + 6));
    assert_int_equal(n.sparse, 3 * (216 + 6));
}

/* ---- archives */

typedef struct archive {
    const char *folder, *file, *group, *expected;
    bool copies; /* compressed, or not aligned */
} archive;

static const archive archives[] = {
    {"zip-native", "repo.daf.zip", "", "expected.json", false},
    {"zip-packed", "repo.daf.zip", "", "expected.json", false},
    {"dafr-zip", "repo.daf.zip", "", "expected.json", false},
    {"dafr-zip", "repo.dafs.zip", "#/one", "expected.json", false},
    {"dafr-zip", "repo.dafs.zip", "#/two", "expected-two.json", false},
    {"zip-foreign", "deflate.daf.zip", "", "expected.json", true},
    {"zip-foreign", "deflate64.daf.zip", "", "expected.json", true},
    {"zip-foreign", "stored.daf.zip", "", "expected.json", true},
    {"zip-foreign", "bzip2.daf.zip", "", "expected.json", true},
    {"zip-foreign", "zstd.daf.zip", "", "expected.json", true},
    {"zip-foreign", "data-descriptors.daf.zip", "", "expected.json", true},
    {"zip-foreign", "extras-zip64-comment.daf.zip", "", "expected.json", true},
    {"zip-foreign", "whole-directory.daf.zip", "", "expected.json", true},
    {"zip-torn", "beyond-directory-half-written.daf.zip", "", "expected.json", false},
    {"zip-torn", "beyond-truncated.daf.zip", "", "expected.json", false},
    {"zip-torn", "reserved-not-patched.daf.zip", "", "expected.json", false},
    {"zip-torn", "tick1-before-grow-large.daf.zip", "", "expected.json", false},
    {"zip-torn", "tick1-before-grow.daf.zip", "", "expected.json", false},
    {"zip-torn", "tick2-grown-large.daf.zip", "", "expected.json", false},
    {"zip-torn", "tick2-grown.daf.zip", "", "expected.json", false},
    {"zip-torn", "tick3-directory-written-large.daf.zip", "", "expected.json", false},
    {"zip-torn", "tick3-directory-written.daf.zip", "", "expected.json", false},
    {"zip-torn", "tick4-header-written-large.daf.zip", "", "expected.json", false},
    {"zip-torn", "tick4-header-written.daf.zip", "", "expected.json", false},
};

static void check_archive(void **state, const archive *f, size_t i, test_counts *n) {
    char from[512], expected[512], name[64], file[64];
    size_t bytes;
    snprintf(from, sizeof from, TEST_FIXTURES "/daf/%s/%s", f->folder, f->file);
    snprintf(expected, sizeof expected, TEST_FIXTURES "/daf/%s/%s", f->folder, f->expected);
    snprintf(file, sizeof file, "copy-%zu.daf%s.zip", i, *f->group ? "s" : "");
    snprintf(name, sizeof name, "%s%s", file, f->group);
    char *content = test_read_file(from, &bytes);
    assert_non_null(content);
    test_write_file(test_path(state, file), content, bytes);
    const char *path = test_path(state, name);
    json_t *model = test_load_json(expected);
    n->may_copy = f->copies;
    check_repository(path, "r", model, n);
    size_t now;
    char *there = test_read_file(test_path(state, file), &now);
    assert_true(now == bytes && memcmp(there, content, bytes) == 0); /* reading writes nothing */
    free(there);
    check_repository(path, "r+", model, n);
    check_repository(path, "r", model, n);
    json_decref(model);
    free(content);
}

static void each_archive_reads(void **state) {
    test_counts n = {0};
    for (size_t i = 0; i < sizeof archives / sizeof archives[0]; i++)
        check_archive(state, &archives[i], i, &n);
    /* Three passes over each; nothing was left out. */
    assert_int_equal(n.scalars, 3 * 76);
    assert_int_equal(n.axes, 3 * 48);
    assert_int_equal(n.dense, 3 * 159);
    assert_int_equal(n.sparse, 3 * 99);
    assert_int_equal(n.mapped, 3 * 45);
}

/* Groups beside each other; what is expected of each stands in a file. */
static void each_group_reads(void **state) {
    test_counts n = {0};
    json_t *groups = test_load_json(TEST_FIXTURES "/daf/zip-groups/groups.json"), *expected;
    const char *group;
    size_t i = 0;
    json_object_foreach(groups, group, expected) {
        archive f = {"zip-groups", "repo.dafs.zip", strchr(group, '#'), json_string_value(expected), false};
        check_archive(state, &f, i++, &n);
    }
    assert_true(i == 2 && n.scalars > 0 && n.dense > 0);
    json_decref(groups);
}

/* The index of a stale or torn repository is put right by the first writable open. */
static void index_is_repaired(void **state) {
    static const char *const folders[] = {"metadata-stale", "metadata-torn", "flat-no-metadata"};
    for (size_t i = 0; i < 3; i++) {
        char from[512], file[512], name[32];
        daf *d;
        size_t bytes;
        snprintf(from, sizeof from, TEST_FIXTURES "/daf/%s/repo.daf", folders[i]);
        snprintf(name, sizeof name, "copy-%zu.daf", i);
        const char *path = test_path(state, name);
        snprintf(file, sizeof file, "%s/metadata.json", path);
        test_copy_tree(from, path);
        OK(daf_open(&d, path, "r+", NULL, e));
        json_t *index = test_load_json(file);
        daf_names axes;
        OK(daf_list_axes(d, &axes, e));
        for (size_t k = 0; k < axes.n; k++) {
            char key[300];
            snprintf(key, sizeof key, "axes/%s", axes.names[k]);
            assert_non_null(json_object_get(index, key));
        }
        daf_names_clear(&axes);
        OK(daf_close(d, e));
        char *before = test_read_file(file, &bytes);
        OK(daf_open(&d, path, "r+", NULL, e));
        OK(daf_close(d, e));
        char *after = test_read_file(file, &bytes);
        assert_string_equal(before, after);
        assert_true(after[bytes - 1] == '}' && !strchr(after, '\n'));
        free(before);
        free(after);
        json_decref(index);
    }
}

/* ---- one defect each */

typedef struct defect {
    const char *repository;
    int code;
    const char *part;
    const char *axis, *columns, *name; /* NULL name: the axis itself; NULL axis: the open */
} defect;

static const defect defects[] = {
    {"version-2.0.daf", DAF_ERR_VERSION, "incompatible format version: 2.0", NULL, NULL, NULL},
    {"version-1.2.daf", DAF_ERR_VERSION, "incompatible format version: 1.2", NULL, NULL, NULL},
    {"version-0.9.daf", DAF_ERR_VERSION, "incompatible format version: 0.9", NULL, NULL, NULL},
    {"version-text.daf", DAF_ERR_VERSION, "no version of two integers", NULL, NULL, NULL},
    {"no-daf-json.daf", DAF_ERR_NOT_DAF, "not a daf directory", NULL, NULL, NULL},
    {"axis-duplicate.daf", DAF_ERR_CORRUPT, "not unique", "cell", NULL, NULL},
    {"data-short.daf", DAF_ERR_TRUNCATED, "age.data: ", "cell", NULL, "age"},
    {"data-long.daf", DAF_ERR_CORRUPT, "age.data: ", "cell", NULL, "age"},
    {"data-missing.daf", DAF_ERR_MISSING, "age.data: the payload is missing", "cell", NULL, "age"},
    {"lines-short.daf", DAF_ERR_TRUNCATED, "too few lines", "cell", NULL, "label"},
    {"eltype-unknown.daf", DAF_ERR_CORRUPT, "unknown element type \"Int128\"", "cell", NULL, "age"},
    {"format-unknown.daf", DAF_ERR_CORRUPT, "unknown format \"ragged\"", "cell", NULL, "age"},
    {"colptr-decreasing.daf", DAF_ERR_CORRUPT, "counts.colptr: element 1: index 99", "cell", "gene",
     "counts"},
    {"rowval-out-of-range.daf", DAF_ERR_CORRUPT, "counts.rowval: element ", "cell", "gene", "counts"},
    {"nzind-zero.daf", DAF_ERR_CORRUPT, "marker.nzind: element 1: index 0", "cell", NULL, "marker"},
    {"shard-method-contradiction.daf", DAF_ERR_CORRUPT, "ZIP method 93", "item", NULL, "v_float64"},
    {"shard-truncated.daf", DAF_ERR_TRUNCATED, "v_float64.zip", "item", NULL, "v_float64"},
    {"shard-chunk-corrupt.daf", DAF_ERR_CORRUPT, "chunk 1", "item", NULL, "v_float64"},
};

static int read_defect(daf *d, const defect *f, daf_array **a, daf_error *err) {
    if (!f->name)
        return daf_get_axis(d, a, f->axis, err);
    if (f->columns)
        return daf_get_matrix(d, a, f->axis, f->columns, f->name, err);
    return daf_get_vector(d, a, f->axis, f->name, err);
}

static void each_defect_is_refused(void **state) {
    for (size_t i = 0; i < sizeof defects / sizeof defects[0]; i++) {
        const defect *f = &defects[i];
        char from[512], name[32];
        daf *d;
        daf_array *a = NULL;
        snprintf(from, sizeof from, TEST_FIXTURES "/daf/invalid/%s", f->repository);
        snprintf(name, sizeof name, "copy-%zu.daf", i);
        const char *path = test_path(state, name);
        test_copy_tree(from, path);
        if (!f->axis) {
            FAILS(f->code, f->part, daf_open(&d, path, "r", NULL, e));
            FAILS(f->code, f->part, daf_open(&d, path, "r+", NULL, e));
            continue;
        }
        OK(daf_open(&d, path, "r", NULL, e));
        FAILS(f->code, f->part, read_defect(d, f, &a, e));
        assert_null(a);
        OK(daf_close(d, e));
    }
}

/* Packed into archives, they are refused for the same reasons; where an archive differs, in its words. */
static void each_defect_is_refused_in_an_archive(void **state) {
    for (size_t i = 0; i < sizeof defects / sizeof defects[0]; i++) {
        const defect *f = &defects[i];
        char from[512], name[32];
        const char *part = f->part;
        daf *d;
        daf_array *a = NULL;
        snprintf(from, sizeof from, TEST_FIXTURES "/daf/invalid/%s", f->repository);
        snprintf(name, sizeof name, "copy-%zu.daf.zip", i);
        const char *path = test_path(state, name);
        pack_tree(from, path);
        if (strcmp(f->repository, "no-daf-json.daf") == 0)
            part = "not a daf data set";
        if (strcmp(f->repository, "data-missing.daf") == 0)
            part = "no vector \"age\""; /* a descriptor without payload counts as absent */
        if (!f->axis) {
            FAILS(f->code, part, daf_open(&d, path, "r", NULL, e));
            FAILS(f->code, part, daf_open(&d, path, "r+", NULL, e));
            continue;
        }
        OK(daf_open(&d, path, "r", NULL, e));
        FAILS(f->code, part, read_defect(d, f, &a, e));
        assert_null(a);
        OK(daf_close(d, e));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_fixture_reads, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(each_archive_reads, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(each_group_reads, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(index_is_repaired, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(each_defect_is_refused, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(each_defect_is_refused_in_an_archive, test_setup, test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Repositories that other programs wrote, read to their expected values (tests/fixtures/daf). */
#include "support.h"

#include <inttypes.h>
#include <math.h>
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

/* What was compared, so that a test that compares nothing fails. */
typedef struct counts {
    unsigned scalars, axes, dense, sparse, mapped;
    bool may_copy; /* flat values need not be views */
} counts;

static double expected_float(const json_t *v) {
    const char *text = json_string_value(v);
    if (!text)
        return json_number_value(v);
    if (strcmp(text, "NaN") == 0)
        return (double)NAN;
    return *text == '-' ? -(double)INFINITY : (double)INFINITY;
}

static uint64_t expected_integer(const json_t *v, bool is_signed) {
    const char *text = json_string_value(v);
    if (text)
        return is_signed ? (uint64_t)strtoll(text, NULL, 10) : strtoull(text, NULL, 10);
    return (uint64_t)json_integer_value(v);
}

static uint64_t integer_at(const daf_array *a, uint64_t i) {
    const void *p = daf_array_values(a);
    switch (daf_array_type(a)) {
    case DAF_BOOL:
        return ((const uint8_t *)p)[i] != 0;
    case DAF_INT8:
        return (uint64_t)(int64_t)((const int8_t *)p)[i];
    case DAF_INT16:
        return (uint64_t)(int64_t)((const int16_t *)p)[i];
    case DAF_INT32:
        return (uint64_t)(int64_t)((const int32_t *)p)[i];
    case DAF_UINT8:
        return ((const uint8_t *)p)[i];
    case DAF_UINT16:
        return ((const uint16_t *)p)[i];
    case DAF_UINT32:
        return ((const uint32_t *)p)[i];
    default:
        return ((const uint64_t *)p)[i];
    }
}

static bool floats_equal(double a, double b) {
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static bool element_equals(const daf_array *a, uint64_t i, const json_t *v) {
    const void *p = daf_array_values(a);
    switch (daf_array_type(a)) {
    case DAF_STRING:
        return strcmp(daf_array_strings(a)[i], json_string_value(v)) == 0 &&
               daf_array_string_bytes(a, i) == json_string_length(v);
    case DAF_FLOAT32:
        return floats_equal((double)((const float *)p)[i], (double)(float)expected_float(v));
    case DAF_FLOAT64:
        return floats_equal(((const double *)p)[i], expected_float(v));
    case DAF_BOOL:
        return (integer_at(a, i) != 0) == json_is_true(v);
    default:
        return integer_at(a, i) == expected_integer(v, daf_array_type(a) <= DAF_INT64);
    }
}

static void check_elements(const daf_array *a, uint64_t first, const json_t *values, const char *what) {
    size_t i;
    json_t *v;
    json_array_foreach(values, i, v) {
        if (!element_equals(a, first + i, v))
            fail_msg("%s: element %" PRIu64, what, first + i);
    }
}

static void check_scalars(daf *d, const json_t *scalars, counts *n) {
    const char *name;
    json_t *expected;
    daf_names names;
    OK(daf_list_scalars(d, &names, e));
    assert_int_equal(names.n, json_object_size(scalars));
    daf_names_clear(&names);
    json_object_foreach((json_t *)(uintptr_t)scalars, name, expected) {
        daf_scalar s;
        const json_t *v = json_object_get(expected, "value");
        OK(daf_get_scalar(d, &s, name, e));
        assert_string_equal(daf_type_name(s.type), json_string_value(json_object_get(expected, "type")));
        if (s.type == DAF_STRING)
            assert_string_equal(s.value.s.text, json_string_value(v));
        else if (s.type == DAF_BOOL)
            assert_int_equal(s.value.b, json_is_true(v));
        else if (s.type >= DAF_FLOAT32)
            assert_true(s.type == DAF_FLOAT32 ? (float)s.value.f == (float)expected_float(v)
                                              : floats_equal(s.value.f, expected_float(v)));
        else
            assert_true(s.value.u == expected_integer(v, s.type <= DAF_INT64));
        daf_scalar_clear(&s);
        n->scalars++;
    }
}

static void check_axes(daf *d, const json_t *axes, counts *n) {
    const char *name;
    json_t *entries;
    daf_names names;
    OK(daf_list_axes(d, &names, e));
    assert_int_equal(names.n, json_object_size(axes));
    daf_names_clear(&names);
    json_object_foreach((json_t *)(uintptr_t)axes, name, entries) {
        daf_array *a;
        uint64_t length;
        OK(daf_get_axis(d, &a, name, e));
        OK(daf_axis_length(d, &length, name, e));
        assert_int_equal(daf_array_count(a), json_array_size(entries));
        assert_int_equal(length, json_array_size(entries));
        check_elements(a, 0, entries, name);
        daf_array_free(a);
        n->axes++;
    }
}

/* What the model says of how a property lies on disk. Some models speak of the first repository of their folder only;
 * the others differ in nothing but the codec. */
static void check_info(const daf_info *info, const json_t *expected, const char *name) {
    const char *format = json_string_value(json_object_get(expected, "format"));
    const char *index_type = json_string_value(json_object_get(expected, "indtype"));
    const json_t *packed = json_object_get(expected, "packed");
    assert_string_equal(daf_type_name(info->type), json_string_value(json_object_get(expected, "eltype")));
    if (format)
        assert_int_equal(info->sparse, strcmp(format, "sparse") == 0);
    if (index_type)
        assert_string_equal(daf_type_name(info->index_type), index_type);
    for (unsigned i = 0; i < info->n_parts && json_is_array(packed); i++) {
        bool listed = false;
        size_t k;
        json_t *part;
        json_array_foreach(packed, k, part) listed |=
            strcmp(json_string_value(part), info->parts[i].name) == 0;
        if (listed != info->parts[i].packed)
            fail_msg("%s: part %s", name, info->parts[i].name);
    }
}

/* The same property as sparse values: by the rules, and equal when made dense. */
static void check_sparse(daf_sparse *s, const daf_info *info, const daf_array *dense, const char *name) {
    const daf_csc *c = daf_sparse_csc(s);
    daf_array *again = NULL;
    assert_true(c->rows == info->rows && c->columns == info->columns && c->type == info->type);
    if (info->sparse)
        assert_true(c->nnz == info->nnz && c->index_type == info->index_type);
    assert_int_equal(daf_sparse_start(s, 0), 0);
    assert_true(daf_sparse_start(s, c->columns) == c->nnz);
    OK(daf_sparse_to_dense(&again, s, e));
    assert_true(daf_array_count(again) == daf_array_count(dense));
    size_t bytes = (size_t)daf_array_count(dense) * daf_type_bytes(info->type);
    if (bytes && memcmp(daf_array_values(again), daf_array_values(dense), bytes) != 0)
        fail_msg("%s: sparse differs from dense", name);
    for (uint64_t i = 0; info->type == DAF_STRING && i < daf_array_count(dense); i++)
        assert_string_equal(daf_array_strings(again)[i], daf_array_strings(dense)[i]);
    daf_array_free(again);
    daf_sparse_free(s);
}

static void count_property(counts *n, const daf_info *info) {
    n->dense += !info->sparse;
    n->sparse += info->sparse;
}

static void check_vectors(daf *d, const char *axis, const json_t *vectors, counts *n) {
    const char *name;
    json_t *expected;
    daf_names names;
    OK(daf_list_vectors(d, &names, axis, e));
    assert_int_equal(names.n, json_object_size(vectors));
    daf_names_clear(&names);
    json_object_foreach((json_t *)(uintptr_t)vectors, name, expected) {
        daf_array *a = NULL;
        daf_sparse *s = NULL;
        daf_info info;
        OK(daf_vector_info(d, &info, axis, name, e));
        check_info(&info, expected, name);
        OK(daf_get_vector(d, &a, axis, name, e));
        const json_t *values = json_object_get(expected, "values");
        assert_int_equal(daf_array_count(a), json_array_size(values));
        check_elements(a, 0, values, name);
        bool mapped = !info.packed && !info.sparse && info.type != DAF_STRING && daf_array_count(a) > 0;
        assert_true(daf_array_is_mapped(a) == mapped || (n->may_copy && mapped));
        n->mapped += daf_array_is_mapped(a);
        OK(daf_get_sparse_vector(d, &s, axis, name, e));
        mapped = info.sparse && !info.parts[0].packed && info.nnz > 0;
        assert_true(daf_sparse_is_mapped(s) == mapped || (n->may_copy && mapped));
        check_sparse(s, &info, a, name);
        daf_array_free(a);
        count_property(n, &info);
    }
}

static void check_matrices(daf *d, const char *rows, const char *columns, const json_t *matrices, counts *n) {
    const char *name;
    json_t *expected, *column;
    json_object_foreach((json_t *)(uintptr_t)matrices, name, expected) {
        daf_array *a = NULL;
        daf_sparse *s = NULL;
        daf_info info;
        size_t c;
        OK(daf_matrix_info(d, &info, rows, columns, name, e));
        check_info(&info, expected, name);
        OK(daf_get_matrix(d, &a, rows, columns, name, e));
        const json_t *values = json_object_get(expected, "columns");
        assert_int_equal(daf_array_columns(a), json_array_size(values));
        json_array_foreach(values, c, column) {
            assert_int_equal(daf_array_rows(a), json_array_size(column));
            check_elements(a, c * daf_array_rows(a), column, name);
        }
        OK(daf_get_sparse_matrix(d, &s, rows, columns, name, e));
        check_sparse(s, &info, a, name);
        daf_array_free(a);
        count_property(n, &info);
    }
}

static void check_repository(const char *path, const char *mode, const json_t *model, counts *n) {
    daf *d;
    const char *axis, *columns;
    json_t *inner, *matrices;
    OK(daf_open(&d, path, mode, NULL, e));
    check_scalars(d, json_object_get(model, "scalars"), n);
    check_axes(d, json_object_get(model, "axes"), n);
    json_object_foreach(json_object_get(model, "vectors"), axis, inner) check_vectors(d, axis, inner, n);
    json_object_foreach(json_object_get(model, "matrices"), axis, inner)
        json_object_foreach(inner, columns, matrices) check_matrices(d, axis, columns, matrices, n);
    OK(daf_close(d, e));
}

static void each_fixture_reads(void **state) {
    counts n = {0};
    for (size_t i = 0; i < sizeof fixtures / sizeof fixtures[0]; i++) {
        char from[512], expected[512], name[32];
        snprintf(from, sizeof from, TEST_FIXTURES "/daf/%s/%s", fixtures[i].folder, fixtures[i].repository);
        snprintf(expected, sizeof expected, TEST_FIXTURES "/daf/%s/expected.json", fixtures[i].folder);
        snprintf(name, sizeof name, "copy-%zu.daf", i);
        const char *path = test_path(state, name);
        test_copy_tree(from, path);
        json_t *model = test_load_json(expected);
        check_repository(path, "r", model, &n);
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

static void check_archive(void **state, const archive *f, size_t i, counts *n) {
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
    check_repository(path, "r+", model, n);
    check_repository(path, "r", model, n);
    json_decref(model);
    free(content);
}

static void each_archive_reads(void **state) {
    counts n = {0};
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
    counts n = {0};
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_fixture_reads, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(each_archive_reads, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(each_group_reads, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(index_is_repaired, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(each_defect_is_refused, test_setup, test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

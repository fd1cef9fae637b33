/* Modes, creating, overwriting, deleting, packing, batches: what each call leaves behind. */
#include "support.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int32_t three[] = {10, 20, 30};
static const char *const entries[] = {"A", "B", "C"};

static daf_set_options overwriting(void) {
    daf_set_options o;
    daf_set_options_init(&o);
    o.overwrite = true;
    return o;
}

static daf *small_repository(const char *path) {
    daf *d;
    daf_scalar name = daf_scalar_string("small");
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_set_scalar(d, "name", &name, NULL, e));
    OK(daf_add_axis(d, "cell", entries, 3, e));
    OK(daf_set_vector(d, "cell", "age", DAF_INT32, three, 3, NULL, e));
    return d;
}

static char *text_of(const char *path, const char *key) {
    char full[1024];
    size_t bytes;
    snprintf(full, sizeof full, "%s/%s", path, key);
    char *text = test_read_file(full, &bytes);
    assert_non_null(text);
    return text;
}

static void file_holds(const char *path, const char *key, const char *expected) {
    char *text = text_of(path, key);
    assert_string_equal(text, expected);
    free(text);
}

/* No staging file is left. */
static void is_tidy(const char *path) {
    char command[600];
    snprintf(command, sizeof command, "test -z \"$(find %s -name '.daf.new.*' -o -name '*.new')\"", path);
    assert_int_equal(system(command), 0);
}

static void modes_mean_what_the_table_says(void **state) {
    const char *path = test_path(state, "a.daf"), *file = test_path(state, "file");
    daf *d;
    daf_scalar s = daf_scalar_bool(true);
    FAILS(DAF_ERR_ARG, "invalid mode: rw", daf_open(&d, path, "rw", NULL, e));
    FAILS(DAF_ERR_NOT_DAF, "not a daf directory: ", daf_open(&d, path, "r", NULL, e));
    FAILS(DAF_ERR_NOT_DAF, "not a daf directory: ", daf_open(&d, path, "r+", NULL, e));
    assert_false(test_exists(path));
    test_write_file(file, "x", 1);
    FAILS(DAF_ERR_NOT_DAF, "not a directory: ", daf_open(&d, file, "r", NULL, e));
    OK(daf_open(&d, path, "w+", NULL, e));
    OK(daf_set_scalar(d, "s", &s, NULL, e));
    OK(daf_close(d, e));
    OK(daf_open(&d, path, "w+", NULL, e));
    OK(daf_get_scalar(d, &s, "s", e));
    OK(daf_close(d, e));
    OK(daf_open(&d, path, "r", NULL, e));
    FAILS(DAF_ERR_READ_ONLY, "reading only", daf_set_scalar(d, "t", &s, NULL, e));
    FAILS(DAF_ERR_READ_ONLY, "reading only", daf_batch_begin(d, e));
    FAILS(DAF_ERR_READ_ONLY, "reading only", daf_delete_scalar(d, "s", e));
    OK(daf_close(d, e));
    char foreign[600];
    snprintf(foreign, sizeof foreign, "%s/foreign", path);
    test_write_file(foreign, "x", 1);
    OK(daf_open(&d, path, "w", NULL, e));
    FAILS(DAF_ERR_MISSING, "no scalar \"s\"", daf_get_scalar(d, &s, "s", e));
    OK(daf_close(d, e));
    assert_false(test_exists(foreign));
    assert_int_equal(test_count_files(path), 6); /* four folders, marker, index */
}

static void other_paths_are_refused_or_spared(void **state) {
    const char *path = test_path(state, "holiday-photos"), *inside = test_path(state, "holiday-photos/1.jpg");
    daf *d;
    assert_int_equal(mkdir(path, 0777), 0);
    test_write_file(inside, "x", 1);
    FAILS(DAF_ERR_EXISTS, "will not be emptied", daf_open(&d, path, "w", NULL, e));
    assert_true(test_exists(inside));
    OK(daf_open(&d, path, "w+", NULL, e)); /* a repository beside other files */
    OK(daf_close(d, e));
    assert_true(test_exists(inside));
    FAILS(DAF_ERR_UNSUPPORTED, "for reading only", daf_open(&d, "http://127.0.0.1/run.daf", "w", NULL, e));
    FAILS(DAF_ERR_IO, "cannot make the directory",
          daf_open(&d, test_path(state, "none/x.daf"), "w", NULL, e));
}

static void one_writer_at_a_time(void **state) {
    const char *path = test_path(state, "a.daf");
    daf *d = small_repository(path), *other;
    FAILS(DAF_ERR_BUSY, "another writer", daf_open(&other, path, "r+", NULL, e));
    FAILS(DAF_ERR_BUSY, "another writer", daf_open(&other, path, "w", NULL, e));
    OK(daf_open(&other, path, "r", NULL, e));
    OK(daf_close(d, e));
    OK(daf_open(&d, path, "r+", NULL, e));
    OK(daf_close(other, e));
    OK(daf_close(d, e));
}

static void names_are_refused_before_anything_is_made(void **state) {
    static const char *const bad[] = {"", ".", "..", "a/b", "/etc/passwd", "../../up", "\xff\xfe", "x.nzind"};
    const char *path = test_path(state, "a.daf");
    daf *d = small_repository(path);
    daf_scalar s = daf_scalar_bool(true);
    unsigned before = test_count_files(path);
    char longest[300];
    memset(longest, 'n', sizeof longest);
    longest[299] = 0;
    for (size_t i = 0; i <= sizeof bad / sizeof bad[0]; i++) {
        const char *name = i < sizeof bad / sizeof bad[0] ? bad[i] : longest;
        bool axis_too = strcmp(name, "x.nzind") != 0;
        FAILS(DAF_ERR_NAME, "", daf_set_scalar(d, name, &s, NULL, e));
        FAILS(DAF_ERR_NAME, "", daf_set_vector(d, "cell", name, DAF_INT32, three, 3, NULL, e));
        FAILS(DAF_ERR_NAME, "", daf_set_matrix(d, "cell", "cell", name, DAF_INT32, three, 3, NULL, e));
        if (axis_too)
            FAILS(DAF_ERR_NAME, "", daf_add_axis(d, name, entries, 3, e));
        if (axis_too && i > 0 && name != longest)
            FAILS(strcmp(name, "\xff\xfe") == 0 ? DAF_ERR_MISSING : DAF_ERR_NAME, "",
                  daf_set_vector(d, name, "v", DAF_INT32, three, 3, NULL, e));
    }
    FAILS(DAF_ERR_NAME, "reserved", daf_set_vector(d, "cell", "name", DAF_INT32, three, 3, NULL, e));
    FAILS(DAF_ERR_NAME, "reserved", daf_set_vector(d, "cell", "index", DAF_INT32, three, 3, NULL, e));
    FAILS(DAF_ERR_ARG, "NULL", daf_set_scalar(d, NULL, &s, NULL, e));
    FAILS(DAF_ERR_NAME, "/", daf_get_scalar(d, &s, "../daf", e));
    assert_int_equal(test_count_files(path), before);
    OK(daf_close(d, e));
}

static void values_are_refused_before_anything_is_made(void **state) {
    const char *path = test_path(state, "a.daf");
    static const char *const twice[] = {"x", "y", "x"}, *const empty[] = {""}, *const lf[] = {"a\nb", "", ""},
                             *const cr[] = {"a\rb"}, *const latin[] = {"\xe9", "", ""};
    daf *d = small_repository(path);
    unsigned before = test_count_files(path);
    daf_scalar nan = daf_scalar_float64((double)NAN), wide = {.type = DAF_INT8, .value.i = 128},
               text = daf_scalar_string("\xe9"), huge = {.type = DAF_FLOAT32, .value.f = 1e39};
    FAILS(DAF_ERR_VALUE, "finite", daf_set_scalar(d, "s", &nan, NULL, e));
    FAILS(DAF_ERR_VALUE, "range of Int8", daf_set_scalar(d, "s", &wide, NULL, e));
    FAILS(DAF_ERR_VALUE, "range of Float32", daf_set_scalar(d, "s", &huge, NULL, e));
    FAILS(DAF_ERR_VALUE, "UTF-8", daf_set_scalar(d, "s", &text, NULL, e));
    FAILS(DAF_ERR_VALUE, "given twice", daf_add_axis(d, "a", twice, 3, e));
    FAILS(DAF_ERR_VALUE, "is empty", daf_add_axis(d, "a", empty, 1, e));
    FAILS(DAF_ERR_VALUE, "line end", daf_add_axis(d, "a", lf, 1, e));
    FAILS(DAF_ERR_VALUE, "line end", daf_add_axis(d, "a", cr, 1, e));
    FAILS(DAF_ERR_VALUE, "UTF-8", daf_add_axis(d, "a", latin, 1, e));
    FAILS(DAF_ERR_EXISTS, "axis \"cell\" exists", daf_add_axis(d, "cell", entries, 3, e));
    FAILS(DAF_ERR_ARG, "step is 0", daf_add_axis_integers(d, "a", 1, 0, 2, e));
    FAILS(DAF_ERR_VALUE, "64 bits", daf_add_axis_integers(d, "a", INT64_MAX, 1, 2, e));
    FAILS(DAF_ERR_VALUE, "line end", daf_set_vector(d, "cell", "v", DAF_STRING, lf, 3, NULL, e));
    FAILS(DAF_ERR_ARG, "2 values, but 3 x 1", daf_set_vector(d, "cell", "v", DAF_INT32, three, 2, NULL, e));
    FAILS(DAF_ERR_ARG, "NULL", daf_set_vector(d, "cell", "v", DAF_INT32, NULL, 3, NULL, e));
    FAILS(DAF_ERR_ARG, "no element type", daf_set_vector(d, "cell", "v", (daf_type)99, three, 3, NULL, e));
    FAILS(DAF_ERR_MISSING, "no axis \"gene\"", daf_set_vector(d, "gene", "v", DAF_INT32, three, 3, NULL, e));
    FAILS(DAF_ERR_EXISTS, "vector \"age\" on axis \"cell\" exists",
          daf_set_vector(d, "cell", "age", DAF_INT32, three, 3, NULL, e));
    assert_int_equal(test_count_files(path), before);
    OK(daf_close(d, e));
}

static void integers_make_an_axis(void **state) {
    const char *path = test_path(state, "a.daf");
    daf *d;
    daf_array *a;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "edge", 4080, 8, 3, e));
    OK(daf_add_axis_integers(d, "down", INT64_MIN + 1, -1, 2, e));
    OK(daf_add_axis_integers(d, "none", 0, 1, 0, e));
    file_holds(path, "axes/edge.txt", "4080\n4088\n4096\n");
    file_holds(path, "axes/down.txt", "-9223372036854775807\n-9223372036854775808\n");
    file_holds(path, "axes/none.txt", "");
    OK(daf_set_vector(d, "none", "v", DAF_FLOAT64, NULL, 0, NULL, e));
    OK(daf_set_matrix(d, "none", "edge", "m", DAF_STRING, NULL, 0, NULL, e));
    OK(daf_get_vector(d, &a, "none", "v", e));
    assert_int_equal(daf_array_count(a), 0);
    assert_non_null(daf_array_values(a));
    daf_array_free(a);
    OK(daf_get_matrix(d, &a, "none", "edge", "m", e));
    assert_int_equal(daf_array_columns(a), 3);
    assert_int_equal(daf_array_count(a), 0);
    daf_array_free(a);
    OK(daf_close(d, e));
}

static void non_finite_scalars_when_asked_for(void **state) {
    const char *path = test_path(state, "a.daf");
    daf_options options;
    daf *d;
    daf_scalar s = daf_scalar_float64(-(double)INFINITY), got;
    daf_options_init(&options);
    options.non_finite_scalars = true;
    OK(daf_open(&d, path, "w", &options, e));
    OK(daf_set_scalar(d, "s", &s, NULL, e));
    file_holds(path, "scalars/s.json", "{\"type\":\"Float64\",\"value\":\"-Inf\"}\n");
    OK(daf_get_scalar(d, &got, "s", e));
    assert_true(isinf(got.value.f) && got.value.f < 0);
    OK(daf_close(d, e));
}

static void get_int32(daf *d, const char *name, const int32_t *expected) {
    daf_array *a;
    OK(daf_get_vector(d, &a, "cell", name, e));
    assert_int_equal(daf_array_type(a), DAF_INT32);
    assert_memory_equal(daf_array_values(a), expected, 12);
    daf_array_free(a);
}

static void overwriting_changes_form_and_type(void **state) {
    static const double reals[] = {0.5, -0.0, 1e300};
    static const char *const texts[] = {"x", "", "z"};
    const char *path = test_path(state, "a.daf");
    daf_set_options o = overwriting();
    daf *d = small_repository(path);
    daf_array *before, *a;
    OK(daf_get_vector(d, &before, "cell", "age", e));
    assert_true(daf_array_is_mapped(before));
    static const int32_t other[] = {7, 8, 9};
    OK(daf_set_vector(d, "cell", "age", DAF_INT32, other, 3, &o, e));
    get_int32(d, "age", other);
    OK(daf_set_vector(d, "cell", "age", DAF_FLOAT64, reals, 3, &o, e));
    OK(daf_get_vector(d, &a, "cell", "age", e));
    assert_memory_equal(daf_array_values(a), reals, sizeof reals);
    daf_array_free(a);
    OK(daf_set_vector(d, "cell", "age", DAF_STRING, texts, 3, &o, e));
    OK(daf_get_vector(d, &a, "cell", "age", e));
    assert_string_equal(daf_array_strings(a)[2], "z");
    daf_array_free(a);
    OK(daf_set_vector(d, "cell", "age", DAF_INT32, three, 3, &o, e));
    assert_memory_equal(daf_array_values(before), three, sizeof three); /* what was handed out stays */
    OK(daf_close(d, e));
    assert_memory_equal(daf_array_values(before), three, sizeof three);
    daf_array_free(before);
    /* daf.json, metadata.json, scalars/name, axes/cell.txt, age.json, age.data and 7 folders */
    assert_int_equal(test_count_files(path), 13);
    file_holds(path, "vectors/cell/age.json", "{\"format\":\"dense\",\"eltype\":\"Int32\"}\n");
    file_holds(path, "metadata.json",
               "{\"axes/cell\":{\"format\":\"axis\",\"n_entries\":3},\"scalars/"
               "name\":{\"type\":\"String\",\"value\":"
               "\"small\"},\"vectors/cell/age\":{\"format\":\"dense\",\"eltype\":\"Int32\"}}");
    is_tidy(path);
}

static void a_sparse_property_is_replaced_whole(void **state) {
    const char *path = test_path(state, "a.daf"), *nzind = test_path(state, "a.daf/vectors/cell/flag.nzind");
    static const uint8_t flags[] = {1, 0, 2};
    daf_set_options o = overwriting();
    daf *d;
    daf_array *a;
    test_copy_tree(TEST_FIXTURES "/daf/exact-bytes/step-8.daf", path);
    assert_true(test_exists(nzind));
    OK(daf_open(&d, path, "r+", NULL, e));
    FAILS(DAF_ERR_EXISTS, "flag", daf_set_vector(d, "cell", "flag", DAF_BOOL, flags, 3, NULL, e));
    OK(daf_set_vector(d, "cell", "flag", DAF_BOOL, flags, 3, &o, e));
    assert_false(test_exists(nzind));
    OK(daf_get_vector(d, &a, "cell", "flag", e));
    assert_memory_equal(daf_array_values(a), "\1\0\1", 3);
    daf_array_free(a);
    OK(daf_close(d, e));
}

static void deleting_takes_both_layouts(void **state) {
    static const int32_t six[] = {1, 2, 3, 4, 5, 6};
    const char *path = test_path(state, "a.daf");
    daf *d = small_repository(path);
    daf_set_options o = overwriting();
    daf_names names;
    bool there;
    OK(daf_add_axis_integers(d, "gene", 0, 1, 2, e));
    OK(daf_set_matrix(d, "cell", "gene", "m", DAF_INT32, six, 6, NULL, e));
    OK(daf_set_matrix(d, "gene", "cell", "m", DAF_INT32, six, 6, NULL, e));
    OK(daf_set_matrix(d, "gene", "cell", "m", DAF_INT32, six, 6, &o, e));
    OK(daf_has_matrix(d, &there, "cell", "gene", "m", e));
    assert_false(there);
    OK(daf_set_matrix(d, "cell", "gene", "m", DAF_INT32, six, 6, NULL, e));
    OK(daf_delete_matrix(d, "cell", "gene", "m", e));
    OK(daf_has_matrix(d, &there, "gene", "cell", "m", e));
    assert_false(there);
    FAILS(DAF_ERR_MISSING, "matrix \"m\"", daf_delete_matrix(d, "cell", "gene", "m", e));
    FAILS(DAF_ERR_MISSING, "vector \"x\"", daf_delete_vector(d, "cell", "x", e));
    FAILS(DAF_ERR_MISSING, "scalar \"x\"", daf_delete_scalar(d, "x", e));
    OK(daf_delete_scalar(d, "name", e));
    OK(daf_list_scalars(d, &names, e));
    assert_int_equal(names.n, 0);
    daf_names_clear(&names);
    OK(daf_close(d, e));
    is_tidy(path);
}

static void deleting_an_axis_takes_what_lies_on_it(void **state) {
    static const int32_t six[] = {1, 2, 3, 4, 5, 6};
    const char *path = test_path(state, "a.daf");
    daf *d = small_repository(path);
    OK(daf_add_axis_integers(d, "gene", 0, 1, 2, e));
    OK(daf_set_vector(d, "gene", "v", DAF_INT32, six, 2, NULL, e));
    OK(daf_set_matrix(d, "cell", "gene", "m", DAF_INT32, six, 6, NULL, e));
    OK(daf_set_matrix(d, "gene", "cell", "m", DAF_INT32, six, 6, NULL, e));
    OK(daf_delete_axis(d, "cell", e));
    file_holds(path, "metadata.json",
               "{\"axes/gene\":{\"format\":\"axis\",\"n_entries\":2},\"scalars/"
               "name\":{\"type\":\"String\",\"value\":"
               "\"small\"},\"vectors/gene/v\":{\"format\":\"dense\",\"eltype\":\"Int32\"}}");
    assert_false(test_exists(test_path(state, "a.daf/vectors/cell")));
    assert_false(test_exists(test_path(state, "a.daf/matrices/cell")));
    assert_false(test_exists(test_path(state, "a.daf/matrices/gene/cell")));
    FAILS(DAF_ERR_MISSING, "axis \"cell\"", daf_delete_axis(d, "cell", e));
    OK(daf_add_axis(d, "cell", entries, 2, e));
    assert_true(test_exists(test_path(state, "a.daf/matrices/gene/cell")));
    OK(daf_close(d, e));
    is_tidy(path);
}

/* ---- packing */

static void expect_packed(daf *d, const char *axis, const char *columns, bool packed, uint64_t chunk_rows,
                          uint64_t n_chunks) {
    daf_info info;
    if (columns)
        OK(daf_matrix_info(d, &info, axis, columns, "p", e));
    else
        OK(daf_vector_info(d, &info, axis, "p", e));
    assert_int_equal(info.packed, packed);
    if (!packed)
        return;
    assert_int_equal(info.chunk_rows, chunk_rows);
    assert_int_equal(info.chunk_columns, 1);
    assert_int_equal(info.n_chunks, n_chunks);
    assert_true(info.indexed);
}

static void packing_begins_at_a_chunk(void **state) {
    static const struct {
        daf_type type;
        uint64_t rows, columns; /* 0: a vector */
        bool packed;
        uint64_t chunk_rows, n_chunks;
    } cases[] = {
        {DAF_FLOAT32, 2047, 0, false, 0, 0},     {DAF_FLOAT32, 2048, 0, true, 2048, 1},
        {DAF_FLOAT32, 10000, 0, true, 2048, 5},  {DAF_UINT8, 8193, 0, true, 8192, 2},
        {DAF_UINT8, 8191, 0, false, 0, 0},       {DAF_STRING, 511, 0, false, 0, 0},
        {DAF_STRING, 30000, 0, true, 512, 59},   {DAF_FLOAT32, 4096, 3, true, 2048, 6},
        {DAF_FLOAT32, 100, 100, true, 100, 100}, {DAF_FLOAT32, 10, 10, false, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[32];
        snprintf(name, sizeof name, "p%zu.daf", i);
        daf_options options;
        daf_options_init(&options);
        options.packed = true;
        daf *d;
        OK(daf_open(&d, test_path(state, name), "w", &options, e));
        uint64_t n = cases[i].rows * (cases[i].columns ? cases[i].columns : 1);
        const char **values = calloc((size_t)n, 8);
        for (uint64_t k = 0; k < n && cases[i].type == DAF_STRING; k++)
            values[k] = "";
        OK(daf_add_axis_integers(d, "r", 0, 1, cases[i].rows, e));
        OK(daf_add_axis_integers(d, "c", 0, 1, cases[i].columns, e));
        if (cases[i].columns)
            OK(daf_set_matrix(d, "r", "c", "p", cases[i].type, values, n, NULL, e));
        else
            OK(daf_set_vector(d, "r", "p", cases[i].type, values, n, NULL, e));
        expect_packed(d, "r", cases[i].columns ? "c" : NULL, cases[i].packed, cases[i].chunk_rows,
                      cases[i].n_chunks);
        free(values);
        OK(daf_close(d, e));
    }
}

static void packing_is_chosen_by_handle_and_call(void **state) {
    const char *path = test_path(state, "a.daf");
    daf_options options;
    daf_set_options o = overwriting();
    daf *d;
    static const float values[100 * 100];
    daf_options_init(&options);
    options.packed = true;
    options.pack_rule = DAF_PACK_BY_COLUMN;
    OK(daf_open(&d, path, "w", &options, e));
    OK(daf_add_axis_integers(d, "r", 0, 1, 100, e));
    OK(daf_set_matrix(d, "r", "r", "p", DAF_FLOAT32, values, 10000, NULL, e));
    expect_packed(d, "r", "r", false, 0, 0);
    o.target_chunk_kb = 1;
    FAILS(DAF_ERR_EXISTS, "exists", daf_set_matrix(d, "r", "r", "p", DAF_FLOAT32, values, 10000, NULL, e));
    OK(daf_close(d, e));
    options.pack_rule = DAF_PACK_BY_PROPERTY;
    options.target_chunk_kb = 1;
    options.codec = DAF_CODEC_GZIP;
    options.level = 9;
    OK(daf_open(&d, path, "r+", &options, e));
    OK(daf_set_matrix(d, "r", "r", "p", DAF_FLOAT32, values, 10000, &o, e));
    expect_packed(d, "r", "r", true, 100, 100);
    daf_info info;
    OK(daf_matrix_info(d, &info, "r", "r", "p", e));
    assert_string_equal(info.compression, "gzip");
    assert_int_equal(info.level, 9);
    o.packing = DAF_PACK_NEVER;
    OK(daf_set_matrix(d, "r", "r", "p", DAF_FLOAT32, values, 10000, &o, e));
    expect_packed(d, "r", "r", false, 0, 0);
    o.packing = DAF_PACK_LARGE;
    o.level = 10;
    FAILS(DAF_ERR_ARG, "level 10 of \"gzip\"",
          daf_set_matrix(d, "r", "r", "p", DAF_FLOAT32, values, 10000, &o, e));
    o.codec = DAF_CODEC_BLOSC_LZ4_BITSHUFFLE;
    FAILS(DAF_ERR_ARG, "level 10 of \"blosc_lz4_bitshuffle\"",
          daf_set_matrix(d, "r", "r", "p", DAF_FLOAT32, values, 10000, &o, e));
    o.level = 5;
    OK(daf_set_matrix(d, "r", "r", "p", DAF_FLOAT32, values, 10000, &o, e));
    expect_packed(d, "r", "r", true, 100, 100);
    OK(daf_close(d, e));
    is_tidy(path);
}

static void the_environment_has_defaults(void **state) {
    const char *path = test_path(state, "a.daf");
    static const uint8_t values[3000];
    daf_options options;
    daf_info info;
    daf *d;
    daf_options_init(&options);
    options.packed = true;
    setenv("DAF_PACKED_COMPRESSION", "gzip", 1);
    setenv("DAF_PACKED_COMPRESSION_LEVEL", "3", 1);
    setenv("DAF_PACKED_TARGET_CHUNK_KB", "2", 1);
    OK(daf_open(&d, path, "w", &options, e));
    OK(daf_add_axis_integers(d, "r", 0, 1, 3000, e));
    OK(daf_set_vector(d, "r", "p", DAF_UINT8, values, 3000, NULL, e));
    OK(daf_vector_info(d, &info, "r", "p", e));
    assert_string_equal(info.compression, "gzip");
    assert_int_equal(info.level, 3);
    assert_int_equal(info.chunk_rows, 2048);
    OK(daf_close(d, e));
    setenv("DAF_PACKED_TARGET_CHUNK_KB", "many", 1);
    FAILS(DAF_ERR_ARG, "DAF_PACKED_TARGET_CHUNK_KB", daf_open(&d, path, "r", NULL, e));
    setenv("DAF_PACKED_TARGET_CHUNK_KB", "", 1);
    setenv("DAF_PACKED_COMPRESSION", "lzma", 1);
    FAILS(DAF_ERR_ARG, "DAF_PACKED_COMPRESSION", daf_open(&d, path, "r", NULL, e));
    unsetenv("DAF_PACKED_COMPRESSION");
    unsetenv("DAF_PACKED_COMPRESSION_LEVEL");
    unsetenv("DAF_PACKED_TARGET_CHUNK_KB");
}

static void a_packed_property_raises_the_version(void **state) {
    const char *path = test_path(state, "a.daf");
    static const uint8_t values[12 * 1024];
    daf_options options;
    daf *d;
    int major, minor;
    daf_options_init(&options);
    test_copy_tree(TEST_FIXTURES "/daf/flat-v1.0/repo.daf", path);
    file_holds(path, "daf.json", "{\"version\":[1,0]}\n");
    options.target_chunk_kb = 1;
    OK(daf_open(&d, path, "r+", &options, e));
    OK(daf_add_axis_integers(d, "r", 0, 1, 12 * 1024, e));
    OK(daf_set_vector(d, "r", "flat", DAF_UINT8, values, sizeof values, NULL, e));
    file_holds(path, "daf.json", "{\"version\":[1,0]}\n");
    daf_set_options o = overwriting();
    o.packing = DAF_PACK_LARGE;
    OK(daf_set_vector(d, "r", "p", DAF_UINT8, values, sizeof values, &o, e));
    file_holds(path, "daf.json", "{\"version\":[1,1]}\n");
    daf_format_version(d, &major, &minor);
    assert_true(major == 1 && minor == 1);
    OK(daf_close(d, e));
}

/* ---- executors */

typedef struct pool {
    pthread_t threads[128];
    unsigned n, refused;
} pool;

typedef struct pool_job {
    void (*run)(void *job);
    void *job;
} pool_job;

static void *pool_run(void *arg) {
    pool_job job = *(pool_job *)arg;
    free(arg);
    job.run(job.job);
    return NULL;
}

static int pool_submit(void *context, void (*run)(void *job), void *job) {
    pool *p = context;
    if (++p->refused % 7 == 0)
        return -1; /* taken by the library itself */
    pool_job *copy = malloc(sizeof *copy);
    *copy = (pool_job){run, job};
    assert_true(p->n < 128);
    return pthread_create(&p->threads[p->n++], NULL, pool_run, copy);
}

static void pool_wait(void *context) {
    pool *p = context;
    while (p->n > 0)
        pthread_join(p->threads[--p->n], NULL);
}

static void bytes_do_not_depend_on_threads(void **state) {
    enum { ROWS = 3000, COLUMNS = 40 };
    uint32_t *values = malloc(ROWS * COLUMNS * sizeof *values);
    const char **texts = malloc(ROWS * COLUMNS * sizeof *texts);
    static const char *const words[] = {"", "a", "photon", "ünïcødé"};
    test_random r = {3};
    for (size_t i = 0; i < ROWS * COLUMNS; i++) {
        values[i] = (uint32_t)test_below(&r, 300);
        texts[i] = words[test_below(&r, 4)];
    }
    for (unsigned threads = 0; threads <= 4; threads++) {
        char name[32];
        pool p = {.n = 0};
        daf_executor x = {.context = &p, .submit = pool_submit, .wait = pool_wait, .n_threads = threads};
        daf_options options;
        daf_set_options gzip;
        daf *d;
        daf_options_init(&options);
        daf_set_options_init(&gzip);
        gzip.codec = DAF_CODEC_GZIP;
        options.packed = true;
        options.executor = threads ? &x : NULL;
        snprintf(name, sizeof name, "t%u.daf", threads);
        const char *path = test_path(state, name);
        OK(daf_open(&d, path, "w", &options, e));
        OK(daf_add_axis_integers(d, "r", 0, 1, ROWS, e));
        OK(daf_add_axis_integers(d, "c", 0, 1, COLUMNS, e));
        OK(daf_set_matrix(d, "r", "c", "m", DAF_UINT32, values, ROWS * COLUMNS, NULL, e));
        OK(daf_set_matrix(d, "r", "c", "g", DAF_UINT32, values, ROWS * COLUMNS, &gzip, e));
        OK(daf_set_matrix(d, "r", "c", "s", DAF_STRING, texts, ROWS * COLUMNS, NULL, e));
        daf_array *a;
        OK(daf_get_matrix(d, &a, "r", "c", "g", e));
        assert_memory_equal(daf_array_values(a), values, ROWS * COLUMNS * sizeof *values);
        daf_array_free(a);
        OK(daf_close(d, e));
        if (threads)
            test_same_tree(test_path(state, "t0.daf"), path);
    }
    free(values);
    free(texts);
}

/* ---- the directory that was opened */

static void the_handle_stays_with_its_directory(void **state) {
    const char *path = test_path(state, "a.daf"), *moved = test_path(state, "b.daf");
    daf *d = small_repository(path), *reader, *new;
    OK(daf_open(&reader, path, "r", NULL, e));
    assert_int_equal(rename(path, moved), 0);
    OK(daf_open(&new, path, "w", NULL, e));
    get_int32(reader, "age", three);
    OK(daf_set_vector(d, "cell", "more", DAF_INT32, three, 3, NULL, e));
    get_int32(reader, "more", three);
    bool there;
    OK(daf_has_axis(new, &there, "cell", e));
    assert_false(there);
    OK(daf_close(new, e));
    OK(daf_close(reader, e));
    OK(daf_close(d, e));
    int dirfd = open(moved, O_RDONLY | O_DIRECTORY);
    OK(daf_openat(&d, dirfd, ".", "r+", NULL, e));
    close(dirfd);
    get_int32(d, "more", three);
    OK(daf_close(d, e));
}

static void names_and_versions_are_told(void **state) {
    const char *path = test_path(state, "a.daf");
    daf *d = small_repository(path);
    daf_options options;
    int major, minor;
    assert_string_equal(daf_name(d), "small");
    OK(daf_delete_scalar(d, "name", e));
    assert_string_equal(daf_name(d), path);
    daf_format_version(d, &major, &minor);
    assert_true(major == 1 && minor == 1);
    OK(daf_close(d, e));
    daf_options_init(&options);
    options.name = "given";
    OK(daf_open(&d, path, "r", &options, e));
    assert_string_equal(daf_name(d), "given");
    OK(daf_close(d, e));
    OK(daf_close(NULL, e));
    daf_free(NULL);
    daf_array_free(NULL);
    daf_scalar_clear(NULL);
    daf_names_clear(NULL);
}

static void modes_of_files_hold_whatever_the_umask(void **state) {
    static const char *const keys[] = {"",
                                       "/vectors/cell",
                                       "/matrices/cell/cell",
                                       "/daf.json",
                                       "/metadata.json",
                                       "/vectors/cell/age.data",
                                       "/vectors/cell/age.json",
                                       "/axes/cell.txt"};
    const char *path = test_path(state, "a.daf");
    daf_options options;
    daf *d;
    daf_options_init(&options);
    options.file_mode = 0640;
    options.directory_mode = 0750;
    mode_t before = umask(0077);
    OK(daf_open(&d, path, "w", &options, e));
    OK(daf_add_axis(d, "cell", entries, 3, e));
    OK(daf_set_vector(d, "cell", "age", DAF_INT32, three, 3, NULL, e));
    OK(daf_close(d, e));
    umask(before);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char full[600];
        struct stat st;
        snprintf(full, sizeof full, "%s%s", path, keys[i]);
        assert_int_equal(stat(full, &st), 0);
        assert_int_equal(st.st_mode & 0777, S_ISDIR(st.st_mode) ? 0750 : 0640);
    }
}

static void leftovers_of_a_killed_writer_go(void **state) {
    const char *path = test_path(state, "a.daf");
    daf *d = small_repository(path);
    OK(daf_close(d, e));
    test_write_file(test_path(state, "a.daf/.daf.new.1.2"), "x", 1);
    test_write_file(test_path(state, "a.daf/metadata.json.new"), "x", 1);
    mkdir(test_path(state, "a.daf/.daf.new.1.3"), 0777);
    test_write_file(test_path(state, "a.daf/.daf.new.1.3/inside"), "x", 1);
    test_write_file(test_path(state, "a.daf/other"), "x", 1);
    OK(daf_open(&d, path, "r", NULL, e));
    OK(daf_close(d, e));
    assert_true(test_exists(test_path(state, "a.daf/.daf.new.1.2")));
    OK(daf_open(&d, path, "r+", NULL, e));
    OK(daf_close(d, e));
    is_tidy(path);
    assert_true(test_exists(test_path(state, "a.daf/other")));
}

static void batches_are_checked(void **state) {
    const char *path = test_path(state, "a.daf");
    daf *d = small_repository(path);
    daf_scalar s = daf_scalar_uint64(UINT64_MAX);
    FAILS(DAF_ERR_ARG, "no batch", daf_batch_commit(d, e));
    OK(daf_batch_begin(d, e));
    FAILS(DAF_ERR_ARG, "open already", daf_batch_begin(d, e));
    OK(daf_set_scalar(d, "big", &s, NULL, e));
    char *index = text_of(path, "metadata.json");
    assert_null(strstr(index, "scalars/big"));
    free(index);
    OK(daf_get_scalar(d, &s, "big", e));
    assert_true(s.value.u == UINT64_MAX);
    daf_free(d); /* not committed: the next writable open finds it */
    OK(daf_open(&d, path, "r+", NULL, e));
    index = text_of(path, "metadata.json");
    assert_non_null(strstr(index, "\"scalars/big\":{\"type\":\"UInt64\",\"value\":18446744073709551615}"));
    free(index);
    OK(daf_close(d, e));
}

static void synced_writes_work(void **state) {
    daf_options options;
    daf *d;
    daf_options_init(&options);
    options.sync = true;
    OK(daf_open(&d, test_path(state, "a.daf"), "w", &options, e));
    OK(daf_add_axis(d, "cell", entries, 3, e));
    OK(daf_batch_begin(d, e));
    OK(daf_set_vector(d, "cell", "age", DAF_INT32, three, 3, NULL, e));
    OK(daf_delete_axis(d, "cell", e));
    OK(daf_batch_commit(d, e));
    OK(daf_close(d, e));
}

static void a_pipe_does_not_hang_a_reader(void **state) {
    const char *path = test_path(state, "a.daf"), *data = test_path(state, "a.daf/vectors/cell/age.data");
    daf *d = small_repository(path);
    daf_array *a;
    assert_int_equal(unlink(data), 0);
    assert_int_equal(mkfifo(data, 0666), 0);
    FAILS(DAF_ERR_CORRUPT, "not a regular file", daf_get_vector(d, &a, "cell", "age", e));
    OK(daf_close(d, e));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(modes_mean_what_the_table_says),
        TEST(other_paths_are_refused_or_spared),
        TEST(one_writer_at_a_time),
        TEST(names_are_refused_before_anything_is_made),
        TEST(values_are_refused_before_anything_is_made),
        TEST(integers_make_an_axis),
        TEST(non_finite_scalars_when_asked_for),
        TEST(overwriting_changes_form_and_type),
        TEST(a_sparse_property_is_replaced_whole),
        TEST(deleting_takes_both_layouts),
        TEST(deleting_an_axis_takes_what_lies_on_it),
        TEST(packing_begins_at_a_chunk),
        TEST(packing_is_chosen_by_handle_and_call),
        TEST(the_environment_has_defaults),
        TEST(a_packed_property_raises_the_version),
        TEST(bytes_do_not_depend_on_threads),
        TEST(the_handle_stays_with_its_directory),
        TEST(names_and_versions_are_told),
        TEST(modes_of_files_hold_whatever_the_umask),
        TEST(leftovers_of_a_killed_writer_go),
        TEST(batches_are_checked),
        TEST(synced_writes_work),
        TEST(a_pipe_does_not_hang_a_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

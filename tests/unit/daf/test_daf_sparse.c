/* Sparse vectors and matrices: every type and index type there and back, what is written, what is refused. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "content.h"
#include "handle.h"
#include "indices.h"

enum { ROWS = 90, COLUMNS = 30, N = ROWS * COLUMNS };

static const daf_type index_types[] = {DAF_INT8,  DAF_INT16,  DAF_INT32,  DAF_INT64,
                                       DAF_UINT8, DAF_UINT16, DAF_UINT32, DAF_UINT64};
enum { N_INDEX_TYPES = sizeof index_types / sizeof index_types[0] };

/* Sparse values with their dense form; String values point to constants. */
typedef struct sample {
    daf_csc csc;
    uint64_t colptr[COLUMNS + 1], indices[N];
    uint64_t values[N], dense[N]; /* room for any type */
    uint8_t narrow_colptr[(COLUMNS + 1) * 8], narrow_indices[N * 8];
} sample;

static const char *const words[] = {"", "photon", "ünï", "a longer text"};

static void put_value(void *values, daf_type type, uint64_t i, uint64_t v) {
    size_t width = daf_type_bytes(type);
    if (type == DAF_STRING)
        ((const char **)values)[i] = words[v % 4];
    else if (type == DAF_BOOL)
        ((uint8_t *)values)[i] = v & 1;
    else
        memcpy((uint8_t *)values + i * width, &v, width);
}

static void narrow(void *to, daf_type type, const uint64_t *from, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        daf__indices_narrow(to, type, i, &from[i], 1);
}

/* One in `rarity` is stored; some stored values are zero. A matrix when columns > 1. */
static void fill_sample(sample *s, test_random *r, daf_type type, daf_type index_type, uint64_t columns,
                        uint64_t rarity) {
    uint64_t k = 0;
    memset(s, 0, sizeof *s);
    for (uint64_t i = 0; i < ROWS * columns; i++)
        put_value(s->dense, type, i, 0);
    for (uint64_t j = 0; j < columns; j++) {
        s->colptr[j] = k + 1;
        for (uint64_t i = 0; i < ROWS; i++) {
            if (test_below(r, rarity))
                continue;
            uint64_t v = test_below(r, 5) ? test_next(r) : 0;
            put_value(s->values, type, k, v);
            put_value(s->dense, type, j * ROWS + i, v);
            s->indices[k++] = i + 1;
        }
    }
    s->colptr[columns] = k + 1;
    narrow(s->narrow_colptr, index_type, s->colptr, columns + 1);
    narrow(s->narrow_indices, index_type, s->indices, k);
    s->csc = (daf_csc){.type = type,
                       .index_type = index_type,
                       .rows = ROWS,
                       .columns = columns,
                       .nnz = k,
                       .colptr = columns > 1 ? s->narrow_colptr : NULL,
                       .indices = s->narrow_indices,
                       .values = s->values};
}

static daf *new_repository(void **state, const char *name) {
    daf *d;
    OK(daf_open(&d, test_path(state, name), "w", NULL, e));
    OK(daf_add_axis_integers(d, "row", 0, 1, ROWS, e));
    OK(daf_add_axis_integers(d, "column", 0, 1, COLUMNS, e));
    OK(daf_add_axis_integers(d, "one", 0, 1, 1, e));
    OK(daf_add_axis_integers(d, "none", 0, 1, 0, e));
    return d;
}

static void same_values(const void *a, const void *b, daf_type type, uint64_t n, const char *what) {
    if (type != DAF_STRING) {
        if (n && memcmp(a, b, (size_t)n * daf_type_bytes(type)) != 0)
            fail_msg("%s differs", what);
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        assert_string_equal(((const char *const *)a)[i], ((const char *const *)b)[i]);
}

static void check_csc(const daf_sparse *got, const sample *s) {
    const daf_csc *c = daf_sparse_csc(got), *w = &s->csc;
    assert_true(c->type == w->type && c->rows == w->rows && c->columns == w->columns && c->nnz == w->nnz);
    for (uint64_t k = 0; k < w->nnz; k++)
        assert_true(daf_sparse_index(got, k) == s->indices[k] - 1);
    for (uint64_t j = 0; j <= w->columns && w->colptr; j++)
        assert_true(daf_sparse_start(got, j) == s->colptr[j] - 1);
    if (c->values)
        same_values(c->type == DAF_STRING ? (const void *)c->values : c->values, w->values, w->type, w->nnz,
                    "values");
    for (uint64_t k = 0; !c->values && k < w->nnz; k++)
        assert_int_equal(((const uint8_t *)w->values)[k], 1);
}

static void check_dense(daf_array *a, const sample *s) {
    assert_true(daf_array_count(a) == s->csc.rows * s->csc.columns);
    same_values(daf_array_type(a) == DAF_STRING ? (const void *)daf_array_strings(a) : daf_array_values(a),
                s->dense, s->csc.type, s->csc.rows * s->csc.columns, "dense");
    daf_array_free(a);
}

static void check_stored(daf *d, const sample *s, const char *name) {
    daf_sparse *got = NULL;
    daf_array *a = NULL;
    if (s->csc.colptr) {
        OK(daf_get_sparse_matrix(d, &got, "row", "column", name, e));
        OK(daf_get_matrix(d, &a, "row", "column", name, e));
    } else {
        OK(daf_get_sparse_vector(d, &got, "row", name, e));
        OK(daf_get_vector(d, &a, "row", name, e));
    }
    check_csc(got, s);
    check_dense(a, s);
    daf_sparse_free(got);
}

/* Whether a type holds the shapes and counts of these samples. */
static bool holds(daf_type index_type, const sample *s) {
    uint64_t largest = s->csc.colptr ? s->csc.nnz + 1 : 0;
    return daf__index_max(index_type) >= (largest > ROWS ? largest : ROWS);
}

static void set_sample(daf *d, const sample *s, const char *name, const daf_set_options *o) {
    if (s->csc.colptr)
        OK(daf_set_sparse_matrix(d, "row", "column", name, &s->csc, o, e));
    else
        OK(daf_set_sparse_vector(d, "row", name, &s->csc, o, e));
}

static void check_written_info(daf *d, const sample *s, const daf_set_options *o) {
    daf_info info;
    if (s->csc.colptr)
        OK(daf_matrix_info(d, &info, "row", "column", "x", e));
    else
        OK(daf_vector_info(d, &info, "row", "x", e));
    assert_true(info.sparse && info.nnz == s->csc.nnz && info.type == s->csc.type);
    assert_int_equal(info.index_type, o->index_type == DAF_BOOL ? DAF_UINT16 : o->index_type);
    for (unsigned i = 0; i < info.n_parts; i++) {
        const daf_part_info *part = &info.parts[i];
        bool texts = part->type == DAF_STRING;
        assert_int_equal(part->packed, o->packing == DAF_PACK_LARGE && !texts && part->raw_bytes >= 1024);
        assert_true(part->packed ? part->n_chunks > 0 : texts || part->disk_bytes == part->raw_bytes);
    }
}

/* Every type with every index type, flat and packed, vectors and matrices, of few and of many stored values. */
static void everything_comes_back(void **state) {
    static const uint64_t columns[] = {1, COLUMNS}, rarities[] = {1, 4, 1000000000};
    static sample s;
    test_random r = {11};
    daf *d = new_repository(state, "a.daf");
    for (unsigned type = 0; type < DAF_N_TYPES; type++) {
        for (unsigned i = 0; i < N_INDEX_TYPES * 12; i++) {
            daf_set_options o;
            daf_set_options_init(&o);
            fill_sample(&s, &r, (daf_type)type, index_types[i % N_INDEX_TYPES],
                        columns[i / N_INDEX_TYPES % 2], rarities[i / N_INDEX_TYPES / 2 % 3]);
            if (!holds(s.csc.index_type, &s))
                continue;
            o.overwrite = true;
            o.packing = i / N_INDEX_TYPES / 6 ? DAF_PACK_LARGE : DAF_PACK_NEVER;
            o.target_chunk_kb = 1;
            o.index_type = test_below(&r, 2) ? s.csc.index_type : DAF_BOOL;
            set_sample(d, &s, "x", &o);
            check_stored(d, &s, "x");
            check_written_info(d, &s, &o);
        }
    }
    OK(daf_close(d, e));
}

/* ---- what is written */

static void file_holds(daf *d, const char *key, const char *expected) {
    char path[700];
    size_t bytes;
    snprintf(path, sizeof path, "%s/%s", d->store->path, key);
    char *content = test_read_file(path, &bytes);
    if (!expected) {
        assert_null(content);
        return;
    }
    assert_non_null(content);
    assert_string_equal(content, expected);
    free(content);
}

static void descriptors_are_as_the_format_shows_them(void **state) {
    static const uint32_t indices[] = {2, 90};
    static const uint8_t truth[] = {1, 7}, half[] = {1, 0};
    static const char *const texts[] = {"a", ""};
    daf *d = new_repository(state, "a.daf");
    daf_csc c = {.type = DAF_BOOL, .index_type = DAF_UINT32, .rows = ROWS, .columns = 1, .nnz = 2};
    c.indices = indices;
    OK(daf_set_sparse_vector(d, "row", "all", &c, NULL, e));
    file_holds(
        d, "vectors/row/all.json",
        "{\"format\":\"sparse\",\"nzind\":{\"format\":\"dense\",\"eltype\":\"UInt16\",\"n_elements\":2}}\n");
    c.values = truth;
    OK(daf_set_sparse_vector(d, "row", "also_all", &c, NULL, e));
    file_holds(d, "vectors/row/also_all.nzval", NULL);
    c.values = half;
    OK(daf_set_sparse_vector(d, "row", "half", &c, NULL, e));
    file_holds(
        d, "vectors/row/half.json",
        "{\"format\":\"sparse\",\"nzind\":{\"format\":\"dense\",\"eltype\":\"UInt16\",\"n_elements\":2},"
        "\"nzval\":{\"format\":\"dense\",\"eltype\":\"Bool\",\"n_elements\":2}}\n");
    c.values = texts;
    c.type = DAF_STRING;
    OK(daf_set_sparse_vector(d, "row", "texts", &c, NULL, e));
    file_holds(
        d, "vectors/row/texts.json",
        "{\"format\":\"sparse\",\"nzind\":{\"format\":\"dense\",\"eltype\":\"UInt16\",\"n_elements\":2},"
        "\"nzval\":{\"format\":\"dense\",\"eltype\":\"String\",\"n_elements\":2}}\n");
    file_holds(d, "vectors/row/texts.nztxt", "a\n\n");
    static const uint64_t colptr[] = {1, 1, 2};
    daf_set_options o;
    daf_set_options_init(&o);
    o.index_type = DAF_INT64;
    OK(daf_add_axis_integers(d, "two", 0, 1, 2, e));
    daf_csc m = {.type = DAF_BOOL,
                 .index_type = DAF_UINT64,
                 .rows = ROWS,
                 .columns = 2,
                 .nnz = 1,
                 .colptr = colptr,
                 .indices = colptr};
    OK(daf_set_sparse_matrix(d, "row", "two", "m", &m, &o, e));
    file_holds(
        d, "matrices/row/two/m.json",
        "{\"format\":\"sparse\",\"colptr\":{\"format\":\"dense\",\"eltype\":\"Int64\",\"n_elements\":3},"
        "\"rowval\":{\"format\":\"dense\",\"eltype\":\"Int64\",\"n_elements\":1}}\n");
    OK(daf_close(d, e));
}

static void the_smallest_index_holds_the_largest_number(void **state) {
    (void)state;
    assert_int_equal(daf__smallest_index(DAF__VECTOR, 65535, 1, 65535), DAF_UINT16);
    assert_int_equal(daf__smallest_index(DAF__VECTOR, 65536, 1, 1), DAF_UINT32);
    assert_int_equal(daf__smallest_index(DAF__MATRIX, 300, 300, 65534), DAF_UINT16);
    assert_int_equal(daf__smallest_index(DAF__MATRIX, 300, 300, 65535), DAF_UINT32);
    assert_int_equal(daf__smallest_index(DAF__MATRIX, 1, 65536, 0), DAF_UINT32);
    assert_int_equal(daf__smallest_index(DAF__MATRIX, 1, 4294967295u, 0), DAF_UINT32);
    assert_int_equal(daf__smallest_index(DAF__MATRIX, 1, 2, 4294967295u), DAF_UINT64);
}

/* ---- forms */

static void forms_are_converted(void **state) {
    static sample s;
    test_random r = {5};
    daf *d = new_repository(state, "a.daf");
    for (unsigned type = 0; type < DAF_N_TYPES; type++) {
        daf_info info;
        daf_set_options o;
        daf_set_options_init(&o);
        o.overwrite = true;
        fill_sample(&s, &r, (daf_type)type, DAF_UINT16, COLUMNS, 50);
        o.form = DAF_FORM_DENSE;
        OK(daf_set_sparse_matrix(d, "row", "column", "x", &s.csc, &o, e));
        OK(daf_matrix_info(d, &info, "row", "column", "x", e));
        assert_false(info.sparse);
        for (unsigned form = DAF_FORM_SPARSE; form <= DAF_FORM_SMALLER; form++) {
            daf_array *a;
            o.form = (daf_form)form;
            OK(daf_set_matrix(d, "row", "column", "x", s.csc.type, s.dense, N, &o, e));
            OK(daf_matrix_info(d, &info, "row", "column", "x", e));
            assert_true(info.sparse && info.nnz <= s.csc.nnz);
            OK(daf_get_matrix(d, &a, "row", "column", "x", e));
            check_dense(a, &s);
        }
        fill_sample(&s, &r, (daf_type)type, DAF_UINT16, 1, 1);
        OK(daf_set_vector(d, "row", "x", s.csc.type, s.dense, ROWS, &o, e));
        OK(daf_vector_info(d, &info, "row", "x", e));
        assert_int_equal(info.sparse, false);
    }
    OK(daf_close(d, e));
}

/* -0.0 is stored, and so comes back. */
static void nothing_is_lost_by_a_conversion(void **state) {
    double v[ROWS] = {0.0, -0.0, 1.5};
    daf *d = new_repository(state, "a.daf");
    daf_array *a;
    daf_info info;
    daf_set_options o;
    daf_set_options_init(&o);
    o.form = DAF_FORM_SPARSE;
    OK(daf_set_vector(d, "row", "v", DAF_FLOAT64, v, ROWS, &o, e));
    OK(daf_vector_info(d, &info, "row", "v", e));
    assert_int_equal(info.nnz, 2);
    OK(daf_get_vector(d, &a, "row", "v", e));
    assert_memory_equal(daf_array_values(a), v, sizeof v);
    daf_array_free(a);
    OK(daf_close(d, e));
}

/* ---- versions */

static void sparse_raises_the_version_of_a_directory(void **state) {
    static const uint16_t index = 3;
    daf_csc c = {
        .type = DAF_BOOL, .index_type = DAF_UINT16, .rows = ROWS, .columns = 1, .nnz = 1, .indices = &index};
    int major, minor;
    daf *d = new_repository(state, "a.daf");
    char path[700], marker[] = "{\"version\":[1,0]}\n";
    snprintf(path, sizeof path, "%s/daf.json", d->store->path);
    char *place = strdup(d->store->path);
    OK(daf_close(d, e));
    test_write_file(path, marker, strlen(marker));
    OK(daf_open(&d, place, "r+", NULL, e));
    OK(daf_set_vector(d, "none", "dense", DAF_INT8, NULL, 0, NULL, e));
    file_holds(d, "daf.json", marker);
    OK(daf_set_sparse_vector(d, "row", "flag", &c, NULL, e));
    file_holds(d, "daf.json", "{\"version\":[1,1]}\n");
    daf_format_version(d, &major, &minor);
    assert_int_equal(minor, 1);
    OK(daf_close(d, e));
    free(place);
}

/* A store that cannot raise its version holds the forms of 1.0, flat; Bool dense. */
static void an_archive_of_1_0_gets_the_old_form(void **state) {
    static sample s;
    test_random r = {3};
    daf_info info;
    daf_set_options o;
    daf *d = new_repository(state, "a.daf");
    d->store->append_only = true;
    d->minor = 0;
    daf_set_options_init(&o);
    o.packing = DAF_PACK_LARGE;
    o.target_chunk_kb = 1;
    fill_sample(&s, &r, DAF_FLOAT64, DAF_INT32, COLUMNS, 2);
    set_sample(d, &s, "x", &o);
    file_holds(d, "matrices/row/column/x.json",
               "{\"format\":\"sparse\",\"eltype\":\"Float64\",\"indtype\":\"UInt16\"}\n");
    check_stored(d, &s, "x");
    fill_sample(&s, &r, DAF_BOOL, DAF_INT32, COLUMNS, 2);
    set_sample(d, &s, "b", &o);
    OK(daf_matrix_info(d, &info, "row", "column", "b", e));
    assert_false(info.sparse || info.packed);
    daf_array *a;
    OK(daf_get_matrix(d, &a, "row", "column", "b", e));
    check_dense(a, &s);
    o.overwrite = true;
    FAILS(DAF_ERR_UNSUPPORTED, "append-only; can't delete matrix: row / column / x",
          daf_set_sparse_matrix(d, "row", "column", "x", &s.csc, &o, e));
    d->store->append_only = false;
    OK(daf_close(d, e));
}

/* ---- refusals */

static void bad_values_are_refused(void **state) {
    static const uint16_t rising[] = {1, 5, 9}, falling[] = {5, 1, 9}, twice[] = {1, 1, 9},
                          zero[] = {0, 1, 2}, past[] = {1, 2, 91};
    static const int8_t negative[] = {-1, 1, 2};
    static const uint8_t values[] = {1, 2, 3};
    daf *d = new_repository(state, "a.daf");
    daf_csc c = {.type = DAF_UINT8,
                 .index_type = DAF_UINT16,
                 .rows = ROWS,
                 .columns = 1,
                 .nnz = 3,
                 .indices = rising,
                 .values = values};
    const struct {
        const void *indices;
        const char *part;
    } cases[] = {{falling, "nzind, element 1: index 1 does not come after the one before it, 5"},
                 {twice, "nzind, element 1: index 1 does not"},
                 {zero, "nzind, element 0: index 0 is not from 1"},
                 {past, "nzind, element 2: index 91 is not from 1 to the length of the axis, 90"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        c.indices = cases[i].indices;
        FAILS(DAF_ERR_VALUE, cases[i].part, daf_set_sparse_vector(d, "row", "v", &c, NULL, e));
    }
    c.indices = negative;
    c.index_type = DAF_INT8;
    FAILS(DAF_ERR_VALUE, "index -1 is not from 1", daf_set_sparse_vector(d, "row", "v", &c, NULL, e));
    c.index_type = DAF_FLOAT32;
    FAILS(DAF_ERR_ARG, "no type of indices", daf_set_sparse_vector(d, "row", "v", &c, NULL, e));
    c.index_type = DAF_UINT16;
    c.indices = NULL;
    FAILS(DAF_ERR_ARG, "indices are NULL", daf_set_sparse_vector(d, "row", "v", &c, NULL, e));
    c.indices = rising;
    c.values = NULL;
    FAILS(DAF_ERR_ARG, "values are NULL", daf_set_sparse_vector(d, "row", "v", &c, NULL, e));
    c.values = values;
    c.rows = 7;
    FAILS(DAF_ERR_ARG, "7 x 1", daf_set_sparse_vector(d, "row", "v", &c, NULL, e));
    c.rows = ROWS;
    FAILS(DAF_ERR_MISSING, "nowhere", daf_set_sparse_vector(d, "nowhere", "v", &c, NULL, e));
    daf_set_options o;
    daf_set_options_init(&o);
    o.index_type = DAF_STRING;
    FAILS(DAF_ERR_VALUE, "indices of type String", daf_set_sparse_vector(d, "row", "v", &c, &o, e));
    bool there;
    OK(daf_has_vector(d, &there, "row", "v", e));
    assert_false(there);
    OK(daf_set_sparse_vector(d, "row", "v", &c, NULL, e));
    FAILS(DAF_ERR_EXISTS, "exists already", daf_set_sparse_vector(d, "row", "v", &c, NULL, e));
    OK(daf_close(d, e));
}

static void bad_columns_are_refused(void **state) {
    static const uint32_t indices[] = {1, 2, 3};
    static const uint32_t cases[][4] = {{2, 2, 3, 4}, {1, 3, 2, 4}, {1, 2, 3, 3}, {1, 2, 9, 4}, {1, 1, 1, 5}};
    static const char *const parts[] = {
        "index 2 begins the columns", "index 2 is less than that of the column", "index 3 ends the columns",
        "index 9 is past the stored values", "index 5 is past the stored values"};
    daf *d = new_repository(state, "a.daf");
    OK(daf_add_axis_integers(d, "three", 0, 1, 3, e));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        daf_csc c = {.type = DAF_BOOL,
                     .index_type = DAF_UINT32,
                     .rows = ROWS,
                     .columns = 3,
                     .nnz = 3,
                     .colptr = cases[i],
                     .indices = indices};
        FAILS(DAF_ERR_VALUE, parts[i], daf_set_sparse_matrix(d, "row", "three", "m", &c, NULL, e));
    }
    OK(daf_close(d, e));
}

/* An index type of the caller's that cannot hold nnz + 1, though it holds the axes. */
static void narrow_index_types_are_refused(void **state) {
    static sample s;
    test_random r = {2};
    daf_set_options o;
    daf_set_options_init(&o);
    o.index_type = DAF_UINT8;
    daf *d = new_repository(state, "a.daf");
    fill_sample(&s, &r, DAF_INT16, DAF_UINT16, COLUMNS, 2);
    FAILS(DAF_ERR_VALUE, "indices of type UInt8 do not hold",
          daf_set_sparse_matrix(d, "row", "column", "m", &s.csc, &o, e));
    o.form = DAF_FORM_SPARSE;
    FAILS(DAF_ERR_VALUE, "indices of type UInt8 do not hold",
          daf_set_matrix(d, "row", "column", "m", DAF_INT16, s.dense, N, &o, e));
    OK(daf_close(d, e));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everything_comes_back, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(descriptors_are_as_the_format_shows_them, test_setup, test_teardown),
        cmocka_unit_test(the_smallest_index_holds_the_largest_number),
        cmocka_unit_test_setup_teardown(forms_are_converted, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(nothing_is_lost_by_a_conversion, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(sparse_raises_the_version_of_a_directory, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(an_archive_of_1_0_gets_the_old_form, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(bad_values_are_refused, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(bad_columns_are_refused, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(narrow_index_types_are_refused, test_setup, test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

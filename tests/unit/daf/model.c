#include "model.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static void check_scalars(daf *d, const json_t *scalars, test_counts *n) {
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

static void check_axes(daf *d, const json_t *axes, test_counts *n) {
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
static void check_info(const daf_info *info, const json_t *expected, const char *name, const test_counts *n) {
    const char *format = json_string_value(json_object_get(expected, "format"));
    const char *index_type = json_string_value(json_object_get(expected, "indtype"));
    const json_t *packed = json_object_get(expected, "packed");
    assert_string_equal(daf_type_name(info->type), json_string_value(json_object_get(expected, "eltype")));
    if (format)
        assert_int_equal(info->sparse, strcmp(format, "sparse") == 0);
    if (index_type && !n->other_index_types)
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

static void count_property(test_counts *n, const daf_info *info) {
    n->dense += !info->sparse;
    n->sparse += info->sparse;
}

static void check_vectors(daf *d, const char *axis, const json_t *vectors, test_counts *n) {
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
        check_info(&info, expected, name, n);
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

static void check_matrices(daf *d, const char *rows, const char *columns, const json_t *matrices,
                           test_counts *n) {
    const char *name;
    json_t *expected, *column;
    json_object_foreach((json_t *)(uintptr_t)matrices, name, expected) {
        daf_array *a = NULL;
        daf_sparse *s = NULL;
        daf_info info;
        size_t c;
        OK(daf_matrix_info(d, &info, rows, columns, name, e));
        check_info(&info, expected, name, n);
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

void test_check_model(daf *d, const json_t *model, test_counts *n) {
    const char *axis, *columns;
    json_t *inner, *matrices;
    check_scalars(d, json_object_get(model, "scalars"), n);
    check_axes(d, json_object_get(model, "axes"), n);
    json_object_foreach(json_object_get(model, "vectors"), axis, inner) check_vectors(d, axis, inner, n);
    json_object_foreach(json_object_get(model, "matrices"), axis, inner)
        json_object_foreach(inner, columns, matrices) check_matrices(d, axis, columns, matrices, n);
}

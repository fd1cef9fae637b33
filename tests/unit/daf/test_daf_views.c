/* Copying out of views of files: parts are those of copies, and files that another program cuts or changes meanwhile give
 * an error, never a signal. */
#include "support.h"

#include "mapped.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROWS = 3000, COLUMNS = 40, N_RANGES = 60 };

typedef struct views {
    daf *d, *copying; /* the latter hands out no views */
    const char *dense, *pointers, *indices, *values;
} views;

static void fill(daf *d) {
    static uint32_t dense[ROWS * COLUMNS];
    static int64_t sparse[ROWS * COLUMNS];
    static const char *texts[ROWS];
    daf_set_options o;
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++) {
        dense[i] = i * 2654435761u;
        sparse[i] = i % 3 == 0 && i / ROWS != 7 ? (int64_t)i - 500 : 0;
    }
    for (unsigned i = 0; i < ROWS; i++)
        texts[i] = i % 5 ? "" : "five";
    daf_set_options_init(&o);
    OK(daf_add_axis_integers(d, "a", 0, 1, ROWS, e));
    OK(daf_add_axis_integers(d, "b", 0, 1, COLUMNS, e));
    OK(daf_set_matrix(d, "a", "b", "dense", DAF_UINT32, dense, ROWS * COLUMNS, NULL, e));
    o.form = DAF_FORM_SPARSE;
    OK(daf_set_matrix(d, "a", "b", "sparse", DAF_INT64, sparse, ROWS * COLUMNS, &o, e));
    OK(daf_set_vector(d, "a", "vector", DAF_INT64, sparse, ROWS, &o, e));
    OK(daf_set_vector(d, "a", "texts", DAF_STRING, texts, ROWS, &o, e));
}

static void make(views *v, void **state) {
    daf_options options;
    const char *path = test_path(state, "a.daf");
    OK(daf_open(&v->d, path, "w", NULL, e));
    fill(v->d);
    OK(daf_close(v->d, e));
    OK(daf_open(&v->d, path, "r", NULL, e));
    daf_options_init(&options);
    options.copies = true;
    OK(daf_open(&v->copying, path, "r", &options, e));
    v->dense = test_path(state, "a.daf/matrices/a/b/dense.data");
    v->pointers = test_path(state, "a.daf/matrices/a/b/sparse.colptr");
    v->indices = test_path(state, "a.daf/matrices/a/b/sparse.rowval");
    v->values = test_path(state, "a.daf/matrices/a/b/sparse.nzval");
}

static void end(views *v) {
    OK(daf_close(v->d, e));
    OK(daf_close(v->copying, e));
}

static daf_range any_range(test_random *r, uint64_t columns) {
    daf_range range = {.first_row = test_below(r, ROWS + 1), .first_column = test_below(r, columns + 1)};
    range.n_rows = test_below(r, ROWS - range.first_row + 1);
    range.n_columns = test_below(r, columns - range.first_column + 1);
    return range;
}

static void same_arrays(daf_array *a, daf_array *b) {
    assert_int_equal(daf_array_type(a), daf_array_type(b));
    assert_int_equal(daf_array_rows(a), daf_array_rows(b));
    assert_int_equal(daf_array_columns(a), daf_array_columns(b));
    assert_memory_equal(daf_array_values(a), daf_array_values(b),
                        daf_array_count(a) * daf_type_bytes(daf_array_type(a)));
    daf_array_free(a);
    daf_array_free(b);
}

static void same_sparse(daf_sparse *a, daf_sparse *b) {
    const daf_csc *x = daf_sparse_csc(a), *y = daf_sparse_csc(b);
    assert_int_equal(x->nnz, y->nnz);
    assert_int_equal(x->rows, y->rows);
    assert_int_equal(x->columns, y->columns);
    for (uint64_t j = 0; j <= x->columns; j++)
        assert_int_equal(daf_sparse_start(a, j), daf_sparse_start(b, j));
    for (uint64_t k = 0; k < x->nnz; k++) {
        assert_int_equal(daf_sparse_index(a, k), daf_sparse_index(b, k));
        if (x->type == DAF_STRING)
            assert_string_equal(((const char *const *)x->values)[k], ((const char *const *)y->values)[k]);
        else
            assert_int_equal(((const int64_t *)x->values)[k], ((const int64_t *)y->values)[k]);
    }
    daf_sparse_free(a);
    daf_sparse_free(b);
}

/* ---- parts */

static void parts_are_those_of_copies(void **state) {
    views v;
    test_random r = {11};
    daf_array *view, *copy, *a, *b;
    make(&v, state);
    OK(daf_get_matrix(v.d, &view, "a", "b", "dense", e));
    OK(daf_get_matrix(v.copying, &copy, "a", "b", "dense", e));
    assert_true(daf_array_is_mapped(view) && !daf_array_is_mapped(copy));
    for (unsigned i = 0; i < N_RANGES; i++) {
        const daf_range range = any_range(&r, COLUMNS);
        OK(daf_array_slice(&a, view, &range, e));
        OK(daf_array_slice(&b, copy, &range, e));
        same_arrays(a, b);
    }
    const daf_range outside = {.n_rows = ROWS + 1, .n_columns = 1};
    FAILS(DAF_ERR_ARG, "not all inside", daf_array_slice(&a, view, &outside, e));
    daf_array_free(view);
    daf_array_free(copy);
    end(&v);
}

static int get_sparse(daf *d, daf_sparse **ret, unsigned which, daf_error *err) {
    return which == 0 ? daf_get_sparse_matrix(d, ret, "a", "b", "sparse", err)
                      : daf_get_sparse_vector(d, ret, "a", which == 1 ? "vector" : "texts", err);
}

static void sparse_parts_are_those_of_copies(void **state) {
    views v;
    test_random r = {12};
    make(&v, state);
    for (unsigned which = 0; which < 3; which++) {
        daf_sparse *view, *copy, *x, *y;
        daf_array *a, *b;
        OK(get_sparse(v.d, &view, which, e));
        OK(get_sparse(v.copying, &copy, which, e));
        assert_true(daf_sparse_is_mapped(view) && !daf_sparse_is_mapped(copy));
        for (unsigned i = 0; i < N_RANGES; i++) {
            const daf_range range = any_range(&r, which ? 1 : COLUMNS);
            OK(daf_sparse_slice(&x, view, &range, e));
            OK(daf_sparse_slice(&y, copy, &range, e));
            same_sparse(x, y);
        }
        const daf_range outside = {.n_rows = 1, .first_column = COLUMNS, .n_columns = 1};
        FAILS(DAF_ERR_ARG, "not all inside", daf_sparse_slice(&x, view, &outside, e));
        if (which < 2) {
            OK(daf_sparse_to_dense(&a, view, e));
            OK(daf_sparse_to_dense(&b, copy, e));
            same_arrays(a, b);
        }
        daf_sparse_free(view);
        daf_sparse_free(copy);
    }
    end(&v);
}

/* ---- files that others cut or change */

static void cut_files_are_errors(void **state) {
    const daf_range all = {.n_rows = ROWS, .n_columns = COLUMNS}, begin = {.n_rows = 10, .n_columns = 1};
    const daf_range last = {.n_rows = ROWS, .first_column = COLUMNS - 1, .n_columns = 1};
    daf_array *view, *a;
    daf_sparse *sparse, *s;
    views v;
    make(&v, state);
    OK(daf_get_matrix(v.d, &view, "a", "b", "dense", e));
    assert_int_equal(truncate(v.dense, 8192), 0);
    FAILS(DAF_ERR_TRUNCATED, "has become shorter", daf_array_slice(&a, view, &all, e));
    FAILS(DAF_ERR_TRUNCATED, "has become shorter", daf_array_slice(&a, view, &last, e));
    OK(daf_array_slice(&a, view, &begin, e));
    daf_array_free(a);
    daf_array_free(view);
    const char *const parts[] = {v.values, v.indices, v.pointers};
    for (unsigned i = 0; i < 3; i++) {
        size_t bytes;
        char *then = test_read_file(parts[i], &bytes);
        OK(get_sparse(v.d, &sparse, 0, e));
        assert_int_equal(truncate(parts[i], 0), 0);
        FAILS(DAF_ERR_TRUNCATED, "has become shorter", daf_sparse_slice(&s, sparse, &all, e));
        FAILS(DAF_ERR_TRUNCATED, "has become shorter", daf_sparse_slice(&s, sparse, &last, e));
        FAILS(DAF_ERR_TRUNCATED, "has become shorter", daf_sparse_to_dense(&a, sparse, e));
        daf_sparse_free(sparse);
        test_write_file(parts[i], then, bytes);
        free(then);
    }
    end(&v);
}

/* Written into, and not replaced: what was checked when it was got no longer holds. */
static void changed_indices_are_errors(void **state) {
    const daf_range all = {.n_rows = ROWS, .n_columns = COLUMNS};
    static const char *const junk[] = {"\xff\xff\xff\xff\xff\xff\xff\xff", "\0\0\0\0\0\0\0\0"};
    daf_array *a;
    daf_sparse *sparse, *s;
    views v;
    make(&v, state);
    const char *const parts[] = {v.indices, v.pointers};
    for (unsigned i = 0; i < 4; i++) {
        size_t bytes;
        char *then = test_read_file(parts[i / 2], &bytes);
        OK(get_sparse(v.d, &sparse, 0, e));
        for (off_t at = 0; at < 80; at += 8) { /* the old content comes back after each */
            int fd = open(parts[i / 2], O_WRONLY);
            assert_int_equal(pwrite(fd, junk[i % 2], 8, at), 8);
            FAILS(DAF_ERR_CORRUPT, "was changed", daf_sparse_slice(&s, sparse, &all, e));
            FAILS(DAF_ERR_CORRUPT, "was changed", daf_sparse_to_dense(&a, sparse, e));
            assert_int_equal(pwrite(fd, then + at, 8, at), 8);
            close(fd);
        }
        OK(daf_sparse_to_dense(&a, sparse, e));
        daf_array_free(a);
        daf_sparse_free(sparse);
        free(then);
    }
    end(&v);
}

/* ---- pieces */

static void pieces_by_both_ways(void **state) {
    enum { BYTES = 300000, PAGE = 4096 };
    static uint8_t to[BYTES];
    const char *path = test_path(state, "pieces");
    uint8_t *from = malloc(BYTES);
    assert_non_null(from);
    for (unsigned i = 0; i < BYTES; i++)
        from[i] = (uint8_t)(i * 7 + i / 251);
    test_write_file(path, from, BYTES);
    int fd = open(path, O_RDONLY);
    uint8_t *map = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_true(map != MAP_FAILED);
    for (unsigned by_pipe = 0; by_pipe < 2; by_pipe++) {
        int (*copy)(void *, const daf__pieces *, daf_error *) =
            by_pipe ? daf__mapped_copy_by_pipe : daf__mapped_copy;
        for (size_t bytes = 0; bytes < 150000; bytes = bytes * 3 + 1) {
            const daf__pieces p = {
                .from = map + 5, .bytes = bytes, .stride = bytes + 3, .n = BYTES / (bytes + 3) - 1};
            OK(copy(to, &p, e));
            for (uint64_t i = 0; i < p.n && bytes; i++)
                assert_memory_equal(to + i * bytes, from + 5 + i * p.stride, bytes);
        }
    }
    assert_int_equal(truncate(path, PAGE), 0);
    const daf__pieces gone = {.from = map, .bytes = 2 * PAGE, .n = 1},
                      there = {.from = map, .bytes = PAGE, .n = 1};
    FAILS(DAF_ERR_TRUNCATED, "has become shorter", daf__mapped_copy(to, &gone, e));
    FAILS(DAF_ERR_TRUNCATED, "has become shorter", daf__mapped_copy_by_pipe(to, &gone, e));
    OK(daf__mapped_copy_by_pipe(to, &there, e));
    munmap(map, BYTES);
    close(fd);
    free(from);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(parts_are_those_of_copies), TEST(sparse_parts_are_those_of_copies),
        TEST(cut_files_are_errors),      TEST(changed_indices_are_errors),
        TEST(pieces_by_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

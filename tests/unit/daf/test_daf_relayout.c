/* Transposes and parts of dense and sparse matrices, beside the plainest way to make them. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/pool.h"
#include "transpose.h"
#include "turning.h"

/* ---- dense values */

static void check_transpose(test_random *r, size_t width, uint64_t rows, uint64_t columns,
                            const daf_executor *x, size_t shift) {
    size_t bytes = (size_t)(rows * columns) * width;
    uint64_t stride = rows + test_below(r, 3);
    size_t from_bytes = (size_t)(stride * columns) * width;
    uint8_t *from = malloc(from_bytes + 64), *to = aligned_alloc(64, (bytes / 64 + 2) * 64), *at = to + shift;
    for (size_t i = 0; i < from_bytes; i++)
        from[i] = (uint8_t)test_next(r);
    memset(to, 0xA5, bytes + shift + 1);
    daf__transpose(at, from, width, rows, columns, stride, x);
    for (uint64_t j = 0; j < columns; j++)
        for (uint64_t i = 0; i < rows; i++)
            if (memcmp(from + (i + j * stride) * width, at + (j + i * columns) * width, width) != 0)
                fail_msg("%zu bytes, %llu x %llu: row %llu, column %llu", width, (unsigned long long)rows,
                         (unsigned long long)columns, (unsigned long long)i, (unsigned long long)j);
    assert_int_equal(at[bytes], 0xA5);
    free(from);
    free(to);
}

static void every_shape_is_transposed(void **state) {
    (void)state;
    static const size_t widths[] = {1, 2, 4, 8};
    test_random r = {7};
    cli_pool *pool = cli_pool_new(3);
    const daf_executor x = {
        .context = pool, .submit = cli_pool_submit, .wait = cli_pool_wait, .n_threads = 3};
    for (unsigned i = 0; i < 400; i++) {
        size_t width = widths[i % 4];
        uint64_t rows = test_below(&r, 200), columns = test_below(&r, 200);
        if (i % 3 == 0)
            columns = columns / 64 * 64; /* aligned lines */
        check_transpose(&r, width, rows, columns, i % 2 ? &x : NULL, i % 5 ? 0 : width);
    }
    for (unsigned i = 0; i < 4; i++) {
        check_transpose(&r, widths[i], 3000, 512, &x, 0); /* more than one band, more than one job */
        check_transpose(&r, widths[i], 20011, 37, &x, 0);
        check_transpose(&r, widths[i], 1103, 1091, &x, 0); /* rows that begin within lines */
        check_transpose(&r, widths[i], 600, 1024, NULL, widths[i]);
        check_transpose(&r, widths[i], 515, 128 + 1024 / widths[i], NULL, 3 * widths[i]);
    }
    cli_pool_free(pool);
}

/* ---- matrices */

enum { ROWS = 40, COLUMNS = 70, N = ROWS * COLUMNS };
static const char *const words[] = {"", "photon", "ünï"};

static void *random_dense(test_random *r, daf_type type, uint64_t rarity) {
    size_t width = type == DAF_STRING ? sizeof(char *) : daf_type_bytes(type);
    uint8_t *values = calloc(N, width);
    for (uint64_t i = 0; i < N; i++) {
        uint64_t v = test_next(r);
        bool stored = test_below(r, rarity) == 0;
        if (type == DAF_STRING)
            ((const char **)(void *)values)[i] = words[stored ? v % 3 : 0];
        else if (stored && type == DAF_BOOL)
            values[i] = 1;
        else if (stored)
            memcpy(values + i * width, &v, width);
    }
    return values;
}

static bool same_element(const daf_array *a, uint64_t i, const void *values, uint64_t k) {
    size_t width = daf_type_bytes(daf_array_type(a));
    if (daf_array_type(a) == DAF_STRING)
        return strcmp(daf_array_strings(a)[i], ((const char *const *)values)[k]) == 0;
    return memcmp((const uint8_t *)daf_array_values(a) + i * width, (const uint8_t *)values + k * width,
                  width) == 0;
}

static void check_transposed(daf *d, const char *name, const void *values) {
    daf_array *a;
    OK(daf_get_matrix(d, &a, "column", "row", name, e));
    assert_true(daf_array_rows(a) == COLUMNS && daf_array_columns(a) == ROWS);
    for (uint64_t j = 0; j < COLUMNS; j++)
        for (uint64_t i = 0; i < ROWS; i++)
            assert_true(same_element(a, j + i * COLUMNS, values, i + j * ROWS));
    daf_array_free(a);
}

static daf *new_repository(void **state) {
    daf *d;
    daf_options options;
    daf_options_init(&options);
    options.target_chunk_kb = 1;
    OK(daf_open(&d, test_path(state, "a.daf"), "w", &options, e));
    OK(daf_add_axis_integers(d, "row", 0, 1, ROWS, e));
    OK(daf_add_axis_integers(d, "column", 0, 1, COLUMNS, e));
    return d;
}

/* The transpose, made in each of the ways, read again and transposed back. */
static void check_relayout(daf *d, daf_type type, const void *values, daf_form form, daf_packing packing) {
    daf_info one, other;
    daf_array *a;
    daf_set_options o;
    daf_set_options_init(&o);
    o.overwrite = true;
    o.form = form;
    o.packing = packing;
    OK(daf_set_matrix(d, "row", "column", "m", type, values, N, &o, e));
    FAILS(DAF_ERR_MISSING, "no matrix", daf_get_matrix(d, &a, "column", "row", "m", e));
    daf_set_options plain = o;
    plain.overwrite = false;
    plain.form = DAF_FORM_AS_GIVEN;
    OK(daf_relayout_matrix(d, "row", "column", "m", &plain, e));
    FAILS(DAF_ERR_EXISTS, "exists already", daf_relayout_matrix(d, "row", "column", "m", &plain, e));
    check_transposed(d, "m", values);
    OK(daf_matrix_info(d, &one, "row", "column", "m", e));
    OK(daf_matrix_info(d, &other, "column", "row", "m", e));
    assert_true(one.sparse == other.sparse && one.nnz == other.nnz);
    /* Back again, in place of the first layout. */
    OK(daf_relayout_matrix(d, "column", "row", "m", &o, e));
    OK(daf_get_matrix(d, &a, "row", "column", "m", e));
    for (uint64_t i = 0; i < N; i++)
        assert_true(same_element(a, i, values, i));
    daf_array_free(a);
    check_transposed(d, "m", values);
    o.both_layouts = true;
    OK(daf_set_matrix(d, "row", "column", "m", type, values, N, &o, e));
    check_transposed(d, "m", values);
    OK(daf_matrix_info(d, &other, "column", "row", "m", e));
    assert_int_equal(one.sparse, other.sparse);
}

static void every_matrix_has_another_layout(void **state) {
    test_random r = {9};
    daf *d = new_repository(state);
    for (unsigned type = 0; type < DAF_N_TYPES; type++) {
        for (unsigned i = 0; i < 8; i++) {
            void *values = random_dense(&r, (daf_type)type, i % 2 ? 1 : 9);
            check_relayout(d, (daf_type)type, values, i / 2 % 2 ? DAF_FORM_SPARSE : DAF_FORM_DENSE,
                           i / 4 ? DAF_PACK_LARGE : DAF_PACK_NEVER);
            free(values);
        }
    }
    OK(daf_close(d, e));
}

/* An overwritten matrix takes its other layout with it; so does a deleted one. */
static void both_layouts_go_together(void **state) {
    static const uint8_t values[N], square[ROWS * ROWS];
    bool there;
    daf_set_options both, overwrite;
    daf *d = new_repository(state);
    daf_set_options_init(&both);
    daf_set_options_init(&overwrite);
    both.both_layouts = overwrite.overwrite = true;
    OK(daf_set_matrix(d, "row", "column", "m", DAF_UINT8, values, N, &both, e));
    OK(daf_set_matrix(d, "column", "row", "m", DAF_UINT8, values, N, &overwrite, e));
    OK(daf_has_matrix(d, &there, "row", "column", "m", e));
    assert_false(there);
    FAILS(DAF_ERR_EXISTS, "exists already",
          daf_set_matrix(d, "row", "column", "m", DAF_UINT8, values, N, &both, e));
    OK(daf_delete_matrix(d, "row", "column", "m", e));
    OK(daf_has_matrix(d, &there, "column", "row", "m", e));
    assert_false(there);
    OK(daf_set_matrix(d, "row", "row", "s", DAF_UINT8, square, ROWS * ROWS, &both, e));
    FAILS(DAF_ERR_ARG, "one layout only", daf_relayout_matrix(d, "row", "row", "s", NULL, e));
    FAILS(DAF_ERR_MISSING, "no matrix", daf_relayout_matrix(d, "row", "column", "nothing", NULL, e));
    OK(daf_close(d, e));
}

/* The transpose of a foreign matrix whose narrow indices hold one layout only gets wider ones. */
static void narrow_indices_are_widened(void **state) {
    static const uint8_t colptr[301] = {[0 ... 300] = 1};
    char path[700];
    daf_info info;
    daf_set_options o;
    daf *d = new_repository(state);
    OK(daf_add_axis_integers(d, "long", 0, 1, 300, e));
    daf_csc c = {.type = DAF_BOOL, .index_type = DAF_UINT8, .rows = ROWS, .columns = 300, .colptr = colptr};
    daf_set_options_init(&o);
    o.index_type = DAF_UINT16;
    OK(daf_set_sparse_matrix(d, "row", "long", "m", &c, &o, e));
    static const char *const descriptor =
        "{\"format\":\"sparse\",\"colptr\":{\"format\":\"dense\",\"eltype\":\"UInt8\"},"
        "\"rowval\":{\"format\":\"dense\",\"eltype\":\"UInt8\"}}";
    snprintf(path, sizeof path, "%s/matrices/row/long/m.json", test_path(state, "a.daf"));
    test_write_file(path, descriptor, strlen(descriptor));
    snprintf(path, sizeof path, "%s/matrices/row/long/m.colptr", test_path(state, "a.daf"));
    test_write_file(path, colptr, sizeof colptr);
    OK(daf_relayout_matrix(d, "row", "long", "m", NULL, e));
    OK(daf_matrix_info(d, &info, "long", "row", "m", e));
    assert_true(info.nnz == 0 && info.index_type == DAF_UINT16);
    OK(daf_close(d, e));
}

/* ---- bands */

enum { WIDE_ROWS = 4100, WIDE_COLUMNS = 5000 };

static void check_band_bytes(void **state, const char *name, bool packed, const daf_executor *x) {
    daf_set_options how, both;
    daf_options options;
    daf *d;
    daf_array *a;
    const size_t n = (size_t)WIDE_ROWS * WIDE_COLUMNS;
    uint8_t *values = malloc(n), *turned = malloc(n);
    test_random r = {11};
    for (size_t i = 0; i < n; i++)
        values[i] = (uint8_t)(test_next(&r) & 7);
    for (size_t j = 0; j < WIDE_COLUMNS; j++)
        for (size_t i = 0; i < WIDE_ROWS; i++)
            turned[j + i * WIDE_COLUMNS] = values[i + j * WIDE_ROWS];
    daf_options_init(&options);
    options.executor = x;
    options.target_chunk_kb = 64;
    options.codec = DAF_CODEC_BLOSC_LZ4_BITSHUFFLE;
    options.packed = packed;
    OK(daf_open(&d, test_path(state, name), "w", &options, e));
    OK(daf_add_axis_integers(d, "row", 0, 1, WIDE_ROWS, e));
    OK(daf_add_axis_integers(d, "column", 0, 1, WIDE_COLUMNS, e));
    daf_set_options_init(&how);
    how.overwrite = true;
    both = how;
    both.both_layouts = true;
    OK(daf_set_matrix(d, "row", "column", "m", DAF_UINT8, values, n, &both, e));
    OK(daf_get_matrix(d, &a, "column", "row", "m", e));
    assert_memory_equal(daf_array_values(a), turned, n);
    daf_array_free(a);
    OK(daf_relayout_matrix(d, "row", "column", "m", &how, e));
    OK(daf_relayout_matrix(d, "column", "row", "m", &how, e));
    OK(daf_get_matrix(d, &a, "column", "row", "m", e));
    assert_memory_equal(daf_array_values(a), turned, n);
    daf_array_free(a);
    OK(daf_get_matrix(d, &a, "row", "column", "m", e));
    assert_memory_equal(daf_array_values(a), values, n);
    daf_array_free(a);
    OK(daf_close(d, e));
    free(values);
    free(turned);
}

static void transposes_are_written_by_bands(void **state) {
    cli_pool *pool = cli_pool_new(2);
    const daf_executor x = {
        .context = pool, .submit = cli_pool_submit, .wait = cli_pool_wait, .n_threads = 2};
    check_band_bytes(state, "flat.daf", false, NULL);
    check_band_bytes(state, "packed.daf", true, &x);
    cli_pool_free(pool);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define WATCHED 1
#endif
#endif

#ifndef WATCHED
enum { LARGE_ROWS = 6000, LARGE_COLUMNS = 4000 };

/* In a process of its own: the kilobytes that it took at most. */
static long relayout_kb(const char *path, daf_packing packing) {
    struct rusage usage;
    int status;
    pid_t child = fork();
    if (child == 0) {
        daf_set_options how;
        daf_error err;
        daf *d;
        daf_set_options_init(&how);
        how.overwrite = true;
        how.packing = packing;
        how.codec = DAF_CODEC_BLOSC_LZ4_BITSHUFFLE;
        int rc = daf_open(&d, path, "r+", NULL, &err);
        _exit(rc || daf_relayout_matrix(d, "row", "column", "m", &how, &err) ? 1 : 0);
    }
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return usage.ru_maxrss;
}

/* Neither the matrix nor its transpose is in memory whole. */
static void memory_of_a_relayout_is_bounded(void **state) {
    const char *path = test_path(state, "large.daf");
    const size_t bytes = (size_t)LARGE_ROWS * LARGE_COLUMNS * 4;
    daf *d;
    daf_stream *s;
    static float column[LARGE_ROWS];
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "row", 0, 1, LARGE_ROWS, e));
    OK(daf_add_axis_integers(d, "column", 0, 1, LARGE_COLUMNS, e));
    OK(daf_stream_matrix(d, &s, "row", "column", "m", DAF_FLOAT32, NULL, e));
    for (int j = 0; j < LARGE_COLUMNS; j++) {
        column[j] = (float)j;
        OK(daf_stream_put(s, column, LARGE_ROWS, e));
    }
    OK(daf_stream_finish(s, e));
    OK(daf_close(d, e));
    assert_true(relayout_kb(path, DAF_PACK_NEVER) < (long)(bytes / 1024));
    assert_true(relayout_kb(path, DAF_PACK_LARGE) < (long)(bytes / 1024));
}
#endif

/* ---- sparse ones, by bands */

enum { TALL_ROWS = 700, TALL_COLUMNS = 2500 };

/* About every tenth value; some rows and columns have none. */
static void set_sparse_matrix(daf *d, daf_type type, bool all_true, daf_packing packing) {
    const size_t n = (size_t)TALL_ROWS * TALL_COLUMNS, width = daf_type_bytes(type);
    uint64_t *colptr = malloc(sizeof *colptr * (TALL_COLUMNS + 1)), *rows = malloc(sizeof *rows * n);
    uint8_t *values = calloc(n, width);
    test_random r = {17};
    daf_set_options o;
    daf_csc c = {.type = type, .index_type = DAF_UINT64, .rows = TALL_ROWS, .columns = TALL_COLUMNS};
    assert_true(colptr && rows && values);
    colptr[0] = 1;
    for (uint64_t j = 0; j < TALL_COLUMNS; j++) {
        for (uint64_t i = 0; i < TALL_ROWS; i++) {
            if (i % 7 == 3 || j % 11 == 5 || test_below(&r, 10))
                continue;
            values[c.nnz * width] = (uint8_t)(type == DAF_BOOL ? test_below(&r, 50) > 0 : test_next(&r));
            rows[c.nnz++] = i + 1;
        }
        colptr[j + 1] = c.nnz + 1;
    }
    c.colptr = colptr;
    c.indices = rows;
    c.values = all_true ? NULL : values;
    daf_set_options_init(&o);
    o.overwrite = true;
    o.packing = packing;
    o.target_chunk_kb = 1;
    OK(daf_set_sparse_matrix(d, "row", "column", "m", &c, &o, e));
    free(colptr);
    free(rows);
    free(values);
}

static int turn(daf *d, const daf_set_options *o, uint64_t band_bytes, daf_error *err) {
    const daf__property p = daf__matrix_property("row", "column", "m"), other = daf__other_layout(&p);
    daf__edit edit;
    bool staged = false;
    int rc = daf__edit_begin(&edit, d, err);
    if (rc == 0)
        rc = daf__turning_stage(&edit, &p, &other, o, false, band_bytes, &staged, err);
    assert_true(rc || staged);
    return daf__edit_end(&edit, rc, err);
}

/* The files are those of a transpose in memory, whatever the bands. */
static void sparse_ones_are_written_by_bands(void **state) {
    static const struct {
        daf_type type, index;
        bool all_true;
        daf_packing from, to;
        uint64_t band_bytes;
    } cases[] = {{DAF_INT64, DAF_BOOL, false, DAF_PACK_NEVER, DAF_PACK_NEVER, 40000},
                 {DAF_INT64, DAF_UINT64, false, DAF_PACK_LARGE, DAF_PACK_LARGE, 100000},
                 {DAF_FLOAT32, DAF_BOOL, false, DAF_PACK_NEVER, DAF_PACK_LARGE, 1},
                 {DAF_BOOL, DAF_INT32, true, DAF_PACK_LARGE, DAF_PACK_NEVER, 30000},
                 {DAF_BOOL, DAF_BOOL, false, DAF_PACK_LARGE, DAF_PACK_LARGE, 30000},
                 {DAF_UINT8, DAF_BOOL, false, DAF_PACK_NEVER, DAF_PACK_NEVER, 200000}};
    const char *path = test_path(state, "a.daf"), *other = test_path(state, "b.daf");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        daf_set_options o;
        daf *d;
        OK(daf_open(&d, path, "w", NULL, e));
        OK(daf_add_axis_integers(d, "row", 0, 1, TALL_ROWS, e));
        OK(daf_add_axis_integers(d, "column", 0, 1, TALL_COLUMNS, e));
        set_sparse_matrix(d, cases[i].type, cases[i].all_true, cases[i].from);
        OK(daf_close(d, e));
        test_remove_tree(other);
        test_copy_tree(path, other);
        daf_set_options_init(&o);
        o.index_type = cases[i].index;
        o.packing = cases[i].to;
        o.target_chunk_kb = 1;
        OK(daf_open(&d, path, "r+", NULL, e));
        OK(turn(d, &o, cases[i].band_bytes, e));
        OK(daf_close(d, e));
        OK(daf_open(&d, other, "r+", NULL, e));
        OK(daf_relayout_matrix(d, "row", "column", "m", &o, e));
        OK(daf_close(d, e));
        test_same_tree(path, other);
    }
}

/* What is against the rules is found before anything is written, and what is cut is an error. */
static void sparse_ones_that_are_damaged(void **state) {
    static const char *const parts[] = {"colptr", "rowval", "nzval"};
    const char *path = test_path(state, "a.daf");
    daf *d;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "row", 0, 1, TALL_ROWS, e));
    OK(daf_add_axis_integers(d, "column", 0, 1, TALL_COLUMNS, e));
    set_sparse_matrix(d, DAF_UINT8, false, DAF_PACK_NEVER);
    for (unsigned i = 0; i < 3; i++) {
        char file[700];
        size_t bytes;
        snprintf(file, sizeof file, "%s/matrices/row/column/m.%s", path, parts[i]);
        char *then = test_read_file(file, &bytes);
        test_write_file(file, then, bytes - 2);
        FAILS(DAF_ERR_TRUNCATED, parts[i], turn(d, NULL, 5000, e));
        then[bytes / 2] ^= (char)0x80;
        then[bytes / 2 + 1] ^= (char)0x80;
        test_write_file(file, then, bytes);
        if (i < 2)
            FAILS(DAF_ERR_CORRUPT, parts[i], turn(d, NULL, 5000, e));
        then[bytes / 2] ^= (char)0x80;
        then[bytes / 2 + 1] ^= (char)0x80;
        test_write_file(file, then, bytes);
        free(then);
    }
    bool there;
    OK(daf_has_matrix(d, &there, "column", "row", "m", e));
    assert_false(there);
    OK(turn(d, NULL, 5000, e));
    OK(daf_close(d, e));
}

/* ---- parts */

static void check_part(const daf_array *a, const daf_range *p, const void *values) {
    assert_true(daf_array_rows(a) == p->n_rows && daf_array_columns(a) == p->n_columns);
    for (uint64_t j = 0; j < p->n_columns; j++)
        for (uint64_t i = 0; i < p->n_rows; i++)
            assert_true(
                same_element(a, i + j * p->n_rows, values, p->first_row + i + (p->first_column + j) * ROWS));
}

static daf_range random_range(test_random *r) {
    daf_range p = {.first_row = test_below(r, ROWS + 1), .first_column = test_below(r, COLUMNS + 1)};
    p.n_rows = test_below(r, ROWS + 1 - p.first_row);
    p.n_columns = test_below(r, COLUMNS + 1 - p.first_column);
    return p;
}

static void check_parts(daf *d, test_random *r, const void *values) {
    daf_array *whole, *part;
    daf_sparse *sparse, *slice;
    OK(daf_get_matrix(d, &whole, "row", "column", "m", e));
    OK(daf_get_sparse_matrix(d, &sparse, "row", "column", "m", e));
    for (unsigned i = 0; i < 12; i++) {
        daf_range p = i ? random_range(r) : (daf_range){0, ROWS, 0, COLUMNS};
        OK(daf_get_matrix_range(d, &part, "row", "column", "m", &p, e));
        check_part(part, &p, values);
        daf_array_free(part);
        OK(daf_array_slice(&part, whole, &p, e));
        check_part(part, &p, values);
        daf_array_free(part);
        OK(daf_sparse_slice(&slice, sparse, &p, e));
        OK(daf_sparse_to_dense(&part, slice, e));
        check_part(part, &p, values);
        daf_array_free(part);
        daf_sparse_free(slice);
    }
    daf_array_free(whole);
    daf_sparse_free(sparse);
}

static void parts_are_cut_out(void **state) {
    test_random r = {10};
    daf_set_options o;
    daf *d = new_repository(state);
    daf_set_options_init(&o);
    o.overwrite = true;
    for (unsigned type = 0; type < DAF_N_TYPES; type++) {
        for (unsigned i = 0; i < 8; i++) {
            void *values = random_dense(&r, (daf_type)type, i % 2 ? 1 : 9);
            o.form = i / 2 % 2 ? DAF_FORM_SPARSE : DAF_FORM_DENSE;
            o.packing = i / 4 ? DAF_PACK_LARGE : DAF_PACK_NEVER;
            OK(daf_set_matrix(d, "row", "column", "m", (daf_type)type, values, N, &o, e));
            check_parts(d, &r, values);
            OK(daf_set_vector(d, "row", "v", (daf_type)type, values, ROWS, &o, e));
            daf_array *part;
            OK(daf_get_vector_range(d, &part, "row", "v", 7, 20, e));
            check_part(part, &(daf_range){7, 20, 0, 1}, values);
            daf_array_free(part);
            free(values);
        }
    }
    daf_array *a;
    FAILS(DAF_ERR_ARG, "not all inside", daf_get_vector_range(d, &a, "row", "v", 30, 11, e));
    FAILS(DAF_ERR_ARG, "not all inside", daf_get_vector_range(d, &a, "row", "v", UINT64_MAX, 2, e));
    daf_range wide = {0, ROWS, 1, COLUMNS};
    FAILS(DAF_ERR_ARG, "not all inside", daf_get_matrix_range(d, &a, "row", "column", "m", &wide, e));
    OK(daf_close(d, e));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape_is_transposed),
        cmocka_unit_test_setup_teardown(every_matrix_has_another_layout, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(both_layouts_go_together, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(narrow_indices_are_widened, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(transposes_are_written_by_bands, test_setup, test_teardown),
#ifndef WATCHED
        cmocka_unit_test_setup_teardown(memory_of_a_relayout_is_bounded, test_setup, test_teardown),
#endif
        cmocka_unit_test_setup_teardown(sparse_ones_are_written_by_bands, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(sparse_ones_that_are_damaged, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(parts_are_cut_out, test_setup, test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Streams write what the whole would have written; repacking changes the encoding and nothing else. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/pool.h"
#include "faults.h"

enum { ROWS = 700, COLUMNS = 23, N = ROWS * COLUMNS };

static uint64_t numbers[N];
static const char *texts[N];
static const char *const words[] = {"", "a", "photon", "ünïcødé"};

static void make_values(void) {
    test_random r = {5};
    for (uint64_t i = 0; i < N; i++) {
        numbers[i] = test_below(&r, 1u << i % 20);
        texts[i] = words[test_below(&r, 4)];
    }
}

static const void *values_of(daf_type type) {
    return type == DAF_STRING ? (const void *)texts : numbers;
}

static size_t width_of(daf_type type) {
    return type == DAF_STRING ? sizeof texts[0] : daf_type_bytes(type);
}

static daf *create(const char *path, const daf_executor *x) {
    daf *d;
    daf_options options;
    daf_options_init(&options);
    options.executor = x;
    OK(daf_open(&d, path, "w", &options, e));
    OK(daf_add_axis_integers(d, "r", 0, 1, ROWS, e));
    OK(daf_add_axis_integers(d, "c", 0, 1, COLUMNS, e));
    return d;
}

typedef struct way {
    daf_packing packing;
    daf_codec codec;
} way;

static const way ways[] = {{DAF_PACK_NEVER, DAF_CODEC_DEFAULT},
                           {DAF_PACK_LARGE, DAF_CODEC_ZSTD},
                           {DAF_PACK_LARGE, DAF_CODEC_GZIP},
                           {DAF_PACK_LARGE, DAF_CODEC_BLOSC_ZSTD_BITSHUFFLE},
                           {DAF_PACK_LARGE, DAF_CODEC_BLOSC_LZ4_BITSHUFFLE}};
enum { N_WAYS = sizeof ways / sizeof ways[0] };

static daf_set_options options_of(const way *w) {
    daf_set_options o;
    daf_set_options_init(&o);
    o.packing = w->packing;
    o.codec = w->codec;
    o.target_chunk_kb = 1;
    return o;
}

/* Puts in pieces of random sizes. */
static void put_all(daf_stream *s, daf_type type, uint64_t n, test_random *r) {
    for (uint64_t done = 0; done < n;) {
        uint64_t piece = test_below(r, 3) ? test_below(r, 300) : test_below(r, n);
        piece = piece < n - done ? piece : n - done;
        OK(daf_stream_put(s, (const uint8_t *)values_of(type) + done * width_of(type), piece, e));
        done += piece;
    }
}

static void streams_write_the_same_bytes(void **state) {
    const char *whole = test_path(state, "whole.daf");
    char path[300];
    test_random r = {7};
    make_values();
    daf *d = create(whole, NULL);
    for (unsigned i = 0; i < DAF_N_TYPES * N_WAYS; i++) {
        daf_type type = (daf_type)(i / N_WAYS);
        char name[16];
        daf_set_options o = options_of(&ways[i % N_WAYS]);
        snprintf(name, sizeof name, "p%u", i);
        OK(daf_set_matrix(d, "r", "c", name, type, values_of(type), N, &o, e));
        OK(daf_set_vector(d, "r", name, type, values_of(type), ROWS, &o, e));
    }
    OK(daf_close(d, e));
    for (unsigned threads = 0; threads <= 3; threads += 3) {
        cli_pool *pool = cli_pool_new(threads ? threads : 1);
        daf_executor x = {
            .context = pool, .submit = cli_pool_submit, .wait = cli_pool_wait, .n_threads = threads};
        snprintf(path, sizeof path, "%s", test_path(state, threads ? "threads.daf" : "streamed.daf"));
        d = create(path, &x);
        for (unsigned i = 0; i < DAF_N_TYPES * N_WAYS; i++) {
            daf_type type = (daf_type)(i / N_WAYS);
            daf_stream *matrix, *vector;
            char name[16];
            daf_set_options o = options_of(&ways[i % N_WAYS]);
            snprintf(name, sizeof name, "p%u", i);
            OK(daf_stream_matrix(d, &matrix, "r", "c", name, type, &o, e));
            OK(daf_stream_vector(d, &vector, "r", name, type, &o, e)); /* two at once */
            put_all(matrix, type, N, &r);
            put_all(vector, type, ROWS, &r);
            OK(daf_stream_finish(matrix, e));
            OK(daf_stream_finish(vector, e));
        }
        OK(daf_close(d, e));
        test_same_tree(whole, path);
        cli_pool_free(pool);
    }
}

/* An archive too. */
static void archives_get_the_same_bytes(void **state) {
    char paths[2][300];
    test_random r = {8};
    make_values();
    for (unsigned streamed = 0; streamed < 2; streamed++) {
        snprintf(paths[streamed], sizeof paths[streamed], "%s",
                 test_path(state, streamed ? "s.daf.zip" : "w.daf.zip"));
        daf *d = create(paths[streamed], NULL);
        for (unsigned i = 0; i < N_WAYS; i++) {
            daf_set_options o = options_of(&ways[i]);
            daf_stream *s;
            char name[16];
            snprintf(name, sizeof name, "p%u", i);
            if (!streamed) {
                OK(daf_set_matrix(d, "r", "c", name, DAF_UINT16, numbers, N, &o, e));
                continue;
            }
            OK(daf_stream_matrix(d, &s, "r", "c", name, DAF_UINT16, &o, e));
            daf_stream_discard(s);
            OK(daf_stream_matrix(d, &s, "r", "c", name, DAF_UINT16, &o, e));
            put_all(s, DAF_UINT16, N, &r);
            OK(daf_stream_finish(s, e));
        }
        FAILS(DAF_ERR_UNSUPPORTED, "append-only", daf_repack_matrix(d, NULL, "r", "c", "p1", NULL, e));
        OK(daf_close(d, e));
    }
    size_t bytes[2];
    char *whole = test_read_file(paths[0], &bytes[0]), *pieces = test_read_file(paths[1], &bytes[1]);
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(whole, pieces, bytes[0]);
    free(whole);
    free(pieces);
}

/* ---- ends */

static void nothing_is_seen_before_the_end(void **state) {
    const char *path = test_path(state, "a.daf"), *before = test_path(state, "before.daf");
    make_values();
    daf *d = create(path, NULL);
    daf_set_options o = options_of(&ways[1]);
    bool there;
    OK(daf_set_vector(d, "r", "v", DAF_INT8, numbers, ROWS, NULL, e));
    test_copy_tree(path, before);
    daf_stream *s, *t;
    OK(daf_stream_matrix(d, &s, "r", "c", "m", DAF_UINT64, &o, e));
    OK(daf_stream_put(s, numbers, N, e));
    OK(daf_has_matrix(d, &there, "r", "c", "m", e));
    assert_false(there);
    daf_stream_discard(s);
    daf_stream_discard(NULL);
    assert_true(test_equal_trees(path, before, "?"));

    OK(daf_stream_matrix(d, &s, "r", "c", "m", DAF_UINT64, &o, e));
    FAILS(DAF_ERR_ARG, "1 values more than", daf_stream_put(s, numbers, N + 1, e));
    FAILS(DAF_ERR_ARG, "NULL", daf_stream_put(s, NULL, 1, e));
    OK(daf_stream_put(s, numbers, N - 1, e));
    FAILS(DAF_ERR_ARG, "only 16099 of 16100", daf_stream_finish(s, e));
    assert_true(test_equal_trees(path, before, "?"));

    static const char *const bad[] = {"good", "line\nend"};
    for (unsigned i = 0; i < 2; i++) { /* flat and packed */
        o = options_of(&ways[i]);
        OK(daf_stream_vector(d, &s, "r", "t", DAF_STRING, &o, e));
        FAILS(DAF_ERR_VALUE, "line end", daf_stream_put(s, bad, 2, e));
        OK(daf_stream_put(s, texts, ROWS, e)); /* it goes on */
        daf_stream_discard(s);
    }

    FAILS(DAF_ERR_EXISTS, "exists already", daf_stream_vector(d, &s, "r", "v", DAF_INT8, NULL, e));
    FAILS(DAF_ERR_MISSING, "no axis", daf_stream_vector(d, &s, "x", "v", DAF_INT8, NULL, e));
    FAILS(DAF_ERR_NAME, "name", daf_stream_vector(d, &s, "r", "name", DAF_INT8, NULL, e));
    FAILS(DAF_ERR_ARG, "no element type", daf_stream_vector(d, &s, "r", "w", DAF_N_TYPES, NULL, e));
    o.both_layouts = true;
    FAILS(DAF_ERR_ARG, "one layout", daf_stream_matrix(d, &s, "r", "c", "m", DAF_INT8, &o, e));
    o.both_layouts = false;
    o.form = DAF_FORM_SMALLER;
    FAILS(DAF_ERR_ARG, "dense", daf_stream_matrix(d, &s, "r", "c", "m", DAF_INT8, &o, e));

    /* Of two streams to one name the second to end finds it taken. */
    OK(daf_stream_vector(d, &s, "r", "w", DAF_UINT64, NULL, e));
    OK(daf_stream_vector(d, &t, "r", "w", DAF_UINT64, NULL, e));
    OK(daf_stream_put(s, numbers, ROWS, e));
    OK(daf_stream_put(t, numbers, ROWS, e));
    OK(daf_stream_finish(s, e));
    FAILS(DAF_ERR_EXISTS, "exists already", daf_stream_finish(t, e));
    OK(daf_close(d, e));
    OK(daf_open(&d, path, "r", NULL, e));
    FAILS(DAF_ERR_READ_ONLY, "reading only", daf_stream_vector(d, &s, "r", "x", DAF_INT8, NULL, e));
    OK(daf_close(d, e));
}

static void an_overwritten_matrix_loses_its_other_layout(void **state) {
    const char *path = test_path(state, "a.daf");
    make_values();
    daf *d = create(path, NULL);
    daf_set_options o = options_of(&ways[3]);
    daf_stream *s;
    daf_array *a;
    bool there;
    o.both_layouts = true;
    OK(daf_set_matrix(d, "r", "c", "m", DAF_UINT16, numbers, N, &o, e));
    o.both_layouts = false;
    o.overwrite = true;
    OK(daf_stream_matrix(d, &s, "r", "c", "m", DAF_UINT64, &o, e));
    OK(daf_stream_put(s, numbers, N, e));
    OK(daf_stream_finish(s, e));
    OK(daf_has_matrix(d, &there, "c", "r", "m", e));
    assert_false(there);
    OK(daf_get_matrix(d, &a, "r", "c", "m", e));
    assert_memory_equal(daf_array_values(a), numbers, sizeof numbers);
    daf_array_free(a);
    OK(daf_close(d, e));
}

/* Each call fails in turn: the tree stays as it was. */
static void failures_leave_nothing(void **state) {
    const char *path = test_path(state, "a.daf"), *before = test_path(state, "before.daf");
    make_values();
    daf *d = create(path, NULL);
    OK(daf_close(d, e));
    test_copy_tree(path, before);
    for (unsigned w = 0; w < 2; w++) {
        test_faults f = {.kind = TEST_FAIL_ONCE, .os_errno = 28};
        bool done = false;
        for (unsigned n = 1; !done; n++) {
            daf_io io = test_faulty_io(&f);
            daf_options options;
            daf_set_options o = options_of(&ways[w * 3]);
            daf_stream *s;
            daf_error err = {0};
            daf_options_init(&options);
            options.io = &io;
            f.at = 0;
            OK(daf_open(&d, path, "r+", &options, e));
            f.calls = 0;
            f.fired = false;
            f.at = n;
            int rc = daf_stream_matrix(d, &s, "r", "c", "m", DAF_UINT64, &o, &err);
            for (unsigned c = 0; c < COLUMNS && rc == 0; c++) {
                rc = daf_stream_put(s, numbers + (size_t)c * ROWS, ROWS, &err);
                if (rc) {
                    int again = daf_stream_put(s, numbers, 1, NULL);
                    assert_int_equal(again, rc); /* it sticks */
                    daf_stream_discard(s);
                }
            }
            rc = rc ? rc : daf_stream_finish(s, &err);
            done = !f.fired;
            f.at = 0;
            if (rc == 0)
                OK(daf_delete_matrix(d, "r", "c", "m", e));
            else
                assert_true(err.code == DAF_ERR_IO && err.os_errno == 28);
            OK(daf_close(d, e));
            OK(daf_open(&d, path, "r+", NULL, e));
            OK(daf_close(d, e));
            if (!test_equal_trees(path, before, "metadata.json")) /* whose order a rebuild changes */
                fail_msg("call %u left something", n);
        }
    }
}

/* ---- repacking */

static void set_all(daf *d, const daf_set_options *o) {
    OK(daf_set_matrix(d, "r", "c", "u", DAF_UINT32, numbers, N, o, e));
    OK(daf_set_matrix(d, "r", "c", "s", DAF_STRING, texts, N, o, e));
    OK(daf_set_vector(d, "r", "v", DAF_FLOAT64, numbers, ROWS, o, e));
    daf_set_options sparse = *o;
    sparse.form = DAF_FORM_SPARSE;
    OK(daf_set_matrix(d, "r", "c", "z", DAF_UINT8, numbers, N, &sparse, e));
}

static void repack_all(daf *d, const daf_set_options *o) {
    daf_repacked r;
    daf_info info;
    OK(daf_repack_matrix(d, &r, "r", "c", "u", o, e));
    assert_int_equal(r.raw_bytes, N * 4);
    OK(daf_matrix_info(d, &info, "r", "c", "u", e));
    assert_int_equal(r.after_bytes, info.disk_bytes);
    OK(daf_repack_matrix(d, NULL, "r", "c", "s", o, e));
    OK(daf_repack_vector(d, &r, "r", "v", o, e));
    OK(daf_vector_info(d, &info, "r", "v", e));
    assert_int_equal(r.after_bytes, info.disk_bytes);
    OK(daf_repack_matrix(d, &r, "r", "c", "z", o, e));
    OK(daf_matrix_info(d, &info, "r", "c", "z", e));
    assert_int_equal(r.after_bytes, info.disk_bytes);
    assert_int_equal(r.raw_bytes, info.raw_bytes);
}

static void repacking_equals_writing_anew(void **state) {
    make_values();
    for (unsigned i = 0; i < N_WAYS; i++) {
        char name[32];
        daf_set_options o = options_of(&ways[i]);
        snprintf(name, sizeof name, "new-%u.daf", i);
        daf *d = create(test_path(state, name), NULL);
        set_all(d, &o);
        OK(daf_close(d, e));
    }
    for (unsigned i = 0; i < N_WAYS * N_WAYS; i++) {
        char name[32], expected[300];
        daf_set_options from = options_of(&ways[i / N_WAYS]), to = options_of(&ways[i % N_WAYS]);
        snprintf(name, sizeof name, "again-%u.daf", i);
        const char *path = test_path(state, name);
        daf *d = create(path, NULL);
        set_all(d, &from);
        repack_all(d, &to);
        OK(daf_close(d, e));
        OK(daf_open(&d, path, "r+", NULL, e));
        OK(daf_close(d, e));
        snprintf(name, sizeof name, "new-%u.daf", i % N_WAYS);
        snprintf(expected, sizeof expected, "%s", test_path(state, name));
        if (!test_equal_trees(path, expected, "metadata.json"))
            fail_msg("way %u to %u", i / N_WAYS, i % N_WAYS);
    }
}

static void repacking_leaves_the_other_layout(void **state) {
    const char *path = test_path(state, "a.daf");
    make_values();
    daf *d = create(path, NULL);
    daf_set_options o = options_of(&ways[0]);
    daf_info info;
    o.both_layouts = true;
    OK(daf_set_matrix(d, "r", "c", "u", DAF_UINT32, numbers, N, &o, e));
    o = options_of(&ways[4]);
    OK(daf_repack_matrix(d, NULL, "r", "c", "u", &o, e));
    OK(daf_matrix_info(d, &info, "r", "c", "u", e));
    assert_string_equal(info.compression, "blosc_lz4_bitshuffle");
    OK(daf_matrix_info(d, &info, "c", "r", "u", e));
    assert_false(info.packed);
    FAILS(DAF_ERR_MISSING, "no matrix", daf_repack_matrix(d, NULL, "r", "c", "none", &o, e));
    o.level = 77;
    FAILS(DAF_ERR_ARG, "level 77", daf_repack_matrix(d, NULL, "r", "c", "u", &o, e));
    OK(daf_close(d, e));
}

typedef struct watch {
    unsigned calls, stop_at;
    uint64_t last;
} watch;

static bool watch_progress(void *context, uint64_t done, uint64_t total) {
    watch *w = context;
    assert_true(done > w->last && done <= total);
    w->last = done;
    return ++w->calls == w->stop_at;
}

static void repacking_tells_how_far_it_is_and_stops(void **state) {
    enum { MANY = 5 << 19 };
    const char *path = test_path(state, "long.daf");
    uint8_t *values = calloc(MANY, 8);
    watch w = {.stop_at = 2};
    daf_set_options o;
    daf_info info;
    daf *d;
    daf_set_options_init(&o);
    o.packing = DAF_PACK_LARGE;
    o.codec = DAF_CODEC_BLOSC_LZ4_BITSHUFFLE;
    o.target_chunk_kb = 1024;
    o.progress = watch_progress;
    o.context = &w;
    assert_non_null(values);
    OK(daf_open(&d, path, "w+", NULL, e));
    OK(daf_add_axis_integers(d, "i", 0, 1, MANY, e));
    OK(daf_set_vector(d, "i", "v", DAF_UINT64, values, MANY, NULL, e));
    assert_int_equal(w.calls, 0);
    FAILS(DAF_ERR_CANCELLED, "stopped", daf_repack_vector(d, NULL, "i", "v", &o, e));
    OK(daf_vector_info(d, &info, "i", "v", e));
    assert_false(info.packed);
    w = (watch){0};
    OK(daf_repack_vector(d, NULL, "i", "v", &o, e));
    assert_true(w.calls > 1 && w.last == MANY);
    OK(daf_close(d, e));
    free(values);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(streams_write_the_same_bytes),
        TEST(archives_get_the_same_bytes),
        TEST(nothing_is_seen_before_the_end),
        TEST(an_overwritten_matrix_loses_its_other_layout),
        TEST(failures_leave_nothing),
        TEST(repacking_equals_writing_anew),
        TEST(repacking_leaves_the_other_layout),
        TEST(repacking_tells_how_far_it_is_and_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

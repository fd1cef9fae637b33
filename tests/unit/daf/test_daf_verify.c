/* daf_verify and daf_copy by their C functions: what is told, stops, faults. What each code is for is tested with the
 * command. */
#include <stdlib.h>
#include <string.h>

#include "actions.h"
#include "allocations.h"

#define FIXTURE(path) TEST_FIXTURES "/daf/" path

typedef struct found {
    unsigned n;
    daf_problem_code code; /* of the last one */
    uint64_t done, total;
    uint64_t stop_at; /* bytes; 0: never */
} found;

static void note(void *context, const daf_problem *p) {
    found *f = context;
    f->n++;
    f->code = p->code;
    assert_non_null(p->place);
    assert_true(p->text[0] != 0);
}

static bool advance(void *context, uint64_t done, uint64_t total) {
    found *f = context;
    assert_true(done >= f->done);
    f->done = done;
    f->total = total;
    return f->stop_at && done >= f->stop_at;
}

static daf_verify_options options_of(found *f) {
    daf_verify_options o;
    daf_verify_options_init(&o);
    o.problem = note;
    o.progress = advance;
    o.context = f;
    return o;
}

static void codes_have_names_and_meanings(void **state) {
    (void)state;
    for (int i = 0; i < DAF_N_PROBLEMS; i++) {
        daf_problem_code code = (daf_problem_code)i;
        assert_non_null(daf_problem_name(code));
        assert_non_null(daf_problem_meaning(code));
        assert_non_null(daf_problem_class_name(daf_problem_class_of(code)));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(daf_problem_name(code), daf_problem_name((daf_problem_code)k));
    }
    assert_null(daf_problem_name(DAF_N_PROBLEMS));
    assert_null(daf_problem_meaning((daf_problem_code)-1));
    assert_null(daf_problem_class_name((daf_problem_class)7));
    assert_string_equal(daf_problem_name(DAF_PROBLEM_INDEX_ORDER), "index-order");
    assert_int_equal(daf_problem_class_of(DAF_PROBLEM_TORN), DAF_CLASS_FAULT);
}

static void good_ones_are_counted(void **state) {
    (void)state;
    found f = {0};
    daf_verify_options o = options_of(&f);
    daf_verify_summary s;
    OK(daf_verify(FIXTURE("packed-all-types/zstd.daf"), &o, &s, e));
    assert_int_equal(f.n, 0);
    assert_int_equal(s.properties, 38);
    assert_int_equal(s.n[0] + s.n[1] + s.n[2], 0);
    assert_int_equal(f.total, f.done);
    assert_int_equal(s.bytes, f.done);
    OK(daf_verify(FIXTURE("zip-packed/repo.daf.zip"), NULL, NULL, e));
    OK(daf_verify(FIXTURE("packed-all-types/zstd.daf"), NULL, &s, e));
    assert_int_equal(s.properties, 38);
}

static void damage_is_told_and_returns_0(void **state) {
    (void)state;
    static const struct {
        const char *path;
        daf_problem_code code;
    } cases[] = {{FIXTURE("invalid/nzind-zero.daf"), DAF_PROBLEM_INDEX_RANGE},
                 {FIXTURE("invalid/version-2.0.daf"), DAF_PROBLEM_VERSION},
                 {FIXTURE("invalid/shard-chunk-corrupt.daf"), DAF_PROBLEM_CHUNK}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        found f = {0};
        daf_verify_options o = options_of(&f);
        daf_verify_summary s;
        OK(daf_verify(cases[i].path, &o, &s, e));
        assert_int_equal(f.n, 1);
        assert_int_equal(f.code, cases[i].code);
        assert_int_equal(s.n[DAF_CLASS_DAMAGE], 1);
        OK(daf_verify(cases[i].path, NULL, NULL, e));
    }
    FAILS(DAF_ERR_NOT_DAF, "not a daf directory", daf_verify(FIXTURE("none.daf"), NULL, NULL, e));
    FAILS(DAF_ERR_ARG, "NULL", daf_verify(NULL, NULL, NULL, e));
}

static void stops_when_it_is_told_to(void **state) {
    (void)state;
    daf_verify_summary s = {.properties = 77};
    found whole = {0};
    daf_verify_options all = options_of(&whole);
    OK(daf_verify(FIXTURE("packed/zstd.daf"), &all, NULL, e));
    assert_true(whole.done > 10000);
    for (uint64_t at = 1; at <= whole.done; at += 1111) {
        found f = {.stop_at = at};
        daf_verify_options o = options_of(&f);
        FAILS(DAF_ERR_CANCELLED, "stopped", daf_verify(FIXTURE("packed/zstd.daf"), &o, &s, e));
        assert_int_equal(s.properties, 77);
    }
}

/* Indices are decoded some chunks at a time, however many there are. */
static void indices_are_not_held(void **state) {
    enum { ROWS = 3000, COLUMNS = 1000 };
    const char *path = test_path(state, "sparse.daf");
    uint64_t *indices = malloc(sizeof *indices * ROWS * COLUMNS),
             *colptr = malloc(sizeof *colptr * (COLUMNS + 1));
    daf_csc csc = {
        .type = DAF_BOOL, .index_type = DAF_UINT64, .rows = ROWS, .columns = COLUMNS, .nnz = ROWS * COLUMNS};
    daf_set_options o;
    daf *d;
    assert_true(indices && colptr);
    for (uint64_t k = 0; k < csc.nnz; k++)
        indices[k] = k % ROWS + 1;
    for (uint64_t j = 0; j <= COLUMNS; j++)
        colptr[j] = j * ROWS + 1;
    csc.indices = indices;
    csc.colptr = colptr;
    daf_set_options_init(&o);
    o.packing = DAF_PACK_LARGE;
    o.codec = DAF_CODEC_ZSTD;
    o.index_type = DAF_UINT64;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "a", 0, 1, ROWS, e));
    OK(daf_add_axis_integers(d, "b", 0, 1, COLUMNS, e));
    OK(daf_set_sparse_matrix(d, "a", "b", "m", &csc, &o, e));
    OK(daf_close(d, e));
    free(indices);
    free(colptr);
    for (unsigned strict = 0; strict < 2; strict++) {
        found f = {0};
        daf_verify_options verify = options_of(&f);
        verify.strict = strict;
        (void)test_largest_allocation();
        OK(daf_verify(path, &verify, NULL, e));
        assert_true(test_largest_allocation() < (size_t)18 << 20); /* of 24 MB */
        assert_int_equal(f.n, 0);
    }
}

/* Without memory nothing is told that is not so. */
static void no_memory_is_no_damage(void **state) {
    const char *path = test_path(state, "base.daf");
    static const char *const more[] = {FIXTURE("zip-packed/repo.daf.zip"), FIXTURE("packed/gzip.daf")};
    test_make_base(path);
    for (unsigned which = 0; which < 3; which++) {
        unsigned n = 1;
        for (;; n++) {
            found f = {0};
            daf_verify_options o = options_of(&f);
            daf_error err = {0};
            o.strict = false;
            test_fail_allocation(n);
            int rc = daf_verify(which ? more[which - 1] : path, &o, NULL, &err);
            bool fired = test_fail_allocation(0);
            if (f.n)
                fail_msg("allocation %u of %u: %s is told", n, which, daf_problem_name(f.code));
            if (rc && rc != DAF_ERR_NOMEM)
                fail_msg("allocation %u of %u: %d %s", n, which, rc, err.text);
            if (!fired)
                break;
        }
        assert_true(n > 20);
    }
}

/* ---- copies */

static bool not_the_matrices(void *context, const daf_item *item) {
    (void)context;
    return item->kind != DAF_KIND_MATRIX;
}

static void copies_what_is_wanted(void **state) {
    const char *path = test_path(state, "base.daf");
    daf *from, *to;
    daf_copy_options o;
    daf_info info;
    bool there;
    test_make_base(path);
    OK(daf_open(&from, path, "r", NULL, e));
    OK(daf_open_memory(&to, NULL, e));
    daf_copy_options_init(&o);
    o.wanted = not_the_matrices;
    OK(daf_copy(to, from, &o, e));
    OK(daf_vector_info(to, &info, "a", "p", e));
    assert_true(info.packed && info.chunk_rows == 256);
    OK(daf_has_matrix(to, &there, "a", "b", "m", e));
    assert_false(there);
    OK(daf_copy(to, from, NULL, e)); /* what is there already is the same */
    OK(daf_has_matrix(to, &there, "a", "b", "m", e));
    assert_true(there);
    FAILS(DAF_ERR_ARG, "into itself", daf_copy(to, to, NULL, e));
    FAILS(DAF_ERR_READ_ONLY, "reading only", daf_copy(from, to, NULL, e));
    daf_scalar other = daf_scalar_string("other");
    const daf_set_options overwrite = {.overwrite = true};
    OK(daf_set_scalar(to, "s", &other, &overwrite, e));
    FAILS(DAF_ERR_EXISTS, "exists already", daf_copy(to, from, NULL, e));
    OK(daf_batch_commit(to, e));
    o.overwrite = true;
    OK(daf_copy(to, from, &o, e));
    daf_free(to);
    OK(daf_open_memory(&to, NULL, e));
    OK(daf_add_axis(to, "a", (const char *[]){"x"}, 1, e));
    FAILS(DAF_ERR_VALUE, "other entries", daf_copy(to, from, &o, e));
    daf_free(to);
    daf_free(from);
}

static void keeps_to_1_0_in_an_archive(void **state) {
    const char *path = test_path(state, "old.daf.zip");
    daf *from, *to;
    int major, minor;
    /* An archive of format 1.0 with one axis. */
    OK(daf_open(&from, FIXTURE("flat-v1.0/repo.daf"), "r", NULL, e));
    OK(daf_open(&to, path, "w", NULL, e));
    OK(daf_copy(to, from, NULL, e));
    daf_format_version(to, &major, &minor);
    assert_int_equal(minor, 1);
    OK(daf_close(to, e));
    daf_free(from);
    OK(daf_verify(path, NULL, NULL, e));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_have_names_and_meanings),
        cmocka_unit_test(good_ones_are_counted),
        cmocka_unit_test(damage_is_told_and_returns_0),
        cmocka_unit_test(stops_when_it_is_told_to),
        cmocka_unit_test_setup_teardown(indices_are_not_held, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(no_memory_is_no_damage, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(copies_what_is_wanted, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(keeps_to_1_0_in_an_archive, test_setup, test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

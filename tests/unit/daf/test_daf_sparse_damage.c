/* Sparse repositories that are damaged: each payload cut at every byte and changed at every byte, each descriptor
 * changed. What is read is right, or one of several right answers of a changed value, or an error. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"

enum { ROWS = 60, COLUMNS = 9, NNZ = 90 };

typedef struct target {
    daf *d;
    const char *path;
    uint16_t colptr[COLUMNS + 1], indices[NNZ];
    double values[NNZ];
    const char *texts[NNZ];
} target;

static void make(target *t, void **state) {
    unsigned k = 0;
    t->path = test_path(state, "f.daf");
    for (unsigned j = 0; j < COLUMNS; j++) {
        t->colptr[j] = (uint16_t)(k + 1);
        for (unsigned i = j % 3; i < ROWS && k < 10 * (j + 1); i += 5) {
            t->indices[k] = (uint16_t)(i + 1);
            t->values[k] = k / 4.0;
            t->texts[k] = k % 3 ? "photon" : "ü";
            k++;
        }
    }
    t->colptr[COLUMNS] = (uint16_t)(k + 1);
    daf_csc c = {.type = DAF_FLOAT64,
                 .index_type = DAF_UINT16,
                 .rows = ROWS,
                 .columns = COLUMNS,
                 .nnz = k,
                 .colptr = t->colptr,
                 .indices = t->indices,
                 .values = t->values};
    OK(daf_open(&t->d, t->path, "w", NULL, e));
    OK(daf_add_axis_integers(t->d, "r", 0, 1, ROWS, e));
    OK(daf_add_axis_integers(t->d, "c", 0, 1, COLUMNS, e));
    OK(daf_set_sparse_matrix(t->d, "r", "c", "m", &c, NULL, e));
    c.type = DAF_STRING;
    c.values = t->texts;
    OK(daf_set_sparse_matrix(t->d, "r", "c", "s", &c, NULL, e));
    daf_csc v = {.type = DAF_FLOAT64,
                 .index_type = DAF_UINT16,
                 .rows = ROWS,
                 .columns = 1,
                 .nnz = 10,
                 .indices = t->indices,
                 .values = t->values};
    OK(daf_set_sparse_vector(t->d, "r", "v", &v, NULL, e));
}

/* Reads a property as sparse, whose rules then hold, and as dense. */
static int read_property(target *t, const char *key) {
    daf_sparse *s = NULL;
    daf_array *a = NULL;
    bool vector = strstr(key, "vectors/") != NULL;
    const char *name = vector ? "v" : strstr(key, "/m.") ? "m" : "s";
    int rc = vector ? daf_get_sparse_vector(t->d, &s, "r", name, NULL)
                    : daf_get_sparse_matrix(t->d, &s, "r", "c", name, NULL);
    int again =
        vector ? daf_get_vector(t->d, &a, "r", name, NULL) : daf_get_matrix(t->d, &a, "r", "c", name, NULL);
    assert_int_equal(rc, again);
    if (rc)
        return rc;
    const daf_csc *c = daf_sparse_csc(s);
    for (uint64_t j = 0; j < c->columns; j++)
        for (uint64_t k = daf_sparse_start(s, j); k < daf_sparse_start(s, j + 1); k++)
            assert_true(daf_sparse_index(s, k) < c->rows);
    daf_sparse_free(s);
    daf_array_free(a);
    return 0;
}

static void expect_damage(int rc, const char *key, size_t at) {
    if (rc != DAF_ERR_CORRUPT && rc != DAF_ERR_TRUNCATED && rc != DAF_ERR_UNSUPPORTED &&
        rc != DAF_ERR_LIMIT && rc != DAF_ERR_MISSING)
        fail_msg("%s at byte %zu: code %d", key, at, rc);
}

/* Cut short at every byte: an error. A text file may lack its last LF. */
static void cut(target *t, const char *key, const char *file, char *content, size_t bytes) {
    size_t last = strstr(key, ".nztxt") || strstr(key, ".json") ? bytes - 1 : bytes;
    for (size_t at = 0; at < last; at++) {
        test_write_file(file, content, at);
        int rc = read_property(t, key);
        bool in_last_line = strstr(key, ".nztxt") && !memchr(content + at, '\n', bytes - 1 - at);
        if (!in_last_line && rc == 0)
            fail_msg("%s cut at byte %zu is read", key, at);
        if (rc)
            expect_damage(rc, key, at);
    }
    /* Longer is as bad. */
    content[bytes] = 'x';
    test_write_file(file, content, bytes + 1);
    if (!strstr(key, ".zip") && read_property(t, key) == 0)
        fail_msg("%s with a byte too many is read", key);
}

static void change(target *t, const char *key, const char *file, char *content, size_t bytes) {
    static const uint8_t masks[] = {0x01, 0x20, 0x80, 0xFF};
    unsigned noticed = 0;
    for (size_t at = 0; at < bytes; at++) {
        for (size_t m = 0; m < sizeof masks; m++) {
            content[at] = (char)(content[at] ^ masks[m]);
            test_write_file(file, content, bytes);
            content[at] = (char)(content[at] ^ masks[m]);
            int rc = read_property(t, key);
            if (rc)
                expect_damage(rc, key, at);
            noticed += rc != 0;
        }
    }
    /* Of indices and pointers most changes break a rule; of bare values none can be seen. */
    if (!strstr(key, "m.nzval") && !strstr(key, "v.nzval"))
        assert_true(noticed > bytes / 2);
}

static void damage(target *t, const char *key) {
    char file[700];
    size_t bytes;
    snprintf(file, sizeof file, "%s/%s", t->path, key);
    char *content = test_read_file(file, &bytes);
    if (!content)
        fail_msg("no %s", key);
    assert_int_equal(read_property(t, key), 0);
    cut(t, key, file, content, bytes);
    content[bytes] = 0;
    change(t, key, file, content, bytes);
    remove(file);
    assert_int_equal(read_property(t, key), DAF_ERR_MISSING);
    test_write_file(file, content, bytes);
    assert_int_equal(read_property(t, key), 0);
    free(content);
}

static void flat_parts(void **state) {
    target t;
    make(&t, state);
    damage(&t, "matrices/r/c/m.colptr");
    damage(&t, "matrices/r/c/m.rowval");
    damage(&t, "matrices/r/c/m.nzval");
    damage(&t, "matrices/r/c/m.json");
    damage(&t, "matrices/r/c/s.nztxt");
    damage(&t, "vectors/r/v.nzind");
    damage(&t, "vectors/r/v.nzval");
    damage(&t, "vectors/r/v.json");
    OK(daf_close(t.d, e));
}

/* A vector with enough stored values to be packed. */
static void packed_parts(void **state) {
    enum { LONG = 200 };
    static uint64_t indices[LONG];
    static double values[LONG];
    target t;
    daf_set_options o;
    daf_set_options_init(&o);
    t.path = test_path(state, "p.daf");
    OK(daf_open(&t.d, t.path, "w", NULL, e));
    OK(daf_add_axis_integers(t.d, "r", 0, 1, 3 * LONG, e));
    for (unsigned k = 0; k < LONG; k++) {
        indices[k] = 3 * k + 1;
        values[k] = k;
    }
    o.packing = DAF_PACK_LARGE;
    o.target_chunk_kb = 1;
    o.index_type = DAF_UINT64;
    daf_csc v = {.type = DAF_FLOAT64,
                 .index_type = DAF_UINT64,
                 .rows = 3 * LONG,
                 .columns = 1,
                 .nnz = LONG,
                 .indices = indices,
                 .values = values};
    OK(daf_set_sparse_vector(t.d, "r", "v", &v, &o, e));
    damage(&t, "vectors/r/v.nzind.zip");
    damage(&t, "vectors/r/v.nzval.zip");
    damage(&t, "vectors/r/v.json");
    OK(daf_close(t.d, e));
}

/* ---- cut while they are got */

typedef struct cutter {
    const char *opened; /* the end of the name at whose opening */
    const char *path;   /* this file is cut */
} cutter;

static int open_and_cut(void *context, int dirfd, const char *path, int flags, mode_t mode) {
    const cutter *c = context;
    size_t n = strlen(path), end = strlen(c->opened);
    if (n >= end && strcmp(path + n - end, c->opened) == 0)
        assert_int_equal(truncate(c->path, 0), 0);
    return daf__system_io.open(NULL, dirfd, path, flags, mode);
}

/* The parts are views of files that another program cuts while the call goes on: an error, and no signal. */
static void cut_by_another_program(void **state) {
    enum { LARGE = 200000 };
    char path[700];
    daf *d;
    daf_sparse *sparse;
    uint32_t *colptr = malloc((LARGE + 1) * sizeof *colptr), *indices = malloc(LARGE * sizeof *indices);
    for (uint32_t k = 0; k <= LARGE; k++) {
        colptr[k] = k + 1;
        indices[k % LARGE] = 1 + k % 3;
    }
    daf_csc c = {.type = DAF_BOOL,
                 .index_type = DAF_UINT32,
                 .rows = 3,
                 .columns = LARGE,
                 .nnz = LARGE,
                 .colptr = colptr,
                 .indices = indices};
    const char *root = test_path(state, "cut.daf");
    OK(daf_open(&d, root, "w", NULL, e));
    OK(daf_add_axis_integers(d, "r", 0, 1, 3, e));
    OK(daf_add_axis_integers(d, "c", 0, 1, LARGE, e));
    OK(daf_set_sparse_matrix(d, "r", "c", "big", &c, NULL, e));
    OK(daf_close(d, e));
    snprintf(path, sizeof path, "%s/matrices/r/c/big.rowval", root);
    cutter cut = {".colptr", path}; /* which is opened after it */
    daf_io io = daf__system_io;
    daf_options options;
    daf_options_init(&options);
    io.context = &cut;
    io.open = open_and_cut;
    options.io = &io;
    OK(daf_open(&d, root, "r", &options, e));
    FAILS(DAF_ERR_TRUNCATED, "rowval", daf_get_sparse_matrix(d, &sparse, "r", "c", "big", e));
    daf_free(d);
    free(colptr);
    free(indices);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(flat_parts, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(packed_parts, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(cut_by_another_program, test_setup, test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Repositories as Zarr trees, and back: against trees that another program wrote (tests/fixtures/zarr-daf). */
#include "faults.h"
#include "model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct conversion {
    const char *files, *zarr; /* in tests/fixtures */
} conversion;

static const conversion conversions[] = {
    {"daf/flat-all-types/repo.daf", "zarr-daf/flat-all-types/repo.daf.zarr"},
    {"daf/packed/zstd.daf", "zarr-daf/packed/zstd.daf.zarr"},
    {"daf/packed/gzip.daf", "zarr-daf/packed/gzip.daf.zarr"},
    {"daf/packed/blosc_zstd_bitshuffle.daf", "zarr-daf/packed/blosc_zstd_bitshuffle.daf.zarr"},
    {"daf/packed/blosc_lz4_bitshuffle.daf", "zarr-daf/packed/blosc_lz4_bitshuffle.daf.zarr"},
};
enum { N_CONVERSIONS = sizeof conversions / sizeof conversions[0] };

/* A copy of the fixture: the tests must not link the stored files. */
static const char *copy_fixture(void **state, const char *fixture, const char *name) {
    char from[512];
    snprintf(from, sizeof from, TEST_FIXTURES "/%s", fixture);
    const char *to = test_path(state, name);
    test_copy_tree(from, to);
    return to;
}

static bool same_inode(const char *a, const char *b) {
    struct stat s, t;
    return stat(a, &s) == 0 && stat(b, &t) == 0 && s.st_ino == t.st_ino && s.st_dev == t.st_dev;
}

static void exports_are_the_trees_of_the_fixtures(void **state) {
    for (size_t i = 0; i < N_CONVERSIONS; i++) {
        char name[64], expected[512];
        snprintf(name, sizeof name, "run-%zu.daf", i);
        const char *from = copy_fixture(state, conversions[i].files, name);
        snprintf(name, sizeof name, "run-%zu.daf.zarr", i);
        const char *to = test_path(state, name);
        daf_zarr_report report;
        OK(daf_zarr_export(&report, from, to, NULL, e));
        snprintf(expected, sizeof expected, TEST_FIXTURES "/%s", conversions[i].zarr);
        test_same_tree(to, expected);
        assert_true(report.n_linked > 0 && report.n_copied == 0);
    }
}

/* ---- reading */

static const conversion trees[] = {
    {"flat-all-types", "repo.daf.zarr"},
    {"packed", "zstd.daf.zarr"},
    {"packed", "gzip.daf.zarr"},
    {"packed", "blosc_zstd_bitshuffle.daf.zarr"},
    {"packed", "blosc_lz4_bitshuffle.daf.zarr"},
    {"julia-spelling", "repo.daf.zarr"},
    {"julia-spelling", "repo.daf.zarr.zip"},
    {"julia-spelling", "repo.dafs.zarr.zip#/first/set"},
    {"foreign-writer", "repo.daf.zarr"},
};
enum { N_TREES = sizeof trees / sizeof trees[0] };

static json_t *load_model(const char *folder) {
    char path[512];
    snprintf(path, sizeof path, TEST_FIXTURES "/zarr-daf/%s/expected.json", folder);
    return test_load_json(path);
}

static void check_reads(const char *path, const char *folder) {
    json_t *model = load_model(folder);
    test_counts n = {.may_copy = true, .other_index_types = strcmp(folder, "foreign-writer") == 0};
    daf *d;
    OK(daf_open(&d, path, "r", NULL, e));
    test_check_model(d, model, &n);
    OK(daf_close(d, e));
    assert_true(n.axes > 0 && n.dense > 0);
    json_decref(model);
}

static void each_tree_reads(void **state) {
    (void)state;
    for (size_t i = 0; i < N_TREES; i++) {
        char path[512];
        snprintf(path, sizeof path, TEST_FIXTURES "/zarr-daf/%s/%s", trees[i].files, trees[i].zarr);
        check_reads(path, trees[i].files);
    }
}

static void each_tree_is_imported(void **state) {
    for (size_t i = 0; i < N_TREES; i++) {
        char from[512], name[64];
        snprintf(from, sizeof from, TEST_FIXTURES "/zarr-daf/%s/%s", trees[i].files, trees[i].zarr);
        snprintf(name, sizeof name, "run-%zu.daf", i);
        const char *to = test_path(state, name);
        daf_zarr_options options;
        daf_zarr_options_init(&options);
        options.non_finite_scalars = true;
        OK(daf_zarr_import(NULL, from, to, &options, e));
        check_reads(to, trees[i].files);
    }
}

/* ---- both ways */

static void remove_index(const char *path) {
    char index[512];
    snprintf(index, sizeof index, "%s/metadata.json", path);
    assert_int_equal(remove(index), 0);
}

static void a_round_trip_gives_every_file_back(void **state) {
    for (size_t i = 1; i < N_CONVERSIONS; i++) {
        char name[64];
        snprintf(name, sizeof name, "run-%zu.daf", i);
        const char *from = copy_fixture(state, conversions[i].files, name);
        snprintf(name, sizeof name, "run-%zu.daf.zarr", i);
        const char *zarr = test_path(state, name);
        snprintf(name, sizeof name, "back-%zu.daf", i);
        const char *back = test_path(state, name);
        OK(daf_zarr_export(NULL, from, zarr, NULL, e));
        OK(daf_zarr_import(NULL, zarr, back, NULL, e));
        remove_index(from);
        remove_index(back);
        test_same_tree(from, back);
    }
}

static void julias_tree_becomes_the_directory_of_the_fixture(void **state) {
    const char *from = copy_fixture(state, "zarr-daf/julia-spelling/repo.daf.zarr", "run.daf.zarr");
    const char *to = test_path(state, "run.daf");
    const char *expected = copy_fixture(state, "zarr-daf/julia-spelling/repo.daf", "expected.daf");
    char index[512];
    OK(daf_zarr_import(NULL, from, to, NULL, e));
    snprintf(index, sizeof index, "%s/metadata.json", to);
    json_t *got = test_load_json(index),
           *wanted = test_load_json(TEST_FIXTURES "/zarr-daf/julia-spelling/repo.daf/metadata.json");
    assert_true(json_equal(got, wanted));
    json_decref(got);
    json_decref(wanted);
    remove_index(to);
    remove_index(expected);
    test_same_tree(to, expected);
}

/* Shards without an index get one: then they are those of the packed fixture. */
static void shards_without_index_are_written_anew(void **state) {
    static const char *const codecs[] = {"zstd", "gzip", "blosc_zstd_bitshuffle", "blosc_lz4_bitshuffle"};
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
        char fixture[256], name[64], path[512];
        snprintf(fixture, sizeof fixture, "daf/zipped/%s.daf", codecs[i]);
        snprintf(name, sizeof name, "run-%zu.daf", i);
        const char *from = copy_fixture(state, fixture, name);
        snprintf(name, sizeof name, "run-%zu.daf.zarr", i);
        const char *to = test_path(state, name);
        OK(daf_zarr_export(NULL, from, to, NULL, e));
        snprintf(path, sizeof path, TEST_FIXTURES "/daf/zipped/expected.json");
        json_t *model = test_load_json(path);
        test_counts n = {.may_copy = true};
        daf *d;
        daf_info info;
        OK(daf_open(&d, to, "r", NULL, e));
        json_object_del(model, "packed");
        test_check_model(d, model, &n);
        OK(daf_vector_info(d, &info, "item", "v_float64", e));
        assert_true(info.packed && info.indexed);
        assert_string_equal(info.compression, codecs[i]);
        OK(daf_close(d, e));
        json_decref(model);
    }
}

/* ---- links */

static void make_run(const char *path) {
    static const char *const items[] = {"a", "b", "c"};
    static const float values[] = {1.5f, -2, 3};
    static const uint8_t flags[] = {1, 0, 7};
    daf_scalar pi = daf_scalar_float64(3.25);
    daf *d;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis(d, "item", items, 3, e));
    OK(daf_set_scalar(d, "pi", &pi, NULL, e));
    OK(daf_set_vector(d, "item", "value", DAF_FLOAT32, values, 3, NULL, e));
    OK(daf_set_vector(d, "item", "flag", DAF_BOOL, flags, 3, NULL, e));
    OK(daf_close(d, e));
}

static void payloads_are_one_file_in_both_forms(void **state) {
    const char *run = test_path(state, "run.daf"), *zarr = test_path(state, "run.daf.zarr");
    const char *back = test_path(state, "back.daf");
    char a[512], b[512], c[512];
    make_run(run);
    daf_zarr_report out, in;
    OK(daf_zarr_export(&out, run, zarr, NULL, e));
    OK(daf_zarr_import(&in, zarr, back, NULL, e));
    snprintf(a, sizeof a, "%s/vectors/item/value.data", run);
    snprintf(b, sizeof b, "%s/vectors/item/value/c/0", zarr);
    snprintf(c, sizeof c, "%s/vectors/item/value.data", back);
    assert_true(same_inode(a, b) && same_inode(b, c));
    assert_true(out.n_linked == 2 && out.linked_bytes == 15 && out.n_copied == 0 && out.written_bytes > 0);
    assert_true(in.n_linked == 2 && in.n_copied == 0);
    /* Overwriting in one form leaves the other. */
    static const float others[] = {0, 0, 0};
    daf_set_options set = {.overwrite = true};
    daf *d;
    daf_array *v;
    OK(daf_open(&d, run, "r+", NULL, e));
    OK(daf_set_vector(d, "item", "value", DAF_FLOAT32, others, 3, &set, e));
    OK(daf_close(d, e));
    OK(daf_open(&d, zarr, "r", NULL, e));
    OK(daf_get_vector(d, &v, "item", "value", e));
    assert_true(((const float *)daf_array_values(v))[0] == 1.5f);
    daf_array_free(v);
    OK(daf_close(d, e));
}

/* Other readers take a byte of a bool array as it is. */
static void odd_bools_are_normalised(void **state) {
    const char *run = test_path(state, "run.daf"), *zarr = test_path(state, "run.daf.zarr");
    char path[512];
    size_t bytes;
    make_run(run);
    snprintf(path, sizeof path, "%s/vectors/item/flag.data", run);
    test_write_file(path, "\1\0\7", 3);
    OK(daf_zarr_export(NULL, run, zarr, NULL, e));
    snprintf(path, sizeof path, "%s/vectors/item/flag/c/0", zarr);
    char *got = test_read_file(path, &bytes);
    assert_true(got && bytes == 3);
    assert_memory_equal(got, "\1\0\1", 3);
    free(got);
}

static void across_file_systems_payloads_are_copied(void **state) {
    const char *run = test_path(state, "run.daf");
    struct stat here, there;
    char elsewhere[] = "/var/tmp/daf-zarr-XXXXXX", zarr[64];
    make_run(run);
    if (!mkdtemp(elsewhere) || stat(run, &here) != 0 || stat(elsewhere, &there) != 0 ||
        here.st_dev == there.st_dev) {
        test_remove_tree(elsewhere);
        skip();
    }
    snprintf(zarr, sizeof zarr, "%s/run.daf.zarr", elsewhere);
    daf_zarr_options options;
    daf_zarr_options_init(&options);
    options.strict = true;
    FAILS(DAF_ERR_UNSUPPORTED, "cannot be linked", daf_zarr_export(NULL, run, zarr, &options, e));
    assert_int_equal(test_count_files(elsewhere), 0);
    daf_zarr_report report;
    OK(daf_zarr_export(&report, run, zarr, NULL, e));
    assert_true(report.n_copied == 2 && report.copied_bytes == 15 && report.n_linked == 0);
    test_remove_tree(elsewhere);
}

/* ---- refusals */

static void what_cannot_be_converted_is_refused_and_leaves_nothing(void **state) {
    const char *run = test_path(state, "run.daf"), *zarr = test_path(state, "run.daf.zarr");
    const char *folder = test_path(state, ".");
    char path[512];
    daf *d;
    make_run(run);
    FAILS(DAF_ERR_ARG, "must end with .daf.zarr",
          daf_zarr_export(NULL, run, test_path(state, "run.zarr"), NULL, e));
    FAILS(DAF_ERR_UNSUPPORTED, "zip-backed",
          daf_zarr_export(NULL, run, test_path(state, "x.daf.zarr.zip"), NULL, e));
    FAILS(DAF_ERR_NOT_DAF, "not a daf directory",
          daf_zarr_export(NULL, test_path(state, "none.daf"), zarr, NULL, e));
    FAILS(DAF_ERR_NOT_DAF, "not a daf zarr directory",
          daf_zarr_import(NULL, run, test_path(state, "x.daf"), NULL, e));
    FAILS(DAF_ERR_NOT_DAF, "no such directory: ", daf_open(&d, zarr, "r", NULL, e));
    unsigned before = test_count_files(folder);
    snprintf(path, sizeof path, "%s/vectors/item/value.data", run);
    test_write_file(path, "12345", 5);
    FAILS(DAF_ERR_TRUNCATED, "value.data", daf_zarr_export(NULL, run, zarr, NULL, e));
    assert_int_equal(test_count_files(folder), before);
    test_write_file(path, "123456789abc", 12);
    OK(daf_zarr_export(NULL, run, zarr, NULL, e));
    FAILS(DAF_ERR_EXISTS, "destination already exists", daf_zarr_export(NULL, run, zarr, NULL, e));
    FAILS(DAF_ERR_EXISTS, "destination already exists", daf_zarr_import(NULL, zarr, run, NULL, e));
    FAILS(DAF_ERR_UNSUPPORTED, "for reading only", daf_open(&d, zarr, "r+", NULL, e));
}

static int overwrite_at(void *context, const daf_io *io, daf_error *err) {
    static const int8_t values[3] = {1, 2, 3};
    daf_set_options o;
    daf_options options;
    daf *d;
    daf_options_init(&options);
    daf_set_options_init(&o);
    options.io = io;
    o.overwrite = true;
    int rc = daf_open(&d, context, "r+", &options, err);
    if (rc)
        return rc;
    rc = daf_set_vector(d, "item", "value", DAF_INT8, values, 3, &o, err);
    daf_free(d);
    return rc;
}

/* What is half changed is no source, until it has been undone. */
static void an_interrupted_source_is_refused(void **state) {
    const char *run = test_path(state, "run.daf"), *zarr = test_path(state, "run.daf.zarr");
    const char *backup = test_path(state, "run.daf/.reorder.backup");
    const char *journal = test_path(state, "run.daf/.daf.journal");
    unsigned n_refused = 0;
    bool killed = true;
    make_run(run);
    assert_int_equal(mkdir(backup, 0777), 0);
    FAILS(DAF_ERR_UNSUPPORTED, "must be rolled back first", daf_zarr_export(NULL, run, zarr, NULL, e));
    assert_false(test_exists(zarr));
    assert_int_equal(rmdir(backup), 0);
    for (unsigned n = 1; killed; n++) {
        struct stat st;
        test_remove_tree(run);
        make_run(run);
        killed = test_killed_at(n, overwrite_at, (void *)(uintptr_t)run);
        if (stat(journal, &st) == 0 && st.st_size > 0) {
            daf_error err = {0};
            int rc = daf_zarr_export(NULL, run, zarr, NULL, &err);
            if (rc == 0) { /* half a journal: the change has not begun */
                test_remove_tree(zarr);
                continue;
            }
            assert_int_equal(rc, DAF_ERR_UNSUPPORTED);
            assert_non_null(strstr(err.text, "must be undone first"));
            assert_false(test_exists(zarr));
            n_refused++;
        }
    }
    assert_true(n_refused > 2);
}

static void names_that_zarr_cannot_hold_are_refused(void **state) {
    static const char *const names[] = {"zarr.json", "__x", "...", "a\\b"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[32];
        daf *d;
        daf_scalar s = daf_scalar_int64(1);
        snprintf(name, sizeof name, "run-%zu.daf", i);
        const char *run = test_path(state, name);
        snprintf(name, sizeof name, "run-%zu.daf.zarr", i);
        const char *zarr = test_path(state, name);
        OK(daf_open(&d, run, "w", NULL, e));
        OK(daf_set_scalar(d, names[i], &s, NULL, e));
        OK(daf_close(d, e));
        FAILS(DAF_ERR_NAME, "Zarr tree", daf_zarr_export(NULL, run, zarr, NULL, e));
        assert_false(test_exists(zarr));
    }
}

/* One thing of the tree is spoiled; the call that meets it says which. */
typedef struct defect {
    const char *file, *content;
    int code;
    const char *part;
} defect;

#define ARRAY(type, shape, rest)                                                                             \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":" shape ",\"data_type\":\"" type                   \
    "\",\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[3]}},"                      \
    "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0," rest "}"
#define BYTES "\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]"

static const defect defects[] = {
    {"vectors/item/value/zarr.json", "{", DAF_ERR_CORRUPT, "vectors/item/value/zarr.json: not valid JSON"},
    {"vectors/item/value/zarr.json", "{\"zarr_format\":2}", DAF_ERR_UNSUPPORTED, "not of Zarr format 3"},
    {"vectors/item/value/zarr.json", ARRAY("float32", "[4]", BYTES), DAF_ERR_CORRUPT,
     "its shape is not that of its axes"},
    {"vectors/item/value/zarr.json", ARRAY("float32", "[3,1]", BYTES), DAF_ERR_CORRUPT, "chunk_shape"},
    {"vectors/item/value/zarr.json", ARRAY("complex64", "[3]", BYTES), DAF_ERR_UNSUPPORTED,
     "data_type \"complex64\""},
    {"vectors/item/value/zarr.json", ARRAY("float32", "[3]", "\"codecs\":[\"bytes\",\"lzma\"]"),
     DAF_ERR_UNSUPPORTED, "codec \"lzma\""},
    {"vectors/item/value/zarr.json", ARRAY("float32", "[3]", "\"codecs\":[]"), DAF_ERR_CORRUPT, "codecs"},
    {"vectors/item/value/zarr.json", ARRAY("float32", "[3]", "\"codecs\":[\"gzip\"]"), DAF_ERR_CORRUPT,
     "codecs"},
    {"vectors/item/value/zarr.json", ARRAY("string", "[3]", BYTES), DAF_ERR_CORRUPT,
     "do not fit the data type"},
    {"vectors/item/value/zarr.json",
     ARRAY("float32", "[3]", BYTES ",\"storage_transformers\":[{\"name\":\"x\"}]"), DAF_ERR_UNSUPPORTED,
     "storage transformer \"x\""},
    {"vectors/item/value/zarr.json",
     ARRAY("float32", "[3]", BYTES ",\"attributes\":{\"daf_packed_format\":\"other\"}"), DAF_ERR_UNSUPPORTED,
     "daf_packed_format \"other\""},
    {"vectors/item/value/c/0", "123456789", DAF_ERR_CORRUPT, "another size than its chunk's shape"},
    {"vectors/item/value/c/0", "123456789abcd", DAF_ERR_CORRUPT, "another size than its chunk's shape"},
    {"axes/item/c/0", "\3\0\0\0\1\0\0\0a\1\0\0\0a\1\0\0\0c", DAF_ERR_CORRUPT, "not unique"},
    {"axes/item/c/0", "\2\0\0\0\1\0\0\0a\1\0\0\0b", DAF_ERR_CORRUPT, "another number of texts"},
    {"axes/item/c/0", "\3\0\0\0\1\0\0\0a\1\0\0\0\n\1\0\0\0c", DAF_ERR_VALUE, "axes/item"},
    {"axes/item/c/0", "\3\0\0\0\1\0\0\0a\1\0\0\0\r\1\0\0\0c", DAF_ERR_VALUE, "axes/item"},
    {"axes/item/c/0", "\3\0\0\0\1\0\0\0a\377\0\0\0b\1\0\0\0c", DAF_ERR_CORRUPT, "reach past its end"},
    {"zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{\"daf\":[1,1]}}",
     DAF_ERR_VERSION, "incompatible format version: 1.1"},
    {"zarr.json", "{\"zarr_format\":3,\"node_type\":\"group\"}", DAF_ERR_NOT_DAF, "not a daf data set"},
};

static size_t content_bytes(const defect *f) {
    return strncmp(f->file, "axes", 4) == 0 ? f->content[0] == 2 ? 14 : 19 : strlen(f->content);
}

static void each_defect_of_a_tree_is_refused(void **state) {
    const char *run = test_path(state, "run.daf"), *zarr = test_path(state, "run.daf.zarr");
    const char *broken = test_path(state, "broken.daf.zarr"), *to = test_path(state, "to.daf");
    const char *folder = test_path(state, ".");
    make_run(run);
    OK(daf_zarr_export(NULL, run, zarr, NULL, e));
    for (size_t i = 0; i < sizeof defects / sizeof defects[0]; i++) {
        char path[512];
        test_remove_tree(broken);
        test_copy_tree(zarr, broken);
        snprintf(path, sizeof path, "%s/%s", broken, defects[i].file);
        test_write_file(path, defects[i].content, content_bytes(&defects[i]));
        unsigned before = test_count_files(folder);
        FAILS(defects[i].code, defects[i].part, daf_zarr_import(NULL, broken, to, NULL, e));
        assert_int_equal(test_count_files(folder), before);
    }
}

/* Chunks that are not there are all fill values. */
static void missing_chunks_are_fill_values(void **state) {
    const char *run = test_path(state, "run.daf"), *zarr = test_path(state, "run.daf.zarr");
    const char *back = test_path(state, "back.daf");
    static const char node[] =
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[3],\"data_type\":\"float32\",\"chunk_grid\":"
        "{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2]}},\"chunk_key_encoding\":{\"name\":"
        "\"v2\"},"
        "\"fill_value\":\"-Infinity\",\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
        "]}";
    char path[512];
    daf *d;
    daf_array *v;
    make_run(run);
    OK(daf_zarr_export(NULL, run, zarr, NULL, e));
    snprintf(path, sizeof path, "%s/vectors/item/value/zarr.json", zarr);
    test_write_file(path, node, sizeof node - 1);
    snprintf(path, sizeof path, "%s/vectors/item/value/1", zarr);
    test_write_file(path, "\x3f\xc0\0\0\0\0\0\0", 8); /* 1.5, and padding */
    OK(daf_zarr_import(NULL, zarr, back, NULL, e));
    OK(daf_open(&d, back, "r", NULL, e));
    OK(daf_get_vector(d, &v, "item", "value", e));
    const float *values = daf_array_values(v);
    assert_true(values[0] < -1e38f && values[1] < -1e38f && values[2] == 1.5f);
    daf_array_free(v);
    OK(daf_close(d, e));
}

/* ---- kills */

typedef struct act_paths {
    const char *from, *to;
} act_paths;

static int act_export(void *context, const daf_io *io, daf_error *err) {
    const act_paths *p = context;
    daf_zarr_options options = {.io = io, .sync = true};
    return daf_zarr_export(NULL, p->from, p->to, &options, err);
}

static int act_import(void *context, const daf_io *io, daf_error *err) {
    const act_paths *p = context;
    daf_zarr_options options = {.io = io, .sync = true};
    return daf_zarr_import(NULL, p->from, p->to, &options, err);
}

static void survives(const char *from, const char *to, const char *expected, const char *folder,
                     test_act act) {
    act_paths p = {from, to};
    bool killed = true;
    for (unsigned n = 1; killed; n++) {
        killed = test_killed_at(n, act, &p);
        if (killed && !test_exists(to))
            assert_int_equal(act(&p, &daf__system_io, NULL), 0);
        test_same_tree(to, expected);
        test_remove_tree(to);
        assert_int_equal(test_count_files(folder), 0);
    }
}

static void a_killed_conversion_leaves_all_or_nothing(void **state) {
    const char *run = test_path(state, "run.daf"), *zarr = test_path(state, "run.daf.zarr");
    const char *back = test_path(state, "back.daf"), *folder = test_path(state, "work");
    make_run(run);
    OK(daf_zarr_export(NULL, run, zarr, NULL, e));
    OK(daf_zarr_import(NULL, zarr, back, NULL, e));
    assert_int_equal(mkdir(folder, 0777), 0);
    survives(run, test_path(state, "work/run.daf.zarr"), zarr, folder, act_export);
    survives(zarr, test_path(state, "work/run.daf"), back, folder, act_import);
}

static void a_failing_call_leaves_nothing(void **state) {
    const char *run = test_path(state, "run.daf"), *zarr = test_path(state, "run.daf.zarr");
    const char *folder = test_path(state, "work"), *to = test_path(state, "work/run.daf.zarr");
    const char *back = test_path(state, "work/run.daf");
    make_run(run);
    OK(daf_zarr_export(NULL, run, zarr, NULL, e));
    assert_int_equal(mkdir(folder, 0777), 0);
    for (unsigned way = 0; way < 2; way++) {
        act_paths p = {way ? zarr : run, way ? back : to};
        bool fired = true;
        for (unsigned n = 1; fired; n++) {
            test_faults f = {.kind = TEST_FAIL_ONCE, .at = n, .os_errno = n % 2 ? EIO : ENOSPC};
            daf_io io = test_faulty_io(&f);
            daf_error err = {.code = 0};
            int rc = way ? act_import(&p, &io, &err) : act_export(&p, &io, &err);
            fired = f.fired;
            assert_true(rc == 0 || (err.code == rc && err.text[0]));
            assert_int_equal(test_exists(p.to), rc == 0 || test_exists(p.to));
            test_remove_tree(p.to);
        }
        OK(way ? daf_zarr_import(NULL, p.from, p.to, NULL, e) : daf_zarr_export(NULL, p.from, p.to, NULL, e));
        test_remove_tree(p.to);
        assert_int_equal(test_count_files(folder), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exports_are_the_trees_of_the_fixtures, test_setup, test_teardown),
        cmocka_unit_test(each_tree_reads),
        cmocka_unit_test_setup_teardown(each_tree_is_imported, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(a_round_trip_gives_every_file_back, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(julias_tree_becomes_the_directory_of_the_fixture, test_setup,
                                        test_teardown),
        cmocka_unit_test_setup_teardown(shards_without_index_are_written_anew, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(payloads_are_one_file_in_both_forms, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(odd_bools_are_normalised, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(across_file_systems_payloads_are_copied, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_converted_is_refused_and_leaves_nothing, test_setup,
                                        test_teardown),
        cmocka_unit_test_setup_teardown(an_interrupted_source_is_refused, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(names_that_zarr_cannot_hold_are_refused, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(each_defect_of_a_tree_is_refused, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(missing_chunks_are_fill_values, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(a_killed_conversion_leaves_all_or_nothing, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(a_failing_call_leaves_nothing, test_setup, test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

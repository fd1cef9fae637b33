/* Archives: paths, the bytes of each append, torn states, sharing, batches, archives of other programs. */
#include "archive_support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "archive.h"
#include "archive_decode.h"
#include "base/bytes.h"

static uint64_t size_of(const char *path) {
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return (uint64_t)st.st_size;
}

/* ---- paths */

static void paths_are_taken_apart(void **state) {
    static const struct {
        const char *path, *message;
    } wrong[] = {
        {"x.dafs.zip#/", "empty group name after '#/' in ZipDaf path: x.dafs.zip#/"},
        {"x.dafs.zip#/a.dafs.zip#/b", "can't parse as <stem>.dafs.zip#/<group>: x.dafs.zip#/a.dafs.zip#/b"},
        {"x.daf.zip#/a",
         "can't address a sub-daf in a singular ZipDaf path; use .dafs.zip#/<group>: x.daf.zip#/a"},
        {"x.daf.zip#",
         "can't address a sub-daf in a singular ZipDaf path; use .dafs.zip#/<group>: x.daf.zip#"},
        {"x.dafs.zip", "missing '#/<group>' in plural ZipDaf path: x.dafs.zip"},
        {"x.zip",
         "can't parse as ZipDaf path: x.zip\nexpected one of: <stem>.daf.zip, <stem>.dafs.zip#/<group>"},
        {"x.dafs.zip#a", "can't parse as ZipDaf path: x.dafs.zip#a\nexpected one of"},
    };
    static const char *const bad_groups[] = {"a//b", "/a", "a/", ".", "a/..", "../a", "\xff"};
    daf *d;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        for (unsigned mode = 0; mode < 4; mode++)
            FAILS(DAF_ERR_ARG, wrong[i].message,
                  daf_open(&d, wrong[i].path, ((const char *[]){"r", "r+", "w+", "w"})[mode], NULL, e));
    for (size_t i = 0; i < sizeof bad_groups / sizeof bad_groups[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "x.dafs.zip#/%s", bad_groups[i]);
        FAILS(DAF_ERR_NAME, "the group", daf_open(&d, test_path(state, name), "w+", NULL, e));
    }
    assert_false(test_exists(test_path(state, "x.dafs.zip")));
}

static void what_is_not_there_is_named(void **state) {
    const char *archive = test_path(state, "a.daf.zip"), *group = test_path(state, "a.dafs.zip#/g");
    char message[400];
    daf *d;
    snprintf(message, sizeof message, "no such file: %s", archive);
    FAILS(DAF_ERR_NOT_DAF, message, daf_open(&d, archive, "r", NULL, e));
    FAILS(DAF_ERR_NOT_DAF, message, daf_open(&d, archive, "r+", NULL, e));
    snprintf(message, sizeof message,
             "can't truncate a sub-daf inside a ZipDaf; the ZIP backend is append-only: %s", group);
    FAILS(DAF_ERR_UNSUPPORTED, message, daf_open(&d, group, "w", NULL, e));
    copy_file(FIXTURE("exact-bytes/step-0.daf.zip"), archive);
    snprintf(message, sizeof message, "not a daf data set: %s", archive);
    FAILS(DAF_ERR_NOT_DAF, message, daf_open(&d, archive, "r", NULL, e));
    FAILS(DAF_ERR_NOT_DAF, message, daf_open(&d, archive, "r+", NULL, e));
    copy_file(FIXTURE("exact-bytes/step-1.daf.zip"), test_path(state, "a.dafs.zip"));
    snprintf(message, sizeof message, "not a daf data set: %s", group);
    FAILS(DAF_ERR_NOT_DAF, message, daf_open(&d, group, "r", NULL, e));
    OK(daf_open(&d, group, "w+", NULL, e));
    set_integer(d, "n", 1);
    OK(daf_close(d, e));
    OK(daf_open(&d, group, "r", NULL, e));
    has_integer(d, "n", 1);
    OK(daf_close(d, e));
    FAILS(DAF_ERR_EXISTS, "no ZIP archive; it will not be replaced",
          (test_write_file(test_path(state, "b.daf.zip"), "dear diary", 10),
           daf_open(&d, test_path(state, "b.daf.zip"), "w", NULL, e)));
    assert_int_equal(mkdir(test_path(state, "c.daf.zip"), 0777), 0); /* a directory may be called so */
    OK(daf_open(&d, test_path(state, "c.daf.zip"), "w+", NULL, e));
    OK(daf_close(d, e));
    assert_true(test_exists(test_path(state, "c.daf.zip/daf.json")));
}

static void versions_are_checked(void **state) {
    const char *path = test_path(state, "a.daf.zip");
    size_t bytes;
    char *content = test_read_file(FIXTURE("exact-bytes/step-2.daf.zip"), &bytes), message[300];
    daf *d;
    assert_memory_equal(content + 64, "{\"version\":[1,1]}\n", 18);
    content[64 + 14] = '2';
    char *central = memmem(content, bytes, "PK\1\2", 4); /* of the same entry, the first one */
    assert_non_null(central);
    bytes_store32((uint8_t *)central + 16, (uint32_t)crc32_z(0, (const Bytef *)content + 64, 18));
    test_write_file(path, content, bytes);
    snprintf(message, sizeof message,
             "incompatible format version: 1.2\nthe code supports version: 1.1\nin daf zip archive: %s",
             path);
    FAILS(DAF_ERR_VERSION, message, daf_open(&d, path, "r", NULL, e));
    free(content);
}

/* ---- exact bytes */

static void step_is(unsigned n, const char *path) {
    char step[512];
    snprintf(step, sizeof step, FIXTURE("exact-bytes/step-%u.daf.zip"), n);
    same_file(step, path);
}

static void each_append_leaves_the_specified_bytes(void **state) {
    static const char *const cell[] = {"A", "B", "C"};
    daf_scalar version = daf_scalar_string("1.0"), yes = daf_scalar_bool(true);
    for (unsigned way = 0; way < 3; way++) {
        char name[32];
        daf *d;
        snprintf(name, sizeof name, "a%u.daf.zip", way);
        const char *path = test_path(state, name);
        if (way == 1)
            copy_file(FIXTURE("exact-bytes/step-0.daf.zip"), path); /* an archive without entries */
        OK(daf_open(&d, path, way == 2 ? "w" : "w+", NULL, e));
        step_is(1, path);
        OK(daf_set_scalar(d, "version", &version, NULL, e));
        step_is(2, path);
        OK(daf_add_axis(d, "cell", cell, 3, e));
        step_is(3, path);
        OK(daf_set_scalar(d, "é", &yes, NULL, e));
        step_is(4, path);
        OK(daf_close(d, e));
        step_is(4, path);
    }
}

/* One commit of many leaves the bytes that many commits leave. */
static void a_batch_leaves_the_same_bytes(void **state) {
    static const char *const cell[] = {"A", "B", "C"};
    const char *path = test_path(state, "a.daf.zip");
    daf_scalar version = daf_scalar_string("1.0"), yes = daf_scalar_bool(true);
    daf *d, *other;
    bool there;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_open(&other, path, "r", NULL, e));
    OK(daf_batch_begin(d, e));
    OK(daf_set_scalar(d, "version", &version, NULL, e));
    OK(daf_add_axis(d, "cell", cell, 3, e));
    OK(daf_set_scalar(d, "é", &yes, NULL, e));
    step_is(1, path);
    OK(daf_has_scalar(other, &there, "version", e)); /* one store for the process */
    assert_true(there);
    FAILS(DAF_ERR_EXISTS, "exists already", daf_set_scalar(d, "version", &version, NULL, e));
    OK(daf_batch_commit(d, e));
    step_is(4, path);
    OK(daf_close(d, e));
    OK(daf_close(other, e));
}

/* What a batch has staged goes with the handle, when nobody commits it. */
static void an_abandoned_batch_leaves_nothing(void **state) {
    const char *path = test_path(state, "a.daf.zip");
    daf *d, *other;
    bool there;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_open(&other, path, "r+", NULL, e));
    OK(daf_batch_begin(d, e));
    OK(daf_batch_begin(other, e));
    set_integer(d, "n", 1);
    set_integer(other, "m", 2);
    set_integer(d, "k", 3);
    daf_free(d);
    OK(daf_has_scalar(other, &there, "n", e));
    assert_false(there);
    has_integer(other, "m", 2);
    set_integer(other, "n", 4);
    OK(daf_close(other, e));
    OK(daf_open(&d, path, "r", NULL, e));
    has_integer(d, "m", 2);
    has_integer(d, "n", 4);
    OK(daf_has_scalar(d, &there, "k", e));
    assert_false(there);
    OK(daf_close(d, e));
}

static void an_index_is_stripped(void **state) {
    const char *path = test_path(state, "a.daf.zip");
    daf *d;
    copy_file(FIXTURE("exact-bytes/step-5.daf.zip"), path);
    OK(daf_open(&d, path, "r", NULL, e));
    has_integer(d, "n", 5);
    OK(daf_close(d, e));
    step_is(5, path);
    OK(daf_open(&d, path, "r+", NULL, e));
    step_is(6, path);
    has_integer(d, "n", 5);
    OK(daf_close(d, e));
    OK(daf_open(&d, path, "r+", NULL, e)); /* nothing to strip: nothing is written */
    OK(daf_close(d, e));
    step_is(6, path);
}

static void only_the_own_index_is_stripped(void **state) {
    const char *a = test_path(state, "a.dafs.zip#/a"), *b = test_path(state, "a.dafs.zip#/b");
    const char *path = test_path(state, "a.dafs.zip"), *plain = test_path(state, "a.daf.zip");
    daf *d;
    copy_file(FIXTURE("exact-bytes/step-5.daf.zip"), plain);
    assert_int_equal(rename(plain, path), 0);
    OK(daf_open(&d, a, "w+", NULL, e));
    set_integer(d, "n", 1);
    OK(daf_close(d, e));
    OK(daf_open(&d, b, "w+", NULL, e));
    OK(daf_close(d, e));
    assert_int_equal(rename(path, plain), 0);
    size_t bytes;
    char *content = test_read_file(plain, &bytes);
    assert_non_null(memmem(content + bytes - 1200, 1200, "metadata.json", 13));
    free(content);
    OK(daf_open(&d, plain, "r+", NULL, e));
    OK(daf_close(d, e));
    content = test_read_file(plain, &bytes);
    assert_null(memmem(content + bytes - 1000, 1000, "metadata.json", 13));
    free(content);
}

/* Appendix D. */
static void the_first_entry_lies_as_told(void **state) {
    const char *path = test_path(state, "a.daf.zip");
    static const uint8_t padding[] = {0xF1, 0xDA, 2, 0, 0, 0};
    uint8_t end[DAF__ZIP_END_BYTES];
    size_t bytes;
    daf *d;
    daf__zip_put_end(end, 0, 0, 0);
    char *empty = test_read_file(FIXTURE("exact-bytes/step-0.daf.zip"), &bytes);
    assert_int_equal(bytes, 98);
    assert_memory_equal(empty, end, 98);
    free(empty);
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_close(d, e));
    uint8_t *c = (uint8_t *)test_read_file(path, &bytes);
    assert_int_equal(bytes, 262);
    assert_int_equal(bytes_load16(c + 28), 26);
    assert_memory_equal(c + 58, padding, sizeof padding);
    assert_memory_equal(c + 64, "{\"version\":[1,1]}\n", 18);
    assert_memory_equal(c + 82, "PK\1\2", 4);
    free(c);
}

/* All paddings there are: 0 and 4 to 11. */
static void data_are_aligned(void **state) {
    const char *path = test_path(state, "a.daf.zip");
    bool seen[DAF__ZIP_MAX_PADDING + 1] = {false};
    daf *d;
    daf_scalar s = daf_scalar_string("");
    for (uint64_t offset = 0; offset < 8; offset++)
        for (size_t name = 1; name < 9; name++) {
            uint8_t local[256];
            daf__zip_entry e = {
                .name = (const uint8_t *)"xxxxxxxxx", .name_bytes = (uint16_t)name, .offset = offset};
            size_t n = daf__zip_put_aligned_local(local, &e), padding = n - 30 - name - 20;
            assert_int_equal((offset + n) % 8, 0);
            assert_int_equal(daf__zip_aligned_data(offset, name), offset + n);
            assert_true(padding == 0 || (padding >= 4 && padding <= 11));
            assert_int_equal(bytes_load16(local + 28), 20 + padding);
            seen[padding] = true;
        }
    for (size_t i = 4; i < sizeof seen; i++)
        assert_true(seen[i] || i == 8);
    assert_true(seen[0]);
    OK(daf_open(&d, path, "w", NULL, e));
    for (unsigned i = 0; i < 40; i++) {
        char name[64], text[64];
        snprintf(name, sizeof name, "%.*s", (int)i % 7 + 1, "abcdefgh");
        snprintf(name + strlen(name), sizeof name - strlen(name), "%u", i);
        snprintf(text, sizeof text, "%.*s", (int)(i * 5 % 13), "0123456789abcd");
        s.value.s.text = text;
        s.value.s.bytes = strlen(text);
        OK(daf_set_scalar(d, name, &s, NULL, e));
    }
    OK(daf_close(d, e));
    OK(daf_open(&d, path, "r", NULL, e));
    daf_names names;
    OK(daf_list_scalars(d, &names, e));
    assert_int_equal(names.n, 40);
    daf_names_clear(&names);
    OK(daf_close(d, e));
}

/* ---- torn states */

static const char *const torn[] = {"tick1-before-grow",
                                   "tick1-before-grow-large",
                                   "tick2-grown",
                                   "tick2-grown-large",
                                   "tick3-directory-written",
                                   "tick3-directory-written-large",
                                   "tick4-header-written",
                                   "tick4-header-written-large",
                                   "reserved-not-patched",
                                   "beyond-directory-half-written"};

static void torn_states_are_recovered(void **state) {
    for (size_t i = 0; i < sizeof torn / sizeof torn[0]; i++) {
        char from[512], name[32];
        daf *d;
        bool there;
        snprintf(from, sizeof from, FIXTURE("zip-torn/%s.daf.zip"), torn[i]);
        snprintf(name, sizeof name, "a%zu.daf.zip", i);
        const char *path = test_path(state, name);
        copy_file(from, path);
        OK(daf_open(&d, path, "r", NULL, e));
        OK(daf_has_scalar(d, &there, "late", e));
        assert_false(there);
        OK(daf_close(d, e));
        same_file(from, path); /* a reader writes nothing */
        OK(daf_open(&d, path, "r+", NULL, e));
        same_file(FIXTURE("zip-torn/tick1-before-grow.daf.zip"), path);
        set_integer(d, "late", 7);
        OK(daf_close(d, e));
        OK(daf_open(&d, path, "r", NULL, e));
        has_integer(d, "late", 7);
        OK(daf_close(d, e));
    }
}

/* Cut anywhere: what is whole in front of the cut is there. */
static void an_archive_cut_at_any_byte(void **state) {
    const char *path = test_path(state, "a.daf.zip");
    size_t bytes;
    unsigned opened = 0;
    char *content = test_read_file(FIXTURE("exact-bytes/step-4.daf.zip"), &bytes);
    for (size_t n = 0; n < bytes; n++) {
        daf *d;
        daf_error err = {0};
        unlink(path);
        test_write_file(path, content, n);
        if (daf_open(&d, path, "r+", NULL, &err) != 0) {
            assert_true(err.code == DAF_ERR_TRUNCATED || err.code == DAF_ERR_NOT_DAF ||
                        err.code == DAF_ERR_CORRUPT);
            continue;
        }
        opened++;
        set_integer(d, "new", 1);
        OK(daf_close(d, e));
        OK(daf_open(&d, path, "r", NULL, e));
        has_integer(d, "new", 1);
        OK(daf_close(d, e));
    }
    assert_int_equal(opened, bytes - 82); /* from the end of daf.json on */
    free(content);
}

/* ---- a descriptor and its payload */

/* jl appends the descriptor first: when the payload is lost, the property is absent, and cannot be set. */
static void a_descriptor_without_payload(void **state) {
    static const int32_t values[] = {1, 2, 3};
    static const char *const cell[] = {"A", "B", "C"};
    const char *path = test_path(state, "a.daf.zip");
    daf *d;
    daf_array *a;
    bool there;
    daf_names names;
    daf__archive_settings settings = {.io = &daf__system_io, .max_bytes = UINT64_MAX};
    daf__archive_path where;
    daf__store *s;
    daf__out *out;
    daf__change change = {0};
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis(d, "cell", cell, 3, e));
    OK(daf_close(d, e));
    OK(daf__archive_path_parse(&where, AT_FDCWD, path, e));
    OK(daf__archive_store_open(&s, AT_FDCWD, path, &where, (daf__open_mode){.writable = true}, &settings, e));
    OK(s->ops->create(s, &out, e));
    OK(daf__out_append(out, "{\"format\":\"dense\",\"eltype\":\"Int32\"}\n", 36, e));
    OK(daf__change_put(&change, "vectors/cell/age.json", out, e));
    OK(s->ops->create(s, &out, e));
    OK(daf__change_put(&change, "vectors/cell/b.data", out, e)); /* and a payload without descriptor */
    OK(s->ops->apply(s, &change, e));
    daf__change_free(&change);
    s->ops->free(s);
    daf__archive_path_free(&where);
    OK(daf_open(&d, path, "r+", NULL, e));
    OK(daf_has_vector(d, &there, "cell", "age", e));
    assert_false(there);
    OK(daf_list_vectors(d, &names, "cell", e));
    assert_int_equal(names.n, 0);
    daf_names_clear(&names);
    FAILS(DAF_ERR_MISSING, "age", daf_get_vector(d, &a, "cell", "age", e));
    FAILS(DAF_ERR_UNSUPPORTED, "the descriptor is there, but its payload is not",
          daf_set_vector(d, "cell", "age", DAF_INT32, values, 3, NULL, e));
    /* A payload that no descriptor speaks of makes way. */
    OK(daf_set_vector(d, "cell", "b", DAF_INT32, values, 3, NULL, e));
    OK(daf_close(d, e));
    OK(daf_open(&d, path, "r", NULL, e));
    OK(daf_get_vector(d, &a, "cell", "b", e));
    assert_memory_equal(daf_array_values(a), values, sizeof values);
    daf_array_free(a);
    OK(daf_close(d, e));
}

/* ---- what an archive cannot do */

static void archives_are_append_only(void **state) {
    static const char *const cell[] = {"A", "B"};
    static const int32_t values[] = {1, 2, 3, 4};
    const char *path = test_path(state, "a.daf.zip");
    char message[400];
    daf *d;
    daf_set_options overwrite;
    daf_scalar s = daf_scalar_bool(false);
    daf_set_options_init(&overwrite);
    overwrite.overwrite = true;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis(d, "cell", cell, 2, e));
    OK(daf_set_vector(d, "cell", "age", DAF_INT32, values, 2, NULL, e));
    OK(daf_set_matrix(d, "cell", "cell", "m", DAF_INT32, values, 4, NULL, e));
    OK(daf_set_scalar(d, "s", &s, NULL, e));
    uint64_t before = size_of(path);
#define REFUSED(what, call)                                                                                  \
    snprintf(message, sizeof message, "ZipDaf is append-only; can't " what " in: %s", path);                 \
    FAILS(DAF_ERR_UNSUPPORTED, message, call)
    REFUSED("delete scalar: s", daf_delete_scalar(d, "s", e));
    REFUSED("delete axis: cell", daf_delete_axis(d, "cell", e));
    REFUSED("delete vector: cell / age", daf_delete_vector(d, "cell", "age", e));
    REFUSED("delete matrix: cell / cell / m", daf_delete_matrix(d, "cell", "cell", "m", e));
    REFUSED("delete scalar: s", daf_set_scalar(d, "s", &s, &overwrite, e));
    REFUSED("delete vector: cell / age",
            daf_set_vector(d, "cell", "age", DAF_INT32, values, 2, &overwrite, e));
    REFUSED("delete matrix: cell / cell / m",
            daf_set_matrix(d, "cell", "cell", "m", DAF_INT32, values, 4, &overwrite, e));
#undef REFUSED
    FAILS(DAF_ERR_EXISTS, "exists", daf_set_scalar(d, "s", &s, NULL, e));
    FAILS(DAF_ERR_NAME, "", daf_set_scalar(d, "a/b", &s, NULL, e));
    assert_int_equal(size_of(path), before);
    OK(daf_set_scalar(d, "t", &s, &overwrite, e)); /* what is not there is not overwritten */
    OK(daf_close(d, e));
}

static void the_bound_is_honoured(void **state) {
    const char *path = test_path(state, "a.daf.zip");
    daf *d;
    daf_options options;
    daf_scalar s = daf_scalar_bool(false);
    daf_options_init(&options);
    options.zip_max_bytes = 600;
    OK(daf_open(&d, path, "w", &options, e));
    OK(daf_set_scalar(d, "s", &s, NULL, e));
    uint64_t before = size_of(path);
    FAILS(DAF_ERR_LIMIT, "past the limit of 600", daf_set_scalar(d, "t", &s, NULL, e));
    assert_int_equal(size_of(path), before);
    OK(daf_close(d, e));
    options.zip_max_bytes = 0;
    setenv("DAF_ZIP_MAX_FILE_SIZE", "500", 1);
    OK(daf_open(&d, path, "r+", &options, e));
    FAILS(DAF_ERR_LIMIT, "past the limit of 500", daf_set_scalar(d, "t", &s, NULL, e));
    OK(daf_close(d, e));
    unsetenv("DAF_ZIP_MAX_FILE_SIZE");
    OK(daf_open(&d, path, "r+", &options, e));
    OK(daf_set_scalar(d, "t", &s, NULL, e));
    OK(daf_close(d, e));
}

/* ---- sharing */

static void handles_of_a_process_share(void **state) {
    const char *one = test_path(state, "a.dafs.zip#/one"), *two = test_path(state, "a.dafs.zip#/two/b");
    const char *link_path = test_path(state, "link.dafs.zip");
    char message[400];
    daf *a, *b, *c;
    OK(daf_open(&a, one, "w+", NULL, e));
    OK(daf_open(&b, two, "w+", NULL, e));
    OK(daf_open(&c, one, "r", NULL, e));
    for (int64_t i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "n%d", (int)i);
        set_integer(a, name, i);
        set_integer(b, name, -i);
        has_integer(c, name, i);
    }
    daf_scalar s = daf_scalar_bool(false);
    FAILS(DAF_ERR_READ_ONLY, "reading only", daf_set_scalar(c, "x", &s, NULL, e));
    OK(daf_close(a, e));
    set_integer(b, "last", 1);
    OK(daf_close(b, e));
    OK(daf_close(c, e));
    OK(daf_open(&a, one, "r", NULL, e));
    snprintf(message, sizeof message,
             "zip file is already open read-only in this process; release the existing handle before opening "
             "it for "
             "write: %s",
             test_path(state, "a.dafs.zip"));
    FAILS(DAF_ERR_BUSY, message, daf_open(&b, two, "r+", NULL, e));
    FAILS(DAF_ERR_BUSY, message, daf_open(&b, two, "w+", NULL, e));
    assert_int_equal(link(test_path(state, "a.dafs.zip"), link_path), 0); /* another name of the same file */
    FAILS(DAF_ERR_BUSY, "already open read-only",
          daf_open(&b, test_path(state, "link.dafs.zip#/one"), "r+", NULL, e));
    OK(daf_close(a, e));
    OK(daf_open(&b, two, "r+", NULL, e));
    has_integer(b, "n7", -7);
    OK(daf_close(b, e));
}

static void mode_w_replaces(void **state) {
    static const double values[] = {1, 2};
    static const char *const x[] = {"a", "b"};
    const char *path = test_path(state, "a.daf.zip");
    daf *old, *fresh, *reader;
    daf_array *view;
    bool there;
    daf_scalar s = daf_scalar_bool(false);
    OK(daf_open(&old, path, "w", NULL, e));
    OK(daf_add_axis(old, "x", x, 2, e));
    OK(daf_set_vector(old, "x", "v", DAF_FLOAT64, values, 2, NULL, e));
    OK(daf_get_vector(old, &view, "x", "v", e));
    OK(daf_open(&fresh, path, "w", NULL, e));
    set_integer(fresh, "n", 1);
    OK(daf_has_axis(fresh, &there, "x", e));
    assert_false(there);
    OK(daf_has_axis(old, &there, "x", e));
    assert_true(there);
    FAILS(DAF_ERR_IO, "was replaced by a new archive", daf_set_scalar(old, "s", &s, NULL, e));
    assert_memory_equal(daf_array_values(view), values, sizeof values);
    OK(daf_open(&reader, path, "r", NULL, e));
    has_integer(reader, "n", 1);
    OK(daf_close(old, e));
    OK(daf_close(fresh, e));
    OK(daf_close(reader, e));
    assert_memory_equal(daf_array_values(view), values, sizeof values);
    daf_array_free(view);
    assert_false(test_exists(test_path(state, "a.daf.zip.new")));
    OK(daf_open(&reader, path, "r", NULL, e)); /* also beside a reader */
    OK(daf_open(&fresh, path, "w", NULL, e));
    OK(daf_close(fresh, e));
    has_integer(reader, "n", 1);
    OK(daf_close(reader, e));
}

static int in_child(int (*act)(const char *path), const char *path) {
    int status;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(act(path));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int try_to_write(const char *path) {
    daf *d;
    daf_error err;
    int rc = daf_open(&d, path, "r+", NULL, &err);
    if (rc == 0)
        daf_free(d);
    return rc == DAF_ERR_BUSY && strstr(err.text, "another writer") ? 3 : rc ? 1 : 0;
}

static int try_to_replace(const char *path) {
    daf *d;
    int rc = daf_open(&d, path, "w", NULL, NULL);
    if (rc == 0)
        daf_free(d);
    return rc == DAF_ERR_BUSY ? 3 : rc ? 1 : 0;
}

static void one_writing_process_at_a_time(void **state) {
    const char *path = test_path(state, "a.daf.zip");
    daf *d;
    OK(daf_open(&d, path, "w", NULL, e));
    set_integer(d, "n", 1);
    /* The child inherits the list; what it looks for must not be in it. */
    int ready[2], go[2];
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    OK(daf_close(d, e));
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char c;
        if (daf_open(&d, path, "r+", NULL, NULL) != 0 || write(ready[1], "r", 1) != 1 ||
            read(go[0], &c, 1) != 1)
            _exit(1);
        daf_free(d);
        _exit(0);
    }
    char c;
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(in_child(try_to_write, path), 3);
    assert_int_equal(in_child(try_to_replace, path), 3);
    OK(daf_open(&d, path, "r", NULL, e));
    has_integer(d, "n", 1);
    OK(daf_close(d, e));
    assert_int_equal(write(go[1], "g", 1), 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(in_child(try_to_write, path), 0);
    for (unsigned i = 0; i < 2; i++) {
        close(ready[i]);
        close(go[i]);
    }
}

/* ---- views */

static void views_outlive_the_handle_and_growth(void **state) {
    enum { N = 3000, ROUNDS = 60 };
    static int64_t values[N];
    const char *path = test_path(state, "a.daf.zip");
    daf_array *views[ROUNDS];
    daf *d;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "x", 0, 1, N, e));
    for (unsigned r = 0; r < ROUNDS; r++) {
        char name[16];
        for (unsigned i = 0; i < N; i++)
            values[i] = (int64_t)r * N + i;
        snprintf(name, sizeof name, "v%u", r);
        OK(daf_set_vector(d, "x", name, DAF_INT64, values, N, NULL, e));
        OK(daf_get_vector(d, &views[r], "x", name, e));
        assert_true(daf_array_is_mapped(views[r]));
    }
    OK(daf_close(d, e));
    for (unsigned r = 0; r < ROUNDS; r++) {
        const int64_t *v = daf_array_values(views[r]);
        assert_int_equal((uintptr_t)v % 8, 0);
        for (unsigned i = 0; i < N; i++)
            assert_int_equal(v[i], (int64_t)r * N + i);
        daf_array_free(views[r]);
    }
}

/* In a batch, views are of what is staged. */
static void staged_data_are_read(void **state) {
    enum { N = 300000 };
    const char *path = test_path(state, "a.daf.zip");
    int64_t *values = malloc(N * sizeof *values);
    daf_array *before, *after;
    daf *d;
    for (int64_t i = 0; i < N; i++)
        values[i] = i * i;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_batch_begin(d, e));
    OK(daf_add_axis_integers(d, "x", 0, 1, N, e));
    OK(daf_set_vector(d, "x", "v", DAF_INT64, values, N, NULL, e)); /* larger than what is kept in memory */
    assert_int_equal(size_of(path), 262);
    OK(daf_get_vector(d, &before, "x", "v", e));
    OK(daf_batch_commit(d, e));
    OK(daf_get_vector(d, &after, "x", "v", e));
    OK(daf_close(d, e));
    assert_true(daf_array_is_mapped(after));
    assert_memory_equal(daf_array_values(before), values, N * sizeof *values);
    assert_memory_equal(daf_array_values(after), values, N * sizeof *values);
    daf_array_free(before);
    daf_array_free(after);
    free(values);
}

/* ---- size */

/* A batch of many entries rewrites the directory once; each lookup is one step. */
static void a_hundred_thousand_entries(void **state) {
    enum { N = 100000 };
    const char *path = test_path(state, "a.daf.zip");
    char name[32];
    daf_names names;
    daf *d;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_batch_begin(d, e));
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "n%d", i);
        set_integer(d, name, i);
    }
    OK(daf_close(d, e));
    OK(daf_open(&d, path, "r+", NULL, e));
    OK(daf_list_scalars(d, &names, e));
    assert_int_equal(names.n, N);
    daf_names_clear(&names);
    for (int i = 0; i < N; i += 7) {
        snprintf(name, sizeof name, "n%d", i);
        has_integer(d, name, i);
    }
    set_integer(d, "one-more", 1);
    OK(daf_close(d, e));
    OK(daf_open(&d, path, "r", NULL, e));
    has_integer(d, "one-more", 1);
    OK(daf_close(d, e));
}

static void put_at(int fd, const void *data, size_t bytes, uint64_t offset) {
    assert_int_equal(pwrite(fd, data, bytes, (off_t)offset), bytes);
}

/* An entry of 5 GB (zeros, in a sparse file), and what comes behind it. */
static void more_than_4_gigabytes(void **state) {
    const uint64_t big = (uint64_t)5 << 30;
    const char *path = test_path(state, "a.daf.zip");
    uint8_t local[256], central[512], end[DAF__ZIP_END_BYTES];
    daf *d;
    daf_array *v;
    static const char *const x[] = {"a", "b"};
    static const int16_t values[] = {3, -4};
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_close(d, e));
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    /* The CRC is wrong, which nobody may look at: the entry is not the last, and is never decoded. */
    daf__zip_entry e0 = {.name = (const uint8_t *)"other/big.bin",
                         .name_bytes = 13,
                         .flags = DAF__ZIP_UTF8_FLAG,
                         .packed_bytes = big,
                         .raw_bytes = big,
                         .offset = 82};
    size_t n = daf__zip_put_aligned_local(local, &e0), width;
    char first[180];
    assert_int_equal(pread(fd, first, sizeof first, 82), 180);
    size_t first_width = 46 + 8 + 28;
    put_at(fd, local, n, 82);
    daf__zip_entry e1 = {.name = (const uint8_t *)"scalars/n.json",
                         .name_bytes = 14,
                         .flags = DAF__ZIP_UTF8_FLAG,
                         .packed_bytes = 28,
                         .raw_bytes = 28,
                         .crc = 0,
                         .offset = 82 + n + big};
    const char *json = "{\"type\":\"Int64\",\"value\":  5}\n";
    assert_int_equal(strlen(json), 29);
    e1.packed_bytes = e1.raw_bytes = 29;
    daf__archive_whole whole;
    size_t n1 = daf__zip_put_aligned_local(local, &e1);
    put_at(fd, json, 29, e1.offset + n1);
    OK(daf__archive_look(&whole, &daf__system_io, fd, path, e));
    whole.base.size = e1.offset + n1 + 29;
    OK(daf__archive_crc(&e1.crc, &whole.base, e1.offset + n1, 29, e));
    daf__zip_put_aligned_local(local, &e1);
    put_at(fd, local, n1, e1.offset);
    memcpy(central, first, first_width);
    width = first_width + daf__zip_put_central(central + first_width, &e0);
    width += daf__zip_put_central(central + width, &e1);
    uint64_t directory = e1.offset + n1 + 29;
    put_at(fd, central, width, directory);
    daf__zip_put_end(end, 3, width, directory);
    put_at(fd, end, sizeof end, directory + width);
    close(fd);
    OK(daf_open(&d, path, "r+", NULL, e));
    has_integer(d, "n", 5);
    OK(daf_add_axis(d, "x", x, 2, e));
    OK(daf_set_vector(d, "x", "v", DAF_INT16, values, 2, NULL, e));
    OK(daf_get_vector(d, &v, "x", "v", e));
    OK(daf_close(d, e));
    assert_memory_equal(daf_array_values(v), values, sizeof values);
    assert_true(daf_array_is_mapped(v));
    daf_array_free(v);
    assert_true(size_of(path) > big);
    OK(daf_open(&d, path, "r", NULL, e));
    OK(daf_get_vector(d, &v, "x", "v", e));
    assert_memory_equal(daf_array_values(v), values, sizeof values);
    daf_array_free(v);
    OK(daf_close(d, e));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(paths_are_taken_apart),
        TEST(what_is_not_there_is_named),
        TEST(versions_are_checked),
        TEST(each_append_leaves_the_specified_bytes),
        TEST(a_batch_leaves_the_same_bytes),
        TEST(an_abandoned_batch_leaves_nothing),
        TEST(an_index_is_stripped),
        TEST(only_the_own_index_is_stripped),
        TEST(the_first_entry_lies_as_told),
        TEST(data_are_aligned),
        TEST(torn_states_are_recovered),
        TEST(an_archive_cut_at_any_byte),
        TEST(a_descriptor_without_payload),
        TEST(archives_are_append_only),
        TEST(the_bound_is_honoured),
        TEST(handles_of_a_process_share),
        TEST(mode_w_replaces),
        TEST(one_writing_process_at_a_time),
        TEST(views_outlive_the_handle_and_growth),
        TEST(staged_data_are_read),
        TEST(a_hundred_thousand_entries),
        TEST(more_than_4_gigabytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

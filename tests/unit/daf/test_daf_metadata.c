/* metadata.json holds, byte for byte, what the specified appends and rebuilds give: beside a repository that is written call
 * by call stands one that gets the same calls in batches, and after each removal one that is rebuilt from its tree. */
#include "support.h"

#include "handle.h"
#include "metadata.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N_NAMES = 7, N_OPERATIONS = 400 };

static const char *const names[N_NAMES] = {"a", "a.b", "a b", "A", "quo\"te", "tab\tand\\", "ünï"};

typedef struct twins {
    daf *single, *batched;
    const char *path, *batched_path, *copy;
    test_random r;
    bool in_batch;
} twins;

static char *index_of(const char *path, size_t *bytes) {
    char file[600];
    snprintf(file, sizeof file, "%s/metadata.json", path);
    return test_read_file(file, bytes);
}

/* The operation is done to one of the two. */
typedef struct operation {
    unsigned kind, name, axis, columns;
    bool overwrite;
} operation;

static int act(daf *d, const operation *o, daf_error *err) {
    static const double values[4] = {1, 2, 3, 4};
    daf_scalar scalar = o->overwrite ? daf_scalar_int64(-1) : daf_scalar_bool(true);
    daf_type type = o->overwrite ? DAF_INT64 : DAF_FLOAT64;
    daf_set_options set;
    daf_set_options_init(&set);
    set.overwrite = o->overwrite;
    const char *name = names[o->name], *axis = names[o->axis], *columns = names[o->columns];
    switch (o->kind) {
    case 0:
        return daf_set_scalar(d, name, &scalar, &set, err);
    case 1:
        return daf_add_axis_integers(d, axis, 0, 1, 2, err);
    case 2:
        return daf_set_vector(d, axis, name, type, values, 2, &set, err);
    case 3:
        return daf_set_matrix(d, axis, columns, name, type, values, 4, &set, err);
    case 4:
        return daf_delete_scalar(d, name, err);
    case 5:
        return daf_delete_vector(d, axis, name, err);
    case 6:
        return daf_delete_matrix(d, axis, columns, name, err);
    default:
        return o->overwrite ? daf_delete_axis(d, axis, err) : daf_delete_scalar(d, name, err);
    }
}

/* An append leaves what was there but for the last byte. */
static void is_append(const char *before, size_t n_before, const char *after, size_t n_after) {
    assert_true(n_after > n_before && n_before >= 2);
    assert_memory_equal(before, after, n_before - 1);
    if (n_before > 2)
        assert_int_equal(after[n_before - 1], ',');
    assert_memory_equal(after + n_after - 2, "}}", 2);
}

static void is_rebuild(twins *t, const char *after, size_t n_after) {
    char file[600];
    size_t bytes;
    daf *d;
    test_remove_tree(t->copy);
    test_copy_tree(t->path, t->copy);
    snprintf(file, sizeof file, "%s/metadata.json", t->copy);
    assert_int_equal(unlink(file), 0);
    OK(daf_open(&d, t->copy, "r+", NULL, e));
    OK(daf_close(d, e));
    char *rebuilt = index_of(t->copy, &bytes);
    assert_int_equal(bytes, n_after);
    assert_memory_equal(rebuilt, after, bytes);
    free(rebuilt);
}

static void step(twins *t) {
    operation o = {.kind = (unsigned)test_below(&t->r, 8),
                   .name = (unsigned)test_below(&t->r, N_NAMES),
                   .axis = (unsigned)test_below(&t->r, N_NAMES),
                   .columns = (unsigned)test_below(&t->r, N_NAMES),
                   .overwrite = test_below(&t->r, 4) == 0};
    size_t n_before, n_after;
    bool sets = o.kind < 4;
    char *before = index_of(t->path, &n_before);
    int rc = act(t->single, &o, NULL), other = act(t->batched, &o, NULL);
    assert_int_equal(rc, other);
    char *after = index_of(t->path, &n_after);
    if (rc)
        assert_memory_equal(before, after, n_before);
    else if (!sets)
        is_rebuild(t, after, n_after);
    else if (!o.overwrite)
        is_append(before, n_before, after, n_after);
    free(before);
    free(after);
}

/* The same calls give the same bytes, batched or not. */
static void compare(twins *t) {
    size_t n_single, n_batched;
    char *single = index_of(t->path, &n_single), *batched = index_of(t->batched_path, &n_batched);
    assert_string_equal(single, batched);
    free(single);
    free(batched);
}

static void toggle(twins *t) {
    if (t->in_batch) {
        OK(daf_batch_commit(t->batched, e));
        compare(t);
    } else {
        OK(daf_batch_begin(t->batched, e));
    }
    t->in_batch = !t->in_batch;
}

static void bytes_are_those_of_the_specification(void **state) {
    twins t = {.path = test_path(state, "single.daf"),
               .batched_path = test_path(state, "batched.daf"),
               .copy = test_path(state, "copy.daf"),
               .r = {7}};
    OK(daf_open(&t.single, t.path, "w", NULL, e));
    OK(daf_open(&t.batched, t.batched_path, "w", NULL, e));
    for (unsigned i = 0; i < N_OPERATIONS; i++) {
        step(&t);
        if (test_below(&t.r, 10) == 0)
            toggle(&t);
    }
    OK(daf_close(t.single, e));
    OK(daf_close(t.batched, e));
    compare(&t);
}

/* A tree with the index replaced by `text`; the open must leave the right one. */
static void check_repair(const char *path, const char *text, bool kept) {
    char file[600];
    size_t bytes;
    daf *d;
    snprintf(file, sizeof file, "%s/metadata.json", path);
    test_write_file(file, text, strlen(text));
    OK(daf_open(&d, path, "r+", NULL, e));
    OK(daf_close(d, e));
    char *now = test_read_file(file, &bytes);
    if ((strcmp(now, text) == 0) != kept)
        fail_msg("%s\n became\n%s", text, now);
    json_t *index = test_load_json(file);
    assert_int_equal(json_object_size(index), 2);
    json_decref(index);
    free(now);
}

static void other_indices_are_repaired(void **state) {
    static const struct {
        const char *text;
        bool kept;
    } cases[] = {
        {"", false},
        {"{", false},
        {"{}", false},
        {"[]", false},
        {"{\"scalars/a\":{},\"axes/x\":{}}", true},
        {"{\"axes/x\":{}, \"scalars/\\u0061\" : "
         "{\"type\":[1,-2.5e+3,true,false,null,{\"k\":\"\\ud83e\\uddec\"}]}}",
         true},
        {"{\"scalars/a\":{},\"axes/x\":{}}\n", false},
        {"{\"scalars/a\":{},\"axes/x\":{} }", false},
        {"{\"scalars/a\":{},\"axes/x\":{},\"axes/y\":{}}", false},
        {"{\"scalars/a\":{},\"scalars/a\":{}}", false},
        {"{\"scalars/a\":{},\"scalars/a\":{},\"axes/x\":{}}", false},
        {"{\"scalars/a\":{},\"axes/y\":{}}", false},
        {"{\"scalars/a\":{},\"axes/x\":{\"n\":01}}", false},
        {"{\"scalars/a\":{},\"axes/x\":{\"n\":\"\t\"}}", false},
        {"{\"scalars/a\":{},\"axes/x\":{\"n\":\"\xff\"}}", false},
        {"{\"scalars/a\":{},\"axes/x\":{\"n\":\"\\x\"}}", false},
        {"{\"scalars/a\":{},\"axes/x\":{\"n\":1.}}", false},
        {"{\"scalars/a\":{},\"axes/x\":{\"n\":tru}}", false},
        {"{\"scalars/a\":{} \"axes/x\":{}}", false},
        {"{\"scalars/a\":{},\"axes/x\":{}", false},
        {"{\"scalars/a\":{},\"axes/x\":{}}}", false},
    };
    const char *path = test_path(state, "a.daf");
    daf_scalar s = daf_scalar_bool(true);
    daf *d;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_set_scalar(d, "a", &s, NULL, e));
    OK(daf_add_axis_integers(d, "x", 0, 1, 2, e));
    OK(daf_close(d, e));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_repair(path, cases[i].text, cases[i].kept);
}

/* ---- a large one */

enum { N_MANY = 2500, EACH = 100 };

static unsigned count_spares(const char *path) {
    unsigned n = 0;
    DIR *folder = opendir(path);
    struct dirent *entry;
    assert_non_null(folder);
    while ((entry = readdir(folder)))
        n += strncmp(entry->d_name, ".daf.new.", 9) == 0;
    closedir(folder);
    return n;
}

static void set_number(daf *d, unsigned i) {
    char name[32];
    const daf_scalar value = daf_scalar_uint64(i);
    snprintf(name, sizeof name, "scalar number %u", i * 7919 % N_MANY);
    OK(daf_set_scalar(d, name, &value, NULL, e));
}

/* What a reader has opened or mapped stays what it was, while the file is appended to. */
typedef struct reading {
    int fd;
    const char *mapped;
    char *then;
    size_t bytes;
} reading;

static void begin_to_read(reading *r, const char *path, bool map) {
    char file[600];
    snprintf(file, sizeof file, "%s/metadata.json", path);
    r->then = test_read_file(file, &r->bytes);
    r->fd = open(file, O_RDONLY);
    assert_true(r->fd >= 0);
    r->mapped = NULL;
    if (!map)
        return;
    r->mapped = mmap(NULL, r->bytes, PROT_READ, MAP_SHARED, r->fd, 0);
    assert_true(r->mapped != MAP_FAILED);
    close(r->fd);
}

static void end_reading(reading *r) {
    struct stat st;
    char *now = r->mapped ? NULL : malloc(r->bytes + 1);
    if (r->mapped) {
        assert_memory_equal(r->mapped, r->then, r->bytes);
        munmap((void *)(uintptr_t)r->mapped, r->bytes);
    } else {
        assert_int_equal(fstat(r->fd, &st), 0);
        assert_int_equal(st.st_size, r->bytes);
        assert_int_equal(pread(r->fd, now, r->bytes + 1, 0), r->bytes);
        assert_memory_equal(now, r->then, r->bytes);
        close(r->fd);
    }
    free(now);
    free(r->then);
}

static void check_index(const char *path, const char *twin) {
    size_t n, n_twin;
    char *index = index_of(path, &n), *expected = index_of(twin, &n_twin);
    assert_int_equal(n, n_twin);
    assert_memory_equal(index, expected, n);
    free(index);
    free(expected);
}

/* Its bytes are those of the specified appends, whoever reads meanwhile, and nothing stays behind. */
static void a_large_one_is_appended_to(void **state) {
    char path[300], twin[300];
    daf *d, *batched;
    reading r = {.fd = -1};
    daf_verify_summary found;
    snprintf(path, sizeof path, "%s", test_path(state, "single.daf"));
    snprintf(twin, sizeof twin, "%s", test_path(state, "batched.daf"));
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_open(&batched, twin, "w", NULL, e));
    OK(daf_batch_begin(batched, e));
    for (unsigned i = 0; i < N_MANY; i++) {
        bool reads = i % EACH == EACH - 3;
        if (reads)
            begin_to_read(&r, path, i % (2 * EACH) < EACH);
        set_number(d, i);
        set_number(batched, i);
        if (i % EACH == EACH - 1) {
            end_reading(&r);
            OK(daf_batch_commit(batched, e));
            OK(daf_batch_begin(batched, e));
            check_index(path, twin);
            OK(daf_verify(path, NULL, &found, e)); /* beside the writer */
            assert_int_equal(found.n[DAF_CLASS_DAMAGE] + found.n[DAF_CLASS_FAULT], 0);
        }
    }
    assert_int_equal(count_spares(path), 1);
    OK(daf_delete_scalar(d, "scalar number 7", e));
    OK(daf_delete_scalar(batched, "scalar number 7", e));
    OK(daf_batch_commit(batched, e));
    OK(daf_batch_begin(batched, e));
    check_index(path, twin);
    for (unsigned i = 0; i < N_MANY; i++) {
        if (i * 7919 % N_MANY == 7) {
            set_number(d, i);
            set_number(batched, i);
        }
    }
    OK(daf_batch_commit(batched, e));
    check_index(path, twin);
    OK(daf_close(d, e));
    OK(daf_close(batched, e));
    assert_int_equal(count_spares(path), 0);
}

/* A file of that name that has another name too, or that somebody has changed, is left alone. */
static void a_linked_or_changed_one_is_written_anew(void **state) {
    char path[300], index[400], other[300];
    daf *d;
    size_t bytes, n;
    snprintf(path, sizeof path, "%s", test_path(state, "a.daf"));
    snprintf(index, sizeof index, "%s/metadata.json", path);
    snprintf(other, sizeof other, "%s", test_path(state, "linked"));
    OK(daf_open(&d, path, "w", NULL, e));
    for (unsigned i = 0; i < N_MANY - 10; i++)
        set_number(d, i);
    assert_int_equal(link(index, other), 0);
    char *then = test_read_file(other, &bytes);
    for (unsigned i = N_MANY - 10; i < N_MANY - 5; i++)
        set_number(d, i);
    char *now = test_read_file(other, &n);
    assert_int_equal(n, bytes);
    assert_memory_equal(now, then, n);
    free(now);
    free(then);

    usleep(50000); /* so that its time tells of the change */
    FILE *f = fopen(index, "r+");
    assert_non_null(f);
    assert_int_equal(fwrite("[", 1, 1, f), 1);
    assert_int_equal(fclose(f), 0);
    for (unsigned i = N_MANY - 5; i < N_MANY; i++)
        set_number(d, i);
    now = test_read_file(index, &n);
    assert_int_equal(now[0], '{');
    free(now);
    OK(daf_close(d, e));
}

static int add_key(void *context, daf__kind kind, const daf__key *key, daf_error *err) {
    (void)kind;
    return daf__names_add(context, key->text, strlen(key->text), err);
}

/* A walk in no order visits what one in order does. */
static void both_walks_visit_all(void **state) {
    const char *path = test_path(state, "many.daf");
    static const char *const entries[] = {"x", "y"};
    static const int8_t values[] = {1, 2};
    daf_names ordered = {0}, anyhow = {0};
    daf *d;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_batch_begin(d, e));
    OK(daf_add_axis(d, "axis", entries, 2, e));
    for (unsigned i = 0; i < 300; i++) {
        char name[16];
        daf_scalar s = daf_scalar_int64(i);
        snprintf(name, sizeof name, "p%u", i * 7919 % 1000);
        OK(daf_set_scalar(d, name, &s, NULL, e));
        if (i % 10 == 0)
            OK(daf_set_vector(d, "axis", name, DAF_INT8, values, 2, NULL, e));
    }
    OK(daf_batch_commit(d, e));
    OK(daf__walk(d->store, DAF__LIST_FILES, add_key, &ordered, e));
    OK(daf__walk(d->store, DAF__LIST_FILES_ANYHOW, add_key, &anyhow, e));
    assert_int_equal(ordered.n, 331);
    assert_int_equal(anyhow.n, 331);
    daf__names_sort(&ordered);
    daf__names_sort(&anyhow);
    for (size_t i = 0; i < ordered.n; i++)
        assert_string_equal(ordered.names[i], anyhow.names[i]);
    daf_names_clear(&ordered);
    daf_names_clear(&anyhow);
    OK(daf_list_scalars(d, &ordered, e));
    assert_int_equal(ordered.n, 300);
    for (size_t i = 1; i < ordered.n; i++)
        assert_true(strcmp(ordered.names[i - 1], ordered.names[i]) < 0);
    daf_names_clear(&ordered);
    OK(daf_close(d, e));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_are_those_of_the_specification, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(other_indices_are_repaired, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(a_large_one_is_appended_to, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(a_linked_or_changed_one_is_written_anew, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(both_walks_visit_all, test_setup, test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

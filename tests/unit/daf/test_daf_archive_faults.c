/* Faults while an archive is written to: kill -9 before each system call and in the midst of each write, failures of each
 * call, short counts, failing allocations. After the next writable open the file is byte for byte the old archive or the
 * new one; after a failure that could be undone, at once. */
#include "archive_support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocations.h"
#include "base/bytes.h"
#include "faults.h"

enum { N = 200000, FEW = 300 };

static const char *const names[] = {"A", "B", "C"};
static const int16_t few[FEW] = {4, 2, -1};
static int64_t many[N];

/* ---- what is done */

static int set_scalar(daf *d, daf_error *err) {
    daf_scalar s = daf_scalar_string("photons are counted");
    return daf_set_scalar(d, "late", &s, NULL, err);
}

static int add_axis(daf *d, daf_error *err) {
    return daf_add_axis(d, "more", names, 3, err);
}

/* Two entries; the first is larger than what stands in its way. */
static int set_vector(daf *d, daf_error *err) {
    return daf_set_vector(d, "few", "v", DAF_INT16, few, FEW, NULL, err);
}

/* Staged in a file of its own. */
static int set_large(daf *d, daf_error *err) {
    return daf_set_vector(d, "many", "v", DAF_INT64, many, N, NULL, err);
}

static int set_packed(daf *d, daf_error *err) {
    daf_set_options o;
    daf_set_options_init(&o);
    o.packing = DAF_PACK_LARGE;
    o.target_chunk_kb = 64;
    return daf_set_vector(d, "many", "v", DAF_INT64, many, N, &o, err);
}

static int set_batch(daf *d, daf_error *err) {
    int rc = daf_batch_begin(d, err);
    if (rc == 0)
        rc = set_scalar(d, err);
    if (rc == 0)
        rc = add_axis(d, err);
    if (rc == 0)
        rc = set_vector(d, err);
    return rc ? rc : daf_batch_commit(d, err);
}

static int do_nothing(daf *d, daf_error *err) {
    (void)d;
    (void)err;
    return 0;
}

typedef struct action {
    const char *name;
    int (*act)(daf *d, daf_error *err);
    const char *mode, *fixture; /* NULL: the base */
} action;

static const action actions[] = {
    {"scalar", set_scalar, "r+", NULL},
    {"axis", add_axis, "r+", NULL},
    {"vector", set_vector, "r+", NULL},
    {"large vector", set_large, "r+", NULL},
    {"packed vector", set_packed, "r+", NULL},
    {"batch", set_batch, "r+", NULL},
    {"replace", do_nothing, "w", NULL},
    {"strip", do_nothing, "r+", "exact-bytes/step-5"},
    {"strip foreign", do_nothing, "r+", "zip-foreign/deflate"},
    {"strip with comment", do_nothing, "r+", "zip-foreign/extras-zip64-comment"},
    {"first entry", set_scalar, "w+", "exact-bytes/step-0"},
    {"roll back", do_nothing, "r+", "zip-torn/reserved-not-patched"},
    {"cut", do_nothing, "r+", "zip-torn/tick2-grown"},
    {"rebuild", do_nothing, "r+", "zip-torn/beyond-directory-half-written"},
};
enum { N_ACTIONS = sizeof actions / sizeof actions[0] };

static void make_base(const char *path, const action *a) {
    char from[512];
    daf *d;
    for (int64_t i = 0; i < N; i++)
        many[i] = i / 3;
    if (a->fixture) {
        snprintf(from, sizeof from, FIXTURE("%s.daf.zip"), a->fixture);
        copy_file(from, path);
        return;
    }
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "few", 0, 1, FEW, e));
    OK(daf_add_axis_integers(d, "many", 0, 1, N, e));
    set_integer(d, "n", 5);
    OK(daf_close(d, e));
}

typedef struct work {
    const char *path;
    const action *action;
    bool sync;
} work;

static int open_and_act(void *context, const daf_io *io, daf_error *err) {
    const work *w = context;
    daf_options options;
    daf *d;
    daf_options_init(&options);
    options.io = io;
    options.sync = w->sync;
    options.zip_max_bytes = UINT32_MAX;
    int rc = daf_open(&d, w->path, w->action->mode, &options, err);
    if (rc)
        return rc;
    rc = w->action->act(d, err);
    if (rc) {
        daf_free(d);
        return rc;
    }
    return daf_close(d, err);
}

/* ---- before and after */

typedef struct content {
    char *data;
    size_t bytes;
} content;

typedef struct trial {
    work w;
    content before, old, new; /* as given; opened for writing, but not written to; written */
} trial;

static content content_of(const char *path) {
    content c;
    c.data = test_read_file(path, &c.bytes);
    assert_non_null(c.data);
    return c;
}

static bool is(const char *path, const content *c) {
    content now = content_of(path);
    bool same = now.bytes == c->bytes && memcmp(now.data, c->data, c->bytes) == 0;
    free(now.data);
    return same;
}

/* An archive that is never written into again, as others may have mapped it: the old file's place is taken. */
static void put_anew(const trial *t) {
    unlink(t->w.path);
    test_write_file(t->w.path, t->before.data, t->before.bytes);
}

static void begin(trial *t, void **state, const action *a, bool sync) {
    daf_error err = {0};
    daf *d;
    *t = (trial){.w = {.path = test_path(state, "work.daf.zip"), .action = a, .sync = sync}};
    unlink(t->w.path);
    make_base(t->w.path, a);
    t->before = content_of(t->w.path);
    OK(daf_open(&d, t->w.path, "w+", NULL, e));
    OK(daf_close(d, e));
    t->old = content_of(t->w.path);
    put_anew(t);
    if (open_and_act(&t->w, NULL, &err) != 0)
        fail_msg("%s: %s", a->name, err.text);
    t->new = content_of(t->w.path);
}

static void end(trial *t) {
    free(t->before.data);
    free(t->old.data);
    free(t->new.data);
}

/* What anybody finds now, and what the next writer leaves. */
static bool recovers(const trial *t, const char *what, unsigned n) {
    daf_error err = {0};
    daf *d;
    content now = content_of(t->w.path);
    if (daf_open(&d, t->w.path, strcmp(t->w.action->mode, "w+") == 0 ? "w+" : "r", NULL, &err) != 0)
        fail_msg("%s %s at %u: cannot be read: %s", t->w.action->name, what, n, err.text);
    OK(daf_close(d, e));
    free(now.data);
    if (daf_open(&d, t->w.path, "w+", NULL, &err) != 0)
        fail_msg("%s %s at %u: cannot be recovered: %s", t->w.action->name, what, n, err.text);
    OK(daf_close(d, e));
    bool new = is(t->w.path, &t->new);
    if (!new && !is(t->w.path, &t->old))
        fail_msg("%s %s at %u: neither the old archive nor the new one", t->w.action->name, what, n);
    return new;
}

/* ---- kills */

static unsigned kill_each(void **state, const action *a, bool sync) {
    trial t;
    begin(&t, state, a, sync);
    for (unsigned n = 1;; n++) {
        put_anew(&t);
        bool killed = test_killed_at(n, open_and_act, &t.w);
        bool new = recovers(&t, "killed", n);
        if (killed)
            continue;
        assert_true(new);
        end(&t);
        return n;
    }
}

static void each_call_is_killed(void **state) {
    unsigned runs = 0;
    for (unsigned i = 0; i < N_ACTIONS; i++) {
        runs += kill_each(state, &actions[i], i % 2);
    }
    assert_true(runs > 50);
    assert_false(test_exists(test_path(state, "work.daf.zip.new")));
}

static void creating_is_killed(void **state) {
    static const action create = {"create", set_scalar, "w+", NULL};
    work w = {.path = test_path(state, "fresh.daf.zip"), .action = &create};
    bool killed = true;
    daf *d;
    unsigned n = 1;
    for (; killed; n++) {
        unlink(w.path);
        killed = test_killed_at(n, open_and_act, &w);
        if (test_exists(w.path)) { /* then it is whole */
            OK(daf_open(&d, w.path, "r", NULL, e));
            OK(daf_close(d, e));
        }
        OK(daf_open(&d, w.path, "w+", NULL, e));
        OK(daf_close(d, e));
    }
    unlink(w.path);
    OK(daf_open(&d, w.path, "w+", NULL, e));
    OK(daf_close(d, e));
    assert_false(test_exists(test_path(state, "fresh.daf.zip.new")));
    assert_true(n > 6);
}

/* What a killed writer left is recovered by one that is killed itself, and then by one that is not. */
static void recovering_is_killed(void **state) {
    static const action again = {"again", do_nothing, "r+", NULL};
    const char *spare = test_path(state, "again.daf.zip");
    for (unsigned i = 0; i < 3; i++) {
        trial t;
        begin(&t, state, &actions[i], false);
        bool killed = true;
        for (unsigned n = 1; killed; n++) {
            put_anew(&t);
            killed = test_killed_at(n, open_and_act, &t.w);
            trial second = t;
            second.w = (work){.path = spare, .action = &again};
            second.before = content_of(t.w.path);
            bool killed_again = killed;
            for (unsigned m = 1; killed_again; m++) {
                put_anew(&second);
                killed_again = test_killed_at(m, open_and_act, &second.w);
                recovers(&second, "killed again", m);
            }
            free(second.before.data);
        }
        end(&t);
    }
}

/* ---- failures */

static unsigned fail_each(void **state, const action *a, test_fault_kind kind, int os_errno, bool sync) {
    trial t;
    begin(&t, state, a, sync);
    for (unsigned n = 1;; n++) {
        test_faults f = {.kind = kind, .at = n, .os_errno = os_errno};
        daf_io io = test_faulty_io(&f);
        daf_error err = {0};
        put_anew(&t);
        int rc = open_and_act(&t.w, &io, &err);
        if (rc && (err.code != rc || !err.text[0]))
            fail_msg("%s failed at %u without a sentence", a->name, n);
        bool repairs =
            a->fixture && strncmp(a->fixture, "zip-torn", 8) == 0; /* the next open goes on with it */
        if (rc && kind == TEST_FAIL_ONCE && !repairs && !is(t.w.path, &t.before) && !is(t.w.path, &t.old) &&
            !(sync && is(t.w.path, &t.new)))
            fail_msg("%s failed at %u (%s): the archive has changed", a->name, n, err.text);
        bool new = recovers(&t, "failed", n);
        if (rc == 0 && !new)
            fail_msg("%s reported success at %u, but is not there", a->name, n);
        if (!f.fired) {
            end(&t);
            return n;
        }
    }
}

static void each_call_fails(void **state) {
    static const int errors[] = {ENOSPC, EIO};
    unsigned runs = 0;
    for (unsigned i = 0; i < N_ACTIONS; i++) {
        runs += fail_each(state, &actions[i], TEST_FAIL_ONCE, errors[i % 2], i % 3 == 0);
        runs += fail_each(state, &actions[i], TEST_FAIL_FOR_EVER, errors[(i + 1) % 2], i % 3 == 1);
    }
    assert_true(runs > 200);
}

static void short_counts_are_gone_on_from(void **state) {
    for (unsigned i = 0; i < N_ACTIONS; i++) {
        trial t;
        test_faults f = {.short_counts = true};
        daf_io io = test_faulty_io(&f);
        daf_error err = {0};
        begin(&t, state, &actions[i], true);
        put_anew(&t);
        if (open_and_act(&t.w, &io, &err) != 0)
            fail_msg("%s: %s", actions[i].name, err.text);
        assert_true(is(t.w.path, &t.new));
        end(&t);
    }
}

/* The handle goes on after a failure that was undone. */
static void a_handle_survives_a_full_disk(void **state) {
    const char *path = test_path(state, "a.daf.zip");
    daf_options options;
    bool there;
    for (unsigned n = 1;; n++) {
        test_faults f = {.kind = TEST_FAIL_ONCE, .os_errno = ENOSPC};
        daf_io io = test_faulty_io(&f);
        daf_error err;
        daf *d;
        daf_options_init(&options);
        options.io = &io;
        OK(daf_open(&d, path, "w", &options, e));
        set_integer(d, "n", 5);
        OK(daf_batch_begin(d, e));
        OK(set_scalar(d, e));
        f.at = f.calls + n;
        int rc = daf_batch_commit(d, &err);
        f.at = 0;
        if (rc == 0) {
            OK(daf_close(d, e));
            break;
        }
        assert_int_equal(rc, DAF_ERR_IO);
        OK(daf_has_scalar(d, &there, "late", e)); /* staged still */
        assert_true(there);
        OK(daf_batch_commit(d, e));
        has_integer(d, "n", 5);
        OK(daf_close(d, e));
        OK(daf_open(&d, path, "r", NULL, e));
        OK(daf_has_scalar(d, &there, "late", e));
        assert_true(there);
        has_integer(d, "n", 5);
        OK(daf_close(d, e));
    }
}

static void each_allocation_fails(void **state) {
    for (unsigned i = 0; i < N_ACTIONS; i++) {
        trial t;
        begin(&t, state, &actions[i], false);
        for (unsigned n = 1;; n++) {
            daf_error err = {0};
            put_anew(&t);
            test_fail_allocation(n);
            int rc = open_and_act(&t.w, NULL, &err);
            bool fired = test_fail_allocation(0);
            if (rc && (rc != DAF_ERR_NOMEM || err.code != rc))
                fail_msg("%s without memory at %u: %d %s", actions[i].name, n, rc, err.text);
            bool new = recovers(&t, "without memory", n);
            assert_true(new || rc);
            if (!fired)
                break;
        }
        end(&t);
    }
}

/* An entry tells of as many bytes as its method can hold in so few, and of more: memory grows with what it holds. */
static void declared_sizes_take_no_memory(void **state) {
    static const struct {
        const char *file;
        uint64_t most; /* of one byte */
    } cases[] = {{"deflate", 1032}, {"deflate64", 29128}, {"zstd", 32768}, {"bzip2", 1456875}, {"stored", 1}};
    for (unsigned i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        char from[512], name[32];
        size_t bytes;
        daf *d;
        daf_array *a;
        bool impossible = i % 2;
        snprintf(from, sizeof from, TEST_FIXTURES "/daf/zip-foreign/%s.daf.zip", cases[i / 2].file);
        snprintf(name, sizeof name, "a%u.daf.zip", i);
        const char *path = test_path(state, name);
        char *file = test_read_file(from, &bytes), *entry = file + bytes - 64;
        while (memcmp(entry, "axes/item.txt", 13) != 0 || memcmp(entry - 46, "PK\1\2", 4) != 0)
            entry--;
        entry -= 46;
        uint64_t told = bytes_load32(entry + 20) * cases[i / 2].most;
        bytes_store32(entry + 24, (uint32_t)(impossible ? told + cases[i / 2].most : told));
        test_write_file(path, file, bytes);
        free(file);
        OK(daf_open(&d, path, "r", NULL, e));
        test_largest_allocation();
        if (cases[i / 2].most == 1 && !impossible) { /* as it is */
            OK(daf_get_axis(d, &a, "item", e));
            daf_array_free(a);
        } else {
            FAILS(DAF_ERR_CORRUPT, impossible ? "are said to hold" : "cannot be decoded",
                  daf_get_axis(d, &a, "item", e));
        }
        assert_in_range(test_largest_allocation(), 0, 1 << 20);
        OK(daf_close(d, e));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(each_call_is_killed),           TEST(creating_is_killed),
        TEST(recovering_is_killed),          TEST(each_call_fails),
        TEST(short_counts_are_gone_on_from), TEST(a_handle_survives_a_full_disk),
        TEST(each_allocation_fails),         TEST(declared_sizes_take_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

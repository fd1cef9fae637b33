/* Injected faults: short transfers and interruptions change nothing; each error at each call is a clear
 * error; a full disk is a pause; memory may run out anywhere. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "d7_testing.h"
#include "testing.h"

enum { N = 60000, TURN = 7000 };

static const d7_dataset datasets[] = {{"/x", D7_UINT16}, {"/t", D7_UINT64}};

typedef struct fixture {
    memio file;
    d7_io io;
    memcount memory;
    d7_alloc alloc;
    d7_error err;
    uint16_t *x;
    uint8_t *good; /* [n_good] the file when nothing fails */
    size_t n_good;
} fixture;

/* The one recording that all of this is about. Returns what the first failing call returned. */
static int record(fixture *f, size_t buffer_bytes, d7_writer **ret_writer) {
    d7_writer_options o = testing_writer_options(&f->io);
    uint64_t t[500];
    o.alloc = &f->alloc;
    o.overwrite = true;
    o.index_step = 2;
    o.buffer_bytes = buffer_bytes;
    o.attributes = &(d7_attribute){.key = "early", .value = "bird"};
    o.n_attributes = 1;
    *ret_writer = NULL;
    int rc = d7_writer_create(ret_writer, "memory", datasets, 2, &o, &f->err);
    for (size_t from = 0; rc == 0 && from < N; from += TURN) {
        size_t n = N - from < TURN ? N - from : TURN;
        for (size_t i = 0; i < 500; i++)
            t[i] = (from + i) * 1000003;
        rc = d7_writer_append(*ret_writer, 0, f->x + from, n, &f->err);
        if (rc == 0)
            rc = d7_writer_append(*ret_writer, 1, t, 500, &f->err);
        if (rc == 0)
            rc = d7_writer_set_attribute(*ret_writer, from % 2 ? "odd" : "even", "value", &f->err);
        if (rc == 0)
            rc = d7_writer_flush(*ret_writer, &f->err);
    }
    return rc == 0 ? d7_writer_close(*ret_writer, &f->err) : rc;
}

static void fresh_file(fixture *f) {
    memio_free(&f->file);
    f->io = memio_table(&f->file);
}

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    d7_writer *w;
    f->io = memio_table(&f->file);
    f->alloc = memcount_table(&f->memory);
    f->x = testing_noise(11, N);
    *state = f;
    if (record(f, 100000, &w) != 0)
        return -1;
    d7_writer_free(w);
    f->n_good = f->file.n;
    f->good = malloc(f->n_good);
    memcpy(f->good, f->file.data, f->n_good);
    fresh_file(f);
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    bool leak = f->memory.outstanding != 0 || f->file.opened_memory;
    memio_free(&f->file);
    free(f->x);
    free(f->good);
    free(f);
    return leak;
}

static void assert_good(const fixture *f) {
    assert_int_equal(f->file.n, f->n_good);
    assert_memory_equal(f->file.data, f->good, f->n_good);
}

/* What there is of a file is the beginning of the good one. */
static void assert_prefix(const fixture *f) {
    assert_true(f->file.n <= f->n_good);
    assert_memory_equal(f->file.data, f->good, f->file.n);
}

static int read_all(fixture *f) {
    d7_reader_options o = {.io = &f->io, .alloc = &f->alloc};
    d7_reader *r;
    d7_verify_summary s;
    static uint16_t x[N];
    int rc = d7_reader_open(&r, "memory", &o, &f->err);
    if (rc != 0)
        return rc;
    d7_dataset_info info;
    assert_int_equal(d7_reader_dataset(r, 0, &info), 0);
    rc = d7_reader_read(r, 0, 0, (size_t)info.items, x, &f->err);
    if (rc == 0) {
        assert_memory_equal(x, f->x, (size_t)info.items * 2);
        rc = d7_reader_check(r, NULL, NULL, &f->err);
    }
    if (rc == 0)
        rc = d7_reader_verify(r, NULL, NULL, NULL, NULL, &s, &f->err);
    if (rc == 0 && f->file.n == f->n_good)
        assert_int_equal(s.damages, 0);
    d7_reader_free(r);
    return rc;
}

static void short_writes_and_interruptions_change_nothing(void **state) {
    fixture *f = *state;
    static const size_t transfers[] = {0, 1000, 16384, 7};
    for (size_t i = 0; i < 4; i++)
        for (long every = 0; every < 4; every += 3) {
            d7_writer *w;
            fresh_file(f);
            f->file.transfer_max = transfers[i];
            f->file.eintr_every = every;
            assert_int_equal(record(f, 30000, &w), 0);
            d7_writer_free(w);
            assert_good(f);
        }
}

static void short_reads_and_interruptions_change_nothing(void **state) {
    fixture *f = *state;
    static const size_t transfers[] = {0, 1000, 16384, 13};
    memio_set(&f->file, f->good, f->n_good);
    for (size_t i = 0; i < 4; i++) {
        f->file.transfer_max = transfers[i];
        f->file.eintr_every = 2 + (long)i;
        assert_int_equal(read_all(f), 0);
    }
}

/* Every call that can fail fails once: the error says so, and what is on the disk is a beginning of the good
 * file. */
/* By every call that may fail, and the file is not touched any more. */
static void assert_the_first_error_comes_again(fixture *f, d7_writer *w) {
    enum { N_CALLS = 9 };
    uint64_t items = d7_writer_items(w, 0);
    long writes = f->file.calls[MEMIO_PWRITE], syncs = f->file.calls[MEMIO_SYNC];
    for (size_t i = 0; i < N_CALLS; i++) {
        d7_error again = {0};
        const int codes[N_CALLS] = {
            i == 0 ? d7_writer_append(w, 0, f->x, 1, &again) : 0,
            i == 1 ? d7_writer_append_page(w, 0, "page", 4, 1, &again) : 0,
            i == 2 ? d7_writer_end_dataset(w, 0, &again) : 0,
            i == 3 ? d7_writer_set_attribute(w, "key", "value", &again) : 0,
            i == 4 ? d7_writer_put_attributes(w, &again) : 0,
            i == 5 ? d7_writer_flush(w, &again) : 0,
            i == 6 ? d7_writer_sync_data(w, &again) : 0,
            i == 7 ? d7_writer_renamed(w, "another", &again) : 0,
            i == 8 ? d7_writer_close(w, &again) : 0,
        };
        assert_int_equal(codes[i], f->err.code);
        assert_int_equal(again.code, f->err.code);
        assert_int_equal(again.os_errno, f->err.os_errno);
        assert_string_equal(again.text, f->err.text);
    }
    assert_int_equal(f->file.calls[MEMIO_PWRITE], writes);
    assert_int_equal(f->file.calls[MEMIO_SYNC], syncs);
    assert_int_equal(d7_writer_items(w, 0), items);
}

static void each_write_error_is_told(void **state) {
    fixture *f = *state;
    static const enum memio_op ops[] = {MEMIO_OPEN, MEMIO_PWRITE, MEMIO_SYNC, MEMIO_CLOSE};
    static const long calls[] = {1, 8, 2, 1}; /* at least so many there are */
    for (size_t i = 0; i < 4; i++)
        for (long at = 1;; at++) {
            d7_writer *w;
            fresh_file(f);
            f->file.fail_op = ops[i];
            f->file.fail_at = at;
            f->file.fail_times = 1;
            f->file.fail_errno = EIO;
            int rc = record(f, 30000, &w);
            if (f->file.calls[ops[i]] < at) {
                assert_int_equal(rc, 0);
                assert_true(at > calls[i]);
                d7_writer_free(w);
                break;
            }
            assert_int_equal(rc, D7_ERR_IO);
            assert_int_equal(f->err.os_errno, EIO);
            assert_non_null(strstr(f->err.text, "memory: "));
            assert_prefix(f);
            if (!w) { /* creation: nothing is left behind */
                assert_false(f->file.exists);
                continue;
            }
            assert_the_first_error_comes_again(f, w);
            d7_writer_free(w);
            assert_prefix(f);
            assert_null(f->file.opened_memory);
        }
}

/* Goes on after each D7_ERR_NOSPACE by giving the disk a little more room. */
static int persist(fixture *f, int rc) {
    assert_int_equal(rc, D7_ERR_NOSPACE);
    assert_true(f->err.os_errno == ENOSPC || f->err.os_errno == EDQUOT);
    f->file.capacity += 5000;
    return rc;
}

static void full_disk_is_a_pause(void **state) {
    fixture *f = *state;
    d7_writer_options o = testing_writer_options(&f->io);
    for (size_t buffer = 0; buffer <= 100000; buffer += 50000) {
        d7_writer *w;
        long pauses = 0;
        fresh_file(f);
        o.alloc = &f->alloc;
        o.index_step = 2;
        o.buffer_bytes = buffer;
        o.attributes = &(d7_attribute){.key = "early", .value = "bird"};
        o.n_attributes = 1;
        f->file.capacity = 10;
        assert_int_equal(d7_writer_create(&w, "memory", datasets, 2, &o, &f->err), D7_ERR_NOSPACE);
        assert_false(f->file.exists);
        f->file.capacity = 200;
        assert_int_equal(d7_writer_create(&w, "memory", datasets, 2, &o, &f->err), 0);
        for (size_t from = 0; from < N; from += TURN) {
            size_t n = N - from < TURN ? N - from : TURN;
            uint64_t t[500];
            for (size_t i = 0; i < 500; i++)
                t[i] = (from + i) * 1000003;
            while (d7_writer_append(w, 0, f->x + from, n, &f->err) != 0)
                pauses += persist(f, f->err.code) != 0;
            while (d7_writer_append(w, 1, t, 500, &f->err) != 0)
                pauses += persist(f, f->err.code) != 0;
            assert_int_equal(d7_writer_set_attribute(w, from % 2 ? "odd" : "even", "value", &f->err), 0);
            if (from % 3 == 0)
                while (d7_writer_flush(w, &f->err) != 0)
                    pauses += persist(f, f->err.code) != 0;
            assert_prefix(f);
        }
        while (d7_writer_close(w, &f->err) != 0)
            pauses += persist(f, f->err.code) != 0;
        assert_true(pauses > 15);
        assert_good(f);
        assert_int_equal(d7_writer_written_bytes(w), f->n_good);
        d7_writer_free(w);
    }
}

/* A large append is taken whole although the disk fills up in the middle of it; the next call says so. */
static void large_append_is_taken_whole(void **state) {
    fixture *f = *state;
    d7_writer_options o = testing_writer_options(&f->io);
    d7_writer *w;
    o.buffer_bytes = 10000;
    o.alloc = &f->alloc;
    f->file.capacity = 40000;
    assert_int_equal(d7_writer_create(&w, "memory", datasets, 2, &o, &f->err), 0);
    assert_int_equal(d7_writer_append(w, 0, f->x, N, &f->err), 0);
    assert_int_equal(d7_writer_items(w, 0), N);
    assert_int_equal(d7_writer_append(w, 0, f->x, 1, &f->err), D7_ERR_NOSPACE);
    assert_int_equal(d7_writer_items(w, 0), N);
    f->file.capacity = 0;
    assert_int_equal(d7_writer_append(w, 0, f->x, 1, &f->err), 0);
    assert_int_equal(d7_writer_close(w, &f->err), 0);
    d7_writer_free(w);
}

/* A failed sync is final and is never tried again. */
static void failed_sync_is_final(void **state) {
    fixture *f = *state;
    d7_writer_options o = testing_writer_options(&f->io);
    d7_writer *w;
    o.alloc = &f->alloc;
    assert_int_equal(d7_writer_create(&w, "memory", datasets, 2, &o, &f->err), 0);
    assert_int_equal(d7_writer_sync_data(w, &f->err), 0);
    f->file.fail_op = MEMIO_SYNC;
    f->file.fail_at = 2;
    f->file.fail_times = 1;
    f->file.fail_errno = ENOSPC; /* also this one: what was lost nobody knows */
    assert_int_equal(d7_writer_sync_data(w, &f->err), D7_ERR_IO);
    assert_int_equal(d7_writer_sync_data(w, &f->err), D7_ERR_IO);
    assert_int_equal(f->file.calls[MEMIO_SYNC], 2);
    assert_int_equal(f->err.os_errno, ENOSPC);
    assert_the_first_error_comes_again(f, w);
    d7_writer_free(w);
}

/* Memory that runs out at any allocation: an error, nothing leaks, and with memory back the writer goes on.
 */
static void memory_runs_out_while_writing(void **state) {
    fixture *f = *state;
    for (long at = 1;; at++) {
        d7_writer *w;
        fresh_file(f);
        f->memory.calls = 0;
        f->memory.fail_at = at;
        int rc = record(f, 30000, &w);
        bool failed = f->memory.calls >= at;
        f->memory.fail_at = 0;
        assert_int_equal(rc, failed ? D7_ERR_NOMEM : 0);
        assert_prefix(f);
        if (w && failed) {
            rc = d7_writer_append(w, 0, f->x, 1, &f->err);
            assert_true(rc == 0 || rc == D7_ERR_STATE); /* it may have failed while closing */
            assert_int_equal(d7_writer_close(w, &f->err), 0);
            d7_reader *r = testing_open(&f->io, false, false);
            assert_int_equal(d7_reader_state(r), D7_STATE_CLOSED);
            assert_int_equal(d7_reader_n_problems(r), 0);
            d7_reader_free(r);
        }
        d7_writer_free(w);
        assert_int_equal(f->memory.outstanding, 0);
        if (!failed)
            break;
    }
}

static void memory_runs_out_while_reading(void **state) {
    fixture *f = *state;
    for (int cut = 0; cut < 2; cut++) {
        memio_set(&f->file, f->good, f->n_good - (cut ? 20000 : 0));
        for (long at = 1;; at++) {
            f->memory.calls = 0;
            f->memory.fail_at = at;
            int rc = read_all(f);
            assert_int_equal(f->memory.outstanding, 0);
            if (f->memory.calls < at) {
                assert_int_equal(rc, 0);
                break;
            }
            assert_true(rc == D7_ERR_NOMEM || rc == 0); /* a problem that could not be kept is counted only */
        }
        f->memory.fail_at = 0;
    }
}

static void each_read_error_is_told(void **state) {
    fixture *f = *state;
    for (long at = 1;; at++) {
        fresh_file(f);
        memio_set(&f->file, f->good, f->n_good);
        f->file.fail_op = MEMIO_PREAD;
        f->file.fail_at = at;
        f->file.fail_times = 1;
        f->file.fail_errno = EIO;
        int rc = read_all(f);
        if (f->file.calls[MEMIO_PREAD] < at) {
            assert_int_equal(rc, 0);
            break;
        }
        assert_int_equal(rc, D7_ERR_IO);
        assert_int_equal(f->err.os_errno, EIO);
        assert_true(f->err.offset < f->n_good);
    }
}

/* One thread writes, another syncs all the time. */
typedef struct syncing {
    d7_writer *w;
    atomic_bool stop;
    int rc;
} syncing;

static void *sync_thread(void *arg) {
    syncing *s = arg;
    while (s->rc == 0 && !atomic_load(&s->stop))
        s->rc = d7_writer_sync_data(s->w, NULL);
    return NULL;
}

static int quiet_sync(void *ctx, void *file) {
    (void)ctx;
    (void)file;
    return 0;
}

static void sync_runs_beside_the_writer(void **state) {
    fixture *f = *state;
    d7_writer_options o = testing_writer_options(&f->io);
    syncing s = {0};
    pthread_t thread;
    f->io.sync_data = quiet_sync;
    o.buffer_bytes = 20000;
    assert_int_equal(d7_writer_create(&s.w, "memory", datasets, 2, &o, &f->err), 0);
    assert_int_equal(pthread_create(&thread, NULL, sync_thread, &s), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(d7_writer_append(s.w, 0, f->x, N, &f->err), 0);
    atomic_store(&s.stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(s.rc, 0);
    assert_int_equal(d7_writer_close(s.w, &f->err), 0);
    d7_writer_free(s.w);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(short_writes_and_interruptions_change_nothing),
        TEST(short_reads_and_interruptions_change_nothing),
        TEST(each_write_error_is_told),
        TEST(full_disk_is_a_pause),
        TEST(large_append_is_taken_whole),
        TEST(failed_sync_is_final),
        TEST(memory_runs_out_while_writing),
        TEST(memory_runs_out_while_reading),
        TEST(each_read_error_is_told),
        TEST(sync_runs_beside_the_writer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

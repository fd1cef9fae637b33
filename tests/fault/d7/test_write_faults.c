/* One recording, step by step, while its calls to the system fail. A full disk is a pause: the step is taken again when
 * there is room, and the file is the very one that it would have been. So it is with memory. Any other error ends the
 * writer, says what and where, and leaves a beginning of the good file. Short writes and interruptions change nothing. */
#include <errno.h>
#include <limits.h>

#include "memio.h"
#include "testing.h"

enum { ITEMS = 3000, ROUNDS = 6, N_DATASETS = 4 };

static const d7_dataset datasets[N_DATASETS] = {
    {"/x", D7_UINT16}, {"/t", D7_UINT64}, {"/c", D7_UINT8}, {"/f", D7_FLOAT}};

typedef struct recording {
    memio file;
    d7_io io;
    memcount memory;
    d7_alloc alloc;
    d7_writer *w;
    d7_error err;
    uint64_t *values; /* [ROUNDS * ITEMS]; a dataset takes the bytes of its size */
    size_t round;
    uint64_t taken; /* items of dataset 0 that a failed append took */
    size_t buffer_bytes;
} recording;

static void begin(recording *x, size_t buffer_bytes) {
    uint64_t rng = 8;
    *x = (recording){.buffer_bytes = buffer_bytes};
    x->io = memio_table(&x->file);
    x->alloc = memcount_table(&x->memory);
    x->values = malloc(ROUNDS * ITEMS * sizeof *x->values);
    for (size_t i = 0; i < ROUNDS * ITEMS; i++)
        x->values[i] = testing_random(&rng) >> (i % 50);
}

static void end(recording *x) {
    d7_writer_free(x->w);
    assert_int_equal(x->memory.outstanding, 0);
    assert_null(x->file.opened_memory);
    memio_free(&x->file);
    free(x->values);
}

static int step_create(recording *x) {
    d7_writer_options o;
    d7_writer_options_init(&o);
    o.io = &x->io;
    o.alloc = &x->alloc;
    o.index_step = 1;
    o.bytes_per_page = 2048;
    o.buffer_bytes = x->buffer_bytes;
    o.attributes = &(d7_attribute){.key = "early", .value = "bird"};
    o.n_attributes = 1;
    return d7_writer_create(&x->w, "memory", datasets, N_DATASETS, &o, &x->err);
}

/* Appends what a failed append has not taken. */
static int append(recording *x, uint32_t ds) {
    const uint8_t *values = (const uint8_t *)(x->values + x->round * ITEMS);
    uint64_t before = d7_writer_items(x->w, ds);
    size_t size = d7_type_size(datasets[ds].type), done = (size_t)x->taken;
    int rc = d7_writer_append(x->w, ds, values + done * size, ITEMS - done, &x->err);
    uint64_t more = d7_writer_items(x->w, ds) - before;
    if (rc == D7_ERR_NOSPACE)
        assert_int_equal(more, 0);
    x->taken = rc == 0 ? 0 : x->taken + more;
    return rc;
}

static int step_append_x(recording *x) {
    return append(x, 0);
}

static int step_append_t(recording *x) {
    return append(x, 1);
}

/* A page that was encoded elsewhere, and is taken whole or not at all. */
static int step_page(recording *x) {
    static uint8_t entry[4096];
    size_t bytes;
    uint64_t before = d7_writer_items(x->w, 2);
    assert_int_equal(
        d7_page_encode(2, D7_UINT8, x->values + x->round * ITEMS, 2048, entry, sizeof entry, &bytes), 0);
    int rc = d7_writer_append_page(x->w, 2, entry, bytes, 2048, &x->err);
    assert_int_equal(d7_writer_items(x->w, 2) - before, rc == 0 ? 2048 : 0);
    return rc;
}

static int step_attribute(recording *x) {
    return d7_writer_set_attribute(x->w, x->round % 2 ? "odd" : "even", "value", &x->err);
}

static int step_flush(recording *x) {
    return d7_writer_flush(x->w, &x->err);
}

static int step_put(recording *x) {
    return d7_writer_put_attributes(x->w, &x->err);
}

static int step_round(recording *x) {
    x->round++;
    return 0;
}

static int step_f(recording *x) {
    x->round = 0;
    return append(x, 3);
}

static int step_end_f(recording *x) {
    return d7_writer_end_dataset(x->w, 3, &x->err);
}

static int step_close(recording *x) {
    return d7_writer_close(x->w, &x->err);
}

typedef int step(recording *x);

enum { MAX_STEPS = 64 };

static size_t steps_of(step *steps[MAX_STEPS]) {
    step *const round[] = {step_append_x, step_append_t, step_attribute, step_page, step_flush, step_round};
    size_t n = 0;
    steps[n++] = step_create;
    for (size_t i = 0; i < ROUNDS; i++) {
        for (size_t k = 0; k < sizeof round / sizeof *round; k++)
            steps[n++] = round[k];
        if (i == 2)
            steps[n++] = step_put;
    }
    steps[n++] = step_f;
    steps[n++] = step_end_f;
    steps[n++] = step_close;
    return n;
}

/* Takes all steps, each as often as it fails with `pause`; another failure ends the recording and is returned. */
static int record(recording *x, int pause, long *ret_pauses) {
    step *steps[MAX_STEPS];
    size_t n = steps_of(steps);
    *ret_pauses = 0;
    for (size_t i = 0; i < n; i++)
        for (int rc = 1; rc != 0; *ret_pauses += rc != 0) {
            x->err = (d7_error){0};
            rc = steps[i](x);
            if (rc != 0 && rc != pause)
                return rc;
            if (rc != 0) {
                assert_int_equal(x->err.code, rc);
                assert_true(strncmp(x->err.text, "memory: ", 8) == 0);
            }
        }
    return 0;
}

/* The file as it is when nothing fails. */
static uint8_t *good;
static size_t n_good;

static int make_good(void **state) {
    (void)state;
    recording x;
    long pauses;
    begin(&x, 10000);
    if (record(&x, 0, &pauses) != 0)
        return -1;
    n_good = x.file.n;
    good = malloc(n_good);
    memcpy(good, x.file.data, n_good);
    end(&x);
    return 0;
}

static int free_good(void **state) {
    (void)state;
    free(good);
    return 0;
}

static void assert_good(const recording *x) {
    assert_int_equal(x->file.n, n_good);
    assert_memory_equal(x->file.data, good, n_good);
}

static void assert_beginning(const recording *x) {
    assert_true(x->file.n <= n_good);
    if (x->file.n)
        assert_memory_equal(x->file.data, good, x->file.n);
}

/* Takes a random part of what is to be written, or is interrupted. */
typedef struct fickle {
    d7_io inner;
    uint64_t rng;
} fickle;

static fickle fickle_writes;

static int64_t fickle_pwrite(void *ctx, void *file, const void *data, size_t bytes, uint64_t offset) {
    uint64_t r = testing_random(&fickle_writes.rng);
    if (r % 4 == 0)
        return -EINTR;
    size_t n = 1 + (size_t)(r >> 8) % (r % 4 == 1 ? 9 : bytes);
    return fickle_writes.inner.pwrite(ctx, file, data, n < bytes ? n : bytes, offset);
}

static void short_writes_change_nothing(void **state) {
    (void)state;
    for (size_t buffer = 0; buffer < 60000; buffer += 20000) {
        recording x;
        long pauses;
        begin(&x, buffer);
        fickle_writes = (fickle){.inner = x.io, .rng = buffer + 1};
        x.io.pwrite = fickle_pwrite;
        assert_int_equal(record(&x, 0, &pauses), 0);
        assert_good(&x);
        end(&x);
    }
}

/* The disk is full at each write in turn, once or for a while. */
static void full_at_each_write(void **state) {
    (void)state;
    static const int errnos[] = {ENOSPC, EDQUOT};
    long total = 0;
    for (int i = 0; i < 4; i++)
        for (long at = 1;; at++) {
            recording x;
            long pauses;
            begin(&x, i < 2 ? 10000 : 0);
            x.file.fail_op = MEMIO_PWRITE;
            x.file.fail_at = at;
            x.file.fail_times = i < 2 ? 1 : 3;
            x.file.fail_errno = errnos[i % 2];
            assert_int_equal(record(&x, D7_ERR_NOSPACE, &pauses), 0);
            assert_good(&x);
            bool reached = x.file.calls[MEMIO_PWRITE] >= at;
            assert_true(pauses <=
                        (reached ? x.file.fail_times : 0)); /* a large append may get over it by itself */
            total += pauses;
            end(&x);
            if (!reached)
                break;
        }
    assert_true(total > 50);
}

/* A short write and then none: what was written of it is not written twice. */
static void full_in_the_middle_of_each_write(void **state) {
    (void)state;
    for (uint64_t room = 100; room < n_good; room += 997) {
        recording x;
        long pauses = 0;
        begin(&x, 10000);
        x.file.capacity = room;
        step *steps[MAX_STEPS];
        size_t n = steps_of(steps);
        for (size_t i = 0; i < n; i++)
            for (int rc = 1; rc != 0;) {
                rc = steps[i](&x);
                assert_true(rc == 0 || rc == D7_ERR_NOSPACE);
                if (rc != 0) {
                    pauses++;
                    if (x.file.exists)
                        assert_beginning(&x);
                    x.file.capacity = room + 40000;
                }
                if (pauses > 1)
                    x.file.capacity = 0;
            }
        assert_true(pauses > 0);
        assert_good(&x);
        end(&x);
    }
}

static void memory_runs_out_at_each_allocation(void **state) {
    (void)state;
    for (long times = 1; times < 4; times += 2)
        for (long at = 1;; at++) {
            recording x;
            long pauses;
            begin(&x, 10000);
            x.memory.fail_at = at;
            x.memory.fail_times = times;
            assert_int_equal(record(&x, D7_ERR_NOMEM, &pauses), 0);
            assert_good(&x);
            bool reached = x.memory.calls >= at;
            end(&x);
            if (!reached)
                break;
        }
}

/* Each call that can fail, failing with something that is not lack of room. */
static void each_error_ends_the_recording(void **state) {
    (void)state;
    static const struct {
        enum memio_op op;
        int os_errno;
        long at_least;
    } faults[] = {{MEMIO_OPEN, EIO, 1},     {MEMIO_OPEN, ENOSPC, 1}, {MEMIO_PWRITE, EIO, 8},
                  {MEMIO_PWRITE, EFBIG, 8}, {MEMIO_SYNC, EIO, 2},    {MEMIO_SYNC, ENOSPC, 2},
                  {MEMIO_SYNC, EDQUOT, 2},  {MEMIO_CLOSE, EIO, 1}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        for (long at = 1;; at++) {
            recording x;
            long pauses;
            begin(&x, 10000);
            x.file.fail_op = faults[i].op;
            x.file.fail_at = at;
            x.file.fail_times = LONG_MAX;
            x.file.fail_errno = faults[i].os_errno;
            int rc = record(&x, 1, &pauses);
            if (rc == 0) {
                assert_true(at > faults[i].at_least);
                end(&x);
                break;
            }
            bool no_room = faults[i].op == MEMIO_OPEN && faults[i].os_errno == ENOSPC;
            assert_int_equal(rc, no_room ? D7_ERR_NOSPACE : D7_ERR_IO);
            assert_int_equal(x.err.os_errno, faults[i].os_errno);
            assert_true(strncmp(x.err.text, "memory: ", 8) == 0);
            assert_true(x.err.offset == D7_NO_OFFSET || x.err.offset <= n_good);
            assert_beginning(&x);
            if (x.w) {
                d7_error again;
                assert_int_equal(d7_writer_append(x.w, 0, x.values, 1, &again), D7_ERR_IO);
                assert_string_equal(again.text, x.err.text);
                assert_int_equal(d7_writer_end_dataset(x.w, 0, &again), D7_ERR_IO);
                assert_int_equal(d7_writer_put_attributes(x.w, &again), D7_ERR_IO);
                assert_int_equal(d7_writer_close(x.w, &again), D7_ERR_IO);
            }
            end(&x);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_writes_change_nothing),
        cmocka_unit_test(full_at_each_write),
        cmocka_unit_test(full_in_the_middle_of_each_write),
        cmocka_unit_test(memory_runs_out_at_each_allocation),
        cmocka_unit_test(each_error_ends_the_recording),
    };
    return cmocka_run_group_tests(tests, make_good, free_good);
}

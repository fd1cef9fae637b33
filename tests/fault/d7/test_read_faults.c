/* One reading of a file, step by step, while its calls to the system fail: each failure is a clear error that names the file,
 * the step can be taken again, and then all comes out as if nothing had been. Short reads and interruptions are no
 * failures. Memory that runs out is one, at each allocation; nothing leaks. */
#include <errno.h>
#include <limits.h>

#include "base/crc32c.h"
#include "probe.h"
#include "testing.h"

/* The reading in progress, and a checksum of all that it gave. */
typedef struct reading {
    probe p;
    const specimen *s;
    probe_mode mode;
    d7_reader *r;
    d7_columns *columns;
    d7_error err;
    uint32_t sum;
    bool more; /* the step is to be taken again: it is a loop */
    uint32_t ds;
    uint64_t rows;
} reading;

static void add(reading *x, const void *data, size_t bytes) {
    x->sum = common_crc32c(x->sum, data, bytes);
}

static void add_number(reading *x, uint64_t number) {
    add(x, &number, sizeof number);
}

static int step_open(reading *x) {
    d7_reader_options o;
    d7_reader_options_init(&o);
    o.io = &x->p.io;
    o.alloc = &x->p.alloc;
    o.recover = x->mode == PROBE_RECOVER;
    o.quick = x->mode == PROBE_QUICK;
    o.full = x->mode == PROBE_FULL;
    int rc = d7_reader_open(&x->r, "memory", &o, &x->err);
    if (rc == 0) {
        add_number(x, d7_reader_pages(x->r));
        add_number(x, d7_reader_n_attributes(x->r));
        add_number(x, d7_reader_state(x->r));
    }
    return rc;
}

/* All items of one dataset. Damage is a result like another. */
static int step_read(reading *x) {
    d7_dataset_info info;
    x->more = x->ds < d7_reader_n_datasets(x->r);
    if (!x->more)
        return 0;
    assert_int_equal(d7_reader_dataset(x->r, x->ds, &info), 0);
    size_t bytes = (size_t)info.items * d7_type_size(info.type);
    uint8_t *values = calloc(1, bytes + 1);
    int rc = d7_reader_read(x->r, x->ds, 0, (size_t)info.items, values, &x->err);
    if (rc == 0 || rc == D7_ERR_CORRUPT) {
        add_number(x, (uint64_t)rc);
        add(x, values, rc == 0 ? bytes : 0);
        x->ds++;
        rc = 0;
    }
    free(values);
    return rc;
}

/* One item in the middle of each dataset, the other way round. */
static int step_item(reading *x) {
    d7_dataset_info info;
    uint64_t value = 0;
    x->more = x->ds > 0;
    if (!x->more)
        return 0;
    assert_int_equal(d7_reader_dataset(x->r, x->ds - 1, &info), 0);
    int rc = info.items ? d7_reader_read(x->r, x->ds - 1, info.items / 2, 1, &value, &x->err) : 0;
    if (rc == 0 || rc == D7_ERR_CORRUPT) {
        add_number(x, rc == 0 ? value : 0);
        x->ds--;
        rc = 0;
    }
    return rc;
}

static int step_columns_open(reading *x) {
    uint32_t ids[8];
    size_t n = d7_reader_n_datasets(x->r) < 8 ? d7_reader_n_datasets(x->r) : 8;
    d7_columns_options o;
    d7_columns_options_init(&o);
    o.chunk_items = 100;
    o.skip_damaged = true;
    for (uint32_t i = 0; i < 8; i++)
        ids[i] = i;
    return d7_columns_open(&x->columns, x->r, ids, n, &o, &x->err);
}

static int step_columns_next(reading *x) {
    d7_chunk chunk;
    int rc = d7_columns_next(x->columns, &chunk, &x->err);
    if (rc != 0)
        return rc;
    x->more = chunk.n > 0;
    x->rows += chunk.n;
    add_number(x, chunk.first_item + chunk.n);
    for (size_t i = 0; i < d7_reader_n_datasets(x->r) && i < 8; i++)
        add(x, chunk.values[i], chunk.n * d7_type_size(x->s->types[i]));
    return 0;
}

static int step_check(reading *x) {
    return d7_reader_check(x->r, NULL, NULL, &x->err);
}

static int step_verify(reading *x) {
    d7_verify_summary sum;
    if (x->mode != PROBE_PLAIN)
        return 0;
    int rc = d7_reader_verify(x->r, NULL, NULL, NULL, NULL, &sum, &x->err);
    if (rc == 0) {
        add_number(x, sum.pages);
        add_number(x, sum.damages > 0); /* one that there was no memory to keep may be counted again */
    }
    return rc;
}

static int step_refresh(reading *x) {
    unsigned changes = 0;
    int rc = d7_reader_refresh(x->r, &changes, &x->err);
    if (rc == 0)
        add_number(x, changes);
    return rc;
}

typedef struct step {
    const char *name;
    int (*take)(reading *x);
} step;

static const step steps[] = {
    {"open", step_open},         {"read", step_read},
    {"item", step_item},         {"columns", step_columns_open},
    {"next", step_columns_next}, {"check", step_check},
    {"verify", step_verify},     {"refresh", step_refresh},
};

enum { N_STEPS = sizeof steps / sizeof *steps };

static void begin(reading *x, const specimen *s, probe_mode mode) {
    *x = (reading){.s = s, .mode = mode};
    probe_init(&x->p);
    memio_set(&x->p.file, s->bytes, s->n);
}

static void end(reading *x) {
    d7_columns_free(x->columns);
    d7_reader_free(x->r);
    probe_free(&x->p);
}

/* What a failure must look like, and how often it may come. */
typedef struct fault {
    const char *name;
    int rc, os_errno;
    long left;
} fault;

/* Takes all steps, each again after a failure. Returns whether there was one. */
static bool read_through(reading *x, const fault *f) {
    long failures = 0;
    for (size_t i = 0; i < N_STEPS; i++) {
        do {
            x->more = false;
            x->err = (d7_error){.offset = 1};
            int rc = steps[i].take(x);
            snprintf(x->p.what, sizeof x->p.what, "%s, mode %d, step %s, %s", x->s->name, (int)x->mode,
                     steps[i].name, f ? f->name : "no fault");
            if (rc == 0)
                continue;
            probe_require(&x->p, f && rc == f->rc && x->err.code == rc, "%d: %s", rc, x->err.text);
            probe_require(&x->p, x->err.os_errno == f->os_errno, "errno %d: %s", x->err.os_errno,
                          x->err.text);
            probe_require(&x->p, strncmp(x->err.text, "memory: ", 8) == 0,
                          "the text does not name the file: %s", x->err.text);
            probe_require(&x->p, x->err.offset == D7_NO_OFFSET || x->err.offset <= x->s->n, "offset");
            probe_require(&x->p, ++failures <= f->left, "fails again: %s", x->err.text);
            x->more = true;
        } while (x->more);
    }
    return failures > 0;
}

static uint32_t undisturbed(const specimen *s, probe_mode mode) {
    reading x;
    begin(&x, s, mode);
    read_through(&x, NULL);
    uint32_t sum = x.sum;
    end(&x);
    return sum;
}

/* ---- the files ---- */

static void damage(specimen *s) {
    memset(s->bytes + 2 * D7_BLOCK_BYTES, 0, D7_BLOCK_BYTES);
    strcpy(s->name, "damaged");
}

/* Calls `test` with every file in every mode. */
static void each_file(void (*test)(const specimen *s, probe_mode mode)) {
    specimen *s;
    for (size_t i = 0; (s = specimen_make(i)); i++) {
        for (int mode = 0; mode < PROBE_N_MODES; mode++)
            test(s, (probe_mode)mode);
        if (strcmp(s->name, "islands, closed") == 0 || strcmp(s->name, "islands") == 0) {
            damage(s);
            for (int mode = 0; mode < PROBE_N_MODES; mode++)
                test(s, (probe_mode)mode);
        }
        specimen_free(s);
    }
    s = specimen_fixture("other_writer", true);
    test(s, PROBE_PLAIN);
    specimen_free(s);
}

/* ---- short reads ---- */

/* Reads a random part of what is asked for, or is interrupted. */
typedef struct fickle {
    d7_io inner;
    uint64_t rng;
} fickle;

static int64_t fickle_pread(void *ctx, void *file, void *buffer, size_t bytes, uint64_t offset) {
    fickle *f = ctx;
    uint64_t r = testing_random(&f->rng);
    if (r % 3 == 0)
        return -EINTR;
    size_t n = r % 3 == 1 ? 1 + (size_t)(r >> 8) % bytes : 1 + (size_t)(r >> 8) % 300;
    return f->inner.pread(f->inner.ctx, file, buffer, n < bytes ? n : bytes, offset);
}

static int fickle_open(void *ctx, const char *path, int flags, unsigned mode, void **ret_file) {
    const fickle *f = ctx;
    return f->inner.open(f->inner.ctx, path, flags, mode, ret_file);
}

static int fickle_close(void *ctx, void *file) {
    const fickle *f = ctx;
    return f->inner.close(f->inner.ctx, file);
}

static int fickle_size(void *ctx, void *file, uint64_t *ret_bytes) {
    const fickle *f = ctx;
    return f->inner.size(f->inner.ctx, file, ret_bytes);
}

static int fickle_held(void *ctx, void *file, bool *ret_held) {
    (void)ctx;
    (void)file;
    (void)ret_held;
    return -ENOLCK;
}

static void short_reads_in(const specimen *s, probe_mode mode) {
    uint32_t sum = undisturbed(s, mode);
    static const size_t transfers[] = {1, 7, 16383};
    for (size_t i = 0; i < 4; i++) {
        reading x;
        begin(&x, s, mode);
        fickle f = {.inner = x.p.io, .rng = 3};
        if (i < 3) {
            x.p.file.transfer_max = transfers[i];
            x.p.file.eintr_every = 2 + (long)i;
        } else {
            x.p.io.ctx = &f;
            x.p.io.open = fickle_open;
            x.p.io.close = fickle_close;
            x.p.io.size = fickle_size;
            x.p.io.held = fickle_held;
            x.p.io.pread = fickle_pread;
        }
        read_through(&x, NULL);
        probe_require(&x.p, x.sum == sum, "other values than without faults");
        end(&x);
    }
}

static void short_reads_and_interruptions_change_nothing(void **state) {
    (void)state;
    each_file(short_reads_in);
}

/* ---- errors ---- */

/* Of long files and in slow builds not every call: the first ones, and a share of the others. */
static long next_call(const specimen *s, long at) {
    long stride = s->n > 200000 ? 5 : 1;
#ifdef FAULT_SHARE
    stride *= FAULT_SHARE;
#endif
    return at < 12 ? at + 1 : at + stride;
}

static void errors_of(const specimen *s, probe_mode mode, enum memio_op op, const fault *f) {
    uint32_t sum = undisturbed(s, mode);
    bool failed = true;
    for (long at = 1; failed; at = next_call(s, at)) {
        reading x;
        begin(&x, s, mode);
        x.p.file.fail_op = op;
        x.p.file.fail_at = at;
        x.p.file.fail_times = 1;
        x.p.file.fail_errno = f->os_errno;
        failed = read_through(&x, f);
        assert_int_equal(failed, x.p.file.calls[op] >= at);
        probe_require(&x.p, x.sum == sum, "other values than without faults");
        end(&x);
    }
}

static void read_errors_in(const specimen *s, probe_mode mode) {
    errors_of(s, mode, MEMIO_PREAD, &(fault){"EIO at a read", D7_ERR_IO, EIO, 1});
}

static void each_read_error_is_told_once(void **state) {
    (void)state;
    each_file(read_errors_in);
}

static void other_errors_in(const specimen *s, probe_mode mode) {
    errors_of(s, mode, MEMIO_SIZE, &(fault){"no size", D7_ERR_IO, EIO, 1});
    errors_of(s, mode, MEMIO_OPEN, &(fault){"no permission", D7_ERR_IO, EACCES, 1});
    errors_of(s, mode, MEMIO_OPEN, &(fault){"no file", D7_ERR_NOTFOUND, ENOENT, 1});
}

static void each_error_at_opening_is_told(void **state) {
    (void)state;
    each_file(other_errors_in);
}

/* The disk goes and does not come back: every step ends, with that error or with what was in memory. */
static void disk_goes_in(const specimen *s, probe_mode mode) {
    for (long at = 1;; at = next_call(s, at)) {
        reading x;
        begin(&x, s, mode);
        x.p.file.fail_op = MEMIO_PREAD;
        x.p.file.fail_at = at;
        x.p.file.fail_times = LONG_MAX;
        x.p.file.fail_errno = EIO;
        for (size_t i = 0; i < N_STEPS && (i == 0 || x.r); i++) {
            if (steps[i].take == step_columns_next && !x.columns)
                continue;
            int rc = steps[i].take(&x);
            assert_true(rc == 0 || rc == D7_ERR_IO);
        }
        bool failed = x.p.file.calls[MEMIO_PREAD] >= at;
        end(&x);
        if (!failed)
            break;
    }
}

static void disk_that_is_gone_ends_every_step(void **state) {
    (void)state;
    each_file(disk_goes_in);
}

/* ---- a file that shrinks ---- */

typedef struct shrinking {
    fickle f;
    memio *file;
    long calls, at;
    size_t n;
} shrinking;

static int64_t shrinking_pread(void *ctx, void *file, void *buffer, size_t bytes, uint64_t offset) {
    shrinking *s = ctx;
    if (++s->calls == s->at)
        s->file->n = s->n;
    return s->f.inner.pread(s->f.inner.ctx, file, buffer, bytes, offset);
}

/* After a refresh the reader knows what is left, and reads it. */
static void read_what_is_left(reading *x) {
    static bool found[4096];
    bool known = strcmp(x->s->name, "damaged") != 0;
    unsigned changes = 0;
    assert_int_equal(d7_reader_refresh(x->r, &changes, &x->err), 0);
    probe_require(&x->p, changes & D7_CHANGE_CUT || x->mode == PROBE_QUICK,
                  "a cut that is not noticed: changes %u, length %llu", changes,
                  (unsigned long long)d7_reader_file_bytes(x->r));
    memset(found, 0, sizeof found);
    probe_read(&x->p, x->r, known ? x->s : NULL, NULL, found);
    for (size_t i = 0; known && x->mode != PROBE_QUICK && i < x->s->n_entries; i++)
        if (x->s->entries[i].kind == SPECIMEN_PAGE)
            assert_int_equal(found[i], x->s->entries[i].end <= x->p.file.n);
}

/* Cut under the reader at each of its reads: what it says is either what was there, or that the file has shrunk; a short
 * read is not taken for the end. A refresh finds the new end. */
static void shrink_in(const specimen *s, probe_mode mode) {
    for (long at = 1;; at = next_call(s, at)) {
        reading x;
        begin(&x, s, mode);
        shrinking shrink = {.f.inner = x.p.io, .file = &x.p.file, .at = at, .n = s->n * 2 / 3};
        x.p.io.ctx = &shrink;
        x.p.io.open = fickle_open;
        x.p.io.close = fickle_close;
        x.p.io.size = fickle_size;
        x.p.io.held = fickle_held;
        x.p.io.pread = shrinking_pread;
        for (size_t i = 0; i < N_STEPS - 1 && (i == 0 || x.r); i++) {
            if (steps[i].take == step_columns_next && !x.columns)
                continue;
            int rc = steps[i].take(&x);
            assert_true(rc == 0 || rc == D7_ERR_TRUNCATED);
            if (rc != 0)
                assert_non_null(strstr(x.err.text, "memory: "));
        }
        snprintf(x.p.what, sizeof x.p.what, "%s, mode %d, shrunk at read %ld", s->name, (int)mode, at);
        if (x.r && x.p.file.n < s->n)
            read_what_is_left(&x);
        bool reached = shrink.calls >= at;
        end(&x);
        if (!reached)
            break;
    }
}

static void shrinking_file_is_told(void **state) {
    (void)state;
    each_file(shrink_in);
}

/* ---- memory ---- */

static void no_memory_in(const specimen *s, probe_mode mode) {
    uint32_t sum = undisturbed(s, mode);
    fault f = {"no memory", D7_ERR_NOMEM, 0, 1};
    for (long at = 1;; at = next_call(s, at)) {
        reading x;
        begin(&x, s, mode);
        x.p.memory.fail_at = at;
        x.p.memory.fail_times = 1;
        read_through(&x, &f);
        probe_require(&x.p, x.sum == sum, "other values than without faults");
        bool reached = x.p.memory.calls >= at;
        end(&x);
        if (!reached)
            break;
    }
}

static void memory_that_runs_out_is_told(void **state) {
    (void)state;
    each_file(no_memory_in);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_reads_and_interruptions_change_nothing),
        cmocka_unit_test(each_read_error_is_told_once),
        cmocka_unit_test(each_error_at_opening_is_told),
        cmocka_unit_test(disk_that_is_gone_ends_every_step),
        cmocka_unit_test(shrinking_file_is_told),
        cmocka_unit_test(memory_that_runs_out_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

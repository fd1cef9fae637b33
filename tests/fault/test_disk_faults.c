/* A disk that is full, slow or broken at one place after the other, under the daemon's own threads: a pause loses nothing, a failure is
 * one run's alone. */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "run_fixture.h"

enum op { OP_OPEN, OP_WRITE, OP_SYNC, OP_ALLOCATE };
enum kind { KIND_PHOTONS, KIND_TAIL, KIND_SUMS };

/* What happens to calls of one kind for files of one kind. */
typedef struct faults {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    enum op op;
    enum kind kind;
    char name[64];  /* only of paths in which this stands; "": of all */
    unsigned skip;  /* so many go well first */
    unsigned times; /* then so many fail */
    int error;      /* with this errno */
    unsigned met;   /* have failed */
    size_t most;    /* bytes that a write moves at most; 0: all */
    unsigned eintr; /* every so many writes and syncs are interrupted; 0: none */
    unsigned n_calls;
    unsigned sync_ms; /* that a sync takes */
    bool gate;        /* writes wait while it is shut */
    unsigned n_waiting;
} faults;

typedef struct faulty_file {
    void *inner;
    enum kind kind;
    char path[256];
} faulty_file;

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

/* The errno that a call ends with; 0: none. */
static int fault_met(faults *f, enum op op, enum kind kind, const char *path) {
    int error = 0;
    pthread_mutex_lock(&f->lock);
    if (f->times > 0 && f->op == op && f->kind == kind && strstr(path, f->name)) {
        if (f->skip > 0) {
            f->skip--;
        } else {
            f->times--;
            f->met++;
            error = f->error;
        }
    }
    f->n_calls++;
    if (!error && f->eintr && (op == OP_WRITE || op == OP_SYNC) && f->n_calls % f->eintr == 0)
        error = EINTR;
    while (f->gate && op == OP_WRITE) {
        f->n_waiting++;
        pthread_cond_wait(&f->changed, &f->lock);
        f->n_waiting--;
    }
    pthread_mutex_unlock(&f->lock);
    return error;
}

static int faulty_open(void *ctx, const char *path, int flags, unsigned mode, void **ret_file) {
    const d7_io *inner = d7_io_system();
    enum kind kind = ends_with(path, ".tail")  ? KIND_TAIL
                     : ends_with(path, ".crc") ? KIND_SUMS
                                               : KIND_PHOTONS;
    int error = flags & D7_IO_CREATE ? fault_met(ctx, OP_OPEN, kind, path) : 0;
    faulty_file *file = calloc(1, sizeof *file);
    int rc = error ? -error : !file ? -ENOMEM : inner->open(inner->ctx, path, flags, mode, &file->inner);
    if (rc != 0) {
        free(file);
        return rc;
    }
    file->kind = kind;
    snprintf(file->path, sizeof file->path, "%s", path);
    *ret_file = file;
    return 0;
}

static int faulty_close(void *ctx, void *file) {
    const d7_io *inner = d7_io_system();
    faulty_file *f = file;
    (void)ctx;
    int rc = inner->close(inner->ctx, f->inner);
    free(f);
    return rc;
}

static int64_t faulty_pread(void *ctx, void *file, void *buffer, size_t bytes, uint64_t offset) {
    const d7_io *inner = d7_io_system();
    (void)ctx;
    return inner->pread(inner->ctx, ((faulty_file *)file)->inner, buffer, bytes, offset);
}

static int64_t faulty_pwrite(void *ctx, void *file, const void *data, size_t bytes, uint64_t offset) {
    const d7_io *inner = d7_io_system();
    faults *f = ctx;
    faulty_file *to = file;
    int error = fault_met(f, OP_WRITE, to->kind, to->path);
    pthread_mutex_lock(&f->lock);
    size_t most = f->most && f->most < bytes ? f->most : bytes;
    pthread_mutex_unlock(&f->lock);
    return error ? -error : inner->pwrite(inner->ctx, to->inner, data, most, offset);
}

static int faulty_sync(void *ctx, void *file) {
    const d7_io *inner = d7_io_system();
    faults *f = ctx;
    faulty_file *of = file;
    int error = fault_met(f, OP_SYNC, of->kind, of->path);
    pthread_mutex_lock(&f->lock);
    unsigned ms = error ? 0 : f->sync_ms;
    pthread_mutex_unlock(&f->lock);
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
    return error ? -error : inner->sync_data(inner->ctx, of->inner);
}

static int faulty_size(void *ctx, void *file, uint64_t *ret_bytes) {
    const d7_io *inner = d7_io_system();
    (void)ctx;
    return inner->size(inner->ctx, ((faulty_file *)file)->inner, ret_bytes);
}

static int faulty_truncate(void *ctx, void *file, uint64_t bytes) {
    const d7_io *inner = d7_io_system();
    (void)ctx;
    return inner->truncate(inner->ctx, ((faulty_file *)file)->inner, bytes);
}

static int faulty_lock(void *ctx, void *file) {
    const d7_io *inner = d7_io_system();
    (void)ctx;
    return inner->lock(inner->ctx, ((faulty_file *)file)->inner);
}

static int faulty_held(void *ctx, void *file, bool *ret_held) {
    const d7_io *inner = d7_io_system();
    (void)ctx;
    return inner->held(inner->ctx, ((faulty_file *)file)->inner, ret_held);
}

static int faulty_remove(void *ctx, const char *path) {
    const d7_io *inner = d7_io_system();
    (void)ctx;
    return inner->remove(inner->ctx, path);
}

static int faulty_allocate(void *ctx, void *file, uint64_t offset, uint64_t bytes) {
    const d7_io *inner = d7_io_system();
    faulty_file *of = file;
    int error = fault_met(ctx, OP_ALLOCATE, of->kind, of->path);
    return error ? -error : inner->allocate(inner->ctx, of->inner, offset, bytes);
}

static faults disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static const d7_io table = {.ctx = &disk,
                            .open = faulty_open,
                            .close = faulty_close,
                            .pread = faulty_pread,
                            .pwrite = faulty_pwrite,
                            .sync_data = faulty_sync,
                            .size = faulty_size,
                            .truncate = faulty_truncate,
                            .lock = faulty_lock,
                            .held = faulty_held,
                            .remove = faulty_remove,
                            .allocate = faulty_allocate};

static void disk_is_good(void) {
    pthread_mutex_lock(&disk.lock);
    disk.times = disk.skip = disk.met = disk.eintr = disk.n_calls = disk.sync_ms = 0;
    disk.most = 0;
    disk.name[0] = 0;
    pthread_mutex_unlock(&disk.lock);
}

static void disk_is_slow(unsigned sync_ms) {
    pthread_mutex_lock(&disk.lock);
    disk.sync_ms = sync_ms;
    pthread_mutex_unlock(&disk.lock);
}

static void disk_fails(enum kind kind, enum op op, unsigned skip, unsigned times, int error) {
    pthread_mutex_lock(&disk.lock);
    disk.kind = kind;
    disk.op = op;
    disk.skip = skip;
    disk.times = times;
    disk.error = error;
    disk.met = 0;
    pthread_mutex_unlock(&disk.lock);
}

static void disk_fails_for(const char *name, unsigned times, int error) {
    pthread_mutex_lock(&disk.lock);
    snprintf(disk.name, sizeof disk.name, "%s", name);
    pthread_mutex_unlock(&disk.lock);
    disk_fails(KIND_PHOTONS, OP_WRITE, 0, times, error);
}

static unsigned n_met(void) {
    pthread_mutex_lock(&disk.lock);
    unsigned n = disk.met;
    pthread_mutex_unlock(&disk.lock);
    return n;
}

static int set_up_faulty(void **state) {
    fixture *f = fixture_new();
    *state = f;
    disk_is_good();
    return f ? fixture_start(
                   f,
                   "\"ring_mb\": 4, \"max_runs\": 4, \"sync_interval_ms\": 10, \"resume_timeout_s\": 0.05, "
                   "\"summaries\": {\"enabled\": false}",
                   &table)
             : -1;
}

/* ---- no room ---- */

static void without_room_no_run_is_opened(void **state) {
    fixture *f = *state;
    static const struct {
        enum kind kind;
        enum op op;
    } places[] = {{KIND_TAIL, OP_OPEN},     {KIND_TAIL, OP_WRITE},       {KIND_PHOTONS, OP_OPEN},
                  {KIND_PHOTONS, OP_WRITE}, {KIND_PHOTONS, OP_ALLOCATE}, {KIND_SUMS, OP_ALLOCATE}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        disk_fails(places[i].kind, places[i].op, 0, 1, ENOSPC);
        ask_for(f, "late", false);
        turn_until(f, &f->told.failed, 1);
        if (f->told.outcome != PD_OPEN_NOROOM)
            fail_msg("place %zu: outcome %d, %s", i, (int)f->told.outcome, f->told.failure);
        turn_until_no_run_is_left(f);
        assert_false(exists(f, "late.photons"));
        assert_false(exists(f, "late.photons.tail"));
    }
    pd_run *run = opened(f, "late");
    f->next_x = 0;
    f->next_ms = 0;
    give_all(f, run, 1, 5000, 3);
    pd_run_close(run, NULL);
    turn_until(f, &f->told.ended, 1);
    turn_until_no_run_is_left(f);
    check_file(f, "late", D7_STATE_CLOSED, 5000, 3);
}

/* One run through all of its life, with a disk that has no room for a second at one place of it. */
static void life_of(fixture *f, const char *name, enum kind kind, enum op op, unsigned skip, bool at_close) {
    disk_is_good();
    f->next_x = 0;
    f->next_ms = 0;
    pd_run *run = opened(f, name);
    if (!at_close)
        disk_fails(kind, op, skip, 2, ENOSPC);
    for (unsigned i = 1; i <= 8; i++) {
        give_all(f, run, 2 * i - 1, 15000, 5);
        pd_refusal why = {0};
        char key[16];
        snprintf(key, sizeof key, "key %u", i);
        pd_taken taken;
        while ((taken = pd_run_attributes(run, 2 * i, &(pd_attribute){key, "value"}, 1, &why)) == PD_NO_ROOM)
            uv_run(&f->loop, UV_RUN_ONCE);
        assert_int_equal(taken, PD_TAKEN);
    }
    turn_until_durable(f, run, 16);
    if (at_close)
        disk_fails(kind, op, skip, 2, ENOSPC);
    pd_run_close(run, NULL);
    turn_until(f, &f->told.ended, 1);
    turn_until_no_run_is_left(f);
    if (n_met() == 0 && (op != OP_ALLOCATE || kind != KIND_SUMS))
        fail_msg("%s: the fault was never met", name);
    check_file(f, name, D7_STATE_CLOSED, 120000, 40);
}

static void a_pause_at_each_place_loses_nothing(void **state) {
    fixture *f = *state;
    life_of(f, "ahead", KIND_PHOTONS, OP_ALLOCATE, 0, false);
    life_of(f, "page", KIND_PHOTONS, OP_WRITE, 0, false);
    life_of(f, "mark", KIND_TAIL, OP_WRITE, 0, false);
    life_of(f, "sums", KIND_SUMS, OP_WRITE, 1, false);
    life_of(f, "sums-ahead", KIND_SUMS, OP_ALLOCATE, 0, false);
    life_of(f, "index", KIND_PHOTONS, OP_WRITE, 0, true);
    life_of(f, "epilogue", KIND_PHOTONS, OP_WRITE, 1, true);
    assert_int_equal(pd_counted(&f->engine.counters.runs_failed), 0);
}

/* ---- other troubles ---- */

static void a_broken_disk_is_one_run_s_end(void **state) {
    fixture *f = *state;
    static const int errors[] = {EIO, ESTALE, EROFS};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        char name[16], good_name[16];
        snprintf(name, sizeof name, "bad-%zu", i);
        snprintf(good_name, sizeof good_name, "good-%zu", i);
        disk_is_good();
        f->next_x = 0;
        f->next_ms = 0;
        pd_run *good = opened(f, good_name);
        pd_run *bad = opened(f, name);
        disk_fails_for(bad->id_hex, UINT_MAX, errors[i]); /* by the names they were made under */
        give_all(f, bad, 1, 15000, 1);
        turn_until(f, &f->told.failed, 1);
        assert_non_null(strstr(f->told.failure, strerror(errors[i])));
        assert_non_null(strstr(f->told.failure, name));
        f->next_x = 0;
        f->next_ms = 0;
        give_all(f, good, 1, 15000, 7);
        f->told.ended = 0;
        pd_run_close(good, NULL);
        turn_until_no_run_is_left(f);
        check_file(f, good_name, D7_STATE_CLOSED, 15000, 7);
    }
    assert_int_equal(pd_counted(&f->engine.counters.runs_failed), sizeof errors / sizeof *errors);
}

static void whole_life(fixture *f, const char *name) {
    f->next_x = 0;
    f->next_ms = 0;
    pd_run *run = opened(f, name);
    for (unsigned i = 1; i <= 6; i++)
        give_all(f, run, i, 15000, 5);
    turn_until_durable(f, run, 6);
    pd_run_close(run, NULL);
    turn_until(f, &f->told.ended, 1);
    turn_until_no_run_is_left(f);
    check_file(f, name, D7_STATE_CLOSED, 90000, 30);
}

static void short_and_interrupted_writes(void **state) {
    fixture *f = *state;
    pthread_mutex_lock(&disk.lock);
    disk.most = 4099;
    disk.eintr = 3;
    pthread_mutex_unlock(&disk.lock);
    whole_life(f, "short");
}

static void slow_syncs(void **state) {
    fixture *f = *state;
    static const unsigned ms[] = {5, 20, 1000};
    for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) {
        char name[16];
        snprintf(name, sizeof name, "slow-%zu", i);
        disk_is_slow(i + 1 < sizeof ms / sizeof *ms ? ms[i] : 0);
        f->next_x = 0;
        f->next_ms = 0;
        pd_run *run = opened(f, name);
        disk_is_slow(ms[i]);
        for (unsigned n = 1; n <= 6; n++)
            give_all(f, run, n, 15000, 5);
        turn_until_durable(f, run, 6);
        disk_is_slow(ms[i] < 1000 ? ms[i] : 0);
        pd_run_close(run, NULL);
        turn_until(f, &f->told.ended, 1);
        turn_until_no_run_is_left(f);
        check_file(f, name, D7_STATE_CLOSED, 90000, 30);
    }
}

/* The writer hangs in a write while four fifths of the ring come in (2 s of a ring that holds 2.5 s): all of it is taken. */
static void a_stall_within_the_ring(void **state) {
    fixture *f = *state;
    f->next_x = 0;
    f->next_ms = 0;
    pd_run *run = opened(f, "stalled");
    give_all(f, run, 1, PAGE16, 1);
    turn_until_durable(f, run, 1);
    pthread_mutex_lock(&disk.lock);
    disk.gate = true;
    pthread_mutex_unlock(&disk.lock);
    uint64_t sequence = 1, items = PAGE16;
    while (f->engine.ring.n_slots - f->engine.ring.n_free < f->engine.ring.n_slots * 4 / 5) {
        pd_refusal why = {0};
        pd_taken taken = give(f, run, ++sequence, PAGE16, 1, &why);
        if (taken != PD_TAKEN)
            fail_msg("a batch was not taken: %d slots of %u are in use, %s",
                     (int)(f->engine.ring.n_slots - f->engine.ring.n_free), f->engine.ring.n_slots, why.text);
        items += PAGE16;
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    pthread_mutex_lock(&disk.lock);
    disk.gate = false;
    pthread_cond_broadcast(&disk.changed);
    pthread_mutex_unlock(&disk.lock);
    turn_until_durable(f, run, sequence);
    pd_run_close(run, NULL);
    turn_until(f, &f->told.ended, 1);
    turn_until_no_run_is_left(f);
    check_file(f, "stalled", D7_STATE_CLOSED, items, sequence);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_room_no_run_is_opened, set_up_faulty, tear_down),
        cmocka_unit_test_setup_teardown(a_pause_at_each_place_loses_nothing, set_up_faulty, tear_down),
        cmocka_unit_test_setup_teardown(a_broken_disk_is_one_run_s_end, set_up_faulty, tear_down),
        cmocka_unit_test_setup_teardown(short_and_interrupted_writes, set_up_faulty, tear_down),
        cmocka_unit_test_setup_teardown(slow_syncs, set_up_faulty, tear_down),
        cmocka_unit_test_setup_teardown(a_stall_within_the_ring, set_up_faulty, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

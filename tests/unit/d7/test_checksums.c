/* Checksums beside a file: kept by a writer through full disks and errors, gone on with after a crash, made
 * for a file that has none; and what verification makes of them, whatever state they are in. */
#include <errno.h>

#include "checksums.h"
#include "d7_testing.h"
#include "disk_model.h"
#include "testing.h"

static const char path[] = "a.photons", crc_path[] = "a.photons.crc";
static const d7_dataset two[] = {{"/a", D7_UINT16}, {"/b", D7_UINT8}};
enum { N = 100 };

typedef struct fixture {
    disk *disk;
    d7_io io;       /* the disk's, but for: */
    void *crc_file; /* the open one */
    int crc_errno;  /* writes to it fail with this; 0: they do not */
    int open_errno; /* so does its creation */
    d7_writer_options options;
    d7_writer *w;
    d7_verify_summary s;
    d7_problem problems[16]; /* [n_problems] */
    size_t n_problems;
    uint16_t v[N];
    d7_error err;
} fixture;

static bool is_crc(const char *name) {
    size_t n = strlen(name), suffix = strlen(D7_CHECKSUMS_SUFFIX);
    return n > suffix && strcmp(name + n - suffix, D7_CHECKSUMS_SUFFIX) == 0;
}

static int failing_open(void *ctx, const char *name, int flags, unsigned mode, void **ret_file) {
    fixture *f = ctx;
    const d7_io *io = disk_io(f->disk);
    if (is_crc(name) && f->open_errno)
        return -f->open_errno;
    int rc = io->open(io->ctx, name, flags, mode, ret_file);
    if (rc == 0 && is_crc(name))
        f->crc_file = *ret_file;
    return rc;
}

static int64_t failing_pwrite(void *ctx, void *file, const void *data, size_t bytes, uint64_t offset) {
    fixture *f = ctx;
    const d7_io *io = disk_io(f->disk);
    if (file != f->crc_file || !f->crc_errno)
        return io->pwrite(io->ctx, file, data, bytes, offset);
    if (bytes < 8 || f->crc_errno != ENOSPC)
        return -f->crc_errno;
    return io->pwrite(io->ctx, file, data, 7, offset); /* the disk fills up in the middle */
}

/* The rest of the table with the disk's own ctx. */
#define FORWARD(type, name, parameters, ...)                                                                 \
    static type forward_##name parameters {                                                                  \
        const d7_io *io = disk_io(((fixture *)ctx)->disk);                                                   \
        return io->name(io->ctx, __VA_ARGS__);                                                               \
    }
FORWARD(int, close, (void *ctx, void *file), file)
FORWARD(int64_t, pread, (void *ctx, void *file, void *buffer, size_t bytes, uint64_t offset), file, buffer,
        bytes, offset)
FORWARD(int, sync_data, (void *ctx, void *file), file)
FORWARD(int, size, (void *ctx, void *file, uint64_t *ret_bytes), file, ret_bytes)
FORWARD(int, truncate, (void *ctx, void *file, uint64_t bytes), file, bytes)
FORWARD(int, lock, (void *ctx, void *file), file)
FORWARD(int, held, (void *ctx, void *file, bool *ret_held), file, ret_held)
FORWARD(int, remove, (void *ctx, const char *name), name)

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->disk = disk_new(1);
    f->io = (d7_io){.ctx = f,
                    .open = failing_open,
                    .close = forward_close,
                    .pread = forward_pread,
                    .pwrite = failing_pwrite,
                    .sync_data = forward_sync_data,
                    .size = forward_size,
                    .truncate = forward_truncate,
                    .lock = forward_lock,
                    .held = forward_held,
                    .remove = forward_remove};
    f->options = testing_writer_options(&f->io);
    f->options.checksums = true;
    f->options.bytes_per_page = 16;
    for (size_t i = 0; i < N; i++)
        f->v[i] = (uint16_t)(i * 7919);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    d7_writer_free(f->w);
    disk_free(f->disk);
    free(f);
    return 0;
}

/* ---- writing and verifying ---- */

static void create(fixture *f) {
    if (d7_writer_create(&f->w, path, two, 2, &f->options, &f->err) != 0)
        fail_msg("create: %s", f->err.text);
}

static void append(fixture *f, size_t n) {
    assert_int_equal(d7_writer_append(f->w, 0, f->v, n, &f->err), 0);
    assert_int_equal(d7_writer_append(f->w, 1, f->v, n, &f->err), 0);
    assert_int_equal(d7_writer_flush(f->w, &f->err), 0);
}

static void end(fixture *f) {
    assert_int_equal(d7_writer_close(f->w, &f->err), 0);
    d7_writer_free(f->w);
    f->w = NULL;
}

/* A closed file of 20 pages with its checksums. */
static void write_file(fixture *f) {
    f->options.overwrite = true;
    create(f);
    append(f, 40);
    append(f, N - 40);
    end(f);
}

static bool has(const fixture *f, const char *name) {
    size_t n;
    return disk_content(f->disk, name, &n) != NULL;
}

static uint8_t *copy_of(const fixture *f, const char *name, size_t *ret_n) {
    const uint8_t *now = disk_content(f->disk, name, ret_n);
    assert_non_null(now);
    uint8_t *copy = malloc(*ret_n + 1);
    memcpy(copy, now, *ret_n);
    return copy;
}

/* But for the note that these files have short pages. */
static void take_problem(void *ctx, const d7_problem *p) {
    fixture *f = ctx;
    if (p->code == D7_PROBLEM_NARROW_READERS)
        return;
    if (f->n_problems < sizeof f->problems / sizeof *f->problems)
        f->problems[f->n_problems++] = *p;
}

static unsigned warnings(const fixture *f) {
    return d7_writer_warnings(f->w) & ~(unsigned)D7_WARN_PAGE_BYTES;
}

/* Returns what opening returned. */
static int verify(fixture *f) {
    d7_reader_options o = {.io = &f->io};
    d7_reader *r;
    f->n_problems = 0;
    int rc = d7_reader_open(&r, path, &o, &f->err);
    if (rc != 0)
        return rc;
    if (d7_reader_verify(r, take_problem, f, NULL, NULL, &f->s, &f->err) != 0)
        fail_msg("verify: %s", f->err.text);
    d7_reader_free(r);
    return 0;
}

static void expect_problems(fixture *f, size_t n) {
    assert_int_equal(verify(f), 0);
    if (f->n_problems == n)
        return;
    for (size_t i = 0; i < f->n_problems; i++)
        print_error("%s: %s\n", d7_problem_name(f->problems[i].code), f->problems[i].text);
    fail_msg("%d problems, not %d", (int)f->n_problems, (int)n);
}

/* One note about the checksums and nothing else. */
static void expect_note(fixture *f, const char *part_of_text) {
    expect_problems(f, 1);
    assert_int_equal(f->problems[0].code, D7_PROBLEM_CHECKSUM_FILE);
    assert_int_equal(f->problems[0].severity, D7_STYLE);
    if (!strstr(f->problems[0].text, part_of_text))
        fail_msg("%s", f->problems[0].text);
}

static void all_entries_are_summed(void **state) {
    fixture *f = *state;
    size_t n, bare_n;
    write_file(f);
    expect_problems(f, 0);
    assert_true(f->s.has_checksums);
    assert_int_equal(f->s.checked_entries, f->s.entries);
    assert_int_equal(f->s.pages, 13 + 7);
    uint8_t *with = copy_of(f, path, &n);
    f->options.checksums = false; /* the file is the same without, and its old checksums are gone */
    write_file(f);
    assert_false(has(f, crc_path));
    uint8_t *bare = copy_of(f, path, &bare_n);
    assert_int_equal(n, bare_n);
    assert_memory_equal(with, bare, n);
    expect_problems(f, 0);
    assert_false(f->s.has_checksums);
    free(with);
    free(bare);
}

static void open_files_are_covered_up_to_the_flush(void **state) {
    fixture *f = *state;
    create(f);
    append(f, 40);
    expect_problems(f, 0);
    assert_true(f->s.held);
    assert_int_equal(f->s.checked_entries, f->s.entries);
    disk_kill(f->disk);
    d7_writer_free(f->w);
    f->w = NULL;
    expect_problems(f, 0);
    assert_int_equal(f->s.checked_entries, f->s.entries);
}

static void changed_pages_are_named(void **state) {
    fixture *f = *state;
    size_t n;
    write_file(f);
    d7_reader_options o = {.io = &f->io};
    d7_reader *r;
    d7_page_info page;
    assert_int_equal(d7_reader_open(&r, path, &o, &f->err), 0);
    assert_int_equal(d7_reader_page(r, 1, 2, &page), 0);
    d7_reader_free(r);
    uint8_t *data = copy_of(f, path, &n);
    data[page.offset + 12] ^= 4; /* a value of a raw page: it decodes as before */
    disk_put(f->disk, path, data, n);
    expect_problems(f, 1);
    d7_problem p = f->problems[0];
    assert_int_equal(p.code, D7_PROBLEM_CHECKSUM);
    assert_int_equal(p.severity, D7_DAMAGE);
    assert_int_equal(p.offset, page.offset);
    assert_int_equal(p.dataset_id, 1);
    assert_int_equal(p.first_item, 32);
    assert_int_equal(p.n_items, 16);
    assert_int_equal(f->s.checked_entries, f->s.entries - 1);
    free(data);
}

/* They decode, but are damage to a reader that has compared. */
static void changed_pages_are_damaged_once_compared(void **state) {
    fixture *f = *state;
    size_t n;
    uint8_t values[N];
    d7_problem p;
    d7_page_info page;
    write_file(f);
    d7_reader_options o = {.io = &f->io};
    d7_reader *r;
    assert_int_equal(d7_reader_open(&r, path, &o, &f->err), 0);
    assert_int_equal(d7_reader_compare_checksums(r, NULL, NULL, &f->err), 0);
    assert_int_equal(d7_reader_page(r, 1, 2, &page), 0);
    assert_int_equal(d7_reader_read(r, 1, 0, N, values, &f->err), 0);
    assert_int_equal(d7_reader_n_damages(r), 0);
    d7_reader_free(r);
    uint8_t *data = copy_of(f, path, &n);
    data[page.offset + 12] ^= 4;
    disk_put(f->disk, path, data, n);
    free(data);
    assert_int_equal(d7_reader_open(&r, path, &o, &f->err), 0);
    assert_int_equal(d7_reader_read(r, 1, 0, N, values, &f->err), 0);
    assert_int_equal(d7_reader_compare_checksums(r, NULL, NULL, &f->err), 0);
    assert_int_equal(d7_reader_n_damages(r), 1);
    assert_int_equal(d7_reader_problem(r, 0, &p), 0);
    assert_true(p.code == D7_PROBLEM_CHECKSUM && p.dataset_id == 1 && p.first_item == 32 && p.n_items == 16);
    assert_int_equal(d7_reader_read(r, 1, 0, 32, values, &f->err), 0);
    assert_int_equal(d7_reader_read(r, 1, 48, N - 48, values, &f->err), 0);
    assert_int_equal(d7_reader_read(r, 1, 47, 1, values, &f->err), D7_ERR_CORRUPT);
    assert_int_equal(d7_reader_read(r, 1, 0, N, values, &f->err), D7_ERR_CORRUPT);
    d7_columns *columns;
    d7_chunk chunk;
    d7_columns_options options;
    d7_columns_options_init(&options);
    options.skip_damaged = true;
    size_t rows = 0;
    assert_int_equal(d7_columns_open(&columns, r, (uint32_t[]){0, 1}, 2, &options, &f->err), 0);
    while (d7_columns_next(columns, &chunk, &f->err) == 0 && chunk.n)
        rows += chunk.n;
    assert_int_equal(rows, N - 16);
    d7_columns_free(columns);
    d7_reader_free(r);
}

/* With checksums no single bit can change unnoticed. */
static void each_flipped_bit_is_found(void **state) {
    fixture *f = *state;
    size_t n;
    f->options.attributes = &(d7_attribute){.key = "k", .value = "value"};
    f->options.n_attributes = 1;
    create(f);
    append(f, 30);
    end(f);
    uint8_t *data = copy_of(f, path, &n);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        bool padding = bit / 8 >= 700 && bit / 8 < D7_BLOCK_BYTES;
        if (padding && bit % 1001)
            continue;
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        disk_put(f->disk, path, data, n);
        if (verify(f) == 0 && f->s.damages == 0)
            fail_msg("bit %d of byte %d", (int)(bit % 8), (int)(bit / 8));
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(data);
}

/* Whatever is wrong with them, the file is good. */
static void damaged_checksums_are_no_damage(void **state) {
    fixture *f = *state;
    size_t n;
    write_file(f);
    uint8_t *crc = copy_of(f, crc_path, &n);
    for (size_t bytes = 0; bytes < n; bytes++) {
        disk_put(f->disk, crc_path, crc, bytes);
        assert_int_equal(verify(f), 0);
        assert_int_equal(f->s.damages, 0);
        assert_true(f->s.style_notes > 0);
    }
    for (size_t bit = 0; bit < 8 * n; bit++) {
        crc[bit / 8] ^= (uint8_t)(1 << bit % 8);
        disk_put(f->disk, crc_path, crc, n);
        assert_int_equal(verify(f), 0);
        assert_int_equal(f->s.damages, 0);
        assert_true(f->s.style_notes > 0);
        crc[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(crc);
}

static void another_files_checksums_say_nothing(void **state) {
    fixture *f = *state;
    size_t n;
    write_file(f);
    uint8_t *crc = copy_of(f, crc_path, &n);
    for (size_t i = 0; i < N; i++)
        f->v[i] = (uint16_t)(f->v[i] ^ 0x155);
    write_file(f);
    disk_put(f->disk, crc_path, crc, n);
    assert_int_equal(verify(f), 0);
    assert_int_equal(f->s.damages, 0);
    assert_int_equal(f->problems[f->n_problems - 1].code, D7_PROBLEM_CHECKSUM_FILE);
    assert_non_null(strstr(f->problems[f->n_problems - 1].text, "another file's"));
    free(crc);
}

static void files_cut_or_grown_since_are_told(void **state) {
    fixture *f = *state;
    size_t n, n_open, n_crc;
    create(f);
    append(f, 40);
    uint8_t *crc = copy_of(f, crc_path, &n_crc), *open = copy_of(f, path, &n_open);
    end(f);
    uint8_t *closed = copy_of(f, path, &n);
    disk_put(f->disk, path, open, n_open); /* as after a cut */
    expect_note(f, "entries that it has and the file does not");
    disk_put(f->disk, path, closed, n); /* as closed by a repair */
    disk_put(f->disk, crc_path, crc, n_crc);
    expect_note(f, "entries that it does not have");
    free(crc);
    free(open);
    free(closed);
}

/* A page less, and all after it moved up: each would look like a page that has changed. So does the epilogue. */
static void write_anew(fixture *f) {
    size_t n;
    uint8_t bytes[16 * 12];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i < 128 ? 1 : i);
    f->options.overwrite = true;
    create(f);
    assert_int_equal(d7_writer_append(f->w, 1, bytes, sizeof bytes, &f->err), 0);
    end(f);
    uint8_t *crc = copy_of(f, crc_path, &n);
    create(f);
    assert_int_equal(d7_writer_append(f->w, 1, bytes, 128, &f->err), 0);
    assert_int_equal(d7_writer_append(f->w, 1, bytes + 144, sizeof bytes - 144, &f->err), 0);
    end(f);
    disk_put(f->disk, crc_path, crc, n);
    free(crc);
}

static void files_written_anew_are_told(void **state) {
    fixture *f = *state;
    write_anew(f);
    expect_note(f, "written anew since; entries that differ: 4");
}

/* What verify takes for a file written anew a repair does too: it loses the page that is damaged, and no other. */
static void repairs_of_files_written_anew_keep_their_pages(void **state) {
    fixture *f = *state;
    d7_repair_options o;
    d7_repair_report report = {0};
    d7_reader_options reading;
    d7_reader *r;
    d7_page_info page;
    size_t n;
    write_anew(f);
    d7_reader_options_init(&reading);
    reading.io = &f->io;
    assert_int_equal(d7_reader_open(&r, path, &reading, &f->err), 0);
    assert_int_equal(d7_reader_page(r, 1, 1, &page), 0);
    d7_reader_free(r);
    uint8_t *file = copy_of(f, path, &n);
    file[page.offset + 2] ^= 0x40; /* the tag of its message */
    disk_put(f->disk, path, file, n);
    d7_repair_options_init(&o);
    o.io = &f->io;
    assert_int_equal(d7_repair(path, "b.photons", &o, &report, &f->err), 0);
    assert_int_equal(report.datasets[1].lost, page.n_items);
    assert_int_equal(report.datasets[1].kept, 16 * 11 - page.n_items);
    d7_repair_report_free(&report);
    free(file);
}

/* ---- failures ---- */

static void a_full_disk_delays_them(void **state) {
    fixture *f = *state;
    create(f);
    f->crc_errno = ENOSPC;
    append(f, 40);
    append(f, 20);
    assert_int_equal(warnings(f), 0);
    f->crc_errno = 0;
    append(f, N - 60);
    end(f);
    expect_problems(f, 0);
    assert_int_equal(f->s.checked_entries, f->s.entries);
}

static void a_disk_full_at_the_close_ends_them(void **state) {
    fixture *f = *state;
    d7_error failure;
    create(f);
    append(f, 40);
    assert_false(d7_writer_checksum_failure(f->w, &failure));
    f->crc_errno = ENOSPC;
    append(f, 20);
    assert_int_equal(d7_writer_close(f->w, &f->err), 0);
    assert_int_equal(warnings(f), D7_WARN_CHECKSUMS);
    assert_true(d7_writer_checksum_failure(f->w, &failure));
    assert_int_equal(failure.code, D7_ERR_NOSPACE);
    assert_non_null(strstr(failure.text, crc_path));
    d7_writer_free(f->w);
    f->w = NULL;
    f->crc_errno = 0;
    assert_int_equal(verify(f), 0);
    assert_int_equal(f->s.damages, 0);
    assert_true(f->s.checked_entries >= 8 && f->s.checked_entries < f->s.entries);
}

static void errors_end_them_and_not_the_file(void **state) {
    fixture *f = *state;
    create(f);
    f->crc_errno = EIO;
    append(f, 40);
    assert_int_equal(warnings(f), D7_WARN_CHECKSUMS);
    f->crc_errno = 0;
    append(f, 20);
    end(f);
    expect_note(f, "entries that it does not have");
    assert_int_equal(f->s.checked_entries, 1); /* the header */
}

static void creation_needs_both(void **state) {
    fixture *f = *state;
    f->open_errno = EACCES;
    assert_int_equal(d7_writer_create(&f->w, path, two, 2, &f->options, &f->err), D7_ERR_IO);
    assert_non_null(strstr(f->err.text, crc_path));
    assert_false(has(f, path));
    f->open_errno = 0;
    disk_put(f->disk, crc_path, "left over", 9);
    create(f);
    append(f, 40);
    end(f);
    expect_problems(f, 0);
    f->options.overwrite = false; /* refused: nothing is touched */
    assert_int_equal(d7_writer_create(&f->w, path, two, 2, &f->options, &f->err), D7_ERR_EXISTS);
    expect_problems(f, 0);
    assert_int_equal(f->s.checked_entries, f->s.entries);
}

static void memory_that_runs_out_is_survived(void **state) {
    fixture *f = *state;
    memcount memory = {0};
    d7_alloc alloc = memcount_table(&memory);
    f->options.alloc = &alloc;
    f->options.overwrite = true;
    for (memory.fail_at = 1;; memory.fail_at++) {
        memory.calls = 0;
        int rc = d7_writer_create(&f->w, path, two, 2, &f->options, &f->err);
        if (rc == 0)
            rc = d7_writer_append(f->w, 0, f->v, N, &f->err);
        if (rc == 0)
            rc = d7_writer_close(f->w, &f->err);
        bool done = rc == 0 && memory.calls < memory.fail_at;
        d7_writer_free(f->w);
        f->w = NULL;
        assert_int_equal(memory.outstanding, 0);
        if (done)
            break;
        assert_true(rc == D7_ERR_NOMEM || rc == 0);
    }
    expect_problems(f, 0);
    assert_int_equal(f->s.checked_entries, f->s.entries);
    for (memory.fail_at = 1;; memory.fail_at++) {
        d7_reader_options o = {.io = &f->io, .alloc = &alloc};
        d7_reader *r = NULL;
        memory.calls = 0;
        int rc = d7_reader_open(&r, path, &o, &f->err);
        if (rc == 0)
            rc = d7_reader_verify(r, NULL, NULL, NULL, NULL, &f->s, &f->err);
        bool done = memory.calls < memory.fail_at;
        d7_reader_free(r);
        assert_int_equal(memory.outstanding, 0);
        if (done)
            break;
        assert_true(rc == D7_ERR_NOMEM || (rc == 0 && f->s.damages == 0));
    }
}

/* ---- for files that are there ---- */

static int stop_at_once(void *ctx, uint64_t done, uint64_t total) {
    (void)ctx;
    return done <= total;
}

static int write_sums(fixture *f, d7_progress_fn *progress) {
    d7_reader_options o = {.io = &f->io};
    d7_reader *r;
    assert_int_equal(d7_reader_open(&r, path, &o, &f->err), 0);
    int rc = d7_reader_write_checksums(r, NULL, progress, NULL, &f->err);
    d7_reader_free(r);
    return rc;
}

static void checksums_can_be_made_later(void **state) {
    fixture *f = *state;
    f->options.checksums = false;
    create(f);
    append(f, N);
    assert_int_equal(write_sums(f, NULL), D7_ERR_LOCKED);
    end(f);
    assert_int_equal(write_sums(f, stop_at_once), D7_ERR_CANCELLED);
    assert_false(has(f, crc_path));
    f->crc_errno = ENOSPC;
    assert_int_equal(write_sums(f, NULL), D7_ERR_NOSPACE);
    assert_false(has(f, crc_path));
    f->crc_errno = 0;
    assert_int_equal(write_sums(f, NULL), 0);
    expect_problems(f, 0);
    assert_int_equal(f->s.checked_entries, f->s.entries);
    size_t n;
    uint8_t *data = copy_of(f, path, &n);
    disk_put(f->disk, path, data, n - 1); /* in the middle of the epilogue */
    assert_int_equal(write_sums(f, NULL), D7_ERR_CORRUPT);
    free(data);
}

/* More entries than one block takes. */
static void blocks_have_a_limit(void **state) {
    fixture *f = *state;
    enum { MANY = 8 * 3 * D7__SUMS_BLOCK_MAX };
    uint16_t *v = calloc(MANY, sizeof *v);
    create(f);
    assert_int_equal(d7_writer_append(f->w, 0, v, MANY, &f->err), 0);
    end(f);
    expect_problems(f, 0);
    assert_int_equal(f->s.checked_entries, f->s.entries);
    assert_true(f->s.entries > 3 * D7__SUMS_BLOCK_MAX);
    assert_int_equal(write_sums(f, NULL), 0);
    expect_problems(f, 0);
    assert_int_equal(f->s.checked_entries, f->s.entries);
    free(v);
}

/* ---- after a crash ---- */

static const d7_type types[] = {D7_UINT16, D7_UINT8};
static const d7_tail_layout layout = {
    .bytes_per_page = 16, .types = types, .n_datasets = 2, .attribute_bytes = 512};

/* A recording with a tail, killed after its last mark; 30 items of each dataset are marked, 60 written. */
static void crash(fixture *f) {
    d7_tail_options o;
    d7_tail *tail;
    d7_tail_options_init(&o);
    o.io = &f->io;
    assert_int_equal(d7_tail_create(&tail, "a.photons.tail", &layout, (const uint8_t *)"0123456789abcde", 0,
                                    0, &o, &f->err),
                     0);
    f->options.io = d7_tail_io(tail);
    create(f);
    append(f, 30);
    d7_tail_dataset datasets[2] = {
        {.type = D7_UINT16, .items = 30, .n_partial = 30 % 8, .partial = f->v + 24},
        {.type = D7_UINT8, .items = 30, .n_partial = 30 % 16, .partial = (uint8_t *)f->v + 16}};
    d7_tail_mark mark = {.sequence = 1, .datasets = datasets, .n_datasets = 2};
    assert_int_equal(d7_tail_mark_slot(tail, d7_writer_framed_bytes(f->w), &mark, &f->err), 0);
    append(f, 30);
    d7_writer_free(f->w);
    f->w = NULL;
    d7_tail_free(tail);
    disk_kill(f->disk);
}

/* Recovers, goes on with or without checksums, appends and closes. */
static void go_on(fixture *f, bool checksums) {
    d7_tail_recover_options o;
    d7_tail_recovery recovery;
    d7_tail *tail;
    d7_tail_recover_options_init(&o);
    o.io = &f->io;
    assert_int_equal(d7_tail_recover(&tail, path, &o, &recovery, &f->err), 0);
    f->options.io = d7_tail_io(tail);
    f->options.checksums = checksums;
    if (d7_writer_resume(&f->w, path, d7_tail_recovered(tail), &f->options, &f->err) != 0)
        fail_msg("resume: %s", f->err.text);
    for (size_t i = 0; i < N; i++) /* other values than before the crash */
        f->v[i] = (uint16_t)(f->v[i] ^ 0x155);
    append(f, 40);
    if (checksums) {
        d7_tail_dataset datasets[2] = {
            {.type = D7_UINT16, .items = 70, .n_partial = 6, .partial = f->v + 34},
            {.type = D7_UINT8, .items = 70, .n_partial = 6, .partial = (uint8_t *)f->v + 34}};
        d7_tail_mark mark = {.sequence = 2, .datasets = datasets, .n_datasets = 2};
        assert_int_equal(d7_tail_mark_slot(tail, d7_writer_framed_bytes(f->w), &mark, &f->err), 0);
    }
    end(f);
    d7_tail_free(tail);
    f->options.io = &f->io;
}

static void resuming_goes_on_with_them(void **state) {
    fixture *f = *state;
    crash(f);
    go_on(f, true);
    expect_problems(f, 0);
    assert_int_equal(f->s.checked_entries, f->s.entries);
}

/* In whatever state the crash left them, none at all included. */
static void resuming_makes_up_for_lost_ones(void **state) {
    fixture *f = *state;
    size_t n, n_tail, n_file;
    crash(f);
    uint8_t *crc = copy_of(f, crc_path, &n), *tail = copy_of(f, "a.photons.tail", &n_tail),
            *file = copy_of(f, path, &n_file);
    for (size_t bytes = 0; bytes <= n + 1; bytes++) {
        disk_put(f->disk, path, file, n_file);
        disk_put(f->disk, "a.photons.tail", tail, n_tail);
        if (bytes == n + 1)
            f->io.remove(f->io.ctx, crc_path);
        else
            disk_put(f->disk, crc_path, crc, bytes);
        go_on(f, true);
        expect_problems(f, 0);
        assert_int_equal(f->s.checked_entries, f->s.entries);
    }
    free(crc);
    free(tail);
    free(file);
}

/* A power cut can leave checksums of entries that the file lost. What a repair puts in their place is no
 * damage. */
static void repairs_in_place_cut_them(void **state) {
    fixture *f = *state;
    size_t n, n_crc;
    create(f);
    append(f, N);
    d7_writer_free(f->w);
    f->w = NULL;
    uint8_t *file = copy_of(f, path, &n), *crc = copy_of(f, crc_path, &n_crc);
    d7_repair_options o;
    d7_repair_options_init(&o);
    o.io = &f->io;
    for (size_t bytes = 100; bytes <= n; bytes++) {
        d7_repair_report report = {0};
        disk_put(f->disk, path, file, bytes);
        disk_put(f->disk, crc_path, crc, n_crc);
        if (d7_repair_in_place(path, &o, &report, &f->err) != 0)
            fail_msg("repair: %s", f->err.text);
        d7_repair_report_free(&report);
        expect_note(f, "entries that it does not have");
        assert_int_equal(f->s.state, D7_STATE_CLOSED);
    }
    free(file);
    free(crc);
}

/* Checksums that cannot be gone on with end, and what is no longer true of the file goes. */
static void resuming_does_without(void **state) {
    fixture *f = *state;
    for (int checksums = 0; checksums < 2; checksums++) {
        f->options.io = &f->io;
        f->options.checksums = f->options.overwrite = true;
        crash(f);
        f->open_errno = EACCES;
        d7_tail_recover_options o;
        d7_tail_recovery recovery;
        d7_tail *tail;
        d7_tail_recover_options_init(&o);
        o.io = &f->io;
        assert_int_equal(d7_tail_recover(&tail, path, &o, &recovery, &f->err), 0);
        f->options.io = d7_tail_io(tail);
        f->options.checksums = checksums;
        assert_int_equal(d7_writer_resume(&f->w, path, d7_tail_recovered(tail), &f->options, &f->err), 0);
        assert_int_equal(warnings(f), checksums ? D7_WARN_CHECKSUMS : 0);
        assert_false(has(f, crc_path));
        f->open_errno = 0;
        append(f, 40);
        end(f);
        d7_tail_free(tail);
        expect_problems(f, 0);
        f->io.remove(f->io.ctx, "a.photons.tail");
    }
}

static void resuming_without_leaves_nothing_wrong(void **state) {
    fixture *f = *state;
    crash(f);
    go_on(f, false);
    expect_note(f, "entries that it does not have");
    assert_true(f->s.checked_entries > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(all_entries_are_summed),
        TEST(open_files_are_covered_up_to_the_flush),
        TEST(changed_pages_are_named),
        TEST(changed_pages_are_damaged_once_compared),
        TEST(each_flipped_bit_is_found),
        TEST(damaged_checksums_are_no_damage),
        TEST(another_files_checksums_say_nothing),
        TEST(files_cut_or_grown_since_are_told),
        TEST(files_written_anew_are_told),
        TEST(repairs_of_files_written_anew_keep_their_pages),
        TEST(a_full_disk_delays_them),
        TEST(a_disk_full_at_the_close_ends_them),
        TEST(errors_end_them_and_not_the_file),
        TEST(creation_needs_both),
        TEST(memory_that_runs_out_is_survived),
        TEST(checksums_can_be_made_later),
        TEST(blocks_have_a_limit),
        TEST(resuming_goes_on_with_them),
        TEST(resuming_makes_up_for_lost_ones),
        TEST(resuming_does_without),
        TEST(repairs_in_place_cut_them),
        TEST(resuming_without_leaves_nothing_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

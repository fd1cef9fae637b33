/* A file of 20 GB that was cut short, with good islands: opening it reads the islands and what follows the last one, and
 * nothing else. The file is sparse: between the islands lie holes, and whoever read them would find no pages. */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "d7_testing.h"
#include "framing.h"
#include "index.h"
#include "messages.h"
#include "testing.h"

enum {
    STEP = D7_INDEX_STEP_DEFAULT,
    N_ISLANDS = 2560,
    AFTER_LAST = 100, /* pages that no island lists */
    PAGE_ITEMS = D7_PAGE_BYTES_DEFAULT / 2,
    WINDOW_BYTES = 2 * D7_BLOCK_BYTES /* that are read where an island is looked for */
};

#define ISLAND_BYTES ((uint64_t)STEP * D7_BLOCK_BYTES)

typedef struct fixture {
    char folder[32], path[64];
    int fd;
    uint64_t at; /* where the file ends */
    d7__page_ref pages[STEP];
    size_t n_pages; /* since the last island */
    uint64_t all_pages;
    d7_io io;
    uint64_t bytes_read;
    d7_error err;
} fixture;

static int64_t counting_pread(void *ctx, void *file, void *buffer, size_t bytes, uint64_t offset) {
    fixture *f = ctx;
    const d7_io *io = d7_io_system();
    int64_t n = io->pread(io->ctx, file, buffer, bytes, offset);
    f->bytes_read += n > 0 ? (uint64_t)n : 0;
    return n;
}

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    strcpy(f->folder, "/tmp/d7-sparse-XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    snprintf(f->path, sizeof f->path, "%s/run.photons", f->folder);
    f->fd = open(f->path, O_RDWR | O_CREAT | O_EXCL, 0600);
    f->io = *d7_io_system();
    f->io.ctx = f;
    f->io.pread = counting_pread;
    *state = f;
    return f->fd >= 0 ? 0 : -1;
}

static int teardown(void **state) {
    fixture *f = *state;
    close(f->fd);
    unlink(f->path);
    int rc = rmdir(f->folder);
    free(f);
    return rc;
}

/* Frames an entry at `offset`. */
static void put(fixture *f, uint64_t offset, const uint8_t *entry, size_t bytes) {
    uint8_t *framed = malloc(d7__frame_bound(bytes));
    size_t n = d7__frame(offset, entry, bytes, framed);
    assert_int_equal(pwrite(f->fd, framed, n, (off_t)offset), (ssize_t)n);
    f->at = offset + n;
    free(framed);
}

static void put_header(fixture *f) {
    static const d7_dataset one[] = {{"/x", D7_UINT16}};
    d7_alloc alloc = d7__alloc_or_default(NULL);
    uint8_t *entry;
    size_t bytes;
    assert_int_equal(d7__header_pack(&alloc, one, 1, STEP, D7_PAGE_BYTES_DEFAULT, &entry, &bytes), 0);
    put(f, 0, entry, bytes);
    free(entry);
}

static void list_page(fixture *f, uint64_t offset) {
    assert_true(f->n_pages < STEP);
    f->pages[f->n_pages++] = (d7__page_ref){.offset = offset};
    f->all_pages++;
}

static void put_page(fixture *f) {
    static uint16_t values[PAGE_ITEMS];
    size_t cap = d7_page_bound(D7_UINT16, PAGE_ITEMS), bytes;
    uint8_t *entry = malloc(cap);
    uint64_t offset = d7__frame_begin(f->at);
    uint64_t rng = offset;
    for (size_t i = 0; i < PAGE_ITEMS; i++)
        values[i] = (uint16_t)(testing_random(&rng) & 0xFFF);
    assert_int_equal(d7_page_encode(0, D7_UINT16, values, PAGE_ITEMS, entry, cap, &bytes), 0);
    put(f, f->at, entry, bytes);
    list_page(f, offset);
    free(entry);
}

/* At the start of the block where it is due. */
static void put_island(fixture *f, uint64_t offset) {
    uint8_t entry[STEP * 16];
    d7__index_part part = {0};
    d7__index_content content = {.pages = f->pages, .n_pages = f->n_pages};
    assert_true(d7__index_next_part(&content, &part));
    put(f, offset, entry, d7__index_pack(&content, &part, entry));
    f->n_pages = 0;
}

/* The pages that the first islands list begin one a block, all but the first in a hole. */
static void put_file(fixture *f) {
    put_header(f);
    put_page(f);
    for (uint64_t k = 1; k <= N_ISLANDS; k++) {
        for (uint64_t block = (k - 1) * STEP + 2; block < k * STEP; block++)
            list_page(f, block * D7_BLOCK_BYTES);
        /* The first page right where the last island ended: nothing lies in between. */
        if (k > 1)
            f->pages[0].offset = d7__frame_begin(f->at);
        put_island(f, k * ISLAND_BYTES);
    }
    for (int i = 0; i < AFTER_LAST; i++) {
        f->n_pages = 0;
        put_page(f);
    }
}

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Where the torn entry begins. */
static uint64_t offset_of_last(const d7_reader *r) {
    d7_problem p;
    assert_int_equal(d7_reader_problem(r, 0, &p), 0);
    assert_int_equal(p.code, D7_PROBLEM_TORN_TAIL);
    return p.offset;
}

static void opening_reads_the_islands_and_the_end(void **state) {
    fixture *f = *state;
    d7_reader_options options = {.io = &f->io};
    d7_reader *r;
    d7_dataset_info info;
    struct stat st;
    put_file(f);
    uint64_t whole = f->at, after_last = whole - N_ISLANDS * ISLAND_BYTES;
    assert_int_equal(ftruncate(f->fd, (off_t)(whole - 100)), 0); /* cut inside the last page */
    assert_int_equal(fstat(f->fd, &st), 0);
    assert_true(st.st_size > (off_t)20 * 1000 * 1000 * 1000);
    double start = now_ms();
    assert_int_equal(d7_reader_open(&r, f->path, &options, &f->err), 0);
    print_message("%.1f GB (%.1f MB on the disk), %llu pages: opened in %.0f ms, %.1f MB read\n",
                  (double)st.st_size / 1e9, (double)st.st_blocks * 512 / 1e6,
                  (unsigned long long)d7_reader_pages(r), now_ms() - start, (double)f->bytes_read / 1e6);
    assert_true(f->bytes_read <= (uint64_t)N_ISLANDS * WINDOW_BYTES + after_last + (1 << 20));
    assert_int_equal(d7_reader_pages(r), f->all_pages - 1);
    assert_int_equal(d7_reader_n_problems(r), 1); /* the torn entry */
    assert_int_equal(d7_reader_dataset(r, 0, &info), 0);
    assert_int_equal(info.items, (f->all_pages - 1) * PAGE_ITEMS);

    /* Written on: a refresh reads that. */
    unsigned changes;
    f->bytes_read = 0;
    assert_int_equal(d7_reader_refresh(r, &changes, &f->err), 0);
    assert_int_equal(changes, 0);
    assert_true(f->bytes_read < 4096);
    f->n_pages = 0;
    f->at = offset_of_last(r);
    put_page(f);
    assert_int_equal(d7_reader_refresh(r, &changes, &f->err), 0);
    assert_int_equal(changes, D7_CHANGE_GREW);
    assert_int_equal(d7_reader_n_problems(r), 0);
    assert_true(f->bytes_read < 8 * D7_BLOCK_BYTES);
    d7_reader_free(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(opening_reads_the_islands_and_the_end, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

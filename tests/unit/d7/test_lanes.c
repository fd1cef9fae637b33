/* Reading with several lanes: the same values, errors and problems as with one, whatever is wrong with the
 * file; no memory is taken once the first reading has been done. */
#include "d7_builder.h"
#include "d7_testing.h"
#include "testing.h"

enum { N = 150000, ITEMS = 2048, PAGE = 2 * ITEMS, ENTRY_MAX = 400000 };

typedef struct fixture {
    testing_place at;
    d7_reader *one, *many; /* the same file, with one lane and with several */
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    testing_place_begin(&f->at);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    d7_reader_free(f->one);
    d7_reader_free(f->many);
    bool leak = testing_place_end(&f->at);
    free(f);
    return leak;
}

static d7_reader *open_with(fixture *f, const d7_io *io, const d7_executor *threads, unsigned lanes) {
    d7_reader_options o;
    d7_reader *r = NULL;
    d7_error err;
    d7_reader_options_init(&o);
    o.io = io;
    o.alloc = &f->at.alloc;
    o.executor = threads;
    o.lanes = lanes;
    if (d7_reader_open(&r, "memory", &o, &err) != 0)
        fail_msg("open: %s", err.text);
    return r;
}

static void open_both(fixture *f, const d7_io *io, unsigned lanes) {
    d7_reader_free(f->one);
    d7_reader_free(f->many);
    f->one = f->many = NULL;
    f->one = open_with(f, io, NULL, 0);
    f->many = open_with(f, io, &f->at.executor, lanes);
}

static void same_problems(const fixture *f) {
    d7_problem a, b;
    assert_int_equal(d7_reader_n_problems(f->one), d7_reader_n_problems(f->many));
    for (size_t i = 0; d7_reader_problem(f->one, i, &a) == 0; i++) {
        assert_int_equal(d7_reader_problem(f->many, i, &b), 0);
        assert_int_equal(a.code, b.code);
        assert_int_equal(a.offset, b.offset);
        assert_int_equal(a.first_item, b.first_item);
        assert_int_equal(a.n_items, b.n_items);
        assert_string_equal(a.text, b.text);
    }
}

static int code_of(d7_reader *r, uint32_t ds, uint64_t from, size_t n, uint16_t *out, d7_error *err) {
    *err = (d7_error){0};
    memset(out, 0xA5, n * 2 + 2);
    return d7_reader_read(r, ds, from, n, out, err);
}

/* Reads with both; returns the code. Where it is 0, values are those of `want`. */
static int read_both(fixture *f, uint32_t ds, uint64_t from, size_t n, const uint16_t *want) {
    uint16_t *a = malloc(n * 2 + 2), *b = malloc(n * 2 + 2);
    d7_error err_a, err_b;
    int rc = code_of(f->one, ds, from, n, a, &err_a);
    assert_int_equal(code_of(f->many, ds, from, n, b, &err_b), rc);
    assert_string_equal(err_a.text, err_b.text);
    assert_int_equal(err_a.code, rc);
    assert_int_equal(err_a.offset, err_b.offset);
    if (rc == 0)
        assert_memory_equal(a, want + from, n * 2);
    same_problems(f);
    free(a);
    free(b);
    return rc;
}

static uint64_t page_offset(d7_reader *r, uint32_t ds, uint64_t page) {
    d7_page_info info;
    assert_int_equal(d7_reader_page(r, ds, page, &info), 0);
    return info.offset;
}

static void any_number_of_lanes_reads_the_same(void **state) {
    fixture *f = *state;
    uint16_t *x = testing_noise(11, N);
    uint64_t rng = 4;
    testing_write(&f->at.io, N, 3000, 64, PAGE, true);
    for (unsigned lanes = 0; lanes <= 40; lanes = lanes * 2 + 1) {
        open_both(f, &f->at.io, lanes);
        assert_int_equal(read_both(f, 0, 0, N, x), 0);
        for (int i = 0; i < 20; i++) {
            uint64_t from = testing_random(&rng) % N;
            assert_int_equal(read_both(f, 0, from, (size_t)(testing_random(&rng) % (N - from)), x), 0);
        }
        assert_int_equal(read_both(f, 0, N, 1, x), D7_ERR_ARG);
    }
    free(x);
}

/* Bits are flipped in the whole file: some pages break, some only hold other values. */
static void damage_is_told_the_same(void **state) {
    fixture *f = *state;
    uint64_t rng = 77;
    testing_write(&f->at.io, N, 3000, 64, PAGE, true);
    open_both(f, &f->at.io, 4);
    uint64_t end = page_offset(f->one, 0, 60);
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < 5; i++)
            f->at.file.data[200 + testing_random(&rng) % (end - 200)] ^=
                (uint8_t)(1u << testing_random(&rng) % 8);
        open_both(f, &f->at.io, 4);
        for (uint32_t ds = 0; ds < 2; ds++) {
            d7_dataset_info info;
            d7_error err;
            assert_int_equal(d7_reader_dataset(f->one, ds, &info), 0);
            size_t n = (size_t)info.items;
            uint16_t *a = malloc(n * 2 + 2), *b = malloc(n * 2 + 2);
            int rc = code_of(f->one, ds, 0, n, a, &err);
            assert_int_equal(code_of(f->many, ds, 0, n, b, &err), rc);
            d7_page_info page;
            for (uint64_t i = 0; d7_reader_page(f->one, ds, i, &page) == 0; i++)
                if (!page.damaged && page.first_item + page.n_items <= n)
                    assert_memory_equal(a + page.first_item, b + page.first_item, (size_t)page.n_items * 2);
            same_problems(f);
            free(a);
            free(b);
        }
    }
}

static int refuse(void *ctx, void (*job)(void *arg), void *arg) {
    (void)ctx;
    (void)job;
    (void)arg;
    return -1;
}

static int run_now(void *ctx, void (*job)(void *arg), void *arg) {
    (void)ctx;
    job(arg);
    return 0;
}

static void nothing_to_wait_for(void *ctx) {
    (void)ctx;
}

static void any_executor_will_do(void **state) {
    static const d7_executor executors[] = {{.submit = refuse, .wait = nothing_to_wait_for},
                                            {.submit = run_now, .wait = nothing_to_wait_for}};
    fixture *f = *state;
    uint16_t *x = testing_noise(11, N);
    testing_write(&f->at.io, N, 3000, 64, PAGE, true);
    for (size_t i = 0; i < 2; i++) {
        open_both(f, &f->at.io, 1);
        d7_reader_free(f->many);
        f->many = open_with(f, &f->at.io, &executors[i], 3);
        assert_int_equal(read_both(f, 0, 5, N - 10, x), 0);
    }
    free(x);
}

/* After the first reading every allocation fails, and nobody notices. */
static void reading_takes_no_memory(void **state) {
    fixture *f = *state;
    uint16_t *x = testing_noise(11, N);
    uint64_t rng = 6;
    testing_write(&f->at.io, N, 3000, 64, PAGE, true);
    open_both(f, &f->at.io, 4);
    assert_int_equal(read_both(f, 0, 1, N - 2, x), 0);
    f->at.memory.fail_at = 1;
    for (int i = 0; i < 30; i++) {
        uint64_t from = testing_random(&rng) % N;
        assert_int_equal(read_both(f, 0, from, (size_t)(testing_random(&rng) % (N - from)), x), 0);
    }
    assert_int_equal(read_both(f, 0, 0, N, x), 0);
    assert_int_equal(f->at.memory.calls, 0);
    f->at.memory.fail_at = 0;
    free(x);
}

/* ---- reads that fail ---- */

/* Reads that touch [from, from + 100) or [again, again + 100) fail. */
typedef struct broken_disk {
    d7_io inner;
    uint64_t from, again;
} broken_disk;

static bool touches(uint64_t place, size_t bytes, uint64_t offset) {
    return offset < place + 100 && offset + bytes > place;
}

static int64_t broken_pread(void *ctx, void *file, void *buffer, size_t bytes, uint64_t offset) {
    const broken_disk *d = ctx;
    /* up to the place all is well */
    for (int i = 0; i < 2; i++) {
        uint64_t place = i ? d->again : d->from;
        if (touches(place, bytes, offset)) {
            if (offset >= place)
                return -5; /* EIO */
            bytes = (size_t)(place - offset);
        }
    }
    return d->inner.pread(d->inner.ctx, file, buffer, bytes, offset);
}

static int broken_open(void *ctx, const char *path, int flags, unsigned mode, void **ret_file) {
    const broken_disk *d = ctx;
    return d->inner.open(d->inner.ctx, path, flags, mode, ret_file);
}

static int broken_close(void *ctx, void *file) {
    const broken_disk *d = ctx;
    return d->inner.close(d->inner.ctx, file);
}

static int broken_size(void *ctx, void *file, uint64_t *ret_bytes) {
    const broken_disk *d = ctx;
    return d->inner.size(d->inner.ctx, file, ret_bytes);
}

static int broken_held(void *ctx, void *file, bool *ret_held) {
    const broken_disk *d = ctx;
    return d->inner.held(d->inner.ctx, file, ret_held);
}

static void the_first_failed_read_is_told(void **state) {
    fixture *f = *state;
    uint16_t *x = testing_noise(11, N);
    static broken_disk disk; /* the readers are freed after the test */
    disk = (broken_disk){.inner = f->at.io, .from = UINT64_MAX / 2, .again = UINT64_MAX / 2};
    d7_io io = {.ctx = &disk,
                .open = broken_open,
                .close = broken_close,
                .size = broken_size,
                .held = broken_held,
                .pread = broken_pread};
    testing_write(&f->at.io, N, 3000, 64, PAGE, true);
    open_both(f, &io, 4);
    uint64_t damaged = page_offset(f->one, 0, 5);
    disk.from = page_offset(f->one, 0, 20) + 500;
    disk.again = page_offset(f->one, 0, 50) + 500;
    for (int round = 0; round < 3; round++) {
        open_both(f, &io, 4);
        assert_int_equal(read_both(f, 0, 0, 20 * ITEMS, x), round == 2 ? D7_ERR_CORRUPT : 0);
        assert_int_equal(read_both(f, 0, 0, N, x), D7_ERR_IO);
        assert_int_equal(read_both(f, 0, 22 * ITEMS, 40 * ITEMS, x), D7_ERR_IO);
        assert_int_equal(read_both(f, 0, 51 * ITEMS, 10 * ITEMS, x), 0);
        if (round == 1) /* from now on there is damage before */
            f->at.file.data[damaged + 3] = 0x7A;
    }
    free(x);
}

/* ---- odd pages ---- */

/* A page with an unknown field that makes it far longer than usual. */
static void build_long_page(builder *b, const uint16_t *values, size_t n) {
    static uint8_t page[ENTRY_MAX], entry[ENTRY_MAX];
    size_t bytes, extra = 150000;
    assert_int_equal(d7_page_encode(0, D7_UINT16, values, n, page, sizeof page, &bytes), 0);
    d7__cursor c = {page + 1, page + bytes};
    uint64_t body;
    assert_true(d7__get_varint(&c, &body));
    uint8_t *p = entry;
    *p++ = page[0];
    p = d7__put_varint(p, body + 1 + d7__varint_bytes(extra) + extra);
    memcpy(p, c.at, (size_t)body);
    p += body;
    *p++ = D7__TAG(13, D7__BYTES);
    p = d7__put_varint(p, extra);
    memset(p, 0x55, extra);
    b->pages[b->n_pages++] = (d7__page_ref){.offset = build_entry(b, entry, (size_t)(p + extra - entry))};
}

static const d7_dataset one_dataset[] = {{"/x", D7_UINT16}};

static void finish(builder *b, fixture *f) {
    build_epilogue(b, build_index(b, 0, b->n_pages, NULL), true);
    build_end(b, &f->at.file);
}

static void pages_may_be_very_long(void **state) {
    static builder b;
    fixture *f = *state;
    uint16_t *x = testing_noise(3, 64 * 40);
    build_start(&b, one_dataset, 1, 512, 128);
    for (size_t i = 0; i < 40; i++)
        if (i % 7 == 3)
            build_long_page(&b, x + i * 64, 64);
        else
            build_page(&b, 0, D7_UINT16, x + i * 64, 64);
    finish(&b, f);
    open_both(f, &f->at.io, 3);
    assert_int_equal(read_both(f, 0, 0, 64 * 40, x), 0);
    assert_int_equal(read_both(f, 0, 100, 2000, x), 0);
    assert_int_equal(d7_reader_n_problems(f->one), 0);
    free(x);
}

/* Pages of 64 items but for two in the middle, which the first read that meets them makes known. */
static void odd_lengths_in_the_middle(void **state) {
    static const size_t lengths[] = {1, 63, 65, 500};
    static builder b;
    fixture *f = *state;
    uint16_t *x = testing_noise(3, 64 * 120);
    for (size_t i = 0; i < 4; i++)
        for (size_t odd = 1; odd < 99; odd += 24) {
            size_t total = 0;
            d7_dataset_info info;
            build_start(&b, one_dataset, 1, 512, 128);
            for (size_t k = 0; k < 100; k++) {
                size_t n = k == odd || k == odd + 40 ? lengths[i] : 64;
                build_page(&b, 0, D7_UINT16, x + total, n);
                total += n;
            }
            finish(&b, f);
            open_both(f, &f->at.io, 4);
            assert_int_equal(read_both(f, 0, 0, 64 * odd, x), 0);
            assert_int_equal(read_both(f, 0, 10, 64 * odd, x), 0); /* meets it with its last items */
            assert_int_equal(d7_reader_dataset(f->many, 0, &info), 0);
            assert_int_equal(info.items, total);
            assert_int_equal(read_both(f, 0, 0, total, x), 0);
            open_both(f, &f->at.io, 4);
            assert_int_equal(d7_reader_dataset(f->many, 0, &info), 0);
            size_t items =
                (size_t)info
                    .items; /* as opening thought: it looks into the last page, and full ones are before it */
            assert_int_equal(read_both(f, 0, 0, items, x), items <= total ? 0 : D7_ERR_ARG);
            assert_int_equal(read_both(f, 0, 0, total, x), 0);
        }
    free(x);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(any_number_of_lanes_reads_the_same),
        TEST(damage_is_told_the_same),
        TEST(any_executor_will_do),
        TEST(reading_takes_no_memory),
        TEST(the_first_failed_read_is_told),
        TEST(pages_may_be_very_long),
        TEST(odd_lengths_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

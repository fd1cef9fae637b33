/* Files whose blocks have no begin and end bits: read when asked for, also while they grow, cut and damaged. */
#include "base/bytes.h"
#include "d7_testing.h"
#include "framing.h"
#include "index.h"
#include "messages.h"
#include "testing.h"

enum { N_DATASETS = 3, ITEMS = 9000, BODY = D7_BLOCK_BYTES - 2, RUN_MAX = 200000 };

typedef struct fixture {
    memio file;
    d7_io io;
    memcount memory;
    d7_alloc alloc;
    d7_reader_options options;
    uint16_t *values;             /* the same in each dataset, but for the first one */
    size_t ends[N_DATASETS];      /* file offsets where the pages end */
    uint64_t offsets[N_DATASETS]; /* and begin */
    d7_error err;
} fixture;

/* Where byte i of the run is in the file. */
static uint64_t place(size_t i) {
    return i / BODY * D7_BLOCK_BYTES + 2 + i % BODY;
}

static void lay_down(fixture *f, const uint8_t *run, size_t n) {
    uint8_t *file = calloc(1, n + n / BODY * 2 + 4);
    size_t at = 0;
    for (size_t i = 0; i < n; i += BODY) {
        size_t bytes = n - i < BODY ? n - i : BODY;
        bytes_store16(file + at, (uint16_t)bytes);
        memcpy(file + at + 2, run + i, bytes);
        at += 2 + bytes;
    }
    memio_set(&f->file, file, at);
    free(file);
}

static void write_file(fixture *f) {
    static const d7_dataset datasets[N_DATASETS] = {{"/x", D7_UINT16}, {"/y", D7_UINT16}, {"/dt", D7_UINT16}};
    static uint8_t run[RUN_MAX];
    static const d7_attribute attribute = {.key = "k", .value = "v", .key_bytes = 1, .value_bytes = 1};
    d7__page_ref pages[N_DATASETS];
    d7__index_content content = {
        .pages = pages, .n_pages = N_DATASETS, .attributes = &attribute, .n_attributes = 1};
    d7__index_part part = {0};
    uint8_t *header;
    size_t n, bytes;
    assert_int_equal(d7__header_pack(&f->alloc, datasets, N_DATASETS, 512, 16384, &header, &n), 0);
    memcpy(run, header, n);
    f->alloc.release(f->alloc.ctx, header);
    for (uint32_t ds = 0; ds < N_DATASETS; ds++) {
        pages[ds] = (d7__page_ref){.offset = place(n), .dataset_id = ds};
        f->offsets[ds] = place(n);
        assert_int_equal(d7_page_encode(ds, D7_UINT16, f->values + ds, ITEMS, run + n, RUN_MAX - n, &bytes),
                         0);
        n += bytes;
        f->ends[ds] = (size_t)place(n - 1) + 1;
    }
    uint64_t index = place(n);
    assert_true(d7__index_next_part(&content, &part));
    n += d7__index_pack(&content, &part, run + n);
    n += d7__epilogue_pack(index, run + n);
    lay_down(f, run, n);
}

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->io = memio_table(&f->file);
    f->alloc = memcount_table(&f->memory);
    f->options = (d7_reader_options){.io = &f->io, .alloc = &f->alloc, .unframed = true};
    f->values = testing_noise(5, ITEMS + N_DATASETS);
    write_file(f);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    bool leak = f->memory.outstanding != 0 || f->file.opened_memory;
    memio_free(&f->file);
    free(f->values);
    free(f);
    return leak;
}

static d7_reader *open_now(fixture *f) {
    d7_reader *r = NULL;
    if (d7_reader_open(&r, "memory", &f->options, &f->err) != 0)
        fail_msg("open: %s", f->err.text);
    return r;
}

static uint64_t items(const d7_reader *r, uint32_t ds) {
    d7_dataset_info info;
    assert_int_equal(d7_reader_dataset(r, ds, &info), 0);
    return info.items;
}

/* Are the pages that end by `size` there, with their values, and no others? */
static void check_whole_pages(fixture *f, d7_reader *r, size_t size) {
    static uint16_t got[ITEMS];
    for (uint32_t ds = 0; ds < N_DATASETS; ds++) {
        bool whole = f->ends[ds] <= size;
        assert_int_equal(items(r, ds), whole ? ITEMS : 0);
        if (!whole)
            continue;
        assert_int_equal(d7_reader_read(r, ds, 0, ITEMS, got, &f->err), 0);
        assert_memory_equal(got, f->values + ds, sizeof got);
        assert_int_equal(d7_reader_read(r, ds, 8190, 5, got, &f->err), 0);
        assert_memory_equal(got, f->values + ds + 8190, 10);
    }
}

static void it_is_refused_unless_asked_for(void **state) {
    fixture *f = *state;
    d7_reader *r = NULL;
    f->options.unframed = false;
    assert_int_equal(d7_reader_open(&r, "memory", &f->options, &f->err), D7_ERR_UNSUPPORTED);
    assert_non_null(strstr(f->err.text, "unframed"));
    f->options.unframed = true;
    r = open_now(f);
    assert_true(d7_reader_unframed(r));
    assert_int_equal(d7_reader_state(r), D7_STATE_CLOSED);
    assert_int_equal(d7_reader_n_problems(r), 0);
    assert_string_equal(d7_reader_find_attribute(r, "k"), "v");
    check_whole_pages(f, r, f->file.n);
    d7_reader_free(r);
    testing_write(&f->io, 1000, 100, 512, 4096, true); /* asking for it changes nothing of other files */
    r = open_now(f);
    assert_false(d7_reader_unframed(r));
    d7_reader_free(r);
}

static void it_is_scanned_as_well(void **state) {
    fixture *f = *state;
    for (int form = 0; form < 3; form++) {
        f->options.recover = form == 0;
        f->options.full = form == 1;
        f->options.quick = form == 2;
        d7_reader *r = open_now(f);
        assert_int_equal(d7_reader_n_problems(r), 0);
        check_whole_pages(f, r, f->file.n);
        d7_reader_free(r);
    }
}

static void cut_anywhere_whole_pages_are_found(void **state) {
    fixture *f = *state;
    size_t end = f->file.n;
    f->file.n = 200;
    d7_reader *growing = open_now(f);
    for (size_t n = 100; n < end; n += n % D7_BLOCK_BYTES < 10 || n % D7_BLOCK_BYTES > 16380 ? 1 : 53) {
        f->file.n = n;
        d7_reader *r = open_now(f);
        assert_int_equal(d7_reader_state(r), D7_STATE_OPEN);
        check_whole_pages(f, r, n);
        if (n > 200) {
            assert_int_equal(d7_reader_refresh(growing, NULL, &f->err), 0);
            check_whole_pages(f, growing, n);
            assert_int_equal(d7_reader_n_damages(growing), d7_reader_n_damages(r));
        }
        d7_reader_free(r);
    }
    unsigned changes;
    f->file.n = end;
    assert_int_equal(d7_reader_refresh(growing, &changes, &f->err), 0);
    assert_true(changes & D7_CHANGE_CLOSED);
    check_whole_pages(f, growing, end);
    assert_string_equal(d7_reader_find_attribute(growing, "k"), "v");
    d7_reader_free(growing);
}

/* A wrong block length: by the index all but the pages of that block are there; by a scan, those before it. */
static void a_damaged_block_is_told(void **state) {
    fixture *f = *state;
    static uint16_t got[ITEMS];
    for (size_t block = 1; block < f->file.n / D7_BLOCK_BYTES; block++)
        for (int form = 0; form < 3; form++) {
            uint8_t *p = f->file.data + block * D7_BLOCK_BYTES;
            size_t whole = 0;
            write_file(f);
            bytes_store16(p, form == 0 ? 0xFFFF : form == 1 ? 0 : 10000);
            d7_reader *r = open_now(f);
            assert_int_equal(d7_reader_check(r, NULL, NULL, &f->err), 0);
            assert_true(d7_reader_n_damages(r) > 0);
            for (uint32_t ds = 0; ds < N_DATASETS; ds++) {
                bool touched =
                    f->offsets[ds] < (block + 1) * D7_BLOCK_BYTES && f->ends[ds] > block * D7_BLOCK_BYTES;
                int rc = d7_reader_read(r, ds, 0, ITEMS, got, &f->err);
                whole += rc == 0;
                if (!touched) {
                    assert_int_equal(rc, 0);
                    assert_memory_equal(got, f->values + ds, sizeof got);
                } else {
                    assert_int_not_equal(rc, 0);
                }
            }
            assert_true(whole > 0);
            d7_reader_free(r);
        }
}

/* Two columns of a group in pages of 128 items, one of which holds more, as after bytes in it have changed. */
static void a_changed_page_length_is_damage(void **state) {
    fixture *f = *state;
    enum { PAGES = 8, USUAL = 128, CHANGED = 4 };
    static const d7_dataset datasets[] = {{"/photons/x", D7_UINT16}, {"/photons/y", D7_UINT16}};
    static uint8_t run[RUN_MAX];
    uint8_t *header;
    size_t n, bytes;
    assert_int_equal(d7__header_pack(&f->alloc, datasets, 2, 512, 2 * USUAL, &header, &n), 0);
    memcpy(run, header, n);
    f->alloc.release(f->alloc.ctx, header);
    for (size_t i = 0; i < 2 * PAGES; i++) {
        size_t items_here = i / 2 == CHANGED && i % 2 == 0 ? USUAL + 9 : USUAL;
        assert_int_equal(
            d7_page_encode(i % 2, D7_UINT16, f->values, items_here, run + n, RUN_MAX - n, &bytes), 0);
        n += bytes;
    }
    lay_down(f, run, n);
    d7_reader *r = open_now(f);
    d7_page_info page;
    assert_int_equal(d7_reader_check(r, NULL, NULL, &f->err), 0);
    for (uint64_t i = 0; i < PAGES; i++) {
        assert_int_equal(d7_reader_page(r, 0, i, &page), 0);
        assert_int_equal(page.damaged, i == CHANGED);
        assert_int_equal(page.first_item, i * USUAL);
    }
    d7_reader_free(r);
}

/* One bit anywhere: no crash, bounded memory, and it ends. */
static void any_bit_may_be_wrong(void **state) {
    fixture *f = *state;
    uint64_t rng = 4;
    for (int i = 0; i < 4000; i++) {
        size_t bit = (size_t)(testing_random(&rng) % ((i % 2 ? 300 : f->file.n) * 8));
        d7_reader *r = NULL;
        f->file.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        f->memory.peak = 0;
        if (d7_reader_open(&r, "memory", &f->options, &f->err) == 0)
            assert_int_equal(d7_reader_check(r, NULL, NULL, &f->err), 0);
        d7_reader_free(r);
        assert_true(f->memory.peak < 8u << 20);
        f->file.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(it_is_refused_unless_asked_for),     TEST(it_is_scanned_as_well),
        TEST(cut_anywhere_whole_pages_are_found), TEST(a_damaged_block_is_told),
        TEST(a_changed_page_length_is_damage),    TEST(any_bit_may_be_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Memory of what works on whole files: at most 16 bytes for each page, whatever is done. It is measured as the difference
 * between two files, one of twice the pages, and a piece that is moved to grow counts as both. PHOTOND_TEST_LONG takes files
 * that are long enough for more than one entry of a global index; else what an entry of it takes is allowed beside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "disk_model.h"

static const char source_path[] = "in.photons", out_path[] = "out.photons", tail_path[] = "in.photons.tail";

enum {
    PAGE_BYTES = 16,
    PAGES = 60000,
    LONG_PAGES = 2000000,
    ROUND = 8000,
    BYTES_A_PAGE = 16,
    INDEX_PAGE_BYTES = 14,
    ENTRY_MAX = 16 << 20,
    PIECES = 128 << 10 /* that grow a piece at a time */
};

/* A table of memory that counts what is in use. */
typedef struct heap {
    size_t used, most;
} heap;

typedef union block {
    size_t bytes;
    max_align_t align;
} block;

static void *heap_resize(void *ctx, void *old, size_t bytes) {
    heap *h = ctx;
    block *from = old ? (block *)old - 1 : NULL;
    size_t before = from ? from->bytes : 0;
    block *to = realloc(from, sizeof *to + bytes);
    if (!to)
        return NULL;
    to->bytes = bytes;
    h->used += bytes;
    h->most = h->used > h->most ? h->used : h->most;
    h->used -= before;
    return to + 1;
}

static void heap_release(void *ctx, void *old) {
    heap *h = ctx;
    if (!old)
        return;
    h->used -= ((block *)old - 1)->bytes;
    free((block *)old - 1);
}

typedef struct place {
    disk *d;
    heap heap;
    d7_alloc alloc;
    size_t pages;
} place;

/* ---- files ---- */

enum { OPEN = 0, CLOSED = 1, UNEVEN = 2, DAMAGED = 4, FEW_ISLANDS = 8 };

static d7_writer *create(const place *p, unsigned form, const char *path, const d7_alloc *alloc) {
    static const d7_dataset datasets[] = {{.name = "/photons/x", .type = D7_UINT16},
                                          {.name = "/photons/y", .type = D7_UINT16}};
    d7_writer_options o;
    d7_writer *w;
    d7_writer_options_init(&o);
    o.io = disk_io(p->d);
    o.alloc = alloc;
    o.bytes_per_page = PAGE_BYTES;
    o.index_step = form & FEW_ISLANDS ? 1 << 20 : 16;
    assert_int_equal(d7_writer_create(&w, path, datasets, 2, &o, NULL), 0);
    return w;
}

static void append(const place *p, d7_writer *w) {
    uint16_t values[ROUND];
    for (size_t i = 0; i < ROUND; i++)
        values[i] = (uint16_t)(i & 4095);
    for (size_t rows = 0; rows < p->pages * PAGE_BYTES / 4; rows += ROUND)
        for (uint32_t ds = 0; ds < 2; ds++)
            assert_int_equal(d7_writer_append(w, ds, values, ROUND, NULL), 0);
}

/* Overwrites a page in the middle with zeros. */
static void damage_source(const place *p) {
    size_t n;
    const uint8_t *bytes = disk_content(p->d, source_path, &n);
    uint8_t *changed = malloc(n);
    d7_reader_options o = {.io = disk_io(p->d)};
    d7_page_info page;
    d7_reader *r;
    assert_non_null(changed);
    memcpy(changed, bytes, n);
    assert_int_equal(d7_reader_open(&r, source_path, &o, NULL), 0);
    assert_int_equal(d7_reader_page(r, 0, p->pages / 4, &page), 0);
    memset(changed + page.offset, 0, 20);
    d7_reader_free(r);
    disk_put(p->d, source_path, changed, n);
    free(changed);
}

/* Pages of another writer hold half as many items as the header says: the header of a file of shorter pages is changed. */
static void make_uneven(const place *p) {
    static const uint8_t bytes_per_page[] = {0x40, PAGE_BYTES};
    size_t n, at = 0;
    const uint8_t *bytes = disk_content(p->d, source_path, &n);
    uint8_t *changed = malloc(n);
    assert_non_null(changed);
    memcpy(changed, bytes, n);
    while (memcmp(changed + at, bytes_per_page, sizeof bytes_per_page) != 0)
        assert_true(++at < 200);
    changed[at + 1] = 2 * PAGE_BYTES;
    disk_put(p->d, source_path, changed, n);
    free(changed);
}

static void write_source(const place *p, unsigned form) {
    d7_writer *w = create(p, form, source_path, NULL);
    append(p, w);
    assert_int_equal(d7_writer_flush(w, NULL), 0);
    assert_int_equal(d7_writer_pages(w), p->pages);
    if (form & CLOSED)
        assert_int_equal(d7_writer_close(w, NULL), 0);
    d7_writer_free(w);
    disk_kill(p->d);
    if (form & DAMAGED)
        damage_source(p);
    if (form & UNEVEN)
        make_uneven(p);
}

/* ---- what is done ---- */

static d7_reader *open_source(place *p, bool recover, bool full) {
    d7_reader_options o;
    d7_reader *r;
    d7_error err;
    d7_reader_options_init(&o);
    o.io = disk_io(p->d);
    o.alloc = &p->alloc;
    o.recover = recover;
    o.full = full;
    if (d7_reader_open(&r, source_path, &o, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(d7_reader_pages(r), p->pages);
    return r;
}

static void read_it(place *p) {
    d7_reader_free(open_source(p, false, false));
}

static void recover_it(place *p) {
    d7_reader_free(open_source(p, true, true));
}

static void check_it(place *p) {
    d7_reader *r = open_source(p, false, false);
    assert_int_equal(d7_reader_check(r, NULL, NULL, NULL), 0);
    assert_int_equal(d7_reader_check(r, NULL, NULL, NULL), 0);
    d7_reader_free(r);
}

static void verify_it(place *p) {
    d7_reader *r = open_source(p, false, false);
    d7_verify_summary summary;
    assert_int_equal(d7_reader_verify(r, NULL, NULL, NULL, NULL, &summary, NULL), 0);
    d7_reader_free(r);
}

static void write_it(place *p) {
    d7_writer *w = create(p, CLOSED, out_path, &p->alloc);
    append(p, w);
    assert_int_equal(d7_writer_close(w, NULL), 0);
    d7_writer_free(w);
}

static void copy_it(place *p) {
    d7_reader *r = open_source(p, false, false);
    d7_writer *w = create(p, CLOSED, out_path, &p->alloc);
    for (uint32_t ds = 0; ds < 2; ds++)
        for (uint64_t i = 0; i < p->pages / 2; i++) {
            const uint8_t *entry;
            size_t bytes;
            assert_int_equal(d7_reader_page_entry(r, ds, i, &entry, &bytes, NULL), 0);
            assert_int_equal(d7_writer_append_page(w, ds, entry, bytes, PAGE_BYTES / 2, NULL), 0);
        }
    assert_int_equal(d7_writer_close(w, NULL), 0);
    d7_writer_free(w);
    d7_reader_free(r);
}

static void repair(place *p, bool in_place) {
    d7_repair_options o;
    d7_repair_report report;
    d7_error err;
    d7_repair_options_init(&o);
    o.io = disk_io(p->d);
    o.alloc = &p->alloc;
    int rc = in_place ? d7_repair_in_place(source_path, &o, &report, &err)
                      : d7_repair(source_path, out_path, &o, &report, &err);
    if (rc != 0)
        fail_msg("%s", err.text);
    assert_int_equal(report.outcome, in_place ? D7_REPAIR_IN_PLACE : D7_REPAIR_WRITTEN);
    d7_repair_report_free(&report);
}

static void repair_it(place *p) {
    repair(p, false);
}

static void close_it(place *p) {
    repair(p, true);
}

/* A tail that is there and holds nothing for this file. */
static void repair_with_tail(place *p) {
    static const uint8_t zeros[4096];
    disk_put(p->d, tail_path, zeros, sizeof zeros);
    repair(p, false);
}

/* ---- how much it takes ---- */

static size_t most(void (*act)(place *), unsigned form, size_t pages) {
    place p = {.d = disk_new(1), .pages = pages};
    p.alloc = (d7_alloc){.ctx = &p.heap, .resize = heap_resize, .release = heap_release};
    write_source(&p, form);
    act(&p);
    assert_int_equal(p.heap.used, 0);
    disk_free(p.d);
    return p.heap.most;
}

/* What an entry of a global index of so many pages takes: encoded, framed, and a part of that more to grow. */
static size_t index_bytes(size_t pages) {
    return 3 * (pages * INDEX_PAGE_BYTES < ENTRY_MAX ? pages * INDEX_PAGE_BYTES : ENTRY_MAX);
}

static void check(const char *what, void (*act)(place *), unsigned form) {
    bool longer = getenv("PHOTOND_TEST_LONG") != NULL;
    size_t n = longer ? LONG_PAGES : PAGES, one = most(act, form, n), two = most(act, form, 2 * n);
    size_t more = two > one ? two - one : 0;
    bool writes =
        act == write_it || act == copy_it || act == repair_it || act == close_it || act == repair_with_tail;
    bool reads_index = form & CLOSED;
    size_t index = writes || reads_index ? index_bytes(2 * n) - index_bytes(n) : 0;
    if (longer)
        print_message("%-24s form %2u: %5.2f bytes a page, %zu of %zu pages\n", what, form,
                      (double)more / (double)n, two, 2 * n);
    if (more > n * BYTES_A_PAGE + index + PIECES)
        fail_msg("%s, form %u: %.2f bytes a page: %zu of %zu pages, %zu of %zu", what, form,
                 (double)more / (double)n, one, n, two, 2 * n);
}

#define CHECK(act, form) check(#act, act, form)

static void reading(void **state) {
    (void)state;
    CHECK(read_it, CLOSED);
    CHECK(read_it, OPEN);
    CHECK(read_it, CLOSED | UNEVEN);
    CHECK(recover_it, CLOSED | DAMAGED);
    CHECK(check_it, CLOSED | UNEVEN);
    CHECK(verify_it, CLOSED | UNEVEN);
    CHECK(verify_it, OPEN | FEW_ISLANDS);
}

static void writing(void **state) {
    (void)state;
    CHECK(write_it, CLOSED);
    CHECK(copy_it, CLOSED);
}

static void repairing(void **state) {
    (void)state;
    CHECK(repair_it, OPEN);
    CHECK(repair_it, OPEN | DAMAGED);
    CHECK(repair_it, OPEN | UNEVEN);
    CHECK(repair_it, CLOSED | DAMAGED);
    CHECK(repair_it, OPEN | FEW_ISLANDS);
    CHECK(repair_with_tail, OPEN | DAMAGED);
    CHECK(close_it, OPEN);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reading), cmocka_unit_test(writing),
                                       cmocka_unit_test(repairing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

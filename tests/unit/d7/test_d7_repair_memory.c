/* Memory of a repair: so many bytes for each page of the file, and no more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "disk_model.h"

static const char source_path[] = "in.photons", out_path[] = "out.photons";

enum {
    PAGE_BYTES = 16,
    PAGES = 400000,
    ROUND = 8000,
    BYTES_A_PAGE = 42,
    ENTRY_BYTES = 2 << 20,
    INDEX_BYTES = 10 << 20
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
    h->used += bytes - before;
    h->most = h->used > h->most ? h->used : h->most;
    return to + 1;
}

static void heap_release(void *ctx, void *old) {
    heap *h = ctx;
    if (!old)
        return;
    h->used -= ((block *)old - 1)->bytes;
    free((block *)old - 1);
}

static void write_source(disk *d, bool close) {
    static const d7_dataset datasets[] = {{.name = "/photons/x", .type = D7_UINT16},
                                          {.name = "/photons/y", .type = D7_UINT16}};
    d7_writer_options o;
    d7_writer *w;
    uint16_t values[ROUND];
    d7_writer_options_init(&o);
    o.io = disk_io(d);
    o.bytes_per_page = PAGE_BYTES;
    o.index_step = 16;
    for (size_t i = 0; i < ROUND; i++)
        values[i] = (uint16_t)(i & 4095);
    assert_int_equal(d7_writer_create(&w, source_path, datasets, 2, &o, NULL), 0);
    for (size_t rows = 0; rows < (size_t)PAGES * PAGE_BYTES / 4; rows += ROUND)
        for (uint32_t ds = 0; ds < 2; ds++)
            assert_int_equal(d7_writer_append(w, ds, values, ROUND, NULL), 0);
    assert_int_equal(d7_writer_flush(w, NULL), 0);
    assert_int_equal(d7_writer_pages(w), PAGES);
    if (close)
        assert_int_equal(d7_writer_close(w, NULL), 0);
    d7_writer_free(w);
    disk_kill(d);
}

/* Zeroes a page in the middle. */
static void damage_source(disk *d) {
    size_t n;
    const uint8_t *bytes = disk_content(d, source_path, &n);
    uint8_t *changed = malloc(n);
    d7_reader_options o = {.io = disk_io(d)};
    d7_page_info page;
    d7_reader *r;
    assert_non_null(changed);
    memcpy(changed, bytes, n);
    assert_int_equal(d7_reader_open(&r, source_path, &o, NULL), 0);
    assert_int_equal(d7_reader_page(r, 0, PAGES / 4, &page), 0);
    memset(changed + page.offset, 0, 20);
    d7_reader_free(r);
    disk_put(d, source_path, changed, n);
    free(changed);
}

/* `largest`: what it may take for the largest entry. */
static void check(bool close, bool damage, size_t largest) {
    disk *d = disk_new(1);
    heap h = {0};
    d7_alloc alloc = {.ctx = &h, .resize = heap_resize, .release = heap_release};
    d7_repair_options o;
    d7_repair_report report;
    d7_error err;
    write_source(d, close);
    if (damage)
        damage_source(d);
    d7_repair_options_init(&o);
    o.io = disk_io(d);
    o.alloc = &alloc;
    if (d7_repair(source_path, out_path, &o, &report, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(report.outcome, D7_REPAIR_WRITTEN);
    assert_int_equal(report.datasets[0].lost + report.datasets[1].lost > 0, damage);
    d7_repair_report_free(&report);
    if (h.most > largest + (size_t)PAGES * BYTES_A_PAGE)
        fail_msg("%zu bytes for %d pages", h.most, PAGES);
    assert_int_equal(h.used, 0);
    disk_free(d);
}

static void open_file(void **state) {
    (void)state;
    check(false, false, ENTRY_BYTES);
    check(false, true, ENTRY_BYTES);
}

static void closed_file(void **state) {
    (void)state;
    check(true, true, INDEX_BYTES);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(open_file), cmocka_unit_test(closed_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

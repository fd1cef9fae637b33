/* Any bytes as a file: opened in each way, every page read, checked and verified. Nothing may crash or leak,
 * and what two ways of reading give must agree. */
#include <stdlib.h>

#include "d7/d7.h"
#include "memio.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good) {
    if (!good)
        abort();
}

enum { MAX_ITEMS = 1 << 20 };

/* Reads items; a read that meets a page of unexpected length counts the dataset anew, which may make it
 * shorter than what was asked for. */
static void read_items(d7_reader *r, uint32_t ds, uint64_t from, uint64_t n) {
    d7_dataset_info info;
    d7_error err;
    if (n > MAX_ITEMS)
        return;
    uint8_t *values = malloc((size_t)n * 8 + 1);
    int rc = d7_reader_read(r, ds, from, (size_t)n, values, &err);
    require(d7_reader_dataset(r, ds, &info) == 0);
    require(rc == 0 || rc == D7_ERR_CORRUPT || (rc == D7_ERR_ARG && from + n > info.items));
    free(values);
}

/* Page by page, and in one go. */
static void read_dataset(d7_reader *r, uint32_t ds) {
    d7_dataset_info info;
    d7_page_info page;
    for (uint64_t i = 0; d7_reader_page(r, ds, i, &page) == 0; i++) {
        require(d7_reader_dataset(r, ds, &info) == 0);
        require(page.first_item + page.n_items <= info.items);
        read_items(r, ds, page.first_item, page.n_items);
    }
    require(d7_reader_dataset(r, ds, &info) == 0);
    read_items(r, ds, 0, info.items);
}

static void read_file(const d7_io *io, bool recover, bool quick) {
    d7_reader_options o = {.io = io, .recover = recover, .quick = quick};
    d7_verify_summary summary;
    d7_reader *r = NULL;
    d7_error err;
    int rc = d7_reader_open(&r, "memory", &o, &err);
    if (rc != 0) {
        require(r == NULL && err.code == rc && err.text[0] != '\0' && rc != D7_ERR_IO && rc != D7_ERR_NOMEM);
        return;
    }
    for (uint32_t ds = 0; ds < d7_reader_n_datasets(r) && ds < 100; ds++)
        read_dataset(r, ds);
    require(d7_reader_check(r, NULL, NULL, &err) == 0);
    if (!recover && !quick) {
        require(d7_reader_verify(r, NULL, NULL, NULL, NULL, &summary, &err) == 0);
        require(summary.damages == d7_reader_n_damages(r));
    }
    d7_reader_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    memio file = {0};
    d7_io io = memio_table(&file);
    memio_set(&file, data, size);
    read_file(&io, false, false);
    read_file(&io, true, false);
    read_file(&io, false, true);
    memio_free(&file);
    return 0;
}

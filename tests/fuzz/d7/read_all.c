#include "read_all.h"

#include <stdlib.h>
#include <string.h>

#include "memio.h"

enum { MAX_ITEMS = 1 << 20, MAX_DATASETS = 100, MEMORY_BYTES = 64 * 1024 * 1024, PAGE_MEMORY_BYTES = 16 };

static void require(bool good) {
    if (!good)
        abort();
}

/* Reads items; a read that meets a page of unexpected length counts the dataset anew, which may make it
 * shorter than what was asked for. */
static int read_items(d7_reader *r, uint32_t ds, uint64_t from, uint64_t n, uint8_t *values) {
    d7_dataset_info info;
    d7_error err;
    int rc = d7_reader_read(r, ds, from, (size_t)n, values, &err);
    require(d7_reader_dataset(r, ds, &info) == 0);
    require(rc == 0 || rc == D7_ERR_CORRUPT || (rc == D7_ERR_ARG && from + n > info.items));
    return rc;
}

/* Page by page, and in one go. */
static void read_dataset(d7_reader *r, uint32_t ds) {
    d7_dataset_info info;
    d7_page_info page;
    for (uint64_t i = 0; d7_reader_page(r, ds, i, &page) == 0; i++) {
        require(d7_reader_dataset(r, ds, &info) == 0);
        require(page.first_item + page.n_items <= info.items);
        if (page.n_items > MAX_ITEMS)
            continue;
        uint8_t *values = malloc((size_t)page.n_items * 8 + 1);
        read_items(r, ds, page.first_item, page.n_items, values);
        free(values);
    }
    require(d7_reader_dataset(r, ds, &info) == 0);
    if (info.items > MAX_ITEMS)
        return;
    uint8_t *values = malloc((size_t)info.items * 8 + 1);
    read_items(r, ds, 0, info.items, values);
    free(values);
}

/* Rows that columns give are those that reading gives. */
static void check_chunk(d7_reader *r, const d7_chunk *chunk, uint32_t n_columns) {
    for (uint32_t i = 0; i < n_columns; i++) {
        d7_dataset_info info;
        uint8_t *values = malloc(chunk->n * 8 + 1);
        require(d7_reader_dataset(r, i, &info) == 0);
        require(d7_reader_read(r, i, chunk->first_item, chunk->n, values, NULL) == 0);
        require(memcmp(values, chunk->values[i], chunk->n * d7_type_size(info.type)) == 0);
        free(values);
    }
}

static void read_columns(d7_reader *r, bool skip_damaged) {
    static const uint32_t ids[] = {0, 1, 2};
    uint32_t n = d7_reader_n_datasets(r) < 3 ? (uint32_t)d7_reader_n_datasets(r) : 3;
    d7_columns_options o;
    d7_columns *c = NULL;
    d7_chunk chunk;
    d7_error err;
    d7_columns_options_init(&o);
    o.chunk_items = 1000;
    o.skip_damaged = skip_damaged;
    for (uint32_t i = 0; i < n; i++) {
        d7_dataset_info info;
        require(d7_reader_dataset(r, i, &info) == 0);
        if (info.items > MAX_ITEMS)
            return;
    }
    if (n == 0)
        return;
    require(d7_columns_open(&c, r, ids, n, &o, &err) == 0);
    uint64_t next = 0;
    int rc;
    while ((rc = d7_columns_next(c, &chunk, &err)) == 0 && chunk.n > 0) {
        require(chunk.first_item >= next && chunk.n <= 1000);
        next = chunk.first_item + chunk.n;
        check_chunk(r, &chunk, n);
    }
    require(rc == 0 || rc == D7_ERR_STATE || (rc == D7_ERR_CORRUPT && !skip_damaged));
    d7_columns_free(c);
}

static void use(d7_reader *r, bool whole) {
    d7_verify_summary summary;
    d7_error err;
    for (uint32_t ds = 0; ds < d7_reader_n_datasets(r) && ds < MAX_DATASETS; ds++)
        read_dataset(r, ds);
    read_columns(r, true);
    read_columns(r, false);
    require(d7_reader_check(r, NULL, NULL, &err) == 0);
    unsigned changes = 1;
    require(d7_reader_refresh(r, &changes, &err) == 0 && changes == 0);
    if (!whole)
        return;
    require(d7_reader_verify(r, NULL, NULL, NULL, NULL, &summary, &err) == 0);
    require(summary.damages == d7_reader_n_damages(r));
}

static void read_file(const d7_io *io, const d7_reader_options *options) {
    memcount memory = {0};
    d7_alloc alloc = memcount_table(&memory);
    d7_reader_options o = *options;
    d7_reader *r = NULL;
    d7_error err;
    o.io = io;
    o.alloc = &alloc;
    int rc = d7_reader_open(&r, "memory", &o, &err);
    if (rc == 0) {
        use(r, !o.recover && !o.quick && !o.full);
        require(memory.peak <= MEMORY_BYTES + PAGE_MEMORY_BYTES * (size_t)d7_reader_pages(r));
        d7_reader_free(r);
    } else {
        require(r == NULL && err.code == rc && err.text[0] != '\0' && rc != D7_ERR_IO && rc != D7_ERR_NOMEM);
    }
    require(memory.outstanding == 0);
}

void read_all(const uint8_t *data, size_t size) {
    memio file = {0};
    d7_io io = memio_table(&file);
    memio_set(&file, data, size);
    d7_reader_options o;
    d7_reader_options_init(&o);
    o.unframed = true;
    read_file(&io, &o);
    o.recover = true;
    read_file(&io, &o);
    o.recover = o.unframed = false;
    o.quick = true;
    read_file(&io, &o);
    o.quick = false;
    o.full = true;
    read_file(&io, &o);
    memio_free(&file);
}

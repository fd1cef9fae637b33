#include "d7_builder.h"

#include "messages.h"
#include "testing.h"

void build_start(builder *b, const d7_dataset *datasets, size_t n, uint32_t step, uint32_t bytes_per_page) {
    uint8_t *entry;
    size_t bytes;
    *b = (builder){.alloc = d7__alloc_or_default(NULL)};
    b->io = memio_table(&b->file);
    b->out = (d7__out){.io = &b->io, .alloc = &b->alloc, .path = "memory"};
    assert_int_equal(d7__header_pack(&b->alloc, datasets, n, step, bytes_per_page, &entry, &bytes), 0);
    build_entry(b, entry, bytes);
    free(entry);
}

uint64_t build_entry(builder *b, const void *entry, size_t bytes) {
    assert_int_equal(d7__out_reserve(&b->out, 1, bytes), 0);
    return d7__out_entry(&b->out, entry, bytes);
}

uint64_t build_page(builder *b, uint32_t ds, d7_type type, const void *values, size_t n) {
    size_t bound = d7_page_bound(type, n), bytes;
    uint8_t *entry = malloc(bound);
    assert_int_equal(d7_page_encode(ds, type, values, n, entry, bound, &bytes), 0);
    assert_true(b->n_pages < sizeof b->pages / sizeof *b->pages);
    uint64_t offset = build_entry(b, entry, bytes);
    b->pages[b->n_pages++] = (d7__page_ref){.dataset_id = ds, .offset = offset};
    free(entry);
    return offset;
}

uint64_t build_index(builder *b, size_t from, size_t n, const d7_attribute *attribute) {
    d7__index_part part = {0};
    d7__index_content content = {
        .pages = b->pages + from, .n_pages = n, .attributes = attribute, .n_attributes = attribute != NULL};
    assert_true(d7__index_next_part(&content, &part));
    uint8_t *entry = malloc(d7__index_entry_bytes(&part));
    uint64_t offset = build_entry(b, entry, d7__index_pack(&content, &part, entry));
    free(entry);
    return offset;
}

void build_epilogue(builder *b, uint64_t index, bool pad) {
    uint8_t entry[D7__EPILOGUE_MAX];
    size_t bytes = d7__epilogue_pack(index, entry);
    assert_int_equal(d7__out_reserve(&b->out, 1, 16384 + bytes), 0);
    if (pad)
        d7__out_pad(&b->out);
    d7__out_entry(&b->out, entry, bytes);
}

void build_end(builder *b, memio *file) {
    assert_int_equal(d7__out_flush(&b->out, NULL), 0);
    memio_set(file, b->file.data, b->file.n);
    memio_free(&b->file);
    free(b->out.pending.data);
}

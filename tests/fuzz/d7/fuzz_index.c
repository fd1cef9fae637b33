/* Any bytes as the body of an Index, a Header or an Epilogue, as the first byte says. An Index that reads is written and read
 * again: the same pages and attributes in the same order. */
#include <stdlib.h>
#include <string.h>

#include "codec.h"
#include "index.h"
#include "memio.h"
#include "messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_LISTED = 4096 };

typedef struct listing {
    d7__page_ref pages[MAX_LISTED];
    d7_attribute attributes[MAX_LISTED];
    size_t n_pages, n_attributes;
} listing;

static void require(bool good) {
    if (!good)
        abort();
}

static int take_page(void *ctx, uint64_t dataset_id, uint64_t offset) {
    listing *l = ctx;
    if (l->n_pages == MAX_LISTED || dataset_id > UINT32_MAX)
        return D7_ERR_LIMIT;
    l->pages[l->n_pages++] = (d7__page_ref){.offset = offset, .dataset_id = (uint32_t)dataset_id};
    return 0;
}

static int take_attribute(void *ctx, const d7_attribute *attribute) {
    listing *l = ctx;
    if (l->n_attributes == MAX_LISTED)
        return D7_ERR_LIMIT;
    l->attributes[l->n_attributes++] = *attribute;
    return 0;
}

static int read_index(listing *l, const uint8_t *body, size_t bytes) {
    *l = (listing){.n_pages = 0};
    d7__index_sink sink = {.ctx = l, .page = take_page, .attribute = take_attribute};
    return d7__index_read((d7__cursor){body, body + bytes}, &sink);
}

static void require_same(const listing *a, const listing *b) {
    require(a->n_pages == b->n_pages && a->n_attributes == b->n_attributes);
    for (size_t i = 0; i < a->n_pages; i++)
        require(a->pages[i].offset == b->pages[i].offset && a->pages[i].dataset_id == b->pages[i].dataset_id);
    for (size_t i = 0; i < a->n_attributes; i++) {
        const d7_attribute *x = &a->attributes[i], *y = &b->attributes[i];
        require(x->key_bytes == y->key_bytes && x->value_bytes == y->value_bytes);
        require(memcmp(x->key, y->key, x->key_bytes) == 0 && memcmp(x->value, y->value, x->value_bytes) == 0);
    }
}

static void fuzz_index(const uint8_t *body, size_t bytes) {
    static listing first, again;
    if (read_index(&first, body, bytes) != 0)
        return;
    d7__index_content content = {.pages = first.pages,
                                 .n_pages = first.n_pages,
                                 .attributes = first.attributes,
                                 .n_attributes = first.n_attributes};
    d7__index_part part = {0};
    require(d7__index_next_part(&content, &part));
    size_t n = d7__index_entry_bytes(&part);
    uint8_t *entry = malloc(n);
    require(entry && d7__index_pack(&content, &part, entry) == n);
    d7__kind kind;
    d7__cursor packed;
    require(d7__entry_kind(entry, n, &kind, &packed) && kind == D7__KIND_INDEX);
    require(read_index(&again, packed.at, (size_t)(packed.end - packed.at)) == 0);
    require_same(&first, &again);
    require(!d7__index_next_part(&content, &part));
    free(entry);
}

static void fuzz_header(const uint8_t *body, size_t bytes) {
    memcount memory = {0};
    d7_alloc alloc = memcount_table(&memory);
    d7__header header;
    d7_error err;
    int rc = d7__header_unpack(&alloc, "memory", (d7__cursor){body, body + bytes}, &header, &err);
    if (rc == 0) {
        require(header.index_step >= 1 && header.index_step <= D7_INDEX_STEP_MAX);
        require(header.bytes_per_page >= D7_PAGE_BYTES_MIN && header.bytes_per_page <= D7_PAGE_BYTES_MAX);
        for (size_t i = 0; i < header.n_datasets; i++)
            require(d7_type_size(header.datasets[i].type) > 0 &&
                    strlen(header.datasets[i].name) <= header.datasets[i].name_bytes);
        d7__header_free(&alloc, &header);
    } else {
        require(err.code == rc && err.text[0] && rc != D7_ERR_NOMEM);
    }
    require(memory.outstanding == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t offset;
    if (size == 0)
        return 0;
    if (data[0] % 3 == 0)
        fuzz_index(data + 1, size - 1);
    else if (data[0] % 3 == 1)
        fuzz_header(data + 1, size - 1);
    else
        (void)d7__epilogue_unpack((d7__cursor){data + 1, data + size}, &offset);
    return 0;
}

#include "messages.h"

#include <inttypes.h>
#include <string.h>

#include "codec.h"
#include "error.h"
#include "seven.pb-c.h"

static const char header_signature[] = "D7 Photons Data";
static const char end_signature[] = "End of D7 Photons Data File";

/* What protobuf-c may take to unpack one message: a hostile header of 16 MiB could else cost many times its
 * size. */
enum { UNPACK_BUDGET = 40 * 1024 * 1024 };

typedef struct budget {
    const d7_alloc *alloc;
    size_t left;
    bool exceeded;
    bool no_memory;
} budget;

static void *budget_alloc(void *data, size_t bytes) {
    budget *b = data;
    if (bytes > b->left) {
        b->exceeded = true;
        return NULL;
    }
    b->left -= bytes;
    void *memory = b->alloc->resize(b->alloc->ctx, NULL, bytes ? bytes : 1);
    b->no_memory |= memory == NULL;
    return memory;
}

static void budget_free(void *data, void *memory) {
    const budget *b = data;
    d7__release(b->alloc, memory);
}

static ProtobufCBinaryData binary(const char *text) {
    return (ProtobufCBinaryData){.len = strlen(text), .data = (uint8_t *)(uintptr_t)text};
}

static bool binary_equals(const ProtobufCBinaryData *b, const char *text) {
    return b->len == strlen(text) && memcmp(b->data, text, b->len) == 0;
}

/* One dataset's message and the array of its shape, which has to live beside it while packing. */
typedef struct packed_dataset {
    Seven__DatasetInfo info;
    uint64_t shape;
} packed_dataset;

int d7__header_pack(const d7_alloc *a, const d7_dataset *datasets, size_t n, uint32_t index_step,
                    uint32_t bytes_per_page, uint8_t **ret_entry, size_t *ret_bytes) {
    packed_dataset *packed = d7__new(a, n * sizeof *packed);
    Seven__DatasetInfo **toc = d7__new(a, n * sizeof *toc);
    uint8_t *entry = NULL;
    int rc = D7_ERR_NOMEM;
    if (!packed || !toc)
        goto out;
    for (size_t i = 0; i < n; i++) {
        Seven__DatasetInfo *info = &packed[i].info;
        seven__dataset_info__init(info);
        info->has_name = info->has_type = true;
        info->name = binary(datasets[i].name);
        info->type = datasets[i].type;
        info->n_size = 1;
        info->size = &packed[i].shape;
        toc[i] = info;
    }
    Seven__Header header = SEVEN__HEADER__INIT;
    header.has_signature = header.has_index_step = header.has_bytes_per_page = true;
    header.has_version_major = header.has_version_minor = header.has_version_patch = true;
    header.signature = binary(header_signature);
    header.version_major = 1;
    header.version_minor = 0;
    header.version_patch = 1;
    header.index_step = index_step;
    header.bytes_per_page = bytes_per_page;
    header.n_toc = n;
    header.toc = toc;
    Seven__FileEntry message = SEVEN__FILE_ENTRY__INIT;
    message.entry_case = SEVEN__FILE_ENTRY__ENTRY_HEADER;
    message.header = &header;

    size_t bytes = seven__file_entry__get_packed_size(&message);
    rc = D7_ERR_LIMIT;
    if (bytes > D7_ENTRY_BYTES_MAX)
        goto out;
    rc = D7_ERR_NOMEM;
    entry = d7__new(a, bytes);
    if (!entry)
        goto out;
    *ret_bytes = seven__file_entry__pack(&message, entry);
    *ret_entry = entry;
    rc = 0;
out:
    d7__release(a, toc);
    d7__release(a, packed);
    return rc;
}

void d7__header_free(const d7_alloc *a, d7__header *h) {
    for (size_t i = 0; i < h->n_datasets; i++) {
        d7__release(a, h->datasets[i].name);
        d7__release(a, h->datasets[i].shape);
    }
    d7__release(a, h->datasets);
    d7__names_free(a, &h->names);
    d7__release(a, h->body.data);
    *h = (d7__header){0};
}

static int header_check(const char *path, const Seven__Header *m, d7_error *err) {
    if (!m->has_signature || !binary_equals(&m->signature, header_signature))
        return d7__fail(err, D7_ERR_CORRUPT, 0, 0, "%s: no D7 file: the header's signature is wrong", path);
    if (m->has_index_step && (m->index_step < 1 || m->index_step > D7_INDEX_STEP_MAX))
        return d7__fail(err, D7_ERR_LIMIT, 0, 0, "%s: the header's index_step is %" PRIu64 ", not 1 to %u",
                        path, m->index_step, D7_INDEX_STEP_MAX);
    if (m->has_bytes_per_page &&
        (m->bytes_per_page < D7_PAGE_BYTES_MIN || m->bytes_per_page > D7_PAGE_BYTES_MAX))
        return d7__fail(err, D7_ERR_LIMIT, 0, 0,
                        "%s: the header's bytes_per_page is %" PRIu64 ", not %u to %u", path,
                        m->bytes_per_page, D7_PAGE_BYTES_MIN, D7_PAGE_BYTES_MAX);
    if (m->n_toc > D7_DATASETS_MAX)
        return d7__fail(err, D7_ERR_LIMIT, 0, 0, "%s: the header lists %zu datasets, this library takes %u",
                        path, m->n_toc, D7_DATASETS_MAX);
    for (size_t i = 0; i < m->n_toc; i++)
        if (m->toc[i]->has_type && m->toc[i]->type >= D7_N_TYPES)
            return d7__fail(err, D7_ERR_UNSUPPORTED, 0, 0, "%s: dataset %zu is of the unknown type %" PRIu64,
                            path, i, m->toc[i]->type);
    return 0;
}

static int header_copy_dataset(const d7_alloc *a, const Seven__DatasetInfo *m, d7__toc_item *item) {
    size_t length = m->has_name ? m->name.len : 0;
    item->name = d7__new(a, length + 1);
    item->shape = d7__new(a, m->n_size * sizeof *item->shape);
    if (!item->name || !item->shape)
        return D7_ERR_NOMEM;
    if (length)
        memcpy(item->name, m->name.data, length);
    item->name_bytes = length;
    item->type = m->has_type ? (d7_type)m->type : D7_INT8;
    if (m->n_size)
        memcpy(item->shape, m->size, m->n_size * sizeof *item->shape);
    item->rank = m->n_size;
    return 0;
}

static int header_add_name(const d7_alloc *a, d7__header *h, size_t i) {
    const d7__toc_item *item = &h->datasets[i];
    if (d7__names_find(&h->names, item->name, item->name_bytes) != SIZE_MAX)
        return 0;
    if (d7__names_reserve(a, &h->names) != 0)
        return D7_ERR_NOMEM;
    d7__names_add(&h->names, item->name, item->name_bytes, (uint32_t)i);
    return 0;
}

static int header_copy(const d7_alloc *a, const Seven__Header *m, d7__cursor body, d7__header *h) {
    size_t bytes = (size_t)(body.end - body.at);
    if (d7__buffer_reserve(a, &h->body, bytes) != 0)
        return D7_ERR_NOMEM;
    memcpy(h->body.data, body.at, bytes);
    h->body.n = bytes;
    h->version[0] = m->version_major;
    h->version[1] = m->version_minor;
    h->version[2] = m->version_patch;
    h->index_step = m->has_index_step ? (uint32_t)m->index_step : D7_INDEX_STEP_DEFAULT;
    h->bytes_per_page = m->has_bytes_per_page ? (uint32_t)m->bytes_per_page : D7_PAGE_BYTES_DEFAULT;
    h->datasets = d7__new(a, m->n_toc * sizeof *h->datasets);
    if (!h->datasets)
        return D7_ERR_NOMEM;
    h->n_datasets = m->n_toc;
    for (size_t i = 0; i < m->n_toc; i++)
        if (header_copy_dataset(a, m->toc[i], &h->datasets[i]) != 0 || header_add_name(a, h, i) != 0)
            return D7_ERR_NOMEM;
    return 0;
}

int d7__header_unpack(const d7_alloc *a, const char *path, d7__cursor body, d7__header *ret_header,
                      d7_error *err) {
    budget b = {.alloc = a, .left = UNPACK_BUDGET};
    ProtobufCAllocator allocator = {.alloc = budget_alloc, .free = budget_free, .allocator_data = &b};
    Seven__Header *m = seven__header__unpack(&allocator, (size_t)(body.end - body.at), body.at);
    if (!m && b.exceeded)
        return d7__fail(err, D7_ERR_LIMIT, 0, 0, "%s: the header is too large", path);
    if (!m && b.no_memory)
        return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", path);
    if (!m)
        return d7__fail(err, D7_ERR_CORRUPT, 0, 0, "%s: the header is malformed", path);
    d7__header header = {0};
    int rc = header_check(path, m, err);
    if (rc == 0) {
        rc = header_copy(a, m, body, &header);
        if (rc != 0) {
            d7__header_free(a, &header);
            d7__fail(err, rc, 0, D7_NO_OFFSET, "%s: out of memory", path);
        }
    }
    seven__header__free_unpacked(m, &allocator);
    if (rc == 0)
        *ret_header = header;
    return rc;
}

size_t d7__epilogue_pack(uint64_t global_index_offset, uint8_t out[D7__EPILOGUE_MAX]) {
    Seven__Epilogue epilogue = SEVEN__EPILOGUE__INIT;
    epilogue.has_global_index_offset = epilogue.has_signature = true;
    epilogue.global_index_offset = global_index_offset;
    epilogue.signature = binary(end_signature);
    Seven__FileEntry message = SEVEN__FILE_ENTRY__INIT;
    message.entry_case = SEVEN__FILE_ENTRY__ENTRY_EPILOGUE;
    message.epilogue = &epilogue;
    return seven__file_entry__pack(&message, out);
}

/* By hand, so that no lack of memory is taken for a lack of an epilogue. */
bool d7__epilogue_unpack(d7__cursor body, uint64_t *ret_global_index_offset) {
    uint64_t offset = 0;
    bool signed_right = false;
    while (body.at < body.end) {
        d7__field f;
        if (!d7__get_field(&body, &f))
            return false;
        if (f.number == 1 && f.wire_type == D7__VARINT)
            offset = f.value;
        else if (f.number == 2 && f.wire_type == D7__BYTES)
            signed_right =
                f.n_bytes == sizeof end_signature - 1 && memcmp(f.bytes, end_signature, f.n_bytes) == 0;
    }
    if (signed_right)
        *ret_global_index_offset = offset;
    return signed_right;
}

/* A new file's header that keeps what this library does not know of another file's: fields of the header and of
 * its datasets go over as they are, in their order; what a new file decides itself is put in their place. */
#include <string.h>

#include "codec.h"
#include "messages.h"

enum { SIGNATURE = 1, MAJOR = 2, MINOR = 3, PATCH = 4, INDEX_STEP = 6, TOC = 7, PAGE_BYTES = 8 };
enum { NAME = 1, TYPE = 2, SHAPE = 3 };
enum { FIELD_BOUND = 1 + D7__VARINT_MAX };

/* A message that grows; `failed` once memory has run out. */
typedef struct message {
    const d7_alloc *alloc;
    d7__buffer bytes;
    bool failed;
} message;

static uint8_t *message_room(message *m, size_t bytes) {
    if (!m->failed && d7__buffer_reserve(m->alloc, &m->bytes, bytes) != 0)
        m->failed = true;
    return m->failed ? NULL : m->bytes.data + m->bytes.n;
}

static void put_raw(message *m, const void *bytes, size_t n) {
    uint8_t *p = message_room(m, n);
    if (!p || n == 0)
        return;
    memcpy(p, bytes, n);
    m->bytes.n += n;
}

static void put_number(message *m, unsigned field, uint64_t value) {
    uint8_t *p = message_room(m, FIELD_BOUND), *start = p;
    if (!p)
        return;
    *p++ = D7__TAG(field, D7__VARINT);
    m->bytes.n += (size_t)(d7__put_varint(p, value) - start);
}

static void put_bytes(message *m, unsigned field, const void *bytes, size_t n) {
    uint8_t *p = message_room(m, FIELD_BOUND), *start = p;
    if (!p)
        return;
    *p++ = D7__TAG(field, D7__BYTES);
    m->bytes.n += (size_t)(d7__put_varint(p, n) - start);
    put_raw(m, bytes, n);
}

/* ---- datasets ---- */

/* The header that was read, and the messages of its datasets. */
typedef struct toc {
    const d7__header *like;
    d7__cursor *items; /* [like->n_datasets] */
} toc;

static int toc_begin(toc *t, const d7_alloc *a, const d7__header *like) {
    d7__cursor at = {like->body.data, like->body.data + like->body.n};
    d7__field f;
    *t = (toc){like, d7__new(a, like->n_datasets * sizeof *t->items)};
    for (size_t n = 0; t->items && n < like->n_datasets && d7__get_field(&at, &f);)
        if (f.number == TOC)
            t->items[n++] = (d7__cursor){f.bytes, f.bytes + f.n_bytes};
    return t->items ? 0 : D7_ERR_NOMEM;
}

static bool same_dataset(const d7__toc_item *item, const d7_dataset *d) {
    return item->type == d->type && item->name_bytes == strlen(d->name) &&
           memcmp(item->name, d->name, item->name_bytes) == 0;
}

/* The message of that dataset: of datasets that share their name the first of its type. NULL: there is none. */
static const d7__cursor *toc_find(const toc *t, const d7_dataset *d) {
    size_t n = t->like->n_datasets, i = d7__names_find(&t->like->names, d->name, strlen(d->name));
    bool alone = t->like->names.n == n; /* no two share a name */
    for (; i < n; i++) {
        if (same_dataset(&t->like->datasets[i], d))
            return &t->items[i];
        if (alone)
            break;
    }
    return NULL;
}

/* A type of 0 may have been left out; written it always is. */
static bool has_field(d7__cursor c, unsigned number) {
    d7__field f;
    while (c.at < c.end && d7__get_field(&c, &f))
        if (f.number == number)
            return true;
    return false;
}

static void put_dataset(message *m, const toc *t, const d7_dataset *d) {
    message item = {.alloc = m->alloc};
    const d7__cursor *old = toc_find(t, d);
    if (old) {
        put_raw(&item, old->at, (size_t)(old->end - old->at));
        if (!has_field(*old, TYPE))
            put_number(&item, TYPE, d->type);
    } else {
        put_bytes(&item, NAME, d->name, strlen(d->name));
        put_number(&item, TYPE, d->type);
        put_number(&item, SHAPE, 0);
    }
    m->failed |= item.failed;
    put_bytes(m, TOC, item.bytes.data, item.bytes.n);
    d7__release(m->alloc, item.bytes.data);
}

/* ---- the header ---- */

typedef struct wanted {
    const d7_dataset *datasets;
    size_t n;
    uint32_t index_step, bytes_per_page;
} wanted;

static void put_datasets(message *m, const d7__header *like, const wanted *w) {
    toc t;
    m->failed |= toc_begin(&t, m->alloc, like) != 0;
    for (size_t i = 0; i < w->n && !m->failed; i++)
        put_dataset(m, &t, &w->datasets[i]);
    d7__release(m->alloc, t.items);
}

static void put_body(message *m, const d7__header *like, const wanted *w) {
    d7__cursor all = {like->body.data, like->body.data + like->body.n}, c = all;
    bool datasets_done = false;
    d7__field f;
    for (const uint8_t *from = c.at; c.at < c.end && d7__get_field(&c, &f); from = c.at) {
        if (f.number == INDEX_STEP)
            put_number(m, INDEX_STEP, w->index_step);
        else if (f.number == PAGE_BYTES)
            put_number(m, PAGE_BYTES, w->bytes_per_page);
        else if (f.number != TOC)
            put_raw(m, from, (size_t)(c.at - from));
        else if (!datasets_done)
            put_datasets(m, like, w);
        datasets_done |= f.number == TOC;
    }
    for (unsigned i = 0; i < 3; i++)
        if (!has_field(all, MAJOR + i))
            put_number(m, MAJOR + i, like->version[i]);
    if (!has_field(all, INDEX_STEP))
        put_number(m, INDEX_STEP, w->index_step);
    if (!datasets_done)
        put_datasets(m, like, w);
    if (!has_field(all, PAGE_BYTES))
        put_number(m, PAGE_BYTES, w->bytes_per_page);
}

int d7__header_pack_like(const d7_alloc *a, const d7__header *like, const d7_dataset *datasets, size_t n,
                         uint32_t index_step, uint32_t bytes_per_page, uint8_t **ret_entry,
                         size_t *ret_bytes) {
    const wanted w = {datasets, n, index_step, bytes_per_page};
    message body = {.alloc = a}, entry = {.alloc = a};
    put_body(&body, like, &w);
    put_bytes(&entry, D7__KIND_HEADER, body.bytes.data, body.bytes.n);
    d7__release(a, body.bytes.data);
    int rc = body.failed || entry.failed          ? D7_ERR_NOMEM
             : entry.bytes.n > D7_ENTRY_BYTES_MAX ? D7_ERR_LIMIT
                                                  : 0;
    if (rc != 0) {
        d7__release(a, entry.bytes.data);
        return rc;
    }
    *ret_entry = entry.bytes.data;
    *ret_bytes = entry.bytes.n;
    return 0;
}

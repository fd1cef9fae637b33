/* A writer's life: creation, attributes, flush and sync, end. Values become pages in writer_pages.c, the last steps are
 * in writer_close.c.
 *
 * A tail file (what pages do not hold yet, for recovery after a crash) is not the writer's: whoever keeps one puts
 * beside it what the getters say (framed length, items in pages) at the moment of a mark.
 *
 * Failures: a full disk changes nothing and the call can be made again; memory that runs out leaves the writer usable;
 * any other error of a write, and any error of a sync, is final. */
#include "writer.h"

#include <errno.h>
#include <string.h>

#include "base/utf8.h"
#include "codec.h"
#include "error.h"
#include "messages.h"

const d7_attribute d7__marker = {
    .key = D7_MARKER_KEY, .value = "1", .key_bytes = sizeof D7_MARKER_KEY - 1, .value_bytes = 1};

void d7_writer_options_init(d7_writer_options *options) {
    *options = (d7_writer_options){
        .index_step = D7_INDEX_STEP_DEFAULT,
        .bytes_per_page = D7_PAGE_BYTES_DEFAULT,
        .mode = 0666,
        .buffer_bytes = 1024 * 1024,
    };
}

int d7__writer_no_memory(const d7_writer *w, d7_error *err) {
    return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", w->path);
}

int d7__writer_fail(d7_writer *w, const d7_error *failure, d7_error *err) {
    w->stage = D7__WRITER_FAILED;
    w->failure = *failure;
    if (err)
        *err = *failure;
    return failure->code;
}

static int sync_failed(const d7_writer *w, int os_errno, d7_error *err) {
    return d7__fail(err, D7_ERR_IO, os_errno, D7_NO_OFFSET,
                    "%s: syncing failed; what was written since the last sync "
                    "may not be on the disk",
                    w->path);
}

int d7__writer_check_failed(d7_writer *w, d7_error *err) {
    int sync_errno = atomic_load_explicit(&w->sync_errno, memory_order_relaxed);
    if (w->stage != D7__WRITER_FAILED && sync_errno) {
        d7_error failure;
        sync_failed(w, sync_errno, &failure);
        return d7__writer_fail(w, &failure, err);
    }
    if (w->stage != D7__WRITER_FAILED)
        return 0;
    if (err)
        *err = w->failure;
    return w->failure.code;
}

int d7__writer_check_open(d7_writer *w, d7_error *err) {
    int rc = d7__writer_check_failed(w, err);
    if (rc == 0 && w->stage != D7__WRITER_OPEN)
        return d7__fail(err, D7_ERR_STATE, 0, D7_NO_OFFSET, "%s: the file is %s", w->path,
                        w->stage == D7__WRITER_CLOSED ? "closed" : "being closed");
    return rc;
}

int d7__writer_drain(d7_writer *w, d7_error *err) {
    d7_error failure;
    int rc = d7__out_flush(&w->out, &failure);
    if (rc == 0)
        return 0;
    if (rc != D7_ERR_NOSPACE)
        return d7__writer_fail(w, &failure, err);
    if (err)
        *err = failure;
    return rc;
}

int d7_writer_renamed(d7_writer *w, const char *path, d7_error *err) {
    if (!path || !*path)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: a path is needed", w->path);
    size_t bytes = strlen(path) + 1;
    char *copy = d7__new(&w->alloc, bytes);
    if (!copy)
        return d7__writer_no_memory(w, err);
    memcpy(copy, path, bytes);
    d7__release(&w->alloc, w->path);
    w->path = copy;
    w->out.path = copy;
    return 0;
}

/* ---- attributes ---- */

/* Fills in the lengths of an attribute given as strings, and checks it. */
static int attribute_check(const char *path, const char *key, const char *value, d7_attribute *ret,
                           d7_error *err) {
    if (!key || !value || !*key)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: an attribute needs a key and a value", path);
    d7_attribute a = {.key = key, .value = value, .key_bytes = strlen(key), .value_bytes = strlen(value)};
    if (strcmp(key, D7_MARKER_KEY) == 0)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: the attribute %s is reserved", path, key);
    if (!common_utf8_valid(key, a.key_bytes))
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: an attribute's key is not valid UTF-8", path);
    if (!common_utf8_valid(value, a.value_bytes))
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET,
                        "%s: the value of attribute %.100s is not valid UTF-8", path, key);
    if (a.key_bytes > D7_INDEX_BODY_MAX || a.value_bytes > D7_INDEX_BODY_MAX ||
        d7__index_attribute_bytes(&a) > D7_INDEX_BODY_MAX)
        return d7__fail(err, D7_ERR_LIMIT, 0, D7_NO_OFFSET, "%s: the attribute %.100s is longer than 16 MiB",
                        path, key);
    *ret = a;
    return 0;
}

/* Keeps the attribute; `in_span`: for the next island too. */
static int attribute_keep(d7_writer *w, const d7_attribute *a, bool in_span) {
    size_t old = d7__attributes_find(&w->attributes, a->key, a->key_bytes);
    size_t old_bytes = old == SIZE_MAX ? 0 : d7__index_attribute_bytes(&w->attributes.items[old]);
    size_t place;
    if (d7__grow(&w->alloc, &w->span, &w->cap_span, w->n_span + 1, sizeof *w->span) != 0 ||
        d7__grow(&w->alloc, &w->in_span, &w->cap_in_span, w->attributes.n + 1, 1) != 0 ||
        d7__attributes_set(&w->attributes, a, &place) != 0)
        return D7_ERR_NOMEM;
    if (old == SIZE_MAX)
        w->in_span[place] = 0;
    if (in_span && !w->in_span[place]) {
        w->in_span[place] = 1;
        w->span[w->n_span++] = place;
    }
    w->index_bytes += d7__index_attribute_bytes(a) - old_bytes;
    return 0;
}

int d7_writer_set_attribute(d7_writer *w, const char *key, const char *value, d7_error *err) {
    d7_attribute a;
    int rc = d7__writer_check_open(w, err);
    if (rc == 0)
        rc = attribute_check(w->path, key, value, &a, err);
    if (rc == 0 && attribute_keep(w, &a, true) != 0)
        return d7__writer_no_memory(w, err);
    return rc;
}

/* ---- creation ---- */

static int create_check_datasets(const char *path, const d7_dataset *datasets, size_t n,
                                 uint32_t bytes_per_page, d7_error *err) {
    if (!datasets || n == 0 || n > D7_DATASETS_MAX)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: a file takes 1 to %u datasets, not %zu", path,
                        D7_DATASETS_MAX, n);
    for (size_t i = 0; i < n; i++) {
        const char *name = datasets[i].name;
        size_t items = d7_items_per_page(datasets[i].type, bytes_per_page);
        if (!name || !*name || !common_utf8_valid(name, strlen(name)))
            return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: the name of dataset %zu is %s", path, i,
                            name && *name ? "not valid UTF-8" : "missing");
        if (items == 0)
            return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: dataset %.100s has no element type", path,
                            name);
        if (d7_page_bound(datasets[i].type, items) > D7_ENTRY_BYTES_MAX)
            return d7__fail(err, D7_ERR_LIMIT, 0, D7_NO_OFFSET,
                            "%s: pages of %u bytes could be over 16 MiB when dataset %.100s is encoded", path,
                            bytes_per_page, name);
    }
    return 0;
}

/* Names are unique: found by the table that attributes use. */
static int create_check_names(d7_writer *w, const d7_dataset *datasets, d7_error *err) {
    d7__attributes seen = {.alloc = &w->alloc};
    int rc = 0;
    for (size_t i = 0; i < w->n_datasets && rc == 0; i++) {
        d7_attribute name = {.key = datasets[i].name, .key_bytes = strlen(datasets[i].name), .value = ""};
        if (d7__attributes_find(&seen, name.key, name.key_bytes) != SIZE_MAX)
            rc = d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: two datasets are called %.100s", w->path,
                          name.key);
        else if (d7__attributes_set(&seen, &name, NULL) != 0)
            rc = d7__writer_no_memory(w, err);
    }
    d7__attributes_free(&seen);
    return rc;
}

static int create_check_options(const char *path, const d7_writer_options *o, d7_error *err) {
    if (o->index_step < 1 || o->index_step > D7_INDEX_STEP_MAX)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: index_step is 1 to %u blocks, not %u", path,
                        D7_INDEX_STEP_MAX, o->index_step);
    if (o->bytes_per_page < D7_PAGE_BYTES_MIN || o->bytes_per_page > D7_PAGE_BYTES_MAX)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: bytes_per_page is %u to %u, not %u", path,
                        D7_PAGE_BYTES_MIN, D7_PAGE_BYTES_MAX, o->bytes_per_page);
    if (o->n_attributes && !o->attributes)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: attributes are missing", path);
    return 0;
}

/* Everything that needs no file. */
static int create_in_memory(d7_writer *w, const char *path, const d7_dataset *datasets, size_t n,
                            const d7_writer_options *o, d7_error *err) {
    w->io = o->io ? *o->io : *d7_io_system();
    w->has_executor = o->executor != NULL;
    if (w->has_executor)
        w->executor = *o->executor;
    w->buffer_bytes = o->buffer_bytes;
    w->index_step = o->index_step;
    w->next_island = o->index_step;
    w->bytes_per_page = o->bytes_per_page;
    w->attributes.alloc = &w->alloc;
    w->path = d7__new(&w->alloc, strlen(path) + 1);
    w->datasets = d7__new(&w->alloc, n * sizeof *w->datasets);
    if (!w->path || !w->datasets)
        return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", path);
    memcpy(w->path, path, strlen(path) + 1);
    w->out = (d7__out){.io = &w->io, .alloc = &w->alloc, .path = w->path};
    w->n_datasets = n;
    for (size_t i = 0; i < n; i++) {
        w->datasets[i].type = datasets[i].type;
        w->datasets[i].items_per_page = d7_items_per_page(datasets[i].type, o->bytes_per_page);
    }
    int rc = create_check_names(w, datasets, err);
    for (size_t i = 0; i < o->n_attributes && rc == 0; i++) {
        d7_attribute a;
        rc = attribute_check(path, o->attributes[i].key, o->attributes[i].value, &a, err);
        if (rc == 0 && attribute_keep(w, &a, false) != 0)
            rc = d7__writer_no_memory(w, err);
    }
    return rc;
}

/* Header, and the attributes known at creation. */
static int create_frame_start(d7_writer *w, const d7_dataset *datasets, d7_error *err) {
    uint8_t *header;
    size_t bytes;
    int rc = d7__header_pack(&w->alloc, datasets, w->n_datasets, w->index_step, w->bytes_per_page, &header,
                             &bytes);
    if (rc == D7_ERR_LIMIT)
        return d7__fail(err, rc, 0, D7_NO_OFFSET,
                        "%s: the names of the datasets do not fit a header of 16 MiB", w->path);
    if (rc == 0) {
        rc = d7__out_reserve(&w->out, 1, bytes);
        if (rc == 0)
            d7__out_entry(&w->out, header, bytes);
        d7__release(&w->alloc, header);
    }
    if (rc == 0 && w->attributes.n) {
        d7__index_content content = {.attributes = w->attributes.items, .n_attributes = w->attributes.n};
        uint64_t offset;
        rc = d7__writer_put_index(w, &content, &offset);
    }
    if (rc != 0)
        return d7__writer_no_memory(w, err);
    w->warnings |= w->n_datasets > 128 ? D7_WARN_MANY_DATASETS : 0;
    w->warnings |= bytes + 2 > D7_BLOCK_BYTES ? D7_WARN_LONG_HEADER : 0;
    return 0;
}

/* Opens the file; *ret_made tells whether it was not there before. */
static int create_open(d7_writer *w, const d7_writer_options *o, bool *ret_made, d7_error *err) {
    int flags = D7_IO_WRITE | D7_IO_CREATE | D7_IO_EXCLUSIVE;
    int rc = w->io.open(w->io.ctx, w->path, flags, o->mode, &w->out.file);
    *ret_made = rc == 0;
    if (rc == -EEXIST && o->overwrite)
        rc = w->io.open(w->io.ctx, w->path, D7_IO_WRITE, o->mode, &w->out.file);
    if (rc == 0)
        return 0;
    w->out.file = NULL;
    if (rc == -EEXIST)
        return d7__fail(err, D7_ERR_EXISTS, EEXIST, D7_NO_OFFSET, "%s: cannot be created", w->path);
    return d7__fail(err, rc == -ENOSPC || rc == -EDQUOT ? D7_ERR_NOSPACE : D7_ERR_IO, -rc, D7_NO_OFFSET,
                    "%s: cannot be created", w->path);
}

static int create_lock(d7_writer *w, d7_locking locking, d7_error *err) {
    int rc = locking == D7_LOCK_NONE ? 0 : w->io.lock(w->io.ctx, w->out.file);
    if (rc == 0)
        return 0;
    if (rc == -EAGAIN)
        return d7__fail(err, D7_ERR_LOCKED, 0, D7_NO_OFFSET, "%s: another writer holds this file", w->path);
    if (locking == D7_LOCK_REQUIRE)
        return d7__fail(err, D7_ERR_UNSUPPORTED, -rc, D7_NO_OFFSET, "%s: the file system gives no locks",
                        w->path);
    w->warnings |= D7_WARN_UNGUARDED;
    return 0;
}

static int create_file(d7_writer *w, const d7_writer_options *o, d7_error *err) {
    bool made;
    int rc = create_open(w, o, &made, err);
    if (rc != 0)
        return rc;
    rc = create_lock(w, o->locking, err);
    if (rc == 0 && !made) {
        int cut = w->io.truncate(w->io.ctx, w->out.file, 0);
        if (cut < 0)
            rc = d7__fail(err, D7_ERR_IO, -cut, D7_NO_OFFSET, "%s: cannot be emptied", w->path);
    }
    if (rc == 0)
        rc = d7__writer_drain(w, err);
    if (rc != 0 && rc != D7_ERR_LOCKED && made && w->io.remove)
        w->io.remove(w->io.ctx, w->path);
    return rc;
}

int d7_writer_create(d7_writer **ret_writer, const char *path, const d7_dataset *datasets, size_t n,
                     const d7_writer_options *options, d7_error *err) {
    d7_writer_options defaults;
    d7_writer_options_init(&defaults);
    const d7_writer_options *o = options ? options : &defaults;
    if (!path || !*path)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "a path is needed");
    int rc = create_check_options(path, o, err);
    if (rc == 0)
        rc = create_check_datasets(path, datasets, n, o->bytes_per_page, err);
    if (rc != 0)
        return rc;

    d7_alloc alloc = d7__alloc_or_default(o->alloc);
    d7_writer *w = d7__new(&alloc, sizeof *w);
    if (!w)
        return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", path);
    w->alloc = alloc;
    rc = create_in_memory(w, path, datasets, n, o, err);
    if (rc == 0)
        rc = create_frame_start(w, datasets, err);
    if (rc == 0)
        rc = create_file(w, o, err);
    if (rc != 0) {
        d7_writer_free(w);
        return rc;
    }
    *ret_writer = w;
    return 0;
}

/* ---- flush, sync, end ---- */

int d7_writer_flush(d7_writer *w, d7_error *err) {
    int rc = d7__writer_check_failed(w, err);
    return rc != 0 ? rc : d7__writer_drain(w, err);
}

int d7_writer_sync_data(d7_writer *w, d7_error *err) {
    int sync_errno = atomic_load_explicit(&w->sync_errno, memory_order_relaxed);
    if (sync_errno)
        return sync_failed(w, sync_errno, err);
    if (!w->out.file)
        return d7__fail(err, D7_ERR_STATE, 0, D7_NO_OFFSET, "%s: the file is closed", w->path);
    int rc;
    do
        rc = w->io.sync_data(w->io.ctx, w->out.file);
    while (rc == -EINTR);
    if (rc == 0)
        return 0;
    atomic_store_explicit(&w->sync_errno, -rc, memory_order_relaxed);
    return sync_failed(w, -rc, err);
}

void d7_writer_free(d7_writer *w) {
    if (!w)
        return;
    d7_alloc alloc = w->alloc;
    if (w->out.file)
        w->io.close(w->io.ctx, w->out.file);
    for (size_t i = 0; i < w->n_datasets; i++)
        d7__release(&alloc, w->datasets[i].pending);
    d7__attributes_free(&w->attributes);
    d7__release(&alloc, w->datasets);
    d7__release(&alloc, w->pages);
    d7__release(&alloc, w->span);
    d7__release(&alloc, w->in_span);
    d7__release(&alloc, w->out.pending.data);
    d7__release(&alloc, w->encoded.data);
    d7__release(&alloc, w->scratch.data);
    d7__release(&alloc, w->path);
    d7__release(&alloc, w);
}

/* ---- getters ---- */

unsigned d7_writer_warnings(const d7_writer *w) {
    return w->warnings;
}

uint64_t d7_writer_paged_items(const d7_writer *w, uint32_t dataset_id) {
    return dataset_id < w->n_datasets ? w->datasets[dataset_id].paged_items : 0;
}

uint64_t d7_writer_items(const d7_writer *w, uint32_t dataset_id) {
    return dataset_id < w->n_datasets
               ? w->datasets[dataset_id].paged_items + w->datasets[dataset_id].n_pending
               : 0;
}

uint64_t d7_writer_pages(const d7_writer *w) {
    return w->n_pages;
}

uint64_t d7_writer_framed_bytes(const d7_writer *w) {
    return d7__out_framed(&w->out);
}

uint64_t d7_writer_written_bytes(const d7_writer *w) {
    return w->out.written;
}

size_t d7_writer_unlisted_attributes(const d7_writer *w) {
    return w->n_span;
}

uint64_t d7_writer_index_bytes(const d7_writer *w) {
    return w->index_bytes + d7__index_attribute_bytes(&d7__marker);
}

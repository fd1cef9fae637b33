/* A writer's life after its creation (writer_create.c): attributes, flush and sync, end. Values become pages
 * in writer_pages.c, the last steps are in writer_close.c.
 *
 * A tail file (what pages do not hold yet, for recovery after a crash) is not the writer's: whoever keeps one
 * puts beside it what the getters say (framed length, items in pages) at the moment of a mark.
 *
 * Failures: a full disk changes nothing and the call can be made again; memory that runs out leaves the
 * writer usable; any other error of a write, and any error of a sync, is final. */
#include "writer.h"

#include <errno.h>
#include <string.h>

#include "base/utf8.h"
#include "error.h"

int d7__writer_no_memory(const d7_writer *w, d7_error *err) {
    return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", w->path);
}

int d7__writer_fail(d7_writer *w, const d7_error *failure, d7_error *err) {
    w->stage = D7__WRITER_FAILED;
    w->failure = *failure;
    atomic_store_explicit(&w->failed, true, memory_order_release);
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

static int first_failure(const d7_writer *w, d7_error *err) {
    if (err)
        *err = w->failure;
    return w->failure.code;
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
    return first_failure(w, err);
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

static int rename_sums(d7_writer *w, d7_error *err) {
    char *path = d7__tail_path(&w->alloc, w->path, D7_CHECKSUMS_SUFFIX);
    if (!path)
        return d7__writer_no_memory(w, err);
    d7__release(&w->alloc, w->sums.path);
    w->sums.path = path;
    w->sums.file.path = path;
    return 0;
}

int d7_writer_renamed(d7_writer *w, const char *path, d7_error *err) {
    int rc = d7__writer_check_failed(w, err);
    if (rc != 0)
        return rc;
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
    return w->out.sums ? rename_sums(w, err) : 0;
}

/* ---- attributes ---- */

int d7__attribute_check(const char *path, const char *key, const char *value, d7_attribute *ret,
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

int d7__writer_keep_attribute(d7_writer *w, const d7_attribute *a, unsigned bits) {
    size_t old = d7__attributes_find(&w->attributes, a->key, a->key_bytes);
    size_t old_bytes = old == SIZE_MAX ? 0 : d7__index_attribute_bytes(&w->attributes.items[old]);
    size_t place;
    if (d7__grow(&w->alloc, &w->span, &w->cap_span, w->n_span + 1, sizeof *w->span) != 0 ||
        d7__grow(&w->alloc, &w->unlisted, &w->cap_unlisted, w->n_unlisted + 1, sizeof *w->unlisted) != 0 ||
        d7__grow(&w->alloc, &w->in_span, &w->cap_in_span, w->attributes.n + 1, 1) != 0 ||
        d7__attributes_set(&w->attributes, a, &place) != 0)
        return D7_ERR_NOMEM;
    if (old == SIZE_MAX)
        w->in_span[place] = 0;
    bits &= ~(unsigned)w->in_span[place];
    if (bits & D7__ATTRIBUTE_SPAN)
        w->span[w->n_span++] = place;
    if (bits & D7__ATTRIBUTE_UNLISTED)
        w->unlisted[w->n_unlisted++] = place;
    w->in_span[place] |= (uint8_t)bits;
    w->index_bytes += d7__index_attribute_bytes(a) - old_bytes;
    return 0;
}

int d7_writer_set_attribute(d7_writer *w, const char *key, const char *value, d7_error *err) {
    d7_attribute a;
    int rc = d7__writer_check_open(w, err);
    if (rc == 0)
        rc = d7__attribute_check(w->path, key, value, &a, err);
    if (rc == 0 && d7__writer_keep_attribute(w, &a, D7__ATTRIBUTE_SPAN | D7__ATTRIBUTE_UNLISTED) != 0)
        return d7__writer_no_memory(w, err);
    return rc;
}

/* ---- flush, sync, end ---- */

int d7_writer_flush(d7_writer *w, d7_error *err) {
    int rc = d7__writer_check_failed(w, err);
    return rc != 0 ? rc : d7__writer_drain(w, err);
}

int d7_writer_sync_data(d7_writer *w, d7_error *err) {
    if (atomic_load_explicit(&w->failed, memory_order_acquire))
        return first_failure(w, err);
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
    d7__sums_writer_free(&w->sums);
    if (w->out.file)
        w->io.close(w->io.ctx, w->out.file);
    for (size_t i = 0; i < w->n_datasets; i++)
        d7__release(&alloc, w->datasets[i].pending);
    d7__attributes_free(&w->attributes);
    d7__release(&alloc, w->datasets);
    d7__page_log_free(&alloc, &w->pages);
    d7__release(&alloc, w->span);
    d7__release(&alloc, w->in_span);
    d7__release(&alloc, w->unlisted);
    d7__release(&alloc, w->out.pending.data);
    d7__release(&alloc, w->encoded.data);
    d7__release(&alloc, w->scratch.data);
    d7__release(&alloc, w->path);
    d7__release(&alloc, w);
}

/* ---- getters ---- */

unsigned d7_writer_warnings(const d7_writer *w) {
    return w->warnings | (w->sums.failure.code != 0 ? D7_WARN_CHECKSUMS : 0);
}

bool d7_writer_checksum_failure(const d7_writer *w, d7_error *ret_failure) {
    if (w->sums.failure.code == 0)
        return false;
    *ret_failure = w->sums.failure;
    return true;
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
    return w->pages.n;
}

uint64_t d7_writer_framed_bytes(const d7_writer *w) {
    return d7__out_framed(&w->out);
}

uint64_t d7_writer_written_bytes(const d7_writer *w) {
    return w->out.written;
}

size_t d7_writer_unlisted_attributes(const d7_writer *w) {
    return w->n_unlisted;
}

uint64_t d7_writer_index_bytes(const d7_writer *w) {
    return w->index_bytes + d7__index_attribute_bytes(&d7__marker);
}

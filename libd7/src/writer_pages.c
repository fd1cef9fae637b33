/* Values to pages, pages to the file, and the islands between them.
 *
 * A page is framed in one step that either happens or, when memory runs out, leaves the writer as it was:
 * room for the page, for an island before it and for its place in the index is made first. Large appends are
 * encoded in groups of pages, by the executor where there is one; what is framed depends on the values and
 * their order alone. */
#include <string.h>

#include "codec.h"
#include "error.h"
#include "framing.h"
#include "writer.h"

enum { GROUP_PAGES = 64 };                  /* encoded at a time, at most */
static const size_t group_bytes = 8u << 20; /* memory for them, about */

/* Makes room for an index and an entry of `more` bytes after it. */
static int reserve_index(d7_writer *w, const d7__index_content *content, size_t more) {
    size_t sum = more, largest = 0, n = 1;
    for (d7__index_part part = {0}; d7__index_next_part(content, &part); n++) {
        size_t bytes = d7__index_entry_bytes(&part);
        sum += bytes;
        largest = bytes > largest ? bytes : largest;
    }
    w->scratch.n = 0;
    int rc = d7__buffer_reserve(&w->alloc, &w->scratch, largest);
    return rc != 0 ? rc : d7__out_reserve(&w->out, n, sum);
}

/* Into reserved room. */
static uint64_t put_part(d7_writer *w, const d7__index_content *content, const d7__index_part *part) {
    size_t bytes = d7__index_pack(content, part, w->scratch.data);
    return d7__out_entry(&w->out, w->scratch.data, bytes);
}

int d7__writer_put_part(d7_writer *w, const d7__index_content *content, const d7__index_part *part,
                        uint64_t *ret_offset) {
    size_t room = d7__index_room(part);
    w->scratch.n = 0;
    if (d7__buffer_reserve(&w->alloc, &w->scratch, room) != 0 || d7__out_reserve(&w->out, 1, room) != 0)
        return D7_ERR_NOMEM;
    *ret_offset = put_part(w, content, part);
    return 0;
}

int d7__writer_put_index(d7_writer *w, const d7__index_content *content, uint64_t *ret_offset) {
    if (reserve_index(w, content, 0) != 0)
        return D7_ERR_NOMEM;
    uint64_t first = UINT64_MAX;
    for (d7__index_part part = {0}; d7__index_next_part(content, &part);) {
        uint64_t offset = put_part(w, content, &part);
        first = first == UINT64_MAX ? offset : first;
    }
    *ret_offset = first;
    return 0;
}

/* The pages and attributes since the last island. */
static d7__index_content island_content(const d7_writer *w) {
    return (d7__index_content){.log = &w->pages,
                               .from = w->unlisted_pages,
                               .n_pages = w->pages.n - w->unlisted_pages.n,
                               .attributes = w->attributes.items,
                               .order = w->span,
                               .n_attributes = w->n_span};
}

static bool island_due(const d7_writer *w) {
    return d7__frame_begin(d7__out_framed(&w->out)) / D7_BLOCK_BYTES >= w->next_island;
}

/* An Index entry of either kind holds what was unlisted; an island, what the span is. */
static void clear_unlisted(d7_writer *w) {
    for (size_t i = 0; i < w->n_unlisted; i++)
        w->in_span[w->unlisted[i]] &= (uint8_t)~D7__ATTRIBUTE_UNLISTED;
    w->n_unlisted = 0;
}

static void clear_span(d7_writer *w) {
    clear_unlisted(w);
    for (size_t i = 0; i < w->n_span; i++)
        w->in_span[w->span[i]] = 0;
    w->n_span = 0;
}

/* Frames the island, and makes room for an entry of `more` bytes after it. */
static int put_island(d7_writer *w, size_t more) {
    d7__index_content content = island_content(w);
    uint64_t offset;
    if (reserve_index(w, &content, more) != 0 || d7__writer_put_index(w, &content, &offset) != 0)
        return D7_ERR_NOMEM;
    clear_span(w);
    w->index_run = true;
    w->unlisted_pages = d7__page_log_end(&w->pages);
    w->next_island = (offset / D7_BLOCK_BYTES / w->index_step + 1) * w->index_step;
    return 0;
}

/* An entry of attributes alone is no island: it stands where none is due, and the next one lists all pages.
 * It also lists these attributes once more, for readers that hop from island to island; but for an entry
 * right behind an island or the header, which they read anyway. */
static int put_attributes(d7_writer *w) {
    d7__index_content content = {
        .attributes = w->attributes.items, .order = w->unlisted, .n_attributes = w->n_unlisted};
    uint64_t offset;
    int rc = d7__writer_put_index(w, &content, &offset);
    if (rc == 0)
        (w->index_run ? clear_span : clear_unlisted)(w);
    return rc;
}

int d7__writer_put_page(d7_writer *w, uint32_t dataset_id, const uint8_t *entry, size_t bytes,
                        size_t n_items) {
    if (d7__page_log_reserve(&w->alloc, &w->pages) != 0 ||
        (island_due(w) ? put_island(w, bytes) : d7__out_reserve(&w->out, 1, bytes)) != 0)
        return D7_ERR_NOMEM;
    const d7__page_ref page = {.offset = d7__out_entry(&w->out, entry, bytes), .dataset_id = dataset_id};
    d7__page_log_add(&w->pages, page);
    w->index_run = false;
    w->index_bytes += d7__index_page_bytes(&page);
    d7__writer_dataset *d = &w->datasets[dataset_id];
    d->paged_items += n_items;
    d->ended = n_items < d->items_per_page;
    return 0;
}

/* ---- encoding ---- */

typedef struct encode_job {
    uint32_t dataset_id;
    d7_type type;
    const void *values;
    size_t n;
    uint8_t *out;
    size_t cap;
    size_t bytes;
    int rc;
} encode_job;

static void encode_run(void *arg) {
    encode_job *job = arg;
    job->rc =
        d7_page_encode(job->dataset_id, job->type, job->values, job->n, job->out, job->cap, &job->bytes);
}

static void encode_all(d7_writer *w, encode_job *jobs, size_t n) {
    bool shared = w->has_executor && n > 1;
    for (size_t i = 0; i < n; i++)
        if (!shared || w->executor.submit(w->executor.ctx, encode_run, &jobs[i]) != 0)
            encode_run(&jobs[i]);
    if (shared)
        w->executor.wait(w->executor.ctx);
}

/* Encodes and frames n_pages pages of n_items each, up to GROUP_PAGES; *ret_done pages were taken. The bound
 * was checked at creation, so that encoding itself cannot fail. */
static int put_group(d7_writer *w, uint32_t dataset_id, const uint8_t *values, size_t n_items, size_t n_pages,
                     size_t *ret_done) {
    const d7__writer_dataset *d = &w->datasets[dataset_id];
    size_t bound = d7_page_bound(d->type, n_items), page_bytes = n_items * d7_type_size(d->type);
    w->encoded.n = 0;
    int rc = d7__buffer_reserve(&w->alloc, &w->encoded, n_pages * bound);
    if (rc != 0)
        return rc;
    encode_job jobs[GROUP_PAGES];
    for (size_t i = 0; i < n_pages; i++)
        jobs[i] = (encode_job){.dataset_id = dataset_id,
                               .type = d->type,
                               .values = values + i * page_bytes,
                               .n = n_items,
                               .out = w->encoded.data + i * bound,
                               .cap = bound};
    encode_all(w, jobs, n_pages);
    for (size_t i = 0; i < n_pages && rc == 0; i++) {
        rc =
            jobs[i].rc ? jobs[i].rc : d7__writer_put_page(w, dataset_id, jobs[i].out, jobs[i].bytes, n_items);
        *ret_done += rc == 0;
    }
    return rc;
}

int d7__writer_put_pending(d7_writer *w, uint32_t dataset_id) {
    d7__writer_dataset *d = &w->datasets[dataset_id];
    size_t done = 0;
    int rc = put_group(w, dataset_id, d->pending, d->n_pending, 1, &done);
    if (rc == 0)
        d->n_pending = 0;
    return rc;
}

/* ---- appending ---- */

static int check_dataset(d7_writer *w, uint32_t dataset_id, d7_error *err) {
    int rc = d7__writer_check_open(w, err);
    if (rc == 0 && dataset_id >= w->n_datasets)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: there is no dataset %u", w->path, dataset_id);
    return rc;
}

static int append_check(d7_writer *w, uint32_t dataset_id, d7_error *err) {
    int rc = check_dataset(w, dataset_id, err);
    if (rc == 0 && w->datasets[dataset_id].ended)
        return d7__fail(err, D7_ERR_STATE, 0, D7_NO_OFFSET,
                        "%s: dataset %u was ended, by call or by a short page", w->path, dataset_id);
    return rc;
}

int d7__writer_drain_if_large(d7_writer *w, d7_error *err) {
    return d7__out_pending(&w->out) >= w->buffer_bytes ? d7__writer_drain(w, err) : 0;
}

/* Datasets with few values take little memory: there may be tens of thousands. */
static int reserve_values(const d7_writer *w, d7__writer_dataset *d, size_t n) {
    if (n <= d->cap_pending)
        return 0;
    size_t cap = n > 2 * d->cap_pending ? n : 2 * d->cap_pending;
    cap = cap < d->items_per_page ? cap : d->items_per_page;
    uint8_t *pending = w->alloc.resize(w->alloc.ctx, d->pending, cap * d7_type_size(d->type));
    if (!pending)
        return D7_ERR_NOMEM;
    d->pending = pending;
    d->cap_pending = cap;
    return 0;
}

/* Moves values to where they wait for their page. */
static int keep_values(d7_writer *w, d7__writer_dataset *d, const uint8_t *values, size_t n) {
    size_t size = d7_type_size(d->type);
    if (reserve_values(w, d, d->n_pending + n) != 0)
        return D7_ERR_NOMEM;
    memcpy(d->pending + d->n_pending * size, values, n * size);
    d->n_pending += n;
    return 0;
}

/* Takes some of the values: those that fill or begin a page, or a group of whole pages. */
static int take_values(d7_writer *w, uint32_t dataset_id, const uint8_t *values, size_t n,
                       size_t *ret_taken) {
    d7__writer_dataset *d = &w->datasets[dataset_id];
    if (d->n_pending || n < d->items_per_page) {
        size_t room = d->items_per_page - d->n_pending;
        size_t take = n < room ? n : room;
        int rc = keep_values(w, d, values, take);
        *ret_taken = rc == 0 ? take : 0;
        return rc;
    }
    size_t pages = n / d->items_per_page, done = 0;
    size_t fit = w->has_executor ? group_bytes / d7_page_bound(d->type, d->items_per_page) : 1;
    fit = fit < 1 ? 1 : fit > GROUP_PAGES ? GROUP_PAGES : fit;
    int rc = put_group(w, dataset_id, values, d->items_per_page, pages < fit ? pages : fit, &done);
    *ret_taken = done * d->items_per_page;
    return rc;
}

int d7_writer_append(d7_writer *w, uint32_t dataset_id, const void *values, size_t n, d7_error *err) {
    int rc = append_check(w, dataset_id, err);
    if (rc != 0)
        return rc;
    if (n && !values)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: the values are missing", w->path);
    rc = d7__writer_drain_if_large(w, err);
    if (rc != 0)
        return rc;

    d7__writer_dataset *d = &w->datasets[dataset_id];
    const uint8_t *p = values;
    for (;;) {
        if (d->n_pending == d->items_per_page && d7__writer_put_pending(w, dataset_id) != 0)
            return d7__writer_no_memory(w, err);
        /* A full disk is for the next call to report: this one has taken a part of its values already. */
        rc = d7__writer_drain_if_large(w, err);
        if (rc != 0 && rc != D7_ERR_NOSPACE)
            return rc;
        if (n == 0)
            return 0;
        size_t taken = 0;
        if (take_values(w, dataset_id, p, n, &taken) != 0)
            return d7__writer_no_memory(w, err);
        p += taken * d7_type_size(d->type);
        n -= taken;
    }
}

int d7_writer_append_page(d7_writer *w, uint32_t dataset_id, const void *entry, size_t bytes, size_t n_items,
                          d7_error *err) {
    int rc = append_check(w, dataset_id, err);
    if (rc != 0)
        return rc;
    const d7__writer_dataset *d = &w->datasets[dataset_id];
    if (d->n_pending)
        return d7__fail(err, D7_ERR_STATE, 0, D7_NO_OFFSET,
                        "%s: %zu values of dataset %u wait for their page", w->path, d->n_pending,
                        dataset_id);
    if (!entry || n_items == 0 || n_items > d->items_per_page || bytes > D7_ENTRY_BYTES_MAX ||
        !d7__page_head_fits(dataset_id, entry, bytes))
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "%s: this is no page of %zu items of dataset %u",
                        w->path, n_items, dataset_id);
    rc = d7__writer_drain_if_large(w, err);
    if (rc != 0)
        return rc;
    if (d7__writer_put_page(w, dataset_id, entry, bytes, n_items) != 0)
        return d7__writer_no_memory(w, err);
    return 0;
}

int d7_writer_end_dataset(d7_writer *w, uint32_t dataset_id, d7_error *err) {
    int rc = check_dataset(w, dataset_id, err);
    if (rc != 0 || w->datasets[dataset_id].ended)
        return rc;
    rc = d7__writer_drain_if_large(w, err);
    if (rc != 0)
        return rc;
    if (w->datasets[dataset_id].n_pending && d7__writer_put_pending(w, dataset_id) != 0)
        return d7__writer_no_memory(w, err);
    w->datasets[dataset_id].ended = true;
    return 0;
}

int d7_writer_put_attributes(d7_writer *w, d7_error *err) {
    int rc = d7__writer_check_open(w, err);
    if (rc != 0 || w->n_unlisted == 0)
        return rc;
    rc = d7__writer_drain_if_large(w, err);
    if (rc != 0)
        return rc;
    return (island_due(w) ? put_island(w, 0) : put_attributes(w)) != 0 ? d7__writer_no_memory(w, err) : 0;
}

/* Going on with a file that a recovery has made equal to a slot of its tail.
 *
 * Everything that the writer had in memory comes back: the pages and attributes from the file's own islands
 * and a scan of what no island lists, the values that no page holds and the attributes that no Index entry
 * holds from the slot. What is appended then gives the bytes that it would have given without the crash. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "codec.h"
#include "error.h"
#include "reader.h"
#include "writer.h"

static int differs(const char *path, const char *what, d7_error *err) {
    return d7__fail(err, D7_ERR_CORRUPT, 0, D7_NO_OFFSET,
                    "%s: %s: it is not what the slot says; recover it first", path, what);
}

/* ---- what the file tells ---- */

static int check_header(const d7_reader *r, const d7_tail_slot *slot, const char *path, d7_error *err) {
    if (r->source.size != slot->claim.length)
        return differs(path, "its length", err);
    if (r->header.n_datasets != slot->n_datasets || r->header.bytes_per_page != slot->bytes_per_page)
        return differs(path, "its header", err);
    for (size_t i = 0; i < slot->n_datasets; i++) {
        d7_tail_dataset d = {0};
        if (d7_tail_slot_dataset(slot, i, &d) != 0 || r->header.datasets[i].type != d.type)
            return differs(path, "a dataset's type", err);
    }
    return 0;
}

static int learn(d7_reader *r, const d7_tail_slot *slot, const char *path, d7_error *err) {
    int rc = check_header(r, slot, path, err);
    if (rc == 0)
        rc = d7__reader_recover(r, err);
    if (rc == 0 && d7_reader_n_damages(r) > 0)
        rc = d7__fail(err, D7_ERR_CORRUPT, 0, r->problems.items[0].offset, "%s: it is damaged: %s", path,
                      r->problems.items[0].text);
    if (rc == 0)
        d7__map_sort(r);
    return rc;
}

/* ---- islands ---- */

/* The first entry that begins at or after `from`: is it an Index, where, and where does the run of Index
 * entries that it begins end? */
static int island_at(d7_reader *r, uint64_t from, bool *ret_there, uint64_t *ret_offset, uint64_t *ret_end,
                     d7_error *err) {
    *ret_there = false;
    for (bool first = true;; first = false) {
        d7__found found;
        d7__entry entry;
        d7__kind kind;
        d7__cursor body;
        int rc = d7__entry_next(&r->framing, from, &found, &entry, err);
        if (rc != 0 || found != D7__FOUND_ENTRY || !d7__entry_kind(entry.data, entry.bytes, &kind, &body) ||
            kind != D7__KIND_INDEX)
            return rc;
        if (first)
            *ret_offset = entry.offset;
        *ret_there = true;
        *ret_end = from = entry.next;
    }
}

/* Finds the last island, from behind: what it and those before it list, where the next one is due, and where
 * it ends. */
static int find_last_island(d7_writer *w, d7_reader *r, uint64_t *ret_end, d7_error *err) {
    uint64_t step = w->index_step;
    bool there = false;
    uint64_t offset = 0;
    int rc = 0;
    for (uint64_t hop = r->source.size / D7_BLOCK_BYTES / step * step; hop > 0 && rc == 0 && !there;
         hop -= step)
        rc = island_at(r, hop * D7_BLOCK_BYTES, &there, &offset, ret_end, err);
    if (rc != 0)
        return rc;
    if (!there) {
        *ret_end = r->data_start;
        return island_at(r, r->data_start, &there, &offset, ret_end, err); /* attributes known early */
    }
    d7__page_ref page;
    for (d7__page_cursor at = {0}; d7__page_log_next(&w->pages, &at, &page) && page.offset < *ret_end;)
        w->unlisted_pages = at;
    w->next_island = (offset / D7_BLOCK_BYTES / step + 1) * step;
    return 0;
}

static int take_for_island(void *ctx, const d7_attribute *a) {
    return d7__writer_keep_attribute(ctx, a, D7__ATTRIBUTE_SPAN);
}

/* Attributes that went ahead of their island: of the entries after `from`, the end of the last one. */
static int take_ahead(d7_writer *w, d7_reader *r, uint64_t from, d7_error *err) {
    const d7__index_sink sink = {.ctx = w, .attribute = take_for_island};
    w->index_run = from == r->source.size;
    for (;;) {
        d7__found found;
        d7__entry entry;
        d7__kind kind;
        d7__cursor body;
        int rc = d7__entry_next(&r->framing, from, &found, &entry, err);
        if (rc != 0 || found != D7__FOUND_ENTRY)
            return rc;
        if (d7__entry_kind(entry.data, entry.bytes, &kind, &body) && kind == D7__KIND_INDEX &&
            d7__index_read(body, &sink) != 0)
            return d7__writer_no_memory(w, err);
        from = entry.next;
    }
}

/* ---- the writer's memory ---- */

/* Those of the file in its order, then those that went ahead, then those that only the slot has. */
static int take_attributes(d7_writer *w, d7_reader *r, const d7_tail_slot *slot, uint64_t last_island_end,
                           d7_error *err) {
    int rc = 0;
    d7_attribute a;
    for (size_t i = 0; i < r->attributes.n && rc == 0; i++)
        rc = d7__writer_keep_attribute(w, &r->attributes.items[i], 0);
    if (rc != 0)
        return d7__writer_no_memory(w, err);
    rc = take_ahead(w, r, last_island_end, err);
    for (size_t cursor = 0; rc == 0 && d7_tail_slot_attribute(slot, &cursor, &a);)
        if (d7__writer_keep_attribute(w, &a, D7__ATTRIBUTE_SPAN | D7__ATTRIBUTE_UNLISTED) != 0)
            rc = d7__writer_no_memory(w, err);
    return rc;
}

/* Takes the reader's pages. */
static int take_pages(d7_writer *w, d7_reader *r, const d7_tail_slot *slot, d7_error *err) {
    d7__page_ref page;
    if (d7__map_list(r, &w->alloc, &w->pages) != 0)
        return d7__writer_no_memory(w, err);
    for (d7__page_cursor at = {0}; d7__page_log_next(&w->pages, &at, &page);) {
        d7__writer_dataset *d = &w->datasets[page.dataset_id];
        d->paged_items += d->items_per_page;
        w->index_bytes += d7__index_page_bytes(&page);
    }
    for (size_t i = 0; i < w->n_datasets; i++) {
        d7_tail_dataset d = {0};
        if (d7_tail_slot_dataset(slot, i, &d) != 0 || w->datasets[i].paged_items != d.items - d.n_partial)
            return differs(w->path, "the number of its pages", err);
    }
    return 0;
}

static int take_partial(d7_writer *w, size_t i, const d7_tail_slot *slot) {
    d7__writer_dataset *d = &w->datasets[i];
    d7_tail_dataset from = {0};
    if (d7_tail_slot_dataset(slot, i, &from) != 0 || from.n_partial == 0)
        return 0;
    d->pending = w->alloc.resize(w->alloc.ctx, NULL, d->items_per_page * d7_type_size(d->type));
    if (!d->pending)
        return D7_ERR_NOMEM;
    d->cap_pending = d->items_per_page;
    d->n_pending = from.n_partial;
    return d7_tail_slot_values(slot, i, 0, from.n_partial, d->pending);
}

static int fill(d7_writer *w, d7_reader *r, const d7_tail_slot *slot, bool whole_pages, d7_error *err) {
    uint64_t last_island_end = 0;
    int rc = take_pages(w, r, slot, err);
    if (rc == 0)
        rc = find_last_island(w, r, &last_island_end, err);
    if (rc == 0)
        rc = take_attributes(w, r, slot, last_island_end, err);
    for (size_t i = 0; i < w->n_datasets && rc == 0 && !whole_pages; i++)
        if (take_partial(w, i, slot) != 0)
            rc = d7__writer_no_memory(w, err);
    w->out.written = slot->claim.length;
    return rc;
}

static int open_file(d7_writer *w, const d7_writer_options *o, d7_error *err) {
    int rc = w->io.open(w->io.ctx, w->path, D7_IO_WRITE, 0, &w->out.file);
    if (rc < 0) {
        w->out.file = NULL;
        return d7__fail(err, rc == -ENOENT ? D7_ERR_NOTFOUND : D7_ERR_IO, -rc, D7_NO_OFFSET,
                        "%s: cannot be opened", w->path);
    }
    return d7__writer_lock(w, o->locking, err);
}

/* A writer of the file's own datasets and sizes, without a file yet. */
static int prepare(d7_writer *w, const d7_reader *r, const char *path, const d7_writer_options *o,
                   d7_error *err) {
    d7_writer_options options = *o;
    options.attributes = NULL;
    options.n_attributes = 0;
    options.index_step = r->header.index_step;
    options.bytes_per_page = r->header.bytes_per_page;
    d7_dataset *datasets = d7__new(&w->alloc, r->header.n_datasets * sizeof *datasets);
    if (!datasets)
        return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", path);
    for (size_t i = 0; i < r->header.n_datasets; i++)
        datasets[i] = (d7_dataset){.name = r->header.datasets[i].name, .type = r->header.datasets[i].type};
    int rc = d7__writer_prepare(w, path, datasets, r->header.n_datasets, &options, err);
    d7__release(&w->alloc, datasets);
    w->warnings |= r->header.n_datasets > 128 ? D7_WARN_MANY_DATASETS : 0;
    w->warnings |= r->data_start > D7_BLOCK_BYTES ? D7_WARN_LONG_HEADER : 0;
    w->warnings |= r->header.bytes_per_page != D7_PAGE_BYTES_DEFAULT ? D7_WARN_PAGE_BYTES : 0;
    return rc;
}

/* Checksums go on from the slot's length, or at least say nothing that is no longer true: those that cannot be cut are
 * removed. They are no reason not to go on. */
static int resume_sums(d7_writer *w, d7_reader *r, const d7_writer_options *o, d7_error *err) {
    d7_error failure;
    int rc = o->checksums ? d7__writer_keep_sums(w, err) : 0;
    if (rc != 0)
        return rc;
    if (o->checksums)
        rc = d7__sums_resume(&w->sums, w->path, &r->framing, w->out.written, o->mode, &failure);
    else
        rc = d7__sums_cut(&w->io, &w->alloc, w->path, w->out.written, &failure);
    if (rc != 0)
        d7__writer_forget_sums(w);
    if (rc != 0 && o->checksums) {
        d7__tail_file_close(&w->sums.file);
        w->sums.n = 0;
        w->sums.failure = failure;
    }
    return 0;
}

int d7_writer_resume(d7_writer **ret_writer, const char *path, const d7_tail_slot *slot,
                     const d7_writer_options *options, d7_error *err) {
    d7_writer_options defaults;
    d7_writer_options_init(&defaults);
    const d7_writer_options *o = options ? options : &defaults;
    if (!slot)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET, "a slot is needed");
    d7_reader_options reading = {.io = o->io, .alloc = o->alloc, .pages_only = true};
    d7_reader *r;
    int rc = d7__reader_open_header(&r, path, &reading, err);
    if (rc != 0)
        return rc;
    d7_alloc alloc = d7__alloc_or_default(o->alloc);
    d7_writer *w = d7__new(&alloc, sizeof *w);
    if (!w) {
        d7_reader_free(r);
        return d7__fail(err, D7_ERR_NOMEM, 0, D7_NO_OFFSET, "%s: out of memory", path);
    }
    w->alloc = alloc;
    rc = learn(r, slot, path, err);
    if (rc == 0)
        rc = prepare(w, r, path, o, err);
    if (rc == 0)
        rc = fill(w, r, slot, o->whole_pages, err);
    if (rc == 0)
        rc = open_file(w, o, err);
    if (rc == 0)
        rc = resume_sums(w, r, o, err);
    d7_reader_free(r);
    if (rc != 0) {
        d7_writer_free(w);
        return rc;
    }
    *ret_writer = w;
    return 0;
}

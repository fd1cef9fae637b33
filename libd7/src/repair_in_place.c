/* Closing a file that was cut short, in its own place.
 *
 *   ... last whole page, island | left-over global index, torn entry       as found
 *   ... last whole page, island | global index | padding, epilogue         as it shall be
 *                               E
 *
 * What is to follow E is made in memory. As far as the file has these very bytes already (the writer, or a repair, was
 * interrupted while it closed the file) they stay; what differs is copied aside, cut off, and the rest is written:
 *
 *   copy of the cut end, synced -> cut, synced -> index, synced -> epilogue, synced
 *
 * At every moment the file is whole up to E, and what was behind it is in the file or in the copy. An epilogue on the disk
 * means that everything before it is there. Attributes that only a left-over index has are kept by leaving that index alone:
 * where it has other bytes than ours would, the repair is refused before anything is changed. */
#include <errno.h>
#include <string.h>

#include "checksums.h"
#include "codec.h"
#include "cut.h"
#include "error.h"
#include "out.h"
#include "repair.h"

typedef struct closing {
    const d7_repair_options *o;
    d7_reader *r;
    const char *path;
    d7__page_ref *pages; /* [n_pages] in the order of the file */
    size_t n_pages;
    uint64_t end;        /* E */
    uint64_t kept_index; /* where a left-over index that must stay ends; 0: there is none */
    uint64_t index_end;  /* of what is to be written: where the index ends */
    uint64_t same;       /* the file has what is to be written up to here */
    d7__out out;         /* what is to be written, from E on */
    d7__tail_file file;
    d7_repair_report *report;
} closing;

/* ---- damage ---- */

typedef struct damage {
    uint64_t first; /* offset of the first one, 0 where it has none; D7_NO_OFFSET: there is none */
    char text[256];
} damage;

static void note_damage(void *ctx, const d7_problem *p) {
    damage *d = ctx;
    uint64_t at = p->offset == D7_NO_OFFSET ? 0 : p->offset;
    if (p->severity != D7_DAMAGE || at >= d->first)
        return;
    d->first = at;
    memcpy(d->text, p->text, sizeof d->text);
}

/* ---- where the whole part ends ---- */

typedef struct listing {
    uint64_t n_pages, first_page;
    bool has_marker, has_attributes;
} listing;

static int list_page(void *ctx, uint64_t dataset_id, uint64_t offset) {
    listing *l = ctx;
    (void)dataset_id;
    l->first_page = l->n_pages == 0 || offset < l->first_page ? offset : l->first_page;
    l->n_pages++;
    return 0;
}

static int list_attribute(void *ctx, const d7_attribute *a) {
    listing *l = ctx;
    if (d7__is_marker(a))
        l->has_marker = true;
    else
        l->has_attributes = true;
    return 0;
}

/* Is there an island between the start of the file and `end`? */
static int has_island(closing *c, uint64_t end, bool *ret, d7_error *err) {
    uint64_t at = (uint64_t)c->r->header.index_step * D7_BLOCK_BYTES;
    *ret = false;
    while (at < end && !*ret) {
        d7__found found;
        d7__entry e;
        d7__kind kind;
        d7__cursor body;
        listing l = {0};
        int rc = d7__entry_next(&c->r->framing, at, &found, &e, err);
        if (rc != 0 || found != D7__FOUND_ENTRY || e.offset >= end)
            return rc;
        if (d7__entry_kind(e.data, e.bytes, &kind, &body) && kind == D7__KIND_INDEX &&
            d7__index_read(body, &(d7__index_sink){&l, list_page, list_attribute}) == 0)
            *ret = l.n_pages > 0;
        at = e.next;
    }
    return 0;
}

/* Is the index behind the last page a global one, and not an island? It has the marker, or lists the first page a second
 * time, or stands where no island can be due yet. */
static int is_leftover(closing *c, const d7__entry *e, const listing *l, bool *ret, d7_error *err) {
    *ret = l->has_marker;
    if (l->has_marker || l->n_pages == 0 || c->n_pages == 0 || l->first_page != c->pages[0].offset)
        return 0;
    if (e->offset / D7_BLOCK_BYTES < c->r->header.index_step) {
        *ret = true;
        return 0;
    }
    return has_island(c, e->offset, ret, err);
}

/* From the end of the last page: islands belong to the whole part, a left-over index does not. */
static int find_end(closing *c, d7_error *err) {
    for (bool leftover = false;;) {
        d7__found found;
        d7__entry e;
        d7__kind kind;
        d7__cursor body;
        listing l = {0};
        uint64_t from = leftover ? c->kept_index : c->end;
        int rc = d7__entry_next(&c->r->framing, from, &found, &e, err);
        uint64_t next = e.next;
        if (rc != 0 || found != D7__FOUND_ENTRY || e.offset != d7__frame_begin(from) ||
            !d7__entry_kind(e.data, e.bytes, &kind, &body) || kind != D7__KIND_INDEX ||
            d7__index_read(body, &(d7__index_sink){&l, list_page, list_attribute}) != 0)
            return rc;
        if (!leftover)
            rc = is_leftover(c, &e, &l, &leftover, err);
        if (rc != 0)
            return rc;
        if (leftover)
            c->kept_index = next;
        else
            c->end = next;
    }
}

static int refuse(const closing *c, const char *why, d7_error *err) {
    return d7__fail(err, D7_ERR_STATE, 0, D7_NO_OFFSET,
                    "%s: cannot be repaired in its place: %s; write a repaired copy instead", c->path, why);
}

static int find_whole_part(closing *c, d7_error *err) {
    if (d7__map_list(c->r, &c->pages, &c->n_pages) != 0)
        return d7__reader_no_memory(c->r, err);
    c->end = c->r->data_start;
    if (c->n_pages) {
        d7__found found;
        d7__entry e;
        int rc = d7__entry_at(&c->r->framing, c->pages[c->n_pages - 1].offset, &found, &e, err);
        if (rc != 0)
            return rc;
        if (found != D7__FOUND_ENTRY)
            return refuse(c, "its last page is damaged", err);
        c->end = e.next;
    }
    return find_end(c, err);
}

/* ---- what is to follow ---- */

static int put_index(closing *c, const d7__index_content *content, uint64_t *ret_offset) {
    const d7_alloc *a = &c->r->alloc;
    *ret_offset = D7_NO_OFFSET;
    for (d7__index_part part = {0}; d7__index_next_part(content, &part);) {
        size_t bytes = d7__index_entry_bytes(&part);
        uint8_t *entry = d7__new(a, bytes);
        int rc = entry ? d7__out_reserve(&c->out, 1, bytes) : D7_ERR_NOMEM;
        if (rc == 0) {
            uint64_t offset = d7__out_entry(&c->out, entry, d7__index_pack(content, &part, entry));
            *ret_offset = *ret_offset == D7_NO_OFFSET ? offset : *ret_offset;
        }
        d7__release(a, entry);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int make_ending(closing *c, d7_error *err) {
    const d7__attributes *attributes = &c->r->attributes;
    const d7__index_content all = {.pages = c->pages,
                                   .n_pages = c->n_pages,
                                   .attributes = attributes->items,
                                   .n_attributes = attributes->n,
                                   .marker = &d7__marker};
    uint8_t epilogue[D7__EPILOGUE_MAX];
    uint64_t index_offset;
    c->out = (d7__out){.io = &c->r->io, .alloc = &c->r->alloc, .path = c->path, .written = c->end};
    int rc = put_index(c, &all, &index_offset);
    c->index_end = d7__out_framed(&c->out);
    size_t bytes = rc == 0 ? d7__epilogue_pack(index_offset, epilogue) : 0;
    if (rc == 0)
        rc = d7__out_reserve(&c->out, 1, D7_BLOCK_BYTES + bytes);
    if (rc != 0)
        return d7__reader_no_memory(c->r, err);
    d7__out_pad(&c->out);
    d7__out_entry(&c->out, epilogue, bytes);
    return 0;
}

/* How far the file has it already. */
static int compare_ending(closing *c, d7_error *err) {
    const d7__source *s = &c->r->source;
    uint64_t end = d7__out_framed(&c->out), to = end < s->size ? end : s->size;
    const uint8_t *want = c->out.pending.data + c->out.taken, *have;
    for (c->same = c->end; c->same < to;) {
        size_t n = to - c->same < D7_BLOCK_BYTES ? (size_t)(to - c->same) : D7_BLOCK_BYTES;
        int rc = d7__source_get(&c->r->source, c->same, n, &have, err);
        if (rc != 0)
            return rc;
        for (size_t i = 0; i < n; i++, c->same++)
            if (have[i] != want[c->same - c->end])
                return 0;
    }
    return 0;
}

/* ---- changing the file ---- */

static int cut_end(closing *c, d7_error *err) {
    uint64_t size = c->r->source.size;
    d7__cut cut = {
        .from = &c->file, .alloc = &c->r->alloc, .begin = c->same, .end = size, .mode = c->o->mode};
    /* What checksums beside the file say of its end is no longer true; they are no reason to fail. */
    (void)!d7__sums_cut(&c->r->io, &c->r->alloc, c->path, c->same, NULL);
    if (c->same == size)
        return 0;
    cut.chunk = c->r->alloc.resize(c->r->alloc.ctx, NULL, D7__CUT_CHUNK_BYTES);
    if (!cut.chunk)
        return d7__reader_no_memory(c->r, err);
    int rc = d7__cut_keep(&cut, &c->report->cut_number, err);
    d7__release(&c->r->alloc, cut.chunk);
    if (rc == 0)
        rc = d7__tail_file_truncate(&c->file, c->same, err);
    if (rc == 0)
        rc = d7__tail_file_sync(&c->file, err);
    if (rc == 0)
        c->report->cut_bytes = size - c->same;
    return rc;
}

/* Writes what is to be there of [from, to), and syncs. What was there already is written again, the same, so that this sync
 * answers for it too. */
static int write_part(closing *c, uint64_t from, uint64_t to, d7_error *err) {
    const uint8_t *bytes = c->out.pending.data + c->out.taken + (from - c->end);
    int rc = d7__tail_file_write(&c->file, bytes, (size_t)(to - from), from, err);
    return rc == 0 ? d7__tail_file_sync(&c->file, err) : rc;
}

static int change(closing *c, d7_error *err) {
    uint64_t size, end = d7__out_framed(&c->out);
    int rc = d7__tail_file_open(&c->file, &c->r->io, c->path, D7_IO_WRITE, 0, err);
    if (rc == 0 && c->r->io.lock(c->r->io.ctx, c->file.file) == -EAGAIN)
        return d7__fail(err, D7_ERR_LOCKED, 0, D7_NO_OFFSET, "%s: a writer holds this file", c->path);
    if (rc == 0)
        rc = d7__tail_file_size(&c->file, &size, err);
    if (rc == 0 && size != c->r->source.size)
        rc = refuse(c, "it has changed since it was looked at", err);
    if (rc == 0)
        rc = cut_end(c, err);
    if (rc == 0)
        rc = write_part(c, c->end, c->index_end, err);
    if (rc == 0)
        rc = write_part(c, c->index_end, end, err);
    return rc;
}

/* ---- all of it ---- */

static int no_tail_beside(const closing *c, d7_error *err) {
    char *path = d7__tail_path(&c->r->alloc, c->path, D7_TAIL_SUFFIX);
    void *file;
    if (!path)
        return d7__reader_no_memory(c->r, err);
    int rc = c->r->io.open(c->r->io.ctx, path, D7_IO_READ, 0, &file);
    d7__release(&c->r->alloc, path);
    if (rc == 0)
        c->r->io.close(c->r->io.ctx, file);
    return rc == -ENOENT ? 0
                         : refuse(c, "there is a tail beside it, by which its recorder will recover it", err);
}

/* Are there pages behind a hole, which the reader leaves out? */
static bool has_unplaced(const d7_reader *r) {
    for (size_t i = 0; i < r->problems.n; i++)
        if (r->problems.items[i].code == D7_PROBLEM_UNPLACED)
            return true;
    return false;
}

/* Everything up to the first change. */
static int prepare(closing *c, d7_error *err) {
    damage d = {.first = D7_NO_OFFSET};
    d7_verify_summary summary;
    int rc = find_whole_part(c, err);
    if (rc == 0)
        rc = d7_reader_verify(c->r, note_damage, &d, c->o->progress, c->o->progress_ctx, &summary, err);
    if (rc == 0 && (d.first < c->end || has_unplaced(c->r)))
        rc = refuse(c, d.text, err);
    if (rc == 0)
        rc = make_ending(c, err);
    if (rc == 0)
        rc = compare_ending(c, err);
    if (rc == 0 && c->same < c->kept_index)
        rc = refuse(c, "it ends in an index that another writer made", err);
    return rc;
}

static int close_it(closing *c, d7_error *err) {
    int rc = no_tail_beside(c, err);
    if (rc == 0)
        rc = prepare(c, err);
    if (rc == 0)
        rc = change(c, err);
    d7__tail_file_close(&c->file);
    if (rc == 0)
        rc = d7__repair_verify(c->path, c->o, NULL, NULL, err);
    d7__release(&c->r->alloc, c->pages);
    d7__release(&c->r->alloc, c->out.pending.data);
    return rc;
}

int d7_repair_in_place(const char *path, const d7_repair_options *options, d7_repair_report *ret_report,
                       d7_error *err) {
    d7_repair_options defaults;
    d7_repair_options_init(&defaults);
    d7_repair_report report = {0};
    closing c = {.o = options ? options : &defaults, .path = path, .report = &report};
    d7_repair_options framed = *c.o;
    bool fine;
    framed.unframed = false;
    int rc = d7__repair_open(path, &framed, true, &c.r, err);
    if (rc != 0)
        return rc;
    if (d7__report_start(c.r, &report) != 0)
        rc = d7__reader_no_memory(c.r, err);
    if (rc == 0)
        rc = d7__repair_is_fine(c.r, c.o->progress, c.o->progress_ctx, &fine, err);
    if (rc == 0 && !fine) {
        report.outcome = D7_REPAIR_IN_PLACE;
        rc = close_it(&c, err);
    }
    d7__report_checksums(c.r, &report);
    d7_reader_free(c.r);
    if (rc == 0)
        *ret_report = report;
    else
        d7_repair_report_free(&report);
    return rc;
}

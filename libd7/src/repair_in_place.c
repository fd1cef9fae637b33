/* Closing a file that was cut short, in its own place.
 *
 *   ... last whole page, island | left-over global index, torn entry       as found
 *   ... last whole page, island | global index | padding, epilogue         as it shall be
 *                               E
 *
 * What is to follow E is made twice. As far as the file has these very bytes already (the writer, or a repair, was
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
    d7__page_log pages; /* in the order of the file */
    uint64_t first_page;
    uint64_t end;        /* E */
    uint64_t kept_index; /* where a left-over index that must stay ends; 0: there is none */
    uint64_t same;       /* the file has what is to be written up to here; */
    bool differs;        /* and there something else */
    d7_error *failure;   /* of comparing */
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
            d7__index_read(body,
                           &(d7__index_sink){.ctx = &l, .page = list_page, .attribute = list_attribute}) == 0)
            *ret = l.n_pages > 0;
        at = e.next;
    }
    return 0;
}

/* Is the index behind the last page a global one, and not an island? It has the marker, or lists the first page a second
 * time, or stands where no island can be due yet. */
static int is_leftover(closing *c, const d7__entry *e, const listing *l, bool *ret, d7_error *err) {
    *ret = l->has_marker;
    if (l->has_marker || l->n_pages == 0 || c->pages.n == 0 || l->first_page != c->first_page)
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
            d7__index_read(body,
                           &(d7__index_sink){.ctx = &l, .page = list_page, .attribute = list_attribute}) != 0)
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
    d7__page_ref first = {0};
    if (d7__map_list(c->r, &c->r->alloc, &c->pages) != 0)
        return d7__reader_no_memory(c->r, err);
    c->end = c->r->data_start;
    if (d7__page_log_next(&c->pages, &(d7__page_cursor){0}, &first)) {
        d7__found found;
        d7__entry e;
        c->first_page = first.offset;
        int rc = d7__entry_at(&c->r->framing, c->pages.last, &found, &e, err);
        if (rc != 0)
            return rc;
        if (found != D7__FOUND_ENTRY)
            return refuse(c, "its last page is damaged", err);
        c->end = e.next;
    }
    return find_end(c, err);
}

/* ---- what is to follow ---- */

/* The global index, one entry after the other; *ret_offset: of the first. */
static int put_index(closing *c, d7__out *out, uint64_t *ret_offset, d7_error *err) {
    const d7__attributes *attributes = &c->r->attributes;
    const d7__index_content all = {.log = &c->pages,
                                   .n_pages = c->pages.n,
                                   .attributes = attributes->items,
                                   .n_attributes = attributes->n,
                                   .marker = &d7__marker};
    *ret_offset = D7_NO_OFFSET;
    for (d7__index_part part = {0}; d7__index_next_part(&all, &part);) {
        uint8_t *entry = d7__new(&c->r->alloc, d7__index_room(&part));
        int rc = entry ? d7__out_reserve(out, 1, d7__index_room(&part)) : D7_ERR_NOMEM;
        if (rc == 0) {
            uint64_t offset = d7__out_entry(out, entry, d7__index_pack(&all, &part, entry));
            *ret_offset = *ret_offset == D7_NO_OFFSET ? offset : *ret_offset;
        }
        d7__release(&c->r->alloc, entry);
        if (rc != 0)
            return d7__reader_no_memory(c->r, err);
        rc = d7__out_flush(out, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int put_epilogue(closing *c, d7__out *out, uint64_t index_offset, d7_error *err) {
    uint8_t epilogue[D7__EPILOGUE_MAX];
    size_t bytes = d7__epilogue_pack(index_offset, epilogue);
    if (d7__out_reserve(out, 1, D7_BLOCK_BYTES + bytes) != 0)
        return d7__reader_no_memory(c->r, err);
    d7__out_pad(out);
    d7__out_entry(out, epilogue, bytes);
    return d7__out_flush(out, err);
}

/* Hands all of it to io->pwrite(), from E on, and syncs in between where `sync` is set. */
static int put_ending(closing *c, const d7_io *io, void *file, bool sync, d7_error *err) {
    d7__out out = {.io = io, .alloc = &c->r->alloc, .file = file, .path = c->path, .written = c->end};
    uint64_t index_offset;
    int rc = put_index(c, &out, &index_offset, err);
    if (rc == 0 && sync)
        rc = d7__tail_file_sync(&c->file, err);
    if (rc == 0)
        rc = put_epilogue(c, &out, index_offset, err);
    if (rc == 0 && sync)
        rc = d7__tail_file_sync(&c->file, err);
    d7__release(&c->r->alloc, out.pending.data);
    return rc;
}

/* ---- how far the file has it already ---- */

/* Takes what would be written, and holds it against the file. */
static int64_t compare_pwrite(void *ctx, void *file, const void *data, size_t bytes, uint64_t offset) {
    closing *c = ctx;
    const uint8_t *want = data, *have;
    (void)file;
    for (uint64_t n; !c->differs && c->same < offset + bytes;) {
        uint64_t left = c->r->source.size - c->same;
        n = offset + bytes - c->same;
        n = n < D7_BLOCK_BYTES ? n : D7_BLOCK_BYTES;
        n = n < left ? n : left;
        c->differs = n == 0;
        int rc = n ? d7__source_get(&c->r->source, c->same, (size_t)n, &have, c->failure) : 0;
        if (rc != 0)
            return -EIO;
        for (uint64_t i = 0; i < n && !c->differs; i++) {
            c->differs = have[i] != want[c->same - offset];
            c->same += !c->differs;
        }
    }
    return (int64_t)bytes;
}

static int compare_ending(closing *c, d7_error *err) {
    d7_error failure = {0}, ignored;
    const d7_io comparing = {.ctx = c, .pwrite = compare_pwrite};
    c->same = c->end;
    c->differs = false;
    c->failure = &failure;
    int rc = put_ending(c, &comparing, NULL, false, &ignored);
    if (rc != 0 && err)
        *err = failure.code ? failure : ignored;
    return failure.code ? failure.code : rc;
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

/* What is there already of the ending is written again, the same, so that its syncs answer for that too. */
static int change(closing *c, d7_error *err) {
    uint64_t size;
    int rc = d7__tail_file_open(&c->file, &c->r->io, c->path, D7_IO_WRITE, 0, err);
    if (rc == 0 && c->r->io.lock(c->r->io.ctx, c->file.file) == -EAGAIN)
        return d7__fail(err, D7_ERR_LOCKED, 0, D7_NO_OFFSET, "%s: a writer holds this file", c->path);
    if (rc == 0)
        rc = d7__tail_file_size(&c->file, &size, err);
    if (rc == 0 && size != c->r->source.size)
        rc = refuse(c, "it has changed since it was looked at", err);
    if (rc == 0)
        rc = cut_end(c, err);
    return rc == 0 ? put_ending(c, &c->r->io, c->file.file, true, err) : rc;
}

/* ---- all of it ---- */

static int no_tail_beside(const closing *c, d7_error *err) {
    char *path = d7__beside(&c->r->io, &c->r->alloc, c->path, D7_TAIL_SUFFIX);
    void *file;
    if (!path)
        return d7__reader_no_memory(c->r, err);
    int rc = c->r->io.open(c->r->io.ctx, path, D7_IO_READ, 0, &file);
    d7__release(&c->r->alloc, path);
    if (rc == 0)
        c->r->io.close(c->r->io.ctx, file);
    return rc == -ENOENT || rc == -ENAMETOOLONG
               ? 0
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
    d7__page_log_free(&c->r->alloc, &c->pages);
    d7__map_free(c->r); /* the reader that verifies has one too */
    return rc == 0 ? d7__repair_verify(c->path, c->o, NULL, NULL, err) : rc;
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

/* Checksums for a file that has none. What is damaged gets none: it would be called good for ever after. */
#include <inttypes.h>

#include "checksums.h"
#include "error.h"
#include "reader.h"

enum { SCAN_WINDOW_BYTES = 1 << 20 };

static int add_entry(d7_reader *r, d7__sums_writer *w, const d7__entry *entry, d7_error *err) {
    if (w->n == D7__SUMS_BLOCK_MAX) {
        d7__sums_flush(w, true);
        if (w->failure.code != 0 && err)
            *err = w->failure;
        if (w->failure.code != 0)
            return w->failure.code;
    }
    if (d7__sums_reserve(w, 1) != 0)
        return d7__reader_no_memory(r, err);
    d7__sums_add(w, entry->offset, entry->data, entry->bytes);
    return 0;
}

static int add_all(d7_reader *r, d7__sums_writer *w, d7_progress_fn *progress, void *ctx, d7_error *err) {
    for (uint64_t at = 0;;) {
        d7__found found;
        d7__entry entry;
        int rc = d7__entry_next(&r->framing, at, &found, &entry, err);
        if (rc == 0 && found == D7__FOUND_END)
            return 0;
        if (rc == 0 && found != D7__FOUND_ENTRY)
            rc = d7__fail(err, D7_ERR_CORRUPT, 0, entry.offset,
                          "%s: damaged at byte %" PRIu64 ": checksums are for files without damage",
                          r->source.path, entry.offset);
        if (rc == 0)
            rc = add_entry(r, w, &entry, err);
        if (rc == 0 && progress && progress(ctx, entry.next, r->source.size) != 0)
            rc = d7__fail(err, D7_ERR_CANCELLED, 0, D7_NO_OFFSET, "%s: stopped", r->source.path);
        if (rc != 0)
            return rc;
        at = entry.next;
    }
}

static int make(d7_reader *r, d7__sums_writer *w, d7_progress_fn *progress, void *ctx, d7_error *err) {
    int rc = d7__sums_create(w, 0666, err);
    if (rc != 0)
        return rc;
    rc = add_all(r, w, progress, ctx, err);
    if (rc == 0)
        d7__sums_finish(w);
    if (rc == 0 && w->failure.code != 0) {
        rc = w->failure.code;
        if (err)
            *err = w->failure;
    }
    if (rc != 0 && r->io.remove)
        r->io.remove(r->io.ctx, w->path);
    return rc;
}

int d7_reader_write_checksums(d7_reader *r, const char *path, d7_progress_fn *progress, void *progress_ctx,
                              d7_error *err) {
    d7__sums_writer w;
    size_t window = r->source.window_bytes;
    if (r->held)
        return d7__fail(err, D7_ERR_LOCKED, 0, D7_NO_OFFSET, "%s: a writer holds this file", r->source.path);
    char *beside = path ? NULL : d7__beside(&r->io, &r->alloc, r->source.path, D7_CHECKSUMS_SUFFIX);
    if ((!path && !beside) || d7__sums_writer_init(&w, &r->io, &r->alloc, path ? path : beside) != 0) {
        d7__release(&r->alloc, beside);
        return d7__reader_no_memory(r, err);
    }
    r->source.window_bytes = SCAN_WINDOW_BYTES;
    int rc = make(r, &w, progress, progress_ctx, err);
    r->source.window_bytes = window;
    d7__sums_writer_free(&w);
    d7__release(&r->alloc, beside);
    return rc;
}

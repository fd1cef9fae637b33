/* Checksums beside a file as a reader minds them: pages that have changed since they were written are damaged. */
#include "error.h"
#include "repair.h"

enum { SCAN_WINDOW_BYTES = 1 << 20 };

static int look_at_all(d7__changed *c, d7_progress_fn *progress, void *ctx, d7_error *err) {
    d7_reader *r = c->r;
    d7__found found = D7__FOUND_ENTRY;
    for (uint64_t at = r->data_start; found != D7__FOUND_END && found != D7__FOUND_TORN;) {
        d7__entry entry;
        int rc = d7__entry_next(&r->framing, at, &found, &entry, err);
        if (rc == 0 && found == D7__FOUND_ENTRY)
            rc = d7__changed_look(c, &entry, err);
        if (rc == 0 && progress && progress(ctx, entry.next, r->source.size) != 0)
            rc = d7__fail(err, D7_ERR_CANCELLED, 0, D7_NO_OFFSET, "%s: stopped", r->source.path);
        if (rc != 0)
            return rc;
        at = entry.next;
    }
    return 0;
}

int d7_reader_compare_checksums(d7_reader *r, d7_progress_fn *progress, void *progress_ctx, d7_error *err) {
    d7__changed c = {0};
    size_t window = r->source.window_bytes;
    int rc = d7__changed_begin(&c, r, err);
    if (rc == 0 && c.compare.there) {
        r->source.window_bytes = SCAN_WINDOW_BYTES;
        rc = look_at_all(&c, progress, progress_ctx, err);
        r->source.window_bytes = window;
    }
    if (rc == 0)
        rc = d7__changed_mark(&c, r->state == D7_STATE_CLOSED, err);
    d7__changed_free(&c);
    return rc;
}

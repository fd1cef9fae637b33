/* Space on the disk for what is to come: set aside beyond the end of the file, so that a full disk shows before there is
 * anything to be written, and so that the file can be closed in any case. What is left of it is given back at the close. */
#include <errno.h>

#include "codec.h"
#include "error.h"
#include "framing.h"
#include "messages.h"
#include "writer.h"

enum { ROOM_SUM_BYTES = 64 }; /* of the checksums for an entry, when each is written alone */

/* Of the entries with `body` bytes, in as many Index entries as they need. */
static uint64_t index_bound(uint64_t body) {
    uint64_t n = body / (D7_INDEX_BODY_MAX / 2) + 2;
    return d7__frame_bound((size_t)body) + n * (D7__EPILOGUE_MAX + d7__frame_bound(0));
}

uint64_t d7_writer_closed_bytes(const d7_writer *w) {
    uint64_t index = w->index_bytes + d7__index_attribute_bytes(&d7__marker), pages = 0;
    for (size_t i = 0; i < w->n_datasets; i++) {
        const d7__writer_dataset *d = &w->datasets[i];
        if (d->n_pending)
            pages += d7__frame_bound(d7_page_bound(d->type, d->n_pending)) + index_bound(0);
    }
    if (w->stage >= D7__WRITER_CLOSING_SYNC)
        return d7__out_framed(&w->out) + D7_BLOCK_BYTES + d7__frame_bound(D7__EPILOGUE_MAX);
    return d7__out_framed(&w->out) + pages + (pages ? 2 : 1) * index_bound(index) + D7_BLOCK_BYTES +
           d7__frame_bound(D7__EPILOGUE_MAX);
}

static int allocate(const d7_writer *w, void *file, const char *path, uint64_t from, uint64_t to,
                    d7_error *err) {
    int rc = 0;
    if (from >= to)
        return 0;
    do
        rc = w->io.allocate(w->io.ctx, file, from, to - from);
    while (rc == -EINTR);
    if (rc == 0)
        return 0;
    int code = rc == -ENOSPC || rc == -EDQUOT                       ? D7_ERR_NOSPACE
               : rc == -EOPNOTSUPP || rc == -ENOSYS || rc == -EFBIG ? D7_ERR_UNSUPPORTED
                                                                    : D7_ERR_IO;
    return d7__fail(err, code, -rc, to, "%s: space cannot be set aside up to byte %llu", path,
                    (unsigned long long)to);
}

int d7_writer_allocate(d7_writer *w, uint64_t length, uint64_t n_entries, d7_error *err) {
    if (!w->io.allocate || !w->out.file)
        return d7__fail(err, D7_ERR_UNSUPPORTED, 0, D7_NO_OFFSET, "%s: no space can be set aside", w->path);
    w->allocates = true;
    uint64_t from = w->allocated > w->out.written ? w->allocated : w->out.written;
    int rc = allocate(w, w->out.file, w->path, from, length, err);
    if (rc != 0)
        return rc;
    w->allocated = from > length ? from : length;
    d7__sums_writer *sums = w->out.sums;
    if (!sums || !sums->file.file || sums->failure.code)
        return 0;
    sums->allocates = true;
    uint64_t sums_length = sums->written + D7_BLOCK_BYTES + (sums->n + n_entries) * ROOM_SUM_BYTES;
    rc = allocate(w, sums->file.file, sums->path, sums->written, sums_length, err);
    return rc == D7_ERR_NOSPACE ? rc : 0;
}

/* What could not be given back is the file system's to find. */
void d7__writer_give_back(d7_writer *w) {
    if (w->allocates)
        (void)w->io.truncate(w->io.ctx, w->out.file, w->out.written);
}

/* The end of a file: short pages, global index, sync; then padding, epilogue, sync. The first sync makes an
 * epilogue on the disk mean that everything before it is there too. Each step is remembered in `stage`, so
 * that a close that met a full disk goes on where it stopped. */
#include "codec.h"
#include "error.h"
#include "messages.h"
#include "writer.h"

static int frame_pages(d7_writer *w, d7_error *err) {
    for (size_t i = 0; i < w->n_datasets; i++) {
        int rc = d7__writer_drain_if_large(w, err);
        if (rc != 0)
            return rc;
        if (w->datasets[i].n_pending && d7__writer_put_pending(w, (uint32_t)i) != 0)
            return d7__writer_no_memory(w, err);
    }
    return 0;
}

/* An index of very many pages has several entries: each is on its way before the next one is made. */
static int frame_index(d7_writer *w, d7_error *err) {
    const d7__index_content all = {.log = &w->pages,
                                   .n_pages = w->pages.n,
                                   .attributes = w->attributes.items,
                                   .n_attributes = w->attributes.n,
                                   .marker = &d7__marker};
    for (;;) {
        d7__index_part part = w->global_index;
        int rc = d7__writer_drain_if_large(w, err);
        if (rc != 0 || !d7__index_next_part(&all, &part))
            return rc;
        uint64_t offset;
        if (d7__writer_put_part(w, &all, &part, &offset) != 0)
            return d7__writer_no_memory(w, err);
        if (!w->global_index.begun)
            w->global_index_offset = offset;
        w->global_index = part;
    }
}

static int frame_epilogue(d7_writer *w) {
    uint8_t entry[D7__EPILOGUE_MAX];
    size_t bytes = d7__epilogue_pack(w->global_index_offset, entry);
    if (d7__out_reserve(&w->out, 1, D7_BLOCK_BYTES + bytes) != 0)
        return D7_ERR_NOMEM;
    d7__out_pad(&w->out);
    d7__out_entry(&w->out, entry, bytes);
    return 0;
}

static int flush_and_sync(d7_writer *w, d7_error *err) {
    int rc = d7__writer_drain(w, err);
    if (rc != 0)
        return rc;
    d7_error failure;
    rc = d7_writer_sync_data(w, &failure);
    return rc != 0 ? d7__writer_fail(w, &failure, err) : 0;
}

static int close_file(d7_writer *w, d7_error *err) {
    void *file = w->out.file;
    if (w->out.sums)
        d7__sums_finish(w->out.sums);
    w->out.file = NULL;
    int rc = w->io.close(w->io.ctx, file);
    if (rc == 0)
        return 0;
    d7_error failure;
    d7__fail(&failure, D7_ERR_IO, -rc, D7_NO_OFFSET, "%s: closing failed", w->path);
    return d7__writer_fail(w, &failure, err);
}

/* Does what the present stage asks for. */
static int close_step(d7_writer *w, d7_error *err) {
    switch (w->stage) {
    case D7__WRITER_CLOSING_PAGES:
        return frame_pages(w, err);
    case D7__WRITER_CLOSING_INDEX:
        return frame_index(w, err);
    case D7__WRITER_CLOSING_SYNC: {
        int rc = flush_and_sync(w, err);
        return rc == 0 && frame_epilogue(w) != 0 ? d7__writer_no_memory(w, err) : rc;
    }
    default: {
        int rc = d7__writer_drain(w, err);
        if (rc != 0)
            return rc;
        d7__writer_give_back(w);
        rc = flush_and_sync(w, err);
        return rc == 0 ? close_file(w, err) : rc;
    }
    }
}

int d7_writer_close(d7_writer *w, d7_error *err) {
    int rc = d7__writer_check_failed(w, err);
    if (rc != 0)
        return rc;
    if (w->stage == D7__WRITER_OPEN)
        w->stage = D7__WRITER_CLOSING_PAGES;
    while (w->stage != D7__WRITER_CLOSED) {
        rc = close_step(w, err);
        if (rc != 0)
            return rc;
        w->stage++;
    }
    return 0;
}

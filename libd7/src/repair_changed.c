/* Pages whose bytes are not those that were written, by the checksums beside the file (NAME.photons.crc): they may decode, but
 * what they hold was not recorded, so a repair counts them as lost. Which differences count is as in verify_checksums.c. */
#include "base/crc32c.h"
#include "codec.h"
#include "repair.h"

static int take_next(d7__changed *c, d7_error *err) {
    int rc = d7__sums_next(&c->reader, &c->has_next, &c->next, err);
    if (rc != D7_ERR_IO)
        return rc;
    c->has_next = false; /* as far as they can be read */
    return 0;
}

int d7__changed_begin(d7__changed *c, d7_reader *r, d7_error *err) {
    d7__found found;
    d7__entry header;
    c->r = r;
    int rc = d7__sums_open(&c->reader, &r->io, &r->alloc, r->source.path, D7_IO_READ, NULL);
    if (rc == D7_ERR_NOMEM)
        return d7__reader_no_memory(r, err);
    if (rc != 0)
        return 0;
    c->there = true;
    rc = take_next(c, err);
    if (rc == 0)
        rc = d7__entry_at(&r->framing, 0, &found, &header, err);
    return rc == 0 && found == D7__FOUND_ENTRY ? d7__changed_look(c, &header, err) : rc;
}

/* The dataset of a page; D7_NO_DATASET for other entries. */
static uint32_t dataset_of(const d7__changed *c, const d7__entry *e) {
    d7__kind kind;
    d7__cursor body;
    uint64_t dataset_id;
    bool page = d7__entry_kind(e->data, e->bytes, &kind, &body) && kind == D7__KIND_DATA &&
                d7__page_dataset(body, &dataset_id) && dataset_id < c->r->header.n_datasets;
    return page ? (uint32_t)dataset_id : D7_NO_DATASET;
}

static int note_change(d7__changed *c, const d7__entry *e, d7_error *err) {
    uint32_t ds = dataset_of(c, e);
    c->n_differ++;
    if (ds == D7_NO_DATASET)
        return 0;
    if (d7__grow(&c->r->alloc, &c->pages, &c->cap, c->n + 1, sizeof *c->pages) != 0)
        return d7__reader_no_memory(c->r, err);
    c->pages[c->n++] = (d7__page_ref){.offset = e->offset, .dataset_id = ds};
    return 0;
}

int d7__changed_look(d7__changed *c, const d7__entry *e, d7_error *err) {
    int rc = 0;
    for (; rc == 0 && c->has_next && c->next.offset < e->offset; c->n_absent++)
        rc = take_next(c, err);
    if (rc != 0 || !c->has_next || c->next.offset > e->offset)
        return rc;
    if (c->next.bytes != e->bytes)
        c->n_absent++;
    else if (c->next.crc == common_crc32c(0, e->data, e->bytes))
        c->n_agree++;
    else
        rc = note_change(c, e, err);
    return rc == 0 ? take_next(c, err) : rc;
}

/* The header is the same in all files of an instrument, and says little. */
static bool is_another_files(const d7__changed *c) {
    uint64_t agree = c->n_agree ? c->n_agree - 1 : 0;
    return c->n_differ > agree || (agree == 0 && c->n_absent > 0);
}

int d7__changed_mark(d7__changed *c, d7_error *err) {
    if (!c->there || is_another_files(c))
        return 0;
    for (size_t i = 0; i < c->n; i++) {
        d7__reader_dataset *d = &c->r->datasets[c->pages[i].dataset_id];
        size_t page = d7__map_find(d, c->pages[i].offset);
        if (page == d->n_pages || d->offsets[page] != c->pages[i].offset)
            continue;
        if (!d->damaged)
            d->damaged = d7__new(&c->r->alloc, d->n_pages);
        if (!d->damaged)
            return d7__reader_no_memory(c->r, err);
        d->damaged[page] = 1;
    }
    return 0;
}

void d7__changed_free(d7__changed *c) {
    if (!c->r)
        return;
    if (c->there)
        d7__sums_close(&c->reader);
    d7__release(&c->r->alloc, c->pages);
}

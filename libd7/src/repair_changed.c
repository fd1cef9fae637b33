/* Pages whose bytes are not those that were written, by the checksums beside the file (NAME.photons.crc): they may decode, but
 * what they hold was not recorded, so a repair counts them as lost. */
#include "codec.h"
#include "repair.h"

int d7__changed_begin(d7__changed *c, d7_reader *r, d7_error *err) {
    d7__found found;
    d7__entry header;
    c->r = r;
    int rc = d7__sums_compare_begin(&c->compare, &r->io, &r->alloc, r->source.path, NULL);
    if (rc == D7_ERR_NOMEM)
        return d7__reader_no_memory(r, err);
    if (rc != 0)
        return 0;
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

int d7__changed_look(d7__changed *c, const d7__entry *e, d7_error *err) {
    bool differs;
    int rc = d7__sums_compare_entry(&c->compare, e, &differs, err);
    uint32_t ds = rc == 0 && differs ? dataset_of(c, e) : D7_NO_DATASET;
    if (ds == D7_NO_DATASET)
        return rc;
    if (d7__grow(&c->r->alloc, &c->pages, &c->cap, c->n + 1, sizeof *c->pages) != 0)
        return d7__reader_no_memory(c->r, err);
    c->pages[c->n++] = (d7__page_ref){.offset = e->offset, .dataset_id = ds};
    return 0;
}

int d7__changed_mark(d7__changed *c, bool closed, d7_error *err) {
    d7__sums_verdict verdict;
    int rc = d7__sums_compare_end(&c->compare, closed, &verdict, err);
    if (rc != 0 || verdict != D7__SUMS_COUNT)
        return rc;
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
    d7__sums_close(&c->compare.reader);
    d7__release(&c->r->alloc, c->pages);
}

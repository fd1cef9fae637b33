/* Pages whose bytes are not those that were written, by the checksums beside the file (NAME.photons.crc): they may decode, but
 * what they hold was not recorded, so a repair counts them as lost. */
#include <string.h>

#include "codec.h"
#include "reader_pages.h"
#include "repair.h"

int d7__changed_begin(d7__changed *c, d7_reader *r, d7_error *err) {
    d7__found found;
    d7__entry header;
    c->r = r;
    c->sound.alloc = &r->alloc;
    d7_error failure;
    int rc = d7__sums_compare_begin(&c->compare, &r->io, &r->alloc, r->source.path, &failure);
    if (rc == D7_ERR_NOMEM)
        return d7__reader_no_memory(r, err);
    if (rc != 0 && rc != D7_ERR_NOTFOUND) {
        d7_problem p = d7__problem(D7_PROBLEM_CHECKSUM_FILE, D7_NO_OFFSET, "%s", failure.text);
        d7__problems_add(&r->problems, &p);
    }
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
    int rc = d7__sums_compare_entry(&c->compare, e, &c->differs, err);
    if (rc != 0 || !c->differs)
        return rc;
    if (d7__page_log_reserve(&c->r->alloc, &c->pages) != 0)
        return d7__reader_no_memory(c->r, err);
    d7__page_log_add(&c->pages, (d7__page_ref){.offset = e->offset, .dataset_id = dataset_of(c, e)});
    return 0;
}

/* ---- attributes ---- */

/* Until an index differs all are sound. */
static int part(d7__changed *c) {
    int rc = 0;
    for (size_t i = 0; i < c->r->attributes.n && rc == 0; i++)
        rc = d7__attributes_set(&c->sound, &c->r->attributes.items[i], NULL);
    c->parted = rc == 0;
    return rc;
}

int d7__changed_attribute(d7__changed *c, const d7_attribute *attribute) {
    int rc = c->differs && !c->parted ? part(c) : 0;
    return rc == 0 && c->parted && !c->differs ? d7__attributes_set(&c->sound, attribute, NULL) : rc;
}

static bool has(const d7__attributes *all, const d7_attribute *a) {
    size_t i = d7__attributes_find(all, a->key, a->key_bytes);
    return i != SIZE_MAX && all->items[i].value_bytes == a->value_bytes &&
           memcmp(all->items[i].value, a->value, a->value_bytes) == 0;
}

bool d7__changed_took(const d7__changed *c, const d7_attribute *attribute) {
    return has(&c->sound, attribute) && !has(&c->r->attributes, attribute);
}

static void keep_sound(d7__changed *c) {
    d7__attributes all = c->r->attributes;
    c->r->attributes = c->sound;
    c->sound = all;
    for (size_t i = 0; i < all.n; i++)
        c->lost_attributes += d7__changed_took(c, &all.items[i]);
}

/* ---- pages ---- */

static int condemn(d7_reader *r, const d7__page_ref *changed, d7_problem *problem, d7_error *err) {
    d7__reader_dataset *d = &r->datasets[changed->dataset_id];
    size_t page = d7__map_find(d, changed->offset);
    if (page == d->n_pages || d7__map_offset(d, page) != changed->offset)
        return 0;
    if (d7__page_mark(r, changed->dataset_id, page, D7__PAGE_CONDEMNED) != 0)
        return d7__reader_no_memory(r, err);
    problem->first_item = d7__page_first_item(d, page);
    problem->n_items = d7__page_items(d, page);
    return 0;
}

static int mark(d7_reader *r, const d7__page_ref *changed, d7_error *err) {
    bool is_page = changed->dataset_id != D7_NO_DATASET;
    d7_problem p =
        d7__problem(D7_PROBLEM_CHECKSUM, changed->offset, "%s bytes are not those that were written",
                    is_page ? "the page's" : "an entry's");
    p.dataset_id = changed->dataset_id;
    int rc = is_page ? condemn(r, changed, &p, err) : 0;
    if (rc == 0)
        d7__problems_add(&r->problems, &p);
    return rc;
}

int d7__changed_mark(d7__changed *c, bool closed, d7_error *err) {
    d7__sums_verdict verdict;
    int rc = d7__sums_compare_end(&c->compare, closed, &verdict, err);
    if (rc == 0 && c->compare.there)
        d7__sums_tell(&c->compare, c->r->held, verdict, &c->r->problems);
    if (rc != 0 || verdict != D7__SUMS_COUNT)
        return rc;
    if (c->parted)
        keep_sound(c);
    d7__page_ref changed;
    for (d7__page_cursor at = {0}; rc == 0 && d7__page_log_next(&c->pages, &at, &changed);) {
        c->header |= changed.offset == 0;
        rc = mark(c->r, &changed, err);
    }
    return rc;
}

void d7__changed_free(d7__changed *c) {
    if (!c->r)
        return;
    d7__sums_close(&c->compare.reader);
    d7__attributes_free(&c->sound);
    d7__page_log_free(&c->r->alloc, &c->pages);
}

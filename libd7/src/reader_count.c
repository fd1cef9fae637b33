/* How many items pages hold: exactly, by looking into every page of a dataset, or as far as its ends tell. */
#include "reader_pages.h"

#include <stdio.h>

#include "error.h"

typedef struct counting {
    bool decode; /* decode each page too, which finds all damage */
    d7_progress_fn *progress;
    void *ctx;
    uint64_t done, total; /* bytes, for progress */
} counting;

/* Looks at one page; *ret_n is 0 for a damaged last page and a full page's for any other damaged one. */
static int count_or_guess(d7_reader *r, uint32_t ds, size_t page, bool decode, size_t *ret_n, d7_error *err) {
    const d7__reader_dataset *d = &r->datasets[ds];
    d7_error failure;
    d7__entry entry;
    int rc = d7__page_is_condemned(d, page) ? D7_ERR_CORRUPT : d7__page_entry(r, ds, page, &entry, &failure);
    if (rc == 0)
        rc = d7__page_count_entry(r, ds, page, &entry, ret_n, &failure);
    if (rc == 0 && decode)
        rc = d7__page_decode_to_cache(r, ds, page, &entry, *ret_n, &failure);
    if (rc == D7_ERR_CORRUPT) {
        *ret_n = page + 1 == d->n_pages ? 0 : d->items_per_page;
        rc = 0;
    }
    return d7__passed_on(rc, &failure, err);
}

/* Takes new counts, or the knowledge that all pages but the last are full. */
static void set_counts(d7_reader *r, uint32_t ds, d7__counts *counts, bool regular) {
    d7__reader_dataset *d = &r->datasets[ds];
    d->last_items = *d7__chunks_u32(&counts->items, d->n_pages - 1);
    d7__counts_free(&r->alloc, &d->counts);
    d->counted = !regular;
    if (regular)
        return;
    d->counts = *counts;
    *counts = (d7__counts){0};
}

static int count_dataset(d7_reader *r, uint32_t ds, counting *c, d7_error *err) {
    const d7__reader_dataset *d = &r->datasets[ds];
    d7__counts counts = {0};
    bool regular = true;
    int rc = 0;
    for (size_t i = 0; i < d->n_pages && rc == 0; i++) {
        size_t n = 0;
        rc = count_or_guess(r, ds, i, c->decode, &n, err);
        if (rc == 0 && d7__counts_add(&r->alloc, &counts, n) != 0)
            rc = d7__reader_no_memory(r, err);
        regular = regular && (i + 1 == d->n_pages ? n <= d->items_per_page : n == d->items_per_page);
        c->done += n * d7_type_size(r->header.datasets[ds].type);
        if (rc == 0 && c->progress && i % 64 == 0 && c->progress(c->ctx, c->done, c->total) != 0)
            rc = d7__fail(err, D7_ERR_CANCELLED, 0, D7_NO_OFFSET, "%s: stopped", r->source.path);
    }
    if (rc == 0 && d->n_pages)
        set_counts(r, ds, &counts, regular);
    d7__counts_free(&r->alloc, &counts);
    return rc;
}

static void tell_of_lengths(d7_reader *r, uint32_t ds) {
    const d7__reader_dataset *d = &r->datasets[ds];
    d7_problem p =
        d7__problem(D7_PROBLEM_PAGE_LENGTH, d7__map_offset(d, 0),
                    "pages before the last do not all hold %zu items; they were counted", d->items_per_page);
    p.dataset_id = ds;
    d7__problems_add(&r->problems, &p);
}

static int count_pages(d7_reader *r, counting *c, d7_error *err) {
    int rc = 0;
    for (uint32_t ds = 0; ds < r->header.n_datasets && rc == 0; ds++)
        rc = count_dataset(r, ds, c, err);
    return rc == 0 ? d7__judge_lengths(r, err) : rc;
}

int d7__count_pages(d7_reader *r, d7_error *err) {
    return count_pages(r, &(counting){0}, err);
}

static int count_and_tell(d7_reader *r, counting *c, d7_error *err) {
    int rc = count_pages(r, c, err);
    /* Of an unframed file a dataset is one page. */
    for (uint32_t ds = 0; ds < r->header.n_datasets && rc == 0 && !r->framing.unframed; ds++)
        if (r->datasets[ds].counted)
            tell_of_lengths(r, ds);
    return rc;
}

int d7__recount(d7_reader *r, d7_error *err) {
    return count_and_tell(r, &(counting){0}, err);
}

/* What a look at the first and the last page tells: how many items the last one holds, and whether pages are
 * full; *uneven becomes true where they are not. */
static int look_at_ends(d7_reader *r, uint32_t ds, bool *uneven, d7_error *err) {
    d7__reader_dataset *d = &r->datasets[ds];
    if (d->n_pages == 0)
        return 0;
    size_t last = 0, first = d->items_per_page;
    int rc = count_or_guess(r, ds, d->n_pages - 1, false, &last, err);
    if (rc == 0 && d->n_pages > 1)
        rc = count_or_guess(r, ds, 0, false, &first, err);
    if (rc != 0)
        return rc;
    d->last_items = last;
    *uneven |= first != d->items_per_page || last > d->items_per_page;
    return 0;
}

/* Would columns of a group that is complete end at different items if all their pages but the last were full? Then some may not
 * be. */
static bool ends_differ(const d7_reader *r, d7_group group) {
    uint64_t items = UINT64_MAX;
    for (uint32_t ds = 0; ds < r->header.n_datasets; ds++) {
        const d7__reader_dataset *d = &r->datasets[ds];
        if (d->n_pages == 0 || d7_group_of(r->header.datasets[ds].name) != group)
            continue;
        if (items != UINT64_MAX && d7__dataset_items(d) != items)
            return true;
        items = d7__dataset_items(d);
    }
    return false;
}

int d7__reader_map_pages(d7_reader *r, d7_error *err) {
    int rc = 0;
    bool uneven = false;
    d7__map_sort(r);
    d7__map_cut(r);
    for (size_t i = 0; i < r->header.n_datasets && rc == 0; i++) {
        rc = look_at_ends(r, (uint32_t)i, &uneven, err);
        r->datasets[i].n_settled = r->datasets[i].n_pages;
    }
    if (r->state == D7_STATE_CLOSED && !r->options.quick && !r->framing.unframed)
        uneven |= ends_differ(r, D7_GROUP_PHOTONS) || ends_differ(r, D7_GROUP_TAGS);
    return rc == 0 && uneven ? d7__recount(r, err) : rc;
}

/* ---- pages that were added ---- */

/* Counts the new pages of a dataset that is counted. What was its last page may have been damaged: now that
 * others follow it is taken for a full one. */
static int extend_counts(d7_reader *r, uint32_t ds, d7_error *err) {
    d7__reader_dataset *d = &r->datasets[ds];
    bool guessed = d->n_settled && d7__page_is_damaged(d, d->n_settled - 1);
    int rc = 0;
    if (guessed)
        d7__counts_cut(&d->counts, d->n_settled - 1);
    if (guessed && d7__counts_add(&r->alloc, &d->counts, d->items_per_page) != 0)
        return d7__reader_no_memory(r, err);
    for (size_t i = d->n_settled; i < d->n_pages && rc == 0; i++) {
        size_t n = 0;
        rc = count_or_guess(r, ds, i, false, &n, err);
        if (rc == 0 && d7__counts_add(&r->alloc, &d->counts, n) != 0)
            rc = d7__reader_no_memory(r, err);
    }
    return rc;
}

static int look_at_new(d7_reader *r, uint32_t ds, bool *uneven, d7_error *err) {
    d7__reader_dataset *d = &r->datasets[ds];
    if (d->n_settled == 0)
        return look_at_ends(r, ds, uneven, err);
    if (d7__page_mark_more(r, ds) != 0)
        return d7__reader_no_memory(r, err);
    if (d->counted)
        return extend_counts(r, ds, err);
    size_t last = 0;
    bool short_before = d->last_items < d->items_per_page && !d7__page_is_damaged(d, d->n_settled - 1);
    int rc = count_or_guess(r, ds, d->n_pages - 1, false, &last, err);
    if (rc != 0)
        return rc;
    *uneven |= short_before || last > d->items_per_page;
    d->last_items = last;
    return 0;
}

int d7__reader_map_more(d7_reader *r, d7_error *err) {
    int rc = 0;
    bool uneven = false;
    d7__map_sort(r);
    d7__map_cut(r);
    for (uint32_t i = 0; i < r->header.n_datasets && rc == 0; i++) {
        d7__reader_dataset *d = &r->datasets[i];
        if (d->n_pages > d->n_settled)
            rc = look_at_new(r, i, &uneven, err);
        if (rc == 0)
            d->n_settled = d->n_pages;
    }
    return rc == 0 && uneven ? d7__recount(r, err) : rc;
}

int d7__reader_check_page(d7_reader *r, uint32_t ds, size_t page, const d7__entry *entry, d7_error *err) {
    d7_error failure;
    d7__entry read;
    size_t n = 0;
    int rc = entry ? 0 : d7__page_entry(r, ds, page, &read, &failure);
    entry = entry ? entry : &read;
    if (rc == 0)
        rc = d7__page_count_entry(r, ds, page, entry, &n, &failure);
    if (rc == 0)
        rc = d7__page_decode_to_cache(r, ds, page, entry, n, &failure);
    return d7__passed_on(rc == D7_ERR_CORRUPT ? 0 : rc, &failure, err);
}

int d7_reader_check(d7_reader *r, d7_progress_fn *progress, void *ctx, d7_error *err) {
    counting c = {.decode = true, .progress = progress, .ctx = ctx};
    for (size_t i = 0; i < r->header.n_datasets; i++)
        c.total += d7__dataset_items(&r->datasets[i]) * d7_type_size(r->header.datasets[i].type);
    return count_and_tell(r, &c, err);
}

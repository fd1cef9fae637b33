/* Pages of unexpected length: another writer's, or damaged?
 *
 * Bytes that changed inside a page can leave one that decodes, to another number of items; taken as it is, it would move all
 * later items of its column against those of the others. It is told from pages that were written so by its neighbours:
 *   - where columns of a group have equally many items when all pages are counted, the counts are right, unless a few pages
 *     of a single column are all that is odd, and some of them too long;
 *   - a writer that ends pages early (so they are short) does it in all columns of a group at the same item;
 *   - a writer whose pages have no common length, or another than the header's, shows it in most of them;
 *   - a last page that is longer than a full one is no writer's whose other pages are just full, or that goes on in zeros, unless
 *     another column ends with it.
 * Where none of this holds, the page is damaged: it keeps its place, and a full page's items are lost with it. Datasets
 * that belong to no group go by what the groups show. */
#include <stdio.h>

#include "error.h"
#include "reader_pages.h"

/* Recordings have a handful of columns; a group of more than that is taken as it was counted. */
enum { COLUMNS_MAX = 64 };

/* Fewer pages before the last, or fewer odd ones, show no habit. */
enum { USUAL_MIN = 3, VARY_MIN = 4 };

/* How far a column of a group has been looked at. */
typedef struct walker {
    uint32_t dataset_id;
    uint64_t usual; /* items of its pages */
    size_t page;
    uint64_t at; /* the page's first item, with pages before it that are damaged counted as full */
} walker;

typedef struct judge {
    d7_reader *r;
    walker columns[COLUMNS_MAX];
    size_t n;
    bool judged; /* some group was held against itself, */
    bool uneven; /* and some group's writer did end pages early */
} judge;

static const d7__reader_dataset *dataset_of(const judge *j, const walker *w) {
    return &j->r->datasets[w->dataset_id];
}

/* The header's length, unless no page before the last has it and most have another. */
static uint64_t usual_items(const d7__reader_dataset *d) {
    uint64_t candidate = d->items_per_page;
    size_t votes = 0, n = 0, n_inner = d->n_pages - 1;
    for (size_t i = 0; i < n_inner; i++) {
        uint64_t items = d7__page_items(d, i);
        if (items == d->items_per_page && !d7__page_is_damaged(d, i))
            return d->items_per_page;
        candidate = votes ? candidate : items;
        votes += items == candidate ? 1 : (size_t)-1;
    }
    for (size_t i = 0; i < n_inner; i++)
        n += d7__page_items(d, i) == candidate;
    return n_inner >= USUAL_MIN && 2 * n > n_inner ? candidate : d->items_per_page;
}

static bool is_odd(const d7__reader_dataset *d, uint64_t usual, size_t page) {
    uint64_t n = d7__page_items(d, page);
    bool damaged = d7__page_is_damaged(d, page);
    return !damaged && (page + 1 < d->n_pages ? n != usual : n > usual);
}

static size_t count_odd(const d7__reader_dataset *d, uint64_t usual) {
    size_t n = 0;
    for (size_t i = 0; d->counted && i < d->n_pages; i++)
        n += is_odd(d, usual, i);
    return n;
}

/* Of a damaged page it is not known. */
static uint64_t length_of(const d7__reader_dataset *d, uint64_t usual, size_t page) {
    if (!d7__page_is_damaged(d, page))
        return d7__page_items(d, page);
    return page + 1 < d->n_pages ? usual : 0;
}

static int condemn(judge *j, uint32_t ds, uint64_t usual, size_t page, d7_error *err) {
    const d7__reader_dataset *d = &j->r->datasets[ds];
    char reason[128];
    snprintf(reason, sizeof reason,
             "it decodes to %llu items where the pages around it hold %llu: bytes in it have changed",
             (unsigned long long)d7__page_items(d, page), (unsigned long long)usual);
    return d7__page_condemn(j->r, ds, page, reason, err);
}

/* ---- groups ---- */

static void collect_group(judge *j, d7_group group) {
    j->n = 0;
    for (uint32_t ds = 0; ds < j->r->header.n_datasets; ds++) {
        if (j->r->datasets[ds].n_pages == 0 || d7_group_of(j->r->header.datasets[ds].name) != group)
            continue;
        if (j->n < COLUMNS_MAX)
            j->columns[j->n] = (walker){.dataset_id = ds, .usual = usual_items(&j->r->datasets[ds])};
        j->n++;
    }
}

static bool counts_agree(const judge *j) {
    for (size_t i = 1; i < j->n; i++)
        if (d7__dataset_items(dataset_of(j, &j->columns[i])) !=
            d7__dataset_items(dataset_of(j, &j->columns[0])))
            return false;
    return true;
}

static size_t count_inner(const judge *j) {
    size_t n = 0;
    for (size_t i = 0; i < j->n; i++)
        n += dataset_of(j, &j->columns[i])->n_pages - 1;
    return n;
}

static size_t count_odd_of_group(const judge *j) {
    size_t n = 0;
    for (size_t i = 0; i < j->n; i++)
        n += count_odd(dataset_of(j, &j->columns[i]), j->columns[i].usual);
    return n;
}

static bool has_longer(const d7__reader_dataset *d, uint64_t usual) {
    for (size_t i = 0; i < d->n_pages; i++)
        if (is_odd(d, usual, i) && d7__page_items(d, i) > usual)
            return true;
    return false;
}

/* A page that is longer by what another one lacks, both of the only column that has odd ones: that is how damage cancels out. */
static bool may_cancel_out(const judge *j) {
    size_t columns = 0, longer = 0;
    for (size_t i = 0; i < j->n; i++) {
        const d7__reader_dataset *d = dataset_of(j, &j->columns[i]);
        columns += count_odd(d, j->columns[i].usual) > 0;
        longer += has_longer(d, j->columns[i].usual);
    }
    return columns == 1 && longer == 1 && count_odd_of_group(j) < VARY_MIN;
}

static bool mostly_odd(const judge *j) {
    size_t n_odd = count_odd_of_group(j), n_inner = count_inner(j);
    return n_odd >= VARY_MIN && 2 * n_odd > n_inner;
}

static uint64_t end_of(const judge *j, const walker *w) {
    return w->at + length_of(dataset_of(j, w), w->usual, w->page);
}

/* Where the next page of any column ends; *ret_all: there all do that go on. UINT64_MAX: no page is left. */
static uint64_t next_end(const judge *j, bool *ret_all) {
    uint64_t end = UINT64_MAX;
    *ret_all = true;
    for (size_t i = 0; i < j->n; i++) {
        const walker *w = &j->columns[i];
        if (w->page >= dataset_of(j, w)->n_pages)
            continue;
        uint64_t e = end_of(j, w);
        *ret_all &= end == UINT64_MAX || e == end;
        end = e < end ? e : end;
    }
    return end;
}

/* All pages that end at `end`: a short one is as it was written when all columns end one there. */
static int pass(judge *j, uint64_t end, bool all, d7_error *err) {
    for (size_t i = 0; i < j->n; i++) {
        walker *w = &j->columns[i];
        const d7__reader_dataset *d = dataset_of(j, w);
        if (w->page >= d->n_pages || end_of(j, w) != end)
            continue;
        bool odd = is_odd(d, w->usual, w->page), early = all && d7__page_items(d, w->page) < w->usual;
        int rc = odd && !early ? condemn(j, w->dataset_id, w->usual, w->page, err) : 0;
        if (rc != 0)
            return rc;
        j->uneven |= odd && early;
        w->at = end_of(j, w);
        w->page++;
    }
    return 0;
}

/* ---- last pages that are longer than a full one ---- */

/* Are at least as many pages just full as there are longer ones? */
static bool is_full_rule(const d7_reader *r) {
    size_t full = 0, longer = 0;
    for (uint32_t ds = 0; ds < r->header.n_datasets; ds++) {
        const d7__reader_dataset *d = &r->datasets[ds];
        for (size_t i = 0; i < d->n_pages; i++) {
            bool good = !d7__page_is_damaged(d, i);
            full += good && d7__page_items(d, i) == d->items_per_page;
            longer += good && d7__page_items(d, i) > d->items_per_page;
        }
    }
    return full > 0 && longer <= full;
}

static bool ends_alone(const d7_reader *r, uint32_t ds) {
    d7_group group = d7_group_of(r->header.datasets[ds].name);
    uint64_t items = d7__dataset_items(&r->datasets[ds]);
    for (uint32_t i = 0; group != D7_GROUP_NONE && i < r->header.n_datasets; i++)
        if (i != ds && d7_group_of(r->header.datasets[i].name) == group &&
            d7__dataset_items(&r->datasets[i]) == items)
            return false;
    return true;
}

static bool all_zero(const uint8_t *p, size_t n) {
    size_t i = 0;
    while (i < n && p[i] == 0)
        i++;
    return i == n;
}

/* Does a page end in as many zeros as it has items too many, and are there more zeros behind it? So it is where zeros took the place
 * of what was written. */
static int runs_out(d7_reader *r, uint64_t offset, size_t n_more, bool *ret, d7_error *err) {
    enum { BEHIND = 16 };
    d7__found found;
    d7__entry e;
    const uint8_t *p;
    int rc = d7__entry_at(&r->framing, offset, &found, &e, err);
    *ret = rc == 0 && found == D7__FOUND_ENTRY && n_more <= e.bytes && r->source.size > e.next &&
           all_zero(e.data + e.bytes - n_more, n_more);
    if (!*ret)
        return rc;
    size_t n = r->source.size - e.next < BEHIND ? (size_t)(r->source.size - e.next) : BEHIND;
    rc = d7__source_get(&r->source, e.next, n, &p, err);
    *ret = rc == 0 && all_zero(p, n);
    return rc;
}

static int judge_last(judge *j, uint32_t ds, d7_error *err) {
    const d7__reader_dataset *d = &j->r->datasets[ds];
    size_t last = d->n_pages - 1, full = d->items_per_page;
    if (!d->counted || j->r->framing.unframed || d7__page_is_damaged(d, last) ||
        d7__page_items(d, last) <= full)
        return 0;
    for (size_t i = 0; i < last; i++)
        if (d7__page_items(d, i) != full)
            return 0;
    if (!ends_alone(j->r, ds))
        return 0;
    bool damaged = is_full_rule(j->r);
    int rc = damaged ? 0
                     : runs_out(j->r, d7__map_offset(d, last), (size_t)(d7__page_items(d, last) - full),
                                &damaged, err);
    return rc == 0 && damaged ? condemn(j, ds, full, last, err) : rc;
}

/* ---- groups, all of it ---- */

static int judge_group(judge *j, d7_group group, d7_error *err) {
    bool all;
    int rc = 0;
    collect_group(j, group);
    if (j->n > COLUMNS_MAX)
        return 0;
    /* Without a page before the last of the usual length there is little to hold others against. */
    if (j->n < 2 || count_inner(j) <= count_odd_of_group(j)) {
        for (size_t i = 0; rc == 0 && i < j->n; i++)
            rc = judge_last(j, j->columns[i].dataset_id, err);
        return rc;
    }
    j->judged = true;
    if ((counts_agree(j) && !may_cancel_out(j)) || mostly_odd(j)) {
        for (size_t i = 0; i < j->n; i++)
            j->uneven |= count_odd(dataset_of(j, &j->columns[i]), j->columns[i].usual) > 0;
        return 0;
    }
    for (uint64_t end; rc == 0 && (end = next_end(j, &all)) != UINT64_MAX;)
        rc = pass(j, end, all, err);
    return rc;
}

/* ---- datasets that are in no group ---- */

static int judge_single(judge *j, uint32_t ds, d7_error *err) {
    const d7__reader_dataset *d = &j->r->datasets[ds];
    uint64_t usual = usual_items(d);
    bool few = 2 * count_odd(d, usual) <= d->n_pages - 1 || d->n_pages == 2;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < d->n_pages; i++)
        if (is_odd(d, usual, i) && (few || d7__page_items(d, i) > usual))
            rc = condemn(j, ds, usual, i, err);
    return rc;
}

/* ---- all ---- */

/* Puts what was condemned back to its place. */
static void settle_counts(d7_reader *r, uint32_t ds) {
    d7__reader_dataset *d = &r->datasets[ds];
    d7__counts *c = &d->counts;
    uint64_t at = 0, usual = usual_items(d);
    bool regular = true;
    for (size_t i = 0; i < d->n_pages; i++) {
        uint64_t n = length_of(d, usual, i);
        if (i % D7__SUM_PAGES == 0)
            *d7__chunks_u64(&c->sums, i / D7__SUM_PAGES) = at;
        *d7__chunks_u32(&c->items, i) = (uint32_t)n;
        at += n;
        d->last_items = (size_t)n;
        regular &= i + 1 == d->n_pages ? n <= d->items_per_page : n == d->items_per_page;
    }
    c->sum = at;
    if (!regular)
        return;
    d7__counts_free(&r->alloc, c);
    d->counted = false;
}

static bool is_single(const d7_reader *r, uint32_t ds) {
    return d7_group_of(r->header.datasets[ds].name) == D7_GROUP_NONE;
}

/* Writers of unframed files may make one page, of any length, of a dataset. */
static bool has_one_page_each(const d7_reader *r) {
    for (uint32_t ds = 0; ds < r->header.n_datasets; ds++)
        if (r->datasets[ds].n_pages > USUAL_MIN)
            return false;
    return true;
}

int d7__judge_lengths(d7_reader *r, d7_error *err) {
    judge j = {.r = r};
    bool any = false;
    for (uint32_t ds = 0; ds < r->header.n_datasets; ds++)
        any |= r->datasets[ds].counted;
    if (!any || (r->framing.unframed && has_one_page_each(r)))
        return 0;
    int rc = judge_group(&j, D7_GROUP_PHOTONS, err);
    if (rc == 0)
        rc = judge_group(&j, D7_GROUP_TAGS, err);
    for (uint32_t ds = 0; rc == 0 && ds < r->header.n_datasets; ds++)
        if (r->datasets[ds].counted && is_single(r, ds))
            rc = j.judged && !j.uneven ? judge_single(&j, ds, err) : judge_last(&j, ds, err);
    for (uint32_t ds = 0; rc == 0 && ds < r->header.n_datasets; ds++)
        if (r->datasets[ds].counted && r->datasets[ds].marked)
            settle_counts(r, ds);
    return rc;
}

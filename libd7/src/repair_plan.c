/* What of a file is kept.
 *
 * Columns of a group (x, y, dt of the same photons) share their item numbers: what one has lost is taken out of all, and
 * all end where the shortest does. A column that holds nothing is not in use and does not count; but one whose first page
 * was only not full yet does, and the two are told apart by the order of the pages: when a column's next page comes after
 * another's, a turn of the writer was over, and every column in use then had as many items as the longest.
 *
 * The milliseconds are indices of photons: they are re-based instead, and end before those of photons that are not kept. */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "repair.h"

/* No writer hands over so many items of one column before it comes to the next. */
static const uint64_t turn_items_max = (uint64_t)1 << 24;

/* ---- ranges ---- */

/* The first range that ends after `item`; n where there is none. */
static size_t taken_find(const d7__taken *t, uint64_t item) {
    size_t low = 0, high = t->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->ranges[middle].to <= item)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t d7__taken_map(const d7__taken *t, uint64_t item) {
    size_t i = taken_find(t, item);
    uint64_t before = i < t->n ? t->ranges[i].before
                      : t->n ? t->ranges[t->n - 1].before + t->ranges[t->n - 1].to - t->ranges[t->n - 1].from
                             : 0;
    return i < t->n && item > t->ranges[i].from ? t->ranges[i].from - before : item - before;
}

bool d7__taken_kept(const d7__taken *t, uint64_t limit, uint64_t from, uint64_t to, d7__range *ret) {
    size_t i = taken_find(t, from);
    to = to < limit ? to : limit;
    if (i < t->n && t->ranges[i].from <= from)
        from = t->ranges[i++].to;
    if (i < t->n && t->ranges[i].from < to)
        to = t->ranges[i].from;
    if (from >= to)
        return false;
    *ret = (d7__range){.from = from, .to = to};
    return true;
}

static int taken_add(const d7__repair_plan *p, d7__taken *t, uint64_t from, uint64_t to) {
    if (d7__grow(&p->r->alloc, &t->ranges, &t->cap, t->n + 1, sizeof *t->ranges) != 0)
        return D7_ERR_NOMEM;
    t->ranges[t->n++] = (d7__range){.from = from, .to = to};
    return 0;
}

static int compare_ranges(const void *a, const void *b) {
    const d7__range *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* Sorts, joins, and lets a range at the end be the end. */
static void taken_settle(d7__taken *t) {
    size_t n = 0;
    if (t->n)
        qsort(t->ranges, t->n, sizeof *t->ranges, compare_ranges);
    for (size_t i = 0; i < t->n; i++) {
        d7__range *last = n ? &t->ranges[n - 1] : NULL;
        if (last && t->ranges[i].from <= last->to)
            last->to = t->ranges[i].to > last->to ? t->ranges[i].to : last->to;
        else
            t->ranges[n++] = t->ranges[i];
    }
    for (; n && t->ranges[n - 1].to >= t->limit; n--)
        if (t->ranges[n - 1].from < t->limit)
            t->limit = t->ranges[n - 1].from;
    t->n = n;
    uint64_t before = 0;
    for (size_t i = 0; i < n; i++) {
        t->ranges[i].before = before;
        before += t->ranges[i].to - t->ranges[i].from;
    }
}

/* ---- items ---- */

int d7__repair_read(const d7__repair_plan *p, uint32_t ds, uint64_t from, size_t n, void *out,
                    d7_error *err) {
    uint64_t paged = p->columns[ds].paged;
    if (from < paged)
        return d7_reader_read(p->r, ds, from, n, out, err);
    d7__tail_values(p->tailed, ds, from - paged, n, out);
    return 0;
}

/* ---- columns ---- */

/* Do pages before the last all hold as many items as the header says? If not, nobody knows how many a damaged one held. */
static bool is_regular(const d7__repair_plan *p, uint32_t ds) {
    const d7__reader_dataset *d = &p->r->datasets[ds];
    d7_page_info page;
    for (uint64_t i = 0; i + 1 < d->n_pages && d7_reader_page(p->r, ds, i, &page) == 0; i++)
        if (page.n_items != d->items_per_page)
            return false;
    return true;
}

/* The column's own losses: ranges of its taken, and where it ends. */
static int plan_column(d7__repair_plan *p, uint32_t ds) {
    d7__repair_column *c = &p->columns[ds];
    d7__taken *t = &p->takens[c->taken];
    c->more_lost = p->r->datasets[ds].n_pages == 0 && (p->survey.named[ds] || p->survey.untold);
    size_t n_before = t->n;
    bool regular = is_regular(p, ds);
    d7_page_info page;
    d7_dataset_info info = {0};
    if (d7_reader_dataset(p->r, ds, &info) != 0)
        return D7_ERR_ARG;
    c->paged = c->there = c->limit = info.items;
    for (uint64_t i = 0; d7_reader_page(p->r, ds, i, &page) == 0; i++) {
        if (page.damaged)
            c->damaged += page.n_items;
        if (page.first_item >= c->limit && page.n_items)
            continue;
        if (page.offset >= p->survey.known_to || (page.damaged && (!regular || page.n_items == 0))) {
            c->limit = page.first_item < c->limit ? page.first_item : c->limit;
            c->more_lost = true;
        } else if (page.damaged && taken_add(p, t, page.first_item, page.first_item + page.n_items) != 0) {
            return D7_ERR_NOMEM;
        }
    }
    bool whole_end = c->limit == c->there && !(t->n > n_before && t->ranges[t->n - 1].to >= c->limit);
    if (p->tailed && whole_end && !c->more_lost && p->tail[ds].from == c->paged)
        c->there = c->limit = p->tail[ds].to;
    for (; t->n > n_before && t->ranges[t->n - 1].to >= c->limit; t->n--)
        c->limit = t->ranges[t->n - 1].from;
    c->more_lost |= p->survey.untold || ds == p->survey.torn_dataset;
    return 0;
}

/* ---- groups ---- */

static size_t taken_of(const d7__repair_plan *p, uint32_t ds) {
    d7_group group = d7_group_of(p->r->header.datasets[ds].name);
    return group == D7_GROUP_PHOTONS ? D7__TAKEN_PHOTONS
           : group == D7_GROUP_TAGS  ? D7__TAKEN_TAGS
                                     : D7__TAKEN_OWN + (size_t)ds;
}

/* How the pages of the columns of a group take turns. */
typedef struct turns {
    bool begun;
    uint32_t last;    /* the dataset of the page before */
    uint64_t longest; /* items in pages of the longest column */
    uint64_t settled; /* all columns in use had so many at the end of some turn */
} turns;

static int look_at_turns(const d7__repair_plan *p, turns groups[D7__TAKEN_OWN]) {
    uint64_t *items = d7__new(&p->r->alloc, p->r->header.n_datasets * sizeof *items);
    if (!items)
        return D7_ERR_NOMEM;
    d7__map_walk walk;
    d7__page_ref page;
    size_t number;
    int rc = d7__map_walk_begin(&walk, p->r);
    while (rc == 0 && d7__map_walk_next(&walk, &page, &number) && page.offset < p->survey.known_to) {
        uint32_t ds = page.dataset_id;
        size_t group = p->columns[ds].taken;
        if (group >= D7__TAKEN_OWN)
            continue;
        turns *g = &groups[group];
        if (g->begun && g->last != ds && items[ds] > 0)
            g->settled = g->longest;
        items[ds] += p->r->datasets[ds].items_per_page;
        g->longest = items[ds] > g->longest ? items[ds] : g->longest;
        g->last = ds;
        g->begun = true;
    }
    d7__map_walk_end(&walk);
    d7__release(&p->r->alloc, items);
    return rc;
}

static bool in_use(const d7__repair_plan *p, uint32_t ds, const turns *g) {
    const d7__repair_column *c = &p->columns[ds];
    const d7__reader_dataset *d = &p->r->datasets[ds];
    if (c->there || d->n_pages || p->survey.named[ds])
        return true;
    return (!p->survey.ended || p->survey.untold) && g->settled < d->items_per_page &&
           g->longest < turn_items_max;
}

static int plan_groups(d7__repair_plan *p) {
    turns groups[D7__TAKEN_OWN] = {{0}};
    int rc = look_at_turns(p, groups);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < p->n_takens; i++)
        p->takens[i].limit = p->keep_ragged ? 0 : UINT64_MAX;
    for (uint32_t ds = 0; ds < p->r->header.n_datasets; ds++) {
        const d7__repair_column *c = &p->columns[ds];
        d7__taken *t = &p->takens[c->taken];
        t->used |= c->there > 0;
        if (c->taken < D7__TAKEN_OWN && !in_use(p, ds, &groups[c->taken]))
            continue;
        if (p->keep_ragged ? c->limit > t->limit : c->limit < t->limit)
            t->limit = c->limit;
    }
    for (size_t i = 0; i < p->n_takens; i++)
        taken_settle(&p->takens[i]);
    return 0;
}

/* ---- milliseconds ---- */

/* The last of values[0, n) that is an index of a photon that is kept, or the place right behind; its number plus 1. */
static uint64_t last_within(const uint64_t *values, uint64_t n, uint64_t photons) {
    while (n && values[n - 1] > photons)
        n--;
    return n;
}

/* Entries [from, to) of ms, all in whole pages or all in the tail: how many of them stay. */
static int keep_ms(const d7__repair_plan *p, uint64_t from, uint64_t to, uint64_t *ret, d7_error *err) {
    size_t n = (size_t)(to - from);
    uint64_t *values = d7__new(&p->r->alloc, n * sizeof *values);
    if (!values)
        return d7__reader_no_memory(p->r, err);
    int rc = d7__repair_read(p, p->ms, from, n, values, err);
    if (rc == 0)
        *ret = last_within(values, n, p->takens[D7__TAKEN_PHOTONS].limit);
    d7__release(&p->r->alloc, values);
    return rc;
}

/* From behind, page by page, up to an entry that stays. */
static int plan_ms(d7__repair_plan *p, d7_error *err) {
    d7__repair_column *c = &p->columns[p->ms];
    d7__taken *t = &p->takens[c->taken];
    uint64_t kept = 0;
    int rc = 0;
    t->n = 0; /* lost entries are filled: those after them keep their milliseconds */
    if (p->keep_ragged)
        return 0;
    if (c->limit > c->paged) {
        rc = keep_ms(p, c->paged, c->limit, &kept, err);
        c->limit = c->paged + kept;
    }
    for (size_t i = p->r->datasets[p->ms].n_pages; rc == 0 && kept == 0 && i > 0; i--) {
        d7_page_info page;
        if (d7_reader_page(p->r, p->ms, i - 1, &page) != 0 || page.first_item >= c->limit)
            continue;
        uint64_t end = page.first_item + page.n_items;
        end = end < c->limit ? end : c->limit;
        if (!page.damaged)
            rc = keep_ms(p, page.first_item, end, &kept, err);
        c->limit = page.first_item + kept;
    }
    t->limit = c->limit;
    return rc;
}

static int note_fill(d7__repair_plan *p, uint64_t from, uint64_t to) {
    if (p->n_fills && p->fills[p->n_fills - 1].to == from) {
        p->fills[p->n_fills - 1].to = to;
        return 0;
    }
    if (d7__grow(&p->r->alloc, &p->fills, &p->cap_fills, p->n_fills + 1, sizeof *p->fills) != 0)
        return D7_ERR_NOMEM;
    p->fills[p->n_fills++] = (d7__range){.from = from, .to = to};
    return 0;
}

/* What pages of ms that are lost would have held is filled in. */
static int find_fills(d7__repair_plan *p) {
    d7__repair_column *c = &p->columns[p->ms];
    d7_page_info page;
    for (uint64_t i = 0; d7_reader_page(p->r, p->ms, i, &page) == 0; i++) {
        if (!page.damaged || page.n_items == 0 || page.first_item >= c->limit)
            continue;
        uint64_t end = page.first_item + page.n_items;
        end = end < c->limit ? end : c->limit;
        c->filled += end - page.first_item;
        if (note_fill(p, page.first_item, end) != 0)
            return D7_ERR_NOMEM;
    }
    return 0;
}

/* ---- all of it ---- */

static int plan_all(d7__repair_plan *p, d7_error *err) {
    uint32_t n = (uint32_t)p->r->header.n_datasets;
    int rc = 0;
    for (uint32_t ds = 0; ds < n && rc == 0; ds++) {
        p->columns[ds].taken = taken_of(p, ds);
        rc = plan_column(p, ds);
    }
    if (rc == 0)
        rc = plan_groups(p);
    if (rc != 0)
        return d7__reader_no_memory(p->r, err);
    if (!p->takens[D7__TAKEN_PHOTONS].used || d7_reader_find_role(p->r, D7_ROLE_MS, &p->ms) != 0 ||
        p->r->header.datasets[p->ms].type != D7_UINT64)
        p->ms = D7_NO_DATASET;
    for (uint32_t ds = 0; ds < n; ds++) {
        d7__repair_column *c = &p->columns[ds];
        if (p->takens[c->taken].limit < c->limit)
            c->limit = p->takens[c->taken].limit;
    }
    if (p->ms != D7_NO_DATASET) {
        rc = plan_ms(p, err);
        if (rc == 0 && find_fills(p) != 0)
            rc = d7__reader_no_memory(p->r, err);
    }
    for (uint32_t ds = 0; ds < n; ds++)
        p->columns[ds].kept = d7__taken_map(&p->takens[p->columns[ds].taken], p->columns[ds].limit);
    return rc;
}

int d7__repair_plan_make(d7__repair_plan *p, d7_error *err) {
    size_t n = p->r->header.n_datasets;
    p->n_takens = D7__TAKEN_OWN + n;
    p->takens = d7__new(&p->r->alloc, p->n_takens * sizeof *p->takens);
    p->columns = d7__new(&p->r->alloc, n * sizeof *p->columns);
    p->ms = D7_NO_DATASET;
    if (!p->takens || !p->columns)
        return d7__reader_no_memory(p->r, err);
    return plan_all(p, err);
}

void d7__repair_plan_free(d7__repair_plan *p) {
    if (!p->r)
        return;
    const d7_alloc *a = &p->r->alloc;
    for (size_t i = 0; p->takens && i < p->n_takens; i++)
        d7__release(a, p->takens[i].ranges);
    d7__release(a, p->takens);
    d7__release(a, p->columns);
    d7__release(a, p->fills);
    d7__release(a, p->survey.named);
}

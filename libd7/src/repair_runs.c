/* Lists that a few bits have changed, held against pages that are whole.
 *
 * Pages that follow one another without a gap leave no room for others. Where all around one, in its blocks and into those
 * before and behind, are as an index lists them, what is there is all that was written there. So there
 *   - a page that no index lists is the writer's all the same, and
 *   - a place inside another page where an index lists one is wrong.
 * Where a page is whole and the list has it as another dataset's, either may have changed. The page's length tells, or the
 * columns of its group: writers come to the end of all columns again and again, and only with the right number of pages of
 * each are these then of equal lengths. Where neither tells, no page behind can be told its item numbers. */
#include <string.h>

#include "codec.h"
#include "level.h"
#include "repair.h"

/* As an index lists it, or where none says anything. */
static bool is_right(const d7__claims *c, size_t s) {
    return !d7__claims_seen(c, s)->unlisted;
}

/* ---- neighbours ---- */

/* The first index before which at least so many pages were seen. */
static size_t find_index(const d7__claims *c, size_t n_seen) {
    size_t low = 0, high = c->n_indexes;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->indexes[middle].n_seen < n_seen)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Does an index that is believed, or the header, end right before page s? */
static bool index_before(const d7__claims *c, size_t s) {
    for (size_t k = find_index(c, s); k < c->n_indexes && c->indexes[k].n_seen == s; k++)
        if (c->indexes[k].page_behind && c->indexes[k].standing != D7__CLAIM_MOVED)
            return true;
    return s == 0 && c->page_at_start;
}

/* Where one begins right behind it; 0: none does. */
static uint64_t index_behind(const d7__claims *c, size_t s) {
    for (size_t k = find_index(c, s + 1); k < c->n_indexes && c->indexes[k].n_seen == s + 1; k++)
        if (c->indexes[k].before == d7__claims_seen_offset(c, s) && c->indexes[k].standing != D7__CLAIM_MOVED)
            return c->indexes[k].offset;
    return 0;
}

static bool is_joined_behind(const d7__claims *c, size_t s) {
    return s + 1 < c->n_seen && d7__claims_seen(c, s + 1)->joined;
}

/* Are all pages before it right, up to one that begins in an earlier block, or to an index? */
static bool is_right_before(const d7__claims *c, size_t s) {
    uint64_t block = d7__claims_seen_offset(c, s) / D7_BLOCK_BYTES;
    while (d7__claims_seen(c, s)->joined) {
        s--;
        if (!is_right(c, s))
            return false;
        if (d7__claims_seen_offset(c, s) / D7_BLOCK_BYTES < block)
            return true;
    }
    return index_before(c, s);
}

/* The same behind it, up to one that begins in a later block than that in which it ends. */
static bool is_right_behind(const d7__claims *c, size_t s) {
    uint64_t end = is_joined_behind(c, s) ? d7__claims_seen_offset(c, s + 1) : index_behind(c, s);
    while (is_joined_behind(c, s)) {
        s++;
        if (!is_right(c, s))
            return false;
        if (d7__claims_seen_offset(c, s) / D7_BLOCK_BYTES > (end - 1) / D7_BLOCK_BYTES)
            return true;
    }
    return index_behind(c, s) != 0;
}

/* Blocks of another place bring more than one page that is not listed, or do not join on to the others. */
static bool is_alone(const d7__claims *c, size_t s) {
    return is_right_before(c, s) && is_right_behind(c, s);
}

/* ---- pages that are not listed ---- */

/* Is page s listed as another dataset's? */
static bool is_conflict(const d7__claims *c, size_t s, size_t *ret_listed) {
    const d7__seen_page *page = d7__claims_seen(c, s);
    *ret_listed = d7__claims_find_listed(c, 0, c->n_listed, page->offset);
    return !page->listed && *ret_listed < c->n_listed &&
           d7__claims_listed(c, *ret_listed).offset == page->offset;
}

static void believe_pages(d7__claims *c) {
    size_t listed;
    for (size_t s = 0; s < c->n_seen; s++) {
        d7__seen_page *page = d7__claims_seen(c, s);
        if (page->unlisted && d7__claims_span(c, page->offset) && !is_conflict(c, s, &listed) &&
            is_alone(c, s)) {
            page->listed = true;
            page->unlisted = false;
        }
    }
}

/* ---- places that are listed where nothing can be ---- */

static bool is_inside(const d7__claims *c, size_t s, uint64_t offset) {
    uint64_t end = s == 0                       ? 0
                   : is_joined_behind(c, s - 1) ? d7__claims_seen_offset(c, s)
                                                : index_behind(c, s - 1);
    return end && offset > d7__claims_seen_offset(c, s - 1) && offset < end && is_right(c, s - 1) &&
           is_alone(c, s - 1);
}

static void drop_impossible(d7__claims *c) {
    size_t kept = 0, s = 0;
    for (size_t p = 0; p < c->n_listed; p++) {
        uint64_t offset = d7__claims_listed(c, p).offset;
        while (s < c->n_seen && d7__claims_seen(c, s)->offset <= offset)
            s++;
        if (!is_inside(c, s, offset))
            *d7__chunks_u64(&c->listed, kept++) = *d7__chunks_u64(&c->listed, p);
    }
    c->n_listed = kept;
}

/* ---- pages that are listed as another dataset's ---- */

typedef enum verdict { UNKNOWN, PAGE, LIST } verdict;

/* Is it a full page of that dataset? */
static bool is_full(const d7__claims *c, const d7__entry *e, uint32_t ds) {
    uint32_t id;
    size_t n;
    return d7_page_count(c->r->header.datasets[ds].type, e->data, e->bytes, &id, &n, NULL) == 0 &&
           n == c->r->datasets[ds].items_per_page;
}

static int look_at_length(const d7__claims *c, size_t s, size_t listed, verdict *ret, d7_error *err) {
    d7__found found;
    d7__entry e;
    int rc = d7__entry_at(&c->r->framing, d7__claims_seen(c, s)->offset, &found, &e, err);
    if (rc != 0 || found != D7__FOUND_ENTRY)
        return rc;
    bool seen = is_full(c, &e, (uint32_t)d7__claims_seen(c, s)->dataset_id);
    bool other = is_full(c, &e, d7__claims_listed(c, listed).dataset_id);
    *ret = seen == other ? UNKNOWN : seen ? PAGE : LIST;
    return 0;
}

/* Where columns are of equal length by chance that is far more rare. */
static bool is_better(const d7__level *a, const d7__level *b) {
    return a->reached && (!b->reached || 2 * a->longest <= b->longest);
}

/* Columns that have pages. */
static void begin_level(d7__level *l, const d7__claims *c, d7_group group) {
    d7__level_begin(l, c->r, group);
    for (size_t i = 0; i < l->n; i++)
        l->pages[i] = c->named[l->ids[i]];
    d7__level_drop_empty(l);
    memset(l->pages, 0, sizeof l->pages);
}

/* Goes through all pages, twice counted: as they say, and as the lists say; *ret_last: the last that differ. */
static void compare_levels(const d7__claims *c, d7_group group, uint64_t last, verdict *ret) {
    d7__level page, list;
    begin_level(&page, c, group);
    begin_level(&list, c, group);
    size_t p = 0;
    for (size_t s = 0; s < c->n_seen; s++) {
        const d7__seen_page *seen = d7__claims_seen(c, s);
        uint32_t ds = (uint32_t)seen->dataset_id, other = ds;
        for (; p < c->n_listed && d7__claims_listed(c, p).offset < seen->offset; p++) {
            d7__level_count(&page, d7__claims_listed(c, p).dataset_id);
            d7__level_count(&list, d7__claims_listed(c, p).dataset_id);
        }
        if (p < c->n_listed && d7__claims_listed(c, p).offset == seen->offset)
            other = d7__claims_listed(c, p++).dataset_id;
        else if (seen->unlisted)
            continue;
        d7__level_count(&page, ds);
        d7__level_count(&list, other);
        if (seen->offset <= last)
            continue;
        d7__level_look(&page);
        d7__level_look(&list);
    }
    if (is_better(&page, &list))
        *ret = PAGE;
    else if (is_better(&list, &page))
        *ret = LIST;
}

static d7_group group_of(const d7__claims *c, uint32_t ds) {
    return d7_group_of(c->r->header.datasets[ds].name);
}

static void take_page(d7__claims *c, size_t s, size_t listed) {
    d7__claims_seen(c, s)->listed = true;
    d7__claims_seen(c, s)->unlisted = false;
    for (size_t p = listed; p + 1 < c->n_listed; p++)
        *d7__chunks_u64(&c->listed, p) = *d7__chunks_u64(&c->listed, p + 1);
    c->n_listed--;
}

static int settle_conflict(d7__claims *c, size_t s, size_t listed, uint64_t last, d7_error *err) {
    const d7__seen_page *seen = d7__claims_seen(c, s);
    d7_group group = group_of(c, (uint32_t)seen->dataset_id);
    verdict v = UNKNOWN;
    int rc = look_at_length(c, s, listed, &v, err);
    if (rc != 0)
        return rc;
    if (group == D7_GROUP_NONE)
        group = group_of(c, d7__claims_listed(c, listed).dataset_id);
    if (v == UNKNOWN && group != D7_GROUP_NONE)
        compare_levels(c, group, last, &v);
    if (v == PAGE)
        take_page(c, s, listed);
    else if (v == UNKNOWN && seen->offset < c->known_to)
        c->known_to = seen->offset;
    return 0;
}

/* ---- all of it ---- */

/* Where the last page stands that is listed as another dataset's. */
static uint64_t last_conflict(const d7__claims *c) {
    size_t listed;
    for (size_t s = c->n_seen; s > 0; s--)
        if (!is_right(c, s - 1) && is_conflict(c, s - 1, &listed))
            return d7__claims_seen(c, s - 1)->offset;
    return 0;
}

int d7__claims_believe_runs(d7__claims *c, d7_error *err) {
    size_t listed;
    int rc = 0;
    if (c->r->framing.unframed || c->n_seen == 0)
        return 0;
    believe_pages(c);
    drop_impossible(c);
    uint64_t last = last_conflict(c);
    for (size_t s = 0; s < c->n_seen && rc == 0 && last; s++)
        if (!is_right(c, s) && is_conflict(c, s, &listed) && is_alone(c, s))
            rc = settle_conflict(c, s, listed, last, err);
    return rc;
}

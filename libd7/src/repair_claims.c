/* What the indexes of a damaged file say, and which of them are to be believed.
 *
 * An index lists all pages since the one before, so where it covers a place it alone says which pages were written there:
 * others that are found were put there by something else than the writer, and those that are listed and not found are lost.
 * The global index of a file that is closed as it should be covers all of it. Of others an index is
 *   - moved, when it lists pages behind itself, some that an earlier one lists too, or does not begin with the page right
 *     behind the one before: its block was written elsewhere, or for another file;
 *   - doubtful, when the last page that it lists is not the one right before it; not used at all, where its messages look as if
 *     bits had changed in them;
 *   - sound otherwise.
 * What a moved one lists is true still, as long as sound ones come after it: blocks have changed places. Behind the last
 * sound one it tells that a part of the file was taken out or put in, so that from the first place where pages are not as
 * listed nobody can say which they are. */
#include <stdlib.h>

#include "repair.h"

/* ---- what the walk finds ---- */

int d7__claims_start(d7__claims *c, d7_reader *r, uint64_t global_index) {
    *c = (d7__claims){.r = r, .global_index = global_index, .known_to = UINT64_MAX};
    c->last_kind = D7__KIND_INDEX; /* pages begin behind the header as behind an index */
    c->last_end = r->data_start;
    c->named = d7__new(&r->alloc, r->header.n_datasets);
    return c->named ? 0 : D7_ERR_NOMEM;
}

void d7__claims_free(d7__claims *c) {
    d7__chunks_free(&c->r->alloc, &c->seen);
    d7__chunks_free(&c->r->alloc, &c->listed);
    d7__release(&c->r->alloc, c->indexes);
    d7__release(&c->r->alloc, c->spans);
    d7__release(&c->r->alloc, c->named);
}

static bool follows(const d7__claims *c, uint64_t offset) {
    return d7__frame_begin(c->last_end) == offset;
}

bool d7__claims_page_ends(const d7__claims *c, uint64_t offset) {
    return c->n_seen && c->last_kind == D7__KIND_DATA && follows(c, offset);
}

int d7__claims_page(d7__claims *c, uint32_t ds, const d7__entry *e) {
    bool joined = follows(c, e->offset);
    if (d7__chunks_reserve(&c->r->alloc, &c->seen, (c->n_seen + 1) * sizeof(d7__seen_page)) != 0)
        return D7_ERR_NOMEM;
    if (joined && c->last_kind == D7__KIND_INDEX && c->n_indexes)
        c->indexes[c->n_indexes - 1].page_behind = true;
    c->page_at_start |= joined && c->last_kind == D7__KIND_INDEX && !c->n_indexes;
    *d7__claims_seen(c, c->n_seen++) = (d7__seen_page){.offset = e->offset & D7__REPAIR_OFFSET_MAX,
                                                       .dataset_id = ds & UINT16_MAX,
                                                       .joined = joined && c->last_kind == D7__KIND_DATA};
    c->last_kind = D7__KIND_DATA;
    c->last_end = e->next;
    return 0;
}

typedef struct listing {
    d7__claims *claims;
    d7__claim_index index;
    int (*attribute)(void *ctx, const d7_attribute *attribute);
    void *ctx;
} listing;

static int listed_attribute(void *ctx, const d7_attribute *attribute) {
    const listing *l = ctx;
    return l->attribute(l->ctx, attribute);
}

static int listed_page(void *ctx, uint64_t dataset_id, uint64_t offset) {
    listing *l = ctx;
    d7__claims *c = l->claims;
    if (!c->r->framing.unframed)
        offset = d7__frame_begin(offset);
    if (offset < c->r->data_start || dataset_id >= c->r->header.n_datasets)
        return 0;
    offset = offset < D7__REPAIR_OFFSET_MAX ? offset : D7__REPAIR_OFFSET_MAX;
    if (l->index.kept) {
        if (d7__chunks_reserve(&c->r->alloc, &c->listed, (c->n_listed + 1) * sizeof(uint64_t)) != 0)
            return D7_ERR_NOMEM;
        *d7__chunks_u64(&c->listed, c->n_listed++) = d7__page_pack(offset, (uint32_t)dataset_id);
    }
    l->index.n++;
    l->index.lowest = offset < l->index.lowest ? offset : l->index.lowest;
    l->index.last_dataset = offset > l->index.highest ? (uint32_t)dataset_id : l->index.last_dataset;
    l->index.highest = offset > l->index.highest ? offset : l->index.highest;
    c->named[dataset_id] = 1;
    return 0;
}

/* Places that an index lists behind itself, or before the one before, are wrong where they are few of many. A global index lists
 * all from the start. */
enum { STRAY_OF = 8 };

static void keep_between(d7__claims *c, d7__claim_index *i, uint64_t from) {
    size_t kept = i->first, n_outside = 0;
    for (size_t p = i->first; p < i->first + i->n; p++) {
        uint64_t offset = d7__claims_listed(c, p).offset;
        n_outside += offset < from || offset >= i->offset;
    }
    if (n_outside == 0 || n_outside * STRAY_OF > i->n)
        return;
    i->lowest = UINT64_MAX;
    i->highest = 0;
    for (size_t p = i->first; p < i->first + i->n; p++) {
        d7__page_ref page = d7__claims_listed(c, p);
        if (page.offset < from || page.offset >= i->offset)
            continue;
        *d7__chunks_u64(&c->listed, kept++) = d7__page_pack(page.offset, page.dataset_id);
        i->lowest = page.offset < i->lowest ? page.offset : i->lowest;
        i->last_dataset = page.offset > i->highest ? page.dataset_id : i->last_dataset;
        i->highest = page.offset > i->highest ? page.offset : i->highest;
    }
    i->n = kept - i->first;
    c->n_listed = kept;
}

/* A long index has several entries in a row. */
static bool goes_on(const d7__claims *c, const d7__claim_index *i) {
    const d7__claim_index *last = c->n_indexes ? &c->indexes[c->n_indexes - 1] : NULL;
    return last && c->last_kind == D7__KIND_INDEX && follows(c, i->offset) && i->lowest > last->highest;
}

int d7__claims_index(d7__claims *c, const d7__entry *e, d7__cursor body,
                     int (*attribute)(void *ctx, const d7_attribute *attribute), void *ctx) {
    listing l = {
        .claims = c,
        .index = {.offset = e->offset, .first = c->n_listed, .lowest = UINT64_MAX, .before = UINT64_MAX},
        .attribute = attribute,
        .ctx = ctx};
    d7__index_form form = {0};
    const d7__index_sink sink = {
        .ctx = &l, .form = &form, .page = listed_page, .attribute = listed_attribute};
    d7__claim_index *last = c->n_indexes ? &c->indexes[c->n_indexes - 1] : NULL;
    l.index.kept =
        c->global_index == 0 || e->offset == c->global_index || (last && last->offset == c->global_index);
    int rc = d7__index_read(body, &sink);
    if (rc != 0 || l.index.n == 0) {
        c->n_listed = l.index.first;
        if (follows(c, e->offset)) /* attributes stand between, and no page is lost there */
            c->last_end = e->next;
        return rc == D7_ERR_CORRUPT ? 0 : rc;
    }
    l.index.odd = d7__index_is_odd(&form);
    if (l.index.kept)
        keep_between(c, &l.index, last && e->offset != c->global_index ? last->offset : 0);
    if (follows(c, e->offset) && c->n_seen)
        l.index.before = d7__claims_seen_offset(c, c->n_seen - 1);
    if (goes_on(c, &l.index)) {
        last->n += l.index.n;
        last->highest = l.index.highest;
        last->last_dataset = l.index.last_dataset;
        last->odd |= l.index.odd;
    } else {
        if (d7__grow(&c->r->alloc, &c->indexes, &c->cap_indexes, c->n_indexes + 1, sizeof *c->indexes) != 0)
            return D7_ERR_NOMEM;
        l.index.n_seen = c->n_seen;
        c->indexes[c->n_indexes++] = l.index;
    }
    c->last_kind = D7__KIND_INDEX;
    c->last_end = e->next;
    return 0;
}

/* ---- which to believe ---- */

static void sort_lists(d7__claims *c) {
    for (size_t k = 0; k < c->n_indexes; k++)
        if (c->indexes[k].kept)
            d7__chunks_sort_u64(&c->listed, c->indexes[k].first, c->indexes[k].n);
}

/* As in the lists. */
static uint64_t seen_packed(const d7__claims *c, size_t s) {
    return d7__page_pack(d7__claims_seen_offset(c, s), (uint32_t)d7__claims_seen(c, s)->dataset_id);
}

size_t d7__claims_find_listed(const d7__claims *c, size_t low, size_t high, uint64_t offset) {
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d7__claims_listed(c, middle).offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Does an index, whose list is sorted, list a page at that place, of whatever dataset? */
static bool lists(const d7__claims *c, const d7__claim_index *i, uint64_t offset) {
    size_t end = i->first + i->n, at = d7__claims_find_listed(c, i->first, end, offset);
    return at < end && d7__claims_listed(c, at).offset == offset;
}

static uint64_t first_page(const d7__claims *c) {
    uint64_t first = c->n_seen ? d7__claims_seen_offset(c, 0) : UINT64_MAX;
    for (size_t i = 0; i < c->n_indexes; i++)
        first = c->indexes[i].lowest < first ? c->indexes[i].lowest : first;
    return first;
}

static size_t find_seen(const d7__claims *c, uint64_t offset) {
    size_t low = 0, high = c->n_seen;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d7__claims_seen_offset(c, middle) < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_seen(const d7__claims *c, uint64_t offset) {
    size_t s = find_seen(c, offset);
    return s < c->n_seen && d7__claims_seen_offset(c, s) == offset;
}

/* Are most of the pages that it lists there? */
static bool is_mostly_seen(const d7__claims *c, const d7__claim_index *i) {
    size_t n = 0;
    for (size_t p = 0; i->kept && p < i->n; p++)
        n += is_seen(c, d7__claims_listed(c, i->first + p).offset);
    return !i->kept || 2 * n > i->n;
}

/* The page with which an index begins whose place and list are beyond doubt up to there; UINT64_MAX: it cannot be told. `last` is
 * the one before it, NULL: the header. */
static uint64_t list_begin(const d7__claims *c, const d7__claim_index *last, const d7__claim_index *i) {
    uint64_t step = (uint64_t)c->r->header.index_step * D7_BLOCK_BYTES;
    bool known = last ? last->before == last->highest && last->page_behind : c->page_at_start;
    /* Where one more was due in between its list may be what is missing. */
    if (!known || (last ? last->offset : 0) / step != i->lowest / step)
        return UINT64_MAX;
    return d7__claims_seen_offset(c, last ? last->n_seen : 0);
}

/* Is a page not listed that follows the one at `begin` in its block? Nothing can have come between them. */
static bool contradicts(const d7__claims *c, const d7__claim_index *i, uint64_t begin) {
    if (begin == UINT64_MAX || !i->kept)
        return false;
    for (size_t s = find_seen(c, begin), first = s;
         s < c->n_seen && d7__claims_seen_offset(c, s) <= i->highest; s++) {
        uint64_t offset = d7__claims_seen_offset(c, s);
        if ((s > first && !d7__claims_seen(c, s)->joined) ||
            offset / D7_BLOCK_BYTES != begin / D7_BLOCK_BYTES)
            return false;
        if (offset >= i->lowest && !lists(c, i, offset))
            return true;
    }
    return false;
}

static void judge_indexes(d7__claims *c) {
    uint64_t first = first_page(c), highest = 0;
    const d7__claim_index *last = NULL;
    for (size_t k = 0; k < c->n_indexes; k++) {
        d7__claim_index *i = &c->indexes[k];
        bool last_right = i->before == UINT64_MAX || i->before == i->highest;
        /* A global index without an epilogue lists all pages again. */
        bool whole = i->lowest == first && i->before == i->highest, ours = !whole || is_mostly_seen(c, i);
        bool global = whole && ours;
        uint64_t begin = list_begin(c, last, i);
        bool begins_right = global || begin == UINT64_MAX || i->lowest == begin;
        i->alien = !ours || (!begins_right && !is_seen(c, i->lowest)) || contradicts(c, i, begin);
        if (i->odd)
            i->standing = D7__CLAIM_DOUBTFUL;
        else if (i->offset == c->global_index)
            i->standing = D7__CLAIM_SOUND;
        else if (i->highest >= i->offset || (i->lowest <= highest && !global) || i->alien)
            i->standing = D7__CLAIM_MOVED;
        else
            i->standing = last_right && begins_right ? D7__CLAIM_SOUND : D7__CLAIM_DOUBTFUL;
        if (i->standing == D7__CLAIM_MOVED || i->odd)
            continue;
        highest = i->highest > highest ? i->highest : highest;
        last = i;
    }
}

/* ---- places that are covered ---- */

static int compare_spans(const void *a, const void *b) {
    const d7__span *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

static int add_span(d7__claims *c, uint64_t from, uint64_t to, bool to_index) {
    if (d7__grow(&c->r->alloc, &c->spans, &c->cap_spans, c->n_spans + 1, sizeof *c->spans) != 0)
        return D7_ERR_NOMEM;
    c->spans[c->n_spans++] = (d7__span){.from = from, .to = to, .to_index = to_index};
    return 0;
}

/* Is there nothing between what two indexes cover? Each list begins where the one before ended, and indexes lie at least a step
 * apart: for another list there must be room for an index more than the first one's own. */
static bool is_next(const d7__claims *c, const d7__span *a, const d7__span *b) {
    uint64_t step = (uint64_t)c->r->header.index_step * D7_BLOCK_BYTES;
    if (b->from <= a->to)
        return true;
    return b->from / step - a->to / step <= (a->to_index ? 0u : 1u) &&
           (c->on_schedule || b->from - a->to < step);
}

/* Are indexes where they are due, the first entry at or after a multiple of the step? Other writers' drift. */
static bool is_on_schedule(const d7__claims *c) {
    uint64_t step = (uint64_t)c->r->header.index_step * D7_BLOCK_BYTES;
    for (size_t k = 0; k < c->n_indexes; k++) {
        const d7__claim_index *i = &c->indexes[k];
        bool global = i->offset == c->global_index || (k > 0 && i->lowest == c->indexes[0].lowest);
        if (i->standing == D7__CLAIM_SOUND && i->before == i->highest && !global &&
            i->before / step == i->offset / step)
            return false;
    }
    return true;
}

static void join_spans(d7__claims *c) {
    size_t n = 0;
    if (c->n_spans)
        qsort(c->spans, c->n_spans, sizeof *c->spans, compare_spans);
    for (size_t i = 0; i < c->n_spans; i++) {
        d7__span *last = n ? &c->spans[n - 1] : NULL;
        if (!last || !is_next(c, last, &c->spans[i])) {
            c->spans[n++] = c->spans[i];
        } else if (c->spans[i].to > last->to) {
            last->to = c->spans[i].to;
            last->to_index = c->spans[i].to_index;
        }
    }
    c->n_spans = n;
}

/* The first span that ends behind `offset`; n_spans: none. */
static size_t find_span(const d7__claims *c, uint64_t offset) {
    size_t low = 0, high = c->n_spans;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->spans[middle].to <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const d7__span *d7__claims_span(const d7__claims *c, uint64_t offset) {
    size_t i = find_span(c, offset);
    return i < c->n_spans && c->spans[i].from <= offset ? &c->spans[i] : NULL;
}

uint64_t d7__claims_next_cover(const d7__claims *c, uint64_t offset) {
    size_t i = find_span(c, offset);
    return i == c->n_spans ? UINT64_MAX : c->spans[i].from > offset ? c->spans[i].from : offset;
}

static bool is_free(const d7__claims *c, const d7__claim_index *i) {
    size_t s = find_span(c, i->lowest);
    return s == c->n_spans || c->spans[s].from > i->highest;
}

/* Is nothing but the last page that it lists between that and the index? Where the page is gone its usual length tells. */
static bool is_right_behind(const d7__claims *c, const d7__claim_index *i) {
    if (i->before != UINT64_MAX)
        return i->before == i->highest;
    d7_type type = c->r->header.datasets[i->last_dataset].type;
    size_t n = c->r->datasets[i->last_dataset].items_per_page;
    uint64_t least = d7__payload_is_raw(type) ? n * d7_type_size(type) : n;
    return i->offset - i->highest >= least &&
           i->offset - i->highest <= d7__frame_bound(d7_page_bound(type, n));
}

/* What sound indexes cover. */
static int make_spans(d7__claims *c, size_t n_trusted) {
    for (size_t k = 0; k < n_trusted; k++) {
        d7__claim_index *i = &c->indexes[k];
        bool whole = i->offset == c->global_index;
        if (!i->kept || i->standing != D7__CLAIM_SOUND)
            continue;
        i->used = true;
        bool to_index = whole || is_right_behind(c, i);
        if (add_span(c, whole ? 0 : i->lowest, to_index ? i->offset : i->highest + 1, to_index) != 0)
            return D7_ERR_NOMEM;
    }
    join_spans(c);
    return 0;
}

/* Where no sound one says anything others' lists are used: those of moved blocks cover the place, doubtful ones only add to what
 * is found. */
static int use_others(d7__claims *c, size_t n_trusted) {
    for (size_t k = 0; k < n_trusted; k++) {
        d7__claim_index *i = &c->indexes[k];
        if (!i->kept || i->used || i->alien || i->odd || !is_free(c, i))
            continue;
        i->used = true;
        if (i->standing != D7__CLAIM_MOVED)
            continue;
        if (add_span(c, i->lowest, i->highest + 1, false) != 0)
            return D7_ERR_NOMEM;
        join_spans(c);
    }
    return 0;
}

static void keep_used_lists(d7__claims *c) {
    size_t n = 0;
    for (size_t k = 0; k < c->n_indexes; k++) {
        const d7__claim_index *i = &c->indexes[k];
        for (size_t p = 0; i->used && p < i->n; p++)
            *d7__chunks_u64(&c->listed, n++) = *d7__chunks_u64(&c->listed, i->first + p);
    }
    c->n_listed = n;
    d7__chunks_sort_u64(&c->listed, 0, n);
}

/* A page that was seen needs no place in the lists: it is marked, and the others are kept, each once. */
static void settle_lists(d7__claims *c) {
    size_t kept = 0, s = 0;
    for (size_t p = 0; p < c->n_listed; p++) {
        uint64_t packed = *d7__chunks_u64(&c->listed, p);
        while (s < c->n_seen && seen_packed(c, s) < packed)
            s++;
        if (s < c->n_seen && seen_packed(c, s) == packed)
            d7__claims_seen(c, s)->listed = true;
        else if (kept == 0 || *d7__chunks_u64(&c->listed, kept - 1) != packed)
            *d7__chunks_u64(&c->listed, kept++) = packed;
    }
    c->n_listed = kept;
    d7__chunks_cut(&c->r->alloc, &c->listed, kept * sizeof(uint64_t));
}

/* ---- where a part was taken out or put in ---- */

/* The first place at or behind `from` where pages are not as the index lists them; UINT64_MAX: none. */
static uint64_t first_difference(const d7__claims *c, const d7__claim_index *i, uint64_t from) {
    size_t p = 0;
    while (p < i->n && d7__claims_listed(c, i->first + p).offset < from)
        p++;
    for (size_t s = find_seen(c, i->lowest > from ? i->lowest : from); p < i->n; p++, s++) {
        uint64_t listed = *d7__chunks_u64(&c->listed, i->first + p);
        uint64_t seen = s < c->n_seen ? seen_packed(c, s) : UINT64_MAX;
        if (seen != listed)
            return (seen < listed ? seen : listed) >> 16;
    }
    return UINT64_MAX;
}

/* A page that goes on in the block of that place may end in another's bytes. */
static uint64_t whole_pages_before(const d7__claims *c, uint64_t offset) {
    size_t s = find_seen(c, offset);
    if (offset == UINT64_MAX || s == 0 ||
        d7__claims_seen_offset(c, s - 1) / D7_BLOCK_BYTES == offset / D7_BLOCK_BYTES)
        return offset;
    return d7__claims_seen_offset(c, s - 1);
}

static uint64_t find_shift(const d7__claims *c, size_t n_trusted) {
    uint64_t from = n_trusted ? c->indexes[n_trusted - 1].offset : c->r->data_start, shift = UINT64_MAX;
    for (size_t k = n_trusted; k < c->n_indexes; k++) {
        const d7__claim_index *i = &c->indexes[k];
        uint64_t at = i->alien || i->odd ? UINT64_MAX : first_difference(c, i, from);
        if (i->standing == D7__CLAIM_MOVED && i->offset < at)
            at = i->offset;
        shift = at < shift ? at : shift;
    }
    return whole_pages_before(c, shift);
}

/* ---- pages ---- */

bool d7__claims_is_stray(const d7__claims *c, const d7__claim_index *i) {
    return i->standing == D7__CLAIM_MOVED && !d7__claims_span(c, i->offset);
}

/* Pages that no index lists where one covers the place, and those behind a stray one up to the next such place. */
static void mark_unlisted(d7__claims *c) {
    for (size_t s = 0; s < c->n_seen; s++)
        d7__claims_seen(c, s)->unlisted =
            d7__claims_span(c, d7__claims_seen_offset(c, s)) && !d7__claims_seen(c, s)->listed;
    for (size_t k = 0; k < c->n_indexes; k++) {
        size_t s = d7__claims_is_stray(c, &c->indexes[k]) ? c->indexes[k].n_seen : c->n_seen;
        /* One that is marked here already is so from an earlier stray one on, with all up to the cover. */
        for (; s < c->n_seen && !d7__claims_seen(c, s)->unlisted &&
               !d7__claims_span(c, d7__claims_seen_offset(c, s));
             s++)
            d7__claims_seen(c, s)->unlisted = true;
    }
}

/* What hangs together with pages that are not listed, or with a moved index: where it begins may be right, the rest is of
 * another place. */
void d7__claims_mark_suspects(d7__claims *c) {
    for (size_t s = 0; s + 1 < c->n_seen; s++) {
        d7__claims_seen(c, s + 1)->suspect |=
            d7__claims_seen(c, s + 1)->joined && d7__claims_seen(c, s)->unlisted;
        d7__claims_seen(c, s)->suspect |=
            d7__claims_seen(c, s + 1)->joined && d7__claims_seen(c, s + 1)->unlisted;
    }
    for (size_t k = 0; k < c->n_indexes; k++) {
        const d7__claim_index *i = &c->indexes[k];
        if (i->standing != D7__CLAIM_MOVED)
            continue;
        if (i->before != UINT64_MAX)
            d7__claims_seen(c, i->n_seen - 1)->suspect = true;
        if (i->page_behind)
            d7__claims_seen(c, i->n_seen)->suspect = true;
    }
}

/* Indexes up to the last sound one. Where all are doubtful that is how this writer's are, and nothing speaks against any. */
static size_t count_trusted(const d7__claims *c) {
    size_t k = c->n_indexes;
    bool any_moved = false;
    while (k > 0 && c->indexes[k - 1].standing != D7__CLAIM_SOUND)
        any_moved |= c->indexes[--k].standing == D7__CLAIM_MOVED;
    return k > 0 || any_moved ? k : c->n_indexes;
}

int d7__claims_settle(d7__claims *c) {
    if (c->r->framing.unframed)
        return 0;
    sort_lists(c);
    judge_indexes(c);
    c->on_schedule = is_on_schedule(c);
    size_t n_trusted = count_trusted(c);
    if (n_trusted < c->n_indexes && !c->global_index)
        c->known_to = find_shift(c, n_trusted);
    if (add_span(c, 0, c->r->data_start, true) != 0 || make_spans(c, n_trusted) != 0 ||
        use_others(c, n_trusted) != 0)
        return D7_ERR_NOMEM;
    keep_used_lists(c);
    settle_lists(c);
    mark_unlisted(c);
    return 0;
}

/* What a damaged file holds.
 *
 * Every entry is looked at, from front to back. Where the walk from entry to entry breaks off and goes on later there is a
 * hole. What a hole held is told by
 *   - the indexes: every island, and the global index, lists all pages since the island before, so a hole after the first
 *     page listed is known in full;
 *   - the beginnings of its entries, where they and the framing still fit together: an entry says its length, so a chain
 *     of lengths that leads exactly from one end of the hole to the other is what was there;
 *   - an island's place: where one was due and the next one's list begins right after, there was nothing else.
 * Such pages are added to the map as they are, damaged, so that all others keep their item numbers. Behind a hole of
 * which none of this holds no page can be told its item numbers: survey.known_to. */
#include "repair.h"

#include <inttypes.h>

#include "codec.h"
#include "error.h"

enum { SCAN_WINDOW_BYTES = 1 << 20 };

typedef struct hole {
    uint64_t from, to;
    uint64_t upto; /* what is from here on is known */
    uint64_t due;  /* block where an island was due when the hole began */
} hole;

typedef struct survey {
    d7_reader *r;
    d7__changed *changed;
    d7__survey *result;
    hole *holes; /* [n_holes] in their order */
    size_t n_holes, cap_holes;
    bool in_hole;       /* the last one has not ended yet */
    d7__page_ref *lost; /* [n_lost] pages that the indexes list and that lie in holes */
    size_t n_lost, cap_lost;
    uint64_t due;        /* block where the next island is due */
    uint64_t index_at;   /* while an index is read: its offset, and the first page it lists */
    uint64_t first_page; /* (UINT64_MAX: none) */
} survey;

/* ---- holes ---- */

static int hole_begin(survey *s, uint64_t at) {
    if (s->in_hole)
        return 0;
    if (d7__grow(&s->r->alloc, &s->holes, &s->cap_holes, s->n_holes + 1, sizeof *s->holes) != 0)
        return D7_ERR_NOMEM;
    s->holes[s->n_holes++] = (hole){.from = at, .to = UINT64_MAX, .upto = UINT64_MAX, .due = s->due};
    s->in_hole = true;
    return 0;
}

static void hole_end(survey *s, uint64_t at) {
    if (!s->in_hole)
        return;
    s->holes[s->n_holes - 1].to = s->holes[s->n_holes - 1].upto = at;
    s->in_hole = false;
}

static bool in_some_hole(const survey *s, uint64_t offset) {
    size_t low = 0, high = s->n_holes;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->holes[middle].from <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && offset < s->holes[low - 1].to;
}

/* ---- entries ---- */

static int listed_page(void *ctx, uint64_t dataset_id, uint64_t offset) {
    survey *s = ctx;
    if (!s->r->framing.unframed)
        offset = d7__frame_begin(offset);
    if (offset >= s->index_at || offset < s->r->data_start)
        return 0;
    s->first_page = offset < s->first_page ? offset : s->first_page;
    if (dataset_id >= s->r->header.n_datasets || !in_some_hole(s, offset) ||
        d7__map_has(&s->r->datasets[dataset_id], offset))
        return 0;
    if (d7__grow(&s->r->alloc, &s->lost, &s->cap_lost, s->n_lost + 1, sizeof *s->lost) != 0)
        return D7_ERR_NOMEM;
    s->lost[s->n_lost++] = (d7__page_ref){.offset = offset, .dataset_id = (uint32_t)dataset_id};
    return 0;
}

static int listed_attribute(void *ctx, const d7_attribute *a) {
    survey *s = ctx;
    s->result->ended |= d7__is_marker(a);
    return d7__is_marker(a) ? 0 : d7__attributes_set(&s->r->attributes, a, NULL);
}

/* A whole index tells of everything since the first page that it lists. */
static int survey_index(survey *s, const d7__entry *e, d7__cursor body) {
    const d7__index_sink sink = {.ctx = s, .page = listed_page, .attribute = listed_attribute};
    s->index_at = e->offset;
    s->first_page = UINT64_MAX;
    int rc = d7__index_read(body, &sink);
    if (rc == D7_ERR_CORRUPT || (rc == 0 && s->first_page == UINT64_MAX))
        return 0;
    for (size_t i = s->n_holes; i > 0 && s->holes[i - 1].upto > s->first_page; i--)
        s->holes[i - 1].upto = s->first_page;
    uint64_t step = s->r->header.index_step;
    s->due = (e->offset / D7_BLOCK_BYTES / step + 1) * step;
    return rc;
}

/* An entry that is whole as the framing goes. Returns 0, *ret_stop where the file ends for us; D7_ERR_NOMEM. */
static int survey_entry(survey *s, const d7__entry *e, bool *ret_stop) {
    d7__kind kind;
    d7__cursor body;
    uint64_t dataset_id;
    if (!d7__entry_kind(e->data, e->bytes, &kind, &body) || kind == D7__KIND_NONE)
        return hole_begin(s, e->offset);
    if (kind == D7__KIND_DATA &&
        (!d7__page_dataset(body, &dataset_id) || dataset_id >= s->r->header.n_datasets))
        return hole_begin(s, e->offset);
    hole_end(s, e->offset);
    switch (kind) {
    case D7__KIND_DATA:
        return d7__map_add(s->r, (uint32_t)dataset_id, e->offset);
    case D7__KIND_INDEX:
        return survey_index(s, e, body);
    case D7__KIND_EPILOGUE:
        s->result->ended = true;
        return 0;
    default: /* a header: another file was put behind this one */
        *ret_stop = true;
        return 0;
    }
}

/* Do bytes between two entries, which belong to none, tell of something lost? Padding is zero and shorter than a block.
 */
static int gap_is_hole(survey *s, uint64_t from, uint64_t to, bool *ret, d7_error *err) {
    uint64_t block = (from + D7_BLOCK_BYTES - 1) / D7_BLOCK_BYTES * D7_BLOCK_BYTES;
    const uint8_t *p;
    *ret = block + D7_BLOCK_BYTES <= to;
    if (*ret || from >= to)
        return 0;
    int rc = d7__source_get(&s->r->source, from, (size_t)(to - from), &p, err);
    for (uint64_t i = 0; rc == 0 && i < to - from && !*ret; i++)
        *ret = p[i] != 0;
    return rc;
}

/* What comes after `at`. A gap before it may begin a hole. */
static int survey_next(survey *s, uint64_t at, d7__found *ret_found, d7__entry *e, d7_error *err) {
    d7__framing *f = &s->r->framing;
    int rc = d7__entry_next(f, at, ret_found, e, err);
    uint64_t expected = d7__frame_begin(at), offset = e->offset;
    /* Blocks without begin bits have their lengths in between, and what is lost there cannot be passed over. */
    if (rc != 0 || f->unframed || s->in_hole || *ret_found == D7__FOUND_END || offset <= expected)
        return rc;
    d7__kind kind = D7__KIND_NONE;
    d7__cursor body;
    bool is_hole = false;
    if (*ret_found == D7__FOUND_ENTRY && d7__entry_kind(e->data, e->bytes, &kind, &body) &&
        kind == D7__KIND_EPILOGUE)
        return 0;
    rc = gap_is_hole(s, expected, offset, &is_hole, err);
    if (rc == 0 && is_hole && hole_begin(s, expected) != 0)
        return d7__reader_no_memory(s->r, err);
    return rc != 0 ? rc : d7__entry_next(f, at, ret_found, e, err); /* what was read is gone from memory */
}

static int survey_found(survey *s, d7__found found, const d7__entry *e, bool *ret_stop) {
    if (found == D7__FOUND_BAD)
        return hole_begin(s, e->offset);
    if (found == D7__FOUND_TORN && !s->in_hole)
        s->result->torn_offset = e->offset;
    if (found != D7__FOUND_ENTRY) {
        *ret_stop = true;
        return 0;
    }
    return survey_entry(s, e, ret_stop);
}

static int survey_scan(survey *s, d7_progress_fn *progress, void *ctx, d7_error *err) {
    d7_reader *r = s->r;
    bool stop = false;
    r->source.window_bytes = SCAN_WINDOW_BYTES;
    for (uint64_t at = r->data_start; !stop;) {
        d7__found found;
        d7__entry e;
        int rc = survey_next(s, at, &found, &e, err);
        if (rc != 0)
            return rc;
        at = e.next;
        if (found == D7__FOUND_ENTRY)
            rc = d7__changed_look(s->changed, &e, err);
        if (rc != 0)
            return rc;
        if (survey_found(s, found, &e, &stop) != 0)
            return d7__reader_no_memory(r, err);
        if (progress && progress(ctx, at, r->source.size) != 0)
            return d7__fail(err, D7_ERR_CANCELLED, 0, D7_NO_OFFSET, "%s: stopped", r->source.path);
    }
    return 0;
}

/* ---- what holes held ---- */

/* Reads how the entry at `at` begins, and where it ends by that; *ret_good: that makes sense. */
static int read_head(survey *s, uint64_t at, bool *ret_good, d7__head *ret, uint64_t *ret_end,
                     d7_error *err) {
    uint8_t bytes[D7__ENTRY_HEAD];
    size_t n;
    *ret_good = false;
    int rc = d7__entry_peek(&s->r->source, at, bytes, &n, err);
    if (rc != 0 || !d7__head_parse(bytes, n, ret) || ret->body_bytes > D7_ENTRY_BYTES_MAX)
        return rc;
    *ret_end = d7__frame_end(at, ret->head_bytes + ret->body_bytes);
    *ret_good = *ret_end <= s->r->source.size;
    return 0;
}

/* Follows the entries' lengths through a hole; *ret_known: they lead to its end. */
static int follow_chain(survey *s, const hole *h, bool *ret_known, d7_error *err) {
    size_t n_lost = s->n_lost;
    uint64_t at = h->from;
    bool good = true;
    d7__head e;
    uint64_t end = 0;
    while (at < h->upto) {
        int rc = read_head(s, at, &good, &e, &end, err);
        if (rc != 0)
            return rc;
        if (!good || end > h->upto || (e.kind == D7__KIND_DATA && e.dataset_id >= s->r->header.n_datasets))
            break;
        if (e.kind == D7__KIND_DATA) {
            if (d7__grow(&s->r->alloc, &s->lost, &s->cap_lost, s->n_lost + 1, sizeof *s->lost) != 0)
                return d7__reader_no_memory(s->r, err);
            s->lost[s->n_lost++] = (d7__page_ref){.offset = at, .dataset_id = (uint32_t)e.dataset_id};
        }
        at = d7__frame_begin(end);
    }
    /* The next island's list begins where the one before ended: if that was due here, it is all that was. */
    *ret_known = at == h->upto || (h->upto < h->to && at / D7_BLOCK_BYTES >= h->due);
    if (!*ret_known)
        s->n_lost = n_lost;
    return 0;
}

/* Does any page begin at or behind `at`? */
static bool pages_behind(const survey *s, uint64_t at) {
    for (size_t i = 0; i < s->r->header.n_datasets; i++) {
        const d7__reader_dataset *d = &s->r->datasets[i];
        if (d->n_pages && d->offsets[d->n_pages - 1] >= at)
            return true;
    }
    return false;
}

static int resolve(survey *s, d7_error *err) {
    uint64_t *known_to = &s->result->known_to;
    hole_end(s, s->r->source.size);
    for (size_t i = 0; i < s->n_holes; i++) {
        const hole *h = &s->holes[i];
        bool known = h->upto <= h->from || !pages_behind(s, h->from);
        int rc = known ? 0 : follow_chain(s, h, &known, err);
        if (rc != 0)
            return rc;
        if (!known) {
            *known_to = h->from;
            return 0;
        }
    }
    return 0;
}

static int add_lost(survey *s) {
    for (size_t i = 0; i < s->n_lost; i++)
        if (d7__map_add(s->r, s->lost[i].dataset_id, s->lost[i].offset) != 0)
            return D7_ERR_NOMEM;
    d7__map_sort(s->r);
    return 0;
}

int d7__repair_survey(d7_reader *r, d7__changed *changed, d7_progress_fn *progress, void *ctx,
                      d7__survey *ret_survey, d7_error *err) {
    d7__survey result = {.known_to = UINT64_MAX, .torn_offset = D7_NO_OFFSET};
    survey s = {.r = r, .changed = changed, .result = &result, .due = r->header.index_step};
    int rc = survey_scan(&s, progress, ctx, err);
    if (rc == 0)
        rc = resolve(&s, err);
    if (rc == 0 && add_lost(&s) != 0)
        rc = d7__reader_no_memory(r, err);
    d7__release(&r->alloc, s.holes);
    d7__release(&r->alloc, s.lost);
    if (rc == 0)
        rc = d7__reader_map_pages(r, err);
    if (rc == 0)
        *ret_survey = result;
    return rc;
}

/* What a damaged file holds.
 *
 * Every entry is looked at, from front to back. Where the walk from entry to entry breaks off and goes on later there is a
 * hole. What a hole held is told by
 *   - the indexes that are to be believed (repair_claims.c), where they cover it;
 *   - the beginnings of its entries, where they and the framing still fit together: an entry says its length, so a chain
 *     of lengths that leads exactly from one end of the hole to the other is what was there;
 *   - an island's place: where one was due and the next one's list begins right after, there was nothing else.
 * Such pages are added to the map as they are, damaged, so that all others keep their item numbers. Behind a hole of
 * which none of this holds no page can be told its item numbers: survey.known_to. */
#include "repair.h"

#include "codec.h"
#include "error.h"
#include "reader_pages.h"

enum { SCAN_WINDOW_BYTES = 1 << 20 };

typedef struct hole {
    uint64_t from, to;
    uint64_t due;  /* block where an island was due when the hole began */
    size_t n_seen; /* pages before it, the last one right before where `joined` */
    bool joined;
    uint64_t frame_end; /* where the fragments of what is no entry end; 0: they are broken too */
    uint64_t begin;     /* the first of these that begins behind `from`; 0: none does */
    uint64_t
        island_end; /* it begins with an entry that is whole where an island was due, and ends here; 0: it does not */
    bool stray;   /* it ends in a block that was written elsewhere */
    bool foreign; /* there is a header in it: a block of another place, or of another file */
    bool padding; /* zeros up to the end of a block, and no hole where the writer does that */
} hole;

typedef struct survey {
    d7_reader *r;
    d7__changed *changed;
    d7__survey *result;
    d7__claims claims;
    hole *holes; /* [n_holes] in their order */
    size_t n_holes, cap_holes;
    bool in_hole;       /* the last one has not ended yet */
    bool runs_on;       /* an entry that one block has room for lies in two: there is no padding */
    d7__page_ref *lost; /* [n_lost] pages whose beginnings were found in holes */
    size_t n_lost, cap_lost;
    uint64_t due;       /* block where the next island is due */
    uint64_t pages_end; /* where an epilogue says that the global index begins; UINT64_MAX: there is none */
    uint64_t epilogue;
    uint64_t first_odd; /* the first page that is not full; UINT64_MAX: all are */
} survey;

/* ---- holes ---- */

static int hole_begin(survey *s, uint64_t at) {
    if (s->in_hole)
        return 0;
    if (d7__grow(&s->r->alloc, &s->holes, &s->cap_holes, s->n_holes + 1, sizeof *s->holes) != 0)
        return D7_ERR_NOMEM;
    s->holes[s->n_holes++] = (hole){.from = at,
                                    .to = UINT64_MAX,
                                    .due = s->due,
                                    .n_seen = s->claims.n_seen,
                                    .joined = d7__claims_page_ends(&s->claims, at)};
    s->in_hole = true;
    return 0;
}

static void hole_end(survey *s, uint64_t at) {
    if (!s->in_hole)
        return;
    s->holes[s->n_holes - 1].to = at;
    s->in_hole = false;
}

/* ---- entries ---- */

static int listed_attribute(void *ctx, const d7_attribute *a) {
    survey *s = ctx;
    s->result->ended |= d7__is_marker(a);
    int rc = d7__is_marker(a) ? 0 : d7__changed_attribute(s->changed, a);
    return d7__is_marker(a) || rc != 0 ? rc : d7__attributes_set(&s->r->attributes, a, NULL);
}

/* The block where the next island is due behind one at `offset`. */
static uint64_t due_after(const survey *s, uint64_t offset) {
    uint64_t step = s->r->header.index_step;
    return (offset / D7_BLOCK_BYTES / step + 1) * step;
}

static int survey_index(survey *s, const d7__entry *e, d7__cursor body) {
    size_t n_indexes = s->claims.n_indexes;
    int rc = d7__claims_index(&s->claims, e, body, listed_attribute, s);
    if (s->claims.n_indexes > n_indexes)
        s->due = due_after(s, e->offset);
    return rc;
}

static int framed_hole_begin(survey *s, const d7__entry *e) {
    bool begins = !s->in_hole, goes_on = begins || s->holes[s->n_holes - 1].frame_end == e->offset;
    uint64_t last = s->claims.n_seen ? d7__claims_seen_offset(&s->claims, s->claims.n_seen - 1) : 0;
    if (hole_begin(s, e->offset) != 0)
        return D7_ERR_NOMEM;
    hole *h = &s->holes[s->n_holes - 1];
    if (begins && h->joined && e->offset / D7_BLOCK_BYTES >= s->due && last / D7_BLOCK_BYTES < s->due) {
        h->island_end = d7__frame_begin(e->next);
        s->due = due_after(s, e->offset);
    }
    if (goes_on)
        h->frame_end = d7__frame_begin(e->next);
    if (h->begin == 0 && e->offset > h->from)
        h->begin = e->offset;
    return 0;
}

/* Is an entry what it says that it is? */
static bool makes_sense(const survey *s, const d7__entry *e, d7__kind kind, d7__cursor body,
                        uint64_t *ret_dataset) {
    d7__index_form form = {0};
    const d7__index_sink nothing = {.form = &form};
    uint64_t index;
    switch (kind) {
    case D7__KIND_DATA:
        return d7__page_dataset(body, ret_dataset) && *ret_dataset < s->r->header.n_datasets &&
               !d7__page_is_seam(s->r, (uint32_t)*ret_dataset, e) &&
               !d7__page_is_of_other(s->r, (uint32_t)*ret_dataset, e);
    case D7__KIND_INDEX:
        return d7__index_read(body, &nothing) == 0 && !d7__index_is_mute(&form);
    case D7__KIND_EPILOGUE:
        return d7__epilogue_unpack(body, &index);
    default:
        return true;
    }
}

/* An entry that is whole as the framing goes. Returns 0, *ret_stop where the file ends for us; D7_ERR_NOMEM. */
static int survey_entry(survey *s, const d7__entry *e, bool *ret_stop) {
    d7__kind kind;
    d7__cursor body;
    uint64_t dataset_id;
    if (!d7__entry_kind(e->data, e->bytes, &kind, &body) || kind == D7__KIND_NONE)
        return framed_hole_begin(s, e);
    if (kind == D7__KIND_HEADER && !s->result->ended) {
        int rc = framed_hole_begin(s, e);
        if (rc == 0)
            s->holes[s->n_holes - 1].foreign = true;
        return rc;
    }
    if (!makes_sense(s, e, kind, body, &dataset_id))
        return framed_hole_begin(s, e);
    hole_end(s, e->offset);
    switch (kind) {
    case D7__KIND_DATA:
        if (s->first_odd == UINT64_MAX && !d7__turns_is_full(s->r, (uint32_t)dataset_id, e->data, e->bytes))
            s->first_odd = e->offset;
        return d7__claims_page(&s->claims, (uint32_t)dataset_id, e);
    case D7__KIND_INDEX:
        return survey_index(s, e, body);
    case D7__KIND_EPILOGUE:
        s->result->ended = true;
        return 0;
    default: /* a header: another file was put behind this one, which had ended */
        *ret_stop = true;
        return 0;
    }
}

/* Do bytes between two entries, which belong to none, tell of something lost? Padding is zero, shorter than a block, and ends
 * with one; only other writers have any before an entry. */
static int gap_is_hole(survey *s, uint64_t from, uint64_t to, bool *ret, d7_error *err) {
    uint64_t block = (from + D7_BLOCK_BYTES - 1) / D7_BLOCK_BYTES * D7_BLOCK_BYTES;
    const uint8_t *p;
    *ret = block + D7_BLOCK_BYTES <= to || to % D7_BLOCK_BYTES != 0;
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
    bool index_missing = kind != D7__KIND_INDEX && offset / D7_BLOCK_BYTES >= s->due;
    rc = gap_is_hole(s, expected, offset, &is_hole, err);
    bool padding = !is_hole && !index_missing && offset - expected > D7__SPARE_BYTES;
    if (rc == 0 && (is_hole || index_missing || padding) && hole_begin(s, expected) != 0)
        return d7__reader_no_memory(s->r, err);
    if (rc == 0 && padding)
        s->holes[s->n_holes - 1].padding = true;
    return rc != 0 ? rc : d7__entry_next(f, at, ret_found, e, err); /* what was read is gone from memory */
}

/* Zeros before an entry are padding only where no entry runs on from block to block without need. */
static void drop_padding(survey *s) {
    size_t n = 0;
    for (size_t i = 0; i < s->n_holes; i++)
        if (s->runs_on || !s->holes[i].padding)
            s->holes[n++] = s->holes[i];
    s->n_holes = n;
}

static int survey_found(survey *s, d7__found found, const d7__entry *e, bool *ret_stop) {
    if (found == D7__FOUND_BAD)
        return hole_begin(s, e->offset);
    if (found == D7__FOUND_TORN && !s->in_hole) {
        d7__head head;
        s->result->torn_offset = e->offset;
        if (d7__head_parse(e->head, e->n_head, &head) && head.kind == D7__KIND_DATA &&
            head.dataset_id < s->r->header.n_datasets) {
            s->claims.named[head.dataset_id] = 1;
            s->result->torn_dataset = (uint32_t)head.dataset_id;
        }
    }
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
        s->runs_on |= found == D7__FOUND_ENTRY && d7__entry_runs_on(&e);
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

static int add_lost(survey *s, uint64_t at, const d7__head *head) {
    if (head->kind != D7__KIND_DATA)
        return 0;
    if (d7__grow(&s->r->alloc, &s->lost, &s->cap_lost, s->n_lost + 1, sizeof *s->lost) != 0)
        return D7_ERR_NOMEM;
    s->lost[s->n_lost++] = (d7__page_ref){.offset = at, .dataset_id = (uint32_t)head->dataset_id};
    return 0;
}

/* The next list begins where the one before ended: was the island that is due at `at` the only thing up to there? */
static bool only_island_before(const survey *s, uint64_t at, uint64_t upto, uint64_t due) {
    uint64_t step = s->r->header.index_step;
    return at / D7_BLOCK_BYTES >= due && at / D7_BLOCK_BYTES / step == upto / D7_BLOCK_BYTES / step;
}

/* Is the entry at `at`, of which only the beginning was looked at, whole, and none of what it says that it is? */
static int look_at_all(survey *s, uint64_t at, bool *ret_foreign, d7_error *err) {
    d7__found found;
    d7__entry e;
    d7__kind kind;
    d7__cursor body;
    uint64_t id;
    int rc = d7__entry_at(&s->r->framing, at, &found, &e, err);
    *ret_foreign = false;
    if (rc != 0 || found != D7__FOUND_ENTRY)
        return rc;
    if (!d7__entry_kind(e.data, e.bytes, &kind, &body))
        kind = D7__KIND_NONE;
    *ret_foreign = kind == D7__KIND_INDEX
                       ? d7__index_is_foreign(s->r, at, body)
                       : kind == D7__KIND_DATA && d7__page_dataset(body, &id) &&
                             id < s->r->header.n_datasets && d7__page_is_of_other(s->r, (uint32_t)id, &e);
    return rc;
}

/* Follows the entries' lengths through a hole from `at` up to `upto`; *ret_known: they lead there. */
static int follow_chain(survey *s, const hole *h, uint64_t at, uint64_t upto, bool *ret_known,
                        d7_error *err) {
    uint64_t due = h->due;
    bool list_begins = upto < h->to && upto < s->pages_end;
    *ret_known = false;
    while (at < upto) {
        d7__head e;
        uint64_t end;
        bool good, foreign = false, island = s->claims.on_schedule && at / D7_BLOCK_BYTES >= due;
        if (island && at == h->from && h->island_end && h->island_end <= upto && !h->stray && !h->foreign) {
            due = due_after(s, at);
            at = h->island_end;
            continue;
        }
        int rc = read_head(s, at, &good, &e, &end, err);
        if (rc == 0 && good && !island)
            rc = look_at_all(s, at, &foreign, err);
        if (rc != 0)
            return rc;
        bool torn = h->begin > at && good && h->begin < end; /* another entry begins in its midst */
        if (!good || foreign || end > upto || torn || h->foreign ||
            (e.kind == D7__KIND_DATA && e.dataset_id >= s->r->header.n_datasets) ||
            (island && (e.kind != D7__KIND_INDEX || h->stray))) {
            *ret_known = list_begins && only_island_before(s, at, upto, due);
            return 0;
        }
        if (island)
            due = due_after(s, at);
        if (add_lost(s, at, &e) != 0)
            return d7__reader_no_memory(s->r, err);
        at = d7__frame_begin(end);
    }
    *ret_known = at == upto;
    return 0;
}

/* Does any page begin at or behind `at`? */
static bool pages_behind(const survey *s, uint64_t at) {
    const d7__claims *c = &s->claims;
    return (c->n_seen && d7__claims_seen(c, c->n_seen - 1)->offset >= at) ||
           (c->n_listed && d7__claims_listed(c, c->n_listed - 1).offset >= at);
}

/* The hole that ends at `offset`, or begins there. */
static hole *find_hole(const survey *s, uint64_t offset) {
    size_t low = 0, high = s->n_holes;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->holes[middle].from <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    hole *h = low ? &s->holes[low - 1] : NULL;
    return h && (h->to == offset || h->from == offset) ? h : NULL;
}

/* What another block's index begins is no end of a hole; and where there is none before it, it is one itself: nothing is lost
 * there if it stands where an island was due. */
static void resolve_strays(survey *s) {
    const d7__claims *c = &s->claims;
    uint64_t step = s->r->header.index_step, last = 0, *known_to = &s->result->known_to;
    for (size_t k = 0; k < c->n_indexes; k++) {
        uint64_t offset = c->indexes[k].offset;
        hole *h = d7__claims_is_stray(c, &c->indexes[k]) ? find_hole(s, offset) : NULL;
        if (h) {
            h->to = UINT64_MAX;
            h->stray = true;
        } else if (d7__claims_is_stray(c, &c->indexes[k]) && offset < *known_to &&
                   offset / D7_BLOCK_BYTES < (last / D7_BLOCK_BYTES / step + 1) * step)
            *known_to = offset;
        if (c->indexes[k].standing != D7__CLAIM_MOVED)
            last = offset;
    }
}

/* Where what the indexes do not tell of a hole begins. The last page that they list may be the one that was cut. */
static uint64_t untold_from(const survey *s, const hole *h) {
    const d7__span *span = d7__claims_span(&s->claims, h->from);
    return !span ? h->from : span->to_index ? span->to : span->to - 1;
}

static int resolve_hole(survey *s, const hole *h, d7_error *err) {
    uint64_t from = untold_from(s, h), upto = d7__claims_next_cover(&s->claims, from + 1);
    size_t n_lost = s->n_lost;
    bool known;
    upto = upto < h->to ? upto : h->to;
    upto = upto < s->pages_end ? upto : s->pages_end;
    if (from >= h->to || upto <= from + 1)
        return 0;
    int rc = follow_chain(s, h, from, upto, &known, err);
    if (rc != 0 || known)
        return rc;
    s->result->untold = true;
    if (pages_behind(s, from + 1)) {
        s->n_lost = n_lost;
        s->result->known_to = from;
    }
    return 0;
}

/* Do the page before a hole and what ends it stand where an index lists them? Then nothing was taken out or put in. */
static bool stands_as_listed(const survey *s, const hole *h) {
    const d7__claims *c = &s->claims;
    if (!d7__claims_seen(c, h->n_seen - 1)->listed)
        return false;
    for (size_t k = 0; k < c->n_indexes; k++)
        if (c->indexes[k].offset == h->to && c->indexes[k].standing == D7__CLAIM_SOUND)
            return true;
    return h->n_seen < c->n_seen && d7__claims_seen_offset(c, h->n_seen) == h->to &&
           d7__claims_seen(c, h->n_seen)->listed;
}

/* Can what broke the hole not have begun in the page before? Its length tells, but for raw values; there the entry behind must still
 * begin as a page does, so that only its length in the framing has changed. */
static int is_beyond_doubt(survey *s, const hole *h, bool *ret, d7_error *err) {
    uint32_t ds = (uint32_t)d7__claims_seen(&s->claims, h->n_seen - 1)->dataset_id;
    uint64_t left = s->r->source.size - h->from - 2;
    size_t n = left < D7__ENTRY_HEAD ? (size_t)left : D7__ENTRY_HEAD;
    const uint8_t *p;
    d7__head head;
    *ret = stands_as_listed(s, h);
    if (!*ret || !d7__payload_is_raw(s->r->header.datasets[ds].type))
        return 0;
    int rc = d7__source_get(&s->r->source, h->from + 2, n, &p, err);
    *ret = rc == 0 && d7__head_parse(p, n, &head) && head.kind == D7__KIND_DATA &&
           head.dataset_id < s->r->header.n_datasets;
    return rc;
}

/* Where bytes of a page were taken out or put in its length still leads to the end that it had, in the midst of the next entry: a
 * page that ends where nothing begins has changed. Zeros and another block say nothing of the page before. */
static int suspect_page_before(survey *s, const hole *h, d7_error *err) {
    const uint8_t *p;
    d7__head head;
    uint64_t end;
    bool good;
    if (!h->joined || h->frame_end == h->to || h->from % D7_BLOCK_BYTES == 0 ||
        h->from + 2 > s->r->source.size)
        return 0;
    int rc = d7__source_get(&s->r->source, h->from, 2, &p, err);
    if (rc != 0 || (p[0] == 0 && p[1] == 0))
        return rc;
    rc = read_head(s, h->from, &good, &head, &end, err);
    if (rc != 0 || good)
        return rc;
    rc = is_beyond_doubt(s, h, &good, err);
    if (rc == 0 && !good)
        d7__claims_seen(&s->claims, h->n_seen - 1)->suspect = true;
    return rc;
}

static int resolve(survey *s, d7_error *err) {
    int rc = 0;
    hole_end(s, s->r->source.size);
    drop_padding(s);
    for (size_t i = 0; i < s->n_holes && rc == 0 && !s->r->framing.unframed; i++)
        rc = suspect_page_before(s, &s->holes[i], err);
    if (rc != 0)
        return rc;
    resolve_strays(s);
    for (size_t i = 0; i < s->n_holes && rc == 0 && s->holes[i].from < s->result->known_to; i++)
        rc = resolve_hole(s, &s->holes[i], err);
    return rc;
}

/* ---- the end of a file that was closed ---- */

static int missed_entry(void *ctx, const d7__entry *e, d7__cursor body, bool *ret_good) {
    *ret_good = true;
    return survey_index(ctx, e, body);
}

/* A global index in a block that the walk could not find its way into again. */
static int read_missed_index(survey *s, d7_error *err) {
    const d7__claims *c = &s->claims;
    bool seen = c->global_index == 0, whole;
    for (size_t k = 0; k < c->n_indexes; k++)
        seen |= c->indexes[k].offset == c->global_index;
    s->changed->differs = false;
    return seen ? 0 : d7__global_index_each(s->r, c->global_index, s->epilogue, missed_entry, s, &whole, err);
}

/* Pages end before the global index, whatever is left of that. */
static void leave_out_behind_end(survey *s) {
    d7__claims *c = &s->claims;
    for (size_t i = c->n_seen; i > 0 && d7__claims_seen(c, i - 1)->offset >= s->pages_end; i--)
        d7__claims_seen(c, i - 1)->unlisted = true;
}

static int find_end(survey *s, d7_error *err) {
    bool there;
    uint64_t at, index;
    int rc = s->r->framing.unframed ? 0 : d7__find_epilogue(&s->r->framing, &there, &at, &index, err);
    if (s->r->framing.unframed || rc != 0 || !there)
        return rc;
    s->epilogue = at;
    s->pages_end = index;
    return 0;
}

/* ---- the map ---- */

static int map_pages(survey *s) {
    const d7__claims *c = &s->claims;
    for (size_t i = 0; i < c->n_seen; i++) {
        const d7__seen_page *page = d7__claims_seen(c, i);
        s->result->n_unlisted += page->unlisted;
        if ((page->listed || !page->unlisted) &&
            d7__map_add(s->r, (uint32_t)page->dataset_id, page->offset) != 0)
            return D7_ERR_NOMEM;
    }
    for (size_t i = 0; i < c->n_listed; i++) {
        d7__page_ref page = d7__claims_listed(c, i);
        if (d7__map_add(s->r, page.dataset_id, page.offset) != 0)
            return D7_ERR_NOMEM;
    }
    for (size_t i = 0; i < s->n_lost; i++)
        if (d7__map_add(s->r, s->lost[i].dataset_id, s->lost[i].offset) != 0)
            return D7_ERR_NOMEM;
    d7__map_sort(s->r);
    return 0;
}

/* Where the columns of a group leave their turns among pages that no index lists, a page is counted to the wrong one. */
static int look_at_turns(survey *s, d7_group group) {
    d7__turns t;
    d7__map_walk walk;
    d7__page_ref page;
    size_t number;
    uint64_t *known_to = &s->result->known_to, off_at = 0;
    if (s->claims.global_index || s->r->framing.unframed)
        return 0;
    d7__turns_begin(&t, s->r, group);
    for (size_t i = 0; i < t.level.n; i++)
        t.level.pages[i] = 0;
    int rc = d7__map_walk_begin(&walk, s->r);
    while (rc == 0 && !t.irregular && d7__map_walk_next(&walk, &page, &number) && page.offset < *known_to) {
        off_at = t.n_off ? off_at : t.last_at;
        d7__turns_page(&t, page.dataset_id, page.offset, page.offset < s->first_odd);
    }
    d7__map_walk_end(&walk);
    if (rc != 0 || !d7__turns_are_left(&t, 1) || d7__claims_span(&s->claims, off_at))
        return rc;
    const d7__span *told = d7__claims_span(&s->claims, t.level_at + 1);
    *known_to = told ? told->to : t.level_at + 1;
    s->result->untold = true;
    return 0;
}

static int condemn_suspects(survey *s, d7_error *err) {
    int rc = 0;
    for (size_t i = 0; i < s->claims.n_seen && rc == 0; i++) {
        const d7__seen_page *page = d7__claims_seen(&s->claims, i);
        uint32_t ds = (uint32_t)page->dataset_id;
        if (page->suspect && !page->unlisted)
            rc = d7__page_condemn(s->r, ds, d7__map_find(&s->r->datasets[ds], page->offset),
                                  "a part of it is of another place in the file", err);
    }
    return rc;
}

int d7__repair_survey(d7_reader *r, uint64_t global_index, d7__changed *changed, d7_progress_fn *progress,
                      void *ctx, d7__survey *ret_survey, d7_error *err) {
    d7__survey result = {.known_to = UINT64_MAX, .torn_offset = D7_NO_OFFSET, .torn_dataset = D7_NO_DATASET};
    survey s = {.r = r,
                .changed = changed,
                .result = &result,
                .due = r->header.index_step,
                .pages_end = UINT64_MAX,
                .first_odd = UINT64_MAX};
    int rc = d7__claims_start(&s.claims, r, global_index);
    rc = rc != 0 ? d7__reader_no_memory(r, err) : find_end(&s, err);
    if (rc == 0)
        rc = survey_scan(&s, progress, ctx, err);
    if (rc == 0)
        rc = read_missed_index(&s, err);
    if (rc == 0 && d7__claims_settle(&s.claims) != 0)
        rc = d7__reader_no_memory(r, err);
    if (rc == 0)
        rc = d7__claims_believe_runs(&s.claims, err);
    d7__claims_mark_suspects(&s.claims);
    leave_out_behind_end(&s);
    result.known_to = s.claims.known_to;
    if (rc == 0)
        rc = resolve(&s, err);
    if (rc == 0 && (map_pages(&s) != 0 || look_at_turns(&s, D7_GROUP_PHOTONS) != 0 ||
                    look_at_turns(&s, D7_GROUP_TAGS) != 0))
        rc = d7__reader_no_memory(r, err);
    if (rc == 0)
        rc = condemn_suspects(&s, err);
    d7__release(&r->alloc, s.holes);
    d7__release(&r->alloc, s.lost);
    result.named = s.claims.named;
    s.claims.named = NULL;
    d7__claims_free(&s.claims);
    if (rc == 0)
        rc = d7__reader_map_pages(r, err);
    if (rc == 0)
        *ret_survey = result;
    else
        d7__release(&r->alloc, result.named);
    return rc;
}

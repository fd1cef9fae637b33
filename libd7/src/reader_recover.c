/* A file without a valid epilogue, or one whose epilogue is not to be trusted: its islands say where pages
 * are, and a scan finds those that no island lists.
 *
 *   header | early attributes | pages island | pages island | ... | pages that no island lists | torn entry
 *
 * An island lists every page since the one before. So when the first page that it lists does not begin right
 * where the last island ended, an island is missing or damaged in between, and that hole is scanned. The same
 * goes for an island that lists what cannot be, and for one with which columns go apart that were level before. Where a scan came by, bytes that whole entries fill hold those
 * entries and nothing else, whatever an index says.
 *
 * Where a scan meets a hole (damage, or zeros, in which pages may have been) and no index that lists what was there,
 * nothing tells which numbers the items behind it have: d7__hole. The lengths of the entries that can still be read
 * tell it where they lead from one end of the hole to the other, and where an island was due and the next list begins
 * right behind there was nothing else.
 *
 * A file that grows is gone on with from where the last look ended (d7__progress). Source: the D7
 * specification, section 5. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "error.h"
#include "level.h"
#include "reader_pages.h"

enum { SCAN_WINDOW_BYTES = 1 << 20, HOP_WINDOW_BYTES = 2 * D7_BLOCK_BYTES };

static void add(d7_reader *r, d7_problem_code code, uint64_t offset, const char *text) {
    d7_problem p = d7__problem(code, offset, "%s", text);
    d7__problems_add(&r->problems, &p);
}

/* ---- what is lost ---- */

/* The dataset of a page of which only the beginning is there. */
static bool lost_dataset(const d7_reader *r, const d7__entry *e, uint32_t *ret_ds) {
    d7__head head;
    if (!d7__head_parse(e->head, e->n_head, &head) || head.kind != D7__KIND_DATA ||
        head.dataset_id >= r->header.n_datasets)
        return false;
    *ret_ds = (uint32_t)head.dataset_id;
    return true;
}

/* Items of a dataset before what the scan has come to. */
static uint64_t items_before(const d7__reader_dataset *d) {
    size_t settled = d->counted ? d->n_settled : 0;
    return d7__page_first_item(d, settled) + (uint64_t)(d->n_pages - settled) * d->items_per_page;
}

/* Says which items a lost page had when its dataset is not known: for each, the place where they are missing. */
static void say_where(const d7_reader *r, char *text, size_t cap) {
    size_t n = strlen(text);
    const char *before = "; what is lost here is missing";
    for (size_t i = 0; i < r->header.n_datasets && n + 1 < cap; i++) {
        const d7__reader_dataset *d = &r->datasets[i];
        if (d->n_pages == 0)
            continue;
        int more = snprintf(text + n, cap - n, "%s from %s at item %" PRIu64, before,
                            r->header.datasets[i].name, items_before(d));
        if (more < 0 || (size_t)more >= cap - n) {
            memcpy(text + (n + 4 < cap ? n : cap - 4), "...", 4);
            return;
        }
        n += (size_t)more;
        before = ",";
    }
}

static void add_lost(d7_reader *r, d7_problem_code code, const d7__entry *e, const char *reason) {
    d7_problem p = d7__problem(code, e->offset, "%s", reason);
    uint32_t ds;
    if (lost_dataset(r, e, &ds)) {
        p.dataset_id = ds;
        p.first_item = items_before(&r->datasets[ds]);
        p.n_items = r->datasets[ds].items_per_page;
    } else if (code == D7_PROBLEM_BAD_FRAME) {
        say_where(r, p.text, sizeof p.text);
    }
    d7__problems_add(&r->problems, &p);
}

/* The end of the file cut an entry: damage, unless the one who is writing it is still there. */
static void add_torn(d7_reader *r, const d7__entry *e) {
    char reason[128];
    snprintf(reason, sizeof reason,
             "the entry that begins here is not complete: the file ends at byte %" PRIu64, r->source.size);
    add_lost(r, r->held ? D7_PROBLEM_BEING_WRITTEN : D7_PROBLEM_TORN_TAIL, e, reason);
}

/* ---- holes ---- */

static int add_hole(d7_reader *r, uint64_t from, uint64_t to) {
    if (r->framing.unframed)
        return 0;
    if (d7__grow(&r->alloc, &r->holes, &r->cap_holes, r->n_holes + 1, sizeof *r->holes) != 0)
        return D7_ERR_NOMEM;
    r->holes[r->n_holes++] = (d7__hole){.from = from, .to = to, .after = r->progress.last_entry};
    return 0;
}

static int add_padding(d7_reader *r, uint64_t from, uint64_t to) {
    int rc = add_hole(r, from, to);
    if (rc == 0 && !r->framing.unframed)
        r->holes[r->n_holes - 1].padding = true;
    return rc;
}

/* Zeros before an entry are padding only where no entry runs on from block to block without need. */
static void settle_padding(d7_reader *r) {
    size_t n = 0;
    for (size_t i = 0; i < r->n_holes; i++) {
        d7__hole h = r->holes[i];
        if (h.padding && !r->progress.runs_on)
            continue;
        if (h.padding)
            add(r, D7_PROBLEM_BAD_FRAME, h.from, "zeros between entries");
        h.padding = false;
        r->holes[n++] = h;
    }
    r->n_holes = n;
}

/* Damage begins; where the entry that it broke would have ended its beginning tells. */
static void begin_broken(d7_reader *r, const d7__entry *e) {
    d7__head head;
    r->progress.broken_from = e->offset;
    r->progress.broken_end =
        d7__head_parse(e->head, e->n_head, &head) && head.body_bytes <= D7_ENTRY_BYTES_MAX
            ? d7__frame_begin(d7__frame_end(e->offset, head.head_bytes + head.body_bytes))
            : 0;
}

/* How many islands are due before this place. */
static uint64_t islands_due(const d7_reader *r, uint64_t offset) {
    return offset / ((uint64_t)r->header.index_step * D7_BLOCK_BYTES);
}

/* Was an island due where this entry ended, and nothing else up to the list of the next one? */
static bool only_island_lost(const d7_reader *r, uint64_t begin, uint64_t end, uint64_t list_begin) {
    return !r->progress.drifting && islands_due(r, begin) < islands_due(r, end) &&
           islands_due(r, end) == islands_due(r, list_begin);
}

/* What broke off is over at `at`, where the next entry begins, or the list of the next island. */
static int end_broken(d7_reader *r, uint64_t at, bool list_begins) {
    d7__progress *v = &r->progress;
    uint64_t from = v->broken_from, end = v->broken_end;
    v->broken_from = v->broken_end = 0;
    if (from == 0 || end == at || (list_begins && end && end < at && only_island_lost(r, from, end, at)))
        return 0;
    return add_hole(r, from, at);
}

/* Does this index list what was in a hole? It lists pages before and behind it, or all that were before it and stands right
 * behind. */
static bool tells_of(const d7__entry *index, const d7__index_seen *seen, const d7__hole *h) {
    return h->from >= seen->first_page &&
           (h->from <= seen->last_page || (h->to == index->offset && h->after <= seen->last_page));
}

/* Each island lists all pages since the one before: where none was due in between, no page was before its first one. */
static bool none_before(const d7_reader *r, const d7__index_seen *seen, const d7__hole *h) {
    const d7__progress *v = &r->progress;
    return !v->drifting && h->from >= v->island_end && h->to <= seen->first_page &&
           islands_due(r, v->island_end) == islands_due(r, seen->first_page);
}

/* Pages behind a hole that a reader has left out have to be learned anew. */
static void resolve_holes(d7_reader *r, const d7__entry *index, const d7__index_seen *seen) {
    size_t n = 0;
    r->progress.drifting |= seen->first_page >= r->progress.island_end &&
                            islands_due(r, seen->last_page) == islands_due(r, index->offset);
    for (size_t i = 0; i < r->n_holes; i++) {
        bool told = tells_of(index, seen, &r->holes[i]) || none_before(r, seen, &r->holes[i]);
        r->progress.stale |= told && r->unplaced_from;
        if (!told || r->unplaced_from)
            r->holes[n++] = r->holes[i];
    }
    r->n_holes = n;
    r->progress.island_end = index->next;
}

/* A page that breaks off keeps its place, so that the items after it keep theirs. One in which another entry
 * begins was given up by its writer. */
static int take_bad(d7_reader *r, const d7__entry *e) {
    uint32_t ds;
    begin_broken(r, e);
    if (e->abandoned || !lost_dataset(r, e, &ds)) {
        add_lost(r, D7_PROBLEM_BAD_FRAME, e, e->reason);
        return 0;
    }
    add_lost(r, D7_PROBLEM_BAD_PAGE, e, e->reason);
    return d7__map_add(r, ds, e->offset);
}

/* Between two entries is more than padding: fragments of an entry whose beginning is lost, or zeros that do not
 * end with their block. */
static int check_gap(d7_reader *r, uint64_t from, uint64_t to, const d7__entry *e, bool padding,
                     bool list_begins) {
    d7__entry gap = {.offset = e->skipped};
    from = d7__frame_begin(from);
    if (e->skipped != D7_NO_OFFSET) {
        add_lost(r, D7_PROBLEM_BAD_FRAME, &gap, "the rest of an entry whose beginning is not there");
    } else if (!padding && to > from && (to - from >= D7_BLOCK_BYTES || to % D7_BLOCK_BYTES != 0)) {
        gap.offset = from;
        add_lost(r, D7_PROBLEM_BAD_FRAME, &gap, "zeros between entries");
    } else {
        return padding || to <= from + D7__SPARE_BYTES ? 0 : add_padding(r, from, to);
    }
    if (list_begins && only_island_lost(r, r->progress.last_entry, from, to))
        return 0;
    return add_hole(r, from, to);
}

/* ---- turns ---- */

static const d7_group turn_groups[] = {D7_GROUP_PHOTONS, D7_GROUP_TAGS};

/* Some page is counted to the wrong column, but nobody knows which. A file that is being written may be in the midst of a turn. */
static int doubt_turns(d7_reader *r) {
    d7__progress *v = &r->progress;
    for (size_t k = 0; k < 2; k++) {
        d7__turns *t = &v->turns[k];
        if (!d7__turns_are_left(t, r->held ? 2 : 1))
            continue;
        t->irregular = true;
        t->n_off = t->n_far = 0;
        add(r, D7_PROBLEM_UNPLACED, t->level_at,
            "behind this page columns are never of equal lengths any more that were so again and again: a "
            "page is counted to "
            "the wrong one, items behind have no known numbers and are not read; d7 repair tells what is "
            "lost");
        v->stale |= t->level_at < v->known;
        if (add_hole(r, t->level_at, t->level_at + 1) != 0)
            return D7_ERR_NOMEM;
        r->holes[r->n_holes - 1].after = t->level_at;
    }
    return 0;
}

/* A page of a scan, before it is in the map. */
static int take_turn(d7_reader *r, const d7__entry *entry, uint32_t ds) {
    d7__progress *v = &r->progress;
    int rc = 0;
    if (v->turns_next != entry->offset) {
        rc = doubt_turns(r);
        for (size_t k = 0; k < 2; k++)
            d7__turns_begin(&v->turns[k], r, turn_groups[k]);
    }
    v->turns_next = d7__frame_begin(entry->next);
    d7_group group = d7_group_of(r->header.datasets[ds].name);
    for (size_t k = 0; k < 2; k++)
        if (group == turn_groups[k] && !v->turns[k].irregular)
            d7__turns_page(&v->turns[k], ds, entry->offset,
                           d7__turns_is_full(r, ds, entry->data, entry->bytes));
    return rc;
}

/* ---- what is there ---- */

/* Whole entries fill [from, to). */
static int add_solid(d7_reader *r, uint64_t from, uint64_t to) {
    if (r->n_solid && r->solid[r->n_solid - 1].to == from) {
        r->solid[r->n_solid - 1].to = to;
        return 0;
    }
    if (d7__grow(&r->alloc, &r->solid, &r->cap_solid, r->n_solid + 1, sizeof *r->solid) != 0)
        return D7_ERR_NOMEM;
    r->solid[r->n_solid++] = (d7__solid){.from = from, .to = to};
    return 0;
}

/* A global index in a file without an epilogue: the one who wrote it did not come to the end. It is known by
 * its marker, by listing the first page a second time, or by standing last, where no island can be due yet.
 */
static void check_leftover(d7_reader *r, const d7__entry *entry, const d7__index_seen *seen) {
    d7__progress *v = &r->progress;
    bool first = seen->has_pages && v->first_page && seen->first_page == v->first_page;
    if (!v->leftover && (seen->has_marker || (first && v->first_listed)))
        v->leftover = entry->offset;
    v->first_listed |= first;
    if (seen->has_pages)
        v->last_index = entry->offset;
}

static void report_leftover(d7_reader *r) {
    const d7__progress *v = &r->progress;
    uint64_t offset = v->leftover;
    if (!offset && v->last_index / D7_BLOCK_BYTES < r->header.index_step)
        offset = v->last_index;
    if (offset && !v->epilogue_seen && !r->held && r->state == D7_STATE_OPEN)
        add(r, D7_PROBLEM_NO_EPILOGUE, offset, "a global index without an epilogue after it");
}

/* Is an entry that begins at `offset`, right behind the last one, the island that is due there, whatever became of it? */
static bool is_due(const d7_reader *r, uint64_t behind, uint64_t offset) {
    const d7__progress *v = &r->progress;
    return !v->drifting && d7__frame_begin(behind) == offset &&
           islands_due(r, v->island_end) == islands_due(r, v->last_entry) &&
           islands_due(r, v->last_entry) < islands_due(r, offset);
}

/* What is none of the messages that there are may have been a page, unless an island was due there. */
static int take_foreign(d7_reader *r, const d7__entry *entry, bool due) {
    if (!due)
        return add_hole(r, entry->offset, entry->next);
    r->progress.island_end = entry->next;
    return 0;
}

static int take_index(d7_reader *r, const d7__entry *entry, d7__cursor body, bool skip_pages, bool due) {
    d7__index_seen seen;
    int rc = d7__reader_take_index(r, entry, body, skip_pages, &seen);
    check_leftover(r, entry, &seen);
    if (!skip_pages && seen.has_pages && !seen.malformed && !seen.impossible) {
        rc = rc == 0 ? doubt_turns(r) : rc;
        resolve_holes(r, entry, &seen);
    }
    return rc == 0 && seen.foreign ? take_foreign(r, entry, due) : rc;
}

static const char moved_text[] = "more may be lost here: what follows may have other item numbers";

static int take_page(d7_reader *r, const d7__entry *entry, uint64_t dataset_id) {
    d7__progress *v = &r->progress;
    if (dataset_id < r->header.n_datasets && d7__page_is_seam(r, (uint32_t)dataset_id, entry)) {
        add(r, D7_PROBLEM_BAD_FRAME, entry->offset, moved_text);
        if (add_hole(r, entry->offset, entry->next) != 0)
            return D7_ERR_NOMEM;
    }
    if (dataset_id < r->header.n_datasets && d7__page_is_of_other(r, (uint32_t)dataset_id, entry)) {
        add(r, D7_PROBLEM_BAD_ENTRY, entry->offset, "the page's values are of another dataset than it says");
        return add_hole(r, entry->offset, entry->next);
    }
    v->first_page = v->first_page ? v->first_page : entry->offset;
    v->last_index = 0;
    if (dataset_id < r->header.n_datasets && take_turn(r, entry, (uint32_t)dataset_id) != 0)
        return D7_ERR_NOMEM;
    if (!d7__reader_page_is_possible(r, dataset_id, entry->offset))
        return 0;
    return d7__map_add(r, (uint32_t)dataset_id, entry->offset);
}

static int take_entry(d7_reader *r, const d7__entry *entry, bool due) {
    d7__kind kind;
    d7__cursor body;
    uint64_t dataset_id, index_offset;
    if (!d7__entry_kind(entry->data, entry->bytes, &kind, &body))
        kind = D7__KIND_NONE;
    switch (kind) {
    case D7__KIND_DATA:
        if (!d7__page_dataset(body, &dataset_id))
            break;
        if (dataset_id >= r->header.n_datasets && add_hole(r, entry->offset, entry->next) != 0)
            return D7_ERR_NOMEM;
        return take_page(r, entry, dataset_id);
    case D7__KIND_INDEX:
        return take_index(r, entry, body, false, due);
    case D7__KIND_EPILOGUE:
        if (!d7__epilogue_unpack(body, &index_offset))
            break;
        r->progress.epilogue_seen = true;
        if (r->state == D7_STATE_OPEN && entry->next < r->source.size)
            add(r, D7_PROBLEM_TRAILING_BYTES, entry->next, "the file goes on after its epilogue");
        return 0;
    case D7__KIND_HEADER:
        add(r, D7_PROBLEM_HEADER_PLACE, entry->offset, "a header that does not begin the file");
        return add_hole(r, entry->offset, entry->next);
    default:
        break;
    }
    add(r, D7_PROBLEM_BAD_ENTRY, entry->offset, "the entry is no message of this format");
    return take_foreign(r, entry, due);
}

/* What an entry is, and whether that is all of it: with a wrong length in its framing it may be a part of others. */
static d7__kind kind_of(const d7__entry *entry, bool *ret_exact) {
    d7__kind kind;
    d7__cursor body;
    *ret_exact = false;
    if (!d7__entry_kind(entry->data, entry->bytes, &kind, &body))
        return D7__KIND_NONE;
    *ret_exact = kind != D7__KIND_NONE && body.end == entry->data + entry->bytes;
    return kind;
}

/* ---- scanning ---- */

/* What lies between `from` and the entry that was found is over. */
static int come_to(d7_reader *r, uint64_t from, bool after_damage, const d7__entry *entry, bool padding) {
    return after_damage ? end_broken(r, entry->offset, false)
                        : check_gap(r, from, entry->offset, entry, padding, false);
}

/* One entry of a scan that came from `from`. */
static int scan_entry(d7_reader *r, uint64_t from, bool after_damage, const d7__entry *entry) {
    bool exact, follows = !after_damage && entry->offset == d7__frame_begin(from);
    bool due = follows && is_due(r, from, entry->offset);
    d7__kind kind = kind_of(entry, &exact);
    int rc = come_to(r, from, after_damage, entry, kind == D7__KIND_EPILOGUE);
    if (rc != 0)
        return rc;
    size_t n_holes = r->n_holes;
    r->progress.last_entry = entry->offset;
    r->progress.runs_on |= d7__entry_runs_on(entry);
    rc = take_entry(r, entry, due);
    bool sound = exact && r->n_holes <= n_holes;
    return rc == 0 && sound ? add_solid(r, follows ? from : entry->offset, entry->next) : rc;
}

static int scan_bad(d7_reader *r, uint64_t from, bool after_damage, const d7__entry *entry) {
    int rc = come_to(r, from, after_damage, entry, false);
    return rc != 0 ? rc : take_bad(r, entry);
}

/* What will tell more is not in the file yet. */
static int wait_for(d7_reader *r, uint64_t bytes) {
    r->progress.doubt_to = bytes;
    return 0;
}

/* Where the search for the next entry goes on after damage: where the broken one would have ended, if another begins there. */
static int after_bad(d7_reader *r, const d7__entry *e, uint64_t *ret, d7_error *err) {
    uint64_t end = r->progress.broken_end, size = r->source.size;
    uint8_t bytes[D7__ENTRY_HEAD];
    d7__head head;
    size_t n;
    *ret = e->next;
    if (end == 0 || e->abandoned)
        return 0;
    if (end >= size)
        return wait_for(r, end + 1);
    int rc = d7__entry_peek(&r->source, end, bytes, &n, err);
    if (rc == 0 && n == 0 && size - end < D7_BLOCK_BYTES)
        return wait_for(r, end + D7_BLOCK_BYTES);
    if (rc != 0 || !d7__head_parse(bytes, n, &head) || head.body_bytes > D7_ENTRY_BYTES_MAX ||
        (head.kind == D7__KIND_DATA && head.dataset_id >= r->header.n_datasets))
        return rc;
    uint64_t next = d7__frame_end(end, head.head_bytes + head.body_bytes);
    if (next > size)
        return wait_for(r, next);
    *ret = end;
    return 0;
}

/* Nothing more begins before `to`. Within the file that is where the next island's list begins, or what is behind. */
static int scan_end(d7_reader *r, uint64_t from, uint64_t to, bool after_damage, const d7__entry *e) {
    bool within = to < r->source.size;
    if (after_damage)
        return within ? end_broken(r, to, true) : 0;
    if (within || e->skipped != D7_NO_OFFSET)
        return check_gap(r, from, within ? to : r->source.size, e, !within, within);
    return 0;
}

/* Takes every entry that begins in [from, to). The next look begins after the last whole entry, or where damage ends
 * within the file. */
static int scan(d7_reader *r, uint64_t from, uint64_t to, d7_error *err) {
    bool after_damage = r->progress.broken_from != 0;
    r->source.window_bytes = SCAN_WINDOW_BYTES;
    for (;;) {
        d7__found found;
        d7__entry entry;
        int rc = d7__entry_before(&r->framing, from, to, &found, &entry, err);
        if (rc != 0)
            return rc;
        if (from <= r->source.size)
            r->progress.covered = from;
        if (found == D7__FOUND_END || entry.offset >= to)
            return scan_end(r, from, to, after_damage, &entry) == 0 ? 0 : d7__reader_no_memory(r, err);
        if (found == D7__FOUND_TORN) {
            add_torn(r, &entry);
            return 0;
        }
        rc = found == D7__FOUND_BAD ? scan_bad(r, from, after_damage, &entry)
                                    : scan_entry(r, from, after_damage, &entry);
        if (rc != 0)
            return d7__reader_no_memory(r, err);
        after_damage = found == D7__FOUND_BAD;
        from = entry.next;
        if (after_damage)
            rc = after_bad(r, &entry, &from, err);
        if (rc != 0)
            return rc;
    }
}

/* ---- islands ---- */

/* The first Index entry that begins in [from, to), if any. */
static int find_index(d7_reader *r, uint64_t from, uint64_t to, bool *ret_there, d7__entry *ret_entry,
                      d7__cursor *ret_body, d7_error *err) {
    *ret_there = false;
    for (;;) {
        d7__found found;
        d7__kind kind;
        int rc = d7__entry_before(&r->framing, from, to, &found, ret_entry, err);
        if (rc != 0 || found == D7__FOUND_END || found == D7__FOUND_TORN || ret_entry->offset >= to)
            return rc;
        if (found == D7__FOUND_ENTRY && d7__entry_kind(ret_entry->data, ret_entry->bytes, &kind, ret_body) &&
            kind == D7__KIND_INDEX) {
            *ret_there = true;
            return 0;
        }
        from = ret_entry->next;
    }
}

/* The Index entry that begins right at `at`, if one does. Of a page that begins there only the head is looked at. */
static int find_index_at(d7_reader *r, uint64_t at, bool *ret_there, d7__entry *ret_entry,
                         d7__cursor *ret_body, d7_error *err) {
    uint8_t head[D7__ENTRY_HEAD];
    size_t n;
    at = d7__frame_begin(at);
    int rc = d7__entry_peek(&r->source, at, head, &n, err);
    *ret_there = false;
    if (rc != 0 || (n && head[0] != D7__TAG(D7__KIND_INDEX, D7__BYTES)))
        return rc;
    return find_index(r, at, at + 1, ret_there, ret_entry, ret_body, err);
}

/* What an island lists, before any of it is taken. */
typedef struct survey {
    const d7_reader *reader;
    uint64_t end;
    bool has_pages, sound;
    bool ordered;
    size_t n_pages;
    uint64_t first_page; /* smallest offset */
    uint64_t last_page;  /* largest */
} survey;

static int survey_page(void *ctx, uint64_t dataset_id, uint64_t offset) {
    survey *s = ctx;
    offset = d7__reader_page_begin(s->reader, offset);
    s->ordered &= !s->has_pages || offset > s->last_page;
    s->n_pages++;
    if (!s->has_pages || offset < s->first_page)
        s->first_page = offset;
    s->last_page = offset > s->last_page ? offset : s->last_page;
    s->has_pages = true;
    s->sound &=
        dataset_id < s->reader->header.n_datasets && offset >= s->reader->data_start && offset < s->end;
    return 0;
}

static survey look_at(const d7_reader *r, const d7__entry *entry, d7__cursor body) {
    survey s = {.reader = r, .end = entry->offset, .sound = true, .ordered = true};
    d7__index_form form = {0};
    const d7__index_sink sink = {.ctx = &s, .form = &form, .page = survey_page};
    s.sound &= d7__index_read(body, &sink) == 0 && !d7__index_is_odd(&form);
    return s;
}

/* ---- lists that may have changed ---- */

typedef struct listing {
    const d7_reader *reader;
    d7__level level;
    size_t n_known; /* pages of the list that are in the map */
} listing;

static int count_page(void *ctx, uint64_t dataset_id, uint64_t offset) {
    listing *l = ctx;
    (void)offset;
    d7__level_count(&l->level, (uint32_t)dataset_id);
    return 0;
}

static int look_at_level(void *ctx, uint64_t dataset_id, uint64_t offset) {
    listing *l = ctx;
    count_page(ctx, dataset_id, offset);
    d7__level_look(&l->level);
    return 0;
}

static int know_page(void *ctx, uint64_t dataset_id, uint64_t offset) {
    listing *l = ctx;
    l->n_known += d7__map_has(&l->reader->datasets[dataset_id], d7__reader_page_begin(l->reader, offset));
    return 0;
}

static void read_list(listing *l, d7__cursor body, int (*page)(void *, uint64_t, uint64_t)) {
    const d7__index_sink sink = {.ctx = l, .page = page};
    (void)!d7__index_read(body, &sink);
}

static void count_known(d7__level *l, const d7_reader *r) {
    for (size_t i = 0; i < l->n; i++)
        l->pages[i] = r->datasets[l->ids[i]].n_pages;
}

/* Are columns that have been of equal lengths never so any more, with some pages of each? */
static bool is_off_level(const d7_reader *r, d7__cursor body, d7_group group) {
    listing l = {.reader = r};
    bool enough = true;
    d7__level_begin(&l.level, r, group);
    if (l.level.n < 2)
        return false;
    count_known(&l.level, r);
    read_list(&l, body, count_page);
    d7__level_drop_empty(&l.level);
    for (size_t i = 0; i < l.level.n; i++)
        enough &= l.level.pages[i] >= r->datasets[l.level.ids[i]].n_pages + 2;
    if (l.level.n < 2 || !enough)
        return false;
    count_known(&l.level, r);
    read_list(&l, body, look_at_level);
    return !l.level.reached;
}

/* Is there reason to look at the pages that a sound list is about? */
static bool is_doubtful(const d7_reader *r, const survey *s, d7__cursor body) {
    return !r->progress.peculiar && !r->options.quick &&
           (!s->ordered || is_off_level(r, body, D7_GROUP_PHOTONS) || is_off_level(r, body, D7_GROUP_TAGS));
}

/* The pages are there, and as they are listed: the writer's lists are so. */
static bool is_confirmed(const d7_reader *r, const survey *s, d7__cursor body, size_t n_before) {
    listing l = {.reader = r};
    read_list(&l, body, know_page);
    return l.n_known == s->n_pages && d7_reader_pages(r) == n_before + s->n_pages;
}

/* Scans [covered, end), and finds the index entry again that was found before. */
static int scan_hole(d7_reader *r, uint64_t end, d7__entry *entry, d7__cursor *body, d7_error *err) {
    d7__found found;
    d7__kind kind;
    uint64_t offset = entry->offset;
    int rc = scan(r, r->progress.covered, end, err);
    r->source.window_bytes = HOP_WINDOW_BYTES;
    if (rc == 0)
        rc = d7__entry_at(&r->framing, offset, &found, entry, err);
    if (rc == 0 && (found != D7__FOUND_ENTRY || !d7__entry_kind(entry->data, entry->bytes, &kind, body)))
        rc = d7__fail(err, D7_ERR_TRUNCATED, 0, offset, "%s: an index changes while it is read",
                      r->source.path);
    return rc;
}

/* Takes an island's entries (a long one has several, one after the other) and scans the hole before each that
 * leaves one. */
static int take_island(d7_reader *r, d7__entry *entry, d7__cursor body, d7_error *err) {
    d7__progress *v = &r->progress;
    for (bool there = true; there;) {
        survey s = look_at(r, entry, body);
        /* One that lists pages of before the last island is a part of a global index: what is since then may be in
         * another part. */
        bool island = s.sound && s.has_pages && s.first_page >= v->covered;
        bool doubtful = island && is_doubtful(r, &s, body);
        size_t n_before = doubtful ? (size_t)d7_reader_pages(r) : 0;
        uint64_t hole_end =
            island && !doubtful && s.first_page < entry->offset ? s.first_page : entry->offset;
        bool hole = hole_end > d7__frame_begin(v->covered);
        v->drifting |= island && islands_due(r, s.last_page) == islands_due(r, entry->offset);
        int rc = hole && !r->options.quick ? scan_hole(r, hole_end, entry, &body, err) : 0;
        if (rc != 0)
            return rc;
        if (end_broken(r, hole_end, true) != 0)
            return d7__reader_no_memory(r, err);
        if (v->first_page == 0 && s.sound && s.has_pages && !hole)
            v->first_page = s.first_page;
        if (doubtful && is_confirmed(r, &s, body, n_before))
            v->peculiar = true;
        bool due = is_due(r, v->covered, entry->offset);
        if (take_index(r, entry, body, (!s.sound || (doubtful && !v->peculiar)) && !r->options.quick, due) !=
            0)
            return d7__reader_no_memory(r, err);
        v->covered = entry->next;
        v->last_entry = entry->offset;
        rc = find_index_at(r, entry->next, &there, entry, &body, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* Index entries right after the header: attributes known at creation. */
static int take_early(d7_reader *r, d7_error *err) {
    d7__progress *v = &r->progress;
    v->covered = r->data_start;
    for (;;) {
        bool there;
        d7__entry entry;
        d7__cursor body;
        int rc = find_index_at(r, v->covered, &there, &entry, &body, err);
        if (rc != 0 || !there)
            return rc;
        if (take_index(r, &entry, body, false, false) != 0)
            return d7__reader_no_memory(r, err);
        v->covered = entry.next;
        v->last_entry = entry.offset;
    }
}

/* Those that begin before `end`. */
static int take_islands(d7_reader *r, uint64_t end, d7_error *err) {
    d7__progress *v = &r->progress;
    uint64_t step = (uint64_t)r->header.index_step * D7_BLOCK_BYTES;
    for (uint64_t hop = (v->covered + step - 1) / step * step; hop < end; hop += step) {
        bool there;
        d7__entry entry;
        d7__cursor body;
        if (hop < v->covered)
            continue;
        r->source.window_bytes = HOP_WINDOW_BYTES;
        uint64_t to = end - hop < step ? end : hop + step;
        int rc = find_index(r, hop, to, &there, &entry, &body, err);
        if (rc == 0 && there)
            rc = take_island(r, &entry, body, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int d7__reader_continue(d7_reader *r, uint64_t end, d7_error *err) {
    size_t window = r->source.window_bytes;
    int rc = 0;
    if (!r->options.full && !r->framing.unframed)
        rc = take_islands(r, end < r->source.size ? end : r->source.size, err);
    if (rc == 0 && !r->options.quick)
        rc = scan(r, r->progress.covered, end, err);
    if (rc == 0 && doubt_turns(r) != 0)
        rc = d7__reader_no_memory(r, err);
    if (rc == 0) {
        settle_padding(r);
        report_leftover(r);
    }
    r->source.window_bytes = window;
    return rc;
}

int d7__reader_recover(d7_reader *r, d7_error *err) {
    r->progress = (d7__progress){.covered = r->data_start, .island_end = r->data_start};
    r->n_solid = r->n_holes = 0;
    r->unplaced_from = 0;
    int rc = r->options.full || r->framing.unframed ? 0 : take_early(r, err);
    return rc != 0 ? rc : d7__reader_continue(r, UINT64_MAX, err);
}

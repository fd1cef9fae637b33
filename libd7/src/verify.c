/* A whole file, front to back, held against the rules of the format.
 *
 * The reader is opened first: its page map says which pages there ought to be, and what it found wrong is
 * told first. Then every entry is looked at in the order of the file. Islands are checked by doing what a
 * writer does: remember which block the next one is due at, and which pages no island has listed yet. Source:
 * the D7 specification, sections 1 to 5. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "codec.h"
#include "error.h"
#include "reader.h"

enum { SCAN_WINDOW_BYTES = 1 << 20 };

/* A run of Index entries one after the other. */
typedef struct island {
    bool there;
    bool due; /* it came at or past the block where one was due */
    bool has_marker;
    uint64_t offset; /* of its first entry that was due, else of its first */
    uint64_t end;
    d7__page_ref *listed;
    size_t n_listed, cap_listed;
} island;

typedef struct verifier {
    d7_reader *r;
    d7_verify_summary sum;
    uint64_t next_island; /* block */
    uint64_t span_start;  /* where the last island ended */
    bool page_seen;
    bool epilogue_seen;
    d7__page_ref *unlisted; /* pages since the last island */
    size_t n_unlisted, cap_unlisted;
    island island;
    size_t *cursors;           /* [n_datasets] pages of the map that were passed */
    d7__attributes attributes; /* of islands, to be found again in the global index */
} verifier;

static void report(verifier *v, d7_problem_code code, uint64_t offset, uint32_t ds, const char *text) {
    d7_problem p = d7__problem(code, offset, "%s", text);
    p.dataset_id = ds;
    d7__problems_add(&v->r->problems, &p);
}

/* ---- pages ---- */

/* Pages of the map that should have come before `offset` but were not found by the scan. */
static int check_passed(verifier *v, uint32_t ds, uint64_t offset, d7_error *err) {
    const d7__reader_dataset *d = &v->r->datasets[ds];
    int rc = 0;
    for (; v->cursors[ds] < d->n_pages && d->offsets[v->cursors[ds]] < offset && rc == 0; v->cursors[ds]++)
        rc = d7__reader_check_page(v->r, ds, v->cursors[ds], NULL, err);
    return rc;
}

static int check_page(verifier *v, const d7__entry *entry, uint64_t dataset_id, d7_error *err) {
    if (!d7__reader_knows_dataset(v->r, dataset_id, entry->offset))
        return 0;
    uint32_t ds = (uint32_t)dataset_id;
    const d7__reader_dataset *d = &v->r->datasets[ds];
    size_t at = v->cursors[ds];
    while (at < d->n_pages && d->offsets[at] < entry->offset)
        at++;
    if (at == d->n_pages || d->offsets[at] != entry->offset) {
        report(v, D7_PROBLEM_UNLISTED_PAGE, entry->offset, ds, "no index lists this page");
        return 0;
    }
    int rc = d7__reader_check_page(v->r, ds, at, entry, err);
    /* Reading those that were passed over ends the entry's life. */
    if (rc == 0)
        rc = check_passed(v, ds, entry->offset, err);
    v->cursors[ds] = at + 1;
    return rc;
}

/* ---- islands ---- */

static int compare_refs(const void *a, const void *b) {
    const d7__page_ref *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->dataset_id < y->dataset_id ? -1 : x->dataset_id > y->dataset_id;
}

/* Holds what the island lists against the pages since the one before. */
static void check_island_list(verifier *v) {
    island *is = &v->island;
    size_t at = 0, lacking = 0;
    if (is->n_listed)
        qsort(is->listed, is->n_listed, sizeof *is->listed, compare_refs);
    for (size_t i = 0; i < is->n_listed; i++) {
        const d7__page_ref *page = &is->listed[i];
        for (; at < v->n_unlisted && compare_refs(&v->unlisted[at], page) < 0; at++)
            lacking++;
        if (at < v->n_unlisted && compare_refs(&v->unlisted[at], page) == 0)
            at++;
        else if (page->offset < v->span_start)
            report(v, D7_PROBLEM_ISLAND_LIST, is->offset, page->dataset_id,
                   "the island lists a page from before the last island");
        else if (!d7__map_has(&v->r->datasets[page->dataset_id], page->offset))
            report(v, D7_PROBLEM_MISSING_PAGE, page->offset, page->dataset_id,
                   "an island lists a page that is not there");
    }
    lacking += v->n_unlisted - at;
    if (lacking) {
        d7_problem p = d7__problem(D7_PROBLEM_ISLAND_LIST, is->offset,
                                   "the island does not list %zu of the pages since the one before", lacking);
        d7__problems_add(&v->r->problems, &p);
    }
}

/* A run of Index entries has ended before a page. */
static void end_island(verifier *v) {
    island *is = &v->island;
    bool expected = v->page_seen || is->n_listed;
    if (!is->due && expected)
        report(v, D7_PROBLEM_ISLAND_PLACE, is->offset, D7_NO_DATASET, "the island stands before one is due");
    check_island_list(v);
    if (is->due)
        v->next_island =
            (is->offset / D7_BLOCK_BYTES / v->r->header.index_step + 1) * v->r->header.index_step;
    v->n_unlisted = 0;
    v->span_start = is->end;
    is->there = false;
}

/* Before a page: is an island there when one is due? The page right after its island needs no second one. */
static void check_island_due(verifier *v, uint64_t offset) {
    uint64_t block = offset / D7_BLOCK_BYTES;
    bool due_was_there = v->island.there && v->island.due;
    if (v->island.there)
        end_island(v);
    if (block < v->next_island || due_was_there)
        return;
    report(v, D7_PROBLEM_ISLAND_PLACE, offset, D7_NO_DATASET,
           "no index island stands before this page, though one was due");
    v->next_island = (block / v->r->header.index_step + 1) * v->r->header.index_step;
}

typedef struct island_taker {
    verifier *v;
    uint64_t offset;
    bool global;
} island_taker;

static int take_page(void *ctx, uint64_t dataset_id, uint64_t offset) {
    const island_taker *t = ctx;
    island *is = &t->v->island;
    /* The reader has told of datasets that there are not. */
    if (t->global || dataset_id >= t->v->r->header.n_datasets)
        return 0;
    if (d7__grow(&t->v->r->alloc, &is->listed, &is->cap_listed, is->n_listed + 1, sizeof *is->listed) != 0)
        return D7_ERR_NOMEM;
    is->listed[is->n_listed++] = (d7__page_ref){.offset = offset, .dataset_id = (uint32_t)dataset_id};
    return 0;
}

static int take_attribute(void *ctx, const d7_attribute *a) {
    const island_taker *t = ctx;
    if (d7__is_marker(a)) {
        t->v->island.has_marker = true;
        return 0;
    }
    if (!common_utf8_valid(a->key, a->key_bytes) || !common_utf8_valid(a->value, a->value_bytes))
        report(t->v, D7_PROBLEM_BAD_ATTRIBUTE, t->offset, D7_NO_DATASET, "an attribute is not valid UTF-8");
    return t->global ? 0 : d7__attributes_set(&t->v->attributes, a, NULL);
}

/* An entry of attributes alone, where no island is due, is none; it may stand anywhere. */
static void note_index(verifier *v, const d7__entry *entry, bool global) {
    island *is = &v->island;
    bool due = entry->offset / D7_BLOCK_BYTES >= v->next_island;
    if (global || (!is->there && !due && !is->n_listed && !is->has_marker))
        return;
    if (!is->there || (due && !is->due))
        is->offset = entry->offset;
    is->there = true;
    is->due |= due;
    is->end = entry->next;
}

static int check_index(verifier *v, const d7__entry *entry, d7__cursor body, d7_error *err) {
    bool global = v->r->state == D7_STATE_CLOSED && entry->offset >= v->r->global_index;
    island *is = &v->island;
    if (!is->there) {
        is->due = is->has_marker = false;
        is->n_listed = 0;
    }
    island_taker taker = {.v = v, .offset = entry->offset, .global = global};
    int rc = d7__index_read(body,
                            &(d7__index_sink){.ctx = &taker, .page = take_page, .attribute = take_attribute});
    if (rc == D7_ERR_NOMEM)
        return d7__reader_no_memory(v->r, err);
    if (rc != 0)
        report(v, D7_PROBLEM_BAD_ENTRY, entry->offset, D7_NO_DATASET, "an index entry is malformed");
    note_index(v, entry, global);
    return 0;
}

static int check_data(verifier *v, const d7__entry *entry, d7__cursor body, d7_error *err) {
    uint64_t offset = entry->offset, dataset_id;
    if (!d7__page_dataset(body, &dataset_id)) {
        report(v, D7_PROBLEM_BAD_ENTRY, offset, D7_NO_DATASET, "the entry is no message of this format");
        return 0;
    }
    check_island_due(v, offset);
    v->page_seen = true;
    v->sum.pages++;
    if (d7__grow(&v->r->alloc, &v->unlisted, &v->cap_unlisted, v->n_unlisted + 1, sizeof *v->unlisted) != 0)
        return d7__reader_no_memory(v->r, err);
    v->unlisted[v->n_unlisted++] = (d7__page_ref){
        .offset = offset, .dataset_id = dataset_id > UINT32_MAX ? UINT32_MAX : (uint32_t)dataset_id};
    return check_page(v, entry, dataset_id, err);
}

/* ---- entries ---- */

static void check_epilogue(verifier *v, uint64_t offset, uint64_t next) {
    v->epilogue_seen = true;
    if (v->r->state == D7_STATE_OPEN && offset % D7_BLOCK_BYTES != 0)
        report(v, D7_PROBLEM_BAD_EPILOGUE, offset, D7_NO_DATASET, "the epilogue does not begin a block");
    if (next < v->r->source.size)
        report(v, D7_PROBLEM_TRAILING_BYTES, next, D7_NO_DATASET, "the file goes on after its epilogue");
}

static int check_entry(verifier *v, const d7__entry *entry, d7_error *err) {
    d7__kind kind = D7__KIND_NONE;
    d7__cursor body;
    v->sum.entries++;
    if (!d7__entry_kind(entry->data, entry->bytes, &kind, &body))
        kind = D7__KIND_NONE;
    switch (kind) {
    case D7__KIND_DATA:
        return check_data(v, entry, body, err);
    case D7__KIND_INDEX:
        return check_index(v, entry, body, err);
    case D7__KIND_EPILOGUE:
        check_epilogue(v, entry->offset, entry->next);
        return 0;
    case D7__KIND_HEADER:
        report(v, D7_PROBLEM_HEADER_PLACE, entry->offset, D7_NO_DATASET,
               "a header that does not begin the file");
        return 0;
    default:
        report(v, D7_PROBLEM_BAD_ENTRY, entry->offset, D7_NO_DATASET,
               "the entry is no message of this format");
        return 0;
    }
}

/* Bytes between entries must be zero: padding. */
static int check_padding(verifier *v, uint64_t from, uint64_t to, d7_error *err) {
    for (uint64_t at = from; at < to;) {
        const uint8_t *p;
        size_t n = to - at < D7_BLOCK_BYTES ? (size_t)(to - at) : D7_BLOCK_BYTES;
        int rc = d7__source_get(&v->r->source, at, n, &p, err);
        if (rc != 0)
            return rc;
        for (size_t i = 0; i < n; i++)
            if (p[i]) {
                report(v, D7_PROBLEM_BAD_FRAME, at + i, D7_NO_DATASET,
                       "bytes that belong to no entry are not zero");
                return 0;
            }
        at += n;
    }
    return 0;
}

static int check_found(verifier *v, d7__found found, const d7__entry *entry, d7_error *err) {
    if (found == D7__FOUND_ENTRY)
        return check_entry(v, entry, err);
    if (found == D7__FOUND_BAD)
        report(v, D7_PROBLEM_BAD_FRAME, entry->offset, D7_NO_DATASET, entry->reason);
    return 0;
}

static int scan(verifier *v, d7_progress_fn *progress, void *ctx, d7_error *err) {
    d7_reader *r = v->r;
    r->source.window_bytes = SCAN_WINDOW_BYTES;
    d7__found found = D7__FOUND_ENTRY;
    bool after_damage = false;
    for (uint64_t at = r->data_start; found != D7__FOUND_END && found != D7__FOUND_TORN;) {
        d7__entry entry;
        int rc = d7__entry_next(&r->framing, at, &found, &entry, err);
        uint64_t offset = entry.offset, next = entry.next;
        if (rc == 0)
            rc = check_found(v, found, &entry, err);
        if (rc == 0 && !after_damage)
            rc = check_padding(v, d7__frame_begin(at), offset, err);
        if (rc == 0 && progress && progress(ctx, next, r->source.size) != 0)
            rc = d7__fail(err, D7_ERR_CANCELLED, 0, D7_NO_OFFSET, "%s: stopped", r->source.path);
        if (rc != 0)
            return rc;
        after_damage = found == D7__FOUND_BAD;
        at = next;
    }
    return 0;
}

/* ---- the end ---- */

/* The last run of Index entries, which no page follows: an island, or a global index whose file was not
 * closed. */
static void end_last_island(verifier *v) {
    bool global = v->island.has_marker || (!v->island.due && v->island.n_listed);
    if (!global) {
        check_island_list(v);
        return;
    }
    if (!v->r->held && !v->epilogue_seen)
        report(v, D7_PROBLEM_NO_EPILOGUE, v->island.offset, D7_NO_DATASET,
               "a global index without an epilogue after it");
}

/* Attributes of the islands are in the global index; their values may have changed since the last island. */
static void check_attributes(verifier *v) {
    for (size_t i = 0; i < v->attributes.n; i++) {
        const d7_attribute *a = &v->attributes.items[i];
        if (d7__attributes_find(&v->r->attributes, a->key, a->key_bytes) != SIZE_MAX)
            continue;
        d7_problem p = d7__problem(D7_PROBLEM_BAD_ATTRIBUTE, v->r->global_index,
                                   "the global index lacks attribute \"%.100s\"", a->key);
        d7__problems_add(&v->r->problems, &p);
    }
}

static int check_end(verifier *v, d7_error *err) {
    int rc = 0;
    for (size_t i = 0; i < v->r->header.n_datasets && rc == 0; i++)
        rc = check_passed(v, (uint32_t)i, UINT64_MAX, err);
    if (v->island.there && (v->page_seen || v->island.n_listed))
        end_last_island(v);
    if (v->r->state == D7_STATE_CLOSED)
        check_attributes(v);
    return rc;
}

static void tell_what_opening_found(d7_reader *r, d7_problem_fn *on_problem, void *ctx) {
    for (size_t i = 0; on_problem && i < r->problems.n; i++)
        on_problem(ctx, &r->problems.items[i]);
    r->problems.tell = on_problem;
    r->problems.tell_ctx = ctx;
}

static int verify(verifier *v, d7_progress_fn *progress, void *progress_ctx, d7_error *err) {
    v->cursors = d7__new(&v->r->alloc, v->r->header.n_datasets * sizeof *v->cursors);
    if (!v->cursors)
        return d7__reader_no_memory(v->r, err);
    int rc = scan(v, progress, progress_ctx, err);
    return rc != 0 ? rc : check_end(v, err);
}

int d7_reader_verify(d7_reader *r, d7_problem_fn *on_problem, void *problem_ctx, d7_progress_fn *progress,
                     void *progress_ctx, d7_verify_summary *ret_summary, d7_error *err) {
    verifier v = {.r = r, .next_island = r->header.index_step, .span_start = r->data_start};
    size_t window = r->source.window_bytes;
    v.attributes.alloc = &r->alloc;
    v.sum =
        (d7_verify_summary){.state = r->state, .held = r->held, .file_bytes = r->source.size, .entries = 1};
    tell_what_opening_found(r, on_problem, problem_ctx);
    int rc = verify(&v, progress, progress_ctx, err);
    if (rc == 0) {
        v.sum.damages = r->problems.by_severity[D7_DAMAGE];
        v.sum.data_notes = r->problems.by_severity[D7_DATA];
        v.sum.style_notes = r->problems.by_severity[D7_STYLE];
        *ret_summary = v.sum;
    }
    r->problems.tell = NULL;
    r->source.window_bytes = window;
    d7__release(&r->alloc, v.cursors);
    d7__release(&r->alloc, v.unlisted);
    d7__release(&r->alloc, v.island.listed);
    d7__attributes_free(&v.attributes);
    return rc;
}

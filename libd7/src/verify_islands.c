/* Islands: checked by doing what a writer does, remembering which block the next one is due at and which
 * pages no island has listed yet. Source: the D7 specification, section 4. */
#include <stdlib.h>

#include "base/utf8.h"
#include "framing.h"
#include "verify.h"

static int compare_refs(const void *a, const void *b) {
    const d7__page_ref *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->dataset_id < y->dataset_id ? -1 : x->dataset_id > y->dataset_id;
}

/* Holds what the island lists against the pages since the one before. A page that is not there and is in the
 * map was reported already. */
static void check_list(d7__verifier *v) {
    d7__island *is = &v->island;
    size_t lacking = 0;
    d7__page_cursor at = {0};
    d7__page_ref unlisted;
    bool more = d7__page_log_next(&v->unlisted, &at, &unlisted);
    if (is->n_listed)
        qsort(is->listed, is->n_listed, sizeof *is->listed, compare_refs);
    for (size_t i = 0; i < is->n_listed; i++) {
        const d7__page_ref *page = &is->listed[i];
        for (; more && compare_refs(&unlisted, page) < 0;
             more = d7__page_log_next(&v->unlisted, &at, &unlisted))
            lacking++;
        if (more && compare_refs(&unlisted, page) == 0)
            more = d7__page_log_next(&v->unlisted, &at, &unlisted);
        else if (page->offset < v->span_start)
            d7__verify_report(v, D7_PROBLEM_ISLAND_LIST, is->offset, page->dataset_id,
                              "the island lists a page from before the last island");
        else if (!d7__map_has(&v->r->datasets[page->dataset_id], page->offset) &&
                 (!v->r->unplaced_from || page->offset < v->r->unplaced_from))
            d7__verify_report(v, D7_PROBLEM_MISSING_PAGE, page->offset, page->dataset_id,
                              "an island lists a page that is not there");
    }
    lacking += v->unlisted.n - at.n + more;
    if (lacking) {
        d7_problem p = d7__problem(D7_PROBLEM_ISLAND_LIST, is->offset,
                                   "the island does not list %zu of the pages since the one before", lacking);
        d7__problems_add(&v->r->problems, &p);
    }
}

static uint64_t block_after(const d7__verifier *v, uint64_t offset) {
    return (offset / D7_BLOCK_BYTES / v->r->header.index_step + 1) * v->r->header.index_step;
}

/* A run of Index entries has ended before a page. */
static void end_island(d7__verifier *v) {
    d7__island *is = &v->island;
    bool expected = v->page_seen || is->n_listed;
    if (!is->due && expected)
        d7__verify_report(v, D7_PROBLEM_ISLAND_PLACE, is->offset, D7_NO_DATASET,
                          "the island stands before one is due");
    check_list(v);
    if (is->due)
        v->next_island = block_after(v, is->offset);
    d7__page_log_clear(&v->unlisted);
    v->span_start = is->end;
    is->there = false;
}

/* The page right after its island needs no second one. */
void d7__verify_island_due(d7__verifier *v, uint64_t offset) {
    bool due_was_there = v->island.there && v->island.due;
    if (v->island.there)
        end_island(v);
    if (offset / D7_BLOCK_BYTES < v->next_island || due_was_there)
        return;
    d7__verify_report(v, D7_PROBLEM_ISLAND_PLACE, offset, D7_NO_DATASET,
                      "no index island stands before this page, though one was due");
    v->next_island = block_after(v, offset);
}

/* ---- one Index entry ---- */

typedef struct island_taker {
    d7__verifier *v;
    uint64_t offset;
    bool global;
    bool attribute_seen;
    uint64_t last_page;
    const char *unusual;
} island_taker;

static void check_order(island_taker *t, uint64_t offset) {
    if (d7__frame_begin(offset) != offset)
        t->unusual = "the index points at the spare byte before a page";
    else if (t->attribute_seen)
        t->unusual = "the index lists pages after attributes";
    else if (offset <= t->last_page)
        t->unusual = "the index does not list its pages in the order of the file";
    t->last_page = offset;
}

static int take_page(void *ctx, uint64_t dataset_id, uint64_t offset) {
    island_taker *t = ctx;
    d7__island *is = &t->v->island;
    check_order(t, offset);
    /* The reader has told of datasets that there are not. */
    if (t->global || dataset_id >= t->v->r->header.n_datasets)
        return 0;
    if (d7__grow(&t->v->r->alloc, &is->listed, &is->cap_listed, is->n_listed + 1, sizeof *is->listed) != 0)
        return D7_ERR_NOMEM;
    is->listed[is->n_listed++] =
        (d7__page_ref){.offset = d7__frame_begin(offset), .dataset_id = (uint32_t)dataset_id};
    return 0;
}

static int take_attribute(void *ctx, const d7_attribute *a) {
    island_taker *t = ctx;
    t->attribute_seen = true;
    if (d7__is_marker(a)) {
        t->v->island.has_marker = true;
        return 0;
    }
    if (!common_utf8_valid(a->key, a->key_bytes) || !common_utf8_valid(a->value, a->value_bytes))
        d7__verify_report(t->v, D7_PROBLEM_BAD_ATTRIBUTE, t->offset, D7_NO_DATASET,
                          "an attribute is not valid UTF-8");
    return t->global ? 0 : d7__attributes_set(&t->v->attributes, a, NULL);
}

/* An entry of attributes alone, where no island is due, is none; it may stand anywhere. */
static void note_index(d7__verifier *v, const d7__entry *entry, bool global) {
    d7__island *is = &v->island;
    bool due = entry->offset / D7_BLOCK_BYTES >= v->next_island;
    if (global || (!is->there && !due && !is->n_listed && !is->has_marker))
        return;
    if (!is->there || (due && !is->due))
        is->offset = entry->offset;
    is->there = true;
    is->due |= due;
    is->end = entry->next;
}

int d7__verify_index(d7__verifier *v, const d7__entry *entry, d7__cursor body, d7_error *err) {
    bool global = v->r->state == D7_STATE_CLOSED && entry->offset >= v->r->global_index;
    d7__island *is = &v->island;
    v->n_global += global;
    if (!is->there) {
        is->due = is->has_marker = false;
        is->n_listed = 0;
    }
    island_taker taker = {.v = v, .offset = entry->offset, .global = global};
    d7__index_form form = {0};
    const d7__index_sink sink = {
        .ctx = &taker, .form = &form, .page = take_page, .attribute = take_attribute};
    int rc = d7__index_read(body, &sink);
    if (rc == D7_ERR_NOMEM)
        return d7__reader_no_memory(v->r, err);
    if (rc != 0 || d7__index_is_mute(&form))
        d7__verify_report(v, D7_PROBLEM_BAD_ENTRY, entry->offset, D7_NO_DATASET,
                          "an index entry is malformed");
    else if (taker.unusual)
        d7__verify_report(v, D7_PROBLEM_INDEX_FORM, entry->offset, D7_NO_DATASET, taker.unusual);
    note_index(v, entry, global);
    return 0;
}

/* The last run of Index entries, which no page follows: an island, or a global index whose file was not
 * closed. */
void d7__verify_last_island(d7__verifier *v) {
    if (!v->island.there || !(v->page_seen || v->island.n_listed))
        return;
    bool global = v->island.has_marker || (!v->island.due && v->island.n_listed);
    if (!global) {
        check_list(v);
        return;
    }
    if (!v->r->held && !v->epilogue_seen)
        d7__verify_report(v, D7_PROBLEM_NO_EPILOGUE, v->island.offset, D7_NO_DATASET,
                          "a global index without an epilogue after it");
}

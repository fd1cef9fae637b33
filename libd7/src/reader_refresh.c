/* A reader that goes on with a file that grows.
 *
 *   is it still the file at the path? -> the tail -> the size -> does the mark hold?
 *      no:  the file was cut, and perhaps written on since: read it anew, into a reader of its own that then takes
 *           this one's place
 *      yes: islands and scan from where the last look ended -> the new pages' lengths -> has it been closed?
 *
 * The mark is a checksum of how the last whole entry begins and of the bytes before its end: whoever cuts the file
 * before that place and writes on puts other bytes there. What is known is always consistent, also when a refresh fails
 * on its way: pages whose lengths are not known yet are forgotten again. */
#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "codec.h"
#include "error.h"
#include "reader_pages.h"

/* ---- the mark ---- */

enum { MARK_HEAD_BYTES = 64, MARK_END_BYTES = 256 };

static int sum_bytes(d7_reader *r, uint64_t from, uint64_t to, uint32_t *crc, d7_error *err) {
    const uint8_t *p;
    int rc = d7__source_get(&r->source, from, (size_t)(to - from), &p, err);
    if (rc == 0)
        *crc = common_crc32c(*crc, p, (size_t)(to - from));
    return rc;
}

static int mark_sum(d7_reader *r, uint64_t entry, uint64_t end, uint32_t *ret_crc, d7_error *err) {
    uint64_t head_end = end - entry < MARK_HEAD_BYTES ? end : entry + MARK_HEAD_BYTES;
    size_t window = r->source.window_bytes;
    r->source.window_bytes = MARK_END_BYTES;
    *ret_crc = 0;
    int rc = sum_bytes(r, entry, head_end, ret_crc, err);
    if (rc == 0)
        rc = sum_bytes(r, end < MARK_END_BYTES ? 0 : end - MARK_END_BYTES, end, ret_crc, err);
    r->source.window_bytes = window;
    return rc;
}

int d7__mark_set(d7_reader *r, d7_error *err) {
    d7__mark mark = {.entry = r->progress.last_entry, .at = r->progress.covered};
    int rc = mark_sum(r, mark.entry, mark.at, &mark.crc, err);
    if (rc == 0)
        r->mark = mark;
    return rc;
}

int d7__mark_check(d7_reader *r, bool *ret_holds, d7_error *err) {
    uint32_t crc;
    *ret_holds = false;
    if (r->source.size < r->mark.at)
        return 0;
    int rc = mark_sum(r, r->mark.entry, r->mark.at, &crc, err);
    *ret_holds = rc == 0 && crc == r->mark.crc;
    return rc;
}

/* ---- closing ---- */

/* Holds a global index against what is known. */
typedef struct closing {
    d7_reader *r;
    d7__attributes attributes;
    size_t *n_listed; /* [n_datasets] */
    bool differs;
} closing;

static int closing_page(void *ctx, uint64_t dataset_id, uint64_t offset) {
    closing *c = ctx;
    offset = d7__reader_page_begin(c->r, offset);
    if (dataset_id >= c->r->header.n_datasets || !d7__map_has(&c->r->datasets[dataset_id], offset))
        c->differs = true;
    else
        c->n_listed[dataset_id]++;
    return 0;
}

static int closing_attribute(void *ctx, const d7_attribute *a) {
    closing *c = ctx;
    return d7__is_marker(a) ? 0 : d7__attributes_set(&c->attributes, a, NULL);
}

static int closing_entry(void *ctx, const d7__entry *entry, d7__cursor body, bool *ret_good) {
    const d7__index_sink sink = {.ctx = ctx, .page = closing_page, .attribute = closing_attribute};
    (void)entry;
    int rc = d7__index_read(body, &sink);
    *ret_good = rc == 0;
    return rc == D7_ERR_CORRUPT ? 0 : rc;
}

static bool attributes_differ(const d7__attributes *a, const d7__attributes *b) {
    if (a->n != b->n)
        return true;
    for (size_t i = 0; i < a->n; i++) {
        size_t k = d7__attributes_find(b, a->items[i].key, a->items[i].key_bytes);
        if (k == SIZE_MAX || a->items[i].value_bytes != b->items[k].value_bytes ||
            memcmp(a->items[i].value, b->items[k].value, a->items[i].value_bytes) != 0)
            return true;
    }
    return false;
}

/* The file is closed, as its global index and what is known agree. */
static void take_close(closing *c, uint64_t index, uint64_t at) {
    d7_reader *r = c->r;
    d7__problems_drop(&r->problems, D7_PROBLEM_NO_EPILOGUE);
    r->n_attribute_changes += attributes_differ(&r->attributes, &c->attributes);
    d7__attributes_free(&r->attributes);
    r->attributes = c->attributes;
    c->attributes = (d7__attributes){.alloc = &r->alloc};
    r->state = D7_STATE_CLOSED;
    r->global_index = index;
    r->epilogue = at;
    r->n_holes = 0;
    r->unplaced_from = 0;
    d7__problems_drop(&r->problems, D7_PROBLEM_UNPLACED);
    r->progress = (d7__progress){.covered = r->source.size, .last_entry = at};
}

/* *ret_closed: the index is whole. One that lists other pages than are known makes the reader stale. */
static int check_close(d7_reader *r, uint64_t index, uint64_t at, bool *ret_closed, d7_error *err) {
    closing c = {.r = r, .attributes.alloc = &r->alloc};
    c.n_listed = d7__new(&r->alloc, r->header.n_datasets * sizeof *c.n_listed);
    if (!c.n_listed)
        return d7__reader_no_memory(r, err);
    int rc = d7__global_index_each(r, index, at, closing_entry, &c, ret_closed, err);
    for (size_t i = 0; i < r->header.n_datasets; i++)
        c.differs |= c.n_listed[i] != r->datasets[i].n_pages;
    if (rc == 0 && *ret_closed) {
        r->progress.stale |= c.differs;
        if (!c.differs)
            take_close(&c, index, at);
    }
    d7__attributes_free(&c.attributes);
    d7__release(&r->alloc, c.n_listed);
    return rc;
}

/* ---- growing ---- */

/* What is true of a moment only is found again, if it still is. */
static void drop_passing_problems(d7_reader *r) {
    static const d7_problem_code passing[] = {D7_PROBLEM_TORN_TAIL, D7_PROBLEM_BEING_WRITTEN,
                                              D7_PROBLEM_NO_EPILOGUE, D7_PROBLEM_BAD_EPILOGUE};
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        d7__problems_drop(&r->problems, passing[i]);
}

/* Pages that begin before `end`, and how many items they have. */
static int go_on(d7_reader *r, uint64_t end, d7_error *err) {
    d7__progress before = r->progress;
    size_t n_holes = r->n_holes;
    int rc = d7__reader_continue(r, end, err);
    if (rc == 0 && !r->progress.stale)
        rc = d7__reader_map_more(r, err);
    if (rc == 0)
        return 0;
    d7__map_unsettle(r);
    r->n_solid = 0;
    r->n_holes = n_holes;
    r->progress = before;
    return rc;
}

/* What was damage at the end of the file is judged anew when more follows. */
static bool has_more_to_tell(const d7_reader *r) {
    return r->progress.doubt_to && r->source.size >= r->progress.doubt_to;
}

static int grow(d7_reader *r, d7_error *err) {
    bool there, closed = false;
    uint64_t at, index;
    drop_passing_problems(r);
    r->progress.known = r->progress.covered;
    if (has_more_to_tell(r)) {
        r->progress.stale = true;
        return 0;
    }
    int rc = d7__find_epilogue(&r->framing, &there, &at, &index, err);
    if (rc != 0)
        return rc;
    rc = go_on(r, there ? index : UINT64_MAX, err);
    if (!there || rc != 0 || r->progress.stale)
        return rc;
    rc = check_close(r, index, at, &closed, err);
    if (rc != 0 || closed)
        return rc;
    d7__reader_bad_epilogue(r, at, index);
    return go_on(r, UINT64_MAX, err);
}

/* ---- reading anew ---- */

/* Takes over what the other reader has learned; the file stays. */
static void become(d7_reader *r, d7_reader *again) {
    d7_reader old = *r;
    *r = *again;
    *again = old;
    r->replaced = again->replaced;
    r->changes = again->changes;
    r->n_attribute_changes = again->n_attribute_changes + 1;
    r->source.borrowed = again->source.borrowed;
    again->source.borrowed = true;
    d7__reader_bind(r);
    d7__reader_bind(again);
    d7_reader_free(again);
}

static int read_anew(d7_reader *r, d7_error *err) {
    d7_reader *again = NULL;
    int rc = d7__reader_again(&again, r, err);
    if (rc == 0)
        rc = d7__reader_learn(again, err);
    if (rc != 0) {
        d7_reader_free(again);
        return rc;
    }
    become(r, again);
    return 0;
}

/* ---- refreshing ---- */

static uint64_t all_items(const d7_reader *r) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < r->header.n_datasets; i++)
        n += d7__dataset_items(&r->datasets[i]) + d7__tail_items(r, i);
    return n;
}

/* Does the file still hold what was read of it? If not it is read anew. */
static int look_for_cut(d7_reader *r, bool *ret_cut, d7_error *err) {
    uint64_t size = r->source.size;
    bool holds;
    d7__source_forget(&r->source);
    int rc = d7__reader_measure(r, err);
    if (rc == 0)
        rc = d7__mark_check(r, &holds, err);
    if (rc == 0 && (!holds || (r->state == D7_STATE_CLOSED && r->source.size != r->seen_bytes))) {
        rc = read_anew(r, err);
        *ret_cut = rc == 0;
    }
    if (rc != 0)
        r->source.size = size;
    return rc;
}

static int look_for_more(d7_reader *r, bool *ret_cut, d7_error *err) {
    int rc = 0;
    if (r->state == D7_STATE_OPEN && (r->source.size != r->seen_bytes || r->held != r->seen_held)) {
        bool more = has_more_to_tell(r);
        rc = grow(r, err);
        if (rc == 0 && r->progress.stale) {
            rc = read_anew(r, err);
            *ret_cut = rc == 0 && !more;
        }
    }
    if (rc == 0)
        rc = d7__tail_accept(r, err);
    return rc != 0 ? rc : d7__mark_set(r, err);
}

/* Another file at the path is told when it comes. */
static bool is_replaced(d7_reader *r) {
    bool same = true, was = r->replaced;
    int rc = r->io.same ? r->io.same(r->io.ctx, r->source.file, r->source.path, &same) : 0;
    r->replaced = rc == -ENOENT || (rc == 0 && !same);
    return r->replaced && !was;
}

int d7_reader_refresh(d7_reader *r, unsigned *ret_changes, d7_error *err) {
    uint64_t items = all_items(r), changed = r->n_attribute_changes;
    d7_state state = r->state;
    bool cut = false;
    int rc = look_for_cut(r, &cut, err);
    if (rc == 0 && !cut)
        rc = look_for_more(r, &cut, err);
    if (all_items(r) > items || r->n_attribute_changes != changed)
        r->changes |= D7_CHANGE_GREW;
    if (r->state == D7_STATE_CLOSED && state == D7_STATE_OPEN)
        r->changes |= D7_CHANGE_CLOSED;
    if (cut)
        r->changes |= D7_CHANGE_CUT;
    if (rc != 0)
        return rc;
    if (is_replaced(r))
        r->changes |= D7_CHANGE_REPLACED;
    r->seen_bytes = r->source.size;
    r->seen_held = r->held;
    if (ret_changes)
        *ret_changes = r->changes;
    r->changes = 0;
    return 0;
}

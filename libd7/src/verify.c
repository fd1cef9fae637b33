/* A whole file, front to back, held against the rules of the format and, beyond them, of the recordings that
 * it is used for.
 *
 * The reader is opened first: its page map says which pages there ought to be, and what it found wrong is
 * told first. Then every entry is looked at in the order of the file. Source: the D7 specification, sections
 * 1 to 6. */
#include <inttypes.h>
#include <string.h>

#include "codec.h"
#include "error.h"
#include "verify.h"

enum { SCAN_WINDOW_BYTES = 1 << 20, NARROW_DATASETS = 128 };

void d7__verify_report(d7__verifier *v, d7_problem_code code, uint64_t offset, uint32_t ds,
                       const char *text) {
    d7_problem p = d7__problem(code, offset, "%s", text);
    p.dataset_id = ds;
    d7__problems_add(&v->r->problems, &p);
}

/* ---- the header ---- */

static void check_names(d7__verifier *v) {
    const d7__header *h = &v->r->header;
    for (size_t i = 0; i < h->n_datasets; i++)
        if (d7__names_find(&h->names, h->datasets[i].name, h->datasets[i].name_bytes) != i)
            d7__verify_report(
                v, D7_PROBLEM_SAME_NAME, 0, (uint32_t)i,
                "another dataset has the same name: readers that go by names find only the first");
}

/* Last, since it is about every page. */
static void check_page_bytes(d7__verifier *v) {
    if (v->r->header.bytes_per_page != D7_PAGE_BYTES_DEFAULT)
        d7__verify_report(v, D7_PROBLEM_NARROW_READERS, D7_NO_OFFSET, D7_NO_DATASET,
                          "pages are not of 16384 bytes: some readers take that for the length of blocks and "
                          "read other values, or nothing");
}

static void check_narrow_readers(d7__verifier *v) {
    const d7_reader *r = v->r;
    if (r->data_start > D7_BLOCK_BYTES)
        d7__verify_report(v, D7_PROBLEM_NARROW_READERS, 0, D7_NO_DATASET,
                          "the header is longer than a block: some readers cannot open the file");
    for (size_t i = NARROW_DATASETS; i < r->header.n_datasets; i++) {
        if (r->datasets[i].n_pages == 0)
            continue;
        d7_problem p =
            d7__problem(D7_PROBLEM_NARROW_READERS, d7__map_offset(&r->datasets[i], 0),
                        "datasets from the %dth on have pages: some readers lose them", NARROW_DATASETS + 1);
        p.dataset_id = (uint32_t)i;
        d7__problems_add(&v->r->problems, &p);
        return;
    }
}

/* ---- entries ---- */

static int check_data(d7__verifier *v, const d7__entry *entry, d7__cursor body, d7_error *err) {
    uint64_t offset = entry->offset, dataset_id;
    if (!d7__page_dataset(body, &dataset_id)) {
        d7__verify_report(v, D7_PROBLEM_BAD_ENTRY, offset, D7_NO_DATASET,
                          "the entry is no message of this format");
        return 0;
    }
    d7__verify_island_due(v, offset);
    v->page_seen = true;
    v->sum.pages++;
    if (d7__page_log_reserve(&v->r->alloc, &v->unlisted) != 0)
        return d7__reader_no_memory(v->r, err);
    d7__page_log_add(
        &v->unlisted,
        (d7__page_ref){.offset = offset,
                       .dataset_id = dataset_id > UINT32_MAX ? UINT32_MAX : (uint32_t)dataset_id});
    return d7__verify_page(v, entry, dataset_id, err);
}

static void check_epilogue(d7__verifier *v, uint64_t offset, uint64_t next) {
    v->epilogue_seen = true;
    if (v->r->state == D7_STATE_OPEN && offset % D7_BLOCK_BYTES != 0)
        d7__verify_report(v, D7_PROBLEM_BAD_EPILOGUE, offset, D7_NO_DATASET,
                          "the epilogue does not begin a block");
    if (next < v->r->source.size)
        d7__verify_report(v, D7_PROBLEM_TRAILING_BYTES, next, D7_NO_DATASET,
                          "the file goes on after its epilogue");
}

static int check_kind(d7__verifier *v, const d7__entry *entry, d7_error *err) {
    d7__kind kind = D7__KIND_NONE;
    d7__cursor body;
    if (!d7__entry_kind(entry->data, entry->bytes, &kind, &body))
        kind = D7__KIND_NONE;
    v->index_last = kind == D7__KIND_INDEX;
    switch (kind) {
    case D7__KIND_DATA:
        return check_data(v, entry, body, err);
    case D7__KIND_INDEX:
        return d7__verify_index(v, entry, body, err);
    case D7__KIND_EPILOGUE:
        check_epilogue(v, entry->offset, entry->next);
        return 0;
    case D7__KIND_HEADER:
        d7__verify_report(v, D7_PROBLEM_HEADER_PLACE, entry->offset, D7_NO_DATASET,
                          "a header that does not begin the file");
        return 0;
    default:
        d7__verify_report(v, D7_PROBLEM_BAD_ENTRY, entry->offset, D7_NO_DATASET,
                          "the entry is no message of this format");
        return 0;
    }
}

static int check_entry(d7__verifier *v, const d7__entry *entry, d7_error *err) {
    v->sum.entries++;
    v->place = (d7_problem){.offset = entry->offset, .dataset_id = D7_NO_DATASET};
    int rc = d7__verify_sum(v, entry, err);
    if (rc == 0)
        rc = check_kind(v, entry, err);
    return rc != 0 ? rc : d7__verify_sum_place(v, err);
}

/* ---- what lies between entries ---- */

/* Entries follow one another; but after the global index there are zeros up to the epilogue, less than a
 * block. Zeros at the end of a file that somebody is writing are not there to stay. */
static void check_zeros(d7__verifier *v, uint64_t from, uint64_t to, bool after_index, bool to_end) {
    if (to - from <= (after_index ? D7_BLOCK_BYTES - 1 : 0) || (to_end && v->r->held))
        return;
    d7_problem p = d7__problem(D7_PROBLEM_ZERO_GAP, from, "%" PRIu64 " zero bytes %s", to - from,
                               to_end ? "follow the last entry" : "stand between two entries");
    d7__problems_add(&v->r->problems, &p);
}

/* Bytes between entries must be zero: padding. */
static int check_padding(d7__verifier *v, uint64_t from, uint64_t to, bool after_index, bool to_end,
                         d7_error *err) {
    for (uint64_t at = from; at < to;) {
        const uint8_t *p;
        size_t n = to - at < D7_BLOCK_BYTES ? (size_t)(to - at) : D7_BLOCK_BYTES;
        int rc = d7__source_get(&v->r->source, at, n, &p, err);
        if (rc != 0)
            return rc;
        for (size_t i = 0; i < n; i++)
            if (p[i]) {
                d7__verify_report(v, D7_PROBLEM_BAD_FRAME, at + i, D7_NO_DATASET,
                                  "bytes that belong to no entry are not zero");
                return 0;
            }
        at += n;
    }
    if (from < to)
        check_zeros(v, from, to, after_index, to_end);
    return 0;
}

static int check_found(d7__verifier *v, d7__found found, const d7__entry *entry, d7_error *err) {
    if (found == D7__FOUND_ENTRY)
        return check_entry(v, entry, err);
    if (found == D7__FOUND_BAD)
        d7__verify_report(v, D7_PROBLEM_BAD_FRAME, entry->offset, D7_NO_DATASET, entry->reason);
    return 0;
}

static int scan(d7__verifier *v, d7_progress_fn *progress, void *ctx, d7_error *err) {
    d7_reader *r = v->r;
    r->source.window_bytes = SCAN_WINDOW_BYTES;
    d7__found found = D7__FOUND_ENTRY;
    bool after_damage = false;
    for (uint64_t at = r->data_start; found != D7__FOUND_END && found != D7__FOUND_TORN;) {
        d7__entry entry;
        int rc = d7__entry_next(&r->framing, at, &found, &entry, err);
        uint64_t offset = entry.offset, next = entry.next;
        bool after_index = v->index_last;
        if (rc == 0)
            rc = check_found(v, found, &entry, err);
        if (rc == 0 && !after_damage)
            rc = check_padding(v, d7__frame_begin(at), offset, after_index, found == D7__FOUND_END, err);
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

/* Attributes of the islands are in the global index; their values may have changed since the last island. */
static void check_attributes(d7__verifier *v) {
    for (size_t i = 0; i < v->attributes.n; i++) {
        const d7_attribute *a = &v->attributes.items[i];
        if (d7__attributes_find(&v->r->attributes, a->key, a->key_bytes) != SIZE_MAX)
            continue;
        d7_problem p = d7__problem(D7_PROBLEM_BAD_ATTRIBUTE, v->r->global_index,
                                   "the global index lacks attribute \"%.100s\"", a->key);
        d7__problems_add(&v->r->problems, &p);
    }
}

/* Only of a closed file: the columns of an open one end where their last page does, each elsewhere. */
static int check_closed(d7__verifier *v, d7_error *err) {
    check_attributes(v);
    if (v->n_global > 1)
        d7__verify_report(
            v, D7_PROBLEM_NARROW_READERS, v->r->global_index, D7_NO_DATASET,
            "the global index has several entries: some readers see only the pages of the first");
    return d7__verify_columns(v, err);
}

static int check_end(d7__verifier *v, d7_error *err) {
    int rc = 0;
    for (size_t i = 0; i < v->r->header.n_datasets && rc == 0; i++)
        rc = d7__verify_passed(v, (uint32_t)i, UINT64_MAX, err);
    d7__verify_end_runs(v);
    d7__verify_last_island(v);
    if (rc == 0 && v->r->state == D7_STATE_CLOSED)
        rc = check_closed(v, err);
    if (rc == 0)
        rc = d7__verify_sums_end(v, err);
    check_page_bytes(v);
    return rc;
}

static void tell_what_opening_found(d7_reader *r, d7_problem_fn *on_problem, void *ctx) {
    for (size_t i = 0; on_problem && i < r->problems.n; i++)
        on_problem(ctx, &r->problems.items[i]);
    r->problems.tell = on_problem;
    r->problems.tell_ctx = ctx;
}

static int verify(d7__verifier *v, d7_progress_fn *progress, void *progress_ctx, d7_error *err) {
    v->columns = d7__new(&v->r->alloc, v->r->header.n_datasets * sizeof *v->columns);
    if (!v->columns)
        return d7__reader_no_memory(v->r, err);
    d7__verify_learn_columns(v);
    check_narrow_readers(v);
    check_names(v);
    int rc = d7__verify_sums_begin(v, err);
    if (rc == 0)
        rc = scan(v, progress, progress_ctx, err);
    return rc != 0 ? rc : check_end(v, err);
}

static void verifier_free(d7__verifier *v) {
    const d7_alloc *alloc = &v->r->alloc;
    for (size_t i = 0; v->columns && i < v->r->header.n_datasets; i++)
        d7__release(alloc, v->columns[i].runs);
    d7__release(alloc, v->columns);
    d7__page_log_free(alloc, &v->unlisted);
    d7__release(alloc, v->island.listed);
    d7__attributes_free(&v->attributes);
    d7__verify_sums_free(v);
}

int d7_reader_verify(d7_reader *r, d7_problem_fn *on_problem, void *problem_ctx, d7_progress_fn *progress,
                     void *progress_ctx, d7_verify_summary *ret_summary, d7_error *err) {
    d7__verifier v = {.r = r, .next_island = r->header.index_step, .span_start = r->data_start};
    size_t window = r->source.window_bytes;
    v.attributes.alloc = &r->alloc;
    v.sum =
        (d7_verify_summary){.state = r->state, .held = r->held, .file_bytes = r->source.size, .entries = 1};
    tell_what_opening_found(r, on_problem, problem_ctx);
    int rc = d7__tail_examine(r, err);
    if (rc == 0)
        rc = verify(&v, progress, progress_ctx, err);
    if (rc == 0) {
        v.sum.damages = r->problems.by_severity[D7_DAMAGE];
        v.sum.data_notes = r->problems.by_severity[D7_DATA];
        v.sum.style_notes = r->problems.by_severity[D7_STYLE];
        *ret_summary = v.sum;
    }
    r->problems.tell = NULL;
    r->source.window_bytes = window;
    verifier_free(&v);
    return rc;
}

/* Where each dataset's pages are: 8 bytes a page, in the order of the file.
 *
 * Islands and scans give pages in that order, so they are appended; a page that is told of again is found by
 * bisection. A page that was lost is put between those around it. Only other writers' indexes come out of order
 * by more than that: then the dataset is sorted once, when all are known. */
#include "error.h"
#include "reader_pages.h"

enum { MOVED_MAX = 4096 }; /* pages that are moved to put one before them */

int d7__map_start(d7_reader *r, d7_error *err) {
    size_t n = r->header.n_datasets;
    r->datasets = d7__new(&r->alloc, n * sizeof *r->datasets);
    if (!r->datasets)
        return d7__reader_no_memory(r, err);
    for (size_t i = 0; i < n; i++) {
        d7__reader_dataset *d = &r->datasets[i];
        d->items_per_page = d7_items_per_page(r->header.datasets[i].type, r->header.bytes_per_page);
        d->last_items = d->items_per_page;
    }
    return 0;
}

void d7__map_free(d7_reader *r) {
    for (size_t i = 0; r->datasets && i < r->header.n_datasets; i++) {
        d7__chunks_free(&r->alloc, &r->datasets[i].offsets);
        d7__counts_free(&r->alloc, &r->datasets[i].counts);
        d7__chunks_free(&r->alloc, &r->datasets[i].marks);
    }
    d7__release(&r->alloc, r->datasets);
    r->datasets = NULL;
}

void d7__map_clear(d7_reader *r) {
    for (size_t i = 0; i < r->header.n_datasets; i++) {
        r->datasets[i].n_pages = r->datasets[i].n_settled = 0;
        r->datasets[i].unsorted = r->datasets[i].counted = r->datasets[i].marked = false;
    }
}

void d7__map_unsettle(d7_reader *r) {
    for (size_t i = 0; i < r->header.n_datasets; i++) {
        r->datasets[i].n_pages = r->datasets[i].n_settled;
        r->datasets[i].unsorted = false;
        r->datasets[i].marked &= r->datasets[i].n_settled > 0;
        d7__counts_cut(&r->datasets[i].counts, r->datasets[i].n_settled);
    }
}

size_t d7__map_find(const d7__reader_dataset *d, uint64_t offset) {
    size_t low = 0, high = d->n_pages;
    if (high && d7__map_offset(d, high - 1) < offset)
        return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d7__map_offset(d, middle) < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool d7__map_has(const d7__reader_dataset *d, uint64_t offset) {
    size_t at = d7__map_find(d, offset);
    return at < d->n_pages && d7__map_offset(d, at) == offset;
}

int d7__map_add(d7_reader *r, uint32_t ds, uint64_t offset) {
    d7__reader_dataset *d = &r->datasets[ds];
    size_t at = d->unsorted ? d->n_pages : d7__map_find(d, offset);
    if (at < d->n_pages && d7__map_offset(d, at) == offset)
        return 0;
    if (d7__chunks_reserve(&r->alloc, &d->offsets, (d->n_pages + 1) * sizeof(uint64_t)) != 0)
        return D7_ERR_NOMEM;
    if (d->n_pages - at > MOVED_MAX) {
        d->unsorted = true;
        at = d->n_pages;
    }
    for (size_t i = d->n_pages; i > at; i--)
        *d7__chunks_u64(&d->offsets, i) = *d7__chunks_u64(&d->offsets, i - 1);
    *d7__chunks_u64(&d->offsets, at) = offset;
    d->n_pages++;
    return 0;
}

void d7__map_sort(d7_reader *r) {
    for (size_t i = 0; i < r->header.n_datasets; i++) {
        d7__reader_dataset *d = &r->datasets[i];
        if (!d->unsorted)
            continue;
        size_t kept = 0;
        d7__chunks_sort_u64(&d->offsets, 0, d->n_pages);
        for (size_t k = 0; k < d->n_pages; k++)
            if (kept == 0 || d7__map_offset(d, k) != d7__map_offset(d, kept - 1))
                *d7__chunks_u64(&d->offsets, kept++) = d7__map_offset(d, k);
        d->n_pages = kept;
        d->unsorted = false;
    }
}

static uint64_t first_hole(const d7_reader *r) {
    uint64_t from = 0;
    for (size_t i = 0; i < r->n_holes; i++)
        from = from == 0 || r->holes[i].from < from ? r->holes[i].from : from;
    return from;
}

/* The page that breaks off where a hole begins is still at its place. */
void d7__map_cut(d7_reader *r) {
    uint64_t from = first_hole(r);
    bool any = false;
    r->unplaced_from = from ? from + 1 : 0;
    for (size_t i = 0; from && i < r->header.n_datasets; i++) {
        d7__reader_dataset *d = &r->datasets[i];
        size_t n = d7__map_find(d, r->unplaced_from);
        n = n > d->n_settled ? n : d->n_settled;
        any |= n < d->n_pages;
        d->n_pages = n;
    }
    if (!any)
        return;
    d7_problem p = d7__problem(
        D7_PROBLEM_UNPLACED, from,
        "pages may be missing here, and no index tells of them: items behind have no known numbers "
        "and are not read; d7 repair tells what is lost");
    d7__problems_add(&r->problems, &p);
}

/* ---- all pages in the order of the file ---- */

static uint64_t next_offset(const d7__map_walk *w, uint32_t ds) {
    return d7__map_offset(&w->r->datasets[ds], w->next[ds]);
}

/* Puts what is at `at` of the heap, and may come too late there, where it belongs. */
static void sift(d7__map_walk *w, size_t at) {
    uint32_t ds = w->heap[at];
    for (size_t child; (child = 2 * at + 1) < w->n_heap; at = child) {
        if (child + 1 < w->n_heap && next_offset(w, w->heap[child + 1]) < next_offset(w, w->heap[child]))
            child++;
        if (next_offset(w, ds) <= next_offset(w, w->heap[child]))
            break;
        w->heap[at] = w->heap[child];
    }
    w->heap[at] = ds;
}

int d7__map_walk_begin(d7__map_walk *w, const d7_reader *r) {
    size_t n = r->header.n_datasets;
    *w = (d7__map_walk){.r = r};
    w->next = d7__new(&r->alloc, n * sizeof *w->next);
    w->heap = d7__new(&r->alloc, n * sizeof *w->heap);
    if (!w->next || !w->heap)
        return D7_ERR_NOMEM;
    for (uint32_t ds = 0; ds < n; ds++)
        if (r->datasets[ds].n_pages)
            w->heap[w->n_heap++] = ds;
    for (size_t at = w->n_heap / 2; at-- > 0;)
        sift(w, at);
    return 0;
}

bool d7__map_walk_next(d7__map_walk *w, d7__page_ref *ret_page, size_t *ret_number) {
    if (w->n_heap == 0)
        return false;
    uint32_t ds = w->heap[0];
    *ret_page = (d7__page_ref){.offset = next_offset(w, ds), .dataset_id = ds};
    *ret_number = w->next[ds]++;
    if (w->next[ds] == w->r->datasets[ds].n_pages)
        w->heap[0] = w->heap[--w->n_heap];
    if (w->n_heap)
        sift(w, 0);
    return true;
}

void d7__map_walk_end(d7__map_walk *w) {
    if (!w->r)
        return;
    d7__release(&w->r->alloc, w->next);
    d7__release(&w->r->alloc, w->heap);
}

int d7__map_list(const d7_reader *r, const d7_alloc *a, d7__page_log *log) {
    d7__map_walk w;
    d7__page_ref page;
    size_t number;
    int rc = d7__map_walk_begin(&w, r);
    while (rc == 0 && d7__map_walk_next(&w, &page, &number)) {
        rc = d7__page_log_reserve(a, log);
        if (rc == 0)
            d7__page_log_add(log, page);
    }
    d7__map_walk_end(&w);
    return rc;
}

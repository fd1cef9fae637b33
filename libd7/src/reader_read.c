/* Values by item range.
 *
 * A reading is planned as pages in the order of the file, over all datasets that are asked for, some
 * hundred at a time. Whole pages are decoded by the lanes, straight to where their values belong. What is
 * left over, because only a part of a page is wanted or because it is not as it should be, is done here
 * after that, one page after the other: so whatever there is to say is said in the same order for any
 * number of lanes. */
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "reader_pages.h"

/* A page held another number of items than the map said. */
enum { UNEXPECTED_LENGTH = 1 };

/* A page that holds more items than the map says is of unexpected length, or damaged: counting again would
 * not tell more of it then. */
static int longer_page(d7_reader *r, const d7__page_task *t, const d7__entry *entry, d7_error *err) {
    size_t n;
    int rc = d7__page_count_entry(r, t->dataset_id, t->page, entry, &n, err);
    return rc != 0 ? rc : UNEXPECTED_LENGTH;
}

/* Reads those items of one page that are wanted. Returns 0; UNEXPECTED_LENGTH; an error. */
static int read_page_part(d7_reader *r, const d7__page_task *t, d7_error *err) {
    const d7__reader_dataset *d = &r->datasets[t->dataset_id];
    uint64_t first = d7__page_first_item(d, t->page);
    size_t size = d7_type_size(r->header.datasets[t->dataset_id].type), n = 0;
    bool cached = r->page_items && r->page_dataset == t->dataset_id && r->page_number == t->page;
    d7__entry entry;
    if (t->condemned)
        return d7__page_say_condemned(r, t->dataset_id, t->page, err);
    int rc = cached ? 0 : d7__page_entry(r, t->dataset_id, t->page, &entry, err);
    if (rc == 0 && !cached && t->end - t->from == t->items) {
        rc = d7__page_decode_entry(r, t->dataset_id, t->page, &entry, t->out, t->items, &n, err);
        if (rc == D7_ERR_LIMIT)
            return longer_page(r, t, &entry, err);
        return rc == 0 && n != t->items ? UNEXPECTED_LENGTH : rc;
    }
    if (rc == 0 && !cached)
        rc = d7__page_decode_to_cache(r, t->dataset_id, t->page, &entry, t->items, err);
    if (rc != 0)
        return rc == D7_ERR_LIMIT ? longer_page(r, t, &entry, err) : rc;
    if (r->page_items != t->items) {
        r->page_items = 0;
        return UNEXPECTED_LENGTH;
    }
    memcpy(t->out, r->page.data + (size_t)(t->from - first) * size, (size_t)(t->end - t->from) * size);
    return 0;
}

/* ---- planning ---- */

/* Where the next page is; UINT64_MAX: there are no more. */
static uint64_t want_offset(const d7__reader_dataset *d, const d7__want *w) {
    return w->next_page == w->end_page ? UINT64_MAX : d7__map_offset(d, w->next_page);
}

/* Which pages a range takes. */
static int begin_want(d7_reader *r, d7__want *w, d7_error *err) {
    const d7__reader_dataset *d = &r->datasets[w->dataset_id];
    uint64_t paged = d7__dataset_items(d), items = paged + d7__tail_items(r, w->dataset_id);
    if (w->from > items || w->n > items - w->from)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET,
                        "%s: dataset %s holds %" PRIu64 " items, asked for %zu from %" PRIu64, r->source.path,
                        r->header.datasets[w->dataset_id].name, items, w->n, w->from);
    size_t in_pages = w->from >= paged ? 0 : w->n < paged - w->from ? w->n : (size_t)(paged - w->from);
    w->next_page = w->end_page = 0;
    if (in_pages) {
        w->next_page = d7__page_of_item(d, w->from);
        w->end_page = d7__page_of_item(d, w->from + in_pages - 1) + 1;
    }
    w->next_offset = want_offset(d, w);
    if (in_pages < w->n)
        d7__tail_values(r, w->dataset_id, w->from + in_pages - paged, w->n - in_pages,
                        w->out + in_pages * d7_type_size(r->header.datasets[w->dataset_id].type));
    return 0;
}

/* The ranges are a heap: the one whose next page comes first in the file is wants[0]. Restores that below i. */
static void sift(d7__want *wants, size_t n, size_t i) {
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && wants[child + 1].next_offset < wants[child].next_offset)
            child++;
        if (wants[i].next_offset <= wants[child].next_offset)
            return;
        d7__want w = wants[i];
        wants[i] = wants[child];
        wants[child] = w;
    }
}

static d7__page_task next_task(const d7_reader *r, d7__want *w) {
    const d7__reader_dataset *d = &r->datasets[w->dataset_id];
    size_t page = w->next_page++;
    uint64_t first = d7__page_first_item(d, page), n = d7__page_items(d, page), end = w->from + w->n;
    d7__page_task t = {.dataset_id = w->dataset_id,
                       .page = page,
                       .offset = d7__map_offset(d, page),
                       .items = (size_t)n,
                       .condemned = d7__page_is_condemned(d, page),
                       .from = w->from > first ? w->from : first,
                       .end = end < first + n ? end : first + n};
    t.out = w->out + (size_t)(t.from - w->from) * d7_type_size(r->header.datasets[w->dataset_id].type);
    w->next_offset = want_offset(d, w);
    return t;
}

/* ---- reading ---- */

/* What the lanes left, in order. Returns 0; UNEXPECTED_LENGTH; an error that stops the reading. The first damage
 * goes to *damage and err. */
static int settle(d7_reader *r, const d7__page_task *tasks, size_t n, int *damage, d7_error *err) {
    for (size_t i = 0; i < n; i++) {
        const d7__page_task *t = &tasks[i];
        d7_error e;
        if (t->done)
            continue;
        int rc = t->failure ? t->failure->code : read_page_part(r, t, &e);
        if (rc == UNEXPECTED_LENGTH)
            return rc;
        if (rc != 0 && err && (rc != D7_ERR_CORRUPT || !*damage))
            *err = t->failure ? *t->failure : e;
        if (rc == D7_ERR_CORRUPT)
            *damage = rc;
        else if (rc != 0)
            return rc;
    }
    return 0;
}

int d7__reader_read_wants(d7_reader *r, d7__want *wants, size_t n, bool *ret_recounted, d7_error *err) {
    int damage = 0, rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = begin_want(r, &wants[i], err);
    for (size_t i = n / 2; i-- > 0 && rc == 0;)
        sift(wants, n, i);
    d7__page_task *tasks = rc == 0 ? d7__lanes_tasks(r) : NULL;
    if (rc != 0 || !tasks)
        return rc != 0 ? rc : d7__reader_no_memory(r, err);
    while (rc == 0) {
        size_t n_tasks = 0;
        for (; n_tasks < D7__TASKS_MAX && wants[0].next_offset != UINT64_MAX; sift(wants, n, 0))
            tasks[n_tasks++] = next_task(r, &wants[0]);
        if (n_tasks == 0)
            return damage;
        rc = d7__lanes_decode(r, n_tasks, err);
        if (rc == 0)
            rc = settle(r, tasks, n_tasks, &damage, err);
        if (rc == UNEXPECTED_LENGTH) {
            *ret_recounted = true;
            return d7__recount(r, err);
        }
    }
    return rc;
}

int d7__reader_pages_change(const d7_reader *r, d7_error *err) {
    return d7__fail(err, D7_ERR_CORRUPT, 0, D7_NO_OFFSET, "%s: pages change while they are read",
                    r->source.path);
}

int d7_reader_read(d7_reader *r, uint32_t dataset_id, uint64_t from, size_t n, void *out, d7_error *err) {
    if (dataset_id >= r->header.n_datasets || (n && !out))
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET,
                        "%s: there is no dataset %" PRIu32 ", or no room for values", r->source.path,
                        dataset_id);
    d7__want want = {.dataset_id = dataset_id, .from = from, .n = n, .out = out};
    for (int i = 0; i < 2; i++) {
        bool recounted = false;
        int rc = d7__reader_read_wants(r, &want, 1, &recounted, err);
        if (rc != 0 || !recounted)
            return rc;
    }
    return d7__reader_pages_change(r, err);
}

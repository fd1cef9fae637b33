/* The page map's items, and single pages.
 *
 * Pages are full but for a dataset's last, so item i is in page i / items_per_page. A page of another writer
 * may hold another number: the first one met makes the reader count the dataset, after which prefix sums tell
 * where items are. A damaged page keeps its place: its items are counted as a full page's and are an error to
 * read. */
#include "reader_pages.h"

#include <inttypes.h>
#include <stdio.h>

#include "codec.h"
#include "error.h"
#include "kernels.h"
#include "unframed.h"

/* ---- where items are ---- */

int d7__counts_add(const d7_alloc *a, d7__counts *c, size_t items) {
    size_t block = c->n / D7__SUM_PAGES;
    if (d7__chunks_reserve(a, &c->items, (c->n + 1) * sizeof(uint32_t)) != 0 ||
        d7__chunks_reserve(a, &c->sums, (block + 1) * sizeof(uint64_t)) != 0)
        return D7_ERR_NOMEM;
    if (c->n % D7__SUM_PAGES == 0)
        *d7__chunks_u64(&c->sums, block) = c->sum;
    *d7__chunks_u32(&c->items, c->n++) = (uint32_t)items;
    c->sum += items;
    return 0;
}

uint64_t d7__counts_before(const d7__counts *c, size_t page) {
    if (page >= c->n)
        return c->sum;
    uint64_t before = *d7__chunks_u64(&c->sums, page / D7__SUM_PAGES);
    for (size_t i = page / D7__SUM_PAGES * D7__SUM_PAGES; i < page; i++)
        before += *d7__chunks_u32(&c->items, i);
    return before;
}

void d7__counts_cut(d7__counts *c, size_t n) {
    c->sum = d7__counts_before(c, n);
    c->n = n < c->n ? n : c->n;
}

void d7__counts_free(const d7_alloc *a, d7__counts *c) {
    d7__chunks_free(a, &c->items);
    d7__chunks_free(a, &c->sums);
    c->n = 0;
    c->sum = 0;
}

uint64_t d7__page_first_item(const d7__reader_dataset *d, size_t page) {
    return d->counted ? d7__counts_before(&d->counts, page) : (uint64_t)page * d->items_per_page;
}

uint64_t d7__page_items(const d7__reader_dataset *d, size_t page) {
    if (d->counted && page < d->counts.n)
        return *d7__chunks_u32(&d->counts.items, page);
    return page + 1 == d->n_pages ? d->last_items : d->items_per_page;
}

uint64_t d7__dataset_items(const d7__reader_dataset *d) {
    return d->n_pages ? d7__page_first_item(d, d->n_pages - 1) + d7__page_items(d, d->n_pages - 1) : 0;
}

size_t d7__page_of_item(const d7__reader_dataset *d, uint64_t item) {
    if (!d->counted)
        return (size_t)(item / d->items_per_page);
    const d7__counts *c = &d->counts;
    size_t low = 0, high = (c->n + D7__SUM_PAGES - 1) / D7__SUM_PAGES;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (*d7__chunks_u64(&c->sums, middle) <= item)
            low = middle;
        else
            high = middle;
    }
    size_t page = low * D7__SUM_PAGES;
    uint64_t end = *d7__chunks_u64(&c->sums, low);
    while (page + 1 < c->n && (end += *d7__chunks_u32(&c->items, page)) <= item)
        page++;
    return page;
}

/* ---- damage ---- */

enum { MARK_BITS = 2, MARKS_A_BYTE = 8 / MARK_BITS };

static unsigned mark_of(const d7__reader_dataset *d, size_t page) {
    if (!d->marked)
        return D7__PAGE_GOOD;
    return *d7__chunks_u8(&d->marks, page / MARKS_A_BYTE) >> page % MARKS_A_BYTE * MARK_BITS & 3;
}

int d7__page_mark(d7_reader *r, uint32_t ds, size_t page, unsigned mark) {
    d7__reader_dataset *d = &r->datasets[ds];
    size_t bytes = (d->n_pages + MARKS_A_BYTE - 1) / MARKS_A_BYTE;
    if (!d->marked) {
        if (d7__chunks_reserve(&r->alloc, &d->marks, bytes) != 0)
            return D7_ERR_NOMEM;
        for (size_t i = 0; i < bytes; i++)
            *d7__chunks_u8(&d->marks, i) = 0;
        d->marked = true;
    }
    uint8_t *byte = d7__chunks_u8(&d->marks, page / MARKS_A_BYTE);
    unsigned shift = (unsigned)(page % MARKS_A_BYTE * MARK_BITS);
    *byte = (uint8_t)((*byte & ~(3u << shift)) | mark << shift);
    return 0;
}

int d7__page_mark_more(d7_reader *r, uint32_t ds) {
    d7__reader_dataset *d = &r->datasets[ds];
    size_t bytes = (d->n_pages + MARKS_A_BYTE - 1) / MARKS_A_BYTE;
    if (!d->marked)
        return 0;
    if (d7__chunks_reserve(&r->alloc, &d->marks, bytes) != 0)
        return D7_ERR_NOMEM;
    for (size_t i = (d->n_settled + MARKS_A_BYTE - 1) / MARKS_A_BYTE; i < bytes; i++)
        *d7__chunks_u8(&d->marks, i) = 0;
    for (size_t i = d->n_settled; i < d->n_pages && i % MARKS_A_BYTE; i++)
        if (d7__page_mark(r, ds, i, D7__PAGE_GOOD) != 0)
            return D7_ERR_NOMEM;
    return 0;
}

bool d7__page_is_damaged(const d7__reader_dataset *d, size_t page) {
    return mark_of(d, page) != D7__PAGE_GOOD;
}

/* ---- one page ---- */

/* Marks a page as damaged, makes it a problem the first time, and says it in err. */
static int damaged_page(d7_reader *r, uint32_t ds, size_t page, const char *reason, d7_error *err) {
    d7__reader_dataset *d = &r->datasets[ds];
    uint64_t first = d7__page_first_item(d, page), n = page + 1 == d->n_pages ? 0 : d7__page_items(d, page);
    uint64_t offset = d7__map_offset(d, page);
    d7_problem p = d7__problem(D7_PROBLEM_BAD_PAGE, offset, "%s", reason);
    p.dataset_id = ds;
    p.first_item = first;
    p.n_items = n;
    if (!d7__page_is_damaged(d, page)) {
        if (d7__page_mark(r, ds, page, D7__PAGE_DAMAGED) != 0)
            return d7__reader_no_memory(r, err);
        d7__problems_add(&r->problems, &p);
    }
    return d7__fail(err, D7_ERR_CORRUPT, 0, offset,
                    "%s: dataset %s, page %zu (items from %" PRIu64 ") at byte %" PRIu64 " is damaged: %s",
                    r->source.path, r->header.datasets[ds].name, page, first, offset, reason);
}

int d7__page_condemn(d7_reader *r, uint32_t ds, size_t page, const char *reason, d7_error *err) {
    d7_error failure;
    int rc = damaged_page(r, ds, page, reason, &failure);
    if (rc != D7_ERR_CORRUPT)
        return d7__passed_on(rc, &failure, err);
    return d7__page_mark(r, ds, page, D7__PAGE_CONDEMNED) == 0 ? 0 : d7__reader_no_memory(r, err);
}

bool d7__page_is_condemned(const d7__reader_dataset *d, size_t page) {
    return mark_of(d, page) == D7__PAGE_CONDEMNED;
}

int d7__page_say_condemned(d7_reader *r, uint32_t ds, size_t page, d7_error *err) {
    return damaged_page(r, ds, page, "bytes in it have changed since it was written", err);
}

static const char *not_found_reason(d7__found found, const d7__entry *entry) {
    return found == D7__FOUND_BAD ? entry->reason : "the file ends inside it";
}

int d7__page_entry(d7_reader *r, uint32_t ds, size_t page, d7__entry *ret_entry, d7_error *err) {
    d7__found found;
    int rc = d7__entry_at(&r->framing, d7__map_offset(&r->datasets[ds], page), &found, ret_entry, err);
    if (rc == 0 && found != D7__FOUND_ENTRY)
        return damaged_page(r, ds, page, not_found_reason(found, ret_entry), err);
    return rc;
}

/* Is the entry that was read a page of this dataset? */
static int check_page_id(d7_reader *r, uint32_t ds, size_t page, uint32_t id, d7_error *err) {
    char reason[64];
    if (id == ds)
        return 0;
    snprintf(reason, sizeof reason, "the page is of dataset %" PRIu32, id);
    return damaged_page(r, ds, page, reason, err);
}

int d7__page_count_entry(d7_reader *r, uint32_t ds, size_t page, const d7__entry *entry, size_t *ret_n,
                         d7_error *err) {
    d7_type type = r->header.datasets[ds].type;
    uint32_t id;
    d7_error reason;
    if (d7_page_count(type, entry->data, entry->bytes, &id, ret_n, &reason) != 0)
        return damaged_page(r, ds, page, reason.text, err);
    size_t most = r->framing.unframed ? D7__UNFRAMED_PAGE_MAX : D7_PAGE_BYTES_MAX;
    if (*ret_n > most / d7_type_size(type))
        return damaged_page(r, ds, page, "it holds more items than the largest page", err);
    return check_page_id(r, ds, page, id, err);
}

int d7__page_decode_entry(d7_reader *r, uint32_t ds, size_t page, const d7__entry *entry, void *out,
                          size_t cap, size_t *ret_n, d7_error *err) {
    uint32_t id;
    d7_error reason;
    int rc =
        d7_page_decode(r->header.datasets[ds].type, entry->data, entry->bytes, out, cap, &id, ret_n, &reason);
    if (rc == D7_ERR_CORRUPT)
        return damaged_page(r, ds, page, reason.text, err);
    return rc != 0 ? rc : check_page_id(r, ds, page, id, err);
}

int d7__page_decode_to_cache(d7_reader *r, uint32_t ds, size_t page, const d7__entry *entry, size_t cap,
                             d7_error *err) {
    size_t bytes = cap * d7_type_size(r->header.datasets[ds].type), n = 0;
    r->page_items = 0;
    r->page.n = 0;
    if (d7__buffer_reserve(&r->alloc, &r->page, bytes) != 0)
        return d7__reader_no_memory(r, err);
    int rc = d7__page_decode_entry(r, ds, page, entry, r->page.data, cap, &n, err);
    if (rc == 0) {
        r->page_dataset = ds;
        r->page_number = page;
        r->page_items = n;
    }
    return rc;
}

/* ---- getters ---- */

uint64_t d7_reader_pages(const d7_reader *r) {
    uint64_t n = 0;
    for (size_t i = 0; i < r->header.n_datasets; i++)
        n += r->datasets[i].n_pages;
    return n;
}

int d7_reader_dataset(const d7_reader *r, uint32_t dataset_id, d7_dataset_info *ret_info) {
    if (dataset_id >= r->header.n_datasets)
        return D7_ERR_ARG;
    const d7__toc_item *item = &r->header.datasets[dataset_id];
    *ret_info = (d7_dataset_info){.name = item->name,
                                  .name_bytes = item->name_bytes,
                                  .type = item->type,
                                  .items = d7__dataset_items(&r->datasets[dataset_id]) +
                                           d7__tail_items(r, dataset_id),
                                  .paged_items = d7__dataset_items(&r->datasets[dataset_id]),
                                  .pages = r->datasets[dataset_id].n_pages,
                                  .shape = item->shape,
                                  .rank = item->rank};
    return 0;
}

int d7_reader_page(const d7_reader *r, uint32_t dataset_id, uint64_t page, d7_page_info *ret_page) {
    if (dataset_id >= r->header.n_datasets || page >= r->datasets[dataset_id].n_pages)
        return D7_ERR_ARG;
    const d7__reader_dataset *d = &r->datasets[dataset_id];
    size_t i = (size_t)page;
    *ret_page = (d7_page_info){.offset = d7__map_offset(d, i),
                               .first_item = d7__page_first_item(d, i),
                               .n_items = d7__page_items(d, i),
                               .damaged = d7__page_is_damaged(d, i)};
    return 0;
}

int d7_reader_find_page(const d7_reader *r, uint32_t dataset_id, uint64_t item, uint64_t *ret_page) {
    if (dataset_id >= r->header.n_datasets || item >= d7__dataset_items(&r->datasets[dataset_id]))
        return D7_ERR_ARG;
    *ret_page = d7__page_of_item(&r->datasets[dataset_id], item);
    return 0;
}

/* ---- seams ---- */

/* Fields behind a message that no writer appends in such numbers. */
enum { FIELDS_BEHIND_MAX = 4 };

static bool many_fields(d7__cursor c) {
    d7__field f;
    int n = 0;
    while (c.at < c.end && d7__get_field(&c, &f))
        n++;
    return n > FIELDS_BEHIND_MAX;
}

bool d7__page_is_seam(const d7_reader *r, uint32_t ds, const d7__entry *entry) {
    d7__head head;
    uint32_t id;
    size_t n;
    if (r->framing.unframed || !d7__head_parse(entry->data, entry->bytes, &head) ||
        head.head_bytes + head.body_bytes >= entry->bytes)
        return false;
    d7__cursor behind = {entry->data + head.head_bytes + head.body_bytes, entry->data + entry->bytes};
    return many_fields(behind) ||
           d7_page_count(r->header.datasets[ds].type, entry->data, entry->bytes, &id, &n, NULL) != 0;
}

/* ---- pages of another dataset ---- */

/* The values of a page, as writers put them; *ret_named: it says whose it is. False: they are in several pieces, or there are none. */
static bool payload_of(const d7__entry *entry, d7__field *ret, bool *ret_named) {
    d7__kind kind;
    d7__cursor body;
    d7__field f;
    size_t n = 0;
    *ret_named = false;
    if (!d7__entry_kind(entry->data, entry->bytes, &kind, &body) || kind != D7__KIND_DATA)
        return false;
    while (body.at < body.end && d7__get_field(&body, &f)) {
        *ret_named |= f.number == 1;
        if (f.number < 4 || f.number > 8 || f.wire_type != D7__BYTES)
            continue;
        n++;
        *ret = f;
    }
    return n == 1;
}

static bool is_just_full(const d7_reader *r, uint32_t ds, const d7__field *values) {
    d7_type type = r->header.datasets[ds].type;
    size_t full = r->datasets[ds].items_per_page;
    if (values->number != d7__payload_field(type))
        return false;
    return d7__payload_is_raw(type) ? values->n_bytes == full * d7_type_size(type)
                                    : 1 + d7__kernels_best()->count(values->bytes, values->n_bytes) == full;
}

bool d7__page_is_of_other(const d7_reader *r, uint32_t ds, const d7__entry *entry) {
    d7_type type = r->header.datasets[ds].type;
    d7__field values = {0};
    size_t n;
    uint32_t id;
    bool named, whole = payload_of(entry, &values, &named);
    if (r->framing.unframed || (named && (!whole || values.number == d7__payload_field(type))))
        return false;
    bool good = d7_page_count(type, entry->data, entry->bytes, &id, &n, NULL) == 0;
    if (!good && !named)
        return true;
    if (!whole || values.number == d7__payload_field(type) || (good && n == r->datasets[ds].items_per_page))
        return false;
    for (uint32_t i = 0; i < r->header.n_datasets; i++)
        if (i != ds && is_just_full(r, i, &values))
            return true;
    return false;
}

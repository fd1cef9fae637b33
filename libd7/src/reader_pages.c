/* The page map, and values by item range.
 *
 * Pages are full but for a dataset's last, so item i is in page i / items_per_page. A page of another writer
 * may hold another number: the first one met makes the reader count the dataset, after which prefix sums tell
 * where items are. A damaged page keeps its place: its items are counted as a full page's and are an error to
 * read. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec.h"
#include "error.h"
#include "reader.h"

/* ---- where items are ---- */

static uint64_t page_first_item(const d7__reader_dataset *d, size_t page) {
    return d->first_items ? d->first_items[page] : (uint64_t)page * d->items_per_page;
}

static uint64_t page_items(const d7__reader_dataset *d, size_t page) {
    if (d->first_items)
        return d->first_items[page + 1] - d->first_items[page];
    return page + 1 == d->n_pages ? d->last_items : d->items_per_page;
}

static uint64_t dataset_items(const d7__reader_dataset *d) {
    return d->n_pages ? page_first_item(d, d->n_pages - 1) + page_items(d, d->n_pages - 1) : 0;
}

/* The page that holds an item that there is. */
static size_t page_of_item(const d7__reader_dataset *d, uint64_t item) {
    if (!d->first_items)
        return (size_t)(item / d->items_per_page);
    size_t low = 0, high = d->n_pages;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (d->first_items[middle] <= item)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- one page ---- */

/* Marks a page as damaged, makes it a problem the first time, and says it in err. */
static int damaged_page(d7_reader *r, uint32_t ds, size_t page, const char *reason, d7_error *err) {
    d7__reader_dataset *d = &r->datasets[ds];
    uint64_t first = page_first_item(d, page), n = page + 1 == d->n_pages ? 0 : page_items(d, page);
    d7_problem p = d7__problem(D7_PROBLEM_BAD_PAGE, d->offsets[page], "%s", reason);
    p.dataset_id = ds;
    p.first_item = first;
    p.n_items = n;
    if (!d->damaged)
        d->damaged = d7__new(&r->alloc, d->n_pages);
    if (!d->damaged)
        return d7__reader_no_memory(r, err);
    if (!d->damaged[page])
        d7__problems_add(&r->problems, &p);
    d->damaged[page] = 1;
    return d7__fail(err, D7_ERR_CORRUPT, 0, d->offsets[page],
                    "%s: dataset %s, page %zu (items from %" PRIu64 ") at byte %" PRIu64 " is damaged: %s",
                    r->source.path, r->header.datasets[ds].name, page, first, d->offsets[page], reason);
}

static const char *not_found_reason(d7__found found, const d7__entry *entry) {
    return found == D7__FOUND_BAD ? entry->reason : "the file ends inside it";
}

/* Reads a page's entry. Returns 0; D7_ERR_CORRUPT: damaged; other errors. */
static int page_entry(d7_reader *r, uint32_t ds, size_t page, d7__entry *ret_entry, d7_error *err) {
    d7__found found;
    int rc = d7__entry_at(&r->framing, r->datasets[ds].offsets[page], &found, ret_entry, err);
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

/* Counts the items of a page's entry. Returns as page_entry(). */
static int count_entry(d7_reader *r, uint32_t ds, size_t page, const d7__entry *entry, size_t *ret_n,
                       d7_error *err) {
    d7_type type = r->header.datasets[ds].type;
    uint32_t id;
    d7_error reason;
    if (d7_page_count(type, entry->data, entry->bytes, &id, ret_n, &reason) != 0)
        return damaged_page(r, ds, page, reason.text, err);
    if (*ret_n > D7_PAGE_BYTES_MAX / d7_type_size(type))
        return damaged_page(r, ds, page, "it holds more items than the largest page", err);
    return check_page_id(r, ds, page, id, err);
}

/* Decodes a page's entry into out, which takes `cap` items. D7_ERR_LIMIT: it holds more. Else as
 * page_entry(). */
static int decode_entry(d7_reader *r, uint32_t ds, size_t page, const d7__entry *entry, void *out, size_t cap,
                        size_t *ret_n, d7_error *err) {
    uint32_t id;
    d7_error reason;
    int rc =
        d7_page_decode(r->header.datasets[ds].type, entry->data, entry->bytes, out, cap, &id, ret_n, &reason);
    if (rc == D7_ERR_CORRUPT)
        return damaged_page(r, ds, page, reason.text, err);
    return rc != 0 ? rc : check_page_id(r, ds, page, id, err);
}

/* Decodes a page's entry of up to `cap` items into r->page. Returns as decode_entry(). */
static int decode_to_cache(d7_reader *r, uint32_t ds, size_t page, const d7__entry *entry, size_t cap,
                           d7_error *err) {
    size_t bytes = cap * d7_type_size(r->header.datasets[ds].type), n = 0;
    r->page_items = 0;
    r->page.n = 0;
    if (d7__buffer_reserve(&r->alloc, &r->page, bytes) != 0)
        return d7__reader_no_memory(r, err);
    int rc = decode_entry(r, ds, page, entry, r->page.data, cap, &n, err);
    if (rc == 0) {
        r->page_dataset = ds;
        r->page_number = page;
        r->page_items = n;
    }
    return rc;
}

/* ---- counting ---- */

typedef struct counting {
    bool decode; /* decode each page too, which finds all damage */
    d7_progress_fn *progress;
    void *ctx;
    uint64_t done, total; /* bytes, for progress */
} counting;

/* Looks at one page; *ret_n is 0 for a damaged last page and a full page's for any other damaged one. */
static int count_or_guess(d7_reader *r, uint32_t ds, size_t page, bool decode, size_t *ret_n, d7_error *err) {
    const d7__reader_dataset *d = &r->datasets[ds];
    d7__entry entry;
    int rc = page_entry(r, ds, page, &entry, err);
    if (rc == 0)
        rc = count_entry(r, ds, page, &entry, ret_n, err);
    if (rc == 0 && decode)
        rc = decode_to_cache(r, ds, page, &entry, *ret_n, err);
    if (rc == D7_ERR_CORRUPT) {
        *ret_n = page + 1 == d->n_pages ? 0 : d->items_per_page;
        rc = 0;
    }
    return rc;
}

/* Takes new prefix sums, or the knowledge that all pages but the last are full. */
static void set_counts(d7_reader *r, uint32_t ds, uint64_t *sums, bool regular) {
    d7__reader_dataset *d = &r->datasets[ds];
    d->last_items = (size_t)(sums[d->n_pages] - sums[d->n_pages - 1]);
    d7__release(&r->alloc, d->first_items);
    d->first_items = regular ? NULL : sums;
    if (regular) {
        d7__release(&r->alloc, sums);
        return;
    }
    d7_problem p =
        d7__problem(D7_PROBLEM_PAGE_LENGTH, d->offsets[0],
                    "pages before the last do not all hold %zu items; they were counted", d->items_per_page);
    p.dataset_id = ds;
    d7__problems_add(&r->problems, &p);
}

static int count_dataset(d7_reader *r, uint32_t ds, counting *c, d7_error *err) {
    d7__reader_dataset *d = &r->datasets[ds];
    if (d->n_pages == 0)
        return 0;
    uint64_t *sums = d7__new(&r->alloc, (d->n_pages + 1) * sizeof *sums);
    if (!sums)
        return d7__reader_no_memory(r, err);
    bool regular = true;
    int rc = 0;
    for (size_t i = 0; i < d->n_pages && rc == 0; i++) {
        size_t n = 0;
        rc = count_or_guess(r, ds, i, c->decode, &n, err);
        sums[i + 1] = sums[i] + n;
        regular = regular && (i + 1 == d->n_pages ? n <= d->items_per_page : n == d->items_per_page);
        c->done += n * d7_type_size(r->header.datasets[ds].type);
        if (rc == 0 && c->progress && i % 64 == 0 && c->progress(c->ctx, c->done, c->total) != 0)
            rc = d7__fail(err, D7_ERR_CANCELLED, 0, D7_NO_OFFSET, "%s: stopped", r->source.path);
    }
    if (rc == 0)
        set_counts(r, ds, sums, regular);
    else
        d7__release(&r->alloc, sums);
    return rc;
}

/* What a look at the first and the last page tells: how many items the last one holds, and whether pages are
 * full. */
static int look_at_ends(d7_reader *r, uint32_t ds, d7_error *err) {
    d7__reader_dataset *d = &r->datasets[ds];
    if (d->n_pages == 0)
        return 0;
    size_t last = 0, first = d->items_per_page;
    int rc = count_or_guess(r, ds, d->n_pages - 1, false, &last, err);
    if (rc == 0 && d->n_pages > 1)
        rc = count_or_guess(r, ds, 0, false, &first, err);
    if (rc != 0)
        return rc;
    d->last_items = last;
    if (first == d->items_per_page && last <= d->items_per_page)
        return 0;
    return count_dataset(r, ds, &(counting){0}, err);
}

int d7__reader_map_pages(d7_reader *r, d7_error *err) {
    int rc = 0;
    d7__map_sort(r);
    for (size_t i = 0; i < r->header.n_datasets && rc == 0; i++)
        rc = look_at_ends(r, (uint32_t)i, err);
    return rc;
}

int d7__reader_check_page(d7_reader *r, uint32_t ds, size_t page, const d7__entry *entry, d7_error *err) {
    const d7__reader_dataset *d = &r->datasets[ds];
    d7__entry read;
    size_t n = 0;
    int rc = entry ? 0 : page_entry(r, ds, page, &read, err);
    entry = entry ? entry : &read;
    if (rc == 0)
        rc = count_entry(r, ds, page, entry, &n, err);
    if (rc == 0)
        rc = decode_to_cache(r, ds, page, entry, n, err);
    if (rc != 0)
        return rc == D7_ERR_CORRUPT ? 0 : rc;
    if (n > d->items_per_page || (n < d->items_per_page && page + 1 < d->n_pages)) {
        d7_problem p = d7__problem(D7_PROBLEM_PAGE_LENGTH, d->offsets[page],
                                   "the page holds %zu items, not %zu", n, d->items_per_page);
        p.dataset_id = ds;
        p.first_item = page_first_item(d, page);
        p.n_items = n;
        d7__problems_add(&r->problems, &p);
    }
    return 0;
}

int d7_reader_check(d7_reader *r, d7_progress_fn *progress, void *ctx, d7_error *err) {
    counting c = {.decode = true, .progress = progress, .ctx = ctx};
    for (size_t i = 0; i < r->header.n_datasets; i++)
        c.total += dataset_items(&r->datasets[i]) * d7_type_size(r->header.datasets[i].type);
    int rc = 0;
    for (size_t i = 0; i < r->header.n_datasets && rc == 0; i++)
        rc = count_dataset(r, (uint32_t)i, &c, err);
    return rc;
}

/* ---- reading ---- */

/* A page held another number of items than the map said. */
enum { UNEXPECTED_LENGTH = 1 };

/* Reads those items of one page that [from, end) asks for. Returns 0; UNEXPECTED_LENGTH; an error. */
static int read_page_part(d7_reader *r, uint32_t ds, size_t page, uint64_t from, uint64_t end, uint8_t *out,
                          d7_error *err) {
    const d7__reader_dataset *d = &r->datasets[ds];
    uint64_t first = page_first_item(d, page);
    size_t size = d7_type_size(r->header.datasets[ds].type), expected = (size_t)page_items(d, page), n = 0;
    bool cached = r->page_items && r->page_dataset == ds && r->page_number == page;
    d7__entry entry;
    int rc = cached ? 0 : page_entry(r, ds, page, &entry, err);
    if (rc == 0 && !cached && from <= first && end >= first + expected) {
        rc = decode_entry(r, ds, page, &entry, out, expected, &n, err);
        return rc == D7_ERR_LIMIT || (rc == 0 && n != expected) ? UNEXPECTED_LENGTH : rc;
    }
    if (rc == 0 && !cached)
        rc = decode_to_cache(r, ds, page, &entry, expected, err);
    if (rc != 0)
        return rc == D7_ERR_LIMIT ? UNEXPECTED_LENGTH : rc;
    if (r->page_items != expected) {
        r->page_items = 0;
        return UNEXPECTED_LENGTH;
    }
    uint64_t low = from > first ? from : first, high = end < first + expected ? end : first + expected;
    memcpy(out, r->page.data + (size_t)(low - first) * size, (size_t)(high - low) * size);
    return 0;
}

/* Reads what can be read around damaged pages; the first damage is the result. */
static int read_items(d7_reader *r, uint32_t ds, uint64_t from, size_t n, uint8_t *out, d7_error *err) {
    const d7__reader_dataset *d = &r->datasets[ds];
    size_t size = d7_type_size(r->header.datasets[ds].type);
    uint64_t items = dataset_items(d), end = from + n;
    if (from > items || n > items - from)
        return d7__fail(err, D7_ERR_ARG, 0, D7_NO_OFFSET,
                        "%s: dataset %s holds %" PRIu64 " items, asked for %zu from %" PRIu64, r->source.path,
                        r->header.datasets[ds].name, items, n, from);
    int damage = 0;
    for (uint64_t at = from; at < end;) {
        size_t page = page_of_item(d, at);
        uint64_t next = page_first_item(d, page) + page_items(d, page);
        next = next < end ? next : end;
        int rc = read_page_part(r, ds, page, at, next, out + (size_t)(at - from) * size, damage ? NULL : err);
        if (rc == D7_ERR_CORRUPT)
            damage = rc;
        else if (rc != 0)
            return rc;
        at = next;
    }
    return damage;
}

int d7__reader_read_wants(d7_reader *r, const d7__want *wants, size_t n, bool *ret_recounted, d7_error *err) {
    int damage = 0;
    for (size_t i = 0; i < n; i++) {
        const d7__want *w = &wants[i];
        int rc = read_items(r, w->dataset_id, w->from, w->n, w->out, damage ? NULL : err);
        if (rc == UNEXPECTED_LENGTH) {
            *ret_recounted = true;
            return count_dataset(r, w->dataset_id, &(counting){0}, err);
        }
        if (rc != 0 && rc != D7_ERR_CORRUPT)
            return rc;
        damage = damage ? damage : rc;
    }
    return damage;
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
                                  .items = dataset_items(&r->datasets[dataset_id]),
                                  .paged_items = dataset_items(&r->datasets[dataset_id]),
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
    *ret_page = (d7_page_info){.offset = d->offsets[i],
                               .first_item = page_first_item(d, i),
                               .n_items = page_items(d, i),
                               .damaged = d->damaged && d->damaged[i]};
    return 0;
}

int d7_reader_find_page(const d7_reader *r, uint32_t dataset_id, uint64_t item, uint64_t *ret_page) {
    if (dataset_id >= r->header.n_datasets || item >= dataset_items(&r->datasets[dataset_id]))
        return D7_ERR_ARG;
    *ret_page = page_of_item(&r->datasets[dataset_id], item);
    return 0;
}

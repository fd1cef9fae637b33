/* Pages of the map: which items are where (reader_pages.c), counting them (reader_count.c), and decoding
 * many at once (reader_lanes.c). Shared by these and reader_read.c. */
#ifndef D7_SRC_READER_PAGES_H
#define D7_SRC_READER_PAGES_H

#include "reader.h"

/* Counts of pages: one more (returns 0; D7_ERR_NOMEM); what is before a page, which is counted or comes right
 * behind those that are; only the first n. */
int d7__counts_add(const d7_alloc *a, d7__counts *c, size_t items);
uint64_t d7__counts_before(const d7__counts *c, size_t page);
void d7__counts_cut(d7__counts *c, size_t n);
void d7__counts_free(const d7_alloc *a, d7__counts *c);

uint64_t d7__page_first_item(const d7__reader_dataset *d, size_t page);
uint64_t d7__page_items(const d7__reader_dataset *d, size_t page);
/* In pages. */
uint64_t d7__dataset_items(const d7__reader_dataset *d);
/* The page that holds an item that there is. */
size_t d7__page_of_item(const d7__reader_dataset *d, uint64_t item);
/* Damaged as far as is known. */
bool d7__page_is_damaged(const d7__reader_dataset *d, size_t page);

bool d7__page_is_condemned(const d7__reader_dataset *d, size_t page);

/* D7__PAGE_... of a page. Returns 0; D7_ERR_NOMEM. */
int d7__page_mark(d7_reader *r, uint32_t ds, size_t page, unsigned mark);

/* Pages behind the settled ones are not damaged as far as is known. Returns likewise. */
int d7__page_mark_more(d7_reader *r, uint32_t ds);

/* The error of reading such a page: D7_ERR_CORRUPT; D7_ERR_NOMEM. */
int d7__page_say_condemned(d7_reader *r, uint32_t ds, size_t page, d7_error *err);

/* Reads a page's entry. Returns 0; D7_ERR_CORRUPT: damaged, which is a problem and in the map from now on;
 * D7_ERR_NOMEM; D7_ERR_IO; D7_ERR_TRUNCATED. */
int d7__page_entry(d7_reader *r, uint32_t ds, size_t page, d7__entry *ret_entry, d7_error *err);

/* Counts the items of a page's entry. Returns as d7__page_entry(). */
int d7__page_count_entry(d7_reader *r, uint32_t ds, size_t page, const d7__entry *entry, size_t *ret_n,
                         d7_error *err);

/* Decodes a page's entry into out, which takes `cap` items. D7_ERR_LIMIT: it holds more. Else as
 * d7__page_entry(). */
int d7__page_decode_entry(d7_reader *r, uint32_t ds, size_t page, const d7__entry *entry, void *out,
                          size_t cap, size_t *ret_n, d7_error *err);

/* Decodes a page's entry of up to `cap` items into r->page. Returns as d7__page_decode_entry(). */
int d7__page_decode_to_cache(d7_reader *r, uint32_t ds, size_t page, const d7__entry *entry, size_t cap,
                             d7_error *err);

/* Makes a page a damaged one for good: reading it is an error from now on, and its items count as a full page's. `reason`
 * becomes a problem the first time. Returns 0; D7_ERR_NOMEM. */
int d7__page_condemn(d7_reader *r, uint32_t ds, size_t page, const char *reason, d7_error *err);

/* Counts the items of every page, after which the map is exact. Returns 0; D7_ERR_NOMEM; D7_ERR_IO; D7_ERR_TRUNCATED. */
int d7__count_pages(d7_reader *r, d7_error *err);

/* The same, and tells of datasets whose pages are uneven. */
int d7__recount(d7_reader *r, d7_error *err);

/* Of pages that have been counted: condemns those whose length tells that they are damaged (reader_lengths.c). Returns 0;
 * D7_ERR_NOMEM. */
int d7__judge_lengths(d7_reader *r, d7_error *err);

/* A whole page that is to be decoded into `out`. */
typedef struct d7__page_task {
    uint32_t dataset_id;
    size_t page;
    uint64_t offset;
    uint8_t *out;
    size_t items;       /* that it should hold */
    uint64_t from, end; /* items of the dataset that are wanted */
    bool condemned;
    bool done;
    const d7_error *failure; /* not NULL: the file could not be read there */
} d7__page_task;

enum { D7__TASKS_MAX = 512 };

/* The tasks that are under way; NULL: out of memory. */
d7__page_task *d7__lanes_tasks(d7_reader *r);

/* Decodes those of the n tasks, in the order of the file, that are whole pages and not done, on as many
 * lanes as are useful. Whatever is not as it should be (damage, another length) stays undone, for the
 * caller to meet again and to say. Returns 0; D7_ERR_NOMEM. */
int d7__lanes_decode(d7_reader *r, size_t n, d7_error *err);

void d7__lanes_free(d7_reader *r);

/* Has a page another length than it says, so that it goes on in a block that was written elsewhere? What follows it then is of
 * another place too. */
bool d7__page_is_seam(const d7_reader *r, uint32_t ds, const d7__entry *entry);

/* Is it just a full page of some other dataset, whose values have another form, and not of this one? Or is it damaged, and does not
 * say whose it is? */
bool d7__page_is_of_other(const d7_reader *r, uint32_t ds, const d7__entry *entry);

#endif

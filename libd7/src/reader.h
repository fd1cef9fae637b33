/* The reader's parts, shared by reader.c (opening, getters), reader_closed.c (by the global index),
 * reader_recover.c (by islands and scan), reader_map.c, and those of reader_pages.h. */
#ifndef D7_SRC_READER_H
#define D7_SRC_READER_H

#include "attributes.h"
#include "framing.h"
#include "index.h"
#include "messages.h"
#include "problems.h"

typedef struct d7__reader_dataset {
    uint64_t *offsets; /* [n_pages] where the pages are, rising once d7__map_sort() has run */
    size_t n_pages, cap_pages;
    bool unsorted;
    size_t items_per_page;
    size_t last_items;     /* in the last page; 0 when that is damaged */
    uint64_t *first_items; /* [n_pages + 1] where pages are uneven; NULL: all but the last are full */
    uint8_t *damaged;      /* [n_pages] known to be; NULL: none */
} d7__reader_dataset;

struct d7_reader {
    d7_io io;
    d7_alloc alloc;
    d7__source source;
    d7__framing framing;
    d7__header header;
    uint64_t data_start;   /* where the header entry ends */
    uint64_t global_index; /* of a closed file: offset of the first global Index entry, */
    uint64_t epilogue;     /* and of the epilogue */
    d7_state state;
    bool held;
    d7__attributes attributes;
    d7__problems problems;

    d7__reader_dataset *datasets; /* [header.n_datasets] */

    d7__buffer page; /* the page decoded last, when only a part of it was asked for */
    uint32_t page_dataset;
    size_t page_number;
    size_t page_items; /* 0: none */

    d7_executor executor; /* see reader_lanes.c */
    bool has_executor;
    unsigned n_lanes;        /* 0: the default */
    struct d7__lanes *lanes; /* NULL before the first reading */
};

/* What an Index entry said when it was taken. */
typedef struct d7__index_seen {
    bool has_pages, has_marker;
    bool malformed;      /* it broke off before its end */
    uint64_t first_page; /* smallest offset listed */
} d7__index_seen;

int d7__reader_no_memory(const d7_reader *r, d7_error *err);

/* The page map (reader_map.c): empty, of the header's datasets; without pages again; released. */
int d7__map_start(d7_reader *r, d7_error *err);
void d7__map_clear(d7_reader *r);
void d7__map_free(d7_reader *r);

/* Adds a page; one that is there already is passed over, at the latest when the map is sorted. Returns 0;
 * D7_ERR_NOMEM. */
int d7__map_add(d7_reader *r, uint32_t ds, uint64_t offset);
void d7__map_sort(d7_reader *r);

/* Of a sorted map: the first page at or after `offset` (n_pages: none), and whether one is there. */
size_t d7__map_find(const d7__reader_dataset *d, uint64_t offset);
bool d7__map_has(const d7__reader_dataset *d, uint64_t offset);

/* All pages in the order of the file, in memory of the table's. Returns 0; D7_ERR_NOMEM. */
int d7__map_list(d7_reader *r, d7__page_ref **ret_pages, size_t *ret_n);

/* Is there a dataset of that id? If not, the page at `offset` is a problem. */
bool d7__reader_knows_dataset(d7_reader *r, uint64_t dataset_id, uint64_t offset);

/* Learns of a page; a dataset or an offset that cannot be is a problem and no page. */
int d7__reader_found_page(d7_reader *r, uint64_t dataset_id, uint64_t offset);

/* Takes an Index entry's pages and attributes. Damage is a problem, not a failure. */
int d7__reader_take_index(d7_reader *r, const d7__entry *entry, d7__cursor body, d7__index_seen *ret_seen);

/* Forgets pages and attributes found so far. */
void d7__reader_forget(d7_reader *r);

/* Is there an epilogue with a good signature at the start of the last block, *ret_at, and where does it say
 * that the global index is? Returns 0; D7_ERR_NOMEM; D7_ERR_IO; D7_ERR_TRUNCATED. */
int d7__find_epilogue(d7__framing *f, bool *ret_there, uint64_t *ret_at, uint64_t *ret_index, d7_error *err);

/* Looks for a valid epilogue and reads the global index; *ret_valid tells. Problems are added when there is
 * an epilogue that is not valid. Returns 0; D7_ERR_NOMEM; D7_ERR_IO; D7_ERR_TRUNCATED. */
int d7__reader_closed(d7_reader *r, bool *ret_valid, d7_error *err);

/* Islands and scan. Returns as d7__reader_closed(). */
int d7__reader_recover(d7_reader *r, bool quick, d7_error *err);

/* Makes the page map of what was found, and looks into each dataset's first and last page. Returns as
 * d7__reader_closed(). */
int d7__reader_map_pages(d7_reader *r, d7_error *err);

/* Opens a file and reads its header, but learns of no pages. Returns as d7_reader_open(). */
int d7__reader_open_header(d7_reader **ret_reader, const char *path, const d7_reader_options *options,
                           d7_error *err);

/* Items [from, from + n) of a dataset, for `out`. */
typedef struct d7__want {
    uint32_t dataset_id;
    uint64_t from;
    size_t n;
    uint8_t *out;
    size_t next_page, end_page; /* those still to be read, set while reading */
} d7__want;

/* Reads several ranges together. Items of damaged pages are left as they are in `out`, and those pages are damaged in the
 * map then; the damage that comes first in the file is the result. When a page of unexpected length is met, its
 * dataset is counted, and *ret_recounted becomes true: the map has changed, ask again. Returns as d7_reader_read(). */
int d7__reader_read_wants(d7_reader *r, d7__want *wants, size_t n, bool *ret_recounted, d7_error *err);

/* The error for a file whose pages were counted and then hold something else. */
int d7__reader_pages_change(const d7_reader *r, d7_error *err);

/* Looks into a page of the map: damage and an unexpected length become problems. `entry` is its entry, NULL:
 * it is read. Returns 0; D7_ERR_NOMEM; D7_ERR_IO; D7_ERR_TRUNCATED. */
int d7__reader_check_page(d7_reader *r, uint32_t ds, size_t page, const d7__entry *entry, d7_error *err);

#endif

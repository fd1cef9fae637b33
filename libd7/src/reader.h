/* The reader's parts, shared by reader.c (opening, getters), reader_closed.c (by the global index),
 * reader_recover.c (by islands and scan), reader_map.c, and those of reader_pages.h. */
#ifndef D7_SRC_READER_H
#define D7_SRC_READER_H

#include "attributes.h"
#include "chunks.h"
#include "framing.h"
#include "index.h"
#include "messages.h"
#include "problems.h"
#include "source.h"
#include "turns.h"

/* Of a page: damaged; condemned, which it stays whatever it decodes to: something else tells that it is not what was
 * written. */
enum { D7__PAGE_GOOD, D7__PAGE_DAMAGED, D7__PAGE_CONDEMNED };

/* How many items each page holds. */
typedef struct d7__counts {
    d7__chunks items; /* [n] 32 bits each */
    d7__chunks sums;  /* 64 bits for every D7__SUM_PAGES of them: what those before hold */
    size_t n;
    uint64_t sum; /* of all */
} d7__counts;

enum { D7__SUM_PAGES = 64 };

typedef struct d7__reader_dataset {
    d7__chunks offsets; /* [n_pages] 64 bits each: where the pages are, rising once d7__map_sort() has run */
    size_t n_pages;
    size_t n_settled; /* of them: what else is said here of pages is said of these */
    bool unsorted;
    bool counted; /* pages are uneven; else all but the last are full */
    bool marked;  /* some are damaged */
    size_t items_per_page;
    size_t last_items; /* in the last page; 0 when that is damaged */
    d7__counts counts; /* where counted */
    d7__chunks marks;  /* where marked: [n_pages] 2 bits each, D7__PAGE_...: known to be */
} d7__reader_dataset;

/* Bytes [from, to) that whole entries fill without a gap: no page begins there but those that were found. */
typedef struct d7__solid {
    uint64_t from, to;
} d7__solid;

/* How far a file that is not closed has been looked through: refreshing goes on from here. */
typedef struct d7__progress {
    uint64_t covered;         /* all that begins before is known */
    uint64_t known;           /* pages that begin before are in the map; one that is not makes it stale */
    uint64_t last_entry;      /* the last whole entry before `covered`; 0: the header */
    uint64_t first_page;      /* offset of the file's first page, 0: not known yet */
    bool first_listed;        /* an index has listed it */
    uint64_t last_index;      /* offset of an index of pages that no page follows, 0: there is none */
    uint64_t last_attributes; /* offset of the last Index entry that holds attributes, 0: none */
    uint64_t leftover;        /* offset of a global index without an epilogue, 0: there is none */
    uint64_t broken_from;     /* damage at which the last look ended began here, 0: there was none; */
    uint64_t broken_end;      /* the next entry begins here if nothing else is lost, 0: that is not known */
    uint64_t island_end;      /* where the last index of pages ends, or the header */
    bool peculiar;            /* lists that look as if they had changed are this writer's */
    bool drifting;            /* islands do not stand where they are due */
    uint64_t
        doubt_to; /* when the file is so long what was taken for a hole has to be judged anew; 0: never */
    bool runs_on; /* an entry that one block has room for lies in two: there is no padding */
    bool epilogue_seen;
    bool stale;
    d7__turns turns[2];  /* of photons, of tags, in the pages of the last scan, */
    uint64_t turns_next; /* of which the last one ended here */
} d7__progress;

/* A place [from, to) that a scan came by, where pages may have been of which no trace is left. */
typedef struct d7__hole {
    uint64_t from, to;
    uint64_t after; /* the last whole entry before it */
    bool padding;   /* zeros up to the end of a block, and no hole where the writer does that */
} d7__hole;

/* The bytes by which a file that was cut and written anew is told from one that grew. */
typedef struct d7__mark {
    uint64_t entry, at; /* where the entry begins and ends */
    uint32_t crc;
} d7__mark;

/* Why the newest of a tail is not to be had, as of the last look. */
typedef struct d7__tail_fault {
    bool there;
    bool known;   /* a slot that is whole and not true tells it; else `text` does */
    bool foreign; /* of that slot: the file's first bytes are others; */
    d7_tail_claim claim;
    uint64_t head_bytes;
    uint64_t *items; /* [n_items] and how many each dataset had */
    size_t n_items, cap_items;
    char text[256];
} d7__tail_fault;

/* What the tail beside the file holds; see reader_tail.c. */
typedef struct d7__reader_tail {
    d7_tail_reader *reader;    /* NULL: there is none, as far as is known */
    d7__buffer bytes, next;    /* of the slot; of the one that is to take its place */
    d7_tail_slot slot;         /* points into `bytes`; slot_bytes of 0: none */
    d7_tail_slot next_slot;    /* likewise into `next` */
    d7__attributes attributes; /* the slot's, while no Index entry of the file is newer */
    size_t *extra;             /* [n_extra] those whose keys the file does not have */
    size_t n_extra, cap_extra;
    d7__tail_fault fault;
} d7__reader_tail;

struct d7_reader {
    d7_io io;
    d7_alloc alloc;
    d7_reader_options options;
    d7__source source;
    d7__framing framing;
    d7__header header;
    uint64_t data_start;   /* where the header entry ends */
    uint64_t global_index; /* of a closed file: offset of the first global Index entry, */
    uint64_t epilogue;     /* and of the epilogue */
    d7_state state;
    bool held;
    d7__attributes attributes;
    uint64_t n_attribute_changes;
    d7__problems problems;

    d7__progress progress;
    d7__solid *solid; /* [n_solid] rising */
    size_t n_solid, cap_solid;
    d7__hole *holes; /* [n_holes] of which no index tells what they held */
    size_t n_holes, cap_holes;
    uint64_t
        unplaced_from; /* pages from here on are not in the map: their items' numbers are not known; 0: all are */
    d7__mark mark;
    bool replaced;       /* another file lies at the path */
    uint64_t seen_bytes; /* the file's length, */
    bool seen_held;      /* and whether a writer held it, when all that it holds was learned last */
    unsigned changes;    /* D7_CHANGE_ bits that are still to be told */
    d7__reader_tail tail;

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
    bool malformed;      /* it breaks off before its end, or has fields of another type than they are */
    bool foreign;        /* as d7__index_is_foreign() */
    bool odd;            /* its messages look as if bits had changed in them */
    bool impossible;     /* it lists a page that cannot be there */
    uint64_t first_page; /* smallest offset listed */
    uint64_t last_page;  /* largest */
} d7__index_seen;

int d7__reader_no_memory(const d7_reader *r, d7_error *err);

/* The page map (reader_map.c): empty, of the header's datasets; without pages again; released. */
int d7__map_start(d7_reader *r, d7_error *err);
void d7__map_clear(d7_reader *r);
void d7__map_free(d7_reader *r);

/* Adds a page; one that is there already is passed over, at the latest when the map is sorted. Returns 0;
 * D7_ERR_NOMEM. */
int d7__map_add(d7_reader *r, uint32_t ds, uint64_t offset);

static inline uint64_t d7__map_offset(const d7__reader_dataset *d, size_t page) {
    return *d7__chunks_u64(&d->offsets, page);
}

void d7__map_sort(d7_reader *r);

/* Of a sorted map: the first page at or after `offset` (n_pages: none), and whether one is there. */
size_t d7__map_find(const d7__reader_dataset *d, uint64_t offset);
bool d7__map_has(const d7__reader_dataset *d, uint64_t offset);

/* Goes through the pages of a sorted map in the order of the file. */
typedef struct d7__map_walk {
    const d7_reader *r;
    size_t *next;   /* [datasets] pages that it has come by */
    uint32_t *heap; /* [n_heap] datasets that have more; the one whose next page comes first is on top */
    size_t n_heap;
} d7__map_walk;

/* Returns 0; D7_ERR_NOMEM. To be ended either way. */
int d7__map_walk_begin(d7__map_walk *w, const d7_reader *r);
/* The next page, which is number *ret_number of its dataset; false: there is none. */
bool d7__map_walk_next(d7__map_walk *w, d7__page_ref *ret_page, size_t *ret_number);
void d7__map_walk_end(d7__map_walk *w);

/* Adds all pages, in the order of the file, to an empty log. Returns 0; D7_ERR_NOMEM. */
int d7__map_list(const d7_reader *r, const d7_alloc *a, d7__page_log *log);

/* Is there a dataset of that id? If not, the page at `offset` is a problem. */
bool d7__reader_knows_dataset(d7_reader *r, uint64_t dataset_id, uint64_t offset);

/* Where a page begins that an index lists there: one that points at a spare byte means what follows that. */
uint64_t d7__reader_page_begin(const d7_reader *r, uint64_t offset);

/* Can a page of that dataset be there? If not, it is a problem. */
bool d7__reader_page_is_possible(d7_reader *r, uint64_t dataset_id, uint64_t offset);

/* Takes an Index entry's attributes and, unless `skip_pages`, its pages. Damage is a problem, not a failure. */
int d7__reader_take_index(d7_reader *r, const d7__entry *entry, d7__cursor body, bool skip_pages,
                          d7__index_seen *ret_seen);

/* Is an index malformed, or says it nothing, and lists no page that may be there? Then a page may have been at `offset`. */
bool d7__index_is_foreign(const d7_reader *r, uint64_t offset, d7__cursor body);

/* Forgets pages and attributes found so far. */
void d7__reader_forget(d7_reader *r);

/* Is there an epilogue with a good signature at the start of the last block, *ret_at, and where does it say
 * that the global index is? Returns 0; D7_ERR_NOMEM; D7_ERR_IO; D7_ERR_TRUNCATED. */
int d7__find_epilogue(d7__framing *f, bool *ret_there, uint64_t *ret_at, uint64_t *ret_index, d7_error *err);

/* Looks for a valid epilogue and reads the global index; *ret_valid tells. Problems are added when there is
 * an epilogue that is not valid. Returns 0; D7_ERR_NOMEM; D7_ERR_IO; D7_ERR_TRUNCATED. */
int d7__reader_closed(d7_reader *r, bool *ret_valid, d7_error *err);

/* Takes one entry of a global index; *ret_good: it is not damaged. Returns 0; D7_ERR_NOMEM. */
typedef int d7__take_index_fn(void *ctx, const d7__entry *entry, d7__cursor body, bool *ret_good);

/* Reads the entries of the global index at `offset` of a file whose epilogue is at `end`. *ret_whole: it is
 * there, and all of it is good. Returns as d7__reader_closed(). */
int d7__global_index_each(d7_reader *r, uint64_t offset, uint64_t end, d7__take_index_fn *take, void *ctx,
                          bool *ret_whole, d7_error *err);

/* Tells of an epilogue at `at` that leads to no global index. */
void d7__reader_bad_epilogue(d7_reader *r, uint64_t at, uint64_t offset);

/* Islands and scan, of the options' form. Returns as d7__reader_closed(). */
int d7__reader_recover(d7_reader *r, d7_error *err);

/* The same from where the last look ended, of what begins before `end`. */
int d7__reader_continue(d7_reader *r, uint64_t end, d7_error *err);

/* Who holds the file, what its tail says, and its size, in this order. Returns as d7__reader_closed(). */
int d7__reader_measure(d7_reader *r, d7_error *err);

/* Everything that opening learns after the header. Returns as d7_reader_open(). */
int d7__reader_learn(d7_reader *r, d7_error *err);

/* A reader of the same file and options that has read the header as it is now; it borrows the file and the path
 * from r. Returns as d7_reader_open(). */
int d7__reader_again(d7_reader **ret_reader, d7_reader *r, d7_error *err);

/* Sets what points into the reader itself, after it was moved. */
void d7__reader_bind(d7_reader *r);

/* Remembers by what the file is told from one that was cut and written anew; does it still hold? Both return 0;
 * D7_ERR_IO; D7_ERR_NOMEM; D7_ERR_TRUNCATED. */
int d7__mark_set(d7_reader *r, d7_error *err);
int d7__mark_check(d7_reader *r, bool *ret_holds, d7_error *err);

/* The tail (reader_tail.c). To look comes before the file's size is taken; what was seen counts after
 * d7__tail_accept(). Returns 0, also where there is none; D7_ERR_NOMEM; D7_ERR_IO. */
int d7__tail_look(d7_reader *r, d7_error *err);
int d7__tail_accept(d7_reader *r, d7_error *err);
void d7__tail_drop(d7_reader *r);

/* Looks at the tail only to tell of it, for a reader that leaves tails out. Returns as d7__tail_look(). */
int d7__tail_examine(d7_reader *r, d7_error *err);

/* Does the tail, of which not all could be used, tell of items of a dataset behind the first n, or may it? */
bool d7__tail_tells_more(const d7_reader *r, uint32_t ds, uint64_t n);

/* Items of a dataset that the tail adds to those in pages. */
uint64_t d7__tail_items(const d7_reader *r, uint32_t ds);
/* Items [from, from + n) of them. */
void d7__tail_values(const d7_reader *r, uint32_t ds, uint64_t from, size_t n, void *out);

/* Makes the page map of what was found, and looks into each dataset's first and last page. Returns as
 * d7__reader_closed(). */
int d7__reader_map_pages(d7_reader *r, d7_error *err);

/* The same for the pages that were added since. */
int d7__reader_map_more(d7_reader *r, d7_error *err);

/* Takes pages behind the first hole out of the map again, which is sorted. */
void d7__map_cut(d7_reader *r);

/* Forgets pages that are not settled. */
void d7__map_unsettle(d7_reader *r);

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
    uint64_t next_offset;       /* of the first of them, likewise; UINT64_MAX: none */
} d7__want;

/* Reads several ranges together, at least one; their order changes. Items of damaged pages are left as they are in
 * `out`, and those pages are damaged in the map then; the damage that comes first in the file is the result. When a page
 * of unexpected length is met, all pages are counted, and
 * *ret_recounted becomes true: the map has changed, ask again. Returns as d7_reader_read(). */
int d7__reader_read_wants(d7_reader *r, d7__want *wants, size_t n, bool *ret_recounted, d7_error *err);

/* The error for a file whose pages were counted and then hold something else. */
int d7__reader_pages_change(const d7_reader *r, d7_error *err);

/* Looks into a page of the map: damage becomes a problem, else r->page and r->page_items are its values. `entry` is its
 * entry, NULL: it is read. Returns 0; D7_ERR_NOMEM; D7_ERR_IO; D7_ERR_TRUNCATED. */
int d7__reader_check_page(d7_reader *r, uint32_t ds, size_t page, const d7__entry *entry, d7_error *err);

#endif

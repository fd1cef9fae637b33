/* The parts of d7_repair():
 *
 *   repair_claims.c    what the indexes say, and which of them are to be believed
 *   repair_runs.c      lists that a few bits have changed
 *   repair_survey.c    what there is: every page that is whole, every page that is known to be lost, and from where on
 *                      nobody can say what was lost
 *   repair_changed.c   pages that checksums beside the file say are not what was written
 *   repair_plan.c      what is kept: columns of a group lose the same items
 *   repair_texts.c     attributes and names: what refers to items is re-based, gap records, text that is no UTF-8
 *   repair_write.c     the new file
 *   repair.c           all of it, and the report
 *   repair_in_place.c  the other way: only the end of the file itself */
#ifndef D7_SRC_REPAIR_H
#define D7_SRC_REPAIR_H

#include "checksums.h"
#include "codec.h"
#include "reader.h"

/* ---- pages that have changed ---- */

typedef struct d7__changed {
    d7_reader *r; /* NULL: nothing was begun */
    d7__sums_compare compare;
    d7__page_log pages;       /* entries that differ; dataset_id: of a page, else D7_NO_DATASET */
    bool differs;             /* the entry last looked at does */
    bool parted;              /* an index with attributes does: */
    d7__attributes sound;     /* those of the others; once marked: those that `r` had instead */
    bool header;              /* once marked: the header is not what was written */
    uint64_t lost_attributes; /* likewise: those that only indexes that differ have, as they have them */
} d7__changed;

/* Looks for checksums beside the file, and at the header's. The header of `r` is known. Returns 0; D7_ERR_NOMEM; as
 * d7__entry_at(). */
int d7__changed_begin(d7__changed *c, d7_reader *r, d7_error *err);

/* Looks at an entry, in the order of the file. Returns 0; D7_ERR_NOMEM; as d7__sums_compare_entry(). */
int d7__changed_look(d7__changed *c, const d7__entry *e, d7_error *err);

/* An attribute of the entry last looked at, before it goes to `r`. Returns 0; D7_ERR_NOMEM. */
int d7__changed_attribute(d7__changed *c, const d7_attribute *attribute);

/* Makes the pages that differ condemned ones of the map, takes attributes of indexes that differ from those of `r`, and makes
 * all that differs problems of `r`, where d7__sums_compare_end() says that it counts, and what keeps the checksums from being
 * used. `closed`: the file
 * ends in a valid epilogue. Returns 0; D7_ERR_NOMEM; as d7__sums_compare_end(). */
int d7__changed_mark(d7__changed *c, bool closed, d7_error *err);

/* Once marked: was it taken from those of `r`? */
bool d7__changed_took(const d7__changed *c, const d7_attribute *attribute);

void d7__changed_free(d7__changed *c);

/* ---- what the indexes say (repair_claims.c) ---- */

/* Files longer than this are not repaired: so places of pages fit the few bytes of memory that there are for each. */
#define D7__REPAIR_OFFSET_MAX (((uint64_t)1 << 44) - 1)

/* 8 bytes of every page of a file. */
typedef struct d7__seen_page {
    uint64_t offset : 44;
    uint64_t dataset_id : 16; /* of at most D7_DATASETS_MAX */
    uint64_t joined : 1;      /* begins where a page before it ended */
    uint64_t listed : 1;      /* once settled: an index that is believed lists it */
    uint64_t unlisted : 1;    /* is none of the writer's */
    uint64_t suspect : 1;     /* begins where one is, but is in part or whole of another place */
} d7__seen_page;

typedef enum d7__claim_standing { D7__CLAIM_SOUND, D7__CLAIM_DOUBTFUL, D7__CLAIM_MOVED } d7__claim_standing;

/* An index that lists pages: one entry, or several in a row. */
typedef struct d7__claim_index {
    uint64_t offset;
    size_t first, n;          /* of d7__claims.listed, where they are kept */
    uint64_t lowest, highest; /* offsets listed */
    uint32_t last_dataset;    /* of the page at `highest` */
    uint64_t before;          /* of the page right before it; UINT64_MAX: something else is there */
    size_t n_seen;            /* pages seen before it */
    bool alien;               /* what it lists is of another file */
    bool odd;                 /* its messages look as if bits had changed in them */
    bool page_behind;         /* a page begins right behind it */
    bool kept, used;
    d7__claim_standing standing;
} d7__claim_index;

/* Bytes [from, to) of which indexes say which pages begin there. */
typedef struct d7__span {
    uint64_t from, to;
    bool to_index; /* up to the index itself, or only to the last page that it lists */
} d7__span;

typedef struct d7__claims {
    d7_reader *r;
    bool on_schedule;      /* once settled: indexes are where they are due */
    uint64_t global_index; /* offset of a closed file's; 0: none */
    d7__chunks seen;       /* [n_seen] d7__seen_page: pages found, in the order of the file */
    size_t n_seen;
    d7__claim_index *indexes; /* [n_indexes] likewise */
    size_t n_indexes, cap_indexes;
    d7__chunks
        listed; /* [n_listed] packed; once settled: sorted, of the indexes that are believed, not seen */
    size_t n_listed;
    d7__span *spans; /* [n_spans] once settled: what these cover, rising, apart from each other */
    size_t n_spans, cap_spans;
    uint64_t
        known_to; /* once settled: a part of the file was taken out or put in here; UINT64_MAX: nowhere */
    bool page_at_start; /* a page begins right behind the header */
    uint8_t *named;     /* [datasets] some index lists pages of it */
    d7__kind last_kind; /* of the entry before, */
    uint64_t last_end;  /* which ended here */
} d7__claims;

static inline d7__seen_page *d7__claims_seen(const d7__claims *c, size_t i) {
    return d7__chunks_at(&c->seen, i * sizeof(d7__seen_page));
}

/* Numbers that are in the order of the file. */
static inline uint64_t d7__page_pack(uint64_t offset, uint32_t dataset_id) {
    return offset << 16 | dataset_id;
}

static inline d7__page_ref d7__claims_listed(const d7__claims *c, size_t i) {
    uint64_t packed = *d7__chunks_u64(&c->listed, i);
    return (d7__page_ref){.offset = packed >> 16, .dataset_id = (uint32_t)(packed & UINT16_MAX)};
}

static inline uint64_t d7__claims_seen_offset(const d7__claims *c, size_t i) {
    return d7__claims_seen(c, i)->offset;
}

/* Of the pages listed, sorted, from `low` to `high`: the first at or behind `offset`; `high`: none. */
size_t d7__claims_find_listed(const d7__claims *c, size_t low, size_t high, uint64_t offset);

/* Before the walk. `global_index`: its offset in a file that is closed as it should be, else 0. Returns 0; D7_ERR_NOMEM. */
int d7__claims_start(d7__claims *c, d7_reader *r, uint64_t global_index);

/* A page, an Index entry, in the order of the file. `attribute` takes the entry's attributes, in order. Both return 0;
 * D7_ERR_NOMEM. */
int d7__claims_page(d7__claims *c, uint32_t ds, const d7__entry *e);
int d7__claims_index(d7__claims *c, const d7__entry *e, d7__cursor body,
                     int (*attribute)(void *ctx, const d7_attribute *attribute), void *ctx);

/* Does the entry last shown end at `offset`, and is it a page? */
bool d7__claims_page_ends(const d7__claims *c, uint64_t offset);

/* After the walk. Returns 0; D7_ERR_NOMEM. */
int d7__claims_settle(d7__claims *c);

/* Once settled: mends lists by pages that follow one another without a gap (repair_runs.c). Returns 0; as d7__entry_at(). */
int d7__claims_believe_runs(d7__claims *c, d7_error *err);

/* Then: what is of another place. */
void d7__claims_mark_suspects(d7__claims *c);

/* Once settled: what indexes say about the place (NULL: nothing), and where the first place from `offset` on is of which one
 * says something; UINT64_MAX: there is none. */
const d7__span *d7__claims_span(const d7__claims *c, uint64_t offset);
uint64_t d7__claims_next_cover(const d7__claims *c, uint64_t offset);

/* Once settled: is it in a block that was written elsewhere, and does no other say which pages were there? */
bool d7__claims_is_stray(const d7__claims *c, const d7__claim_index *i);

void d7__claims_free(d7__claims *c);

/* ---- what there is ---- */

typedef struct d7__survey {
    uint64_t
        known_to; /* pages that begin here or later cannot be told their item numbers; UINT64_MAX: all can */
    bool ended;   /* the writer came to the end: there is a global index or an epilogue */
    bool untold;  /* nobody can say what some place held */
    uint64_t torn_offset; /* of the entry that the end of the file cuts; D7_NO_OFFSET: none */
    uint32_t
        torn_dataset;    /* whose page that is, by how it begins; D7_NO_DATASET: nobody knows, or no page's */
    uint8_t *named;      /* [datasets] an index or what is torn tells that it had pages */
    uint64_t n_unlisted; /* pages that were found where an index says that there were none */
} d7__survey;

/* Reads a file from front to back. `r` has its header only; afterwards it has the page map (pages that are lost but
 * known among them) and the attributes. `changed` is shown every entry. `global_index`: of a file that is closed as it
 * should be, else 0. Returns 0; D7_ERR_CANCELLED; D7_ERR_TRUNCATED;
 * D7_ERR_NOMEM; D7_ERR_IO. */
int d7__repair_survey(d7_reader *r, uint64_t global_index, d7__changed *changed, d7_progress_fn *progress,
                      void *ctx, d7__survey *ret_survey, d7_error *err);

/* ---- what is kept ---- */

typedef struct d7__range {
    uint64_t from, to;
    uint64_t before; /* of a d7__taken: how many items the ranges before it take out */
} d7__range;

/* Places in d7__repair_plan.takens; from OWN on those of datasets that are in no group. */
enum { D7__TAKEN_PHOTONS, D7__TAKEN_TAGS, D7__TAKEN_OWN };

/* What is taken out of all columns that share their item numbers. */
typedef struct d7__taken {
    d7__range *ranges; /* [n] rising, apart from each other */
    size_t n, cap;
    uint64_t limit; /* nothing from here on is kept */
    bool used;      /* some column of it holds items */
} d7__taken;

typedef struct d7__repair_column {
    size_t taken;     /* place in `takens` */
    uint64_t paged;   /* items in pages, damaged ones among them */
    uint64_t there;   /* and in the tail */
    uint64_t damaged; /* how many of those in pages are */
    uint64_t limit;   /* of this column: nothing from here on is kept */
    uint64_t kept;    /* items of the new file */
    uint64_t filled;  /* of those: entries of a lost page of ms */
    bool more_lost;   /* something at its end was lost that nobody can count */
} d7__repair_column;

typedef struct d7__repair_plan {
    d7_reader *r;
    const d7_reader *tailed; /* NULL, or a reader of the same file that knows the tail, and of each dataset */
    const d7__range *tail;   /* [datasets] the items that it holds */
    d7__survey survey;
    d7__taken *takens; /* [D7__TAKEN_OWN + datasets] */
    size_t n_takens;
    d7__repair_column *columns; /* [datasets] */
    uint32_t ms;      /* the dataset of milliseconds where it belongs to photons that are there; else
                                   D7_NO_DATASET */
    d7__range *fills; /* [n_fills] of its items, rising, apart from each other: lost, and filled */
    size_t n_fills, cap_fills;
    bool keep_ragged;
    bool changed_header;
    uint64_t lost_attributes;
} d7__repair_plan;

/* Fills in everything but r, tailed, tail, survey and keep_ragged. The reader has been checked. Returns 0; D7_ERR_NOMEM; errors of
 * reading. */
int d7__repair_plan_make(d7__repair_plan *p, d7_error *err);
void d7__repair_plan_free(d7__repair_plan *p);

/* Items [from, from + n) of a dataset, all of them in pages or all in the tail. Returns as d7_reader_read(). */
int d7__repair_read(const d7__repair_plan *p, uint32_t ds, uint64_t from, size_t n, void *out, d7_error *err);

/* Where an item goes: its number in the new file; an item that is taken out has that of the next one kept. */
uint64_t d7__taken_map(const d7__taken *t, uint64_t item);

/* The first range kept within [from, to): false where there is none. */
bool d7__taken_kept(const d7__taken *t, uint64_t limit, uint64_t from, uint64_t to, d7__range *ret);

/* ---- texts ---- */

/* Bytes as UTF-8: what is none becomes U+FFFD. In memory of the table's, with a NUL after; NULL: none. */
char *d7__repair_text(const d7_alloc *a, const char *text, size_t bytes, size_t *ret_bytes);

/* The attributes of the new file, in their order: gaps and markers at their new places, then new gap records. Returns
 * 0; D7_ERR_NOMEM. */
int d7__repair_attributes(const d7__repair_plan *p, d7__attributes *to, d7_error *err);

/* ---- writing ---- */

/* Writes the new file and closes it; the map of the plan's reader is gone then. On failure nothing is left. */
int d7__repair_write(const d7__repair_plan *p, const char *path, const d7_repair_options *o,
                     d7_progress_fn *progress, void *ctx, d7_error *err);

/* ---- opening, judging, reporting (repair.c) ---- */

/* Opens a file that nobody is writing. Returns as d7_reader_open(); D7_ERR_LOCKED. */
int d7__repair_open(const char *path, const d7_repair_options *o, bool pages_only, d7_reader **ret,
                    d7_error *err);

/* Is it closed, and free of damage by verify? Returns as d7_reader_verify(). */
int d7__repair_is_fine(d7_reader *r, d7_progress_fn *progress, void *ctx, bool *ret_fine, d7_error *err);

/* The same for a file that was made; D7_ERR_CORRUPT where it is not. */
int d7__repair_verify(const char *path, const d7_repair_options *o, d7_progress_fn *progress, void *ctx,
                      d7_error *err);

/* Takes over why checksums beside the file could not be used, unless the report says it already. */
void d7__report_checksums(const d7_reader *r, d7_repair_report *report);

/* The report of a file of which everything is kept. Returns 0; D7_ERR_NOMEM (release what there is). */
int d7__report_start(const d7_reader *r, d7_repair_report *report);

#endif

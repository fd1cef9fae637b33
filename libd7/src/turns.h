/* How the pages of a group's columns take turns, and where they leave that.
 *
 * A writer is given some items of each column, one column after the other in the header's order, again and again: where a turn is
 * over, which a page of an earlier column shows, all columns are of equal lengths, but for items that wait for a page. A page that
 * is counted to the wrong column leaves them apart from then on. Where pages are not all full, or turns have not been so from
 * the start, nothing is said. */
#ifndef D7_SRC_TURNS_H
#define D7_SRC_TURNS_H

#include "level.h"

typedef struct d7__turns {
    d7__level level;
    bool late
        [D7__LEVEL_COLUMNS]; /* it had no page yet when a turn was over in which it should have had one: it does not count */
    bool begun;        /* there was a page, */
    size_t last;       /* of this column, */
    uint64_t last_at;  /* at this offset */
    uint64_t level_at; /* of the last page of the last turn that ended as it should, */
    size_t n_level;    /* of which there were so many, */
    size_t n_off;      /* and so many after it that did not, */
    size_t n_far;      /* some of them by more than a page */
    bool irregular;    /* this writer's pages take no turns */
} d7__turns;

/* Columns with so many pages as `r` knows now. */
void d7__turns_begin(d7__turns *t, const d7_reader *r, d7_group group);

/* The next page. `full`: it holds as many items as a page can. */
void d7__turns_page(d7__turns *t, uint32_t ds, uint64_t offset, bool full);

/* Have columns been of equal lengths after some turns, and never since, with n turns or more after that? */
bool d7__turns_are_left(const d7__turns *t, size_t n);

/* Does a page count for turns as a full one? */
bool d7__turns_is_full(const d7_reader *r, uint32_t ds, const uint8_t *entry, size_t bytes);

#endif

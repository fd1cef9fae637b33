/* Columns of a group on the way through a file. Writers come to the end of all columns again and again: then these may all be
 * of equal lengths. With a page too many in one of them, or one too few, they are so far more rarely, or never. */
#ifndef D7_SRC_LEVEL_H
#define D7_SRC_LEVEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "d7/d7.h"

/* Recordings have a handful of columns; those behind are not looked at. */
enum { D7__LEVEL_COLUMNS = 64 };

typedef struct d7__level {
    uint32_t ids[D7__LEVEL_COLUMNS];
    size_t items[D7__LEVEL_COLUMNS];   /* of a page */
    uint64_t pages[D7__LEVEL_COLUMNS]; /* so far */
    size_t n;
    bool reached;            /* they may have been of equal lengths; */
    uint64_t since, longest; /* pages since then, and the most between two such places */
} d7__level;

/* All columns of the group, without pages. */
void d7__level_begin(d7__level *l, const d7_reader *r, d7_group group);

/* Leaves out columns that have no pages by now. */
void d7__level_drop_empty(d7__level *l);

/* A page of that dataset, which may be of no group. */
void d7__level_count(d7__level *l, uint32_t ds);

/* Are they of equal lengths now? */
void d7__level_look(d7__level *l);

#endif

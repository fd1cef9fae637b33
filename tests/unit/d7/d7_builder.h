/* Files that no writer of ours makes: entries of any kind in any order, pages of any length. */
#ifndef TESTS_UNIT_D7_D7_BUILDER_H
#define TESTS_UNIT_D7_D7_BUILDER_H

#include "index.h"
#include "memio.h"
#include "out.h"

/* Frames entries one after the other. */
typedef struct builder {
    memio file;
    d7_io io;
    d7_alloc alloc;
    d7__out out;
    d7__page_ref pages[2048]; /* [n_pages] framed so far */
    size_t n_pages;
} builder;

/* Begins with a header. */
void build_start(builder *b, const d7_dataset *datasets, size_t n, uint32_t step, uint32_t bytes_per_page);

/* Each returns the entry's offset. */
uint64_t build_entry(builder *b, const void *entry, size_t bytes);
uint64_t build_page(builder *b, uint32_t ds, d7_type type, const void *values, size_t n);
uint64_t build_index(builder *b, size_t from, size_t n, const d7_attribute *attribute); /* of those pages */

void build_epilogue(builder *b, uint64_t index, bool pad);

/* Moves the file to `file`. The list of pages stays. */
void build_end(builder *b, memio *file);

#endif

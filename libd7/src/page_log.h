/* A list of pages in the order of the file, as the differences of their offsets: 2 to 4 bytes a page where pages are of usual
 * sizes, and never more than 8 where entries are of the format's. It is read from front to back. */
#ifndef D7_SRC_PAGE_LOG_H
#define D7_SRC_PAGE_LOG_H

#include "chunks.h"

/* Where a page is. */
typedef struct __attribute__((packed, aligned(4))) d7__page_ref {
    uint64_t offset; /* of its first fragment header */
    uint32_t dataset_id;
} d7__page_ref;

/* All zero: empty. */
typedef struct d7__page_log {
    d7__chunks bytes;
    size_t n_bytes;
    size_t n;      /* pages */
    uint64_t last; /* offset of the last one */
} d7__page_log;

/* How far it has been read. All zero: not at all. */
typedef struct d7__page_cursor {
    size_t at; /* byte */
    size_t n;  /* pages */
    uint64_t last;
} d7__page_cursor;

/* Room for one more page. Returns 0; D7_ERR_NOMEM. */
int d7__page_log_reserve(const d7_alloc *a, d7__page_log *log);

/* Adds a page to reserved room; its offset is that of the last one or more. */
void d7__page_log_add(d7__page_log *log, d7__page_ref page);

/* The next page; false: there is none. */
bool d7__page_log_next(const d7__page_log *log, d7__page_cursor *cursor, d7__page_ref *ret_page);

/* Where the log ends now: pages that are added are read from there on. */
d7__page_cursor d7__page_log_end(const d7__page_log *log);

/* Empties it; memory stays. */
void d7__page_log_clear(d7__page_log *log);

void d7__page_log_free(const d7_alloc *a, d7__page_log *log);

#endif

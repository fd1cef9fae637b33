/* Files of one other writer, whose blocks have no begin and end bits. */
#ifndef D7_SRC_UNFRAMED_H
#define D7_SRC_UNFRAMED_H

#include "framing.h"

/* That writer gives each dataset a single page, so an entry may have up to 64 MiB there, and its values twice that. */
enum { D7__UNFRAMED_ENTRY_MAX = 64 * 1024 * 1024, D7__UNFRAMED_PAGE_MAX = 2 * D7__UNFRAMED_ENTRY_MAX };

/* As d7__entry_at() and d7__entry_next(). What follows damage cannot be found: FOUND_BAD's `next` is the end of
 * the file. */
int d7__unframed_at(d7__framing *f, uint64_t offset, d7__found *ret_found, d7__entry *ret_entry,
                    d7_error *err);
int d7__unframed_next(d7__framing *f, uint64_t from, d7__found *ret_found, d7__entry *ret_entry,
                      d7_error *err);

/* Where the last place is that may be an epilogue's beginning. Returns as d7__find_epilogue(). */
int d7__unframed_find_epilogue(d7__framing *f, bool *ret_there, uint64_t *ret_at, d7_error *err);

#endif

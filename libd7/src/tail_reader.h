/* The tail beside a file that is open already. */
#ifndef D7_SRC_TAIL_READER_H
#define D7_SRC_TAIL_READER_H

#include "source.h"
#include "tail_file.h"

/* Opens the tail beside the file of `photons`, whose open file is used to see what is true of it, so that a tail of a
 * file that has taken its place is not. photons must live as long.
 * Returns 0; D7_ERR_NOTFOUND: there is none; D7_ERR_CORRUPT; D7_ERR_NOMEM; D7_ERR_IO. d7_tail_reader_peek() returns
 * D7_ERR_LIMIT where slots are larger than slot_bytes_max. */
int d7__tail_reader_beside(d7_tail_reader **ret_reader, const d7__source *photons, size_t slot_bytes_max,
                           d7_error *err);

/* After a look: the newest slot that is whole where it is not true of the file, and why; NULL: it is true, or none is
 * whole. It lives as long as what the look gave out. */
const d7_tail_slot *d7__tail_reader_untrue(const d7_tail_reader *r, d7__tail_verdict *ret_verdict);

#endif

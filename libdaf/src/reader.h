/* Readers, as the library uses them itself. */
#ifndef DAF_SRC_READER_H
#define DAF_SRC_READER_H

#include "property.h"

int daf__reader_open(daf *d, daf_reader **ret, const daf__property *p, daf_error *err);

/* Whether it has a sparse property, all of it in memory. */
bool daf__reader_is_held(const daf_reader *r);

/* Rows of a chunk; 0: the values are flat. */
uint64_t daf__reader_chunk_rows(const daf_reader *r);

#endif

/* The millisecond of every photon, from the dataset of their first photons, for rows that rise. */
#ifndef D7_CLI_EXPORT_MS_TIMES_H
#define D7_CLI_EXPORT_MS_TIMES_H

#include "d7/d7.h"

typedef struct ms_times ms_times;

/* NULL: the file has no usable /photons/ms, or out of memory. */
ms_times *ms_times_new(d7_reader *r);

/* The milliseconds of photons [row, row + n), good until the next call; photons whose millisecond was lost to damage get the last
 * one that is known. NULL: reading failed. */
const int64_t *ms_times_of(ms_times *t, uint64_t row, size_t n);

/* How many milliseconds the file has. */
uint64_t ms_times_count(const ms_times *t);

void ms_times_free(ms_times *t);

#endif

/* The milliseconds on their way to a file: /photons/ms holds the first photon of every millisecond, so that its values
 * change when photons before them are left out or others come before them.
 *
 * An item goes to the file when the photons before it have: the pages of a file then lie in an order that depends on its
 * values alone, not on the parts that it was put together from. */
#ifndef D7_CLI_TRANSFER_MS_H
#define D7_CLI_TRANSFER_MS_H

#include "transfer_move.h"

typedef struct ms_stream {
    mover *m;
    const move_source *source;
    mover_column *column;
    uint32_t dataset_id;
    uint64_t next, to; /* of the source's items, those that are still to be read */
    uint64_t first;    /* the source's item at values[0] */
    uint64_t *values;  /* [n] of `cap`, of which `ready` have their new values */
    size_t n, ready, cap;
    bool changed; /* among the ready ones is a new value */
    uint64_t row,
        out_row; /* the source's row `row` is row `out_row` of the file; those before are left out */
} ms_stream;

/* A source without milliseconds gives a stream that is empty. Returns 0, or an exit code. */
int ms_begin(ms_stream *ret, mover *m, const move_source *source);

/* Writes what begins at or before a row of the source, as far as it makes whole pages. Returns 0, or an exit code. */
int ms_until(ms_stream *s, uint64_t row);

/* The row before which ms_until() has to be called next, so that a page is written in its place. */
uint64_t ms_stop(const ms_stream *s);

/* From here on the source's row `row` is row `out_row` of the file. */
void ms_jump(ms_stream *s, uint64_t row, uint64_t out_row);

/* Writes the rest of the items before `to`. Returns 0, or an exit code. */
int ms_end(ms_stream *s);

void ms_free(ms_stream *s);

#endif

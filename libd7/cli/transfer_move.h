/* Moves items from files to a file.
 *
 * Rows of a set go side by side, as if they had been recorded one by one: where the pages lie depends on the items, not on
 * where the files that they come from were cut. A page whose items stay together is moved as it is, unknown fields and all;
 * its values are decoded nevertheless, to find damage. */
#ifndef D7_CLI_TRANSFER_MOVE_H
#define D7_CLI_TRANSFER_MOVE_H

#include "cli/progress.h"
#include "transfer_input.h"

typedef struct mover_column {
    uint32_t id;
    d7_type type;
    column_set set;
    size_t item_bytes, page_items;
    uint64_t items; /* in the file, those of the page that waits included */
    /* A page of the source that is moved as it is once all its rows are there: */
    bool waits;
    uint32_t source_id;
    uint64_t page, page_from, page_n;
} mover_column;

typedef struct mover {
    const command *self;
    d7_writer *writer;
    mover_column *columns; /* [n] */
    size_t n;
    uint64_t rows[N_SETS]; /* in the file */
    uint8_t *entry;        /* [entry_cap] */
    size_t entry_cap;
    cli_progress *bar;
    uint64_t done_bytes; /* of values */
} mover;

/* Rows that were left out. */
typedef struct skipped_rows {
    uint32_t dataset_id; /* of the source; one of the columns */
    column_set set;
    uint64_t first, n;
    uint64_t before; /* rows of the set that were left out before these */
} skipped_rows;

/* What to move, and what came of it. */
typedef struct move_source {
    const transfer_input *in;
    const uint32_t *ids;      /* [n] the dataset for each column of the file */
    const item_range *ranges; /* [n] */
    uint64_t first_row;       /* of the photons, that the milliseconds count from */
    bool last;                /* nothing comes after it */
    uint64_t max_bytes;       /* stop at a page before the file grows beyond; 0: no limit */
    uint64_t end_row;         /* out: where it stopped, for one set of rows */
    skipped_rows *skipped;    /* [n_skipped] out: released by the caller */
    size_t n_skipped;
    uint64_t rows_skipped[N_SETS]; /* their sum */
} move_source;

/* Beside exit codes: pages of unexpected length showed that items were numbered wrongly; begin anew with the same reader. */
enum { MOVE_AGAIN = -1 };

/* Returns 0, or an exit code after saying why. */
int mover_begin(mover *ret, const command *self, d7_writer *w, const d7_dataset *datasets,
                const column_set *sets, size_t n, size_t bytes_per_page, cli_progress *bar);
/* Returns 0, MOVE_AGAIN, or an exit code after saying why. */
int mover_move(mover *m, move_source *source);
void mover_free(mover *m);

/* For transfer_ms.c. */

/* Appends values that need not wait for anything. Returns 0, or an exit code. */
int mover_append(mover *m, mover_column *c, const void *values, size_t n);
/* Does the source's page that begins with `item` have n items? */
bool mover_finds_page(const move_source *source, uint32_t dataset_id, uint64_t item, uint64_t n,
                      uint64_t *ret_page);
/* Moves a page as it is. Returns 0, or an exit code. */
int mover_put_page(mover *m, const move_source *source, mover_column *c);

#endif

/* One file made of a part of another: what copy does once and split again and again. */
#ifndef D7_CLI_TRANSFER_PART_H
#define D7_CLI_TRANSFER_PART_H

#include "transfer_move.h"
#include "transfer_output.h"
#include "transfer_records.h"

/* Which datasets go where. */
typedef struct transfer_plan {
    size_t n;
    d7_dataset *datasets; /* [n] of the file that is made */
    column_set *sets;     /* [n] */
    uint32_t *ids;        /* [n] of the source */
    item_range *ranges;   /* [n] of the source's items */
} transfer_plan;

/* Datasets that are wanted[n_datasets]. Returns 0, or an exit code after saying why. */
int plan_begin(transfer_plan *ret, const transfer_input *in, const bool *wanted);
/* Sets the ranges; returns the bytes of values in them. */
uint64_t plan_cut(transfer_plan *plan, const transfer_input *in, const transfer_cut *cut);
void plan_free(transfer_plan *plan);

typedef struct transfer_part {
    const command *self;
    const transfer_input *in;
    transfer_plan *plan;
    const char *path;
    bool overwrite;
    transfer_cut cut;
    bool is_cut; /* `place` goes into the attributes */
    record_place place;
    uint64_t max_bytes; /* 0: no limit */
    cli_progress *bar;
    uint64_t done_bytes; /* of all parts so far: counted on */
    /* What came of it: */
    uint64_t end_row; /* where a part with a limit stopped */
    uint64_t file_bytes;
    skipped_rows *skipped; /* [n_skipped], released by part_free() */
    size_t n_skipped;
} transfer_part;

/* Makes the file. Returns 0, MOVE_AGAIN, or an exit code after saying why, with nothing left of the file. */
int part_make(transfer_part *part);
void part_free(transfer_part *part);

/* What was left out, as lines on standard error. */
void part_tell_skipped(const transfer_part *part);
/* The same as a JSON list on standard output. */
void part_print_skipped(const transfer_part *part);

#endif

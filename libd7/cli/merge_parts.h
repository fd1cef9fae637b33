/* The parts that d7 merge is given: what they hold, in which order they come. */
#ifndef D7_CLI_MERGE_PARTS_H
#define D7_CLI_MERGE_PARTS_H

#include "transfer_input.h"
#include "transfer_records.h"

typedef struct merge_part {
    const char *path;
    size_t given;          /* its place on the command line */
    uint64_t rows[N_SETS]; /* of each set; milliseconds counted as rows of theirs */
    bool knows[N_SETS];    /* its attributes tell where it begins: */
    uint64_t first[N_SETS];
    bool has_number;
    uint64_t number; /* photond.part */
    split_mark mark;
    char *cut;             /* photond.cut, in memory of its own; NULL: it has none */
    bool ragged;           /* columns of unequal lengths: only the last part may be so */
    uint64_t base[N_SETS]; /* rows before it in the result */
    uint64_t repeated_ms;  /* milliseconds at its beginning that the part before has too */
    uint64_t bytes;        /* of values */
} merge_part;

typedef struct merge_parts {
    const command *self;
    merge_part *parts; /* [n] in the order of the result, once merge_order() has been called */
    size_t n;
    input_options options;
    bool force;   /* whatever the parts tell of themselves */
    bool partial; /* parts before and after those given may be missing */
} merge_parts;

/* Looks into every part. All must have the datasets of the first. Returns 0, or an exit code after saying why. */
int merge_survey(merge_parts *m);

/* Puts them in order and looks whether they belong together. Returns 0, or an exit code after saying why. */
int merge_order(merge_parts *m);

void merge_free(merge_parts *m);

/* Opens a part again. ids[n]: its datasets, for the n names. Returns 0, or an exit code: also when it has changed since. */
int merge_open(const merge_parts *m, const merge_part *part, const d7_dataset *datasets, size_t n,
               transfer_input *ret, uint32_t *ids);

#endif

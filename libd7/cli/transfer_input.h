/* A file that copy, split or merge reads: its datasets sorted into sets of columns that are cut alike, and what of it is
 * wanted. */
#ifndef D7_CLI_TRANSFER_INPUT_H
#define D7_CLI_TRANSFER_INPUT_H

#include "attribute_list.h"
#include "cli/pool.h"
#include "commands.h"
#include "transfer_records.h"

/* Columns of one set have one value for each row. In a file that has neither photons nor tags, all datasets of equal
 * length are the rows of SET_PHOTONS. */
typedef enum column_set { SET_OWN = 0, SET_PHOTONS, SET_TAGS, SET_MS, N_SETS } column_set;

typedef struct transfer_input {
    const command *self;
    const char *path;
    d7_reader *reader;
    d7_executor executor;
    uint32_t n_datasets;
    column_set *sets; /* [n_datasets] */
    uint32_t ms;      /* the dataset of milliseconds; D7_NO_DATASET: none */
    bool grouped;     /* it has photons or tags */
    bool
        trimmed; /* not closed, or damage is left out: what some column of a set lacks is left out of the others too */
    bool skip_damaged;
} transfer_input;

typedef struct input_options {
    bool unframed, skip_damaged;
    bool count; /* as input_count() */
    cli_pool *pool;
} input_options;

/* *ret must stay where it is. Returns 0, or an exit code after saying why. */
int input_open(transfer_input *ret, const command *self, const char *path, const input_options *options);
void input_close(transfer_input *in);

/* Looks into every page, so that all lengths are right. Returns 0, or an exit code after saying why. */
int input_count(const transfer_input *in);

/* Compares the file with the checksums beside it, if there are any: pages that have changed are damaged ones from then on.
 * Returns 0, or an exit code after saying why. */
int input_compare(const transfer_input *in);

/* Lengths of the sets, for the questions that are asked of every dataset; true until pages of unexpected length are met. */
typedef struct set_lengths {
    uint64_t rows[N_SETS]; /* as input_rows() */
    uint64_t ms;           /* milliseconds that count */
} set_lengths;

set_lengths input_lengths(const transfer_input *in);

/* Items of a dataset that count. */
uint64_t input_items(const transfer_input *in, const set_lengths *lengths, uint32_t dataset_id);

/* Says on standard error what columns of a file that is not closed hold more than others, which is left out. */
void input_tell_trimmed(const transfer_input *in, const bool *wanted);

/* Whether there is a column of that set, and the length of its shortest; one without items is not in use and does not
 * count. */
bool input_has(const transfer_input *in, column_set set);
uint64_t input_rows(const transfer_input *in, column_set set);

/* Where the milliseconds are cut when photons are cut before `row`: a part that begins there has them from *ret_first on
 * (the first may have begun before), one that ends there has those before *ret_end. Returns 0, or an exit code. */
int input_ms_bounds(const transfer_input *in, uint64_t row, uint64_t *ret_first, uint64_t *ret_end);

/* Adds the attributes to a list; gaps and markers that tell a dataset by its number tell it by its name there. Returns 0, or an exit code after saying why. */
int input_attributes(const transfer_input *in, attribute_list *list);

/* What of a file is wanted. */
typedef struct transfer_cut {
    uint64_t from[N_SETS], to[N_SETS]; /* of SET_PHOTONS, SET_TAGS and SET_MS; UINT64_MAX: all there is */
    bool own;                          /* the datasets of SET_OWN too */
} transfer_cut;

transfer_cut cut_of_all(void);

typedef struct item_range {
    uint64_t from, to;
} item_range;

/* The items of a dataset that a cut has. */
item_range cut_range(const transfer_input *in, const set_lengths *lengths, const transfer_cut *cut,
                     uint32_t dataset_id);

/* Says what damage is known, and whether it stops the command: returns 0 or CLI_PROBLEMS. wanted[n_datasets] */
int input_judge(const transfer_input *in, const bool *wanted, const transfer_cut *cut);

/* Is something lost at the end of what is wanted? */
bool input_lost_end(const transfer_input *in, const bool *wanted, const transfer_cut *cut);

/* records_map(), see transfer_records.h, for records of this file. Returns false when memory runs out. */
bool input_map_records(const transfer_input *in, attribute_list *list, record_map *map, void *ctx);

/* Gives the records among the attributes the items that they have in the cut. Returns false when memory runs out. */
bool cut_records(const transfer_input *in, const transfer_cut *cut, attribute_list *list);

/* As d7_reader's damage, for the user: "...; d7 repair ..." on standard error. Returns CLI_PROBLEMS for damage, else
 * CLI_USAGE. */
int input_fail(const transfer_input *in, const d7_error *err);

#endif

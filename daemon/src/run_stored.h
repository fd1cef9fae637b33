/* What a `.photons` file of ours tells of its run: the specification that it was opened by. Any thread.
 */
#ifndef PD_RUN_STORED_H
#define PD_RUN_STORED_H

#include "run.h"

typedef struct pd_run_stored {
    d7_reader *reader;
    pd_run_spec spec;       /* what the attributes say; the rest is the caller's */
    bool closed;            /* the file is */
    bool instead;           /* it was begun behind what was durable of a part that failed */
    uint64_t last_sequence; /* photond.sequence of a closed file */
    pd_dataset *datasets;   /* [spec.n_datasets]; texts are the reader's, or of the JSON */
    pd_attribute *attributes;
    uint64_t *first_items; /* [spec.n_datasets] that the parts before it hold */
    struct json_t *json;   /* photond.datasets */
    struct json_t *open;   /* photond.open; NULL: none */
} pd_run_stored;

/* Reads it, attributes and header only. Returns 0; -1 with why: it cannot be read, or is not of this daemon. */
PD_MUST_USE int pd_run_stored_read(pd_run_stored *stored, const pd_datadir *dir, const char *path,
                                   pd_error *why);

/* Reads the last file of the run that NAME.photons is the first of, and says how many there are. Returns as above. */
PD_MUST_USE int pd_run_stored_last(pd_run_stored *stored, const pd_datadir *dir, const char *name,
                                   uint32_t *ret_parts);

/* Items of each dataset that the run has up to its end: [spec.n_datasets]. */
void pd_run_stored_items(const pd_run_stored *stored, uint64_t *ret_items);

/* What the file does not say: from the configuration and the slot. */
void pd_run_stored_configure(pd_run_stored *stored, const pd_config *config, const char *name,
                             const d7_tail_slot *slot);

void pd_run_stored_free(pd_run_stored *stored);

#endif

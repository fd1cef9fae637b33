/* A recorder on the disk model: batches into pages, slots, syncs, parts, as the daemon does it but small,
 * with libd7's own functions for slots and recovery. What it records is a function of the batch's number and
 * size, so that a recovered file can be checked value by value. */
#ifndef TESTS_FAULT_RECORDER_H
#define TESTS_FAULT_RECORDER_H

#include "disk_model.h"

enum {
    RECORDER_DATASETS = 2,
    RECORDER_PAGE_BYTES = 600,
    RECORDER_BATCHES_MAX = 4096,
    RECORDER_PARTS_MAX = 64
};

/* The whole run, on and beside the disk: what its producer and its owner know. */
typedef struct run {
    disk *disk;
    uint32_t counts[RECORDER_BATCHES_MAX]; /* [batch] its size, from 1 */
    uint64_t acknowledged;                 /* the last batch that was called durable */
    struct run_part {
        char path[24], tail_path[32];
        uint64_t first_sequence;
        uint64_t last_sequence; /* of one that is being closed */
    } parts[RECORDER_PARTS_MAX];
    unsigned n_parts;
    const char *wrong; /* the first thing found wrong, NULL: nothing */
} run;

extern const uint8_t run_file_id[D7_TAIL_FILE_ID_BYTES];
extern const d7_type run_types[RECORDER_DATASETS];

/* Pages of one part being written. */
typedef struct recorder {
    run *run;
    d7_tail *tail;   /* NULL in the plain design */
    const d7_io *io; /* the tail's; in the plain design the disk's */
    void *file;      /* opened through it */
    uint64_t length; /* of the file */
    uint64_t batch;  /* the last one in it */
    bool ended;      /* its epilogue was written */
    uint64_t items[RECORDER_DATASETS];
    uint32_t n_partial[RECORDER_DATASETS];
    uint8_t partial[RECORDER_DATASETS][RECORDER_PAGE_BYTES];
    void *plain_tail; /* the plain design: the tail's file, two slots */
    uint64_t plain_generation;
} recorder;

/* The design that must fail: two slots in turns, and no proof that the file holds what they count on. */
extern bool recorder_plain;

/* How many values a batch of this size has in a dataset, and which. */
uint32_t run_batch_items(uint32_t count, unsigned dataset);
uint64_t run_value(uint64_t batch, uint64_t i, unsigned dataset);

/* Notes what is wrong, once. */
void run_wrong(run *r, const char *what);

/* Makes the run's next part, from the batch after first_sequence on: file and tail are there and synced. */
void recorder_create(recorder *r, run *owner, uint64_t first_sequence);

/* Goes on with a part that was recovered. */
void recorder_resume(recorder *r, run *owner, unsigned part, d7_tail *tail);

/* Writes a slot; begins a sync with it. Returns 0; D7_ERR_NOSPACE; D7_ERR_IO. */
int recorder_mark_slot(recorder *r);
int recorder_begin_sync(recorder *r);

/* Both files' syncs have ended: what is durable now goes to the run's `acknowledged`. Returns 0; D7_ERR_IO:
 * one failed. */
int recorder_finish_sync(recorder *r, uint64_t batch, bool synced);

/* Recovery of a part in the plain design. Returns 0, and the recorder to go on with; D7_ERR_CORRUPT. */
int recorder_plain_recover(recorder *r, run *owner, unsigned part);

/* Closes files, whatever is under way. */
void recorder_free(recorder *r);

/* The next batch; pages that are full go to the file. Returns 0, or what writing returned. */
int recorder_append(recorder *r, uint32_t count);

/* Ends the file as the writer does: short pages, index, sync; epilogue, sync; the tail is removed. Any step
 * may fail. */
int recorder_close(recorder *r);

/* Does the part hold exactly the batches (first_sequence, last], the last items in `slot` (NULL: none)? */
void run_check_part(run *r, unsigned part, uint64_t last, const d7_tail_slot *slot);

#endif

/* A recording by the real writer on the disk model, for tests of recovery and of readers: what is in it,
 * crashes, damage. */
#ifndef TESTS_UNIT_D7_RECORDING_H
#define TESTS_UNIT_D7_RECORDING_H

#include "disk_model.h"

extern const char recording_path[], recording_tail_path[];
extern const uint8_t recording_file_id[D7_TAIL_FILE_ID_BYTES];
extern const d7_tail_layout recording_layout;

enum { RECORDING_BATCH = 25, RECORDING_VALUES = 40000, RECORDING_NOTES = 64 };

/* Batch k adds RECORDING_BATCH values to /x and one to /ms. */
typedef struct recording {
    disk *disk;
    d7_tail *tail;
    d7_writer *writer;
    uint16_t x[RECORDING_VALUES]; /* all there are to be */
    uint64_t ms[RECORDING_VALUES];
    uint64_t batch;                  /* the last one written */
    char notes[RECORDING_NOTES][16]; /* keys of attributes */
    uint64_t n_notes;
} recording;

/* Made and synced, without a batch. */
recording *recording_new(void);
/* Slots of batches 0, 20 (pinned), 30 and 35, batches up to 40, and the program is gone. */
recording *recording_new_stopped(void);
/* The program is gone. */
void recording_stop(recording *r);
void recording_free(recording *r);

/* A file like the recording's, with one attribute. */
d7_writer *recording_writer(const d7_io *io, const d7_attribute *attribute);
/* An attribute of its own. */
void recording_put_note(recording *r);
void recording_put_batches(recording *r, uint64_t n);
void recording_put_mark(recording *r);
void recording_put_sync(recording *r);

/* Recovery; the tail to go on with becomes the recording's. */
d7_tail_recover_options recording_options_for(const recording *r);
int recording_recover_with(recording *r, const d7_tail_recover_options *o, d7_tail_recovery *recovery,
                           d7_error *err);
/* Goes on from what was recovered. */
void recording_resume(recording *r);
int recording_recover(recording *r, d7_tail_recovery *recovery, d7_error *err);

/* Does the file hold what pages do up to `batch`, the slot the rest, and both nothing else? */
void recording_check_holds(recording *r, const d7_tail_slot *slot, uint64_t batch);
/* Recovers, to that batch. */
void recording_check_recovers_to(recording *r, uint64_t batch, unsigned n_rejected);

/* Bytes of a file on the disk; SIZE_MAX where there is none. */
size_t recording_size_of(const recording *r, const char *name);
uint32_t recording_sum_of(const recording *r, const char *name);
/* To be freed. */
uint8_t *recording_copy_of(const recording *r, const char *name, size_t *ret_bytes);
/* Makes a file shorter; changes one byte of it. */
void recording_shorten(recording *r, const char *name, size_t bytes);
void recording_spoil(recording *r, const char *name, size_t at);
/* Where the place of the slot of a batch begins, and what it claims. */
size_t recording_place_of(const recording *r, uint64_t batch, d7_tail_slot *ret_slot);

#endif

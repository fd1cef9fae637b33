/* Reading and decoding many chunks: a batch of jobs is filled with the chunks' bytes by the calling thread, decoded by
 * the executor's, and finished by the calling thread again. Two batches in turn read ahead of the decoding.
 *
 *   empty --fill--> filled --start--> decoding --finish--> empty
 */
#ifndef DAF_SRC_SHARD_BATCH_H
#define DAF_SRC_SHARD_BATCH_H

#include "shard.h"

typedef struct daf__job daf__job;

typedef struct daf__batch {
    daf__shard *shard; /* borrowed */
    daf__job *jobs;
    unsigned n_jobs, n_used;
    bool running;
} daf__batch;

/* Where numeric chunks go when they need not be seen one by one: `values` of the box. */
typedef struct daf__target {
    daf__span box;
    uint8_t *values;
} daf__target;

/* Gets each decoded chunk in the calling thread, in their order. raw: NULL when it is absent from the file. */
typedef struct daf__sink {
    void *context;
    int (*take)(void *context, uint64_t k, const uint8_t *raw, size_t bytes, daf_error *err);
} daf__sink;

int daf__batch_init(daf__batch *b, daf__shard *s, daf_error *err);

/* Waits for what is under way; a zeroed batch is fine. */
void daf__batch_free(daf__batch *b);

/* Takes chunks from list->chunks[*at] on, as many as the jobs take, and reads them. target: NULL: for a sink. */
int daf__batch_fill(daf__batch *b, const daf__chunk_list *list, uint64_t *at, const daf__target *target,
                    daf_error *err);

/* here: in this thread. */
void daf__batch_start(daf__batch *b, bool here);

/* Waits, and hands on what was decoded. sink: NULL: it went to the target, or is not wanted. */
int daf__batch_finish(daf__batch *b, const daf__sink *sink, daf_error *err);

/* All of the list, by two batches in turn, which the shard keeps for the next time. One of target and sink is NULL. */
int daf__decode_chunks(daf__shard *s, const daf__chunk_list *list, const daf__target *target,
                       const daf__sink *sink, daf_error *err);

#endif

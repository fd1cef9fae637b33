/* What a run of `overflow: drop` has dropped. A batch for which there is no room is dropped whole: it counts as received, and
 * a gap record (photond.gap.N, cause `overflow`) says where its events are missing. Once dropping has begun it goes on until
 * half of the run's slots are free, so that gaps are few and long.
 *
 * The milliseconds of dropped batches are kept, as ones without a photon. Those for which there is no page either are owed, and
 * written before anything else is stored; the attribute photond.owed_ms says how many were owed at the last mark.
 *
 * All of this is part of what the run is at S: records are written before each mark, and a mark without them is not made.
 * Thread: the loop's.
 */
#ifndef PD_RUN_DROP_H
#define PD_RUN_DROP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/batch.h"

struct pd_run;
struct pd_attribute;

enum { PD_DROP_RANGES = 32 };

/* Sequence numbers of batches that followed one upon the other. */
typedef struct pd_drop_range {
    uint64_t first, last;
} pd_drop_range;

/* Where events of one group are missing: its newest gap. */
typedef struct pd_drop_gap {
    uint64_t item, count;
    uint64_t number; /* of its record, when that is written */
    bool written;
    bool news; /* the record is not written, or says less */
} pd_drop_gap;

typedef struct pd_run_drop {
    bool allowed; /* the run is one of overflow: drop */
    bool now;     /* the last batch was dropped: the newest gap goes on */
    uint32_t ms_column;
    uint64_t photons, batches;             /* dropped, in all of the run */
    uint64_t owed;                         /* milliseconds that are in no page yet */
    uint64_t owed_written;                 /* as photond.owed_ms says */
    pd_drop_gap *gaps;                     /* [groups] */
    uint64_t gap_batches;                  /* of the newest gap */
    uint64_t gap_ms;                       /* milliseconds in it */
    uint64_t gap_monotonic_ns, gap_utc_ns; /* when it began */
    uint64_t n_records;
    uint64_t logged_ns;
    pd_drop_range ranges[PD_DROP_RANGES]; /* the newest; range i at i % PD_DROP_RANGES */
    uint64_t n_ranges;
} pd_run_drop;

/* Returns 0, or -1 when out of memory. */
int pd_run__drop_init(struct pd_run *run);
void pd_run__drop_free(struct pd_run *run);

/* Whether a batch may be stored, if it fits. Pays what is owed, as far as there is room. */
bool pd_run__drop_may_end(struct pd_run *run);

/* A batch is stored: what is dropped later is another gap. */
void pd_run__drop_over(struct pd_run *run);

/* Drops a batch that was checked. */
void pd_run__drop(struct pd_run *run, const wire_batch *batch);

/* Writes what is owed, as far as there is room. Returns whether nothing is owed any more. */
bool pd_run__drop_pay(struct pd_run *run);

/* Before a mark, and the close: what no record says yet. Returns 0, or -1 when out of memory. */
int pd_run__drop_records(struct pd_run *run);

/* After a restart: what the attributes of the file tell. */
void pd_run__drop_resume(struct pd_run *run, const struct pd_attribute *attributes, size_t n);

#endif

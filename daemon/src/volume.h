/* A data folder with its two threads: the writer, which owns the open `.photons` files, and the syncer,
 * which does whatever waits for the disk.
 *
 * The loop submits tasks; each comes back to the loop by its event, with its result. Per run:
 *
 *   open         writer: makes the file and its tail under hidden names: header, attributes known so far, a slot
 *                syncer: sync, names (replacing nothing, the tail first), sync of the folder
 *   page ...     writer: frames, writes in large pieces
 *   attributes   writer: into the file with the next mark
 *   mark S       writer: hands all it has to the system, writes a slot of the tail that says S
 *                to be synced: syncer: fdatasync of file and tail; then S is durable
 *   room         writer: sets disk space aside for what is to come. Without so much of it on the disk the task waits, and comes
 *                back when there is, or when the close has come by
 *   close        writer: hands over
 *                syncer: index, sync, epilogue, sync, removes the tail, sync of the folder
 *   drop         writer: gives the file up as it is (after a failure)
 *
 * Tasks of one run are carried out in the order in which they were submitted. A file belongs to the
 * writer, but to the syncer from the moment an open or close reaches it; the loop submits nothing more
 * for it in between. A mark under way at the syncer only waits (fdatasync), which libd7 allows beside
 * the writer's calls; a run has one such mark under way at most.
 *
 * Failures. A full disk is a pause: the thread that met it tries again every half second, and says so
 * (full). Any other failure is final for that file: this task and all later ones but `drop` come back
 * failed, the reason is in pd_file_failure(); other files go on. A failed sync is never tried again.
 */
#ifndef PD_VOLUME_H
#define PD_VOLUME_H

#include <d7/d7.h>
#include <stdbool.h>
#include <stdint.h>

#include "counters.h"
#include "datadir.h"
#include "dataset.h"
#include "disk.h"
#include "error.h"
#include "inbox.h"
#include "keeper.h"

typedef struct pd_volume pd_volume;
typedef struct pd_file pd_file; /* one run's file, the threads' side of it */

typedef enum pd_task_kind {
    PD_TASK_OPEN,
    PD_TASK_PAGE,
    PD_TASK_ATTRIBUTES,
    PD_TASK_MARK,
    PD_TASK_ROOM,
    PD_TASK_CLOSE,
    PD_TASK_DROP
} pd_task_kind;

/* The head of every task. Owned by the volume from pd_volume_submit() until event.happened is called. */
typedef struct pd_task {
    pd_event event; /* `happened` is set by the submitter */
    pd_task_kind kind;
    int result; /* 0, or -1: the file has failed */
    pd_file *file;
} pd_task;

typedef enum pd_open_outcome {
    PD_OPEN_DONE,
    PD_OPEN_TAKEN,  /* the name is not free */
    PD_OPEN_CLOSED, /* the run of this id was closed before: see `closed` */
    PD_OPEN_NOROOM, /* the disk is full */
    PD_OPEN_FAILED
} pd_open_outcome;

/* Everything pointed to is borrowed until the task is back. */
typedef struct pd_open_task {
    pd_task task; /* task.file is set when the outcome is DONE */
    const uint8_t *id;
    uint32_t part;           /* of the run: a later one has just the name that is asked for, or none */
    uint64_t first_sequence; /* the run's last one before it */
    const char *producer;    /* its instance */
    uint64_t epoch;
    d7_tail_clock clock;
    const char *name;
    bool counter;   /* a taken name gets one: NAME-2, NAME-3, ... */
    bool displaces; /* a file of that name, of which nothing counts: it becomes NAME.photons.cut.N */
    const d7_dataset *datasets;
    size_t n_datasets;
    const d7_attribute *attributes;
    size_t n_attributes;
    pd_open_outcome outcome;
    pd_error why;                            /* of an outcome that is not DONE */
    char given_name[PD_PART_NAME_BYTES + 1]; /* the name it got */
    uint64_t closed_sequence;                /* CLOSED: the last one of the run of that name */
    uint64_t *closed_items;                  /* [n_datasets] of the submitter: and how many items it holds */
    uint32_t closed_parts;                   /* in so many files */
} pd_open_task;

typedef struct pd_page_task {
    pd_task task;
    uint32_t dataset;
    const uint8_t *entry; /* [bytes] */
    size_t bytes;
    size_t n_items;
} pd_page_task;

typedef struct pd_attributes_task {
    pd_task task;
    const pd_attribute *attributes; /* [n] */
    size_t n;
} pd_attributes_task;

typedef struct pd_mark_task {
    pd_task task;
    bool sync;
    d7_tail_mark mark; /* what lies before this mark, and what is not in whole pages */
} pd_mark_task;

typedef struct pd_room_task {
    pd_task task;
    uint64_t least, length; /* of the file: for so much space is needed, and so much is wanted */
    uint64_t n_entries;     /* that come until then, about */
} pd_room_task;

typedef struct pd_close_task {
    pd_task task;
    uint64_t sequence; /* the run's last, kept as the attribute photond.sequence */
} pd_close_task;

typedef struct pd_volume_options {
    const char *name; /* borrowed; "" for the first one */
    const char *data_dir;
    unsigned file_mode;
    unsigned dir_mode;
    bool checksums;              /* kept beside run files */
    bool certificates;           /* put beside closed files, */
    const char *certificate_key; /* and signed by the key of this file; "": they are not signed */
    pd_keeper_options keeper;    /* its counters are those below */
    int64_t gid;                 /* group of files; -1: left as it is */
    const d7_io *io;             /* of run files; NULL: the data folder's */
    pd_inbox *inbox;
    pd_counters *counters;
    struct pd_run_names *names; /* shared by the volumes; NULL: there is but one */
} pd_volume_options;

/* Opens and locks the data folder and starts the threads. Returns 0; -1 with err. */
PD_MUST_USE int pd_volume_start(pd_volume **ret, const pd_volume_options *options, pd_error *err);

/* The loop: hands a task over; never waits. */
void pd_volume_submit(pd_volume *volume, pd_task *task);

/* Ends the threads; every task must be back. NULL is fine. */
void pd_volume_stop(pd_volume *volume);

/* From now on a full disk is a failure: for an end that is not to wait. Any thread. */
void pd_volume_give_up(pd_volume *volume);

/* A disk that keeps a thread waiting for longer is slow. */
#define PD_DISK_SLOW_NS 1000000000u

/* What the disk is doing. Any thread. */
typedef struct pd_volume_state {
    bool full;           /* a write waits for room */
    uint64_t busy_ns;    /* since when a thread waits for the disk, on the monotonic clock; 0: none does */
    uint64_t free_bytes; /* UINT64_MAX: not known */
} pd_volume_state;

/* Certificates that are not made yet; hooks that have not ended well. Any thread. */
uint64_t pd_volume_uncertified(const pd_volume *volume);
uint64_t pd_volume_unhooked(const pd_volume *volume);

/* NAME.photons turns out to have been closed before the start: what was still to be done after the close is. */
void pd_volume_closed_before(const pd_volume *volume, const char *name);

/* NAME.photons is still to be exported, or not any more: until then it is not final (keeper.h). Any thread. */
void pd_volume_hold(const pd_volume *volume, const char *name);
void pd_volume_release(const pd_volume *volume, const char *name);

pd_volume_state pd_volume_look(const pd_volume *volume);
pd_disk_syncs pd_volume_syncs(const pd_volume *volume); /* of its runs */
const char *pd_volume_name(const pd_volume *volume);
const pd_datadir *pd_volume_datadir(const pd_volume *volume);

/* Of a file whose task came back failed, until its drop or close is back. */
const char *pd_file_failure(const pd_file *file);

/* Whether that is the disk's: a write or a sync failed. */
bool pd_file_disk_failed(const pd_file *file);

/* Length of its index, if it were closed now. Any thread, until the drop or close is back. */
uint64_t pd_file_index_bytes(const pd_file *file);

/* Length as handed to the operating system. Any thread, until the drop or close is back. */
uint64_t pd_file_written(const pd_file *file);

/* Space that the file has: bytes of it, written or set aside; UINT64_MAX: this file system sets none aside. And what it would
 * come to if it were closed now. Any thread, as above. */
uint64_t pd_file_allocated(const pd_file *file);
uint64_t pd_file_closed_bytes(const pd_file *file);

/* Whether room for it could not be had when it was asked for last. Any thread, as above. */
bool pd_file_is_short(const pd_file *file);

#endif

/* One run's `.photons` file, the volume threads' side: libd7's writer, the tail beside (what pages do not hold yet:
 * NAME.photons.tail), their names, their failure.
 *
 * Functions that reach the disk return 0, D7_ERR_NOSPACE (nothing changed: try again), or another
 * D7_ERR_ code: the file has failed, and pd_file_failure() says why. Thread: the one that owns the file,
 * but for pd_file_sync() and pd_file_check_name(), which may run beside the others.
 *
 * The tail keeps the checksum of what the writer writes, so both are used under one lock; the waiting for the
 * disk is not.
 */
#ifndef PD_FILE_H
#define PD_FILE_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "volume.h"

/* Which file it is, whatever has its name: the inode is not used again as long as it is open. */
typedef struct pd_file_place {
    dev_t device;
    ino_t inode;
} pd_file_place;

struct pd_file {
    pthread_mutex_t tail_lock; /* guards the tail and, but for its sync, the writer */
    d7_tail *tail;
    d7_writer *writer; /* writes through the tail's table */
    const pd_datadir *dir;
    struct pd_certifier *certifier; /* NULL: none */
    struct pd_keeper *keeper;       /* NULL: none */
    d7_attribute *pending; /* [n_pending] that no Index entry of the file holds: they go into the slots */
    size_t n_pending, cap_pending, pending_bytes;
    bool closing; /* the last attribute is set; a full disk may have stopped the close after that */
    pd_file_place places[2]; /* of the file and of its tail */
    bool waits;              /* for room on the disk; of the thread that owns the file */
    uint64_t full_at;        /* `written` when it last met a full disk */
    bool wants_room;         /* space to be set aside; the writer's */
    atomic_uint_fast64_t allocated, closed_bytes;
    atomic_bool is_short;
    atomic_uint_fast64_t written;
    atomic_uint_fast64_t index_bytes;
    atomic_bool failed;   /* set once, after these */
    pthread_mutex_t lock; /* guards `code` and `why` while they are set: writer and syncer may both fail */
    int code;
    pd_error why;
    char path[PATH_MAX];
};

/* How files are made. */
typedef struct pd_file_options {
    unsigned mode;
    bool checksums;                 /* NAME.photons.crc is kept beside */
    struct pd_certifier *certifier; /* of the file once it is closed; NULL: none */
    struct pd_keeper *keeper;       /* of the file once it is final; NULL: none */
    int64_t gid;                    /* -1: the process's */
    const d7_io *io;                /* by which files are reached */
} pd_file_options;

/* How those of a volume are. */
const pd_file_options *pd_volume_files(const pd_volume *volume);

/* Where to look for the next free name of a series: run after run under one name need not count from 2
 * again. */
typedef struct pd_name_hint {
    char name[PD_RUN_NAME_BYTES + 1];
    unsigned next;
} pd_name_hint;

/* Makes the file and its tail with the first slot under their hidden names. Returns 0 and the file; D7_ERR_NOSPACE or another code with
 * `why` said. */
int pd_file_create(pd_file **ret, const pd_datadir *dir, const pd_open_task *open,
                   const pd_file_options *options, pd_error *why);

/* Syncs both and gives them the name asked for, or the next free one. Returns the outcome; on any but DONE
 * the hidden files are gone and the file is to be freed. */
pd_open_outcome pd_file_publish(pd_file *file, pd_open_task *open, pd_name_hint *hint);

/* Goes on with NAME.photons as a recovery left it; takes the tail over in any case. Before the threads run.
 *  whole    the values that the tail holds come again as pages; else the file has them, and is to be closed
 * Returns 0 and the file; a D7_ERR_ code with `why` said. */
int pd_file_resume(pd_file **ret, const pd_datadir *dir, const char *name, d7_tail *tail, bool whole,
                   const pd_file_options *options, pd_error *why);

int pd_file_page(pd_file *file, const pd_page_task *page);
int pd_file_attributes(pd_file *file, const pd_attributes_task *attributes);

/* Sets space aside: for task->length, or at least for task->least; `free_bytes` the disk has. */
int pd_file_allocate(pd_file *file, const pd_room_task *task, uint64_t free_bytes);

/* Hands everything to the system. */
int pd_file_flush(pd_file *file);

/* The same, attributes included, and writes a slot that says so; with mark->sync one that pd_file_sync() is to
 * make durable. */
int pd_file_mark(pd_file *file, const pd_mark_task *mark);

/* Waits until file and tail are on the disk: then what the mark before said is durable. */
int pd_file_sync(pd_file *file);

/* Whether the names that the run was given are the file's and the tail's still: nothing is safe in a file that was
 * removed, renamed or replaced. */
int pd_file_check_name(pd_file *file);

/* Ends the file and removes the tail; the folder is the caller's to sync. */
int pd_file_close(pd_file *file, uint64_t sequence);

bool pd_file_failed(const pd_file *file);

/* Notes a failure (the first one counts). Returns `code`. */
int pd_file_fail(pd_file *file, int code, const char *text);

/* Frees; a file that was not closed stays as it is on the disk. */
void pd_file_free(pd_file *file);

/* Of a file that is not open nothing counts: NAME.photons becomes `aside`, which is NAME.photons.cut.N, durably, and its tail goes.
 * Returns 0 or a negative errno. */
int pd_file_put_aside(const pd_datadir *dir, const char *name, char aside[PD_FILE_NAME_BYTES + 16]);

#endif

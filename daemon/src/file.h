/* One run's `.photons` file, the volume threads' side: libd7's writer, its names, its failure, and which
 * sequenced attributes the file does not hold yet.
 *
 * Functions that reach the disk return 0, D7_ERR_NOSPACE (nothing changed: try again), or another
 * D7_ERR_ code: the file has failed, and pd_file_failure() says why. Thread: the one that owns the file,
 * but for pd_file_sync() and pd_file_check_name(), which may run beside the others.
 */
#ifndef PD_FILE_H
#define PD_FILE_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "volume.h"

struct pd_file {
    d7_writer *writer;
    const pd_datadir *dir;
    uint64_t oldest_unlisted; /* sequence of the oldest attributes that no Index entry holds; 0: none */
    bool closing; /* the last attribute is set; a full disk may have stopped the close after that */
    dev_t device; /* with `inode`: which file it is, whatever has its name */
    ino_t inode;
    bool waits;       /* for room on the disk; of the thread that owns the file */
    uint64_t full_at; /* `written` when it last met a full disk */
    atomic_uint_fast64_t written;
    atomic_bool failed;   /* set once, after `why` */
    pthread_mutex_t lock; /* guards `why` while it is set: writer and syncer may both fail */
    pd_error why;
    char path[PATH_MAX];
};

/* Where to look for the next free name of a series: run after run under one name need not count from 2
 * again. */
typedef struct pd_name_hint {
    char name[PD_RUN_NAME_BYTES + 1];
    unsigned next;
} pd_name_hint;

/* Makes the file under its hidden name. Returns 0 and the file; D7_ERR_NOSPACE or another code with
 * `why` said. */
int pd_file_create(pd_file **ret, const pd_datadir *dir, const pd_open_task *open, unsigned mode, int64_t gid,
                   pd_error *why);

/* Syncs it and gives it the name asked for, or the next free one. Returns the outcome; on any but DONE
 * the hidden file is gone and the file is to be freed. */
pd_open_outcome pd_file_publish(pd_file *file, pd_open_task *open, pd_name_hint *hint);

int pd_file_page(pd_file *file, const pd_page_task *page);
int pd_file_attributes(pd_file *file, const pd_attributes_task *attributes);

/* Hands everything to the system; *sequence is lowered to what that makes readable from the file. */
int pd_file_flush(pd_file *file, uint64_t *sequence);
int pd_file_sync(pd_file *file);

/* Whether the name that the run was given is this file's still: nothing is safe in a file that was removed,
 * renamed or replaced. */
int pd_file_check_name(pd_file *file);
int pd_file_close(pd_file *file, uint64_t sequence);

bool pd_file_failed(const pd_file *file);

/* Notes a failure (the first one counts). Returns `code`. */
int pd_file_fail(pd_file *file, int code, const char *text);

/* Frees; a file that was not closed stays as it is on the disk. */
void pd_file_free(pd_file *file);

#endif

/* One file in memory behind libd7's table of files, and faults by count. */
#ifndef TESTS_LIB_MEMIO_H
#define TESTS_LIB_MEMIO_H

#include <pthread.h>

#include "d7/d7.h"

enum memio_op {
    MEMIO_OPEN,
    MEMIO_CLOSE,
    MEMIO_PREAD,
    MEMIO_PWRITE,
    MEMIO_SYNC,
    MEMIO_SIZE,
    MEMIO_TRUNCATE,
    MEMIO_N_OPS
};

typedef struct memio {
    uint8_t *data; /* [n] */
    size_t n, cap;
    bool exists;

    enum memio_op
        fail_op; /* calls fail_at, fail_at + 1, ... (from 1; fail_times of them) return -fail_errno */
    long fail_at, fail_times;
    int fail_errno;
    size_t transfer_max; /* bytes a pread or pwrite moves at most; 0: all */
    long eintr_every;    /* every so many preads, pwrites and syncs end with -EINTR; 0: none */
    uint64_t capacity;   /* pwrite past this is short, then -ENOSPC; 0: no limit */
    int lock_errno;      /* lock() and held() end with this */
    bool held;           /* somebody else's lock */
    void *opened_memory; /* what open() gives out, so that leak checks see a missing close() */

    pthread_mutex_t reading; /* all zero is an unlocked one */
    long calls[MEMIO_N_OPS];
    uint64_t bytes_read;
    size_t synced; /* length at the last sync */
    long interrupted;
} memio;

void memio_set(memio *m, const void *data, size_t n);
void memio_free(memio *m);
d7_io memio_table(memio *m);

/* Memory behind libd7's table: counts what is outstanding, in pieces and in bytes; allocation fail_at (from 1) and all
 * after it fail, or fail_times of them. */
typedef struct memcount {
    long outstanding, calls, fail_at, fail_times; /* fail_times 0: all */
    size_t bytes, peak;                           /* peak: the most bytes at one time */
} memcount;

d7_alloc memcount_table(memcount *c);

#endif

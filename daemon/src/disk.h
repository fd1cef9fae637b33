/* How the disk of a volume does, as its two threads find it. Written by them, read by anyone. */
#ifndef PD_DISK_H
#define PD_DISK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "counters.h"

/* One per thread, so that neither disturbs what the other says. */
typedef struct pd_disk_wait {
    atomic_uint_fast64_t since_ns; /* waiting for the disk since then; 0: not */
} pd_disk_wait;

typedef struct pd_disk {
    pd_disk_wait writer;
    pd_disk_wait syncer;
    atomic_uint n_full;              /* files that wait for room */
    atomic_bool give_up;             /* a full disk is a failure now */
    atomic_uint_fast64_t free_bytes; /* at the last look; UINT64_MAX: not known */
    pd_counters *counters;
} pd_disk;

enum { PD_DISK_RETRY_MS = 500 };

void pd_disk_begin(pd_disk_wait *wait);
void pd_disk_end(pd_disk_wait *wait);

/* A write of a file met a full disk, with `free_bytes` left: says so when it is the first that waits, and
 * whether it is to be tried again. `waits` belongs to the file and to nobody else. */
bool pd_disk_met_full(pd_disk *disk, bool *waits, uint64_t free_bytes, const char *path);

/* What the file waited with has been written whole: if no other waits, says that it goes on. */
void pd_disk_has_room(pd_disk *disk, bool *waits, const char *path);

/* The file waits no more, written or not. */
void pd_disk_forget(pd_disk *disk, bool *waits);

#endif

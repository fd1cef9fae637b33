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
    atomic_bool full;              /* waiting for room */
} pd_disk_wait;

typedef struct pd_disk {
    pd_disk_wait writer;
    pd_disk_wait syncer;
    atomic_bool give_up;             /* a full disk is a failure now */
    atomic_uint_fast64_t free_bytes; /* at the last look; UINT64_MAX: not known */
    pd_counters *counters;
} pd_disk;

enum { PD_DISK_RETRY_MS = 500 };

void pd_disk_begin(pd_disk_wait *wait);
void pd_disk_end(pd_disk_wait *wait);

/* A write met a full disk: says so once, and whether it is to be tried again. */
bool pd_disk_met_full(pd_disk *disk, pd_disk_wait *wait, const char *path);

/* It went through: if the disk was full before, says that it goes on. */
void pd_disk_has_room(pd_disk_wait *wait, const char *path);

#endif

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

/* How long syncs of runs took, since the start: a count for each quarter of an octave of nanoseconds. */
enum { PD_DISK_TIMES = 256 };
typedef struct pd_disk_times {
    atomic_uint_fast64_t n[PD_DISK_TIMES];
    atomic_uint_fast64_t longest_ns;
} pd_disk_times;

/* What they come to, to within a fifth; the longest exactly. All 0 when there was none. */
typedef struct pd_disk_syncs {
    uint64_t n, median_ns, p99_ns, longest_ns;
} pd_disk_syncs;

typedef struct pd_disk {
    pd_disk_times syncs;
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

/* One more, by the one thread that counts. */
void pd_disk_took(pd_disk_times *times, uint64_t ns);
pd_disk_syncs pd_disk_look(const pd_disk_times *times);

/* A write of a file met a full disk, with `free_bytes` left: says so when it is the first that waits, and
 * whether it is to be tried again. `waits` belongs to the file and to nobody else. */
bool pd_disk_met_full(pd_disk *disk, bool *waits, uint64_t free_bytes, const char *path);

/* What the file waited with has been written whole: if no other waits, says that it goes on. */
void pd_disk_has_room(pd_disk *disk, bool *waits, const char *path);

/* The file waits no more, written or not. */
void pd_disk_forget(pd_disk *disk, bool *waits);

/* Since when one of the threads waits for the disk, on the monotonic clock: the one that waits longer; 0: none does. Any thread. */
uint64_t pd_disk_busy_since(const pd_disk *disk);

#endif

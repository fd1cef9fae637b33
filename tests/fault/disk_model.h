/* A disk that can lose its power, behind libd7's table of files.
 *
 * What it assumes of disks, and no more ("durability", docs/tail-format.md): after a cut a sector of 512
 * bytes holds what was synced or anything written to it since, each sector for itself; a file's size lies
 * between the synced and the last; a name that was made or removed since its folder was synced may be there
 * or not. A sync that fails tells so, and leaves all that it should have written as unknown as before,
 * without trying again: only what is written once more reaches the disk with a later sync. A program that is
 * killed loses nothing that it handed over, and saves nothing.
 *
 * One program at a time; not for threads. */
#ifndef TESTS_FAULT_DISK_MODEL_H
#define TESTS_FAULT_DISK_MODEL_H

#include "d7/d7.h"

enum { DISK_SECTOR_BYTES = 512 };

typedef struct disk disk;

/* The same seed gives the same disk. */
disk *disk_new(uint64_t seed);
void disk_free(disk *d);

const d7_io *disk_io(disk *d);

/* Random numbers for whoever uses the disk: below n (n > 0), and true in `per_mille` of 1000 cases. */
uint64_t disk_random(disk *d, uint64_t n);
bool disk_chance(disk *d, unsigned per_mille);

/* A file's bytes as programs see them; NULL where there is none. Good until the file is written. */
const uint8_t *disk_content(const disk *d, const char *path, size_t *ret_bytes);

/* How many bytes of it were read, by whomever; 0 where there is none. */
uint64_t disk_bytes_read(const disk *d, const char *path);

/* A file that is there, durably. */
void disk_put(disk *d, const char *path, const void *data, size_t bytes);

/* A sync in two steps, with other calls in between. What was written before the first is on the disk after
 * the second, if it ends well. */
void disk_begin_sync(disk *d, const char *path);
void disk_finish_sync(disk *d, const char *path, bool succeeds);

/* The program is killed: open files are closed, locks gone, syncs under way end without a word. */
void disk_kill(disk *d);

/* The power goes: also all that was not synced is as it may be. */
void disk_power_cut(disk *d);

/* Faults. Calls that change something: pwrite, sync, truncate, creating, removing, syncing a folder. */
typedef struct disk_faults {
    long dies_after; /* so many changing calls are done, the next one by half, then all fail; -1: never */
    long fails_at;   /* this changing call, from 1, fails with fail_errno; a write is done by half; 0: none */
    int fail_errno;
    unsigned sync_per_mille;    /* syncs that fail with EIO */
    unsigned no_room_per_mille; /* writes that end half-way with ENOSPC */
    size_t transfer_max;        /* bytes a read or write moves at most; 0: all */
} disk_faults;

/* From now on; counts begin anew. */
void disk_set_faults(disk *d, const disk_faults *faults);
/* How many changing calls there were since. */
long disk_changes(const disk *d);
/* Did dies_after strike? */
bool disk_dead(const disk *d);

#endif

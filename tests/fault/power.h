/* A power switch under a program that writes files: an I/O table that does what the system's does and keeps in mind what
 * each file's disk may hold. At a cut every file becomes one of the states that a disk could have left it in:
 *
 *   - a sector of 512 bytes holds what was synced, or anything written to it since;
 *   - the length lies between the synced one and the longest since;
 *   - what a failed sync was to bring may be lost for good, also after a later one that succeeds.
 *
 * Names are the real folder's, at once and for good. Thread: any; power_cut() when nobody uses the table. */
#ifndef TESTS_FAULT_POWER_H
#define TESTS_FAULT_POWER_H

#include <d7/d7.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct power power;

power *power_new(uint32_t seed);
const d7_io *power_io(power *p);

/* From now on, or after so many more calls that change files, every call fails. */
void power_off(power *p);
void power_off_after(power *p, unsigned n_calls);

/* The n-th sync from now on (from 1; 0: none) fails, and does not reach the disk. */
void power_fail_sync(power *p, unsigned n);

/* Every write from the n-th on (from 1; 0: none) finds the disk full, `times` times. */
void power_fill_disk(power *p, unsigned n, unsigned times);

/* So long takes each sync, at least. */
void power_slow_syncs(power *p, unsigned ms);

/* All files become what the disk held; the power is on again. */
void power_cut(power *p);

unsigned power_n_syncs(power *p);
void power_free(power *p);

#endif

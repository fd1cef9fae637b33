/* A program that is run for a file that is final: closed, synced, and certified where that is on. Without a shell; its
 * standard input is empty, its output goes to the log. What it is told stands in its environment:
 *
 *   PHOTOND_FILE         path of NAME.photons
 *   PHOTOND_NAME         NAME, of the file: the run's, or that of one of its parts (RUN.0001)
 *   PHOTOND_RUN          name of the run
 *   PHOTOND_PART         0, 1, ...
 *   PHOTOND_EXPORT       path of the last export, where there is one
 *   PHOTOND_CERTIFICATE  path of NAME.run.json, and
 *   PHOTOND_SHA256       the checksum of the file that it tells, where there is one
 */
#ifndef PD_HOOK_H
#define PD_HOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "datadir.h"
#include "error.h"

typedef struct pd_hook {
    const char *program; /* absolute path */
    uint64_t timeout_ms;
    bool (*stopping)(void *ctx); /* asked now and then: it is to be ended */
    void *ctx;
} pd_hook;

/* Runs it and waits for its end. Returns 0: it ended with 0; -1 with why. */
PD_MUST_USE int pd_hook_run(const pd_hook *hook, const pd_datadir *dir, const char *name, pd_error *why);

#endif

/* Old runs are removed: whole ones, the oldest first, as far as the configuration says. What is removed is certainly ours (the
 * file says photond.run), closed, and of nothing that is still to be done for it:
 *
 *   all its parts are closed and have no tail, and no note in .photond (to be certified, or hooked) is of one of them;
 *   it is exported, or was never to be.
 *
 * With its files go what belongs to them: exports, checksums, certificate, and what recoveries cut off. Links are never followed. */
#ifndef PD_RETENTION_H
#define PD_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "counters.h"
#include "datadir.h"

typedef struct pd_retention {
    uint64_t keep_last;       /* closed runs that stay; 0: any number */
    uint64_t max_total_bytes; /* of all runs of the folder, exports included; 0: any */
    bool (*busy)(void *ctx,
                 const char *name); /* something is still to be done for these files, or they are open */
    void *ctx;
    pd_counters *counters;
} pd_retention;

/* Looks at the folder and removes what is too much. */
void pd_retention_apply(const pd_retention *retention, const pd_datadir *dir);

#endif

/* What a recovery found, for the status. */
#ifndef PD_RECOVERY_STATE_H
#define PD_RECOVERY_STATE_H

#include <stddef.h>
#include <stdint.h>

/* A file that could not be recovered. */
typedef struct pd_recovery_failure {
    char *file; /* its name in the data folder */
    char *text; /* why */
} pd_recovery_failure;

typedef struct pd_recovery_state {
    uint64_t recovered, closed, removed;
    uint64_t cut_bytes;            /* that were kept beside as NAME.photons.cut.N */
    pd_recovery_failure *failures; /* [n_failures] the first ones */
    size_t n_failures;
    uint64_t failed; /* all of them */
} pd_recovery_state;

void pd_recovery_state_free(pd_recovery_state *state);

#endif

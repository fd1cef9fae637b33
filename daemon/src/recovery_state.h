/* What a recovery found, and what is left to it, for the status. Thread: the loop's. */
#ifndef PD_RECOVERY_STATE_H
#define PD_RECOVERY_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file that could not be recovered, or that is still to be: a run went on in another one. */
typedef struct pd_recovery_failure {
    char *file; /* its name in the data folder */
    char *text; /* why */
    bool left;  /* still to be */
} pd_recovery_failure;

typedef struct pd_recovery_state {
    uint64_t recovered, closed, removed;
    uint64_t cut_bytes;            /* that were kept beside as NAME.photons.cut.N */
    pd_recovery_failure *failures; /* [n_failures] the first ones */
    size_t n_failures;
    uint64_t failed; /* all of them */
} pd_recovery_state;

/* `file` of the data folder is left for a recovery, because of `text`. */
void pd_recovery_state_add(pd_recovery_state *state, const char *file, const char *text);

void pd_recovery_state_free(pd_recovery_state *state);

#endif

#include "armed.h"

#include <stdio.h>
#include <string.h>

int pd_armed_add(pd_armed *armed, const char *name, const char *profile, pd_run_stop stop, uint64_t now_ns,
                 pd_error *err) {
    if (armed->n == PD_ARMED_MAX)
        return pd_error_set(err, "%d runs wait for their producers, more are not allowed", PD_ARMED_MAX);
    if (strlen(name) > PD_RUN_NAME_BYTES || strlen(profile) > PD_PROFILE_NAME_BYTES)
        return pd_error_set(err, "the name is too long");
    for (size_t i = 0; i < armed->n; i++)
        if (strcmp(armed->runs[i].name, name) == 0)
            return pd_error_set(err, "run %s waits for its producer already", name);
    pd_armed_run *run = &armed->runs[armed->n++];
    *run = (pd_armed_run){.stop = stop, .since_ns = now_ns};
    strcpy(run->name, name);
    strcpy(run->profile, profile);
    return 0;
}

const pd_armed_run *pd_armed_for(const pd_armed *armed, const char *profile) {
    for (size_t i = 0; i < armed->n; i++)
        if (!*armed->runs[i].profile || strcmp(armed->runs[i].profile, profile) == 0)
            return &armed->runs[i];
    return NULL;
}

int pd_armed_remove(pd_armed *armed, const char *name) {
    for (size_t i = 0; i < armed->n; i++) {
        if (strcmp(armed->runs[i].name, name) != 0)
            continue;
        armed->n--;
        memmove(&armed->runs[i], &armed->runs[i + 1], (armed->n - i) * sizeof *armed->runs);
        return 0;
    }
    return -1;
}

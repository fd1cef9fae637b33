/* What the parts of the daemon share: the loop, the ring, the data folder, the exporter, the counters. Made once,
 * before the first connection. Thread: the loop's, where a part does not say otherwise.
 */
#ifndef PD_ENGINE_H
#define PD_ENGINE_H

#include <stdbool.h>
#include <uv.h>

#include "config.h"
#include "counters.h"
#include "exporter.h"
#include "inbox.h"
#include "inbuf.h"
#include "page.h"
#include "proof/digest.h"
#include "rate.h"
#include "recovery_state.h"
#include "run_names.h"
#include "stages.h"
#include "volume.h"

typedef struct pd_engine {
    uv_loop_t *loop;
    const pd_config *config;
    pd_counters counters;
    pd_stages stages;
    pd_inbox inbox;
    pd_ring ring;
    pd_budget receive;                      /* memory for long messages */
    pd_volume *volumes[1 + PD_VOLUMES_MAX]; /* [n_volumes] the first is that of data_dir */
    pd_exporter *exporters[1 + PD_VOLUMES_MAX];
    uint32_t n_volumes;
    pd_run_names *names; /* NULL: there is one volume */
    const d7_io *io;     /* of run files; NULL: the system's */
    int64_t gid;         /* group of what is made; -1: left as it is */

    char configuration[PROOF_HEX_BYTES]; /* SHA-256 of it; empty: not known */

    pd_recovery_state recovery; /* what the start found */

    uint32_t n_runs; /* that have promised slots */

    /* Slots or receive memory came free, or a run ended, since those who wait were last looked at. */
    bool room_came;
    bool stopping; /* no more opens; runs are being closed */
    bool draining; /* no new runs, by order; those that are open go on */
} pd_engine;

/* Takes the memory, opens the data folder, starts the threads.
 *  io       by which run files are written, for tests; NULL: the system's
 *  Returns  0; -1 with err, and nothing is left */
PD_MUST_USE int pd_engine_start(pd_engine *engine, uv_loop_t *loop, const pd_config *config, const d7_io *io,
                                pd_error *err);

/* The volume of that name ("": the first); NULL: none is configured. */
pd_volume *pd_engine_volume(const pd_engine *engine, const char *name);

/* Who exports into the folder of a volume. */
pd_exporter *pd_engine_exporter(const pd_engine *engine, const pd_volume *volume);

/* The configuration has changed. */
void pd_engine_configured(pd_engine *engine);

/* Ends the threads; no run may be left. The inbox closes with the loop. */
void pd_engine_stop(pd_engine *engine);

/* Frees the rest, after the loop has run dry. */
void pd_engine_free(pd_engine *engine);

#endif

/* The state of the daemon as it is told to people and programs. The loop fills the views below; every
 * number under "counters" never falls while the daemon runs. docs/operations.md describes the JSON. */
#ifndef PD_STATUS_H
#define PD_STATUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "counters.h"
#include "disk.h"
#include "recovery_state.h"
#include "stages.h"

/* How it goes. Degraded: it works, but somebody should look (a stalled or silent client, a failed
 * export, a disk that is full and waited for). Not OK: data is being lost or cannot be stored. */
typedef enum pd_health { PD_HEALTH_OK = 0, PD_HEALTH_DEGRADED, PD_HEALTH_NOT_OK } pd_health;

/* "ok", "degraded", "not_ok". */
const char *pd_health_name(pd_health health);

typedef struct pd_status_dataset {
    const char *name;
    const char *type;
    uint64_t items;   /* received */
    uint64_t durable; /* synced and readable from the file */
} pd_status_dataset;

typedef struct pd_status_run {
    const char *name;
    const char *id;      /* hexadecimal */
    const char *state;   /* "opening", "running", "detached", "draining", "closing", "failed" */
    const char *profile; /* "" when the datasets were given one by one */
    const char *client;  /* name of its producer */
    const char *path;    /* of the first file */
    uint32_t part;       /* number of the present one, from 0 */
    const char *volume;  /* its name; "" for the first */
    const char *waits;   /* NULL, or what holds it up: "ring_full", "disk_full", "disk_slow" */
    const char *failure; /* NULL, or why it failed */
    double age_s;        /* since it was opened */
    uint64_t photons;    /* received, those dropped included */
    uint64_t photons_durable;
    uint64_t photons_in_flight; /* neither durable nor dropped */
    double photons_per_s;       /* by pd_rate */
    double bytes_per_s;         /* received column bytes */
    uint64_t batches;           /* received */
    uint64_t duplicates;        /* batches that had come before and were acknowledged again */
    uint64_t received;          /* sequence number */
    uint64_t durable;           /* sequence number */
    double durable_age_s;       /* since the durable position last moved, or all was durable; < 0: never */
    uint64_t received_bytes;
    uint64_t file_bytes; /* written, of the present one */
    bool drops;          /* what there is no room for */
    uint64_t dropped_photons;
    uint64_t dropped_batches;
    uint64_t lost_before; /* events that the hardware said it lost */
    uint32_t ring_slots;  /* held now */
    uint64_t exports;     /* done */
    uint64_t exports_failed;
    uint64_t exports_skipped;     /* ticks that found the one before still under way */
    uint64_t summary_backlog;     /* items received and not yet binned */
    double last_export_age_s;     /* < 0: none yet */
    uint64_t last_export_photons; /* that it covered */
    const pd_status_dataset *datasets;
    size_t n_datasets;
} pd_status_run;

typedef struct pd_status_connection {
    const char *peer;     /* "tcp://192.0.2.1:4000", "unix: pid 123 uid 0" */
    const char *client;   /* name told in Hello; "" before */
    const char *software; /* likewise */
    const char *instance;
    double age_s;
    double silent_s; /* since the last byte came */
    bool silent;     /* past the heartbeat: named as silent, to be closed at the idle limit */
    bool paused;     /* not read, to hold it back */
    uint32_t n_runs;
    uint64_t received_bytes;
} pd_status_connection;

/* A data folder and the threads that serve it. */
typedef struct pd_status_volume {
    const char *name; /* "" for the first */
    const char *data_dir;
    size_t n_runs;       /* open */
    uint64_t free_bytes; /* UINT64_MAX: not known */
    bool full;           /* a run waits for room */
    double busy_s;       /* that a thread has been waiting for the disk; 0: none is */
    double export_s;     /* that an export has been under way; 0: none is */
    pd_disk_syncs syncs;
} pd_status_volume;

/* A run that waits for its producer. */
typedef struct pd_status_armed {
    const char *name;
    const char *profile; /* "": any */
    double age_s;
} pd_status_armed;

/* A stage that events go through, as it is now. */
typedef struct pd_status_stage {
    pd_stage_count count;
    uint64_t in_flight; /* in it */
} pd_status_stage;

/* What counters.h counts, and what is counted elsewhere. */
#define PD_STATUS_COUNTER_MAP(X)                                                                             \
    PD_COUNTER_MAP(X)                                                                                        \
    X(log_lines_lost, "lines of the log that could not be written")

typedef struct pd_status_counters {
#define PD_STATUS_COUNTER_FIELD(name, text) uint64_t name;
    PD_STATUS_COUNTER_MAP(PD_STATUS_COUNTER_FIELD)
#undef PD_STATUS_COUNTER_FIELD
} pd_status_counters;

typedef struct pd_status {
    const char *version;
    const char *const *listen; /* [n_listen] addresses as bound */
    size_t n_listen;
    int64_t pid;
    double uptime_s;
    bool stopping;
    bool draining;
    pd_health health;
    const char *const *reasons; /* [n_reasons] why it is not "ok", sentences */
    size_t n_reasons;

    uint32_t ring_slots, ring_used, ring_high_water;
    uint32_t ring_slot_bytes;
    uint32_t ring_reserved;                           /* slots promised to open runs */
    uint32_t stalled;                                 /* connections held back now */
    double photons_per_s, bytes_per_s, written_per_s; /* by pd_rate: photons, bytes received, bytes written */

    uint64_t certificates_pending; /* closed files whose certificate is not made yet */
    uint64_t hooks_pending;        /* final files whose hook has not ended well yet */
    pd_status_stage stages[PD_STAGES];
    const pd_recovery_state *recovery; /* of the start; NULL: none */
    pd_status_counters counters;
    const pd_status_volume *volumes; /* [n_volumes] the first is that of data_dir; one at least */
    size_t n_volumes;
    const pd_status_run *runs;
    size_t n_runs;
    const pd_status_connection *connections;
    size_t n_connections;
    const pd_status_armed *armed;
    size_t n_armed;
} pd_status;

/* The status as a JSON object (new reference), or NULL when out of memory. Texts that are no UTF-8 are
 * escaped. */
json_t *pd_status_json(const pd_status *status);

#endif

/* The exporter: one thread that writes snapshots as FilesDaf repositories.
 *
 * Forms: a FilesDaf directory NAME.daf, the same as a Zarr tree NAME.daf.zarr, whose payloads are hard links of
 * the directory's, or both, each with a life of its own.
 *
 * Life of an export: built as DATA_DIR/.photond/exports/NAME.N, then exchanged with DATA_DIR/NAME.daf in
 * one system call (the first one renamed without replacing anything), and the one that was there kept
 * for the grace time, under its hidden name, for those who hold it open. So whoever holds the directory
 * sees one export whole; whoever reads by path can compare the scalar `export` before and after. Where
 * the file system cannot exchange, NAME.daf is a symbolic link to the newest generation until the run's
 * last export, which replaces the link by the directory. Run names never start with a dot, so the hidden
 * folder can be no run's.
 *
 * Failures: disk full, input or output, a NAME.daf that is not of this run (never touched). The
 * half-made export is removed, the failure counted, the first of a row logged, and the visible export
 * stays as it was. The next snapshot tries again.
 *
 * Threads: submit and the counters from any thread; `done` is called on the exporter's thread.
 */
#ifndef PD_EXPORTER_H
#define PD_EXPORTER_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "error.h"
#include "snapshot.h"

typedef struct pd_exporter pd_exporter;

typedef struct pd_exporter_options {
    const char *data_dir; /* as errors name it; borrowed for the call of pd_exporter_start */
    int data_fd;          /* the open folder; borrowed likewise */
    unsigned file_mode;
    unsigned dir_mode;
    int64_t gid; /* group of what is made; -1: left as it is */
    uint64_t grace_ms;
    pd_export_format format;
    pd_export_codec codec;
    int level;
    bool links; /* use symbolic links even where the file system can exchange; for tests */
} pd_exporter_options;

/* The options that the configuration gives (group by number: looked up by the caller). */
void pd_exporter_options_from_config(pd_exporter_options *options, const pd_config *config);

typedef enum pd_export_form { PD_FORM_DAF, PD_FORM_ZARR, PD_N_FORMS } pd_export_form;

/* What is shown of a run in one form. */
typedef struct pd_export_shown {
    int fd; /* NAME.daf (or NAME.daf.zarr) as placed last, held so that it can be known again; -1: none */
    bool linked; /* it is a symbolic link, to the hidden directory of this generation: */
    uint64_t generation;
} pd_export_shown;

/* Where one run's exports go; kept by the run from its first export to its last, touched only by the
 * exporter while a job is under way. */
typedef struct pd_export_target {
    char name[129]; /* the run's */
    pd_export_shown shown[PD_N_FORMS];
    bool failing; /* the last attempt failed (and was logged) */
} pd_export_target;

/* `name` is a checked run name. */
void pd_export_target_init(pd_export_target *target, const char *name);

/* Lets go of what is shown, which stays. Not while a job is under way. */
void pd_export_target_clear(pd_export_target *target);

/* One export. Owned by the exporter from submit until `done` is called, which gets it back. */
typedef struct pd_export_job {
    pd_export_target *target;
    const pd_snapshot *snapshot;
    bool final; /* the run is closed: synced, and never a link */
    void (*done)(struct pd_export_job *job);
    void *user; /* for `done` */

    /* The outcome, set before `done`. */
    int result; /* 0, or -1 */
    pd_error error;
    uint64_t bytes;      /* sum of the files' lengths */
    uint64_t n_skipped;  /* scalars whose name or text the repository would not take */
    uint64_t elapsed_ns; /* of building and placing it */

    struct pd_export_job *next; /* the exporter's */
} pd_export_job;

/* Cleans up what an earlier daemon left in the hidden folder (the caller holds the lock of the data
 * folder) and starts the thread. Returns 0, or -1 with err. */
PD_MUST_USE int pd_exporter_start(pd_exporter **ret, const pd_exporter_options *options, pd_error *err);

/* Queues a job; never waits. The queue is a list of the callers' jobs, so it is as bounded as they are.
 * Returns 0, or -1 when the exporter is stopping. */
PD_MUST_USE int pd_exporter_submit(pd_exporter *exporter, pd_export_job *job);

/* Counters since the start; none ever falls. */
typedef struct pd_exporter_counters {
    uint64_t exports;
    uint64_t failures;
    uint64_t bytes;
    uint64_t elapsed_ns; /* sum over the exports */
    uint64_t longest_ns;
} pd_exporter_counters;

void pd_exporter_read_counters(const pd_exporter *exporter, pd_exporter_counters *ret);

/* Since when the thread has been at its job, on the monotonic clock in ns; 0: it has none. Any thread. */
uint64_t pd_exporter_busy_since(const pd_exporter *exporter);

/* Ends the thread: the jobs already queued are done first, and the replaced exports in their grace time
 * are removed. Waits for the thread. NULL is fine. */
void pd_exporter_stop(pd_exporter *exporter);

#endif

/* Counters of the daemon, each only ever growing. Counted by the thread that sees the event, read by
 * anyone: relaxed atomics, since each stands for itself. */
#ifndef PD_COUNTERS_H
#define PD_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

/* name, what it counts */
#define PD_COUNTER_MAP(X)                                                                                    \
    X(connections, "connections accepted")                                                                   \
    X(connections_refused, "connections refused for want of room")                                           \
    X(connection_errors, "connections ended by an error of the client's")                                    \
    X(not_authorized, "connections ended, and commands refused, for want of a right")                        \
    X(timeouts, "connections ended because the client said nothing")                                         \
    X(cut_off, "connections ended because the client did not read its answers")                              \
    X(bytes_received, "bytes read from sockets")                                                             \
    X(batches_received, "batches taken")                                                                     \
    X(batches_duplicate, "batches that had come before: acknowledged again, not stored")                     \
    X(batches_refused, "batches refused, those behind a hole or for an ended run included")                  \
    X(batches_dropped, "batches received and dropped for want of room (overflow: drop)")                     \
    X(photons_received, "photons received: items of the group with the positions or times")                  \
    X(photons_durable, "of these, known to be on the disk")                                                  \
    X(photons_discarded, "of these, given up because their run failed")                                      \
    X(photons_dropped, "of these, dropped for want of room (overflow: drop)")                                \
    X(photons_rolled_back, "of these, asked for again because a sync or a write of their part failed")       \
    X(pages_encoded, "pages encoded")                                                                        \
    X(pages_written, "pages taken by the writer")                                                            \
    X(bytes_written, "bytes of run files handed to the operating system")                                    \
    X(syncs, "syncs that succeeded")                                                                         \
    X(sync_failures, "syncs that failed")                                                                    \
    X(stalls, "times that a connection was held back")                                                       \
    X(stall_ns, "for how long, summed over connections")                                                     \
    X(disk_full, "times that a write met a full disk")                                                       \
    X(runs_opened, "runs opened")                                                                            \
    X(runs_closed, "runs closed")                                                                            \
    X(runs_failed, "runs failed")                                                                            \
    X(opens_refused, "opens refused")                                                                        \
    X(gaps, "gap records written into run files by the daemon")                                              \
    X(gaps_hardware, "of these, for events that the hardware lost")                                          \
    X(gaps_overflow, "for batches that were dropped, each gap counted once")                                 \
    X(gaps_restart, "for runs gone on with after a restart of the daemon")                                   \
    X(gaps_disk_pause, "for pauses of over a second because the disk was full")                              \
    X(gaps_clock_step, "for steps of the wall clock")                                                        \
    X(gaps_failed_sync, "for files that were given up because a sync or a write failed")                     \
    X(gaps_source_restart, "for later starts of the producer that took a run over")                          \
    X(exports, "exports in place")                                                                           \
    X(exports_failed, "exports that failed")                                                                 \
    X(exports_skipped, "export times that found the one before under way")                                   \
    X(certificates, "certificates of closed files that were made")                                           \
    X(certificates_failed, "certificates that could not be made")                                            \
    X(hooks, "hooks of final files that ended well")                                                         \
    X(hooks_failed, "hooks that failed, each time that they are tried")                                      \
    X(runs_removed, "old runs that were removed")

typedef struct pd_counters {
#define PD_COUNTER_FIELD(name, text) atomic_uint_fast64_t name;
    PD_COUNTER_MAP(PD_COUNTER_FIELD)
#undef PD_COUNTER_FIELD
} pd_counters;

#define pd_count(counter, n) ((void)atomic_fetch_add_explicit((counter), (uint64_t)(n), memory_order_relaxed))
#define pd_counted(counter) ((uint64_t)atomic_load_explicit((counter), memory_order_relaxed))

#endif

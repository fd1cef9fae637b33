/* Events on their way through the daemon, counted where they enter and leave each stage: what came in is what went out, was
 * dropped, or is in it, at every look. In events: items of each run's group of photons; the exporter's are exports.
 *
 *   socket    batches as they come: out to the ring, or refused, or known already
 *   ring      out when they are written into their file
 *   encoder   pages in the pool
 *   writer    pages with the writer
 *   disk      out when they are durable
 *   summary   of runs that have one: out when they are binned
 *   exporter  snapshots: out when the export is in place
 *
 * Thread: the loop's, which sees every event come and go: a page is with the pool or the writer from the moment that the loop
 * hands it over to the moment that the loop has it back. What is in a stage is not counted but looked up (look_stages.c), so
 * the sum proves something.
 */
#ifndef PD_STAGES_H
#define PD_STAGES_H

#include <stdint.h>

#define PD_STAGE_MAP(X)                                                                                      \
    X(SOCKET, "socket")                                                                                      \
    X(RING, "ring")                                                                                          \
    X(ENCODER, "encoder")                                                                                    \
    X(WRITER, "writer")                                                                                      \
    X(DISK, "disk")                                                                                          \
    X(SUMMARY, "summary")                                                                                    \
    X(EXPORTER, "exporter")

/* Why events go no further. */
#define PD_CAUSE_MAP(X)                                                                                      \
    X(DUPLICATE, "duplicate")   /* they had come before */                                                   \
    X(REFUSED, "refused")       /* an Error was sent */                                                      \
    X(CONNECTION, "connection") /* it ended while they waited for room */                                    \
    X(OVERFLOW, "overflow")     /* there was no room, and the run drops */                                   \
    X(FAILED, "failed")         /* their run failed, or its summary, or the export */

typedef enum pd_stage {
#define STAGE_ENUM(name, text) PD_STAGE_##name,
    PD_STAGE_MAP(STAGE_ENUM)
#undef STAGE_ENUM
        PD_STAGES
} pd_stage;

typedef enum pd_cause {
#define CAUSE_ENUM(name, text) PD_CAUSE_##name,
    PD_CAUSE_MAP(CAUSE_ENUM)
#undef CAUSE_ENUM
        PD_CAUSES
} pd_cause;

typedef struct pd_stage_count {
    uint64_t in, out;
    uint64_t dropped[PD_CAUSES];
} pd_stage_count;

typedef struct pd_stages {
    pd_stage_count of[PD_STAGES];
} pd_stages;

static inline void pd_stage_in(pd_stages *s, pd_stage stage, uint64_t n) {
    s->of[stage].in += n;
}

static inline void pd_stage_out(pd_stages *s, pd_stage stage, uint64_t n) {
    s->of[stage].out += n;
}

static inline void pd_stage_drop(pd_stages *s, pd_stage stage, pd_cause cause, uint64_t n) {
    s->of[stage].dropped[cause] += n;
}

#endif

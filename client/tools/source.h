/* Where photon-send takes its events from: one table of functions over a folder of columns, a .photons file, the
 * standard input or a simulated instrument. One thread. */
#ifndef CLIENT_TOOLS_SOURCE_H
#define CLIENT_TOOLS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "photon_client.h"

enum { SEND_DATASETS_MAX = 64 };

#define SEND_NO_GROUP SIZE_MAX
#define SEND_NO_TIME INT64_MAX
#define SEND_UNKNOWN UINT64_MAX

/* Why a source cannot be used or read: one sentence. */
typedef struct send_fault {
    char text[512];
} send_fault;

/* What is wanted next: at most `events`, and none that happened later than `until_ns` after the first moment. */
typedef struct send_want {
    uint64_t events;
    int64_t until_ns; /* SEND_NO_TIME: whatever there is */
} send_want;

/* A piece of every dataset. The columns last until the next call. */
typedef struct send_chunk {
    const void *columns[SEND_DATASETS_MAX]; /* by dataset */
    uint64_t counts[SEND_DATASETS_MAX];     /* by group */
} send_chunk;

typedef struct send_source send_source;

struct send_source {
    photon_client_dataset datasets[SEND_DATASETS_MAX]; /* strings owned by the source */
    size_t n_datasets;
    size_t group_of[SEND_DATASETS_MAX]; /* by dataset */
    size_t n_groups;
    size_t event_group; /* whose items are "events" */
    const char *unit;   /* what to call them: "photons", "tags", "items" */
    uint64_t n_events;  /* to be expected, for the progress bar; SEND_UNKNOWN: it ends when it ends */
    bool timed;         /* it knows when its events happened */
    photon_client_time_base time_base;
    photon_client_time_base recorded;    /* tick and laser period that a recorder has told; zeros: none */
    photon_client_attribute *attributes; /* [n_attributes] keys and values owned by the source */
    size_t n_attributes;

    /* Returns 1 and a chunk, which may be empty when nothing has happened until then; 0 at the end; -1 and a fault. */
    int (*next)(send_source *s, const send_want *want, send_chunk *chunk, send_fault *fault);
    /* Items of a dataset from a place on, that stay as they are until the source is freed; any thread. NULL for sources
     * that cannot be read again. */
    const void *(*again)(const send_source *s, size_t dataset, uint64_t from);
    void (*free)(send_source *s);
    void *own;
};

/* The sources. NULL and a fault when they cannot be opened. `count` (SEND_UNKNOWN: all) is how many events to take. */
typedef struct send_column_name {
    const char *file;
    const char *dataset;
} send_column_name;

send_source *send_open_folder(const char *path, const send_column_name *named, size_t n_named, uint64_t count,
                              send_fault *fault);
send_source *send_open_photons(const char *path, uint64_t count, send_fault *fault);
send_source *send_open_stream(int fd, const char *layout, uint64_t count, send_fault *fault);

typedef struct send_simulation {
    bool tags; /* lintag, else lincam */
    double rate_hz;
    double duration_s; /* 0: without end */
    uint64_t seed;
} send_simulation;

send_source *send_open_simulation(const send_simulation *simulation, uint64_t count, send_fault *fault);

void send_source_free(send_source *s);

/* ---- for the sources */

/* Fills the fault. Returns -1. */
__attribute__((format(printf, 2, 3))) int send_refuse(send_fault *fault, const char *format, ...);

/* A source without datasets, whose `own` is so many bytes of 0 that it frees at the end, after free(). NULL and a
 * fault: no memory. */
send_source *send_source_make(size_t own_bytes, send_fault *fault);

/* What a column file or a dataset of a known name is; `stem` or `dataset` may be NULL. Returns NULL for others. */
typedef struct send_known {
    const char *stem;    /* of its file, "x" for x.u16; NULL: taken only when named */
    const char *dataset; /* "/photons/x" */
    const char *group;
    uint32_t role;
    const char *unit;
} send_known;

const send_known *send_find_known(const char *stem, const char *dataset);

/* Adds a dataset: group, role and unit by its name, a group of its own when it is not known. Returns its place, -1
 * when there are too many, or two of one name, or no memory. */
int send_add_dataset(send_source *s, const char *name, uint32_t type, send_fault *fault);

/* The group of that name, SEND_NO_GROUP when there is none. */
size_t send_find_group(const send_source *s, const char *name);

/* The dataset with that role, SEND_DATASETS_MAX when there is none. */
size_t send_find_role(const send_source *s, uint32_t role);

/* Decides what the events are, once all datasets are known. `lengths` [n_groups], or NULL when not known. */
void send_settle_events(send_source *s, const uint64_t *lengths);

int send_add_attribute(send_source *s, const char *key, const char *value, send_fault *fault);

/* Tick and laser period as the datasets and the attributes tell them. */
void send_settle_time(send_source *s);

/* The type that a file's ending names ("u16", "f64"), -1 for none. */
int send_type_of_ending(const char *ending);

#endif

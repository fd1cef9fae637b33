/* What `d7 import` is made of: import.c reads and reports, import_columns.c writes. */
#ifndef D7_CLI_IMPORT_H
#define D7_CLI_IMPORT_H

#include "attribute_list.h"
#include "cli/pool.h"
#include "commands.h"
#include "ptu.h"

/* The file's milliseconds: the first photon of each. */
typedef struct import_ms {
    long double units_per_ms;
    uint64_t next;      /* millisecond that has not begun yet */
    uint64_t next_time; /* when it begins, in units of the global resolution */
    uint64_t *values;   /* room for IMPORT_MS_ROOM */
    size_t n;
} import_ms;

enum { IMPORT_MS_ROOM = 65536 };

typedef struct import_job {
    const command *self;
    const char *path;
    int fd;
    uint64_t file_bytes; /* 0: unknown */
    ptu_input in;
    ptu_header header;
    ptu_decoder decoder;
    ptu_events events;
    attribute_list attributes; /* of the new file, in the order of the header's tags */
    d7_writer *writer;
    uint64_t records;     /* decoded */
    uint64_t last_time;   /* of a photon or marker */
    uint64_t photons;     /* written */
    uint64_t ps_per_unit; /* T2: 0 where it is no whole number */
    import_ms ms;
    bool problems;
} import_job;

/* A ptu_tag_fn whose ctx is an attribute_list: adds the tag as "ptu.NAME". 1: out of memory. */
int import_take_tag(void *ctx, const char *key, const char *value);

/* Creates the file at `path`, its datasets and attributes. 0, or an exit code after saying why; as all of these. */
int import_create(import_job *job, const char *path, cli_pool *pool);

/* Room for events. Returns 0, or -1. */
int import_reserve(import_job *job);

/* Writes the events of a batch. */
int import_write(import_job *job);

/* Writes what waits and closes the file. */
int import_close(import_job *job);

/* Frees all but the writer. */
void import_release(import_job *job);

#endif

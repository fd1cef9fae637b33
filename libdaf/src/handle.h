/* The handle and what its parts share. */
#ifndef DAF_SRC_HANDLE_H
#define DAF_SRC_HANDLE_H

#include "http_settings.h"
#include "metadata.h"
#include "store.h"
#include "type.h"

/* How payloads are written: the options with environment and defaults filled in. */
typedef struct daf__settings {
    bool packed;
    daf_codec codec;
    int level;
    uint64_t target_chunk_bytes;
    daf_pack_rule pack_rule;
    bool non_finite_scalars;
    bool copies;          /* nothing is mapped */
    uint64_t cache_bytes; /* of decoded chunks that a reader keeps */
    uint64_t zip_max_bytes;
    daf__http_settings http;
    uint64_t http_cache_bytes; /* in the place of cache_bytes, of a repository at a URL */
} daf__settings;

/* What daf.json holds. */
#define DAF__MARKER_TEXT "{\"version\":[1,1]}\n"

/* The last known length of an axis. */
typedef struct daf__axis_length {
    struct daf__axis_length *next;
    char *axis;
    daf__stamp stamp; /* of the file that was counted */
    uint64_t n;
} daf__axis_length;

struct daf {
    daf__store *store;
    char *given_name; /* options.name, or NULL */
    char *shown_name; /* what daf_name returned last */
    int major, minor;
    bool writable;
    bool in_batch;
    bool owes_marker; /* options.late_marker: the next commit puts daf.json */
    daf__settings settings;
    daf_executor executor;
    bool has_executor;
    daf__metadata metadata;
    daf__axis_length *axis_lengths;
};

enum { DAF__PROPERTY_TEXT = 200 };

/* 'vector "age" on axis "cell"', for messages. Returns text. */
const char *daf__property_text(char text[DAF__PROPERTY_TEXT], const daf__property *p);

/* 0; DAF_ERR_READ_ONLY, with a sentence. */
int daf__handle_is_writable(const daf *d, daf_error *err);

/* DAF_ERR_MISSING, with a sentence. */
int daf__no_property(const daf *d, const daf__property *p, daf_error *err);

/* The property's names can be part of a path, and it exists. */
int daf__property_has(daf *d, bool *ret, const daf__property *p, daf_error *err);

/* DAF_ERR_EXISTS when the property exists and is not to be overwritten; *there: whether it exists. */
int daf__property_is_free(daf *d, bool *there, const daf__property *p, bool overwrite, daf_error *err);

/* The shape of a vector (columns: 1) or matrix, from its axes. Returns 0; DAF_ERR_MISSING; ... */
int daf__lengths(daf *d, const daf__property *p, uint64_t *rows, uint64_t *columns, daf_error *err);

/* Whether so many elements could be held in memory. Returns 0; DAF_ERR_LIMIT. */
int daf__check_size(const daf *d, uint64_t rows, uint64_t columns, daf_error *err);

/* Both. */
int daf__shape(daf *d, const daf__property *p, uint64_t *rows, uint64_t *columns, daf_error *err);

/* Opens what is there as it is: nothing is undone or written, and the marker is not read yet. Also DAF_ERR_CORRUPT,
 * DAF_ERR_TRUNCATED an archive without a directory. */
int daf__open_untouched(daf **ret, const char *path, const daf_options *options, daf_error *err);

/* Reads daf.json. Returns 0; DAF_ERR_MISSING; DAF_ERR_CORRUPT; DAF_ERR_VERSION; ... */
int daf__read_marker(daf *d, daf_error *err);

/* Fills in the environment's and our own defaults. Returns 0; DAF_ERR_ARG. */
int daf__settings_init(daf__settings *ret, const daf_options *options, daf_error *err);

#endif

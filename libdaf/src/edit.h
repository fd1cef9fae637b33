/* One write: the outs it fills and the steps it takes, put in place together with the new metadata.json. */
#ifndef DAF_SRC_EDIT_H
#define DAF_SRC_EDIT_H

#include "handle.h"

enum { DAF__MAX_LISTED = 2 }; /* both layouts of a matrix */

typedef struct daf__listed {
    daf__key key;
    daf__buf descriptor;
} daf__listed;

typedef struct daf__edit {
    daf *d;
    daf__change change;
    bool removes;                        /* the index changes otherwise than by appending */
    daf_names leaving;                   /* keys, or prefixes ending in "/", that leave the index */
    daf__listed listed[DAF__MAX_LISTED]; /* appended to the index */
    unsigned n_listed;
    bool raises_minor; /* the marker becomes [1,1] */
} daf__edit;

/* Begins a write. Returns 0; DAF_ERR_READ_ONLY. */
int daf__edit_begin(daf__edit *e, daf *d, daf_error *err);

/* A new out, to be filled and given to daf__edit_put. */
int daf__edit_create(daf__edit *e, daf__out **ret, daf_error *err);

/* Adds a step that puts the out in place. rc: how filling it went; on failure the out is dropped and rc returned. */
int daf__edit_put(daf__edit *e, const char *key, daf__out *out, int rc, daf_error *err);

/* Adds a step that puts a small file in place. */
int daf__edit_put_bytes(daf__edit *e, const char *key, const void *data, size_t bytes, daf_error *err);

/* Adds steps that remove the property's files (all suffixes of its kind, the descriptor first, but for those in
 * the NULL-terminated list `spare`; NULL: none), and takes it out of the index. */
int daf__edit_remove(daf__edit *e, const daf__property *p, const char *const *spare, daf_error *err);

/* Whether the store can remove the property. Returns 0; DAF_ERR_UNSUPPORTED. */
int daf__edit_check_removal(const daf *d, const daf__property *p, daf_error *err);

/* The index gets `key` with the descriptor. */
int daf__edit_list(daf__edit *e, const daf__key *key, const void *descriptor, size_t bytes, daf_error *err);

/* The bytes that the first listed property's files will have. */
uint64_t daf__edit_listed_bytes(const daf__edit *e);

/* Adds the steps that put the new metadata.json in place. */
int daf__edit_put_metadata(daf__edit *e, daf_error *err);

/* Writes metadata.json with what was noted, as a change of its own. */
int daf__edit_write_metadata(daf *d, daf_error *err);

/* Puts everything in place (on failure: nothing) and ends the edit. rc: a failure so far; the edit is then dropped
 * and rc returned. */
int daf__edit_end(daf__edit *e, int rc, daf_error *err);

#endif

/* Where a repository lies. The property layer speaks to a store in keys ("vectors/cell/age.data") and never asks
 * which store it is on; a directory is one kind.
 *
 * Writing goes through a change: outs are filled (under no name yet), then the steps of the change are put in
 * place in their order, or, when one fails, none of them. A reader that comes between two steps sees the first
 * of them done, so their order is what keeps readers (and a killed writer's repository) right.
 */
#ifndef DAF_SRC_STORE_H
#define DAF_SRC_STORE_H

#include "buf.h"
#include "names.h"

typedef struct daf__store daf__store;
typedef struct daf__file daf__file;
typedef struct daf__out daf__out;

/* ---- reading */

/* Tells whether a key still is the same file. */
typedef struct daf__stamp {
    uint64_t device, inode, bytes;
    int64_t changed_s, changed_ns;
} daf__stamp;

/* A view of a whole file; NULL data: none. It outlives the file and the store. */
typedef struct daf__map {
    const void *data;             /* the file's first byte */
    void *owner;                  /* of the bytes: what is given back at the end */
    size_t owner_bytes;           /* of a mapped region */
    void (*release)(void *owner); /* NULL: owner is a region to be unmapped */
} daf__map;

struct daf__file {
    const struct daf__file_ops *ops;
    daf__stamp stamp;
    uint64_t size;
    uint32_t gap_bytes; /* a gap of so much is better read over than left out; 0: some */
    bool has_crc;       /* reading does not check it, so that whoever reads all of it does: */
    uint32_t crc;       /* CRC-32 */
    char *where;        /* "run.daf/vectors/cell/age.data", for messages */
};

typedef struct daf__file_ops {
    /* Exactly `bytes` bytes. DAF_ERR_TRUNCATED when the file ends before. */
    int (*read)(daf__file *f, void *data, size_t bytes, uint64_t offset, daf_error *err);
    /* All of it as a buffer that is the caller's, when it has to be decoded anyway: memory then grows with what is really
     * there. *ret without data: it need not be decoded. NULL: it never has to. */
    int (*take)(daf__file *f, daf__buf *ret, daf_error *err);
    /* Maps the whole file, which is not empty. DAF_ERR_UNSUPPORTED when the store cannot. */
    int (*map)(daf__file *f, daf__map *ret, daf_error *err);
    void (*close)(daf__file *f);
} daf__file_ops;

void daf__file_close(daf__file *f); /* NULL is fine */

/* The whole file, of at most `limit` bytes (DAF_ERR_LIMIT). The caller frees the buffer. */
int daf__file_read_whole(daf__file *f, daf__buf *ret, uint64_t limit, daf_error *err);

/* The checksum of what was read so far, with more of it; and whether that of all is right: 0 or DAF_ERR_CORRUPT. Both do nothing
 * for files without one. */
uint32_t daf__file_add_crc(const daf__file *f, uint32_t crc, const void *data, size_t bytes);
int daf__file_check_crc(const daf__file *f, uint32_t crc, daf_error *err);

/* Appends the whole file to the out, in pieces. */
int daf__file_copy(daf__file *f, daf__out *out, daf_error *err);

void daf__unmap(daf__map *map);

/* ---- writing */

struct daf__out {
    const struct daf__out_ops *ops;
    uint64_t size; /* appended so far, what is still buffered included */
    daf__buf pending;
};

typedef struct daf__out_ops {
    int (*write)(daf__out *out, const void *data, size_t bytes, uint64_t offset, daf_error *err);
    void (*discard)(daf__out *out);
} daf__out_ops;

int daf__out_append(daf__out *out, const void *data, size_t bytes, daf_error *err);

/* Replaces bytes appended before. */
int daf__out_patch(daf__out *out, uint64_t offset, const void *data, size_t bytes, daf_error *err);

/* Hands what is buffered to the store. */
int daf__out_flush(daf__out *out, daf_error *err);

void daf__out_discard(daf__out *out); /* NULL is fine */

typedef enum daf__step_kind {
    DAF__STEP_PUT,        /* the out becomes the file `key`, replacing one that is there */
    DAF__STEP_REMOVE,     /* the file, or the folder with all that is in it; none there: nothing */
    DAF__STEP_MAKE_FOLDER /* none there yet, else nothing */
} daf__step_kind;

typedef struct daf__step {
    daf__step_kind kind;
    char *key;
    daf__out *out; /* PUT: owned */
} daf__step;

typedef struct daf__change {
    daf__step *steps;
    size_t n_steps, capacity;
} daf__change;

int daf__change_put(daf__change *c, const char *key, daf__out *out,
                    daf_error *err); /* takes out, also on failure */
int daf__change_remove(daf__change *c, const char *key, daf_error *err);
int daf__change_make_folder(daf__change *c, const char *key, daf_error *err);

/* Frees the change; outs that were not put in place are discarded. */
void daf__change_free(daf__change *c);

/* ---- the store */

typedef enum daf__list_what {
    DAF__LIST_FILES,
    DAF__LIST_FOLDERS,
    DAF__LIST_FILES_ANYHOW /* in any order: sorting very many takes longer than reading their names */
} daf__list_what;

typedef struct daf__store_ops {
    /* DAF_ERR_MISSING when there is no such file. */
    int (*open)(daf__store *s, daf__file **ret, const char *key, daf_error *err);
    /* DAF_ERR_MISSING. */
    int (*stamp)(daf__store *s, daf__stamp *ret, const char *key, daf_error *err);
    /* Names in the folder, each once, sorted bytewise; a missing folder is empty. */
    int (*list)(daf__store *s, daf_names *ret, const char *folder, daf__list_what what, daf_error *err);
    /* The entries of an axis, when the store knows them without counting lines; NULL: it does not. */
    int (*axis_length)(daf__store *s, uint64_t *ret, const char *axis, daf_error *err);
    /* A new out. */
    int (*create)(daf__store *s, daf__out **ret, daf_error *err);
    /* An out for metadata.json that begins with the first `bytes` bytes of the one before the one in place, when the store
     * still has that and nobody reads it; *ret NULL: it has not. NULL: never. */
    int (*extend_metadata)(daf__store *s, daf__out **ret, uint64_t bytes, daf_error *err);
    /* Puts the change in place. On failure nothing has changed. */
    int (*apply)(daf__store *s, daf__change *c, daf_error *err);
    /* Makes durable what has been applied, when the store is asked to. */
    int (*settle)(daf__store *s, daf_error *err);
    /* For the reorder of an axis; NULL in stores that only append. Backs the files up, so that whatever is then done to
     * them can be undone: by restore, or after a kill by the next writable open. */
    int (*backup)(daf__store *s, const daf_names *keys, daf_error *err);
    int (*restore)(daf__store *s, daf_error *err);
    int (*drop_backup)(daf__store *s, daf_error *err);
    void (*free)(daf__store *s);
} daf__store_ops;

struct daf__store {
    const daf__store_ops *ops;
    const char *kind;       /* "daf directory", for messages */
    char *path;             /* as the caller gave it, for messages */
    char *full_path;        /* archives: absolute, group included; else NULL */
    bool keeps_metadata;    /* has a metadata.json */
    bool append_only;       /* takes no change but files put under names that are free: an archive */
    bool made;              /* this open made it */
    bool fresh;             /* has no marker daf.json: to be made, or no repository */
    bool batching;          /* settle comes at the end of several changes */
    const char *unwritable; /* of a store that is only read: why, for messages */
};

/* The path as messages about what an archive cannot do want it. */
const char *daf__store_full_path(const daf__store *s);

/* What a store that is only read does in place of writing: DAF_ERR_READ_ONLY, with its `unwritable`. */
int daf__unwritable_create(daf__store *s, daf__out **ret, daf_error *err);
int daf__unwritable_apply(daf__store *s, daf__change *c, daf_error *err);
int daf__unwritable_settle(daf__store *s, daf_error *err);

/* Whether the file is there. */
int daf__store_has(daf__store *s, bool *ret, const char *key, daf_error *err);

/* Opens, reads whole, closes; *stamp may be NULL. */
int daf__store_read(daf__store *s, daf__buf *ret, daf__stamp *stamp, const char *key, uint64_t limit,
                    daf_error *err);

/* "run.daf/vectors/cell/age.data" (cut when very long), for messages. Returns text. */
enum { DAF__WHERE_TEXT = 512 };
const char *daf__store_where(char text[DAF__WHERE_TEXT], const daf__store *s, const char *key);

bool daf__stamps_equal(const daf__stamp *a, const daf__stamp *b);

#endif

/* The directory store.
 *
 * The root is held by descriptor and everything below is reached from it, so the store stays with one directory
 * whatever happens to its path. New files are written in the root under names that no reader looks for
 * (".daf.new.PID.N") and renamed into place; what a change replaces or removes is renamed to such a name and
 * kept until the change is whole, so that a failing step can be undone.
 */
#ifndef DAF_SRC_STORE_DIR_H
#define DAF_SRC_STORE_DIR_H

#include "io.h"
#include "store.h"

struct stat;

#define DAF__STAGING_PREFIX ".daf.new."
#define DAF__BACKUP ".reorder.backup"
enum { DAF__STAGING_NAME = 48 };

typedef struct daf__dir_settings {
    const daf_io *io;
    bool sync;
    unsigned file_mode, directory_mode; /* 0: the umask decides */
} daf__dir_settings;

/* Of a file that is replaced again and again by itself and something more, the one before is kept (under a staging
 * name), so that the next takes what was added instead of the whole. */
typedef struct daf__dir_spare {
    daf__stamp placed;            /* the file that is in place, as this store has put it there */
    daf__stamp stamp;             /* the spare one */
    char name[DAF__STAGING_NAME]; /* empty: there is none */
} daf__dir_spare;

typedef struct daf__dir_store {
    daf__store base;
    daf__dir_settings settings;
    int fd;               /* the root */
    unsigned counter;     /* of staging names */
    daf__dir_spare spare; /* of metadata.json */
    daf_names dirty;      /* folders whose entries are not synced yet */
    int journal;          /* store_dir_journal.h; -1: not open */
    bool unfinished;      /* a failed change could not be undone: the journal says how */
    bool half_reordered;  /* a failed reorder could not be undone */
    bool backup_first;    /* files are read from the backup of an interrupted reorder, where it has them */
    struct daf__dir_undone *undone; /* reading: of a change that was interrupted; NULL: there is none */
} daf__dir_store;

typedef struct daf__open_mode {
    bool writable, create, truncate;
    bool untouched; /* reading: what a killed writer left stays as it is */
} daf__open_mode;

/* Opens or creates the directory as the mode says, takes the writer's lock if it is writable, and undoes and
 * removes what a killed writer left. The marker daf.json is neither read nor written; base.fresh says that the
 * directory has none, or is to be emptied (daf__dir_store_clear) when it is made anew. */
int daf__dir_store_open(daf__store **ret, int dirfd, const char *path, daf__open_mode mode,
                        const daf__dir_settings *settings, daf_error *err);

/* Adds steps that remove all that is there, the marker first. */
int daf__dir_store_clear(daf__store *s, daf__change *c, daf_error *err);

/* A new out of `to` that is a hard link of the file `key` of another directory store, which must still be the one of
 * `expected`. Returns 0; DAF_ERR_UNSUPPORTED the file systems do not allow it; DAF_ERR_MISSING, DAF_ERR_IO. */
int daf__dir_link(daf__store *to, daf__out **ret, daf__store *from, const char *key,
                  const daf__stamp *expected, daf_error *err);

/* Whether a writer has the directory of a store that was opened for reading. */
bool daf__dir_store_is_locked(const daf__store *s);

/* DAF_ERR_UNSUPPORTED where an interrupted reorder or change waits to be undone by the next writable open. */
int daf__dir_refuse_interrupted(daf__store *s, daf_error *err);

/* Keeps writers out of the directory of a store that was opened for reading, until it is released. False: a writer has it,
 * an interrupted change or reorder is to be undone first, nothing can be written there, or there are no locks. */
bool daf__dir_store_hold(daf__store *s);
void daf__dir_store_release(daf__store *s);

/* Shared by the store's files. */
extern const daf__store_ops daf__dir_ops;
int daf__dir_fail(daf__dir_store *s, int os_errno, const char *verb, const char *key, daf_error *err);
daf__stamp daf__dir_stamp_of(const struct stat *st);
/* Whether all folders on the way to the key are folders of this directory (or missing): 0; ELOOP one is a symbolic link,
 * which nothing that changes files may pass, since a repository may come from anywhere; another errno. */
int daf__dir_check_way(const daf__dir_store *s, const char *key);
int daf__dir_make_folder(daf__dir_store *s, const char *key); /* 0, EEXIST, or another errno */
void daf__dir_staging_name(daf__dir_store *s, char name[DAF__STAGING_NAME]);
int daf__dir_remove_tree(const daf_io *io, int dirfd, const char *name); /* file or folder; 0 or an errno */
int daf__dir_make_parents(daf__dir_store *s, const char *key);           /* 0 or an errno */
bool daf__dir_cannot_link(int os_errno); /* the file system has no hard links */
typedef struct daf__backup_key {
    char text[sizeof DAF__BACKUP + sizeof(daf__key)];
} daf__backup_key;
const char *daf__in_backup(daf__backup_key *ret, const char *key); /* where its backup is */
int daf__dir_backup(daf__store *base, const daf_names *keys, daf_error *err);
int daf__dir_restore(daf__store *base, daf_error *err);
int daf__dir_drop_backup(daf__store *base, daf_error *err);
/* Undoes the change that a killed writer left unfinished, unless another implementation has written to the same files
 * since. The caller holds the writer's lock. */
int daf__journal_recover(daf__dir_store *s, daf_error *err);
void daf__journal_close(daf__dir_store *s);
int daf__dir_apply(daf__store *base, daf__change *c, daf_error *err);
int daf__dir_settle(daf__store *base, daf_error *err);

/* store_dir_spare.c: an out that begins with the first `bytes` bytes of the file before the one in place; *ret NULL: there
 * is none. Notes that a file was put in place of one that is kept as `kept` (NULL: of none); true: it is kept on. */
int daf__dir_extend(daf__store *base, daf__out **ret, uint64_t bytes, daf_error *err);
bool daf__dir_spare_take(daf__dir_store *s, const daf__stamp *placed, const char *kept);
void daf__dir_spare_drop(daf__dir_store *s);

/* store_dir_undone.c: what a reader takes for the file or folder of a key (or of another path in the root), while a change
 * of a killed writer waits to be undone by the next one. */
typedef struct daf__undone_key {
    char text[DAF__STAGING_NAME + sizeof(daf__backup_key)];
} daf__undone_key;
typedef enum daf__undone_where {
    DAF__UNDONE_LIVE, /* what is there */
    DAF__UNDONE_KEPT, /* what is kept under the name in *ret, or, when that is gone, what is there */
    DAF__UNDONE_GONE  /* nothing */
} daf__undone_where;
daf__undone_where daf__dir_undone_place(const daf__dir_store *s, const char *key, daf__undone_key *ret);
/* Corrects the names that are there in a folder. */
int daf__dir_undone_list(const daf__dir_store *s, daf_names *names, const char *folder, daf__list_what what,
                         daf_error *err);
int daf__dir_undone_load(daf__dir_store *s, daf_error *err);
void daf__dir_undone_free(daf__dir_store *s);

/* A file being written. */
typedef struct daf__dir_out {
    daf__out base;
    daf__dir_store *store;
    int fd;                       /* -1: finished */
    daf__stamp stamp;             /* of the finished file */
    char name[DAF__STAGING_NAME]; /* empty: renamed */
} daf__dir_out;

/* A new one under a name to be filled in; NULL without memory. */
daf__dir_out *daf__dir_out_new(daf__dir_store *s);

#endif

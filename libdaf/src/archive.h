/* The archive store (ZipDaf, specification sections 11 to 13).
 *
 *   archive_path    which archive and group a path means
 *   archive_names   the names in an archive
 *   archive_load    the central directory, read; when it is torn, archive_recover finds what is there
 *   archive_rest    what of a torn archive may be cut off
 *   archive_open    archives that are open in this process, opening, making and replacing them
 *   archive_file    entries as files: stored ones in place, others by archive_decode, inflate64
 *   archive_store   the store of one handle: a group of an archive, or all of it
 *   archive_groups  which groups there are
 *   archive_write   staging of new entries
 *   archive_commit  the append protocol
 *
 * All handles of a process on one archive (one device and inode) share one daf__archive: its descriptor, directory,
 * mapping and lock. A writer holds flock on the file; readers lock nothing.
 *
 * What may be relied on: the bytes of an entry that a committed directory lists are never written again and never
 * cut off. Only what lies behind them changes: the directory, its copy (archive_commit), the end records. So views
 * stay right while the file grows, and a directory that was read once stays true, if not complete, for ever.
 */
#ifndef DAF_SRC_ARCHIVE_H
#define DAF_SRC_ARCHIVE_H

#include <pthread.h>
#include <stdatomic.h>

#include "archive_names.h"
#include "archive_path.h"
#include "io.h"
#include "store_dir.h"
#include "zip.h"

/* The content of an entry that is not committed yet; counted. */
typedef struct daf__staged {
    atomic_uint n_users;
    daf__buf memory; /* small ones */
    int fd;          /* large ones: a file without a name, else -1 */
    const daf_io *io;
    uint64_t bytes;
    uint32_t crc;
} daf__staged;

void daf__staged_release(daf__staged *s); /* NULL is fine */

typedef struct daf__archive_entry {
    uint64_t offset; /* of the local header */
    uint64_t packed_bytes, raw_bytes;
    uint64_t central_at; /* its place in the directory's `central` */
    uint32_t central_bytes;
    uint32_t crc;
    uint16_t flags, method, name_bytes;
    daf__staged *staged; /* not committed yet; then name and owner are set */
    char *name;
    const void *owner; /* the store that staged it */
    uint32_t replaces; /* staged: the committed entry whose name it takes, which leaves; or DAF__NO_ENTRY */
    bool leaving;
    bool overlaps; /* runs into another one; known to verify only */
} daf__archive_entry;

/* A central directory. */
typedef struct daf__archive_directory {
    daf__buf central; /* as it stands in the file: whatever others wrote there is kept */
    daf__archive_entry *entries;
    uint32_t n, capacity;
    uint32_t n_committed;    /* those behind are staged */
    uint64_t n_in_memory;    /* bytes that staged ones take there */
    uint32_t n_staged_files; /* descriptors that they take */
    daf__archive_names names;
    uint64_t offset;   /* where `central` begins in the file, or (recovered) has to */
    daf__buf comment;  /* of the archive */
    daf__buf raw_tail; /* recovered from an interrupted append: what stood behind it in the file */
    bool recovered;    /* the file does not say so plainly */
    bool
        unclear; /* recovered, and what lies at `unclear_at` is more than an append that was interrupted leaves: */
    uint64_t unclear_at; /* the file must not be changed */
    bool misplaced;      /* recovered, and `central` does not stand at `offset` */
    uint64_t end;        /* not misplaced: where its end records end, and so should the file */
    uint64_t file_bytes;
    int64_t changed_s, changed_ns; /* of the file when it was read */
    bool hot;                      /* recovered from a file that was written to just before */
} daf__archive_directory;

/* A mapping of the file, shared by the views of its entries. */
typedef struct daf__archive_region {
    atomic_uint n_users;
    const uint8_t *data;
    size_t bytes;
} daf__archive_region;

typedef struct daf__archive {
    struct daf__archive *next; /* in the list of open ones */
    unsigned n_users;          /* stores and files; under the list's lock */
    uint64_t device, inode;
    char *path; /* absolute */
    const daf_io *io;
    int fd;
    int folder; /* writable: the folder that it lies in, for files without a name; else -1 */
    bool writable;
    bool replaced;        /* mode "w" has put another archive in its place */
    bool broken;          /* a write failed and could not be undone */
    pthread_mutex_t lock; /* of what follows */
    daf__archive_directory directory;
    daf__archive_region *region; /* NULL: none yet */
} daf__archive;

typedef struct daf__archive_settings {
    const daf_io *io;
    bool sync;
    unsigned file_mode;
    uint64_t max_bytes;
    bool other_form; /* the entries are not the files of a FilesDaf: none is a descriptor */
} daf__archive_settings;

typedef struct daf__archive_store {
    daf__store base;
    daf__archive *archive;
    daf__archive_settings settings;
    char *prefix; /* of the names of entries: "", "group/" */
    size_t prefix_bytes;
    bool shows_dead; /* also descriptors that have lost their payload: for those who look for faults */
    bool
        skips_overlaps; /* entries that run into another one cannot be opened, so that a small file is no endless work */
} daf__archive_store;

/* Opens or makes the archive as the mode says. base.fresh says that it, or the group, holds no daf.json. */
int daf__archive_store_open(daf__store **ret, int dirfd, const char *path, const daf__archive_path *where,
                            daf__open_mode mode, const daf__archive_settings *settings, daf_error *err);

/* Before the first write: brings the file in line with what was recovered, and takes its index out. */
int daf__archive_store_prepare(daf__store *base, daf_error *err);

extern const daf__store_ops daf__archive_ops;

/* ---- archive_open */

/* A user more. */
void daf__archive_retain(daf__archive *a);
void daf__archive_release(daf__archive *a);

/* The archive for `where`; the caller is its user. *made: there was none before. */
int daf__archive_open(daf__archive **ret, bool *made, int dirfd, const daf__archive_path *where,
                      daf__open_mode mode, const daf__archive_settings *settings, daf_error *err);

/* ---- archive_load */

/* The whole file. */
typedef struct daf__archive_whole {
    daf__file base;
    const daf_io *io;
    int fd;
    int64_t changed_s, changed_ns;
} daf__archive_whole;

int daf__archive_look(daf__archive_whole *ret, const daf_io *io, int fd, const char *path, daf_error *err);

/* How often a torn directory is found in a file at rest before it counts as torn. */
typedef enum daf__archive_load_how {
    DAF__LOAD_ALONE = 0, /* nobody else can be writing; large last entries are checked wholly */
    DAF__LOAD_AGAIN = 1, /* the file was looked at before */
    DAF__LOAD_BESIDE = 4 /* a writer may be at work */
} daf__archive_load_how;

int daf__archive_load(daf__archive_directory *ret, const daf_io *io, int fd, const char *path,
                      daf__archive_load_how how, daf_error *err);

/* Looks whether another process has appended something; does nothing for a writable archive. */
int daf__archive_refresh(daf__archive *a, daf_error *err);

void daf__archive_directory_free(daf__archive_directory *d);

/* Reads the central directory that `z` tells of. */
int daf__archive_read_central(daf__archive_directory *ret, daf__file *f, const daf__zip_directory *z,
                              daf_error *err);

/* Lists one entry more, which is in d->central already. */
int daf__archive_add_entry(daf__archive_directory *d, const daf__zip_entry *e, uint64_t central_at,
                           uint32_t central_bytes, daf_error *err);

/* The name by which an entry is looked up: without leading "./"; *bytes 0: it cannot be. */
const char *daf__archive_plain_name(const char *name, size_t *bytes);

const char *daf__archive_entry_name(const daf__archive_directory *d, const daf__archive_entry *e);

/* Rebuilds entries and names from what `keep` says of each committed entry. */
int daf__archive_keep(daf__archive_directory *d, bool (*keep)(void *context, uint32_t entry), void *context,
                      daf_error *err);

/* ---- archive_recover */

/* When the directory is the copy that an interrupted append has left: what it is a copy of. */
int daf__archive_take_mark(daf__archive_directory *d, daf_error *err);

/* Drops the entries at the end whose data are not there (in memory only). */
int daf__archive_roll_back(daf__archive_directory *d, daf__file *f, bool thoroughly, daf_error *err);

/* Finds the directory of an archive that does not end in one. */
int daf__archive_search(daf__archive_directory *ret, daf__file *f, daf_error *err);

/* ---- archive_rest */

/* Whether what lies behind `from`, the end of a directory, is zeros or the beginning of another; and so of what lies at
 * `at`, behind the last local header that was understood, or a last entry of our shape that is cut. */
int daf__archive_may_be_cut(bool *ret, daf__file *f, uint64_t from, daf_error *err);
int daf__archive_may_be_cut_behind_locals(bool *ret, daf__file *f, uint64_t at, daf_error *err);

/* Whether headers of entries of the archive stand between the two places, but for those of chunks. */
int daf__archive_holds_entries(bool *ret, daf__file *f, uint64_t from, uint64_t end, daf_error *err);

/* Whether an append of this protocol has written the local header, which is whole. */
bool daf__archive_is_own_local(const uint8_t *local, const daf__zip_entry *e);

/* ---- archive_store */

/* A copy of the entry of `key` (its `staged` is held) and its name, to be freed. Returns 0; DAF_ERR_MISSING; ... */
int daf__archive_find(daf__archive_store *s, daf__archive_entry *ret, char **name, const char *key,
                      daf_error *err);

/* Whether a descriptor (by its whole name) has lost its payload: an append that put the descriptor first was
 * interrupted. The lock is held. */
bool daf__archive_is_dead(const daf__archive_store *s, const char *name);

/* ---- archive_file */

daf__stamp daf__archive_stamp(const daf__archive *a, const daf__archive_entry *e);

/* Where the entry's data begin. */
int daf__archive_locate(uint64_t *ret, daf__file *f, const daf__archive_entry *e, const char *name,
                        daf_error *err);

int daf__archive_file_open(daf__archive_store *s, daf__file **ret, const char *key, daf_error *err);
void daf__archive_region_release(void *region);

/* ---- archive_write, archive_commit */

int daf__archive_create(daf__store *base, daf__out **ret, daf_error *err);
int daf__archive_apply(daf__store *base, daf__change *c, daf_error *err);
int daf__archive_settle(daf__store *base, daf_error *err);

/* Drops what the store has staged. The archive's lock is held. */
void daf__archive_drop_staged(daf__archive_store *s);

/* Writes the staged entries; `keep` (NULL: all) says which committed ones stay in the directory. The lock is held. */
int daf__archive_commit(daf__archive *a, const daf__archive_settings *settings,
                        bool (*keep)(void *context, uint32_t entry), void *context, daf_error *err);

/* Whether the archive can be written to still. The lock is held. */
int daf__archive_check_usable(const daf__archive *a, daf_error *err);

/* Brings the file in line with a recovered directory. */
int daf__archive_repair(daf__archive *a, bool sync, daf_error *err);

#endif

/* d7.h: reading and writing D7 `.photons` files.
 *
 * A D7 file holds named datasets, each a growing row of numbers of one type (photon positions, micro times,
 * time stamps), stored in compressed pages, and attributes (text). A writer appends; readers read closed
 * files by their global index, and files that are still being written or were cut short by their index
 * islands and a scan.
 *
 * Conventions
 *   - Handles are opaque: made by _create or _open, ended by _free, which takes NULL and never fails.
 *   - Functions that can fail return 0 or a negative D7_ERR_ code and, where they take a d7_error (may be
 *     NULL), say there what failed, where in the file and why. Output arguments are untouched on failure.
 *   - Values are in the host's byte order in memory; files are little-endian.
 *   - Strings are UTF-8 and end in NUL.
 *   - The library keeps no global state, never prints, logs or exits. Different handles may be used by
 *     different threads at the same time; one handle by one thread at a time, except where a function says
 *     otherwise.
 */
#ifndef D7_D7_H
#define D7_D7_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define D7_API __attribute__((visibility("default")))
#define D7_MUST_USE __attribute__((warn_unused_result))
#else
#define D7_API
#define D7_MUST_USE
#endif

/* ---- Errors ---- */

/** code, name, what it means */
#define D7_ERROR_MAP(X)                                                                                      \
    X(-1, ARG, "an argument is not valid")                                                                   \
    X(-2, NOMEM, "out of memory")                                                                            \
    X(-3, IO, "the operating system reported an error")                                                      \
    X(-4, NOSPACE, "no space left on the device or in the quota")                                            \
    X(-5, EXISTS, "the file exists already")                                                                 \
    X(-6, NOTFOUND, "not found")                                                                             \
    X(-7, LOCKED, "another writer holds the file")                                                           \
    X(-8, TRUNCATED, "the file ends too early")                                                              \
    X(-9, CORRUPT, "the file breaks the rules of the format")                                                \
    X(-10, UNSUPPORTED, "a form of file that this library does not read")                                    \
    X(-11, LIMIT, "a size is beyond a limit of the format or of this library")                               \
    X(-12, STATE, "not possible in the present state")                                                       \
    X(-13, CANCELLED, "stopped by the caller")

enum d7_error_code {
    D7_OK = 0,
#define D7_ERROR_ENUM(code, name, text) D7_ERR_##name = code,
    D7_ERROR_MAP(D7_ERROR_ENUM)
#undef D7_ERROR_ENUM
};

#define D7_NO_OFFSET UINT64_MAX

/** What went wrong. Owned by the caller; written only on failure. */
typedef struct d7_error {
    int code;        /* D7_ERR_... */
    int os_errno;    /* errno of the failed system call, 0 where there was none */
    uint64_t offset; /* byte offset in the file, D7_NO_OFFSET where none applies */
    char text[512];  /* one sentence: what, where, why; names the file */
} d7_error;

/** "ARG", "NOMEM", ... ; "OK" for 0, "UNKNOWN" for anything else. Any thread. */
D7_API const char *d7_error_name(int code);

/** What a code means, in general. Any thread. */
D7_API const char *d7_error_text(int code);

/** The version of the library, "MAJOR.MINOR.PATCH". Any thread. */
D7_API const char *d7_version(void);

/* ---- The format's numbers ---- */

#define D7_BLOCK_BYTES 16384u                       /* fragments never cross a multiple of this */
#define D7_ENTRY_BYTES_MAX (16u * 1024 * 1024)      /* one serialised FileEntry */
#define D7_INDEX_BODY_MAX (D7_ENTRY_BYTES_MAX - 16) /* what fits in one Index entry */
#define D7_PAGE_BYTES_DEFAULT 16384u                /* bytes of unencoded items in a page */
#define D7_PAGE_BYTES_MIN 16u
#define D7_PAGE_BYTES_MAX (16u * 1024 * 1024)
#define D7_INDEX_STEP_DEFAULT 512u /* blocks from island to island */
#define D7_INDEX_STEP_MAX (1u << 20)
#define D7_DATASETS_MAX 65536u          /* of this library */
#define D7_MARKER_KEY "d7.global_index" /* reserved attribute, hidden from users */

/** Element types; the numbers are those of the format. */
typedef enum d7_type {
    D7_INT8 = 0,
    D7_INT16 = 1,
    D7_INT32 = 2,
    D7_INT64 = 3,
    D7_UINT8 = 4,
    D7_UINT16 = 5,
    D7_UINT32 = 6,
    D7_UINT64 = 7,
    D7_FLOAT = 8,
    D7_DOUBLE = 9
} d7_type;

#define D7_N_TYPES 10

/** Bytes of one element; 0 for a number that is not a type. Any thread. */
D7_API size_t d7_type_size(d7_type type);

/** "uint16" and so on; NULL for a number that is not a type. Any thread. */
D7_API const char *d7_type_name(d7_type type);

/** The type of that name. Returns 0; D7_ERR_NOTFOUND. Any thread. */
D7_API D7_MUST_USE int d7_type_parse(const char *name, d7_type *ret_type);

/** Items in a whole page of that type: bytes_per_page / size; 0 for a bad type. Any thread. */
D7_API size_t d7_items_per_page(d7_type type, size_t bytes_per_page);

/* ---- Tables: memory, files, threads ---- */

/** Where the library takes memory from. NULL in the options: malloc, realloc, free. All are required. */
typedef struct d7_alloc {
    void *ctx;
    void *(*resize)(void *ctx, void *old, size_t bytes); /* as realloc; old may be NULL; bytes > 0 */
    void (*release)(void *ctx, void *old);               /* as free; old may be NULL */
} d7_alloc;

enum d7_io_flags {
    D7_IO_READ = 0,      /* for reading */
    D7_IO_WRITE = 1,     /* for reading and writing */
    D7_IO_CREATE = 2,    /* make the file if it is not there; contents of an existing one stay */
    D7_IO_EXCLUSIVE = 4, /* with CREATE: fail with -EEXIST if it is there */
};

/** How the library reaches files. NULL in the options: the operating system's (d7_io_system()).
 *
 * Each function returns 0 (or a count of bytes) or a negative errno. Short counts and -EINTR are allowed: the
 * library goes on. A pread at or past the end returns 0. Functions for one file may be called by two threads
 * at once only as d7_writer_sync_data() says; but pread is called by several at once for the lanes of a reader
 * that has an executor. All but `remove`, `sync_directory`, `same`, `set_group` and `allocate` are required.
 */
typedef struct d7_io {
    void *ctx;
    int (*open)(void *ctx, const char *path, int flags, unsigned mode, void **ret_file);
    int (*close)(void *ctx, void *file);
    int64_t (*pread)(void *ctx, void *file, void *buffer, size_t bytes, uint64_t offset);
    int64_t (*pwrite)(void *ctx, void *file, const void *data, size_t bytes, uint64_t offset);
    int (*sync_data)(void *ctx, void *file); /* contents and length reach the disk */
    int (*size)(void *ctx, void *file, uint64_t *ret_bytes);
    int (*truncate)(void *ctx, void *file, uint64_t bytes);
    int (*lock)(void *ctx, void *file); /* exclusive; -EAGAIN: taken; -ENOLCK, -EOPNOTSUPP: none here */
    int (*held)(void *ctx, void *file, bool *ret_held); /* does someone else hold the lock? never takes it */
    int (*remove)(void *ctx, const char *path); /* may be NULL: a failed creation then leaves its file */
    int (*sync_directory)(void *ctx, const char *path); /* syncs the folder of path; may be NULL: not done */
    /* Is the open file the one that lies at path now? -ENOENT: none does; may be NULL: nobody notices that a
     * file was replaced */
    int (*same)(void *ctx, void *file, const char *path, bool *ret_same);
    /* Changes the group of an open file. May be NULL: nobody is given another group */
    int (*set_group)(void *ctx, void *file, uint32_t group);
    /* Sets disk space aside for bytes from `offset` on, without changing the file's length; what is there already stays as it
     * is. -ENOSPC, -EDQUOT: there is not so much; -EOPNOTSUPP: not on this file system. May be NULL: none is ever set aside */
    int (*allocate)(void *ctx, void *file, uint64_t offset, uint64_t bytes);
    /* Of a path that is a symbolic link, what it leads to, NUL-terminated: there lies what is beside the file (tail, checksums).
     * Not 0: it is no link, or nobody knows. May be NULL: links are not looked for */
    int (*resolve)(void *ctx, const char *path, char *ret_path, size_t cap);
} d7_io;

/** The operating system's table (open-file-description locks), to wrap in tests. Any thread. */
D7_API const d7_io *d7_io_system(void);

/** A folder that a program with rights of its own keeps files in, and others may write to. */
typedef struct d7_io_folder {
    int fd;           /* of the open folder */
    const char *path; /* how paths of its files begin, without a slash at the end */
} d7_io_folder;

/** The operating system's files, but paths are found from the open folder, never out of it, and through no symbolic link.
 *  folder   borrowed, as long as the table is used
 *  Opens    other paths than those below folder->path with -EXDEV, and what lies behind a link with -ELOOP
 *           (D7_IO_EXCLUSIVE: a name that a link has is taken, -EEXIST)
 *  Thread   any
 */
D7_API d7_io d7_io_beneath(const d7_io_folder *folder);

/** Threads, from the caller: the library makes none.
 *  submit  starts job(arg) on some thread (or runs it at once) and returns 0, or anything else if it could
 *          not, in which case the library runs the job itself
 *  wait    returns when all submitted jobs have ended
 *  Both are called by the thread that uses the handle.
 */
typedef struct d7_executor {
    void *ctx;
    int (*submit)(void *ctx, void (*job)(void *arg), void *arg);
    void (*wait)(void *ctx);
} d7_executor;

/* ---- Pages: pure functions ----
 *
 * Which variant of the code does the work on this processor is chosen at the first page; all variants give the same
 * bytes and find the same errors. The environment variable D7_KERNEL forces one, for tests: see d7(1). */

/** Bytes that suffice for the entry of a page of n items; SIZE_MAX where none would. Any thread. */
D7_API size_t d7_page_bound(d7_type type, size_t n);

/** Encodes one page: a whole serialised FileEntry, ready for d7_writer_append_page().
 *  values   [n], n > 0
 *  out      [cap] bytes; cap of d7_page_bound(type, n) always suffices
 *  Returns  0 and the entry's length; D7_ERR_ARG; D7_ERR_LIMIT when cap is less than the bound or the entry
 *           would be over D7_ENTRY_BYTES_MAX
 *  Thread   any; pure
 *  Source   format: section 3 of the D7 specification
 */
D7_API D7_MUST_USE int d7_page_encode(uint32_t dataset_id, d7_type type, const void *values, size_t n,
                                      void *out, size_t cap, size_t *ret_bytes);

/** Decodes one page, read leniently (unknown fields, any order, unpacked deltas, left-out zeros).
 *  entry    [bytes] one serialised FileEntry that holds `data`
 *  type     of the dataset; the entry does not say it
 *  out      [cap] items
 *  Returns  0, the dataset id and the number of items; D7_ERR_LIMIT when there are more than cap items (out
 *           is not written to); D7_ERR_CORRUPT (err->offset is the offset within the entry; out may hold a
 *           part); D7_ERR_ARG
 *  Thread   any; pure
 */
D7_API D7_MUST_USE int d7_page_decode(d7_type type, const void *entry, size_t bytes, void *out, size_t cap,
                                      uint32_t *ret_dataset_id, size_t *ret_n, d7_error *err);

/** The dataset id and, unless ret_n is NULL, the number of items of a page, without decoding it.
 *  type     of the dataset; for the count
 *  Returns  0; D7_ERR_CORRUPT; D7_ERR_ARG
 *  Thread   any; pure
 */
D7_API D7_MUST_USE int d7_page_count(d7_type type, const void *entry, size_t bytes, uint32_t *ret_dataset_id,
                                     size_t *ret_n, d7_error *err);

/* ---- Writing ---- */

/** A dataset to be written. */
typedef struct d7_dataset {
    const char *name; /* not empty, unique in the file; by custom a path: "/photons/x" */
    d7_type type;
} d7_dataset;

/** An attribute. The lengths count bytes without the NUL; only files of other programs hold NULs inside. */
typedef struct d7_attribute {
    const char *key;
    const char *value;
    size_t key_bytes;   /* set by the reader; the writer takes the string up to its NUL */
    size_t value_bytes; /* likewise */
} d7_attribute;

typedef enum d7_locking {
    D7_LOCK_TRY = 0, /* hold an advisory lock where the file system has one; see D7_WARN_UNGUARDED */
    D7_LOCK_REQUIRE, /* creation fails (D7_ERR_UNSUPPORTED) where it has none */
    D7_LOCK_NONE
} d7_locking;

/** Fill with d7_writer_options_init(), then change what should differ. Borrowed for d7_writer_create(); what
 * the tables' ctx point to must outlive the writer. */
typedef struct d7_writer_options {
    uint32_t index_step;            /* blocks from island to island, 1 to D7_INDEX_STEP_MAX; default 512 */
    uint32_t bytes_per_page;        /* default 16384: see D7_WARN_PAGE_BYTES; limits: d7_writer_create() */
    const d7_attribute *attributes; /* [n_attributes] known at creation, written right after the header: */
    size_t n_attributes;            /* even a file cut early has them; default none */
    /* A copy of this file: the header keeps its version and unknown fields, and of datasets with the same name
     * and type the shapes and unknown fields. The sizes are those given here, so copy its index_step and
     * bytes_per_page where they are to stay. Needed only for the creation; default NULL. */
    const struct d7_reader *like;
    bool overwrite; /* replace an existing file; default false: D7_ERR_EXISTS */
    unsigned mode;  /* permissions of a new file before the umask; default 0666 */
    bool checksums; /* keep NAME.photons.crc beside it: see "Checksums" below; default false */
    bool has_group; /* give a new file to `group`; a failure to do so fails the creation. */
    uint32_t group; /* Default false: the group that the system gives it */
    /* d7_writer_resume(): the values of the slot's partial pages stay with the caller, who appends whole pages that
     * begin with them; default false: the writer takes them. */
    bool whole_pages;
    d7_locking locking;          /* default D7_LOCK_TRY */
    size_t buffer_bytes;         /* the file is written in pieces of about this size; default 1 MiB */
    const d7_io *io;             /* NULL: the system's */
    const d7_alloc *alloc;       /* NULL: malloc */
    const d7_executor *executor; /* NULL: pages are encoded by the calling thread */
} d7_writer_options;

/** Sets the defaults. Any thread. */
D7_API void d7_writer_options_init(d7_writer_options *options);

/** A page size that d7_writer_create() takes for n datasets, for a file like one that has bytes_per_page: that number,
 * or the default, where a page of one dataset could be over 16 MiB when it is encoded. Any thread. */
D7_API uint32_t d7_writable_page_bytes(const d7_dataset *datasets, size_t n, uint32_t bytes_per_page);

/** One file being written.
 *
 * States: open -> (close) -> closed; any failure but NOSPACE, ARG, STATE, LIMIT and NOMEM -> failed, where
 * only getters and d7_writer_free() are left and every other call returns the first error again.
 *
 * Full disk: a write that fails with ENOSPC or EDQUOT returns D7_ERR_NOSPACE and changes nothing. What was
 * taken stays in memory, in order, and the same call may be made again when there is room: d7_writer_flush()
 * and d7_writer_close() go on where they stopped; d7_writer_append() and d7_writer_append_page() that
 * returned D7_ERR_NOSPACE have taken none of the values. A failed sync is never retried: the writer has
 * failed.
 *
 * The same appends give the same bytes, whatever the executor, the buffer size and the flushes in between.
 */
typedef struct d7_writer d7_writer;

/** Creates a file and writes its header (and the attributes given in the options) to the operating system.
 *  datasets [n] in file order, n from 1 to D7_DATASETS_MAX; the place in this array is the dataset's id. Put
 *           photon columns first: some readers know ids below 128 only
 *  options  NULL: defaults
 *  Returns  0 and the writer; D7_ERR_ARG (which argument is in err); D7_ERR_EXISTS; D7_ERR_LOCKED (a live
 *           writer holds the file: it was not touched); D7_ERR_LIMIT (header or attributes too large, or a
 *           page of bytes_per_page could be over D7_ENTRY_BYTES_MAX when encoded); D7_ERR_NOSPACE; D7_ERR_IO;
 *           D7_ERR_UNSUPPORTED (no locks here); D7_ERR_NOMEM. On failure a file that was made is removed
 *           again
 *  Disk     nothing is synced; the directory entry of the new file is the caller's to sync
 *  Source   format: sections 1, 2 and 4 of the D7 specification
 */
D7_API D7_MUST_USE int d7_writer_create(d7_writer **ret_writer, const char *path, const d7_dataset *datasets,
                                        size_t n, const d7_writer_options *options, d7_error *err);

enum d7_writer_warning {
    D7_WARN_UNGUARDED = 1,     /* the file system has no locks: nothing keeps a second writer away */
    D7_WARN_MANY_DATASETS = 2, /* ids of 128 and more: a widespread reader silently loses those datasets */
    D7_WARN_LONG_HEADER = 4,   /* the header is longer than a block: that reader cannot open the file */
    D7_WARN_CHECKSUMS = 8,     /* those beside the file are not complete: see d7_writer_checksum_failure() */
    D7_WARN_PAGE_BYTES = 16,   /* bytes_per_page is not 16384: that reader takes it for the length of a block
                                  and gives other values, or nothing, without an error */
};

/** What the user should be told once about this file: bits of d7_writer_warning. D7_WARN_CHECKSUMS comes up later
 * than creation, the others do not. */
D7_API unsigned d7_writer_warnings(const d7_writer *w);

/** Why the checksums beside the file end early; the file itself is fine. Any state.
 *  Returns  false when they do not, or none were asked for; ret_failure is untouched then */
D7_API bool d7_writer_checksum_failure(const d7_writer *w, d7_error *ret_failure);

/** The length that the file would have if it were closed now, at most: what is set aside up to there is enough for the close.
 * It grows with everything that is appended, by that and its place in the index (D7_CLOSED_PAGE_BYTES for each page), and
 * three times with attributes. Thread: as all of the writer. */
D7_API uint64_t d7_writer_closed_bytes(const d7_writer *w);
#define D7_CLOSED_PAGE_BYTES 128u

/** Sets disk space aside for the file to grow to `length` bytes, and its checksums by n_entries entries: a disk without
 * room for what is to come shows now. What is not used is given back by d7_writer_close(), and by a file that was cut
 * short when it is removed or gone on with and closed.
 *  Returns  0, also when it was set aside before; D7_ERR_NOSPACE: a part of it may have been; D7_ERR_UNSUPPORTED: the file
 *           system cannot, writes then meet the full disk; D7_ERR_IO. The writer goes on in any case
 *  Thread   as all of the writer
 */
D7_API D7_MUST_USE int d7_writer_allocate(d7_writer *w, uint64_t length, uint64_t n_entries, d7_error *err);

/** The file has been renamed by the caller (and its checksums, NAME.photons.crc, where there are any): errors name
 * it by this path from now on. For files that are made under another name than they get.
 *  Returns  0; D7_ERR_ARG: no path; D7_ERR_NOMEM; the first error again when the writer has failed
 *  Thread   as all of the writer, and not beside d7_writer_sync_data()
 */
D7_API D7_MUST_USE int d7_writer_renamed(d7_writer *w, const char *path, d7_error *err);

/** Sets an attribute. It reaches the file with the next island (or d7_writer_put_attributes()) and, at
 * close, the global index. A later value of a key replaces the earlier one; the key keeps its first place in
 * the order.
 *  key      valid UTF-8, copied; not empty and not D7_MARKER_KEY
 *  value    valid UTF-8, copied
 *  Returns  0; D7_ERR_ARG; D7_ERR_LIMIT (longer than one Index entry takes); D7_ERR_NOMEM; D7_ERR_STATE
 */
D7_API D7_MUST_USE int d7_writer_set_attribute(d7_writer *w, const char *key, const char *value,
                                               d7_error *err);

/** Frames the attributes that no Index entry of the file holds yet: into an entry of attributes alone or,
 * where an island is due at this place, into that island. The next island lists them again, for readers that
 * hop from island to island. For recorders that keep a tail (see below) and whose attributes outgrow it;
 * others leave them to the islands.
 *  Returns  0, also when there are none; D7_ERR_NOSPACE (try again); D7_ERR_NOMEM; D7_ERR_STATE; D7_ERR_IO
 */
D7_API D7_MUST_USE int d7_writer_put_attributes(d7_writer *w, d7_error *err);

/** Appends values to a dataset. Whole pages are encoded and framed as they fill, the rest waits for the next
 * call.
 *  values   [n] of the dataset's type, any alignment; borrowed for the call; n of 0 is allowed
 *  Returns  0: all taken.
 *           D7_ERR_NOSPACE: none taken, try again later (what a large append could not hand to a full disk on
 *           its way is kept in memory and reported by the next call).
 *           D7_ERR_NOMEM: a part may have been taken, d7_writer_items() tells.
 *           D7_ERR_ARG: no such dataset. D7_ERR_STATE: the dataset was ended, or the writer
 *           is closed. D7_ERR_IO: the writer has failed
 */
D7_API D7_MUST_USE int d7_writer_append(d7_writer *w, uint32_t dataset_id, const void *values, size_t n,
                                        d7_error *err);

/** Appends a page that was encoded elsewhere by d7_page_encode() for this dataset and type. The entry's head
 * is checked (that it is a page of this dataset and of this length), its values are not.
 *  n_items  in the page: d7_items_per_page(), or fewer (not 0), which ends the dataset
 *  Returns  as d7_writer_append(), but taken whole or not at all; D7_ERR_STATE also while values given to
 *           d7_writer_append() wait for their page; D7_ERR_ARG when the entry's head does not fit
 */
D7_API D7_MUST_USE int d7_writer_append_page(d7_writer *w, uint32_t dataset_id, const void *entry,
                                             size_t bytes, size_t n_items, d7_error *err);

/** Ends a dataset before the file is closed: what waits for its page becomes a last, short one. For datasets that
 * are complete while others go on, so that their last items can be read and survive a crash. Not for recorders that
 * keep a tail: a slot does not say that a dataset has ended, and such a file cannot be resumed.
 *  Returns  0, also when it was ended before; D7_ERR_ARG: no such dataset; D7_ERR_NOSPACE (nothing has changed, try
 *           again); D7_ERR_NOMEM (likewise); D7_ERR_STATE; D7_ERR_IO
 */
D7_API D7_MUST_USE int d7_writer_end_dataset(d7_writer *w, uint32_t dataset_id, d7_error *err);

/** Hands everything framed to the operating system. Values that wait for their page stay in memory.
 *  Returns  0; D7_ERR_NOSPACE (try again); D7_ERR_IO
 */
D7_API D7_MUST_USE int d7_writer_flush(d7_writer *w, d7_error *err);

/** Waits until what was handed to the operating system before this call is on the disk (fdatasync).
 *  Thread   any: may run on another thread while the writer's thread makes any other call but
 *           d7_writer_close() and d7_writer_free(). One at a time
 *  Returns  0; D7_ERR_IO: final, the writer has failed (here, or in a call before: then nothing is synced) and
 *           nothing since the last successful sync counts as stored; D7_ERR_STATE: the file is closed
 */
D7_API D7_MUST_USE int d7_writer_sync_data(d7_writer *w, d7_error *err);

/** Ends the file: last pages in the order of the datasets, global index, sync, epilogue, sync, and closes
 * it. An epilogue on the disk is therefore true. The handle stays for the getters and d7_writer_free().
 *  Returns  0, also when closed already; D7_ERR_NOSPACE (call again, it goes on where it stopped);
 *           D7_ERR_NOMEM (likewise); D7_ERR_IO
 *  Disk     the directory is the caller's to sync
 */
D7_API D7_MUST_USE int d7_writer_close(d7_writer *w, d7_error *err);

/** Releases the writer. Without d7_writer_close() the file stays open-ended, as after a crash: what was not
 * handed to the operating system is gone. NULL is allowed. */
D7_API void d7_writer_free(d7_writer *w);

/* Getters: the writer's thread, any state. A dataset id that does not exist counts 0. */

/** Items taken, in pages or waiting for one. */
D7_API uint64_t d7_writer_items(const d7_writer *w, uint32_t dataset_id);
/** Items in framed pages. */
D7_API uint64_t d7_writer_paged_items(const d7_writer *w, uint32_t dataset_id);
/** Pages framed, of all datasets. */
D7_API uint64_t d7_writer_pages(const d7_writer *w);
/** Attributes set that no Index entry of the file holds yet: they wait for the next island, or the close. */
D7_API size_t d7_writer_unlisted_attributes(const d7_writer *w);
/** Length of the file as framed so far, handed over or not. */
D7_API uint64_t d7_writer_framed_bytes(const d7_writer *w);
/** Length of the file as handed to the operating system. */
D7_API uint64_t d7_writer_written_bytes(const d7_writer *w);
/** Size of the global index if the file were closed now. Past D7_INDEX_BODY_MAX it takes a second Index
 * entry, which some readers miss: a recorder begins a new file before. */
D7_API uint64_t d7_writer_index_bytes(const d7_writer *w);

/* ---- Problems ---- */

/** The class of a problem. */
typedef enum d7_severity {
    D7_DAMAGE = 0, /* data is lost, or the file breaks the format and readers stumble */
    D7_DATA, /* what the instrument or its recorder put there is odd: unequal columns, values out of range */
    D7_STYLE, /* written otherwise than writers of this format should: nothing is lost, but some readers may mind */
    D7_NOTICE /* no problem but the state of the file: a writer is at it. Nothing depends on it */
} d7_severity;

#define D7_N_SEVERITIES 4

/** "damage", "data", "style", "notice"; NULL for a number that is none. Any thread. */
D7_API const char *d7_severity_name(d7_severity severity);

/** name, severity, what it means */
#define D7_PROBLEM_MAP(X)                                                                                    \
    X(TORN_TAIL, DAMAGE, "the last entry is incomplete")                                                     \
    X(NO_EPILOGUE, DAMAGE, "the closing was cut short: a global index without an epilogue")                  \
    X(BAD_EPILOGUE, DAMAGE, "the epilogue does not point at a global index")                                 \
    X(TRAILING_BYTES, DAMAGE, "bytes follow the epilogue")                                                   \
    X(BAD_FRAME, DAMAGE, "a fragment breaks the framing")                                                    \
    X(BAD_ENTRY, DAMAGE, "an entry is no valid message")                                                     \
    X(BAD_PAGE, DAMAGE, "a page does not decode")                                                            \
    X(UNKNOWN_DATASET, DAMAGE, "a page of a dataset that the header does not list")                          \
    X(MISSING_PAGE, DAMAGE, "the index lists a page that is not there")                                      \
    X(UNLISTED_PAGE, DAMAGE, "a page that the index does not list")                                          \
    X(ISLAND_LIST, DAMAGE, "an index island does not list exactly the pages since the one before")           \
    X(BAD_ATTRIBUTE, DAMAGE, "an attribute is not valid UTF-8, or the global index lacks it")                \
    X(BAD_HEADER, DAMAGE, "the header holds something odd")                                                  \
    X(CHECKSUM, DAMAGE, "an entry's bytes differ from those that were written")                              \
    X(HEADER_PLACE, DAMAGE, "a second header")                                                               \
    X(UNPLACED, DAMAGE,                                                                                      \
      "pages may be missing, and nothing tells whose items they held: none behind is given out")             \
    X(TAIL, DAMAGE,                                                                                          \
      "the tail beside the file, which nobody writes any more, is not true of it or not usable")             \
    X(CERTIFICATE, DAMAGE, "the file is not as its certificate says (d7 verify)")                            \
    X(SIGNATURE, DAMAGE, "the key did not sign the certificate (d7 verify)")                                 \
    X(RAGGED, DATA, "the columns of a group differ in length")                                               \
    X(VALUE_RANGE, DATA, "values that need more bits than PositionBits or TacBits say")                      \
    X(MS_ORDER, DATA, "/photons/ms goes back")                                                               \
    X(MS_RANGE, DATA, "/photons/ms points past the last photon")                                             \
    X(ATTRIBUTE_VALUE, DATA, "an attribute that says a number of bits holds something else")                 \
    X(SAME_NAME, DATA, "two datasets have the same name")                                                    \
    X(ISLAND_PLACE, STYLE, "an index island is missing or not where a writer puts it")                       \
    X(PAGE_LENGTH, STYLE, "a page before the last holds another number of items than the header says")       \
    X(PAGE_FORM, STYLE, "a page lacks fields that some readers need, or has an unusual form")                \
    X(INDEX_FORM, STYLE, "an index lists its pages in an unusual order or form")                             \
    X(ZERO_GAP, STYLE, "zeros between two entries, or after the last")                                       \
    X(NARROW_READERS, STYLE, "the file is valid but beyond what some readers take")                          \
    X(CHECKSUM_FILE, STYLE, "the file of checksums is torn, not kept up, damaged or another file's")         \
    X(CERTIFICATE_FILE, STYLE, "the certificate cannot be read, or the checksums are not those certified")   \
    X(BEING_WRITTEN, NOTICE, "a writer holds the file; its last entry is not whole yet")

typedef enum d7_problem_code {
#define D7_PROBLEM_ENUM(name, severity, text) D7_PROBLEM_##name,
    D7_PROBLEM_MAP(D7_PROBLEM_ENUM)
#undef D7_PROBLEM_ENUM
        D7_N_PROBLEMS
} d7_problem_code;

#define D7_NO_DATASET UINT32_MAX

/** One problem of a file. */
typedef struct d7_problem {
    d7_problem_code code;
    d7_severity severity;
    uint64_t offset;     /* where in the file, D7_NO_OFFSET where it has no place */
    uint32_t dataset_id; /* D7_NO_DATASET where it concerns none */
    uint64_t first_item; /* of the dataset: the items concerned, when n_items > 0 */
    uint64_t n_items;
    char text[256]; /* the reason, one sentence without a full stop */
} d7_problem;

/** "TORN_TAIL", "BAD_PAGE", ... ; NULL for a number that is none. Any thread. */
D7_API const char *d7_problem_name(d7_problem_code code);

/** What a kind of problem means, in general; NULL for a number that is none. Any thread. */
D7_API const char *d7_problem_text(d7_problem_code code);

/* ---- Reading ---- */

#define D7_READER_LANES_MAX 16u

/** Fill with d7_reader_options_init(). The tables must outlive the reader. */
typedef struct d7_reader_options {
    bool recover; /* do not trust epilogue and global index: islands and scan, as for an unclosed file */
    bool quick;   /* of an unclosed file only what the islands list: no scan of what follows the last one */
    bool full;    /* recover, and do not trust the islands either: the whole file is scanned */
    const d7_executor *executor; /* NULL: pages are decoded by the calling thread */
    /* Threads that decode at the same time, the calling one counted; 0: 4, or 1 without an executor; at most
     * D7_READER_LANES_MAX count. What is read, and what is said about damage, does not depend on it. */
    unsigned lanes;
    /* Leave out what the tail of an unclosed file holds (NAME.photons.tail beside it, see "The tail"). Default
     * false: its values are the newest items of their datasets, its attributes the newest of the file. */
    bool pages_only;
    /* Also read files whose blocks have no begin and end bits, as one other writer makes them; such a file is
     * no valid D7. Default false: they are refused, with this reason. */
    bool unframed;
    const d7_io *io;
    const d7_alloc *alloc;
} d7_reader_options;

/** Sets the defaults. Any thread. */
D7_API void d7_reader_options_init(d7_reader_options *options);

/** One file being read. One thread at a time. */
typedef struct d7_reader d7_reader;

typedef enum d7_state {
    D7_STATE_CLOSED, /* ends in a valid epilogue */
    D7_STATE_OPEN    /* being written, or cut short */
} d7_state;

/** Opens a file and learns where its pages are. A file that another program is writing may be opened at any
 * time and is not disturbed. Damage does not stop it: it is listed (d7_reader_problem()), and whatever is
 * whole can be read.
 * Where pages may be missing of which no index tells (zeros or broken framing before the first island, behind the last
 * one or around one that is lost) nobody knows which numbers the items behind have: they do not count and cannot be
 * read, datasets end there (problem UNPLACED). d7_repair() does the same.
 *  options  NULL: defaults
 *  Returns  0 and the reader; D7_ERR_NOTFOUND (no such file); D7_ERR_TRUNCATED (cut inside the header);
 *           D7_ERR_CORRUPT (no D7 file); D7_ERR_UNSUPPORTED (unframed blocks, as one other writer makes them,
 *           and options->unframed is not set: err says so); D7_ERR_LIMIT; D7_ERR_NOMEM; D7_ERR_IO
 *  Memory   at most 16 bytes a page and 64 MB; attributes come on top. The first reading of values adds up to
 *           300 KB a lane, and for pages of unusual size their encoded length, up to 64 MB in all
 *  Source   format: section 5 of the D7 specification
 */
D7_API D7_MUST_USE int d7_reader_open(d7_reader **ret_reader, const char *path,
                                      const d7_reader_options *options, d7_error *err);

/** Closes the file and releases the reader. NULL is allowed. */
D7_API void d7_reader_free(d7_reader *r);

/** What d7_reader_refresh() found. */
enum d7_change {
    D7_CHANGE_GREW = 1,     /* there are more items, or attributes were set */
    D7_CHANGE_CLOSED = 2,   /* the file ends in a valid epilogue now */
    D7_CHANGE_CUT = 4,      /* it has lost what it held: it was read anew, and there may be fewer items */
    D7_CHANGE_REPLACED = 8, /* another file lies at the path now, or none: the reader stays with its own */
};

/** Learns what was added to the file since it was opened or refreshed: pages, attributes, the newest items in
 * its tail, the close. Goes on where it stopped, so that it costs what was added; after a cut (a recovery takes
 * back what was not proved, or somebody shortened the file) the file is read as by opening it again. Item
 * numbers stay what they are but after a cut. Strings and infos that getters gave out are to be asked for
 * anew.
 *  ret_changes bits of d7_change; may be NULL. REPLACED is told once
 *  Returns  0; D7_ERR_TRUNCATED (it shrinks at this moment: try again); D7_ERR_CORRUPT, D7_ERR_LIMIT,
 *           D7_ERR_UNSUPPORTED (after a cut, its header cannot be read); D7_ERR_NOMEM; D7_ERR_IO. After a
 *           failure the reader holds what it held or more, and the next refresh finds, and tells, the rest
 */
D7_API D7_MUST_USE int d7_reader_refresh(d7_reader *r, unsigned *ret_changes, d7_error *err);

/** Closed or open, as of opening or the last refresh. */
D7_API d7_state d7_reader_state(const d7_reader *r);
/** Whether the file's blocks have no begin and end bits: see d7_reader_options. */
D7_API bool d7_reader_unframed(const d7_reader *r);
/** Whether a writer held the file when it was opened or refreshed. */
D7_API bool d7_reader_held(const d7_reader *r);
/** Length of the file when it was opened or refreshed, in bytes. */
D7_API uint64_t d7_reader_file_bytes(const d7_reader *r);
/** Version of the format as the header says: major, minor, patch. */
D7_API void d7_reader_version(const d7_reader *r, uint32_t ret_version[3]);
/** Blocks from island to island. */
D7_API uint32_t d7_reader_index_step(const d7_reader *r);
/** Bytes of unencoded items in a full page. */
D7_API uint32_t d7_reader_bytes_per_page(const d7_reader *r);
/** Pages known, of all datasets. */
D7_API uint64_t d7_reader_pages(const d7_reader *r);

/** What a reader knows of a dataset; strings and arrays live as long as the reader. */
typedef struct d7_dataset_info {
    const char *name;
    size_t name_bytes; /* without the NUL */
    d7_type type;
    /* Readable and damaged ones, those of the tail included; a damaged last page, whose length nobody knows,
     * counts none. */
    uint64_t items;
    uint64_t paged_items; /* those in pages: less than `items` where a tail holds the newest */
    uint64_t pages;
    const uint64_t *shape; /* [rank] as the header gives it; the first number of a growing dataset is 0 */
    size_t rank;
} d7_dataset_info;

/** How many datasets the header lists; their ids count from 0. */
D7_API size_t d7_reader_n_datasets(const d7_reader *r);
/** Returns 0; D7_ERR_ARG: no such dataset. */
D7_API D7_MUST_USE int d7_reader_dataset(const d7_reader *r, uint32_t dataset_id, d7_dataset_info *ret_info);
/** The first dataset of that name. Returns 0; D7_ERR_NOTFOUND. */
D7_API D7_MUST_USE int d7_reader_find_dataset(const d7_reader *r, const char *name, uint32_t *ret_dataset_id);

/** Attributes in the order of their first writing, last values; the format's marker is left out. Strings
 * live as long as the reader. */
D7_API size_t d7_reader_n_attributes(const d7_reader *r);
/** Returns 0; D7_ERR_ARG: no such attribute. */
D7_API D7_MUST_USE int d7_reader_attribute(const d7_reader *r, size_t i, d7_attribute *ret_attribute);
/** The value of an attribute, NULL where it is not set. */
D7_API const char *d7_reader_find_attribute(const d7_reader *r, const char *key);

/** Problems met so far, by opening and by reading, each page once. At most 1000 are kept, all are counted. */
D7_API uint64_t d7_reader_n_problems(const d7_reader *r);
/** How many of them are damage. */
D7_API uint64_t d7_reader_n_damages(const d7_reader *r);
/** Returns 0; D7_ERR_ARG: no such problem, or past those that are kept. */
D7_API D7_MUST_USE int d7_reader_problem(const d7_reader *r, size_t i, d7_problem *ret_problem);

/** Reads items [from, from + n) of a dataset.
 *  out      [n] of the dataset's type, host byte order
 *  Returns  0; D7_ERR_ARG: not so many items; D7_ERR_CORRUPT: a page among them is damaged (err names the
 *           first and its items; out holds the items of the good pages); D7_ERR_TRUNCATED: the file has
 *           shrunk since it was opened; D7_ERR_NOMEM; D7_ERR_IO
 *  Pages of other writers may hold an unexpected number of items: the first one met makes the reader count
 *  all pages, after which d7_reader_dataset() may tell another number of items.
 */
D7_API D7_MUST_USE int d7_reader_read(d7_reader *r, uint32_t dataset_id, uint64_t from, size_t n, void *out,
                                      d7_error *err);

/** Fill with d7_columns_options_init(). */
typedef struct d7_columns_options {
    uint64_t from; /* the first row; default 0 */
    /* One past the last; default UINT64_MAX: the end of the shortest column, wherever that moves by refreshing the
     * reader. */
    uint64_t to;
    size_t chunk_items; /* the most rows of one d7_columns_next(); default 0: 262144, at most 32 MiB */
    bool skip_damaged;  /* leave out rows that a damaged page of some column held; default: an error */
} d7_columns_options;

/** Sets the defaults. Any thread. */
D7_API void d7_columns_options_init(d7_columns_options *options);

/** Several datasets read side by side, row by row: item i of each is row i (x, y and dt of the same photon).
 * One thread at a time, that of the reader, which must outlive it; other calls on the reader may come in
 * between. */
typedef struct d7_columns d7_columns;

/** Begins to read rows [from, to).
 *  dataset_ids [n], n > 0, copied; of any types; ms and others that are not one item a photon make no rows
 *              with the rest
 *  options     NULL: defaults
 *  Returns     0; D7_ERR_ARG: no such dataset, from past the end of the shortest column, or `to` (but for
 *              UINT64_MAX) past it or before from; D7_ERR_NOMEM
 *  Memory      chunk_items of each column, rounded up to whole pages unless that is over 32 MiB
 */
D7_API D7_MUST_USE int d7_columns_open(d7_columns **ret_columns, d7_reader *r, const uint32_t *dataset_ids,
                                       size_t n, const d7_columns_options *options, d7_error *err);

/** Consecutive rows. */
typedef struct d7_chunk {
    uint64_t first_item; /* the row of values[..][0] */
    size_t n;            /* rows; 0: the end */
    /* [columns][n] in the order of dataset_ids, of each one's type, host byte order, aligned for it; good until the
     * next call. */
    const void *const *values;
} d7_chunk;

/** The next rows, in rising order; between 1 and chunk_items of them, n of 0 at the end. Pages are read from the
 * file in its order, all columns together, and decoded by the reader's lanes.
 *  Returns  0; D7_ERR_CORRUPT: a damaged page holds the next row (those before it were given, and with
 *           skip_damaged this is no error: first_item then jumps); D7_ERR_STATE: rows given so far turn out to
 *           have other numbers, because pages of unexpected length before `from` were counted meanwhile, or a
 *           refresh found that the file was cut: open anew; D7_ERR_TRUNCATED: the file has shrunk; D7_ERR_IO;
 *           D7_ERR_NOMEM. After the last three the same call may be made again
 */
D7_API D7_MUST_USE int d7_columns_next(d7_columns *c, d7_chunk *ret_chunk, d7_error *err);

/** Rows left out so far because of skip_damaged. */
D7_API uint64_t d7_columns_skipped(const d7_columns *c);

/** NULL is allowed. */
D7_API void d7_columns_free(d7_columns *c);

/** Where a page is and what it holds. */
typedef struct d7_page_info {
    uint64_t offset; /* of its first fragment header */
    uint64_t first_item;
    uint64_t n_items; /* 0 for a damaged last page */
    bool damaged;     /* known to be; only pages that were read are known */
} d7_page_info;

/** Page `page` of a dataset. Returns 0; D7_ERR_ARG: no such page. */
D7_API D7_MUST_USE int d7_reader_page(const d7_reader *r, uint32_t dataset_id, uint64_t page,
                                      d7_page_info *ret_page);

/** The page that holds an item. Returns 0; D7_ERR_ARG: no such item. */
D7_API D7_MUST_USE int d7_reader_find_page(const d7_reader *r, uint32_t dataset_id, uint64_t item,
                                           uint64_t *ret_page);

/** A page as it is in the file: its serialised entry, unknown fields included, for d7_writer_append_page() of a
 * copy.
 *  ret_entry good until the next call with this reader
 *  Returns   0; D7_ERR_ARG: no such page; D7_ERR_CORRUPT: it is damaged (only what is needed to count its items was
 *            looked at: the values may still turn out to be damaged); D7_ERR_TRUNCATED; D7_ERR_NOMEM; D7_ERR_IO
 */
D7_API D7_MUST_USE int d7_reader_page_entry(d7_reader *r, uint32_t dataset_id, uint64_t page,
                                            const uint8_t **ret_entry, size_t *ret_bytes, d7_error *err);

/** The same page under another dataset number, and in the form that d7_writer_append_page() takes: the number
 * first, all other fields of the page as they are. For copies that select datasets, and for pages of other writers.
 *  out      [cap] bytes, not overlapping entry; bytes + 16 always suffice
 *  Returns  0 and the entry's length; D7_ERR_CORRUPT: no page; D7_ERR_LIMIT: cap is too small, or longer than
 *           D7_ENTRY_BYTES_MAX
 *  Thread   any; pure
 */
D7_API D7_MUST_USE int d7_page_relabel(const void *entry, size_t bytes, uint32_t dataset_id, void *out,
                                       size_t cap, size_t *ret_bytes);

/** Called now and then during long work; anything but 0 stops it with D7_ERR_CANCELLED. */
typedef int d7_progress_fn(void *ctx, uint64_t done_bytes, uint64_t total_bytes);

/** Looks into every page of every dataset: exact item counts, every damaged page among the problems.
 *  progress NULL is allowed
 *  Returns  0, also when problems were found; D7_ERR_CANCELLED; D7_ERR_TRUNCATED; D7_ERR_NOMEM; D7_ERR_IO
 */
D7_API D7_MUST_USE int d7_reader_check(d7_reader *r, d7_progress_fn *progress, void *ctx, d7_error *err);

/* ---- LINCam and LINTag conventions ---- */

/** What a dataset is, by its name. Source: the D7 specification, section 6. */
typedef enum d7_role {
    D7_ROLE_OTHER = 0,
    D7_ROLE_X,             /* /photons/x    position, 0 to 2^PositionBits - 1 */
    D7_ROLE_Y,             /* /photons/y */
    D7_ROLE_MICRO_TIME,    /* /photons/dt   after the laser pulse, in TAC channels */
    D7_ROLE_MS,            /* /photons/ms   index of the first photon of every millisecond */
    D7_ROLE_ABSOLUTE_TIME, /* /photons/aat  in periods of /photons/TimerFrequency */
    D7_ROLE_START,         /* /start/time   ps */
    D7_ROLE_STOP,          /* /stop/time    ps */
    D7_ROLE_CHANNEL,       /* /tags/channel */
    D7_ROLE_TIME           /* /tags/time    ps */
} d7_role;

/** Columns of one group have one value for every photon, or every tag, and so equal lengths. */
typedef enum d7_group {
    D7_GROUP_NONE = 0, /* a dataset of its own; also the milliseconds */
    D7_GROUP_PHOTONS,  /* /photons/x, y, dt, aat and all else there but ms; /start/time, /stop/time */
    D7_GROUP_TAGS      /* everything in /tags/ */
} d7_group;

/** The role of a name; OTHER for NULL. Any thread; pure. */
D7_API d7_role d7_role_of(const char *dataset_name);

/** The group of a name; NONE for NULL. Any thread; pure. */
D7_API d7_group d7_group_of(const char *dataset_name);

/** The first dataset of a role. Returns 0; D7_ERR_NOTFOUND. */
D7_API D7_MUST_USE int d7_reader_find_role(const d7_reader *r, d7_role role, uint32_t *ret_dataset_id);

/** Items that every column of a group has: the length of the shortest; 0 where the file has none. A column
 * without any item is one that was not in use, and does not count, unless it has a page, which is damaged then: in a closed
 * file, and in an open one where others have more than a page of it would hold. */
D7_API uint64_t d7_reader_group_items(const d7_reader *r, d7_group group);

/** The photons of a millisecond of the recording, by /photons/ms.
 *  ms       from 0
 *  ret_n    photons from *ret_first on; 0 for a millisecond without any. Those of the last millisecond are all
 *           that follow
 *  Returns  0; D7_ERR_NOTFOUND: no such dataset; D7_ERR_UNSUPPORTED: it is of a type that cannot be; D7_ERR_ARG:
 *           the recording is shorter; D7_ERR_CORRUPT: a page is damaged, or indices fall; as d7_reader_read()
 */
D7_API D7_MUST_USE int d7_reader_photons_of_ms(d7_reader *r, uint64_t ms, uint64_t *ret_first,
                                               uint64_t *ret_n, d7_error *err);

/** The millisecond of the recording in which a photon arrived, by /photons/ms.
 *  Returns  0; D7_ERR_NOTFOUND: no such dataset, or the photon comes before its first millisecond; D7_ERR_ARG:
 *           there are not so many photons; else as d7_reader_photons_of_ms()
 *  Cost     a few pages are decoded: as many as halving finds
 */
D7_API D7_MUST_USE int d7_reader_ms_of_photon(d7_reader *r, uint64_t photon, uint64_t *ret_ms, d7_error *err);

/* ---- Verifying ---- */

/** Called for each problem as it is found. */
typedef void d7_problem_fn(void *ctx, const d7_problem *problem);

typedef struct d7_verify_summary {
    d7_state state;
    bool held;
    uint64_t file_bytes;
    uint64_t entries;
    uint64_t pages;
    uint64_t damages, data_notes, style_notes; /* problems of each class; notices are not counted */
    bool has_checksums;                        /* NAME.photons.crc lies beside the file, and */
    uint64_t checked_entries;                  /* so many entries agree with it */
} d7_verify_summary;

/** Reads the whole file from front to back and holds it against every rule of the format: framing, messages,
 * pages, their lengths, places of the islands, that islands and global index list exactly the pages, the
 * epilogue and its place, attributes (D7_DAMAGE, D7_STYLE); and against what recordings are (D7_DATA): /photons/x
 * and y within /photons/PositionBits and /photons/dt within /photons/TacBits, where those attributes are there;
 * /photons/ms not falling and, in a closed file, at most the number of photons; the columns of a group, in a closed
 * file, of equal length (datasets without any item aside). Checksums beside the file (NAME.photons.crc) are
 * compared: an entry that is where and as long as they say and has other bytes is damage, everything that is wrong
 * with them alone is style. A file that is open and whole is without damage. Unknown fields are no problem. Faults
 * of consecutive pages of a dataset are one problem, with the items from the first to the last.
 *  r           opened without `recover` and `quick`
 *  on_problem  called for each problem, those that opening and reading found first; NULL is allowed: they are
 *              among the reader's problems then
 *  progress    NULL is allowed
 *  Returns     0 and the summary, also when problems were found; D7_ERR_CANCELLED; D7_ERR_TRUNCATED: the file
 *              has shrunk; D7_ERR_NOMEM; D7_ERR_IO
 *  Memory      16 bytes for each page since the last island (4 where none lists them), 100 for each dataset
 */
D7_API D7_MUST_USE int d7_reader_verify(d7_reader *r, d7_problem_fn *on_problem, void *problem_ctx,
                                        d7_progress_fn *progress, void *progress_ctx,
                                        d7_verify_summary *ret_summary, d7_error *err);

/* ---- Repairing ---- */

/** Fill with d7_repair_options_init(). */
typedef struct d7_repair_options {
    /* Columns of a group may end at different items, as they do in the file; default false: all end where the
     * shortest does. */
    bool keep_ragged;
    bool unframed; /* also rewrite files of unframed blocks: see d7_reader_options; default: refused */
    unsigned mode; /* of the new file, or of what is kept of a cut end, before the umask; default 0666 */
    d7_progress_fn *progress; /* NULL is allowed */
    void *progress_ctx;
    const d7_io *io;
    const d7_alloc *alloc;
    const d7_executor *executor; /* NULL: the calling thread does all */
} d7_repair_options;

/** Sets the defaults. Any thread. */
D7_API void d7_repair_options_init(d7_repair_options *options);

typedef enum d7_repair_outcome {
    D7_REPAIR_FINE,     /* closed and without damage: nothing was done */
    D7_REPAIR_WRITTEN,  /* a new file was written */
    D7_REPAIR_IN_PLACE, /* the end of the file was repaired */
} d7_repair_outcome;

/** What became of a dataset's items: those of the file are kept, lost or left out, or (of ms) filled. */
typedef struct d7_repair_dataset {
    const char *name;
    d7_type type;
    uint64_t kept;     /* items of the result, those filled not counted */
    uint64_t lost;     /* in damaged pages */
    uint64_t left_out; /* readable, but other columns of the group have lost theirs, or end earlier */
    /* Entries of /photons/ms in a lost page: they have the value of the next one, so that later milliseconds keep
     * their numbers. */
    uint64_t filled;
    bool more_lost; /* and a number of items that nobody knows, at the end */
} d7_repair_dataset;

/** Items that were taken out between others. */
typedef struct d7_repair_gap {
    d7_group group;       /* the columns concerned; D7_GROUP_NONE: dataset_id alone */
    uint32_t dataset_id;  /* else D7_NO_DATASET */
    uint64_t item;        /* in the result: the first one after the gap */
    uint64_t source_item; /* in the source: the first one that is gone */
    uint64_t n_items;
} d7_repair_gap;

/** Items of /photons/ms, of the source and of the result, that were filled: see d7_repair_dataset.filled. */
typedef struct d7_repair_fill {
    uint32_t dataset_id;
    uint64_t item, n_items;
} d7_repair_fill;

/** What a repair found and did. Fill with zeros before the call; release with d7_repair_report_free(). */
typedef struct d7_repair_report {
    d7_repair_outcome outcome;
    d7_state source_state;
    bool unframed;
    bool tail_included; /* items of the tail beside are in the result */
    /* Why the newest that the tail beside tells of is not among them, or may have changed since (problem TAIL); empty:
     * it is all there, or there is no tail. Then more_lost of each dataset of which it tells, or may tell, of more. */
    char tail_fault[256];
    /* Byte of the file from which on pages cannot be told their item numbers, because it is not known what was lost
     * there: none of them is kept. D7_NO_OFFSET: there is no such place. */
    uint64_t unknown_from;
    /* Pages found where an index says that there were none: blocks of the file have been moved or copied. They are
     * not kept. */
    uint64_t unlisted_pages;
    /* By the checksums beside the file: the header is not what was written, so that names, types and the page size may
     * be wrong; attributes that only indexes hold that are not what was written, which are not kept. */
    bool changed_header;
    uint64_t lost_attributes;
    char checksum_fault
        [256];           /* what is wrong with the checksums beside the file themselves; empty: nothing is */
    uint64_t torn_bytes; /* of an entry that the end of the file cuts: a page's, most likely */
    d7_repair_dataset *datasets; /* [n_datasets] */
    size_t n_datasets;
    d7_repair_gap *gaps; /* [n_gaps] */
    size_t n_gaps;
    d7_repair_fill *fills; /* [n_fills] */
    size_t n_fills;
    uint64_t cut_bytes;  /* in place: cut off the end and kept in NAME.photons.cut.N, */
    uint32_t cut_number; /* this N, when cut_bytes > 0 */
    d7_alloc alloc;      /* what it was made with */
} d7_repair_report;

/** Releases what the report holds; it is empty then. Any thread. */
D7_API void d7_repair_report_free(d7_repair_report *report);

/** Writes what can be saved of a file into a new one that is closed and has no damage. The file itself is not
 * changed.
 *
 * Every whole page is kept as it is, in its place and with its unknown fields; so are the header's, and all
 * attributes in their order. Columns of a group (d7_group_of()) stay aligned: items that one has lost in the middle
 * are taken out of all, and all end where the shortest does. /photons/ms is re-based, and so are the gaps and
 * markers that the daemon writes (photond.gap.N, photond.marker.N); each gap made here becomes another
 * photond.gap.N. What a tail beside the file holds is included. A file that is closed and has no damage is left
 * alone, and nothing is written.
 *
 * Pages that checksums beside the file (NAME.photons.crc) say have changed since they were written count as lost, and so
 * do attributes; a header that has changed is told.
 *
 * What was lost is known where an index lists it, or where the framing still tells. Where neither does, in what was
 * written after the last index, everything behind is left out (report->unknown_from): nothing is put at a guessed
 * place. Where an index covers a place it alone says which pages are there: pages of blocks that were moved or
 * copied are not kept, and from a place on where a part of the file was taken out or put in nothing is.
 *
 *  out_path  must not exist; give a temporary name and rename it, if it must never be seen half written
 *  options   NULL: defaults
 *  Returns   0 and the report (released by the caller); D7_ERR_LOCKED: a writer holds the file; D7_ERR_EXISTS:
 *            out_path; D7_ERR_CORRUPT: no file without damage could be made of it; D7_ERR_CANCELLED;
 *            D7_ERR_NOSPACE; else as d7_reader_open() and d7_writer_create(). On failure nothing is left at
 *            out_path
 *  Memory    at most 16 bytes a page, and twice the largest entry. Files of 16 TiB and more: D7_ERR_LIMIT
 *  Disk      the new file is synced, its name is the caller's to sync
 *  Source    format: sections 5 and 7 of the D7 specification
 */
D7_API D7_MUST_USE int d7_repair(const char *path, const char *out_path, const d7_repair_options *options,
                                 d7_repair_report *ret_report, d7_error *err);

/** Closes a file that was cut short: what follows its last whole page or island is copied to NAME.photons.cut.N and
 * cut off, and the global index and the epilogue are written. No byte of a whole page is touched; nothing else is
 * repaired. Columns that end at different items stay so.
 *
 * Every step is synced before the next and can be cut short: the same call again then goes on. Done twice, the
 * second time finds a file that is fine.
 *
 *  Returns  0 and the report; D7_ERR_LOCKED; D7_ERR_STATE: there is a tail beside (the recorder recovers it),
 *           damage that is not at the end, or an index without an epilogue that another writer made: d7_repair() is
 *           for those; D7_ERR_CANCELLED and D7_ERR_NOSPACE (what was a file cut short still is one);
 *           D7_ERR_UNSUPPORTED: unframed; else as d7_reader_open(); D7_ERR_IO
 */
D7_API D7_MUST_USE int d7_repair_in_place(const char *path, const d7_repair_options *options,
                                          d7_repair_report *ret_report, d7_error *err);

/* ---- Checksums ---- */

/* Beside a file a writer can keep NAME.photons.crc (d7_writer_options.checksums): place, length and CRC-32C of every
 * entry, by which d7_reader_verify() finds bytes that have changed since. The bytes are in docs/d7-checksums.md. The file
 * itself is the same with and without, and counts most: once it is created, nothing that happens to the checksums
 * makes a call of the writer fail. They are written after what they are of, kept in memory while the disk is full
 * (16 bytes an entry), and given up after any other failure, or when the disk is still full at the close:
 * D7_WARN_CHECKSUMS. They are synced when the file is closed; after a crash d7_writer_resume() with the same option
 * makes up for those that are missing, and without it cuts them to what is still true. */

#define D7_CHECKSUMS_SUFFIX ".crc"

/** Writes the checksums of a file that has none, or not all. The pages are not looked into: verify first.
 *  path      of the new file, an existing one is replaced; NULL: NAME.photons.crc beside
 *  progress  NULL is allowed
 *  Returns   0; D7_ERR_LOCKED: a writer holds the file; D7_ERR_CORRUPT: it is damaged; D7_ERR_CANCELLED;
 *            D7_ERR_TRUNCATED; D7_ERR_NOSPACE; D7_ERR_NOMEM; D7_ERR_IO. On failure nothing is left at the path
 *  Disk      synced; its name is the caller's to sync
 */
D7_API D7_MUST_USE int d7_reader_write_checksums(d7_reader *r, const char *path, d7_progress_fn *progress,
                                                 void *progress_ctx, d7_error *err);

/** Compares the checksums beside the file (NAME.photons.crc), where there are any that are its own, with the file
 * as it is. Pages whose bytes are not those that were written are damaged from then on, for everything that reads
 * with `r`, also where they decode; they and other entries that have changed are among the reader's problems as
 * CHECKSUM, and so are checksums that cannot be used as CHECKSUM_FILE. Reads the whole file when there are checksums, else
 * nothing. d7_reader_verify() compares too, but leaves such pages readable.
 *  progress  NULL is allowed
 *  Returns   0, also when something has changed; D7_ERR_CANCELLED; D7_ERR_TRUNCATED: the file has shrunk;
 *            D7_ERR_NOMEM; D7_ERR_IO
 *  Memory    16 bytes for each entry that differs
 *  Thread    one at a time per reader
 */
D7_API D7_MUST_USE int d7_reader_compare_checksums(d7_reader *r, d7_progress_fn *progress, void *progress_ctx,
                                                   d7_error *err);

/** What keeps the checksums beside a file that was compared or verified from telling whether values have changed: the
 * first problem CHECKSUM_FILE that is more than entries which only one of both has (the file was cut, or goes on).
 *  Returns   0; D7_ERR_NOTFOUND: nothing, or there are no checksums
 *  Thread    one at a time per reader
 */
D7_API D7_MUST_USE int d7_reader_checksum_fault(const d7_reader *r, d7_problem *ret_problem);

/* ---- The tail: what pages do not hold yet ---- */

/* Beside a file that must survive a crash a recorder keeps a second one, NAME.photons.tail: three slots, each
 * a claim of what the recording is ("NAME.photons holds L bytes, the last pages are not full yet and hold
 * these values, ...") with checksums of the claim and of the bytes that it builds on. After a crash the
 * newest claim that is true wins, and d7_tail_recover() makes the file equal to it. The bytes are in
 * docs/tail-format.md; which claim may be overwritten when, and why that loses nothing, is in
 * libd7/src/tail_book.h.
 *
 *   d7_tail_create()       under a temporary name; the writer then gets d7_tail_io() as its table, so that
 *                          the tail sees what is written
 *   d7_tail_mark_slot()    now and then (every 100 ms): a slot; what it says survives a crash of the program
 *   d7_tail_begin_sync()   every second: a slot that survives a power cut once d7_writer_sync_data() and
 *                          d7_tail_sync_data(), on another thread, and d7_tail_finish_sync() have ended well
 *   d7_writer_close()      then remove the tail, and sync the folder
 */

#define D7_TAIL_SUFFIX ".tail" /* NAME.photons.tail lies beside NAME.photons */
#define D7_TAIL_SLOTS 3u
#define D7_TAIL_ALIGN_BYTES 4096u /* slots begin at multiples of their size, which is one of this */
#define D7_TAIL_SLOT_BYTES_MAX (256u * 1024 * 1024)
#define D7_TAIL_FILE_ID_BYTES 16u
#define D7_TAIL_PRODUCER_BYTES_MAX 255u              /* without the NUL */
#define D7_TAIL_HEAD_BYTES_MAX (64u * 1024)          /* of the file's start, by which a tail knows its file */
#define D7_TAIL_ATTRIBUTE_BYTES_DEFAULT (64u * 1024) /* room for attributes in a slot */

/** What decides how large a slot is. Borrowed where it is given. */
typedef struct d7_tail_layout {
    uint32_t bytes_per_page; /* as in the writer's options */
    const d7_type *types;    /* [n_datasets] in the order of the file */
    size_t n_datasets;
    uint32_t attribute_bytes; /* room for attributes that no Index entry holds yet, counted as by
                                 d7_tail_attribute_bytes(); D7_TAIL_ATTRIBUTE_BYTES_DEFAULT does */
} d7_tail_layout;

/** Which file it is: the same in every slot of a tail. */
typedef struct d7_tail_identity {
    uint8_t file_id[D7_TAIL_FILE_ID_BYTES]; /* the caller's: a run's id */
    uint32_t part;                          /* the caller's: from 0 */
    uint64_t first_sequence;                /* the last batch before this part; 0 for the first */
    uint64_t head_bytes;                    /* of the file's start, at most D7_TAIL_HEAD_BYTES_MAX */
    uint32_t head_crc32c;                   /* of those bytes */
} d7_tail_identity;

/** What a slot says of the file, and by what it can be checked. */
typedef struct d7_tail_claim {
    uint64_t generation; /* from 1; a slot written later has a larger one */
    uint64_t length;     /* of the file: L */
    uint64_t base;       /* everything before was synced when this was written: B, at most L */
    uint32_t crc32c;     /* CRC-32C of the file's bytes [B, L) */
} d7_tail_claim;

/** One moment on three clocks. */
typedef struct d7_tail_clock {
    bool instrument_valid;
    int64_t instrument; /* in the instrument's unit; 0 when it is not valid */
    uint64_t monotonic_ns;
    int64_t utc_ns;
} d7_tail_clock;

/** How far a dataset is. */
typedef struct d7_tail_dataset {
    d7_type type;
    uint64_t items;      /* of this file, those of the partial page included */
    uint32_t n_partial;  /* in the last page, which is not full: 0 to a page less one */
    const void *partial; /* [n_partial] host byte order; NULL in an answer: see d7_tail_slot_values() */
} d7_tail_dataset;

/** What the recording is at one moment, right after its batch `sequence`. Borrowed where it is given. */
typedef struct d7_tail_mark {
    uint64_t sequence;    /* S: of the last whole batch in it; 0: none yet */
    const char *producer; /* UTF-8, at most D7_TAIL_PRODUCER_BYTES_MAX bytes; NULL as "" */
    uint64_t epoch;       /* of the producer */
    d7_tail_clock clock;
    const d7_tail_dataset *datasets; /* [n_datasets] as many as in the layout */
    size_t n_datasets;
    const d7_attribute *attributes; /* [n_attributes] that no Index entry holds, in the order of setting */
    size_t n_attributes;
} d7_tail_mark;

/** A slot that was read: points into the bytes it was decoded from, and is good as long as those are. */
typedef struct d7_tail_slot {
    d7_tail_identity identity;
    d7_tail_claim claim;
    uint64_t sequence;
    const char *producer;
    uint64_t epoch;
    d7_tail_clock clock;
    uint32_t bytes_per_page;
    size_t n_datasets;   /* d7_tail_slot_dataset() */
    size_t n_attributes; /* d7_tail_slot_attribute() */
    const uint8_t *bytes;
    size_t used_bytes; /* what the slot holds; the rest of its place means nothing */
    size_t slot_bytes; /* its place */
} d7_tail_slot;

/** Bytes of one slot of this layout; the tail file has D7_TAIL_SLOTS times as many, always.
 *  Returns  0; D7_ERR_ARG: a type or bytes_per_page that cannot be, no dataset, over D7_DATASETS_MAX;
 *           D7_ERR_LIMIT: over D7_TAIL_SLOT_BYTES_MAX
 *  Thread   any; pure
 */
D7_API D7_MUST_USE int d7_tail_slot_bytes(const d7_tail_layout *layout, size_t *ret_bytes);

/** Bytes that attributes take in a slot; SIZE_MAX where that is no number. Attributes that are too many for
 * the layout's attribute_bytes go into an Index entry of the file first. Any thread; pure. */
D7_API size_t d7_tail_attribute_bytes(const d7_attribute *attributes, size_t n);

/** Writes a slot's bytes.
 *  out      [cap] bytes; cap of d7_tail_slot_bytes() always suffices
 *  Returns  0 and how many bytes are to be written at the slot's place, a multiple of D7_TAIL_ALIGN_BYTES;
 *           D7_ERR_ARG; D7_ERR_LIMIT: the attributes need more than the layout's attribute_bytes, or cap is
 *           too small
 *  Thread   any; pure
 *  Source   docs/tail-format.md
 */
D7_API D7_MUST_USE int d7_tail_slot_encode(const d7_tail_layout *layout, const d7_tail_identity *identity,
                                           const d7_tail_claim *claim, const d7_tail_mark *mark, void *out,
                                           size_t cap, size_t *ret_bytes, d7_error *err);

/** Reads a slot from its bytes and checks every number in it; the claim's own checksum is not looked at, it
 * needs the file.
 *  bytes    [n] the slot's place; what follows the slot in it means nothing
 *  Returns  0; D7_ERR_CORRUPT: no slot, or torn (err->offset is the offset in the slot); D7_ERR_UNSUPPORTED:
 *           of a later version of the format
 *  Thread   any; pure; no memory is taken
 */
D7_API D7_MUST_USE int d7_tail_slot_decode(const void *bytes, size_t n, d7_tail_slot *ret_slot,
                                           d7_error *err);

/** Returns 0; D7_ERR_ARG: no such dataset. Any thread; pure. */
D7_API D7_MUST_USE int d7_tail_slot_dataset(const d7_tail_slot *slot, size_t i, d7_tail_dataset *ret_dataset);

/** Copies values of a dataset's partial page.
 *  from, n  places in the partial page; the item of the file is items - n_partial + from
 *  out      [n] of the dataset's type, host byte order
 *  Returns  0; D7_ERR_ARG: not so many. Any thread; pure
 */
D7_API D7_MUST_USE int d7_tail_slot_values(const d7_tail_slot *slot, size_t i, size_t from, size_t n,
                                           void *out);

/** Goes through a slot's attributes in the order of their setting.
 *  cursor   0 before the first; else as the call before left it
 *  Returns  true and the attribute; false after the last. Any thread; pure
 */
D7_API bool d7_tail_slot_attribute(const d7_tail_slot *slot, size_t *cursor, d7_attribute *ret_attribute);

/** The slot that may be overwritten next: neither the pinned one (the newest synced) nor the one whose sync
 * is under way; of two, the one not written last. -1 stands for none. Any thread; pure. */
D7_API unsigned d7_tail_choose(int pinned, int in_flight, int last);

/** Fill with d7_tail_options_init(). The tables must outlive the tail. */
typedef struct d7_tail_options {
    unsigned mode; /* permissions of a new file before the umask; default 0666 */
    const d7_io *io;
    const d7_alloc *alloc;
} d7_tail_options;

/** Sets the defaults. Any thread. */
D7_API void d7_tail_options_init(d7_tail_options *options);

/** The tail of one file being written. One thread at a time, that of the file's writer, but for
 * d7_tail_sync_data().
 *
 * States: open <-> syncing, between d7_tail_begin_sync() and d7_tail_finish_sync(); any failure but ARG,
 * LIMIT, STATE and NOSPACE -> failed, where only getters and d7_tail_free() are left and every other call
 * returns the first error again. What was pinned before a failure stays true: the recording goes on in a new
 * part whose first_sequence is d7_tail_durable_sequence(), and the old part is recovered with that as its
 * limit.
 */
typedef struct d7_tail d7_tail;

/** Makes the tail of a file that does not exist yet: D7_TAIL_SLOTS empty slots, so that no later slot needs
 * room.
 *  path     of the tail; must not exist
 *  layout   copied
 *  file_id  the run's
 *  options  NULL: defaults
 *  Returns  0 and the tail; D7_ERR_ARG; D7_ERR_LIMIT; D7_ERR_EXISTS; D7_ERR_NOSPACE; D7_ERR_IO; D7_ERR_NOMEM.
 *           On failure a file that was made is removed again
 *  Disk     nothing is synced; the first d7_tail_begin_sync() is the first slot
 */
D7_API D7_MUST_USE int d7_tail_create(d7_tail **ret_tail, const char *path, const d7_tail_layout *layout,
                                      const uint8_t file_id[D7_TAIL_FILE_ID_BYTES], uint32_t part,
                                      uint64_t first_sequence, const d7_tail_options *options, d7_error *err);

/** The table through which the writer of the file (and nothing else) writes: does what the tail's own table
 * does, and keeps the checksums of what was written to the first file that is open for writing. Lives as long as
 * the tail. */
D7_API const d7_io *d7_tail_io(d7_tail *t);

/** Writes a slot. What it says is there after a crash of the program; after a power cut it may be.
 *  length   of the file, all of it handed to the operating system (d7_writer_flush();
 *           d7_writer_framed_bytes())
 *  Returns  0; D7_ERR_ARG; D7_ERR_LIMIT: the attributes do not fit; D7_ERR_STATE: the file is not `length`
 *           bytes long, or the sequence falls; D7_ERR_NOSPACE (on file systems that copy on write; nothing is
 *           lost, try again); D7_ERR_IO
 */
D7_API D7_MUST_USE int d7_tail_mark_slot(d7_tail *t, uint64_t length, const d7_tail_mark *mark,
                                         d7_error *err);

/** As d7_tail_mark_slot(), and begins a sync with that slot: now the file and the tail are to be synced, each
 * on any thread. Marks go on meanwhile. D7_ERR_STATE also when a sync is under way. */
D7_API D7_MUST_USE int d7_tail_begin_sync(d7_tail *t, uint64_t length, const d7_tail_mark *mark,
                                          d7_error *err);

/** Waits until the tail file is on the disk.
 *  Thread   any: may run on another thread while the tail's thread makes any other call but d7_tail_free()
 *  Returns  0; D7_ERR_IO */
D7_API D7_MUST_USE int d7_tail_sync_data(d7_tail *t, d7_error *err);

/** Ends the sync: `synced` when both the file's and the tail's succeeded. Then the slot is pinned and its
 * sequence durable; else the tail has failed: a failed sync is never tried again.
 *  Returns  0: pinned; D7_ERR_IO: a sync had failed; D7_ERR_STATE: no sync is under way */
D7_API D7_MUST_USE int d7_tail_finish_sync(d7_tail *t, bool synced, d7_error *err);

/** The tail has been renamed by the caller: errors name it by this path from now on.
 *  Returns  0; D7_ERR_ARG: no path; D7_ERR_NOMEM
 *  Thread   the tail's, and not beside d7_tail_sync_data() */
D7_API D7_MUST_USE int d7_tail_renamed(d7_tail *t, const char *path, d7_error *err);

/** Closes the tail's file and releases the tail. The writer that uses d7_tail_io() is freed before. NULL is
 * allowed. */
D7_API void d7_tail_free(d7_tail *t);

/** Whether a slot has been pinned: before the first one nothing is durable. Any state. */
D7_API bool d7_tail_has_durable(const d7_tail *t);
/** S of the pinned slot; the part's first_sequence before the first. Any state. */
D7_API uint64_t d7_tail_durable_sequence(const d7_tail *t);
/** L of the pinned slot; 0 before the first. Any state. */
D7_API uint64_t d7_tail_durable_bytes(const d7_tail *t);
/** Room for attributes in a slot, counted as by d7_tail_attribute_bytes(): what was asked for, or a little
 * more. Any state. */
D7_API size_t d7_tail_attribute_room(const d7_tail *t);
/** What d7_tail_recover() found; NULL in a tail that was created, and after the first slot written since. */
D7_API const d7_tail_slot *d7_tail_recovered(const d7_tail *t);

/** Fill with d7_tail_recover_options_init(). The tables must outlive the tail. */
typedef struct d7_tail_recover_options {
    const uint8_t *file_id;  /* [D7_TAIL_FILE_ID_BYTES] the run it must be of; default NULL: any */
    uint64_t sequence_limit; /* nothing after this batch: the next part's first_sequence; default: none */
    bool end_is_beyond; /* an epilogue closes the file after that batch: it counts as little; default false */
    bool keep_cut;      /* copy what is cut to NAME.photons.cut.N; default true */
    unsigned mode;      /* permissions of that copy before the umask; default 0666 */
    const d7_io *io;
    const d7_alloc *alloc;
} d7_tail_recover_options;

/** Sets the defaults. Any thread. */
D7_API void d7_tail_recover_options_init(d7_tail_recover_options *options);

typedef enum d7_tail_outcome {
    D7_TAIL_RESUMED, /* the file is what a slot says, and can be gone on with */
    D7_TAIL_CLOSED,  /* the file had been closed: the tail was removed */
    D7_TAIL_ORPHAN   /* a tail without its file: a creation that was cut short. Nothing was changed */
} d7_tail_outcome;

/** What a recovery did. */
typedef struct d7_tail_recovery {
    d7_tail_outcome outcome;
    uint64_t length;            /* of the file now; 0 for an orphan */
    uint64_t cut_bytes;         /* that were after it */
    uint32_t cut_number;        /* N of NAME.photons.cut.N, when cut_bytes > 0 and they were kept */
    unsigned n_rejected;        /* slots that are whole, newer than the one chosen and not true of the file */
    uint64_t rejected_sequence; /* the largest S among them: received once, to be sent again */
} d7_tail_recovery;

/** Makes a file that a crash left open equal to the newest of its slots that is true.
 *
 * The newest slot whose own checksum holds, whose L is within the file and whose bytes [B, L) match wins,
 * else an older one. What lies past L is copied aside and cut. A file with a valid epilogue was closed: it is
 * kept and its tail removed. Every step may be cut short and done again; done twice, the second time changes
 * nothing. The file is locked meanwhile and free afterwards. Everything is synced before this returns: what
 * the chosen slot says is durable.
 *
 *  path      of the file; its tail is `path` and D7_TAIL_SUFFIX
 *  options   NULL: defaults
 *  ret_tail  the tail to go on with, for D7_TAIL_RESUMED; else NULL. d7_tail_recovered() is the slot
 *  Returns   0; D7_ERR_NOTFOUND: no tail, so the file is not ours; D7_ERR_LOCKED: a writer holds it;
 *            D7_ERR_CORRUPT: no slot is true of this file, or it is another file's (nothing was changed);
 *            D7_ERR_UNSUPPORTED: written by a later version; D7_ERR_NOSPACE; D7_ERR_IO; D7_ERR_NOMEM. After a
 *            failure the same call may be made again
 *  Source    docs/tail-format.md, "Recovery"
 */
D7_API D7_MUST_USE int d7_tail_recover(d7_tail **ret_tail, const char *path,
                                       const d7_tail_recover_options *options, d7_tail_recovery *ret_recovery,
                                       d7_error *err);

/** Goes on writing a file that a recovery has made equal to a slot: the writer is what it was when the slot was
 * written, and the same appends give the same bytes as without the crash.
 *  path     of the file
 *  slot     d7_tail_recovered(); not needed afterwards
 *  options  io is d7_tail_io() of the recovered tail. The file's own index_step and bytes_per_page count, and
 *           attributes, overwrite and mode have no meaning here. NULL: defaults
 *  Returns  0 and the writer; D7_ERR_ARG; D7_ERR_NOTFOUND; D7_ERR_LOCKED; D7_ERR_CORRUPT: the file is damaged,
 *           or not what the slot says; as d7_reader_open() when its header cannot be read; D7_ERR_UNSUPPORTED
 *           (no locks here); D7_ERR_NOMEM; D7_ERR_IO. The file is not changed
 *  Cost     the islands are read, and what follows the last one; a page of memory for each dataset
 */
D7_API D7_MUST_USE int d7_writer_resume(d7_writer **ret_writer, const char *path, const d7_tail_slot *slot,
                                        const d7_writer_options *options, d7_error *err);

/** Reads the tail of a file that someone else is writing, or that a crash left. Takes no lock and disturbs
 * nobody. One thread at a time. */
typedef struct d7_tail_reader d7_tail_reader;

/** Opens the tail of the file at `path`. Of the options io and alloc are used; NULL: defaults.
 *  Returns  0; D7_ERR_NOTFOUND: no such file, or it has no tail (it is closed, or another program's);
 *           D7_ERR_CORRUPT; D7_ERR_NOMEM; D7_ERR_IO */
D7_API D7_MUST_USE int d7_tail_reader_open(d7_tail_reader **ret_reader, const char *path,
                                           const d7_reader_options *options, d7_error *err);

/** The newest slot that is true of the file as it is now. Its values are the newest items: those of a dataset
 * from items - n_partial on, for a reader that knows the pages before L (which may have to refresh first) and
 * those alone. A slot that is being written at this moment is passed over for the one before it.
 *  ret_slot good until the next call
 *  Returns  0; D7_ERR_NOTFOUND: no slot is true now (try again: a writer may be at it); D7_ERR_NOMEM;
 *           D7_ERR_IO
 *  Cost     the tail, and of the file what was added since the last call
 */
D7_API D7_MUST_USE int d7_tail_reader_peek(d7_tail_reader *r, const d7_tail_slot **ret_slot, d7_error *err);

/** Closes both files and releases the reader. NULL is allowed. */
D7_API void d7_tail_reader_free(d7_tail_reader *r);

#ifdef __cplusplus
}
#endif

#endif

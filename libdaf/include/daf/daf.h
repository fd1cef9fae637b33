/* libdaf: repositories of scalars, axes, vectors and matrices in the FilesDaf format, version 1.1.
 *
 * A repository holds named properties: scalars; axes (named lists of unique entries); vectors (one value for
 * each entry of an axis); matrices (one value for each pair of entries of a rows axis and a columns axis,
 * column-major: element (i, j) at i + j * rows). On disk it is a directory of JSON descriptors and payload
 * files, or the same files in a ZIP archive; docs/daf-format.md explains them. A dense property has one
 * payload; a sparse one has one for its values, one for their indices and, a matrix, one for its columns. Each
 * payload is either flat (bare little-endian values, read by mapping) or packed (compressed chunks in one file
 * that is a ZIP archive and a Zarr v3 shard at once).
 *
 * Errors     Functions that return int return 0 or a negative DAF_ERR_ code; the optional last argument gets
 *            the details. Out parameters are untouched on failure. Damaged files are errors, never crashes.
 *            "Returns" lists what is to be expected; besides, any of them may return DAF_ERR_ARG (a name, path or
 *            array is NULL), DAF_ERR_NAME (a name that can be no part of a path), DAF_ERR_IO and DAF_ERR_NOMEM.
 * Strings    UTF-8, NUL-terminated unless a length is given.
 * Threads    A handle belongs to one thread at a time. Different handles, also on the same repository, are
 *            independent: one writer and any number of readers, in any threads and processes. Arrays are
 *            immutable and may be read from any thread.
 * Crashes    Everything is written under a temporary name first and renamed: payload, descriptor, index. A
 *            payload that someone has mapped is never written into. A call that fails, or whose process is
 *            killed, leaves all as it was: what it had done is undone, after a kill by the next writable open (until
 *            then this library reads what was there before; to others a property that was being replaced may be
 *            missing). In a directory the hidden file .daf.journal tells how; other programs may ignore it.
 * Full disks leave room for no journal: a delete then removes file by file, the descriptor first. Whose process is killed
 *            just then leaves payloads of which no descriptor speaks.
 * Readers    beside a writer get old or new values of a property, never a mix. Between the two they may find no
 *            such property only when its descriptor changes and a file keeps its name: a flat one of another type, a
 *            packed one of other chunks or another codec; and when a sparse one replaces a sparse one.
 */
#ifndef DAF_DAF_H
#define DAF_DAF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DAF_API __attribute__((visibility("default")))
#define DAF_MUST_USE __attribute__((warn_unused_result))
#else
#define DAF_API
#define DAF_MUST_USE
#endif

/* ---------------------------------------------------------------------------------------------- errors */

/* X(name, code, text) */
#define DAF_ERROR_MAP(X)                                                                                     \
    X(ARG, -1, "invalid argument")                                                                           \
    X(NOMEM, -2, "out of memory")                                                                            \
    X(IO, -3, "input or output failed")                                                                      \
    X(NOT_DAF, -4, "not a daf data set")                                                                     \
    X(VERSION, -5, "incompatible format version")                                                            \
    X(MISSING, -6, "no such property")                                                                       \
    X(EXISTS, -7, "exists already")                                                                          \
    X(NAME, -8, "name cannot be stored")                                                                     \
    X(VALUE, -9, "value cannot be stored")                                                                   \
    X(TYPE, -10, "the property is of another type")                                                          \
    X(READ_ONLY, -11, "opened for reading only")                                                             \
    X(BUSY, -12, "another writer has it open")                                                               \
    X(CORRUPT, -13, "damaged or against the format")                                                         \
    X(TRUNCATED, -14, "shorter than it must be")                                                             \
    X(UNSUPPORTED, -15, "not supported")                                                                     \
    X(LIMIT, -16, "past a limit")                                                                            \
    X(CANCELLED, -17, "stopped by the caller")

enum {
    DAF_OK = 0,
#define DAF_ERROR_ENUM(name, code, text) DAF_ERR_##name = code,
    DAF_ERROR_MAP(DAF_ERROR_ENUM)
#undef DAF_ERROR_ENUM
};

/* Caller-owned details of a failure; untouched on success. */
typedef struct daf_error {
    int code;        /* DAF_ERR_... */
    int os_errno;    /* errno of the failed system call, or 0 */
    uint64_t offset; /* byte offset in the file that `text` names, where one applies, else 0 */
    char text[1024]; /* one sentence, always terminated: what, where (file, property) and why */
} daf_error;

/* The text of a code of the list above ("unknown error" for others). Static; any thread. */
DAF_API const char *daf_strerror(int code);

/* The version of the library, such as "0.1.0". Static; any thread. */
DAF_API const char *daf_version(void);

/* ----------------------------------------------------------------------------------------------- types */

/* X(name, text as on disk, bytes of an element) */
#define DAF_TYPE_MAP(X)                                                                                      \
    X(BOOL, "Bool", 1)                                                                                       \
    X(INT8, "Int8", 1)                                                                                       \
    X(INT16, "Int16", 2)                                                                                     \
    X(INT32, "Int32", 4)                                                                                     \
    X(INT64, "Int64", 8)                                                                                     \
    X(UINT8, "UInt8", 1)                                                                                     \
    X(UINT16, "UInt16", 2)                                                                                   \
    X(UINT32, "UInt32", 4)                                                                                   \
    X(UINT64, "UInt64", 8)                                                                                   \
    X(FLOAT32, "Float32", 4)                                                                                 \
    X(FLOAT64, "Float64", 8)                                                                                 \
    X(STRING, "String", 0)

typedef enum daf_type {
#define DAF_TYPE_ENUM(name, text, bytes) DAF_##name,
    DAF_TYPE_MAP(DAF_TYPE_ENUM)
#undef DAF_TYPE_ENUM
        DAF_N_TYPES
} daf_type;

/* Bytes of an element in memory and on disk; 0 for String and for values that are no type. */
DAF_API size_t daf_type_bytes(daf_type type);

/* The name as written on disk ("UInt32"); NULL for values that are no type. Static. */
DAF_API const char *daf_type_name(daf_type type);

/* Finds a type by its name, in any case; "int" is Int64. Returns 0, or DAF_ERR_TYPE. Any thread. */
DAF_API DAF_MUST_USE int daf_type_parse(daf_type *ret, const char *name);

/* How the chunks of packed data are compressed. Levels: zstd 1 to 22, the others 1 to 9. The blosc codecs shuffle the
 * bits of a chunk's elements before zstd or LZ4 see them, which serves numbers that differ little; their frames are
 * those of c-blosc 1, of which any is read. */
typedef enum daf_codec {
    DAF_CODEC_DEFAULT = 0, /* as opened; at open: DAF_PACKED_COMPRESSION, else blosc_zstd_bitshuffle */
    DAF_CODEC_ZSTD,
    DAF_CODEC_GZIP,
    DAF_CODEC_BLOSC_ZSTD_BITSHUFFLE,
    DAF_CODEC_BLOSC_LZ4_BITSHUFFLE
} daf_codec;

/* The name as written on disk ("zstd"); NULL for values that are no codec and for DAF_CODEC_DEFAULT. */
DAF_API const char *daf_codec_name(daf_codec codec);

/* Finds a codec by its name, as it is written on disk. Returns 0, or DAF_ERR_UNSUPPORTED. Any thread. */
DAF_API DAF_MUST_USE int daf_codec_parse(daf_codec *ret, const char *name);

/* --------------------------------------------------------------------------------------------- opening */

/* One repository. */
typedef struct daf daf;

/* Runs jobs for the library, so that chunks are compressed in parallel. What is written does not depend on
 * it. The library calls both functions from the thread that called it, and uses no thread of its own. */
typedef struct daf_executor {
    void *context;
    /* Arranges for run(job) to be called once, on any thread, now or soon. Returns 0, or non-zero when the
     * job was not taken; the library then runs it itself. */
    int (*submit)(void *context, void (*run)(void *job), void *job);
    /* Returns when every job submitted with this context has returned. */
    void (*wait)(void *context);
    unsigned n_threads; /* how many jobs are worth having under way at once; 0 or 1: no parallel work */
} daf_executor;

/* When a dense matrix counts as large enough to be packed (specification section 8). */
typedef enum daf_pack_rule {
    DAF_PACK_BY_PROPERTY = 0, /* rows * columns * element bytes >= target: the format's rule */
    DAF_PACK_BY_COLUMN        /* rows * element bytes >= target: the rule of other writers */
} daf_pack_rule;

typedef struct daf_io daf_io; /* a table of system calls, private: tests inject faults with it */

typedef struct daf_options {
    /* The repository's name; NULL: the String scalar "name", else the path. Copied. */
    const char *name;

    /* Pack vectors and matrices whose size reaches the target chunk size. Default false. */
    bool packed;
    daf_codec codec;          /* DAF_CODEC_DEFAULT: environment DAF_PACKED_COMPRESSION, else
                                 blosc_zstd_bitshuffle */
    int level;                /* 0: environment DAF_PACKED_COMPRESSION_LEVEL, else 5 */
    uint32_t target_chunk_kb; /* 0: environment DAF_PACKED_TARGET_CHUNK_KB, else 8 (1 KB = 1024 bytes) */
    daf_pack_rule pack_rule;
    /* Decoded chunks that a daf_reader keeps. 0: environment DAF_PACKED_LOCAL_CACHE_KB, else 65536. */
    uint32_t local_cache_kb;

    /* Values are always copies, never views of a file. Then no call, and nothing that one has got, raises SIGBUS when
     * another program cuts a file meanwhile: that is DAF_ERR_TRUNCATED. Default false. */
    bool copies;

    /* Each write is on the disk when the call (or daf_batch_commit) returns. Default false: the order of
     * renames protects against a killed process, not against a power cut. */
    bool sync;

    /* Permission bits of what is created, exactly so whatever the umask; 0: 0666 and 0777 less the umask. */
    unsigned file_mode;
    unsigned directory_mode;

    /* Store NaN and infinities of Float scalars as strings. Default false, since the Julia implementation
     * cannot read them: setting such a scalar is then DAF_ERR_VALUE. Vectors and matrices hold any float. */
    bool non_finite_scalars;

    /* Archives: a repository that this open makes gets its daf.json, without which it is none, at the end of its first
     * batch, so that others see it whole or not at all. Default false: at once. */
    bool late_marker;

    /* Archives: the size that one may reach; an append past it fails and changes nothing. 0: environment
     * DAF_ZIP_MAX_FILE_SIZE, else 2^37, up to which the Julia implementation can open them. */
    uint64_t zip_max_bytes;

    /* Repositories at URLs. Decoded chunks that a daf_reader keeps: 0: environment DAF_PACKED_HTTP_CACHE_KB, else 262144.
     * What is got along with what lies around it rather than left out by another request: 0: environment
     * DAF_HTTP_MAX_COALESCE_GAP_KB, else 8. How long a server may take to answer, or send next to nothing: 0:
     * environment DAF_HTTP_TIMEOUT_S, else 30. */
    uint32_t http_cache_kb;
    uint32_t http_max_coalesce_gap_kb;
    uint32_t http_timeout_s;
    /* A file of certificates, in PEM, by which https servers are judged in place of the system's: that of a laboratory's own
     * authority, say. NULL: environment DAF_HTTP_CA_FILE, else the system's. Borrowed for the call. */
    const char *http_ca_file;

    const daf_executor *executor; /* NULL: everything in the calling thread. Copied; its context must outlive
                                     the handle. */
    const daf_io *io;             /* NULL */
} daf_options;

/* Fills in the defaults. */
DAF_API void daf_options_init(daf_options *options);

/* Opens the repository at `path`.
 *  mode     "r"   read; must exist
 *           "r+"  read and write; must exist
 *           "w+"  read and write; created when missing (its parent must exist)
 *           "w"   as "w+", and emptied first: everything in the directory is removed, foreign files too, and
 *                 the new repository takes its place in one change. A directory that holds files but is no
 *                 repository is refused instead (DAF_ERR_EXISTS). Links are removed, never followed.
 *  path     of a directory; or RUN.daf.zip, a repository in a ZIP archive; or RUNS.dafs.zip#/GROUP, one of several in
 *           an archive (GROUP may hold "/"). See "Archives" below. For reading also RUN.daf.zarr, RUN.daf.zarr.zip and
 *           RUNS.dafs.zarr.zip#/GROUP: see "Zarr"; and http://HOST/RUN.daf: see "URLs".
 *  options  NULL: the defaults
 *  Holds    the directory itself, not its path: once opened, the handle stays with that directory even when
 *           it is renamed or exchanged with another, so all that is read through one handle is of one export.
 *  Locks    a writable handle holds an advisory lock on the directory (DAF_ERR_BUSY when another has it); on
 *           file systems without locks it works unguarded.
 *  Writes   in mode "r" nothing but a directory's metadata.json where that is missing or no JSON: it is rebuilt, for those
 *           who read by it, unless a writer is at work, has been killed in a change, or nothing can be written there (no
 *           failure is told). Writable modes also rebuild one that does not list what is there, undo the change that a
 *           killed writer left unfinished and remove its temporary files; mode "r" reads what was there before that change.
 *  Links    in a directory are followed for reading. Nothing is changed behind one, not even to undo what a killed
 *           writer left: that is DAF_ERR_IO, since a repository may come from anywhere.
 *  Returns  0; DAF_ERR_ARG an unknown mode, a path that looks like an archive's but is none, an option or
 *           environment variable out of range; DAF_ERR_NOT_DAF; DAF_ERR_VERSION; DAF_ERR_BUSY; DAF_ERR_EXISTS;
 *           DAF_ERR_NAME a part of the group; DAF_ERR_CORRUPT, DAF_ERR_TRUNCATED daf.json is no JSON object, or the
 *           archive is none; DAF_ERR_UNSUPPORTED encrypted archives and those of several disks, writing to a Zarr tree
 *           or a URL; DAF_ERR_IO; DAF_ERR_NOMEM
 *  Free     daf_close, daf_free
 *  Source   specification sections 2.1, 5, 6, 11 to 13
 *
 * URLs: http://HOST/RUN.daf, of a directory that any static server hands out (https too), is opened for reading only, when
 * the library was built with libcurl (else DAF_ERR_UNSUPPORTED). What there is, all descriptors and scalars come from
 * metadata.json as it is at the open, so it must be there and right. Flat payloads are got by their first MB and then what
 * is asked for; of packed ones the end, the directory entries and the chunks that are used, chunks that lie close to each
 * other at once. Servers that know no ranges send whole files, of at most 1 GB. Redirects are followed, five of them, from
 * https to nothing else; a server whose certificate is not trusted is DAF_ERR_IO.
 * A payload that is replaced while it is read is an error (DAF_ERR_IO). URLs have no query; a user and password in
 * them are used, but never shown in messages. Statuses, time-outs and lies of the server are DAF_ERR_IO, DAF_ERR_LIMIT,
 * DAF_ERR_TRUNCATED and DAF_ERR_CORRUPT, with the URL and the reason.
 *
 * Archives: new properties are appended; deleting, overwriting and reordering are DAF_ERR_UNSUPPORTED ("append-only").
 * There is no metadata.json: a writable open takes one (of its own group) out of the archive's directory. Mode "w" puts a
 * new archive in the place of the old one; handles and views of the old one stay valid. All handles of a process on one
 * archive share one state, whatever their group; a writable open is DAF_ERR_BUSY while one is open for reading only.
 * Outside a batch each call is one append; within one, what is written is staged (every handle of the process sees it) and
 * appended at the commit with one rewrite of the directory, or, in a batch of more than 64 MB, in a few. daf_free drops
 * what is staged still. Each append is in the archive whole or not at all, also when the writer is killed; the next
 * writable open undoes what a killed writer, of this library or another, has left. Readers in other processes see the
 * committed state while a writer appends. Archives of other ZIP programs are read (stored, deflate, deflate64, bzip2,
 * zstd) and appended to; what they say of their entries is kept. Stored, aligned data are views of the archive. Whatever is
 * read whole (JSON, axes, texts, copies of values, files that are copied) is compared with its CRC-32; views and ranges of
 * stored numbers are not, but daf_verify compares all.
 */
DAF_API DAF_MUST_USE int daf_open(daf **ret, const char *path, const char *mode, const daf_options *options,
                                  daf_error *err);

/* As daf_open, with a relative `path` taken from the directory `dirfd` (AT_FDCWD: the current one; "." is
 * `dirfd` itself). The descriptor stays the caller's and may be closed after the call. */
DAF_API DAF_MUST_USE int daf_openat(daf **ret, int dirfd, const char *path, const char *mode,
                                    const daf_options *options, daf_error *err);

/* Makes an empty repository in memory, which is gone with its handle: for tests, and to build what is then written
 * elsewhere. All calls work with it as with a directory; arrays are views of its memory and outlive the handle as
 * ever. Messages call it "(in memory)".
 *  options  NULL: the defaults; sync, the modes and io do not apply
 *  Returns  0; DAF_ERR_ARG; DAF_ERR_NOMEM
 *  Free     daf_close, daf_free
 */
DAF_API DAF_MUST_USE int daf_open_memory(daf **ret, const daf_options *options, daf_error *err);

/* Ends the handle: commits an open batch and reports what could not be written. The handle is gone also when
 * this fails. NULL is fine. Returns as daf_batch_commit. */
DAF_API DAF_MUST_USE int daf_close(daf *d, daf_error *err);

/* Ends the handle without finishing an open batch (in a directory its properties are there, and the index is put
 * right by the next writable open; in an archive what is staged is dropped). Never fails; NULL is fine. */
DAF_API void daf_free(daf *d);

/* The repository's name: options.name, else the String scalar "name", else the path as given to the open.
 * Valid until the next call with this handle. */
DAF_API const char *daf_name(daf *d);

/* The version of the format that daf.json declares. */
DAF_API void daf_format_version(const daf *d, int *major, int *minor);

/* --------------------------------------------------------------------------------------------- batches */

/* Between begin and commit, writes put their payloads and descriptors in place as usual, but metadata.json is
 * written once, at the commit, with the very bytes that single writes would have left. An archive is appended to at
 * the commit. Batches do not nest.
 *  Returns  0; DAF_ERR_ARG a batch is open already, or none is; DAF_ERR_READ_ONLY; DAF_ERR_IO (after a failed
 *           commit the batch is still open: commit again, or close); DAF_ERR_LIMIT an archive would grow past its
 *           bound
 */
DAF_API DAF_MUST_USE int daf_batch_begin(daf *d, daf_error *err);
DAF_API DAF_MUST_USE int daf_batch_commit(daf *d, daf_error *err);

/* --------------------------------------------------------------------------------------------- scalars */

typedef struct daf_scalar {
    daf_type type;
    union {
        bool b;     /* Bool */
        int64_t i;  /* Int8 to Int64 */
        uint64_t u; /* UInt8 to UInt64 */
        double f;   /* Float32 (rounded to it when stored) and Float64 */
        struct {
            const char *text; /* NUL-terminated UTF-8 */
            size_t bytes;     /* without the NUL */
        } s;                  /* String */
    } value;
} daf_scalar;

/* Scalars for daf_set_scalar; a text is borrowed. */
DAF_API daf_scalar daf_scalar_bool(bool value);
DAF_API daf_scalar daf_scalar_int64(int64_t value);
DAF_API daf_scalar daf_scalar_uint64(uint64_t value);
DAF_API daf_scalar daf_scalar_float64(double value);
DAF_API daf_scalar daf_scalar_string(const char *text);

/* Frees the text of a scalar that daf_get_scalar filled (not of one you filled yourself) and clears it. NULL
 * and scalars without text are fine. */
DAF_API void daf_scalar_clear(daf_scalar *scalar);

typedef enum daf_packing {
    DAF_PACK_AS_OPENED = 0, /* as options.packed says */
    DAF_PACK_NEVER,
    DAF_PACK_LARGE /* from the target chunk size on */
} daf_packing;

/* Whether a vector or matrix is stored dense or sparse; the call converts what it is given. Of floats -0.0 counts
 * as a value to be stored, so that a conversion loses nothing. */
typedef enum daf_form {
    DAF_FORM_AS_GIVEN = 0,
    DAF_FORM_DENSE,
    DAF_FORM_SPARSE,
    DAF_FORM_SMALLER /* sparse when that takes at most three quarters of the bytes (uncompressed) */
} daf_form;

/* How a property is written. NULL in place of a pointer to it: nothing is overwritten, packed as opened, in the
 * form and layout that is given. */
typedef struct daf_set_options {
    bool overwrite; /* replace a property of this name, of whatever type and form */
    daf_packing packing;
    daf_codec codec;          /* DAF_CODEC_DEFAULT: as opened */
    int level;                /* 0: as opened */
    uint32_t target_chunk_kb; /* 0: as opened */
    daf_form form;
    /* Of the indices of a sparse property. DAF_BOOL, the default: the smallest of UInt16, UInt32 and UInt64 that
     * holds the axis length, of a matrix both and the number of stored values + 1; else this integer type, which
     * must hold them. */
    daf_type index_type;
    bool both_layouts; /* of a matrix on two axes: its transpose is stored too (see daf_relayout_matrix) */
    /* Of daf_repack_vector and daf_repack_matrix: called now and then with how many of the elements of a dense property
     * are done; true stops (DAF_ERR_CANCELLED), and nothing has changed. May be NULL. */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
} daf_set_options;

/* Fills in the defaults. */
DAF_API void daf_set_options_init(daf_set_options *options);

/* Sets a scalar.
 *  name     see "Names" below
 *  options  only `overwrite` applies; NULL: the defaults
 *  Returns  0; DAF_ERR_ARG no type; DAF_ERR_EXISTS; DAF_ERR_NAME; DAF_ERR_VALUE out of the type's range, no UTF-8,
 *           not finite; DAF_ERR_LIMIT a text of more than 16 MB as JSON; DAF_ERR_READ_ONLY; DAF_ERR_UNSUPPORTED it is
 *           there, and in an archive; DAF_ERR_IO; DAF_ERR_NOMEM
 *  Source   specification section 2.3
 *
 * Names (section 1) are refused, on every call that writes and before anything is made, when they are empty,
 * "." or "..", hold a "/" or are no UTF-8, are longer than 244 bytes, or (properties) end in .nzind .nzval
 * .nztxt .colptr .rowval, which would collide with the files of a sparse property. Vectors may not be called
 * "name" or "index".
 */
DAF_API DAF_MUST_USE int daf_set_scalar(daf *d, const char *name, const daf_scalar *scalar,
                                        const daf_set_options *options, daf_error *err);

/* Gets a scalar; release it with daf_scalar_clear.
 *  Returns  0; DAF_ERR_MISSING; DAF_ERR_CORRUPT; DAF_ERR_IO; DAF_ERR_NOMEM
 *  Source   specification section 2.3
 */
DAF_API DAF_MUST_USE int daf_get_scalar(daf *d, daf_scalar *ret, const char *name, daf_error *err);

/* Deletes a scalar. Returns 0; DAF_ERR_MISSING; DAF_ERR_READ_ONLY; DAF_ERR_UNSUPPORTED an archive; DAF_ERR_IO. */
DAF_API DAF_MUST_USE int daf_delete_scalar(daf *d, const char *name, daf_error *err);

/* ---------------------------------------------------------------------------------------------- arrays */

/* The values of an axis, a vector or a matrix. Independent of the handle it came from: it stays valid, with
 * the values of the moment it was got, until daf_array_free, whatever happens to the handle or the property.
 * What daf_get_vector and daf_get_matrix hand out of flat numeric values are views of the mapped file, unless the handle
 * was opened with options.copies. Nothing in this library ever changes those bytes or cuts them off, but another program
 * that does so in place changes the values, or makes reading them raise SIGBUS. All else (axes, ranges, readers,
 * and what the library reads to copy, repack, reorder or export) is read, never mapped, and slices of views are copied so
 * that no signal is raised: there a file that is cut meanwhile is DAF_ERR_TRUNCATED. */
typedef struct daf_array daf_array;

/* NULL is fine. */
DAF_API void daf_array_free(daf_array *a);

/* The type of the elements. This and what follows may be called from any thread. */
DAF_API daf_type daf_array_type(const daf_array *a);

/* Elements: those of the axis, or rows times columns. */
DAF_API uint64_t daf_array_count(const daf_array *a);

/* Rows (of a vector or axis: its length) and columns (of a vector or axis: 1). */
DAF_API uint64_t daf_array_rows(const daf_array *a);
DAF_API uint64_t daf_array_columns(const daf_array *a);

/* [count] values in host byte order, column-major, aligned for their type; Bool: one byte each, 0 is false and
 * anything else true. NULL for String; not NULL for an empty numeric array. */
DAF_API const void *daf_array_values(const daf_array *a);

/* [count] NUL-terminated texts; NULL for numeric types. */
DAF_API const char *const *daf_array_strings(const daf_array *a);

/* The bytes of text i without its NUL. i < count; String only. */
DAF_API size_t daf_array_string_bytes(const daf_array *a, uint64_t i);

/* Whether the values are a view of the file (or of a memory repository's bytes). */
DAF_API bool daf_array_is_mapped(const daf_array *a);

/* A part of a vector (columns from 0, one of them) or of a matrix; all from 0. It may be empty. */
typedef struct daf_range {
    uint64_t first_row, n_rows;
    uint64_t first_column, n_columns;
} daf_range;

/* Copies a part of the array to a new one. Returns 0; DAF_ERR_ARG a range that is not inside; DAF_ERR_TRUNCATED it is a view
 * of a file that was cut, DAF_ERR_IO that cannot be read; DAF_ERR_NOMEM. */
DAF_API DAF_MUST_USE int daf_array_slice(daf_array **ret, const daf_array *a, const daf_range *range,
                                         daf_error *err);

/* ------------------------------------------------------------------------------------------------ axes */

/* Adds an axis with the entries [n].
 *  Returns  0; DAF_ERR_EXISTS; DAF_ERR_NAME; DAF_ERR_VALUE an entry is empty, given twice, no UTF-8, or holds
 *           LF or CR; DAF_ERR_READ_ONLY; DAF_ERR_IO; DAF_ERR_NOMEM
 *  Source   specification sections 1, 3, appendix A
 */
DAF_API DAF_MUST_USE int daf_add_axis(daf *d, const char *axis, const char *const *entries, uint64_t n,
                                      daf_error *err);

/* Adds an axis of n decimal integers: first, first + step, ... (the lower edges of bins, say). step is not 0
 * unless n < 2 (DAF_ERR_ARG). Returns as daf_add_axis; DAF_ERR_VALUE also when an entry exceeds 64 bits;
 * DAF_ERR_LIMIT. */
DAF_API DAF_MUST_USE int daf_add_axis_integers(daf *d, const char *axis, int64_t first, int64_t step,
                                               uint64_t n, daf_error *err);

/* The number of entries. Returns 0; DAF_ERR_MISSING; DAF_ERR_IO; DAF_ERR_NOMEM. */
DAF_API DAF_MUST_USE int daf_axis_length(daf *d, uint64_t *ret, const char *axis, daf_error *err);

/* The entries, as an array of type String. Returns 0; DAF_ERR_MISSING; DAF_ERR_CORRUPT not UTF-8, a NUL, or
 * entries that are not unique; DAF_ERR_IO; DAF_ERR_NOMEM. Free: daf_array_free. Source: specification section 3. */
DAF_API DAF_MUST_USE int daf_get_axis(daf *d, daf_array **ret, const char *axis, daf_error *err);

/* Deletes an axis with all its vectors and matrices. Returns 0; DAF_ERR_MISSING; DAF_ERR_READ_ONLY;
 * DAF_ERR_UNSUPPORTED an archive; DAF_ERR_IO. Source: specification section 6. */
DAF_API DAF_MUST_USE int daf_delete_axis(daf *d, const char *axis, daf_error *err);

/* Puts the entries of an axis, and with them all vectors and matrices on it, in another order: new entry i is old
 * entry order[i] (so are rows and columns). Every property keeps its form, type, packing and codec.
 *  order    [n], from 0: each of 0 .. n - 1 once
 *  n        the axis length
 *  Memory   of the largest property on the axis, twice
 *  Crashes  every file that will change is first linked into .reorder.backup, as other implementations do. When the
 *           call fails that is rolled back; when its process is killed, by the next open that may write, whoever
 *           the writer was. Until then mode "r" reads the files of before.
 *  Readers  beside the call find some properties in the old and some in the new order: open anew afterwards.
 *  Returns  0; DAF_ERR_ARG no such order; DAF_ERR_MISSING; DAF_ERR_READ_ONLY; DAF_ERR_UNSUPPORTED an archive;
 *           DAF_ERR_BUSY another reorder is under way; what reading and writing the properties returns
 *  Source   specification section 7
 */
DAF_API DAF_MUST_USE int daf_reorder_axis(daf *d, const char *axis, const uint64_t *order, uint64_t n,
                                          daf_error *err);

/* ------------------------------------------------------------------------------------ vectors, matrices */

/* Sets a dense vector.
 *  values   [n] in host byte order; Bool: uint8_t, non-zero is true; String: const char *const *. Borrowed.
 *  n        elements, not bytes; must equal the axis length
 *  options  NULL: the defaults
 *  Returns  0; DAF_ERR_ARG a wrong n, or a type, codec, level or chunk size that there is not; DAF_ERR_MISSING no
 *           such axis; DAF_ERR_EXISTS; DAF_ERR_NAME; DAF_ERR_VALUE a text with LF or no UTF-8;
 *           DAF_ERR_READ_ONLY; DAF_ERR_UNSUPPORTED overwriting in an archive; DAF_ERR_LIMIT; DAF_ERR_IO;
 *           DAF_ERR_NOMEM
 *  Source   specification sections 2.4, 3, 8, 9
 */
DAF_API DAF_MUST_USE int daf_set_vector(daf *d, const char *axis, const char *name, daf_type type,
                                        const void *values, uint64_t n, const daf_set_options *options,
                                        daf_error *err);

/* Sets a dense matrix in the layout rows x columns; n must equal the product of the axis lengths. Otherwise
 * as daf_set_vector. The other layout (columns x rows) is a property of its own, but overwriting or deleting
 * one removes both, so that they cannot contradict each other (with both_layouts the other one is written
 * anew). */
DAF_API DAF_MUST_USE int daf_set_matrix(daf *d, const char *rows, const char *columns, const char *name,
                                        daf_type type, const void *values, uint64_t n,
                                        const daf_set_options *options, daf_error *err);

/* Gets a vector or matrix: dense flat numeric values as a view of the file, everything else decoded once, a sparse
 * property with zeros (false, "") filled in.
 *  Free     daf_array_free
 *  Returns  0; DAF_ERR_MISSING the axis, the property or its payload; DAF_ERR_CORRUPT, DAF_ERR_TRUNCATED;
 *           DAF_ERR_UNSUPPORTED a codec (info still works) or packed format that is not known;
 *           DAF_ERR_LIMIT; DAF_ERR_IO, also when it is replaced faster than it can be read; DAF_ERR_NOMEM
 *  Source   specification sections 2.4, 3, 4, 9, 10
 */
DAF_API DAF_MUST_USE int daf_get_vector(daf *d, daf_array **ret, const char *axis, const char *name,
                                        daf_error *err);
DAF_API DAF_MUST_USE int daf_get_matrix(daf *d, daf_array **ret, const char *rows, const char *columns,
                                        const char *name, daf_error *err);

/* Gets a part of a vector or matrix, always as a copy. Of flat numbers only the part is read, of packed data only
 * the chunks that hold some of it, each decoded whole (here and everywhere: as large as its descriptor says, when the data
 * do hold so much); of flat texts and of sparse properties all is read first.
 *  first, n  rows, from 0
 *  Free     daf_array_free
 *  Returns  as daf_get_vector; DAF_ERR_ARG a range that is not inside
 */
DAF_API DAF_MUST_USE int daf_get_vector_range(daf *d, daf_array **ret, const char *axis, const char *name,
                                              uint64_t first, uint64_t n, daf_error *err);
DAF_API DAF_MUST_USE int daf_get_matrix_range(daf *d, daf_array **ret, const char *rows, const char *columns,
                                              const char *name, const daf_range *range, daf_error *err);

/* Reads many parts of one vector or matrix. It holds what it has opened, so all parts are of one moment, whatever
 * becomes of the property: of a sparse one the stored values and indices in memory, read and checked once, while the
 * parts come out dense; of a dense one the file. Of packed data it keeps decoded chunks (options.local_cache_kb), so that
 * parts which share chunks cost once; and when the parts go on by equal steps (column after column, say), the chunks of
 * the next ones are decoded ahead through the handle's executor. A reader belongs to one thread at a time, the same
 * that uses the handle, and ends before the handle does. */
typedef struct daf_reader daf_reader;

/* Opens a reader. Returns as daf_get_vector. Free: daf_reader_free. */
DAF_API DAF_MUST_USE int daf_open_vector_reader(daf *d, daf_reader **ret, const char *axis, const char *name,
                                                daf_error *err);
DAF_API DAF_MUST_USE int daf_open_matrix_reader(daf *d, daf_reader **ret, const char *rows,
                                                const char *columns, const char *name, daf_error *err);

/* NULL is fine. */
DAF_API void daf_reader_free(daf_reader *r);

/* The type of the elements; rows and columns (of a vector: 1) of the whole. */
DAF_API daf_type daf_reader_type(const daf_reader *r);
DAF_API uint64_t daf_reader_rows(const daf_reader *r);
DAF_API uint64_t daf_reader_columns(const daf_reader *r);

/* Gets a part, as a copy; of packed data only the chunks that hold some of it are read and decoded. Free it with
 * daf_array_free.
 *  Returns  0; DAF_ERR_ARG a range that is not inside; DAF_ERR_CORRUPT, DAF_ERR_TRUNCATED; DAF_ERR_LIMIT; DAF_ERR_IO;
 *           DAF_ERR_NOMEM. After a failure other ranges may still be read.
 *  Source   specification sections 8 to 10
 */
DAF_API DAF_MUST_USE int daf_reader_read(daf_reader *r, daf_array **ret, const daf_range *range,
                                         daf_error *err);

/* Writes a dense vector or matrix piece by piece, without ever holding the whole. The pieces are of any sizes and come
 * in the order of the elements, a matrix column by column. The files are those that daf_set_vector and daf_set_matrix
 * would have written, byte for byte; nothing of them is to be seen before the end. Other calls with the handle may come
 * between; it must outlive the stream, and belongs to the same thread. */
typedef struct daf_stream daf_stream;

/* Begins a stream.
 *  options  as for daf_set_vector and daf_set_matrix (`overwrite` acts at the end), but for both_layouts and forms other
 *           than dense, which need the whole (DAF_ERR_ARG)
 *  Returns  as daf_set_vector
 *  End      daf_stream_finish, daf_stream_discard
 */
DAF_API DAF_MUST_USE int daf_stream_vector(daf *d, daf_stream **ret, const char *axis, const char *name,
                                           daf_type type, const daf_set_options *options, daf_error *err);
DAF_API DAF_MUST_USE int daf_stream_matrix(daf *d, daf_stream **ret, const char *rows, const char *columns,
                                           const char *name, daf_type type, const daf_set_options *options,
                                           daf_error *err);

/* Adds the next n elements.
 *  values   [n] as for daf_set_vector; borrowed for the call
 *  Memory   some chunks at most
 *  Returns  0; DAF_ERR_ARG more elements than there may be, and DAF_ERR_VALUE a text that cannot be stored: nothing was
 *           taken, and the stream goes on; DAF_ERR_IO, DAF_ERR_LIMIT, DAF_ERR_NOMEM: it can only be discarded (a finish
 *           fails likewise)
 */
DAF_API DAF_MUST_USE int daf_stream_put(daf_stream *s, const void *values, uint64_t n, daf_error *err);

/* Puts the property in place and ends the stream; it is gone also when this fails, and then nothing has changed.
 *  Returns  as daf_set_vector; DAF_ERR_ARG elements are missing, or an axis has changed its length
 */
DAF_API DAF_MUST_USE int daf_stream_finish(daf_stream *s, daf_error *err);

/* Ends the stream and leaves nothing behind. NULL is fine. */
DAF_API void daf_stream_discard(daf_stream *s);

/* What repacking did. */
typedef struct daf_repacked {
    uint64_t raw_bytes;    /* uncompressed; of String: 0 */
    uint64_t before_bytes; /* of all the property's files */
    uint64_t after_bytes;
} daf_repacked;

/* Stores the values of a vector or matrix anew, in the form they have, dense or sparse, but flat or packed as the options
 * say: `packing`, `codec`, `level`, `target_chunk_kb` and `progress` (the others mean nothing; NULL: as opened). The old
 * files are replaced as by an overwrite: whole, or not at all. The other layout of a matrix is left alone. A dense property
 * is streamed, so that some columns are held at most.
 *  ret      may be NULL
 *  Returns  as daf_get_vector and daf_set_vector; DAF_ERR_UNSUPPORTED an archive; DAF_ERR_CANCELLED
 *  Source   specification sections 6, 8
 */
DAF_API DAF_MUST_USE int daf_repack_vector(daf *d, daf_repacked *ret, const char *axis, const char *name,
                                           const daf_set_options *options, daf_error *err);
DAF_API DAF_MUST_USE int daf_repack_matrix(daf *d, daf_repacked *ret, const char *rows, const char *columns,
                                           const char *name, const daf_set_options *options, daf_error *err);

/* Stores the transpose of a matrix as columns x rows under the same name, dense or sparse as the matrix is, packed
 * or not as the options say for it. Dense numbers are transposed in cache-sized blocks, through the executor in parallel,
 * some rows at a time.
 *  Memory   of dense numbers some 32 MB, up to 256 MB where whole chunks or pieces of columns need them; of sparse ones
 *           some 256 MB and 16 bytes a row (the more is stored, the more often it is read); texts once, and 16 bytes for
 *           each; what takes another `form` in both layouts
 *  options  `overwrite`: replaces that layout (the one that is read stays); `both_layouts` means nothing; NULL:
 *           the defaults
 *  Returns  as daf_get_matrix and daf_set_matrix; DAF_ERR_ARG both axes are the same; DAF_ERR_EXISTS
 *  Source   specification section 6
 */
DAF_API DAF_MUST_USE int daf_relayout_matrix(daf *d, const char *rows, const char *columns, const char *name,
                                             const daf_set_options *options, daf_error *err);

/* Deletes a vector, or the layouts of a matrix that are there. Returns 0; DAF_ERR_MISSING there is none;
 * DAF_ERR_READ_ONLY; DAF_ERR_UNSUPPORTED an archive; DAF_ERR_IO. Source: specification section 6. */
DAF_API DAF_MUST_USE int daf_delete_vector(daf *d, const char *axis, const char *name, daf_error *err);
DAF_API DAF_MUST_USE int daf_delete_matrix(daf *d, const char *rows, const char *columns, const char *name,
                                           daf_error *err);

/* ----------------------------------------------------------------------------------- sparse properties */

/* Sparse values as they lie on disk: by columns, with indices from 1. A vector is a matrix of one column without
 * colptr. Stored zeros are legal; what is not stored is 0, false or "". */
typedef struct daf_csc {
    daf_type type;
    daf_type index_type; /* one of the eight integer types, of colptr and indices */
    uint64_t rows, columns;
    uint64_t nnz; /* how many values are stored */
    const void
        *colptr; /* matrix: [columns + 1], from 1 to nnz + 1, never decreasing: column j (from 0) holds the
                            stored values colptr[j] - 1 .. colptr[j + 1] - 2, counted from 0; vector: NULL */
    const void *indices; /* [nnz] rows from 1, strictly increasing within a column */
    /* [nnz] in host byte order. Bool: uint8_t, or NULL when all are true; String: const char *const *. */
    const void *values;
} daf_csc;

/* A sparse vector or matrix that was got. What it holds obeys the rules of daf_csc: they are checked when it is
 * got. As a daf_array it is immutable and independent of the handle and the property until daf_sparse_free; flat
 * numeric parts of a sparse property are views of their mapped files, unless options.copies is set, with what is said there
 * about programs that change or cut such a file in place; the call that gets them looks at all of it. */
typedef struct daf_sparse daf_sparse;

/* NULL is fine. */
DAF_API void daf_sparse_free(daf_sparse *s);

/* The arrays; they live as long as `s`. Not NULL where [0] elements are to be had, but for `values` of Bool and
 * `colptr` of a vector. */
DAF_API const daf_csc *daf_sparse_csc(const daf_sparse *s);

/* The row, from 0, of stored value k < nnz. */
DAF_API uint64_t daf_sparse_index(const daf_sparse *s, uint64_t k);

/* The number, from 0, of the first stored value of a column; of `columns`: nnz. */
DAF_API uint64_t daf_sparse_start(const daf_sparse *s, uint64_t column);

/* Whether the indices (and so, where any values are stored, most of the memory) are a view of a file. */
DAF_API bool daf_sparse_is_mapped(const daf_sparse *s);

/* Copies a part of it to a new one, which keeps the index type. Returns as daf_array_slice; DAF_ERR_CORRUPT it is a view of
 * a file that was changed, so that the rules no longer hold. Free: daf_sparse_free. */
DAF_API DAF_MUST_USE int daf_sparse_slice(daf_sparse **ret, const daf_sparse *s, const daf_range *range,
                                          daf_error *err);

/* Fills in the zeros. Returns as daf_sparse_slice; DAF_ERR_LIMIT. Free: daf_array_free. */
DAF_API DAF_MUST_USE int daf_sparse_to_dense(daf_array **ret, const daf_sparse *s, daf_error *err);

/* Sets a sparse vector or matrix (or, with DAF_FORM_DENSE, a dense one from sparse values).
 *  csc      borrowed; rows and columns must equal the axis lengths (a vector's columns: 1)
 *  options  NULL: the defaults. `packing` is decided for each part by its own length; the values of a String
 *           property stay flat.
 *  Stores   values of type Bool only when some are false. In a directory of format 1.0 the version is raised to
 *           1.1 first; in an archive of format 1.0 the form of 1.0 is written, flat, and Bool dense.
 *  Returns  as daf_set_vector; DAF_ERR_ARG sizes that contradict the axes; DAF_ERR_VALUE colptr or indices against
 *           the rules, or an index type that cannot hold them
 *  Source   specification sections 2.1, 2.4, 4, 8
 */
DAF_API DAF_MUST_USE int daf_set_sparse_vector(daf *d, const char *axis, const char *name, const daf_csc *csc,
                                               const daf_set_options *options, daf_error *err);
DAF_API DAF_MUST_USE int daf_set_sparse_matrix(daf *d, const char *rows, const char *columns,
                                               const char *name, const daf_csc *csc,
                                               const daf_set_options *options, daf_error *err);

/* Gets a vector or matrix as sparse; a dense one is converted.
 *  Free     daf_sparse_free
 *  Returns  as daf_get_vector. Every rule of daf_csc is checked: DAF_ERR_CORRUPT, with the file and the place.
 *  Source   specification sections 2.4, 4
 */
DAF_API DAF_MUST_USE int daf_get_sparse_vector(daf *d, daf_sparse **ret, const char *axis, const char *name,
                                               daf_error *err);
DAF_API DAF_MUST_USE int daf_get_sparse_matrix(daf *d, daf_sparse **ret, const char *rows,
                                               const char *columns, const char *name, daf_error *err);

/* -------------------------------------------------------------------------------------- what is there */

/* Whether a property exists: *ret. Only its descriptor (or entries) is looked for. Returns 0; DAF_ERR_NAME;
 * DAF_ERR_IO. */
DAF_API DAF_MUST_USE int daf_has_scalar(daf *d, bool *ret, const char *name, daf_error *err);
DAF_API DAF_MUST_USE int daf_has_axis(daf *d, bool *ret, const char *axis, daf_error *err);
DAF_API DAF_MUST_USE int daf_has_vector(daf *d, bool *ret, const char *axis, const char *name,
                                        daf_error *err);
DAF_API DAF_MUST_USE int daf_has_matrix(daf *d, bool *ret, const char *rows, const char *columns,
                                        const char *name, daf_error *err);

/* Names, sorted bytewise. */
typedef struct daf_names {
    size_t n;
    char **names; /* [n] */
} daf_names;

/* Frees the names and clears the struct. NULL is fine. */
DAF_API void daf_names_clear(daf_names *names);

/* Lists names; release them with daf_names_clear. A missing folder lists as empty (a missing axis too).
 * Returns 0; DAF_ERR_NAME; DAF_ERR_IO; DAF_ERR_NOMEM. */
DAF_API DAF_MUST_USE int daf_list_scalars(daf *d, daf_names *ret, daf_error *err);
DAF_API DAF_MUST_USE int daf_list_axes(daf *d, daf_names *ret, daf_error *err);
DAF_API DAF_MUST_USE int daf_list_vectors(daf *d, daf_names *ret, const char *axis, daf_error *err);
DAF_API DAF_MUST_USE int daf_list_matrices(daf *d, daf_names *ret, const char *rows, const char *columns,
                                           daf_error *err);

/* Lists the groups of an archive: NAME for every repository RUNS.dafs.zip#/NAME in it.
 *  path     RUNS.dafs.zip
 *  options  NULL: the defaults
 *  Returns  0; DAF_ERR_ARG a path of another kind; DAF_ERR_NOT_DAF there is no such file; DAF_ERR_CORRUPT,
 *           DAF_ERR_TRUNCATED, DAF_ERR_UNSUPPORTED the archive, as daf_open; DAF_ERR_IO; DAF_ERR_NOMEM
 *  Free     daf_names_clear
 *  Source   specification section 11
 */
DAF_API DAF_MUST_USE int daf_list_groups(daf_names *ret, const char *path, const daf_options *options,
                                         daf_error *err);

/* One payload of a vector or matrix. */
typedef struct daf_part_info {
    char name[8]; /* "data", "colptr", "nzind", "rowval", "nzval" */
    daf_type type;
    uint64_t n; /* elements */
    bool packed;
    bool indexed; /* these up to n_chunks as in daf_info */
    char compression[32];
    int level;
    uint64_t chunk_rows, chunk_columns, n_chunks;
    uint64_t raw_bytes;  /* uncompressed; of String: 0, unless examined: then as lines */
    uint64_t disk_bytes; /* of its file */
    uint64_t n_stored; /* examined and packed: chunks that are in the file; the others are all zeros, or "" */
} daf_part_info;

/* What a vector or matrix is and how it lies on disk. */
typedef struct daf_info {
    daf_type type;
    uint64_t rows;    /* of a vector: the axis length */
    uint64_t columns; /* of a vector: 1 */
    bool sparse;
    bool packed;          /* sparse: some part is, and the fields up to n_chunks are 0; see `parts` */
    bool indexed;         /* packed with the leading index of a Zarr shard ("indexed+zipped") */
    char compression[32]; /* the codec's name as written, "" when flat */
    int level;            /* as written; 0 when flat */
    uint64_t chunk_rows, chunk_columns; /* elements of a chunk */
    uint64_t n_chunks;
    uint64_t raw_bytes;  /* uncompressed, of all parts; without those of String, unless examined */
    uint64_t disk_bytes; /* of all its files: descriptor and payloads */
    daf_type index_type; /* sparse, as nnz */
    uint64_t nnz;
    /* The payloads: of a dense property "data"; of a sparse one "colptr" (a matrix), "nzind" (a vector) or "rowval",
     * and "nzval" where it is stored. */
    unsigned n_parts;
    daf_part_info parts[3];
} daf_info;

/* Fills *ret from the descriptor and the sizes of the files; reads no values, and does not judge the sizes: a payload that is
 * not there has 0 disk_bytes, and only reading it is an error.
 * Returns 0; DAF_ERR_MISSING; DAF_ERR_CORRUPT; DAF_ERR_UNSUPPORTED a packed format that is not known; DAF_ERR_LIMIT;
 * DAF_ERR_IO; DAF_ERR_NOMEM. Source: specification section 2.4. */
DAF_API DAF_MUST_USE int daf_vector_info(daf *d, daf_info *ret, const char *axis, const char *name,
                                         daf_error *err);
DAF_API DAF_MUST_USE int daf_matrix_info(daf *d, daf_info *ret, const char *rows, const char *columns,
                                         const char *name, daf_error *err);

/* The same, but looks into the payloads: whether each is there and of the size that its elements need, how many lines a
 * text has, and what the end and the directory of a shard say of its chunks. No chunk is decoded, and no value judged.
 *  Memory   a piece of a file
 *  Returns  as the above; DAF_ERR_MISSING, DAF_ERR_TRUNCATED, DAF_ERR_CORRUPT, DAF_ERR_UNSUPPORTED of payloads, as
 *           daf_get_vector
 *  Source   specification sections 2.4, 3, 8, 9 */
DAF_API DAF_MUST_USE int daf_examine_vector(daf *d, daf_info *ret, const char *axis, const char *name,
                                            daf_error *err);
DAF_API DAF_MUST_USE int daf_examine_matrix(daf *d, daf_info *ret, const char *rows, const char *columns,
                                            const char *name, daf_error *err);

/* ------------------------------------------------------------------------------------------------ Zarr */

/* A repository can take the form of a Zarr v3 tree, RUN.daf.zarr, which zarr-python, xarray and others open without
 * knowing of this format: g["vectors/cell/age"][...], and g["matrices/cell/gene/UMIs"][...] of shape (genes, cells).
 * The payloads are the same bytes in both forms, so the conversion hard-links them: it takes little time and room, and
 * each form stays what it is when the other is deleted. Since they are shared, nobody may write into them in place;
 * this library and zarr-python replace files instead. */

typedef struct daf_zarr_options {
    bool
        strict; /* fail (DAF_ERR_UNSUPPORTED) rather than copy a payload that cannot be linked: across file systems,
                    or out of an archive */
    bool sync; /* what is made is on the disk when the call returns */
    /* As in daf_options, of what is made; linked files keep theirs. */
    unsigned file_mode, directory_mode;
    bool non_finite_scalars;      /* as in daf_options, for an import */
    const daf_executor *executor; /* NULL: everything in the calling thread */
    const daf_io *io;             /* NULL */
} daf_zarr_options;

/* Fills in the defaults. */
DAF_API void daf_zarr_options_init(daf_zarr_options *options);

/* What a conversion did with the payloads. */
typedef struct daf_zarr_report {
    uint64_t n_linked, linked_bytes;
    uint64_t n_copied, copied_bytes; /* as they are, where linking was not possible */
    uint64_t written_bytes; /* of what had to be spelled anew: scalars, axes, texts; shards without index */
} daf_zarr_report;

/* Makes the tree `to` of all that the repository `from` holds.
 *  ret      may be NULL
 *  from     whatever daf_open opens
 *  to       a path that ends in ".daf.zarr", where nothing is yet. The tree is built beside it under a hidden name and
 *           renamed when it is whole; what a killed process has left of that goes with the next attempt.
 *  options  NULL: the defaults
 *  Sparse   properties of texts become dense ones with an attribute from which daf_zarr_import restores them, flat.
 *  Returns  0; DAF_ERR_ARG the path; DAF_ERR_EXISTS; DAF_ERR_BUSY another process is making it; DAF_ERR_NAME a name
 *           that no Zarr tree can hold; DAF_ERR_CORRUPT, DAF_ERR_TRUNCATED a payload is not what its descriptor says;
 *           DAF_ERR_UNSUPPORTED also where an interrupted reorder or change waits to be undone; as daf_open
 *  Source   specification "ZarrDaf", sections 1 to 6
 */
DAF_API DAF_MUST_USE int daf_zarr_export(daf_zarr_report *ret, const char *from, const char *to,
                                         const daf_zarr_options *options, daf_error *err);

/* Makes the directory `to` of a Zarr tree, whoever wrote that.
 *  ret      may be NULL
 *  from     RUN.daf.zarr, or an archive of one: RUN.daf.zarr.zip, RUNS.dafs.zarr.zip#/GROUP
 *  to       a path where nothing is yet; made like the one of daf_zarr_export
 *  options  NULL: the defaults
 *  Payloads chunks that are what a directory would hold are linked, byte for byte; others (several chunks, other codecs,
 *           big-endian, shards of another kind) are decoded and written anew: packed where they were in shards
 *  Returns  as daf_zarr_export; DAF_ERR_NOT_DAF; DAF_ERR_VERSION; DAF_ERR_NAME a name that no directory can hold;
 *           DAF_ERR_VALUE texts with LF or NUL, axis entries that are empty; DAF_ERR_UNSUPPORTED a data type, codec or
 *           chunk grid that is not known
 *  Source   specification "ZarrDaf", section 7
 */
DAF_API DAF_MUST_USE int daf_zarr_import(daf_zarr_report *ret, const char *from, const char *to,
                                         const daf_zarr_options *options, daf_error *err);

/* ---------------------------------------------------------------------------------------------- copying */

typedef enum daf_kind { DAF_KIND_SCALAR, DAF_KIND_AXIS, DAF_KIND_VECTOR, DAF_KIND_MATRIX } daf_kind;

/* A property by its names. */
typedef struct daf_item {
    daf_kind kind;
    const char *axis;    /* of a vector; the rows of a matrix; else NULL */
    const char *columns; /* of a matrix; else NULL */
    const char *name;
} daf_item;

typedef struct daf_copy_options {
    bool overwrite; /* a property that is there and differs is replaced; an axis never is */
    /* Whether a property is to be copied. NULL: all are. */
    bool (*wanted)(void *context, const daf_item *item);
    /* Called now and then with the bytes that were copied; true stops. May be NULL. */
    bool (*progress)(void *context, uint64_t done_bytes);
    void *context;
} daf_copy_options;

/* Fills in the defaults. */
DAF_API void daf_copy_options_init(daf_copy_options *options);

/* Copies axes, scalars, vectors and matrices of one repository into another, of whatever kinds both are. Payloads stay as
 * they are, byte for byte: packed where they are packed, in the layouts that are there. Descriptors are written in their
 * one form; sparse ones of version 1.0 become those of 1.1, or, in an archive that is of 1.0, the other way round.
 * What is there with the same content is left as it is.
 *  to       writable, another handle than `from`. Copies in one batch: the one that is open, else one of its own.
 *  options  NULL: the defaults
 *  Memory   a piece of a file; an archive holds what it stages
 *  Failure  What was copied before stays. A batch of its own stays open: daf_batch_commit keeps what it holds, and
 *           daf_free of an archive drops that.
 *  Returns  0; DAF_ERR_EXISTS a property that differs is there; DAF_ERR_VALUE an axis has other entries;
 *           DAF_ERR_CANCELLED; DAF_ERR_UNSUPPORTED what the target cannot hold; what reading and writing return
 *  Source   specification sections 2.4, 11.1
 */
DAF_API DAF_MUST_USE int daf_copy(daf *to, daf *from, const daf_copy_options *options, daf_error *err);

/* --------------------------------------------------------------------------------------------- verifying */

/* What a problem amounts to.
 *  damage  data are lost, wrong or cannot be read
 *  fault   against the rules of the format, but all values can be read
 *  style   within the rules, but some reader minds (specification, appendix A); told only when asked for
 */
typedef enum daf_problem_class { DAF_CLASS_DAMAGE, DAF_CLASS_FAULT, DAF_CLASS_STYLE } daf_problem_class;

/* X(name, code as text, class, what it means) */
#define DAF_PROBLEM_MAP(X)                                                                                   \
    X(NO_MARKER, "no-marker", DAMAGE, "there is no daf.json")                                                \
    X(MARKER, "marker", DAMAGE, "daf.json is no JSON object")                                                \
    X(VERSION, "version", DAMAGE, "daf.json declares no version, or one that is not known")                  \
    X(UNREADABLE, "unreadable", DAMAGE, "a file that is there cannot be opened as one")                      \
    X(JSON, "json", DAMAGE, "a .json file is no JSON object")                                                \
    X(SCALAR, "scalar", DAMAGE, "a scalar's type or value is none")                                          \
    X(TEXT, "text", DAMAGE, "a text is not valid UTF-8, or holds a NUL")                                     \
    X(AXIS_DUPLICATE, "axis-duplicate", DAMAGE, "an entry stands twice on an axis")                          \
    X(AXIS_UNREADABLE, "axis-unreadable", DAMAGE, "an axis of the property cannot be read")                  \
    X(FORMAT, "format", DAMAGE, "a descriptor's format is neither dense nor sparse")                         \
    X(ELTYPE, "eltype", DAMAGE, "a descriptor names an element type that does not exist")                    \
    X(PACKED_FORMAT, "packed-format", DAMAGE, "a descriptor names a packed format that does not exist")      \
    X(CODEC, "codec", DAMAGE, "a descriptor names a compression that does not exist")                        \
    X(DESCRIPTOR, "descriptor", DAMAGE, "a descriptor is against the rules in another way")                  \
    X(COUNT, "count", DAMAGE, "n_elements contradicts the axes or the other parts")                          \
    X(PAYLOAD_MISSING, "payload-missing", DAMAGE, "a file that a descriptor speaks of is not there")         \
    X(PAYLOAD_SHORT, "payload-short", DAMAGE, "a payload holds fewer values than its axes need")             \
    X(PAYLOAD_LONG, "payload-long", DAMAGE, "a payload holds more values than its axes need")                \
    X(COLPTR, "colptr", DAMAGE, "column pointers do not rise from 1 to the stored values + 1")               \
    X(INDEX_RANGE, "index-range", DAMAGE, "an index is not from 1 to the length of the axis")                \
    X(INDEX_ORDER, "index-order", DAMAGE, "indices do not rise")                                             \
    X(SHARD, "shard", DAMAGE, "a packed payload is cut short, or its directory cannot be read")              \
    X(SHARD_STRIDE, "shard-stride", DAMAGE, "directory entries of chunks are of different widths")           \
    X(SHARD_METHOD, "shard-method", DAMAGE, "a chunk's ZIP method is not that of its codec")                 \
    X(CHUNK, "chunk", DAMAGE, "a chunk fails its checksum, or cannot be decoded")                            \
    X(ARCHIVE, "archive", DAMAGE, "the ZIP archive cannot be read")                                          \
    X(ENTRY_METHOD, "entry-method", DAMAGE, "an entry of the archive is compressed in an unknown way")       \
    X(ENTRY_CHECKSUM, "entry-checksum", DAMAGE, "an entry of the archive fails its checksum or size")        \
    X(NAME_HIDDEN, "name-hidden", DAMAGE, "a name that no property can have: nothing lists it")              \
    X(ENTRY_OVERLAP, "entry-overlap", DAMAGE,                                                                \
      "an entry of the archive runs into another; it is not decoded")                                        \
    X(NAME, "name", FAULT, "a name that may not be written")                                                 \
    X(AXIS_EMPTY, "axis-empty", FAULT, "an entry of an axis is empty")                                       \
    X(NO_AXIS, "no-axis", FAULT, "properties lie on an axis that does not exist")                            \
    X(ORPHAN, "orphan", FAULT, "a payload of which no descriptor speaks")                                    \
    X(LEFTOVER, "leftover", FAULT, "temporary files of a writer that was interrupted")                       \
    X(UNFINISHED, "unfinished", FAULT, "a change that was interrupted and is undone by the next writer")     \
    X(METADATA, "metadata", FAULT, "metadata.json is no JSON object")                                        \
    X(METADATA_STALE, "metadata-stale", FAULT, "metadata.json does not say what the files say")              \
    X(SHARD_INDEX, "shard-index", FAULT, "a shard's leading index fails its checksum, or is wrong")          \
    X(SHARD_ORDER, "shard-order", FAULT, "chunks are not in their order by name")                            \
    X(LOCAL_HEADER, "local-header", FAULT, "a local ZIP header contradicts the directory")                   \
    X(ENTRY_TWICE, "entry-twice", FAULT, "a name stands twice in the archive")                               \
    X(TORN, "torn", FAULT, "the archive's end is that of an interrupted append")                             \
    X(FOLDER_MISSING, "folder-missing", STYLE, "a folder that other readers list is not there")              \
    X(FOREIGN, "foreign", STYLE, "a file that is not of the format")                                         \
    X(NAME_RISKY, "name-risky", STYLE, "a name that some readers refuse")                                    \
    X(METADATA_MISSING, "metadata-missing", STYLE, "there is no metadata.json")                              \
    X(METADATA_FORM, "metadata-form", STYLE, "metadata.json has blanks or a line end")                       \
    X(JSON_FORM, "json-form", STYLE, "JSON is not in its one written form")                                  \
    X(TEXT_END, "text-end", STYLE, "a text file does not end in LF")                                         \
    X(TEXT_CR, "text-cr", STYLE, "a text holds a CR")                                                        \
    X(NON_FINITE, "non-finite", STYLE, "a scalar that is no finite number")                                  \
    X(DIGITS, "digits", STYLE, "a Float64 scalar of more than 15 digits")                                    \
    X(WIDE_INTEGER, "wide-integer", STYLE, "integers that R cannot hold")                                    \
    X(OLD_BOOL, "old-bool", STYLE, "a sparse Bool in the form of 1.0 in an archive")                         \
    X(SPARSE_STRING, "sparse-string", STYLE, "a sparse String matrix, or packed sparse Strings")             \
    X(PACKED_STRING, "packed-string", STYLE, "packed Strings in an archive")                                 \
    X(PACKED_INDEX, "packed-index", STYLE, "packed indices of UInt16 or UInt32")                             \
    X(ZIPPED, "zipped", STYLE, "a shard without a leading index")                                            \
    X(WIDE_CHUNKS, "wide-chunks", STYLE, "chunks of several columns")                                        \
    X(SHARD_END, "shard-end", STYLE, "a shard does not end in the 98 bytes")                                 \
    X(SHARD_NAME, "shard-name", STYLE, "a chunk's name is not the one it should have")                       \
    X(SHARD_EXTRA, "shard-extra", STYLE, "extra fields of a shard are not those they should be")             \
    X(SHARD_ABSENT, "shard-absent", STYLE, "a chunk is not stored")                                          \
    X(FRAME_SIZE, "frame-size", STYLE, "a zstd frame does not tell its content's size")                      \
    X(GZIP_TRAILER, "gzip-trailer", STYLE, "a gzip chunk lacks the right trailer")                           \
    X(ENTRY_COMPRESSED, "entry-compressed", STYLE, "an entry of the archive is compressed")                  \
    X(ENTRY_UNALIGNED, "entry-unaligned", STYLE, "an entry's data are not aligned to 8 bytes")               \
    X(ENTRY_NAME, "entry-name", STYLE, "a name beyond ASCII without the UTF-8 flag")                         \
    X(ENTRY_SURPLUS, "entry-surplus", STYLE, "a folder or a metadata.json in the archive")

typedef enum daf_problem_code {
#define DAF_PROBLEM_ENUM(name, text, class, meaning) DAF_PROBLEM_##name,
    DAF_PROBLEM_MAP(DAF_PROBLEM_ENUM)
#undef DAF_PROBLEM_ENUM
        DAF_N_PROBLEMS
} daf_problem_code;

/* Of a code: its text ("payload-short"), its class, what it means; of a class: its name ("damage"). NULL (of a class:
 * damage) for values that are none. Static; any thread. */
DAF_API const char *daf_problem_name(daf_problem_code code);
DAF_API daf_problem_class daf_problem_class_of(daf_problem_code code);
DAF_API const char *daf_problem_meaning(daf_problem_code code);
DAF_API const char *daf_problem_class_name(daf_problem_class class_);

#define DAF_NO_OFFSET UINT64_MAX

/* One problem. The texts live until the callback returns. */
typedef struct daf_problem {
    daf_problem_code code;
    const char *place; /* the file within the repository, such as "vectors/cell/age.data"; "": all of it */
    uint64_t offset;   /* byte in that file, or DAF_NO_OFFSET */
    const char *text;  /* why, in words */
} daf_problem;

typedef struct daf_verify_options {
    bool strict;                  /* also what is of class style */
    const daf_executor *executor; /* NULL: everything in the calling thread */
    /* Called for every problem, in the order in which they are found. May be NULL. */
    void (*problem)(void *context, const daf_problem *problem);
    /* Called now and then with the bytes that were looked at, and how many there are; true stops. May be NULL. */
    bool (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
    void *context;
} daf_verify_options;

/* Fills in the defaults. */
DAF_API void daf_verify_options_init(daf_verify_options *options);

typedef struct daf_verify_summary {
    uint64_t properties; /* scalars, axes, vectors and matrices */
    uint64_t bytes;      /* of the files that were looked at */
    uint64_t n[3];       /* problems by class */
} daf_verify_summary;

/* Holds the repository at `path` (of a kind that daf_open opens for reading from files) against all rules of the format,
 * and reads every value that is not plain numbers. Nothing is changed: what a killed writer left is told, not undone. Of
 * one kind of problem in one file only the first is told, with how many more there are.
 *  ret      may be NULL
 *  Memory   of one property at a time: some chunks (of up to 16 MB, or one that is larger), the texts of one of Strings and,
 *           of an archive, the bytes of a compressed entry where its values are looked at
 *  Returns  0: all was looked at, and `ret` says what was found; DAF_ERR_NOT_DAF there is no such directory or archive;
 *           DAF_ERR_CANCELLED; DAF_ERR_UNSUPPORTED; DAF_ERR_IO; DAF_ERR_NOMEM
 *  Thread   any
 *  Source   specification sections 1 to 13, appendix A
 */
DAF_API DAF_MUST_USE int daf_verify(const char *path, const daf_verify_options *options,
                                    daf_verify_summary *ret, daf_error *err);

#ifdef __cplusplus
}
#endif

#endif

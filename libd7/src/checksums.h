/* NAME.photons.crc: where each entry of a file is, how long it is, and its CRC-32C. It is evidence beside the
 * file and nothing that reading needs: whatever is wrong with it never makes an error of a file that is good.
 * The bytes are in docs/d7-checksums.md. */
#ifndef D7_SRC_CHECKSUMS_H
#define D7_SRC_CHECKSUMS_H

#include "framing.h"
#include "problems.h"
#include "tail_file.h"

enum {
    D7__SUMS_HEAD_BYTES = 16,  /* of the file, and of each block */
    D7__SUM_BYTES = 16,        /* a record */
    D7__SUMS_BLOCK_MAX = 4096, /* records */
};

/* What is known of one entry. */
typedef struct d7__sum {
    uint64_t offset; /* of its first fragment header */
    uint32_t bytes;  /* of the serialised entry, and */
    uint32_t crc;    /* their checksum */
} d7__sum;

/* ---- bytes (checksums.c); pure ---- */

void d7__sums_head_pack(uint8_t out[D7__SUMS_HEAD_BYTES]);
bool d7__sums_head_fits(const uint8_t head[D7__SUMS_HEAD_BYTES]);

/* A block of n records, 1 to D7__SUMS_BLOCK_MAX. Returns its length. */
size_t d7__sums_block_pack(const d7__sum *sums, size_t n, uint8_t *out);

/* Records in the block with this head, 0: it is none; and the checksum of them. */
size_t d7__sums_block_head(const uint8_t head[D7__SUMS_HEAD_BYTES], uint32_t *ret_crc);
d7__sum d7__sum_unpack(const uint8_t record[D7__SUM_BYTES]);

/* ---- reading ---- */

typedef struct d7__sums_reader {
    d7__tail_file file;
    const d7_alloc *alloc;
    char *path;
    uint64_t size;
    uint64_t block_at, at; /* the block in memory, and where the next one begins */
    uint8_t *records;      /* [n] of that block, the first `next` of them taken */
    size_t n, next;
    uint64_t last;     /* offset of the last record that was taken */
    bool begun;        /* one was taken */
    uint64_t n_spoilt; /* blocks that were passed over */
    const char *fault; /* why it ends before its end; NULL: it does not */
} d7__sums_reader;

/* Opens that of the file at `path`. A head that is none is a fault, not an error. Returns 0; D7_ERR_NOTFOUND;
 * D7_ERR_NOMEM; D7_ERR_IO. */
int d7__sums_open(d7__sums_reader *s, const d7_io *io, const d7_alloc *alloc, const char *path, int flags,
                  d7_error *err);

/* The next record, offsets rising; *ret_there is false after the last that is sound. A block whose records
 * were spoilt is passed over. Returns 0; D7_ERR_IO. */
int d7__sums_next(d7__sums_reader *s, bool *ret_there, d7__sum *ret_sum, d7_error *err);
void d7__sums_close(d7__sums_reader *s);

/* ---- comparing (checksums_compare.c) ---- */

typedef struct d7__sums_compare {
    bool there, begun;
    d7__sums_reader reader;
    d7__sum next;
    bool has_next;
    d7__sum last; /* the last one that was taken, and */
    bool last_agrees;
    uint64_t n_agree, n_differ;            /* entries */
    uint64_t n_absent, first_absent;       /* records without such an entry */
    uint64_t n_uncovered, first_uncovered; /* entries without a record */
} d7__sums_compare;

/* Whether differences count. */
typedef enum d7__sums_verdict {
    D7__SUMS_COUNT,
    D7__SUMS_OF_ANOTHER_FILE,
    D7__SUMS_OUTDATED /* the file was written anew since */
} d7__sums_verdict;

/* Opens the checksums of the file at `path`. Returns as d7__sums_open(); after a failure, and where all is zero, there are
 * none, and the calls below do nothing. */
int d7__sums_compare_begin(d7__sums_compare *c, const d7_io *io, const d7_alloc *alloc, const char *path,
                           d7_error *err);

/* Compares an entry, in the order of the file, the header first. *ret_differs: its bytes are not those that were written.
 * Checksums that cannot be read end there; returns 0; D7_ERR_TRUNCATED: their file has shrunk. */
int d7__sums_compare_entry(d7__sums_compare *c, const d7__entry *entry, bool *ret_differs, d7_error *err);

/* After the last entry. `closed`: the file ends in a valid epilogue. Returns likewise. */
int d7__sums_compare_end(d7__sums_compare *c, bool closed, d7__sums_verdict *ret_verdict, d7_error *err);

/* A problem of the checksums themselves: what, and how many. */
d7_problem d7__sums_problem(const d7__sums_compare *c, uint64_t offset, const char *what, uint64_t n);

/* Tells, after the end, why not all of them could be used. `held`: a writer may be about to complete them. */
void d7__sums_tell(const d7__sums_compare *c, bool held, d7__sums_verdict verdict, d7__problems *problems);

/* ---- writing ---- */

typedef struct d7__sums_writer {
    d7__tail_file file;
    const d7_alloc *alloc;
    char *path;
    d7__sum *pending; /* [n] not written yet */
    size_t n, cap;
    d7__buffer block; /* on its way to the file */
    uint64_t written; /* length in whole blocks; 0: not even the head */
    bool allocates;   /* space was set aside beyond */
    d7_error failure; /* code 0: none. With one nothing more is written */
} d7__sums_writer;

/* Makes an empty one in memory. `crc_path` is copied. Returns 0; D7_ERR_NOMEM. */
int d7__sums_writer_init(d7__sums_writer *w, const d7_io *io, const d7_alloc *alloc, const char *crc_path);
void d7__sums_writer_free(d7__sums_writer *w);

/* Makes the file, in the place of one that is there. Returns 0; D7_ERR_NOSPACE; D7_ERR_IO. */
int d7__sums_create(d7__sums_writer *w, unsigned mode, d7_error *err);

/* Room for n more records. Returns 0; D7_ERR_NOMEM. */
int d7__sums_reserve(d7__sums_writer *w, size_t n);

/* Into reserved room. */
void d7__sums_add(d7__sums_writer *w, uint64_t offset, const uint8_t *entry, size_t bytes);

/* Writes what is pending. A full disk leaves it for the next time; after anything else, and at the `last`
 * time, w->failure is set. */
void d7__sums_flush(d7__sums_writer *w, bool last);

/* Flushes for the last time, syncs, closes. */
void d7__sums_finish(d7__sums_writer *w);

/* Goes on with the checksums of a file that was cut to `length`, or begins anew where there are none to go on
 * with. What they lack is read from the file, unless that is very much. Returns 0; D7_ERR_NOMEM; D7_ERR_IO;
 * D7_ERR_NOSPACE. */
int d7__sums_resume(d7__sums_writer *w, const char *path, d7__framing *photons, uint64_t length,
                    unsigned mode, d7_error *err);

/* Takes away what is said of entries from `length` on, where the file at `path` was cut. Returns 0, also when
 * there are no checksums; D7_ERR_NOMEM; D7_ERR_IO. */
int d7__sums_cut(const d7_io *io, const d7_alloc *alloc, const char *path, uint64_t length, d7_error *err);

#endif

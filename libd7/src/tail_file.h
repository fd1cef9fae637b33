/* Files as the tail uses them: whole reads and writes through the caller's table, the three slots, and
 * whether what a slot claims is true of its file. */
#ifndef D7_SRC_TAIL_FILE_H
#define D7_SRC_TAIL_FILE_H

#include "alloc.h"

/* An open file; all zero: none. */
typedef struct d7__tail_file {
    const d7_io *io;
    const char *path; /* borrowed, for errors */
    void *file;
} d7__tail_file;

/* Each returns 0 or an error that names the file: D7_ERR_NOTFOUND, D7_ERR_EXISTS (opening), D7_ERR_TRUNCATED
 * (a read past the end), D7_ERR_NOSPACE, D7_ERR_IO. */
int d7__tail_file_open(d7__tail_file *f, const d7_io *io, const char *path, int flags, unsigned mode,
                       d7_error *err);
int d7__tail_file_read(const d7__tail_file *f, void *buffer, size_t bytes, uint64_t offset, d7_error *err);
int d7__tail_file_write(const d7__tail_file *f, const void *data, size_t bytes, uint64_t offset,
                        d7_error *err);
int d7__tail_file_size(const d7__tail_file *f, uint64_t *ret_bytes, d7_error *err);
int d7__tail_file_truncate(const d7__tail_file *f, uint64_t bytes, d7_error *err);
int d7__tail_file_sync(const d7__tail_file *f, d7_error *err);
void d7__tail_file_close(d7__tail_file *f);

/* Called for each piece of a file, from front to back; anything but 0 ends it. */
typedef int d7__tail_piece_fn(void *ctx, const uint8_t *data, size_t bytes, uint64_t offset, d7_error *err);

/* Reads [from, to) in pieces through chunk [D7__TAIL_CHUNK_BYTES]. Returns 0; as d7__tail_file_read(); what
 * fn returned. */
enum { D7__TAIL_CHUNK_BYTES = 256 * 1024 };
int d7__tail_file_each(const d7__tail_file *f, uint64_t from, uint64_t to, uint8_t *chunk,
                       d7__tail_piece_fn *fn, void *ctx, d7_error *err);

/* The slots of a tail file. */
typedef struct d7__tail_slots {
    uint8_t *buffer; /* D7_TAIL_SLOTS times slot_bytes, owned */
    size_t slot_bytes;
    d7_tail_slot slot[D7_TAIL_SLOTS];
    unsigned newest[D7_TAIL_SLOTS]; /* [n_whole] those that decode, newest first */
    unsigned n_whole;
    unsigned n_unsupported;
} d7__tail_slots;

/* Reads them. Slots that are torn or empty are left out. Returns 0; D7_ERR_CORRUPT: the file's size cannot
 * be; D7_ERR_NOMEM; D7_ERR_IO. */
int d7__tail_slots_read(d7__tail_slots *s, const d7__tail_file *f, const d7_alloc *alloc, d7_error *err);
void d7__tail_slots_free(d7__tail_slots *s, const d7_alloc *alloc);

typedef enum d7__tail_verdict {
    D7__TAIL_TRUE,
    D7__TAIL_UNTRUE, /* the file does not hold what the slot counts on */
    D7__TAIL_FOREIGN /* it is another file's */
} d7__tail_verdict;

/* A checksum that has been computed: of [base, length). */
typedef struct d7__tail_known {
    uint64_t base, length;
    uint32_t crc;
} d7__tail_known;

/* Is it true of the file, which has `size` bytes? *known (NULL: none) is used where it fits, and set to what
 * was computed. Returns 0; D7_ERR_IO. A file that has shrunk makes it untrue. */
int d7__tail_judge(const d7__tail_file *photons, uint64_t size, const d7_tail_slot *slot, uint8_t *chunk,
                   d7__tail_known *known, d7__tail_verdict *ret_verdict, d7_error *err);

/* `path` and `suffix` in memory of the table's; NULL when there is none. */
char *d7__tail_path(const d7_alloc *alloc, const char *path, const char *suffix);

/* The same of a file that is there, by its own name where `path` is a link to it. */
char *d7__beside(const d7_io *io, const d7_alloc *alloc, const char *path, const char *suffix);

#endif

/* Entries over blocks: cutting an entry into fragments, and finding entries again, also after damage.
 *
 * A block has 16384 bytes. A fragment is a 2-byte little-endian header (bits 0-13 length, bit 14 end, bit 15
 * begin) and its bytes, and never crosses a block. Source: the D7 specification, section 1. */
#ifndef D7_SRC_FRAMING_H
#define D7_SRC_FRAMING_H

#include "source.h"

/* Where an entry that is appended at file position `at` begins: past a single spare byte. */
static inline uint64_t d7__frame_begin(uint64_t at) {
    return at % D7_BLOCK_BYTES == D7_BLOCK_BYTES - 1 ? at + 1 : at;
}

/* Bytes that suffice for an entry, wherever it starts. */
size_t d7__frame_bound(size_t entry_bytes);

/* Writes the fragments of an entry to out (d7__frame_bound() bytes) for file position `at`. Returns how many
 * bytes were written. */
size_t d7__frame(uint64_t at, const uint8_t *entry, size_t bytes, uint8_t *out);

/* Where the fragments of an entry that begins at `at`, of `bytes` bytes, end. */
uint64_t d7__frame_end(uint64_t at, uint64_t bytes);

typedef enum d7__found {
    D7__FOUND_ENTRY, /* whole */
    D7__FOUND_BAD,  /* the framing is broken here: `offset` and `reason` say where and how; go on at `next` */
    D7__FOUND_TORN, /* the file ends inside the entry that begins at `offset` */
    D7__FOUND_END   /* nothing begins before the end of the file */
} d7__found;

enum { D7__ENTRY_HEAD = 32 };

/* An entry, or why there is none. */
typedef struct d7__entry {
    uint64_t offset;     /* of its first fragment header, or of the damage */
    uint64_t next;       /* the file position after it: where to look for the next */
    const uint8_t *data; /* [bytes] good until the next call */
    size_t bytes;
    const char *reason; /* of FOUND_BAD */
    /* Of d7__entry_next(): where a fragment was passed over that belongs to no entry; D7_NO_OFFSET: none. */
    uint64_t skipped;
    bool abandoned; /* of FOUND_BAD: another entry begins inside */
    /* Of FOUND_BAD and FOUND_TORN: how the entry begins, if that can be read; [n_head]. */
    uint8_t head[D7__ENTRY_HEAD];
    size_t n_head;
} d7__entry;

/* Zeros of so many bytes or fewer before the epilogue are the format's. */
enum { D7__SPARE_BYTES = 2 };

/* Does an entry go on in a next block though one would have had room for it? */
static inline bool d7__entry_runs_on(const d7__entry *e) {
    return e->bytes + 2 <= D7_BLOCK_BYTES && e->offset % D7_BLOCK_BYTES != 0 &&
           e->offset / D7_BLOCK_BYTES != (e->next - 1) / D7_BLOCK_BYTES;
}

/* Finds entries in a source. */
typedef struct d7__framing {
    d7__source *source;
    bool unframed;    /* blocks have a length only: see unframed.c */
    d7__buffer entry; /* put together when it has several fragments */
} d7__framing;

void d7__framing_free(d7__framing *f);

/* The entry whose first fragment header is at `offset` (or after one spare byte there). Returns 0 with
 * *ret_found of FOUND_ENTRY, FOUND_BAD or FOUND_TORN; D7_ERR_NOMEM; D7_ERR_IO; D7_ERR_TRUNCATED. */
int d7__entry_at(d7__framing *f, uint64_t offset, d7__found *ret_found, d7__entry *ret_entry, d7_error *err);

/* How an entry that begins right at `at` begins: its first bytes, as far as its first fragment with any holds them; *ret_n is 0
 * where none begins or that fragment cannot be. Returns as d7__source_get(). */
int d7__entry_peek(d7__source *s, uint64_t at, uint8_t out[D7__ENTRY_HEAD], size_t *ret_n, d7_error *err);

/* The first entry that begins at or after `from`, which must be a block start or the end of an entry. Padding
 * and the rest of an entry that began earlier are passed over. Returns as d7__entry_at(), also FOUND_END. */
int d7__entry_next(d7__framing *f, uint64_t from, d7__found *ret_found, d7__entry *ret_entry, d7_error *err);

/* The same, but FOUND_END when none begins before `to`: what follows is not read. */
int d7__entry_before(d7__framing *f, uint64_t from, uint64_t to, d7__found *ret_found, d7__entry *ret_entry,
                     d7_error *err);

#endif

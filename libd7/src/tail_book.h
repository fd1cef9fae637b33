/* What the writer of a tail keeps in mind: which slot is safe, which is being made safe, and the checksums of
 * the file.
 *
 * The rules, and why nothing that was called durable is lost:
 *   - A slot claims: the file has L bytes, everything before B is on the disk, and bytes [B, L) have this
 *     checksum. B is the L of the *pinned* slot, the newest one for which both files were synced. So a claim
 *     can be checked by reading [B, L), whatever a power cut did to what was not synced.
 *   - Neither the pinned slot nor the one whose sync is under way is overwritten. So after a cut at any
 *     moment the pinned slot is whole and true, and if the sync had ended on the disk, but not for us, the
 *     one under way too.
 *   - While a sync is under way marks go on, in the slot that is left, with the pinned slot's L as B: whether
 *     the one under way will be true is not known yet. For the time after it a second checksum is kept, of
 *     what was written since that sync began; when the sync has succeeded B moves to that slot's L and the
 *     second checksum takes the place of the first.
 *   - A failed sync ends it: what the disk holds since the pinned slot cannot be known any more.
 *
 *     open --begin--> syncing --finish, good--> open
 *                             --finish, bad---> failed
 *
 * Pure bookkeeping: no files, no memory. */
#ifndef D7_SRC_TAIL_BOOK_H
#define D7_SRC_TAIL_BOOK_H

#include "d7/d7.h"

#define D7__NO_SLOT (-1)

/* A slot that was written, as far as a sync needs it. */
typedef struct d7__tail_point {
    int slot; /* D7__NO_SLOT: none */
    uint64_t length;
    uint64_t sequence;
} d7__tail_point;

typedef struct d7__tail_book {
    d7_tail_identity identity; /* the head grows with the file until the first slot is written */
    bool head_fixed;
    uint64_t generation; /* of the newest slot, also of one whose writing failed */
    uint64_t sequence;   /* of the newest slot that was written */
    int last;            /* that slot */

    uint64_t position;  /* length of the file */
    uint64_t base;      /* B */
    uint32_t crc;       /* of [base, position) */
    uint32_t crc_since; /* of [in_flight.length, position), while a sync is under way */
    d7__tail_point pinned;
    d7__tail_point in_flight;
    bool failed;
} d7__tail_book;

/* A file that has no byte yet. */
void d7__tail_book_init(d7__tail_book *b, const uint8_t file_id[D7_TAIL_FILE_ID_BYTES], uint32_t part,
                        uint64_t first_sequence);

/* A file that was recovered: `slot` holds `point`, and both files are synced. */
void d7__tail_book_resume(d7__tail_book *b, const d7_tail_slot *slot, const d7__tail_point *point);

/* Bytes were appended to the file. */
void d7__tail_book_wrote(d7__tail_book *b, const void *data, size_t bytes);

/* Begins a slot: where it goes, and the claim to put in. */
unsigned d7__tail_book_next(d7__tail_book *b, d7_tail_claim *ret_claim);

/* The slot that d7__tail_book_next() named was written. */
void d7__tail_book_marked(d7__tail_book *b, unsigned slot, uint64_t sequence);

/* A sync begins, with the slot just marked. */
void d7__tail_book_begin_sync(d7__tail_book *b);

/* The sync that is under way has ended. */
void d7__tail_book_finish_sync(d7__tail_book *b, bool synced);

#endif

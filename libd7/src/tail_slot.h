/* A slot of the tail as bytes. The layout is docs/tail-format.md's; change both together. */
#ifndef D7_SRC_TAIL_SLOT_H
#define D7_SRC_TAIL_SLOT_H

#include "d7/d7.h"

/* Where the fixed fields are. */
enum d7__slot_field {
    D7__SLOT_MAGIC = 0,
    D7__SLOT_VERSION = 8,
    D7__SLOT_USED_BYTES = 12,
    D7__SLOT_FILE_ID = 16,
    D7__SLOT_PART = 32,
    D7__SLOT_BYTES_PER_PAGE = 36,
    D7__SLOT_GENERATION = 40,
    D7__SLOT_LENGTH = 48,
    D7__SLOT_BASE = 56,
    D7__SLOT_CRC = 64,
    D7__SLOT_HEAD_CRC = 68,
    D7__SLOT_HEAD_BYTES = 72,
    D7__SLOT_FIRST_SEQUENCE = 80,
    D7__SLOT_SEQUENCE = 88,
    D7__SLOT_EPOCH = 96,
    D7__SLOT_INSTRUMENT = 104,
    D7__SLOT_MONOTONIC = 112,
    D7__SLOT_UTC = 120,
    D7__SLOT_FLAGS = 128,
    D7__SLOT_N_DATASETS = 132,
    D7__SLOT_N_ATTRIBUTES = 136,
    D7__SLOT_ATTRIBUTE_BYTES = 140,
    D7__SLOT_PRODUCER_BYTES = 144,
    D7__SLOT_SLOT_BYTES = 148,
    D7__SLOT_RESERVED = 152,
    D7__SLOT_HEAD_END = 160 /* the producer follows, then the datasets' records */
};

/* One dataset's record. */
enum d7__slot_record {
    D7__RECORD_ITEMS = 0,
    D7__RECORD_N_PARTIAL = 8,
    D7__RECORD_PARTIAL = 12, /* where in the slot its partial page is */
    D7__RECORD_TYPE = 16,
    D7__RECORD_BYTES = 24
};

enum { D7__SLOT_TRAILER_BYTES = 8, D7__SLOT_VERSION_NOW = 1, D7__SLOT_INSTRUMENT_VALID = 1 };

/* How much of a slot's place holds the slot, by its first D7__SLOT_HEAD_END bytes; 0 where that cannot be. */
size_t d7__slot_used_bytes(const uint8_t *head, size_t slot_bytes);

/* The largest attribute_bytes with which slots of this layout still have slot_bytes; 0 where they need more.
 * */
uint32_t d7__slot_attribute_room(const d7_tail_layout *layout, size_t slot_bytes);

/* Gives a whole slot another claim: the same state, of the same or another length of the file. */
void d7__slot_restamp(uint8_t *slot, size_t used_bytes, const d7_tail_claim *claim);

/* `bytes` rounded up to whole units of the disk, D7_TAIL_ALIGN_BYTES: what is written for a slot that uses so
 * many. */
size_t d7__slot_written_bytes(size_t used_bytes);

#endif

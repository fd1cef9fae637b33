/* One page of one type: values to a serialised FileEntry and back. See d7_page_encode() and d7_page_decode().
 */
#ifndef D7_SRC_CODEC_H
#define D7_SRC_CODEC_H

#include "d7/d7.h"
#include "wire.h"

/* What an entry holds: the number of FileEntry's field. */
typedef enum d7__kind {
    D7__KIND_NONE = 0,
    D7__KIND_HEADER = 1,
    D7__KIND_DATA = 2,
    D7__KIND_INDEX = 3,
    D7__KIND_EPILOGUE = 4
} d7__kind;

/* Finds which message an entry holds and that message's body. KIND_NONE: a message this format does not know.
 * Returns false when the entry is malformed. Pure. */
bool d7__entry_kind(const uint8_t *entry, size_t bytes, d7__kind *ret_kind, d7__cursor *ret_body);

/* The dataset id of a page as the wire has it (it may not fit a dataset's id). Returns false when malformed.
 * Pure. */
bool d7__page_dataset(d7__cursor body, uint64_t *ret_dataset_id);

/* What the first bytes of a page or an index say, when the rest may be gone. */
typedef struct d7__head {
    d7__kind kind;
    uint64_t head_bytes, body_bytes; /* of the entry, as it says */
    uint64_t dataset_id;             /* of a page */
} d7__head;

/* Returns false where they are not how this library begins such an entry. Pure. */
bool d7__head_parse(const uint8_t *bytes, size_t n, d7__head *ret_head);

/* The field of Data that holds values of this type, and whether it holds them as they are and not as differences. Pure. */
uint32_t d7__payload_field(d7_type type);
bool d7__payload_is_raw(d7_type type);

/* Does `entry` begin as d7_page_encode() writes a page of this dataset, and is it as long as it says? Pure.
 */
bool d7__page_head_fits(uint32_t dataset_id, const uint8_t *entry, size_t bytes);

#endif

/* The Batch message without copies: parsed in place, and laid out for writev around columns that stay where
 * they are. All other messages go through protobuf-c. A test holds both directions against protobuf-c.
 * All functions are pure; any thread. */
#ifndef COMMON_WIRE_BATCH_H
#define COMMON_WIRE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/frame.h"

enum { WIRE_MAX_COLUMNS = 256, WIRE_MAX_GROUPS = 256 };

typedef struct wire_column {
    const uint8_t *data; /* little-endian items */
    size_t bytes;
} wire_column;

/* The fields of photon.Batch. */
typedef struct wire_batch {
    uint32_t run;
    uint32_t crc32c;
    uint64_t sequence;
    uint64_t lost_before;
    int64_t first_time; /* the two times mean something only when times_valid */
    int64_t last_time;
    bool times_valid;
    uint32_t n_counts;
    uint32_t n_columns;
    uint64_t counts[WIRE_MAX_GROUPS];
    wire_column columns[WIRE_MAX_COLUMNS];
} wire_batch;

/* Parses a ClientMessage (without its length prefix) that holds a Batch.
 * batch    written up to n_counts and n_columns; its columns point into `message`
 * fault    may be NULL
 * Returns  WIRE_OK; WIRE_OTHER (not a Batch: nothing was checked but the first tag); WIRE_MALFORMED; WIRE_LIMIT
 *          (more groups or columns than WIRE_MAX_). *batch is undefined after a failure.
 * Reads as protobuf does: fields in any order, counts packed or not, the last value of a field wins, unknown
 * fields skipped. Refused beyond that: a second body in the same message. */
wire_status wire_batch_parse(const uint8_t *message, size_t bytes, wire_batch *batch, wire_fault *fault);

/* CRC-32C of all columns, one after the other: what crc32c must be. */
uint32_t wire_batch_crc32c(const wire_batch *batch);

/* Bytes of all columns. */
size_t wire_batch_column_bytes(const wire_batch *batch);

/* What wire_batch_frame() needs at most beside the columns. */
enum {
    WIRE_BATCH_HEAD_BYTES = WIRE_PREFIX_BYTES_MAX + 96 + 10 * WIRE_MAX_GROUPS + 11 * WIRE_MAX_COLUMNS,
    WIRE_BATCH_PIECES = 2 * WIRE_MAX_COLUMNS + 1
};

/* Lays out a whole ClientMessage with its length prefix, as protobuf's own serializer would.
 * head     takes everything but the columns
 * pieces   [n_pieces] in the order of the stream: parts of `head` and the columns themselves
 * Returns  the bytes of all pieces. */
size_t wire_batch_frame(const wire_batch *batch, uint8_t head[WIRE_BATCH_HEAD_BYTES],
                        struct iovec pieces[WIRE_BATCH_PIECES], size_t *n_pieces);

/* The bytes of that ClientMessage without its length prefix: what Limits.message_bytes is compared with. */
size_t wire_batch_message_bytes(const wire_batch *batch);

#endif

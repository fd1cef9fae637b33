#include "wire/batch.h"

#include <stdio.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "wire/cursor.h"

/* Field numbers of ingest.proto; test_wire holds them against the generated code. */
enum { CLIENT_BATCH = 3, CLIENT_BODIES = 10 };
enum {
    BATCH_RUN = 1,
    BATCH_SEQUENCE = 2,
    BATCH_COUNTS = 3,
    BATCH_CRC32C = 4,
    BATCH_LOST_BEFORE = 5,
    BATCH_FIRST_TIME = 6,
    BATCH_LAST_TIME = 7,
    BATCH_TIMES_VALID = 8,
    BATCH_COLUMNS = 15
};

/* Before the batch's fields: the message's length, the tag and the length of the batch. */
enum { BATCH_FIELDS_AT = WIRE_PREFIX_BYTES_MAX + 1 + WIRE_PREFIX_BYTES_MAX };

/* ---- parsing */

typedef struct batch_parser {
    wire_cursor in;
    const uint8_t *begin;
    wire_batch *batch;
    wire_fault *fault;
} batch_parser;

static wire_status batch_refuse(const batch_parser *p, wire_status status, const uint8_t *at,
                                const char *field, const char *reason) {
    if (p->fault) {
        p->fault->offset = (size_t)(at - p->begin);
        snprintf(p->fault->field, sizeof p->fault->field, "batch%s%s", *field ? "." : "", field);
        snprintf(p->fault->text, sizeof p->fault->text, "%s", reason);
    }
    return status;
}

static wire_status batch_add_count(batch_parser *p, wire_cursor *in, const uint8_t *at) {
    uint64_t value;
    if (!wire_get_varint(in, &value))
        return batch_refuse(p, WIRE_MALFORMED, at, "counts",
                            "holds a number that does not end or has over 64 bits");
    if (p->batch->n_counts == WIRE_MAX_GROUPS)
        return batch_refuse(p, WIRE_LIMIT, at, "counts", "has more groups than a run may have");
    p->batch->counts[p->batch->n_counts++] = value;
    return WIRE_OK;
}

static wire_status batch_parse_counts(batch_parser *p, unsigned kind, const uint8_t *at) {
    if (kind == WIRE_VARINT)
        return batch_add_count(p, &p->in, at);
    wire_cursor packed;
    if (!wire_get_bytes(&p->in, &packed))
        return batch_refuse(p, WIRE_MALFORMED, at, "counts", "is longer than the batch");
    while (packed.at < packed.end) {
        wire_status status = batch_add_count(p, &packed, at);
        if (status != WIRE_OK)
            return status;
    }
    return WIRE_OK;
}

static wire_status batch_parse_column(batch_parser *p, const uint8_t *at) {
    wire_cursor column;
    if (!wire_get_bytes(&p->in, &column))
        return batch_refuse(p, WIRE_MALFORMED, at, "columns", "is longer than the batch");
    if (p->batch->n_columns == WIRE_MAX_COLUMNS)
        return batch_refuse(p, WIRE_LIMIT, at, "columns", "has more datasets than a run may have");
    p->batch->columns[p->batch->n_columns++] = (wire_column){column.at, wire_left(&column)};
    return WIRE_OK;
}

static void batch_set(wire_batch *batch, uint32_t number, uint64_t value) {
    switch (number) {
    case BATCH_RUN:
        batch->run = (uint32_t)value;
        break;
    case BATCH_SEQUENCE:
        batch->sequence = value;
        break;
    case BATCH_LOST_BEFORE:
        batch->lost_before = value;
        break;
    case BATCH_FIRST_TIME:
        batch->first_time = wire_unzigzag(value);
        break;
    case BATCH_LAST_TIME:
        batch->last_time = wire_unzigzag(value);
        break;
    default:
        batch->times_valid = value != 0;
    }
}

static const char *const batch_field_names[] = {
    [BATCH_RUN] = "run",
    [BATCH_SEQUENCE] = "sequence",
    [BATCH_COUNTS] = "counts",
    [BATCH_CRC32C] = "crc32c",
    [BATCH_LOST_BEFORE] = "lost_before",
    [BATCH_FIRST_TIME] = "first_time",
    [BATCH_LAST_TIME] = "last_time",
    [BATCH_TIMES_VALID] = "times_valid",
    [BATCH_COLUMNS] = "columns",
};

static const char *batch_field_name(uint32_t number) {
    const char *name = NULL;
    if (number < sizeof batch_field_names / sizeof *batch_field_names)
        name = batch_field_names[number];
    return name ? name : "";
}

static bool batch_kind_fits(uint32_t number, unsigned kind) {
    if (number == BATCH_COUNTS)
        return kind == WIRE_VARINT || kind == WIRE_BYTES;
    if (number == BATCH_COLUMNS)
        return kind == WIRE_BYTES;
    return kind == (number == BATCH_CRC32C ? WIRE_FIXED32 : WIRE_VARINT);
}

static wire_status batch_parse_field(batch_parser *p) {
    const uint8_t *at = p->in.at;
    uint32_t number;
    unsigned kind;
    if (!wire_get_tag(&p->in, &number, &kind))
        return batch_refuse(p, WIRE_MALFORMED, at, "", "holds bytes that are no field's tag");
    const char *name = batch_field_name(number);
    if (*name && !batch_kind_fits(number, kind))
        return batch_refuse(p, WIRE_MALFORMED, at, name, "is of another kind than in the protocol");
    if (number == BATCH_COLUMNS)
        return batch_parse_column(p, at);
    if (number == BATCH_COUNTS)
        return batch_parse_counts(p, kind, at);
    wire_cursor value_at = p->in;
    if (!wire_skip(&p->in, kind))
        return batch_refuse(p, WIRE_MALFORMED, at, name, "does not end, or is of a kind that does not exist");
    uint64_t value;
    if (number == BATCH_CRC32C)
        p->batch->crc32c = bytes_load32(value_at.at);
    else if (*name && wire_get_varint(&value_at, &value))
        batch_set(p->batch, number, value);
    return WIRE_OK;
}

/* What follows the batch in its message: fields that later versions may add, never a second body. */
static wire_status batch_parse_rest(batch_parser *p, wire_cursor rest) {
    while (rest.at < rest.end) {
        const uint8_t *at = rest.at;
        uint32_t number;
        unsigned kind;
        if (!wire_get_tag(&rest, &number, &kind))
            return batch_refuse(p, WIRE_MALFORMED, at, "", "is followed by bytes that are no field's tag");
        if (number <= CLIENT_BODIES)
            return batch_refuse(p, WIRE_MALFORMED, at, "",
                                "is followed by a second body in the same message");
        if (!wire_skip(&rest, kind))
            return batch_refuse(p, WIRE_MALFORMED, at, "", "is followed by a field that does not end");
    }
    return WIRE_OK;
}

wire_status wire_batch_parse(const uint8_t *message, size_t bytes, wire_batch *batch, wire_fault *fault) {
    batch_parser p = {.begin = message, .batch = batch, .fault = fault};
    wire_cursor rest = {message, message + bytes};
    uint32_t number;
    unsigned kind;
    if (!wire_get_tag(&rest, &number, &kind) || number != CLIENT_BATCH)
        return WIRE_OTHER;
    if (kind != WIRE_BYTES || !wire_get_bytes(&rest, &p.in))
        return batch_refuse(&p, WIRE_MALFORMED, message, "", "is longer than its message");
    batch->run = batch->crc32c = batch->n_counts = batch->n_columns = 0;
    batch->sequence = batch->lost_before = 0;
    batch->first_time = batch->last_time = 0;
    batch->times_valid = false;
    while (p.in.at < p.in.end) {
        wire_status status = batch_parse_field(&p);
        if (status != WIRE_OK)
            return status;
    }
    return batch_parse_rest(&p, rest);
}

/* ---- writing */

uint32_t wire_batch_crc32c(const wire_batch *batch) {
    uint32_t crc = 0;
    for (uint32_t i = 0; i < batch->n_columns; i++)
        crc = common_crc32c(crc, batch->columns[i].data, batch->columns[i].bytes);
    return crc;
}

size_t wire_batch_column_bytes(const wire_batch *batch) {
    size_t sum = 0;
    for (uint32_t i = 0; i < batch->n_columns; i++)
        sum += batch->columns[i].bytes;
    return sum;
}

static uint8_t *batch_put_tag(uint8_t *p, uint32_t number, enum wire_kind kind) {
    return wire_put_varint(p, number << 3 | (uint32_t)kind);
}

static uint8_t *batch_put_number(uint8_t *p, uint32_t number, uint64_t value) {
    return value ? wire_put_varint(batch_put_tag(p, number, WIRE_VARINT), value) : p;
}

static uint8_t *batch_put_counts(uint8_t *p, const wire_batch *batch) {
    if (batch->n_counts == 0)
        return p;
    size_t bytes = 0;
    for (uint32_t i = 0; i < batch->n_counts; i++)
        bytes += wire_varint_bytes(batch->counts[i]);
    p = wire_put_varint(batch_put_tag(p, BATCH_COUNTS, WIRE_BYTES), bytes);
    for (uint32_t i = 0; i < batch->n_counts; i++)
        p = wire_put_varint(p, batch->counts[i]);
    return p;
}

static uint8_t *batch_put_fields(uint8_t *p, const wire_batch *batch) {
    p = batch_put_number(p, BATCH_RUN, batch->run);
    p = batch_put_number(p, BATCH_SEQUENCE, batch->sequence);
    p = batch_put_counts(p, batch);
    if (batch->crc32c) {
        p = batch_put_tag(p, BATCH_CRC32C, WIRE_FIXED32);
        bytes_store32(p, batch->crc32c);
        p += 4;
    }
    p = batch_put_number(p, BATCH_LOST_BEFORE, batch->lost_before);
    p = batch_put_number(p, BATCH_FIRST_TIME, wire_zigzag(batch->first_time));
    p = batch_put_number(p, BATCH_LAST_TIME, wire_zigzag(batch->last_time));
    return batch_put_number(p, BATCH_TIMES_VALID, batch->times_valid);
}

static size_t batch_columns_framed(const wire_batch *batch) {
    size_t sum = 0;
    for (uint32_t i = 0; i < batch->n_columns; i++)
        sum += 1 + wire_varint_bytes(batch->columns[i].bytes) + batch->columns[i].bytes;
    return sum;
}

/* Puts the length, and the tag and length of the batch, right before its fields. Returns where they begin. */
static uint8_t *batch_put_front(uint8_t *fields, size_t batch_bytes) {
    uint8_t front[BATCH_FIELDS_AT];
    size_t inner = 1 + wire_varint_bytes(batch_bytes);
    uint8_t *p = wire_put_varint(front, inner + batch_bytes);
    p = wire_put_varint(batch_put_tag(p, CLIENT_BATCH, WIRE_BYTES), batch_bytes);
    size_t n = (size_t)(p - front);
    memcpy(fields - n, front, n);
    return fields - n;
}

static void batch_piece(struct iovec *pieces, size_t *n, const void *data, size_t bytes) {
    if (bytes)
        pieces[(*n)++] = (struct iovec){(void *)(uintptr_t)data, bytes};
}

size_t wire_batch_frame(const wire_batch *batch, uint8_t head[WIRE_BATCH_HEAD_BYTES],
                        struct iovec pieces[WIRE_BATCH_PIECES], size_t *n_pieces) {
    uint8_t *fields = head + BATCH_FIELDS_AT;
    uint8_t *p = batch_put_fields(fields, batch);
    size_t batch_bytes = (size_t)(p - fields) + batch_columns_framed(batch);
    uint8_t *piece = batch_put_front(fields, batch_bytes);
    size_t total = (size_t)(fields - piece) + batch_bytes, n = 0;
    for (uint32_t i = 0; i < batch->n_columns; i++) {
        const wire_column *column = &batch->columns[i];
        p = wire_put_varint(batch_put_tag(p, BATCH_COLUMNS, WIRE_BYTES), column->bytes);
        if (column->bytes == 0)
            continue;
        batch_piece(pieces, &n, piece, (size_t)(p - piece));
        batch_piece(pieces, &n, column->data, column->bytes);
        piece = p;
    }
    batch_piece(pieces, &n, piece, (size_t)(p - piece));
    *n_pieces = n;
    return total;
}

size_t wire_batch_message_bytes(const wire_batch *batch) {
    uint8_t fields[128 + 10 * WIRE_MAX_GROUPS];
    size_t inside = (size_t)(batch_put_fields(fields, batch) - fields) + batch_columns_framed(batch);
    return 1 + wire_varint_bytes(inside) + inside;
}

/* Protobuf's wire format: what the hot path and the index write and read without a message tree. */
#ifndef D7_SRC_WIRE_H
#define D7_SRC_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { D7__VARINT = 0, D7__FIXED64 = 1, D7__BYTES = 2, D7__FIXED32 = 5 };
enum { D7__VARINT_MAX = 10 };

/* The tag byte of fields 1 to 15. */
#define D7__TAG(field, wire_type) ((uint8_t)((field) << 3 | (wire_type)))

static inline size_t d7__varint_bytes(uint64_t v) {
    size_t n = 1;
    while (v > 127) {
        v >>= 7;
        n++;
    }
    return n;
}

/* Returns the byte after the varint; at most D7__VARINT_MAX bytes are written. */
static inline uint8_t *d7__put_varint(uint8_t *out, uint64_t v) {
    while (v > 127) {
        *out++ = (uint8_t)(v | 128);
        v >>= 7;
    }
    *out++ = (uint8_t)v;
    return out;
}

static inline uint64_t d7__zigzag(int64_t v) {
    return ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0);
}

static inline uint64_t d7__unzigzag(uint64_t u) {
    return (u >> 1) ^ (0 - (u & 1));
}

/* A cursor over one message; every read checks the end. */
typedef struct d7__cursor {
    const uint8_t *at;
    const uint8_t *end;
} d7__cursor;

/* Returns false when the varint runs past the end or past 64 bits; the cursor then does not move. */
bool d7__get_varint(d7__cursor *c, uint64_t *ret_value);

/* One field of a message. */
typedef struct d7__field {
    uint64_t number;
    unsigned wire_type;
    uint64_t value;       /* of a varint */
    const uint8_t *bytes; /* [n_bytes] of the other types; of a varint its own bytes */
    size_t n_bytes;
} d7__field;

/* Reads the next field. Returns false when it is malformed; the cursor must not be at the end. */
bool d7__get_field(d7__cursor *c, d7__field *ret_field);

#endif

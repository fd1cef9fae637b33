/* Protobuf's wire format, read through a cursor that never passes its end. Internal to the wire code. */
#ifndef COMMON_WIRE_CURSOR_H
#define COMMON_WIRE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wire_kind { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

typedef struct wire_cursor {
    const uint8_t *at;
    const uint8_t *end;
} wire_cursor;

static inline size_t wire_left(const wire_cursor *c) {
    return (size_t)(c->end - c->at);
}

/* False when it does not end in time, or holds more than 64 bits. */
static inline bool wire_get_varint(wire_cursor *c, uint64_t *value) {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && c->at < c->end; shift += 7) {
        uint8_t byte = *c->at++;
        if (shift == 63 && byte > 1)
            return false;
        v |= (uint64_t)(byte & 0x7Fu) << shift;
        if (byte < 0x80) {
            *value = v;
            return true;
        }
    }
    return false;
}

/* False when it is no tag of a field: number 0, or past 29 bits. */
static inline bool wire_get_tag(wire_cursor *c, uint32_t *number, unsigned *kind) {
    uint64_t tag;
    if (!wire_get_varint(c, &tag) || tag > UINT32_MAX || tag < 8)
        return false;
    *number = (uint32_t)tag >> 3;
    *kind = (unsigned)tag & 7u;
    return true;
}

/* The inside of a length-delimited field. Like protobuf's own readers, refuses a length of over 5 bytes, small as
 * its value may be. */
static inline bool wire_get_bytes(wire_cursor *c, wire_cursor *inside) {
    const uint8_t *begin = c->at;
    uint64_t length;
    if (!wire_get_varint(c, &length) || c->at - begin > 5 || length > wire_left(c))
        return false;
    inside->at = c->at;
    inside->end = c->at += length;
    return true;
}

static inline bool wire_skip_bytes(wire_cursor *c, size_t bytes) {
    if (wire_left(c) < bytes)
        return false;
    c->at += bytes;
    return true;
}

/* The value of a field of any kind. */
static inline bool wire_skip(wire_cursor *c, unsigned kind) {
    uint64_t ignored;
    wire_cursor inside;
    switch (kind) {
    case WIRE_VARINT:
        return wire_get_varint(c, &ignored);
    case WIRE_FIXED64:
        return wire_skip_bytes(c, 8);
    case WIRE_BYTES:
        return wire_get_bytes(c, &inside);
    case WIRE_FIXED32:
        return wire_skip_bytes(c, 4);
    default:
        return false;
    }
}

static inline uint8_t *wire_put_varint(uint8_t *p, uint64_t value) {
    while (value >= 0x80) {
        *p++ = (uint8_t)(value | 0x80u);
        value >>= 7;
    }
    *p++ = (uint8_t)value;
    return p;
}

static inline size_t wire_varint_bytes(uint64_t value) {
    size_t n = 1;
    for (; value >= 0x80; value >>= 7)
        n++;
    return n;
}

static inline uint64_t wire_zigzag(int64_t value) {
    return ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0);
}

static inline int64_t wire_unzigzag(uint64_t value) {
    uint64_t v = (value >> 1) ^ (0 - (value & 1));
    return v <= INT64_MAX ? (int64_t)v : -1 - (int64_t)(UINT64_MAX - v);
}

#endif

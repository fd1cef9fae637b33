/* Streams of blosclz, blosc's own codec, a relative of LZF: runs of literals, and matches of 3 bytes and more. A control
 * byte below 32 is a run of that many literals and one more. Else its upper three bits are a match's length less 2,
 * 7 being continued by bytes that are added up to the first that is not 255, and its lower five the distance's upper
 * bits, of which the next byte is the lower; distances from 8192 on are marked by all ones and follow in two more bytes.
 * The upper bits of a stream's first control byte mean nothing. */
#include <string.h>

#include "blosc_frame.h"

enum { LITERALS = 32, LONG_MATCH = 7, MIN_MATCH = 2, MORE = 255, FAR_MARK = 8191 };

typedef struct lz {
    const uint8_t *from, *from_end;
    uint8_t *begin, *to, *to_end;
} lz;

static bool next(lz *z, unsigned *ret) {
    if (z->from == z->from_end)
        return false;
    *ret = *z->from++;
    return true;
}

static bool copy_literals(lz *z, size_t n) {
    if (n > (size_t)(z->from_end - z->from) || n > (size_t)(z->to_end - z->to))
        return false;
    memcpy(z->to, z->from, n);
    z->from += n;
    z->to += n;
    return true;
}

static bool copy_match(lz *z, unsigned control) {
    size_t length = control >> 5, distance = (size_t)(control & 31) << 8;
    unsigned byte, high, low;
    if (length == LONG_MATCH) {
        do {
            if (!next(z, &byte))
                return false;
            length += byte;
        } while (byte == MORE);
    }
    length += MIN_MATCH;
    if (!next(z, &byte))
        return false;
    distance += byte;
    if (distance == FAR_MARK) {
        if (!next(z, &high) || !next(z, &low))
            return false;
        distance += high << 8 | low;
    }
    distance++;
    if (distance > (size_t)(z->to - z->begin) || length > (size_t)(z->to_end - z->to))
        return false;
    const uint8_t *match = z->to - distance; /* may overlap */
    for (size_t i = 0; i < length; i++)
        z->to[i] = match[i];
    z->to += length;
    return true;
}

bool daf__blosclz_decode(uint8_t *to, size_t to_bytes, const uint8_t *from, size_t from_bytes) {
    lz z = {.from = from, .from_end = from + from_bytes, .begin = to, .to = to, .to_end = to + to_bytes};
    unsigned control;
    if (!next(&z, &control))
        return false;
    control &= 31;
    do {
        if (!(control < LITERALS ? copy_literals(&z, control + 1) : copy_match(&z, control)))
            return false;
    } while (next(&z, &control));
    return z.to == z.to_end;
}

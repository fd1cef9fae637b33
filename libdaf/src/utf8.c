#include "utf8.h"

#include <stdint.h>
#include <string.h>

/* The length of the sequence at p, 0 when it is not valid. */
static size_t sequence_length(const uint8_t *p, size_t left) {
    uint8_t c = p[0], low = 0x80, high = 0xBF;
    size_t length;
    if (c < 0x80)
        return 1;
    if (c >= 0xC2 && c <= 0xDF)
        length = 2;
    else if (c >= 0xE0 && c <= 0xEF)
        length = 3;
    else if (c >= 0xF0 && c <= 0xF4)
        length = 4;
    else
        return 0;
    if (c == 0xE0)
        low = 0xA0;
    if (c == 0xED)
        high = 0x9F;
    if (c == 0xF0)
        low = 0x90;
    if (c == 0xF4)
        high = 0x8F;
    if (left < length || p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    return length;
}

size_t daf__utf8_prefix(const char *text, size_t bytes) {
    const uint8_t *p = (const uint8_t *)text;
    size_t at = 0;
    while (at < bytes) {
        uint64_t word;
        while (bytes - at >= sizeof word) {
            memcpy(&word, p + at, sizeof word);
            if (word & 0x8080808080808080u)
                break;
            at += sizeof word;
        }
        if (at == bytes)
            break;
        size_t length = sequence_length(p + at, bytes - at);
        if (length == 0)
            break;
        at += length;
    }
    return at;
}

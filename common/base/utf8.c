#include "base/utf8.h"

#include <stdint.h>

static bool is_tail(uint8_t byte) {
    return (byte & 0xC0) == 0x80;
}

/* The second byte's range depends on the first: this is what keeps out overlong forms, surrogates and numbers past
 * U+10FFFF. */
static bool second_fits(uint8_t first, uint8_t second) {
    switch (first) {
    case 0xE0:
        return second >= 0xA0 && second <= 0xBF;
    case 0xED:
        return second >= 0x80 && second <= 0x9F;
    case 0xF0:
        return second >= 0x90 && second <= 0xBF;
    case 0xF4:
        return second >= 0x80 && second <= 0x8F;
    default:
        return is_tail(second);
    }
}

size_t common_utf8_sequence(const char *text, size_t bytes) {
    const uint8_t *p = (const uint8_t *)text;
    if (p[0] < 0x80)
        return 1;
    size_t n = p[0] >= 0xC2 && p[0] <= 0xDF   ? 2
               : (p[0] & 0xF0) == 0xE0        ? 3
               : p[0] >= 0xF0 && p[0] <= 0xF4 ? 4
                                              : 0;
    if (n == 0 || n > bytes || !second_fits(p[0], p[1]))
        return 0;
    for (size_t i = 2; i < n; i++)
        if (!is_tail(p[i]))
            return 0;
    return n;
}

bool common_utf8_valid(const char *text, size_t bytes) {
    for (size_t i = 0; i < bytes;) {
        size_t n = common_utf8_sequence(text + i, bytes - i);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

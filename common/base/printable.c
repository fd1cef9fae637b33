#include "base/printable.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

/* U+0080 to U+009F are controls too: one of them begins the same sequences as ESC [. */
static bool is_control(const char *text, size_t n) {
    uint8_t first = (uint8_t)text[0];
    return n == 1 ? first < 0x20 || first == 0x7F : n == 2 && first == 0xC2 && (uint8_t)text[1] < 0xA0;
}

size_t common_printable_next(const char *text, size_t bytes, char out[COMMON_PRINTABLE_MAX],
                             size_t *ret_taken) {
    static const char digits[] = "0123456789abcdef";
    size_t n = common_utf8_sequence(text, bytes);
    if (n && !is_control(text, n)) {
        memcpy(out, text, n);
        *ret_taken = n;
        return n;
    }
    uint8_t byte = (uint8_t)text[0];
    *ret_taken = 1;
    out[0] = '\\';
    out[1] = byte == '\n' ? 'n' : 'x';
    out[2] = digits[byte >> 4];
    out[3] = digits[byte & 15];
    return byte == '\n' ? 2 : 4;
}

size_t common_printable(char *out, size_t cap, const char *text, size_t bytes) {
    size_t used = 0;
    for (size_t at = 0, taken; at < bytes; at += taken) {
        char next[COMMON_PRINTABLE_MAX];
        size_t n = common_printable_next(text + at, bytes - at, next, &taken);
        if (n >= cap - used)
            break;
        memcpy(out + used, next, n);
        used += n;
    }
    out[used] = 0;
    return used;
}

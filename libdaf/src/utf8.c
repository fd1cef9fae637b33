#include "utf8.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

size_t daf__utf8_prefix(const char *text, size_t bytes) {
    size_t at = 0;
    while (at < bytes) {
        uint64_t word;
        while (bytes - at >= sizeof word) { /* plain ASCII, eight bytes at a time */
            memcpy(&word, text + at, sizeof word);
            if (word & 0x8080808080808080u)
                break;
            at += sizeof word;
        }
        size_t length = at < bytes ? common_utf8_sequence(text + at, bytes - at) : 0;
        if (length == 0)
            break;
        at += length;
    }
    return at;
}

#include "text.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

size_t pd_text_character(const char *text) {
    const unsigned char *p = (const unsigned char *)text;
    if (p[0] < 0x20 || p[0] == 0x7f)
        return 0;
    size_t n = common_utf8_sequence(text, strnlen(text, 4));
    return n == 2 && p[0] == 0xc2 && p[1] < 0xa0 ? 0 : n; /* U+0080 to U+009F are control characters too */
}

size_t pd_text_escape(char *to, size_t cap, const char *text) {
    size_t n = 0;
    while (*text) {
        size_t bytes = pd_text_character(text);
        char piece[8];
        size_t piece_bytes = bytes;
        if (bytes == 0) {
            piece_bytes = (size_t)snprintf(piece, sizeof piece, "\\x%02x", (unsigned)(unsigned char)*text);
            bytes = 1;
        } else {
            memcpy(piece, text, bytes);
        }
        if (n + piece_bytes + 1 > cap)
            break;
        memcpy(to + n, piece, piece_bytes);
        n += piece_bytes;
        text += bytes;
    }
    to[n] = '\0';
    return n;
}

const char *pd_text_hex(char *to, const uint8_t *bytes, size_t n) {
    to[0] = '\0';
    for (size_t i = 0; i < n; i++)
        snprintf(to + 2 * i, 3, "%02x", bytes[i]);
    return to;
}

static int text_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int pd_text_unhex(uint8_t *to, size_t n, const char *text) {
    if (strlen(text) != 2 * n)
        return -1;
    for (size_t i = 0; i < n; i++) {
        int high = text_digit(text[2 * i]), low = text_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return -1;
        to[i] = (uint8_t)(high << 4 | low);
    }
    return 0;
}

static size_t text_min(size_t a, size_t b) {
    return a < b ? a : b;
}

enum { TEXT_DISTANCE_MAX = 64 };

/* The table of the optimal string alignment distance, three rows of it at a time. */
size_t pd_text_distance(const char *a, const char *b, size_t limit) {
    size_t n_a = strlen(a), n_b = strlen(b);
    size_t gap = n_a > n_b ? n_a - n_b : n_b - n_a;
    if (gap >= limit || n_b >= TEXT_DISTANCE_MAX)
        return limit;
    size_t rows[3][TEXT_DISTANCE_MAX + 1];
    size_t *two_back = rows[0], *one_back = rows[1], *row = rows[2];
    for (size_t j = 0; j <= n_b; j++)
        one_back[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            size_t replaced = one_back[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = text_min(replaced, text_min(one_back[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = text_min(row[j], two_back[j - 2] + 1);
        }
        size_t *spare = two_back;
        two_back = one_back;
        one_back = row;
        row = spare;
    }
    return text_min(one_back[n_b], limit);
}

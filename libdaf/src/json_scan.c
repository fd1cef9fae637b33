#include "json_scan.h"

#include <string.h>

#include "utf8.h"

enum { MAX_DEPTH = 64 };

/* Every step moves `at` behind what it took, or sets `failed`. */
typedef struct scanner {
    const char *at, *end;
    bool failed;
} scanner;

static void skip_blanks(scanner *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
        s->at++;
}

static bool take(scanner *s, char c) {
    skip_blanks(s);
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static void need(scanner *s, char c) {
    if (!take(s, c))
        s->failed = true;
}

static bool is_digit(const scanner *s) {
    return s->at < s->end && *s->at >= '0' && *s->at <= '9';
}

static unsigned hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : 16;
}

static void skip_escape(scanner *s) {
    char c = s->at < s->end ? *s->at++ : 0;
    if (c == 'u') {
        for (unsigned i = 0; i < 4; i++)
            if (s->at == s->end || hex_digit(*s->at++) > 15) {
                s->failed = true;
                return;
            }
    } else if (c == 0 || !strchr("\"\\/bfnrt", c)) {
        s->failed = true;
    }
}

/* The string's text, between its quotes. */
static void take_string(scanner *s, const char **text, size_t *bytes) {
    need(s, '"');
    const char *from = s->at;
    while (!s->failed && s->at < s->end && *s->at != '"') {
        unsigned char c = (unsigned char)*s->at++;
        if (c < 0x20)
            s->failed = true;
        else if (c == '\\')
            skip_escape(s);
    }
    if (s->failed || s->at == s->end) {
        s->failed = true;
        return;
    }
    *text = from;
    *bytes = (size_t)(s->at++ - from);
    s->failed = daf__utf8_prefix(*text, *bytes) != *bytes;
}

static void skip_digits(scanner *s) {
    if (!is_digit(s))
        s->failed = true;
    while (is_digit(s))
        s->at++;
}

static void skip_number(scanner *s) {
    if (s->at < s->end && *s->at == '-')
        s->at++;
    if (s->at < s->end && *s->at == '0')
        s->at++;
    else
        skip_digits(s);
    if (s->at < s->end && *s->at == '.') {
        s->at++;
        skip_digits(s);
    }
    if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
        s->at++;
        if (s->at < s->end && (*s->at == '+' || *s->at == '-'))
            s->at++;
        skip_digits(s);
    }
}

static void skip_word(scanner *s, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
        s->failed = true;
    else
        s->at += n;
}

static void skip_value(scanner *s, unsigned depth);

static void skip_members(scanner *s, bool named, char close, unsigned depth) {
    const char *text;
    size_t bytes;
    if (take(s, close))
        return;
    do {
        if (named) {
            take_string(s, &text, &bytes);
            need(s, ':');
        }
        if (!s->failed)
            skip_value(s, depth + 1);
    } while (!s->failed && take(s, ','));
    need(s, close);
}

static void skip_value(scanner *s, unsigned depth) {
    const char *text;
    size_t bytes;
    skip_blanks(s);
    if (s->at == s->end || depth > MAX_DEPTH) {
        s->failed = true;
        return;
    }
    switch (*s->at) {
    case '{':
    case '[': {
        bool named = *s->at++ == '{';
        skip_members(s, named, named ? '}' : ']', depth);
        break;
    }
    case '"':
        take_string(s, &text, &bytes);
        break;
    case 't':
        skip_word(s, "true");
        break;
    case 'f':
        skip_word(s, "false");
        break;
    case 'n':
        skip_word(s, "null");
        break;
    default:
        skip_number(s);
    }
}

int daf__json_scan(const void *text, size_t bytes, bool *valid, daf__json_member visit, void *context,
                   daf_error *err) {
    scanner s = {.at = text, .end = (const char *)text + bytes};
    const char *key = "";
    size_t key_bytes = 0;
    need(&s, '{');
    if (!s.failed && !take(&s, '}')) {
        do {
            take_string(&s, &key, &key_bytes);
            need(&s, ':');
            if (s.failed)
                break;
            skip_value(&s, 2);
            int rc = s.failed || !visit ? 0 : visit(context, key, key_bytes, err);
            if (rc)
                return rc;
        } while (!s.failed && take(&s, ','));
        need(&s, '}');
    }
    skip_blanks(&s);
    *valid = !s.failed && s.at == s.end;
    return 0;
}

static unsigned take_hex(const char *text) {
    return hex_digit(text[0]) << 12 | hex_digit(text[1]) << 8 | hex_digit(text[2]) << 4 | hex_digit(text[3]);
}

static void append_utf8(daf__buf *out, unsigned code) {
    uint8_t b[4];
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n; i-- > 1; code >>= 6)
        b[i] = (uint8_t)(0x80 | (code & 0x3F));
    b[0] = (uint8_t)(lead[n] | code);
    daf__buf_append(out, b, n);
}

void daf__json_unescape(daf__buf *out, const char *text, size_t bytes) {
    static const char escaped[] = "bfnrt", plain[] = "\b\f\n\r\t";
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] != '\\') {
            daf__buf_append(out, &text[i], 1);
            continue;
        }
        char c = text[++i];
        const char *special = strchr(escaped, c);
        if (c != 'u') {
            daf__buf_append(out, special ? &plain[special - escaped] : &c, 1);
            continue;
        }
        unsigned code = take_hex(text + i + 1);
        i += 4;
        bool is_high = code >= 0xD800 && code < 0xDC00 && i + 6 < bytes && text[i + 1] == '\\';
        if (is_high && text[i + 2] == 'u') {
            code = 0x10000 + ((code - 0xD800) << 10) + ((take_hex(text + i + 3) - 0xDC00) & 0x3FF);
            i += 6;
        }
        append_utf8(out, code);
    }
}

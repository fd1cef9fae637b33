/* The JSON form of values: a value, an array of them, or an array of rows. Read token by token, since numbers may need
 * 64 bits. Each text is unescaped in its place. */
#include <string.h>

#include "input.h"

static char *skip_blanks(char *p) {
    return p + strspn(p, " \t\r\n");
}

static int hex4(const char *p, unsigned *ret) {
    unsigned v = 0;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *d = p[i] ? strchr(digits, p[i]) : NULL;
        if (!d)
            return -1;
        v = v << 4 | (unsigned)((d - digits) % 16);
    }
    *ret = v;
    return 0;
}

static char *put_utf8(char *to, unsigned c) {
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xC0 | c >> 6);
        *to++ = (char)(0x80 | (c & 63));
    } else if (c < 0x10000) {
        *to++ = (char)(0xE0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    } else {
        *to++ = (char)(0xF0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 63));
        *to++ = (char)(0x80 | (c >> 6 & 63));
        *to++ = (char)(0x80 | (c & 63));
    }
    return to;
}

/* The escape behind the backslash at *p; NULL when it is none. A NUL cannot be part of a text here. */
static char *unescape(char **p, char *to) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    unsigned c, low;
    const char *letter = **p ? strchr(letters, **p) : NULL;
    if (letter) {
        *to = meant[letter - letters];
        (*p)++;
        return to + 1;
    }
    if (**p != 'u' || hex4(*p + 1, &c) != 0 || c == 0)
        return NULL;
    *p += 5;
    if (c >= 0xD800 && c < 0xDC00 && (*p)[0] == '\\' && (*p)[1] == 'u' && hex4(*p + 2, &low) == 0 &&
        low >= 0xDC00 && low < 0xE000) {
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        *p += 6;
    }
    return put_utf8(to, c);
}

/* Reads the string that begins behind the quote at p; *end: behind its closing quote. NULL when it is none. */
static char *take_string(char *p, char **end) {
    char *text = p, *to = p;
    while (to && *p && *p != '"') {
        if (*p == '\\') {
            p++;
            to = unescape(&p, to);
        } else {
            *to++ = *p++;
        }
    }
    if (!to || *p != '"')
        return NULL;
    *end = p + 1;
    *to = 0;
    return text;
}

/* One value at *p. */
static int take_value(input *in, char **p) {
    if (**p == '"') {
        char *text = take_string(*p + 1, p);
        return text ? input_add(in, text) : input_fail(in, "a string of the JSON is damaged");
    }
    size_t n = strcspn(*p, " \t\r\n,]");
    if (n == 0 || in->type == DAF_STRING)
        return input_fail(in, "no %s where one is expected: \"%.20s\"", daf_type_name(in->type), *p);
    char after = (*p)[n];
    (*p)[n] = 0;
    int rc = input_add(in, *p);
    (*p)[n] = after;
    *p += n;
    return rc;
}

/* An array at *p, whose elements are values or, at depth 2, arrays of them. *n: how many. */
static int take_array(input *in, char **p, size_t depth, uint64_t *n) {
    if (**p != '[')
        return input_fail(in, "no JSON array where one is expected: \"%.20s\"", *p);
    *n = 0;
    *p = skip_blanks(*p + 1);
    while (**p != ']') {
        uint64_t inner = 0;
        int rc = depth == 2 ? take_array(in, p, 1, &inner) : take_value(in, p);
        if (rc)
            return rc;
        if (depth == 2 && *n > 0 && inner != in->columns)
            return input_fail(in, "the rows are of different lengths");
        if (depth == 2)
            in->columns = inner;
        ++*n;
        *p = skip_blanks(*p);
        if (**p == ',')
            *p = skip_blanks(*p + 1);
        else if (**p != ']')
            return input_fail(in, "the JSON array is damaged: \"%.20s\"", *p);
    }
    *p = skip_blanks(*p + 1);
    return 0;
}

int input_parse_json(input *in) {
    char *p = skip_blanks(in->content);
    int rc;
    in->columns = in->rank == 2 ? 0 : 1;
    if (strlen(in->content) != in->bytes)
        return input_fail(in, "the JSON holds a NUL");
    if (in->rank == 0)
        rc = take_value(in, &p);
    else
        rc = take_array(in, &p, in->rank, &in->rows);
    if (rc == 0 && *skip_blanks(p))
        rc = input_fail(in, "something follows the JSON: \"%.20s\"", p);
    return rc;
}

#include "base/record.h"

#include <string.h>

/* ---- JSON ---- */

typedef struct span {
    const char *at, *end;
} span;

static void skip_space(span *s) {
    while (s->at < s->end && strchr(" \t\r\n", *s->at) && *s->at)
        s->at++;
}

static bool skip_char(span *s, char c) {
    skip_space(s);
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

/* A string, without its quotes. */
static bool take_string(span *s, span *ret) {
    if (!skip_char(s, '"'))
        return false;
    ret->at = s->at;
    for (; s->at < s->end && *s->at != '"'; s->at++)
        if (*s->at == '\\' && s->at + 1 < s->end)
            s->at++;
    ret->end = s->at;
    return skip_char(s, '"');
}

static bool ends_value(char c) {
    return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* A value of any kind. */
static bool take_value(span *s, span *ret) {
    size_t depth = 0;
    skip_space(s);
    ret->at = s->at;
    while (s->at < s->end && (depth > 0 || !ends_value(*s->at))) {
        char c = *s->at;
        span text;
        if (c == '"') {
            if (!take_string(s, &text))
                return false;
            continue;
        }
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        s->at++;
    }
    ret->end = s->at;
    return depth == 0 && ret->at < ret->end;
}

static bool is_text(const span *s, const char *text) {
    return (size_t)(s->end - s->at) == strlen(text) && memcmp(s->at, text, strlen(text)) == 0;
}

/* The value of a member of an object; false where there is none, or the object is malformed before it. */
static bool find_member(span object, const char *name, span *ret) {
    span key, value;
    bool more = skip_char(&object, '{');
    while (more && take_string(&object, &key) && skip_char(&object, ':') && take_value(&object, &value)) {
        if (is_text(&key, name)) {
            *ret = value;
            return true;
        }
        more = skip_char(&object, ',');
    }
    return false;
}

/* ---- records ---- */

bool common_record_number(const char *text, size_t bytes, uint64_t *ret) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        unsigned digit = (unsigned)(text[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = 10 * value + digit;
    }
    if (bytes == 0)
        return false;
    *ret = value;
    return true;
}

bool common_record_numbered(const char *key, size_t bytes, const char *prefix, uint64_t *ret_number) {
    size_t n = strlen(prefix);
    return bytes > n && bytes <= n + 18 && memcmp(key, prefix, n) == 0 &&
           common_record_number(key + n, bytes - n, ret_number);
}

bool common_record_key(const char *key, size_t bytes) {
    uint64_t number;
    return common_record_numbered(key, bytes, "photond.gap.", &number) ||
           common_record_numbered(key, bytes, "photond.marker.", &number);
}

/* Which dataset it says, if that is one. */
static common_record_of read_dataset(const char *json, span value, common_record *r) {
    span text = {0};
    if (*value.at == '"' && take_string(&value, &text)) {
        r->dataset = text.at;
        r->dataset_bytes = (size_t)(text.end - text.at);
        return COMMON_RECORD_DATASET;
    }
    size_t bytes = (size_t)(value.end - value.at);
    if (!common_record_number(value.at, bytes, &r->dataset_number))
        return COMMON_RECORD_UNKNOWN;
    r->number_at = (size_t)(value.at - json);
    r->number_bytes = bytes;
    return COMMON_RECORD_DATASET;
}

bool common_record_read(const char *text, size_t bytes, common_record *ret) {
    span all = {text, text + bytes}, value;
    common_record r = {.of = COMMON_RECORD_UNSAID};
    if (!find_member(all, "item", &value) ||
        !common_record_number(value.at, (size_t)(value.end - value.at), &r.item))
        return false;
    r.item_at = (size_t)(value.at - text);
    r.item_bytes = (size_t)(value.end - value.at);
    if (find_member(all, "dataset", &value))
        r.of = read_dataset(text, value, &r);
    else if (find_member(all, "group", &value))
        r.of = is_text(&value, "\"photons\"") ? COMMON_RECORD_PHOTONS
               : is_text(&value, "\"tags\"")  ? COMMON_RECORD_TAGS
                                              : COMMON_RECORD_UNKNOWN;
    *ret = r;
    return true;
}

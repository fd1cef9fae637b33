#include "json.h"

#include <string.h>

#include "error.h"

void daf__json_string(daf__buf *out, const char *text, size_t bytes) {
    static const char plain[] = "\"\\\b\f\n\r\t", escaped[] = "\"\\bfnrt";
    daf__buf_append(out, "\"", 1);
    size_t from = 0;
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        daf__buf_append(out, text + from, i - from);
        from = i + 1;
        const char *special = c ? strchr(plain, c) : NULL;
        if (special)
            daf__buf_printf(out, "\\%c", escaped[special - plain]);
        else
            daf__buf_printf(out, "\\u%04x", (unsigned)c);
    }
    daf__buf_append(out, text + from, bytes - from);
    daf__buf_append(out, "\"", 1);
}

int daf__json_object(json_t **ret, const void *text, size_t bytes, const char *where, daf_error *err) {
    json_error_t details;
    json_t *root = json_loadb(text, bytes, JSON_ALLOW_NUL, &details);
    if (!root && json_error_code(&details) == json_error_out_of_memory)
        return daf__no_memory(err);
    if (!root) {
        uint64_t offset = details.position > 0 ? (uint64_t)details.position : 0;
        return daf__fail(err, DAF_ERR_CORRUPT, 0, offset, "%s: not valid JSON: %s", where, details.text);
    }
    if (!json_is_object(root)) {
        json_decref(root);
        return daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "%s: not a JSON object", where);
    }
    *ret = root;
    return 0;
}

const char *daf__json_text(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

void daf__json_compact(daf__buf *out, const void *text, size_t bytes) {
    const char *p = text;
    bool in_string = false;
    for (size_t i = 0; i < bytes; i++) {
        bool blank = p[i] == ' ' || p[i] == '\t' || p[i] == '\n' || p[i] == '\r';
        if (!in_string && blank)
            continue;
        daf__buf_append(out, p + i, 1);
        if (p[i] == '"')
            in_string = !in_string;
        else if (in_string && p[i] == '\\' && i + 1 < bytes)
            daf__buf_append(out, p + ++i, 1);
    }
}

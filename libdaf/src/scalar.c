#include "scalar.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "json.h"
#include "number.h"
#include "type.h"
#include "utf8.h"

/* ---- where the value's token is: jansson keeps numbers as int64 or double, which is not enough for UInt64, for
 * correctly rounded Float32, or for bare NaN and Infinity, so a number is taken from the text itself. */

typedef struct token {
    size_t from, bytes;
} token;

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The position behind the string that begins at `at`. */
static size_t skip_string(const char *p, size_t n, size_t at) {
    for (at++; at < n && p[at] != '"'; at++)
        if (p[at] == '\\')
            at++;
    return at + 1;
}

static bool starts_number(char c) {
    return c == '-' || (c >= '0' && c <= '9') || c == 'N' || c == 'I';
}

/* The last number that is the value of a member "value" of the outermost object; bytes 0: there is none. */
static token find_number(const char *p, size_t n) {
    token found = {0, 0};
    int depth = 0;
    bool awaited = false; /* behind "value": */
    for (size_t at = 0; at < n;) {
        if (p[at] == '"') {
            size_t end = skip_string(p, n, at), colon = end;
            while (colon < n && is_blank(p[colon]))
                colon++;
            bool key = depth == 1 && colon < n && p[colon] == ':';
            awaited = key && end - at == 7 && memcmp(p + at, "\"value\"", 7) == 0;
            at = key ? colon + 1 : end;
            continue;
        }
        if (awaited && starts_number(p[at])) {
            found.from = at;
            while (at < n && !is_blank(p[at]) && p[at] != ',' && p[at] != '}' && p[at] != ']')
                at++;
            found.bytes = at - found.from;
            awaited = false;
            continue;
        }
        if (!is_blank(p[at]))
            awaited = false;
        depth += (p[at] == '{' || p[at] == '[') - (p[at] == '}' || p[at] == ']');
        at++;
    }
    return found;
}

/* ---- parsing */

static int corrupt(const char *where, const char *what, daf_error *err) {
    return daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "%s: %s", where, what);
}

static int parse_text(daf_scalar *ret, const json_t *value, const char *where, daf_error *err) {
    if (!json_is_string(value))
        return corrupt(where, "the value of a String scalar is no string", err);
    size_t bytes = json_string_length(value);
    char *copy = daf__copy_text(json_string_value(value), bytes);
    if (!copy)
        return daf__no_memory(err);
    *ret = (daf_scalar){.type = DAF_STRING, .value.s = {.text = copy, .bytes = bytes}};
    return 0;
}

static int parse_bool(daf_scalar *ret, const json_t *value, const char *number, const char *where,
                      daf_error *err) {
    bool one = number && strcmp(number, "1") == 0, zero = number && strcmp(number, "0") == 0;
    if (!one && !zero && (number || !json_is_boolean(value)))
        return corrupt(where, "the value of a Bool scalar is neither true nor false", err);
    *ret = (daf_scalar){.type = DAF_BOOL, .value.b = one || json_is_true(value)};
    return 0;
}

static int parse_number(daf_scalar *ret, daf_type type, const json_t *value, const char *number,
                        const char *where, daf_error *err) {
    if (!number)
        number = daf__type_is_float(type) ? json_string_value(value) : NULL;
    int rc = number ? daf__parse_number(ret, type, number) : DAF_ERR_CORRUPT;
    if (rc == DAF_ERR_LIMIT)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "%s: the value %.60s is not in the range of %s", where,
                         number, daf_type_name(type));
    return rc ? corrupt(where, "the value is no number", err) : 0;
}

static int parse_value(daf_scalar *ret, const json_t *object, const char *number, const char *where,
                       daf_error *err) {
    const char *name = daf__json_text(object, "type");
    const json_t *value = json_object_get(object, "value");
    daf_type type;
    if (!name || !value)
        return corrupt(where, "no type, or no value", err);
    if (daf_type_parse(&type, name) != 0)
        return daf__fail(err, DAF_ERR_CORRUPT, 0, 0, "%s: unknown type \"%.100s\"", where, name);
    if (type == DAF_STRING)
        return number ? corrupt(where, "the value of a String scalar is no string", err)
                      : parse_text(ret, value, where, err);
    if (type == DAF_BOOL)
        return parse_bool(ret, value, number, where, err);
    return parse_number(ret, type, value, number, where, err);
}

int daf__scalar_parse(daf_scalar *ret, const void *text, size_t bytes, const char *where, daf_error *err) {
    token t = find_number(text, bytes);
    daf__buf plain = {0};
    char *number = NULL;
    const void *parsed = text;
    size_t parsed_bytes = bytes;
    if (t.bytes) { /* jansson checks the rest, with a 0 in the number's place */
        number = daf__copy_text((const char *)text + t.from, t.bytes);
        daf__buf_append(&plain, text, t.from);
        daf__buf_append(&plain, "0", 1);
        daf__buf_append(&plain, (const char *)text + t.from + t.bytes, bytes - t.from - t.bytes);
        parsed = plain.data;
        parsed_bytes = plain.size;
    }
    json_t *object = NULL;
    int rc = t.bytes && (!number || plain.failed)
                 ? daf__no_memory(err)
                 : daf__json_object(&object, parsed, parsed_bytes, where, err);
    if (rc == 0)
        rc = parse_value(ret, object, number, where, err);
    json_decref(object);
    daf__buf_free(&plain);
    free(number);
    return rc;
}

/* ---- checking and writing */

int daf__scalar_check(const daf_scalar *s, bool non_finite, daf_error *err) {
    if ((unsigned)s->type >= DAF_N_TYPES)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "%d is no element type", (int)s->type);
    if (!daf__number_fits(s))
        return daf__fail(err, DAF_ERR_VALUE, 0, 0, "the value is not in the range of %s",
                         daf_type_name(s->type));
    if (daf__type_is_float(s->type) && !isfinite(s->value.f) && !non_finite)
        return daf__fail(err, DAF_ERR_VALUE, 0, 0,
                         "a %s scalar that is not finite cannot be read by all implementations (option "
                         "non_finite_scalars)",
                         daf_type_name(s->type));
    if (s->type != DAF_STRING)
        return 0;
    if (!s->value.s.text)
        return daf__fail(err, DAF_ERR_ARG, 0, 0, "the text is NULL");
    size_t valid = daf__utf8_prefix(s->value.s.text, s->value.s.bytes);
    if (valid < s->value.s.bytes)
        return daf__fail(err, DAF_ERR_VALUE, 0, valid, "the text is not valid UTF-8 at byte %zu", valid);
    return 0;
}

static void write_float(daf__buf *out, double value, bool single) {
    char text[DAF__NUMBER_TEXT];
    if (isnan(value)) {
        daf__buf_text(out, "\"NaN\"");
    } else if (isinf(value)) {
        daf__buf_text(out, value > 0 ? "\"Inf\"" : "\"-Inf\"");
    } else {
        daf__format_float(text, single ? (double)(float)value : value, single);
        daf__buf_text(out, text);
    }
}

void daf__scalar_write(daf__buf *out, const daf_scalar *s) {
    daf__buf_printf(out, "{\"type\":\"%s\",\"value\":", daf_type_name(s->type));
    if (s->type == DAF_STRING)
        daf__json_string(out, s->value.s.text, s->value.s.bytes);
    else if (s->type == DAF_BOOL)
        daf__buf_text(out, s->value.b ? "true" : "false");
    else if (daf__type_is_float(s->type))
        write_float(out, s->value.f, s->type == DAF_FLOAT32);
    else if (daf__type_is_signed(s->type))
        daf__buf_printf(out, "%" PRId64, s->value.i);
    else
        daf__buf_printf(out, "%" PRIu64, s->value.u);
    daf__buf_text(out, "}\n");
}

void daf_scalar_clear(daf_scalar *scalar) {
    if (!scalar)
        return;
    if (scalar->type == DAF_STRING)
        free((void *)(uintptr_t)scalar->value.s.text);
    *scalar = (daf_scalar){.type = DAF_BOOL};
}

daf_scalar daf_scalar_bool(bool value) {
    return (daf_scalar){.type = DAF_BOOL, .value.b = value};
}

daf_scalar daf_scalar_int64(int64_t value) {
    return (daf_scalar){.type = DAF_INT64, .value.i = value};
}

daf_scalar daf_scalar_uint64(uint64_t value) {
    return (daf_scalar){.type = DAF_UINT64, .value.u = value};
}

daf_scalar daf_scalar_float64(double value) {
    return (daf_scalar){.type = DAF_FLOAT64, .value.f = value};
}

daf_scalar daf_scalar_string(const char *text) {
    return (daf_scalar){.type = DAF_STRING, .value.s = {.text = text, .bytes = text ? strlen(text) : 0}};
}

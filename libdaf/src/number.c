#include "number.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "type.h"

typedef struct locale_guard {
    locale_t plain, before;
} locale_guard;

static locale_guard locale_enter(void) {
    locale_guard g = {newlocale(LC_ALL_MASK, "C", (locale_t)0), (locale_t)0};
    if (g.plain)
        g.before = uselocale(g.plain);
    return g;
}

static void locale_leave(locale_guard g) {
    if (!g.plain)
        return;
    uselocale(g.before);
    freelocale(g.plain);
}

/* The fewest significant digits that read back: "d.ddde+XX" in text. */
static void shortest_digits(char text[DAF__NUMBER_TEXT], double value, bool single) {
    for (int digits = 0; digits < 17; digits++) {
        snprintf(text, DAF__NUMBER_TEXT, "%.*e", digits, value);
        if (single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
            return;
    }
}

/* Puts `count` digits with the decimal point behind digit `point`, which may lie outside them. */
static size_t put_fixed(char *out, const char *digits, int count, int point) {
    char *p = out;
    if (point <= 0) {
        *p++ = '0';
        *p++ = '.';
        for (int i = point; i < 0; i++)
            *p++ = '0';
        memcpy(p, digits, (size_t)count);
        return (size_t)(p + count - out);
    }
    for (int i = 0; i < point; i++)
        *p++ = i < count ? digits[i] : '0';
    *p++ = '.';
    if (count <= point)
        *p++ = '0';
    for (int i = point; i < count; i++)
        *p++ = digits[i];
    return (size_t)(p - out);
}

size_t daf__format_float(char text[DAF__NUMBER_TEXT], double value, bool single) {
    char scientific[DAF__NUMBER_TEXT], digits[DAF__NUMBER_TEXT];
    locale_guard g = locale_enter();
    shortest_digits(scientific, value, single);
    locale_leave(g);
    const char *p = scientific, *exponent = strchr(scientific, 'e');
    char *out = text;
    int count = 0;
    if (*p == '-')
        *out++ = *p++;
    for (; p < exponent; p++)
        if (*p != '.')
            digits[count++] = *p;
    while (count > 1 && digits[count - 1] == '0')
        count--;
    int point = value == 0 ? 1 : atoi(exponent + 1) + 1;
    if (point > -4 && point <= 6) {
        out += put_fixed(out, digits, count, point);
    } else {
        out += put_fixed(out, digits, count, 1);
        out += snprintf(out, 8, "e%d", point - 1);
    }
    *out = 0;
    return (size_t)(out - text);
}

static const char *skip_digits(const char *p) {
    while (*p >= '0' && *p <= '9')
        p++;
    return p;
}

/* Follows JSON's grammar of numbers; *integral: neither fraction nor exponent. */
static bool is_json_number(const char *p, bool *integral) {
    *integral = true;
    if (*p == '-')
        p++;
    const char *digits = p;
    p = skip_digits(p);
    if (p == digits || (*digits == '0' && p > digits + 1))
        return false;
    if (*p == '.') {
        *integral = false;
        digits = ++p;
        p = skip_digits(p);
        if (p == digits)
            return false;
    }
    if (*p == 'e' || *p == 'E') {
        *integral = false;
        p++;
        if (*p == '+' || *p == '-')
            p++;
        digits = p;
        p = skip_digits(p);
        if (p == digits)
            return false;
    }
    return *p == 0;
}

static bool parse_non_finite(double *ret, const char *text) {
    bool negative = *text == '-';
    const char *word = text + negative;
    if (strcmp(text, "NaN") == 0)
        *ret = (double)NAN;
    else if (strcmp(word, "Inf") == 0 || strcmp(word, "Infinity") == 0)
        *ret = negative ? -(double)INFINITY : (double)INFINITY;
    else
        return false;
    return true;
}

bool daf__number_fits(const daf_scalar *s) {
    unsigned bits = (unsigned)daf_type_bytes(s->type) * 8;
    if (daf__type_is_signed(s->type))
        return bits == 64 ||
               (s->value.i >= -((int64_t)1 << (bits - 1)) && s->value.i < (int64_t)1 << (bits - 1));
    if (daf__type_is_unsigned(s->type))
        return bits == 64 || s->value.u < (uint64_t)1 << bits;
    if (s->type == DAF_FLOAT32 && isfinite(s->value.f))
        return isfinite((float)s->value.f) != 0;
    return true;
}

static int parse_integral_float(daf_scalar *s, double value) {
    if (daf__type_is_signed(s->type)) {
        if (value < -0x1p63 || value >= 0x1p63)
            return DAF_ERR_LIMIT;
        s->value.i = (int64_t)value;
        return (double)s->value.i == value ? 0 : DAF_ERR_LIMIT;
    }
    if (value < 0 || value >= 0x1p64)
        return DAF_ERR_LIMIT;
    s->value.u = (uint64_t)value;
    return (double)s->value.u == value ? 0 : DAF_ERR_LIMIT;
}

static int parse_integer(daf_scalar *s, const char *text) {
    errno = 0;
    if (daf__type_is_signed(s->type)) {
        s->value.i = strtoll(text, NULL, 10);
    } else {
        s->value.u = strtoull(text, NULL, 10);
        if (*text == '-' && s->value.u != 0)
            return DAF_ERR_LIMIT;
    }
    return errno == ERANGE ? DAF_ERR_LIMIT : 0;
}

int daf__parse_number(daf_scalar *ret, daf_type type, const char *text) {
    daf_scalar s = {.type = type};
    bool integral;
    double value = 0;
    bool finite = is_json_number(text, &integral);
    if (!finite && !parse_non_finite(&value, text))
        return DAF_ERR_CORRUPT;
    if (!finite && !daf__type_is_float(type))
        return DAF_ERR_LIMIT;
    if (finite && !(integral && !daf__type_is_float(type))) {
        locale_guard g = locale_enter();
        value = type == DAF_FLOAT32 ? (double)strtof(text, NULL) : strtod(text, NULL);
        locale_leave(g);
        if (!isfinite(value))
            return DAF_ERR_LIMIT;
    }
    int rc = 0;
    if (daf__type_is_float(type))
        s.value.f = value;
    else if (integral)
        rc = parse_integer(&s, text);
    else
        rc = parse_integral_float(&s, value);
    if (rc == 0 && !daf__number_fits(&s))
        rc = DAF_ERR_LIMIT;
    if (rc == 0)
        *ret = s;
    return rc;
}

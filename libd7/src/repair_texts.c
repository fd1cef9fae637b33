/* Attributes of a repaired file. All are kept, in their order; text that is no UTF-8 is made such, and the JSON records that
 * this project writes about places in the data (photond.gap.N, photond.marker.N) get their new places. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "repair.h"

enum { RECORD_BYTES = 512, NAME_BYTES_MAX = 200 };
static const char gap_prefix[] = "photond.gap.", marker_prefix[] = "photond.marker.";

/* A gap record costs about 200 bytes: more than these would make an index of attributes alone. */
enum { NEW_GAPS_MAX = 65536 };

/* ---- UTF-8 ---- */

char *d7__repair_text(const d7_alloc *a, const char *text, size_t bytes, size_t *ret_bytes) {
    static const char replacement[] = "\xEF\xBF\xBD";
    char *out = d7__new(a, 3 * bytes + 1);
    size_t n = 0;
    if (!out)
        return NULL;
    for (size_t i = 0; i < bytes;) {
        size_t length = common_utf8_sequence(text + i, bytes - i);
        memcpy(out + n, length ? text + i : replacement, length ? length : 3);
        n += length ? length : 3;
        i += length ? length : 1;
    }
    *ret_bytes = n;
    return out;
}

/* ---- JSON objects, one level deep ---- */

typedef struct span {
    const char *at, *end;
} span;

static void skip_space(span *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
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

/* A value of any kind. */
static bool take_value(span *s, span *ret) {
    unsigned depth = 0;
    skip_space(s);
    ret->at = s->at;
    while (s->at < s->end) {
        char c = *s->at;
        span text;
        if (c == '"') {
            if (!take_string(s, &text))
                return false;
            continue;
        }
        if (depth == 0 && (c == ',' || c == '}' || c == ']'))
            break;
        if (c == '{' || c == '[')
            depth++;
        if (c == '}' || c == ']')
            depth--;
        s->at++;
    }
    ret->end = s->at;
    return ret->at < ret->end;
}

static bool is_text(span s, const char *text) {
    return (size_t)(s.end - s.at) == strlen(text) && memcmp(s.at, text, strlen(text)) == 0;
}

/* The value of a member of an object; false where there is none. */
static bool find_member(const d7_attribute *a, const char *name, span *ret) {
    span s = {a->value, a->value + a->value_bytes}, key, value;
    bool there = skip_char(&s, '{');
    while (there && take_string(&s, &key) && skip_char(&s, ':') && take_value(&s, &value)) {
        if (is_text(key, name)) {
            *ret = value;
            return true;
        }
        there = skip_char(&s, ',');
    }
    return false;
}

/* A string member's text, without its quotes. */
static bool find_string(const d7_attribute *a, const char *name, span *ret) {
    span value;
    return find_member(a, name, &value) && take_string(&value, ret);
}

/* A whole non-negative number; *ret is its digits. */
static bool find_number(const d7_attribute *a, const char *name, span *ret, uint64_t *ret_value) {
    uint64_t value = 0;
    if (!find_member(a, name, ret))
        return false;
    const char *at = ret->at;
    for (; at < ret->end && *at >= '0' && *at <= '9'; at++) {
        if (value > (UINT64_MAX - 9) / 10)
            return false;
        value = 10 * value + (uint64_t)(*at - '0');
    }
    if (at == ret->at)
        return false;
    ret->end = at;
    *ret_value = value;
    return true;
}

/* ---- records about places ---- */

/* Is it a record of that kind, and which number has it? */
static bool is_record(const d7_attribute *a, const char *prefix, uint32_t *ret_number) {
    size_t n = strlen(prefix);
    uint32_t number = 0;
    if (a->key_bytes <= n || a->key_bytes > n + 9 || memcmp(a->key, prefix, n) != 0)
        return false;
    for (size_t i = n; i < a->key_bytes; i++) {
        if (a->key[i] < '0' || a->key[i] > '9')
            return false;
        number = 10 * number + (uint32_t)(a->key[i] - '0');
    }
    *ret_number = number;
    return true;
}

/* Which items a record is about; NULL: nobody knows. */
static const d7__taken *taken_meant(const d7__repair_plan *p, const d7_attribute *a) {
    span text;
    if (find_string(a, "dataset", &text)) {
        size_t i = d7__names_find(&p->r->header.names, text.at, (size_t)(text.end - text.at));
        return i == SIZE_MAX ? NULL : &p->takens[p->columns[i].taken];
    }
    if (find_string(a, "group", &text))
        return &p->takens[is_text(text, "tags") ? D7__TAKEN_TAGS : D7__TAKEN_PHOTONS];
    for (size_t i = 0; i < D7__TAKEN_OWN; i++)
        if (p->takens[i].used)
            return &p->takens[i];
    return NULL;
}

/* The record with its item at the new place, in *text; false where it stays as it is. */
static bool rebase(const d7__repair_plan *p, const d7_attribute *a, d7__buffer *text, int *ret_code) {
    uint32_t number;
    uint64_t item;
    span digits;
    *ret_code = 0;
    if (!(is_record(a, gap_prefix, &number) || is_record(a, marker_prefix, &number)) ||
        !find_number(a, "item", &digits, &item))
        return false;
    const d7__taken *t = taken_meant(p, a);
    uint64_t place = t ? d7__taken_map(t, item < t->limit ? item : t->limit) : item;
    if (place == item)
        return false;
    size_t before = (size_t)(digits.at - a->value), after = a->value_bytes - (size_t)(digits.end - a->value);
    text->n = 0;
    if (d7__buffer_reserve(&p->r->alloc, text, a->value_bytes + 24) != 0) {
        *ret_code = D7_ERR_NOMEM;
        return false;
    }
    char *out = (char *)text->data;
    memcpy(out, a->value, before);
    size_t n = before + (size_t)snprintf(out + before, 24, "%" PRIu64, place);
    memcpy(out + n, digits.end, after);
    text->n = n + after;
    return true;
}

/* ---- new gap records ---- */

/* Of which items is this: the part of a record that says so. A name that JSON could not hold as it is gives way to the
 * dataset's number. */
static void describe_taken(const d7__repair_plan *p, size_t taken, char *out, size_t cap) {
    if (taken < D7__TAKEN_OWN) {
        snprintf(out, cap, "\"group\": \"%s\"", taken == D7__TAKEN_TAGS ? "tags" : "photons");
        return;
    }
    const d7__toc_item *item = &p->r->header.datasets[taken - D7__TAKEN_OWN];
    bool plain = item->name_bytes && item->name_bytes <= NAME_BYTES_MAX &&
                 common_utf8_valid(item->name, item->name_bytes);
    for (size_t i = 0; i < item->name_bytes && plain; i++)
        plain = (unsigned char)item->name[i] >= 0x20 && item->name[i] != '"' && item->name[i] != '\\';
    if (plain)
        snprintf(out, cap, "\"dataset\": \"%s\"", item->name);
    else
        snprintf(out, cap, "\"dataset\": %zu", taken - D7__TAKEN_OWN);
}

static int add_gap(const d7__repair_plan *p, d7__attributes *to, size_t taken, const d7__range *range,
                   uint32_t number) {
    char key[32], value[RECORD_BYTES], what[RECORD_BYTES / 2];
    describe_taken(p, taken, what, sizeof what);
    int n = snprintf(value, sizeof value,
                     "{\"item\": %" PRIu64 ", \"count\": %" PRIu64
                     ", \"cause\": \"repair: damaged pages\", \"monotonic\": null, \"utc\": null, %s}",
                     range->from - range->before, range->to - range->from, what);
    d7_attribute a = {.key = key, .value = value, .value_bytes = (size_t)n};
    a.key_bytes = (size_t)snprintf(key, sizeof key, "%s%08" PRIu32, gap_prefix, number);
    return d7__attributes_set(to, &a, NULL);
}

static int add_gaps(const d7__repair_plan *p, d7__attributes *to, uint32_t next) {
    unsigned n = 0;
    for (size_t t = 0; t < p->n_takens; t++)
        for (size_t i = 0; i < p->takens[t].n && n < NEW_GAPS_MAX; i++, n++)
            if (add_gap(p, to, t, &p->takens[t].ranges[i], next++) != 0)
                return D7_ERR_NOMEM;
    return 0;
}

/* ---- all of them ---- */

static int keep_text(const d7__repair_plan *p, const d7_attribute *a, d7__attributes *to) {
    const d7_alloc *alloc = &p->r->alloc;
    if (a->key_bytes && common_utf8_valid(a->key, a->key_bytes) &&
        common_utf8_valid(a->value, a->value_bytes))
        return d7__attributes_set(to, a, NULL);
    d7_attribute fixed = {0};
    char *key = d7__repair_text(alloc, a->key_bytes ? a->key : "unnamed", a->key_bytes ? a->key_bytes : 7,
                                &fixed.key_bytes);
    char *value = d7__repair_text(alloc, a->value, a->value_bytes, &fixed.value_bytes);
    fixed.key = key;
    fixed.value = value;
    int rc = key && value ? d7__attributes_set(to, &fixed, NULL) : D7_ERR_NOMEM;
    d7__release(alloc, key);
    d7__release(alloc, value);
    return rc;
}

int d7__repair_attributes(const d7__repair_plan *p, d7__attributes *to, d7_error *err) {
    d7__buffer text = {0};
    uint32_t next_gap = 0, number;
    int rc = 0;
    for (size_t i = 0; i < p->r->attributes.n && rc == 0; i++) {
        d7_attribute a = p->r->attributes.items[i];
        if (rebase(p, &a, &text, &rc)) {
            a.value = (const char *)text.data;
            a.value_bytes = text.n;
        }
        if (is_record(&a, gap_prefix, &number) && number >= next_gap)
            next_gap = number + 1;
        if (rc == 0)
            rc = keep_text(p, &a, to);
    }
    if (rc == 0)
        rc = add_gaps(p, to, next_gap);
    d7__release(&p->r->alloc, text.data);
    return rc != 0 ? d7__reader_no_memory(p->r, err) : 0;
}

#include "transfer_records.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

static const char gap_prefix[] = "photond.gap.", marker_prefix[] = "photond.marker.",
                  clock_prefix[] = "photond.clock.", cut_key[] = "photond.cut";

static bool begins(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool record_has_item(const char *key) {
    return begins(key, gap_prefix) || begins(key, marker_prefix);
}

/* ---- JSON: only as much as finds a member of an object and leaves the rest of the text alone ---- */

static const char *skip_space(const char *p) {
    return p + strspn(p, " \t\r\n");
}

/* Past a string that begins at p; NULL: it does not end. */
static const char *skip_string(const char *p) {
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\' && !*++p)
            return NULL;
    return *p ? p + 1 : NULL;
}

static const char *skip_value(const char *p) {
    size_t depth = 0;
    do {
        if (*p == '"') {
            p = skip_string(p);
            if (!p)
                return NULL;
            continue;
        }
        if (depth == 0 && !strchr("[{", *p))
            return p + strcspn(p, ",}] \t\r\n");
        depth += *p == '{' || *p == '[';
        depth -= *p == '}' || *p == ']';
        p++;
    } while (depth && *p);
    return depth ? NULL : p;
}

/* The text of a member's value. Returns false where the object has none, or is malformed before it. */
static bool find_member(const char *json, const char *name, const char **ret_at, size_t *ret_n) {
    const char *p = skip_space(json);
    if (*p++ != '{')
        return false;
    for (;;) {
        const char *key = skip_space(p);
        p = *key == '"' ? skip_string(key) : NULL;
        if (!p)
            return false;
        bool wanted = (size_t)(p - key) == strlen(name) + 2 && strncmp(key + 1, name, strlen(name)) == 0;
        p = skip_space(p);
        if (*p != ':')
            return false;
        const char *value = skip_space(p + 1);
        p = *value ? skip_value(value) : NULL;
        if (!p)
            return false;
        if (wanted) {
            *ret_at = value;
            *ret_n = (size_t)(p - value);
            return true;
        }
        p = skip_space(p);
        if (*p++ != ',')
            return false;
    }
}

static bool find_item(const char *json, const char **ret_at, size_t *ret_n, uint64_t *ret_item) {
    char digits[21];
    if (!find_member(json, "item", ret_at, ret_n) || *ret_n == 0 || *ret_n >= sizeof digits)
        return false;
    memcpy(digits, *ret_at, *ret_n);
    digits[*ret_n] = 0;
    return parse_count(digits, ret_item);
}

bool record_item(const char *json, d7_group usual, d7_group *ret_group, uint64_t *ret_item) {
    const char *at;
    size_t n;
    if (!find_item(json, &at, &n, ret_item))
        return false;
    *ret_group = usual;
    if (find_member(json, "dataset", &at, &n)) /* of a dataset on its own, which is never cut */
        return false;
    if (!find_member(json, "group", &at, &n))
        return true;
    bool photons = n == 9 && memcmp(at, "\"photons\"", n) == 0,
         tags = n == 6 && memcmp(at, "\"tags\"", n) == 0;
    *ret_group = photons ? D7_GROUP_PHOTONS : D7_GROUP_TAGS;
    return photons || tags;
}

char *record_with_item(const char *json, uint64_t item) {
    const char *at;
    char *text;
    size_t n;
    uint64_t old;
    if (!find_item(json, &at, &n, &old) || old == item)
        return strdup(json);
    if (asprintf(&text, "%.*s%" PRIu64 "%s", (int)(at - json), json, item, at + n) < 0)
        return NULL;
    return text;
}

/* ---- records ---- */

bool records_map(attribute_list *list, d7_group usual, record_map *map, void *ctx) {
    for (attribute_node *node = list->first, *next; node; node = next) {
        d7_group group;
        uint64_t item;
        next = node->next;
        if (!record_has_item(node->key) || !record_item(node->value, usual, &group, &item))
            continue;
        if (!map(ctx, group, item, &item)) {
            attribute_remove(list, node);
            continue;
        }
        char *text = record_with_item(node->value, item);
        if (!text)
            return false;
        free(node->value);
        node->value = text;
    }
    return true;
}

/* One past the largest number of a kind's keys. */
static uint64_t next_number(const attribute_list *list, const char *prefix) {
    uint64_t next = 0, number;
    for (const attribute_node *node = list->first; node; node = node->next)
        if (begins(node->key, prefix) && parse_count(node->key + strlen(prefix), &number) && number >= next)
            next = number + 1;
    return next;
}

static void numbered_key(const char *prefix, uint64_t number, char *key, size_t cap) {
    snprintf(key, cap, "%s%08" PRIu64, prefix, number);
}

uint64_t records_next_gap(const attribute_list *list) {
    return next_number(list, gap_prefix);
}

bool records_add_gap(attribute_list *list, uint64_t number, d7_group group, uint64_t item, uint64_t count,
                     const char *cause) {
    char key[64], value[256];
    numbered_key(gap_prefix, number, key, sizeof key);
    snprintf(value, sizeof value,
             "{\"group\": \"%s\", \"item\": %" PRIu64 ", \"count\": %" PRIu64
             ", \"cause\": \"%s\", \"monotonic\": null, \"utc\": null}",
             group == D7_GROUP_TAGS ? "tags" : "photons", item, count, cause);
    return attribute_put(list, NULL, key, value);
}

/* ---- a file's place in a recording ---- */

bool records_number(const attribute_list *list, const char *key, uint64_t *ret) {
    const char *value = attribute_value(list, key);
    return value && parse_count(value, ret);
}

/* Adds to a number among the attributes; a new key goes onto the list of what was added. */
static bool place_put(attribute_list *list, const char *key, uint64_t more, char *added, size_t cap) {
    uint64_t base = 0;
    char text[24];
    if (!attribute_find(list, key))
        snprintf(added + strlen(added), cap - strlen(added), "%s%s", *added ? " " : "", key);
    (void)records_number(list, key, &base);
    snprintf(text, sizeof text, "%" PRIu64, base + more);
    return attribute_put(list, NULL, key, text);
}

split_mark records_mark(const attribute_list *list) {
    split_mark mark = {0};
    const char *text = attribute_value(list, cut_key);
    char *end;
    if (!text || !isdigit((unsigned char)*text))
        return mark;
    uint64_t number = strtoull(text, &end, 10);
    if (*end++ != '/')
        return mark;
    mark.number = number;
    mark.of = isdigit((unsigned char)*end) ? strtoull(end, NULL, 10) : 0;
    return mark;
}

static void mark_text(const split_mark *mark, char *text, size_t cap) {
    if (mark->of)
        snprintf(text, cap, "%" PRIu64 "/%" PRIu64, mark->number, mark->of);
    else
        snprintf(text, cap, "%" PRIu64 "/more", mark->number);
}

bool records_begin_cut(attribute_list *list, const record_place *place) {
    char added[160] = "";
    const char *old = attribute_value(list, cut_key);
    split_mark mark = {place->part + 1, place->last ? place->part + 1 : 0};
    if (place->has_part)
        mark_text(&mark, added, sizeof added);
    if ((place->has_part && !place_put(list, "photond.part", place->part, added, sizeof added)) ||
        (place->has_photons &&
         !place_put(list, "photond.first_photon", place->photon, added, sizeof added)) ||
        (place->has_ms && !place_put(list, "photond.first_ms", place->ms, added, sizeof added)) ||
        (place->has_tags && !place_put(list, "photond.first_tag", place->tag, added, sizeof added)))
        return false;
    char *text;
    if (asprintf(&text, "%s%s%s", added, old ? "|" : "", old ? old : "") < 0)
        return false;
    bool good = attribute_put(list, NULL, cut_key, text);
    free(text);
    return good;
}

/* Calls on each of the keys in a cut's list, but not on the mark; false when one call is. */
static bool each_added(attribute_list *list, const char *added, size_t n,
                       bool (*call)(attribute_list *, const char *)) {
    char key[128];
    while (n) {
        size_t word = strcspn(added, " |");
        word = word < n ? word : n;
        snprintf(key, sizeof key, "%.*s", (int)word, added);
        if (word && !isdigit((unsigned char)*key) && !call(list, key))
            return false;
        word += word < n;
        added += word;
        n -= word;
    }
    return true;
}

static bool is_zero(attribute_list *list, const char *key) {
    uint64_t value = 0;
    return records_number(list, key, &value) && value == 0;
}

static bool take_out(attribute_list *list, const char *key) {
    attribute_node *node = attribute_find(list, key);
    if (node)
        attribute_remove(list, node);
    return true;
}

/* The first part's number, and whether more follow the last. */
static bool set_mark(attribute_list *list, const split_mark *mark) {
    char text[64], *cut;
    const char *value = attribute_value(list, cut_key);
    mark_text(mark, text, sizeof text);
    if (asprintf(&cut, "%s%s", text, value + strcspn(value, " |")) < 0)
        return false;
    bool good = attribute_put(list, NULL, cut_key, cut);
    free(cut);
    return good;
}

bool records_end_cut(attribute_list *list, const split_mark *last) {
    const char *value = attribute_value(list, cut_key);
    split_mark mark = records_mark(list);
    if (!value)
        return true;
    size_t n = strcspn(value, "|");
    bool whole = mark.number == 0 || (mark.number == 1 && last->of);
    if (!whole || !each_added(list, value, n, is_zero))
        return mark.number == 0 || set_mark(list, &(split_mark){mark.number, last->of});
    char *rest = strdup(value + n + (value[n] == '|')), *added = strndup(value, n);
    bool good = rest && added;
    if (good) {
        each_added(list, added, n, take_out);
        good = value[n] ? attribute_put(list, NULL, cut_key, rest) : take_out(list, cut_key);
    }
    free(rest);
    free(added);
    return good;
}

/* ---- merging ---- */

/* What the last part says is true of the whole. */
static bool last_counts(const char *key) {
    return strcmp(key, "photond.sequence") == 0 || strcmp(key, "photond.lost_before") == 0;
}

/* What tells of the part, not of the whole. */
static bool of_part(const char *key) {
    return strcmp(key, "photond.part") == 0 || begins(key, "photond.first_") || strcmp(key, cut_key) == 0;
}

static bool clashes(const attribute_list *list, const attribute_list *part, const char *prefix) {
    for (const attribute_node *node = part->first; node; node = node->next) {
        const char *known = begins(node->key, prefix) ? attribute_value(list, node->key) : NULL;
        if (known && strcmp(known, node->value) != 0)
            return true;
    }
    return false;
}

/* Where the parts number their records anew, those of the later part go on after those of the earlier. */
static bool renumber(const attribute_list *list, attribute_list *part, const char *prefix) {
    if (!clashes(list, part, prefix))
        return true;
    uint64_t number = next_number(list, prefix), own = next_number(part, prefix);
    number = number > own ? number : own;
    for (attribute_node *node = part->first, *next; node; node = next) {
        char key[64];
        next = node->next;
        const char *known = attribute_value(list, node->key);
        if (!begins(node->key, prefix) || (known && strcmp(known, node->value) == 0))
            continue;
        numbered_key(prefix, number++, key, sizeof key);
        if (!attribute_put(part, node, key, node->value))
            return false;
        attribute_remove(part, node);
    }
    return true;
}

bool records_merge(attribute_list *list, attribute_list *part, void (*differs)(void *ctx, const char *key),
                   void *ctx) {
    if (!renumber(list, part, gap_prefix) || !renumber(list, part, marker_prefix) ||
        !renumber(list, part, clock_prefix))
        return false;
    attribute_node *before = NULL;
    for (const attribute_node *node = part->last; node; node = node->previous) {
        attribute_node *known = attribute_find(list, node->key);
        if (!known && of_part(node->key))
            continue;
        if (!known || last_counts(node->key)) {
            if (!attribute_put(list, before, node->key, node->value))
                return false;
            known = attribute_find(list, node->key);
        } else if (!of_part(node->key) && strcmp(known->value, node->value) != 0) {
            differs(ctx, node->key);
        }
        before = known;
    }
    return true;
}

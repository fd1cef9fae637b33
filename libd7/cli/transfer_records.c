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
    return common_record_key(key, strlen(key));
}

/* The group that a dataset's items count in; `own` for one that is in none. */
static d7_group group_of_dataset(const common_record *record, d7_group own) {
    char name[256];
    if (!record->dataset || record->dataset_bytes >= sizeof name)
        return own;
    memcpy(name, record->dataset, record->dataset_bytes);
    name[record->dataset_bytes] = 0;
    d7_group group = d7_group_of(name);
    return group == D7_GROUP_NONE ? own : group;
}

static bool is_own(const common_record *record) {
    return record->of == COMMON_RECORD_DATASET && group_of_dataset(record, D7_GROUP_NONE) == D7_GROUP_NONE;
}

static d7_group record_group(const common_record *record, d7_group usual, d7_group own) {
    switch (record->of) {
    case COMMON_RECORD_PHOTONS:
        return D7_GROUP_PHOTONS;
    case COMMON_RECORD_TAGS:
        return D7_GROUP_TAGS;
    case COMMON_RECORD_DATASET:
        return group_of_dataset(record, own);
    case COMMON_RECORD_UNKNOWN:
        return D7_GROUP_NONE;
    default:
        return usual;
    }
}

/* The same text with another item, in new memory; NULL: out of memory. */
static char *with_item(const char *json, const common_record *record, uint64_t item) {
    char *text;
    if (item == record->item)
        return strdup(json);
    if (asprintf(&text, "%.*s%" PRIu64 "%s", (int)record->item_at, json, item,
                 json + record->item_at + record->item_bytes) < 0)
        return NULL;
    return text;
}

/* ---- records ---- */

bool records_map(attribute_list *list, d7_group usual, d7_group own, record_map *map, void *ctx) {
    for (attribute_node *node = list->first, *next; node; node = next) {
        common_record record;
        uint64_t item;
        next = node->next;
        if (!record_has_item(node->key) || !common_record_read(node->value, strlen(node->value), &record))
            continue;
        d7_group group = record_group(&record, usual, own);
        item = record.item;
        if (group == D7_GROUP_NONE && !is_own(&record))
            continue;
        if (!map(ctx, group, is_own(&record) ? &record : NULL, item, &item)) {
            attribute_remove(list, node);
            continue;
        }
        char *text = with_item(node->value, &record, item);
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
        if (common_record_numbered(node->key, strlen(node->key), prefix, &number) && number >= next)
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
    uint64_t number = strtoull(text, &end, 10), last = number;
    if (*end == '-' && isdigit((unsigned char)end[1]))
        last = strtoull(end + 1, &end, 10);
    if (*end++ != '/' || last < number)
        return mark;
    mark.number = number;
    mark.of = isdigit((unsigned char)*end) ? strtoull(end, NULL, 10) : 0;
    mark.last = mark.of ? mark.of : last;
    return mark;
}

static void mark_text(const split_mark *mark, char *text, size_t cap) {
    if (mark->of)
        snprintf(text, cap, "%" PRIu64 "/%" PRIu64, mark->number, mark->of);
    else if (mark->last > mark->number)
        snprintf(text, cap, "%" PRIu64 "-%" PRIu64 "/more", mark->number, mark->last);
    else
        snprintf(text, cap, "%" PRIu64 "/more", mark->number);
}

bool records_begin_cut(attribute_list *list, const record_place *place) {
    char added[160] = "";
    const char *old = attribute_value(list, cut_key);
    split_mark mark = {place->part + 1, place->part + 1, place->last ? place->part + 1 : 0};
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
        return mark.number == 0 || set_mark(list, &(split_mark){mark.number, last->last, last->of});
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

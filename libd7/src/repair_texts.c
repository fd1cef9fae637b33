/* Attributes of a repaired file. All are kept, in their order; text that is no UTF-8 is made such, and the JSON records that
 * this project writes about places in the data (photond.gap.N, photond.marker.N) get their new places. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/record.h"
#include "base/utf8.h"
#include "repair.h"

enum { RECORD_BYTES = 512, NAME_BYTES_MAX = 200 };
static const char gap_prefix[] = "photond.gap.";

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

/* ---- records about places ---- */

static const d7__taken *taken_of_dataset(const d7__repair_plan *p, const common_record *record) {
    size_t i = record->dataset_number;
    if (record->dataset)
        i = d7__names_find(&p->r->header.names, record->dataset, record->dataset_bytes);
    return i < p->r->header.n_datasets ? &p->takens[p->columns[i].taken] : NULL;
}

/* What is taken out of the items that a record is about; NULL: nobody knows. */
static const d7__taken *taken_meant(const d7__repair_plan *p, const common_record *record) {
    switch (record->of) {
    case COMMON_RECORD_PHOTONS:
        return &p->takens[D7__TAKEN_PHOTONS];
    case COMMON_RECORD_TAGS:
        return &p->takens[D7__TAKEN_TAGS];
    case COMMON_RECORD_DATASET:
        return taken_of_dataset(p, record);
    case COMMON_RECORD_UNKNOWN:
        return NULL;
    default:
        return p->takens[D7__TAKEN_PHOTONS].used ? &p->takens[D7__TAKEN_PHOTONS]
               : p->takens[D7__TAKEN_TAGS].used  ? &p->takens[D7__TAKEN_TAGS]
                                                 : NULL;
    }
}

/* The record with its item at the new place, in *text; false where it stays as it is. */
static bool rebase(const d7__repair_plan *p, const d7_attribute *a, d7__buffer *text, int *ret_code) {
    common_record record;
    *ret_code = 0;
    if (!common_record_key(a->key, a->key_bytes) || !common_record_read(a->value, a->value_bytes, &record))
        return false;
    const d7__taken *t = taken_meant(p, &record);
    uint64_t item = record.item, place = t ? d7__taken_map(t, item < t->limit ? item : t->limit) : item;
    if (place == item)
        return false;
    size_t before = record.item_at, rest = before + record.item_bytes;
    text->n = 0;
    if (d7__buffer_reserve(&p->r->alloc, text, a->value_bytes + 24) != 0) {
        *ret_code = D7_ERR_NOMEM;
        return false;
    }
    char *out = (char *)text->data;
    memcpy(out, a->value, before);
    size_t n = before + (size_t)snprintf(out + before, 24, "%" PRIu64, place);
    memcpy(out + n, a->value + rest, a->value_bytes - rest);
    text->n = n + a->value_bytes - rest;
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
                   uint64_t number) {
    char key[40], value[RECORD_BYTES], what[RECORD_BYTES / 2];
    describe_taken(p, taken, what, sizeof what);
    int n = snprintf(value, sizeof value,
                     "{\"item\": %" PRIu64 ", \"count\": %" PRIu64
                     ", \"cause\": \"repair: damaged pages\", \"monotonic\": null, \"utc\": null, %s}",
                     range->from - range->before, range->to - range->from, what);
    d7_attribute a = {.key = key, .value = value, .value_bytes = (size_t)n};
    a.key_bytes = (size_t)snprintf(key, sizeof key, "%s%08" PRIu64, gap_prefix, number);
    return d7__attributes_set(to, &a, NULL);
}

static int add_gaps(const d7__repair_plan *p, d7__attributes *to, uint64_t next) {
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
    uint64_t next_gap = 0, number;
    int rc = 0;
    for (size_t i = 0; i < p->r->attributes.n && rc == 0; i++) {
        d7_attribute a = p->r->attributes.items[i];
        if (rebase(p, &a, &text, &rc)) {
            a.value = (const char *)text.data;
            a.value_bytes = text.n;
        }
        if (common_record_numbered(a.key, a.key_bytes, gap_prefix, &number) && number >= next_gap)
            next_gap = number + 1;
        if (rc == 0)
            rc = keep_text(p, &a, to);
    }
    if (rc == 0)
        rc = add_gaps(p, to, next_gap);
    d7__release(&p->r->alloc, text.data);
    return rc != 0 ? d7__reader_no_memory(p->r, err) : 0;
}

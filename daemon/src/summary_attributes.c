#include <stdlib.h>
#include <string.h>

#include "summary_private.h"
#include "text.h"

/* A scalar NAME is the file NAME.json; the longest suffix of any property is .nzind.zip. */
enum { SCALAR_NAME_BYTES = 244 };

static bool attributes_ends_in(const char *text, const char *suffix) {
    size_t n = strlen(text), m = strlen(suffix);
    return n >= m && strcmp(text + n - m, suffix) == 0;
}

static bool attributes_name_ok(const char *name) {
    static const char *const reserved[] = {".nzind", ".nzval", ".nztxt", ".colptr", ".rowval"};
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return false;
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
        if (attributes_ends_in(name, reserved[i]))
            return false;
    for (const char *p = name; *p;) {
        size_t bytes = pd_text_character(p);
        if (bytes == 0)
            return false;
        p += bytes;
    }
    return true;
}

bool pd_summary_scalar_name(char *to, size_t cap, const char *prefix, const char *name) {
    size_t n_prefix = strlen(prefix);
    if (name[0] == '/')
        name++;
    size_t n = strlen(name);
    if (n == 0 || n_prefix + n > SCALAR_NAME_BYTES || n_prefix + n + 1 > cap)
        return false;
    memcpy(to, prefix, n_prefix);
    memcpy(to + n_prefix, name, n + 1);
    for (char *p = to + n_prefix; *p; p++)
        if (*p == '/')
            *p = '.';
    return attributes_name_ok(to);
}

static void attributes_entry_free(struct pd_summary_attribute_entry *e) {
    free(e->key);
    free(e->value);
    free(e->scalar);
}

static struct pd_summary_attribute_entry *attributes_find(const pd_summary_attributes *list,
                                                          const char *key) {
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->entries[i].key, key) == 0)
            return &list->entries[i];
    return NULL;
}

static bool attributes_scalar_taken(const pd_summary_attributes *list, const char *scalar) {
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->entries[i].scalar, scalar) == 0)
            return true;
    return false;
}

static int attributes_append(pd_summary_attributes *list, const char *key, const char *value,
                             const char *scalar) {
    if (list->n == list->cap) {
        size_t cap = list->cap ? 2 * list->cap : 16;
        void *entries = realloc(list->entries, cap * sizeof *list->entries);
        if (!entries)
            return -1;
        list->entries = entries;
        list->cap = cap;
    }
    struct pd_summary_attribute_entry e = {strdup(key), strdup(value), strdup(scalar)};
    if (!e.key || !e.value || !e.scalar) {
        attributes_entry_free(&e);
        return -1;
    }
    list->entries[list->n++] = e;
    return 0;
}

int pd_summary_attributes_set(pd_summary_attributes *list, const char *key, const char *value) {
    char scalar[SCALAR_NAME_BYTES + 1];
    struct pd_summary_attribute_entry *there = attributes_find(list, key);
    bool fits = strlen(value) <= PD_SUMMARY_VALUE_MAX;
    if (there && fits) {
        char *copy = strdup(value);
        if (!copy)
            return -1;
        free(there->value);
        there->value = copy;
        return 0;
    }
    if (there) { /* better no value than an old one */
        attributes_entry_free(there);
        *there = list->entries[--list->n];
    }
    if (!there && fits && list->n < PD_SUMMARY_ATTRIBUTES_MAX &&
        pd_summary_scalar_name(scalar, sizeof scalar, "", key) && !attributes_scalar_taken(list, scalar))
        return attributes_append(list, key, value, scalar);
    list->n_skipped++;
    return 0;
}

const char *pd_summary_attributes_get(const pd_summary_attributes *list, const char *key) {
    const struct pd_summary_attribute_entry *e = attributes_find(list, key);
    return e ? e->value : NULL;
}

size_t pd_summary_attributes_bytes(const pd_summary_attributes *list) {
    size_t bytes = list->cap * sizeof *list->entries;
    for (size_t i = 0; i < list->n; i++)
        bytes += strlen(list->entries[i].key) + strlen(list->entries[i].value) +
                 strlen(list->entries[i].scalar) + 3;
    return bytes;
}

void pd_summary_attributes_clear(pd_summary_attributes *list) {
    for (size_t i = 0; i < list->n; i++)
        attributes_entry_free(&list->entries[i]);
    free(list->entries);
    memset(list, 0, sizeof *list);
}

static bool attributes_among(const pd_snapshot *snapshot, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (snapshot->properties[i].kind == PD_SCALAR && strcmp(snapshot->properties[i].name, name) == 0)
            return true;
    return false;
}

int pd_summary_attributes_freeze(const pd_summary_attributes *list, pd_snapshot *snapshot) {
    size_t n_ours = snapshot->n_properties;
    uint64_t n_skipped = list->n_skipped;
    for (size_t i = 0; i < list->n; i++) {
        const struct pd_summary_attribute_entry *e = &list->entries[i];
        if (strcmp(e->scalar, "attributes_skipped") == 0 || attributes_among(snapshot, n_ours, e->scalar))
            n_skipped++;
        else if (pd_snapshot_string(snapshot, e->scalar, e->value) != 0)
            return -1;
    }
    return pd_snapshot_uint64(snapshot, "attributes_skipped", n_skipped);
}

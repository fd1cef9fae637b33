#include "kept_attributes.h"

#include <stdlib.h>
#include <string.h>

#include "attribute_sizes.h"

enum { KEPT_FIRST = 32 };

/* Where the key is, or where it would go. */
static uint32_t *kept_place(const pd_kept_attributes *kept, const char *key) {
    size_t i = (size_t)pd_attribute_key_hash(key) & (kept->n_places - 1);
    while (kept->places[i] && strcmp(kept->list[kept->places[i] - 1].key, key) != 0)
        i = (i + 1) & (kept->n_places - 1);
    return &kept->places[i];
}

/* Room for one more, of which there are at most 2^32 - 1. */
static int kept_grow(pd_kept_attributes *kept) {
    if (kept->n < kept->cap)
        return 0;
    size_t cap = kept->cap ? 2 * kept->cap : KEPT_FIRST;
    pd_attribute *list = realloc(kept->list, cap * sizeof *list);
    if (!list)
        return -1;
    kept->list = list;
    uint32_t *places = calloc(2 * cap, sizeof *places);
    if (!places)
        return -1;
    free(kept->places);
    kept->places = places;
    kept->n_places = 2 * cap;
    kept->cap = cap;
    for (size_t i = 0; i < kept->n; i++)
        *kept_place(kept, list[i].key) = (uint32_t)(i + 1);
    return 0;
}

static int kept_copy(const pd_attribute *from, pd_attribute *ret) {
    size_t key_bytes = strlen(from->key) + 1, value_bytes = strlen(from->value) + 1;
    char *text = malloc(key_bytes + value_bytes);
    if (!text)
        return -1;
    memcpy(text, from->key, key_bytes);
    memcpy(text + key_bytes, from->value, value_bytes);
    *ret = (pd_attribute){text, text + key_bytes};
    return 0;
}

/* Room for one more. */
static int changes_grow(pd_kept_attributes *kept) {
    if (kept->first_change > 0 && kept->first_change >= kept->n_changes) {
        memmove(kept->changes, kept->changes + kept->first_change, kept->n_changes * sizeof *kept->changes);
        kept->first_change = 0;
    }
    if (kept->first_change + kept->n_changes < kept->cap_changes)
        return 0;
    size_t cap = kept->cap_changes ? 2 * kept->cap_changes : KEPT_FIRST;
    pd_kept_change *changes = realloc(kept->changes, cap * sizeof *changes);
    if (!changes)
        return -1;
    kept->changes = changes;
    kept->cap_changes = cap;
    return 0;
}

static uint64_t change_bytes(const pd_kept_change *change) {
    const pd_attribute *before = &change->before;
    return sizeof *change + (before->key ? strlen(before->key) + strlen(before->value) : 0);
}

static void kept_note(pd_kept_attributes *kept, uint64_t sequence, uint32_t place, pd_attribute before) {
    pd_kept_change *change = &kept->changes[kept->first_change + kept->n_changes++];
    *change = (pd_kept_change){sequence, place, before};
    kept->change_bytes += change_bytes(change);
}

static int kept_set_one(pd_kept_attributes *kept, uint64_t sequence, const pd_attribute *attribute) {
    pd_attribute copy, before = {NULL, NULL};
    if (kept_grow(kept) != 0 || (sequence && changes_grow(kept) != 0) || kept_copy(attribute, &copy) != 0)
        return -1;
    uint32_t *place = kept_place(kept, attribute->key);
    if (*place) {
        before = kept->list[*place - 1];
    } else {
        kept->n++;
        *place = (uint32_t)kept->n;
    }
    kept->list[*place - 1] = copy;
    if (sequence)
        kept_note(kept, sequence, *place - 1, before);
    else
        free((char *)(uintptr_t)before.key);
    return 0;
}

int pd_kept_attributes_set(pd_kept_attributes *kept, uint64_t sequence, const pd_attribute *attributes,
                           size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strncmp(attributes[i].key, "photond.", 8) != 0 &&
            kept_set_one(kept, sequence, &attributes[i]) != 0)
            return -1;
    return 0;
}

void pd_kept_attributes_settle(pd_kept_attributes *kept, uint64_t sequence) {
    while (kept->n_changes > 0 && kept->changes[kept->first_change].sequence <= sequence) {
        pd_kept_change *change = &kept->changes[kept->first_change++];
        kept->change_bytes -= change_bytes(change);
        free((char *)(uintptr_t)change->before.key);
        kept->n_changes--;
    }
}

/* A key that is new is the last of the list, and none that came later is in the way of finding the others. */
void pd_kept_attributes_take_back(pd_kept_attributes *kept) {
    while (kept->n_changes > 0) {
        pd_kept_change *change = &kept->changes[kept->first_change + --kept->n_changes];
        pd_attribute *now = &kept->list[change->place];
        kept->change_bytes -= change_bytes(change);
        if (!change->before.key) {
            *kept_place(kept, now->key) = 0;
            kept->n--;
        }
        free((char *)(uintptr_t)now->key);
        *now = change->before;
    }
}

void pd_kept_attributes_free(pd_kept_attributes *kept) {
    pd_kept_attributes_settle(kept, UINT64_MAX);
    for (size_t i = 0; i < kept->n; i++)
        free((char *)(uintptr_t)kept->list[i].key);
    free(kept->list);
    free(kept->places);
    free(kept->changes);
    *kept = (pd_kept_attributes){0};
}

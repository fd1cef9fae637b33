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

static int kept_set_one(pd_kept_attributes *kept, const pd_attribute *attribute) {
    pd_attribute copy;
    if (kept_grow(kept) != 0 || kept_copy(attribute, &copy) != 0)
        return -1;
    uint32_t *place = kept_place(kept, attribute->key);
    if (*place) {
        free((char *)(uintptr_t)kept->list[*place - 1].key);
    } else {
        kept->n++;
        *place = (uint32_t)kept->n;
    }
    kept->list[*place - 1] = copy;
    return 0;
}

int pd_kept_attributes_set(pd_kept_attributes *kept, const pd_attribute *attributes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strncmp(attributes[i].key, "photond.", 8) != 0 && kept_set_one(kept, &attributes[i]) != 0)
            return -1;
    return 0;
}

void pd_kept_attributes_free(pd_kept_attributes *kept) {
    for (size_t i = 0; i < kept->n; i++)
        free((char *)(uintptr_t)kept->list[i].key);
    free(kept->list);
    free(kept->places);
    *kept = (pd_kept_attributes){0};
}

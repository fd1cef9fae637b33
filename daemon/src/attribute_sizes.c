#include "attribute_sizes.h"

#include <stdlib.h>
#include <string.h>

enum { SIZES_CAP_FIRST = 64 };

static uint64_t attribute_bytes(const pd_attribute *attribute) {
    return strlen(attribute->key) + strlen(attribute->value) + PD_ATTRIBUTE_OVERHEAD;
}

uint64_t pd_attributes_bytes(const pd_attribute *attributes, size_t n) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += attribute_bytes(&attributes[i]);
    return bytes;
}

/* FNV-1a. */
uint64_t pd_attribute_key_hash(const char *key) {
    uint64_t hash = 14695981039346656037u;
    for (; *key; key++)
        hash = (hash ^ (uint8_t)*key) * 1099511628211u;
    return hash ? hash : 1;
}

/* Where the hash is, or where it would go. */
static pd_attribute_size *sizes_place(pd_attribute_size *items, size_t cap, uint64_t hash) {
    size_t i = (size_t)(hash & (cap - 1));
    while (items[i].hash && items[i].hash != hash)
        i = (i + 1) & (cap - 1);
    return &items[i];
}

static int sizes_grow(pd_attribute_sizes *sizes) {
    if (4 * (sizes->n + 1) <= 3 * sizes->cap)
        return 0;
    size_t cap = sizes->cap ? 2 * sizes->cap : SIZES_CAP_FIRST;
    pd_attribute_size *items = calloc(cap, sizeof *items);
    if (!items)
        return -1;
    for (size_t i = 0; i < sizes->cap; i++)
        if (sizes->items[i].hash)
            *sizes_place(items, cap, sizes->items[i].hash) = sizes->items[i];
    free(sizes->items);
    sizes->items = items;
    sizes->cap = cap;
    return 0;
}

static int sizes_set_one(pd_attribute_sizes *sizes, const pd_attribute *attribute, uint64_t most) {
    if (sizes_grow(sizes) != 0)
        return -1;
    uint64_t hash = pd_attribute_key_hash(attribute->key), bytes = attribute_bytes(attribute);
    pd_attribute_size *at = sizes_place(sizes->items, sizes->cap, hash);
    if (sizes->bytes - at->bytes + bytes > most)
        return -1;
    sizes->n += at->hash == 0;
    sizes->bytes += bytes - at->bytes;
    *at = (pd_attribute_size){hash, bytes};
    return 0;
}

int pd_attribute_sizes_set(pd_attribute_sizes *sizes, const pd_attribute *attributes, size_t n,
                           uint64_t most) {
    for (size_t i = 0; i < n; i++)
        if (sizes_set_one(sizes, &attributes[i], most) != 0)
            return -1;
    return 0;
}

void pd_attribute_sizes_free(pd_attribute_sizes *sizes) {
    free(sizes->items);
    *sizes = (pd_attribute_sizes){0};
}

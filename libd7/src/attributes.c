#include "attributes.h"

#include <string.h>

void d7__attributes_free(d7__attributes *a) {
    if (!a->alloc)
        return;
    for (size_t i = 0; i < a->n; i++) {
        d7__release(a->alloc, (void *)(uintptr_t)a->items[i].key);
        d7__release(a->alloc, (void *)(uintptr_t)a->items[i].value);
    }
    d7__release(a->alloc, a->items);
    d7__release(a->alloc, a->slots);
    *a = (d7__attributes){.alloc = a->alloc};
}

/* FNV-1a. */
static size_t attributes_hash(const char *key, size_t bytes) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ (uint8_t)key[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

/* The slot of that key, or the free one where it would go. */
static size_t attributes_slot(const d7__attributes *a, const char *key, size_t bytes) {
    size_t i = attributes_hash(key, bytes) & (a->n_slots - 1);
    for (; a->slots[i]; i = (i + 1) & (a->n_slots - 1)) {
        const d7_attribute *have = &a->items[a->slots[i] - 1];
        if (have->key_bytes == bytes && memcmp(have->key, key, bytes) == 0)
            break;
    }
    return i;
}

/* Keeps the table at most half full. */
static int attributes_grow_slots(d7__attributes *a) {
    if (a->n_slots >= 2 * (a->n + 1))
        return 0;
    size_t n_slots = a->n_slots ? 2 * a->n_slots : 32;
    uint32_t *slots = d7__new(a->alloc, n_slots * sizeof *slots);
    if (!slots)
        return D7_ERR_NOMEM;
    d7__release(a->alloc, a->slots);
    a->slots = slots;
    a->n_slots = n_slots;
    for (size_t i = 0; i < a->n; i++)
        slots[attributes_slot(a, a->items[i].key, a->items[i].key_bytes)] = (uint32_t)(i + 1);
    return 0;
}

static char *attributes_copy(const d7__attributes *a, const char *text, size_t bytes) {
    char *copy = a->alloc->resize(a->alloc->ctx, NULL, bytes + 1);
    if (copy) {
        if (bytes)
            memcpy(copy, text, bytes);
        copy[bytes] = '\0';
    }
    return copy;
}

int d7__attributes_set(d7__attributes *a, const d7_attribute *attribute, size_t *ret_index) {
    if (d7__grow(a->alloc, &a->items, &a->cap, a->n + 1, sizeof *a->items) != 0 ||
        attributes_grow_slots(a) != 0)
        return D7_ERR_NOMEM;
    char *value = attributes_copy(a, attribute->value, attribute->value_bytes);
    if (!value)
        return D7_ERR_NOMEM;
    size_t slot = attributes_slot(a, attribute->key, attribute->key_bytes);
    if (a->slots[slot] == 0) {
        char *key = attributes_copy(a, attribute->key, attribute->key_bytes);
        if (!key) {
            d7__release(a->alloc, value);
            return D7_ERR_NOMEM;
        }
        a->items[a->n] = (d7_attribute){.key = key, .key_bytes = attribute->key_bytes};
        a->slots[slot] = (uint32_t)++a->n;
    }
    d7_attribute *item = &a->items[a->slots[slot] - 1];
    d7__release(a->alloc, (void *)(uintptr_t)item->value);
    item->value = value;
    item->value_bytes = attribute->value_bytes;
    if (ret_index)
        *ret_index = a->slots[slot] - 1;
    return 0;
}

size_t d7__attributes_find(const d7__attributes *a, const char *key, size_t key_bytes) {
    if (a->n == 0)
        return SIZE_MAX;
    size_t slot = attributes_slot(a, key, key_bytes);
    return a->slots[slot] ? a->slots[slot] - 1 : SIZE_MAX;
}

const d7_attribute d7__marker = {
    .key = D7_MARKER_KEY, .value = "1", .key_bytes = sizeof D7_MARKER_KEY - 1, .value_bytes = 1};

bool d7__is_marker(const d7_attribute *a) {
    return a->key_bytes == d7__marker.key_bytes && memcmp(a->key, d7__marker.key, a->key_bytes) == 0;
}

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
    d7__names_free(a->alloc, &a->keys);
    *a = (d7__attributes){.alloc = a->alloc};
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

static int attributes_add_key(d7__attributes *a, const d7_attribute *attribute) {
    char *key = attributes_copy(a, attribute->key, attribute->key_bytes);
    if (!key)
        return D7_ERR_NOMEM;
    d7__names_add(&a->keys, key, attribute->key_bytes, (uint32_t)a->n);
    a->items[a->n++] = (d7_attribute){.key = key, .key_bytes = attribute->key_bytes};
    return 0;
}

int d7__attributes_set(d7__attributes *a, const d7_attribute *attribute, size_t *ret_index) {
    if (d7__grow(a->alloc, &a->items, &a->cap, a->n + 1, sizeof *a->items) != 0 ||
        d7__names_reserve(a->alloc, &a->keys) != 0)
        return D7_ERR_NOMEM;
    char *value = attributes_copy(a, attribute->value, attribute->value_bytes);
    if (!value)
        return D7_ERR_NOMEM;
    size_t place = d7__attributes_find(a, attribute->key, attribute->key_bytes);
    if (place == SIZE_MAX) {
        place = a->n;
        if (attributes_add_key(a, attribute) != 0) {
            d7__release(a->alloc, value);
            return D7_ERR_NOMEM;
        }
    }
    d7_attribute *item = &a->items[place];
    d7__release(a->alloc, (void *)(uintptr_t)item->value);
    item->value = value;
    item->value_bytes = attribute->value_bytes;
    if (ret_index)
        *ret_index = place;
    return 0;
}

size_t d7__attributes_find(const d7__attributes *a, const char *key, size_t key_bytes) {
    return d7__names_find(&a->keys, key, key_bytes);
}

const d7_attribute d7__marker = {
    .key = D7_MARKER_KEY, .value = "1", .key_bytes = sizeof D7_MARKER_KEY - 1, .value_bytes = 1};

bool d7__is_marker(const d7_attribute *a) {
    return a->key_bytes == d7__marker.key_bytes && memcmp(a->key, d7__marker.key, a->key_bytes) == 0;
}

#include "names.h"

#include <string.h>

/* FNV-1a. */
static uint32_t names_hash(const char *text, size_t bytes) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ (uint8_t)text[i]) * 1099511628211u;
    return (uint32_t)(h ^ h >> 32);
}

/* The slot of that text, or the free one where it would go. */
static d7__name_slot *names_slot(const d7__names *names, const char *text, size_t bytes, uint32_t hash) {
    for (size_t i = hash;; i++) {
        d7__name_slot *slot = &names->slots[i & (names->n_slots - 1)];
        if (!slot->text)
            return slot;
        if (slot->hash == hash && slot->bytes == bytes && memcmp(slot->text, text, bytes) == 0)
            return slot;
    }
}

void d7__names_free(const d7_alloc *a, d7__names *names) {
    d7__release(a, names->slots);
    *names = (d7__names){0};
}

int d7__names_reserve(const d7_alloc *a, d7__names *names) {
    if (names->n_slots >= 2 * (names->n + 1))
        return 0;
    d7__names larger = {.n_slots = names->n_slots ? 2 * names->n_slots : 32};
    larger.slots = d7__new(a, larger.n_slots * sizeof *larger.slots);
    if (!larger.slots)
        return D7_ERR_NOMEM;
    for (size_t i = 0; i < names->n_slots; i++) {
        const d7__name_slot *slot = &names->slots[i];
        if (slot->text)
            *names_slot(&larger, slot->text, slot->bytes, slot->hash) = *slot;
    }
    larger.n = names->n;
    d7__names_free(a, names);
    *names = larger;
    return 0;
}

void d7__names_add(d7__names *names, const char *text, size_t bytes, uint32_t place) {
    uint32_t hash = names_hash(text, bytes);
    *names_slot(names, text, bytes, hash) = (d7__name_slot){text, bytes, hash, place};
    names->n++;
}

size_t d7__names_find(const d7__names *names, const char *text, size_t bytes) {
    if (names->n == 0)
        return SIZE_MAX;
    const d7__name_slot *slot = names_slot(names, text, bytes, names_hash(text, bytes));
    return slot->text ? slot->place : SIZE_MAX;
}

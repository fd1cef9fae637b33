/* A hash table from texts to places in a caller's array. */
#ifndef D7_SRC_NAMES_H
#define D7_SRC_NAMES_H

#include "alloc.h"

typedef struct d7__name_slot {
    const char *text; /* [bytes] the caller's; NULL: the slot is free */
    size_t bytes;
    uint32_t hash, place;
} d7__name_slot;

typedef struct d7__names {
    d7__name_slot *slots; /* [n_slots], a power of two, at most half of them taken */
    size_t n_slots, n;
} d7__names;

void d7__names_free(const d7_alloc *a, d7__names *names);

/* Makes room for one more. Returns 0; D7_ERR_NOMEM with nothing changed. */
int d7__names_reserve(const d7_alloc *a, d7__names *names);

/* Adds a text that is not there, for which room was made. It must stay where it is. */
void d7__names_add(d7__names *names, const char *text, size_t bytes, uint32_t place);

/* Returns the place of a text, SIZE_MAX where it is not there. */
size_t d7__names_find(const d7__names *names, const char *text, size_t bytes);

#endif

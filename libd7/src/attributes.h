/* Attributes in the order of their first writing, found by key. */
#ifndef D7_SRC_ATTRIBUTES_H
#define D7_SRC_ATTRIBUTES_H

#include "names.h"

typedef struct d7__attributes {
    const d7_alloc *alloc;
    d7_attribute *items; /* [n] key and value in one piece of memory each, owned */
    size_t n, cap;
    d7__names keys; /* their places in items */
} d7__attributes;

void d7__attributes_free(d7__attributes *a);

/* Sets a key's value; copied. Its place goes to *ret_index (may be NULL).
 * Returns 0; D7_ERR_NOMEM with nothing changed. */
int d7__attributes_set(d7__attributes *a, const d7_attribute *attribute, size_t *ret_index);

/* Returns the index, SIZE_MAX where the key is not set. */
size_t d7__attributes_find(const d7__attributes *a, const char *key, size_t key_bytes);

/* The attribute that marks a global index of ours, and whether an attribute is that one. */
extern const d7_attribute d7__marker;
bool d7__is_marker(const d7_attribute *a);

#endif

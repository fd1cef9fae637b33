/* Memory from the caller's table, and arrays that grow. */
#ifndef D7_SRC_ALLOC_H
#define D7_SRC_ALLOC_H

#include "d7/d7.h"

/* The table to use for the one in the options (NULL: malloc). */
d7_alloc d7__alloc_or_default(const d7_alloc *alloc);

/* NULL when there is none; zeroed. bytes of 0 gives a valid pointer. */
void *d7__new(const d7_alloc *a, size_t bytes);
void d7__release(const d7_alloc *a, void *memory);

/* Makes room for n elements in a growing array *array of *cap elements; at least half again as much when it
 * grows. Returns 0, or D7_ERR_NOMEM with the array unchanged. */
int d7__grow(const d7_alloc *a, void *array, size_t *cap, size_t n, size_t element_bytes);

/* Bytes that grow. */
typedef struct d7__buffer {
    uint8_t *data;
    size_t n, cap;
} d7__buffer;

/* Makes room for `more` bytes after the n there are. Returns 0; D7_ERR_NOMEM. */
int d7__buffer_reserve(const d7_alloc *a, d7__buffer *b, size_t more);

#endif

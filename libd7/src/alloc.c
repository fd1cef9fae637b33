#include "alloc.h"

#include <stdlib.h>
#include <string.h>

static void *system_resize(void *ctx, void *old, size_t bytes) {
    (void)ctx;
    return realloc(old, bytes);
}

static void system_release(void *ctx, void *old) {
    (void)ctx;
    free(old);
}

d7_alloc d7__alloc_or_default(const d7_alloc *alloc) {
    return alloc ? *alloc : (d7_alloc){.resize = system_resize, .release = system_release};
}

void *d7__new(const d7_alloc *a, size_t bytes) {
    void *memory = a->resize(a->ctx, NULL, bytes ? bytes : 1);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

void d7__release(const d7_alloc *a, void *memory) {
    a->release(a->ctx, memory);
}

int d7__grow(const d7_alloc *a, void *array, size_t *cap, size_t n, size_t element_bytes) {
    if (n <= *cap)
        return 0;
    size_t larger = *cap + *cap / 2 > n ? *cap + *cap / 2 : n;
    if (larger < 16)
        larger = 16;
    if (larger > SIZE_MAX / element_bytes)
        return D7_ERR_NOMEM;
    void *old;
    memcpy(&old, array, sizeof old);
    void *memory = a->resize(a->ctx, old, larger * element_bytes);
    if (!memory)
        return D7_ERR_NOMEM;
    memcpy(array, &memory, sizeof memory);
    *cap = larger;
    return 0;
}

int d7__buffer_reserve(const d7_alloc *a, d7__buffer *b, size_t more) {
    if (more > SIZE_MAX - b->n)
        return D7_ERR_NOMEM;
    return d7__grow(a, &b->data, &b->cap, b->n + more, 1);
}

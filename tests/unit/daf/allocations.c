#include "allocations.h"

#include <stddef.h>

static unsigned allocations, fail_allocation;

bool test_fail_allocation(unsigned n) {
    bool fired = fail_allocation && allocations >= fail_allocation;
    allocations = 0;
    fail_allocation = n;
    return fired;
}

static bool allocation_fails(void) {
    return fail_allocation && ++allocations == fail_allocation;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);

void *__wrap_malloc(size_t n) {
    return allocation_fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t m) {
    return allocation_fails() ? NULL : __real_calloc(n, m);
}

void *__wrap_realloc(void *p, size_t n) {
    return allocation_fails() ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s) {
    return allocation_fails() ? NULL : __real_strdup(s);
}

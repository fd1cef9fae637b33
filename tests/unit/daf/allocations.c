#include "allocations.h"

static unsigned allocations, fail_allocation;
static size_t largest;

bool test_fail_allocation(unsigned n) {
    bool fired = fail_allocation && allocations >= fail_allocation;
    allocations = 0;
    fail_allocation = n;
    return fired;
}

size_t test_largest_allocation(void) {
    size_t n = largest;
    largest = 0;
    return n;
}

static bool allocation_fails(size_t bytes) {
    largest = bytes > largest ? bytes : largest;
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
    return allocation_fails(n) ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t m) {
    return allocation_fails(n * m) ? NULL : __real_calloc(n, m);
}

void *__wrap_realloc(void *p, size_t n) {
    return allocation_fails(n) ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s) {
    return allocation_fails(0) ? NULL : __real_strdup(s);
}

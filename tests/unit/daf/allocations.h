/* Allocations that fail, counted: for tests that are linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup. */
#ifndef TEST_DAF_ALLOCATIONS_H
#define TEST_DAF_ALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>

/* The n-th allocation of the library from now on fails (0: none). Returns whether the one that was asked for before did. */
bool test_fail_allocation(unsigned n);

/* The bytes of the largest allocation since the last call. */
size_t test_largest_allocation(void);

#endif

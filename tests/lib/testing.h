/* cmocka, with the headers that it wants before it, and numbers that are random but the same in every run. */
#ifndef TESTS_LIB_TESTING_H
#define TESTS_LIB_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* xorshift64*; the state must not be 0. */
static inline uint64_t testing_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u;
}

#endif

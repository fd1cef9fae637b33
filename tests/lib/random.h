/* Numbers that are random but the same in every run. */
#ifndef TESTS_LIB_RANDOM_H
#define TESTS_LIB_RANDOM_H

#include <stdint.h>

/* xorshift64*; the state must not be 0. */
static inline uint64_t testing_random(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u;
}

#endif

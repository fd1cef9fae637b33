/* Random numbers that are the same on every machine: integers and plain arithmetic only, no libm. */
#ifndef CLIENT_TOOLS_DICE_H
#define CLIENT_TOOLS_DICE_H

#include <stdint.h>

typedef struct send_random {
    uint64_t s[4];
} send_random;

void send_random_seed(send_random *r, uint64_t seed);

/* 64 even bits (xoshiro256**, by Blackman and Vigna). */
uint64_t send_random_bits(send_random *r);

/* A whole number below n, n from 1 to 2^32. */
uint32_t send_random_below(send_random *r, uint32_t n);

/* Even in (0, 1). */
double send_random_part(send_random *r);

/* Exponential with mean 1: the waiting times of a Poisson process. */
double send_random_wait(send_random *r);

/* Nearly normal, mean 0 and variance 1: a sum of evens, at most 4.9 away. */
double send_random_normal(send_random *r);

/* The natural logarithm of x, 0 < x < infinity, to 1e-13. */
double send_log(double x);

#endif

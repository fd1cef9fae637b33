#include "dice.h"

#include <string.h>

static uint64_t random_turn(uint64_t x, unsigned k) {
    return x << k | x >> (64 - k);
}

/* splitmix64, which spreads a seed over the state. */
static uint64_t random_spread(uint64_t *x) {
    uint64_t z = *x += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

void send_random_seed(send_random *r, uint64_t seed) {
    for (int i = 0; i < 4; i++)
        r->s[i] = random_spread(&seed);
}

uint64_t send_random_bits(send_random *r) {
    uint64_t *s = r->s, result = random_turn(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = random_turn(s[3], 45);
    return result;
}

uint32_t send_random_below(send_random *r, uint32_t n) {
    return (uint32_t)((send_random_bits(r) >> 32) * n >> 32);
}

double send_random_part(send_random *r) {
    return ((double)(send_random_bits(r) >> 12) + 0.5) * 0x1p-52;
}

double send_log(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7FF) - 1023;
    bits = (bits & UINT64_C(0xFFFFFFFFFFFFF)) | UINT64_C(0x3FF0000000000000);
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    double s = (m - 1) / (m + 1), q = s * s, sum = 1.0 / 15;
    sum = sum * q + 1.0 / 13;
    sum = sum * q + 1.0 / 11;
    sum = sum * q + 1.0 / 9;
    sum = sum * q + 1.0 / 7;
    sum = sum * q + 1.0 / 5;
    sum = sum * q + 1.0 / 3;
    return 2 * s * (sum * q + 1) + exponent * 0.6931471805599453;
}

double send_random_wait(send_random *r) {
    return -send_log(send_random_part(r));
}

double send_random_normal(send_random *r) {
    uint64_t a = send_random_bits(r), b = send_random_bits(r);
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        sum += (double)(a & 0xFFFF) + (double)(b & 0xFFFF);
        a >>= 16;
        b >>= 16;
    }
    return (sum / 65535.0 - 4) * 1.224744871391589; /* eight evens have a variance of 8/12 */
}

#include "kernels_checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

enum { MAX_BYTES = KERNEL_MAX_ITEMS * 10 + 64 };

static uint8_t plain_coded[MAX_BYTES], plain_decoded[MAX_BYTES * 8], hostile[MAX_BYTES];

/* Made at the first use, kept to the end of the process. */
static const guarded *memory(int which) {
    static guarded made[3];
    static const size_t bytes[] = {KERNEL_MAX_ITEMS * 8 + 32, MAX_BYTES, MAX_BYTES * 8};
    if (!made[which].start)
        made[which] = guarded_make(bytes[which]);
    return &made[which];
}

static uint8_t *values_at(size_t bytes, bool at_end) {
    return guarded_at(memory(0), bytes, at_end);
}

static uint8_t *coded_at(size_t bytes, bool at_end) {
    return guarded_at(memory(1), bytes, at_end);
}

static uint8_t *decoded_at(size_t bytes, bool at_end) {
    return guarded_at(memory(2), bytes, at_end);
}

static void require(bool good, const d7__kernels *k, kernel_type t, size_t n, const char *what) {
    static const char *const types[] = {"int16", "uint16", "32 bits", "64 bits"};
    if (good)
        return;
    fprintf(stderr, "kernel %s, %s, %zu items: wrong %s\n", k->name, types[t], n, what);
    abort();
}

const d7__kernels *kernel_next_usable(size_t *i) {
    while (d7__kernels_all[*i]) {
        const d7__kernels *k = d7__kernels_all[(*i)++];
        if (k->usable())
            return k;
    }
    return NULL;
}

void kernel_check_decode(kernel_type t, const uint8_t *in, size_t bytes, uint64_t before, bool at_end) {
    size_t n = plain_count(in, bytes), width = kernel_width(t);
    uint64_t plain_sum = before;
    const uint8_t *plain_bad = plain_decode(t, in, bytes, &plain_sum, plain_decoded);
    uint8_t *coded = coded_at(bytes, at_end), *out = decoded_at(n * width, at_end);
    memcpy(coded, in, bytes);
    const d7__kernels *k;
    for (size_t i = 0; (k = kernel_next_usable(&i));) {
        uint64_t sum = before;
        memset(out, 0xA5, n * width);
        const uint8_t *bad = kernel_decoder(k, t)(coded, bytes, &sum, out);
        require(k->count(coded, bytes) == n, k, t, n, "count");
        require((bad ? bad - coded : -1) == (plain_bad ? plain_bad - in : -1), k, t, n, "place of an error");
        require(sum == plain_sum, k, t, n, "sum");
        require(bad || memcmp(out, plain_decoded, n * width) == 0, k, t, n, "values");
    }
}

void kernel_check_encode(kernel_type t, const uint8_t *values, size_t n, bool at_end) {
    size_t width = kernel_width(t), bytes = (size_t)(plain_encode(t, values, n, plain_coded) - plain_coded);
    uint8_t *out = coded_at(kernel_bound(t, n), at_end);
    const d7__kernels *k;
    for (size_t i = 0; (k = kernel_next_usable(&i));) {
        memset(out, 0xA5, bytes);
        require((size_t)(kernel_encoder(k, t)(values, n, out) - out) == bytes, k, t, n, "length");
        require(memcmp(out, plain_coded, bytes) == 0, k, t, n, "bytes");
    }
    kernel_check_decode(t, plain_coded, bytes, plain_load(t, values), at_end);
    require(memcmp(plain_decoded, values + width, (n - 1) * width) == 0, d7__kernels_all[0], t, n,
            "way back");
}

/* How a value comes from the one before. */
typedef enum walk { ANY_STEP, ONE_SIZE, NOISE_12, RARE_JUMPS, ENDS, N_WALKS } walk;

static uint64_t step_of_bits(uint64_t *rng, unsigned bits) {
    uint64_t r = testing_random(rng), step = bits ? ((uint64_t)1 << (bits - 1)) | (r >> (64 - bits)) : 0;
    return testing_random(rng) & 1 ? step : 0 - step;
}

static uint64_t next_value(uint64_t *rng, walk how, unsigned bits, uint64_t x) {
    static const uint64_t ends[] = {0,          1,         UINT64_MAX, UINT64_MAX / 2, 1 + UINT64_MAX / 2,
                                    0x80008000, 0x7FFF7FFF};
    uint64_t r = testing_random(rng);
    switch (how) {
    case ANY_STEP:
        return x + step_of_bits(rng, (unsigned)(r % 65));
    case ONE_SIZE:
        return x + step_of_bits(rng, bits);
    case NOISE_12:
        return r & 0xFFF;
    case RARE_JUMPS:
        return r % 50 ? x + (r >> 40) % 100 : step_of_bits(rng, 64);
    default:
        return ends[r % (sizeof ends / sizeof *ends)];
    }
}

/* n values where guarded memory ends or begins. */
static uint8_t *make_values(uint64_t *rng, kernel_type t, walk how, unsigned bits, size_t n, bool at_end) {
    uint8_t *values = values_at(n * kernel_width(t), at_end);
    uint64_t x = testing_random(rng);
    for (size_t i = 0; i < n; i++, x = next_value(rng, how, bits, x))
        plain_store(t, values + i * kernel_width(t), x);
    return values;
}

/* Of the long ones, each type gets every fourth. */
static void every_length(kernel_type t, size_t max_items) {
    uint64_t rng = 4 + t;
    for (size_t n = 1; n <= max_items; n++) {
        if (n > 600 && n % KERNEL_N_TYPES != t)
            continue;
        walk how = (walk)(testing_random(&rng) % N_WALKS);
        bool at_end = n / KERNEL_N_TYPES & 1;
        kernel_check_encode(t, make_values(&rng, t, how, (unsigned)(n % 65), n, at_end), n, at_end);
    }
}

static void every_size_of_difference(kernel_type t, size_t max_items) {
    (void)max_items;
    uint64_t rng = 5;
    for (unsigned bits = 0; bits <= 64; bits++)
        for (size_t n = 1; n < 200; n += 1 + n / 9)
            for (int at_end = 0; at_end < 2; at_end++)
                kernel_check_encode(t, make_values(&rng, t, ONE_SIZE, bits, n, at_end), n, at_end);
}

/* One difference of each size, and its neighbours, among small ones, at each place of the vectors. */
static void one_odd_difference(kernel_type t, size_t max_items) {
    (void)max_items;
    enum { N = 50 };
    size_t width = kernel_width(t);
    uint8_t *values = values_at(N * width, true);
    for (unsigned bits = 0; bits < 64; bits++)
        for (size_t place = 0; place < N; place++)
            for (uint64_t off = 0; off < 6; off++) {
                uint64_t step = ((uint64_t)1 << bits) - 1 + off % 3, x = 0;
                for (size_t i = 0; i < N; i++, x += i == place ? (off < 3 ? step : 0 - step) : i % 3)
                    plain_store(t, values + i * width, x);
                kernel_check_encode(t, values, N, true);
            }
}

static void every_alignment(kernel_type t, size_t max_items) {
    (void)max_items;
    uint64_t rng = 6;
    for (size_t shift = 0; shift < 32; shift++) {
        uint8_t *values = make_values(&rng, t, ANY_STEP, 0, 150, false);
        memmove(values + shift, values, 150 * kernel_width(t));
        kernel_check_encode(t, values + shift, 150, false);
    }
}

/* Bytes of which `open` in 256 ask for another to follow. */
static void make_hostile(uint64_t *rng, unsigned open, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) {
        uint64_t r = testing_random(rng);
        hostile[i] = (uint8_t)((r & 0x7F) | ((r >> 8) % 256 < open ? 0x80 : 0));
    }
    hostile[bytes - 1] &= 0x7F;
}

static void random_bytes(kernel_type t, size_t max_items) {
    static const unsigned open[] = {0, 3, 20, 128, 170, 200, 230, 250};
    uint64_t rng = 7;
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        for (size_t bytes = 1; bytes < max_items; bytes += 1 + bytes / 30)
            for (int at_end = 0; at_end < 2; at_end++) {
                make_hostile(&rng, open[i], bytes);
                kernel_check_decode(t, hostile, bytes, testing_random(&rng), at_end);
            }
}

/* A varint of each length up to 12, padded with empty groups or full of bits, at each place among short ones and after
 * them. */
static void long_varints(kernel_type t, size_t max_items) {
    (void)max_items;
    uint64_t rng = 8;
    for (size_t length = 1; length <= 12; length++)
        for (size_t place = 0; place < 150; place++)
            for (int bits = 0; bits < 2; bits++) {
                make_hostile(&rng, place % 3 ? 0 : 128, 200);
                for (size_t i = 0; place % 3 == 2 && i < 199; i += 2)
                    hostile[i] |= 0x80; /* two bytes each */
                if (place > 0)
                    hostile[place - 1] &= 0x7F;
                memset(hostile + place, bits ? 0xFF : 0x80, length);
                hostile[place + length - 1] &= 0x7F;
                kernel_check_decode(t, hostile, 200, testing_random(&rng), true);
                kernel_check_decode(t, hostile, place + length, testing_random(&rng), true);
            }
}

/* Only the first varint that is too long is named; what follows does not matter. */
static void overlong_to_the_end(kernel_type t, size_t max_items) {
    (void)max_items;
    for (size_t bytes = 11; bytes < 300; bytes++) {
        memset(hostile, 0x80, bytes);
        hostile[bytes - 1] = 0;
        kernel_check_decode(t, hostile, bytes, 0, true);
        memset(hostile, 0x01, bytes / 2);
        kernel_check_decode(t, hostile, bytes, 0, true);
    }
}

static void nothing_to_decode(kernel_type t, size_t max_items) {
    (void)max_items;
    kernel_check_decode(t, hostile, 0, UINT64_MAX, true);
}

const kernel_check kernel_checks[] = {
    {"every_length", every_length},
    {"every_size_of_difference", every_size_of_difference},
    {"one_odd_difference", one_odd_difference},
    {"every_alignment", every_alignment},
    {"random_bytes", random_bytes},
    {"long_varints", long_varints},
    {"overlong_to_the_end", overlong_to_the_end},
    {"nothing_to_decode", nothing_to_decode},
    {NULL, NULL},
};

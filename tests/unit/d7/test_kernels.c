/* The kernels' variants against a plain encoder and decoder: every length, every size of difference, hostile bytes, and
 * nothing touched outside of the buffers. */
#include <sys/wait.h>
#include <unistd.h>

#include "kernels_testing.h"
#include "testing.h"

enum { MAX_ITEMS = 9000, MAX_BYTES = MAX_ITEMS * 10 + 64 };

static guarded values_memory, coded_memory, decoded_memory;
static uint8_t plain_coded[MAX_BYTES], plain_decoded[MAX_BYTES * 8], hostile[MAX_BYTES];

static int make_memory(void **state) {
    (void)state;
    values_memory = guarded_make(MAX_ITEMS * 8);
    coded_memory = guarded_make(MAX_BYTES);
    decoded_memory = guarded_make(MAX_BYTES * 8);
    return 0;
}

static int free_memory(void **state) {
    (void)state;
    guarded_free(&values_memory);
    guarded_free(&coded_memory);
    guarded_free(&decoded_memory);
    return 0;
}

/* The variant at *i or after that runs here, *i then being the one after it; NULL at the end. */
static const d7__kernels *next_usable(size_t *i) {
    while (d7__kernels_all[*i]) {
        const d7__kernels *k = d7__kernels_all[(*i)++];
        if (k->usable())
            return k;
    }
    return NULL;
}

/* Decodes in[bytes] with every variant and compares values, sums, counts and errors. */
static void check_decode(kernel_type t, const uint8_t *in, size_t bytes, uint64_t before, bool at_end) {
    size_t n = plain_count(in, bytes), width = kernel_width(t);
    uint64_t plain_sum = before;
    const uint8_t *plain_bad = plain_decode(t, in, bytes, &plain_sum, plain_decoded);
    uint8_t *coded = guarded_at(&coded_memory, bytes, at_end);
    uint8_t *out = guarded_at(&decoded_memory, n * width, at_end);
    memcpy(coded, in, bytes);
    const d7__kernels *k;
    for (size_t i = 0; (k = next_usable(&i));) {
        uint64_t sum = before;
        memset(out, 0xA5, n * width);
        const uint8_t *bad = kernel_decoder(k, t)(coded, bytes, &sum, out);
        assert_int_equal(k->count(coded, bytes), n);
        assert_int_equal(bad ? bad - coded : -1, plain_bad ? plain_bad - in : -1);
        assert_int_equal(sum, plain_sum);
        if (!bad)
            assert_memory_equal(out, plain_decoded, n * width);
    }
}

/* Encodes values[n] with every variant, compares the bytes, and decodes them. */
static void check_encode(kernel_type t, const uint8_t *values, size_t n, bool at_end) {
    size_t width = kernel_width(t), bytes = (size_t)(plain_encode(t, values, n, plain_coded) - plain_coded);
    uint8_t *out = guarded_at(&coded_memory, kernel_bound(t, n), at_end);
    const d7__kernels *k;
    for (size_t i = 0; (k = next_usable(&i));) {
        memset(out, 0xA5, bytes);
        assert_int_equal(kernel_encoder(k, t)(values, n, out) - out, bytes);
        assert_memory_equal(out, plain_coded, bytes);
    }
    uint64_t seed = 0;
    memcpy(&seed, values, width);
    check_decode(t, plain_coded, bytes, seed, at_end);
    if (bytes > 0)
        assert_memory_equal(plain_decoded, values + width, (n - 1) * width);
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
    size_t width = kernel_width(t);
    uint8_t *values = guarded_at(&values_memory, n * width, at_end);
    uint64_t x = testing_random(rng);
    for (size_t i = 0; i < n; i++, x = next_value(rng, how, bits, x))
        memcpy(values + i * width, &x,
               width); /* the low bytes: a little-endian host, as the rest of these tests */
    return values;
}

#define EACH_TYPE(t) (kernel_type t = KERNEL_INT16; t < KERNEL_N_TYPES; t++)

/* Of the long ones, each type gets every fourth. */
static void every_length(void **state) {
    (void)state;
    uint64_t rng = 4;
    for (size_t n = 1; n <= MAX_ITEMS; n++)
        for
            EACH_TYPE(t) {
                if (n > 600 && n % KERNEL_N_TYPES != t)
                    continue;
                walk how = (walk)(testing_random(&rng) % N_WALKS);
                bool at_end = n / KERNEL_N_TYPES & 1;
                check_encode(t, make_values(&rng, t, how, (unsigned)(n % 65), n, at_end), n, at_end);
            }
}

static void every_size_of_difference(void **state) {
    (void)state;
    uint64_t rng = 5;
    for
        EACH_TYPE(t)
    for (unsigned bits = 0; bits <= 64; bits++)
        for (size_t n = 1; n < 200; n += 1 + n / 9)
            for (int at_end = 0; at_end < 2; at_end++)
                check_encode(t, make_values(&rng, t, ONE_SIZE, bits, n, at_end), n, at_end);
}

/* One difference of each size, and its neighbours, among small ones, at each place of the vectors. */
static void one_odd_difference(void **state) {
    (void)state;
    enum { N = 50 };
    for
        EACH_TYPE(t)
    for (unsigned bits = 0; bits < 64; bits++)
        for (size_t place = 0; place < N; place++)
            for (uint64_t off = 0; off < 6; off++) {
                size_t width = kernel_width(t);
                uint8_t *values = guarded_at(&values_memory, N * width, true);
                uint64_t step = ((uint64_t)1 << bits) - 1 + off % 3, x = 0;
                for (size_t i = 0; i < N; i++, x += i == place ? (off < 3 ? step : 0 - step) : i % 3)
                    memcpy(values + i * width, &x, width);
                check_encode(t, values, N, true);
            }
}

/* Values at every address. */
static void unaligned(void **state) {
    (void)state;
    uint64_t rng = 6;
    for
        EACH_TYPE(t)
    for (size_t shift = 0; shift < 32; shift++) {
        uint8_t *values = make_values(&rng, t, ANY_STEP, 0, 150, false);
        size_t width = kernel_width(t);
        memmove(values + shift, values, 150 * width);
        check_encode(t, values + shift, 150, false);
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

static void random_bytes(void **state) {
    (void)state;
    static const unsigned open[] = {0, 3, 20, 128, 170, 200, 230, 250};
    uint64_t rng = 7;
    for
        EACH_TYPE(t)
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        for (size_t bytes = 1; bytes < 5000; bytes += 1 + bytes / 30)
            for (int at_end = 0; at_end < 2; at_end++) {
                make_hostile(&rng, open[i], bytes);
                check_decode(t, hostile, bytes, testing_random(&rng), at_end);
            }
}

/* A varint of each length up to 12, padded with empty groups or full of bits, at each place among short ones. */
static void long_varints(void **state) {
    (void)state;
    uint64_t rng = 8;
    for
        EACH_TYPE(t)
    for (size_t length = 1; length <= 12; length++)
        for (size_t place = 0; place < 150; place++)
            for (int bits = 0; bits < 2; bits++) {
                make_hostile(&rng, place % 2 ? 0 : 128, 200);
                if (place > 0)
                    hostile[place - 1] &= 0x7F;
                memset(hostile + place, bits ? 0xFF : 0x80, length);
                hostile[place + length - 1] &= 0x7F;
                check_decode(t, hostile, 200, testing_random(&rng), true);
            }
}

/* Only the first varint that is too long is named; what follows does not matter. */
static void many_overlong(void **state) {
    (void)state;
    for
        EACH_TYPE(t)
    for (size_t bytes = 11; bytes < 300; bytes++) {
        memset(hostile, 0x80, bytes);
        hostile[bytes - 1] = 0;
        check_decode(t, hostile, bytes, 0, true);
        memset(hostile, 0x01, bytes / 2);
        check_decode(t, hostile, bytes, 0, true);
    }
}

static void nothing_to_decode(void **state) {
    (void)state;
    for
        EACH_TYPE(t)
    check_decode(t, hostile, 0, UINT64_MAX, true);
}

/* The name that d7__kernels_best() chooses in a process whose environment says `value`, compared with `expected`. */
static bool chosen_is(const char *value, const char *expected) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (value ? setenv("D7_KERNEL", value, 1) : unsetenv("D7_KERNEL"))
            _exit(2);
        const d7__kernels *k = d7__kernels_best();
        _exit(k != d7__kernels_best() || strcmp(k->name, expected) != 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status == 0;
}

static void the_environment_chooses(void **state) {
    (void)state;
    const char *best = "scalar";
    const d7__kernels *k;
    for (size_t i = 0; (k = next_usable(&i));) {
        assert_true(chosen_is(k->name, k->name));
        best = k->fast() ? k->name : best;
    }
    assert_true(chosen_is(NULL, best));
    assert_true(chosen_is("", best));
    assert_true(chosen_is("no such kernel", best));
    assert_string_equal(d7__kernels_all[0]->name, "scalar");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_chooses),
        cmocka_unit_test(every_length),
        cmocka_unit_test(every_size_of_difference),
        cmocka_unit_test(one_odd_difference),
        cmocka_unit_test(unaligned),
        cmocka_unit_test(random_bytes),
        cmocka_unit_test(long_varints),
        cmocka_unit_test(many_overlong),
        cmocka_unit_test(nothing_to_decode),
    };
    return cmocka_run_group_tests(tests, make_memory, free_memory);
}

/* The kernels' variants against the plain encoder and decoder of the unit tests. The first byte chooses the type and the
 * direction; the rest is varints to decode, or values to encode. Buffers are as small as the kernels are promised. */
#include <stdlib.h>
#include <string.h>

#include "kernels_testing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            abort();                                                                                         \
    } while (0)

static uint8_t *take(size_t bytes) {
    uint8_t *p = malloc(bytes ? bytes : 1);
    REQUIRE(p);
    return p;
}

static void fuzz_decode(kernel_type t, const uint8_t *in, size_t bytes) {
    while (bytes > 0 && in[bytes - 1] > 127)
        bytes--;
    size_t n = plain_count(in, bytes), width = kernel_width(t);
    uint8_t *coded = take(bytes), *expected = take(n * width), *out = take(n * width);
    uint64_t before = UINT64_MAX / 3, expected_sum = before;
    if (bytes)
        memcpy(coded, in, bytes);
    const uint8_t *expected_bad = plain_decode(t, coded, bytes, &expected_sum, expected);
    for (size_t i = 0; d7__kernels_all[i]; i++) {
        const d7__kernels *k = d7__kernels_all[i];
        if (!k->usable())
            continue;
        uint64_t sum = before;
        const uint8_t *bad = kernel_decoder(k, t)(coded, bytes, &sum, out);
        REQUIRE(k->count(coded, bytes) == n);
        REQUIRE(bad == expected_bad && sum == expected_sum);
        REQUIRE(bad || memcmp(out, expected, n * width) == 0);
    }
    free(coded);
    free(expected);
    free(out);
}

static void fuzz_encode(kernel_type t, const uint8_t *in, size_t bytes) {
    size_t width = kernel_width(t), n = bytes / width;
    if (n == 0)
        return;
    uint8_t *values = take(n * width), *expected = take(kernel_bound(t, n)), *out = take(kernel_bound(t, n));
    memcpy(values, in, n * width);
    size_t expected_bytes = (size_t)(plain_encode(t, values, n, expected) - expected);
    for (size_t i = 0; d7__kernels_all[i]; i++) {
        const d7__kernels *k = d7__kernels_all[i];
        if (!k->usable())
            continue;
        REQUIRE((size_t)(kernel_encoder(k, t)(values, n, out) - out) == expected_bytes);
        REQUIRE(memcmp(out, expected, expected_bytes) == 0);
    }
    free(values);
    free(expected);
    free(out);
    fuzz_decode(t, in, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    kernel_type t = (kernel_type)(data[0] % KERNEL_N_TYPES);
    if (data[0] & 0x80)
        fuzz_encode(t, data + 1, size - 1);
    else
        fuzz_decode(t, data + 1, size - 1);
    return 0;
}

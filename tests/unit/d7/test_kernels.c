/* The kernels' variants against a plain encoder and decoder: every length, every size of difference, hostile bytes, and
 * nothing touched outside of the buffers. */
#include <sys/wait.h>
#include <unistd.h>

#include "kernels_testing.h"
#include "testing.h"

enum { MAX_ITEMS = 9000, MAX_BYTES = MAX_ITEMS * 10 + 64 };

static guarded values_memory, coded_memory, decoded_memory;
static uint8_t plain_coded[MAX_BYTES], plain_decoded[MAX_BYTES * 8];

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

static const d7__kernels *usable(size_t i) {
    while (d7__kernels_all[i] && !d7__kernels_all[i]->usable())
        i++;
    return d7__kernels_all[i];
}

#define EACH_KERNEL(k) (size_t i_##k = 0; d7__kernels_all[i_##k]; i_##k++) if (d7__kernels_all[i_##k]->usable())

/* Decodes in[bytes] with every variant and compares results, sums and errors. */
static void check_decode(kernel_type t, const uint8_t *in, size_t bytes, uint64_t before) {
    size_t n = plain_count(in, bytes), width = kernel_width(t);
    uint64_t plain_sum = before;
    const uint8_t *plain_bad = plain_decode(t, in, bytes, &plain_sum, plain_decoded);
    for (size_t i = 0; d7__kernels_all[i]; i++) {
        const d7__kernels *k = d7__kernels_all[i];
        if (!k->usable())
            continue;
        for (int at_end = 0; at_end < 2; at_end++) {
            uint8_t *coded = guarded_at(&coded_memory, bytes, at_end);
            uint8_t *out = guarded_at(&decoded_memory, n * width, at_end);
            memmove(coded, in, bytes);
            uint64_t sum = before;
            const uint8_t *bad = kernel_decoder(k, t)(coded, bytes, &sum, out);
            assert_int_equal(bad != NULL, plain_bad != NULL);
            if (bad)
                assert_int_equal(bad - coded, plain_bad - in);
            else
                assert_memory_equal(out, plain_decoded, n * width);
            assert_int_equal(sum, plain_sum);
            assert_int_equal(k->count(coded, bytes), n);
        }
    }
}

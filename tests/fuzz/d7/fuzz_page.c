/* Any bytes as a page's entry, of the type that the first byte says: decoding and counting agree, and what
 * decodes encodes again to a page of the same values. */
#include <stdlib.h>
#include <string.h>

#include "d7/d7.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good) {
    if (!good)
        abort();
}

static void round_trip(d7_type type, const uint8_t *values, size_t n, uint32_t ds) {
    size_t cap = d7_page_bound(type, n), bytes, got_n;
    uint8_t *entry = malloc(cap), *got = malloc(n * d7_type_size(type));
    uint32_t got_ds;
    d7_error err;
    require(d7_page_encode(ds, type, values, n, entry, cap, &bytes) == 0 && bytes <= cap);
    require(d7_page_decode(type, entry, bytes, got, n, &got_ds, &got_n, &err) == 0);
    require(got_ds == ds && got_n == n && memcmp(got, values, n * d7_type_size(type)) == 0);
    free(entry);
    free(got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint32_t ds = 0, counted_ds = 0;
    size_t n = 0, counted = 0;
    d7_error err;
    if (size == 0)
        return 0;
    d7_type type = (d7_type)(data[0] % D7_N_TYPES);
    /* A copy of exactly this length, so that a read past it is seen. */
    uint8_t *entry = malloc(size - 1 ? size - 1 : 1), *values = malloc(size * 8);
    if (size > 1)
        memcpy(entry, data + 1, size - 1);
    int count = d7_page_count(type, entry, size - 1, &counted_ds, &counted, &err);
    int decode = d7_page_decode(type, entry, size - 1, values, size, &ds, &n, &err);
    if (decode == 0) {
        require(count == 0 && ds == counted_ds && n == counted);
        if (n > 0)
            round_trip(type, values, n, ds);
        if (n > 1)
            require(d7_page_decode(type, entry, size - 1, values, n - 1, &ds, &n, &err) == D7_ERR_LIMIT);
    }
    free(entry);
    free(values);
    return 0;
}

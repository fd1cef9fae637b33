/* The kernels' variants against the plain encoder and decoder of the unit tests. The first byte chooses the type and the
 * direction; the rest is varints to decode, or values to encode. */
#include "kernels_checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0 || size > KERNEL_MAX_ITEMS)
        return 0;
    kernel_type t = (kernel_type)(data[0] % KERNEL_N_TYPES);
    size_t bytes = size - 1, n = bytes / kernel_width(t);
    for (int at_end = 0; at_end < 2; at_end++)
        if (n > 0 && data[0] & 0x80)
            kernel_check_encode(t, data + 1, n, at_end);
    while (bytes > 0 && data[bytes] > 127)
        bytes--;
    for (int at_end = 0; at_end < 2; at_end++)
        kernel_check_decode(t, data + 1, bytes, UINT64_MAX / 3, at_end);
    return 0;
}

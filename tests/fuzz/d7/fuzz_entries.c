/* Any bytes as the entries of a file, framed as they ought to be, so that a fuzzer gets past the framing: two bytes of
 * length, then so many bytes of an entry, and so on. The top bit of a length asks for zeroes up to the next block. */
#include <stdlib.h>
#include <string.h>

#include "framing.h"
#include "read_all.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_FILE_BYTES = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *file = calloc(1, MAX_FILE_BYTES + 2 * D7_BLOCK_BYTES);
    size_t n = 0;
    for (size_t at = 0; file && at + 2 <= size;) {
        size_t bytes = (size_t)(data[at] | (data[at + 1] & 0x7F) << 8);
        bool pad = data[at + 1] & 0x80;
        at += 2;
        bytes = bytes < size - at ? bytes : size - at;
        if (n + d7__frame_bound(bytes) + D7_BLOCK_BYTES > MAX_FILE_BYTES)
            break;
        if (pad)
            n += (D7_BLOCK_BYTES - n % D7_BLOCK_BYTES) % D7_BLOCK_BYTES;
        n += d7__frame(n, data + at, bytes, file + n);
        at += bytes;
    }
    if (file)
        read_all(file, n);
    free(file);
    return 0;
}

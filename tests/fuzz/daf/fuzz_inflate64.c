/* Deflate64 streams. */
#include <stdlib.h>

#include "archive_decode.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint64_t limits[] = {0, 300, 1 << 20};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        memory_file f = memory_file_of(data, size);
        daf__source in = {.f = &f.base, .left = size, .piece = malloc(DAF__SOURCE_PIECE)};
        daf__sink out = {.limit = limits[i]};
        if (!in.piece)
            abort();
        if (daf__inflate64(&in, &out, NULL) == 0 && out.out.size > limits[i])
            abort();
        daf__buf_free(&out.out);
        free(in.piece);
    }
    return 0;
}

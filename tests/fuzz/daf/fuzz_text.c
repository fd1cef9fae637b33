/* Text files: what is split joins again to the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "memory_file.h"
#include "text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    memory_file f = memory_file_of(data, size);
    daf__buf content = {0};
    daf__texts t;
    uint64_t n, twice;
    must(daf__count_lines(&f.base, &n, NULL) == 0);
    if (daf__file_read_whole(&f.base, &content, UINT64_MAX, NULL) != 0 ||
        daf__texts_split(&t, &content, "case", NULL) != 0)
        return 0;
    must(t.n == n);
    size_t at = 0;
    for (uint64_t i = 0; i < t.n; i++) {
        size_t bytes = daf__texts_bytes(&t, i);
        must(at + bytes <= size && memcmp(t.next[i], data + at, bytes) == 0);
        must(strlen(t.next[i]) == bytes);
        at += bytes + 1;
    }
    must(at == size || at == size + 1);
    must(daf__texts_find_twice(t.next, t.n, &twice, NULL) == 0 && twice <= t.n);
    daf__texts_free(&t);
    return 0;
}

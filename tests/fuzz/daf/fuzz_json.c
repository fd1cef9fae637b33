/* Scalars and descriptors: whatever parses is written to text that parses to the same. */
#include <stdlib.h>
#include <string.h>

#include "descriptor.h"
#include "scalar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

static void try_scalar(const char *text, size_t size) {
    daf_scalar first, second;
    daf__buf once = {0}, twice = {0};
    if (daf__scalar_parse(&first, text, size, "case", NULL) != 0)
        return;
    must(daf__scalar_check(&first, true, NULL) == 0);
    daf__scalar_write(&once, &first);
    daf__buf_append(&once, "", 1);
    must(daf__scalar_parse(&second, once.data, once.size - 1, "case", NULL) == 0);
    daf__scalar_write(&twice, &second);
    must(once.size == twice.size + 1 && memcmp(once.data, twice.data, twice.size) == 0);
    daf_scalar_clear(&first);
    daf_scalar_clear(&second);
    daf__buf_free(&once);
    daf__buf_free(&twice);
}

static void try_descriptor(daf__kind kind, const char *text, size_t size) {
    daf__descriptor first, second;
    daf__buf once = {0};
    if (daf__descriptor_parse(&first, kind, text, size, "case", NULL) != 0 || first.sparse)
        return;
    if (strpbrk(first.packing.compression, "\"\\")) /* we write none but the known names */
        return;
    daf__descriptor_write(&once, kind, &first);
    must(!once.failed);
    if (daf__descriptor_parse(&second, kind, once.data, once.size, "case", NULL) == 0)
        must(second.type == first.type && second.packed == first.packed &&
             second.packing.chunk_rows == first.packing.chunk_rows &&
             second.packing.chunk_columns == first.packing.chunk_columns);
    daf__buf_free(&once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    try_scalar(text, size);
    try_descriptor(DAF__VECTOR, text, size);
    try_descriptor(DAF__MATRIX, text, size);
    free(text);
    return 0;
}

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

static bool same_descriptors(const daf__descriptor *a, const daf__descriptor *b) {
    bool same = a->type == b->type && a->sparse == b->sparse && a->old_form == b->old_form;
    for (unsigned i = 0; i < DAF__N_PARTS && same; i++) {
        const daf__component *c = &a->parts[i], *d = &b->parts[i];
        same = c->present == d->present && c->type == d->type && c->packed == d->packed &&
               c->n_elements == d->n_elements && c->packing.chunk_rows == d->packing.chunk_rows &&
               c->packing.chunk_columns == d->packing.chunk_columns;
    }
    return same;
}

static void try_descriptor(daf__kind kind, const char *text, size_t size) {
    daf__descriptor first, second;
    daf__buf once = {0};
    if (daf__descriptor_parse(&first, kind, text, size, "case", NULL) != 0)
        return;
    for (unsigned i = 0; i < DAF__N_PARTS; i++) {
        const daf__component *c = &first.parts[i];
        if (strpbrk(c->packing.compression, "\"\\")) /* we write none but the known names */
            return;
        if (first.sparse && !first.old_form && c->present && !c->counted) /* nor parts without a count */
            return;
    }
    daf__descriptor_write(&once, kind, &first);
    must(!once.failed);
    if (daf__descriptor_parse(&second, kind, once.data, once.size, "case", NULL) == 0)
        must(same_descriptors(&first, &second));
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

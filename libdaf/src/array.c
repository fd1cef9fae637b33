#include "array.h"

#include <stdlib.h>

daf_array *daf__array_new(daf_type type, uint64_t rows, uint64_t columns) {
    daf_array *a = calloc(1, sizeof *a);
    if (a)
        *a = (daf_array){.type = type, .rows = rows, .columns = columns};
    return a;
}

void daf_array_free(daf_array *a) {
    if (!a)
        return;
    daf__unmap(&a->map);
    daf__texts_free(&a->texts);
    free(a->owned);
    free(a);
}

daf_type daf_array_type(const daf_array *a) {
    return a->type;
}

uint64_t daf_array_count(const daf_array *a) {
    return a->rows * a->columns;
}

uint64_t daf_array_rows(const daf_array *a) {
    return a->rows;
}

uint64_t daf_array_columns(const daf_array *a) {
    return a->columns;
}

const void *daf_array_values(const daf_array *a) {
    return a->values;
}

const char *const *daf_array_strings(const daf_array *a) {
    return a->texts.next;
}

size_t daf_array_string_bytes(const daf_array *a, uint64_t i) {
    return daf__texts_bytes(&a->texts, i);
}

bool daf_array_is_mapped(const daf_array *a) {
    return a->map.data != NULL;
}

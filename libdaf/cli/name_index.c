#include "name_index.h"

#include <stdlib.h>
#include <string.h>

typedef struct named {
    const char *name;
    uint64_t index;
} named;

struct name_index {
    uint64_t n;
    named sorted[];
};

static int compare_names(const void *a, const void *b) {
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

name_index *name_index_new(const daf_array *entries) {
    uint64_t n = daf_array_count(entries);
    name_index *x = malloc(sizeof *x + (size_t)n * sizeof *x->sorted);
    if (!x)
        return NULL;
    x->n = n;
    for (uint64_t i = 0; i < n; i++)
        x->sorted[i] = (named){daf_array_strings(entries)[i], i};
    qsort(x->sorted, (size_t)n, sizeof *x->sorted, compare_names);
    return x;
}

void name_index_free(name_index *x) {
    free(x);
}

uint64_t name_index_find(const name_index *x, const char *name) {
    const named wanted = {.name = name};
    const named *found = bsearch(&wanted, x->sorted, (size_t)x->n, sizeof *x->sorted, compare_names);
    return found ? found->index : NO_INDEX;
}

/* Sparse properties: a case is a descriptor, a line of NUL, and the payloads of its parts in turn; a memory store holds
 * them as vector and matrix of a repository with axes of 7 and 5 entries. What is read obeys the rules, whichever way it
 * is then turned. */
#include <stdlib.h>
#include <string.h>

#include "handle.h"
#include "property.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS = 7, COLUMNS = 5 };

static void must(bool holds) {
    if (!holds)
        abort();
}

static void put(daf *d, const daf__key *base, const char *suffix, const void *data, size_t bytes) {
    daf__key key = daf__key_with(base, suffix);
    daf__change change = {0};
    daf__out *out;
    must(d->store->ops->create(d->store, &out, NULL) == 0);
    must(daf__out_append(out, data, bytes, NULL) == 0);
    must(daf__change_put(&change, key.text, out, NULL) == 0);
    must(d->store->ops->apply(d->store, &change, NULL) == 0);
    daf__change_free(&change);
}

static void put_parts(daf *d, const daf__property *p, const uint8_t *data, size_t size) {
    daf__key base = daf__property_key(p);
    daf__descriptor descriptor;
    const uint8_t *end = memchr(data, 0, size);
    size_t bytes = end ? (size_t)(end - data) : size, left = size - bytes;
    put(d, &base, ".json", data, bytes);
    if (!end || daf__descriptor_parse(&descriptor, p->kind, data, bytes, "case", NULL) != 0)
        return;
    data += bytes + 1;
    left--;
    /* Each part but the last begins with its size. */
    for (unsigned i = DAF__N_PARTS; i-- > 0;) {
        char suffix[DAF__SUFFIX_TEXT];
        if (!descriptor.parts[i].present)
            continue;
        size_t take = left;
        if (i > 0 && left > 0) {
            take = data[0] < left ? data[0] : left - 1;
            data++;
            left--;
        }
        put(d, &base, daf__part_suffix(suffix, p->kind, &descriptor, (daf__part)i), data, take);
        data += take;
        left -= take;
    }
}

static void check_sparse(const daf_sparse *s) {
    const daf_csc *c = daf_sparse_csc(s);
    uint64_t k = 0;
    for (uint64_t j = 0; j < c->columns; j++)
        for (uint64_t before = 0; k < daf_sparse_start(s, j + 1); k++) {
            uint64_t row = daf_sparse_index(s, k) + 1;
            must(row > before && row <= c->rows);
            before = row;
        }
    must(k == c->nnz);
}

static void turn(daf_sparse *s) {
    daf_array *a;
    daf_sparse *slice;
    daf_range some = {.first_row = 2, .n_rows = 4, .n_columns = 1};
    check_sparse(s);
    must(daf_sparse_to_dense(&a, s, NULL) == 0);
    daf_array_free(a);
    must(daf_sparse_slice(&slice, s, &some, NULL) == 0);
    check_sparse(slice);
    daf_sparse_free(slice);
    daf_sparse_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    daf *d;
    daf_sparse *s;
    daf_info info;
    daf__property vector = daf__vector_property("r", "v"), matrix = daf__matrix_property("r", "c", "m");
    must(daf_open_memory(&d, NULL, NULL) == 0);
    must(daf_add_axis_integers(d, "r", 0, 1, ROWS, NULL) == 0);
    must(daf_add_axis_integers(d, "c", 0, 1, COLUMNS, NULL) == 0);
    put_parts(d, &vector, data, size);
    put_parts(d, &matrix, data, size);
    must(daf_vector_info(d, &info, "r", "v", NULL) != 0 || info.columns == 1);
    must(daf_matrix_info(d, &info, "r", "c", "m", NULL) != 0 || info.columns == COLUMNS);
    if (daf_get_sparse_vector(d, &s, "r", "v", NULL) == 0)
        turn(s);
    if (daf_get_sparse_matrix(d, &s, "r", "c", "m", NULL) == 0) {
        turn(s);
        must(daf_relayout_matrix(d, "r", "c", "m", NULL, NULL) == 0);
        must(daf_get_sparse_matrix(d, &s, "c", "r", "m", NULL) == 0);
        check_sparse(s);
        daf_sparse_free(s);
    }
    daf_free(d);
    return 0;
}

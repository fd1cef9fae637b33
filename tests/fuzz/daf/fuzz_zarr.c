/* A node of a Zarr tree, a NUL, and what each of its chunks holds: parsed and decoded as an array, and as a root. */
#include <stdlib.h>

#include "memory_file.h"
#include "zarr_decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_ELEMENTS = 1 << 16, MAX_FILES = 64 };

typedef struct case_store {
    daf__store base;
    memory_file chunk;
    unsigned n_left; /* files that are there */
} case_store;

static int case_open(daf__store *base, daf__file **ret, const char *key, daf_error *err) {
    case_store *s = (case_store *)base;
    if (s->n_left == 0)
        return daf__fail(err, DAF_ERR_MISSING, 0, 0, "%s: no such file", key);
    s->n_left--;
    *ret = &s->chunk.base;
    return 0;
}

static const daf__store_ops case_ops = {.open = case_open};

static void decode(const daf__zarr_node *node, const uint8_t *data, size_t size) {
    static char path[] = "case";
    case_store s = {
        .base = {.ops = &case_ops, .path = path}, .chunk = memory_file_of(data, size), .n_left = MAX_FILES};
    daf__texts texts;
    uint64_t n;
    if (__builtin_mul_overflow(node->shape[0], node->shape[1], &n) || n > MAX_ELEMENTS)
        return;
    if (node->type == DAF_STRING) {
        if (daf__zarr_decode_texts(&s.base, "array", node, &texts, NULL) == 0)
            daf__texts_free(&texts);
        return;
    }
    void *values = calloc((size_t)n + 1, daf_type_bytes(node->type));
    if (values)
        (void)daf__zarr_decode_values(&s.base, "array", node, values, NULL);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    daf__zarr_node node;
    daf__packing packing;
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    size_t bytes = nul ? (size_t)(nul - data) : size;
    (void)daf__zarr_check_root(data, bytes, "case", "case", NULL);
    if (daf__zarr_node_parse(&node, data, bytes, "case", NULL) != 0)
        return 0;
    if (!node.is_group) {
        (void)daf__zarr_is_flat(&node);
        (void)daf__zarr_is_shard(&node, &packing);
        decode(&node, nul ? nul + 1 : data, nul ? size - bytes - 1 : 0);
    }
    daf__zarr_node_free(&node);
    return 0;
}

/* Shards: the bytes are read as each of some properties. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory_file.h"
#include "shard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    daf__kind kind;
    uint64_t rows, columns, chunk_rows, chunk_columns;
    daf_type type;
} shapes[] = {
    {DAF__VECTOR, 400, 1, 128, 1, DAF_FLOAT64}, {DAF__VECTOR, 400, 1, 256, 1, DAF_INT32},
    {DAF__VECTOR, 400, 1, 64, 1, DAF_STRING},   {DAF__MATRIX, 400, 3, 256, 1, DAF_FLOAT32},
    {DAF__MATRIX, 400, 3, 128, 1, DAF_INT64},   {DAF__MATRIX, 30, 7, 8, 3, DAF_INT32},
    {DAF__VECTOR, 1400, 1, 1024, 1, DAF_BOOL},  {DAF__VECTOR, 1, 1, 1000000, 1, DAF_UINT8},
    {DAF__MATRIX, 5, 2, 9, 9, DAF_STRING},
};

static void read_shard(daf__shard *s) {
    daf__texts texts;
    size_t n = (size_t)(s->grid.rows * s->grid.columns);
    if (s->type == DAF_STRING) {
        if (daf__shard_read_texts(s, NULL, &texts, NULL) != 0)
            return;
        for (uint64_t i = 0; i < texts.n; i++)
            if (strlen(texts.next[i]) != daf__texts_bytes(&texts, i))
                abort();
        daf__texts_free(&texts);
        return;
    }
    void *values = calloc(n, daf_type_bytes(s->type));
    (void)daf__shard_read_values(s, NULL, values, NULL);
    daf__span box = {.row = s->grid.rows / 2, .n_rows = 1, .n_columns = s->grid.columns};
    (void)daf__shard_read_values(s, &box, values, NULL);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const codecs[] = {"zstd", "gzip",
                                         "blosc_zstd_bitshuffle"}; /* the other blosc reads alike */
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        daf__packing packing = {.chunk_rows = shapes[i].chunk_rows, .chunk_columns = shapes[i].chunk_columns};
        daf__grid grid;
        if (daf__grid_make(&grid, shapes[i].kind, shapes[i].rows, shapes[i].columns, &packing, "case",
                           NULL) != 0)
            abort();
        for (size_t c = 0; c < 2 * sizeof codecs / sizeof codecs[0]; c++) {
            packing.indexed = c % 2;
            snprintf(packing.compression, sizeof packing.compression, "%s", codecs[c / 2]);
            memory_file f = memory_file_of(data, size);
            daf__shard shard;
            if (daf__shard_open(&shard, &f.base, &grid, shapes[i].type, &packing, NULL, NULL) != 0)
                continue;
            read_shard(&shard);
            daf__shard_close(&shard);
        }
    }
    return 0;
}

/* A file in memory, for the fuzz targets. */
#ifndef FUZZ_DAF_MEMORY_FILE_H
#define FUZZ_DAF_MEMORY_FILE_H

#include <string.h>

#include "error.h"
#include "store.h"

typedef struct memory_file {
    daf__file base;
    const uint8_t *data;
} memory_file;

static int memory_read(daf__file *f, void *to, size_t bytes, uint64_t offset, daf_error *err) {
    if (offset > f->size || bytes > f->size - offset)
        return daf__fail(err, DAF_ERR_TRUNCATED, 0, offset, "the case ends");
    if (bytes)
        memcpy(to, ((const memory_file *)f)->data + offset, bytes);
    return 0;
}

static int memory_map(daf__file *f, daf__map *ret, daf_error *err) {
    (void)f;
    (void)ret;
    return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0, "not mapped");
}

static void memory_close(daf__file *f) {
    (void)f;
}

static const daf__file_ops memory_ops = {.read = memory_read, .map = memory_map, .close = memory_close};

static inline memory_file memory_file_of(const uint8_t *data, size_t bytes) {
    static char where[] = "case";
    return (memory_file){.base = {.ops = &memory_ops, .size = bytes, .where = where}, .data = data};
}

#endif

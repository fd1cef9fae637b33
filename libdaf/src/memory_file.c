#include "memory_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

typedef struct memory_file {
    daf__file base;
    daf__buf bytes;
} memory_file;

static int memory_read(daf__file *f, void *data, size_t bytes, uint64_t offset, daf_error *err) {
    if (offset > f->size || bytes > f->size - offset)
        return daf__fail(err, DAF_ERR_TRUNCATED, 0, offset, "%s: ends at byte %" PRIu64, f->where, f->size);
    if (bytes)
        memcpy(data, ((memory_file *)f)->bytes.data + offset, bytes);
    return 0;
}

static int memory_map(daf__file *f, daf__map *ret, daf_error *err) {
    (void)ret;
    return daf__fail(err, DAF_ERR_UNSUPPORTED, 0, 0, "%s: cannot be mapped", f->where);
}

static void memory_close(daf__file *f) {
    daf__buf_free(&((memory_file *)f)->bytes);
    free(f->where);
    free(f);
}

int daf__memory_file(daf__file **ret, daf__buf *bytes, const daf__stamp *stamp, const char *where,
                     daf_error *err) {
    static const daf__file_ops ops = {.read = memory_read, .map = memory_map, .close = memory_close};
    memory_file *f = malloc(sizeof *f);
    char *copy = strdup(where);
    if (!f || !copy) {
        free(f);
        free(copy);
        daf__buf_free(bytes);
        return daf__no_memory(err);
    }
    *f = (memory_file){.base = {.ops = &ops, .stamp = *stamp, .size = bytes->size, .where = copy},
                       .bytes = *bytes};
    *bytes = (daf__buf){0};
    *ret = &f->base;
    return 0;
}

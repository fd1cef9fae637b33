#include "archive_support.h"

#include <fts.h>
#include <stdlib.h>

#include <zlib.h>

#include "zip.h"

void copy_file(const char *from, const char *to) {
    size_t bytes;
    char *data = test_read_file(from, &bytes);
    assert_non_null(data);
    test_write_file(to, data, bytes);
    free(data);
}

void same_file(const char *a, const char *b) {
    size_t bytes_a, bytes_b;
    char *data_a = test_read_file(a, &bytes_a), *data_b = test_read_file(b, &bytes_b);
    assert_non_null(data_a);
    assert_non_null(data_b);
    if (bytes_a != bytes_b || memcmp(data_a, data_b, bytes_a) != 0)
        fail_msg("%s (%zu bytes) differs from %s (%zu)", a, bytes_a, b, bytes_b);
    free(data_a);
    free(data_b);
}

void set_integer(daf *d, const char *name, int64_t v) {
    daf_scalar s = daf_scalar_int64(v);
    OK(daf_set_scalar(d, name, &s, NULL, e));
}

void has_integer(daf *d, const char *name, int64_t v) {
    daf_scalar s;
    OK(daf_get_scalar(d, &s, name, e));
    assert_int_equal(s.value.i, v);
}

static void pack_file(daf__buf *data, daf__buf *central, const char *path, const char *name) {
    size_t bytes;
    char *content = test_read_file(path, &bytes);
    daf__zip_entry e = {.name = (const uint8_t *)name,
                        .name_bytes = (uint16_t)strlen(name),
                        .flags = DAF__ZIP_UTF8_FLAG,
                        .crc = (uint32_t)crc32_z(0, (const Bytef *)content, bytes),
                        .packed_bytes = bytes,
                        .raw_bytes = bytes,
                        .offset = data->size};
    data->size += daf__zip_put_aligned_local(daf__buf_reserve(data, 512 + strlen(name)), &e);
    daf__buf_append(data, content, bytes);
    central->size += daf__zip_put_central(daf__buf_reserve(central, 512 + strlen(name)), &e);
    free(content);
}

void pack_tree(const char *tree, const char *archive) {
    char *roots[] = {(char *)(uintptr_t)tree, NULL};
    daf__buf data = {0}, central = {0};
    uint8_t end[DAF__ZIP_END_BYTES];
    uint64_t n = 0;
    FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    assert_non_null(fts);
    for (FTSENT *f; (f = fts_read(fts));) {
        if (f->fts_info != FTS_F)
            continue;
        pack_file(&data, &central, f->fts_path, f->fts_path + strlen(tree) + 1);
        n++;
    }
    fts_close(fts);
    daf__zip_put_end(end, n, central.size, data.size);
    daf__buf_append(&data, central.data, central.size);
    daf__buf_append(&data, end, sizeof end);
    assert_false(data.failed || central.failed);
    test_write_file(archive, data.data, data.size);
    daf__buf_free(&data);
    daf__buf_free(&central);
}

/* What a server of plain files needs of a directory (specification section 14) holds after every kind of write: shards end
 * in the 98 bytes of end records and have directory entries of one width, and metadata.json says what the tree says. */
#include "support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"

enum { N = 5000, END = 98 };

typedef struct walk {
    const char *root;
    json_t *index;
    unsigned n_shards, n_descriptors;
} walk;

static void check_shard(const char *path) {
    size_t bytes;
    uint8_t *file = (uint8_t *)test_read_file(path, &bytes);
    assert_true(file && bytes > END);
    const uint8_t *end = file + bytes - END;
    assert_true(bytes_load32(end) == 0x06064B50 && bytes_load32(end + 56) == 0x07064B50 &&
                bytes_load32(end + 76) == 0x06054B50);
    uint64_t n = bytes_load64(end + 32), size = bytes_load64(end + 40), offset = bytes_load64(end + 48);
    assert_true(n > 0 && offset + size + END == bytes);
    const uint8_t *first = file + offset;
    size_t stride = 46u + bytes_load16(first + 28) + bytes_load16(first + 30) + bytes_load16(first + 32);
    bool has_codec = bytes_load16(first + 10) == 0; /* then codec.json comes last */
    uint64_t chunks = n - has_codec;
    assert_true(stride * chunks + (has_codec ? 46u + 10 + 28 : 0) == size);
    for (uint64_t k = 0; k < chunks; k++) {
        const uint8_t *at = first + k * stride;
        assert_true(bytes_load32(at) == 0x02014B50);
        assert_true(46u + bytes_load16(at + 28) + bytes_load16(at + 30) + bytes_load16(at + 32) == stride);
        assert_true(bytes_load16(at + 30) == 28 && bytes_load16(at + 46 + bytes_load16(at + 28)) == 1);
    }
    free(file);
}

/* key: of the file without ".json" */
static void check_descriptor(walk *w, const char *path, const char *key) {
    json_t *content = test_load_json(path);
    json_t *listed = json_object_get(w->index, key);
    if (!listed || !json_equal(content, listed))
        fail_msg("%s is not what metadata.json lists", key);
    json_decref(content);
    w->n_descriptors++;
}

static bool ends_in(const char *name, const char *end) {
    size_t n = strlen(name), k = strlen(end);
    return n > k && strcmp(name + n - k, end) == 0;
}

static void check_axis(walk *w, const char *path, const char *key) {
    size_t bytes;
    json_int_t n = 0;
    char *text = test_read_file(path, &bytes);
    for (size_t i = 0; i < bytes; i++)
        n += text[i] == '\n';
    const json_t *listed = json_object_get(json_object_get(w->index, key), "n_entries");
    assert_true(json_is_integer(listed) && json_integer_value(listed) == n);
    free(text);
    w->n_descriptors++;
}

static void check_folder(walk *w, const char *folder) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", w->root, folder);
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d));) {
        char key[512];
        struct stat st;
        if (f->d_name[0] == '.')
            continue;
        snprintf(key, sizeof key, "%s/%s", folder, f->d_name);
        snprintf(path, sizeof path, "%s/%s", w->root, key);
        assert_int_equal(stat(path, &st), 0);
        size_t n = strlen(key);
        if (S_ISDIR(st.st_mode)) {
            check_folder(w, key);
        } else if (ends_in(key, ".zip")) {
            check_shard(path);
            w->n_shards++;
        } else if (ends_in(key, ".json")) {
            key[n - 5] = 0;
            check_descriptor(w, path, key);
        } else if (strcmp(folder, "axes") == 0) {
            key[n - 4] = 0;
            check_axis(w, path, key);
        }
    }
    closedir(d);
}

static void check_served(const char *root, unsigned n_shards) {
    static const char *const folders[] = {"axes", "scalars", "vectors", "matrices"};
    char path[512];
    snprintf(path, sizeof path, "%s/metadata.json", root);
    walk w = {.root = root, .index = test_load_json(path)};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        check_folder(&w, folders[i]);
    assert_int_equal(w.n_descriptors, json_object_size(w.index));
    assert_int_equal(w.n_shards, n_shards);
    json_decref(w.index);
}

static void set_all_types(daf *d, const daf_set_options *set, const char *suffix, const void *numbers,
                          const char *const *texts) {
    for (unsigned type = 0; type < DAF_N_TYPES; type++) {
        char name[32];
        snprintf(name, sizeof name, "%s %s", daf_type_name((daf_type)type), suffix);
        const void *values = type == DAF_STRING ? (const void *)texts : numbers;
        OK(daf_set_vector(d, "item", name, (daf_type)type, values, N, set, e));
    }
}

static void every_write_leaves_what_a_server_needs(void **state) {
    static const char *const codecs[] = {"zstd", "gzip", "blosc_zstd_bitshuffle", "blosc_lz4_bitshuffle"};
    const char *run = test_path(state, "run.daf");
    char *pool = calloc(N, 16);
    const char **texts = calloc(N, sizeof *texts);
    uint64_t *numbers = calloc(N, sizeof *numbers), *order = calloc(N, sizeof *order);
    daf_set_options set = {.packing = DAF_PACK_LARGE, .target_chunk_kb = 1};
    daf_scalar name = daf_scalar_string("served");
    daf *d;
    for (size_t i = 0; i < N; i++) {
        numbers[i] = i * i % 10007;
        order[i] = N - 1 - i;
        texts[i] = pool + 16 * i;
        snprintf(pool + 16 * i, 16, "text %zu", i);
    }
    OK(daf_open(&d, run, "w", NULL, e));
    OK(daf_add_axis(d, "item", texts, N, e));
    OK(daf_set_scalar(d, "name", &name, NULL, e));
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
        assert_int_equal(daf_codec_parse(&set.codec, codecs[i]), 0);
        set_all_types(d, &set, codecs[i], numbers, texts);
        check_served(run, (unsigned)(i + 1) * DAF_N_TYPES);
    }
    OK(daf_delete_vector(d, "item", "Bool zstd", e));
    check_served(run, 4 * DAF_N_TYPES - 1);
    set.overwrite = true;
    OK(daf_set_vector(d, "item", "Int8 zstd", DAF_FLOAT64, numbers, N, &set, e));
    OK(daf_repack_vector(d, NULL, "item", "Int16 gzip", &set, e));
    check_served(run, 4 * DAF_N_TYPES - 1);
    daf_stream *s;
    OK(daf_stream_vector(d, &s, "item", "streamed", DAF_UINT64, &set, e));
    OK(daf_stream_put(s, numbers, N, e));
    OK(daf_stream_finish(s, e));
    OK(daf_batch_begin(d, e));
    set.form = DAF_FORM_SPARSE;
    OK(daf_set_vector(d, "item", "sparse", DAF_UINT32, numbers, N, &set, e));
    OK(daf_delete_vector(d, "item", "Bool gzip", e));
    OK(daf_batch_commit(d, e));
    check_served(run, 4 * DAF_N_TYPES + 1);
    OK(daf_reorder_axis(d, "item", order, N, e));
    check_served(run, 4 * DAF_N_TYPES + 1);
    OK(daf_close(d, e));
    free(pool);
    free(texts);
    free(numbers);
    free(order);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_write_leaves_what_a_server_needs, test_setup, test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

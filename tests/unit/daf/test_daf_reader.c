/* Parts of packed data: what is decoded, kept and read ahead; chunks that are absent. */
#include "support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "chunk_cache.h"
#include "cli/pool.h"
#include "io.h"
#include "shard.h"

/* ---- the cache */

static void cache_keeps_the_newest(void **state) {
    (void)state;
    daf__cache *c;
    daf__cached got;
    uint8_t raw[1000];
    OK(daf__cache_new(&c, 5000, e));
    for (uint64_t k = 0; k < 50; k++) {
        memset(raw, (int)k, sizeof raw);
        daf__cache_put(c, k << 40, raw, sizeof raw);
        assert_true(daf__cache_bytes(c) <= 5000);
        assert_true(daf__cache_get(c, 0, &got)); /* used each time, so never the oldest */
        assert_true(daf__cache_get(c, k << 40, &got));
        assert_int_equal(got.bytes, sizeof raw);
        assert_true(got.raw[0] == k && got.raw[999] == k);
    }
    assert_true(daf__cache_has(c, 49ull << 40) && daf__cache_has(c, 0));
    assert_false(daf__cache_has(c, 40ull << 40));
    daf__cache_put(c, 0, NULL, 0);
    assert_true(daf__cache_get(c, 0, &got) && !got.raw);
    uint64_t before = daf__cache_bytes(c);
    static uint8_t large[6000];
    daf__cache_put(c, 7, large, sizeof large);
    assert_false(daf__cache_has(c, 7));
    assert_int_equal(daf__cache_bytes(c), before);
    daf__cache_free(c);
    daf__cache_free(NULL);
}

/* ---- ranges */

enum { ROWS = 1000, COLUMNS = 37 };
#define N ((uint64_t)ROWS * COLUMNS)

static uint64_t numbers[N];
static const char *texts[N];
static const char *const words[] = {"", "a", "photon", "ünïcødé"};

static const daf_codec codecs[] = {DAF_CODEC_ZSTD, DAF_CODEC_GZIP, DAF_CODEC_BLOSC_ZSTD_BITSHUFFLE,
                                   DAF_CODEC_BLOSC_LZ4_BITSHUFFLE};
enum { N_CODECS = sizeof codecs / sizeof codecs[0] };

static void make_values(void) {
    test_random r = {11};
    for (uint64_t i = 0; i < N; i++) {
        numbers[i] = test_below(&r, 1u << i % 20);
        texts[i] = words[test_below(&r, 4)];
    }
}

/* matrices i0 .. (UInt64), b0 .. (Bool), s0 .. (String) in each codec, and flat ones. */
static void make_repository(const char *path) {
    daf *d;
    daf_set_options o;
    daf_set_options_init(&o);
    o.target_chunk_kb = 1;
    make_values();
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "r", 0, 1, ROWS, e));
    OK(daf_add_axis_integers(d, "c", 0, 1, COLUMNS, e));
    for (unsigned i = 0; i <= N_CODECS; i++) {
        char name[8];
        o.packing = i < N_CODECS ? DAF_PACK_LARGE : DAF_PACK_NEVER;
        o.codec = i < N_CODECS ? codecs[i] : DAF_CODEC_DEFAULT;
        snprintf(name, sizeof name, "i%u", i);
        OK(daf_set_matrix(d, "r", "c", name, DAF_UINT64, numbers, N, &o, e));
        OK(daf_set_vector(d, "r", name, DAF_UINT64, numbers, ROWS, &o, e));
        snprintf(name, sizeof name, "b%u", i);
        OK(daf_set_matrix(d, "r", "c", name, DAF_BOOL, numbers, N, &o,
                          e)); /* the bytes of numbers: any value */
        snprintf(name, sizeof name, "s%u", i);
        OK(daf_set_matrix(d, "r", "c", name, DAF_STRING, texts, N, &o, e));
    }
    OK(daf_close(d, e));
}

static void check_element(const daf_array *a, uint64_t i, uint64_t at) {
    if (daf_array_type(a) == DAF_STRING)
        assert_string_equal(daf_array_strings(a)[i], texts[at]);
    else if (daf_array_type(a) == DAF_BOOL)
        assert_int_equal(((const uint8_t *)daf_array_values(a))[i], ((const uint8_t *)numbers)[at] != 0);
    else
        assert_true(((const uint64_t *)daf_array_values(a))[i] == numbers[at]);
}

static void check_range(daf_reader *reader, const daf_range *x) {
    daf_array *a;
    OK(daf_reader_read(reader, &a, x, e));
    assert_int_equal(daf_array_rows(a), x->n_rows);
    assert_int_equal(daf_array_columns(a), x->n_columns);
    for (uint64_t c = 0; c < x->n_columns; c++)
        for (uint64_t r = 0; r < x->n_rows; r++)
            check_element(a, c * x->n_rows + r, (x->first_column + c) * ROWS + x->first_row + r);
    daf_array_free(a);
}

static daf_range random_range(test_random *r) {
    daf_range x = {.n_rows = test_below(r, 4) ? test_below(r, 300) : ROWS, .n_columns = 1 + test_below(r, 4)};
    x.first_row = test_below(r, ROWS - x.n_rows + 1);
    x.first_column = test_below(r, COLUMNS - x.n_columns + 1);
    return x;
}

static void check_reader(daf_reader *reader, unsigned seed) {
    test_random r = {seed};
    daf_array *a;
    for (unsigned i = 0; i < 60; i++) {
        daf_range x = random_range(&r);
        check_range(reader, &x);
    }
    /* Steps through columns, forwards and back, and through rows. */
    for (uint64_t c = 0; c < COLUMNS; c++)
        check_range(reader, &(daf_range){0, ROWS, c, 1});
    for (uint64_t c = COLUMNS; c-- > 0;)
        check_range(reader, &(daf_range){100, 500, c, 1});
    for (uint64_t row = 0; row + 10 <= ROWS; row += 10)
        check_range(reader, &(daf_range){row, 10, 3, 2});
    check_range(reader, &(daf_range){0, ROWS, 0, COLUMNS});
    check_range(reader, &(daf_range){ROWS, 0, 0, 1});
    FAILS(DAF_ERR_ARG, "not all inside", daf_reader_read(reader, &a, &(daf_range){1, ROWS, 0, 1}, e));
    FAILS(DAF_ERR_ARG, "not all inside", daf_reader_read(reader, &a, &(daf_range){0, 1, UINT64_MAX, 2}, e));
}

static void parts_equal_the_whole(void **state) {
    const char *path = test_path(state, "a.daf");
    static const uint32_t caches_kb[] = {1, 20, 0};
    make_repository(path);
    for (unsigned threads = 0; threads <= 3; threads += 3) {
        cli_pool *pool = cli_pool_new(threads ? threads : 1);
        daf_executor x = {
            .context = pool, .submit = cli_pool_submit, .wait = cli_pool_wait, .n_threads = threads};
        for (unsigned cache = 0; cache < 3; cache++) {
            daf *d;
            daf_options options;
            daf_options_init(&options);
            options.executor = &x;
            options.local_cache_kb = caches_kb[cache];
            OK(daf_open(&d, path, "r", &options, e));
            for (unsigned i = 0; i < 3 * (N_CODECS + 1); i++) {
                daf_reader *reader;
                char name[8];
                snprintf(name, sizeof name, "%c%u", "ibs"[i % 3], i / 3);
                OK(daf_open_matrix_reader(d, &reader, "r", "c", name, e));
                assert_int_equal(daf_reader_rows(reader), ROWS);
                assert_int_equal(daf_reader_columns(reader), COLUMNS);
                check_reader(reader, i);
                daf_reader_free(reader);
            }
            OK(daf_close(d, e));
        }
        cli_pool_free(pool);
    }
}

static void check_part(daf_reader *reader, const daf_array *whole, const daf_range *x) {
    daf_array *part, *expected;
    OK(daf_reader_read(reader, &part, x, e));
    OK(daf_array_slice(&expected, whole, x, e));
    assert_int_equal(daf_array_count(part), x->n_rows * x->n_columns);
    size_t width = daf_type_bytes(daf_array_type(part));
    if (width)
        assert_memory_equal(daf_array_values(part), daf_array_values(expected),
                            width * daf_array_count(part));
    for (uint64_t i = 0; !width && i < daf_array_count(part); i++)
        assert_string_equal(daf_array_strings(part)[i], daf_array_strings(expected)[i]);
    daf_array_free(part);
    daf_array_free(expected);
}

/* Chunks of several columns, and shards that other tools made. */
static void check_fixture(void **state, const char *fixture, const char *rows, const char *columns,
                          test_random *r) {
    char from[512];
    const char *path = test_path(state, "fixture.daf");
    daf *d;
    daf_names names;
    snprintf(from, sizeof from, TEST_FIXTURES "/daf/%s", fixture);
    test_copy_tree(from, path);
    OK(daf_open(&d, path, "r", NULL, e));
    OK(daf_list_matrices(d, &names, rows, columns, e));
    unsigned packed = 0;
    for (size_t k = 0; k < names.n; k++) {
        daf_info info;
        daf_array *whole;
        daf_reader *reader;
        OK(daf_matrix_info(d, &info, rows, columns, names.names[k], e));
        if (!info.packed && !info.sparse)
            continue;
        packed++;
        OK(daf_get_matrix(d, &whole, rows, columns, names.names[k], e));
        OK(daf_open_matrix_reader(d, &reader, rows, columns, names.names[k], e));
        for (unsigned i = 0; i < 200; i++) {
            daf_range x = {.n_rows = test_below(r, info.rows + 1),
                           .n_columns = test_below(r, info.columns + 1)};
            x.first_row = test_below(r, info.rows - x.n_rows + 1);
            x.first_column = test_below(r, info.columns - x.n_columns + 1);
            check_part(reader, whole, &x);
        }
        daf_reader_free(reader);
        daf_array_free(whole);
    }
    assert_true(packed > 0);
    daf_names_clear(&names);
    OK(daf_close(d, e));
    test_remove_tree(path);
}

static void parts_of_fixtures(void **state) {
    test_random r = {13};
    check_fixture(state, "packed-wide-chunks/zstd.daf", "r", "c", &r);
    check_fixture(state, "packed-wide-chunks/gzip.daf", "r", "c", &r);
    check_fixture(state, "zipped-plain/zstd.daf", "item", "kind", &r);
    check_fixture(state, "zipped-plain/gzip.daf", "item", "kind", &r);
    check_fixture(state, "zipped/blosc_lz4_bitshuffle.daf", "item", "kind", &r);
    check_fixture(state, "dafr-packed/blosc_zstd_bitshuffle.daf", "cell", "gene", &r);
}

/* It reads on in what it has opened. */
static void a_reader_outlives_the_property(void **state) {
    const char *path = test_path(state, "a.daf");
    daf *d;
    daf_reader *reader, *vector;
    make_repository(path);
    OK(daf_open(&d, path, "r+", NULL, e));
    OK(daf_open_matrix_reader(d, &reader, "r", "c", "i0", e));
    OK(daf_open_vector_reader(d, &vector, "r", "i1", e));
    assert_int_equal(daf_reader_type(vector), DAF_UINT64);
    OK(daf_delete_matrix(d, "r", "c", "i0", e));
    OK(daf_delete_axis(d, "r", e));
    check_range(reader, &(daf_range){5, 700, 7, 20});
    check_range(vector, &(daf_range){5, 700, 0, 1});
    daf_reader_free(reader);
    daf_reader_free(vector);
    daf_reader_free(NULL);
    FAILS(DAF_ERR_MISSING, "no matrix \"i0\"", daf_open_matrix_reader(d, &reader, "r", "c", "i0", e));
    OK(daf_close(d, e));
}

/* ---- what is read */

typedef struct counted {
    uint64_t bytes, calls;
} counted;

static ssize_t counting_pread(void *context, int fd, void *data, size_t bytes, off_t offset) {
    counted *c = context;
    ssize_t n = pread(fd, data, bytes, offset);
    if (n > 0)
        c->bytes += (uint64_t)n;
    c->calls++;
    return n;
}

static void write_at(int fd, uint64_t offset, const void *data, size_t bytes) {
    assert_int_equal(pwrite(fd, data, bytes, (off_t)offset), (ssize_t)bytes);
}

/* A shard of 32768 x 32768 UInt32 in which only one chunk is really there; the rest is a hole. */
static void write_huge_shard(const char *path, uint64_t k) {
    enum { EDGE = 32768, CHUNK = 2048, CHUNK_BYTES = CHUNK * 4, FRAME = CHUNK_BYTES + 16 };
    const daf__grid g = {.kind = DAF__MATRIX,
                         .rows = EDGE,
                         .columns = EDGE,
                         .chunk_rows = CHUNK,
                         .chunk_columns = 1,
                         .row_chunks = EDGE / CHUNK,
                         .column_chunks = EDGE,
                         .n_chunks = (uint64_t)EDGE / CHUNK * EDGE};
    static uint8_t frame[FRAME];
    uint8_t name[DAF__CHUNK_NAME_BYTES], bytes[256];
    memcpy(frame, "\x02\x01\x96\x04", 4);
    bytes_store32(frame + 4, CHUNK_BYTES);
    bytes_store32(frame + 8, CHUNK_BYTES);
    bytes_store32(frame + 12, FRAME);
    for (uint32_t i = 0; i < CHUNK; i++)
        bytes_store32(frame + 16 + 4 * i, i * i);
    daf__zip_entry e = {.name = name,
                        .name_bytes = (uint16_t)daf__chunk_name(name, &g, DAF_CODEC_BLOSC_ZSTD_BITSHUFFLE, k),
                        .flags = DAF__ZIP_UTF8_FLAG,
                        .packed_bytes = FRAME,
                        .raw_bytes = FRAME,
                        .offset = 16 * g.n_chunks + 4 + k * (FRAME + 61)};
    uint64_t directory = 16 * g.n_chunks + 4 + g.n_chunks * (FRAME + 61);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(fd >= 0);
    size_t n = daf__zip_put_local(bytes, &e, true);
    write_at(fd, e.offset, bytes, n);
    write_at(fd, e.offset + n, frame, sizeof frame);
    n = daf__zip_put_central(bytes, &e); /* the first entry gives the width */
    write_at(fd, directory, bytes, n);
    assert_true(directory > 4ull << 30);
    e.crc = (uint32_t)crc32_z(0, frame, sizeof frame);
    write_at(fd, directory + k * n, bytes, daf__zip_put_central(bytes, &e));
    uint64_t directory_bytes = (g.n_chunks + 1) * n; /* codec.json's entry may be as wide */
    daf__zip_put_end(bytes, g.n_chunks + 1, directory_bytes, directory);
    write_at(fd, directory + directory_bytes, bytes, DAF__ZIP_END_BYTES);
    close(fd);
}

static void one_chunk_costs_one_chunk(void **state) {
    enum { EDGE = 32768 };
    static const char json[] =
        "{\"format\":\"dense\",\"eltype\":\"UInt32\",\"packed_format\":\"indexed+zipped\","
        "\"chunk_shape\":[2048,1],\"compression\":\"blosc_zstd_bitshuffle\"}\n";
    const char *path = test_path(state, "a.daf");
    char file[300];
    counted c = {0, 0};
    daf_options options;
    daf *d;
    daf_array *a;
    daf_reader *reader;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "r", 0, 1, EDGE, e));
    OK(daf_close(d, e));
    snprintf(file, sizeof file, "%s/matrices/r/r/m.zip", path);
    write_huge_shard(file, 300001);
    snprintf(file, sizeof file, "%s/matrices/r/r/m.json", path);
    test_write_file(file, json, sizeof json - 1);
    daf_io io = daf__system_io;
    io.context = &c;
    io.pread = counting_pread;
    daf_options_init(&options);
    options.io = &io;
    OK(daf_open(&d, path, "r", &options, e));
    uint64_t length;
    OK(daf_axis_length(d, &length, "r", e));
    const daf_range range = {300001 % 16 * 2048 + 5, 100, 300001 / 16, 1};
    c = (counted){0, 0};
    OK(daf_get_matrix_range(d, &a, "r", "r", "m", &range, e));
    assert_int_equal(((const uint32_t *)daf_array_values(a))[99], 104 * 104);
    daf_array_free(a);
    /* Descriptor, end, first entry, last entries, entry, header, frame. */
    assert_in_range(c.bytes, 8208, 8208 + sizeof json + 98 + 46 + 84 + 85 + 61);
    OK(daf_open_matrix_reader(d, &reader, "r", "r", "m", e));
    c = (counted){0, 0};
    OK(daf_reader_read(reader, &a, &range, e));
    daf_array_free(a);
    assert_in_range(c.bytes, 8208, 8208 + 85 + 61);
    assert_int_equal(c.calls, 2);
    c = (counted){0, 0};
    OK(daf_reader_read(reader, &a, &range, e));
    daf_array_free(a);
    assert_int_equal(c.calls, 0); /* kept */
    FAILS(DAF_ERR_CORRUPT, "chunk 300000",
          daf_reader_read(reader, &a, &(daf_range){0, 2048, 300000 / 16, 1}, e));
    daf_reader_free(reader);
    OK(daf_close(d, e));
}

/* ---- absent chunks */

/* Takes a chunk out of the index, and its entry out of the directory. */
static void forget_chunk(const char *file, uint64_t n_chunks, uint64_t k, uint64_t entry_number) {
    size_t bytes;
    uint8_t *p = (uint8_t *)test_read_file(file, &bytes);
    const uint8_t *end = p + bytes - DAF__ZIP_END_BYTES;
    uint64_t n = bytes_load64(end + 32), size = bytes_load64(end + 40), offset = bytes_load64(end + 48);
    size_t width =
        DAF__ZIP_CENTRAL_BYTES + (size_t)bytes_load16(p + offset + 28) + DAF__ZIP_CENTRAL_EXTRA_BYTES;
    memset(p + 16 * k, 0xFF, 16);
    bytes_store32(p + 16 * n_chunks, common_crc32c(0, p, 16 * n_chunks));
    uint8_t *entry = p + offset + entry_number * width;
    memmove(entry, entry + width, (size_t)(p + bytes - (entry + width)));
    daf__zip_put_end(p + bytes - width - DAF__ZIP_END_BYTES, n - 1, size - width, offset);
    test_write_file(file, p, bytes - width);
    free(p);
}

static bool is_in(uint64_t at, const uint64_t *chunks, unsigned n, uint64_t chunk_rows) {
    uint64_t per_column = (ROWS - 1) / chunk_rows + 1, k = at % ROWS / chunk_rows + at / ROWS * per_column;
    for (unsigned i = 0; i < n; i++)
        if (chunks[i] == k)
            return true;
    return false;
}

static void check_absent(daf *d, const char *name, uint64_t chunk_rows, const uint64_t *absent, unsigned n) {
    daf_array *a;
    daf_reader *reader;
    OK(daf_get_matrix(d, &a, "r", "c", name, e));
    for (uint64_t i = 0; i < N; i++) {
        if (!is_in(i, absent, n, chunk_rows))
            check_element(a, i, i);
        else if (daf_array_type(a) == DAF_STRING)
            assert_string_equal(daf_array_strings(a)[i], "");
        else
            assert_true(((const uint64_t *)daf_array_values(a))[i] == 0);
    }
    daf_array_free(a);
    OK(daf_open_matrix_reader(d, &reader, "r", "c", name, e));
    for (unsigned i = 0; i < 2; i++) { /* the second time from the cache */
        OK(daf_reader_read(reader, &a, &(daf_range){0, 2 * chunk_rows, 0, 1}, e));
        for (uint64_t r = 0; r < chunk_rows && daf_array_type(a) == DAF_UINT64; r++)
            assert_true(((const uint64_t *)daf_array_values(a))[r] == 0);
        check_element(a, chunk_rows + 1, chunk_rows + 1);
        daf_array_free(a);
    }
    daf_reader_free(reader);
}

static void absent_chunks_are_zeros(void **state) {
    static const uint64_t absent[] = {0, 30};
    const char *path = test_path(state, "a.daf");
    make_repository(path);
    for (unsigned i = 0; i < 2 * N_CODECS; i++) {
        char file[300], name[8];
        uint64_t chunk_rows = i % 2 ? 64 : 128, n_chunks = ((ROWS - 1) / chunk_rows + 1) * COLUMNS;
        daf *d;
        snprintf(name, sizeof name, "%c%u", "is"[i % 2], i / 2);
        snprintf(file, sizeof file, "%s/matrices/r/c/%s.zip", path, name);
        OK(daf_open(&d, path, "r", NULL, e));
        forget_chunk(file, n_chunks, 0, 0);
        check_absent(d, name, chunk_rows, absent, 1);
        forget_chunk(file, n_chunks, 30, 29);
        check_absent(d, name, chunk_rows, absent, 2);
        OK(daf_close(d, e));
    }
}

/* A reader of a sparse property tells what the property was when it was opened. */
static void sparse_properties_are_read_by_parts(void **state) {
    static const uint8_t all_true[N] = {[3] = 1, [700] = 1, [N - 1] = 1};
    const char *path = test_path(state, "sparse.daf");
    test_random random = {12};
    daf_set_options o;
    daf *d;
    daf_set_options_init(&o);
    o.form = DAF_FORM_SPARSE;
    o.target_chunk_kb = 1;
    make_values();
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "r", 0, 1, ROWS, e));
    OK(daf_add_axis_integers(d, "c", 0, 1, COLUMNS, e));
    for (unsigned packed = 0; packed < 2; packed++) {
        static const char *const names[] = {"numbers", "texts", "true"};
        static const daf_type types[] = {DAF_UINT64, DAF_STRING, DAF_BOOL};
        const void *const values[] = {numbers, texts, all_true};
        o.packing = packed ? DAF_PACK_LARGE : DAF_PACK_NEVER;
        o.overwrite = true;
        for (unsigned i = 0; i < 3; i++) {
            daf_array *whole;
            daf_reader *reader;
            OK(daf_set_matrix(d, "r", "c", names[i], types[i], values[i], N, &o, e));
            OK(daf_get_matrix(d, &whole, "r", "c", names[i], e));
            OK(daf_open_matrix_reader(d, &reader, "r", "c", names[i], e));
            OK(daf_delete_matrix(d, "r", "c", names[i], e));
            assert_int_equal(daf_reader_type(reader), types[i]);
            assert_int_equal(daf_reader_rows(reader), ROWS);
            assert_int_equal(daf_reader_columns(reader), COLUMNS);
            check_part(reader, whole, &(daf_range){.n_rows = ROWS, .n_columns = COLUMNS});
            for (unsigned k = 0; k < 100; k++) {
                daf_range x = {.n_rows = test_below(&random, ROWS + 1),
                               .n_columns = test_below(&random, COLUMNS + 1)};
                x.first_row = test_below(&random, ROWS - x.n_rows + 1);
                x.first_column = test_below(&random, COLUMNS - x.n_columns + 1);
                check_part(reader, whole, &x);
            }
            daf_array *a;
            FAILS(DAF_ERR_ARG, "", daf_reader_read(reader, &a, &(daf_range){.n_rows = ROWS + 1}, e));
            daf_reader_free(reader);
            daf_array_free(whole);
        }
    }
    OK(daf_close(d, e));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(cache_keeps_the_newest),
        TEST(parts_equal_the_whole),
        TEST(parts_of_fixtures),
        TEST(a_reader_outlives_the_property),
        TEST(one_chunk_costs_one_chunk),
        TEST(absent_chunks_are_zeros),
        TEST(sparse_properties_are_read_by_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Archives that other programs wrote, or could have: read, and appended to. */
#include "archive_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/bytes.h"

static void an_unsupported_method_is_named(void **state) {
    const char *path = test_path(state, "a.daf.zip");
    daf *d;
    daf_array *a;
    daf_names axes;
    copy_file(FIXTURE("zip-foreign/unsupported-method.daf.zip"), path);
    OK(daf_open(&d, path, "r", NULL, e));
    OK(daf_list_axes(d, &axes, e));
    assert_int_equal(axes.n, 2);
    daf_names_clear(&axes);
    FAILS(DAF_ERR_UNSUPPORTED,
          "unsupported ZIP compression method: 14\nin ZIP entry name: axes/item.txt\nsupported methods are: "
          "0 (STORED), "
          "8 (DEFLATE), 9 (DEFLATE64), 12 (BZIP2), 93 (ZSTD)",
          daf_get_axis(d, &a, "item", e));
    OK(daf_get_axis(d, &a, "kind", e));
    daf_array_free(a);
    OK(daf_close(d, e));
}

/* Appending keeps what the directory of another program says, and its comment. */
static void foreign_entries_are_kept(void **state) {
    static const char *const files[] = {
        "deflate", "bzip2",          "deflate64", "data-descriptors", "extras-zip64-comment",
        "zstd",    "whole-directory"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char from[512], name[32];
        size_t bytes, now_bytes;
        daf *d;
        snprintf(from, sizeof from, FIXTURE("zip-foreign/%s.daf.zip"), files[i]);
        snprintf(name, sizeof name, "a%zu.daf.zip", i);
        const char *path = test_path(state, name);
        copy_file(from, path);
        OK(daf_open(&d, path, "r+", NULL, e));
        set_integer(d, "added", 1);
        OK(daf_close(d, e));
        char *content = test_read_file(from, &bytes), *now = test_read_file(path, &now_bytes);
        char *at = content + bytes - 22;
        while (memcmp(at, "PK\5\6", 4) != 0)
            at--;
        size_t directory = bytes_load32(at + 16);
        if (directory == UINT32_MAX) {
            const char *record = content + bytes_load64(at - 12);
            assert_memory_equal(record, "PK\6\6", 4);
            directory = bytes_load64(record + 48);
        }
        assert_memory_equal(content, now, directory);
        /* Each central entry stands in the new directory as it was. */
        unsigned kept = 0;
        for (char *c = content + directory; memcmp(c, "PK\1\2", 4) == 0;) {
            size_t width = 46u + bytes_load16(c + 28) + bytes_load16(c + 30) + bytes_load16(c + 32);
            bool index = memmem(c + 46, bytes_load16(c + 28), "metadata.json", 13) != NULL;
            bool there = memmem(now + directory, now_bytes - directory, c, width) != NULL;
            assert_int_equal(there, !index);
            kept += there;
            c += width;
        }
        assert_true(kept >= 20);
        size_t comment = bytes_load16(at + 20);
        if (comment)
            assert_memory_equal(now + now_bytes - comment, at + 22, comment);
        OK(daf_open(&d, path, "r", NULL, e));
        has_integer(d, "added", 1);
        OK(daf_close(d, e));
        free(content);
        free(now);
    }
}

/* Sizes that the directory tells of are limits, not promises. */
static void wrong_sizes_and_checksums(void **state) {
    static const char *const files[] = {"deflate", "bzip2", "deflate64", "zstd", "stored"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        for (unsigned way = 0; way < 4; way++) {
            char from[512], name[32];
            size_t bytes;
            daf *d;
            daf_array *a;
            snprintf(from, sizeof from, FIXTURE("zip-foreign/%s.daf.zip"), files[i]);
            snprintf(name, sizeof name, "a%zu%u.daf.zip", i, way);
            const char *path = test_path(state, name);
            char *content = test_read_file(from, &bytes), *entry = content + bytes - 64;
            while (memcmp(entry, "axes/item.txt", 13) != 0 || memcmp(entry - 46, "PK\1\2", 4) != 0)
                entry--;
            entry -= 46;
            uint32_t raw = bytes_load32(entry + 24);
            bool stored = bytes_load16(entry + 10) == 0;
            bytes_store32(entry + 24, way == 0 ? raw - 1 : way == 1 ? raw + 1 : way == 2 ? 0x7FFFFFFF : raw);
            if (way == 3)
                entry[16] ^= 1;
            test_write_file(path, content, bytes);
            free(content);
            OK(daf_open(&d, path, "r", NULL, e));
            FAILS(DAF_ERR_CORRUPT, stored && way == 3 ? "does not match" : "cannot be decoded",
                  daf_get_axis(d, &a, "item", e));
            OK(daf_close(d, e));
        }
    }
}

static uint32_t crc_of(const char *data) {
    return (uint32_t)crc32_z(0, (const Bytef *)data, strlen(data));
}

static void put_one(FILE *f, const char *name, unsigned flags, const char *data, long *offset) {
    uint8_t h[30] = {'P', 'K', 3, 4, 20};
    *offset = ftell(f);
    bytes_store16(h + 6, (uint16_t)flags);
    bytes_store32(h + 14, crc_of(data));
    bytes_store32(h + 18, (uint32_t)strlen(data));
    bytes_store32(h + 22, (uint32_t)strlen(data));
    bytes_store16(h + 26, (uint16_t)strlen(name));
    fwrite(h, 1, sizeof h, f);
    fputs(name, f);
    fputs(data, f);
}

static void put_two(FILE *f, const char *name, unsigned flags, const char *data, long offset) {
    uint8_t h[46] = {'P', 'K', 1, 2, 20, 0, 20};
    bytes_store16(h + 8, (uint16_t)flags);
    bytes_store32(h + 16, crc_of(data));
    bytes_store32(h + 20, (uint32_t)strlen(data));
    bytes_store32(h + 24, (uint32_t)strlen(data));
    bytes_store16(h + 28, (uint16_t)strlen(name));
    bytes_store32(h + 42, (uint32_t)offset);
    fwrite(h, 1, sizeof h, f);
    fputs(name, f);
}

typedef struct piece {
    const char *name, *data;
    unsigned flags;
} piece;

static void write_zip(const char *path, const piece *p, unsigned n, unsigned disk, size_t comment) {
    long offsets[8];
    uint8_t end[22] = {'P', 'K', 5, 6};
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (unsigned i = 0; i < n; i++)
        put_one(f, p[i].name, p[i].flags, p[i].data, &offsets[i]);
    long directory = ftell(f);
    for (unsigned i = 0; i < n; i++)
        put_two(f, p[i].name, p[i].flags, p[i].data, offsets[i]);
    bytes_store16(end + 4, (uint16_t)disk);
    bytes_store16(end + 8, (uint16_t)n);
    bytes_store16(end + 10, (uint16_t)n);
    bytes_store32(end + 12, (uint32_t)(ftell(f) - directory));
    bytes_store32(end + 16, (uint32_t)directory);
    bytes_store16(end + 20, (uint16_t)comment);
    fwrite(end, 1, sizeof end, f);
    for (size_t i = 0; i < comment; i++)
        fputc("PK\5\6"[i % 4], f);
    fclose(f);
}

#define MARKER "{\"version\":[1,1]}\n"
#define FIVE "{\"type\":\"Int64\",\"value\":5}\n"
#define SIX "{\"type\":\"Int64\",\"value\":6}\n"

static void spellings_of_other_programs(void **state) {
    static const piece twice[] = {{"./daf.json", MARKER, 0},
                                  {"scalars/n.json", FIVE, 0},
                                  {"./scalars/n.json", SIX, 0},
                                  {"scalars/", "", 0},
                                  {"axes/", "", 0}};
    static const piece inside[] = {{"run/daf.json", MARKER, 0}, {"run/scalars/n.json", FIVE, 0}};
    static const piece beside[] = {{"run/daf.json", MARKER, 0}, {"readme", "x", 0}};
    static const piece two_runs[] = {{"a/daf.json", MARKER, 0}, {"b/daf.json", MARKER, 0}};
    static const piece deep[] = {{"a/b/daf.json", MARKER, 0}};
    static const piece secret[] = {{"daf.json", MARKER, 0}, {"scalars/n.json", FIVE, 1}};
    static const struct {
        const piece *pieces;
        unsigned n, disk;
        size_t comment;
        int code;
        int64_t expected;
    } cases[] = {
        {twice, 5, 0, 0, 0, 6},
        {twice, 5, 0, 65535, 0, 6},
        {inside, 2, 0, 10, 0, 5},
        {beside, 2, 0, 0, DAF_ERR_NOT_DAF, 0},
        {two_runs, 2, 0, 0, DAF_ERR_NOT_DAF, 0},
        {deep, 1, 0, 0, DAF_ERR_NOT_DAF, 0},
        {secret, 2, 0, 0, DAF_ERR_UNSUPPORTED, 0},
        {twice, 5, 1, 0, DAF_ERR_UNSUPPORTED, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[32];
        daf *d;
        snprintf(name, sizeof name, "a%zu.daf.zip", i);
        const char *path = test_path(state, name);
        write_zip(path, cases[i].pieces, cases[i].n, cases[i].disk, cases[i].comment);
        if (cases[i].code) {
            FAILS(cases[i].code, "", daf_open(&d, path, "r", NULL, e));
            FAILS(cases[i].code, "", daf_open(&d, path, "r+", NULL, e));
            continue;
        }
        OK(daf_open(&d, path, "r", NULL, e));
        has_integer(d, "n", cases[i].expected);
        OK(daf_close(d, e));
        OK(daf_open(&d, path, "r+", NULL, e));
        set_integer(d, "more", 1);
        has_integer(d, "more", 1);
        OK(daf_close(d, e));
        OK(daf_open(&d, path, "r", NULL, e));
        has_integer(d, "n", cases[i].expected);
        has_integer(d, "more", 1);
        OK(daf_close(d, e));
    }
}

static void count_hidden(void *context, const daf_problem *p) {
    *(unsigned *)context += p->code == DAF_PROBLEM_NAME_HIDDEN;
}

/* A name that no property can have is not listed, and hides nothing that has a good one. */
static void bad_names_hide_nothing(void **state) {
    static const piece pieces[] = {{"daf.json", MARKER, 0},       {"scalars/...json", SIX, 0},
                                   {"scalars/n.json", FIVE, 0},   {"axes/a.txt", "x\n", 0},
                                   {"axes/...txt", "x\ny\n", 0},  {"vectors/../v.json", "{}", 0},
                                   {"vectors/a/..json", "{}", 0}, {"matrices/../a/m.json", "{}", 0}};
    const char *path = test_path(state, "a.daf.zip"), *tree = test_path(state, "a.daf");
    daf_names names;
    daf *d, *to;
    write_zip(path, pieces, 8, 0, 0);
    OK(daf_open(&d, path, "r", NULL, e));
    OK(daf_list_scalars(d, &names, e));
    assert_int_equal(names.n, 1);
    assert_string_equal(names.names[0], "n");
    daf_names_clear(&names);
    OK(daf_list_axes(d, &names, e));
    assert_int_equal(names.n, 1);
    daf_names_clear(&names);
    OK(daf_list_vectors(d, &names, "a", e));
    assert_int_equal(names.n, 0);
    daf_names_clear(&names);
    OK(daf_open(&to, tree, "w", NULL, e));
    OK(daf_copy(to, d, NULL, e));
    OK(daf_close(to, e));
    OK(daf_close(d, e));
    unsigned hidden = 0;
    daf_verify_summary s;
    daf_verify_options options;
    daf_verify_options_init(&options);
    options.problem = count_hidden;
    options.context = &hidden;
    OK(daf_verify(path, &options, &s, e));
    assert_int_equal(hidden, 4); /* one of a vector without payload counts as absent */
    OK(daf_verify(tree, NULL, &s, e));
    assert_int_equal(s.n[DAF_CLASS_DAMAGE] + s.n[DAF_CLASS_FAULT], 0);
    assert_int_equal(s.properties, 2);
}

/* The marker of an old archive cannot be raised: sparse data take the 1.0 form, and nothing is packed. */
static void an_archive_of_version_1_0(void **state) {
    static const piece pieces[] = {{"daf.json", "{\"version\":[1,0]}\n", 0}, {"axes/x.txt", "a\nb\nc\n", 0}};
    const char *path = test_path(state, "a.daf.zip");
    static const uint16_t at[] = {2};
    static const float values[] = {1.5f};
    daf *d;
    daf_options options;
    daf_sparse *s;
    daf_info info;
    int major, minor;
    daf_options_init(&options);
    options.packed = true;
    options.target_chunk_kb = 1;
    write_zip(path, pieces, 2, 0, 0);
    OK(daf_open(&d, path, "r+", &options, e));
    OK(daf_set_sparse_vector(d, "x", "v",
                             &(daf_csc){.type = DAF_FLOAT32,
                                        .index_type = DAF_UINT16,
                                        .rows = 3,
                                        .columns = 1,
                                        .nnz = 1,
                                        .indices = at,
                                        .values = values},
                             NULL, e));
    OK(daf_add_axis_integers(d, "y", 0, 1, 4000, e));
    float *many = calloc(4000, sizeof *many);
    OK(daf_set_vector(d, "y", "v", DAF_FLOAT32, many, 4000, NULL, e));
    free(many);
    OK(daf_vector_info(d, &info, "y", "v", e));
    assert_false(info.packed);
    OK(daf_close(d, e));
    size_t bytes;
    char *content = test_read_file(path, &bytes);
    assert_non_null(
        memmem(content, bytes, "{\"format\":\"sparse\",\"eltype\":\"Float32\",\"indtype\":\"UInt16\"}", 57));
    free(content);
    OK(daf_open(&d, path, "r", NULL, e));
    daf_format_version(d, &major, &minor);
    assert_int_equal(minor, 0);
    OK(daf_get_sparse_vector(d, &s, "x", "v", e));
    daf_sparse_free(s);
    OK(daf_close(d, e));
}

/* Archives of other programs are never cut, however damaged their last entry is. */
static void a_foreign_archive_is_never_cut(void **state) {
    const char *path = test_path(state, "a.daf.zip");
    size_t bytes;
    daf *d;
    char *content = test_read_file(FIXTURE("zip-foreign/stored.daf.zip"), &bytes);
    /* The last entry's local header and CRC are destroyed. */
    char *last = memmem(content + 20000, bytes - 20000, "PK\5\6", 4);
    assert_non_null(last);
    uint32_t directory = bytes_load32(last + 16);
    char *central = content + directory, *at = central;
    while (at < last && memcmp(at, "PK\1\2", 4) == 0) {
        central = at;
        at += 46 + bytes_load16(at + 28) + bytes_load16(at + 30) + bytes_load16(at + 32);
    }
    assert_memory_equal(central + 46, "metadata.json", 13); /* which would be stripped */
    memcpy(central + 46, "scalars/x.bin", 13);
    memset(content + bytes_load32(central + 42), 0, 4);
    central[16] ^= 1;
    test_write_file(path, content, bytes);
    OK(daf_open(&d, path, "r+", NULL, e));
    char *opened = test_read_file(path, &bytes);
    assert_memory_equal(opened, content, bytes);
    free(opened);
    set_integer(d, "n", 1);
    OK(daf_close(d, e));
    char *now = test_read_file(path, &bytes);
    assert_memory_equal(now, content, directory);
    assert_non_null(memmem(now + directory, bytes - directory, central + 46, bytes_load16(central + 28)));
    free(now);
    free(content);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_unsupported_method_is_named), TEST(foreign_entries_are_kept), TEST(wrong_sizes_and_checksums),
        TEST(spellings_of_other_programs),    TEST(bad_names_hide_nothing),   TEST(an_archive_of_version_1_0),
        TEST(a_foreign_archive_is_never_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Header, index and epilogue against protobuf-c; framing at every place in a block. */
#include "base/bytes.h"
#include "codec.h"
#include "framing.h"
#include "index.h"
#include "memio.h"
#include "messages.h"
#include "seven.pb-c.h"
#include "testing.h"

static d7_alloc memory(void) {
    return d7__alloc_or_default(NULL);
}

static ProtobufCBinaryData binary(const char *text) {
    return (ProtobufCBinaryData){.len = strlen(text), .data = (uint8_t *)(uintptr_t)text};
}

static void header_is_read_as_written(void **state) {
    (void)state;
    static const d7_dataset datasets[] = {{"/photons/x", D7_UINT16}, {"/t", D7_DOUBLE}};
    d7_alloc a = memory();
    uint8_t *entry;
    size_t bytes;
    d7__kind kind;
    d7__cursor body;
    d7__header h;
    d7_error err;
    assert_int_equal(d7__header_pack(&a, datasets, 2, 7, 1000, &entry, &bytes), 0);
    assert_true(d7__entry_kind(entry, bytes, &kind, &body));
    assert_int_equal(kind, D7__KIND_HEADER);
    assert_int_equal(d7__header_unpack(&a, "f", body, &h, &err), 0);
    assert_int_equal(h.index_step, 7);
    assert_int_equal(h.bytes_per_page, 1000);
    assert_int_equal(h.n_datasets, 2);
    assert_string_equal(h.datasets[0].name, "/photons/x");
    assert_int_equal(h.datasets[1].type, D7_DOUBLE);
    assert_int_equal(h.datasets[1].rank, 1);
    assert_int_equal(h.datasets[1].shape[0], 0);
    assert_int_equal(h.version[0], 1);
    assert_int_equal(h.version[2], 1);
    d7__header_free(&a, &h);
    free(entry);
}

static int unpack_header(Seven__Header *m) {
    static uint8_t packed[4096];
    d7_alloc a = memory();
    d7__header h = {0};
    d7_error err;
    size_t n = seven__header__pack(m, packed);
    int rc = d7__header_unpack(&a, "f", (d7__cursor){packed, packed + n}, &h, &err);
    if (rc == 0)
        d7__header_free(&a, &h);
    return rc;
}

static void absurd_headers_are_refused(void **state) {
    (void)state;
    Seven__DatasetInfo info = SEVEN__DATASET_INFO__INIT, *toc = &info;
    Seven__Header m = SEVEN__HEADER__INIT;
    assert_int_equal(unpack_header(&m), D7_ERR_CORRUPT);
    m.has_signature = true;
    m.signature = binary("D7 Photons Date");
    assert_int_equal(unpack_header(&m), D7_ERR_CORRUPT);
    m.signature = binary("D7 Photons Data");
    assert_int_equal(unpack_header(&m), 0); /* everything else left out */
    m.has_index_step = true;
    m.index_step = 0;
    assert_int_equal(unpack_header(&m), D7_ERR_LIMIT);
    m.index_step = (1u << 20) + 1;
    assert_int_equal(unpack_header(&m), D7_ERR_LIMIT);
    m.index_step = 1u << 20;
    assert_int_equal(unpack_header(&m), 0);
    m.has_bytes_per_page = true;
    m.bytes_per_page = 15;
    assert_int_equal(unpack_header(&m), D7_ERR_LIMIT);
    m.bytes_per_page = (uint64_t)1 << 32 | 16384; /* not cut to 32 bits */
    assert_int_equal(unpack_header(&m), D7_ERR_LIMIT);
    m.bytes_per_page = 16;
    assert_int_equal(unpack_header(&m), 0);
    m.n_toc = 1;
    m.toc = &toc;
    info.has_type = true;
    info.type = 10;
    assert_int_equal(unpack_header(&m), D7_ERR_UNSUPPORTED);
}

/* A header of 16 MiB that lists eight million empty datasets must not take a hundred times its size. */
static void hostile_header_is_bounded(void **state) {
    (void)state;
    size_t n = D7_ENTRY_BYTES_MAX - 64;
    uint8_t *body = malloc(n);
    for (size_t i = 0; i < n; i += 2) {
        body[i] = 0x3A;
        body[i + 1] = 0;
    }
    d7_alloc a = memory();
    d7__header h;
    d7_error err;
    assert_int_equal(d7__header_unpack(&a, "f", (d7__cursor){body, body + n}, &h, &err), D7_ERR_LIMIT);
    free(body);
}

static size_t find(const d7__names *names, const char *text) {
    return d7__names_find(names, text, strlen(text));
}

static void names_are_found_among_as_many_as_there_may_be(void **state) {
    (void)state;
    enum { N = D7_DATASETS_MAX };
    static char texts[N][16];
    d7_alloc a = memory();
    d7__names names = {0};
    assert_true(find(&names, "") == SIZE_MAX);
    for (size_t i = 0; i < N; i++) {
        snprintf(texts[i], sizeof texts[i], "/d/%05zu", i);
        assert_int_equal(d7__names_reserve(&a, &names), 0);
        d7__names_add(&names, texts[i], strlen(texts[i]), (uint32_t)i);
    }
    size_t run = 0, longest = 0;
    for (size_t i = 0; i < names.n_slots; i++) {
        run = names.slots[i].text ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    assert_true(longest < 200); /* a look-up compares few names, not all */
    for (size_t i = 0; i < N; i++)
        assert_int_equal(find(&names, texts[i]), i);
    assert_true(find(&names, "/d/0000") == SIZE_MAX && find(&names, "/d/65536") == SIZE_MAX);
    assert_true(d7__names_find(&names, "/d/00001\0", 9) == SIZE_MAX);
    d7__names_free(&a, &names);
}

static void the_first_of_a_name_is_found(void **state) {
    (void)state;
    static uint8_t packed[4096];
    Seven__DatasetInfo info[3] = {SEVEN__DATASET_INFO__INIT, SEVEN__DATASET_INFO__INIT,
                                  SEVEN__DATASET_INFO__INIT};
    Seven__DatasetInfo *toc[3] = {&info[0], &info[1], &info[2]};
    Seven__Header m = SEVEN__HEADER__INIT;
    m.has_signature = true;
    m.signature = binary("D7 Photons Data");
    m.n_toc = 3;
    m.toc = toc;
    info[1].has_name = info[2].has_name = true;
    info[1].name = info[2].name = binary("/twice");
    d7_alloc a = memory();
    d7__header h;
    d7_error err;
    size_t n = seven__header__pack(&m, packed);
    assert_int_equal(d7__header_unpack(&a, "f", (d7__cursor){packed, packed + n}, &h, &err), 0);
    assert_int_equal(find(&h.names, "/twice"), 1);
    assert_int_equal(find(&h.names, ""), 0);
    d7__header_free(&a, &h);
}

static void epilogue_is_protobufs(void **state) {
    (void)state;
    uint8_t packed[D7__EPILOGUE_MAX];
    uint64_t offsets[] = {0, 127, 128, 16384, UINT64_MAX}, got;
    for (size_t i = 0; i < 5; i++) {
        d7__kind kind;
        d7__cursor body;
        size_t n = d7__epilogue_pack(offsets[i], packed);
        assert_true(d7__entry_kind(packed, n, &kind, &body));
        assert_int_equal(kind, D7__KIND_EPILOGUE);
        assert_true(d7__epilogue_unpack(body, &got));
        assert_true(got == offsets[i]);
        packed[n - 1] ^= 1;
        assert_false(d7__epilogue_unpack(body, &got));
    }
}

enum { N_PAGES = 300, N_ATTRIBUTES = 3 };

static void make_index(d7__page_ref *pages, d7_attribute *attributes) {
    uint64_t rng = 5;
    for (size_t i = 0; i < N_PAGES; i++)
        pages[i] =
            (d7__page_ref){.offset = testing_random(&rng) >> (i % 60), .dataset_id = (uint32_t)(i % 200)};
    static const char *const texts[N_ATTRIBUTES][2] = {
        {"k", ""}, {"Größe", "µm"}, {"/photons/TacChannel", "12.3"}};
    for (size_t i = 0; i < N_ATTRIBUTES; i++)
        attributes[i] = (d7_attribute){.key = texts[i][0],
                                       .value = texts[i][1],
                                       .key_bytes = strlen(texts[i][0]),
                                       .value_bytes = strlen(texts[i][1])};
}

static void index_is_protobufs(void **state) {
    (void)state;
    static d7__page_ref pages[N_PAGES];
    static d7_attribute attributes[N_ATTRIBUTES];
    static Seven__DataInfo infos[N_PAGES], *info_list[N_PAGES];
    static Seven__Attribute texts[N_ATTRIBUTES], *text_list[N_ATTRIBUTES];
    static uint8_t expected[16384], packed[16384];
    make_index(pages, attributes);
    for (size_t i = 0; i < N_PAGES; i++) {
        seven__data_info__init(&infos[i]);
        infos[i].has_dataset_id = infos[i].has_offset = true;
        infos[i].dataset_id = pages[i].dataset_id;
        infos[i].offset = pages[i].offset;
        info_list[i] = &infos[i];
    }
    for (size_t i = 0; i < N_ATTRIBUTES; i++) {
        seven__attribute__init(&texts[i]);
        texts[i].has_key = texts[i].has_value = true;
        texts[i].key = binary(attributes[i].key);
        texts[i].value = binary(attributes[i].value);
        text_list[i] = &texts[i];
    }
    Seven__Index index = SEVEN__INDEX__INIT;
    index.n_infos = N_PAGES;
    index.infos = info_list;
    index.n_attributes = N_ATTRIBUTES;
    index.attributes = text_list;
    Seven__FileEntry message = SEVEN__FILE_ENTRY__INIT;
    message.entry_case = SEVEN__FILE_ENTRY__ENTRY_INDEX;
    message.index = &index;
    size_t want = seven__file_entry__pack(&message, expected);

    d7__index_content content = {
        .pages = pages, .n_pages = N_PAGES, .attributes = attributes, .n_attributes = N_ATTRIBUTES};
    d7__index_part part = {0};
    assert_true(d7__index_next_part(&content, &part));
    assert_int_equal(d7__index_entry_bytes(&part), want);
    assert_int_equal(d7__index_pack(&content, &part, packed), want);
    assert_memory_equal(packed, expected, want);
    assert_false(d7__index_next_part(&content, &part));
}

/* An index beyond 16 MiB: several entries, attributes in the first, nothing lost, none too large. */
static void long_index_is_split(void **state) {
    (void)state;
    enum { N = 3500000 };
    d7__page_ref *pages = malloc(N * sizeof *pages);
    char *text = malloc(3000000);
    memset(text, 'x', 2999999);
    text[2999999] = 0;
    d7_attribute attributes[7];
    for (size_t i = 0; i < 7; i++)
        attributes[i] = (d7_attribute){.key = "k", .value = text, .key_bytes = 1, .value_bytes = 2999999};
    for (size_t i = 0; i < N; i++)
        pages[i] = (d7__page_ref){.offset = (uint64_t)i * 20000, .dataset_id = (uint32_t)(i % 3)};
    d7__index_content content = {.pages = pages, .n_pages = N, .attributes = attributes, .n_attributes = 7};
    size_t n_pages = 0, n_attributes = 0, parts = 0;
    for (d7__index_part part = {0}; d7__index_next_part(&content, &part); parts++) {
        assert_true(part.body_bytes <= D7_INDEX_BODY_MAX);
        assert_true(d7__index_entry_bytes(&part) <= D7_ENTRY_BYTES_MAX);
        assert_int_equal(part.begin.n, n_pages);
        n_pages += part.end.n - part.begin.n;
        n_attributes += part.n_attributes;
        assert_int_equal(n_attributes, parts == 0 ? 5 : 7);
    }
    assert_int_equal(n_pages, N);
    assert_int_equal(parts, 4);
    free(pages);
    free(text);
}

typedef struct seen {
    size_t pages, attributes;
    uint64_t dataset_id, offset;
    char key[8];
} seen;

static int see_page(void *ctx, uint64_t dataset_id, uint64_t offset) {
    seen *s = ctx;
    s->pages++;
    s->dataset_id = dataset_id;
    s->offset = offset;
    return 0;
}

static int see_attribute(void *ctx, const d7_attribute *a) {
    seen *s = ctx;
    s->attributes++;
    memcpy(s->key, a->key, a->key_bytes);
    return 0;
}

static void lenient_index_is_read(void **state) {
    (void)state;
    seen s = {0};
    d7__index_sink sink = {.ctx = &s, .page = see_page, .attribute = see_attribute};
    static const uint8_t body[] = {0x58, 1, /* an unknown field */
                                   0x0A, 0, /* dataset 0 at offset 0 */
                                   0x0A, 7, 0x10, 0x80, 1,
                                   0x58, 2, 0x08, 3,          /* any order, an unknown field */
                                   0x12, 3, 0x0A, 1,    'k'}; /* no value */
    assert_int_equal(d7__index_read((d7__cursor){body, body + sizeof body}, &sink), 0);
    assert_int_equal(s.pages, 2);
    assert_int_equal(s.dataset_id, 3);
    assert_int_equal(s.offset, 128);
    assert_int_equal(s.attributes, 1);
    assert_string_equal(s.key, "k");
    assert_int_equal(d7__index_read((d7__cursor){body, body + sizeof body - 1}, &sink), D7_ERR_CORRUPT);
}

/* ---- framing ---- */

typedef struct framed {
    memio file;
    d7_io io;
    d7_alloc alloc;
    d7__source source;
    d7__framing framing;
} framed;

static void framed_open(framed *f) {
    d7_error err;
    f->io = memio_table(&f->file);
    f->alloc = memory();
    f->framing.source = &f->source;
    assert_int_equal(d7__source_open(&f->source, "memory", &f->io, &f->alloc, &err), 0);
    assert_int_equal(d7__source_measure(&f->source, &err), 0);
}

static void framed_close(framed *f) {
    d7__framing_free(&f->framing);
    d7__source_close(&f->source);
    memio_free(&f->file);
}

/* One entry of n bytes, framed to stand at file position `at` behind zeros; read back by place and by search.
 */
static void check_frame(uint64_t at, size_t n) {
    framed f = {0};
    uint8_t *entry = malloc(n + 1), *file = calloc(1, (size_t)at + d7__frame_bound(n));
    d7__found found;
    d7__entry got;
    d7_error err;
    for (size_t i = 0; i < n; i++)
        entry[i] = (uint8_t)(i * 31 + 7);
    size_t framed_bytes = d7__frame(at, entry, n, file + at);
    assert_true(framed_bytes <= d7__frame_bound(n));
    memio_set(&f.file, file, (size_t)at + framed_bytes);
    framed_open(&f);
    assert_int_equal(d7__entry_at(&f.framing, at, &found, &got, &err), 0);
    assert_int_equal(found, D7__FOUND_ENTRY);
    assert_int_equal(got.offset, d7__frame_begin(at));
    assert_int_equal(got.next, at + framed_bytes);
    assert_int_equal(got.bytes, n);
    assert_memory_equal(got.data, entry, n);
    assert_int_equal(d7__entry_next(&f.framing, at - at % D7_BLOCK_BYTES, &found, &got, &err), 0);
    assert_int_equal(found, D7__FOUND_ENTRY);
    assert_int_equal(got.bytes, n);
    framed_close(&f);
    free(entry);
    free(file);
}

static void entries_fit_anywhere(void **state) {
    (void)state;
    static const size_t lengths[] = {0, 1, 2, 100, 16380, 16381, 16382, 16383, 16384, 40000};
    static const uint64_t places[] = {0, 2, 16378, 16380, 16382, 16383, 16384, 32766, 32767};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
            check_frame(places[i], lengths[k]);
}

static void spare_bytes_are_as_specified(void **state) {
    (void)state;
    uint8_t out[64];
    static const uint8_t two[] = {0x00, 0x80, 0x03, 0x40, 'a', 'b', 'c'},
                         one[] = {0, 0x03, 0xC0, 'a', 'b', 'c'};
    assert_int_equal(d7__frame(16382, (const uint8_t *)"abc", 3, out), sizeof two);
    assert_memory_equal(out, two, sizeof two);
    assert_int_equal(d7__frame(16383, (const uint8_t *)"abc", 3, out), sizeof one);
    assert_memory_equal(out, one, sizeof one);
}

/* Puts `n` bytes at `at` of a file of three blocks of zeros and looks for an entry from `from`. */
static d7__found look(const uint8_t *bytes, size_t n, size_t at, size_t size, uint64_t from, d7__entry *ret) {
    static uint8_t file[3 * 16384];
    framed f = {0};
    d7__found found;
    d7_error err;
    memset(file, 0, sizeof file);
    memcpy(file + at, bytes, n);
    memio_set(&f.file, file, size);
    framed_open(&f);
    assert_int_equal(d7__entry_next(&f.framing, from, &found, ret, &err), 0);
    framed_close(&f);
    return found;
}

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static void broken_frames_are_found(void **state) {
    (void)state;
    d7__entry e;
    assert_int_equal(look(BYTES(0), 0, 3 * 16384, 0, &e), D7__FOUND_END); /* padding only */
    assert_int_equal(look(BYTES(0xFF, 0xFF), 100, 3 * 16384, 0, &e), D7__FOUND_BAD);
    assert_int_equal(e.offset, 100);
    assert_int_equal(e.next, 16384);
    /* an entry that goes on, but its fragment ends early */
    assert_int_equal(look(BYTES(0x05, 0x80, 1, 2, 3, 4, 5), 0, 3 * 16384, 0, &e), D7__FOUND_BAD);
    assert_int_equal(e.next, 16384);
    /* begun at the end of block 0; block 1 is lost */
    assert_int_equal(look(BYTES(0x00, 0x80), 16382, 3 * 16384, 0, &e), D7__FOUND_BAD);
    assert_int_equal(e.offset, 16382);
    assert_int_equal(e.next, 32768);
    /* begun at the end of block 0, another begins in block 1 */
    assert_int_equal(look(BYTES(0x00, 0x80, 0x01, 0xC0, 'x'), 16382, 3 * 16384, 0, &e), D7__FOUND_BAD);
    assert_int_equal(e.offset, 16382);
    assert_int_equal(e.next, 16384);
    assert_int_equal(look(BYTES(0x00, 0x80, 0x01, 0xC0, 'x'), 16382, 3 * 16384, 16384, &e), D7__FOUND_ENTRY);
    /* the file ends inside: in the header, in the bytes, before the next fragment */
    assert_int_equal(look(BYTES(0x05), 100, 101, 100, &e), D7__FOUND_TORN);
    assert_int_equal(look(BYTES(0x05, 0xC0, 1, 2), 100, 104, 100, &e), D7__FOUND_TORN);
    assert_int_equal(e.offset, 100);
    assert_int_equal(look(BYTES(0x00, 0x80), 16382, 16384, 16382, &e), D7__FOUND_TORN);
    assert_int_equal(e.offset, 16382);
}

/* Entries over 16 MiB are damage, not memory. */
static void endless_entry_is_bounded(void **state) {
    (void)state;
    enum { BLOCKS = 1030 };
    framed f = {0};
    d7__found found;
    d7__entry e;
    d7_error err;
    uint8_t *file = calloc(BLOCKS, 16384);
    for (size_t i = 0; i < BLOCKS; i++)
        bytes_store16(file + i * 16384, (uint16_t)(16382 | (i == 0 ? 0x8000 : 0)));
    memio_set(&f.file, file, (size_t)BLOCKS * 16384);
    framed_open(&f);
    assert_int_equal(d7__entry_at(&f.framing, 0, &found, &e, &err), 0);
    assert_int_equal(found, D7__FOUND_BAD);
    assert_string_equal(e.reason, "the entry is longer than 16 MiB");
    framed_close(&f);
    free(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_is_read_as_written),
        cmocka_unit_test(absurd_headers_are_refused),
        cmocka_unit_test(hostile_header_is_bounded),
        cmocka_unit_test(names_are_found_among_as_many_as_there_may_be),
        cmocka_unit_test(the_first_of_a_name_is_found),
        cmocka_unit_test(epilogue_is_protobufs),
        cmocka_unit_test(index_is_protobufs),
        cmocka_unit_test(long_index_is_split),
        cmocka_unit_test(lenient_index_is_read),
        cmocka_unit_test(entries_fit_anywhere),
        cmocka_unit_test(spare_bytes_are_as_specified),
        cmocka_unit_test(broken_frames_are_found),
        cmocka_unit_test(endless_entry_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

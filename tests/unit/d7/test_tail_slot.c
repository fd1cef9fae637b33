/* The tail's slots as bytes: every field, every damage, and which slot may be overwritten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "tail_slot.h"

/* ---- the slots of docs/tail-format.md ---- */

static const d7_type two_types[] = {D7_UINT16, D7_UINT64};
static const uint16_t first_values[] = {1, 4095, 258};
static const uint64_t second_values[] = {1099511627777u};
static const d7_tail_layout layout_1 = {
    .bytes_per_page = 16, .types = two_types, .n_datasets = 2, .attribute_bytes = 64};
static const d7_tail_layout layout_2 = {.bytes_per_page = 16, .types = two_types, .n_datasets = 2};
static const d7_tail_identity identity_1 = {.file_id = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
                                            .part = 1,
                                            .first_sequence = 40,
                                            .head_bytes = 300,
                                            .head_crc32c = 0x9ABCDEF0};
static const d7_tail_claim claim_1 = {.generation = 7, .length = 1000, .base = 900, .crc32c = 0x12345678};
static const d7_tail_dataset datasets_1[] = {
    {.type = D7_UINT16, .items = 19, .n_partial = 3, .partial = first_values},
    {.type = D7_UINT64, .items = 5, .n_partial = 1, .partial = second_values}};
static const d7_attribute attributes_1[] = {{.key = "/photons/TacChannel", .value = "12.3"},
                                            {.key = "k", .value = "v"}};
static const d7_tail_mark mark_1 = {.sequence = 42,
                                    .producer = "cam",
                                    .epoch = 5,
                                    .clock = {true, -3, 1000000007, 1700000000000000000},
                                    .datasets = datasets_1,
                                    .n_datasets = 2,
                                    .attributes = attributes_1,
                                    .n_attributes = 2};
static const d7_tail_dataset datasets_2[] = {{.type = D7_UINT16}, {.type = D7_UINT64}};
static const d7_tail_mark mark_2 = {.datasets = datasets_2, .n_datasets = 2};

enum { PLACE = D7_TAIL_ALIGN_BYTES };

/* The bytes after "```hex NAME" in the page. */
static size_t page_vector(const char *name, uint8_t *out, size_t cap) {
    FILE *f = fopen(TEST_FIXTURES "/../../docs/tail-format.md", "r");
    assert_non_null(f);
    char line[1024];
    size_t n = 0;
    bool inside = false;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "```hex ", 7) == 0)
            inside = strcmp(line + 7, name) == 0;
        else if (line[0] == '`')
            inside = false;
        else
            for (char *at = line, *end; inside && *at; at = end) {
                unsigned long byte = strtoul(at, &end, 16);
                if (end == at)
                    break;
                assert_true(n < cap);
                out[n++] = (uint8_t)byte;
            }
    }
    fclose(f);
    assert_true(n > 0);
    return n;
}

static void check_vector(const char *name, const d7_tail_layout *layout, const d7_tail_identity *identity,
                         const d7_tail_claim *claim, const d7_tail_mark *mark) {
    uint8_t expected[512], slot[PLACE];
    size_t n = page_vector(name, expected, sizeof expected), bytes = 0;
    assert_int_equal(d7_tail_slot_encode(layout, identity, claim, mark, slot, sizeof slot, &bytes, NULL), 0);
    assert_int_equal(bytes, PLACE);
    assert_memory_equal(slot, expected, n);
    for (size_t i = n; i < bytes; i++)
        assert_int_equal(slot[i], 0);
    d7_tail_slot decoded;
    assert_int_equal(d7_tail_slot_decode(expected, n, &decoded, NULL), 0);
    assert_int_equal(decoded.used_bytes, n);
}

static void slots_are_those_of_the_page(void **state) {
    (void)state;
    check_vector("slot 1", &layout_1, &identity_1, &claim_1, &mark_1);
    check_vector("slot 2", &layout_2, &(d7_tail_identity){.head_bytes = 300, .head_crc32c = 1},
                 &(d7_tail_claim){.generation = 1, .length = 700, .base = 700}, &mark_2);
}

static size_t encode_1(uint8_t slot[PLACE]) {
    size_t bytes;
    d7_tail_slot decoded;
    assert_int_equal(
        d7_tail_slot_encode(&layout_1, &identity_1, &claim_1, &mark_1, slot, PLACE, &bytes, NULL), 0);
    assert_int_equal(d7_tail_slot_decode(slot, PLACE, &decoded, NULL), 0);
    return decoded.used_bytes;
}

static void decoding_gives_what_was_encoded(void **state) {
    (void)state;
    uint8_t slot[PLACE];
    d7_tail_slot s;
    encode_1(slot);
    assert_int_equal(d7_tail_slot_decode(slot, sizeof slot, &s, NULL), 0);
    assert_memory_equal(s.identity.file_id, identity_1.file_id, D7_TAIL_FILE_ID_BYTES);
    assert_int_equal(s.identity.part, 1);
    assert_int_equal(s.identity.first_sequence, 40);
    assert_int_equal(s.identity.head_bytes, 300);
    assert_int_equal(s.identity.head_crc32c, 0x9ABCDEF0);
    assert_memory_equal(&s.claim, &claim_1, sizeof claim_1);
    assert_int_equal(s.sequence, 42);
    assert_string_equal(s.producer, "cam");
    assert_int_equal(s.epoch, 5);
    assert_true(s.clock.instrument_valid && s.clock.instrument == -3);
    assert_true(s.clock.monotonic_ns == 1000000007 && s.clock.utc_ns == 1700000000000000000);
    assert_int_equal(s.bytes_per_page, 16);
    assert_int_equal(s.n_datasets, 2);
    assert_int_equal(s.n_attributes, 2);
    assert_int_equal(s.slot_bytes, PLACE);

    d7_tail_dataset d;
    uint16_t narrow[3] = {0};
    assert_int_equal(d7_tail_slot_dataset(&s, 0, &d), 0);
    assert_true(d.type == D7_UINT16 && d.items == 19 && d.n_partial == 3 && d.partial == NULL);
    assert_int_equal(d7_tail_slot_values(&s, 0, 0, 3, narrow), 0);
    assert_memory_equal(narrow, first_values, sizeof narrow);
    assert_int_equal(d7_tail_slot_values(&s, 0, 2, 1, narrow), 0);
    assert_int_equal(narrow[0], 258);
    uint64_t wide = 0;
    assert_int_equal(d7_tail_slot_values(&s, 1, 0, 1, &wide), 0);
    assert_true(wide == 1099511627777u);
    assert_int_equal(d7_tail_slot_values(&s, 0, 1, 3, narrow), D7_ERR_ARG);
    assert_int_equal(d7_tail_slot_values(&s, 0, 4, 0, narrow), D7_ERR_ARG);
    assert_int_equal(d7_tail_slot_dataset(&s, 2, &d), D7_ERR_ARG);

    size_t cursor = 0, n = 0;
    for (d7_attribute a; d7_tail_slot_attribute(&s, &cursor, &a); n++) {
        assert_string_equal(a.key, attributes_1[n].key);
        assert_string_equal(a.value, attributes_1[n].value);
        assert_int_equal(a.key_bytes, strlen(a.key));
        assert_int_equal(a.value_bytes, strlen(a.value));
    }
    assert_int_equal(n, 2);
}

static void every_type_keeps_its_values(void **state) {
    (void)state;
    d7_type types[D7_N_TYPES];
    d7_tail_dataset datasets[D7_N_TYPES], d;
    uint8_t values[7 * 8], back[7 * 8], slot[PLACE];
    for (size_t i = 0; i < sizeof values; i++)
        values[i] = (uint8_t)(i * 37 + 1);
    for (unsigned i = 0; i < D7_N_TYPES; i++) {
        uint32_t per_page = (uint32_t)d7_items_per_page((d7_type)i, 64);
        types[i] = (d7_type)i;
        datasets[i] =
            (d7_tail_dataset){.type = types[i], .items = 3 * per_page + 7, .n_partial = 7, .partial = values};
    }
    d7_tail_layout layout = {.bytes_per_page = 64, .types = types, .n_datasets = D7_N_TYPES};
    d7_tail_mark mark = {.datasets = datasets, .n_datasets = D7_N_TYPES};
    d7_tail_claim claim = {.generation = 1};
    size_t bytes;
    d7_tail_slot s;
    assert_int_equal(
        d7_tail_slot_encode(&layout, &(d7_tail_identity){0}, &claim, &mark, slot, PLACE, &bytes, NULL), 0);
    assert_int_equal(d7_tail_slot_decode(slot, bytes, &s, NULL), 0);
    for (unsigned i = 0; i < D7_N_TYPES; i++) {
        assert_int_equal(d7_tail_slot_dataset(&s, i, &d), 0);
        assert_true(d.type == types[i] && d.items == datasets[i].items && d.n_partial == 7);
        assert_int_equal(d7_tail_slot_values(&s, i, 0, 7, back), 0);
        assert_memory_equal(back, values, 7 * d7_type_size(types[i]));
    }
}

/* ---- damage ---- */

static void every_truncation_is_refused(void **state) {
    (void)state;
    uint8_t slot[PLACE];
    d7_tail_slot s;
    size_t used = encode_1(slot);
    for (size_t n = 0; n < used; n++) {
        uint8_t *exact = malloc(n ? n : 1);
        assert_non_null(exact);
        memcpy(exact, slot, n);
        assert_int_equal(d7_tail_slot_decode(exact, n, &s, NULL), D7_ERR_CORRUPT);
        free(exact);
    }
}

static void every_flipped_bit_is_refused(void **state) {
    (void)state;
    uint8_t slot[PLACE];
    d7_tail_slot s;
    size_t used = encode_1(slot);
    for (size_t bit = 0; bit < 8 * used; bit++) {
        slot[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(d7_tail_slot_decode(slot, sizeof slot, &s, NULL), D7_ERR_CORRUPT);
        slot[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void mixed_sectors_are_refused(void **state) {
    (void)state;
    enum { PAGE = 2048 };
    static const d7_type type = D7_UINT8;
    d7_tail_layout layout = {.bytes_per_page = PAGE, .types = &type, .n_datasets = 1};
    uint8_t values[PAGE - 1] = {0}, a[PLACE], b[PLACE], mix[PLACE];
    d7_tail_dataset d = {.type = type, .items = PAGE - 1, .n_partial = PAGE - 1, .partial = values};
    d7_tail_mark mark = {.datasets = &d, .n_datasets = 1};
    d7_tail_slot s;
    size_t bytes, n = 0;
    for (int i = 0; i < 2; i++) {
        d7_tail_claim claim = {.generation = 5 + (uint64_t)i};
        memset(values, i + 1, sizeof values);
        assert_int_equal(d7_tail_slot_encode(&layout, &(d7_tail_identity){0}, &claim, &mark, i ? b : a, PLACE,
                                             &bytes, NULL),
                         0);
    }
    for (unsigned set = 1; set < 31; set++, n++) {
        for (unsigned k = 0; k < PLACE / 512; k++)
            memcpy(mix + 512 * k, (set >> (k < 4 ? k : 4) & 1 ? a : b) + 512 * k, 512);
        assert_int_equal(d7_tail_slot_decode(mix, PLACE, &s, NULL), D7_ERR_CORRUPT);
    }
    assert_int_equal(n, 30);
}

static void stamp(uint8_t *slot, size_t used) {
    bytes_store32(slot + used - 4, common_crc32c(0, slot, used - 4));
}

/* One field of slot 1 changed, checksum made right: what is refused, and where the error points. */
static const struct bad_field {
    const char *what;
    size_t at, width;
    uint64_t value;
    size_t offset;
    int code;
} bad_fields[] = {
    {"magic", D7__SLOT_MAGIC, 1, 'D', 0, D7_ERR_CORRUPT},
    {"version", D7__SLOT_VERSION, 4, 2, D7__SLOT_VERSION, D7_ERR_UNSUPPORTED},
    {"page too small", D7__SLOT_BYTES_PER_PAGE, 4, 15, D7__SLOT_BYTES_PER_PAGE, D7_ERR_CORRUPT},
    {"page too large", D7__SLOT_BYTES_PER_PAGE, 4, D7_PAGE_BYTES_MAX + 1, D7__SLOT_BYTES_PER_PAGE,
     D7_ERR_CORRUPT},
    {"other page", D7__SLOT_BYTES_PER_PAGE, 4, 24, 168, D7_ERR_CORRUPT},
    {"generation 0", D7__SLOT_GENERATION, 8, 0, 280, D7_ERR_CORRUPT},
    {"base past length", D7__SLOT_BASE, 8, 1001, D7__SLOT_BASE, D7_ERR_CORRUPT},
    {"checksum of nothing", D7__SLOT_BASE, 8, 1000, D7__SLOT_BASE, D7_ERR_CORRUPT},
    {"head past length", D7__SLOT_HEAD_BYTES, 8, 1001, D7__SLOT_HEAD_BYTES, D7_ERR_CORRUPT},
    {"sequence before first", D7__SLOT_SEQUENCE, 8, 39, D7__SLOT_SEQUENCE, D7_ERR_CORRUPT},
    {"unknown flag", D7__SLOT_FLAGS, 4, 3, D7__SLOT_FLAGS, D7_ERR_CORRUPT},
    {"time without flag", D7__SLOT_FLAGS, 4, 0, D7__SLOT_INSTRUMENT, D7_ERR_CORRUPT},
    {"no dataset", D7__SLOT_N_DATASETS, 4, 0, D7__SLOT_N_DATASETS, D7_ERR_CORRUPT},
    {"too many datasets", D7__SLOT_N_DATASETS, 4, 65537, D7__SLOT_N_DATASETS, D7_ERR_CORRUPT},
    {"more datasets than fit", D7__SLOT_N_DATASETS, 4, 65536, D7__SLOT_N_DATASETS, D7_ERR_CORRUPT},
    {"one dataset less", D7__SLOT_N_DATASETS, 4, 1, 180, D7_ERR_CORRUPT},
    {"no attributes", D7__SLOT_N_ATTRIBUTES, 4, 0, D7__SLOT_ATTRIBUTE_BYTES, D7_ERR_CORRUPT},
    {"many attributes", D7__SLOT_N_ATTRIBUTES, 4, UINT32_MAX, 277, D7_ERR_CORRUPT},
    {"attribute bytes", D7__SLOT_ATTRIBUTE_BYTES, 4, 44, D7__SLOT_ATTRIBUTE_BYTES, D7_ERR_CORRUPT},
    {"producer too long", D7__SLOT_PRODUCER_BYTES, 4, 256, D7__SLOT_PRODUCER_BYTES, D7_ERR_CORRUPT},
    {"producer past the end", D7__SLOT_PRODUCER_BYTES, 4, 255, D7__SLOT_HEAD_END, D7_ERR_CORRUPT},
    {"producer with a NUL", D7__SLOT_HEAD_END + 1, 1, 0, D7__SLOT_HEAD_END, D7_ERR_CORRUPT},
    {"producer no UTF-8", D7__SLOT_HEAD_END, 1, 0xFF, D7__SLOT_HEAD_END, D7_ERR_CORRUPT},
    {"producer padding", D7__SLOT_HEAD_END + 5, 1, 1, 164, D7_ERR_CORRUPT},
    {"place not aligned", D7__SLOT_SLOT_BYTES, 4, 4097, D7__SLOT_SLOT_BYTES, D7_ERR_CORRUPT},
    {"place 0", D7__SLOT_SLOT_BYTES, 4, 0, D7__SLOT_SLOT_BYTES, D7_ERR_CORRUPT},
    {"place too large", D7__SLOT_SLOT_BYTES, 4, D7_TAIL_SLOT_BYTES_MAX + 4096u, D7__SLOT_SLOT_BYTES,
     D7_ERR_CORRUPT},
    {"reserved", D7__SLOT_RESERVED + 7, 1, 1, D7__SLOT_RESERVED, D7_ERR_CORRUPT},
    {"items fewer than partial", 168, 8, 2, 168, D7_ERR_CORRUPT},
    {"items not of whole pages", 168, 8, 20, 168, D7_ERR_CORRUPT},
    {"partial page full", 176, 4, 8, 168, D7_ERR_CORRUPT},
    {"partial page elsewhere", 180, 4, 0, 180, D7_ERR_CORRUPT},
    {"unknown type", 184, 1, 10, 184, D7_ERR_CORRUPT},
    {"record padding", 191, 1, 1, 184, D7_ERR_CORRUPT},
    {"page padding", 223, 1, 1, 222, D7_ERR_CORRUPT},
    {"key of 0 bytes", 232, 4, 0, 232, D7_ERR_CORRUPT},
    {"key past the end", 232, 4, 1000, 232, D7_ERR_CORRUPT},
    {"value past the end", 236, 4, UINT32_MAX, 232, D7_ERR_CORRUPT},
    {"key with a NUL", 241, 1, 0, 232, D7_ERR_CORRUPT},
    {"value no UTF-8", 260, 1, 0x80, 232, D7_ERR_CORRUPT},
    {"attribute padding", 279, 1, 1, 277, D7_ERR_CORRUPT},
    {"generation in the trailer", 280, 4, 8, 280, D7_ERR_CORRUPT},
    {"used not of 8", D7__SLOT_USED_BYTES, 4, 287, D7__SLOT_USED_BYTES, D7_ERR_CORRUPT},
    {"used past the place", D7__SLOT_USED_BYTES, 4, PLACE + 8, D7__SLOT_USED_BYTES, D7_ERR_CORRUPT},
    {"used below the head", D7__SLOT_USED_BYTES, 4, 160, D7__SLOT_USED_BYTES, D7_ERR_CORRUPT},
};

static void every_field_has_its_limits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_fields / sizeof *bad_fields; i++) {
        const struct bad_field *f = &bad_fields[i];
        uint8_t slot[PLACE], value[8];
        size_t used = encode_1(slot);
        d7_tail_slot s;
        d7_error err = {0};
        bytes_store64(value, f->value);
        memcpy(slot + f->at, value, f->width);
        stamp(slot, used);
        int rc = d7_tail_slot_decode(slot, sizeof slot, &s, &err);
        if (rc != f->code || err.offset != f->offset)
            fail_msg("%s: %s at %llu: %s", f->what, d7_error_name(rc), (unsigned long long)err.offset,
                     err.text);
    }
}

static void a_shorter_used_is_refused(void **state) {
    (void)state;
    uint8_t slot[PLACE];
    size_t used = encode_1(slot) + 8;
    d7_tail_slot s;
    d7_error err;
    memmove(slot + used - 8, slot + used - 16, 8);
    memset(slot + used - 16, 0, 8);
    bytes_store32(slot + D7__SLOT_USED_BYTES, (uint32_t)used);
    stamp(slot, used);
    assert_int_equal(d7_tail_slot_decode(slot, sizeof slot, &s, &err), D7_ERR_CORRUPT);
    assert_non_null(strstr(err.text, "bytes follow the attributes"));
}

static void a_place_too_small_for_full_pages_is_refused(void **state) {
    (void)state;
    uint8_t slot[PLACE];
    d7_tail_slot s;
    d7_error err;
    size_t bytes;
    assert_int_equal(d7_tail_slot_encode(&layout_2, &(d7_tail_identity){0}, &(d7_tail_claim){.generation = 1},
                                         &mark_2, slot, PLACE, &bytes, NULL),
                     0);
    size_t used = d7__slot_used_bytes(slot, PLACE);
    bytes_store32(slot + D7__SLOT_BYTES_PER_PAGE, 1800); /* 160 + 256 + 8 + 2 * 24 + 1800 + 1792 */
    stamp(slot, used);
    assert_int_equal(d7_tail_slot_decode(slot, PLACE, &s, NULL), 0);
    bytes_store32(slot + D7__SLOT_BYTES_PER_PAGE, 1824);
    stamp(slot, used);
    assert_int_equal(d7_tail_slot_decode(slot, PLACE, &s, &err), D7_ERR_CORRUPT);
    assert_int_equal(err.offset, D7__SLOT_SLOT_BYTES);
}

static void an_empty_place_is_no_slot(void **state) {
    (void)state;
    static const uint8_t empty[PLACE];
    d7_tail_slot s;
    d7_error err;
    assert_int_equal(d7_tail_slot_decode(empty, sizeof empty, &s, &err), D7_ERR_CORRUPT);
    assert_non_null(strstr(err.text, "empty"));
}

/* ---- what does not go into a slot ---- */

static int encode_with(const d7_tail_identity *id, const d7_tail_claim *c, const d7_tail_mark *m) {
    uint8_t slot[PLACE];
    size_t bytes;
    return d7_tail_slot_encode(&layout_1, id, c, m, slot, sizeof slot, &bytes, NULL);
}

static void bad_marks_are_refused(void **state) {
    (void)state;
    char long_name[D7_TAIL_PRODUCER_BYTES_MAX + 2];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    d7_tail_mark m = mark_1;
    m.producer = long_name;
    assert_int_equal(encode_with(&identity_1, &claim_1, &m), D7_ERR_ARG);
    m.producer = long_name + 1;
    assert_int_equal(encode_with(&identity_1, &claim_1, &m), 0);
    m.producer = "\xFF";
    assert_int_equal(encode_with(&identity_1, &claim_1, &m), D7_ERR_ARG);
    m = mark_1;
    m.sequence = 39;
    assert_int_equal(encode_with(&identity_1, &claim_1, &m), D7_ERR_ARG);
    m = mark_1;
    m.n_datasets = 1;
    assert_int_equal(encode_with(&identity_1, &claim_1, &m), D7_ERR_ARG);

    d7_tail_dataset d[2];
    m = mark_1;
    m.datasets = d;
#define WITH(field, value)                                                                                   \
    memcpy(d, datasets_1, sizeof d), d[0].field = (value),                                                   \
                                     assert_int_equal(encode_with(&identity_1, &claim_1, &m), D7_ERR_ARG)
    WITH(type, D7_INT16);
    WITH(n_partial, 8);
    WITH(items, 2);
    WITH(items, 20);
    WITH(partial, NULL);
#undef WITH

    d7_attribute a[] = {{.key = "", .value = "v"}, {.key = "k", .value = "\x80"}, {.key = "k"}};
    m = mark_1;
    m.n_attributes = 1;
    for (size_t i = 0; i < 3; i++) {
        m.attributes = &a[i];
        assert_int_equal(encode_with(&identity_1, &claim_1, &m), D7_ERR_ARG);
    }
    d7_tail_claim c = claim_1;
    c.generation = 0;
    assert_int_equal(encode_with(&identity_1, &c, &mark_1), D7_ERR_ARG);
    c = (d7_tail_claim){.generation = 1, .length = 1000, .base = 1001};
    assert_int_equal(encode_with(&identity_1, &c, &mark_1), D7_ERR_ARG);
    d7_tail_identity id = identity_1;
    id.head_bytes = 1001;
    assert_int_equal(encode_with(&id, &claim_1, &mark_1), D7_ERR_ARG);
}

static void attributes_have_a_budget(void **state) {
    (void)state;
    char value[64];
    memset(value, 'v', sizeof value - 1);
    value[63] = '\0';
    d7_attribute a = {.key = "k", .value = value + 10};
    d7_tail_mark m = mark_1;
    m.attributes = &a;
    m.n_attributes = 1;
    assert_int_equal(d7_tail_attribute_bytes(&a, 1), 8 + 1 + 1 + 53 + 1);
    assert_int_equal(encode_with(&identity_1, &claim_1, &m), 0);
    a.value = value + 9;
    assert_int_equal(d7_tail_attribute_bytes(&a, 1), 65);
    assert_int_equal(encode_with(&identity_1, &claim_1, &m), D7_ERR_LIMIT);
    assert_int_equal(d7_tail_attribute_bytes(NULL, 0), 0);
}

static void sizes_follow_the_layout(void **state) {
    (void)state;
    size_t bytes = 7;
    static d7_type many[D7_DATASETS_MAX];
    static const d7_type lincam[] = {D7_UINT16, D7_UINT16, D7_UINT16, D7_UINT64};
    d7_tail_layout l = {.bytes_per_page = 16384, .types = lincam, .n_datasets = 4, .attribute_bytes = 65536};
    assert_int_equal(d7_tail_slot_bytes(&l, &bytes), 0);
    assert_int_equal(bytes, 135168); /* 160 + 256 + 4 * (24 + 16384 - 2 or 8, padded) + 65536 + 8, in 4096s */
    assert_int_equal(d7__slot_attribute_room(&l, bytes), 65536 + 135168 - 131584);
    l.n_datasets = 0;
    assert_int_equal(d7_tail_slot_bytes(&l, &bytes), D7_ERR_ARG);
    l = (d7_tail_layout){.bytes_per_page = 15, .types = lincam, .n_datasets = 4};
    assert_int_equal(d7_tail_slot_bytes(&l, &bytes), D7_ERR_ARG);
    l = (d7_tail_layout){.bytes_per_page = 16384, .types = many, .n_datasets = D7_DATASETS_MAX};
    assert_int_equal(d7_tail_slot_bytes(&l, &bytes), D7_ERR_LIMIT);
    l.bytes_per_page = 16;
    assert_int_equal(d7_tail_slot_bytes(&l, &bytes), 0);
    many[9] = (d7_type)10;
    assert_int_equal(d7_tail_slot_bytes(&l, &bytes), D7_ERR_ARG);
    many[9] = D7_INT8;
    uint8_t slot[PLACE];
    assert_int_equal(
        d7_tail_slot_encode(&layout_1, &identity_1, &claim_1, &mark_1, slot, PLACE - 1, &bytes, NULL),
        D7_ERR_LIMIT);
}

static void the_full_slot_fits_its_place(void **state) {
    (void)state;
    static const d7_type types[] = {D7_UINT8, D7_DOUBLE, D7_UINT16};
    uint8_t values[4096] = {0};
    char name[D7_TAIL_PRODUCER_BYTES_MAX + 1], text[100];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (uint32_t page = 16; page < 1300; page++) {
        d7_tail_dataset d[3];
        for (size_t i = 0; i < 3; i++) {
            uint32_t n = (uint32_t)d7_items_per_page(types[i], page) - 1;
            d[i] = (d7_tail_dataset){.type = types[i], .items = n, .n_partial = n, .partial = values};
        }
        uint32_t room = page % 97 + 11;
        snprintf(text, sizeof text, "%0*d", (int)room - 11, 0);
        d7_attribute a = {.key = "k", .value = room > 11 ? text : ""};
        d7_tail_layout l = {.bytes_per_page = page, .types = types, .n_datasets = 3, .attribute_bytes = room};
        d7_tail_mark m = {
            .producer = name, .datasets = d, .n_datasets = 3, .attributes = &a, .n_attributes = 1};
        size_t place, bytes;
        assert_int_equal(d7_tail_slot_bytes(&l, &place), 0);
        uint8_t *slot = malloc(place);
        assert_non_null(slot);
        assert_int_equal(d7_tail_slot_encode(&l, &(d7_tail_identity){0}, &(d7_tail_claim){.generation = 1},
                                             &m, slot, place, &bytes, NULL),
                         0);
        d7_tail_slot s;
        assert_int_equal(d7_tail_slot_decode(slot, place, &s, NULL), 0);
        assert_true(bytes <= place);
        free(slot);
    }
}

/* ---- choosing ---- */

static void neither_pinned_nor_in_flight_is_chosen(void **state) {
    (void)state;
    for (int pinned = -1; pinned < 3; pinned++)
        for (int flight = -1; flight < 3; flight++)
            for (int last = -1; last < 3; last++) {
                unsigned slot = d7_tail_choose(pinned, flight, last);
                bool last_is_free = last >= 0 && last != pinned && last != flight;
                assert_true(slot < 3 && (int)slot != pinned && (int)slot != flight);
                if (last_is_free && (pinned < 0 || flight < 0 || pinned == flight))
                    assert_true((int)slot != last); /* of two or three, another one */
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_those_of_the_page),
        cmocka_unit_test(decoding_gives_what_was_encoded),
        cmocka_unit_test(every_type_keeps_its_values),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(mixed_sectors_are_refused),
        cmocka_unit_test(every_field_has_its_limits),
        cmocka_unit_test(a_shorter_used_is_refused),
        cmocka_unit_test(a_place_too_small_for_full_pages_is_refused),
        cmocka_unit_test(an_empty_place_is_no_slot),
        cmocka_unit_test(bad_marks_are_refused),
        cmocka_unit_test(attributes_have_a_budget),
        cmocka_unit_test(sizes_follow_the_layout),
        cmocka_unit_test(the_full_slot_fits_its_place),
        cmocka_unit_test(neither_pinned_nor_in_flight_is_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

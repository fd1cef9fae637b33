/* common/wire held against protobuf-c, cut at every byte, and pushed over each limit. */
#include "testing.h"

#include "ingest.pb-c.h"
#include "wire/address.h"
#include "wire/batch.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/names.h"
#include "wire/pattern.h"

/* ---- preamble and length */

static void preamble_is_told_apart_at_the_first_wrong_byte(void **state) {
    (void)state;
    uint8_t good[WIRE_PREAMBLE_BYTES], min = 99, max = 99;
    wire_preamble_put(good, 1, 3);
    assert_memory_equal(good, "PHOTON\x01\x03", 8);
    for (size_t n = 0; n < sizeof good; n++)
        assert_int_equal(wire_preamble_get(good, n, &min, &max), WIRE_MORE);
    assert_int_equal(min, 99);
    assert_int_equal(wire_preamble_get(good, sizeof good, &min, &max), WIRE_OK);
    assert_int_equal(min, 1);
    assert_int_equal(max, 3);
    for (size_t i = 0; i < 6; i++) {
        uint8_t bad[WIRE_PREAMBLE_BYTES];
        memcpy(bad, good, sizeof bad);
        bad[i] ^= 0x20;
        assert_int_equal(wire_preamble_get(bad, i, &min, &max), WIRE_MORE);
        assert_int_equal(wire_preamble_get(bad, i + 1, &min, &max), WIRE_MALFORMED);
    }
    assert_int_equal(wire_preamble_get((const uint8_t *)"PHOTON\x00\x01", 8, &min, &max), WIRE_MALFORMED);
    assert_int_equal(wire_preamble_get((const uint8_t *)"PHOTON\x02\x01", 8, &min, &max), WIRE_MALFORMED);
    assert_int_equal(wire_preamble_get((const uint8_t *)"GET / HT", 8, &min, &max), WIRE_MALFORMED);
}

static void highest_common_version_is_chosen(void **state) {
    (void)state;
    assert_int_equal(wire_version_choose(1, 1, 1, 1), 1);
    assert_int_equal(wire_version_choose(1, 4, 2, 9), 4);
    assert_int_equal(wire_version_choose(2, 9, 1, 4), 4);
    assert_int_equal(wire_version_choose(1, 1, 2, 3), 0);
    assert_int_equal(wire_version_choose(7, 9, 1, 6), 0);
}

static void lengths_of_every_size_come_back(void **state) {
    (void)state;
    for (unsigned bits = 0; bits <= 64; bits++) {
        uint64_t wanted = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1, got = 0;
        uint8_t prefix[WIRE_PREFIX_BYTES_MAX];
        size_t bytes = wire_prefix_put(prefix, wanted), used = 0;
        for (size_t n = 0; n < bytes; n++)
            assert_int_equal(wire_prefix_get(prefix, n, UINT64_MAX, &got, &used), WIRE_MORE);
        assert_int_equal(wire_prefix_get(prefix, sizeof prefix, UINT64_MAX, &got, &used), WIRE_OK);
        assert_true(got == wanted && used == bytes);
        if (wanted)
            assert_int_equal(wire_prefix_get(prefix, bytes, wanted - 1, &got, &used), WIRE_LIMIT);
    }
}

static void prefix_of_more_than_64_bits_is_malformed(void **state) {
    (void)state;
    static const uint8_t endless[11] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
    static const uint8_t wide[10] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02};
    uint64_t length;
    size_t used;
    assert_int_equal(wire_prefix_get(endless, 9, 100, &length, &used), WIRE_MORE);
    assert_int_equal(wire_prefix_get(endless, 10, 100, &length, &used), WIRE_MALFORMED);
    assert_int_equal(wire_prefix_get(endless, 11, 100, &length, &used), WIRE_MALFORMED);
    assert_int_equal(wire_prefix_get(wide, 10, 100, &length, &used), WIRE_MALFORMED);
}

/* ---- batches */

enum { COLUMN_BYTES = 4096 };

typedef struct sample {
    wire_batch batch;
    uint8_t head[WIRE_BATCH_HEAD_BYTES];
    struct iovec pieces[WIRE_BATCH_PIECES];
    uint8_t data[COLUMN_BYTES];
    uint8_t bytes[WIRE_BATCH_HEAD_BYTES + WIRE_MAX_COLUMNS * 64 + COLUMN_BYTES];
    size_t n_bytes;   /* with the length prefix */
    uint8_t *message; /* without */
    size_t n_message;
} sample;

static uint64_t any_width(uint64_t *seed) {
    return testing_random(seed) >> (testing_random(seed) % 65 & 63);
}

static void sample_fill(sample *s, uint64_t *seed, uint32_t columns, uint32_t groups) {
    wire_batch *b = &s->batch;
    *b = (wire_batch){.run = (uint32_t)any_width(seed),
                      .sequence = any_width(seed),
                      .crc32c = testing_random(seed) % 4 ? (uint32_t)testing_random(seed) : 0,
                      .lost_before = testing_random(seed) % 2 ? any_width(seed) : 0,
                      .first_time = (int64_t)(any_width(seed) ^ (testing_random(seed) % 2 ? UINT64_MAX : 0)),
                      .last_time = testing_random(seed) % 2 ? INT64_MIN : 0,
                      .times_valid = testing_random(seed) % 2,
                      .n_counts = groups,
                      .n_columns = columns};
    for (uint32_t i = 0; i < groups; i++)
        b->counts[i] = any_width(seed);
    for (size_t i = 0; i < sizeof s->data; i++)
        s->data[i] = (uint8_t)testing_random(seed);
    for (uint32_t i = 0; i < columns; i++) {
        size_t bytes = testing_random(seed) % 3 ? testing_random(seed) % 60 : 0;
        b->columns[i] = (wire_column){s->data + testing_random(seed) % (sizeof s->data - bytes), bytes};
    }
}

static void sample_frame(sample *s) {
    size_t n_pieces = 0, length_bytes;
    uint64_t length;
    size_t total = wire_batch_frame(&s->batch, s->head, s->pieces, &n_pieces);
    s->n_bytes = 0;
    for (size_t i = 0; i < n_pieces; i++) {
        assert_true(s->pieces[i].iov_len > 0);
        memcpy(s->bytes + s->n_bytes, s->pieces[i].iov_base, s->pieces[i].iov_len);
        s->n_bytes += s->pieces[i].iov_len;
    }
    assert_int_equal(total, s->n_bytes);
    assert_int_equal(wire_prefix_get(s->bytes, s->n_bytes, UINT64_MAX, &length, &length_bytes), WIRE_OK);
    assert_int_equal(length + length_bytes, s->n_bytes);
    s->message = s->bytes + length_bytes;
    s->n_message = (size_t)length;
    assert_int_equal(wire_batch_message_bytes(&s->batch), s->n_message);
}

static void assert_same_batch(const wire_batch *a, const wire_batch *b) {
    assert_int_equal(a->run, b->run);
    assert_true(a->sequence == b->sequence && a->lost_before == b->lost_before);
    assert_int_equal(a->crc32c, b->crc32c);
    assert_true(a->first_time == b->first_time && a->last_time == b->last_time);
    assert_int_equal(a->times_valid, b->times_valid);
    assert_int_equal(a->n_counts, b->n_counts);
    assert_int_equal(a->n_columns, b->n_columns);
    for (uint32_t i = 0; i < a->n_counts; i++)
        assert_true(a->counts[i] == b->counts[i]);
    for (uint32_t i = 0; i < a->n_columns; i++) {
        assert_int_equal(a->columns[i].bytes, b->columns[i].bytes);
        assert_memory_equal(a->columns[i].data, b->columns[i].data, a->columns[i].bytes);
    }
}

static void assert_same_as_protobuf(const sample *s) {
    Photon__ClientMessage *m = photon__client_message__unpack(NULL, s->n_message, s->message);
    assert_non_null(m);
    assert_int_equal(m->body_case, PHOTON__CLIENT_MESSAGE__BODY_BATCH);
    const Photon__Batch *p = m->batch;
    wire_batch b = {.run = p->run,
                    .sequence = p->sequence,
                    .crc32c = p->crc32c,
                    .lost_before = p->lost_before,
                    .first_time = p->first_time,
                    .last_time = p->last_time,
                    .times_valid = p->times_valid,
                    .n_counts = (uint32_t)p->n_counts,
                    .n_columns = (uint32_t)p->n_columns};
    for (size_t i = 0; i < p->n_counts; i++)
        b.counts[i] = p->counts[i];
    for (size_t i = 0; i < p->n_columns; i++)
        b.columns[i] = (wire_column){p->columns[i].data, p->columns[i].len};
    assert_same_batch(&s->batch, &b);

    uint8_t *packed = malloc(s->n_message + 64);
    assert_non_null(packed);
    assert_int_equal(photon__client_message__get_packed_size(m), s->n_message);
    photon__client_message__pack(m, packed);
    assert_memory_equal(packed, s->message, s->n_message);
    free(packed);
    photon__client_message__free_unpacked(m, NULL);
}

static void batches_equal_those_of_protobuf_c(void **state) {
    sample *s = *state;
    uint64_t seed = 7;
    static const uint32_t sizes[] = {0, 1, 2, 4, 7, 127, 128, 255, WIRE_MAX_COLUMNS};
    for (unsigned round = 0; round < 600; round++) {
        sample_fill(s, &seed, sizes[testing_random(&seed) % 9], sizes[testing_random(&seed) % 9]);
        sample_frame(s);
        assert_same_as_protobuf(s);
        wire_batch parsed;
        assert_int_equal(wire_batch_parse(s->message, s->n_message, &parsed, NULL), WIRE_OK);
        assert_same_batch(&s->batch, &parsed);
    }
}

static void batch_with_every_field_at_its_widest_fits_its_head(void **state) {
    sample *s = *state;
    wire_batch *b = &s->batch;
    memset(b, 0xFF, offsetof(wire_batch, counts));
    b->first_time = b->last_time = INT64_MIN;
    b->times_valid = true;
    b->n_counts = WIRE_MAX_GROUPS;
    b->n_columns = WIRE_MAX_COLUMNS;
    for (uint32_t i = 0; i < WIRE_MAX_GROUPS; i++)
        b->counts[i] = UINT64_MAX;
    for (uint32_t i = 0; i < WIRE_MAX_COLUMNS; i++)
        b->columns[i] = (wire_column){s->data, 1};
    sample_frame(s);
    assert_same_as_protobuf(s);
}

static void batch_cut_at_any_byte_is_refused(void **state) {
    sample *s = *state;
    uint64_t seed = 11;
    sample_fill(s, &seed, 4, 2);
    sample_frame(s);
    for (size_t n = 0; n < s->n_message; n++) {
        wire_batch parsed;
        wire_fault fault = {.offset = 12345};
        uint8_t *cut = malloc(n + 1); /* so that the address sanitizer sees a step too far */
        assert_non_null(cut);
        memcpy(cut + 1, s->message, n);
        wire_status status = wire_batch_parse(cut + 1, n, &parsed, &fault);
        assert_int_equal(status, n == 0 ? WIRE_OTHER : WIRE_MALFORMED);
        if (n)
            assert_true(fault.offset <= n && fault.text[0]);
        free(cut);
    }
}

static void assert_parse(const char *bytes, size_t n, wire_status wanted, const char *field) {
    wire_batch parsed;
    wire_fault fault = {.field = ""};
    assert_int_equal(wire_batch_parse((const uint8_t *)bytes, n, &parsed, &fault), wanted);
    if (wanted != WIRE_OK && wanted != WIRE_OTHER)
        assert_string_equal(fault.field, field);
}
#define ASSERT_PARSE(text, wanted, field) assert_parse(text, sizeof text - 1, wanted, field)

static void odd_batches_get_their_answer(void **state) {
    (void)state;
    ASSERT_PARSE("\x1a\x00", WIRE_OK, "");
    ASSERT_PARSE("", WIRE_OTHER, "");
    ASSERT_PARSE("\x0a\x00", WIRE_OTHER, "");          /* a hello */
    ASSERT_PARSE("\x9a\x01\x00", WIRE_OTHER, "");      /* body number 19 */
    ASSERT_PARSE("\x18\x05", WIRE_MALFORMED, "batch"); /* body 3 as a number */
    ASSERT_PARSE("\x1a\x05\x08\x01", WIRE_MALFORMED, "batch");
    ASSERT_PARSE("\x1a\x00\x0a\x00", WIRE_MALFORMED, "batch"); /* a second body */
    ASSERT_PARSE("\x1a\x00\x1a\x00", WIRE_MALFORMED, "batch");
    ASSERT_PARSE("\x1a\x00\xa2\x01\x01\x00", WIRE_OK, ""); /* an unknown field after it */
    ASSERT_PARSE("\x1a\x00\x00", WIRE_MALFORMED, "batch");
    ASSERT_PARSE("\x1a\x02\x0a\x00", WIRE_MALFORMED, "batch.run"); /* run as bytes */
    ASSERT_PARSE("\x1a\x02\x7d\x00", WIRE_MALFORMED, "batch.columns");
    ASSERT_PARSE("\x1a\x03\x25\x00\x00", WIRE_MALFORMED, "batch.crc32c");
    ASSERT_PARSE("\x1a\x03\x1a\x05\x00", WIRE_MALFORMED, "batch.counts");
    ASSERT_PARSE("\x1a\x03\x1a\x01\x80", WIRE_MALFORMED, "batch.counts");
    ASSERT_PARSE("\x1a\x02\x4b\x4c", WIRE_MALFORMED, "batch"); /* a group, which proto3 does not have */
}

static void fields_in_any_order_and_form_are_read(void **state) {
    (void)state;
    static const char text[] = "\x1a\x18"
                               "\x7a\x02"
                               "ab"               /* a column first */
                               "\x18\x05"         /* counts one by one */
                               "\x10\x09"         /* sequence */
                               "\x1a\x02\x06\x07" /* and packed */
                               "\xf2\x01\x01"
                               "?"        /* unknown field 30 */
                               "\x10\x08" /* sequence again: the last one wins */
                               "\x7a\x00"
                               "\x40\x01"
                               "\x08\x03";
    wire_batch b;
    assert_int_equal(wire_batch_parse((const uint8_t *)text, sizeof text - 1, &b, NULL), WIRE_OK);
    assert_int_equal(b.run, 3);
    assert_int_equal(b.sequence, 8);
    assert_true(b.times_valid);
    assert_int_equal(b.n_counts, 3);
    assert_true(b.counts[0] == 5 && b.counts[1] == 6 && b.counts[2] == 7);
    assert_int_equal(b.n_columns, 2);
    assert_int_equal(b.columns[0].bytes, 2);
    assert_memory_equal(b.columns[0].data, "ab", 2);
    assert_int_equal(b.columns[1].bytes, 0);
}

static void more_columns_or_groups_than_allowed_are_over_a_limit(void **state) {
    (void)state;
    uint8_t message[4 + 2 * (WIRE_MAX_COLUMNS + 1)];
    for (unsigned tag = 0x18; tag <= 0x7a; tag += 0x7a - 0x18) {
        for (unsigned n = 256; n <= 257; n++) {
            wire_batch b;
            wire_fault fault;
            uint8_t *p = message;
            *p++ = 0x1a;
            p += wire_prefix_put(p, 2 * n);
            for (unsigned i = 0; i < n; i++) {
                *p++ = (uint8_t)tag;
                *p++ = 0;
            }
            wire_status status = wire_batch_parse(message, (size_t)(p - message), &b, &fault);
            assert_int_equal(status, n == 256 ? WIRE_OK : WIRE_LIMIT);
        }
    }
}

static void crc_runs_over_all_columns(void **state) {
    sample *s = *state;
    wire_batch *b = &s->batch;
    *b = (wire_batch){.n_columns = 3};
    b->columns[0] = (wire_column){(const uint8_t *)"1234", 4};
    b->columns[1] = (wire_column){NULL, 0};
    b->columns[2] = (wire_column){(const uint8_t *)"56789", 5};
    assert_int_equal(wire_batch_crc32c(b), 0xE3069283u);
    assert_int_equal(wire_batch_column_bytes(b), 9);
}

/* ---- other messages */

static uint8_t *pack_open(size_t *bytes, const char *name, const char *second_key) {
    Photon__Open open = PHOTON__OPEN__INIT;
    Photon__Attribute a[2] = {PHOTON__ATTRIBUTE__INIT, PHOTON__ATTRIBUTE__INIT};
    Photon__Attribute *list[2] = {&a[0], &a[1]};
    Photon__ClientMessage m = PHOTON__CLIENT_MESSAGE__INIT;
    open.name = (char *)(uintptr_t)name;
    static char first[] = "first";
    a[0].key = first;
    a[1].key = (char *)(uintptr_t)second_key;
    open.attributes = list;
    open.n_attributes = 2;
    m.body_case = PHOTON__CLIENT_MESSAGE__BODY_OPEN;
    m.open = &open;
    *bytes = photon__client_message__get_packed_size(&m);
    uint8_t *packed = malloc(*bytes);
    assert_non_null(packed);
    photon__client_message__pack(&m, packed);
    return packed;
}

static void texts_that_protobuf_c_would_cut_or_take_are_refused_with_their_path(void **state) {
    (void)state;
    wire_fault fault;
    size_t bytes;
    uint8_t *packed = pack_open(&bytes, "scan", "kXy");
    assert_int_equal(wire_message_check(&photon__client_message__descriptor, packed, bytes, 100, &fault),
                     WIRE_OK);
    uint8_t *x = memchr(packed, 'X', bytes);
    *x = 0;
    assert_int_equal(wire_message_check(&photon__client_message__descriptor, packed, bytes, 100, &fault),
                     WIRE_MALFORMED);
    assert_string_equal(fault.field, "open.attributes[1].key");
    assert_string_equal(fault.text, "holds a NUL");
    assert_int_equal(fault.offset, (size_t)(x - packed) - 3);
    *x = 0xFF;
    wire_status status;
    assert_null(
        wire_message_unpack(&photon__client_message__descriptor, packed, bytes, 100, &status, &fault));
    assert_int_equal(status, WIRE_MALFORMED);
    assert_string_equal(fault.field, "open.attributes[1].key");
    assert_string_equal(fault.text, "is not valid UTF-8");
    free(packed);
}

static void many_fields_are_over_a_limit_however_deep_or_unknown(void **state) {
    (void)state;
    wire_fault fault;
    size_t bytes;
    uint8_t *packed = pack_open(&bytes, "scan", "second"); /* open, name, 2 attributes, 2 keys */
    assert_int_equal(wire_message_check(&photon__client_message__descriptor, packed, bytes, 6, &fault),
                     WIRE_OK);
    assert_int_equal(wire_message_check(&photon__client_message__descriptor, packed, bytes, 5, &fault),
                     WIRE_LIMIT);
    assert_string_equal(fault.field, "open.attributes[1]");
    free(packed);
    static const uint8_t unknown[] = {0xa0, 0x06, 1, 0xa0, 0x06, 1, 0xa0, 0x06, 1};
    assert_int_equal(wire_message_check(&photon__client_message__descriptor, unknown, 9, 3, &fault), WIRE_OK);
    assert_int_equal(wire_message_check(&photon__client_message__descriptor, unknown, 9, 2, &fault),
                     WIRE_LIMIT);
}

static void message_cut_at_any_byte_is_refused(void **state) {
    (void)state;
    size_t bytes;
    uint8_t *packed = pack_open(&bytes, "scan", "second");
    for (size_t n = 1; n < bytes; n++) {
        wire_fault fault = {.offset = 999};
        uint8_t *cut = malloc(n);
        assert_non_null(cut);
        memcpy(cut, packed, n);
        assert_int_equal(wire_message_check(&photon__client_message__descriptor, cut, n, 100, &fault),
                         WIRE_MALFORMED);
        free(cut);
    }
    free(packed);
}

static void bodies_are_known_by_name(void **state) {
    (void)state;
    char text[16];
    const ProtobufCMessageDescriptor *client = &photon__client_message__descriptor;
    assert_int_equal(wire_message_kind((const uint8_t *)"\x1a\x00", 2), PHOTON__CLIENT_MESSAGE__BODY_BATCH);
    assert_int_equal(wire_message_kind((const uint8_t *)"", 0), 0);
    assert_int_equal(wire_message_kind((const uint8_t *)"\x00", 1), 0);
    assert_string_equal(wire_message_kind_text(client, 3, text), "batch");
    assert_string_equal(wire_message_kind_text(client, 19, text), "#19");
    static const uint8_t two[] = {0x0a, 0x00, 0x4a, 0x00}; /* a hello and a ping */
    wire_fault fault;
    assert_int_equal(wire_message_check(client, two, 4, 100, &fault), WIRE_MALFORMED);
    assert_int_equal(fault.offset, 2);
}

/* ---- names and addresses */

static void enums_have_names_both_ways(void **state) {
    (void)state;
    char text[WIRE_ENUM_TEXT_BYTES];
    int value = -1;
    assert_string_equal(wire_enum_text(&photon__error_code__descriptor, PHOTON__ERROR_CODE__ERROR_HOLE, text),
                        "hole");
    assert_string_equal(wire_enum_text(&photon__role__descriptor, 1, text), "position_x");
    assert_string_equal(wire_enum_text(&photon__element_type__descriptor, 5, text), "uint16");
    assert_string_equal(wire_enum_text(&photon__error_code__descriptor, 4711, text), "4711");
    assert_int_equal(wire_enum_value(&photon__role__descriptor, "Micro_Time", &value), 0);
    assert_int_equal(value, PHOTON__ROLE__ROLE_MICRO_TIME);
    assert_int_equal(wire_enum_value(&photon__role__descriptor, "micro", &value), -1);
    static const size_t sizes[] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 0};
    for (uint32_t type = 0; type < 11; type++)
        assert_int_equal(wire_type_bytes(type), sizes[type]);
}

static void run_names_stay_in_their_folder(void **state) {
    (void)state;
    static const char *const good[] = {"a",   "scan1", "2026-11-29_12.00", "a..b", "x.001", "x.123a", "tail",
                                       "daf", "a.zip"};
    static const char *const bad[] = {
        "",        ".hidden",     "-x",       "_x",       "a/b",     "a\\b",      "..",      "a b",
        "a\n",     "a:b",         "\xc3\xa4", "x.0001",   "x.12345", "run.tail",  "run.cut", "run.crc",
        "run.new", "run.photons", "run.daf",  "run.dafs", "run.DAF", "a.dafs.zip"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_null(wire_run_name_fault(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_non_null(wire_run_name_fault(bad[i]));
    char longest[130];
    memset(longest, 'n', sizeof longest);
    longest[128] = '\0';
    assert_null(wire_run_name_fault(longest));
    longest[128] = 'n';
    longest[129] = '\0';
    assert_non_null(wire_run_name_fault(longest));
}

static void patterns_give_names(void **state) {
    (void)state;
    const struct tm when = {
        .tm_year = 126, .tm_mon = 10, .tm_mday = 30, .tm_hour = 7, .tm_min = 5, .tm_sec = 9};
    char filled[WIRE_RUN_NAME_ROOM], name[WIRE_RUN_NAME_ROOM];
    assert_int_equal(wire_pattern_fill(filled, "{profile}-{date}_{time}-{counter}x", &when, "lincam"), 0);
    assert_string_equal(filled, "lincam-20261130_070509-{counter}x");
    assert_int_equal(wire_pattern_count(name, filled, 12), 0);
    assert_string_equal(name, "lincam-20261130_070509-0012x");
    assert_int_equal(wire_pattern_count(name, filled, 123456), 0);
    assert_string_equal(name, "lincam-20261130_070509-123456x");
    assert_int_equal(wire_pattern_fill(filled, "{profile}", &when, ""), 0);
    assert_string_equal(filled, "run");
    static const char *const good[] = {"plain", "{date}", "a-{counter}", "{profile}{time}", "{counter}"};
    static const char *const bad[] = {"{",          "{}",       "{date",       "a}b",
                                      "{Date}",     "a/{date}", "x.{counter}", "{counter}{counter}",
                                      "{date}.crc", ""};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_null(wire_pattern_fault(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_non_null(wire_pattern_fault(bad[i]));
    char longest[128 + 1];
    memset(longest, 'n', sizeof longest);
    memcpy(longest + 121, "{time}", 7); /* 127 characters, all of them and two less when filled in */
    assert_null(wire_pattern_fault(longest));
    assert_int_equal(wire_pattern_fill(filled, longest, &when, ""), 0);
    assert_int_equal(strlen(filled), 127);
    memset(longest, 'n', sizeof longest);
    memcpy(longest + 122, "{date}", 7); /* 130 when filled in */
    assert_non_null(wire_pattern_fault(longest));
    assert_int_equal(wire_pattern_fill(filled, longest, &when, ""), -1);
}

static void dataset_names_and_attributes_are_text(void **state) {
    (void)state;
    char longest[257];
    memset(longest, 'n', sizeof longest);
    longest[255] = '\0';
    assert_null(wire_dataset_name_fault(longest));
    longest[255] = 'n';
    longest[256] = '\0';
    assert_non_null(wire_dataset_name_fault(longest));
    assert_null(wire_dataset_name_fault("/photons/x"));
    assert_null(wire_dataset_name_fault("/z\xc3\xa4hler"));
    assert_non_null(wire_dataset_name_fault(""));
    assert_non_null(wire_dataset_name_fault("a\tb"));
    assert_non_null(wire_dataset_name_fault("\xff"));
    assert_null(wire_attribute_fault("Comment", ""));
    assert_non_null(wire_attribute_fault("", "x"));
    assert_non_null(wire_attribute_fault("k\xc0", "x"));
    assert_non_null(wire_attribute_fault("k", "\xed\xa0\x80"));
}

static void addresses_come_back_as_they_were(void **state) {
    (void)state;
    static const char *const good[] = {"tcp://127.0.0.1:7700",          "tcp://[::1]:1",
                                       "tcp://host.example:65535",      "tcp://localhost:0",
                                       "unix:/run/photond/ingest.sock", "unix:relative"};
    static const char *const bad[] = {
        "",          "tcp://",        "tcp://:1",         "tcp://host",  "tcp://host:",  "tcp://host:65536",
        "host:1",    "unix:",         "tcp://::1:7",      "tcp://[::1]", "tcp://[::1:7", "tcp://host:7a",
        "udp://h:1", "tcp://host:-1", "tcp://host:000001"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        wire_address address;
        char why[100], text[WIRE_ADDRESS_TEXT_BYTES];
        assert_int_equal(wire_address_parse(good[i], &address, why, sizeof why), 0);
        assert_string_equal(wire_address_text(&address, text), good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wire_address address;
        char why[100] = "";
        assert_int_equal(wire_address_parse(bad[i], &address, why, sizeof why), -1);
        assert_true(why[0]);
    }
    char path[120] = "unix:";
    char why[100];
    wire_address address;
    memset(path + 5, 'p', 108);
    assert_int_equal(wire_address_parse(path, &address, why, sizeof why), -1);
    path[5 + 107] = '\0';
    assert_int_equal(wire_address_parse(path, &address, why, sizeof why), 0);
}

static int make_sample(void **state) {
    *state = malloc(sizeof(sample));
    return *state ? 0 : -1;
}

static int free_sample(void **state) {
    free(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preamble_is_told_apart_at_the_first_wrong_byte),
        cmocka_unit_test(highest_common_version_is_chosen),
        cmocka_unit_test(lengths_of_every_size_come_back),
        cmocka_unit_test(prefix_of_more_than_64_bits_is_malformed),
        cmocka_unit_test(batches_equal_those_of_protobuf_c),
        cmocka_unit_test(batch_with_every_field_at_its_widest_fits_its_head),
        cmocka_unit_test(batch_cut_at_any_byte_is_refused),
        cmocka_unit_test(odd_batches_get_their_answer),
        cmocka_unit_test(fields_in_any_order_and_form_are_read),
        cmocka_unit_test(more_columns_or_groups_than_allowed_are_over_a_limit),
        cmocka_unit_test(crc_runs_over_all_columns),
        cmocka_unit_test(texts_that_protobuf_c_would_cut_or_take_are_refused_with_their_path),
        cmocka_unit_test(many_fields_are_over_a_limit_however_deep_or_unknown),
        cmocka_unit_test(message_cut_at_any_byte_is_refused),
        cmocka_unit_test(bodies_are_known_by_name),
        cmocka_unit_test(enums_have_names_both_ways),
        cmocka_unit_test(run_names_stay_in_their_folder),
        cmocka_unit_test(patterns_give_names),
        cmocka_unit_test(dataset_names_and_attributes_are_text),
        cmocka_unit_test(addresses_come_back_as_they_were),
    };
    return cmocka_run_group_tests(tests, make_sample, free_sample);
}

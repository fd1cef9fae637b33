/* Pages cut at every byte, and rooms that are too small: a page that lost its end is an error or, where its lengths say so,
 * a beginning of the values; nothing is written past what was asked for. Run with each variant of the kernels. */
#include "testing.h"
#include "wire.h"

#include "d7/d7.h"

enum { MAX_ITEMS = 300, CANARY = 0xA5 };

typedef struct page {
    d7_type type;
    uint8_t values[MAX_ITEMS * 8];
    size_t n;
    uint8_t entry[MAX_ITEMS * 10 + 64];
    size_t bytes;
    d7__field payload; /* in the entry */
    uint8_t head[32];  /* the body's fields before the payload */
    size_t n_head;
} page;

/* Differences of all sizes. */
static void make_values(page *p, uint64_t seed) {
    uint64_t x = testing_random(&seed);
    size_t size = d7_type_size(p->type);
    for (size_t i = 0; i < p->n; i++) {
        uint32_t v32 = (uint32_t)x;
        uint16_t v16 = (uint16_t)x;
        uint8_t v8 = (uint8_t)x;
        memcpy(p->values + i * size,
               size == 1   ? (void *)&v8
               : size == 2 ? (void *)&v16
               : size == 4 ? (void *)&v32
                           : (void *)&x,
               size);
        x += testing_random(&seed) >> (testing_random(&seed) % 64);
    }
}

static void make(page *p, d7_type type, size_t n, uint64_t seed) {
    *p = (page){.type = type, .n = n};
    make_values(p, seed + n);
    assert_int_equal(d7_page_encode(7, type, p->values, n, p->entry, sizeof p->entry, &p->bytes), 0);
    d7__cursor c = {p->entry, p->entry + p->bytes};
    d7__field body, f;
    assert_true(d7__get_field(&c, &body) && c.at == c.end);
    c = (d7__cursor){body.bytes, body.bytes + body.n_bytes};
    for (const uint8_t *at = c.at; c.at < c.end; at = c.at) {
        assert_true(d7__get_field(&c, &f));
        if (f.number >= 4) {
            p->payload = f;
            p->n_head = (size_t)(at - body.bytes);
            memcpy(p->head, body.bytes, p->n_head);
        }
    }
}

/* The same page with so many bytes of its payload, and lengths that fit. */
static size_t with_payload(const page *p, size_t payload_bytes, uint8_t *out) {
    uint8_t body[sizeof p->entry], *b = body + p->n_head, *o = out;
    memcpy(body, p->head, p->n_head);
    *b++ = D7__TAG(p->payload.number, D7__BYTES);
    b = d7__put_varint(b, payload_bytes);
    memcpy(b, p->payload.bytes, payload_bytes);
    b += payload_bytes;
    *o++ = D7__TAG(2, D7__BYTES);
    o = d7__put_varint(o, (uint64_t)(b - body));
    memcpy(o, body, (size_t)(b - body));
    return (size_t)(o - out) + (size_t)(b - body);
}

/* A copy of exactly that length, so that sanitizers see a read past it. */
static int decode(const page *p, const uint8_t *entry, size_t bytes, size_t cap, size_t *ret_n) {
    size_t size = d7_type_size(p->type);
    uint8_t *exact = malloc(bytes + (bytes == 0)), *out = malloc((cap + 1) * size);
    uint32_t id = 0;
    size_t counted = 0;
    d7_error err = {0};
    memcpy(exact, entry, bytes);
    memset(out, CANARY, (cap + 1) * size);
    *ret_n = 0;
    int rc = d7_page_decode(p->type, exact, bytes, out, cap, &id, ret_n, &err);
    int count_rc = d7_page_count(p->type, exact, bytes, &id, &counted, NULL);
    if (rc == 0) {
        assert_int_equal(count_rc, 0);
        assert_int_equal(counted, *ret_n);
        assert_int_equal(id, 7);
        assert_true(*ret_n <= p->n);
        assert_memory_equal(out, p->values, *ret_n * size);
    } else {
        assert_int_equal(err.code, rc);
        assert_true(rc == D7_ERR_LIMIT || (rc == D7_ERR_CORRUPT && err.offset <= bytes));
        assert_true(rc != D7_ERR_LIMIT || (count_rc == 0 && counted > cap));
    }
    size_t first_untouched = rc == 0 ? *ret_n : rc == D7_ERR_LIMIT ? 0 : cap;
    for (size_t i = first_untouched * size; i < (cap + 1) * size; i++)
        assert_int_equal(out[i], CANARY);
    free(exact);
    free(out);
    return rc;
}

static void each_page(void (*check)(const page *p)) {
    static const size_t lengths[] = {1, 2, 3, 9, 40, 70, MAX_ITEMS};
    static page p;
    for (int type = 0; type < D7_N_TYPES; type++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            make(&p, (d7_type)type, lengths[i], 50 + (uint64_t)type);
            check(&p);
        }
}

static void check_torn(const page *p) {
    size_t n;
    for (size_t bytes = 0; bytes < p->bytes; bytes++)
        assert_int_equal(decode(p, p->entry, bytes, p->n, &n), D7_ERR_CORRUPT);
    assert_int_equal(decode(p, p->entry, p->bytes, p->n, &n), 0);
    assert_int_equal(n, p->n);
}

static void torn_pages_are_errors(void **state) {
    (void)state;
    each_page(check_torn);
}

static bool is_raw(const page *p) {
    return p->payload.number >= 6;
}

static void check_short(const page *p) {
    static uint8_t entry[sizeof p->entry];
    size_t n, varints = 0, size = d7_type_size(p->type);
    for (size_t k = 0; k <= p->payload.n_bytes; k++) {
        size_t bytes = with_payload(p, k, entry);
        bool whole = is_raw(p) ? k % size == 0 : k == 0 || p->payload.bytes[k - 1] < 128;
        varints += !is_raw(p) && k > 0 && p->payload.bytes[k - 1] < 128;
        assert_int_equal(decode(p, entry, bytes, p->n, &n), whole ? 0 : D7_ERR_CORRUPT);
        if (whole)
            assert_int_equal(n, is_raw(p) ? k / size : varints + 1);
    }
}

static void payloads_cut_at_every_byte_are_beginnings_or_errors(void **state) {
    (void)state;
    each_page(check_short);
}

static void check_rooms(const page *p) {
    size_t n;
    for (size_t cap = 0; cap < p->n; cap++)
        assert_int_equal(decode(p, p->entry, p->bytes, cap, &n), D7_ERR_LIMIT);
    for (size_t cap = p->n; cap < p->n + 40; cap++)
        assert_int_equal(decode(p, p->entry, p->bytes, cap, &n), 0);
}

static void small_rooms_are_left_alone(void **state) {
    (void)state;
    each_page(check_rooms);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(torn_pages_are_errors),
        cmocka_unit_test(payloads_cut_at_every_byte_are_beginnings_or_errors),
        cmocka_unit_test(small_rooms_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

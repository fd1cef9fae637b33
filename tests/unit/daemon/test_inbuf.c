#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inbuf.h"

enum { LONGEST = 1 << 20, TOTAL = 4 << 20 };

typedef struct stream {
    uint8_t *bytes;
    size_t n, sent;
} stream;

/* A message of `bytes` bytes, each `fill`. */
static void stream_add(stream *s, size_t bytes, uint8_t fill) {
    uint8_t prefix[WIRE_PREFIX_BYTES_MAX];
    size_t used = wire_prefix_put(prefix, bytes);
    s->bytes = realloc(s->bytes, s->n + used + bytes);
    memcpy(s->bytes + s->n, prefix, used);
    memset(s->bytes + s->n + used, fill, bytes);
    s->n += used + bytes;
}

/* Hands the buffer at most `most` bytes of the stream. Returns what it took; 0 when it has no room. */
static size_t feed(pd_inbuf *in, stream *s, size_t most, bool first) {
    uint8_t *at = NULL;
    size_t room = 0;
    if (!pd_inbuf_room(in, first, &at, &room))
        return 0;
    size_t n = s->n - s->sent;
    if (n > room)
        n = room;
    if (n > most)
        n = most;
    memcpy(at, s->bytes + s->sent, n);
    s->sent += n;
    pd_inbuf_filled(in, n);
    return n;
}

static void expect_message(pd_inbuf *in, size_t bytes, uint8_t fill) {
    const uint8_t *message = NULL;
    uint64_t n = 0;
    assert_int_equal(pd_inbuf_peek(in, LONGEST, &message, &n), WIRE_OK);
    assert_int_equal(n, bytes);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(message[i], fill);
    pd_inbuf_next(in);
}

static void messages_come_out_whatever_the_reads(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1,      127, 128,     16383, 16384, 16385, 70000,
                                   3, 300000, 5,   LONGEST, 17,    0,     60000};
    static const size_t reads[] = {1, 2, 3, 1000, 16384, 65536, SIZE_MAX};
    for (size_t r = 0; r < sizeof reads / sizeof *reads; r++) {
        pd_budget budget;
        pd_inbuf in;
        stream s = {0};
        pd_budget_init(&budget, TOTAL, LONGEST);
        assert_int_equal(pd_inbuf_init(&in, &budget), 0);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            stream_add(&s, sizes[i], (uint8_t)i);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const uint8_t *message = NULL;
            uint64_t n = 0;
            while (pd_inbuf_peek(&in, LONGEST, &message, &n) == WIRE_MORE)
                assert_true(feed(&in, &s, reads[r], false) > 0);
            expect_message(&in, sizes[i], (uint8_t)i);
        }
        assert_int_equal(in.offset, s.n);
        pd_inbuf_free(&in);
        assert_int_equal(budget.used, 0);
        assert_int_equal(budget.left, TOTAL - LONGEST - WIRE_PREFIX_BYTES_MAX);
        free(s.bytes);
    }
}

/* A producer of equal messages: where they lie is where they were received. */
static void equal_messages_are_not_moved(void **state) {
    (void)state;
    pd_budget budget;
    pd_inbuf in;
    stream s = {0};
    pd_budget_init(&budget, TOTAL, LONGEST);
    assert_int_equal(pd_inbuf_init(&in, &budget), 0);
    for (int i = 0; i < 200; i++)
        stream_add(&s, 6000, (uint8_t)i);
    int got = 0, moved = 0;
    while (got < 200) {
        size_t there = in.end - in.start;
        const uint8_t *before = in.data + in.start;
        assert_true(feed(&in, &s, 100000, false) > 0);
        moved += there > 0 && in.data + in.start != before;
        const uint8_t *message = NULL;
        uint64_t n = 0;
        while (pd_inbuf_peek(&in, LONGEST, &message, &n) == WIRE_OK) {
            expect_message(&in, 6000, (uint8_t)got);
            got++;
        }
    }
    assert_true(moved <= 2); /* while the buffer grew to its working size */
    pd_inbuf_free(&in);
    free(s.bytes);
}

static void a_length_over_the_limit_asks_for_no_memory(void **state) {
    (void)state;
    pd_budget budget;
    pd_inbuf in;
    uint8_t *at = NULL;
    const uint8_t *message = NULL;
    uint64_t n = 0;
    size_t room = 0;
    pd_budget_init(&budget, TOTAL, LONGEST);
    assert_int_equal(pd_inbuf_init(&in, &budget), 0);
    assert_true(pd_inbuf_room(&in, false, &at, &room));
    pd_inbuf_filled(&in, wire_prefix_put(at, UINT64_C(1) << 60));
    assert_int_equal(pd_inbuf_peek(&in, LONGEST, &message, &n), WIRE_LIMIT);
    assert_true(n == UINT64_C(1) << 60);
    assert_int_equal(in.cap, PD_INBUF_SMALL_BYTES);
    assert_int_equal(budget.used, 0);
    pd_inbuf_free(&in);
}

static void no_varint_is_malformed(void **state) {
    (void)state;
    pd_budget budget;
    pd_inbuf in;
    uint8_t *at = NULL;
    const uint8_t *message = NULL;
    uint64_t n = 0;
    size_t room = 0;
    pd_budget_init(&budget, TOTAL, LONGEST);
    assert_int_equal(pd_inbuf_init(&in, &budget), 0);
    assert_true(pd_inbuf_room(&in, false, &at, &room));
    memset(at, 0xff, 11);
    pd_inbuf_filled(&in, 11);
    assert_int_equal(pd_inbuf_peek(&in, LONGEST, &message, &n), WIRE_MALFORMED);
    pd_inbuf_free(&in);
}

/* Announcing a long message takes no memory; what comes of it does. */
static void memory_is_taken_as_the_message_comes(void **state) {
    (void)state;
    pd_budget budget;
    pd_inbuf in;
    stream s = {0};
    const uint8_t *message = NULL;
    uint64_t n = 0;
    pd_budget_init(&budget, TOTAL, LONGEST);
    assert_int_equal(pd_inbuf_init(&in, &budget), 0);
    stream_add(&s, LONGEST - 100, 1);
    for (size_t most = 100; s.sent < s.n; most = 50000) {
        assert_true(feed(&in, &s, most, false) > 0);
        assert_true(budget.used <= 4 * s.sent + PD_INBUF_FAST_BYTES);
        assert_true(s.sent > 100 || budget.used == 0);
        (void)pd_inbuf_peek(&in, LONGEST, &message, &n);
    }
    expect_message(&in, LONGEST - 100, 1);
    pd_inbuf_free(&in);
    free(s.bytes);
}

/* Many connections want more than there is: the one that has waited longest gets on, then the next. */
static void the_first_in_line_always_gets_on(void **state) {
    enum { N = 8 };
    (void)state;
    pd_budget budget;
    pd_inbuf in[N];
    stream s[N];
    pd_budget_init(&budget, LONGEST + LONGEST / 2, LONGEST);
    memset(s, 0, sizeof s);
    for (int i = 0; i < N; i++) {
        const uint8_t *message = NULL;
        uint64_t n = 0;
        assert_int_equal(pd_inbuf_init(&in[i], &budget), 0);
        stream_add(&s[i], LONGEST - 100, (uint8_t)i);
        while (feed(&in[i], &s[i], 100000, false))
            assert_int_equal(pd_inbuf_peek(&in[i], LONGEST, &message, &n), WIRE_MORE);
        assert_true(s[i].sent < s[i].n);
    }
    for (int i = 0; i < N; i++) {
        assert_true(feed(&in[i], &s[i], 1000, true) > 0);
        if (i + 1 < N && in[i].from_longest)
            assert_true(feed(&in[i + 1], &s[i + 1], 1, true) == 0 || !in[i + 1].from_longest);
        while (s[i].sent < s[i].n)
            assert_true(feed(&in[i], &s[i], SIZE_MAX, true) > 0);
        expect_message(&in[i], LONGEST - 100, (uint8_t)i);
        (void)pd_inbuf_relax(&in[i]);
    }
    assert_int_equal(budget.used, 0);
    assert_true(budget.high_water <= LONGEST + LONGEST / 2 + WIRE_PREFIX_BYTES_MAX);
    for (int i = 0; i < N; i++) {
        pd_inbuf_free(&in[i]);
        free(s[i].bytes);
    }
}

static void an_idle_connection_gives_back(void **state) {
    (void)state;
    pd_budget budget;
    pd_inbuf in;
    stream s = {0};
    pd_budget_init(&budget, TOTAL, LONGEST);
    assert_int_equal(pd_inbuf_init(&in, &budget), 0);
    stream_add(&s, 500000, 1);
    stream_add(&s, 10, 2);
    const uint8_t *message = NULL;
    uint64_t n = 0;
    while (feed(&in, &s, SIZE_MAX, false) && pd_inbuf_peek(&in, LONGEST, &message, &n) == WIRE_MORE)
        assert_false(pd_inbuf_relax(&in));
    expect_message(&in, 500000, 1);
    assert_true(budget.used > 0);
    assert_true(pd_inbuf_relax(&in));
    assert_int_equal(budget.used, 0);
    feed(&in, &s, SIZE_MAX, false);
    expect_message(&in, 10, 2);
    assert_false(pd_inbuf_relax(&in));
    pd_inbuf_free(&in);
    free(s.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_out_whatever_the_reads),
        cmocka_unit_test(equal_messages_are_not_moved),
        cmocka_unit_test(a_length_over_the_limit_asks_for_no_memory),
        cmocka_unit_test(no_varint_is_malformed),
        cmocka_unit_test(memory_is_taken_as_the_message_comes),
        cmocka_unit_test(the_first_in_line_always_gets_on),
        cmocka_unit_test(an_idle_connection_gives_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What a run keeps of its messages: a ring of bytes that never gives what is still kept, in any order of sizes. */
#include "testing.h"

#include "keep.h"

static uint32_t next_random(uint32_t *x) {
    *x = *x * 1664525 + 1013904223;
    return *x >> 8;
}

static void check_kept(const client_keep *k) {
    for (uint64_t n = k->first; n < k->next; n++) {
        const client_kept *m = client__keep_find(k, n);
        assert_non_null(m);
        for (size_t i = 0; i < m->bytes; i++)
            assert_int_equal(m->data[i], (uint8_t)(n * 7));
    }
    assert_null(client__keep_find(k, k->next));
    assert_null(client__keep_find(k, k->first - 1));
}

/* Adds and releases at random; every message keeps its bytes until it is released. */
static void kept_bytes_stay(void **state) {
    (void)state;
    client_keep k;
    uint32_t x = 1;
    uint64_t columns = 0, full = 0, wraps = 0;
    assert_int_equal(client__keep_init(&k, 1000), 0);
    client__keep_start(&k, 5);
    for (int round = 0; round < 20000; round++) {
        size_t bytes = 1 + next_random(&x) % 300;
        bool own = next_random(&x) % 8 == 0;
        uint8_t *to = own ? malloc(bytes) : client__keep_reserve(&k, bytes);
        if (to) {
            wraps += to == k.ring;
            memset(to, (int)(uint8_t)(k.next * 7), bytes);
            columns += bytes;
            client__keep_add(&k, 3, to, bytes, own, columns);
        } else {
            full++;
        }
        check_kept(&k);
        if (!to || next_random(&x) % 3 == 0)
            client__keep_release(&k, k.first + next_random(&x) % 3);
        assert_int_equal(client__keep_bytes_up_to(&k, k.next - 1), columns);
    }
    assert_true(full > 1000 && wraps > 1000);
    client__keep_free(&k);
}

static void one_message_of_the_whole_size_fits(void **state) {
    (void)state;
    client_keep k;
    assert_int_equal(client__keep_init(&k, 100), 0);
    for (uint64_t n = 1; n < 50; n++) {
        uint8_t *to = client__keep_reserve(&k, 100);
        assert_non_null(to);
        client__keep_add(&k, 3, to, 100, false, n);
        assert_null(client__keep_reserve(&k, 1));
        client__keep_release(&k, n);
    }
    client__keep_free(&k);
}

static void number_of_messages_is_bounded(void **state) {
    (void)state;
    client_keep k;
    assert_int_equal(client__keep_init(&k, 1 << 20), 0);
    for (int n = 0; n < CLIENT_KEEP_MESSAGES; n++) {
        uint8_t *to = client__keep_reserve(&k, 1);
        assert_non_null(to);
        client__keep_add(&k, 3, to, 1, false, 0);
    }
    assert_null(client__keep_reserve(&k, 1));
    assert_true(client__keep_is_full(&k));
    client__keep_release(&k, 1);
    assert_non_null(client__keep_reserve(&k, 1));
    client__keep_free(&k);
}

static void newest_message_may_be_taken_back(void **state) {
    (void)state;
    client_keep k;
    assert_int_equal(client__keep_init(&k, 100), 0);
    client__keep_add(&k, 4, malloc(3), 3, true, 0);
    client__keep_take_back(&k);
    assert_null(client__keep_find(&k, 1));
    client__keep_add(&k, 4, malloc(3), 3, true, 0);
    assert_int_equal(client__keep_find(&k, 1)->kind, 4);
    client__keep_free(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_bytes_stay),
        cmocka_unit_test(one_message_of_the_whole_size_fits),
        cmocka_unit_test(number_of_messages_is_bounded),
        cmocka_unit_test(newest_message_may_be_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

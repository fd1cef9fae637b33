#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ring.h"

enum { SLOTS = 40 };

static int set_up(void **state) {
    static pd_ring ring;
    pd_error err;
    assert_int_equal(pd_ring_init(&ring, 1 << 20, sizeof(pd_slot), &err), 0);
    uint64_t bytes = SLOTS * (uint64_t)ring.slot_bytes;
    pd_ring_free(&ring);
    assert_int_equal(pd_ring_init(&ring, bytes + 1, sizeof(pd_slot), &err), 0);
    assert_int_equal(ring.n_slots, SLOTS);
    *state = &ring;
    return 0;
}

static int tear_down(void **state) {
    pd_ring_free(*state);
    return 0;
}

static void a_ring_too_small_is_refused(void **state) {
    (void)state;
    pd_ring ring;
    pd_error err = {""};
    assert_int_equal(pd_ring_init(&ring, 100000, sizeof(pd_slot), &err), -1);
    assert_non_null(strstr(err.text, "100000 bytes"));
}

static void slots_are_apart_and_aligned(void **state) {
    pd_ring *ring = *state;
    pd_quota quota;
    assert_int_equal(pd_ring_reserve(ring, &quota, SLOTS), 0);
    pd_slot *slots[SLOTS];
    for (int i = 0; i < SLOTS; i++) {
        slots[i] = pd_ring_take(ring, &quota);
        assert_int_equal((uintptr_t)slots[i]->raw % 64, 0);
        memset(slots[i]->raw, i, PD_PAGE_BYTES);
        memset(slots[i]->encoded, i, ring->encoded_bytes);
    }
    for (int i = 0; i < SLOTS; i++) {
        assert_int_equal(slots[i]->raw[0], i);
        assert_int_equal(slots[i]->raw[PD_PAGE_BYTES - 1], i);
        assert_int_equal(slots[i]->encoded[ring->encoded_bytes - 1], i);
        assert_true(pd_ring_release(ring, slots[i]));
    }
    assert_int_equal(ring->high_water, SLOTS);
    pd_ring_unreserve(ring, &quota);
}

static void no_run_takes_what_is_promised_to_another(void **state) {
    pd_ring *ring = *state;
    pd_quota a, b;
    pd_slot *slots[SLOTS];
    assert_int_equal(pd_ring_reserve(ring, &a, 10), 0);
    assert_int_equal(pd_ring_reserve(ring, &b, 20), 0);
    assert_int_equal(pd_ring_unreserved(ring), 10);
    assert_int_equal(pd_ring_available(ring, &a), 20);
    for (int i = 0; i < 20; i++)
        slots[i] = pd_ring_take(ring, &a);
    assert_int_equal(pd_ring_available(ring, &a), 0);
    assert_int_equal(pd_ring_available(ring, &b), 20);
    assert_true(pd_ring_release(ring, slots[0]));
    assert_int_equal(pd_ring_available(ring, &a), 1);
    assert_int_equal(pd_ring_available(ring, &b), 21);
    for (int i = 1; i < 20; i++)
        pd_ring_release(ring, slots[i]);
    assert_int_equal(pd_ring_available(ring, &a), 20);
    pd_ring_unreserve(ring, &a);
    pd_ring_unreserve(ring, &b);
    assert_int_equal(ring->n_free, SLOTS);
}

static void promises_never_exceed_the_ring(void **state) {
    pd_ring *ring = *state;
    pd_quota a, b, c;
    assert_int_equal(pd_ring_reserve(ring, &a, 30), 0);
    assert_int_equal(pd_ring_reserve(ring, &b, 11), -1);
    assert_int_equal(pd_ring_reserve(ring, &b, 10), 0);
    assert_int_equal(pd_ring_reserve(ring, &c, 1), -1);
    pd_ring_unreserve(ring, &a);
    assert_int_equal(pd_ring_reserve(ring, &c, 30), 0);
    pd_ring_unreserve(ring, &b);
    pd_ring_unreserve(ring, &c);
}

static void a_new_run_gets_its_slots_back_from_those_that_use_more(void **state) {
    pd_ring *ring = *state;
    pd_quota hog, late;
    pd_slot *slots[SLOTS];
    assert_int_equal(pd_ring_reserve(ring, &hog, 10), 0);
    for (int i = 0; i < SLOTS; i++)
        slots[i] = pd_ring_take(ring, &hog);
    assert_int_equal(pd_ring_reserve(ring, &late, 20), 0);
    assert_int_equal(pd_ring_available(ring, &late), 0);
    for (int i = 0; i < 5; i++)
        pd_ring_release(ring, slots[i]);
    assert_int_equal(pd_ring_available(ring, &late), 5);
    assert_int_equal(pd_ring_available(ring, &hog), 0);
    for (int i = 5; i < 21; i++)
        pd_ring_release(ring, slots[i]);
    assert_int_equal(pd_ring_available(ring, &late), 21);
    assert_int_equal(pd_ring_available(ring, &hog), 1);
    for (int i = 21; i < SLOTS; i++)
        pd_ring_release(ring, slots[i]);
    pd_ring_unreserve(ring, &hog);
    pd_ring_unreserve(ring, &late);
    assert_int_equal(ring->n_reserved_free, 0);
}

static void the_last_holder_frees(void **state) {
    pd_ring *ring = *state;
    pd_quota quota;
    assert_int_equal(pd_ring_reserve(ring, &quota, 1), 0);
    pd_slot *slot = pd_ring_take(ring, &quota);
    slot->holders = 2;
    pd_slot_move(slot, PD_SLOT_ENCODING);
    pd_slot_move(slot, PD_SLOT_ENCODED);
    pd_slot_move(slot, PD_SLOT_WRITING);
    assert_false(pd_ring_release(ring, slot));
    assert_int_equal(slot->state, PD_SLOT_WRITING);
    assert_true(pd_ring_release(ring, slot));
    assert_int_equal(slot->state, PD_SLOT_FREE);
    pd_ring_unreserve(ring, &quota);
}

/* Random takes and releases by several runs: the books always balance, and whoever is within its quota gets a slot
 * as soon as nobody is beyond theirs. */
static void books_balance(void **state) {
    enum { RUNS = 4 };
    pd_ring *ring = *state;
    pd_quota quotas[RUNS];
    pd_slot *held[RUNS][SLOTS];
    uint32_t seed = 7;
    for (int r = 0; r < RUNS; r++)
        assert_int_equal(pd_ring_reserve(ring, &quotas[r], 4 + 3 * (uint32_t)r), 0);
    for (int step = 0; step < 20000; step++) {
        seed = seed * 1664525u + 1013904223u;
        pd_quota *q = &quotas[seed >> 28 & 3];
        int r = (int)(q - quotas);
        if (seed & 1u << 16 && pd_ring_available(ring, q)) {
            pd_slot *slot = pd_ring_take(ring, q);
            held[r][q->used - 1] = slot;
        } else if (q->used) {
            pd_ring_release(ring, held[r][q->used - 1]);
        }
        uint32_t used = 0, reserved_free = 0;
        for (int i = 0; i < RUNS; i++) {
            used += quotas[i].used;
            reserved_free += quotas[i].used < quotas[i].slots ? quotas[i].slots - quotas[i].used : 0;
        }
        assert_int_equal(ring->n_free, SLOTS - used);
        assert_int_equal(ring->n_reserved_free, reserved_free);
        assert_true(ring->n_free >= reserved_free);
    }
    for (int r = 0; r < RUNS; r++) {
        while (quotas[r].used)
            pd_ring_release(ring, held[r][quotas[r].used - 1]);
        pd_ring_unreserve(ring, &quotas[r]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_too_small_is_refused),
        cmocka_unit_test(slots_are_apart_and_aligned),
        cmocka_unit_test(no_run_takes_what_is_promised_to_another),
        cmocka_unit_test(promises_never_exceed_the_ring),
        cmocka_unit_test(a_new_run_gets_its_slots_back_from_those_that_use_more),
        cmocka_unit_test(the_last_holder_frees),
        cmocka_unit_test(books_balance),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* How columns are cut into batches: nothing lost, limits kept, the index of milliseconds with its photons. */
#include "testing.h"

#include "split.h"

static void items_below_finds_the_first_that_is_not(void **state) {
    (void)state;
    static const uint64_t values[] = {0, 0, 3, 3, 3, 9, 10, 10, 50, 51, 52};
    size_t n = sizeof values / sizeof *values;
    for (uint64_t bound = 0; bound < 60; bound++) {
        for (size_t length = 0; length <= n; length++) {
            uint64_t expected = 0;
            while (expected < length && values[expected] < bound)
                expected++;
            assert_int_equal(client__items_below(values, length, bound), expected);
        }
    }
}

/* Splits a whole call and checks each batch. Returns the number of batches. */
static size_t split_whole(const client_split *s, const void *const *columns, const uint64_t *counts,
                          uint64_t before) {
    uint64_t done[8] = {0}, take[8];
    size_t n = 0;
    while (memcmp(done, counts, s->n_groups * sizeof *done) != 0) {
        uint64_t bytes = 0, sum = 0;
        memset(take, 0xEE, sizeof take);
        client__split_next(s, columns, counts, done, before, take);
        for (size_t g = 0; g < s->n_groups; g++) {
            assert_true(take[g] <= counts[g] - done[g] && take[g] <= s->batch_items);
            bytes += take[g] * s->row_bytes[g];
            sum += take[g];
            done[g] += take[g];
        }
        assert_true(bytes <= s->batch_bytes);
        assert_true(sum > 0);
        n++;
        if (s->index_group != CLIENT_SPLIT_NO_GROUP && done[s->photon_group] < counts[s->photon_group]) {
            const uint64_t *index = columns[s->index_column];
            uint64_t k = done[s->index_group];
            assert_true(k == 0 || index[k - 1] < before + done[s->photon_group]);
        }
    }
    return n;
}

static void what_fits_goes_at_once(void **state) {
    (void)state;
    uint64_t row[] = {6, 8}, counts[] = {1000, 5}, index[5] = {0, 1, 2, 3, 1000};
    const void *columns[] = {index, index, index, index};
    client_split s = {2, row, 6040, 1000, 1, 3, 0};
    assert_int_equal(split_whole(&s, columns, counts, 0), 1);
    s.batch_bytes = 6039;
    assert_int_equal(split_whole(&s, columns, counts, 0), 2);
    s.batch_bytes = UINT64_MAX;
    s.batch_items = 999;
    assert_int_equal(split_whole(&s, columns, counts, 0), 2);
    s.batch_items = UINT64_MAX;
    assert_int_equal(split_whole(&s, columns, counts, 0), 1);
}

static void batches_are_nearly_as_few_as_they_can_be(void **state) {
    (void)state;
    uint64_t row[] = {6, 8}, counts[] = {1000000, 1000}, *index = calloc(1000, sizeof *index);
    assert_non_null(index);
    for (uint64_t i = 0; i < 1000; i++)
        index[i] = 777 + i * 1000;
    const void *columns[] = {NULL, NULL, NULL, index};
    client_split s = {2, row, 1 << 16, UINT64_MAX, 1, 3, 0};
    size_t least = (1000000 * 6 + 1000 * 8) / (1 << 16) + 1;
    assert_in_range(split_whole(&s, columns, counts, 777), least, least + 2);
    free(index);
}

static void many_index_items_to_one_photon_still_go(void **state) {
    (void)state;
    uint64_t row[] = {6, 8}, *index = calloc(5000, sizeof *index), counts[] = {1, 5000};
    assert_non_null(index);
    const void *columns[] = {NULL, NULL, NULL, index};
    client_split s = {2, row, 100, UINT64_MAX, 1, 3, 0};
    assert_in_range(split_whole(&s, columns, counts, 0), 417, 430);
    counts[0] = 3;
    for (size_t i = 0; i < 5000; i++)
        index[i] = i < 4000 ? 1 : 2;
    assert_in_range(split_whole(&s, columns, counts, 0), 417, 430);
    counts[0] = 0; /* no photon at all, milliseconds go by */
    assert_in_range(split_whole(&s, columns, counts, 0), 417, 430);
    free(index);
}

static void random_calls_lose_nothing(void **state) {
    (void)state;
    uint64_t seed = 3;
    uint64_t *index = calloc(4096, sizeof *index);
    assert_non_null(index);
    for (unsigned round = 0; round < 3000; round++) {
        uint64_t row[4], counts[4], at = testing_random(&seed) % 1000, before = at;
        size_t groups = 1 + testing_random(&seed) % 4;
        for (size_t g = 0; g < groups; g++) {
            row[g] = 1 + testing_random(&seed) % 40;
            counts[g] = testing_random(&seed) % 4 ? testing_random(&seed) % 3000 : 0;
        }
        client_split s = {groups,
                          row,
                          64 + testing_random(&seed) % 2000,
                          1 + testing_random(&seed) % 3000,
                          CLIENT_SPLIT_NO_GROUP,
                          0,
                          0};
        if (groups > 1 && testing_random(&seed) % 2) {
            s.index_group = 1;
            row[1] = 8;
            uint64_t step = testing_random(&seed) % 5;
            for (size_t i = 0; i < 4096; i++)
                index[i] = at += testing_random(&seed) % (step + 1);
        }
        const void *columns[] = {index, index, index, index};
        split_whole(&s, columns, counts, before);
    }
    free(index);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_below_finds_the_first_that_is_not),
        cmocka_unit_test(what_fits_goes_at_once),
        cmocka_unit_test(batches_are_nearly_as_few_as_they_can_be),
        cmocka_unit_test(many_index_items_to_one_photon_still_go),
        cmocka_unit_test(random_calls_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The list of problems: which are kept, in which order, and that each is counted once. */
#include "problems.h"
#include "testing.h"

typedef struct fixture {
    d7_alloc alloc;
    d7__problems p;
    size_t n_told;
} fixture;

static void count_told(void *ctx, const d7_problem *problem) {
    (void)problem;
    ((fixture *)ctx)->n_told++;
}

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->alloc = d7__alloc_or_default(NULL);
    f->p = (d7__problems){.alloc = &f->alloc, .keep = true, .tell = count_told, .tell_ctx = f};
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    d7__problems_free(&f->p);
    free(f);
    return 0;
}

static void add(fixture *f, d7_problem_code code, uint64_t offset, uint32_t dataset_id) {
    d7_problem problem = d7__problem(code, offset, "at %d", (int)offset);
    problem.dataset_id = dataset_id;
    d7__problems_add(&f->p, &problem);
}

/* What the list held when each problem was compared with all of them. */
static void those_kept_are_counted_once_in_order(void **state) {
    fixture *f = *state;
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 500; i++) {
            add(f, D7_PROBLEM_BAD_PAGE, i / 5 * 4096, i % 5);
            add(f, D7_PROBLEM_CHECKSUM, i / 5 * 4096, i % 5);
        }
    assert_int_equal(f->p.total, 1000);
    assert_int_equal(f->p.by_severity[D7_DAMAGE], 1000);
    assert_int_equal(f->n_told, 1000);
    assert_int_equal(f->p.n, D7__PROBLEMS_KEPT);
    for (uint32_t i = 0; i < 1000; i++) {
        const d7_problem *problem = &f->p.items[i];
        assert_int_equal(problem->code, i % 2 ? D7_PROBLEM_CHECKSUM : D7_PROBLEM_BAD_PAGE);
        assert_int_equal(problem->offset, i / 10 * 4096);
        assert_int_equal(problem->dataset_id, i / 2 % 5);
    }
}

static void those_past_the_last_kept_count_each_time(void **state) {
    fixture *f = *state;
    for (uint64_t i = 0; i < 300000; i++)
        add(f, D7_PROBLEM_BAD_FRAME, i * 512, D7_NO_DATASET);
    for (uint64_t i = 990; i < 1010; i++)
        add(f, D7_PROBLEM_BAD_FRAME, i * 512, D7_NO_DATASET);
    assert_int_equal(f->p.n, D7__PROBLEMS_KEPT);
    assert_int_equal(f->p.total, 300010);
    assert_int_equal(f->p.items[999].offset, 999 * 512);
}

static void those_dropped_can_come_again(void **state) {
    fixture *f = *state;
    for (uint64_t i = 0; i < 100; i++)
        add(f, i % 3 ? D7_PROBLEM_RAGGED : D7_PROBLEM_TORN_TAIL, i, 0);
    d7__problems_drop(&f->p, D7_PROBLEM_TORN_TAIL);
    assert_int_equal(f->p.n, 66);
    assert_int_equal(f->p.total, 66);
    for (uint64_t i = 0; i < 100; i++)
        add(f, i % 3 ? D7_PROBLEM_RAGGED : D7_PROBLEM_TORN_TAIL, i, 0);
    assert_int_equal(f->p.total, 100);
    assert_int_equal(f->p.items[66].code, D7_PROBLEM_TORN_TAIL);
    assert_int_equal(f->p.items[66].offset, 0);
    d7__problems_clear(&f->p);
    assert_int_equal(f->p.total, 0);
    add(f, D7_PROBLEM_RAGGED, 1, 0);
    assert_int_equal(f->p.n, 1);
}

static void without_keeping_all_are_told(void **state) {
    fixture *f = *state;
    f->p.keep = false;
    for (int i = 0; i < 3; i++)
        add(f, D7_PROBLEM_BAD_PAGE, 7, 0);
    assert_int_equal(f->n_told, 3);
    assert_int_equal(f->p.n, 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(those_kept_are_counted_once_in_order),
        TEST(those_past_the_last_kept_count_each_time),
        TEST(those_dropped_can_come_again),
        TEST(without_keeping_all_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The threads of the commands: every job runs once, wait() waits for all, a full queue refuses. */
#include <stdatomic.h>
#include <stdbool.h>

#include "cli/pool.h"
#include "testing.h"

static void count_one(void *arg) {
    atomic_fetch_add((atomic_uint *)arg, 1);
}

static void every_job_runs_once(void **state) {
    (void)state;
    for (unsigned n_threads = 1; n_threads <= 4; n_threads++) {
        cli_pool *pool = cli_pool_new(n_threads);
        atomic_uint ran = 0;
        unsigned taken = 0;
        assert_non_null(pool);
        assert_int_equal(cli_pool_threads(pool), n_threads);
        for (unsigned round = 0; round < 50; round++) {
            for (unsigned i = 0; i < 100; i++)
                taken += cli_pool_submit(pool, count_one, &ran) == 0;
            cli_pool_wait(pool);
            assert_int_equal(atomic_load(&ran), taken);
        }
        assert_int_equal(taken, 5000);
        cli_pool_free(pool);
    }
}

static void free_waits(void **state) {
    (void)state;
    cli_pool *pool = cli_pool_new(2);
    atomic_uint ran = 0;
    unsigned taken = 0;
    for (unsigned i = 0; i < 500; i++)
        taken += cli_pool_submit(pool, count_one, &ran) == 0;
    cli_pool_free(pool);
    assert_int_equal(atomic_load(&ran), taken);
}

typedef struct gate {
    atomic_bool open;
    atomic_uint passed;
} gate;

static void wait_at(void *arg) {
    gate *g = arg;
    while (!atomic_load(&g->open))
        ;
    atomic_fetch_add(&g->passed, 1);
}

static void a_full_queue_refuses(void **state) {
    (void)state;
    cli_pool *pool = cli_pool_new(1);
    gate g = {0};
    unsigned taken = 0;
    while (cli_pool_submit(pool, wait_at, &g) == 0)
        taken++;
    assert_in_range(taken, 1000, 1100);
    atomic_store(&g.open, true);
    cli_pool_wait(pool);
    assert_int_equal(atomic_load(&g.passed), taken);
    cli_pool_free(pool);
}

static void one_for_each_processor(void **state) {
    (void)state;
    cli_pool *pool = cli_pool_new(0);
    assert_in_range(cli_pool_threads(pool), 1, 256);
    cli_pool_free(pool);
    cli_pool_free(NULL);
    assert_int_equal(cli_pool_threads(NULL), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_job_runs_once),
        cmocka_unit_test(free_waits),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(one_for_each_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

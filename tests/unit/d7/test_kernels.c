/* The kernels' variants: the checks of kernels_checks.h for each type, and which variant is chosen. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels_checks.h"
#include "testing.h"

/* The thread sanitizer has nothing to find in the checks, and makes them slow. */
#if defined(__SANITIZE_THREAD__)
enum { MAX_ITEMS = 200 };
#else
enum { MAX_ITEMS = KERNEL_MAX_ITEMS };
#endif

/* Is `expected` what d7__kernels_best() chooses in a process whose environment says `value`? */
static bool chosen_is(const char *value, const char *expected) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (value ? setenv("D7_KERNEL", value, 1) : unsetenv("D7_KERNEL"))
            _exit(2);
        const d7__kernels *k = d7__kernels_best();
        _exit(k != d7__kernels_best() || strcmp(k->name, expected) != 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status == 0;
}

static void the_environment_chooses(void **state) {
    (void)state;
    const char *best = "scalar";
    const d7__kernels *k;
    for (size_t i = 0; (k = kernel_next_usable(&i));) {
        assert_true(chosen_is(k->name, k->name));
        best = k->fast() ? k->name : best;
    }
    assert_true(chosen_is(NULL, best));
    assert_true(chosen_is("", best));
    assert_true(chosen_is("no such kernel", best));
    assert_string_equal(d7__kernels_all[0]->name, "scalar");
}

static void *choose(void *arg) {
    (void)arg;
    return (void *)d7__kernels_best();
}

/* The first calls of this process, at once. */
static void threads_choose_the_same(void **state) {
    (void)state;
    enum { N = 8 };
    pthread_t threads[N];
    void *chosen[N];
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, choose, NULL), 0);
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_join(threads[i], &chosen[i]), 0);
    for (int i = 0; i < N; i++)
        assert_ptr_equal(chosen[i], d7__kernels_best());
}

static void run_check(void **state) {
    const kernel_check *check = *state;
    for (int t = 0; t < KERNEL_N_TYPES; t++)
        check->run((kernel_type)t, MAX_ITEMS);
}

int main(void) {
    struct CMUnitTest tests[32] = {cmocka_unit_test(the_environment_chooses),
                                   cmocka_unit_test(threads_choose_the_same)};
    size_t n = 2;
    for (const kernel_check *c = kernel_checks; c->name; c++, n++)
        tests[n] = (struct CMUnitTest){.name = c->name, .test_func = run_check, .initial_state = (void *)c};
    return _cmocka_run_group_tests("kernels", tests, n, NULL, NULL);
}

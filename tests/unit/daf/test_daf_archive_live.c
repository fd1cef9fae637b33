/* Readers beside a writer that appends: in other processes and in other threads, they see whole committed states, each with
 * all that came before it. */
#include "archive_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_APPENDS = 400, N_VALUES = 700, N_READERS = 3 };

/* Returns 0, or says on the standard error what was wrong. */
static int wrong(const char *what, int i, const daf_error *err) {
    fprintf(stderr, "reader: %s %d: %s\n", what, i, err->text);
    return 1;
}

/* Vector i is there whole: all its values are i. *there: whether it is there at all. */
static int look_at(daf *d, int i, bool *there) {
    char name[16];
    daf_array *a;
    daf_error err = {0};
    snprintf(name, sizeof name, "v%d", i);
    if (daf_has_vector(d, there, "x", name, &err) != 0)
        return wrong("has", i, &err);
    if (!*there)
        return 0;
    if (daf_get_vector(d, &a, "x", name, &err) != 0)
        return wrong("get", i, &err);
    const int32_t *v = daf_array_values(a);
    int bad = 0;
    for (int k = 0; k < N_VALUES; k++)
        bad |= v[k] != i;
    daf_array_free(a);
    return bad ? wrong("values of", i, &err) : 0;
}

/* Follows the writer to its last append. reopen: with a new handle for each look. */
static int follow(const char *path, bool reopen) {
    daf *d = NULL;
    daf_error err = {0};
    for (int i = 0; i < N_APPENDS;) {
        bool there = false, before = true;
        if (!d && daf_open(&d, path, "r", NULL, &err) != 0)
            return wrong("open", i, &err);
        if (look_at(d, i, &there) || (i > 0 && look_at(d, i / 2, &before)))
            return 1;
        if (!before)
            return wrong("an earlier one is gone", i / 2, &err);
        i += there;
        if (reopen) {
            daf_free(d);
            d = NULL;
        }
    }
    daf_free(d);
    return 0;
}

static void append(daf *d, int i) {
    static int32_t values[N_VALUES];
    char name[16];
    for (int k = 0; k < N_VALUES; k++)
        values[k] = i;
    snprintf(name, sizeof name, "v%d", i);
    OK(daf_set_vector(d, "x", name, DAF_INT32, values, N_VALUES, NULL, e));
}

static void processes_follow(void **state) {
    const char *path = test_path(state, "a.daf.zip");
    pid_t readers[N_READERS];
    daf *d;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "x", 0, 1, N_VALUES, e));
    OK(daf_close(d, e));
    fflush(NULL);
    for (unsigned i = 0; i < N_READERS; i++) {
        readers[i] = fork();
        assert_true(readers[i] >= 0);
        if (readers[i] == 0)
            _exit(follow(path, i % 2));
    }
    OK(daf_open(&d, path, "r+", NULL, e));
    for (int i = 0; i < N_APPENDS; i++)
        append(d, i);
    OK(daf_close(d, e));
    for (unsigned i = 0; i < N_READERS; i++) {
        int status;
        assert_int_equal(waitpid(readers[i], &status, 0), readers[i]);
        assert_int_equal(status, 0);
    }
}

static void *follow_in_thread(void *path) {
    return (void *)(intptr_t)follow(path, true);
}

static void threads_follow(void **state) {
    const char *path = test_path(state, "a.daf.zip");
    pthread_t readers[N_READERS];
    daf *d;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "x", 0, 1, N_VALUES, e));
    for (unsigned i = 0; i < N_READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, follow_in_thread, (void *)(uintptr_t)path), 0);
    for (int i = 0; i < N_APPENDS; i++)
        append(d, i);
    for (unsigned i = 0; i < N_READERS; i++) {
        void *result;
        assert_int_equal(pthread_join(readers[i], &result), 0);
        assert_null(result);
    }
    OK(daf_close(d, e));
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(processes_follow), TEST(threads_follow)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Readers in another thread and in another process, with handles of their own, while a writer replaces properties: what
 * they read is one version, whole, and the index they find is JSON at every moment. */
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 3000, N_VERSIONS = 400 };

typedef struct reader {
    const char *path;
    atomic_bool stop;
    unsigned reads, absent;
    char problem[1200]; /* the first one */
} reader;

static void note_problem(reader *r, const char *text) {
    if (!r->problem[0])
        snprintf(r->problem, sizeof r->problem, "%s", text);
}

static double value_at(const daf_array *a, uint64_t i) {
    const void *p = daf_array_values(a);
    if (daf_array_type(a) == DAF_FLOAT64)
        return ((const double *)p)[i];
    return daf_array_type(a) == DAF_INT32 ? ((const int32_t *)p)[i] : (double)((const uint16_t *)p)[i];
}

/* Version k has the value k everywhere, and a type that belongs to it. */
static void check_whole(reader *r, const daf_array *a) {
    double first = value_at(a, 0);
    for (uint64_t i = 1; i < N; i++)
        if (value_at(a, i) != first)
            note_problem(r, "two versions in one array");
    if (first < 0 || first >= N_VERSIONS || first != (double)(unsigned)first)
        note_problem(r, "values that were never written");
}

static void read_vector(reader *r, daf *d, const char *name, bool may_vanish) {
    daf_array *a = NULL;
    daf_error err = {0};
    int rc = daf_get_vector(d, &a, "axis", name, &err);
    if (rc == 0)
        check_whole(r, a);
    else if (rc == DAF_ERR_MISSING && may_vanish && strstr(err.text, "no vector"))
        r->absent++;
    else
        note_problem(r, err.text);
    daf_array_free(a);
    r->reads++;
}

/* Version k has k values more than half of them, all k + 1: the parts must be of one version. */
static void read_sparse(reader *r, daf *d) {
    daf_sparse *s = NULL;
    daf_error err = {0};
    int rc = daf_get_sparse_vector(d, &s, "axis", "sparse", &err);
    if (rc == DAF_ERR_MISSING && strstr(err.text, "no vector")) {
        r->absent++;
    } else if (rc) {
        note_problem(r, err.text);
    } else {
        const daf_csc *csc = daf_sparse_csc(s);
        const int32_t *v = csc->values;
        for (uint64_t k = 0; k < csc->nnz; k++)
            if (v[k] != v[0] || daf_sparse_index(s, k) != k || csc->nnz != N / 2 + (uint64_t)v[0] - 1)
                note_problem(r, "two versions in one sparse vector");
    }
    daf_sparse_free(s);
    r->reads++;
}

static void read_index(reader *r) {
    char file[600];
    json_error_t error;
    snprintf(file, sizeof file, "%s/metadata.json", r->path);
    json_t *index = json_load_file(file, 0, &error);
    if (!index)
        note_problem(r, error.text);
    json_decref(index);
}

static void *read_all(void *arg) {
    reader *r = arg;
    daf *d;
    daf_error err;
    if (daf_open(&d, r->path, "r", NULL, &err) != 0) {
        note_problem(r, err.text);
        return NULL;
    }
    while (!atomic_load(&r->stop)) {
        read_vector(r, d, "steady", false);
        read_vector(r, d, "packing", false);
        read_vector(r, d, "changing", true);
        read_sparse(r, d);
        read_index(r);
    }
    daf_free(d);
    return NULL;
}

static void write_version(daf *d, const char *name, daf_type type, unsigned version, daf_packing packing) {
    static double reals[N];
    static int32_t integers[N];
    static uint16_t shorts[N];
    daf_set_options o;
    daf_set_options_init(&o);
    o.overwrite = true;
    o.packing = packing;
    for (unsigned i = 0; i < N; i++) {
        reals[i] = version;
        integers[i] = (int32_t)version;
        shorts[i] = (uint16_t)version;
    }
    const void *values = type == DAF_FLOAT64 ? (const void *)reals
                         : type == DAF_INT32 ? (const void *)integers
                                             : shorts;
    OK(daf_set_vector(d, "axis", name, type, values, N, &o, e));
}

static void write_sparse(daf *d, unsigned version) {
    static int32_t values[N];
    daf_set_options o;
    daf_set_options_init(&o);
    o.overwrite = true;
    o.form = DAF_FORM_SPARSE;
    for (unsigned i = 0; i < N; i++)
        values[i] = i < N / 2 + version ? (int32_t)version + 1 : 0;
    OK(daf_set_vector(d, "axis", "sparse", DAF_INT32, values, N, &o, e));
}

/* A reader in a process of its own; its findings are in shared memory. */
static reader *start_process(const char *path, pid_t *pid) {
    reader *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(r != MAP_FAILED);
    r->path = path;
    fflush(NULL);
    *pid = fork();
    assert_true(*pid >= 0);
    if (*pid == 0) {
        read_all(r);
        _exit(0);
    }
    return r;
}

static void end_process(reader *r, pid_t pid) {
    int status;
    atomic_store(&r->stop, true);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status || r->problem[0])
        fail_msg("the process ended with %x after %u reads: %s", (unsigned)status, r->reads, r->problem);
    assert_true(r->reads > 0);
    munmap(r, sizeof *r);
}

static void readers_see_whole_versions(void **state) {
    static const daf_type types[] = {DAF_FLOAT64, DAF_INT32, DAF_UINT16};
    reader r = {.path = test_path(state, "a.daf")};
    reader *process = NULL;
    pthread_t thread;
    pid_t pid = 0;
    daf *d;
    OK(daf_open(&d, r.path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "axis", 0, 1, N, e));
    for (unsigned k = 0; k < N_VERSIONS; k++) {
        write_version(d, "steady", DAF_INT32, k, DAF_PACK_NEVER);
        write_version(d, "packing", DAF_FLOAT64, k, k % 2 ? DAF_PACK_LARGE : DAF_PACK_NEVER);
        write_version(d, "changing", types[k % 3], k, DAF_PACK_NEVER);
        write_sparse(d, k);
        if (k == 0) {
            process = start_process(r.path, &pid);
            assert_int_equal(pthread_create(&thread, NULL, read_all, &r), 0);
        }
    }
    atomic_store(&r.stop, true);
    pthread_join(thread, NULL);
    end_process(process, pid);
    OK(daf_close(d, e));
    if (r.problem[0])
        fail_msg("after %u reads: %s", r.reads, r.problem);
    assert_true(r.reads > 0);
}

/* ---- views of a repository in memory, let go in other threads than the one that works with it */

enum { N_VIEWS = 64, N_THREADS = 4 };

static void *look_and_free(void *arg) {
    daf_array **views = arg;
    for (unsigned i = 0; i < N_VIEWS; i++) {
        const int32_t *v = daf_array_values(views[i]);
        for (unsigned k = 1; k < 100; k++)
            if (v[k] != v[0])
                return arg;
        daf_array_free(views[i]);
    }
    return NULL;
}

static void views_of_memory_are_let_go_anywhere(void **state) {
    static daf_array *views[N_THREADS][N_VIEWS];
    static int32_t values[100];
    pthread_t threads[N_THREADS];
    daf_set_options o;
    daf *d;
    (void)state;
    daf_set_options_init(&o);
    o.overwrite = true;
    OK(daf_open_memory(&d, NULL, e));
    OK(daf_add_axis_integers(d, "a", 0, 1, 100, e));
    for (unsigned i = 0; i < N_VIEWS; i++) {
        for (unsigned k = 0; k < 100; k++)
            values[k] = (int32_t)i;
        OK(daf_set_vector(d, "a", "v", DAF_INT32, values, 100, &o, e));
        for (unsigned t = 0; t < N_THREADS; t++)
            OK(daf_get_vector(d, &views[t][i], "a", "v", e));
    }
    for (unsigned t = 0; t < N_THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, look_and_free, views[t]), 0);
    OK(daf_set_vector(d, "a", "v", DAF_INT32, values, 100, &o, e));
    OK(daf_close(d, e));
    for (unsigned t = 0; t < N_THREADS; t++) {
        void *problem;
        pthread_join(threads[t], &problem);
        assert_null(problem);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(readers_see_whole_versions, test_setup, test_teardown),
        cmocka_unit_test(views_of_memory_are_let_go_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

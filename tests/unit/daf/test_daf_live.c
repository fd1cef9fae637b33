/* A reader in another thread, with a handle of its own, while a writer replaces properties: what it reads is one
 * version, whole, and the index it finds is JSON at every moment. */
#include "support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void readers_see_whole_versions(void **state) {
    static const daf_type types[] = {DAF_FLOAT64, DAF_INT32, DAF_UINT16};
    reader r = {.path = test_path(state, "a.daf")};
    pthread_t thread;
    daf *d;
    OK(daf_open(&d, r.path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "axis", 0, 1, N, e));
    for (unsigned k = 0; k < N_VERSIONS; k++) {
        write_version(d, "steady", DAF_INT32, k, DAF_PACK_NEVER);
        write_version(d, "packing", DAF_FLOAT64, k, k % 2 ? DAF_PACK_LARGE : DAF_PACK_NEVER);
        write_version(d, "changing", types[k % 3], k, DAF_PACK_NEVER);
        if (k == 0)
            assert_int_equal(pthread_create(&thread, NULL, read_all, &r), 0);
    }
    atomic_store(&r.stop, true);
    pthread_join(thread, NULL);
    OK(daf_close(d, e));
    if (r.problem[0])
        fail_msg("after %u reads: %s", r.reads, r.problem);
    assert_true(r.reads > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(readers_see_whole_versions, test_setup, test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The bytes after each step of the exact-bytes fixture. */
#include "support.h"

#include <stdio.h>
#include <string.h>

static const char *step(unsigned n) {
    static char path[2][512];
    static unsigned turn;
    char *to = path[turn++ % 2];
    snprintf(to, sizeof path[0], TEST_FIXTURES "/daf/exact-bytes/step-%u.daf", n);
    return to;
}

static void folders_exist(const char *path, const char *const *folders) {
    char full[600];
    for (; *folders; folders++) {
        snprintf(full, sizeof full, "%s/%s", path, *folders);
        if (!test_exists(full))
            fail_msg("no folder %s", *folders);
    }
}

static void first_steps(daf *d, const char *path) {
    static const char *const cell[] = {"A", "B", "C"}, *const gene[] = {"X", "Y"};
    static const int32_t age[] = {10, 20, 30};
    static const char *const first[] = {"scalars", "axes", "vectors", "matrices", NULL};
    static const char *const second[] = {"vectors/cell", "matrices/cell/cell", NULL};
    static const char *const third[] = {"vectors/gene", "matrices/gene/gene", "matrices/gene/cell",
                                        "matrices/cell/gene", NULL};
    daf_scalar version = daf_scalar_string("1.0");
    test_same_tree(step(0), path);
    folders_exist(path, first);
    OK(daf_set_scalar(d, "version", &version, NULL, e));
    test_same_tree(step(1), path);
    OK(daf_add_axis(d, "cell", cell, 3, e));
    test_same_tree(step(2), path);
    folders_exist(path, second);
    OK(daf_set_vector(d, "cell", "age", DAF_INT32, age, 3, NULL, e));
    test_same_tree(step(3), path);
    OK(daf_add_axis(d, "gene", gene, 2, e));
    test_same_tree(step(4), path);
    folders_exist(path, third);
}

static void set_flag(daf *d) {
    static const uint16_t second = 2;
    daf_csc flag = {
        .type = DAF_BOOL, .index_type = DAF_UINT16, .rows = 3, .columns = 1, .nnz = 1, .indices = &second};
    OK(daf_set_sparse_vector(d, "cell", "flag", &flag, NULL, e));
}

/* The other layout comes with the matrix, by a call of its own, or as the transpose of what is there. */
typedef enum layouts { WITH_IT, BY_ITSELF, BY_RELAYOUT } layouts;

static void set_both(daf *d, layouts how) {
    static const uint8_t counts[] = {1, 2, 3, 4, 5, 6}, other[] = {1, 4, 2, 5, 3, 6};
    daf_set_options o;
    daf_set_options_init(&o);
    o.both_layouts = how == WITH_IT;
    OK(daf_set_matrix(d, "cell", "gene", "UMIs", DAF_UINT8, counts, 6, &o, e));
    if (how == BY_ITSELF)
        OK(daf_set_matrix(d, "gene", "cell", "UMIs", DAF_UINT8, other, 6, NULL, e));
    else if (how == BY_RELAYOUT)
        OK(daf_relayout_matrix(d, "cell", "gene", "UMIs", NULL, e));
}

/* The operations of steps 5 to 8; in one batch the last state alone is compared. */
static void last_steps(daf *d, const char *path, layouts how, bool batch) {
    daf_scalar version = daf_scalar_string("2.0");
    daf_set_options overwrite;
    daf_set_options_init(&overwrite);
    overwrite.overwrite = true;
    if (batch)
        OK(daf_batch_begin(d, e));
    set_flag(d);
    if (!batch)
        test_same_tree(step(5), path);
    set_both(d, how);
    if (!batch)
        test_same_tree(step(6), path);
    OK(daf_set_scalar(d, "version", &version, &overwrite, e));
    if (!batch)
        test_same_tree(step(7), path);
    OK(daf_delete_vector(d, "cell", "age", e));
    if (batch)
        OK(daf_batch_commit(d, e));
    test_same_tree(step(8), path);
}

static void each_step_has_its_bytes(void **state) {
    for (int i = 0; i < 6; i++) {
        char name[16];
        daf *d;
        snprintf(name, sizeof name, "r%d.daf", i);
        const char *path = test_path(state, name);
        OK(daf_open(&d, path, "w+", NULL, e));
        first_steps(d, path);
        last_steps(d, path, (layouts)(i % 3), i >= 3);
        OK(daf_close(d, e));
    }
}

/* A batch leaves the bytes that single writes leave, whatever is set, replaced and deleted in it. */
static void batch_equals_single_writes(void **state) {
    const char *paths[] = {test_path(state, "single.daf"), test_path(state, "batch.daf")};
    daf_set_options overwrite;
    daf_set_options_init(&overwrite);
    overwrite.overwrite = true;
    for (int batch = 0; batch < 2; batch++) {
        test_random r = {42};
        daf *d;
        OK(daf_open(&d, paths[batch], "w", NULL, e));
        OK(daf_add_axis_integers(d, "a", 0, 1, 5, e));
        OK(daf_add_axis_integers(d, "b", 10, -3, 2, e));
        if (batch)
            OK(daf_batch_begin(d, e));
        for (unsigned i = 0; i < 300; i++) {
            char name[16];
            int32_t values[10] = {(int32_t)i};
            daf_scalar s = daf_scalar_int64((int64_t)i);
            bool there;
            snprintf(name, sizeof name, "p%u", (unsigned)test_below(&r, 12));
            switch (test_below(&r, 5)) {
            case 0:
                OK(daf_set_scalar(d, name, &s, &overwrite, e));
                break;
            case 1:
                OK(daf_set_vector(d, "a", name, DAF_INT32, values, 5, &overwrite, e));
                break;
            case 2:
                OK(daf_set_matrix(d, "a", "b", name, DAF_INT32, values, 10, &overwrite, e));
                break;
            case 3:
                OK(daf_has_vector(d, &there, "a", name, e));
                if (there)
                    OK(daf_delete_vector(d, "a", name, e));
                break;
            default:
                OK(daf_has_matrix(d, &there, "a", "b", name, e));
                if (there)
                    OK(daf_delete_matrix(d, "b", "a", name, e));
            }
        }
        OK(daf_close(d, e)); /* commits */
    }
    test_same_tree(paths[0], paths[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_step_has_its_bytes, test_setup, test_teardown),
        cmocka_unit_test_setup_teardown(batch_equals_single_writes, test_setup, test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

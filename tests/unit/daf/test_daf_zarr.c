/* Repositories as Zarr trees, and back: against trees that another program wrote (tests/fixtures/zarr-daf). */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct conversion {
    const char *files, *zarr; /* in tests/fixtures */
} conversion;

static const conversion conversions[] = {
    {"daf/flat-all-types/repo.daf", "zarr-daf/flat-all-types/repo.daf.zarr"},
    {"daf/packed/zstd.daf", "zarr-daf/packed/zstd.daf.zarr"},
    {"daf/packed/gzip.daf", "zarr-daf/packed/gzip.daf.zarr"},
    {"daf/packed/blosc_zstd_bitshuffle.daf", "zarr-daf/packed/blosc_zstd_bitshuffle.daf.zarr"},
    {"daf/packed/blosc_lz4_bitshuffle.daf", "zarr-daf/packed/blosc_lz4_bitshuffle.daf.zarr"},
};
enum { N_CONVERSIONS = sizeof conversions / sizeof conversions[0] };

/* A copy of the fixture: the tests must not link the stored files. */
static const char *copy_fixture(void **state, const char *fixture, const char *name) {
    char from[512];
    snprintf(from, sizeof from, TEST_FIXTURES "/%s", fixture);
    const char *to = test_path(state, name);
    test_copy_tree(from, to);
    return to;
}

static bool same_inode(const char *a, const char *b) {
    struct stat s, t;
    return stat(a, &s) == 0 && stat(b, &t) == 0 && s.st_ino == t.st_ino && s.st_dev == t.st_dev;
}

static void exports_are_the_trees_of_the_fixtures(void **state) {
    for (size_t i = 0; i < N_CONVERSIONS; i++) {
        char name[64], expected[512];
        snprintf(name, sizeof name, "run-%zu.daf", i);
        const char *from = copy_fixture(state, conversions[i].files, name);
        snprintf(name, sizeof name, "run-%zu.daf.zarr", i);
        const char *to = test_path(state, name);
        daf_zarr_report report;
        OK(daf_zarr_export(&report, from, to, NULL, e));
        snprintf(expected, sizeof expected, TEST_FIXTURES "/%s", conversions[i].zarr);
        test_same_tree(to, expected);
        assert_true(report.n_linked > 0 && report.n_copied == 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exports_are_the_trees_of_the_fixtures, test_setup, test_teardown),
    };
    (void)same_inode;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

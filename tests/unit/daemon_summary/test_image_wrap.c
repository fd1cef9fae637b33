/* A pixel that passes 2^32 - 1: reached by setting the counter, so the source is taken in whole. */
#include "testing.h"

#define pd_summary_image summary_image_under_test
#include "summary_image.c"

static void a_pixel_past_32_bits_is_exact_and_changes_the_type(void **state) {
    (void)state;
    const pd_dataset datasets[] = {{"/x", D7_UINT16, "g", PD_ROLE_POSITION_X, "", 1},
                                   {"/y", D7_UINT16, "g", PD_ROLE_POSITION_Y, "", 1}};
    pd_summary_setup setup = {.name = "r",
                              .datasets = datasets,
                              .n_datasets = 2,
                              .options = {.enabled = true, .image = true, .pixels = 16, .max_seconds = 60}};
    pd_summary *s = NULL;
    assert_int_equal(pd_summary_create(&s, &setup, NULL), 0);
    void *made = NULL;
    assert_int_equal(image_create(&made, s), 0);
    image *im = made;
    im->low[3 + 2 * 16] = UINT32_MAX - 1;
    uint16_t x[3] = {2 * 256, 2 * 256, 2 * 256}, y[3] = {3 * 256, 3 * 256, 3 * 256};
    const void *columns[] = {x, y};

    pd_snapshot snapshot;
    pd_snapshot_init(&snapshot);
    image_bin(im, 0, columns, 1);
    assert_int_equal(image_freeze(im, s, &snapshot), 0);
    const pd_property *m = pd_snapshot_find(&snapshot, PD_MATRIX, "y_pixel", "intensity");
    assert_int_equal(m->type, DAF_UINT32);
    assert_int_equal(((const uint32_t *)m->values)[3 + 2 * 16], UINT32_MAX);

    image_bin(im, 0, columns, 3);
    pd_snapshot_reset(&snapshot);
    assert_int_equal(image_freeze(im, s, &snapshot), 0);
    m = pd_snapshot_find(&snapshot, PD_MATRIX, "y_pixel", "intensity");
    assert_int_equal(m->type, DAF_UINT64);
    assert_int_equal(((const uint64_t *)m->values)[3 + 2 * 16], UINT64_C(0x100000002));
    assert_int_equal(((const uint64_t *)m->values)[3 + 3 * 16], 0);

    pd_snapshot_clear(&snapshot);
    image_free(im);
    pd_summary_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pixel_past_32_bits_is_exact_and_changes_the_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Writes a small repository: scalars, axes, an image flat and packed, a sparse vector.
 *   cc daf_write_demo.c $(pkg-config --cflags --libs daf) -o daf_write_demo && ./daf_write_demo demo.daf */
#include <daf/daf.h>
#include <stdio.h>

enum { PIXELS = 256, CHANNELS = 4096, HOT = 3 };

static int set_scalars_and_axes(daf *d, daf_error *err) {
    const daf_scalar name = daf_scalar_string("demo"), exposure = daf_scalar_float64(12.5);
    int rc = daf_set_scalar(d, "name", &name, NULL, err);
    rc = rc ? rc : daf_set_scalar(d, "exposure_s", &exposure, NULL, err);
    rc = rc ? rc : daf_add_axis_integers(d, "y_pixel", 0, 1, PIXELS, err);
    rc = rc ? rc : daf_add_axis_integers(d, "x_pixel", 0, 1, PIXELS, err);
    return rc ? rc : daf_add_axis_integers(d, "dt_bin", 0, 1, CHANNELS, err);
}

static int set_images(daf *d, daf_error *err) {
    static uint32_t image[PIXELS * PIXELS]; /* element (y, x) at y + x * PIXELS */
    daf_set_options packed;
    daf_set_options_init(&packed);
    packed.packing = DAF_PACK_LARGE;
    for (unsigned x = 0; x < PIXELS; x++)
        for (unsigned y = 0; y < PIXELS; y++)
            image[y + x * PIXELS] = (x ^ y) % 100;
    int rc = daf_set_matrix(d, "y_pixel", "x_pixel", "flat", DAF_UINT32, image, PIXELS * PIXELS, NULL, err);
    if (rc)
        return rc;
    return daf_set_matrix(d, "y_pixel", "x_pixel", "packed", DAF_UINT32, image, PIXELS * PIXELS, &packed,
                          err);
}

static int set_hot_channels(daf *d, daf_error *err) {
    static const uint16_t channels[HOT] = {401, 1025, 4096}; /* from 1, rising */
    static const uint32_t counts[HOT] = {7, 9, 1};
    daf_csc hot = {.type = DAF_UINT32, .index_type = DAF_UINT16, .rows = CHANNELS, .columns = 1, .nnz = HOT};
    hot.indices = channels;
    hot.values = counts;
    return daf_set_sparse_vector(d, "dt_bin", "hot", &hot, NULL, err);
}

int main(int argc, char **argv) {
    daf_error err;
    daf *d = NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: daf_write_demo DIRECTORY\n");
        return 2;
    }
    int rc = daf_open(&d, argv[1], "w", NULL, &err);
    rc = rc ? rc : daf_batch_begin(d, &err); /* one update of the index for all that follows */
    rc = rc ? rc : set_scalars_and_axes(d, &err);
    rc = rc ? rc : set_images(d, &err);
    rc = rc ? rc : set_hot_channels(d, &err);
    rc = rc ? rc : daf_batch_commit(d, &err);
    daf_free(d);
    if (rc)
        fprintf(stderr, "daf_write_demo: %s\n", err.text);
    return rc ? 1 : printf("wrote %s\n", argv[1]) < 0;
}

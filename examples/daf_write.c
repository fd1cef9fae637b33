/* Writes a small repository: a decay histogram and an image, packed.
 *   cc daf_write.c $(pkg-config --cflags --libs daf) -o daf_write && ./daf_write example.daf */
#include <daf/daf.h>
#include <stdio.h>

enum { BINS = 4096, PIXELS = 256 };

static int write_repository(daf *d, daf_error *err) {
    static uint64_t decay[BINS];
    static uint32_t image[PIXELS * PIXELS]; /* element (y, x) at y + x * PIXELS */
    for (unsigned bin = 0; bin < BINS; bin++)
        decay[bin] = 1000000 / (bin + 50);
    for (unsigned x = 0; x < PIXELS; x++)
        for (unsigned y = 0; y < PIXELS; y++)
            image[y + x * PIXELS] = (x ^ y) % 100;

    const daf_scalar name = daf_scalar_string("example");
    int rc = daf_batch_begin(d, err); /* one update of the index for all that follows */
    if (rc == 0)
        rc = daf_set_scalar(d, "name", &name, NULL, err);
    if (rc == 0)
        rc = daf_add_axis_integers(d, "dt_bin", 0, 1, BINS, err);
    if (rc == 0)
        rc = daf_add_axis_integers(d, "y_pixel", 0, 1, PIXELS, err);
    if (rc == 0)
        rc = daf_add_axis_integers(d, "x_pixel", 0, 1, PIXELS, err);
    if (rc == 0)
        rc = daf_set_vector(d, "dt_bin", "counts", DAF_UINT64, decay, BINS, NULL, err);
    if (rc == 0)
        rc = daf_set_matrix(d, "y_pixel", "x_pixel", "intensity", DAF_UINT32, image, PIXELS * PIXELS, NULL,
                            err);
    return rc ? rc : daf_batch_commit(d, err);
}

int main(int argc, char **argv) {
    daf_options options;
    daf_error err;
    daf *d;
    if (argc != 2) {
        fprintf(stderr, "usage: daf_write DIRECTORY\n");
        return 2;
    }
    daf_options_init(&options);
    options.packed = true;
    int rc = daf_open(&d, argv[1], "w", &options, &err);
    if (rc == 0) {
        rc = write_repository(d, &err);
        int closed = daf_close(d, rc ? NULL : &err);
        rc = rc ? rc : closed;
    }
    if (rc)
        fprintf(stderr, "daf_write: %s\n", err.text);
    else
        printf("wrote %s\n", argv[1]);
    return rc ? 1 : 0;
}

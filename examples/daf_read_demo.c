/* Reads what daf_write_demo has written and prints a summary.
 *   cc daf_read_demo.c $(pkg-config --cflags --libs daf) -o daf_read_demo && ./daf_read_demo demo.daf */
#include <daf/daf.h>
#include <inttypes.h>
#include <stdio.h>

static int print_image(daf *d, const char *name, daf_error *err) {
    daf_info info;
    daf_array *image = NULL;
    uint64_t sum = 0;
    int rc = daf_matrix_info(d, &info, "y_pixel", "x_pixel", name, err);
    rc = rc ? rc : daf_get_matrix(d, &image, "y_pixel", "x_pixel", name, err);
    if (rc)
        return rc;
    const uint32_t *values = daf_array_values(image);
    for (uint64_t i = 0; info.type == DAF_UINT32 && i < daf_array_count(image); i++)
        sum += values[i];
    printf("image %s: %" PRIu64 " x %" PRIu64 " %s, %s, sum %" PRIu64 "\n", name, info.rows, info.columns,
           daf_type_name(info.type), info.packed ? info.compression : "flat", sum);
    daf_array_free(image);
    return 0;
}

static int print_hot_channels(daf *d, daf_error *err) {
    daf_array *channels;
    daf_sparse *hot = NULL;
    int rc = daf_get_axis(d, &channels, "dt_bin", err);
    if (rc)
        return rc;
    rc = daf_get_sparse_vector(d, &hot, "dt_bin", "hot", err);
    for (uint64_t k = 0; rc == 0 && k < daf_sparse_csc(hot)->nnz; k++)
        printf("hot channel: %s\n", daf_array_strings(channels)[daf_sparse_index(hot, k)]);
    daf_sparse_free(hot);
    daf_array_free(channels);
    return rc;
}

int main(int argc, char **argv) {
    daf_error err;
    daf *d = NULL;
    daf_scalar exposure = {.type = DAF_BOOL};
    if (argc != 2) {
        fprintf(stderr, "usage: daf_read_demo DIRECTORY\n");
        return 2;
    }
    int rc = daf_open(&d, argv[1], "r", NULL, &err);
    rc = rc ? rc : daf_get_scalar(d, &exposure, "exposure_s", &err);
    if (rc == 0 && exposure.type == DAF_FLOAT64)
        printf("%s, exposed for %g s\n", daf_name(d), exposure.value.f);
    daf_scalar_clear(&exposure);
    rc = rc ? rc : print_image(d, "flat", &err);
    rc = rc ? rc : print_image(d, "packed", &err);
    rc = rc ? rc : print_hot_channels(d, &err);
    daf_free(d);
    if (rc)
        fprintf(stderr, "daf_read_demo: %s\n", err.text);
    return rc ? 1 : 0;
}

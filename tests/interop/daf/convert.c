/* Converts between the two forms: daf_convert FROM TO, to a Zarr tree when TO ends in .daf.zarr, else to a directory. */
#include <daf/daf.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    daf_error err;
    daf_zarr_report report;
    daf_zarr_options options;
    daf_zarr_options_init(&options);
    options.non_finite_scalars = true;
    if (argc != 3)
        return 2;
    size_t n = strlen(argv[2]), k = strlen(".daf.zarr");
    bool to_zarr = n > k && strcmp(argv[2] + n - k, ".daf.zarr") == 0;
    int rc = to_zarr ? daf_zarr_export(&report, argv[1], argv[2], &options, &err)
                     : daf_zarr_import(&report, argv[1], argv[2], &options, &err);
    if (rc)
        fprintf(stderr, "%d %s\n", err.code, err.text);
    return rc ? 1 : 0;
}

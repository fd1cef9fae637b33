/* Reads a decay histogram: where is its maximum, how many counts are there?
 *   cc daf_read.c $(pkg-config --cflags --libs daf) -o daf_read && ./daf_read example.daf dt_bin counts */
#include <daf/daf.h>
#include <inttypes.h>
#include <stdio.h>

static void print_peak(const daf_array *entries, const daf_array *counts) {
    const uint64_t *values = daf_array_values(counts);
    uint64_t n = daf_array_count(counts), peak = 0, sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        sum += values[i];
        if (values[i] > values[peak])
            peak = i;
    }
    if (n > 0)
        printf("%" PRIu64 " counts, the most (%" PRIu64 ") in %s\n", sum, values[peak],
               daf_array_strings(entries)[peak]);
}

int main(int argc, char **argv) {
    daf *d;
    daf_error err;
    daf_array *entries = NULL, *counts = NULL;
    if (argc != 4) {
        fprintf(stderr, "usage: daf_read DIRECTORY AXIS VECTOR\n");
        return 2;
    }
    if (daf_open(&d, argv[1], "r", NULL, &err) != 0) {
        fprintf(stderr, "daf_read: %s\n", err.text);
        return 1;
    }
    int rc = daf_get_axis(d, &entries, argv[2], &err);
    if (rc == 0)
        rc = daf_get_vector(d, &counts, argv[2], argv[3], &err);
    daf_free(d); /* the arrays stay valid */
    if (rc)
        fprintf(stderr, "daf_read: %s\n", err.text);
    else if (daf_array_type(counts) == DAF_UINT64)
        print_peak(entries, counts);
    else
        printf("%s holds %s values, not UInt64\n", argv[3], daf_type_name(daf_array_type(counts)));
    daf_array_free(entries);
    daf_array_free(counts);
    return rc ? 1 : 0;
}

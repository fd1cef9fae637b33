/* Reads a part of a vector, for tests that count what it costs: part_of URL AXIS NAME FIRST N. Raw values go to standard
 * output; on failure "CODE TEXT" to standard error, exit status 1. */
#include <daf/daf.h>
#include <stdio.h>
#include <stdlib.h>

static int read_part(daf *d, char **argv, daf_array **ret, daf_error *err) {
    return daf_get_vector_range(d, ret, argv[2], argv[3], strtoull(argv[4], NULL, 10),
                                strtoull(argv[5], NULL, 10), err);
}

int main(int argc, char **argv) {
    daf *d = NULL;
    daf_array *a = NULL;
    daf_error err;
    if (argc != 6)
        return 2;
    int rc = daf_open(&d, argv[1], "r", NULL, &err);
    if (rc == 0)
        rc = read_part(d, argv, &a, &err);
    if (rc) {
        fprintf(stderr, "%d %s\n", err.code, err.text);
    } else {
        size_t n = (size_t)daf_array_count(a), width = daf_type_bytes(daf_array_type(a));
        rc = fwrite(daf_array_values(a), width, n, stdout) != n || fflush(stdout) != 0;
    }
    daf_array_free(a);
    daf_free(d);
    return rc ? 1 : 0;
}

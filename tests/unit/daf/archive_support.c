#include "archive_support.h"

#include <stdlib.h>

void copy_file(const char *from, const char *to) {
    size_t bytes;
    char *data = test_read_file(from, &bytes);
    assert_non_null(data);
    test_write_file(to, data, bytes);
    free(data);
}

void same_file(const char *a, const char *b) {
    size_t bytes_a, bytes_b;
    char *data_a = test_read_file(a, &bytes_a), *data_b = test_read_file(b, &bytes_b);
    assert_non_null(data_a);
    assert_non_null(data_b);
    if (bytes_a != bytes_b || memcmp(data_a, data_b, bytes_a) != 0)
        fail_msg("%s (%zu bytes) differs from %s (%zu)", a, bytes_a, b, bytes_b);
    free(data_a);
    free(data_b);
}

void set_integer(daf *d, const char *name, int64_t v) {
    daf_scalar s = daf_scalar_int64(v);
    OK(daf_set_scalar(d, name, &s, NULL, e));
}

void has_integer(daf *d, const char *name, int64_t v) {
    daf_scalar s;
    OK(daf_get_scalar(d, &s, name, e));
    assert_int_equal(s.value.i, v);
}

/* Archives that are damaged, cut or followed by something, rather than left by an interrupted append: a writable open
 * refuses them and changes nothing, or loses no more than what is damaged. */
#include "archive_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const fixtures[] = {
    FIXTURE("zip-foreign/data-descriptors.daf.zip"), FIXTURE("zip-foreign/deflate.daf.zip"),
    FIXTURE("zip-foreign/stored.daf.zip"), FIXTURE("zip-native/repo.daf.zip")};
enum { N_FIXTURES = sizeof fixtures / sizeof fixtures[0] };

/* Scalars, axes and vectors that can be read. */
static unsigned count_readable(daf *d) {
    daf_names scalars, axes, vectors;
    daf_scalar scalar;
    daf_array *a;
    unsigned n = 0;
    OK(daf_list_scalars(d, &scalars, e));
    OK(daf_list_axes(d, &axes, e));
    for (size_t i = 0; i < scalars.n; i++) {
        if (daf_get_scalar(d, &scalar, scalars.names[i], NULL) != 0)
            continue;
        n++;
        daf_scalar_clear(&scalar);
    }
    for (size_t i = 0; i < axes.n; i++) {
        if (daf_get_axis(d, &a, axes.names[i], NULL) == 0) {
            n++;
            daf_array_free(a);
        }
        OK(daf_list_vectors(d, &vectors, axes.names[i], e));
        for (size_t k = 0; k < vectors.n; k++) {
            if (daf_get_vector(d, &a, axes.names[i], vectors.names[k], NULL) != 0)
                continue;
            n++;
            daf_array_free(a);
        }
        daf_names_clear(&vectors);
    }
    daf_names_clear(&scalars);
    daf_names_clear(&axes);
    return n;
}

/* Writes to it. Returns whether it took that, and how much there is then; otherwise nothing has changed. */
static bool write_one(const char *path, const char *data, size_t bytes, unsigned *n) {
    daf *d;
    daf_error why;
    test_write_file(path, data, bytes);
    if (daf_open(&d, path, "r+", NULL, &why) != 0) {
        size_t now;
        char *there = test_read_file(path, &now);
        assert_int_equal(now, bytes);
        assert_memory_equal(there, data, bytes);
        free(there);
        return false;
    }
    set_integer(d, "new one", 5);
    *n = count_readable(d) - 1;
    OK(daf_close(d, e));
    return true;
}

static unsigned readable_in(const char *path) {
    daf *d;
    OK(daf_open(&d, path, "r", NULL, e));
    unsigned n = count_readable(d);
    OK(daf_close(d, e));
    return n;
}

/* One bit, and perhaps the last byte missing: not more is lost than the properties of one entry, which is an axis at most. */
static void a_bit_is_lost(void **state) {
    test_random r = {9};
    for (unsigned k = 0; k < N_FIXTURES; k++) {
        const char *path = test_path(state, "a.daf.zip");
        size_t bytes;
        char *data = test_read_file(fixtures[k], &bytes);
        copy_file(fixtures[k], path);
        unsigned all = readable_in(path), n = 0, n_taken = 0;
        for (unsigned i = 0; i < 400; i++) {
            size_t at = test_below(&r, bytes), kept = bytes - i % 2;
            char bit = (char)(1 << test_below(&r, 8));
            data[at] ^= bit;
            if (write_one(path, data, kept, &n)) {
                n_taken++;
                if (n + 12 < all)
                    fail_msg("%s: bit of byte %zu: %u of %u are left", fixtures[k], at, n, all);
            }
            data[at] ^= bit;
        }
        assert_true(n_taken > 0);
        free(data);
    }
}

static void signatures_are_lost(void **state) {
    for (unsigned k = 0; k < N_FIXTURES; k++) {
        const char *path = test_path(state, "a.daf.zip");
        size_t bytes;
        char *data = test_read_file(fixtures[k], &bytes);
        copy_file(fixtures[k], path);
        unsigned all = readable_in(path), n = 0;
        for (size_t at = 0; at + 4 < bytes; at++) {
            if (data[at] != 'P' || data[at + 1] != 'K' || data[at + 2] > 6)
                continue;
            data[at + 2] ^= 1;
            for (size_t cut = 0; cut < 2; cut++)
                if (write_one(path, data, bytes - cut, &n) && n + 12 < all)
                    fail_msg("%s: signature at %zu: %u of %u are left", fixtures[k], at, n, all);
            data[at + 2] ^= 1;
        }
        free(data);
    }
}

/* Sizes and lengths of local headers that say something else, so that one entry seems to hold others, or to reach past the
 * end; without the end records nothing but they tell what is there. */
static void lengths_lie(void **state) {
    enum { TRIES = 120, FIRST_FIELD = 14, FIELDS_END = 30 };
    test_random r = {10};
    for (unsigned k = 0; k < N_FIXTURES; k++) {
        const char *path = test_path(state, "a.daf.zip");
        size_t bytes, places[100], n_places = 0;
        char *data = test_read_file(fixtures[k], &bytes);
        copy_file(fixtures[k], path);
        unsigned all = readable_in(path), n = 0;
        for (size_t at = 0; at + 90 < bytes && n_places < 100; at++)
            if (memcmp(data + at, "PK\3\4", 4) == 0)
                places[n_places++] = at;
        for (unsigned i = 0; i < TRIES; i++) {
            size_t local = places[test_below(&r, n_places)], name = (unsigned char)data[local + 26];
            /* The fields of the header, or the sizes in its extra field. */
            size_t at = i % 2 ? FIRST_FIELD + test_below(&r, FIELDS_END - FIRST_FIELD)
                              : 30 + name + test_below(&r, 20);
            char bit = (char)(1 << test_below(&r, 8));
            data[local + at] ^= bit;
            if (write_one(path, data, bytes - 1, &n) && n + 12 < all)
                fail_msg("%s: byte %zu of the header at %zu: %u of %u are left", fixtures[k], at, local, n,
                         all);
            data[local + at] ^= bit;
        }
        free(data);
    }
}

/* Some bytes twice, or not at all: what lies behind is there, but not where it should be. */
static void bytes_are_doubled_or_missing(void **state) {
    test_random r = {11};
    for (unsigned k = 0; k < N_FIXTURES; k++) {
        const char *path = test_path(state, "a.daf.zip");
        size_t bytes;
        char *data = test_read_file(fixtures[k], &bytes), *other = malloc(bytes + 64);
        assert_non_null(other);
        copy_file(fixtures[k], path);
        unsigned all = readable_in(path), n = 0;
        for (unsigned i = 0; i < 100; i++) {
            size_t some = 1 + test_below(&r, 60), at = test_below(&r, bytes - some);
            size_t from = i % 2 ? at : at + some, to = i % 2 ? at + some : at;
            memcpy(other, data, bytes);
            memcpy(other + to, data + from, bytes - from);
            if (write_one(path, other, bytes + to - from, &n) && n + 12 < all)
                fail_msg("%s: %zu bytes at %zu %s: %u of %u are left", fixtures[k], some, at,
                         i % 2 ? "doubled" : "missing", n, all);
        }
        free(other);
        free(data);
    }
}

/* Another writer had made room, and was killed when it had written the first bytes of a new directory, which fall into a name
 * in the old one. */
static void a_name_is_overwritten(void **state) {
    enum { MORE = 400 };
    static const int32_t values[3] = {1, 2, 3};
    const char *path = test_path(state, "a.daf.zip");
    daf *d;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis_integers(d, "a", 0, 1, 3, e));
    OK(daf_set_vector(d, "a", "v", DAF_INT32, values, 3, NULL, e));
    set_integer(d, "s", 1);
    OK(daf_close(d, e));
    size_t bytes, at;
    char *data = test_read_file(path, &bytes), *longer = calloc(1, bytes + MORE);
    assert_non_null(longer);
    for (at = bytes - 16; memcmp(data + at, "vectors/a/v.json", 16) != 0; at--)
        ;
    unsigned all = readable_in(path), n = 0;
    for (size_t k = 1; k <= 12; k++) {
        memcpy(longer, data, bytes);
        memcpy(longer + at + 3, "PK\1\2\36\3-\0\0\b\0", k);
        assert_true(write_one(path, longer, bytes + MORE, &n));
        assert_int_equal(n, all);
    }
    free(longer);
    free(data);
}

/* Whatever is read whole is compared with its checksum, so that a copy does not make a right one of what is wrong. */
static void checksums_are_compared(void **state) {
    static const char *const entries[2] = {"entry-1", "entry-2"}, *const texts[2] = {"text-1", "text-2"};
    static const char *const content[] = {":1234}", "entry-1", "text-1", "numbers!"};
    const char *path = test_path(state, "a.daf.zip");
    daf *d, *to;
    OK(daf_open(&d, path, "w", NULL, e));
    OK(daf_add_axis(d, "a", entries, 2, e));
    set_integer(d, "s", 1234);
    OK(daf_set_vector(d, "a", "t", DAF_STRING, texts, 2, NULL, e));
    OK(daf_set_vector(d, "a", "n", DAF_INT32, "numbers!", 2, NULL, e));
    OK(daf_close(d, e));
    size_t bytes;
    char *data = test_read_file(path, &bytes);
    for (unsigned i = 0; i < 4; i++) {
        daf_options options;
        daf_array *a;
        daf_scalar s;
        char *at = memmem(data, bytes, content[i], strlen(content[i]));
        assert_non_null(at);
        at[3] ^= 1;
        test_write_file(path, data, bytes);
        at[3] ^= 1;
        daf_options_init(&options);
        options.copies = true;
        OK(daf_open(&d, path, "r", &options, e));
        if (i == 0)
            FAILS(DAF_ERR_CORRUPT, "checksum", daf_get_scalar(d, &s, "s", e));
        else if (i == 1)
            FAILS(DAF_ERR_CORRUPT, "checksum", daf_get_axis(d, &a, "a", e));
        else
            FAILS(DAF_ERR_CORRUPT, "checksum", daf_get_vector(d, &a, "a", i == 2 ? "t" : "n", e));
        OK(daf_open_memory(&to, NULL, e));
        FAILS(DAF_ERR_CORRUPT, "checksum", daf_copy(to, d, NULL, e));
        daf_free(to);
        daf_free(d);
    }
    free(data);
}

/* One bit of the last entry's name, in its local header or in the directory: the entry is there, so it is not one that an
 * interrupted append has left. So with one that has no data. */
static void a_bit_of_the_last_name_is_lost(void **state) {
    const char *path = test_path(state, "a.daf.zip");
    for (unsigned i = 0; i < 4; i++) {
        bool empty = i / 2, local = i % 2;
        const char *last = empty ? "empty.txt" : "scalars/s.json";
        size_t bytes, now, at = 0, first = 0;
        daf *d;
        OK(daf_open(&d, path, "w", NULL, e));
        OK(daf_add_axis_integers(d, "a", 0, 1, 3, e));
        OK(empty ? daf_add_axis(d, "empty", NULL, 0, e) : 0);
        if (!empty)
            set_integer(d, "s", 1);
        OK(daf_close(d, e));
        char *data = test_read_file(path, &bytes);
        for (size_t k = bytes - 1; k > 0; k--) {
            if (k + strlen(last) > bytes || memcmp(data + k, last, strlen(last)) != 0)
                continue;
            at = at ? at : k; /* in the directory */
            first = k;
        }
        assert_true(first < at);
        data[local ? first : at] ^= 1;
        test_write_file(path, data, bytes);
        OK(daf_open(&d, path, "r+", NULL, e));
        set_integer(d, "new one", 5);
        OK(daf_close(d, e));
        char *after = test_read_file(path, &now);
        assert_true(now > bytes);
        assert_memory_equal(after, data, first + strlen(last)); /* nothing was written over it */
        daf_names names;
        OK(daf_open(&d, path, "r", NULL, e));
        OK(daf_list_axes(d, &names, e));
        assert_int_equal(names.n, 1 + empty); /* perhaps under another name */
        daf_names_clear(&names);
        OK(daf_list_scalars(d, &names, e));
        assert_int_equal(names.n, 1 + (!empty && local));
        daf_names_clear(&names);
        OK(daf_close(d, e));
        free(after);
        free(data);
    }
}

/* A download that has not ended. */
static void the_end_is_missing(void **state) {
    const char *path = test_path(state, "a.daf.zip");
    size_t bytes;
    char *data = test_read_file(fixtures[0], &bytes);
    daf *d;
    for (size_t cut = 1; cut < bytes - 100; cut += cut < 30 ? 1 : 397) {
        unsigned n;
        if (write_one(path, data, bytes - cut, &n))
            fail_msg("%zu bytes less were taken", cut);
    }
    test_write_file(path, data, bytes - 1);
    FAILS(DAF_ERR_NOT_DAF, "not a daf", daf_open(&d, path, "r+", NULL, e)); /* its marker lies behind */
    FAILS(DAF_ERR_CORRUPT, "nothing is changed", daf_open(&d, path, "w+", NULL, e));
    daf_verify_summary found;
    OK(daf_verify(path, NULL, &found, e));
    assert_true(found.n[DAF_CLASS_DAMAGE] > 0);
    free(data);
}

static void something_follows(void **state) {
    enum { MORE = 100000 };
    const char *path = test_path(state, "a.daf.zip");
    for (unsigned k = 0; k < N_FIXTURES; k++) {
        size_t bytes;
        char *data = test_read_file(fixtures[k], &bytes), *longer = calloc(1, bytes + MORE);
        unsigned n;
        assert_non_null(longer);
        memcpy(longer, data, bytes);
        copy_file(fixtures[k], path);
        unsigned all = readable_in(path);
        assert_true(write_one(path, longer, bytes + MORE, &n)); /* zeros: an append had made room */
        assert_int_equal(n, all);
        memset(longer + bytes, 'x', MORE);
        assert_false(write_one(path, longer, bytes + MORE, &n));
        assert_int_equal(readable_in(path), all);
        free(longer);
        free(data);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_bit_is_lost),
        TEST(signatures_are_lost),
        TEST(lengths_lie),
        TEST(bytes_are_doubled_or_missing),
        TEST(checksums_are_compared),
        TEST(a_bit_of_the_last_name_is_lost),
        TEST(a_name_is_overwritten),
        TEST(the_end_is_missing),
        TEST(something_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

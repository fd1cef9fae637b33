#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "cli/npy.h"
#include "cli/output.h"
#include "cli/progress.h"

static void crc32c_known_values(void **state) {
    (void)state;
    uint8_t zeros[32] = {0};
    assert_int_equal(common_crc32c(0, "123456789", 9), 0xE3069283);
    assert_int_equal(common_crc32c(0, zeros, 32), 0x8A9136AA);
    assert_int_equal(common_crc32c(0, "", 0), 0);
    assert_int_equal(common_crc32c(common_crc32c(0, "1234", 4), "56789", 5), 0xE3069283);
}

static void crc32c_forms_agree(void **state) {
    (void)state;
    uint8_t data[300];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 37 + 11);
    for (size_t start = 0; start < 9; start++)
        for (size_t n = 0; start + n <= sizeof data; n++)
            assert_int_equal(common_crc32c(5, data + start, n), common_crc32c_portable(5, data + start, n));
}

static void bytes_are_little_endian(void **state) {
    (void)state;
    uint8_t b[8];
    bytes_store64(b, 0x0102030405060708u);
    assert_int_equal(b[0], 8);
    assert_int_equal(b[7], 1);
    assert_int_equal(bytes_load16(b), 0x0708);
    assert_int_equal(bytes_load32(b), 0x05060708);
    assert_true(bytes_load64(b) == 0x0102030405060708u);
}

static void utf8_is_checked(void **state) {
    (void)state;
    static const char *good[] = {"",
                                 "plain",
                                 "Gr\xc3\xb6\xc3\x9f.",
                                 "\xe2\x9c\x93",
                                 "\xf0\x9f\x92\xa1",
                                 "\xed\x9f\xbf",
                                 "\xf4\x8f\xbf\xbf"};
    static const char *bad[] = {"\x80",
                                "\xc3",
                                "\xc0\xaf",
                                "\xe0\x9f\xbf",
                                "\xed\xa0\x80",
                                "\xf0\x8f\xbf\xbf",
                                "\xf4\x90\x80\x80",
                                "\xf5\x80\x80\x80",
                                "\xe2\x9c",
                                "a\xff"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(common_utf8_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(common_utf8_valid(bad[i], strlen(bad[i])));
    assert_true(common_utf8_valid("nul\0inside", 10));
}

static void check_printable(const char *text, size_t bytes, const char *want) {
    char got[64], again[64];
    assert_int_equal(common_printable(got, sizeof got, text, bytes), strlen(want));
    assert_string_equal(got, want);
    common_printable(again, sizeof again, got, strlen(got));
    assert_string_equal(again, want);
}

static void text_is_made_printable(void **state) {
    (void)state;
    char got[8];
    check_printable("", 0, "");
    check_printable("/photons/\xc2\xb5\xe2\x82\xac x", 16, "/photons/\xc2\xb5\xe2\x82\xac x");
    check_printable("a\nb\x1b[31m\t\x7f\0z", 12, "a\\nb\\x1b[31m\\x09\\x7f\\x00z");
    check_printable("\xc2\x9b\xc2\xa0\xff\xe2\x82", 7, "\\xc2\\x9b\xc2\xa0\\xff\\xe2\\x82");
    for (size_t cap = 1; cap <= sizeof got; cap++) { /* whole characters, and the NUL */
        static const char *const want[] = {"", "a", "a", "a", "a", "a\\x01", "a\\x01", "a\\x01\xc2\xb5"};
        common_printable(got, cap, "a\x01\xc2\xb5", 4);
        assert_string_equal(got, want[cap - 1]);
    }
    char *data = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&data, &size);
    for (int i = 0; i < 400; i++)
        cli_write_printable(f, "x\x1b\xff", 3);
    cli_print_line(f, "%s|%d", "two\nlines", 7);
    fclose(f);
    assert_int_equal(size, 400 * 9 + 13);
    assert_memory_equal(data + 399 * 9, "x\\x1b\\xfftwo\\nlines|7\n", 9 + 13);
    free(data);
}

static void check_number(char kind, size_t width, const void *value, const char *text) {
    char got[48];
    cli_format_number(got, sizeof got, kind, width, value);
    assert_string_equal(got, text);
}

static void numbers_read_back(void **state) {
    (void)state;
    check_number('i', 1, &(int8_t){-128}, "-128");
    check_number('i', 2, &(int16_t){-2}, "-2");
    check_number('i', 8, &(int64_t){INT64_MIN}, "-9223372036854775808");
    check_number('u', 8, &(uint64_t){UINT64_MAX}, "18446744073709551615");
    check_number('f', 4, &(float){0.1f}, "0.1");
    check_number('f', 8, &(double){0.1}, "0.1");
    check_number('f', 8, &(double){1.0 / 3}, "0.3333333333333333");
    check_number('f', 8, &(double){-0.0}, "-0.0");
    check_number('b', 1, &(uint8_t){2}, "true");
}

static void npy_header_is_aligned(void **state) {
    (void)state;
    char *data = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&data, &size);
    assert_int_equal(cli_npy_header(f, 'u', 2, (uint64_t[]){512, 3}, 2, true), 0);
    fclose(f);
    assert_int_equal(size % 64, 0);
    assert_memory_equal(data, "\x93NUMPY\x01\x00", 8);
    assert_memory_equal(data + 10, "{'descr': '<u2', 'fortran_order': True, 'shape': (512, 3), }", 60);
    assert_int_equal(data[size - 1], '\n');
    free(data);
}

static void json_strings_are_escaped(void **state) {
    (void)state;
    char *data = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&data, &size);
    assert_int_equal(cli_write_json_string(f, "a\"b\\c\n\x01µ"), 0);
    assert_int_equal(cli_write_json_text(f, "x\0\xFFy\xE2\x9C", 6), 0);
    fclose(f);
    assert_string_equal(data, "\"a\\\"b\\\\c\\n\\u0001µ\"\"x\\u0000\xEF\xBF\xBDy\xEF\xBF\xBD\xEF\xBF\xBD\"");
    free(data);
}

static void counts_have_prefixes(void **state) {
    (void)state;
    char text[16];
    cli_format_count(text, sizeof text, 0);
    assert_string_equal(text, "0 ");
    cli_format_count(text, sizeof text, 999);
    assert_string_equal(text, "999 ");
    cli_format_count(text, sizeof text, 12345678);
    assert_string_equal(text, "12.3 M");
}

static void npy_headers_read_back(void **state) {
    (void)state;
    uint64_t shape[2] = {1234567, 3};
    for (size_t rank = 0; rank <= 2; rank++) {
        char *text;
        size_t bytes;
        cli_npy_array a;
        FILE *f = open_memstream(&text, &bytes);
        assert_int_equal(cli_npy_header(f, 'i', 4, shape, rank, rank == 2), 0);
        fclose(f);
        const uint8_t *data = (const uint8_t *)text;
        assert_int_equal(cli_npy_parse(&a, data, bytes), 0);
        assert_true(a.kind == 'i' && a.item_bytes == 4 && !a.big_endian && a.rank == rank &&
                    a.data_offset == bytes);
        assert_int_equal(a.fortran, rank == 2);
        assert_true((rank < 1 || a.shape[0] == 1234567) && (rank < 2 || a.shape[1] == 3));
        for (size_t cut = 0; cut < bytes; cut++)
            assert_int_equal(cli_npy_parse(&a, data, cut), -1);
        *strstr(text + 10, "<i4") = '?';
        assert_int_equal(cli_npy_parse(&a, data, bytes), -1);
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32c_known_values),      cmocka_unit_test(crc32c_forms_agree),
        cmocka_unit_test(bytes_are_little_endian),  cmocka_unit_test(utf8_is_checked),
        cmocka_unit_test(numbers_read_back),        cmocka_unit_test(npy_header_is_aligned),
        cmocka_unit_test(json_strings_are_escaped), cmocka_unit_test(counts_have_prefixes),
        cmocka_unit_test(npy_headers_read_back),    cmocka_unit_test(text_is_made_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
